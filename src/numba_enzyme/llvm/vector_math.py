"""Vector forms of libm's functions, offered to LLVM at the calls of the scalar ones.

A loop that calls `exp` stays a loop of scalars, unless the call says which functions do the same for several numbers at once. Their names
say the rest (the vector function ABI of x86-64): `_ZGVdN4v_exp` is `exp` for the instruction set `d`, of `4` numbers, without a mask
(`N`), with one vector as its argument (`v`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_SYMBOL = re.compile(r"_ZGV[a-z](?P<shape>N(?P<lanes>\d+)(?P<arguments>v+))_(?P<function>\w+)")
_CALL = re.compile(r"\bcall [^@\n]*\b(?:double|float) @(?P<callee>(?:llvm\.)?(?P<name>[a-z]+)(?P<type>\.f64|\.f32)?)\([^()\n]*\)")


class _Form(NamedTuple):
    symbol: str
    shape: str
    lanes: int
    arguments: int
    function: str

    def mapping(self, callee: str) -> str:
        """What a call of `callee` says of this form. The redirection is for intrinsics, whose names are not libm's."""
        return f"_ZGV_LLVM_{self.shape}_{callee}({self.symbol})"

    def declaration(self) -> str:
        vector = f"<{self.lanes} x {'float' if self.function.endswith('f') else 'double'}>"
        return f"declare {vector} @{self.symbol}({', '.join([vector] * self.arguments)}) nounwind willreturn memory(none)"


def with_vector_forms(ir: str, symbols: Iterable[str]) -> str:
    """`ir` whose calls of libm say which of `symbols` are vector forms of what is called."""
    forms: dict[str, list[_Form]] = {}
    for symbol in symbols:
        form = _form(symbol)
        forms.setdefault(form.function, []).append(form)
    used: dict[str, _Form] = {}

    def marked(call: re.Match[str]) -> str:
        found = forms.get(call["name"] + ("f" if call["type"] == ".f32" else ""), ())
        if not found:
            return call[0]
        used.update((form.symbol, form) for form in found)
        return f'{call[0]} "vector-function-abi-variant"="{",".join(form.mapping(call["callee"]) for form in found)}"'

    written = _CALL.sub(marked, ir)
    if not used:
        return ir
    # LLVM calls a form only if the module declares it, and drops declarations that nothing uses.
    kept = f"@llvm.compiler.used = appending global [{len(used)} x ptr] [{', '.join(f'ptr @{symbol}' for symbol in used)}]"
    declarations = (form.declaration() for form in used.values())
    return "\n".join((written, f'{kept}, section "llvm.metadata"', *declarations, ""))


def _form(symbol: str) -> _Form:
    parts = _SYMBOL.fullmatch(symbol)
    if parts is None:
        raise ValueError(f"{symbol} is no vector function")
    return _Form(symbol, parts["shape"], int(parts["lanes"]), len(parts["arguments"]), parts["function"])
