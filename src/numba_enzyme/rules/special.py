"""Special functions that Enzyme does not know, written in Python so that it sees through them.

The value of such a function is libm's, to the last bit; only its derivative comes from the Python code, at every order. The trick is to
add to a constant something that is zero and has the right derivative, or to multiply one by something that is one.

Reference for the mathematics: NIST Digital Library of Mathematical Functions, 5.5 (recurrence and reflection) and 5.11.1 (Stirling's
series).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from numba.core import types, typing
from numba.extending import register_jitable

_Function: TypeAlias = Callable[[float], float]

# Compiled where it is called. Dividing by zero gives what IEEE says: these functions raise nothing.
_jitable: Callable[[_Function], _Function] = register_jitable(error_model="numpy")

_UNARY = typing.signature(types.float64, types.float64)

# Calls that Enzyme takes for constants; resolved.ll says what they are.
_constant: _Function = types.ExternalFunction("numba_enzyme_constant", _UNARY)
_libm_gamma: _Function = types.ExternalFunction("numba_enzyme_gamma", _UNARY)
_libm_lgamma: _Function = types.ExternalFunction("numba_enzyme_lgamma", _UNARY)

# B_2k / (2k (2k - 1)) for k = 1 to 8. From _LARGE on, the derivatives of eight terms are exact to a few units in the last place.
_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
_LARGE = 10.0


@_jitable
def _stirling(x: float) -> float:
    """log(gamma(x)) for x >= _LARGE, less a constant."""
    result = (x - 0.5) * math.log(x) - x
    inverse = 1.0 / (x * x)
    power = 1.0 / x
    for coefficient in _SERIES:
        result += coefficient * power
        power *= inverse
    return result


@_jitable
def _log_gamma_positive(x: float) -> float:
    if x >= _LARGE:
        return _stirling(x)
    # gamma(x) = gamma(x + 10) / (x (x + 1) ... (x + 9)), with a fixed number of factors: a loop that ends at a run-time value needs a tape.
    product = x
    for k in range(1, 10):
        product *= x + k
    return _stirling(x + 10.0) - math.log(product)


@_jitable
def _log_abs_gamma(x: float) -> float:
    """log(abs(gamma(x))) less a constant on each side of zero: a function with the derivatives of lgamma."""
    if x > 0.0:
        return _log_gamma_positive(x)
    # sin(pi x) has the period 2 and its absolute value the period 1; the fraction is exact, pi times a large x is not.
    return -math.log(abs(math.sin(math.pi * (x - _constant(math.floor(x)))))) - _log_gamma_positive(1.0 - x)


def _lgamma(x: float) -> float:
    """zero at every x, with the derivatives of lgamma, on top of the value."""
    logarithm = _log_abs_gamma(x)
    return _libm_lgamma(x) + (logarithm - _constant(logarithm))


def _gamma(x: float) -> float:
    """one at every x, with the logarithmic derivatives of gamma, times the value."""
    logarithm = _log_abs_gamma(x)
    return _libm_gamma(x) * math.exp(logarithm - _constant(logarithm))


# By the symbols that Numba calls, for float64 and float32.
FUNCTIONS: dict[str, _Function] = {"numba_gamma": _gamma, "numba_gammaf": _gamma, "lgamma": _lgamma, "lgammaf": _lgamma}
