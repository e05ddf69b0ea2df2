"""What memory holds, said where it is read and written.

Enzyme has to know which memory holds floats. It finds out from what is done with a value, and of one that is only moved (by a sort, or from
an array to the result) it cannot tell. Numba's code does say it, by the type of each load and store; as TBAA it is what Enzyme reads.
It must not be left for LLVM to read: to it, memory that is a float here and an integer there would be two memories.
"""

from __future__ import annotations

import re

# Numbers that no module reaches.
_NODES = {"double": 900001, "float": 900002, "i64": 900003}

_METADATA = """
!900001 = !{!900011, !900011, i64 0}
!900002 = !{!900012, !900012, i64 0}
!900010 = !{!"omnipotent char", !900013, i64 0}
!900011 = !{!"double", !900010, i64 0}
!900012 = !{!"float", !900010, i64 0}
!900003 = !{!900014, !900014, i64 0}
!900014 = !{!"long", !900010, i64 0}
!900013 = !{!"numba_enzyme"}
"""


def with_memory_types(ir: str) -> str:
    """`ir` whose loads and stores of floats say so."""

    def typed(access: re.Match[str]) -> str:
        return access[0] if "!tbaa" in access[0] else f"{access[0]}, !tbaa !{_NODES[access['number']]}"

    typed_ir, found = re.subn(r"^  (?:%[^=\n]+ = load|store) (?P<number>double|float|i64)\b[^\n]*", typed, ir, flags=re.MULTILINE)
    return typed_ir + _METADATA if found else ir


def without_memory_types(ir: str) -> str:
    """`ir` without any of it."""
    return re.sub(r", !tbaa !\d+", "", ir)
