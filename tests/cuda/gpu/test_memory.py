"""Arrays in every kind of memory, many states, many threads, and tapes that do not fit, on a GPU."""

from __future__ import annotations

import contextlib
import math
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import numba_enzyme as ne

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")

from numba_cuda_mlir import cuda, types

pytestmark = pytest.mark.gpu

f8 = types.float64
THREADS = 1000
STATES = 48
CONSTANT = np.array([0.0, 1.0])
PAIR = types.UniTuple(f8, 2)(types.UniTuple(f8, 2), f8, types.UniTuple(f8, 2))


def rhs(ys, t, ps):
    return (ys[0] * ps[0] - ys[1] * t, ys[1] * ys[0] * ps[1])


def rhs_tangent(ys, t, ps, dys, dt, dps):
    first = dys[0] * ps[0] + ys[0] * dps[0] - dys[1] * t - ys[1] * dt
    return first, dys[1] * ys[0] * ps[1] + ys[1] * dys[0] * ps[1] + ys[1] * ys[0] * dps[1]


rhs_d = cuda.jit(device=True)(rhs)
sweep = ne.jvp(rhs_d, signature=PAIR)
jacobian, pullback = ne.jacfwd(rhs_d, signature=PAIR), ne.vjp(rhs_d, signature=PAIR)
twice = ne.jvp(ne.jvp(rhs_d, signature=PAIR), signature=PAIR)


