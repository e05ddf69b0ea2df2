"""Which functions of a module call which."""

from __future__ import annotations

import re

# A function where it is named.
NAME = r'@(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[\w.$-]+))'
_DEFINITION = re.compile(rf"^define [^@\n]*{NAME}\([^\n]*\{{\n(.*?)^\}}", re.MULTILINE | re.DOTALL)
_UNRESOLVED = ".numba.unresolved$"


def bodies(ir: str) -> dict[str, str]:
    """The functions that `ir` defines, by name."""
    return {quoted or plain: body for quoted, plain, body in _DEFINITION.findall(ir)}


def recursive(ir: str) -> bool:
    """Whether a function of `ir` calls itself, directly or through others; Numba's late-bound pointers count as calls."""
    mentions = {
        name: {(quoted or plain).removeprefix(_UNRESOLVED) for quoted, plain in re.findall(NAME, body)} for name, body in bodies(ir).items()
    }
    # Leaves first: what is left when nothing more can be taken away reaches itself, or calls what does.
    left = {name: names & mentions.keys() for name, names in mentions.items()}
    while leaves := [name for name, names in left.items() if not names & left.keys()]:
        for name in leaves:
            del left[name]
    return bool(left)
