"""Entry points in Numba's own calling convention, so that a derivative is called like any other Numba function.

Three functions are stacked. `flat` (`entrypoints/flat.py`) calls the primal and leaves its results, and the status that says whether it
raised, in memory: the form that Enzyme differentiates. Marker calls ask for the sweeps of `flat`. The entry point takes the arguments of
the derivative's call, seeds the sweeps and puts what they give together.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import cgutils, types

from numba_enzyme.activity import Activity
from numba_enzyme.adapters import host_arrays as arrays
from numba_enzyme.adapters.host_arrays import FLOATS, I64, Block, Memory
from numba_enzyme.adapters.host_target import return_if_raised
from numba_enzyme.adapters.numba_types import contiguous, from_tree
from numba_enzyme.entrypoints import flat, markers
from numba_enzyme.entrypoints.flat import STATUS, HostPrimal, field, unpack
from numba_enzyme.entrypoints.markers import Slot
from numba_enzyme.errors import ArgumentError
from numba_enzyme.model.layout import block
from numba_enzyme.model.transform import Call, Mode
from numba_enzyme.model.tree import Leaf, fold, leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numba_enzyme.model.layout import Layout
    from numba_enzyme.model.tree import Node, Tree

# Wider sweeps share more of the primal's work between tangents; measured in benchmarks/widths.py.
MAX_WIDTH = 16

# How many elements of an array one forward sweep carries. An array may be shorter: what is left over costs as much as if it were used.
ARRAY_WIDTH = 8

# A float, or an array of them.
Value = Any


@dataclass(frozen=True)
class HostCall:
    """The Numba types of a derivative's call: an argument for each parameter, or the tuples of primals and of seeds."""

    symbol: str
    function: str
    """What the primal is called in messages."""
    argnames: tuple[str, ...]
    argtypes: tuple[Any, ...]
    restype: Any
    defaults: tuple[Any, ...] = ()
    """The defaults of trailing parameters that a tuple of primals leaves out."""


def emit(context: Any, module: ir.Module, primal: HostPrimal, layout: Layout, call: HostCall, *, finished: bool) -> None:
    """Defines the entry point `call.symbol` in `module`; `finished` says that it is not itself part of what is differentiated."""
    function = flat.emit(context, module, primal, layout)
    convention = context.call_conv
    entry = ir.Function(module, convention.get_function_type(call.restype, call.argtypes), call.symbol)
    convention.decorate_function(entry, call.argnames, call.argtypes, noalias=False)
    # Numba's inliner has a budget, beyond which a derivative in a loop would silently stay a call.
    entry.attributes.add("alwaysinline")
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    arguments = context.get_arg_packer(call.argtypes).from_arguments(builder, convention.get_arguments(entry))
    emitter = _Emitter(context, builder, primal, layout, function, call, arguments, Memory(context, builder, finished=finished))
    result = emitter.result()
    emitter.release()
    convention.return_value(builder, result)


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


