"""A code generator of its own for each derivative, so that a dead derivative gives its memory back.

Numba keeps the machine code of everything it ever compiled in one engine, which lives as long as the process. Here the engine dies with
its derivative.

Checked on Numba 0.62 to 0.68.
"""

from __future__ import annotations

import functools

import llvmlite
import llvmlite.binding as ll
from llvmlite.binding.newpassmanagers import NewPassManager
from numba.core import codegen, config

from numba_enzyme.adapters import vector_math


class HostLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Optimises once, with everything linked in: what comes from Enzyme was simplified before, and needs no passes for each function."""

    _final_module: ll.ModuleRef
    finished: ll.ModuleRef
    """What comes from Enzyme, in a context of its own, in which it is optimised."""

    def _optimize_functions(self, ll_module: ll.ModuleRef) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        module = self.finished
        del self.finished
        module.link_in(ll.parse_bitcode(self._final_module.as_bitcode(), module._context))
        # Builders serve once as well: each run leaves callbacks in them that refer to what died with the run.
        manager, builder = self._codegen._module_pass_manager()
        try:
            manager.run(module, builder)
        finally:
            _dispose(manager)
        self._final_module = ll.parse_bitcode(module.as_bitcode())


class HostCodegen(codegen.JITCPUCodegen):  # type: ignore[misc]
    _library_class = HostLibrary


def _dispose(manager: NewPassManager) -> None:
    """Gives back what a set of passes takes, some 50 kB. Its class inherits a `_dispose` that does nothing before the one that does it."""
    NewPassManager._dispose(manager)
    manager.detach()


def create_codegen(name: str) -> HostCodegen:
    """A code generator with an engine of its own."""
    return HostCodegen(name)


def create_library(name: str) -> HostLibrary:
    """An empty library with an engine of its own."""
    library: HostLibrary = create_codegen(name).create_library(name)
    return library


def machine() -> str:
    """What machine code is made for, and how: all of it that is not in the IR."""
    return f"{_target()} {' '.join(vector_math.symbols())}"


@functools.cache
def _target() -> str:
    codegen.initialize_llvm()
    settings = (config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE, config.CPU_NAME, config.CPU_FEATURES, config.ENABLE_AVX)
    return f"{ll.get_process_triple()} {ll.get_host_cpu_name()} {codegen.get_host_cpu_features()} {settings} {llvmlite.__version__}"
