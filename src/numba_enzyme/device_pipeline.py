"""The stages of a build for CUDA: those of pipeline.py, in the same order, each of them on text.

specialization -> primal IR -> entry points that call Enzyme -> one opt run -> LTO IR, linked at the call site
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numba_enzyme import cache
from numba_enzyme.backend import cuda as backend_cuda
from numba_enzyme.entrypoints import device
from numba_enzyme.enzyme import keep_ir, run, toolchain
from numba_enzyme.enzyme.diagnosis import explained
from numba_enzyme.errors import DifferentiationError, UnsupportedError
from numba_enzyme.frontend import cuda, cuda_recall
from numba_enzyme.frontend.cuda import DevicePrimal
from numba_enzyme.llvm import nvvm, tape, typed
from numba_enzyme.llvm.signed_zero import without_signed_zero_adjoints, without_signed_zero_sums
from numba_enzyme.model.device_call import DeviceSpecialization
from numba_enzyme.model.transform import REVERSE_MARKER
from numba_enzyme.recipe import recipe
from numba_enzyme.rules import libdevice

if TYPE_CHECKING:
    from numba_enzyme.adapters.numba_cuda_mlir import CC

_CUDA_HEAD = (
    'target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-'
    'v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"\ntarget triple = "nvptx64-nvidia-cuda"\n'
)

# The modules of derivatives by symbol. Device code may call them while it is differentiated itself, and their text is then wanted again.
_modules: dict[str, typed.Parts] = {}


@dataclass(frozen=True)
class DeviceEmitted:
    """A derivative that has not been differentiated yet. `core` is what a transform of it takes as its primal."""

    specialization: DeviceSpecialization
    symbol: str
    core: DevicePrimal


def lower_device(dispatcher: Any, argtypes: tuple[Any, ...], cc: CC) -> DevicePrimal:
    """The primal of a device function, from the disk if it was ever lowered."""
    key = cuda_recall.key(dispatcher, argtypes, cc)
    found = cuda_recall.load(key) if key else None
    if found is not None:
        _modules.update(found.callees)
        return found.primal
    primal = cuda.lower(dispatcher, argtypes, cc)
    if key:
        cuda_recall.store(key, primal, _callees(primal.module))
    return primal


def emit_device(specialization: DeviceSpecialization) -> DeviceEmitted:
    """The entry point of `specialization` over its primal."""
    primal, layout = specialization.primal, specialization.layout
    made = device.emit(primal.symbol, primal.arguments, primal.results, layout, specialization.call, specialization.counts)
    digest = hashlib.sha256(f"{primal.symbol}\n{specialization.tape_bytes}\n{made.text}".encode()).hexdigest()[:16]
    own = typed.parts(made.text.replace(device.DIGEST, digest))
    module = typed.merged([primal.module, own])
    core = DevicePrimal(module, device.CORE.replace(device.DIGEST, digest), made.arguments, made.results, None)
    symbol = device.ENTRY.replace(device.DIGEST, digest)
    _modules[symbol] = module
    return DeviceEmitted(specialization, symbol, core)


def prepared(emitted: DeviceEmitted) -> str:
    """The module that `emitted` needs, as Enzyme is to see it."""
    modules = [*_with_callees(emitted.core.module), typed.parts(tape.GROWTH)]
    return libdevice.prepared(typed.joined(_CUDA_HEAD, [typed.merged(modules)]))


def differentiate_device(emitted: DeviceEmitted, text: str) -> str:
    """`text` after Enzyme, under the names of libm."""
    specialization = emitted.specialization
    keep_ir.keep(emitted.symbol, "before", text)
    try:
        after = run.differentiate_typed(toolchain.find(), text, [emitted.symbol], fastmath=specialization.fastmath)
    except DifferentiationError as error:
        raise explained(error, specialization.function) from None
    keep_ir.keep(emitted.symbol, "after", after)
    return without_signed_zero_sums(without_signed_zero_adjoints(after))


def finish_device(emitted: DeviceEmitted, after: str) -> str:
    """What Enzyme left, with everything that was hidden from it or asked for by it; still under the names of libm."""
    specialization = emitted.specialization
    text = tape.in_local_memory(after, emitted.symbol, f"{specialization.name} of {specialization.function}", specialization.tape_bytes)
    return libdevice.resolved(text)


def build_device(emitted: DeviceEmitted, cc: CC) -> bytes:
    """LTO IR of a derivative for one compute capability, from the cache if it was ever built."""
    text = prepared(emitted)
    key = _key(emitted, text, cc)
    with cache.lock(key):
        code = cache.load(key)
        if code is None:
            code = _built(emitted, text, cc)
            cache.store(key, code)
        return code


def _key(emitted: DeviceEmitted, text: str, cc: CC) -> str:
    specialization = emitted.specialization
    decisive = (
        toolchain.find().fingerprint,
        recipe(),
        backend_cuda.identity(),
        cc,
        specialization.fastmath,
        specialization.tape_bytes,
        specialization.name,
        specialization.function,
        emitted.symbol,
        text,
    )
    return hashlib.sha256(repr(decisive).encode()).hexdigest()


def _built(emitted: DeviceEmitted, text: str, cc: CC) -> bytes:
    specialization = emitted.specialization
    after = differentiate_device(emitted, text)
    fast = libdevice.is_fast(typed.joined("", _with_callees(emitted.core.module)))
    finished = nvvm.rewritten(libdevice.to_libdevice(finish_device(emitted, after), fast=fast))
    keep_ir.keep(emitted.symbol, "nvvm", finished)
    _refuse_heap(finished, specialization.function)
    _refuse_unknown(text, finished, specialization.function)
    return backend_cuda.ltoir(finished, cc, fastmath=specialization.fastmath)


def _refuse_heap(after: str, function: str) -> None:
    # The device heap holds 8 MB for all threads together, and Enzyme writes through the null pointer that it gives when it is full.
    if re.search(r"@(?:malloc|realloc|__enzyme_exponentialallocation\w*)\(", after):
        raise UnsupportedError(
            f"{function} has a loop whose length is known at run time only, and reverse mode needs memory for each time round, which is "
            "not served on CUDA yet. Take jvp or jacfwd, which need none, or give the loop a constant end"
        )


def _refuse_unknown(before: str, finished: str, function: str) -> None:
    """LTO IR says nothing of a function that nobody defines: it would be missed when a kernel is linked, under a name nobody knows."""
    declared = re.compile(r"^declare [^\n]*?@([\w.$]+)\(", re.MULTILINE)
    added = set(declared.findall(finished)) - set(declared.findall(before))
    if unknown := sorted(name for name in added if not name.startswith(("__nv_", "llvm.", "__assertfail"))):
        raise DifferentiationError(
            f"{function} cannot be differentiated: its derivative needs {', '.join(unknown)}, which CUDA does not have. Hold the arguments "
            "it depends on constant (argnums=...), or write that part with operations that have a derivative."
        )


def _callees(module: typed.Parts) -> dict[str, typed.Parts]:
    """The modules of the derivatives that `module` calls, and of those that they call, by symbol."""
    found: dict[str, typed.Parts] = {}
    ahead = [module]
    while ahead:
        for name in ahead.pop().declarations:
            if name in _modules and name not in found:
                found[name] = _modules[name]
                ahead.append(found[name])
    return found


def _with_callees(module: typed.Parts) -> list[typed.Parts]:
    return [module, *(typed.without_visibility(callee, name) for name, callee in _callees(module).items())]


def holds_reverse_sweep(primal: DevicePrimal) -> bool:
    """Whether a function, or one that it calls, is a derivative taken in reverse mode."""
    return any(name.startswith(REVERSE_MARKER) for part in _with_callees(primal.module) for name in part.declarations)
