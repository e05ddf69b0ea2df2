"""Automatic differentiation of ordinary Numba code, by Enzyme."""

from __future__ import annotations

from numba_enzyme.api import differentiable, grad, hessian, hvp, jacfwd, jacrev, jvp, value_and_grad, vjp
from numba_enzyme.errors import (
    ArgumentError,
    DifferentiationError,
    NumbaEnzymeError,
    SignatureError,
    ToolchainError,
    UnsupportedError,
)

__all__ = [
    "ArgumentError",
    "DifferentiationError",
    "NumbaEnzymeError",
    "SignatureError",
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
