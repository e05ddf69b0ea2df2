"""Adds to a module the rules for what it calls."""

from __future__ import annotations

import functools
import re
from importlib import resources
from typing import Any

import llvmlite.binding as ll
from llvmlite import ir
from numba.core import cgutils, types

from numba_enzyme.adapters import host_target, primal_target
from numba_enzyme.model.transform import REVERSE_MARKER
from numba_enzyme.rules.special import FUNCTIONS

# Functions of libm that have points where Enzyme's derivative is not a number, and what is called in their place.
_GUARDED = {name + suffix: f"numba_enzyme_guarded_{name}{suffix}" for name in ("atan2", "cbrt", "hypot", "tanh") for suffix in ("", "f")}

_GUARDED_POW = {"double": "numba_enzyme_guarded_pow", "float": "numba_enzyme_guarded_powf"}

_DEFINITIONS = ("reshape.ll", "special.ll")

# What Enzyme is to take as constant. Nothing of Python's is: a value that comes back from Python would lose its derivative in silence.
_INACTIVE = r"numba_enzyme_(?:gamma|lgamma|(?:atan2|cbrt|constant|frexp|hypot|nextafter|pow|step)f?)"
_INACTIVE_DECLARATION = rf"^declare [^\n]*?(?P<number>double|float) (?P<rest>@{_INACTIVE}\([^\n]*\))[^\n]*$"


def apply(module: ll.ModuleRef) -> ll.ModuleRef:
    """`module` with what Enzyme does not know, or would get wrong, said in other terms."""
    text = str(module)
    guarded = guarded_powers(text)
    if guarded != text:
        module = ll.parse_assembly(guarded)
    for function in [function for function in module.functions if function.is_declaration and function.name in _GUARDED]:
        function.name = _GUARDED[function.name]
    for file in ("memory_kept.ll" if REVERSE_MARKER in text else "memory_counted.ll", *_DEFINITIONS):
        if _undefined(module) & _defined(file):
            module.link_in(_parsed(file), preserve=True)
    for symbol in _undefined(module) & FUNCTIONS.keys():
        definition, library = _from_python(symbol)
        module.link_in(primal_target.linked_module(library), preserve=True)
        module.link_in(ll.parse_assembly(str(definition)))
    return module


def guarded_powers(ir: str) -> str:
    """`ir` with powers guarded whose exponent is not written as a number. Where it is, `pow` is right, and faster without the guard."""
    guarded, found = re.subn(
        r"call (double|float) @(?:llvm\.pow\.f(?:64|32)|powf?)\((\w+ [^,]+), (\w+ %)",
        lambda call: f"call {call[1]} @{_GUARDED_POW[call[1]]}({call[2]}, {call[3]}",
        ir,
    )
    if not found:
        return ir
    declarations = [f"declare {t} @{name}({t}, {t})" for t, name in _GUARDED_POW.items() if f"@{name}(" in guarded]
    return "\n".join([guarded, *declarations, ""])


def marked_inactive(ir: str) -> str:
    """`ir` with the declarations marked that Enzyme is to take as constant, and said to give floats, which it cannot see from them."""

    def marked(declaration: re.Match[str]) -> str:
        number = declaration["number"]
        return f'declare "enzyme_type"="{{[-1]:Float@{number}}}" {number} {declaration["rest"]} "enzyme_inactive" nofree nounwind'

    return re.sub(_INACTIVE_DECLARATION, marked, ir, flags=re.MULTILINE)


def marked_floats(ir: str) -> str:
    """`ir` with pointers to floats marked that entry points hand over: Enzyme's type analysis cannot see what is only copied."""

    def marked(pointer: re.Match[str]) -> str:
        number = {"float32": "float", "float64": "double"}[pointer["dtype"]]
        return f'ptr "enzyme_type"="{{[-1]:Pointer, [-1,-1]:Float@{number}}}" {pointer["rest"]}'

    def marked_line(line: re.Match[str]) -> str:
        return re.sub(r"\bptr (?P<rest>(?:\w+ )*%\"?(?P<dtype>float32|float64)_data)", marked, line[0])

    return re.sub(r"^define internal void @\"?flat[^\n]*", marked_line, ir, flags=re.MULTILINE)


def freed_by_call(ir: str) -> str:
    """`ir` with memory that is counted freed by a call that forward sweeps keep."""
    return re.sub(r"^(define [^\n]*@numba_enzyme_release\([^\n]*) alwaysinline", r"\1 noinline", ir, flags=re.MULTILINE)


def resolve(module: ll.ModuleRef, context: ll.ContextRef) -> None:
    """Gives the names that were hidden from Enzyme their meaning; `context` is the module's."""
    if _undefined(module) & _defined("resolved.ll"):
        _link(module, "resolved.ll", context)


def link_region(module: ll.ModuleRef, context: ll.ContextRef) -> None:
    """Defines what a module calls that has its memory from a region."""
    _link(module, "region.ll", context)


def _link(module: ll.ModuleRef, file: str, context: ll.ContextRef) -> None:
    definitions = ll.parse_assembly(_text(file), context)
    for function in definitions.functions:
        if not function.is_declaration:
            # Every derivative brings its own; linked into one caller they must not clash.
            function.linkage = "linkonce_odr"
    module.link_in(definitions, preserve=True)


def _from_python(symbol: str) -> tuple[ir.Module, Any]:
    """A module that defines `symbol` by the Python function for it, and the library of that function. float32 goes through float64."""
    compiled = primal_target.compile_primal(_dispatcher(symbol), (types.float64,))
    module = ir.Module(symbol)
    wide, own = ir.DoubleType(), ir.FloatType() if symbol.endswith("f") else ir.DoubleType()
    function = ir.Function(module, ir.FunctionType(own, [own]), symbol)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    (x,) = function.args if own == wide else [builder.fpext(function.args[0], wide)]
    signature, convention = compiled.signature, host_target.primal_context().call_conv
    declared = convention.get_function_type(signature.return_type, signature.args)
    callee = cgutils.get_or_insert_function(module, declared, compiled.fndesc.llvm_func_name)
    # The status is left aside: these functions raise nothing.
    _, value = convention.call_function(builder, callee, signature.return_type, signature.args, [x])
    builder.ret(value if own == wide else builder.fptrunc(value, own))
    return module, compiled.library


@functools.cache
def _dispatcher(symbol: str) -> primal_target.PrimalDispatcher:
    return primal_target.PrimalDispatcher(FUNCTIONS[symbol], targetoptions={"nopython": True, "error_model": "numpy"})


def _undefined(module: ll.ModuleRef) -> set[str]:
    return {function.name for function in module.functions if function.is_declaration}


@functools.cache
def _defined(file: str) -> frozenset[str]:
    return frozenset(function.name for function in _parsed(file).functions if not function.is_declaration)


def _parsed(file: str) -> ll.ModuleRef:
    return ll.parse_assembly(_text(file))


@functools.cache
def _text(file: str) -> str:
    return resources.files(__package__).joinpath(file).read_text()
