"""The table of contents: the stages of a build, in their order.

    specialization -> primal IR -> entry points that call Enzyme -> one opt run -> finished code

A derivative that is itself differentiated goes through the first half only: its entry point, markers and all, is part of the primal of
the outer derivative, and one run of Enzyme resolves both.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as ll
from llvmlite import ir

from numba_enzyme.adapters import host_target
from numba_enzyme.backend import cuda as backend_cuda
from numba_enzyme.entrypoints import device, host
from numba_enzyme.enzyme import keep_ir, run, toolchain
from numba_enzyme.enzyme.diagnosis import explained
from numba_enzyme.errors import DifferentiationError
from numba_enzyme.frontend import cpu, cuda
from numba_enzyme.frontend.cuda import DevicePrimal
from numba_enzyme.llvm import dialect, nvvm, tape, typed
from numba_enzyme.llvm.signed_zero import without_signed_zero_adjoints, without_signed_zero_sums
from numba_enzyme.model.device_call import DeviceSpecialization
from numba_enzyme.model.specialization import Specialization
from numba_enzyme.rules import application, libdevice

lower = cpu.lower
lower_device = cuda.lower

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


# The same stages for CUDA, where every one of them works on text.

_CUDA_HEAD = (
    'target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-'
    'v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"\ntarget triple = "nvptx64-nvidia-cuda"\n'
)

# What device code may call while it is differentiated itself: its text is then wanted again.
_emitted: dict[str, DeviceEmitted] = {}


@dataclass(frozen=True)
class DeviceEmitted:
    """A derivative that has not been differentiated yet. `core` is what a transform of it takes as its primal."""

    specialization: DeviceSpecialization
    symbol: str
    core: DevicePrimal


def emit_device(specialization: DeviceSpecialization) -> DeviceEmitted:
    """The entry point of `specialization` over its primal."""
    primal, layout = specialization.primal, specialization.layout
    made = device.emit(primal.symbol, primal.arguments, primal.results, layout, specialization.call, specialization.counts)
    digest = hashlib.sha256(f"{primal.symbol}\n{specialization.tape_bytes}\n{made.text}".encode()).hexdigest()[:16]
    own = typed.parts(made.text.replace(device.DIGEST, digest))
    module = typed.merged([primal.module, own])
    core = DevicePrimal(module, device.CORE.replace(device.DIGEST, digest), made.arguments, made.results, None)
    emitted = DeviceEmitted(specialization, device.ENTRY.replace(device.DIGEST, digest), core)
    return _emitted.setdefault(emitted.symbol, emitted)


def differentiate_device(emitted: DeviceEmitted) -> tuple[str, str]:
    """The module that `emitted` needs, before Enzyme and after it, under the names of libm."""
    modules = [*_with_callees(emitted.core.module), typed.parts(tape.GROWTH)]
    text = libdevice.prepared(typed.joined(_CUDA_HEAD, modules))
    specialization = emitted.specialization
    keep_ir.keep(specialization.name, emitted.symbol, "before", text)
    try:
        after = run.differentiate_typed(toolchain.find(), text, [emitted.symbol], fastmath=specialization.fastmath)
    except DifferentiationError as error:
        raise explained(error, specialization.function) from None
    keep_ir.keep(specialization.name, emitted.symbol, "after", after)
    return text, without_signed_zero_sums(without_signed_zero_adjoints(after))


def finish_device(emitted: DeviceEmitted, after: str) -> str:
    """What Enzyme left, with everything that was hidden from it or asked for by it; still under the names of libm."""
    specialization = emitted.specialization
    text = tape.in_local_memory(after, emitted.symbol, f"{specialization.name} of {specialization.function}", specialization.tape_bytes)
    return libdevice.resolved(text)


def build_device(emitted: DeviceEmitted, cc: tuple[int, int]) -> bytes:
    """LTO IR of a derivative for one compute capability."""
    specialization = emitted.specialization
    _, after = differentiate_device(emitted)
    fast = libdevice.is_fast(typed.joined("", _with_callees(emitted.core.module)))
    finished = nvvm.rewritten(libdevice.to_libdevice(finish_device(emitted, after), fast=fast))
    keep_ir.keep(specialization.name, emitted.symbol, "nvvm", finished)
    return backend_cuda.ltoir(finished, cc, fastmath=specialization.fastmath)


def _with_callees(module: typed.Parts) -> list[typed.Parts]:
    """`module` and the derivatives that it calls, and those that they call."""
    found: dict[str, typed.Parts] = {}
    ahead = [module]
    while ahead:
        for name in ahead.pop().declarations:
            if name in _emitted and name not in found:
                found[name] = typed.without_visibility(_emitted[name].core.module, name)
                ahead.append(found[name])
    return [module, *found.values()]
