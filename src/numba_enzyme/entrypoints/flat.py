"""The form of a primal that Enzyme differentiates: floats, pointers to floats and constants in, results in memory.

An array that is differentiated is handed over as its data and shape. What is made of the primal's results depends on the direction of the
sweep. For a forward sweep an array among them is copied to memory whose pointer is left behind: its shadow is the tangent. A reverse sweep
starts from one number for each result, which for an array is the sum of its elements times given weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import cgutils, types

from numba_enzyme.adapters import host_arrays as arrays
from numba_enzyme.adapters.host_arrays import FLOATS, I64, POINTER, Block
from numba_enzyme.adapters.numba_types import from_tree
from numba_enzyme.model.transform import Mode
from numba_enzyme.model.tree import Leaf, leaves

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numba_enzyme.model.layout import Layout
    from numba_enzyme.model.tree import Tree

# What the primal's call came to: Numba's code and exception, and whether a cotangent has another shape than the result.
STATUS = ir.LiteralStructType([ir.IntType(32), POINTER, ir.IntType(32)])

# How the names of parameters begin that are pointers to floats: `rules` tells Enzyme so.
DATA = {"float32": "float32_data", "float64": "float64_data"}


@dataclass(frozen=True)
class HostPrimal:
    """A primal compiled by Numba: the symbol and types of its calling convention."""

    symbol: str
    argtypes: tuple[Any, ...]
    restype: Any
    recursive: bool = False
    """Whether something in its call tree calls itself."""


def emit(context: Any, module: ir.Module, primal: HostPrimal, layout: Layout) -> ir.Function:
    """Defines the flat form of `primal` for sweeps in the direction of `layout`."""
    given = list(_parameters(context, primal, layout))
    weights = [weight for leaf in layout.outputs() if _is_weighted(layout, leaf) for weight in _array_parameters(leaf)]
    parameters = [parameter for parameter, _ in (*given, *weights)]
    function_type = ir.FunctionType(ir.VoidType(), [outputs_type(layout).as_pointer(), STATUS.as_pointer(), *parameters])
    function = ir.Function(module, function_type, module.get_unique_name("flat"))
    function.linkage = "internal"
    out, status_out, *values = function.args
    out.add_attribute("noalias")
    status_out.add_attribute("noalias")
    for value, (_, name) in zip(values, (*given, *weights), strict=True):
        value.name = name
        if name in DATA.values() and not is_written(primal):
            # The primal writes to no array that it is given: its own memory is not theirs.
            value.add_attribute("noalias")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    status, result = call(context, builder, primal, layout, iter(values[: len(given)]))
    store_status(builder, status, status_out)
    restype = primal.restype
    if layout.transform.has_aux:
        result, restype = builder.extract_value(result, 0), restype.types[0]
    results = _Results(context, builder, layout, out, status_out, iter(values[len(given) :]))
    if any(leaf.is_array for leaf in layout.outputs()):
        with builder.if_then(status.is_ok):
            results.store(result, restype)
            context.nrt.decref(builder, restype, result)
    else:
        results.store(result, restype)
    builder.ret_void()
    return function


def call(context: Any, builder: ir.IRBuilder, primal: HostPrimal, layout: Layout, values: Iterator[ir.Value]) -> tuple[Any, ir.Value]:
    """Calls `primal` with its flat arguments; gives Numba's status and the result."""
    arguments = []
    for numba_type, parameter in zip(primal.argtypes, layout.parameters, strict=True):
        if parameter.tree is None:
            packer = context.get_arg_packer((numba_type,))
            arguments += packer.from_arguments(builder, [next(values) for _ in packer.argument_types])
        else:
            arguments.append(_argument(context, builder, parameter.tree, numba_type, values))
    convention = context.call_conv
    declared = convention.get_function_type(primal.restype, primal.argtypes)
    callee = cgutils.get_or_insert_function(builder.module, declared, primal.symbol)
    status, result = convention.call_function(builder, callee, primal.restype, primal.argtypes, arguments)
    return status, result


def store_status(builder: ir.IRBuilder, status: Any, place: ir.Value) -> None:
    """Leaves what a call came to in a `STATUS`."""
    builder.store(status.code, field(builder, place, 0))
    builder.store(builder.bitcast(status.excinfoptr, POINTER), field(builder, place, 1))


def is_written(primal: HostPrimal) -> bool:
    """Whether the primal may write to arrays that it is given: it is compiled for ones that are read only if it can be."""
    return any(_holds_writable(numba_type) for numba_type in primal.argtypes)


def outputs_type(layout: Layout) -> ir.LiteralStructType:
    """What a sweep leaves of each result: a number, or memory and a shape."""
    return ir.LiteralStructType([_output_type(layout, leaf) for leaf in layout.outputs()])


def unpack(builder: ir.IRBuilder, value: ir.Value, tree: Tree, numba_type: Any) -> Iterator[tuple[Leaf, ir.Value, Any]]:
    """The leaves of `value`, with their Numba types."""
    if isinstance(tree, Leaf):
        yield tree, value, numba_type
        return
    for k, child in enumerate(tree.children):
        yield from unpack(builder, builder.extract_value(value, k), child, numba_type.types[k])


