"""Arrays of floats in entry points: their memory and shape, and the little that is done with them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.np import arrayobj

from numba_enzyme.adapters.numba_types import contiguous

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

I32 = ir.IntType(32)
I64 = ir.IntType(64)
POINTER = ir.IntType(8).as_pointer()

FLOATS: dict[str, ir.Type] = {"float32": ir.FloatType(), "float64": ir.DoubleType()}
SIZES = {"float32": 4, "float64": 8}


@dataclass(frozen=True)
class Block:
    """An array in C order."""

    dtype: str
    data: ir.Value
    shape: tuple[ir.Value, ...]
    owner: ir.Value | None = None
    """What frees the memory, if it is the entry point's own."""


def size(builder: ir.IRBuilder, shape: Sequence[ir.Value]) -> ir.Value:
    """How many elements an array has."""
    total: ir.Value = I64(1)
    for length in shape:
        total = builder.mul(total, length, flags=["nsw"])
    return total


def nbytes(builder: ir.IRBuilder, dtype: str, shape: Sequence[ir.Value]) -> ir.Value:
    return builder.mul(size(builder, shape), I64(SIZES[dtype]), flags=["nsw"])


class Memory:
    """Where an entry point gets memory from.

    In finished code that is Numba's runtime, so that arrays can be given away. An entry point that is part of a function to be
    differentiated asks the runtime that Enzyme sees through (`rules/memory_*.ll`).
    """

    def __init__(self, context: Any, builder: ir.IRBuilder, *, finished: bool) -> None:
        self.context = context
        self.builder = builder
        self.finished = finished

    def zeros(self, dtype: str, shape: Sequence[ir.Value], failed: Callable[[], None]) -> Block:
        """A new array of zeros; `failed` emits what is done if there is no memory."""
        owner, data = self.block(nbytes(self.builder, dtype, shape), failed)
        return Block(dtype, self.builder.bitcast(data, FLOATS[dtype].as_pointer()), tuple(shape), owner)

    def block(self, wanted: ir.Value, failed: Callable[[], None]) -> tuple[ir.Value, ir.Value]:
        """So many bytes of zeros: what owns them, and where they are."""
        if self.finished:
            owner = self._call("numba_enzyme_block", POINTER, wanted)
            with cgutils.if_unlikely(self.builder, cgutils.is_null(self.builder, owner)):
                failed()
            data = self._call("numba_enzyme_block_data", POINTER, owner)
        else:
            owner = self._call("NRT_MemInfo_alloc_aligned", POINTER, wanted, I32(16))
            data = self._call("NRT_MemInfo_data_fast", POINTER, owner)
            cgutils.memset(self.builder, data, wanted, 0)
        return owner, data

    def release(self, owner: ir.Value) -> None:
        self._call("numba_enzyme_block_release" if self.finished else "NRT_decref", ir.VoidType(), owner)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What sweeps inside ask for and do not give back is given back at the end, before the call as a whole ends."""
        mark = self._call("numba_enzyme_mark", I64) if self.finished else None
        yield
        if mark:
            self._call("numba_enzyme_reset", ir.VoidType(), mark)

    def free(self, data: ir.Value) -> None:
        """Frees memory of `allocate`."""
        self._call("NRT_Free", ir.VoidType(), self.builder.bitcast(data, POINTER))

    def _call(self, name: str, returns: ir.Type, *arguments: ir.Value) -> ir.Value:
        declared = ir.FunctionType(returns, [argument.type for argument in arguments])
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, declared, name), arguments)


def allocate(builder: ir.IRBuilder, count: ir.Value) -> ir.Value:
    """Memory of `count` bytes that Enzyme gives a shadow."""
    declared = ir.FunctionType(POINTER, [I64])
    return builder.call(cgutils.get_or_insert_function(builder.module, declared, "NRT_Allocate"), [count])


def from_array(context: Any, builder: ir.IRBuilder, value: ir.Value, numba_type: Any) -> Block:
    """A Numba array in C order."""
    array = context.make_array(numba_type)(context, builder, value)
    return Block(numba_type.dtype.name, array.data, tuple(cgutils.unpack_tuple(builder, array.shape, numba_type.ndim)))


def to_array(context: Any, builder: ir.IRBuilder, block: Block, numba_type: Any) -> ir.Value:
    """A Numba array that holds the memory of `block`, or borrows it if nobody owns it."""
    return _described(context, builder, numba_type, block.data, block.shape, SIZES[block.dtype], block.owner)


def _described(
    context: Any, builder: ir.IRBuilder, numba_type: Any, data: ir.Value, shape: Sequence[ir.Value], itemsize: int, owner: ir.Value | None
) -> ir.Value:
    array = context.make_array(numba_type)(context, builder)
    strides: list[ir.Value] = []
    step: ir.Value = I64(itemsize)
    for length in reversed(shape):
        strides.insert(0, step)
        step = builder.mul(step, length, flags=["nsw"])
    arrayobj.populate_array(array, data, list(shape), strides, itemsize, owner)
    return array._getvalue()


def borrowed(context: Any, builder: ir.IRBuilder, value: ir.Value, numba_type: Any) -> ir.Value:
    """`value` with arrays that say nobody owns them: the function that gets them counts no references, which is not safe in threads."""
    if isinstance(numba_type, types.Array):
        array = context.make_array(numba_type)(context, builder, value)
        array.meminfo = ir.Constant(array.meminfo.type, None)
        array.parent = ir.Constant(array.parent.type, None)
        return array._getvalue()
    if isinstance(numba_type, types.BaseTuple):
        elements = cgutils.unpack_tuple(builder, value, len(numba_type.types))
        made = [borrowed(context, builder, *item) for item in zip(elements, numba_type.types, strict=True)]
        return context.make_tuple(builder, numba_type, made)
    return value


def each(builder: ir.IRBuilder, shape: Sequence[ir.Value]) -> Any:
    """A loop over the indices of an array: `with each(...) as indices`."""
    return cgutils.loop_nest(builder, list(shape), I64)


def element(context: Any, builder: ir.IRBuilder, block: Block, indices: Sequence[ir.Value]) -> ir.Value:
    """A pointer to one element."""
    return cgutils.get_item_pointer2(context, builder, block.data, list(block.shape), [], "C", list(indices))


def at(builder: ir.IRBuilder, block: Block, offset: ir.Value) -> ir.Value:
    """A pointer to the element that is `offset` from the first."""
    return builder.gep(block.data, [offset])


def item_of(context: Any, builder: ir.IRBuilder, value: ir.Value, numba_type: Any, indices: Sequence[ir.Value]) -> ir.Value:
    """One element of a Numba array of any layout."""
    array = context.make_array(numba_type)(context, builder, value)
    shape, strides = (cgutils.unpack_tuple(builder, packed, numba_type.ndim) for packed in (array.shape, array.strides))
    pointer = cgutils.get_item_pointer2(context, builder, array.data, shape, strides, numba_type.layout, list(indices))
    return arrayobj.load_item(context, builder, numba_type, pointer)


def shape_of(context: Any, builder: ir.IRBuilder, value: ir.Value, numba_type: Any) -> tuple[ir.Value, ...]:
    array = context.make_array(numba_type)(context, builder, value)
    return tuple(cgutils.unpack_tuple(builder, array.shape, numba_type.ndim))


def fill(context: Any, builder: ir.IRBuilder, block: Block, value: ir.Value, numba_type: Any) -> None:
    """Copies a Numba array of the same shape, of any layout and number type, into `block`."""
    target = getattr(types, block.dtype)
    with each(builder, block.shape) as indices:
        given = item_of(context, builder, value, numba_type, indices)
        builder.store(context.cast(builder, given, numba_type.dtype, target), element(context, builder, block, indices))


def copy(builder: ir.IRBuilder, to: Block, data: ir.Value) -> None:
    """Copies as many floats as `to` has from `data`."""
    cgutils.raw_memcpy(builder, to.data, data, nbytes(builder, to.dtype, to.shape), 1)


def owned(context: Any, builder: ir.IRBuilder, memory: Memory, value: ir.Value, numba_type: Any, failed: Callable[[], None]) -> ir.Value:
    """`value` with arrays copied to memory that may be given away, in C order."""
    if isinstance(numba_type, types.BaseTuple):
        elements = cgutils.unpack_tuple(builder, value, len(numba_type.types))
        made = [owned(context, builder, memory, *item, failed) for item in zip(elements, numba_type.types, strict=True)]
        return context.make_tuple(builder, contiguous(numba_type), made)
    if not isinstance(numba_type, types.Array):
        return value
    shape = shape_of(context, builder, value, numba_type)
    itemsize = context.get_abi_sizeof(context.get_data_type(numba_type.dtype))
    owner, data = memory.block(builder.mul(size(builder, shape), I64(itemsize)), failed)
    data = builder.bitcast(data, context.get_data_type(numba_type.dtype).as_pointer())
    to_type = contiguous(numba_type)
    made_array = _described(context, builder, to_type, data, shape, itemsize, owner)
    with each(builder, shape) as indices:
        pointer = cgutils.get_item_pointer2(context, builder, data, list(shape), [], "C", list(indices))
        arrayobj.store_item(context, builder, to_type, item_of(context, builder, value, numba_type, indices), pointer)
    return made_array


def same_shape(builder: ir.IRBuilder, a: Sequence[ir.Value], b: Sequence[ir.Value]) -> ir.Value:
    same: ir.Value = ir.IntType(1)(1)
    for one, other in zip(a, b, strict=True):
        same = builder.and_(same, builder.icmp_signed("==", one, other))
    return same
