"""What device code cannot have yet is refused by name, and second order is right where it is served."""

from __future__ import annotations

import math

import pytest

import numba_enzyme as ne
from numba_enzyme import DifferentiationError

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")

from numba_cuda_mlir import cuda, types
from numba_cuda_mlir.cuda import libdevice


@cuda.jit(device=True)
def skips(x):
    s = x
    for i in range(5):
        if i % 3 == 1:
            continue
        if s > 5.0:
            break
        s = s * 1.1 + math.sin(s)
    return s


def build(derivative, *argtypes):
    resolved = derivative.resolve(argtypes, {})
    return resolved.link((9, 0), tuple(() for _ in resolved.argtypes))


def test_functions_whose_derivative_cuda_does_not_have():
    with pytest.raises(DifferentiationError, match=r"<lambda> cannot be differentiated: it uses __nv_erfcx, which has no derivative"):
        build(ne.grad(cuda.jit(device=True)(lambda x: libdevice.erfcx(x))), types.float64)


def test_second_order_of_loops(evaluate):
    expected = ne.hessian(skips.py_func)(0.37)[0][0]
    for derivative in (ne.grad(ne.grad(skips, 0)), ne.jacfwd(ne.grad(skips, 0)), ne.jacrev(ne.grad(skips, 0))):
        assert evaluate(derivative, 0.37) == (pytest.approx(expected, rel=1e-13),)
