"""The Python signature of a derivative, read from its primal's."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from numba.core.types import Omitted

from numba_enzyme.errors import SignatureError
from numba_enzyme.model.transform import Call

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FunctionType

    from numba_enzyme.model.transform import Transform

_MISSING = inspect.Parameter.empty
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def parameters(function: Callable[..., Any], name: str) -> tuple[inspect.Parameter, ...]:
    """The parameters of `function`, all of which have names and places."""
    found = tuple(inspect.signature(function, follow_wrapped=False).parameters.values())
    for parameter in found:
        if parameter.kind not in _POSITIONAL:
            raise SignatureError(
                f"{name} takes {parameter}, but a derivative needs parameters with names and places: "
                "wrap it in a function that lists them, as in `lambda x, y: f(x, y)`"
            )
    if not found:
        raise SignatureError(f"{name} takes no arguments, so there is nothing to differentiate by")
    return found


def stub(transform: Transform, function: Callable[..., Any], found: tuple[inspect.Parameter, ...]) -> FunctionType:
    """A function with the signature of the derivative. Numba reads its name, parameters and defaults; its body is never compiled.

    Every parameter has a default. Numba's C code refuses a call that leaves one without a default out, in words that do not say of what;
    with a default the call gets as far as we do (`is_missing`).
    """
    names = [p.name for p in found] if transform.call is Call.ARGS else ["primals", _SEEDS[transform.call]]
    code = f"def derivative({', '.join(names)}): raise NotImplementedError"
    namespace: dict[str, Any] = {}
    exec(compile(code, f"<{transform.name}>", "exec"), namespace)
    made: FunctionType = namespace["derivative"]
    if transform.call is Call.ARGS:
        made.__defaults__ = tuple(p.default for p in found if p.default is not _MISSING) or None
    made.__signature__ = inspect.signature(made)  # type: ignore[attr-defined]
    made.__defaults__ = (_MISSING,) * (len(names) - len(made.__defaults__ or ())) + (made.__defaults__ or ())
    made.__name__ = f"{transform.name}_{function.__name__}".replace("<lambda>", "lambda")
    made.__qualname__ = f"{transform.name}({function.__qualname__})"
    made.__module__ = function.__module__
    made.__doc__ = f"`{transform.name}` of `{function.__qualname__}`, called {transform.call.value}."
    return made


def is_missing(numba_type: Any) -> bool:
    """Whether the call left out an argument that it needs."""
    return isinstance(numba_type, Omitted) and numba_type.value is _MISSING


_SEEDS = {Call.TANGENTS: "tangents", Call.COTANGENT: "cotangent"}
