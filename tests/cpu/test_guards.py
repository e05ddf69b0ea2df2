"""What a guard keeps from being computed stays so, in loops too: its derivative where the guard is false may be 0 * inf."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit

from numba_enzyme import grad, hessian, jvp, value_and_grad

by_ieee = njit(error_model="numpy")


def logarithm(x, n):
    s = 0.0
    for i in range(n):
        if x > 0:
            s += i * math.log(x)
    return s


def entropy(x, n):
    s = 0.0
    for i in range(n):
        if x > 0:
            s += x * math.log(x) * i
        s *= 0.5
    return s


@by_ieee
def inverse(x, n):
    s = 0.0
    for i in range(n):
        s += (1.0 / x) * i if x != 0 else x
    return s


def root(x, n):
    s = 0.0
    for i in range(n):
        if x > 0:
            s += math.sqrt(x) * i
        else:
            s += x
    return s


def power(x, n):
    s = 0.0
    for i in range(n):
        if x > 0:
            s += x**0.3 * i
        else:
            s += x
    return s


def half_power(x, n):
    s = 0.0
    for i in range(n):
        s += x ** (n / 8.0) * i
    return s


CASES = {"logarithm": (logarithm, 0.0), "entropy": (entropy, 0.0), "inverse": (inverse, 4.0), "root": (root, 4.0)}
CASES |= {"power": (power, 4.0), "half_power": (half_power, 0.0)}


@pytest.mark.parametrize("name", CASES)
def test_at_the_edge_of_the_guard(name):
    f, slope = CASES[name]
    assert grad(f, 0)(0.0, 4) == slope
    assert jvp(f, 0)((0.0, 4), (1.0,)) == slope
    assert hessian(f, 0)(0.0, 4) == 0.0


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 3.0])
def test_powers_of_numpy_are_guarded_as_others_are(exponent):
    at = (0.0, exponent)
    assert grad(lambda x, h: np.power(x, h))(*at) == grad(lambda x, h: x**h)(*at)
    assert hessian(lambda x, h: np.power(x, h))(*at) == hessian(lambda x, h: x**h)(*at)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tanh_keeps_its_value_and_has_derivatives_where_it_saturates(dtype):
    f = njit(lambda x: math.tanh(x))
    for x in map(dtype, (0.0, 0.5, 9.9, 10.1, 19.0, 19.9, 20.1, 50.0, 400.0, 1e30, -0.5, -20.1, -400.0, math.inf)):
        value, (slope,) = value_and_grad(f)(x)
        assert value == f(x)
        assert 0.0 <= slope <= 1.0
        assert abs(hessian(f, 0)(x)) <= 1.0
    assert math.isnan(value_and_grad(f)(dtype(math.nan))[0])
    # tanh' = 4 exp(-2 x) and tanh'' = -8 exp(-2 x), for large x.
    assert grad(f, 0)(30.0) == pytest.approx(4 * math.exp(-60.0), rel=1e-13)
    assert hessian(f, 0)(30.0) == pytest.approx(-8 * math.exp(-60.0), rel=1e-13)
    assert grad(grad(grad(f, 0), 0), 0)(1000.0) == 0.0
