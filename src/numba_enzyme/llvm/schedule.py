"""The order of straight-line code: what is read is read where it is used first.

An entry point reads all elements of its arrays before anything else. In a long body without branches they then fill the registers, and
the compilers behind move no loads: where a function of libdevice is inlined, the block ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from numba_enzyme.llvm import typed

_VALUE = r'%(?:"[^"]*"|[-\w$.]+)'
_NAME = re.compile(_VALUE)
_RESULT = re.compile(rf"^  ({_VALUE}) = ")
_MOVED = re.compile(rf"^  {_VALUE} = (?:load (?:float|double), |getelementptr |bitcast )")
_LOAD = re.compile(rf"^  {_VALUE} = load ")
_NUMBER = r"(?:double|float|i\d+)"
# Functions that take and give numbers do nothing else.
_PURE_CALL = re.compile(rf"^  {_VALUE} = (?:tail )?call (?:[a-z]+ )*{_NUMBER} ({typed.SYMBOL})\((?:{_NUMBER} [^,()]+(?:, )?)*\)")
_WRITES = re.compile(rf"^  (?:{_VALUE} = )?(?:store|atomicrmw|cmpxchg|fence|(?:tail |musttail )?(?:call|invoke)) ")


def inlined(ir: str) -> str:
    """`ir` with every definition to be inlined, whatever else was said of it."""
    return re.sub(r"^(define [^\n]*\))[^)\n]*\{$", r"\1 alwaysinline {", ir, flags=re.MULTILINE)


def reads(definition: str) -> int:
    """How many floats a function reads."""
    return len(re.findall(r" = load (?:float|double), ", definition))


def loads_at_use(definition: str, known: frozenset[str]) -> str:
    """`definition` with loads and addresses moved down to their first use in the same block, and no load past what may write.

    `known` are functions that do nothing but take and give numbers.
    """
    return "\n\n".join("\n".join(_block(block.split("\n"), known)) for block in definition.split("\n\n"))


def _block(lines: list[str], known: frozenset[str]) -> Iterator[str]:
    waiting = _Waiting()
    for line in lines:
        result = _RESULT.match(line)
        if result is not None and _MOVED.match(line):
            waiting.lines[result[1]] = line
            continue
        if _ends(line):
            yield from waiting.taken(list(waiting.lines))
        elif _may_write(line, known):
            yield from waiting.taken([name for name, kept in waiting.lines.items() if _LOAD.match(kept)])
        yield from waiting.used_by(line)
        yield line


@dataclass
class _Waiting:
    """Lines that were not needed so far, by the names of their results."""

    lines: dict[str, str] = field(default_factory=dict)

    def taken(self, names: Sequence[str]) -> Iterator[str]:
        """The lines of `names` that still wait, each after what it uses itself."""
        for name in names:
            if name in self.lines:
                line = self.lines.pop(name)
                yield from self.used_by(line)
                yield line

    def used_by(self, line: str) -> Iterator[str]:
        match = _RESULT.match(line)
        yield from self.taken(_NAME.findall(line[match.end() :] if match else line))


def _may_write(line: str, known: frozenset[str]) -> bool:
    if not _WRITES.match(line):
        return False
    called = _PURE_CALL.match(line)
    return called is None or typed.bare(called[1]) not in known


def _ends(line: str) -> bool:
    return re.match(r"^  (?:br|ret|switch|unreachable)\b", line) is not None
