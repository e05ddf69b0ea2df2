"""The table of contents: the stages of a build, in their order.

    specialization -> primal IR -> entry points that call Enzyme -> one opt run -> finished code

What was built before, in this process or another, does not come here (recall.py).

A derivative that is itself differentiated goes through the first half only: its entry point, markers and all, is part of the primal of
the outer derivative, and one run of Enzyme resolves both.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

import llvmlite.binding as ll
from llvmlite import ir

from numba_enzyme import cache, recall
from numba_enzyme.adapters import host_target, vector_math
from numba_enzyme.entrypoints import host, region_entry
from numba_enzyme.entrypoints.flat import HostPrimal
from numba_enzyme.enzyme import keep_ir, run, toolchain
from numba_enzyme.enzyme.diagnosis import explained
from numba_enzyme.errors import DifferentiationError
from numba_enzyme.frontend import cpu
from numba_enzyme.llvm import dialect, region
from numba_enzyme.llvm.memory_types import with_memory_types, without_memory_types
from numba_enzyme.llvm.signed_zero import without_signed_zero_adjoints
from numba_enzyme.llvm.vector_math import with_vector_forms
from numba_enzyme.model.transform import REVERSE_MARKER
from numba_enzyme.rules import application

if TYPE_CHECKING:
    from numba_enzyme.enzyme.toolchain import Toolchain
    from numba_enzyme.model.specialization import Specialization

lower = cpu.lower
holds_reverse_sweep = cpu.holds_reverse_sweep

_serial = itertools.count()

_FOR_ENZYME = (application.marked_inactive, application.marked_floats, with_memory_types)

# Callers inline a derivative whatever its size: Numba's inliner has a budget, beyond which a loop would silently keep a call.
_AFTER_ENZYME = (
    without_memory_types,
    dialect.without_invariance,
    dialect.without_errno,
    without_signed_zero_adjoints,
    dialect.inlined_everywhere,
    dialect.without_empty_groups,
)


def emit(specialization: Specialization) -> Any:
    """The derivative as code of the primal target, not yet differentiated: what a function that is itself differentiated calls."""
    return host_target.primal_result(*_emitted(specialization, finished=False))


def _emitted(specialization: Specialization, *, finished: bool) -> tuple[Any, Any]:
    """The entry point of `specialization` over its primal: its library and description."""
    fndesc = _describe(specialization, f"primal{next(_serial)}")
    primal = specialization.primal
    module = ir.Module(fndesc.unique_name)
    host.emit(
        host_target.primal_context(),
        module,
        HostPrimal(primal.fndesc.llvm_func_name, tuple(primal.signature.args), primal.signature.return_type, cpu.is_recursive(primal)),
        specialization.layout,
        host.HostCall(
            fndesc.llvm_func_name,
            specialization.function,
            specialization.argnames,
            specialization.argtypes,
            specialization.restype,
            specialization.defaults,
        ),
        finished=finished,
    )
    return host_target.primal_library(module, fndesc, primal), fndesc


def build(specialization: Specialization, quick: str | None) -> Any:
    """The derivative that `specialization` describes, as a compiled function of Numba's CPU target; kept on disk, also under `quick`."""
    tools = toolchain.find()
    library, emitted = _emitted(specialization, finished=True)
    module = application.apply(cpu.module_of(library))
    text = dialect.rewritten(str(module), (*_FOR_ENZYME, *dialect.TO_LLVM_15, application.freed_by_call))
    key = recall.key("ir", f"{specialization.fastmath} {dialect.with_stable_names(text)}")
    fndesc = _describe(specialization, recall.tag(key))
    # The symbol says what the code is: callers keep it in their own caches, where a number would come to mean another function.
    text = text.replace(emitted.llvm_func_name, fndesc.llvm_func_name)
    if library.has_dynamic_globals:  # addresses of this process
        return _differentiated(text, fndesc, specialization, tools)
    with cache.lock(key):
        code = cache.load(key)
        result = host_target.loaded(code, fndesc) if code else _differentiated(text, fndesc, specialization, tools)
        if code is None:
            cache.store(key, host_target.saved(result))
    if quick:
        recall.remember(quick, key, specialization)
    return result


def _differentiated(text: str, fndesc: Any, specialization: Specialization, tools: Toolchain) -> Any:
    keep_ir.keep(fndesc.unique_name, "before", text)
    try:
        bitcode = run.differentiate(tools, text, fndesc.llvm_func_name, fastmath=bool(specialization.fastmath))
    except DifferentiationError as error:
        raise explained(error, specialization.function) from None
    # Metadata, names and much else live as long as LLVM's context: the one that Numba uses never dies, this one does with the module.
    context = ll.create_context()
    module = ll.parse_bitcode(bitcode, context)
    application.resolve(module, context)
    taken = functools.partial(dialect.with_liberties, flags=specialization.fastmath)
    offered = functools.partial(with_vector_forms, symbols=vector_math.symbols())
    finished = dialect.rewritten(str(module), (taken, *_AFTER_ENZYME, offered))
    keep_ir.keep(fndesc.unique_name, "after", finished)
    if REVERSE_MARKER in text and region.asks_for_memory(finished):
        return host_target.host_result(_in_region(finished, context, fndesc, specialization.function), fndesc)
    return host_target.host_result(ll.parse_assembly(region.without_marks(finished), context), fndesc)


def _in_region(finished: str, context: ll.ContextRef, fndesc: Any, function: str) -> ll.ModuleRef:
    """The module `finished` with all memory from a region, and the entry point that opens and closes it."""
    symbol = fndesc.llvm_func_name
    body = f"{symbol}.body"
    module = ll.parse_assembly(region.in_region(finished, symbol, body), context)
    entry = region_entry.emit(host_target.primal_context(), symbol, body, fndesc, function)
    module.link_in(ll.parse_assembly(str(entry), context))
    module.get_function(body).linkage = "internal"
    application.link_region(module, context)
    return module


def _describe(specialization: Specialization, tag: str) -> Any:
    return host_target.describe(specialization.name, tag, specialization.argnames, specialization.argtypes, specialization.restype)
