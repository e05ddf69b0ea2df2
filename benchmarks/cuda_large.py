"""A gradient by 40 arguments and a tangent of 48 states in kernels, against hand-written ones: times, registers and what compiling takes.

python -m benchmarks.cuda_large            everything, with a GPU
python -m benchmarks.cuda_large compile    what can be told without one: set NUMBA_ENZYME_CUDA_CC=9.0
"""

from __future__ import annotations

import math
import statistics
import sys
import time

import numpy as np
from numba_cuda_mlir import compiler, cuda, types

from numba_enzyme import grad, jvp

ARGUMENTS, STATES = 40, 48
POINTS = 1 << 18
REPEATS = 30
f8 = types.float64
TUPLE = types.UniTuple(f8, STATES)
RING = TUPLE(TUPLE, f8, TUPLE)


def defined(name, code):
    namespace = {"math": math, "cuda": cuda}
    exec(code, namespace)
    return namespace[name]


def star():
    names = [f"a{k}" for k in range(ARGUMENTS)]
    head = ", ".join(names)
    terms = [f"math.exp(a{k}) * math.cos(a{(k + 1) % ARGUMENTS})" for k in range(ARGUMENTS)]
    function = f"def star({head}):\n    return {' + '.join(terms)}\n"
    lines = [f"    e{k} = math.exp(a{k})\n    c{k} = math.cos(a{k})\n    s{k} = math.sin(a{k})" for k in range(ARGUMENTS)]
    partials = [f"e{k} * c{(k + 1) % ARGUMENTS} - e{k - 1 if k else ARGUMENTS - 1} * s{k}" for k in range(ARGUMENTS)]
    hand = f"def hand({head}):\n" + "\n".join(lines) + f"\n    return ({', '.join(partials)})\n"
    return cuda.jit(device=True)(defined("star", function)), cuda.jit(device=True)(defined("hand", hand))


def star_kernel(gradient):
    call = ", ".join(f"x[{k}, i]" for k in range(ARGUMENTS))
    body = "\n".join(f"        out[{k}, i] = g[{k}]" for k in range(ARGUMENTS))
    code = f"def kernel(x, out):\n    i = cuda.grid(1)\n    if i < x.shape[1]:\n        g = gradient({call})\n{body}\n"
    namespace = {"cuda": cuda, "gradient": gradient}
    exec(code, namespace)
    return namespace["kernel"]


def ring():
    up, down = (lambda k: (k + 1) % STATES), (lambda k: k - 1 if k else STATES - 1)
    lines = [f"math.sin(y[{up(k)}]) * p[{k}] - y[{k}] * y[{down(k)}] + t" for k in range(STATES)]
    function = f"def ring(y, t, p):\n    return ({', '.join(lines)})\n"
    return cuda.jit(device=True)(defined("ring", function))


def ring_kernels(derivative):
    def kernel(out, y, p, dy, dp):
        i = cuda.grid(1)
        if i < y.shape[0]:
            derivative(out[i], y[i], 0.3, p[i], dy[i], 1.0, dp[i])

    lines = []
    for k in range(STATES):
        up, down = (k + 1) % STATES, k - 1 if k else STATES - 1
        lines.append(
            f"        out[i, {k}] = math.cos(y[i, {up}]) * dy[i, {up}] * p[i, {k}] + math.sin(y[i, {up}]) * dp[i, {k}]"
            f" - dy[i, {k}] * y[i, {down}] - y[i, {k}] * dy[i, {down}] + 1.0"
        )
    hand = "def hand(out, y, p, dy, dp):\n    i = cuda.grid(1)\n    if i < y.shape[0]:\n" + "\n".join(lines) + "\n"
    return kernel, defined("hand", hand)


def pairs():
    """Name, kernel with the derivative, kernel by hand, signature, the shapes of their arrays (the output is the one named)."""
    function, by_hand = star()
    matrix = f8[:, ::1]
    yield (
        "grad, 40 arguments",
        star_kernel(grad(function)),
        star_kernel(by_hand),
        types.void(matrix, matrix),
        ((ARGUMENTS, POINTS),) * 2,
        1,
    )
    derivative = jvp(ring(), signature=RING)
    yield "jvp, 48 states", *ring_kernels(derivative), types.void(*[matrix] * 5), ((POINTS, STATES),) * 5, 0


def compile_times():
    for name, kernel, hand, signature, _, _ in pairs():
        seconds = []
        for function in (hand, kernel):
            start = time.perf_counter()
            size = len(compiler.compile_cubin(function, signature))
            seconds.append((time.perf_counter() - start, size))
        (by_hand, small), (derived, large) = seconds
        print(f"{name}: compiled in {derived:.2f} s, by hand {by_hand:.2f} s; cubin {large} bytes, by hand {small}")


def milliseconds(kernel, arrays):
    start, end = cuda.event(), cuda.event()
    start.record()
    kernel[(POINTS + 127) // 128, 128](*arrays)
    end.record()
    end.synchronize()
    return cuda.event_elapsed_time(start, end)


def run():
    for name, kernel, hand, _, shapes, output in pairs():
        rng = np.random.default_rng(1)
        arrays = [cuda.to_device(rng.uniform(0.2, 1.5, shape)) for shape in shapes]
        kernels = [cuda.jit(kernel), cuda.jit(hand)]
        results = []
        for compiled in kernels:
            milliseconds(compiled, arrays)
            results.append(arrays[output].copy_to_host())
        timed = [tuple(milliseconds(compiled, arrays) for compiled in kernels) for _ in range(REPEATS)]
        ratio = statistics.median(a / b for a, b in timed)
        usage = [
            f"{max(k.get_regs_per_thread().values())} registers, {max(k.get_local_mem_per_thread().values())} bytes local" for k in kernels
        ]
        error = np.abs(results[0] - results[1]).max()
        print(f"{name}: {min(a for a, _ in timed):.4f} ms ({usage[0]}), by hand {min(b for _, b in timed):.4f} ms ({usage[1]})")
        print(f"    ratio {ratio:.3f}, largest difference {error:.1e}")


if __name__ == "__main__":
    if "compile" not in sys.argv[1:]:
        run()
    compile_times()
