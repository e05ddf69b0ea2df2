"""Entry points for CUDA, in C's calling convention: one function that takes and gives values, and around it the form of the call.

Three functions are stacked. `flat` calls the primal and leaves its results in memory: the form that Enzyme differentiates. The core takes
the primal's values and the seeds one by one, asks for the sweeps of `flat`, and gives what they give by value; a transform of this
derivative has it as its primal. The entry point reads the core's arguments from those of the call and writes results where the call
wants them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from numba_enzyme.entrypoints.sweeps import FLOATS, FlatValue, Sweeps
from numba_enzyme.model.device_call import Argument, DeviceCall, Role
from numba_enzyme.model.layout import Layout, Parameter
from numba_enzyme.model.transform import Call
from numba_enzyme.model.tree import Tree, leaves

I64 = ir.IntType(64)
BYTES = ir.IntType(8).as_pointer()
# The symbols' place for a digest of the code, which is known when it is written.
DIGEST = "DIGEST"
ENTRY = f"ne_{DIGEST}_call"
CORE = f"ne_{DIGEST}_core"


@dataclass(frozen=True)
class Emitted:
    """Text that holds markers; `arguments` and `results` are the LLVM types of the core."""

    text: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]


def emit(
    symbol: str, arguments: Sequence[str], results: Sequence[str], layout: Layout, call: DeviceCall, constants: Sequence[int]
) -> Emitted:
    """An entry point over the primal `symbol`, whose values have these LLVM types. `constants` counts the values of each parameter."""
    module = ir.Module("")
    flat = _flat(module, symbol, [llvm_type(t) for t in arguments], [llvm_type(t) for t in results], layout)
    core = _core(module, flat, layout, call, constants)
    _Entry(module, core, layout, call, constants).emit()
    # llvmlite sets the brace on a line of its own, LLVM does not.
    return Emitted(str(module).replace("\n{\n", " {\n"), tuple(str(p.type) for p in core.args), _result_types(core.ftype.return_type))


def llvm_type(text: str) -> ir.Type:
    """A scalar type by its name in LLVM."""
    named = {"double": ir.DoubleType(), "float": ir.FloatType()}
    return named[text] if text in named else ir.IntType(int(text[1:]))


def _result_types(returns: ir.Type) -> tuple[str, ...]:
    return tuple(str(t) for t in returns.elements) if isinstance(returns, ir.LiteralStructType) else (str(returns),)


def _returning(types: Sequence[ir.Type]) -> ir.Type:
    return types[0] if len(types) == 1 else ir.LiteralStructType(types)


def _return(builder: ir.IRBuilder, values: Sequence[ir.Value]) -> None:
    if len(values) == 1:
        builder.ret(values[0])
        return
    struct = ir.Constant(ir.LiteralStructType([v.type for v in values]), ir.Undefined)
    for k, value in enumerate(values):
        struct = builder.insert_value(struct, value, k)
    builder.ret(struct)


def _unpacked(builder: ir.IRBuilder, value: ir.Value) -> list[ir.Value]:
    if isinstance(value.type, ir.LiteralStructType):
        return [builder.extract_value(value, k) for k in range(len(value.type.elements))]
    return [value]


def _flat(module: ir.Module, symbol: str, arguments: Sequence[ir.Type], results: Sequence[ir.Type], layout: Layout) -> ir.Function:
    primal = ir.Function(module, ir.FunctionType(_returning(results), arguments), symbol)
    outputs = ir.LiteralStructType([FLOATS[leaf.dtype] for leaf in layout.outputs()])
    flat = ir.Function(module, ir.FunctionType(ir.VoidType(), [outputs.as_pointer(), *arguments]), f"ne_{DIGEST}_flat")
    flat.linkage = "internal"
    flat.args[0].add_attribute("noalias")
    builder = ir.IRBuilder(flat.append_basic_block("entry"))
    values = _unpacked(builder, builder.call(primal, flat.args[1:]))
    for k, (value, wanted) in enumerate(zip(values, outputs.elements, strict=True)):
        stored = builder.sitofp(value, wanted) if isinstance(value.type, ir.IntType) else value
        builder.store(stored, builder.gep(flat.args[0], [ir.IntType(32)(0), ir.IntType(32)(k)], inbounds=True))
    builder.ret_void()
    return flat


def _core(module: ir.Module, flat: ir.Function, layout: Layout, call: DeviceCall, counts: Sequence[int]) -> ir.Function:
    arguments = list(flat.ftype.args[1:])
    seeds = [FLOATS[leaf.dtype] for leaf in _seed_leaves(layout)]
    sets = call.sets
    results = [FLOATS[leaf.dtype] for leaf in leaves(layout.returned())] * sets
    core = ir.Function(module, ir.FunctionType(_returning(results), arguments + seeds * sets), CORE)
    core.linkage = "internal"
    core.attributes.add("alwaysinline")
    builder = ir.IRBuilder(core.append_basic_block("entry"))
    active = [p.tree is not None for p, count in zip(layout.parameters, counts, strict=True) for _ in range(count)]
    values = [FlatValue(value, used) for value, used in zip(core.args[: len(arguments)], active, strict=True)]
    zeros = call.zeros or (False,) * (len(seeds) * sets)
    given = [None if zero else value for value, zero in zip(core.args[len(arguments) :], zeros, strict=True)]
    by_set = [given[n * len(seeds) : (n + 1) * len(seeds)] for n in range(sets)]
    _return(builder, Sweeps(builder, layout, flat, values).values(by_set))
    return core


def _seed_leaves(layout: Layout) -> tuple[Any, ...]:
    if layout.transform.call is Call.TANGENTS:
        return leaves(layout.tangents())
    return layout.outputs() if layout.transform.call is Call.COTANGENT else ()


@dataclass
class _Array:
    """An array argument: where its elements begin, and how many elements lie between its rows."""

    builder: ir.IRBuilder
    base: ir.Value
    row: ir.Value

    def element(self, row: ir.Value, column: int) -> ir.Value:
        index = self.builder.add(self.builder.mul(row, self.row), I64(column))
        return self.builder.gep(self.base, [index])


class _Entry:
    """The form of one call around a core."""

    def __init__(self, module: ir.Module, core: ir.Function, layout: Layout, call: DeviceCall, counts: Sequence[int]) -> None:
        self.core = core
        self.layout = layout
        self.call = call
        self.counts = counts
        starts = [sum(counts[:n]) for n in range(len(counts))]
        self.primal_types = [list(core.ftype.args[s : s + c]) for s, c in zip(starts, counts, strict=True)]
        types = [t for argument in call.arguments for t in self._types(argument)]
        returns = ir.VoidType() if call.out else core.ftype.return_type
        self.function = ir.Function(module, ir.FunctionType(returns, types), ENTRY)
        self.function.attributes.add("alwaysinline")
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))

    def emit(self) -> None:
        builder = self.builder
        given = iter(self.function.args)
        read = [(argument, [next(given) for _ in self._types(argument)]) for argument in self.call.arguments]
        arrays = {id(argument): self._array(argument, fields) for argument, fields in read if argument.ndim}
        out = next((arrays[id(a)] for a, _ in read if a.role is Role.OUT), None)
        if not self.call.by_rows:
            values = self._call(read, arrays, I64(0))
            self._write(out, values, I64(0))
            return
        rows = next(fields[3] for argument, fields in read if argument.role is Role.COTANGENT)
        loop, body, done = (builder.append_basic_block(name) for name in ("rows", "row", "done"))
        before = builder.block
        builder.branch(loop)
        builder.position_at_end(loop)
        row = builder.phi(I64)
        row.add_incoming(I64(0), before)
        builder.cbranch(builder.icmp_signed("<", row, rows), body, done)
        builder.position_at_end(body)
        values = self._call(read, arrays, row)
        for k, value in enumerate(values):
            builder.store(value, out.element(row, k) if out else value)
        row.add_incoming(builder.add(row, I64(1)), builder.block)
        builder.branch(loop)
        builder.position_at_end(done)
        builder.ret_void()

    def _types(self, argument: Argument) -> list[ir.Type]:
        if argument.ndim:
            # A view of memory: allocated and aligned pointer, offset, sizes, strides.
            return [BYTES, BYTES, *[I64] * (1 + 2 * argument.ndim)]
        return list(self._value_types(argument))

    def _value_types(self, argument: Argument) -> Sequence[ir.Type]:
        if argument.role is Role.PRIMAL:
            return self.primal_types[argument.parameter]
        if argument.role is Role.TANGENT:
            return [FLOATS[leaf.dtype] for leaf in leaves(_tree(self.layout.parameters[argument.parameter]))]
        return [FLOATS[leaf.dtype] for leaf in self.layout.outputs()]

    def _array(self, argument: Argument, fields: Sequence[ir.Value]) -> _Array:
        builder = self.builder
        base = builder.bitcast(fields[1], FLOATS[argument.dtype].as_pointer())
        row = fields[3 + argument.ndim] if argument.ndim == 2 else I64(0)
        return _Array(builder, builder.gep(base, [fields[2]]), row)

    def _call(self, read: Sequence[tuple[Argument, list[ir.Value]]], arrays: dict[int, _Array], row: ir.Value) -> list[ir.Value]:
        def values(argument: Argument, fields: list[ir.Value]) -> Iterator[ir.Value]:
            if not argument.ndim:
                yield from fields
                return
            line = row if argument.ndim == 2 else I64(0)
            for k in range(len(self._value_types(argument))):
                yield self.builder.load(arrays[id(argument)].element(line, k))

        # In the order of the core: primals by parameter, then the seeds as they stand in the call.
        primals = sorted((item for item in read if item[0].role is Role.PRIMAL), key=lambda item: item[0].parameter)
        seeds = [item for item in read if item[0].role in (Role.TANGENT, Role.COTANGENT)]
        return _unpacked(self.builder, self.builder.call(self.core, [v for item in [*primals, *seeds] for v in values(*item)]))

    def _write(self, out: _Array | None, values: Sequence[ir.Value], first: ir.Value) -> None:
        argument = self.call.out
        if out is None or argument is None:
            _return(self.builder, values)
            return
        rows = self._rows() if argument.ndim == 2 else 1
        width = len(values) // rows
        for k, value in enumerate(values):
            row = self.builder.add(first, I64(k // width))
            self.builder.store(value, out.element(row, k % width))
        self.builder.ret_void()

    def _rows(self) -> int:
        return len(self.layout.outputs()) if self.layout.transform.jacobian else self.call.sets


def _tree(parameter: Parameter) -> Tree:
    if parameter.tree is None:
        raise AssertionError(f"{parameter.name} is constant")
    return parameter.tree
