"""A call that has been decided upon: everything that the pipeline needs to build the code for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numba_enzyme.model.layout import Layout


@dataclass(frozen=True)
class Specialization:
    """A primal at concrete types, a transform of it, and the types of the derivative's call.

    `primal` is the lowered primal; `argtypes` and `restype` are types of the target's compiler.
    """

    name: str
    function: str
    layout: Layout
    primal: Any
    argnames: tuple[str, ...]
    argtypes: tuple[Any, ...]
    restype: Any
    defaults: tuple[Any, ...] = ()
    fastmath: bool = False
