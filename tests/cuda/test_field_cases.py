"""Field cases as device functions."""

import math

import numpy as np
import pytest
from cpu_tables import field_cases

import numba_enzyme as ne

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")

from numba_cuda_mlir import cuda, types

CASES = {name: rest for name, *rest in field_cases()}
f4, f8 = types.float32, types.float64


def device(function):
    return cuda.jit(device=True)(function)


def close(got, want, rtol=1e-12):
    np.testing.assert_allclose(np.ravel(got), np.ravel(want), rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_numbers(evaluate, name):
    function, point, want = CASES[name]
    f = device(function)
    got = evaluate(ne.grad(f), *point)
    if want is None:
        want = ne.grad(function)(*point)
    close(got, want)
    close(evaluate(ne.jacfwd(f), *point), want)
    close([evaluate(ne.jvp(f), point, tuple(float(k == n) for k in range(len(point)))) for n in range(len(point))], want)


def test_f06_powers_at_zero(evaluate):
    for square in (lambda x: 4.3 * x**2.0, lambda x: 4.3 * x**2, lambda x: 4.3 * x * x):
        assert evaluate(ne.jvp(ne.jvp(device(square))), ((0.0,), (1.0,)), ((1.0,), (0.0,))) == 8.6
    assert evaluate(ne.jvp(ne.jvp(device(lambda x: 4.3 * x**3))), ((0.0,), (1.0,)), ((1.0,), (0.0,))) == 0.0


def test_f14_what_min_throws_away(evaluate):
    got = evaluate(ne.grad(device(lambda x: min(1.0, 1.0 / (x * x)))), 0.5)
    close(got, (0.0,))


def test_f43_literals_do_not_widen_float32(evaluate):
    d = ne.value_and_grad(device(lambda x: np.float32(0.5) * x * x))
    assert str(d.resolve((f4,), {}).restype) == "Tuple(float32, UniTuple(float32 x 1))"
    assert evaluate(d, np.float32(3.0)) == (4.5, (3.0,))


def test_f44_mixed_precision(evaluate):
    d = ne.grad(device(lambda x, y: x * y))
    assert str(d.resolve((f4, f8), {}).restype) == "Tuple(float32, float64)"
    assert evaluate(d, np.float32(2.0), 3.0) == (3.0, 2.0)


def test_f45_integers_are_promoted(evaluate):
    assert evaluate(ne.grad(device(lambda x: x * x)), 3) == (6.0,)


def test_f49_the_users_own_guard_against_nan(evaluate):
    def f(x):
        y = math.log(x)
        return 0.0 if math.isnan(y) else y

    assert evaluate(ne.value_and_grad(device(f)), -1.0) == (0.0, (0.0,))


def test_f55_f56_higher_orders(evaluate):
    quartic, cubic = device(lambda x: 2.0 * x**4), device(lambda x: 4.0 * x**3)
    close(evaluate(ne.grad(ne.grad(quartic, argnums=0), argnums=0), 2.0), 96.0)
    third = ne.jvp(ne.jvp(ne.jvp(cubic)))
    e, z = (1.0,), (0.0,)
    close(evaluate(third, (((3.0,), e), (e, z)), ((e, z), (z, z))), 24.0)
    close(evaluate(ne.grad(ne.jvp(ne.jvp(cubic))), ((3.0,), e), (e, z))[0][0][0], 24.0)


def test_f59_hessian_vector_product(evaluate):
    close(evaluate(ne.hvp(device(lambda x, y: x * x * y + y**3)), (1.0, 2.0), (1.0, -1.0)), (2.0, -10.0))


def test_f31_the_other_branch(evaluate):
    close(evaluate(ne.grad(device(CASES["F31"][0])), 2.0, 2.0), (4.0, 0.0))