class _Emitter:
    """The body of one entry point."""

    def __init__(
        self,
        context: Any,
        builder: ir.IRBuilder,
        primal: HostPrimal,
        layout: Layout,
        function: ir.Function,
        call: HostCall,
        arguments: Sequence[ir.Value],
        memory: Memory,
    ) -> None:
        self.context = context
        self.builder = builder
        self.layout = layout
        self.flat = function
        self.primal = primal
        self.call = call
        self.arguments = arguments
        self.memory = memory
        self.status = cgutils.alloca_once(builder, STATUS, zfill=True)
        # Memory that is in use, innermost last: given back whenever the entry point is left by an exception.
        self._temporary: list[ir.Value] = []
        self._given_away: list[ir.Value] = []
        self._inputs: list[Value] = []
        self._flat_arguments = list(self._flatten())

    def result(self) -> ir.Value:
        """What the call returns, by the sweeps that its transform needs."""
        transform = self.layout.transform
        if transform.call is Call.TANGENTS:
            return self._jvp()
        if transform.jacobian:
            return self._jacobian()
        if transform.has_aux:
            return self._with_aux()
        seeds = self._seeds() if transform.call is Call.COTANGENT else [_unit(leaf, one=True) for leaf in self.layout.outputs()]
        return self._value_and_partials(seeds) if transform.with_value else self._partials(seeds, None)

    def release(self) -> None:
        """Gives back what was needed on the way to the result."""
        for owner in reversed(self._temporary):
            self.memory.release(owner)

    # What each transform seeds and returns.

    def _with_aux(self) -> ir.Value:
        """What the sweep gives, and what the function gives beside its loss: it is run once more for that."""
        loss_type, aux_type = self.primal.restype.types
        with self.memory.scope():
            result = self._run_primal()
            loss, value = (self.builder.extract_value(result, k) for k in range(2))
            aux = arrays.owned(self.context, self.builder, self.memory, value, aux_type, self._out_of_memory)
            self.context.nrt.decref(self.builder, self.primal.restype, result)
        self._given_away += [owner for _, owner in self.context.nrt.get_meminfos(self.builder, contiguous(aux_type), aux)]
        partials = self._partials([_unit(leaf, one=True) for leaf in self.layout.outputs()], None)
        if not self.layout.transform.with_value:
            return self.context.make_tuple(self.builder, self.call.restype, [partials, aux])
        head_type = self.call.restype.types[0]
        head = self.context.make_tuple(self.builder, head_type, [self.context.cast(self.builder, loss, loss_type, head_type.types[0]), aux])
        return self.context.make_tuple(self.builder, self.call.restype, [head, partials])

    def _value_and_partials(self, seeds: Sequence[Value]) -> ir.Value:
        out = self._outputs()
        partials = self._partials(seeds, out)
        value = self._tree_value(self.layout.result, iter([self.builder.load(field(self.builder, out, 0))]))
        return self.context.make_tuple(self.builder, self.call.restype, [value, partials])

    def _partials(self, seeds: Sequence[Value], out: ir.Value | None) -> ir.Value:
        """The outputs' partials weighted by `seeds`; the outputs' values are left in `out`."""
        if self.layout.mode is Mode.REVERSE:
            shadows = {n: self._result(leaf.dtype, self._inputs[n].shape) for n, leaf in enumerate(self.layout.inputs()) if leaf.is_array}
            partials = self._reverse(seeds, out, shadows)
        else:
            partials = self._weighted_columns(seeds, out)
        return self._tree_value(self.layout.partials(), iter(self._picked(partials)))

    def _jvp(self) -> ir.Value:
        by_input = dict(zip(self.layout.picked_inputs(), self._seeds(), strict=True))
        (outputs,) = self._forward([[by_input[n] for n in range(len(by_input))]], None)
        given = []
        for leaf, output in zip(self.layout.outputs(), outputs, strict=True):
            if leaf.is_array:
                result = self._result(leaf.dtype, output.shape)
                arrays.copy(self.builder, result, output.data)
                self.memory.free(output.data)
                given.append(result)
            else:
                given.append(output)
        return self._tree_value(self.layout.result, iter(given))

    def _jacobian(self) -> ir.Value:
        shapes = self._output_shapes()
        blocks = self._blocks(shapes)
        if self.layout.mode is Mode.REVERSE:
            self._fill_rows(blocks, shapes)
        else:
            self._fill_columns(blocks)
        order = [(m, n) for m in range(len(self.layout.outputs())) for n in self.layout.picked_inputs()]
        tree = self.layout.jacobian()
        # A partial has its argument's type; a forward sweep computes it in its output's.
        values = (
            blocks[place] if leaf.is_array else self._as(blocks[place], leaf.dtype) for place, leaf in zip(order, leaves(tree), strict=True)
        )
        return self._tree_value(tree, values)

    def _blocks(self, shapes: Sequence[tuple[ir.Value, ...]]) -> dict[tuple[int, int], Block]:
        """An array for each output and input that has one of them, in the order of a Jacobian's rows and columns."""
        made = {}
        for m, output in enumerate(self.layout.outputs()):
            for n, given in enumerate(self.layout.inputs()):
                leaf = block(output, given)
                if leaf.is_array:
                    made[m, n] = self._result(leaf.dtype, (*shapes[m], *(self._inputs[n].shape if given.is_array else ())))
        return made

    def _fill_rows(self, blocks: dict[tuple[int, int], Value], shapes: Sequence[tuple[ir.Value, ...]]) -> None:
        """By one reverse sweep for each float of the outputs."""
        outputs, builder = self.layout.outputs(), self.builder
        nothing: list[Value] = [
            self._zeros(leaf.dtype, shapes[m]) if leaf.is_array else _unit(leaf, one=False) for m, leaf in enumerate(outputs)
        ]
        for m, leaf in enumerate(outputs):
            seeds = [*nothing]
            if not leaf.is_array:
                seeds[m] = _unit(leaf, one=True)
                with self.memory.scope():
                    partials = self._reverse(
                        seeds, None, {n: blocks[m, n] for n, given in enumerate(self.layout.inputs()) if given.is_array}
                    )
                blocks.update({(m, n): partial for n, partial in enumerate(partials) if not isinstance(partial, Block)})
                continue
            with cgutils.for_range(builder, arrays.size(builder, nothing[m].shape)) as loop, self.memory.scope():
                seed = arrays.at(builder, nothing[m], loop.index)
                builder.store(_unit(leaf, one=True), seed)
                rows = {n: self._row(blocks[m, n], n, loop.index) for n, given in enumerate(self.layout.inputs()) if given.is_array}
                for n, partial in enumerate(self._reverse(seeds, None, rows)):
                    if not isinstance(partial, Block):
                        builder.store(partial, arrays.at(builder, blocks[m, n], loop.index))
                builder.store(_unit(leaf, one=False), seed)

    def _row(self, whole: Block, n: int, index: ir.Value) -> Block:
        """What input `n` has of one row of a Jacobian."""
        shape = self._inputs[n].shape
        return Block(whole.dtype, arrays.at(self.builder, whole, self.builder.mul(index, arrays.size(self.builder, shape))), shape)

    def _fill_columns(self, blocks: dict[tuple[int, int], Value]) -> None:
        """By forward sweeps, several floats of the inputs at a time."""
        builder, inputs = self.builder, self.layout.inputs()

        def use(n: int, offset: ir.Value | None, column: Sequence[Value]) -> None:
            for m, tangent in enumerate(column):
                if not isinstance(tangent, Block) and offset is None:
                    blocks[m, n] = tangent
                elif not isinstance(tangent, Block):
                    builder.store(self._as(tangent, inputs[n].dtype), arrays.at(builder, blocks[m, n], offset))
                else:
                    # Element `offset` of each row.
                    step = I64(1) if offset is None else arrays.size(builder, self._inputs[n].shape)
                    with cgutils.for_range(builder, arrays.size(builder, tangent.shape)) as loop:
                        place = builder.add(builder.mul(loop.index, step), I64(0) if offset is None else offset)
                        value = builder.load(arrays.at(builder, tangent, loop.index))
                        builder.store(self._as(value, inputs[n].dtype), arrays.at(builder, blocks[m, n], place))

        self._each_column(None, use)

    def _each_column(self, out: ir.Value | None, use: Callable[[int, ir.Value | None, Sequence[Value]], None]) -> None:
        """Calls `use` with an input, with the offset of an element if it is an array, and with all outputs' partials by that float."""
        inputs = self.layout.inputs()
        floats = [n for n, leaf in enumerate(inputs) if not leaf.is_array]
        for start in range(0, len(floats), MAX_WIDTH):
            group = floats[start : start + MAX_WIDTH]
            zeros = self._zero_tangents(len(group))
            tangents = [
                [zeros[k][n] if leaf.is_array else _unit(leaf, one=n == unit) for n, leaf in enumerate(inputs)]
                for k, unit in enumerate(group)
            ]
            with self.memory.scope():
                for n, column in zip(group, self._forward(tangents, out), strict=True):
                    use(n, None, column)
                    self._free(column)
        for n, leaf in enumerate(inputs):
            if leaf.is_array:
                self._each_element(n, out, use)

    def _each_element(self, n: int, out: ir.Value | None, use: Callable[[int, ir.Value | None, Sequence[Value]], None]) -> None:
        builder, leaf = self.builder, self.layout.inputs()[n]
        count = arrays.size(builder, self._inputs[n].shape)
        tangents = self._zero_tangents(ARRAY_WIDTH)
        with cgutils.for_range_slice(builder, I64(0), count, I64(ARRAY_WIDTH), I64) as (start, _):
            offsets = [builder.add(start, I64(k)) for k in range(ARRAY_WIDTH)]

            def set_units(*, one: bool) -> None:
                for offset, tangent in zip(offsets, tangents, strict=True):
                    with builder.if_then(builder.icmp_signed("<", offset, count)):
                        builder.store(_unit(leaf, one=one), arrays.at(builder, tangent[n], offset))

            with self.memory.scope():
                set_units(one=True)
                columns = self._forward(tangents, out)
                set_units(one=False)
                for offset, column in zip(offsets, columns, strict=True):
                    with builder.if_then(builder.icmp_signed("<", offset, count)):
                        use(n, offset, column)
                    self._free(column)

    def _zero_tangents(self, width: int) -> list[list[Value]]:
        return [
            [
                self._zeros(leaf.dtype, given.shape) if leaf.is_array else _unit(leaf, one=False)
                for leaf, given in zip(self.layout.inputs(), self._inputs, strict=True)
            ]
            for _ in range(width)
        ]

    def _free(self, column: Sequence[Value]) -> None:
        for output in column:
            if isinstance(output, Block):
                self.memory.free(output.data)

    def _weighted_columns(self, seeds: Sequence[Value], out: ir.Value | None) -> list[Value]:
        """What a reverse sweep gives, by forward sweeps."""
        builder = self.builder
        partials: list[Value] = [
            self._result(leaf.dtype, given.shape) if leaf.is_array else None
            for leaf, given in zip(self.layout.inputs(), self._inputs, strict=True)
        ]

        def use(n: int, offset: ir.Value | None, column: Sequence[Value]) -> None:
            dtype = self.layout.inputs()[n].dtype
            total: ir.Value = ir.Constant(FLOATS[dtype], 0.0)
            for seed, tangent in zip(seeds, column, strict=True):
                weighted = self._dot(seed, tangent) if isinstance(tangent, Block) else builder.fmul(seed, tangent)
                total = builder.fadd(total, self._as(weighted, dtype))
            if offset is None:
                partials[n] = total
            else:
                builder.store(total, arrays.at(builder, partials[n], offset))

        self._each_column(out, use)
        return partials

    def _dot(self, a: Block, b: Block) -> ir.Value:
        builder = self.builder
        total = cgutils.alloca_once_value(builder, ir.Constant(FLOATS[a.dtype], 0.0))
        builder.store(ir.Constant(FLOATS[a.dtype], 0.0), total)
        with cgutils.for_range(builder, arrays.size(builder, a.shape)) as loop:
            product = builder.fmul(*(builder.load(arrays.at(builder, array, loop.index)) for array in (a, b)))
            builder.store(builder.fadd(builder.load(total), product), total)
        return builder.load(total)

    # Sweeps.

    def _reverse(self, seeds: Sequence[Value], out: ir.Value | None, shadows: dict[int, Block]) -> list[Value]:
        """One sweep. Partials by arrays are added to `shadows`; all are given in the order of the inputs."""
        shadow = self._outputs()
        weights = []
        for k, seed in enumerate(seeds):
            if isinstance(seed, Block):
                weights += [Slot(Activity.CONST, value) for value in (seed.data, *seed.shape)]
            self.builder.store(
                _unit(self.layout.outputs()[k], one=True) if isinstance(seed, Block) else seed, field(self.builder, shadow, k)
            )
        role = Activity.DUPNONEED if out is None else Activity.DUP
        slots = [Slot(role, out or self._outputs(), (shadow,)), Slot(Activity.CONST, self.status)]
        with self._own_copies() as values:
            slots += self._argument_slots(values, Activity.OUT, {n: (given.data,) for n, given in shadows.items()})
            partials = iter(markers.reverse(self.builder, self.flat, slots + weights, recursive=self.primal.recursive))
            self._return_if_raised()
        # Adjoints are free to come out as -0.0 (llvm/signed_zero.py), which nobody wants to read.
        return [
            shadows[n] if leaf.is_array else self.builder.fadd(partial := next(partials), ir.Constant(partial.type, 0.0))
            for n, leaf in enumerate(self.layout.inputs())
        ]

    def _forward(self, tangents: Sequence[Sequence[Value]], out: ir.Value | None) -> list[list[Value]]:
        """One sweep that carries each of `tangents` (one for each input); gives each one's outputs. Arrays among them are to be freed."""
        shadows = [self._outputs() for _ in tangents]
        # The memory of an array that f made is behind a pointer that is needed to free it.
        role = Activity.DUPNONEED if out is None and not any(leaf.is_array for leaf in self.layout.outputs()) else Activity.DUP
        out = out or self._outputs()
        slots = [Slot(role, out, tuple(shadows)), Slot(Activity.CONST, self.status)]
        with self._own_copies() as values, self._own_tangents(tangents) as seeds:
            by_input = enumerate(zip(*seeds, strict=True))
            slots += self._argument_slots(values, Activity.DUP, {n: tuple(_parts(seed)[0] for seed in given) for n, given in by_input})
            markers.forward(self.builder, self.flat, slots, len(tangents))
            self._return_if_raised()
        for k, leaf in enumerate(self.layout.outputs()):
            if leaf.is_array:
                self.memory.free(self._output(out, out, k).data)
        return [[self._output(out, shadow, k) for k in range(len(self.layout.outputs()))] for shadow in shadows]

    def _argument_slots(self, values: Sequence[Value], of_floats: Activity, shadows: dict[int, tuple[ir.Value, ...]]) -> Iterator[Slot]:
        """The primal's arguments as a marker takes them; `values` are the inputs, whose arrays may be copies."""
        for n, value in self._flat_arguments:
            if n is None:
                yield Slot(Activity.CONST, value)
            elif isinstance(value, Block):
                data, *lengths = _parts(values[n])
                yield Slot(Activity.DUP, data, shadows[n])
                yield from (Slot(Activity.CONST, length) for length in lengths)
            else:
                yield Slot(of_floats, value, shadows.get(n, ()))

    def _return_if_raised(self) -> None:
        builder = self.builder
        code, excinfo = (builder.load(field(builder, self.status, k)) for k in range(2))
        return_if_raised(self.context, builder, code, excinfo, self._abandon)
        if self.layout.transform.call is Call.COTANGENT and any(leaf.is_array for leaf in self.layout.outputs()):
            with cgutils.if_unlikely(builder, builder.trunc(builder.load(field(builder, self.status, 2)), ir.IntType(1))):
                self._raise(
                    ArgumentError, f"vjp({self.call.function}): the cotangent must have the shape of what {self.call.function} gives"
                )

    def _abandon(self) -> None:
        """Gives back all memory that is in use."""
        for owner in (*reversed(self._temporary), *self._given_away):
            self.memory.release(owner)

    def _raise(self, error: type[Exception], message: str) -> None:
        self._abandon()
        self.context.call_conv.return_user_exc(self.builder, error, (message,))

    # Values.

    def _given(self) -> list[tuple[ir.Value, Any]]:
        """The primal's arguments as the call gives them, with their types."""
        if self.layout.transform.call is Call.ARGS:
            return list(zip(self.arguments, self.call.argtypes, strict=True))
        elements = cgutils.unpack_tuple(self.builder, self.arguments[0], len(self.call.argtypes[0].types))
        return [*zip(elements, self.call.argtypes[0].types, strict=True), *((None, types.Omitted(d)) for d in self.call.defaults)]

    def _flatten(self) -> Iterator[tuple[int | None, Value]]:
        """Each value of the primal's flat argument list, and which differentiated input it is."""
        for (value, fromty), toty, parameter in zip(self._given(), self.primal.argtypes, self.layout.parameters, strict=True):
            if parameter.tree is None:
                constant = arrays.borrowed(self.context, self.builder, convert(self.context, self.builder, value, fromty, toty), toty)
                for part in self.context.get_arg_packer((toty,)).as_arguments(self.builder, [constant]):
                    yield None, part
            else:
                for leaf in self._leaf_values(parameter.tree, value, fromty):
                    self._inputs.append(leaf)
                    yield len(self._inputs) - 1, leaf

    def _leaf_values(self, tree: Tree, value: ir.Value, fromty: Any) -> Iterator[Value]:
        """The leaves of an argument: floats at their type, arrays in C order."""
        if isinstance(fromty, types.Omitted):
            value, fromty = convert(self.context, self.builder, value, fromty, from_tree(tree)), from_tree(tree)
        if not isinstance(tree, Leaf):
            elements = cgutils.unpack_tuple(self.builder, value, len(tree.children))
            for child, element, element_type in zip(tree.children, elements, fromty.types, strict=True):
                yield from self._leaf_values(child, element, element_type)
        elif not tree.is_array:
            yield self.context.cast(self.builder, value, fromty, from_tree(tree))
        elif fromty.layout == "C" and fromty.dtype.name == tree.dtype:
            yield arrays.from_array(self.context, self.builder, value, fromty)
        else:
            made = self._zeros(tree.dtype, arrays.shape_of(self.context, self.builder, value, fromty))
            arrays.fill(self.context, self.builder, made, value, fromty)
            yield made

    def _seeds(self) -> list[Value]:
        """The leaves of the call's second argument: tangents or a cotangent."""
        seeds = list(self._leaf_values(self.layout.seeds(), self.arguments[1], self.call.argtypes[1]))
        if self.layout.transform.call is Call.TANGENTS:
            return [self._tangent(seed, self._inputs[n]) for n, seed in zip(self.layout.picked_inputs(), seeds, strict=True)]
        return seeds

    def _tangent(self, seed: Value, primal: Value) -> Value:
        if not isinstance(seed, Block):
            return seed
        builder = self.builder
        with cgutils.if_unlikely(builder, builder.not_(arrays.same_shape(builder, seed.shape, primal.shape))):
            self._raise(ArgumentError, f"jvp({self.call.function}): tangents must have the shapes of what they are tangents of")
        # Memory that is its own shadow has no derivative (entrypoints/markers.py): a tangent that is the primal itself has to be a copy.
        same = builder.icmp_unsigned("==", seed.data, primal.data)
        copied = self._zeros(seed.dtype, [builder.select(same, arrays.size(builder, seed.shape), I64(0))])
        arrays.copy(builder, copied, seed.data)
        return Block(seed.dtype, builder.select(same, copied.data, seed.data), seed.shape)

    def _output_shapes(self) -> list[tuple[ir.Value, ...]]:
        """The shapes of the primal's results, empty for floats: the primal is run for them, if there are arrays among them."""
        builder, primal = self.builder, self.primal
        if not any(leaf.is_array for leaf in self.layout.outputs()):
            return [()] * len(self.layout.outputs())
        with self.memory.scope():
            result = self._run_primal()
            shapes = [
                arrays.shape_of(self.context, builder, value, numba_type) if leaf.is_array else ()
                for leaf, value, numba_type in unpack(builder, result, self.layout.result, primal.restype)
            ]
            self.context.nrt.decref(builder, primal.restype, result)
        return shapes

    def _run_primal(self) -> ir.Value:
        builder, primal = self.builder, self.primal
        with self._own_copies() as inputs:
            values = (part for n, value in self._flat_arguments for part in ((value,) if n is None else _parts(inputs[n])))
            status, result = flat.call(self.context, builder, primal, self.layout, values)
            flat.store_status(builder, status, self.status)
            self._return_if_raised()
        return result

    @contextmanager
    def _own_copies(self) -> Iterator[list[Value]]:
        """The inputs; arrays that the primal writes to are copied, so that each sweep starts from the caller's, which stay as they are."""
        if not flat.is_written(self.primal):
            yield self._inputs
            return
        with self._copies(self._inputs) as copies:
            yield copies

    @contextmanager
    def _own_tangents(self, tangents: Sequence[Sequence[Value]]) -> Iterator[list[Sequence[Value]]]:
        """The tangents; where the primal writes to arrays a sweep writes to their tangents, and gets copies."""
        if not flat.is_written(self.primal):
            yield list(tangents)
            return
        with ExitStack() as stack:
            yield [stack.enter_context(self._copies(values)) for values in tangents]

    @contextmanager
    def _copies(self, values: Sequence[Value]) -> Iterator[list[Value]]:
        copies = [self._zeros(value.dtype, value.shape) if isinstance(value, Block) else value for value in values]
        for to, value in zip(copies, values, strict=True):
            if isinstance(to, Block):
                arrays.copy(self.builder, to, value.data)
        yield copies
        for to in reversed(copies):
            if isinstance(to, Block):
                self.memory.release(self._temporary.pop())

    def _zeros(self, dtype: str, shape: Sequence[ir.Value]) -> Block:
        """Memory that is given back when the call ends."""
        made = self.memory.zeros(dtype, shape, self._out_of_memory)
        self._temporary.append(made.owner)
        return made

    def _result(self, dtype: str, shape: Sequence[ir.Value]) -> Block:
        """Memory that is part of the result."""
        made = self.memory.zeros(dtype, shape, self._out_of_memory)
        self._given_away.append(made.owner)
        return made

    def _out_of_memory(self) -> None:
        self._raise(MemoryError, f"{self.call.function}: no memory for an array of its derivative")

    def _outputs(self) -> ir.Value:
        return cgutils.alloca_once(self.builder, flat.outputs_type(self.layout), zfill=True)

    def _output(self, out: ir.Value, shadow: ir.Value, k: int) -> Value:
        """What a forward sweep left of a result in `shadow`. Lengths are the primal's, in `out`."""
        builder, leaf = self.builder, self.layout.outputs()[k]
        place = field(builder, shadow, k)
        if not leaf.is_array:
            return builder.load(place)
        data = builder.bitcast(builder.load(field(builder, place, 0)), FLOATS[leaf.dtype].as_pointer())
        lengths = field(builder, out, k)
        return Block(leaf.dtype, data, tuple(builder.load(field(builder, lengths, axis + 1)) for axis in range(leaf.ndim or 0)))

    def _picked(self, by_input: Sequence[Value]) -> list[Value]:
        return [by_input[n] for n in self.layout.picked_inputs()]

    def _tree_value(self, tree: Tree, values: Iterator[Value]) -> ir.Value:
        typed = (self._typed(value, leaf) for value, leaf in zip(values, leaves(tree), strict=True))
        return fold(tree, typed, self._make_tuple)[0]

    def _typed(self, value: Value, leaf: Leaf) -> tuple[ir.Value, Any]:
        numba_type = from_tree(leaf)
        return (arrays.to_array(self.context, self.builder, value, numba_type) if leaf.is_array else value), numba_type

    def _make_tuple(self, node: Node, children: Sequence[tuple[ir.Value, Any]]) -> tuple[ir.Value, Any]:
        tuple_type = types.BaseTuple.from_types([numba_type for _, numba_type in children], node.named or tuple)
        return self.context.make_tuple(self.builder, tuple_type, [value for value, _ in children]), tuple_type

    def _as(self, value: ir.Value, dtype: str) -> ir.Value:
        wanted = FLOATS[dtype]
        if value.type == wanted:
            return value
        return self.builder.fptrunc(value, wanted) if wanted == ir.FloatType() else self.builder.fpext(value, wanted)


def _parts(value: Value) -> tuple[ir.Value, ...]:
    return (value.data, *value.shape) if isinstance(value, Block) else (value,)


def _unit(leaf: Leaf, *, one: bool) -> ir.Constant:
    return ir.Constant(FLOATS[leaf.dtype], 1.0 if one else 0.0)
