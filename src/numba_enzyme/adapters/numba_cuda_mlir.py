"""numba-cuda-mlir: lowering of device functions, the device's compute capability and libNVVM.

This module and `cuda_callsite` are the only ones that import it, inside functions: who never touches CUDA never pays for it. Checked on
numba-cuda-mlir 0.5.4 and 0.6.0; private names are marked.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from numba_enzyme.errors import ArgumentError, NumbaEnzymeError, ToolchainError

CC: TypeAlias = tuple[int, int]

CC_VARIABLE = "NUMBA_ENZYME_CUDA_CC"

# What of a dispatcher's options is about its meaning; the others are about how and where it runs.
_MEANING = ("fastmath", "fast_math")


@dataclass(frozen=True)
class Lowered:
    """The whole call tree of a device function in LLVM 7's dialect."""

    text: str
    symbol: str
    return_type: Any


def is_device_dispatcher(function: Any) -> bool:
    """Whether numba-cuda-mlir compiled `function` for use in other CUDA code."""
    return bool(getattr(function, "targetoptions", {}).get("device", False))


def version() -> str:
    import numba_cuda_mlir  # noqa: PLC0415

    return str(numba_cuda_mlir.__version__)


def types() -> Any:
    """The module of numba-cuda-mlir's types."""
    from numba_cuda_mlir import types as cuda_types  # noqa: PLC0415

    return cuda_types


def parse_cc(text: str) -> CC:
    """`"9.0"`, `"90"` or `"sm_90"` as (9, 0)."""
    digits = text.lower().removeprefix("sm_").replace(".", "")
    if not digits.isdigit() or len(digits) < 2:
        raise ArgumentError(f"{text!r} is not a compute capability; write it as 9.0")
    return int(digits[:-1]), int(digits[-1])


def requested_cc() -> CC | None:
    """The capability that the environment asks for."""
    text = os.environ.get(CC_VARIABLE, "")
    return parse_cc(text) if text else None


def use_requested_cc() -> None:
    """Makes the compiler take the capability of `NUMBA_ENZYME_CUDA_CC` for the device's, so that it compiles without a device."""
    from numba_cuda_mlir import tools  # noqa: PLC0415

    cc = requested_cc()
    if cc is not None and tools._cached_cc is None:
        tools._cached_cc = cc


def current_cc() -> CC:
    """The capability of the environment or else of the current device."""
    from numba_cuda_mlir import tools  # noqa: PLC0415

    use_requested_cc()
    if tools._cached_cc is None:
        from numba_cuda_mlir import cuda  # noqa: PLC0415

        if not cuda.is_available():
            raise ToolchainError(f"There is no CUDA device here. Set {CC_VARIABLE}, to 9.0 for instance, to compile without one.")
    major, minor = tools.get_gpu_compute_capability(tuple)
    return int(major), int(minor)


@contextmanager
def _compiling_for(cc: CC) -> Iterator[None]:
    """The compiler asks for the device even when it is told the capability; it is given this one as the answer."""
    from numba_cuda_mlir import tools  # noqa: PLC0415

    before = tools._cached_cc
    tools._cached_cc = cc
    try:
        yield
    finally:
        tools._cached_cc = before


@contextmanager
def _range_of_integers() -> Iterator[None]:
    """`range` of a float is typed by the compiler and then an internal error of it: within this it is a typing error."""
    from numba_cuda_mlir.descriptor import mlir_target  # noqa: PLC0415
    from numba_cuda_mlir.numba_cuda.core.compiler_lock import global_compiler_lock  # noqa: PLC0415
    from numba_cuda_mlir.numba_cuda.core.errors import TypingError  # noqa: PLC0415

    context = mlir_target.typing_context
    resolve = context.resolve_function_type

    def checked(func: Any, args: Any, kws: Any) -> Any:
        floats = [arg for arg in args if isinstance(arg, types().Float)] if getattr(func, "typing_key", None) is range else []
        if floats:
            raise TypingError(f"range() was given {floats[0]}")
        return resolve(func, args, kws)

    with global_compiler_lock:
        before = context.__dict__.get("resolve_function_type")
        context.resolve_function_type = checked
        try:
            yield
        finally:
            if before is None:
                del context.resolve_function_type
            else:
                context.resolve_function_type = before


