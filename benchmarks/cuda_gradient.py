"""The gradient of a function of six arguments in a kernel, against one written by hand, and against JAX where it is installed: with a GPU.

python -m benchmarks.cuda_gradient
"""

from __future__ import annotations

import math
import statistics
import time
from importlib.util import find_spec

import numpy as np
from numba_cuda_mlir import cuda

from numba_enzyme import grad

POINTS = 1 << 22
REPEATS = 30


@cuda.jit(device=True)
def function(a, b, c, d, e, f):
    return math.sin(a) * b + math.exp(-c * c) * d * d + e * a / (1.0 + f * f) + math.sqrt(1.0 + b * b) * math.tanh(c * e)


@cuda.jit(device=True)
def by_hand(a, b, c, d, e, f):
    gauss = math.exp(-c * c)
    below = 1.0 / (1.0 + f * f)
    root = math.sqrt(1.0 + b * b)
    t = math.tanh(c * e)
    slope = root * (1.0 - t * t)
    return (
        math.cos(a) * b + e * below,
        math.sin(a) + b / root * t,
        -2.0 * c * gauss * d * d + slope * e,
        2.0 * gauss * d,
        a * below + slope * c,
        -2.0 * f * e * a * below * below,
    )


def kernel_of(gradient):
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        if i < x.shape[1]:
            g = gradient(x[0, i], x[1, i], x[2, i], x[3, i], x[4, i], x[5, i])
            out[0, i], out[1, i], out[2, i] = g[0], g[1], g[2]
            out[3, i], out[4, i], out[5, i] = g[3], g[4], g[5]

    return kernel


def milliseconds(kernel, x, out):
    start, end = cuda.event(), cuda.event()
    start.record()
    kernel[(POINTS + 127) // 128, 128](x, out)
    end.record()
    end.synchronize()
    return cuda.event_elapsed_time(start, end)


def in_jax(x):
    """Milliseconds of `jit(vmap(grad))` over the same points, arrays on the device before and after."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def same(a, b, c, d, e, f):
        root = jnp.sqrt(1.0 + b * b)
        return jnp.sin(a) * b + jnp.exp(-c * c) * d * d + e * a / (1.0 + f * f) + root * jnp.tanh(c * e)

    gradient = jax.jit(jax.vmap(jax.grad(same, argnums=tuple(range(6)))))
    columns = [jax.device_put(column) for column in x]
    jax.block_until_ready(gradient(*columns))
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        jax.block_until_ready([gradient(*columns) for _ in range(10)])
        times.append((time.perf_counter() - start) * 100)
    return min(times)


def main():
    derivative, hand = kernel_of(grad(function)), kernel_of(by_hand)
    for dtype in (np.float64, np.float32):
        x = cuda.to_device(np.random.default_rng(1).uniform(0.2, 1.5, (6, POINTS)).astype(dtype))
        outs = [cuda.to_device(np.zeros((6, POINTS), dtype)) for _ in range(2)]
        for kernel, out in zip((derivative, hand), outs, strict=True):
            milliseconds(kernel, x, out)
        error = np.abs(outs[0].copy_to_host() - outs[1].copy_to_host()).max()
        pairs = [(milliseconds(derivative, x, outs[0]), milliseconds(hand, x, outs[1])) for _ in range(REPEATS)]
        ratio = statistics.median(a / b for a, b in pairs)
        print(
            f"{np.dtype(dtype).name}: grad {min(a for a, _ in pairs):.4f} ms, by hand {min(b for _, b in pairs):.4f} ms, "
            f"ratio {ratio:.3f}, largest difference {error:.1e}"
        )
        if find_spec("jax"):
            print(f"{np.dtype(dtype).name}: JAX {in_jax(x.copy_to_host()):.4f} ms")


if __name__ == "__main__":
    main()
