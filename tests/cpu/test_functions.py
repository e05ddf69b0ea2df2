"""Over a hundred one-line functions against derivatives written down by hand."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest
from numba import njit
from scipy import special

from numba_enzyme import grad, jvp, value_and_grad
from numba_enzyme.testing import check_grads

X = 0.37
ARRAY = np.array([1.0, 2.0, 3.0])
PAIR = (2.0, 3)


@njit
def product_and_sine(x, y):
    return x * y + math.sin(x)


def scaled(k):
    @njit
    def inner(x):
        return x * k + math.cos(k * x)

    return inner


closure = scaled(2.5)
LN2 = math.log(2.0)
TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)

CASES = {
    # math, one argument
    "sin": (lambda x: math.sin(x), lambda x: math.cos(x)),
    "cos": (lambda x: math.cos(x), lambda x: -math.sin(x)),
    "tan": (lambda x: math.tan(x), lambda x: 1 + math.tan(x) ** 2),
    "asin": (lambda x: math.asin(x), lambda x: 1 / math.sqrt(1 - x * x)),
    "acos": (lambda x: math.acos(x), lambda x: -1 / math.sqrt(1 - x * x)),
    "atan": (lambda x: math.atan(x), lambda x: 1 / (1 + x * x)),
    "sinh": (lambda x: math.sinh(x), lambda x: math.cosh(x)),
    "cosh": (lambda x: math.cosh(x), lambda x: math.sinh(x)),
    "tanh": (lambda x: math.tanh(x), lambda x: 1 / math.cosh(x) ** 2),
    "asinh": (lambda x: math.asinh(x), lambda x: 1 / math.sqrt(1 + x * x)),
    "acosh": (lambda x: math.acosh(x + 1.5), lambda x: 1 / math.sqrt((x + 1.5) ** 2 - 1)),
    "atanh": (lambda x: math.atanh(x), lambda x: 1 / (1 - x * x)),
    "exp": (lambda x: math.exp(x), lambda x: math.exp(x)),
    "expm1": (lambda x: math.expm1(x), lambda x: math.exp(x)),
    "log": (lambda x: math.log(x), lambda x: 1 / x),
    "log1p": (lambda x: math.log1p(x), lambda x: 1 / (1 + x)),
    "log10": (lambda x: math.log10(x), lambda x: 1 / (x * math.log(10.0))),
    "log2": (lambda x: math.log2(x), lambda x: 1 / (x * LN2)),
    "sqrt": (lambda x: math.sqrt(x), lambda x: 0.5 / math.sqrt(x)),
    "erf": (lambda x: math.erf(x), lambda x: TWO_OVER_ROOT_PI * math.exp(-x * x)),
    "erfc": (lambda x: math.erfc(x), lambda x: -TWO_OVER_ROOT_PI * math.exp(-x * x)),
    "gamma": (lambda x: math.gamma(x), lambda x: math.gamma(x) * special.digamma(x)),
    "gamma of negative": (lambda x: math.gamma(x - 3.0), lambda x: math.gamma(x - 3.0) * special.digamma(x - 3.0)),
    "gamma of large": (lambda x: math.gamma(20.0 + x), lambda x: math.gamma(20.0 + x) * special.digamma(20.0 + x)),
    "lgamma": (lambda x: math.lgamma(x), lambda x: special.digamma(x)),
    "lgamma of negative": (lambda x: math.lgamma(x - 5.0), lambda x: special.digamma(x - 5.0)),
    "lgamma of large": (lambda x: math.lgamma(x + 1e6), lambda x: special.digamma(x + 1e6)),
    "fabs": (lambda x: math.fabs(x - 1.0), lambda x: -1.0),
    "floor": (lambda x: math.floor(x), lambda x: 0.0),
    "ceil": (lambda x: math.ceil(x), lambda x: 0.0),
    "trunc": (lambda x: math.trunc(x), lambda x: 0.0),
    "degrees": (lambda x: math.degrees(x), lambda x: 180 / math.pi),
    "radians": (lambda x: math.radians(x), lambda x: math.pi / 180),
    "isnan": (lambda x: x if math.isnan(x) else x * x, lambda x: 2 * x),
    "isinf": (lambda x: 0.0 if math.isinf(x) else x * x, lambda x: 2 * x),
    # math, two arguments
    "atan2 by y": (lambda x: math.atan2(x, 2.0), lambda x: 2 / (4 + x * x)),
    "atan2 by x": (lambda x: math.atan2(2.0, x), lambda x: -2 / (4 + x * x)),
    "hypot": (lambda x: math.hypot(x, 2.0), lambda x: x / math.hypot(x, 2.0)),
    "hypot of both": (lambda x: math.hypot(x, x * x), lambda x: (x + 2 * x**3) / math.hypot(x, x * x)),
    "copysign": (lambda x: math.copysign(x, -1.0), lambda x: -1.0),
    "pow": (lambda x: math.pow(x, 3.0), lambda x: 3 * x * x),
    "ldexp": (lambda x: math.ldexp(x, 3), lambda x: 8.0),
    "frexp": (lambda x: math.frexp(x)[0], lambda x: 2.0),
    "nextafter": (lambda x: math.nextafter(x, 1.0), lambda x: 1.0),
    # NumPy scalars
    "np.sin": (lambda x: np.sin(x), lambda x: math.cos(x)),
    "np.cos": (lambda x: np.cos(x), lambda x: -math.sin(x)),
    "np.tan": (lambda x: np.tan(x), lambda x: 1 + math.tan(x) ** 2),
    "np.arcsin": (lambda x: np.arcsin(x), lambda x: 1 / math.sqrt(1 - x * x)),
    "np.arccos": (lambda x: np.arccos(x), lambda x: -1 / math.sqrt(1 - x * x)),
    "np.arctan": (lambda x: np.arctan(x), lambda x: 1 / (1 + x * x)),
    "np.arctan2": (lambda x: np.arctan2(x, 2.0), lambda x: 2 / (4 + x * x)),
    "np.sinh": (lambda x: np.sinh(x), lambda x: math.cosh(x)),
    "np.cosh": (lambda x: np.cosh(x), lambda x: math.sinh(x)),
    "np.tanh": (lambda x: np.tanh(x), lambda x: 1 / math.cosh(x) ** 2),
    "np.arcsinh": (lambda x: np.arcsinh(x), lambda x: 1 / math.sqrt(1 + x * x)),
    "np.arctanh": (lambda x: np.arctanh(x), lambda x: 1 / (1 - x * x)),
    "np.exp": (lambda x: np.exp(x), lambda x: math.exp(x)),
    "np.exp2": (lambda x: np.exp2(x), lambda x: LN2 * 2**x),
    "np.expm1": (lambda x: np.expm1(x), lambda x: math.exp(x)),
    "np.log": (lambda x: np.log(x), lambda x: 1 / x),
    "np.log1p": (lambda x: np.log1p(x), lambda x: 1 / (1 + x)),
    "np.log2": (lambda x: np.log2(x), lambda x: 1 / (x * LN2)),
    "np.log10": (lambda x: np.log10(x), lambda x: 1 / (x * math.log(10.0))),
    "np.sqrt": (lambda x: np.sqrt(x), lambda x: 0.5 / math.sqrt(x)),
    "np.cbrt": (lambda x: np.cbrt(x), lambda x: x ** (-2 / 3) / 3),
    "np.square": (lambda x: np.square(x), lambda x: 2 * x),
    "np.reciprocal": (lambda x: np.reciprocal(x), lambda x: -1 / (x * x)),
    "np.abs": (lambda x: np.abs(x - 1.0), lambda x: -1.0),
    "np.sign": (lambda x: np.sign(x) * x, lambda x: 1.0),
    "np.floor": (lambda x: np.floor(x) + x, lambda x: 1.0),
    "np.ceil": (lambda x: np.ceil(x) * x, lambda x: 1.0),
    "np.trunc": (lambda x: np.trunc(x * 7) * x, lambda x: 2.0),
    "np.rint": (lambda x: np.rint(x * 7) * x, lambda x: 3.0),
    "np.deg2rad": (lambda x: np.deg2rad(x), lambda x: math.pi / 180),
    "np.rad2deg": (lambda x: np.rad2deg(x), lambda x: 180 / math.pi),
    "np.sinc": (lambda x: np.sinc(x), lambda x: (math.cos(math.pi * x) * math.pi * x - math.sin(math.pi * x)) / (math.pi * x * x)),
    "np.hypot": (lambda x: np.hypot(x, 2.0), lambda x: x / math.hypot(x, 2.0)),
    "np.copysign": (lambda x: np.copysign(x, -1.0), lambda x: -1.0),
    "np.mod": (lambda x: np.mod(x * 7, 0.5), lambda x: 7.0),
    "np.remainder of negative": (lambda x: np.remainder(-x * 7, 0.5), lambda x: -7.0),
    "np.power": (lambda x: np.power(x, 2.5), lambda x: 2.5 * x**1.5),
    "np.minimum": (lambda x: np.minimum(x, 0.5) * x, lambda x: 2 * x),
    "np.maximum": (lambda x: np.maximum(x, 0.5) * x, lambda x: 0.5),
    "np.fmin": (lambda x: np.fmin(x, 0.2) * x, lambda x: 0.2),
    "np.fmax": (lambda x: np.fmax(x, 0.2) * x, lambda x: 2 * x),
    "np.logaddexp": (lambda x: np.logaddexp(x, 0.3), lambda x: 1 / (1 + math.exp(0.3 - x))),
    "np.logaddexp2": (lambda x: np.logaddexp2(x, 0.3), lambda x: 1 / (1 + 2 ** (0.3 - x))),
    "np.ldexp": (lambda x: np.ldexp(x, 3), lambda x: 8.0),
    "np.nextafter": (lambda x: np.nextafter(x, 1.0), lambda x: 1.0),
    "np.spacing": (lambda x: np.spacing(x) + x, lambda x: 1.0),
    "np.nan_to_num": (lambda x: np.nan_to_num(x) * x, lambda x: 2 * x),
    "np.where": (lambda x: np.where(x > 0.2, x * x, x)[()], lambda x: 2 * x),
    "np.signbit": (lambda x: x if np.signbit(x) else x * 2, lambda x: 2.0),
    "np.angle": (lambda x: np.angle(complex(x, 1.0)), lambda x: -1 / (1 + x * x)),
    "np.round": (lambda x: np.round(x * 3.3) * x, lambda x: 1.0),
    "np.divide": (lambda x: np.divide(x, 3.0), lambda x: 1 / 3),
    # operators
    "square": (lambda x: x**2, lambda x: 2 * x),
    "cube": (lambda x: x**3, lambda x: 3 * x * x),
    "negative power": (lambda x: x**-2, lambda x: -2 / x**3),
    "half power": (lambda x: x**2.5, lambda x: 2.5 * x**1.5),
    "power of two": (lambda x: 2.0**x, lambda x: LN2 * 2**x),
    "power of itself": (lambda x: x**x, lambda x: x**x * (math.log(x) + 1)),
    "reciprocal": (lambda x: 1.0 / x, lambda x: -1 / (x * x)),
    "modulo": (lambda x: (x * 7) % 0.5, lambda x: 7.0),
    "floor division": (lambda x: x // 0.1 * x, lambda x: 3.0),
    "divmod": (lambda x: divmod(x * 7, 0.5)[1], lambda x: 7.0),
    "abs": (lambda x: abs(-x), lambda x: 1.0),
    "min": (lambda x: min(x, 0.5) * x, lambda x: 2 * x),
    "max": (lambda x: max(x, 0.5) * x, lambda x: 0.5),
    "clip": (lambda x: min(max(x, 0.0), 1.0) * x, lambda x: 2 * x),
    "round": (lambda x: round(x * 3.3) * x, lambda x: 1.0),
    "int": (lambda x: int(x * 10) * x, lambda x: 3.0),
    "comparison": (lambda x: (x > 0) * x * x, lambda x: 2 * x),
    "conditional": (lambda x: x * x if x > 0.1 else -x, lambda x: 2 * x),
    "logistic": (lambda x: 1 / (1 + math.exp(-x)), lambda x: math.exp(-x) / (1 + math.exp(-x)) ** 2),
    "softplus": (lambda x: np.log(np.exp(x) + 1), lambda x: 1 / (1 + math.exp(-x))),
    "polynomial": (lambda x: ((x * 3 + 2) * x + 1) * x, lambda x: 9 * x * x + 4 * x + 1),
    "sum of a tuple": (lambda x: sum((x, x * x)), lambda x: 1 + 2 * x),
    "constant": (lambda x: 3.0, lambda x: 0.0),
    "integer": (lambda x: 7, lambda x: 0.0),
    # what a function may read and call
    "callee": (lambda x: product_and_sine(x, 2.0), lambda x: 2 + math.cos(x)),
    "closure": (lambda x: closure(x), lambda x: 2.5 - 2.5 * math.sin(2.5 * x)),
    "global array": (lambda x: ARRAY[1] * x * ARRAY[2], lambda x: 6.0),
    "global tuple": (lambda x: PAIR[0] * x ** PAIR[1], lambda x: 6 * x * x),
    "local array": (lambda x: np.sum(np.array([x, x * x])), lambda x: 1 + 2 * x),
    # complex numbers on the way
    "complex square": (lambda x: (complex(x, 1.0) ** 2).real, lambda x: 2 * x),
    "complex exponential": (lambda x: abs(cmath.exp(complex(x, 2.0))), lambda x: math.exp(x)),
    "complex product": (
        lambda x: (np.exp(complex(x, 1.0)) * complex(0.5, x)).imag,
        lambda x: math.exp(x) * ((1 + x) * math.cos(1.0) + 0.5 * math.sin(1.0)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_float64(name):
    f, derivative = CASES[name]
    expected = pytest.approx(derivative(X), rel=2e-14, abs=1e-15)
    value, (partial,) = value_and_grad(f)(X)
    assert partial == expected
    assert value == njit(f)(X)
    assert grad(f)(X) == (partial,)
    assert jvp(f)((X,), (1.0,)) == expected


@pytest.mark.parametrize("name", CASES)
def test_float32(name):
    f, derivative = CASES[name]
    x = np.float32(X)
    if name in ("np.spacing", "nextafter", "np.nextafter"):
        x = np.float32(0.375)
    assert grad(f)(x) == (pytest.approx(derivative(float(x)), rel=2e-5, abs=1e-6),)


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("np.spacing", "nextafter", "np.nextafter")])
def test_against_differences(name):
    check_grads(CASES[name][0], (X,))
