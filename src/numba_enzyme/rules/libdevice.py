"""CUDA's mathematics library before and after Enzyme.

Enzyme knows functions by libm's names. libdevice's are called `__nv_` and libm's name: the prefix goes before Enzyme and comes back
after it. What libm does not have is defined in other terms in `libdevice.ll`, or refused by name.
"""

from __future__ import annotations

import re

from numba_enzyme.llvm import typed

# Functions of libm that Enzyme differentiates, by libm's name for float64.
_LIBM = frozenset(
    [
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "cbrt",
        "ceil",
        "copysign",
        "cos",
        "cosh",
        "erf",
        "erfc",
        "exp",
        "exp2",
        "exp10",
        "expm1",
        "fabs",
        "fdim",
        "floor",
        "fma",
        "fmax",
        "fmin",
        "fmod",
        "hypot",
        "j0",
        "j1",
        "jn",
        "ldexp",
        "log",
        "log10",
        "log1p",
        "log2",
        "nearbyint",
        "pow",
        "powi",
        "rint",
        "round",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
        "trunc",
        "y0",
        "y1",
        "yn",
    ]
)

# Enzyme's names for LLVM's intrinsics, which it puts where it needs a function that the primal did not call.
_INTRINSICS = {"minnum": "fmin", "maxnum": "fmax"}


def to_libm(ir: str) -> str:
    """libdevice's functions under the names by which Enzyme knows them."""
    return re.sub(r"@__nv_(\w+)\b", lambda m: f"@{m[1]}" if _is_libm(m[1]) else m[0], ir)


def to_libdevice(ir: str) -> str:
    """The way back, for what the primal called and for what Enzyme added."""

    def intrinsic(m: re.Match[str]) -> str:
        name, width = _INTRINSICS.get(m[1], m[1]), "f" if m[2] == "32" else ""
        return f"@__nv_{name}{width}(" if name in _LIBM else m[0]

    ir = re.sub(r"@llvm\.(\w+)\.f(32|64)(?:\.i32)?\(", intrinsic, ir)
    ir = re.sub(r"@([a-z]\w*)(?=\()", lambda m: f"@__nv_{m[1]}" if _is_libm(m[1]) else m[0], ir)
    return _declared_once(ir)


def _is_libm(name: str) -> bool:
    return name in _LIBM or (name.endswith("f") and name[:-1] in _LIBM)


def _declared_once(ir: str) -> str:
    seen: set[str] = set()
    lines = []
    for line in ir.split("\n"):
        match = re.match(rf"declare [^@]*({typed.SYMBOL})\(", line)
        if match is None or match[1] not in seen:
            lines.append(line)
        if match is not None:
            seen.add(match[1])
    return "\n".join(lines)


def pure(ir: str) -> str:
    """Says of functions that take and give numbers only that they do nothing else: the tape then need not hold what they gave."""
    number = r"(?:double|float|i\d+)"
    return re.sub(
        rf"^(declare {number} @(?!llvm\.|numba_enzyme|ne_)[\w.]+\((?:{number}(?:, )?)*\))$",
        r"\1 readnone nounwind willreturn",
        ir,
        flags=re.MULTILINE,
    )


def prepared(ir: str) -> str:
    """A module as Enzyme is to see it."""
    return pure(to_libm(ir))


def resolved(ir: str) -> str:
    """Gives the names that were hidden from Enzyme their meaning."""
    if "@numba_enzyme_raise(" in ir:
        ir = re.sub(r"^declare [^\n]*@numba_enzyme_raise\([^\n]*\n", _RAISE, ir, flags=re.MULTILINE)
    return ir


# The kernel has the variable, and looks at it when it has ended.
_RAISE = """@__numba_cuda_mlir_error_code = external global i32
define internal { i32, i1 } @numba_enzyme_raise(i32 %code) {
entry:
  %done = cmpxchg i32* @__numba_cuda_mlir_error_code, i32 0, i32 %code monotonic monotonic
  ret { i32, i1 } %done
}
"""
