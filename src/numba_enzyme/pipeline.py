"""The table of contents: the stages of a build, in their order.

    specialization -> primal IR -> entry points that call Enzyme -> one opt run -> finished code

A derivative that is itself differentiated goes through the first half only: its entry point, markers and all, is part of the primal of
the outer derivative, and one run of Enzyme resolves both.
"""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import llvmlite.binding as ll
from llvmlite import ir

from numba_enzyme.adapters import host_target
from numba_enzyme.enzyme import keep_ir, run, toolchain
from numba_enzyme.enzyme.diagnosis import explained
from numba_enzyme.entrypoints import host
from numba_enzyme.errors import DifferentiationError
from numba_enzyme.frontend import cpu
from numba_enzyme.llvm import dialect
from numba_enzyme.llvm.signed_zero import without_signed_zero_adjoints
from numba_enzyme.model.specialization import Specialization
from numba_enzyme.rules import application

lower = cpu.lower

_serial = itertools.count()


def emit(specialization: Specialization) -> Any:
    """The entry point of `specialization` over its primal, not yet differentiated: code of the primal target."""
    fndesc = _describe(specialization, f"primal{next(_serial)}")
    primal = specialization.primal
    module = ir.Module(fndesc.unique_name)
    host.emit(
        host_target.primal_context(),
        module,
        host.HostPrimal(primal.fndesc.llvm_func_name, tuple(primal.signature.args), primal.signature.return_type),
        specialization.layout,
        host.HostCall(
            fndesc.llvm_func_name, specialization.argnames, specialization.argtypes, specialization.restype, specialization.defaults
        ),
    )
    return host_target.primal_result(module, fndesc, primal)


def build(specialization: Specialization) -> Any:
    """The derivative that `specialization` describes, as a compiled function of Numba's CPU target."""
    emitted = emit(specialization)
    module = cpu.module_of(emitted)
    application.apply(module)
    text = dialect.rewritten(application.marked_inactive(str(module)))
    tools = toolchain.find()
    digest = hashlib.sha256(f"{tools.fingerprint}\n{text}".encode()).hexdigest()[:24]
    fndesc = _describe(specialization, digest)
    # The symbol says what the code is: callers keep it in their own caches, where a number would come to mean another function.
    text = text.replace(emitted.fndesc.llvm_func_name, fndesc.llvm_func_name)
    keep_ir.keep(specialization.name, digest, "before", text)
    try:
        bitcode = run.differentiate(tools, text, fndesc.llvm_func_name, specialization.fastmath)
    except DifferentiationError as error:
        raise explained(error, specialization.function) from None
    keep_ir.keep_bitcode(specialization.name, digest, "after", bitcode)
    finished = ll.parse_assembly(without_signed_zero_adjoints(str(ll.parse_bitcode(bitcode))))
    application.resolve(finished)
    return host_target.host_result(finished, fndesc)


def _describe(specialization: Specialization, tag: str) -> Any:
    return host_target.describe(specialization.name, tag, specialization.argnames, specialization.argtypes, specialization.restype)
