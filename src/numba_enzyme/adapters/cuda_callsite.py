"""numba-cuda-mlir: derivatives as things that device code calls.

A derivative is an ordinary Python object. numba-cuda-mlir is told how to type a call of one, and how to lower it: a call of an external
function in C's convention whose code comes along. Checked on numba-cuda-mlir 0.5.4 and 0.6.0; private names: `_call_operands_from_vars`,
`_unflatten_abi_value`, `_call_results_tuple`, and `_data` and `_name` of what is linked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from numba_enzyme.adapters import numba_cuda_mlir
from numba_enzyme.adapters.numba_cuda_mlir import CC
from numba_enzyme.errors import UnsupportedError

# For each argument of a derivative, whether each of its values is written as zero at the call site.
Zeros: TypeAlias = tuple[tuple[bool, ...], ...]


# Gives LTO IR when it is called. The later it is called, the more is built at once.
Code: TypeAlias = Callable[[], bytes]


@dataclass(frozen=True)
class Default:
    """An argument that the call leaves to the primal's default."""

    value: Any


@dataclass(frozen=True)
class Resolved:
    """A call site that has been typed.

    `order` says for each argument of the derivative which argument of the call it is: a position, a keyword, or a default.
    """

    order: tuple[int | str | Default, ...]
    argtypes: tuple[Any, ...]
    restype: Any
    """None if the result leaves through an array."""
    request: Callable[[CC, Zeros], tuple[str, Code]]
    """The symbol and its code for a compute capability, where it is known which values are literal zeros."""

    def link(self, cc: CC, zeros: Zeros) -> tuple[str, bytes]:
        """The same, built."""
        symbol, code = self.request(cc, zeros)
        return symbol, code()


