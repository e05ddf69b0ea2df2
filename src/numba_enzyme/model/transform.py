"""The transforms, and which arguments they differentiate."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from numba_enzyme.errors import ArgumentError, SignatureError

Argnums: TypeAlias = int | tuple[int, ...] | None


# How the calls begin that Enzyme replaces by sweeps.
REVERSE_MARKER = "__enzyme_autodiff"
FORWARD_MARKER = "__enzyme_fwddiff"


class Mode(Enum):
    """The direction in which a sweep carries derivatives."""

    FORWARD = "forward"
    REVERSE = "reverse"


class Call(Enum):
    """How a derivative is called."""

    ARGS = "(*args)"
    TANGENTS = "(primals, tangents)"
    COTANGENT = "(primals, cotangent)"


@dataclass(frozen=True)
class Transform:
    """What is taken of a function, independent of the function.

    A transform of a scalar function (`scalar_only`) seeds its one output with 1. A Jacobian (`jacobian`) runs one sweep for each
    input or each output; the others run one sweep with the seeds of the call.
    """

    name: str
    mode: Mode
    call: Call = Call.ARGS
    scalar_only: bool = False
    jacobian: bool = False
    with_value: bool = False
    has_aux: bool = False
    """Whether the function gives a loss and something else beside it, which is handed through."""


GRAD = Transform("grad", Mode.REVERSE, scalar_only=True)
VALUE_AND_GRAD = Transform("value_and_grad", Mode.REVERSE, scalar_only=True, with_value=True)
JVP = Transform("jvp", Mode.FORWARD, Call.TANGENTS)
VJP = Transform("vjp", Mode.REVERSE, Call.COTANGENT)
JACFWD = Transform("jacfwd", Mode.FORWARD, jacobian=True)
JACREV = Transform("jacrev", Mode.REVERSE, jacobian=True)


def normalize_argnums(argnums: object) -> Argnums:
    """`argnums` as None, an int or a tuple of ints; `SignatureError` for anything else."""
    if argnums is None:
        return None
    if isinstance(argnums, bool):
        raise SignatureError(f"argnums must be None, an int or a tuple of ints, not {argnums!r}")
    try:
        if isinstance(argnums, (tuple, list)):
            return tuple(operator.index(n) for n in argnums)
        return operator.index(argnums)  # type: ignore[arg-type]
    except TypeError:
        raise SignatureError(f"argnums must be None, an int or a tuple of ints, not {argnums!r}") from None


def pick(argnums: Argnums, names: tuple[str, ...], function: str) -> tuple[int, ...]:
    """The positions that `argnums` names among the parameters `names` of `function`, in its order."""
    if argnums is None:
        return tuple(range(len(names)))
    asked = (argnums,) if isinstance(argnums, int) else argnums
    picked = tuple(n + len(names) if n < 0 else n for n in asked)
    for n, position in zip(asked, picked, strict=True):
        if not 0 <= position < len(names):
            raise ArgumentError(f"argnums={argnums!r}: {function} has {len(names)} parameters ({', '.join(names)}), none numbered {n}")
    if len(set(picked)) != len(picked):
        raise ArgumentError(f"argnums={argnums!r} names a parameter of {function} twice")
    return picked
