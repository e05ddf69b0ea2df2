"""Frees adjoint arithmetic, and nothing else, from keeping the sign of zero.

Enzyme starts every adjoint at 0.0 and adds to it, and negates by subtracting from 0.0. Strictly, `x + 0.0` is not `x` where x is -0.0,
so the additions stay, one after another on the critical path of every loop. No gradient written by hand has them.
"""

from __future__ import annotations

import re

_LABEL = re.compile(r'^(?:"([^"]+)"|([-\w$.]+)):')
_ADJOINT = re.compile(r"""^  (%\S+|%"[^"]*") = load (?:double|float), (?:ptr|double\*|float\*) %(?:"[^"]*'de[^"]*"|[^ ,]*'de[^ ,]*),""")
_ADD = re.compile(r"^(  (?:%\S+) = f(?:add|sub)) (?=(?:[a-z]+ )*(?:double|float) (%\S+|%\"[^\"]*\"), )")
_NEGATION = re.compile(r"^(  %(?!\S*unwrap)\S+ = fsub) (?=(?:[a-z]+ )*(?:double|float) -?0\.0+e\+00, )")


def without_signed_zero_adjoints(ir: str) -> str:
    """`ir`, as Enzyme leaves it, with `nsz` on additions to adjoints and on negations in its reverse blocks."""
    adjoints: set[str] = set()
    reverse = False
    lines = []
    for line in ir.split("\n"):
        written = line
        if line.startswith("define"):
            adjoints.clear()
            reverse = False
        elif label := _LABEL.match(line):
            reverse = (label[1] or label[2]).startswith(("invert", "incinvert", "mergeinvert"))
        elif load := _ADJOINT.match(line):
            adjoints.add(load[1])
        elif (add := _ADD.match(line)) and add[2] in adjoints:
            written = f"{add[1]} nsz {line[add.end() :]}"
        elif reverse and (negation := _NEGATION.match(line)):
            written = f"{negation[1]} nsz {line[negation.end() :]}"
        lines.append(written)
    return "\n".join(lines)


def without_signed_zero_sums(ir: str) -> str:
    """`ir` with `nsz` on the sums that Enzyme starts at zero. LLVM sets a constant behind a value, so one before it is Enzyme's."""
    return re.sub(r"= fadd (?=(?:double|float) 0\.0+e\+00, )", "= fadd nsz ", ir)