class Callee(Protocol):
    """What can be called in device code."""

    def resolve(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Resolved: ...


def register(kind: type) -> None:
    """Tells numba-cuda-mlir about a class whose instances are `Callee`s. Asked twice for a class, it does nothing the second time."""
    if kind in _registered:
        return
    from numba_cuda_mlir import extending  # noqa: PLC0415

    numba_cuda_mlir.use_requested_cc()
    extending.typeof_impl.register(kind)(_typeof)
    _registered.add(kind)


_registered: set[type] = set()
_types: dict[int, Any] = {}
_link_items: dict[tuple[str, CC], Any] = {}


def _typeof(callee: Callee, context: object) -> Any:
    if id(callee) not in _types:
        from numba_cuda_mlir import extending, types  # noqa: PLC0415

        def lower_call(builder: Any, target: Any, args: Sequence[Any], kws: Sequence[tuple[str, Any]]) -> None:
            lower(callee, builder, target, args, kws)

        # The type holds the object, so its id stays its own.
        _types[id(callee)] = types.Function(_template(callee))
        extending.lowering_registry.lower(callee, types.VarArg(types.Any))(lower_call)
        extending.refresh_registries(typing=False, target=True, include_uninitialized_cuda=False)
    return _types[id(callee)]


def _template(callee: Callee) -> Any:
    from numba_cuda_mlir import types  # noqa: PLC0415
    from numba_cuda_mlir.numba_cuda.typing.templates import AbstractTemplate, signature  # noqa: PLC0415

    class Template(AbstractTemplate):  # type: ignore[misc]
        key = callee

        def generic(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
            resolved = callee.resolve(tuple(args), dict(kws))
            given = [t for source, t in zip(resolved.order, resolved.argtypes, strict=True) if not isinstance(source, Default)]
            return signature(types.void if resolved.restype is None else resolved.restype, *given)

    return Template


def lower(callee: Callee, builder: Any, target: Any, args: Sequence[Any], kws: Sequence[tuple[str, Any]]) -> None:
    """Emits a call of `callee` into the function that `builder` lowers."""
    from numba_cuda_mlir._mlir import ir  # noqa: PLC0415
    from numba_cuda_mlir._mlir.dialects import func  # noqa: PLC0415
    from numba_cuda_mlir.mlir_lowering import get_or_insert_function  # noqa: PLC0415

    by_name = dict(kws)
    types = tuple(builder.get_numba_type(arg.name) for arg in args)
    resolved = callee.resolve(types, {name: builder.get_numba_type(var.name) for name, var in kws})
    operands: list[Any] = []
    zeros: list[tuple[bool, ...]] = []
    for source, wanted in zip(resolved.order, resolved.argtypes, strict=True):
        if isinstance(source, Default):
            operands += _constants(builder, source.value, wanted)
            zeros.append(())
            continue
        var = args[source] if isinstance(source, int) else by_name[source]
        zeros.append(tuple(_zeros(builder, var, wanted)))
        operands += builder._call_operands_from_vars([var], expected_types=[wanted])
    chip = builder.targetoptions.get("chip")
    cc = numba_cuda_mlir.parse_cc(chip.rstrip("af")) if chip else numba_cuda_mlir.current_cc()
    try:
        symbol, code = resolved.request(cc, tuple(zeros))
    except UnsupportedError as error:
        raise _refusal()(str(error)) from error
    builder.link_external_item(_link_item(symbol, cc, code))
    flat = [] if resolved.restype is None else builder._flatten_type(resolved.restype)
    results = [builder.get_mlir_type(t) for t in flat]
    inputs = ir.FunctionType.get(inputs=[operand.type for operand in operands], results=results)
    declared = get_or_insert_function(symbol, inputs, builder.mlir_gpu_module)
    values = builder._call_results_tuple(func.call(result=results, callee=declared.name.value, operands_=operands))
    if resolved.restype is not None:
        builder.store_var(target, builder._unflatten_abi_value(resolved.restype, iter(values)))


@functools.cache
def _refusal() -> type[UnsupportedError]:
    """Of the errors that are `NotImplementedError`s, numba-cuda-mlir lets its own kind alone through, and takes others for bugs of its."""
    from numba_cuda_mlir.errors import UserFacingInternalCompilerError  # noqa: PLC0415

    class RefusedError(UnsupportedError, UserFacingInternalCompilerError):  # type: ignore[misc]
        pass

    RefusedError.__name__ = RefusedError.__qualname__ = UnsupportedError.__name__
    return RefusedError


def _zeros(builder: Any, item: Any, wanted: Any) -> Iterator[bool]:
    """Which of the floats that a variable or constant holds are written as zero."""
    known = _known(builder, item)
    if isinstance(wanted, numba_cuda_mlir.types().BaseTuple):
        items = known if isinstance(known, (tuple, list)) and len(known) == len(wanted) else [None] * len(wanted)
        for element, element_type in zip(items, wanted, strict=True):
            yield from _zeros(builder, element, element_type)
    else:
        yield isinstance(known, (int, float)) and not isinstance(known, bool) and known == 0


def _known(builder: Any, item: Any) -> Any:
    """What the code says `item` is: a constant, or the list of what a tuple is built of. None if it is neither."""
    from numba_cuda_mlir.numba_cuda.core import ir  # noqa: PLC0415

    if not isinstance(item, ir.Var):
        return item
    try:
        definition = builder.func_ir.get_definition(item)
    except KeyError:
        return None
    if isinstance(definition, (ir.Const, ir.Global, ir.FreeVar)):
        return definition.value
    return definition.items if isinstance(definition, ir.Expr) and definition.op == "build_tuple" else None


def _constants(builder: Any, value: Any, cuda_type: Any) -> list[Any]:
    from numba_cuda_mlir.lowering_utilities import constant  # noqa: PLC0415

    if isinstance(value, tuple):
        return [c for element, t in zip(value, cuda_type, strict=True) for c in _constants(builder, element, t)]
    plain = float(value) if isinstance(cuda_type, numba_cuda_mlir.types().Float) else value
    return [constant(plain, builder.get_mlir_type(cuda_type))]


def _link_item(symbol: str, cc: CC, code: Code) -> Any:
    """One object for each piece of code, which is how the linker knows that it has it already."""
    if (symbol, cc) not in _link_items:
        _link_items[symbol, cc] = _later()(code, name=f"{symbol}.ltoir")
    return _link_items[symbol, cc]


@functools.cache
def _later() -> Any:
    from numba_cuda_mlir.numba_cuda.cudadrv.linkable_code import LTOIR  # noqa: PLC0415

    class Later(LTOIR):  # type: ignore[misc]
        """Code that is made when the linker reads it."""

        @property
        def data(self) -> bytes:
            return bytes(self._data())

        def __reduce__(self) -> tuple[Any, ...]:
            return LTOIR, (self.data, self._name)

    # The linker knows what is LTO IR by the name of its class.
    Later.__name__ = Later.__qualname__ = LTOIR.__name__
    return Later


def external(symbol: str, cc: CC, code: Code, argtypes: Sequence[Any], restype: Any) -> Any:
    """A handle that device code can call, of a function whose arguments and result are scalars and arrays."""
    from numba_cuda_mlir import cuda, types  # noqa: PLC0415

    signature = (types.void if restype is None else restype)(*argtypes)
    return cuda.declare_device(symbol, signature, link=_link_item(symbol, cc, code), abi="c")
