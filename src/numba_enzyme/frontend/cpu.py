"""Lowers functions of the CPU with the primal target."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as ll
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher

from numba_enzyme.adapters import primal_target


def lower(dispatcher: Dispatcher, argtypes: tuple[Any, ...], *, promoted: bool) -> CompileResult:
    """The call tree of `dispatcher` at `argtypes`, unoptimised; `promoted` if integers of the call have become floats."""
    compile_at = primal_target.compile_promoted if promoted else primal_target.compile_primal
    return compile_at(dispatcher, argtypes)


def module_of(result: CompileResult) -> ll.ModuleRef:
    """All that `result` calls, in one module, to change at will."""
    return primal_target.linked_module(result.library).clone()
