"""Front end for CUDA: a device function at concrete types as typed LLVM text, in one shape whatever it was called."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from numba_enzyme.adapters import numba_cuda_mlir
from numba_enzyme.errors import UnsupportedError
from numba_enzyme.llvm import typed

ERROR_CODE = "__numba_cuda_mlir_error_code"


@dataclass(frozen=True)
class DevicePrimal:
    """A function that a transform is applied to: its module's parts, its symbol, and the LLVM types of what it takes and gives."""

    module: typed.Parts
    symbol: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    return_type: Any


def lower(dispatcher: Any, argtypes: tuple[Any, ...], cc: numba_cuda_mlir.CC) -> DevicePrimal:
    """The primal of `dispatcher`; `UnsupportedError` by name for what cannot be differentiated in device code."""
    name = dispatcher.py_func.__qualname__
    try:
        lowered = numba_cuda_mlir.lower(dispatcher, argtypes, cc)
    except Exception as error:
        if numba_cuda_mlir.is_recursion(error):
            raise _recursion(name) from error
        raise
    _refuse(lowered.text, name)
    text = typed.allocas_first(typed.named_values(without_metadata(with_error_calls(lowered.text))))
    module = typed.parts(text)
    _refuse_recursion(module, name)
    head = typed.signature(module.definitions[lowered.symbol])
    canonical = _canonical(module)
    digest = hashlib.sha256(typed.joined("", [_renamed(module, canonical)]).encode()).hexdigest()[:16]
    symbols = {old: f"ne_{digest}_{new}" for old, new in canonical.items()}
    return DevicePrimal(
        _internal(_renamed(module, symbols)),
        symbols[lowered.symbol],
        tuple(parameter.type for parameter in head.parameters),
        results(head.returns),
        lowered.return_type,
    )


def results(returns: str) -> tuple[str, ...]:
    """The types of the values that a function gives: one is given bare, several in a struct."""
    if returns == "void":
        return ()
    return tuple(typed.split_list(returns[1:-1])) if returns.startswith("{") else (returns,)


def with_error_calls(ir: str) -> str:
    """A raised exception sets an error code by `cmpxchg`, of which Enzyme knows nothing: until it is done, a call stands for that."""
    pattern = rf"cmpxchg i32\* @{ERROR_CODE}, i32 0, (i32 [^ ]+) monotonic monotonic"
    return re.sub(pattern, r"call { i32, i1 } @numba_enzyme_raise(\1)", ir)


def without_metadata(ir: str) -> str:
    """Metadata is numbered for each module by itself; none of what is dropped is needed."""
    return re.sub(r", ![\w.]+ !\d+", "", re.sub(r"^![^\n]*\n", "", ir, flags=re.MULTILINE))


_REFUSED = (
    (r"addrspace\(3\)|@llvm\.nvvm\.read\.ptx\.sreg\.dynamic", "shared memory", "Pass what it reads as arguments"),
    (
        r"bar\.(?:sync|warp)|barrier|membar|fence",
        "a barrier",
        "Differentiate what lies between barriers, and put the barriers into the kernel",
    ),
    (r"shfl|vote|match\.(?:any|all)|activemask|redux", "a warp operation", "Differentiate what each thread computes by itself"),
    (r"atomicrmw|cmpxchg|atom\.|llvm\.nvvm\.atomic|red\.", "an atomic operation", "Return the value, and add it up in the kernel"),
    (r"call [^\n]*@(?:malloc|__numba_cuda_mlir_alloc\w*|NRT_\w+)\(", "memory from the heap", "Use cuda.local.array"),
    (r"<\d+ x (?:float|double)>|\bhalf\b|\bbfloat\b", "floats that are neither float32 nor float64", "Convert them before the call"),
)


def _refuse(text: str, name: str) -> None:
    # Raising is told apart from atomic operations that the function itself asks for.
    text = with_error_calls(text)
    for pattern, what, way_out in _REFUSED:
        if re.search(pattern, text):
            raise UnsupportedError(f"{name} uses {what}, which has no derivative in device code yet. {way_out}.")


def _refuse_recursion(module: typed.Parts, name: str) -> None:
    called = {symbol: typed.calls(text) & module.definitions.keys() for symbol, text in module.definitions.items()}
    for start, callees in called.items():
        seen, ahead = set(), set(callees)
        while ahead:
            symbol = ahead.pop()
            if symbol == start:
                raise _recursion(name)
            seen.add(symbol)
            ahead |= called[symbol] - seen


def _recursion(name: str) -> UnsupportedError:
    return UnsupportedError(f"{name} calls itself, and recursion has no derivative in device code. Write it as a loop.")


def _canonical(module: typed.Parts) -> dict[str, str]:
    """Names that depend on the code alone. The compiler's hold addresses of Python objects, and two functions may share one."""
    local = [*(name for name in module.globals if name != ERROR_CODE), *module.definitions]
    return {symbol: str(n) for n, symbol in enumerate(local)}


def _renamed(module: typed.Parts, symbols: dict[str, str]) -> typed.Parts:
    def rename(table: dict[str, str]) -> dict[str, str]:
        return {symbols.get(k, k): typed.renamed(text, lambda name: symbols.get(name, name)) for k, text in table.items()}

    variables = {name: text for name, text in module.globals.items() if name != ERROR_CODE}
    raising = {"numba_enzyme_raise": 'declare { i32, i1 } @numba_enzyme_raise(i32) nofree nounwind "enzyme_inactive"'}
    used = any("@numba_enzyme_raise(" in text for text in module.definitions.values())
    return typed.Parts(rename(module.definitions), rename(module.declarations) | (raising if used else {}), rename(variables))


def _internal(module: typed.Parts) -> typed.Parts:
    definitions = {}
    for name, text in module.definitions.items():
        head, body = text.split("\n", 1)
        head = re.sub(r"^define (?:internal |linkonce_odr |dso_local )*", "define internal ", head)
        definitions[name] = f"{re.sub(r'[^)]*{$', ' alwaysinline {', head)}\n{body}"
    variables = {
        name: re.sub(r"= (?:common |private |internal |linkonce_odr )*", "= internal ", text, count=1)
        for name, text in module.globals.items()
    }
    return typed.Parts(definitions, module.declarations, variables)
