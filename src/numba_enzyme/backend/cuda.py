"""Back end for CUDA: differentiated text to LTO IR, which the linker of a kernel inlines."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from numba_enzyme.adapters import numba_cuda_mlir
from numba_enzyme.errors import ToolchainError


def ltoir(text: str, cc: numba_cuda_mlir.CC, *, fastmath: bool) -> bytes:
    """LTO IR for compute capability `cc`; `ToolchainError` that names the place if the text is not what libNVVM reads."""
    try:
        return numba_cuda_mlir.to_ltoir(text, cc, fastmath=fastmath)
    except ToolchainError as error:
        raise ToolchainError(f"{error}. LLVM 7 says: {complaint(text) or 'nothing'}") from None


def identity() -> tuple[Any, ...]:
    """The compiler that makes the code."""
    return numba_cuda_mlir.libnvvm_identity()


def complaint(text: str) -> str:
    """What LLVM 7, whose dialect libNVVM reads, has against `text`, with line and column; empty if it has nothing."""
    library = _llvm7(numba_cuda_mlir.llvm7_library())
    context = ctypes.c_void_p(library.LLVMContextCreate())
    data = text.encode()
    buffer = ctypes.c_void_p(
        library.LLVMCreateMemoryBufferWithMemoryRangeCopy(ctypes.c_char_p(data), ctypes.c_size_t(len(data)), b"derivative")
    )
    module, message = ctypes.c_void_p(), ctypes.c_char_p()
    if library.LLVMParseIRInContext(context, buffer, ctypes.byref(module), ctypes.byref(message)):
        return (message.value or b"").decode(errors="replace")
    returns_message = 2
    if library.LLVMVerifyModule(module, returns_message, ctypes.byref(message)):
        return (message.value or b"").decode(errors="replace")
    return ""


@functools.cache
def _llvm7(path: str) -> Any:
    library = ctypes.CDLL(path)
    library.LLVMContextCreate.restype = ctypes.c_void_p
    library.LLVMCreateMemoryBufferWithMemoryRangeCopy.restype = ctypes.c_void_p
    return library