def lower(dispatcher: Any, argtypes: tuple[Any, ...], cc: CC) -> Lowered:
    """Compiles `dispatcher` and all it calls for these argument types, down to text that no optimiser has seen."""
    from numba_cuda_mlir import cuda, mlir_compiler, mlir_optimization, tools  # noqa: PLC0415
    from numba_cuda_mlir._mlir import ir, passmanager  # noqa: PLC0415
    from numba_cuda_mlir.descriptor import mlir_target  # noqa: PLC0415
    from numba_cuda_mlir.lowering_utilities import context  # noqa: PLC0415
    from numba_cuda_mlir.mlir_lowering import get_mlir_module_str  # noqa: PLC0415
    from numba_cuda_mlir.optimization import run_pre_codegen_patterns  # noqa: PLC0415

    mlir_target.ensure_initialized()
    options = {name: dispatcher.targetoptions[name] for name in _MEANING if name in dispatcher.targetoptions}
    with _compiling_for(cc), _range_of_integers():
        fresh = cuda.jit(device=True, abi="c", **options)(dispatcher.py_func)
        compiled = mlir_compiler.compile_mlir(fresh.py_func, None, argtypes, targetoptions=fresh.targetoptions)
        with context.get_context():
            module = ir.Module.parse(get_mlir_module_str(compiled.metadata))
            passmanager.PassManager.parse(mlir_optimization.get_base_pipeline()).run(module.operation)
            run_pre_codegen_patterns(module)
            # The LLVM 7 translator serves every capability: one dialect to read, whatever the device.
            target = {"chip": tools.format_arch(cc), "opt_level": 3}
            text = mlir_optimization._call_llvm70_capi(module, target, gen_llvmir=True).decode()
    symbol = tools.generate_mangled_name(dispatcher.py_func.__qualname__, argtypes)
    return Lowered(text, symbol, compiled.signature.return_type)


def to_ltoir(text: str, cc: CC, *, fastmath: bool) -> bytes:
    """LTO IR of a module in the dialect of libNVVM; `ToolchainError` with its log if it refuses."""
    from numba_cuda_mlir.numba_cuda.cudadrv import nvvm  # noqa: PLC0415
    from numba_cuda_mlir.numba_cuda.cudadrv.error import NvvmError  # noqa: PLC0415

    options: dict[str, Any] = {"arch": f"compute_{cc[0]}{cc[1]}", "gen-lto": None, "fastmath": fastmath}
    try:
        return bytes(nvvm.compile_ir(text, **options))
    except NvvmError as error:
        raise ToolchainError(f"libNVVM refuses the derivative for compute capability {cc[0]}.{cc[1]}: {error}") from None


@functools.cache
def libnvvm_identity() -> tuple[Any, ...]:
    """Which libNVVM this process loads. Its version says nothing: those of CUDA 12 and 13 call themselves 2.0 and make different code."""
    from numba_cuda_mlir.numba_cuda.cudadrv.nvvm import NVVM  # noqa: PLC0415

    path = Path(NVVM().driver._name)
    if not path.is_absolute():  # the loader found it
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
        path = Path(next(line.split(maxsplit=5)[5] for line in maps.splitlines() if "libnvvm" in line))
    status = path.stat()
    return str(path.resolve()), status.st_size, status.st_mtime_ns


def llvm7_library() -> str:
    """The path of the LLVM 7 that numba-cuda-mlir brings."""
    from importlib.util import find_spec  # noqa: PLC0415

    found = find_spec("numba_cuda_mlir")
    if found is None or found.origin is None:
        raise ToolchainError("numba-cuda-mlir is not installed: pip install 'numba-enzyme-cuda[cuda]'")
    return str(Path(found.origin).parent / "lib" / "libLLVM-7.so")


def is_compilation_error(error: Exception) -> bool:
    """Whether the compiler could not type or lower a function."""
    from numba_cuda_mlir import errors  # noqa: PLC0415
    from numba_cuda_mlir.numba_cuda.core.errors import NumbaError  # noqa: PLC0415

    kinds = (NumbaError, errors.InternalCompilerError, errors.UserFacingInternalCompilerError, NotImplementedError, TypeError)
    return isinstance(error, kinds) and not isinstance(error, NumbaEnzymeError)


def is_recursion(error: Exception) -> bool:
    """Whether the compiler met a function inside itself."""
    return is_compilation_error(error) and "re-entrant" in str(error)
