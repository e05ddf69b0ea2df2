"""Emits `__enzyme_*` calls, for any target.

A marker call is variadic: a constant global that names an argument's activity stands before each argument, and Enzyme reads the list
when it replaces the call by the code of a sweep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from llvmlite import ir

from numba_enzyme.activity import Activity
from numba_enzyme.model.transform import FORWARD_MARKER, REVERSE_MARKER

if TYPE_CHECKING:
    from collections.abc import Sequence

I32 = ir.IntType(32)
I64 = ir.IntType(64)
POINTER = ir.IntType(8).as_pointer()

# Memory without a derivative has no shadow: Enzyme lets it stand for its own. Where a pointer leads to such memory on one path and to
# differentiated memory on another (`c = a if x > 0 else b`), it would read values as tangents and add adjoints to constants. With this
# keyword a sweep compares the two pointers when it runs. Where it can be told beforehand, nothing of that is left in the code.
_TELL_MEMORY_APART = "enzyme_runtime_activity"


@dataclass(frozen=True)
class Slot:
    """One argument of the differentiated function, with its shadows if its activity has any."""

    activity: Activity
    value: ir.Value
    shadows: tuple[ir.Value, ...] = ()


def reverse(builder: ir.IRBuilder, primal: ir.Function, slots: Sequence[Slot], *, recursive: bool = False) -> list[ir.Value]:
    """Calls the reverse sweep of `primal`, whose results leave through memory; gives the partials of the OUT slots in order."""
    # This plugin's reverse sweeps of functions that call themselves are wrong if they tell memory apart at run time.
    options = [] if recursive else [_keyword(builder, _TELL_MEMORY_APART)]
    partials = [slot.value.type for slot in slots if slot.activity is Activity.OUT]
    returns = ir.LiteralStructType(partials) if partials else ir.VoidType()
    call = _call(builder, REVERSE_MARKER, returns, primal, options, slots)
    return [builder.extract_value(call, k) for k in range(len(partials))]


def forward(builder: ir.IRBuilder, primal: ir.Function, slots: Sequence[Slot], width: int) -> None:
    """Calls the forward sweep of `primal` with `width` shadows for each DUP slot; tangents leave through the shadows of its outputs."""
    options: list[ir.Value] = [_keyword(builder, _TELL_MEMORY_APART)]
    if width > 1:
        options += [_keyword(builder, "enzyme_width"), ir.Constant(I64, width)]
    _call(builder, FORWARD_MARKER, ir.VoidType(), primal, options, slots)


def _call(
    builder: ir.IRBuilder, marker: str, returns: ir.Type, primal: ir.Function, options: Sequence[ir.Value], slots: Sequence[Slot]
) -> ir.Instruction:
    arguments = [builder.bitcast(primal, POINTER), *options]
    for slot in slots:
        arguments += [_keyword(builder, slot.activity.value), slot.value, *slot.shadows]
    module = builder.module
    declared = ir.FunctionType(returns, [POINTER], var_arg=True)
    # Enzyme knows a marker by how its name begins; a marker has one return type, so each call declares its own.
    return builder.call(ir.Function(module, declared, module.get_unique_name(f"{marker}_{primal.name}")), arguments)


def _keyword(builder: ir.IRBuilder, name: str) -> ir.Value:
    """Enzyme reads a keyword from the name of the global that is loaded."""
    module = builder.module
    if name not in module.globals:
        variable = ir.GlobalVariable(module, I32, name)
        variable.linkage = "external"
    return builder.load(module.globals[name])
