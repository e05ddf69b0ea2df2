"""A derivative is a Numba function like any other."""

from __future__ import annotations

import math
import os
import pickle
import re
import subprocess
import sys
import textwrap

import cloudpickle
import numpy as np
import pytest
from numba import guvectorize, njit, prange, vectorize

from numba_enzyme import differentiable, grad, hessian, jvp, value_and_grad


def f(x, y):
    return math.sin(x) * y + x * y * y


gradient = grad(f)


def exact(x, y):
    return np.cos(x) * y + y * y, np.sin(x) + 2 * x * y


XS, YS = np.linspace(0.1, 2.0, 50), np.linspace(-1.0, 1.0, 50)


def test_in_a_loop():
    @njit
    def loop(xs, ys):
        out = np.empty((xs.size, 2))
        for k in range(xs.size):
            out[k, 0], out[k, 1] = gradient(xs[k], ys[k])
        return out

    assert pytest.approx(np.array(exact(XS, YS)), rel=1e-15) == loop(XS, YS).T


def test_in_prange():
    @njit(parallel=True)
    def loop(xs, ys):
        out = np.empty(xs.size)
        for k in prange(xs.size):
            out[k] = gradient(xs[k], ys[k])[0]
        return out

    assert loop(XS, YS) == pytest.approx(exact(XS, YS)[0], rel=1e-15)


def test_in_ufuncs():
    @vectorize(["float64(float64, float64)"])
    def ufunc(x, y):
        return gradient(x, y)[1]

    @guvectorize(["void(float64[:], float64[:], float64[:])"], "(n),(n)->(n)")
    def gufunc(xs, ys, out):
        for k in range(xs.size):
            out[k] = gradient(xs[k], ys[k])[0]

    assert ufunc(XS, YS) == pytest.approx(exact(XS, YS)[1], rel=1e-15)
    assert gufunc(XS, YS) == pytest.approx(exact(XS, YS)[0], rel=1e-15)


def calls_left(function):
    (text,) = function.inspect_llvm().values()
    return re.findall(r"call [^\n]*@_ZN12numba_enzyme[^\n]*", text)


def test_it_is_inlined_whatever_its_size():
    n = 24
    names = [f"x{k}" for k in range(n)]
    terms = " + ".join(
        f"math.sin({a} * {b}) * math.exp({b}) / (1.0 + {a} * {a})" for a, b in zip(names, names[1:] + names[:1], strict=True)
    )
    namespace = {"math": math, "__name__": __name__}
    exec(f"def large({', '.join(names)}):\n    return {terms}", namespace)
    large = grad(namespace["large"], 0)
    small = grad(f, 0)

    @njit
    def caller(xs):
        s = 0.0
        for x in xs:
            s += small(x, x) + large(x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x)
        return s

    caller(XS)
    assert calls_left(caller) == []


def test_calls_would_be_seen():
    @njit(inline="never")
    def callee(x):
        return x + 1.0

    @njit
    def caller(xs):
        return callee(xs[0])

    caller(XS)
    (text,) = caller.inspect_llvm().values()
    assert re.findall(r"define [^\n]*@_ZN", text)


def child(code, tmp_path, **environment):
    script, text = tmp_path / "script.py", textwrap.dedent(code)
    # Numba's cache looks at when a file was written.
    if not script.exists() or script.read_text() != text:
        script.write_text(text)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "numba"), **environment}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_cached_caller_needs_no_enzyme(tmp_path):
    code = """
        import math
        from numba import njit
        from numba_enzyme import grad
        from numba_enzyme.enzyme import run
        real, runs = run.differentiate, []
        run.differentiate = lambda *a, **k: (runs.append(1), real(*a, **k))[1]

        def f(x, y):
            if x < 0.0:
                raise ValueError("negative")
            return math.sin(x) * y

        derivative = grad(f)

        @njit(cache=True)
        def caller(x):
            return derivative(x, 2.0)[0]

        print(caller(1.0), len(runs), sum(caller.stats.cache_hits.values()))
        try:
            caller(-1.0)
        except ValueError as error:
            print(error)
    """
    expected = 2.0 * math.cos(1.0)
    nowhere = {"NUMBA_ENZYME_CACHE_DIR": str(tmp_path / "first")}
    assert child(code, tmp_path, **nowhere) == f"{expected} 1 0\nnegative"
    nowhere = {"NUMBA_ENZYME_CACHE_DIR": str(tmp_path / "second")}
    assert child(code, tmp_path, **nowhere) == f"{expected} 0 1\nnegative"


def raising(x):
    if x < 0.0:
        raise ValueError("negative", 42)
    return math.sqrt(x)


def test_exceptions_arrive():
    derivative = value_and_grad(raising)
    assert derivative(4.0) == (2.0, (0.25,))
    with pytest.raises(ValueError, match="negative") as caught:
        derivative(-1.0)
    assert caught.value.args == ("negative", 42)

    @njit
    def caller(x):
        try:
            return derivative(x)[0]
        except Exception:  # noqa: BLE001
            return -1.0

    assert (caller(4.0), caller(-1.0)) == (2.0, -1.0)

    for transform, args in ((jvp(raising), ((-1.0,), (1.0,))), (hessian(raising), (-1.0,))):
        with pytest.raises(ValueError, match="negative"):
            transform(*args)


