"""At corners, ties and NaN device code gives what the CPU gives: docs/conventions.md."""

import math

import numpy as np
import pytest
from cpu_tables import conventions

import numba_enzyme as ne

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")

from numba_cuda_mlir import cuda, types
from numba_cuda_mlir.cuda import libdevice

ROWS = conventions()


def same(got, want):
    np.testing.assert_allclose(np.ravel(got), np.ravel(want), rtol=1e-12, atol=0)


def units(n):
    return [tuple(float(k == m) for k in range(n)) for m in range(n)]


@pytest.mark.parametrize("name", ROWS)
def test_rows(evaluate, name):
    function, point, first, second = ROWS[name]
    f = cuda.jit(device=True)(function)
    for transform in (ne.grad, ne.jacfwd, ne.jacrev):
        same(evaluate(transform(f), *point), first)
    same(evaluate(ne.vjp(f), point, 1.0), first)
    same([evaluate(ne.jvp(f), point, unit) for unit in units(len(point))], first)
    if second is not None:
        same(evaluate(ne.hessian(f), *point), second)
        same(evaluate(ne.jacrev(ne.grad(f)), *point), second)


def test_cube_root_at_zero(evaluate):
    f = cuda.jit(device=True)(lambda x: libdevice.cbrt(x))
    assert evaluate(ne.grad(f), 0.0) == (0.0,)
    assert evaluate(ne.hessian(f), 0.0) == ((0.0,),)


def test_the_value_of_a_guarded_power_is_the_librarys(evaluate):
    f = cuda.jit(device=True)(lambda x, h: x**h)
    for x in (0.0, 1.0, 2.5, -2.0):
        for h in (0.0, 0.5, 1.0, 2.0, 3.0, 7.0, -1.0):
            value, _ = evaluate(ne.value_and_grad(f), x, h)
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(value, np.power(x, h), rtol=1e-15)
    assert math.isnan(evaluate(ne.value_and_grad(f), -2.0, 0.5)[0])


def test_a_guarded_power_links():
    # The guard's constant branch and the power itself are one function of libdevice, declared once.
    f = cuda.jit(device=True)(lambda x, h: x**h)
    for transform in (ne.value_and_grad, ne.grad):
        resolved = transform(f).resolve((types.float64, types.float64), {})
        symbol, ltoir = resolved.link((9, 0), ((False,), (False,)))
        assert symbol
        assert ltoir
