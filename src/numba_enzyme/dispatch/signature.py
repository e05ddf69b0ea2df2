"""The Python signature of a derivative, read from its primal's."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from numba_enzyme.errors import SignatureError
from numba_enzyme.model.transform import Call

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FunctionType

    from numba_enzyme.model.transform import Transform

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
    """A function with the signature of the derivative. Numba reads its name, parameters and defaults; its body is never compiled."""
    names = [p.name for p in found] if transform.call is Call.ARGS else ["primals", _SEEDS[transform.call]]
    code = f"def derivative({', '.join(names)}): raise NotImplementedError"
    namespace: dict[str, Any] = {}
    exec(compile(code, f"<{transform.name}>", "exec"), namespace)
    made: FunctionType = namespace["derivative"]
    if transform.call is Call.ARGS:
        made.__defaults__ = tuple(p.default for p in found if p.default is not inspect.Parameter.empty) or None
    made.__name__ = f"{transform.name}_{function.__name__}".replace("<lambda>", "lambda")
    made.__qualname__ = f"{transform.name}({function.__qualname__})"
    made.__module__ = function.__module__
    made.__doc__ = f"`{transform.name}` of `{function.__qualname__}`, called {transform.call.value}."
    return made


_SEEDS = {Call.TANGENTS: "tangents", Call.COTANGENT: "cotangent"}
