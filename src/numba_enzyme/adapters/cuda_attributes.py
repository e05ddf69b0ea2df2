"""numba-cuda-mlir: functions in device code whose attributes are functions too.

Such a function is an ordinary Python object. A call of it is a call of the device function that it holds. Checked on numba-cuda-mlir 0.5.4
and 0.6.0; private names: `build_user_defined_function_call`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Protocol

from numba_enzyme.adapters import cuda_callsite


class Offering(Protocol):
    """What can be called in device code and read attributes of."""

    @property
    def callee(self) -> Any:
        """The device function, or derivative, that a call is a call of."""

    def attribute(self, name: str) -> Any | None: ...


def register(kind: type) -> None:
    """Tells numba-cuda-mlir about a class whose instances are `Offering`s. Asked twice for a class, it does nothing the second time."""
    if kind in _registered:
        return
    from numba_cuda_mlir import extending  # noqa: PLC0415

    extending.typeof_impl.register(kind)(_typeof)
    _registered.add(kind)


_registered: set[type] = set()
_types: dict[int, Any] = {}


def _typeof(offering: Offering, context: object) -> Any:
    if id(offering) not in _types:
        from numba_cuda_mlir import extending, types  # noqa: PLC0415

        def lower(builder: Any, target: Any, args: Sequence[Any], kws: Sequence[tuple[str, Any]]) -> None:
            if hasattr(offering.callee, "resolve"):
                cuda_callsite.lower(offering.callee, builder, target, args, kws)
            else:
                builder.store_var(target, builder.build_user_defined_function_call(target, offering.callee, args, kws))

        # The type holds the object, so its id stays its own.
        _types[id(offering)] = _kind()(_template(offering))
        extending.lowering_registry.lower(offering, types.VarArg(types.Any))(lower)
        extending.refresh_registries(typing=False, target=True, include_uninitialized_cuda=False)
    return _types[id(offering)]


def _template(offering: Offering) -> Any:
    from numba_cuda_mlir.numba_cuda.typing.templates import AbstractTemplate  # noqa: PLC0415

    class Template(AbstractTemplate):  # type: ignore[misc]
        key = offering

        def generic(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
            return self.context.resolve_function_type(self.context.resolve_value_type(offering.callee), args, kws)

    return Template


@functools.cache
def _kind() -> type:
    """The class of the types of all offerings, which is what attributes are looked up by."""
    from numba_cuda_mlir import extending, types  # noqa: PLC0415
    from numba_cuda_mlir.numba_cuda.typing.templates import AttributeTemplate  # noqa: PLC0415

    class OfferingType(types.Function):  # type: ignore[misc]
        pass

    class Attributes(AttributeTemplate):  # type: ignore[misc]
        key = OfferingType

        def generic_resolve(self, typ: Any, attr: str) -> Any:
            found = typ.typing_key.attribute(attr)
            return None if found is None else self.context.resolve_value_type(found)

    def lower(context: Any, builder: Any, target: Any, value: Any, attr: str) -> None:
        builder.store_var(target, builder.get_numba_type(value.name).typing_key.attribute(attr))

    extending.typing_registry.register_attr(Attributes)
    extending.lowering_registry.lower_getattr_generic(OfferingType)(lower)
    extending.refresh_registries(typing=True, target=True, include_uninitialized_cuda=False)
    return OfferingType
