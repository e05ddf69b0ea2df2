"""What Enzyme's words mean for the person whose function it refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from numba_enzyme.errors import DifferentiationError

if TYPE_CHECKING:
    from collections.abc import Callable

_WAY_OUT = "Hold the arguments it depends on constant (argnums=...), or write that part with operations that have a derivative"
_BEFORE = "before the call, and pass the numbers in as an argument that argnums leaves out"
_FIXED_SIZE = "Use an array or a tuple"

# Symbols of Numba's by how they begin: what they are to the user, and the way out.
_KNOWN = (
    (
        ("numba_gil_", "numba_unpickle", "Py"),
        "Python objects (objmode or print)",
        f"Print after the call, with has_aux=True if what is printed is not returned; compute what objmode gives {_BEFORE}",
    ),
    (("NRT_MemInfo_new", "numba_list"), "a list or another container that grows", _FIXED_SIZE),
    (("numba_dict",), "a dictionary", _FIXED_SIZE),
    (("numba_set",), "a set", _FIXED_SIZE),
    (
        ("numba_get_np_random_state", "numba_get_py_random_state"),
        "random numbers (np.random or random)",
        f"Draw them {_BEFORE}",
    ),
)

_CAUSES: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (
        (
            r"No (?:reverse pass|augmented forward pass|forward mode derivative|forward derivative|create nofree[^\n]*?) "
            r"(?:found )?(?:for|of) (?:empty function \()?([^\s()]+)"
        ),
        lambda m: _without_derivative(m[1]),
    ),
    (r"Enzyme: Cannot deduce type of ([^\n]*)", lambda m: f"Enzyme cannot tell which memory holds floats, at `{m[1].strip()}`. {_WAY_OUT}"),
    (r"cannot handle unknown (\w+ \w+)[^\n]*", lambda m: f"Enzyme has no rule for this {m[1]}. {_WAY_OUT}"),
    (
        r"(global variable that doesn't have marked shadow global)",
        lambda _: f"it reads or calls through a global that Enzyme cannot see. {_WAY_OUT}",
    ),
    (r"opt was stopped after [^\n]*", lambda m: m[0]),
)


# Lines that come before, or instead of, the reason.
_NOISE = ("warning:", "PLEASE submit", "Stack dump", "#", "0.", "1.", "2.")


def readable(symbol: str) -> str:
    """A symbol as its author knows it: `_ZN8__main__4stepB2v1Ed` is `__main__.step`."""
    name = symbol.strip("@\"'")
    for prefixes, text, _ in _KNOWN:
        if name.startswith(prefixes):
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


def _without_derivative(symbol: str) -> str:
    for _, text, way_out in _KNOWN:
        if readable(symbol) == text:
            return f"it uses {text}. {way_out}"
    return f"it uses {readable(symbol)}, which has no derivative. {_WAY_OUT}"


def explained(error: DifferentiationError, function: str) -> DifferentiationError:
    """`error`, which holds what `opt` printed, in the user's words."""
    said = str(error)
    for pattern, cause in _CAUSES:
        if match := re.search(pattern, said):
            return DifferentiationError(f"{function} cannot be differentiated: {cause(match)}.")
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.lstrip().startswith(_NOISE)]
    first = next(iter(lines), "opt ended without a word")
    return DifferentiationError(
        f"{function} cannot be differentiated: {first[:300]}. NUMBA_ENZYME_KEEP_IR=<folder> keeps the IR that Enzyme was given."
    )
