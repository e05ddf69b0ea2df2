"""Random programs over buffers: swapped, made anew in loops, seen through views of views, left early.

Forward mode is compared with the program itself run by NumPy on complex numbers, a step of 1e-30 off the real axis, which is exact to
rounding; reverse mode with forward mode. NUMBA_ENZYME_EXAMPLES sets how many programs are tried.
"""

from __future__ import annotations

import os

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from numba_enzyme import jvp, vjp

EXAMPLES = int(os.environ.get("NUMBA_ENZYME_EXAMPLES", "8"))
BUFFERS = st.sampled_from("ab")
FEW = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def indented(lines):
    return ["    " + line for line in lines]


def elements():
    """One element of a buffer from others: small, so that what is carried around a loop stays small."""
    index = st.sampled_from(["i", "i - 1", "(i + 1) % n", "n - 1 - i", "0"])
    leaf = st.one_of(st.tuples(st.sampled_from("abx"), index).map(lambda p: f"{p[0]}[{p[1]}]"), st.sampled_from(["s", "0.5"]))
    pair = st.tuples(leaf, st.sampled_from("+-*"), leaf).map(lambda p: f"{p[0]} {p[1]} {p[2]}")
    return st.tuples(pair, leaf).map(lambda p: f"0.7 * np.tanh({p[0]}) + 0.3 * {p[1]}")


ELEMENTS = elements()
FILLED = st.tuples(BUFFERS, ELEMENTS).map(lambda p: ["for i in range(n):", f"    {p[0]}[i] = {p[1]}"])
MADE = st.tuples(BUFFERS, ELEMENTS).map(lambda p: ["t = np.empty_like(x)", "for i in range(n):", f"    t[i] = {p[1]}", f"{p[0]} = t"])
ANEW = st.tuples(BUFFERS, BUFFERS, st.sampled_from(["np.sin({}) * x", "{}[::-1] * 0.5", "{} * s", "{}.copy()", "{} + 0.1 * x[0]"])).map(
    lambda p: [f"{p[0]} = {p[2].format(p[1])}"]
)
MOVED = st.sampled_from([["a, b = b, a"], ["a = b"], ["a[1:] = b[:-1].copy()"], ["b[:] = a"], ["a += 0.1 * b"], ["a *= 0.5"]])
VIEWS = st.tuples(BUFFERS, st.sampled_from(["[1:][::2]", "[::-1]", "[::-1][:-1][::2]", "[::2][::-1]"])).map(lambda p: [f"u = {p[0]}{p[1]}"])
THROUGH = st.sampled_from(
    [["u *= 0.5"], ["u += 0.1 * s"], ["u[:] = np.tanh(u) + x[0]"], ["s = 0.5 * s + u[0]"], ["s = np.tanh(s * u[-1])"]]
)
SUMS = st.sampled_from([["s = np.tanh(a.sum())"], ["s = 0.5 * s + (a * b).sum() / n"], ["s = s + b[n - 1]"]])
SIMPLE = st.one_of(FILLED, MADE, ANEW, MOVED, VIEWS, THROUGH, SUMS)
CONDITIONS = st.sampled_from(["s.real > 0.4", "a[0].real < b[n - 1].real", "u[0].real > 0.3", "n > 3"])


def blocks(statement):
    body = st.lists(statement, min_size=1, max_size=4).map(lambda parts: [line for part in parts for line in part])
    branch = st.tuples(CONDITIONS, body, body).map(lambda p: [f"if {p[0]}:", *indented(p[1]), "else:", *indented(p[2])])
    loop = st.tuples(st.sampled_from(["m", "2", "m + 1"]), body).map(lambda p: [f"for _ in range({p[0]}):", *indented(p[1])])
    leaving = st.tuples(CONDITIONS, st.sampled_from(["break", "continue"]), body, body).map(
        lambda p: ["for _ in range(m):", *indented([*p[2], f"if {p[0]}:", f"    {p[1]}", *p[3]])]
    )
    returning = CONDITIONS.map(lambda c: [f"if {c}:", "    return b * s, u.sum()"])
    return st.one_of(branch, loop, leaving, returning)


