"""A call that has been decided upon: everything that the pipeline needs to build the code for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from numba_enzyme.model.layout import Layout


@dataclass(frozen=True)
class Request:
    """A derivative's call as it is met: its types, and how to find out the rest, which means to compile the primal.

    `fingerprint` stands for all that the result depends on; None if there is no saying.
    """

    name: str
    argnames: tuple[str, ...]
    argtypes: tuple[Any, ...]
    fingerprint: str | None
    specialize: Callable[[], Specialization]


@dataclass(frozen=True)
class Specialization:
    """A primal at concrete types, a transform of it, and the types of the derivative's call.

    `primal` is the lowered primal; `argtypes` and `restype` are types of the target's compiler; `defaults` are those of trailing
    parameters that a tuple of primals leaves out; `fastmath` is what LLVM calls the liberties that the primal asked for.
    """

    name: str
    function: str
    layout: Layout
    primal: Any
    argnames: tuple[str, ...]
    argtypes: tuple[Any, ...]
    restype: Any
    defaults: tuple[Any, ...] = ()
    fastmath: tuple[str, ...] = ()
