"""A code generator of its own for each derivative, so that a dead derivative gives its memory back.

Numba keeps the machine code of everything it ever compiled in one engine, which lives as long as the process. Here the engine dies with
its derivative.

Checked on Numba 0.62 to 0.68.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba.core import codegen

if TYPE_CHECKING:
    import llvmlite.binding as ll


class HostLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Optimises once, with everything linked in: what comes from Enzyme was simplified before, and needs no passes for each function."""

    def _optimize_functions(self, ll_module: ll.ModuleRef) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        # llvmlite loses what a set of passes allocates, some 50 kB, and a set serves once: so one is all that a derivative gets.
        manager, builder = self._codegen._module_pass_manager()
        manager.run(self._final_module, builder)


class HostCodegen(codegen.JITCPUCodegen):  # type: ignore[misc]
    _library_class = HostLibrary


def create_library(name: str) -> HostLibrary:
    """An empty library with an engine of its own."""
    library: HostLibrary = HostCodegen(name).create_library(name)
    return library
