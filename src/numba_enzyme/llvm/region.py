"""Memory of a sweep from the region of its call (`rules/region.ll`), instead of `malloc`'s.

Enzyme asks `malloc` for each tape and each shadow, in loops once a turn, and the primal's own memory is never freed by itself
(`rules/memory_kept.ll`). Here whatever asks for memory gets the region as its first argument.
"""

from __future__ import annotations

import re

from numba_enzyme.llvm.calls import NAME, bodies

PARAMETER = "%numba_enzyme_region"

# What asks for memory or gives it back, and what it is called with a region.
_IN_REGION = {
    "malloc": "take",
    "numba_enzyme_alloc": "take",
    "realloc": "extend",
    "free": "give",
    "numba_enzyme_release": "give",
    "numba_enzyme_mark": "mark",
    "numba_enzyme_reset": "reset",
}

_ASKS = {"malloc", "numba_enzyme_alloc", "realloc"}


def asks_for_memory(ir: str) -> bool:
    """Whether something in `ir` asks for memory."""
    return any(_called(body) & _ASKS for body in bodies(ir).values())


def without_marks(ir: str) -> str:
    """`ir`, which asks for no memory, without the places where memory is given back."""
    return re.sub(r"^  (?:%[^ ]+ = )?(?:tail )?call [^\n]*@numba_enzyme_(?:mark|reset)\([^\n]*\n", "", ir, flags=re.MULTILINE)


def in_region(ir: str, entry: str, body: str) -> str:
    """`ir` with all memory from a region. The entry point `entry` becomes `body`, which has a region as its first argument."""
    takers = _takers(ir)

    def definition(match: re.Match[str]) -> str:
        name = match["quoted"] or match["plain"]
        if name not in takers:
            return match[0]
        header, rest = _with_parameter(match["header"], name), match["rest"]
        return "\n".join([header, *(_threaded(line, takers) for line in rest.split("\n"))])

    ir = re.sub(rf"^(?P<header>define [^@\n]*{NAME}\([^\n]*\{{)\n(?P<rest>.*?^\}})", definition, ir, flags=re.MULTILINE | re.DOTALL)
    ir = re.sub(rf'^(define [^@\n]*)@"?{re.escape(entry)}"?(\([^\n]*?) alwaysinline', rf'\1@"{body}"\2 noinline', ir, flags=re.MULTILINE)
    return f"{ir}\n{_DECLARATIONS}"


_DECLARATIONS = """
declare noalias ptr @numba_enzyme_region_take(ptr, i64)
declare ptr @numba_enzyme_region_extend(ptr, ptr, i64)
declare void @numba_enzyme_region_give(ptr, ptr)
declare i64 @numba_enzyme_region_mark(ptr)
declare void @numba_enzyme_region_reset(ptr, i64)
"""


def _takers(ir: str) -> set[str]:
    """The functions that ask for memory, and those that call one."""
    calls = {name: _called(body) for name, body in bodies(ir).items()}
    found: set[str] = set()
    while more := {name for name, called in calls.items() if called & (found | _IN_REGION.keys())} - found:
        found |= more
    return found


def _called(body: str) -> set[str]:
    return {quoted or plain for quoted, plain in re.findall(rf"\bcall [^@\n]*{NAME}\(", body)}


def _threaded(line: str, takers: set[str]) -> str:
    call = re.match(rf"^(?P<before>  [^@\n]*\bcall [^@\n]*){NAME}\(", line)
    name = call and (call["quoted"] or call["plain"])
    if not call or name not in takers | _IN_REGION.keys():
        return line
    if name in _IN_REGION:
        # What is said of `malloc`'s arguments by their number does not hold for those of a function with one more.
        line = re.sub(r"\) #\d+(?=,|$)", ")", line)
        line = f"{call['before']}@numba_enzyme_region_{_IN_REGION[name]}({line[call.end() :]}"
        return _with_parameter(line, f"numba_enzyme_region_{_IN_REGION[name]}")
    return _with_parameter(line, str(name))


def _with_parameter(line: str, name: str) -> str:
    """`line`, where a function is defined or called, with the region before the other arguments."""
    return re.sub(rf'(@"?{re.escape(name)}"?\()(\)?)', lambda match: f"{match[1]}ptr {PARAMETER}{match[2] or ', '}", line, count=1)
