"""Names for annotations that fix the types at which a function is differentiated.

A function each of whose parameters, and whose result, is annotated with these is compiled as soon as it is transformed, and a call with
other types is refused. To a type checker they are floats. Tuples of fixed size are written `tuple[Float64, Float64]`.

>>> from numba_enzyme import grad
>>> from numba_enzyme.types import Float64
>>> def energy(x: Float64, v: Float64) -> Float64:
...     return x * x + v * v
>>> grad(energy)(1.0, 2.0)
(2.0, 4.0)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

__all__ = ["Float32", "Float64"]


@dataclass(frozen=True)
class Dtype:
    """The mark by which an annotation is known."""

    name: str


Float32: TypeAlias = Annotated[float, Dtype("float32")]
"""A single-precision float."""

Float64: TypeAlias = Annotated[float, Dtype("float64")]
"""A double-precision float."""
