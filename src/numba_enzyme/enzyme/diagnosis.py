"""What Enzyme's words mean for the person whose function it refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from numba_enzyme.errors import DifferentiationError

if TYPE_CHECKING:
    from collections.abc import Callable

_WAY_OUT = "Hold the arguments it depends on constant (argnums=...), or write that part with operations that have a derivative"

_CAUSES: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (
        (
            r"No (?:reverse pass|augmented forward pass|forward mode derivative|forward derivative|create nofree[^\n]*?) "
            r"(?:found )?(?:for|of) (?:empty function \()?([^\s()]+)"
        ),
        lambda m: f"it uses {readable(m[1])}, which has no derivative",
    ),
    (r"Enzyme: Cannot deduce type of ([^\n]*)", lambda m: f"Enzyme cannot tell which memory holds floats, at `{m[1].strip()}`"),
    (r"cannot handle unknown (\w+ \w+)[^\n]*", lambda m: f"Enzyme has no rule for this {m[1]}"),
    (r"(global variable that doesn't have marked shadow global)", lambda _: "it reads or calls through a global that Enzyme cannot see"),
    (r"opt was stopped after [^\n]*", lambda m: m[0]),
)


# Lines that come before, or instead of, the reason.
_NOISE = ("warning:", "PLEASE submit", "Stack dump", "#", "0.", "1.", "2.")

_KNOWN = (
    ("numba_gil_", "Python objects (objmode or print)"),
    ("numba_unpickle", "Python objects (objmode or print)"),
    ("Py", "Python objects (objmode or print)"),
    ("NRT_MemInfo_new", "a list or another container that grows"),
    ("numba_list", "a list"),
    ("numba_dict", "a dictionary"),
    ("numba_set", "a set"),
    ("numba_get_np_random_state", "random numbers (np.random)"),
    ("numba_get_py_random_state", "random numbers (random)"),
)


def readable(symbol: str) -> str:
    """A symbol as its author knows it: `_ZN8__main__4stepB2v1Ed` is `__main__.step`."""
    name = symbol.strip("@\"'")
    for prefix, text in _KNOWN:
        if name.startswith(prefix):
            return text
    if not name.startswith("_ZN"):
        return name
    parts: list[str] = []
    rest = name[3:]
    while match := re.match(r"(\d+)", rest):
        length = int(match[1])
        parts.append(rest[match.end() : match.end() + length])
        rest = rest[match.end() + length :]
    return ".".join(parts) or name


def explained(error: DifferentiationError, function: str) -> DifferentiationError:
    """`error`, which holds what `opt` printed, in the user's words."""
    said = str(error)
    for pattern, cause in _CAUSES:
        if match := re.search(pattern, said):
            return DifferentiationError(f"{function} cannot be differentiated: {cause(match)}. {_WAY_OUT}.")
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.lstrip().startswith(_NOISE)]
    first = next(iter(lines), "opt ended without a word")
    return DifferentiationError(
        f"{function} cannot be differentiated: {first[:300]}. NUMBA_ENZYME_KEEP_IR=<folder> keeps the IR that Enzyme was given."
    )
