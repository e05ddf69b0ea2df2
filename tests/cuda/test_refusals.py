"""What device code cannot have yet is refused by name, and second order is right where it is served."""

from __future__ import annotations

import math

import pytest

import numba_enzyme as ne
from numba_enzyme import ArgumentError, DifferentiationError, SignatureError, ToolchainError, UnsupportedError

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")

from numba_cuda_mlir import compiler, cuda, types
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


f4, f8, i8 = types.float32, types.float64, types.int64


@cuda.jit(device=True)
def product(x, y):
    return x * y


@cuda.jit(device=True)
def pair(x, y):
    return (x * y, x + y)


@cuda.jit(device=True)
def of_tuple(ys, t):
    return ys[0] * ys[1] * t


@cuda.jit(device=True)
def of_array(ys, t):
    return ys[0] * t


@cuda.jit(device=True)
def into_array(x, out):
    out[0] = x


@cuda.jit(device=True)
def nothing(x):
    y = x * x  # noqa: F841


@cuda.jit(device=True)
def of_shared_memory(x):
    tile = cuda.shared.array(32, types.float64)
    tile[cuda.threadIdx.x] = x
    return tile[0]


@cuda.jit(device=True)
def with_barrier(x):
    cuda.syncthreads()
    return x


@cuda.jit(device=True)
def with_warp_barrier(x):
    cuda.syncwarp()
    return x


@cuda.jit(device=True)
def with_shuffle(x):
    return cuda.shfl_down_sync(0xFFFFFFFF, x, 1) * x


@cuda.jit(device=True)
def recursive(x, n):
    if n < 1:
        return 1.0
    return x * recursive(x, n - 1)


@cuda.jit(device=True)
def counted(x, n):
    s = 0.0
    for _ in range(n):
        s = s * x + 1.0
    return s


@cuda.jit(device=True)
def calls_counted(x, n):
    return counted(x, n) * x


@cuda.jit
def kernel(out, x):
    out[0] = x


A1, A2 = f8[::1], f8[:, ::1]
S = f8(types.UniTuple(f8, 2), f8)
READONLY = types.Array(f8, 1, "C", readonly=True)

