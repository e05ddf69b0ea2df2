"""docs/conventions.md, row by row: one choice each, the same for every transform, mode and order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit

from numba_enzyme import grad, hessian, jacfwd, jacrev, jvp, value_and_grad, vjp

ZERO2 = ((0.0, 0.0), (0.0, 0.0))
INF = math.inf


def by_ieee(f):
    return njit(error_model="numpy")(f)


# Name: function, point, first partials, second partials (None where forward and reverse sweeps meet 0 * inf).
ROWS = {
    "sqrt at 0": (lambda x: math.sqrt(x), (0.0,), (0.0,), ((0.0,),)),
    "sqrt of a square at 0": (lambda x: math.sqrt(x * x), (0.0,), (0.0,), ((0.0,),)),
    "cbrt at 0": (lambda x: np.cbrt(x), (0.0,), (0.0,), ((0.0,),)),
    "abs at 0": (lambda x: abs(x), (0.0,), (1.0,), ((0.0,),)),
    "abs at -0": (lambda x: abs(x), (-0.0,), (1.0,), ((0.0,),)),
    "np.abs at 0": (lambda x: np.abs(x), (0.0,), (1.0,), ((0.0,),)),
    "math.fabs at -0": (lambda x: math.fabs(x), (-0.0,), (1.0,), ((0.0,),)),
    "np.sign at 0": (lambda x: np.sign(x), (0.0,), (0.0,), ((0.0,),)),
    "max of equals": (lambda x, y: max(x, y), (1.0, 1.0), (1.0, 0.0), ZERO2),
    "min of equals": (lambda x, y: min(x, y), (1.0, 1.0), (1.0, 0.0), ZERO2),
    "np.maximum of equals": (lambda x, y: np.maximum(x, y), (1.0, 1.0), (1.0, 0.0), ZERO2),
    "np.minimum of equals": (lambda x, y: np.minimum(x, y), (1.0, 1.0), (1.0, 0.0), ZERO2),
    "np.fmax of equals": (lambda x, y: np.fmax(x, y), (1.0, 1.0), (1.0, 0.0), ZERO2),
    "np.fmin of equals": (lambda x, y: np.fmin(x, y), (1.0, 1.0), (1.0, 0.0), ZERO2),
    "np.fmax with NaN": (lambda x, y: np.fmax(x, y), (math.nan, 1.0), (0.0, 1.0), ZERO2),
    "np.logaddexp of equals": (lambda x, y: np.logaddexp(x, y), (1.0, 1.0), (0.5, 0.5), ((0.25, -0.25), (-0.25, 0.25))),
    "0**0": (lambda x, h: x**h, (0.0, 0.0), (0.0, 0.0), ZERO2),
    "0**0.5": (lambda x, h: x**h, (0.0, 0.5), (0.0, 0.0), ZERO2),
    "0**1": (lambda x, h: x**h, (0.0, 1.0), (1.0, 0.0), ZERO2),
    "0**2": (lambda x, h: x**h, (0.0, 2.0), (0.0, 0.0), ((2.0, 0.0), (0.0, 0.0))),
    "0**3": (lambda x, h: x**h, (0.0, 3.0), (0.0, 0.0), ZERO2),
    "0**4": (lambda x, h: x**h, (0.0, 4.0), (0.0, 0.0), ZERO2),
    "(-2)**2": (lambda x, h: x**h, (-2.0, 2.0), (-4.0, 0.0), ((2.0, 0.0), (0.0, 0.0))),
    "0**0, written": (lambda x: x**0, (0.0,), (0.0,), ((0.0,),)),
    "0**0.5, written": (lambda x: x**0.5, (0.0,), (0.0,), ((0.0,),)),
    "0**1, written": (lambda x: x**1, (0.0,), (1.0,), ((0.0,),)),
    "0**2, written": (lambda x: x**2, (0.0,), (0.0,), ((2.0,),)),
    "0**2.0, written": (lambda x: x**2.0, (0.0,), (0.0,), ((2.0,),)),
    "0**3, written": (lambda x: x**3, (0.0,), (0.0,), ((0.0,),)),
    "atan2 at the origin": (lambda y, x: math.atan2(y, x), (0.0, 0.0), (0.0, 0.0), ZERO2),
    "hypot at the origin": (lambda y, x: math.hypot(y, x), (0.0, 0.0), (0.0, 0.0), ZERO2),
    "copysign": (lambda x, y: math.copysign(x, y), (2.0, -1.0), (-1.0, 0.0), ZERO2),
    "copysign of 0": (lambda x, y: math.copysign(x, y), (0.0, -1.0), (-1.0, 0.0), ZERO2),
    "copysign by -0": (lambda x, y: math.copysign(x, y), (2.0, -0.0), (-1.0, 0.0), ZERO2),
    "floor at an integer": (lambda x: np.floor(x), (2.0,), (0.0,), ((0.0,),)),
    "ceil at an integer": (lambda x: np.ceil(x), (2.0,), (0.0,), ((0.0,),)),
    "trunc at an integer": (lambda x: np.trunc(x), (2.0,), (0.0,), ((0.0,),)),
    "round at a half": (lambda x: np.round(x), (2.5,), (0.0,), ((0.0,),)),
    "an integer result": (lambda x: int(x), (2.5,), (0.0,), ((0.0,),)),
    "x // y": (lambda x, y: x // y, (7.0, 2.0), (0.0, 0.0), ZERO2),
    "x % y": (lambda x, y: x % y, (7.0, 2.0), (1.0, -3.0), ZERO2),
    "x % y of a negative": (lambda x, y: x % y, (-7.0, 2.0), (1.0, 4.0), ZERO2),
    "x % y at a multiple": (lambda x, y: x % y, (6.0, 2.0), (0.0, 0.0), ZERO2),
    "np.where at the edge": (lambda x: np.where(x > 0, x * x, -x)[()], (0.0,), (-1.0,), ((0.0,),)),
    "np.sinc at 0": (lambda x: np.sinc(x), (0.0,), (0.0,), ((0.0,),)),
    "exp of -inf": (lambda x: math.exp(x), (-INF,), (0.0,), ((0.0,),)),
    "exp of inf": (lambda x: math.exp(x), (INF,), (INF,), None),
    "square of inf": (lambda x: x * x, (INF,), (INF,), None),
    "sqrt at NaN": (lambda x: math.sqrt(x), (math.nan,), (0.0,), ((0.0,),)),
    "tanh of inf": (lambda x: math.tanh(x), (INF,), (0.0,), ((0.0,),)),
    "tanh where it is 1": (lambda x: math.tanh(x), (1000.0,), (0.0,), ((0.0,),)),
    "linear at NaN": (lambda x: 3.0 * x, (math.nan,), (3.0,), ((0.0,),)),
    "log at 0": (by_ieee(lambda x: np.log(x)), (0.0,), (INF,), ((-INF,),)),
    "1/x at 0": (by_ieee(lambda x: 1.0 / x), (0.0,), (-INF,), None),
    "acos at 1": (lambda x: math.acos(x), (1.0,), (-INF,), None),
}


def units(n):
    return [tuple(float(k == m) for k in range(n)) for m in range(n)]


@pytest.mark.parametrize("name", ROWS)
def test_first_order(name):
    f, at, first, _ = ROWS[name]
    assert grad(f)(*at) == first
    assert value_and_grad(f)(*at)[1] == first
    assert vjp(f)(at, 1.0) == first
    assert tuple(jvp(f)(at, unit) for unit in units(len(at))) == first
    assert jacfwd(f)(*at) == first
    assert jacrev(f)(*at) == first


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row[3] is not None])
def test_second_order(name):
    f, at, _, second = ROWS[name]
    assert hessian(f)(*at) == second
    assert jacrev(grad(f))(*at) == second
    nothing = (0.0,) * len(at)
    assert tuple(tuple(jvp(jvp(f))((at, v), (u, nothing)) for u in units(len(at))) for v in units(len(at))) == second


@pytest.mark.parametrize("name", ROWS)
def test_values_are_those_of_the_function(name):
    f, at, _, _ = ROWS[name]
    value, expected = value_and_grad(f)(*at)[0], (f if hasattr(f, "py_func") else njit(f))(*at)
    assert value == expected or (math.isnan(value) and math.isnan(expected))


def fmin_times(x):
    return np.fmin(x, 0.0) * x


def positive_part_times(x):
    if x > 0.0:
        return x * x
    y = 0.0
    return y * x


# Function, point, and what reverse sweeps give; forward sweeps give NaN.
BRANCHES = [
    (fmin_times, math.nan, 0.0),
    (positive_part_times, math.nan, 0.0),
    (lambda x: max(x, 0.0) * x, -INF, 0.0),
    (lambda x: math.tanh(x) * x, INF, 1.0),
    (lambda x: np.log(np.sqrt(x)), 0.0, 0.0),
]


@pytest.mark.parametrize(("f", "at", "reverse"), BRANCHES)
def test_where_modes_still_differ_each_is_one_choice(f, at, reverse):
    f = by_ieee(f)
    assert [grad(f, 0)(at), value_and_grad(f, 0)(at)[1], vjp(f, 0)((at,), 1.0), jacrev(f, 0)(at)] == [reverse] * 4
    assert [math.isnan(partial) for partial in (jvp(f)((at,), (1.0,)), jacfwd(f, 0)(at))] == [True] * 2


def test_modes_agree_where_such_a_point_is_left_early():
    def f(x):
        return 0.0 if math.isnan(x) else fmin_times(x)

    for at in (math.nan, -2.0):
        expected = 0.0 if math.isnan(at) else 2.0 * at
        assert grad(f, 0)(at) == jacrev(f, 0)(at) == jacfwd(f, 0)(at) == jvp(f)((at,), (1.0,)) == expected


def test_zero_times_infinity_of_the_function_is_nan_in_both_modes():
    def f(x):
        return math.exp(-x) * x

    assert all(math.isnan(partial) for partial in (grad(f, 0)(INF), jacrev(f, 0)(INF), jacfwd(f, 0)(INF), jvp(f)((INF,), (1.0,))))


def test_the_page_has_every_row():
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "conventions.md").read_text()
    assert [name for name in ROWS if f"| {name} |" not in page] == []
