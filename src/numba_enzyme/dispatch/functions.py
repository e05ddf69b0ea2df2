"""Which functions a transform takes, and what is kept with them."""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import config
from numba.core.registry import CPUDispatcher

from numba_enzyme.adapters.fingerprint import meaning_of
from numba_enzyme.errors import SignatureError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_KEPT = "__numba_enzyme_derivatives__"


def check_function(function: Any) -> None:
    """Raises `SignatureError` unless `function` is a Python function or one that Numba compiled for the CPU."""
    if not isinstance(function, (FunctionType, CPUDispatcher)):
        said = getattr(function, "__qualname__", None) or repr(function)
        raise SignatureError(
            f"{said} is {_kind(function)}, and a transform takes a Python function or one compiled with njit. Write a function that calls "
            "it with plain arguments and differentiate that"
        )
    if config.DISABLE_JIT:
        raise UnsupportedError("NUMBA_DISABLE_JIT is set, and without Numba's compiler there is no code to differentiate: unset it")
    source = function if isinstance(function, FunctionType) else function.py_func
    if inspect.isgeneratorfunction(source) or inspect.iscoroutinefunction(source):
        raise SignatureError(f"{source.__qualname__} is a generator or a coroutine, whose call gives no number to differentiate")


def _kind(function: Any) -> str:
    for kind, text in _KINDS:
        if isinstance(function, kind):
            return text
    return f"a {type(function).__name__} object"


_KINDS: tuple[tuple[Any, str], ...] = (
    (MethodType, "a method bound to an object"),
    (functools.partial, "a functools.partial"),
    ((BuiltinFunctionType, np.ufunc), "a function without Python source"),
    (type, "a class"),
)


@dataclass
class _Kept:
    """What has been derived of one function. It says whose it is, since functools.wraps copies attributes to other functions."""

    owner: Callable[[], Any]
    meaning: str | None = None
    derivatives: dict[Hashable, Any] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        # A function pickled by value takes its attributes along; compiled code is not among what can travel.
        return _nothing_kept, ()


def _nothing_kept() -> _Kept:
    return _Kept(owner=lambda: None)


def kept(function: Any, key: Hashable, make: Callable[[], Any]) -> Any:
    """What `make` gives, made once for `key` for as long as `function` lives and means the same.

    It is kept on the function itself: a derivative holds its function, so a table elsewhere would keep both alive for ever.
    """
    found = function.__dict__.get(_KEPT)
    if found is None or found.owner() is not function:
        found = _Kept(weakref.ref(function))
        setattr(function, _KEPT, found)
    meaning = meaning_of(function)
    if found.meaning != meaning:
        found.meaning = meaning
        found.derivatives.clear()
    if key not in found.derivatives:
        found.derivatives[key] = make()
    return found.derivatives[key]


def picklable(function: Any) -> Any:
    """`function`, or the same by value where its own name now stands for something else: what a decorator made of it, say."""
    if not isinstance(function, FunctionType):
        return function
    found: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    shadowed = found is not None and found is not function
    return CPUDispatcher(function, targetoptions={"nopython": True}) if shadowed else function