REFUSALS = [
    (lambda: ne.grad(kernel), (), SignatureError, r"grad: kernel is a kernel. Put what it computes for each thread into a function under"),
    (lambda: ne.grad(product)(1.0, 2.0), (), SignatureError, r"grad\(product\) is .* called in kernels and device functions only"),
    (lambda: ne.grad(of_array), (A1, f8), SignatureError, r"'ys' is an array.*array does not say its length.*signature="),
    (lambda: ne.grad(of_array, argnums=1), (A1, f8), SignatureError, r"'ys' is an array"),
    (lambda: ne.grad(into_array), (f8, A1), SignatureError, r"'out' is an array"),
    (lambda: ne.grad(nothing), (f8,), SignatureError, r"nothing gives None, but only a float or a tuple of floats has a derivative"),
    (lambda: ne.grad(of_shared_memory), (f8,), UnsupportedError, r"of_shared_memory uses shared memory"),
    (lambda: ne.grad(with_barrier), (f8,), UnsupportedError, r"with_barrier uses a barrier"),
    (lambda: ne.grad(with_warp_barrier), (f8,), UnsupportedError, r"with_warp_barrier uses a barrier"),
    (lambda: ne.grad(with_shuffle), (f8,), UnsupportedError, r"with_shuffle uses a warp operation"),
    (lambda: ne.grad(recursive, argnums=0), (f8, i8), UnsupportedError, r"recursive calls itself"),
    (lambda: ne.grad(product), (types.boolean, f8), SignatureError, r"'x' of product is a bool, which has no derivative.*argnums=\(1,\)"),
    (lambda: ne.grad(product), (types.complex128, f8), SignatureError, r"'x' of product is a complex128, which has no derivative"),
    (lambda: ne.grad(of_tuple), (types.Tuple((f8, types.boolean)), f8), SignatureError, r"'ys' of of_tuple is a Tuple\(float64, bool\)"),
    (
        lambda: ne.grad(counted),
        (f8, i8),
        SignatureError,
        r"(?s)counted cannot be compiled with n as float64, .* as in argnums=\(0,\)\. The compiler says: .*range\(\) was given float64",
    ),
    (
        lambda: ne.jvp(calls_counted),
        (types.Tuple((f8, i8)), types.UniTuple(f8, 2)),
        SignatureError,
        r"(?s)n as float64.*range\(\) was given",
    ),
    (
        lambda: ne.grad(product),
        (f8,),
        SignatureError,
        r"grad\(product\) is called \(\*args\), and product takes 2 arguments \(x, y\); the call has 1",
    ),
    (lambda: ne.grad(product), (f8, f8, f8), SignatureError, r"the call has 3"),
    (lambda: ne.grad(pair), (f8, f8), SignatureError, r"grad needs a function with one float.*pair gives 2: use jacrev or jacfwd"),
    (
        lambda: ne.jvp(pair),
        (f8, f8),
        SignatureError,
        r"jvp\(pair\) is called \(primals, tangents\) or \(tangent, \*args, \*tangents\), not with",
    ),
    (
        lambda: ne.jvp(pair),
        (types.UniTuple(f8, 3), types.UniTuple(f8, 2)),
        SignatureError,
        r"pair takes 2 arguments \(x, y\), but primals has 3",
    ),
    (
        lambda: ne.jvp(pair),
        (types.UniTuple(f8, 2), types.UniTuple(f8, 1)),
        SignatureError,
        r"tangents, one entry for each .* must be shaped like",
    ),
    (
        lambda: ne.jvp(pair),
        (A1, f8, f8, f8),
        SignatureError,
        r"one array, 2 arguments \(x, y\), and for each set of tangents one for each of x, y; not 4",
    ),
    (lambda: ne.vjp(pair), (A1,), SignatureError, r"vjp\(pair\) is called"),
    (lambda: ne.vjp(pair), (A1, f8, f8, f8), SignatureError, r"out must be an array, not a float64"),
    (lambda: ne.jacfwd(pair), (f8[:, :], f8, f8), SignatureError, r"jac must be contiguous \(layout C\)"),
    (lambda: ne.jvp(pair), (f8[:], f8, f8, f8, f8), SignatureError, r"tangent must be contiguous"),
    (lambda: ne.jvp(pair), (f4[::1], f8, f8, f8, f8), SignatureError, r"tangent must have dtype float64, as pair has, not float32"),
    (lambda: ne.jvp(pair), (f8[:, :, ::1], f8, f8, f8, f8), SignatureError, r"tangent must be an array with 1 or 2 dimensions"),
    (lambda: ne.jvp(pair), (READONLY, f8, f8, f8, f8), SignatureError, r"tangent cannot be written to"),
    (lambda: ne.jvp(of_tuple, signature=S), (A1, f4[::1], f8, A1, f8), SignatureError, r"ys must have dtype float64"),
    (lambda: ne.jvp(of_tuple), (A1, A1, f8, A1, f8), SignatureError, r"'ys' is an array.*signature="),
    (lambda: ne.jvp(of_tuple, signature=f8(f8)), (A1, A1, f8, A1, f8), SignatureError, r"signature= has 1 arguments, but of_tuple takes 2"),
    (lambda: ne.grad(product, signature="f8(f8)"), (), SignatureError, r"is no signature; write types.float64"),
    (lambda: ne.grad(product, cc=90), (), ArgumentError, r"cc=90 is no compute capability; write cc=\(9, 0\)"),
    (lambda: ne.grad(product, tape_bytes=0), (), ArgumentError, r"tape_bytes=0 is not a number of bytes"),
    (lambda: ne.grad(product, width=3), (), SignatureError, r"width= is no option"),
    (lambda: ne.grad(product, argnums=2), (), ArgumentError, r"product has 2 parameters \(x, y\), none numbered 2"),
    (lambda: ne.grad(lambda x: x, signature=S), (), SignatureError, r"signature= is an option for CUDA device functions"),
    (lambda: ne.grad(lambda x: x, cc=(9, 0)), (), SignatureError, r"cc= is an option for CUDA device functions"),
]


@pytest.mark.parametrize(("make", "argtypes", "error", "text"), REFUSALS, ids=[r[3][:40] for r in REFUSALS])
def test_refused_by_name_with_a_way_out(make, argtypes, error, text):
    with pytest.raises(error, match=text):
        make().resolve(argtypes, {})


def test_atomics():
    @cuda.jit(device=True)
    def adds(x):
        cell = cuda.local.array(1, types.float64)
        cuda.atomic.add(cell, 0, x)
        return x

    with pytest.raises(UnsupportedError, match="adds uses an atomic operation"):
        ne.grad(adds).resolve((f8,), {})


def test_the_text_is_in_the_error_of_the_kernel():
    gradient = ne.grad(with_barrier)

    def calls(out, x):
        out[0] = gradient(x)[0]

    with pytest.raises(Exception, match="with_barrier uses a barrier"):
        compiler.compile_cubin(calls, types.void(A1, f8), cc=(9, 0))


def test_a_float_for_range_is_refused_before_the_compiler_fails():
    gradient = ne.grad(counted)

    def calls(out, x):
        out[0] = gradient(x, 3)[0]

    with pytest.raises(Exception, match=r"counted cannot be compiled with n as float64"):
        compiler.compile_cubin(calls, types.void(A1, f8), cc=(9, 0))
    with pytest.raises(Exception, match=r"range\(\) was given float64"):
        gradient.resolve((f8, f8), {})
    assert ne.grad(counted, argnums=0).resolve((f8, i8), {})


def test_no_device_and_no_capability(monkeypatch):
    from numba_cuda_mlir import tools

    from numba_enzyme.adapters import numba_cuda_mlir

    monkeypatch.setattr(tools, "_cached_cc", None)
    monkeypatch.delenv("NUMBA_ENZYME_CUDA_CC", raising=False)
    if cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(ToolchainError, match=r"There is no CUDA device here. Set NUMBA_ENZYME_CUDA_CC, to 9.0 for instance"):
        numba_cuda_mlir.current_cc()
