"""The entry point around a derivative that needs memory: it opens the region that all of it comes from, and closes it.

When memory runs out in the middle of a sweep there is no way back through code that Enzyme wrote; the region knows a way around it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from numba_enzyme.entrypoints.markers import I32, I64, POINTER
from numba_enzyme.errors import TapeMemoryError

# Small tapes need no more than this, and no `malloc`.
_ON_STACK = 1024

# As `%region` in rules/region.ll, with the way around behind four numbers.
_WAY = 4
_REGION = ir.LiteralStructType([I64] * _WAY + [ir.ArrayType(I64, 64)])


def emit(context: Any, symbol: str, body: str, fndesc: Any, function: str) -> ir.Module:
    """A module with the entry point `symbol`, described by `fndesc`, which calls `body` with a region and its own arguments.

    `function` is what the primal is called in messages.
    """
    convention = context.call_conv
    module = ir.Module(symbol)
    entry_type = convention.get_function_type(fndesc.restype, fndesc.argtypes)
    entry = ir.Function(module, entry_type, symbol)
    convention.decorate_function(entry, fndesc.args, fndesc.argtypes, noalias=False)
    inner = ir.Function(module, ir.FunctionType(I32, [POINTER, *entry_type.args]), body)
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    region = builder.bitcast(_aligned(builder, _REGION), POINTER)
    stack = builder.bitcast(_aligned(builder, ir.ArrayType(ir.IntType(8), _ON_STACK)), POINTER)
    builder.call(_declared(module, "numba_enzyme_region_open", ir.VoidType(), POINTER, POINTER, I64), [region, stack, I64(_ON_STACK)])
    set_way = _declared(module, "_setjmp", I32, POINTER)
    set_way.attributes.add("returns_twice")
    close = _declared(module, "numba_enzyme_region_close", ir.VoidType(), POINTER)
    came_back = builder.call(set_way, [builder.gep(region, [I64(_WAY * 8)])])
    with cgutils.if_unlikely(builder, builder.icmp_unsigned("!=", came_back, I32(0))):
        builder.call(close, [region])
        convention.return_user_exc(builder, TapeMemoryError, (function,))
    code = builder.call(inner, [region, *entry.args])
    builder.call(close, [region])
    builder.ret(code)
    return module


def _aligned(builder: ir.IRBuilder, ir_type: ir.Type) -> ir.Value:
    place = cgutils.alloca_once(builder, ir_type)
    place.align = 16
    return place


def _declared(module: ir.Module, name: str, returns: ir.Type, *arguments: ir.Type) -> ir.Function:
    return ir.Function(module, ir.FunctionType(returns, arguments), name)
