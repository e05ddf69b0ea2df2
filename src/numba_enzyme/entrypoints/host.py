"""Entry points in Numba's own calling convention, so that a derivative is called like any other Numba function.

Three functions are stacked. `flat` calls the primal and leaves its results, and the status that says whether it raised, in memory: the
form that Enzyme differentiates. Marker calls ask for the sweeps of `flat`. The entry point takes the arguments of the derivative's call,
seeds the sweeps and puts what they give together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import cgutils, types

from numba_enzyme.activity import Activity
from numba_enzyme.adapters.host_target import return_if_raised
from numba_enzyme.adapters.numba_types import from_tree
from numba_enzyme.entrypoints import markers
from numba_enzyme.entrypoints.markers import Slot
from numba_enzyme.model.transform import Call, Mode
from numba_enzyme.model.tree import Leaf, fold, leaves

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numba_enzyme.model.layout import Layout
    from numba_enzyme.model.tree import Node, Tree

# Wider sweeps share more of the primal's work between tangents; measured in benchmarks/widths.py.
MAX_WIDTH = 16

_FLOATS: dict[str, ir.Type] = {"float32": ir.FloatType(), "float64": ir.DoubleType()}
_STATUS = ir.LiteralStructType([ir.IntType(32), ir.IntType(8).as_pointer()])


@dataclass(frozen=True)
class HostPrimal:
    """A primal compiled by Numba: the symbol and types of its calling convention."""

    symbol: str
    argtypes: tuple[Any, ...]
    restype: Any
    recursive: bool = False
    """Whether something in its call tree calls itself."""


@dataclass(frozen=True)
class HostCall:
    """The Numba types of a derivative's call: an argument for each parameter, or the tuples of primals and of seeds."""

    symbol: str
    argnames: tuple[str, ...]
    argtypes: tuple[Any, ...]
    restype: Any
    defaults: tuple[Any, ...] = ()
    """The defaults of trailing parameters that a tuple of primals leaves out."""


def emit(context: Any, module: ir.Module, primal: HostPrimal, layout: Layout, call: HostCall) -> None:
    """Defines the entry point `call.symbol` in `module`."""
    flat = _emit_flat(context, module, primal, layout)
    convention = context.call_conv
    entry = ir.Function(module, convention.get_function_type(call.restype, call.argtypes), call.symbol)
    convention.decorate_function(entry, call.argnames, call.argtypes, noalias=False)
    # Numba's inliner has a budget, beyond which a derivative in a loop would silently stay a call.
    entry.attributes.add("alwaysinline")
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    arguments = context.get_arg_packer(call.argtypes).from_arguments(builder, convention.get_arguments(entry))
    emitter = _Emitter(context, builder, primal, layout, flat, call, arguments)
    convention.return_value(builder, emitter.result())


def _emit_flat(context: Any, module: ir.Module, primal: HostPrimal, layout: Layout) -> ir.Function:
    packer = context.get_arg_packer(primal.argtypes)
    outputs = _outputs_type(layout)
    flat_type = ir.FunctionType(ir.VoidType(), [outputs.as_pointer(), _STATUS.as_pointer(), *packer.argument_types])
    flat = ir.Function(module, flat_type, module.get_unique_name("flat"))
    flat.linkage = "internal"
    out, status_out, *arguments = flat.args
    out.add_attribute("noalias")
    status_out.add_attribute("noalias")
    builder = ir.IRBuilder(flat.append_basic_block("entry"))
    convention = context.call_conv
    callee = cgutils.get_or_insert_function(module, convention.get_function_type(primal.restype, primal.argtypes), primal.symbol)
    values = packer.from_arguments(builder, arguments)
    status, result = convention.call_function(builder, callee, primal.restype, primal.argtypes, values)
    builder.store(status.code, _field(builder, status_out, 0))
    builder.store(builder.bitcast(status.excinfoptr, _STATUS.elements[1]), _field(builder, status_out, 1))
    result_type = from_tree(layout.result)
    for k, leaf in enumerate(_unpack(builder, convert(context, builder, result, primal.restype, result_type), layout.result)):
        builder.store(leaf, _field(builder, out, k))
    builder.ret_void()
    return flat


def convert(context: Any, builder: ir.IRBuilder, value: ir.Value, fromty: Any, toty: Any) -> ir.Value:
    """`value` as `toty`: floats and integers change width, element by element within tuples."""
    if isinstance(fromty, types.Omitted):
        return context.get_constant_generic(builder, toty, _as_default(fromty.value, toty))
    if isinstance(toty, types.BaseTuple) and fromty != toty:
        elements = cgutils.unpack_tuple(builder, value, len(toty.types))
        converted = [convert(context, builder, *item) for item in zip(elements, fromty.types, toty.types, strict=True)]
        return context.make_tuple(builder, toty, converted)
    return context.cast(builder, value, fromty, toty)


