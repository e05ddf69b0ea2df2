"""Lowers functions of the CPU with the primal target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba_enzyme.adapters import primal_target
from numba_enzyme.llvm.calls import recursive
from numba_enzyme.model.transform import REVERSE_MARKER

if TYPE_CHECKING:
    import llvmlite.binding as ll
    from numba.core.compiler import CompileResult
    from numba.core.dispatcher import Dispatcher


def lower(dispatcher: Dispatcher, argtypes: tuple[Any, ...], restype: Any, *, promoted: bool) -> CompileResult:
    """The call tree of `dispatcher` at `argtypes`, unoptimised.

    `restype` is the type of its result where that is fixed; `promoted` says that integers of the call have become floats.
    """
    compile_at = primal_target.compile_promoted if promoted else primal_target.compile_primal
    return compile_at(dispatcher, argtypes, restype)


def module_of(library: primal_target.PrimalLibrary) -> ll.ModuleRef:
    """All that `library` calls, in one module, to change at will."""
    return primal_target.linked_module(library).clone()


def holds_reverse_sweep(result: CompileResult) -> bool:
    """Whether a function, or one that it calls, is a derivative taken in reverse mode."""
    return any(function.name.startswith(REVERSE_MARKER) for function in primal_target.linked_module(result.library).functions)


def is_recursive(result: CompileResult) -> bool:
    """Whether a function, or one that it calls, calls itself."""
    return recursive(str(primal_target.linked_module(result.library)))
