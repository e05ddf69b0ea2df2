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
from typing import Annotated, Any, TypeAlias

import numpy as np

__all__ = ["Array", "Float32", "Float64"]


@dataclass(frozen=True)
class Dtype:
    """The mark by which an annotation is known."""

    name: str
    ndim: int | None = None
    """The dimensions of an array; None for a float."""


Float32: TypeAlias = Annotated[float, Dtype("float32")]
"""A single-precision float."""

Float64: TypeAlias = Annotated[float, Dtype("float64")]
"""A double-precision float."""


def Array(dtype: Any, ndim: int) -> Any:  # noqa: N802 - the name of a type
    """The annotation of an array of `Float32` or `Float64` with so many dimensions.

    >>> from numba_enzyme import grad, types
    >>> def energy(x: types.Array(types.Float64, 1)) -> types.Float64:
    ...     return (x * x).sum()
    >>> grad(energy)(np.ones(2))
    (array([2., 2.]),)
    """
    (mark,) = dtype.__metadata__
    return Annotated[np.ndarray, Dtype(mark.name, ndim)]