def _as_default(value: Any, toty: Any) -> Any:
    if isinstance(toty, types.Float):
        return float(value)
    if isinstance(toty, types.BaseTuple):
        elements = [_as_default(v, t) for v, t in zip(value, toty.types, strict=True)]
        return type(value)(*elements) if hasattr(value, "_fields") else tuple(elements)
    return value


def _unpack(builder: ir.IRBuilder, value: ir.Value, tree: Tree) -> Iterator[ir.Value]:
    if isinstance(tree, Leaf):
        yield value
        return
    for k, child in enumerate(tree.children):
        yield from _unpack(builder, builder.extract_value(value, k), child)


def _outputs_type(layout: Layout) -> ir.LiteralStructType:
    return ir.LiteralStructType([_FLOATS[leaf.dtype] for leaf in layout.outputs()])


def _field(builder: ir.IRBuilder, struct: ir.Value, index: int) -> ir.Value:
    return cgutils.gep_inbounds(builder, struct, 0, index)


class _Emitter:
    """The body of one entry point."""

    def __init__(
        self,
        context: Any,
        builder: ir.IRBuilder,
        primal: HostPrimal,
        layout: Layout,
        flat: ir.Function,
        call: HostCall,
        arguments: Sequence[ir.Value],
    ) -> None:
        self.context = context
        self.builder = builder
        self.layout = layout
        self.flat = flat
        self.primal = primal
        self.call = call
        self.arguments = arguments
        self.status = cgutils.alloca_once(builder, _STATUS, zfill=True)
        self._flat_arguments = list(self._flatten())

    def result(self) -> ir.Value:
        """What the call returns, by the sweeps that its transform needs."""
        transform = self.layout.transform
        if transform.call is Call.TANGENTS:
            return self._jvp()
        if transform.jacobian:
            return self._jacobian()
        seeds = self._seeds() if transform.call is Call.COTANGENT else [_unit(leaf, one=True) for leaf in self.layout.outputs()]
        return self._value_and_partials(seeds) if transform.with_value else self._partials(seeds, None)

    # What each transform seeds and returns.

    def _value_and_partials(self, seeds: Sequence[ir.Value]) -> ir.Value:
        out = self._outputs()
        partials = self._partials(seeds, out)
        value = self._tree_value(self.layout.result, iter([self.builder.load(_field(self.builder, out, 0))]))
        return self.context.make_tuple(self.builder, self.call.restype, [value, partials])

    def _partials(self, seeds: Sequence[ir.Value], out: ir.Value | None) -> ir.Value:
        """The outputs' partials weighted by `seeds`; the outputs' values are left in `out`."""
        sweep = self._reverse if self.layout.mode is Mode.REVERSE else self._weighted_columns
        return self._tree_value(self.layout.partials(), iter(self._picked(sweep(seeds, out))))

    def _jvp(self) -> ir.Value:
        by_input = dict(zip(self.layout.picked_inputs(), self._seeds(), strict=True))
        (outputs,) = self._forward([[by_input[n] for n in range(len(by_input))]], None)
        return self._tree_value(self.layout.result, iter(outputs))

    def _jacobian(self) -> ir.Value:
        outputs = self.layout.outputs()
        if self.layout.mode is Mode.REVERSE:
            rows = [self._reverse([_unit(leaf, one=k == m) for k, leaf in enumerate(outputs)], None) for m in range(len(outputs))]
        else:
            columns = self._columns(None)
            rows = [[column[m] for column in columns] for m in range(len(outputs))]
        tree = self.layout.jacobian()
        values = (value for row in rows for value in self._picked(row))
        # A partial has its argument's type; a forward sweep computes it in its output's.
        return self._tree_value(tree, (self._as_leaf(value, leaf) for value, leaf in zip(values, leaves(tree), strict=True)))

    def _columns(self, out: ir.Value | None) -> list[list[ir.Value]]:
        """All outputs' partials by each input in turn."""
        inputs = self.layout.inputs()
        units = [[_unit(leaf, one=k == n) for k, leaf in enumerate(inputs)] for n in range(len(inputs))]
        return [column for start in range(0, len(units), MAX_WIDTH) for column in self._forward(units[start : start + MAX_WIDTH], out)]

    def _weighted_columns(self, seeds: Sequence[ir.Value], out: ir.Value | None) -> list[ir.Value]:
        """What a reverse sweep gives, by forward sweeps."""
        partials = []
        for leaf, column in zip(self.layout.inputs(), self._columns(out), strict=True):
            total: ir.Value = ir.Constant(_FLOATS[leaf.dtype], 0.0)
            for seed, tangent in zip(seeds, column, strict=True):
                total = self.builder.fadd(total, self._as_leaf(self.builder.fmul(seed, tangent), leaf))
            partials.append(total)
        return partials

    # Sweeps.

    def _reverse(self, seeds: Sequence[ir.Value], out: ir.Value | None) -> list[ir.Value]:
        shadow = self._outputs()
        for k, seed in enumerate(seeds):
            self.builder.store(seed, _field(self.builder, shadow, k))
        role = Activity.DUPNONEED if out is None else Activity.DUP
        slots = [Slot(role, out or self._outputs(), (shadow,)), Slot(Activity.CONST, self.status)]
        slots += [Slot(Activity.OUT if active else Activity.CONST, value) for active, value in self._flat_arguments]
        partials = markers.reverse(self.builder, self.flat, slots, recursive=self.primal.recursive)
        self._return_if_raised()
        # Adjoints are free to come out as -0.0 (llvm/signed_zero.py), which nobody wants to read.
        return [self.builder.fadd(partial, ir.Constant(partial.type, 0.0)) for partial in partials]

    def _forward(self, tangents: Sequence[Sequence[ir.Value]], out: ir.Value | None) -> list[list[ir.Value]]:
        """One sweep that carries each of `tangents` (a value for each input); gives each one's outputs."""
        shadows = [self._outputs() for _ in tangents]
        by_input = iter(zip(*tangents, strict=True))
        role = Activity.DUPNONEED if out is None else Activity.DUP
        slots = [Slot(role, out or self._outputs(), tuple(shadows)), Slot(Activity.CONST, self.status)]
        for active, value in self._flat_arguments:
            slots.append(Slot(Activity.DUP, value, tuple(next(by_input))) if active else Slot(Activity.CONST, value))
        markers.forward(self.builder, self.flat, slots, len(tangents))
        self._return_if_raised()
        return [[self.builder.load(_field(self.builder, s, k)) for k in range(len(self.layout.outputs()))] for s in shadows]

    def _return_if_raised(self) -> None:
        code, excinfo = (self.builder.load(_field(self.builder, self.status, k)) for k in range(2))
        return_if_raised(self.context, self.builder, code, excinfo)

    # Values.

    def _primal_values(self) -> list[ir.Value]:
        """The primal's arguments, at the types at which it was compiled."""
        if self.layout.transform.call is Call.ARGS:
            given = list(zip(self.arguments, self.call.argtypes, strict=True))
        else:
            given = list(zip(self._elements(0), self.call.argtypes[0].types, strict=True))
            given += [(None, types.Omitted(default)) for default in self.call.defaults]
        return [convert(self.context, self.builder, *item, toty) for item, toty in zip(given, self.primal.argtypes, strict=True)]

    def _flatten(self) -> Iterator[tuple[bool, ir.Value]]:
        """Each value of the primal's flat argument list, and whether it is differentiated."""
        for value, numba_type, parameter in zip(self._primal_values(), self.primal.argtypes, self.layout.parameters, strict=True):
            for flat in self.context.get_arg_packer((numba_type,)).as_arguments(self.builder, [value]):
                yield parameter.tree is not None, flat

    def _seeds(self) -> list[ir.Value]:
        """The floats of the call's second argument: tangents or a cotangent."""
        tree = self.layout.seeds()
        seed_type = from_tree(tree)
        value = convert(self.context, self.builder, self.arguments[1], self.call.argtypes[1], seed_type)
        return list(_unpack(self.builder, value, tree))

    def _elements(self, argument: int) -> list[ir.Value]:
        return list(cgutils.unpack_tuple(self.builder, self.arguments[argument], len(self.call.argtypes[argument].types)))

    def _outputs(self) -> ir.Value:
        return cgutils.alloca_once(self.builder, _outputs_type(self.layout), zfill=True)

    def _picked(self, by_input: Sequence[ir.Value]) -> list[ir.Value]:
        return [by_input[n] for n in self.layout.picked_inputs()]

    def _tree_value(self, tree: Tree, values: Iterator[ir.Value]) -> ir.Value:
        typed = ((value, from_tree(leaf)) for value, leaf in zip(values, leaves(tree), strict=True))
        return fold(tree, typed, self._make_tuple)[0]

    def _make_tuple(self, node: Node, children: Sequence[tuple[ir.Value, Any]]) -> tuple[ir.Value, Any]:
        tuple_type = types.BaseTuple.from_types([numba_type for _, numba_type in children], node.named or tuple)
        return self.context.make_tuple(self.builder, tuple_type, [value for value, _ in children]), tuple_type

    def _as_leaf(self, value: ir.Value, leaf: Leaf) -> ir.Value:
        wanted = _FLOATS[leaf.dtype]
        if value.type == wanted:
            return value
        return self.builder.fptrunc(value, wanted) if wanted == ir.FloatType() else self.builder.fpext(value, wanted)


def _unit(leaf: Leaf, *, one: bool) -> ir.Constant:
    return ir.Constant(_FLOATS[leaf.dtype], 1.0 if one else 0.0)