PROGRAMS = st.lists(st.recursive(SIMPLE, blocks, max_leaves=7), min_size=1, max_size=5).map(
    lambda parts: "\n    ".join(
        [
            "def f(x, m):",
            "n = x.size",
            "a, b, s = x.copy(), 0.5 * x, x[0]",
            "u = b[::-1]",
            *[line for part in parts for line in part],
            "return a * s + u[0], s + b.sum()\n",
        ]
    )
)


def compiled(source):
    namespace = {"np": np}
    exec(source, namespace)
    return namespace["f"]


def along(f, x, v, *rest):
    return [np.imag(out) * 1e30 for out in f(x + 1e-30j * v, *rest)]


def compare(f, forward, reverse, x, m, rng, text=""):
    v = rng.uniform(-1.0, 1.0, x.shape)
    expected = along(f, x, v, m)
    got = forward((x, m), (v,))
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11, err_msg=text)
    w = rng.uniform(-1.0, 1.0, np.shape(got[0]))
    adjoint = reverse((x, m), (w, 2.0))
    np.testing.assert_allclose((adjoint * v).sum(), (w * got[0]).sum() + 2.0 * got[1], rtol=1e-11, atol=1e-11, err_msg=text)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
@given(PROGRAMS)
def test_programs(source):
    f = compiled(source)
    forward, reverse = jvp(f, 0), vjp(f, 0)
    rng = np.random.default_rng(3)
    for n in (2, 3, 7, 8):
        for m in (0, 1, 4):
            compare(f, forward, reverse, rng.uniform(0.2, 0.9, n), m, rng, source)


def swapped(x, m):
    a, b = x.copy(), np.zeros_like(x)
    for _ in range(m):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                b[i, j] = 0.5 * a[i - 1, j] * a[i, j - 1] + np.sin(a[i, j])
        a, b = b, a
    return a, (a * b).sum()


def made_in_a_loop(x, m):
    a, s = x, x.sum()
    for k in range(m):
        t = np.empty_like(x)
        for i in range(x.shape[0]):
            t[i] = np.tanh(a[i - 1]) * x[i]
        if k % 2 == 0:
            s = s + t[-1].sum()
        a = t
    return a, s


def left_early(x, m):
    t, s = np.zeros_like(x), 0.5 * x[0, 0]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if s.real > 0.3 * m:
                return t * s, s
            s = s + 0.1 * x[i, j] * x[i, j]
            t[i, j] = s * x[i, j]
    return t, s * s


def views_of_views(x, m):
    t = x.copy()
    for k in range(m):
        rows = t[k % x.shape[0] :]
        turned = rows[::-1].T
        part = turned[::2][::-1]
        part *= 1.0 + 0.1 * x[0, 0]
        turned[0] += 0.1 * turned[-1]
    return t, t[:, 0].sum()


SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 9))
LOOPS = {f.__name__: (f, jvp(f, 0), vjp(f, 0)) for f in (swapped, made_in_a_loop, left_early, views_of_views)}


@FEW
@given(st.sampled_from(sorted(LOOPS)), SHAPES, st.integers(0, 5), st.integers(0, 1000))
def test_shapes(name, shape, m, seed):
    f, forward, reverse = LOOPS[name]
    rng = np.random.default_rng(seed)
    compare(f, forward, reverse, rng.uniform(0.2, 0.9, shape), m, rng, name)


def normalised(x, m):
    y = x.reshape(x.size)
    for _ in range(m):
        y = y / np.sqrt(1.0 + (y * y).sum())
    return y, y.sum()


@FEW
@given(st.lists(st.integers(0, 4), min_size=3, max_size=3), st.integers(0, 3))
def test_empty_arrays_too(shape, m):
    rng = np.random.default_rng(5)
    compare(normalised, jvp(normalised, 0), vjp(normalised, 0), rng.uniform(0.2, 0.9, shape), m, rng)
