"""Reverse transforms over reverse sweeps, which run forward in device code as on the CPU."""

from __future__ import annotations

import math

import pytest

import numba_enzyme as ne

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")

from numba_cuda_mlir import cuda


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


def test_second_order_of_loops(evaluate):
    expected = ne.hessian(skips.py_func)(0.37)[0][0]
    for derivative in (ne.grad(ne.grad(skips, 0)), ne.jacfwd(ne.grad(skips, 0)), ne.jacrev(ne.grad(skips, 0))):
        assert evaluate(derivative, 0.37) == (pytest.approx(expected, rel=1e-13),)
