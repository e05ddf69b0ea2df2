"""Derivatives in kernels that run, against those of the CPU."""

from __future__ import annotations

import math

import numpy as np
import pytest

import numba_enzyme as ne

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")

from numba_cuda_mlir import cuda, types

# A few thousand points are enough to compare, and too few to keep a large device busy.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore:Grid size")]

N = 4096


def six(a, b, c, d, e, f):
    return math.sin(a) * b + math.exp(-c * c) * d * d + e * a / (1.0 + f * f) + math.sqrt(1.0 + b * b) * math.tanh(c * e)


def field(x, y, t):
    return y - 0.1 * x * x * x + math.sin(t), -x + 0.3 * math.cos(y) * x


def orbit(x, y):
    for _ in range(20):
        x, y = x + 0.05 * y, y - 0.05 * math.sin(x)
    return x * y


six_d, field_d, orbit_d = (cuda.jit(device=True)(f) for f in (six, field, orbit))


def points(columns, dtype=np.float64):
    return np.random.default_rng(7).uniform(0.2, 1.5, (N, columns)).astype(dtype)


def on_cpu(derivative, xs):
    return np.array([np.ravel(derivative(*x)) for x in xs])


def launch(kernel, *arrays, block=128):
    device = [cuda.to_device(a) for a in arrays]
    kernel[(N + block - 1) // block, block](*device)
    return device[-1].copy_to_host()


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-12), (np.float32, 2e-4)])
def test_gradient_of_six(dtype, rtol):
    gradient = ne.grad(six_d)

    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        if i < x.shape[0]:
            g = gradient(x[i, 0], x[i, 1], x[i, 2], x[i, 3], x[i, 4], x[i, 5])
            out[i, 0], out[i, 1], out[i, 2] = g[0], g[1], g[2]
            out[i, 3], out[i, 4], out[i, 5] = g[3], g[4], g[5]

    xs = points(6, dtype)
    got = [launch(kernel, xs, np.zeros_like(xs), block=block) for block in (32, 128, 1024)]
    assert np.array_equal(got[0], got[1])
    assert np.array_equal(got[0], got[2])
    np.testing.assert_allclose(got[0], on_cpu(ne.grad(six), xs.astype(np.float64)), rtol=rtol, atol=rtol)


def test_value_and_gradient_of_a_loop():
    both = ne.value_and_grad(orbit_d)

    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        if i < x.shape[0]:
            value, partials = both(x[i, 0], x[i, 1])
            out[i, 0], out[i, 1], out[i, 2] = value, partials[0], partials[1]

    xs = points(2)
    expected = np.array([(v, *p) for v, p in (ne.value_and_grad(orbit)(*x) for x in xs)])
    np.testing.assert_allclose(launch(kernel, xs, np.zeros((N, 3))), expected, rtol=1e-12, atol=1e-12)


def test_jacobian_into_a_local_array():
    jacobian = ne.jacfwd(field_d)

    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        if i < x.shape[0]:
            jac = cuda.local.array((2, 3), types.float64)
            jacobian(jac, x[i, 0], x[i, 1], x[i, 2])
            for m in range(2):
                for n in range(3):
                    out[i, 3 * m + n] = jac[m, n]

    xs = points(3)
    np.testing.assert_allclose(launch(kernel, xs, np.zeros((N, 6))), on_cpu(ne.jacfwd(field), xs), rtol=1e-12, atol=1e-12)


def test_products_and_second_order():
    forward, backward, curvature = ne.jvp(field_d), ne.vjp(field_d), ne.jacfwd(ne.grad(orbit_d))

    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        if i < x.shape[0]:
            t = forward((x[i, 0], x[i, 1], x[i, 2]), (1.0, 0.5, 0.0))
            c = backward((x[i, 0], x[i, 1], x[i, 2]), (1.0, -2.0))
            h = curvature(x[i, 0], x[i, 1])
            out[i, 0], out[i, 1] = t[0], t[1]
            out[i, 2], out[i, 3], out[i, 4] = c[0], c[1], c[2]
            out[i, 5], out[i, 6], out[i, 7] = h[0][0], h[0][1], h[1][1]

    xs = points(3)
    expected = []
    for x in xs:
        h = ne.hessian(orbit)(x[0], x[1])
        row = [*ne.jvp(field)(tuple(x), (1.0, 0.5, 0.0)), *ne.vjp(field)(tuple(x), (1.0, -2.0)), h[0][0], h[0][1], h[1][1]]
        expected.append(row)
    np.testing.assert_allclose(launch(kernel, xs, np.zeros((N, 8))), np.array(expected), rtol=1e-11, atol=1e-11)


def converging(x, n):
    r = x
    k = 0
    while k < n and abs(r * r - x) > 1e-12:
        r = 0.5 * (r + x / r)
        k += 1
    return r * r * r


converging_d = cuda.jit(device=True)(converging)


def test_a_loop_of_run_time_length_in_reverse():
    gradient = ne.grad(converging_d, 0)

    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        if i < x.shape[0]:
            out[i, 0] = gradient(x[i, 0], i % 40)

    xs = points(1)
    expected = np.array([[ne.grad(converging, 0)(x[0], i % 40)] for i, x in enumerate(xs)])
    np.testing.assert_allclose(launch(kernel, xs, np.zeros((N, 1))), expected, rtol=1e-11, atol=1e-11)
