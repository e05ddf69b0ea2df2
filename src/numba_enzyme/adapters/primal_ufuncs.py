"""NumPy functions whose code in Numba has the right value and a wrong derivative, in other words.

Checked on Numba 0.62 to 0.68.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.cpython.numbers import real_sign_impl


def _libm_cbrt(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    # Numba's tests for NaN under fast-math flags, which Enzyme takes at their word: it would come out as NaN.
    return _call(builder, "cbrt", sig, args)


def _constant_sign(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    # Numba's gives back its argument at zero, and so with the derivative 1.
    return real_sign_impl(context, builder, sig, [_call(builder, "numba_enzyme_constant", sig, args)])


def _call(builder: Any, name: str, sig: Any, args: Any) -> Any:
    symbol = name + "f" if sig.return_type == types.float32 else name
    types_of = [arg.type for arg in args]
    return builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(types_of[0], types_of), symbol), args)


def _logaddexp(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    # Numba's returns `x + log(2)` where x == y, which has another derivative than what stands around it.
    def logaddexp(x: float, y: float) -> float:
        difference = x - y
        if difference > 0:
            return x + math.log1p(math.exp(-difference))
        if difference <= 0:
            return y + math.log1p(math.exp(difference))
        return x + y  # infinities, and what is no number

    return context.compile_internal(builder, logaddexp, sig, args)


def _logaddexp2(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    def logaddexp2(x: float, y: float) -> Any:
        difference = x - y
        if difference > 0:
            return x + _LOG2E * math.log1p(np.exp2(-difference))
        if difference <= 0:
            return y + _LOG2E * math.log1p(np.exp2(difference))
        return x + y

    return context.compile_internal(builder, logaddexp2, sig, args)


def _sinc(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    # Numba's is 1 at zero, a constant, and divides by a number that vanishes beside it: the derivatives would be wrong there.
    def sinc(x: float) -> float:
        y = math.pi * x
        if abs(y) < 0.1:
            z = y * y
            return 1.0 - z / 6.0 * (1.0 - z / 20.0 * (1.0 - z / 42.0 * (1.0 - z / 72.0 * (1.0 - z / 110.0))))
        return math.sin(y) / y

    return context.compile_internal(builder, sinc, sig, args)


_LOG2E = 1.0 / math.log(2.0)

# By type of arguments and result, as Numba keys its own.
REPLACED: dict[Any, dict[str, Any]] = {
    np.cbrt: {"f->f": _libm_cbrt, "d->d": _libm_cbrt},
    np.sign: {"f->f": _constant_sign, "d->d": _constant_sign},
    np.sinc: {"f->f": _sinc, "d->d": _sinc},
    np.logaddexp: {"ff->f": _logaddexp, "dd->d": _logaddexp},
    np.logaddexp2: {"ff->f": _logaddexp2, "dd->d": _logaddexp2},
}
