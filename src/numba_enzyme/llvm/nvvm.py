"""Text rewrites from LLVM 15's dialect, as Enzyme leaves it, to LLVM 7's, which libNVVM reads for every device: each a pure function."""

from __future__ import annotations

import re
from functools import reduce

from numba_enzyme.llvm.dialect import Rewrite

_VALUE = r'%(?:"[^"]*"|[-\w$.]+)'
_FLAGS = r"(?:fast|nnan|ninf|nsz|arcp|contract|afn|reassoc)"
_NEW_ATTRIBUTES = r"noundef|immarg|nofree|nosync|nocallback|willreturn|mustprogress|allocalign|allocptr|nonnull|noprofile|memory\([^)]*\)"


def without_attribute_groups(ir: str) -> str:
    """Groups hold attributes that LLVM 7 does not know; none of them is needed."""
    ir = re.sub(r"^attributes #\d+ = [^\n]*\n", "", ir, flags=re.MULTILINE)
    return re.sub(r"(?<=[)\w]) #\d+(?=[ ,\n]|$)", "", ir)


def without_new_attributes(ir: str) -> str:
    """Attributes of parameters and functions that came after LLVM 7."""
    ir = re.sub(rf" (?:{_NEW_ATTRIBUTES})(?=[ ,)\n])", "", ir)
    return re.sub(
        r" (?:dereferenceable(?:_or_null)?\(\d+\)|(?:readonly|writeonly|readnone|argmemonly|inaccessiblememonly))(?=[ ,)\n])", "", ir
    )


def without_string_attributes(ir: str) -> str:
    """Words to Enzyme (`"enzyme_inactive"`, `"enzyme_type"="..."`)."""
    return re.sub(r'(?<=[\w)]) "[\w-]+"(?:="[^"]*")?(?=[ ,)\n{])', "", ir)


def without_metadata(ir: str) -> str:
    """Attachments, their definitions and the calls that only carry them. libNVVM wants one thing, the version of its dialect."""
    ir = re.sub(r"(?:,| )\s*![\w.]+ !(?:\d+|\{\})", "", ir)
    ir = re.sub(r"^![^\n]*\n?", "", ir, flags=re.MULTILINE)
    return re.sub(
        r"^[^\n]*@llvm\.(?:experimental\.noalias\.scope\.decl|dbg\.\w+|assume|lifetime\.\w+)\b[^\n]*\n", "", ir, flags=re.MULTILINE
    )


def with_version(ir: str) -> str:
    """The version of libNVVM's dialect."""
    return f"{ir}\n!nvvmir.version = !{{!0}}\n!0 = !{{i32 2, i32 0, i32 3, i32 2}}\n"


def with_wide_integers_in_layout(ir: str) -> str:
    """libNVVM insists on an alignment of 128 bit integers."""
    return ir if "-i128:" in ir else ir.replace("-i64:64:64-", "-i64:64:64-i128:128:128-", 1)


def negation_as_subtraction(ir: str) -> str:
    """`fneg` came with LLVM 8."""
    return re.sub(rf"\bfneg((?: {_FLAGS})*) (float|double) ", r"fsub\1 \2 -0.000000e+00, ", ir)


def without_flags_on_choices(ir: str) -> str:
    """Flags of `select` and `phi` came after LLVM 7."""
    return re.sub(rf"= (select|phi)(?: {_FLAGS})+ ", r"= \1 ", ir)


def poison_as_undef(ir: str) -> str:
    """`poison` came with LLVM 12. What is undefined may be anything, so it may be this too."""
    return re.sub(r"\bpoison\b", "undef", ir)


def without_freeze(ir: str) -> str:
    """`freeze` came with LLVM 10; LLVM 7 takes an undefined value for the same wherever that matters."""
    return re.sub(r"= freeze (\S+) (\S+)", r"= bitcast \1 \2 to \1", ir)


def integer_choices_as_selects(ir: str) -> str:
    """Minimum, maximum and absolute value of integers became intrinsics with LLVM 12."""
    predicates = {"smax": "sgt", "smin": "slt", "umax": "ugt", "umin": "ult"}

    def choice(m: re.Match[str]) -> str:
        name, kind, ty, a, b = m[1].strip('%"'), m[2], m[3], m[4], m[5]
        return f'  %"{name}.c" = icmp {predicates[kind]} {ty} {a}, {b}\n  {m[1]} = select i1 %"{name}.c", {ty} {a}, {ty} {b}'

    def absolute(m: re.Match[str]) -> str:
        name, ty, a = m[1].strip('%"'), m[2], m[3]
        below = f'  %"{name}.c" = icmp slt {ty} {a}, 0\n'
        return f'  %"{name}.n" = sub {ty} 0, {a}\n{below}  {m[1]} = select i1 %"{name}.c", {ty} %"{name}.n", {ty} {a}'

    ir = re.sub(
        rf"^  ({_VALUE}) = (?:tail )?call i\d+ @llvm\.([su](?:max|min))\.i\d+\((i\d+) ([^,]+), i\d+ ([^)]+)\)[^\n]*",
        choice,
        ir,
        flags=re.MULTILINE,
    )
    ir = re.sub(
        rf"^  ({_VALUE}) = (?:tail )?call i\d+ @llvm\.abs\.i\d+\((i\d+) ([^,]+), i1 [^)]+\)[^\n]*", absolute, ir, flags=re.MULTILINE
    )
    return re.sub(r"^declare [^\n]*@llvm\.(?:[su]max|[su]min|abs)\.[^\n]*\n", "", ir, flags=re.MULTILINE)


def without_alignment_of_atomics(ir: str) -> str:
    """LLVM 7 takes the alignment of an atomic operation from its type."""
    return re.sub(r"^([^\n]*= (?:cmpxchg|atomicrmw) [^\n]*?), align \d+", r"\1", ir, flags=re.MULTILINE)


def inlined_everywhere(ir: str) -> str:
    """What a derivative is made of belongs into the code that calls it."""
    ir = re.sub(r" (?:alwaysinline|noinline|nounwind|norecurse|local_unnamed_addr|unnamed_addr|dso_local)(?=[ \n])", "", ir)
    return re.sub(r"^(define [^\n]*\))[^)\n]*\{$", r"\1 alwaysinline {", ir, flags=re.MULTILINE)


def without_source_name(ir: str) -> str:
    """The name of a file that does not exist."""
    return re.sub(r"^source_filename[^\n]*\n", "", ir, flags=re.MULTILINE)


TO_NVVM: tuple[Rewrite, ...] = (
    without_source_name,
    without_metadata,
    without_string_attributes,
    without_attribute_groups,
    without_new_attributes,
    with_wide_integers_in_layout,
    negation_as_subtraction,
    without_flags_on_choices,
    poison_as_undef,
    without_freeze,
    integer_choices_as_selects,
    without_alignment_of_atomics,
    inlined_everywhere,
    with_version,
)


def rewritten(ir: str) -> str:
    """`ir` for libNVVM."""
    return reduce(lambda text, rewrite: rewrite(text), TO_NVVM, ir)
