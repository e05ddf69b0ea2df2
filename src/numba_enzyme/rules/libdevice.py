"""CUDA's mathematics library before and after Enzyme.

Enzyme knows functions by libm's names. libdevice's are called `__nv_` and libm's name: the prefix goes before Enzyme and comes back
after it. What libm does not have is defined in other terms in `libdevice.ll`, or refused by name.
"""

from __future__ import annotations

import functools
import re
from importlib import resources

from numba_enzyme.llvm import typed

# Functions of libm that Enzyme differentiates, by libm's name for float64.
_NAMES = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 exp10 expm1 fabs fdim floor fma fmax fmin fmod
    hypot j0 j1 jn ldexp log log10 log1p log2 logb nearbyint pow powi remainder rint round scalbn sin sinh sqrt tan tanh trunc y0 y1 yn
"""
_LIBM = frozenset(_NAMES.split())

# What fast-math puts for a function of libm. Enzyme is given the function; what it gives back is made fast again, derivatives and all.
_FAST = frozenset({"cosf", "exp10f", "expf", "log10f", "log2f", "logf", "powf", "sinf", "tanf"})

# Enzyme knows these for float64 alone.
_FLOAT64_ONLY = frozenset({"exp10f", "remainderf"})

# Enzyme's names for LLVM's intrinsics, which it puts where it needs a function that the primal did not call.
_INTRINSICS = {"minnum": "fmin", "maxnum": "fmax"}


def is_fast(ir: str) -> bool:
    """Whether a module uses the fast variants of functions, and none of their exact ones."""
    used = {name.removeprefix("__nv_") for name in typed.parts(ir).declarations}
    return any(name.startswith("fast_") and name[5:] in _FAST for name in used) and not used & _FAST


def without_fast(ir: str) -> str:
    """Exact functions in the place of fast ones."""
    return re.sub(r"@__nv_fast_(\w+)\b", lambda m: f"@__nv_{m[1]}" if m[1] in _FAST else m[0], ir)


def to_libm(ir: str) -> str:
    """libdevice's functions under the names by which Enzyme knows them."""
    return re.sub(r"@__nv_(\w+)\b", lambda m: f"@{m[1]}" if _is_libm(m[1]) else m[0], ir)


def to_libdevice(ir: str, *, fast: bool = False) -> str:
    """The way back, for what the primal called and for what Enzyme added."""

    def intrinsic(m: re.Match[str]) -> str:
        name, width = _INTRINSICS.get(m[1], m[1]), "f" if m[2] == "32" else ""
        return f"@__nv_{name}{width}(" if name in _LIBM else m[0]

    ir = re.sub(r"@llvm\.(\w+)\.f(32|64)(?:\.i32)?\(", intrinsic, ir)
    ir = re.sub(r"@([a-z]\w*)(?=\()", lambda m: f"@__nv_{m[1]}" if _is_libm(m[1]) else m[0], ir)
    if fast:
        ir = re.sub(r"@__nv_(\w+)(?=\()", lambda m: f"@__nv_fast_{m[1]}" if m[1] in _FAST else m[0], ir)
    return _declared_once(ir)


def is_pure(name: str) -> bool:
    """Whether a function by this name takes and gives numbers and does nothing else."""
    return _is_libm(name) or name.startswith("__nv_") or (name.startswith("llvm.") and name.rpartition(".")[2] in ("f32", "f64"))


def _is_libm(name: str) -> bool:
    return name in _LIBM or (name.endswith("f") and name[:-1] in _LIBM and name not in _FLOAT64_ONLY)


def _declared_once(ir: str) -> str:
    seen: set[str] = set()
    lines = []
    for line in ir.split("\n"):
        match = re.match(rf"declare [^\n]*?({typed.SYMBOL})\(", line)
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
    return pure(to_libm(with_rules(with_powers(without_fast(ir)))))


def _power(m: re.Match[str]) -> str:
    number, suffix, base, exponent = m.groups()
    name = f"__nv_guarded_pow{suffix}" if exponent.startswith("%") else f"llvm.pow.f{'32' if suffix else '64'}"
    return f"{number} @{name}({base}, {number} {exponent})"


def with_powers(ir: str) -> str:
    """Powers as LLVM's intrinsic, of which its optimiser knows more than of a function, and guarded where the exponent is no literal."""
    ir = re.sub(r"(?<=call )(double|float) @__nv_pow(f?)\(((?:double|float) [^,]+), (?:double|float) ([^)]+)\)", _power, ir)
    declared = []
    for number, width, suffix in (("double", "64", ""), ("float", "32", "f")):
        ir = re.sub(rf"^declare [^\n]*@__nv_pow{suffix}\([^\n]*\n", "", ir, flags=re.MULTILINE)
        called = [name for name in (f"llvm.pow.f{width}", f"__nv_guarded_pow{suffix}") if f"@{name}(" in ir]
        declared += [f"declare {number} @{name}({number}, {number})\n" for name in called]
    return ir + "".join(declared)


def with_rules(ir: str) -> str:
    """`ir` with definitions of the functions that Enzyme does not know, as far as `ir` uses them."""
    rules = _rules()
    wanted = typed.parts(ir).declarations.keys() & rules.definitions.keys()
    used: dict[str, str] = {}
    while wanted:
        name = wanted.pop()
        used[name] = rules.definitions[name]
        wanted |= typed.calls(used[name]) & rules.definitions.keys() - used.keys()
    if not used:
        return ir
    called = {symbol for text in used.values() for symbol in typed.calls(text)}
    definitions = {name: text.replace("define ", "define internal ").replace(" {", " alwaysinline {", 1) for name, text in used.items()}
    declarations = {name: text for name, text in rules.declarations.items() if name in called}
    head = "\n".join(line for line in ir.split("\n") if line.startswith("target "))
    text = typed.joined(head, [typed.Parts(definitions, declarations, {}), typed.parts(ir)])
    # Enzyme keeps whatever is called __nv_ from being inlined, and takes some of it for what it knows by libm's name.
    return typed.renamed(text, lambda name: name.replace("__nv_", "numba_enzyme_rule_", 1) if name in used else name)


@functools.cache
def _rules() -> typed.Parts:
    return typed.parts(resources.files(__package__).joinpath("libdevice.ll").read_text())


def resolved(ir: str) -> str:
    """Gives the names that were hidden from Enzyme their meaning."""
    if "@numba_enzyme_raise(" in ir:
        ir = re.sub(r"^declare [^\n]*@numba_enzyme_raise\([^\n]*\n", _RAISE, ir, flags=re.MULTILINE)
    ir = re.sub(r"@numba_enzyme_value_(\w+)", r"@__nv_\1", ir)
    for name, number in (("numba_enzyme_constant", "double"), ("numba_enzyme_constantf", "float")):
        identity = f"define internal {number} @{name}({number} %x) {{\nentry:\n  ret {number} %x\n}}\n"
        ir = re.sub(rf"^declare [^\n]*@{name}\([^\n]*\n", identity, ir, flags=re.MULTILINE)
    return ir


# The kernel has the variable, and looks at it when it has ended.
_RAISE = """@__numba_cuda_mlir_error_code = external global i32
define internal { i32, i1 } @numba_enzyme_raise(i32 %code) {
entry:
  %done = cmpxchg i32* @__numba_cuda_mlir_error_code, i32 0, i32 %code monotonic monotonic
  ret { i32, i1 } %done
}
"""