def test_global_local_shared_and_constant_memory():
    @cuda.jit
    def kernel(ys, ps, dys, out):
        i = cuda.grid(1)
        shared = cuda.shared.array((32, 2), types.float64)
        local = cuda.local.array(2, types.float64)
        constant = cuda.const.array_like(CONSTANT)
        if i < ys.shape[0]:
            sweep(out[i, 0], ys[i], 0.5, ps[i], dys[i], 1.0, constant)
            sweep(local, ys[i], 0.5, ps[i], dys[i], 1.0, constant)
            sweep(shared[cuda.threadIdx.x], ys[i], 0.5, (ps[i, 0], ps[i, 1]), local, 0.0, constant)
            out[i, 1, 0] = local[0]
            out[i, 1, 1] = local[1]
            out[i, 2, 0] = shared[cuda.threadIdx.x, 0]
            out[i, 2, 1] = shared[cuda.threadIdx.x, 1]

    rng = np.random.default_rng(3)
    ys, ps, dys = (rng.uniform(0.5, 2.0, (THREADS, 2)) for _ in range(3))
    out = cuda.to_device(np.zeros((THREADS, 3, 2)))
    kernel[(THREADS + 31) // 32, 32](*map(cuda.to_device, (ys, ps, dys)), out)
    first = np.transpose(rhs_tangent(ys.T, 0.5, ps.T, dys.T, 1.0, CONSTANT))
    second = np.transpose(rhs_tangent(ys.T, 0.5, ps.T, first.T, 0.0, CONSTANT))
    np.testing.assert_allclose(out.copy_to_host(), np.stack([first, first, second], axis=1), rtol=1e-13, atol=1e-13)


def test_several_sets_rows_and_second_order():
    @cuda.jit
    def kernel(ys, ps, us, weights, tangents, rows, jac, second):
        i = cuda.grid(1)
        if i < ys.shape[0]:
            y, p, u = ys[i], ps[i], us[i]
            sweep(tangents[i], y, 0.5, p, u, 1.0, (0.0, 0.0), (1.0, 0.0), 0.0, (0.0, 0.0), (0.0, 0.0), 0.0, u)
            pullback(weights, rows[i], y, 0.5, p)
            jacobian(jac[i], y, 0.5, p)
            twice(second[i], y, 0.5, p, u, 1.0, (0.0, 0.0), u, 0.0, u, (0.0, 0.0), 0.0, (0.0, 0.0))

    rng = np.random.default_rng(4)
    ys, ps, us = (rng.uniform(0.5, 2.0, (THREADS, 2)) for _ in range(3))
    weights = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, -3.0]])
    shapes = ((THREADS, 3, 2), (THREADS, 3, 5), (THREADS, 2, 5), (THREADS, 2))
    outs = [cuda.to_device(np.zeros(shape)) for shape in shapes]
    kernel[(THREADS + 127) // 128, 128](*map(cuda.to_device, (ys, ps, us, weights)), *outs)
    tangents, rows, jac, second = (out.copy_to_host() for out in outs)
    y, p, u, none = ys.T, ps.T, us.T, (0.0, 0.0)
    want = [rhs_tangent(y, 0.5, p, u, 1.0, none), rhs_tangent(y, 0.5, p, (1.0, 0.0), 0.0, none), rhs_tangent(y, 0.5, p, none, 0.0, u)]
    np.testing.assert_allclose(tangents, np.transpose(np.array([np.broadcast_arrays(*w) for w in want]), (2, 0, 1)), rtol=1e-13, atol=1e-13)
    zero = np.zeros(THREADS)
    wanted = np.array([[p[0], -0.5 + zero, -y[1], y[0], zero], [y[1] * p[1], y[0] * p[1], zero, zero, y[0] * y[1]]]).transpose(2, 0, 1)
    np.testing.assert_allclose(jac, wanted, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(rows, weights @ wanted, rtol=1e-13, atol=1e-13)
    v, w = u, u  # outer tangents of ys and of ps
    expected = [
        v[0] * 0 + w[0] * u[0] - v[1] * 1.0,
        u[1] * v[0] * p[1] + u[1] * y[0] * w[1] + v[1] * u[0] * p[1] + y[1] * u[0] * w[1],
    ]
    np.testing.assert_allclose(second, np.transpose(expected), rtol=1e-13, atol=1e-13)


def ring():
    """48 states, each of which feels its neighbours and a parameter of its own."""
    lines = [f"math.sin(y[{(k + 1) % STATES}]) * p[{k}] - y[{k}] * y[{k - 1 if k else STATES - 1}] + t" for k in range(STATES)]
    namespace = {"math": math}
    exec(f"def ring(y, t, p):\n    return ({', '.join(lines)})\n", namespace)
    return namespace["ring"]


def test_forty_eight_states_and_block_sizes():
    states = types.UniTuple(f8, STATES)
    derivative = ne.jvp(cuda.jit(device=True)(ring()), signature=states(states, f8, states))

    @cuda.jit
    def kernel(out, ys, ps, dys, dps):
        i = cuda.grid(1)
        if i < ys.shape[0]:
            derivative(out[i], ys[i], 0.3, ps[i], dys[i], 1.0, dps[i])

    rng = np.random.default_rng(5)
    y, p, dy, dp = (rng.uniform(0.5, 1.5, (THREADS, STATES)) for _ in range(4))
    results = []
    for block in (32, 64, 128, 256, 512, 1024):
        out = cuda.to_device(np.zeros((THREADS, STATES)))
        # A block that needs more registers than a multiprocessor has is not launched.
        with contextlib.suppress(Exception):
            kernel[(THREADS + block - 1) // block, block](out, *map(cuda.to_device, (y, p, dy, dp)))
            results.append(out.copy_to_host())
    up, down = np.roll(y, -1, axis=1), np.roll(y, 1, axis=1)
    want = np.cos(up) * np.roll(dy, -1, axis=1) * p + np.sin(up) * dp - dy * down - y * np.roll(dy, 1, axis=1) + 1.0
    np.testing.assert_allclose(results[0], want, rtol=1e-12, atol=1e-12)
    assert len(results) >= 4
    assert all(np.array_equal(results[0], other) for other in results[1:])


def test_forty_arguments():
    names = [f"a{k}" for k in range(40)]
    code = f"def star({', '.join(names)}):\n    return {' + '.join(f'math.exp(a{k}) * math.cos(a{(k + 1) % 40})' for k in range(40))}\n"
    code += (
        f"def kernel(x, out):\n    i = cuda.grid(1)\n    if i < x.shape[0]:\n        g = d({', '.join(f'x[i, {k}]' for k in range(40))})\n"
    )
    code += "\n".join(f"        out[i, {k}] = g[{k}]" for k in range(40))
    namespace = {"math": math, "cuda": cuda}
    exec(code, namespace)
    namespace["d"] = ne.grad(cuda.jit(device=True)(namespace["star"]))
    x = np.random.default_rng(6).uniform(-1.0, 1.0, (THREADS, 40))
    out = cuda.to_device(np.zeros_like(x))
    cuda.jit(namespace["kernel"])[(THREADS + 127) // 128, 128](cuda.to_device(x), out)
    want = np.exp(x) * np.cos(np.roll(x, -1, axis=1)) - np.exp(np.roll(x, 1, axis=1)) * np.sin(x)
    np.testing.assert_allclose(out.copy_to_host(), want, rtol=1e-12, atol=1e-13)


def test_a_tape_that_is_too_small_stops_the_kernel_and_says_what_to_do():
    code = """
    import math
    import numpy as np
    import numba_enzyme as ne
    from numba_cuda_mlir import cuda, types

    @cuda.jit(device=True)
    def looped(x, n):
        s = 0.0
        for _ in range(n):
            s = s * x + math.sin(s + x)
        return s

    gradient = ne.grad(looped, argnums=0, tape_bytes=128)

    @cuda.jit
    def kernel(out, n):
        out[0] = gradient(0.5, n)

    out = cuda.to_device(np.zeros(1))
    kernel[1, 1](out, 8)
    print("FITS", out.copy_to_host()[0] != 0.0, flush=True)
    kernel[1, 1](out, 9)
    cuda.synchronize()
    print("NOT STOPPED")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert "FITS True" in done.stdout, said
    assert done.returncode != 0
    assert "NOT STOPPED" not in done.stdout
    assert "looped needs more than 128 bytes of tape in a thread: raise its option tape_bytes=, at least to" in said
    assert "bytes of tape needed so far:160: grad_looped of looped: " in said


def test_tapes_of_many_threads():
    def looped(x, n):
        s = 0.0
        for _ in range(n):
            s = s * x + math.sin(s + x)
        return s

    gradient = ne.grad(cuda.jit(device=True)(looped), argnums=0)

    @cuda.jit
    def kernel(out, x):
        i = cuda.grid(1)
        if i < x.shape[0]:
            out[i] = gradient(x[i], i % 100)

    x = np.random.default_rng(7).uniform(0.1, 0.9, THREADS)
    out = cuda.to_device(np.zeros(THREADS))
    kernel[(THREADS + 127) // 128, 128](out, cuda.to_device(x))
    on_cpu = ne.grad(looped, argnums=0)
    np.testing.assert_allclose(out.copy_to_host(), [on_cpu(v, i % 100) for i, v in enumerate(x)], rtol=1e-11, atol=1e-12)