def _parameters(context: Any, primal: HostPrimal, layout: Layout) -> Iterator[tuple[ir.Type, str]]:
    for numba_type, parameter in zip(primal.argtypes, layout.parameters, strict=True):
        if parameter.tree is None:
            for part in context.get_arg_packer((numba_type,)).argument_types:
                yield part, "constant"
        else:
            for leaf in leaves(parameter.tree):
                if leaf.is_array:
                    yield from _array_parameters(leaf)
                else:
                    yield FLOATS[leaf.dtype], "float"


def _array_parameters(leaf: Leaf) -> Iterator[tuple[ir.Type, str]]:
    yield FLOATS[leaf.dtype].as_pointer(), DATA[leaf.dtype]
    for _ in range(leaf.ndim or 0):
        yield I64, "length"


def _argument(context: Any, builder: ir.IRBuilder, tree: Tree, numba_type: Any, values: Iterator[ir.Value]) -> ir.Value:
    if isinstance(tree, Leaf):
        if not tree.is_array:
            return next(values)
        data = next(values)
        return arrays.to_array(context, builder, Block(tree.dtype, data, tuple(next(values) for _ in range(tree.ndim or 0))), numba_type)
    children = [_argument(context, builder, *item, values) for item in zip(tree.children, numba_type.types, strict=True)]
    return context.make_tuple(builder, numba_type, children)


def _holds_writable(numba_type: Any) -> bool:
    if isinstance(numba_type, types.BaseTuple):
        return any(_holds_writable(element) for element in numba_type.types)
    return isinstance(numba_type, types.Array) and numba_type.mutable


def _is_weighted(layout: Layout, leaf: Leaf) -> bool:
    return leaf.is_array and layout.mode is Mode.REVERSE


def _output_type(layout: Layout, leaf: Leaf) -> ir.Type:
    if not leaf.is_array or _is_weighted(layout, leaf):
        return FLOATS[leaf.dtype]
    return ir.LiteralStructType([POINTER, *[I64] * (leaf.ndim or 0)])


class _Results:
    """Leaves the primal's results in memory."""

    def __init__(
        self, context: Any, builder: ir.IRBuilder, layout: Layout, out: ir.Value, status: ir.Value, weights: Iterator[ir.Value]
    ) -> None:
        self.context = context
        self.builder = builder
        self.layout = layout
        self.out = out
        self.status = status
        self.weights = weights

    def store(self, result: ir.Value, restype: Any) -> None:
        for k, (leaf, value, numba_type) in enumerate(unpack(self.builder, result, self.layout.result, restype)):
            place = field(self.builder, self.out, k)
            if not leaf.is_array:
                self.builder.store(self.context.cast(self.builder, value, numba_type, from_tree(leaf)), place)
            elif self.layout.mode is Mode.REVERSE:
                self._weighted(leaf, value, numba_type, place)
            else:
                self._copied(leaf, value, numba_type, place)

    def _weighted(self, leaf: Leaf, value: ir.Value, numba_type: Any, place: ir.Value) -> None:
        builder = self.builder
        weights = Block(leaf.dtype, next(self.weights), tuple(next(self.weights) for _ in range(leaf.ndim or 0)))
        builder.store(ir.Constant(FLOATS[leaf.dtype], 0.0), place)
        fits = arrays.same_shape(builder, weights.shape, arrays.shape_of(self.context, builder, value, numba_type))
        with builder.if_else(fits) as (sum_up, refuse):
            with sum_up:
                total = cgutils.alloca_once_value(builder, ir.Constant(FLOATS[leaf.dtype], 0.0))
                with arrays.each(builder, weights.shape) as indices:
                    weight = builder.load(arrays.element(self.context, builder, weights, indices))
                    item = arrays.item_of(self.context, builder, value, numba_type, indices)
                    builder.store(builder.fadd(builder.load(total), builder.fmul(weight, item)), total)
                builder.store(builder.load(total), place)
            with refuse:
                builder.store(ir.IntType(32)(1), field(builder, self.status, 2))

    def _copied(self, leaf: Leaf, value: ir.Value, numba_type: Any, place: ir.Value) -> None:
        builder = self.builder
        shape = arrays.shape_of(self.context, builder, value, numba_type)
        memory = arrays.allocate(builder, arrays.nbytes(builder, leaf.dtype, shape))
        made = Block(leaf.dtype, builder.bitcast(memory, FLOATS[leaf.dtype].as_pointer()), shape)
        arrays.fill(self.context, builder, made, value, numba_type)
        builder.store(memory, field(builder, place, 0))
        for k, length in enumerate(shape):
            builder.store(length, field(builder, place, k + 1))


def field(builder: ir.IRBuilder, struct: ir.Value, index: int) -> ir.Value:
    return cgutils.gep_inbounds(builder, struct, 0, index)
