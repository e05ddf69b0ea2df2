"""What each transform asks of Enzyme: which sweeps, seeded how, for any target.

A sweep runs over a flat form of the primal: it takes the primal's values one by one and leaves its results in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from llvmlite import ir

from numba_enzyme.activity import Activity
from numba_enzyme.entrypoints import markers
from numba_enzyme.entrypoints.markers import Slot
from numba_enzyme.model.layout import Layout
from numba_enzyme.model.transform import Call, Mode
from numba_enzyme.model.tree import Leaf

FLOATS: dict[str, ir.Type] = {"float32": ir.FloatType(), "float64": ir.DoubleType()}

# Up to so many inputs, a Jacobian takes a sweep for each column: what is zero in a column is then never computed, and what columns share
# the optimiser finds. Beyond that the code grows too long, and columns go together.
SINGLE_COLUMNS = 16
MAX_WIDTH = 8


# A value for each float, or None where it is zero.
Seeds: TypeAlias = Sequence[ir.Value | None]


@dataclass(frozen=True)
class FlatValue:
    """A value of the primal's flat argument list, and whether it is differentiated."""

    value: ir.Value
    active: bool


class Sweeps:
    """Emits the sweeps of one derivative at `builder`; all values are floats in the layout's order."""

    def __init__(self, builder: ir.IRBuilder, layout: Layout, flat: ir.Function, arguments: Sequence[FlatValue]) -> None:
        self.builder = builder
        self.layout = layout
        self.flat = flat
        self.arguments = arguments
        self.outputs = ir.LiteralStructType([FLOATS[leaf.dtype] for leaf in layout.outputs()])

    def values(self, seeds: Sequence[Seeds]) -> list[ir.Value]:
        """The floats that the derivative gives; `seeds` holds the sets of tangents, None for a zero, or the cotangent of the call."""
        transform = self.layout.transform
        if transform.call is Call.TANGENTS:
            return self._tangents(seeds)
        if transform.jacobian:
            return self._jacobian()
        if transform.call is Call.COTANGENT:
            return self._partials([seed for seed in seeds[0] if seed is not None], None)
        (units,) = self._units(self.layout.outputs())
        if not transform.with_value:
            return self._partials(units, None)
        out = self._memory()
        partials = self._partials(units, out)
        return [self.builder.load(self._field(out, 0)), *partials]

    def _partials(self, seeds: Sequence[ir.Value], out: ir.Value | None) -> list[ir.Value]:
        """The outputs' partials weighted by `seeds`; the outputs' values are left in `out`."""
        sweep = self._reverse if self.layout.mode is Mode.REVERSE else self._weighted_columns
        return self._picked(sweep(seeds, out))

    def _weighted_columns(self, seeds: Sequence[ir.Value], out: ir.Value | None) -> list[ir.Value]:
        """What a reverse sweep gives, by forward sweeps."""
        partials = []
        for leaf, column in zip(self.layout.inputs(), self._columns(out), strict=True):
            total: ir.Value = ir.Constant(FLOATS[leaf.dtype], 0.0)
            for seed, tangent in zip(seeds, column, strict=True):
                total = self.builder.fadd(total, self._as(self.builder.fmul(seed, tangent), FLOATS[leaf.dtype]))
            partials.append(total)
        return partials

    def _jacobian(self) -> list[ir.Value]:
        if self.layout.mode is Mode.REVERSE:
            return [value for row in self._units(self.layout.outputs()) for value in self._picked(self._reverse(row, None))]
        columns, inputs = self._columns(None), self.layout.inputs()
        values = []
        for m in range(len(self.layout.outputs())):
            # A partial has its argument's type; a forward sweep computes it in its output's.
            values += [self._as(columns[n][m], FLOATS[inputs[n].dtype]) for n in self.layout.picked_inputs()]
        return values

    def _tangents(self, seeds: Sequence[Seeds]) -> list[ir.Value]:
        order = self.layout.picked_inputs()
        given = [dict(zip(order, tangents, strict=True)) for tangents in seeds]
        # A sweep by itself leaves out what depends on zero tangents only, which a shared sweep cannot.
        width = 1 if any(seed is None for tangents in seeds for seed in tangents) else MAX_WIDTH
        return [
            value for outputs in self._in_chunks([[by[n] for n in range(len(order))] for by in given], width, None) for value in outputs
        ]

    def _columns(self, out: ir.Value | None) -> list[list[ir.Value]]:
        """All outputs' partials by each input in turn."""
        inputs = self.layout.inputs()
        wide = len(inputs) > SINGLE_COLUMNS
        units: list[Seeds] = [
            [self._unit(leaf, k == n) if wide or k == n else None for k, leaf in enumerate(inputs)] for n in range(len(inputs))
        ]
        return self._in_chunks(units, MAX_WIDTH if wide else 1, out)

    def _in_chunks(self, tangents: Sequence[Seeds], width: int, out: ir.Value | None) -> list[list[ir.Value]]:
        return [outputs for start in range(0, len(tangents), width) for outputs in self._forward(tangents[start : start + width], out)]

    def _reverse(self, seeds: Sequence[ir.Value], out: ir.Value | None) -> list[ir.Value]:
        shadow = self._memory()
        for k, seed in enumerate(seeds):
            self.builder.store(seed, self._field(shadow, k))
        role = Activity.DUPNONEED if out is None else Activity.DUP
        slots = [Slot(role, out or self._memory(), (shadow,))]
        slots += [Slot(Activity.OUT if argument.active else Activity.CONST, argument.value) for argument in self.arguments]
        return markers.reverse(self.builder, self.flat, slots)

    def _forward(self, tangents: Sequence[Seeds], out: ir.Value | None) -> list[list[ir.Value]]:
        """One sweep that carries each of `tangents`: a value for each input, or None to take the input as constant."""
        if all(seed is None for seeds in tangents for seed in seeds):
            return [[ir.Constant(t, 0.0) for t in self.outputs.elements] for _ in tangents]
        shadows = [self._memory() for _ in tangents]
        slots = [Slot(Activity.DUPNONEED if out is None else Activity.DUP, out or self._memory(), tuple(shadows))]
        by_input = iter(zip(*tangents, strict=True))
        for argument in self.arguments:
            given = tuple(v for v in next(by_input) if v is not None) if argument.active else ()
            slots.append(Slot(Activity.DUP if given else Activity.CONST, argument.value, given))
        markers.forward(self.builder, self.flat, slots, len(tangents))
        return [[self.builder.load(self._field(s, k)) for k in range(len(self.outputs.elements))] for s in shadows]

    def _memory(self) -> ir.Value:
        """Zeroed memory for the primal's results or their shadow."""
        with self.builder.goto_entry_block():
            memory = self.builder.alloca(self.outputs)
        self.builder.store(ir.Constant(self.outputs, None), memory)
        return memory

    def _field(self, struct: ir.Value, index: int) -> ir.Value:
        return self.builder.gep(struct, [ir.Constant(markers.I32, 0), ir.Constant(markers.I32, index)], inbounds=True)

    def _picked(self, by_input: Sequence[ir.Value]) -> list[ir.Value]:
        return [by_input[n] for n in self.layout.picked_inputs()]

    def _units(self, leaves: Sequence[Leaf]) -> list[list[ir.Value]]:
        return [[self._unit(leaf, k == n) for k, leaf in enumerate(leaves)] for n in range(len(leaves))]

    @staticmethod
    def _unit(leaf: Leaf, one: bool) -> ir.Constant:
        return ir.Constant(FLOATS[leaf.dtype], 1.0 if one else 0.0)

    def _as(self, value: ir.Value, wanted: ir.Type) -> ir.Value:
        if value.type == wanted:
            return value
        return self.builder.fptrunc(value, wanted) if wanted == ir.FloatType() else self.builder.fpext(value, wanted)
