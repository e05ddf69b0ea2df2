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
from numba_enzyme.errors import DifferentiationError, NumbaEnzymeError, UnsupportedError
from numba_enzyme.frontend import cuda, cuda_recall
from numba_enzyme.frontend.cuda import DevicePrimal
from numba_enzyme.llvm import nvvm, schedule, tape, typed
from numba_enzyme.llvm.signed_zero import without_signed_zero_adjoints, without_signed_zero_sums
from numba_enzyme.model.device_call import DeviceSpecialization
from numba_enzyme.model.transform import REVERSE_MARKER
from numba_enzyme.recipe import recipe
from numba_enzyme.rules import libdevice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numba_enzyme.adapters.numba_cuda_mlir import CC

_CUDA_HEAD = (
    'target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-'
    'v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"\ntarget triple = "nvptx64-nvidia-cuda"\n'
)

# A thread has 255 registers, and a float64 takes two of them. Below this, a run of opt costs more than is gained.
_MANY_READS = 32

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
    return _kept_after(emitted, after)


def _differentiate_together(group: Sequence[DeviceEmitted], texts: Sequence[str]) -> list[str] | None:
    """The same for several derivatives by one run; None if Enzyme refuses, which is then to be said of one of them."""
    module = typed.joined(_CUDA_HEAD, [typed.parts(text) for text in texts])
    symbols = [emitted.symbol for emitted in group]
    try:
        after = run.differentiate_typed(toolchain.find(), module, symbols, fastmath=group[0].specialization.fastmath)
    except DifferentiationError:
        return None
    for emitted, text in zip(group, texts, strict=True):
        keep_ir.keep(emitted.symbol, "before", text)
    return [_kept_after(emitted, after) for emitted in group]


def _kept_after(emitted: DeviceEmitted, after: str) -> str:
    """What of `after` is the derivative's: the same, whatever went through opt with it."""
    after = typed.extracted(after, emitted.symbol)
    keep_ir.keep(emitted.symbol, "after", after)
    return without_signed_zero_sums(without_signed_zero_adjoints(after))


def finish_device(emitted: DeviceEmitted, after: str) -> str:
    """What Enzyme left, with everything that was hidden from it or asked for by it; still under the names of libm."""
    specialization = emitted.specialization
    text = tape.in_local_memory(after, emitted.symbol, f"{specialization.name} of {specialization.function}", specialization.tape_bytes)
    return _with_late_loads(libdevice.resolved(text), emitted.symbol)


def _with_late_loads(text: str, symbol: str) -> str:
    """`text` with what the entry point reads read where it is used, if all of it at once would not fit into registers."""
    if schedule.reads(typed.parts(text).definitions[symbol]) < _MANY_READS or not tape.is_free_of(text):
        return text
    inlined = nvvm.without_metadata(run.inlined_typed(toolchain.find(), schedule.inlined(text)))
    module = typed.parts(inlined)
    known = frozenset(name for name in module.declarations if libdevice.is_pure(name))
    return inlined.replace(module.definitions[symbol], schedule.loads_at_use(module.definitions[symbol], known))


def build_devices(asked: Sequence[tuple[DeviceEmitted, CC]]) -> list[bytes | NumbaEnzymeError]:
    """LTO IR of derivatives, each for one compute capability, or what stood in its way; from the cache where it was ever built."""
    texts = [prepared(emitted) for emitted, _ in asked]
    keys = [_key(emitted, text, cc) for (emitted, cc), text in zip(asked, texts, strict=True)]
    with cache.lock(*keys):
        outcomes: list[bytes | NumbaEnzymeError | None] = [cache.load(key) for key in keys]
        missing = [n for n, outcome in enumerate(outcomes) if outcome is None]
        for n, made in zip(missing, _built([(*asked[n], texts[n]) for n in missing]) if missing else ()):
            outcomes[n] = made
            if isinstance(made, bytes):
                cache.store(keys[n], made)
    return [outcome for outcome in outcomes if outcome is not None]


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


def _built(asked: Sequence[tuple[DeviceEmitted, CC, str]]) -> list[bytes | NumbaEnzymeError]:
    """One opt run for all that go together, then each by itself."""
    together: dict[int, str] = {}
    for group in _groups(asked):
        after = _differentiate_together([asked[n][0] for n in group], [asked[n][2] for n in group]) if len(group) > 1 else None
        together.update(zip(group, after or ()))
    return [_finished(*each, together.get(n)) for n, each in enumerate(asked)]


def _groups(asked: Sequence[tuple[DeviceEmitted, CC, str]]) -> list[list[int]]:
    """Which builds go through one run: those with the same options that are not part of one another."""
    groups: list[list[int]] = []
    for n, (emitted, _, text) in enumerate(asked):
        for group in groups:
            others = [asked[m] for m in group]
            if all(
                emitted.specialization.fastmath == other.specialization.fastmath
                and f"@{emitted.symbol}(" not in other_text
                and f"@{other.symbol}(" not in text
                for other, _, other_text in others
            ):
                group.append(n)
                break
        else:
            groups.append([n])
    return groups


def _finished(emitted: DeviceEmitted, cc: CC, text: str, after: str | None) -> bytes | NumbaEnzymeError:
    """LTO IR of a module that was differentiated, or is now, by itself."""
    try:
        return _ltoir(emitted, cc, text, differentiate_device(emitted, text) if after is None else after)
    except NumbaEnzymeError as error:
        return error


def _ltoir(emitted: DeviceEmitted, cc: CC, text: str, after: str) -> bytes:
    specialization = emitted.specialization
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