def test_options_of_the_function_are_kept():
    def reciprocal(x):
        return 1.0 / x

    with pytest.raises(ZeroDivisionError):
        grad(reciprocal)(0.0)
    assert grad(njit(error_model="numpy")(reciprocal))(0.0) == (-math.inf,)

    def read(x, a):
        return x * a[3]

    with pytest.raises(IndexError):
        grad(njit(boundscheck=True)(read), 0)(1.0, np.ones(2))

    def cancels(x):
        return (x + 1e16) - 1e16

    # With leave to reassociate, 1e16 - 1e16 is gone and the value is x.
    assert value_and_grad(cancels)(0.5)[0] == 0.0
    assert value_and_grad(njit(fastmath=True)(cancels))(0.5) == (0.5, (1.0,))


def test_nan_and_infinity_as_in_f():
    assert math.isnan(grad(lambda x: x * x)(math.nan)[0])
    assert grad(lambda x: x * x)(math.inf) == (math.inf,)
    assert value_and_grad(lambda x: math.exp(x))(1000.0) == (math.inf, (math.inf,))


def test_pickling_into_another_process(tmp_path):
    def closure(k):
        def inner(x):
            return k * x * x

        return inner

    assert pickle.loads(pickle.dumps(gradient)) is gradient
    payload = tmp_path / "derivatives"
    payload.write_bytes(
        cloudpickle.dumps((grad(closure(3.0)), hessian(closure(2.0)), differentiable(closure(4.0)), grad(njit(closure(5.0)))))
    )
    code = f"""
        import pathlib, pickle
        first, second, third, fourth = pickle.loads(pathlib.Path({str(payload)!r}).read_bytes())
        print(first(2.0), second(2.0), third.grad(2.0), third(1.0), fourth(2.0))
    """
    assert child(code, tmp_path) == "(12.0,) ((4.0,),) (16.0,) 4.0 (20.0,)"


@differentiable
def decorated(x):
    return x * x * x


def test_a_decorated_function_pickles(tmp_path):
    payload = tmp_path / "decorated"
    payload.write_bytes(pickle.dumps((decorated, decorated.grad)))
    code = f"""
        import pathlib, pickle
        function, derivative = pickle.loads(pathlib.Path({str(payload)!r}).read_bytes())
        print(function(2.0), function.grad(2.0), derivative(3.0))
    """
    assert child(code, tmp_path) == "8.0 (12.0,) (27.0,)"


def test_differentiable_inside_compiled_code():
    d = differentiable(f)

    @njit
    def caller(x, y):
        return d(x, y) + d.grad(x, y)[0] + d.jvp((x, y), (1.0, 0.0))

    partial = exact(1.0, 2.0)[0]
    assert caller(1.0, 2.0) == pytest.approx(f(1.0, 2.0) + 2 * partial)


def test_a_derivative_inside_a_differentiated_function():
    def slope_squared(x, y):
        return gradient(x, y)[0] ** 2

    x, y = 1.0, 2.0
    p = exact(x, y)[0]
    assert grad(slope_squared)(x, y) == pytest.approx((-2 * p * math.sin(x) * y, 2 * p * (math.cos(x) + 2 * y)))
    assert grad(njit(slope_squared))(x, y) == grad(slope_squared)(x, y)


def test_without_a_compiler_it_says_so(tmp_path):
    code = """
        from numba_enzyme import UnsupportedError, grad
        try:
            grad(lambda x: x)
        except UnsupportedError as error:
            print(error)
    """
    assert "NUMBA_DISABLE_JIT" in child(code, tmp_path, NUMBA_DISABLE_JIT="1")


@pytest.mark.parametrize("how", ["stdin", "exec", "interactive"])
def test_functions_without_a_file(how):
    code = "def f(x):\n    return x**3\n\nfrom numba_enzyme import grad, jvp\nprint(grad(f)(2.0), jvp(f)((2.0,), (1.0,)))\n"
    command = {
        "stdin": [sys.executable, "-"],
        "exec": [sys.executable, "-c", f"exec({code!r})"],
        "interactive": [sys.executable, "-i", "-q"],
    }[how]
    done = subprocess.run(command, input="" if how == "exec" else code, capture_output=True, text=True, check=False)
    assert "(12.0,) 12.0" in done.stdout, done.stderr


def test_notebook_cells_with_one_name():
    results = []
    for k, factor in enumerate((2.0, 5.0)):
        namespace = {"__name__": "__main__"}
        exec(compile(f"def cell(x):\n    return {factor} * x", f"<ipython-input-{k}>", "exec"), namespace)
        results.append(grad(namespace["cell"])(1.0))
    assert results == [(2.0,), (5.0,)]
