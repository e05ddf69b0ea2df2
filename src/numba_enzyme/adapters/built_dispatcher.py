"""Numba dispatchers whose code is built by us, not compiled from their Python function.

Checked on Numba 0.62 to 0.68.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numba.core.compiler import CompileResult
from numba.core.datamodel.models import OpaqueModel
from numba.core.dispatcher import _FunctionCompiler
from numba.core.imputils import lower_getattr_generic
from numba.core.registry import CPUDispatcher
from numba.core.types import Dispatcher as DispatcherType
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import register_model

from numba_enzyme.adapters import tape_memory
from numba_enzyme.adapters.primal_target import PrimalDispatcher

if TYPE_CHECKING:
    from numba.core.dispatcher import Dispatcher

Build = Callable[[tuple[Any, ...]], CompileResult]

_OPTIONS = {"nopython": True}

# Also code that Numba kept, of functions that call derivatives, is loaded only after these are made.
tape_memory.define()


class BuiltDispatcher(CPUDispatcher):  # type: ignore[misc]
    """A function of the CPU target: Numba reads the parameters and defaults of `stub`; `build` makes the code for argument types."""

    def __init__(self, stub: Callable[..., Any], build: Build) -> None:
        super().__init__(stub, targetoptions=_OPTIONS)
        _build_with(self, build)


class BuiltPrimal(PrimalDispatcher):
    """The same for the primal target."""

    def __init__(self, stub: Callable[..., Any], build: Build) -> None:
        super().__init__(stub, targetoptions=_OPTIONS)
        _build_with(self, build)


class AttributedDispatcher(CPUDispatcher):  # type: ignore[misc]
    """A compiled function with attributes that are compiled functions, inside `njit` too. A subclass says in `attribute` which."""

    def attribute(self, name: str) -> Dispatcher | None:
        raise NotImplementedError

    @property
    def _numba_type_(self) -> Any:
        return _AttributedType(self)


class _AttributedType(DispatcherType):  # type: ignore[misc]
    pass


register_model(_AttributedType)(OpaqueModel)


@infer_getattr
class _Attributes(AttributeTemplate):  # type: ignore[misc]
    key = _AttributedType

    def generic_resolve(self, typ: Any, attr: str) -> Any:
        found = typ.dispatcher.attribute(attr)
        return None if found is None else DispatcherType(found)


@lower_getattr_generic(_AttributedType)  # type: ignore[untyped-decorator]
def _lower_attribute(context: Any, _builder: Any, _typ: Any, _value: Any, _attr: str) -> Any:
    return context.get_dummy_value()


def _build_with(dispatcher: Any, build: Build) -> None:
    dispatcher._compiler = _Compiler(dispatcher, build)


class _Compiler(_FunctionCompiler):  # type: ignore[misc]
    def __init__(self, dispatcher: Any, build: Build) -> None:
        super().__init__(dispatcher.py_func, dispatcher.targetdescr, dispatcher.targetoptions, {}, None)
        self._build = build

    def _compile_core(self, args: tuple[Any, ...], _return_type: Any) -> CompileResult:
        return self._build(tuple(args))
