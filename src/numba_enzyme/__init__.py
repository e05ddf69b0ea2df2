"""Automatic differentiation of ordinary Numba code, by Enzyme."""

from __future__ import annotations

from typing import Any

from numba_enzyme import _distribution
from numba_enzyme.api import differentiable, grad, hessian, hvp, jacfwd, jacrev, jvp, value_and_grad, vjp
from numba_enzyme.errors import (
    ArgumentError,
    DifferentiationError,
    NumbaEnzymeError,
    SignatureError,
    TapeMemoryError,
    ToolchainError,
    UnsupportedError,
)

__all__ = [
    "ArgumentError",
    "DifferentiationError",
    "NumbaEnzymeError",
    "SignatureError",
    "TapeMemoryError",
    "ToolchainError",
    "UnsupportedError",
    "differentiable",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jvp",
    "value_and_grad",
    "vjp",
]

_distribution.warn_of_rivals()


def __getattr__(name: str) -> Any:
    # Reading a distribution's metadata takes as long as importing the rest of this package.
    if name == "__version__":
        return _distribution.version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
