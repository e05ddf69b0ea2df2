"""The arguments of a derivative's call in device code: what each of them holds.

A call takes and gives values, or some of its arguments are arrays. Both come down to the same list of floats; what differs is where each
float is read from or written to, and that is what an `Argument` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from numba_enzyme.model.layout import Layout
from numba_enzyme.model.transform import Call


class Role(Enum):
    """What an argument is for."""

    PRIMAL = "primal"
    TANGENT = "tangent"
    COTANGENT = "cotangent"
    OUT = "out"
    """An array that takes the result."""


@dataclass(frozen=True)
class Argument:
    """One argument after tuples of primals and of tangents have been taken apart."""

    role: Role
    parameter: int = 0
    """The parameter of the primal that it is a value or a tangent of."""
    ndim: int = 0
    """The dimensions of an array; 0 for a value."""
    dtype: str = ""
    """The type of an array's elements."""


@dataclass(frozen=True)
class DeviceCall:
    """The form of one call site. `sets` counts the tangents that one call carries, each with a value for every differentiated argument."""

    arguments: tuple[Argument, ...]
    sets: int = 1
    zeros: tuple[bool, ...] = ()
    """For each float of all tangents, whether the call site writes it as zero; empty if nothing is known."""

    @property
    def out(self) -> Argument | None:
        return next((a for a in self.arguments if a.role is Role.OUT), None)

    @property
    def by_rows(self) -> bool:
        """Whether the cotangent is a matrix, whose rows are swept one after another."""
        return any(a.role is Role.COTANGENT and a.ndim == 2 for a in self.arguments)


def by_values(layout: Layout) -> DeviceCall:
    """The call that takes and gives values, one argument for each parameter and seed."""
    arguments = [Argument(Role.PRIMAL, n) for n in range(len(layout.parameters))]
    if layout.transform.call is Call.TANGENTS:
        arguments += [Argument(Role.TANGENT, n) for n in layout.picked]
    elif layout.transform.call is Call.COTANGENT:
        arguments.append(Argument(Role.COTANGENT))
    return DeviceCall(tuple(arguments))


@dataclass(frozen=True)
class DeviceSpecialization:
    """A call that has been decided upon. `primal` is what the CUDA front end made of the function, or an inner derivative."""

    name: str
    function: str
    layout: Layout
    call: DeviceCall
    primal: Any
    counts: tuple[int, ...]
    """How many values each parameter of the primal is handed over as."""
    fastmath: bool = False
    tape_bytes: int = 0
