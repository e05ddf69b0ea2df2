"""Which functions of a module reach themselves."""

from __future__ import annotations

import re

_NAME = r'@(?:"((?:[^"\\]|\\.)*)"|([\w.$-]+))'
_DEFINITION = re.compile(rf"^define [^@\n]*{_NAME}\([^\n]*\{{\n(.*?)^\}}", re.MULTILINE | re.DOTALL)
_UNRESOLVED = ".numba.unresolved$"


def recursive(ir: str) -> bool:
    """Whether a function of `ir` calls itself, directly or through others; Numba's late-bound pointers count as calls."""
    bodies = {quoted or plain: body for quoted, plain, body in _DEFINITION.findall(ir)}
    mentions = {
        name: {(quoted or plain).removeprefix(_UNRESOLVED) for quoted, plain in re.findall(_NAME, body)} for name, body in bodies.items()
    }
    # Leaves first: what is left when nothing more can be taken away reaches itself, or calls what does.
    left = {name: names & mentions.keys() for name, names in mentions.items()}
    while leaves := [name for name, names in left.items() if not names & left.keys()]:
        for name in leaves:
            del left[name]
    return bool(left)
