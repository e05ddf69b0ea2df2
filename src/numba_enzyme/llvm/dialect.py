"""Text rewrites between LLVM versions: each a pure function, each with its own test.

Numba prints the IR of its own LLVM (20 to 22); Enzyme reads LLVM 15's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LIBM = "|".join(
    (
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "fmod"),
        *("hypot", "log", "log10", "log1p", "log2", "pow", "sin", "sinh", "sqrt", "tan", "tanh"),
    )
)

Rewrite = Callable[[str], str]


def captures_as_nocapture(ir: str) -> str:
    """`captures(none)` came with LLVM 21 for what was `nocapture`."""
    return ir.replace("captures(none)", "nocapture")


def without_memory_effects(ir: str) -> str:
    """`memory(...)` came with LLVM 16. LLVM infers it again; as `readonly` on a declaration it clashes with what LLVM 15 knows itself."""
    return re.sub(r"\bmemory\([^)]*\) ?", "", ir)


def without_declared_purity(ir: str) -> str:
    """LLVM 15 knows libm's functions as `readnone`, and refuses a declaration that says `readonly`."""
    return re.sub(r"^(declare [^\n]*?) ?\b(?:readonly|readnone)\b", r"\1", ir, flags=re.MULTILINE)


def without_new_attributes(ir: str) -> str:
    """Attributes that LLVM 15 does not know and that only permit more optimisation."""
    return re.sub(r"\b(?:nocreateundeforpoison|nofpclass\([^)]*\)|dead_on_unwind|range\([^)]*\)) ?", "", ir)


def without_empty_groups(ir: str) -> str:
    """LLVM refuses an attribute group that other rewrites have emptied; a string attribute fills it and means nothing."""
    return re.sub(r"^(attributes #\d+ = \{)\s*\}$", r'\1 "empty" }', ir, flags=re.MULTILINE)


def without_invariance(ir: str) -> str:
    """Enzyme marks what it keeps as never changing, which is so within one call. Inlined into a loop there is one place for all calls."""
    return re.sub(r", !invariant\.(?:group|load) !\d+", "", ir)


def inlined_everywhere(ir: str) -> str:
    """Marks each defined function `alwaysinline`: Enzyme is exact about what it sees in one function and vague across calls."""
    without = re.sub(r"\b(?:noinline|alwaysinline|optnone) ?", "", ir)
    return re.sub(r"^(define [^\n]*\)[^\n{]*?)( ?(?:personality [^\n{]*)?\{)$", r"\1 alwaysinline\2", without, flags=re.MULTILINE)


def without_errno(ir: str) -> str:
    """Calls of libm as Numba means them, which is without `errno`: they may be merged, moved, and, as with `sqrt`, become instructions."""
    pure = " nounwind willreturn memory(none)"
    return re.sub(rf"\bcall [^@\n]*@(?:{_LIBM})f?\([^()\n]*\)(?!{re.escape(pure)})", rf"\g<0>{pure}", ir)


def with_liberties(ir: str, flags: tuple[str, ...]) -> str:
    """`ir` whose arithmetic that is `fast` takes only the liberties that `flags` name: Enzyme, if it writes any, writes that."""
    if not flags:  # what is fast then was so before
        return ir
    return re.sub(r"^(  (?:\S+ = )?(?:(?:tail|notail) )?(?:f\w+|call|phi|select)) fast\b", rf"\1 {' '.join(flags)}", ir, flags=re.MULTILINE)


def resolved_pointers(ir: str) -> str:
    """Numba's late-bound pointers between functions that call each other, bound."""
    return re.sub(
        r'^@"?\.numba\.unresolved\$([^ "]*)"? = [^\n]*$',
        r'@".numba.unresolved$\1" = internal constant ptr @"\1"',
        ir,
        flags=re.MULTILINE,
    )


def constant_addresses(ir: str) -> str:
    """Addresses of global arrays, which Numba keeps in variables that nobody writes, as constants: what is there has no derivative."""
    return re.sub(r'^(@"?numba\.dynamic\.globals\.[^ ]* = [^\n]*?)\bglobal\b', r"\1constant", ir, flags=re.MULTILINE)


TO_LLVM_15: tuple[Rewrite, ...] = (
    captures_as_nocapture,
    without_memory_effects,
    without_declared_purity,
    without_new_attributes,
    inlined_everywhere,
    without_empty_groups,
    resolved_pointers,
    constant_addresses,
)


def rewritten(ir: str, rewrites: Iterable[Rewrite] = TO_LLVM_15) -> str:
    """`ir` after each rewrite in turn. Strings of the program, which may say anything, are left as they are."""
    strings: list[str] = []

    def hide(match: re.Match[str]) -> str:
        strings.append(match[0])
        return f'c"{len(strings) - 1}"'

    hidden = re.sub(r'\bc"[^"]*"', hide, ir)
    changed = reduce(lambda text, rewrite: rewrite(text), rewrites, hidden)
    return re.sub(r'\bc"(\d+)"', lambda match: strings[int(match[1])], changed)


def with_stable_names(ir: str) -> str:
    """`ir` with the numbers that Numba gives out as it compiles replaced by the order in which they appear: what it means, to hash."""
    seen: dict[str, str] = {}

    def stable(match: re.Match[str]) -> str:
        return seen.setdefault(match[0], f"~{len(seen)}~")

    return re.sub(r"B\d+v\d+(?=B)|B\d+primal\d+|picklebuf\.\d+|_\d{12,}\b|bytes\.\d+|0x[0-9a-f]{9,}", stable, ir)
