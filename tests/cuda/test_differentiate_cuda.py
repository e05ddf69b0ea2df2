"""All derivatives of a device function in one object."""

import math

import numpy as np
import pytest

from numba_enzyme.cuda import CUDADifferentiable, differentiate_cuda
from numba_enzyme.errors import ArgumentError, SignatureError

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")

from numba_cuda_mlir import compiler, cuda, types

f8 = types.float64


@cuda.jit(device=True)
def f(x, y):
    return x * y + math.sin(x)


@cuda.jit(device=True)
def rhs(ys, t):
    return (ys[0] * t, ys[1] * ys[0])


def test_one_callable_for_each_mode(evaluate):
    d = differentiate_cuda(f)
    assert isinstance(d, CUDADifferentiable)
    assert d.modes == ("grad", "value_and_grad", "jvp", "vjp", "jacfwd", "jacrev")
    np.testing.assert_allclose(evaluate(d.grad, 1.0, 2.0), (2 + math.cos(1), 1.0))
    np.testing.assert_allclose(evaluate(d.jvp, (1.0, 2.0), (0.0, 1.0)), 1.0)


def test_only_the_modes_that_were_asked_for():
    d = differentiate_cuda(f, modes=["jvp"])
    assert d.modes == ("jvp",)
    with pytest.raises(AttributeError, match="has no 'grad'; its modes are jvp"):
        _ = d.grad
    with pytest.raises(ArgumentError, match="the modes are grad, value_and_grad"):
        differentiate_cuda(f, modes=["gradient"])


@pytest.mark.parametrize("cc", [(8, 0), (9, 0), (10, 0), (12, 0)])
def test_handles_link(cc):
    signature = types.UniTuple(f8, 2)(types.UniTuple(f8, 2), f8)
    externals = differentiate_cuda(rhs, signature=signature, cc=cc).externals
    assert set(externals) >= {"jvp", "vjp", "jacfwd", "jacrev"}
    jvp, vjp, jacobian = externals["jvp"], externals["vjp"], externals["jacfwd"]

    def kernel(out, jac, ys, t, v):
        jvp(out[0], ys, t, v, 1.0)
        vjp(v, out[1], ys, t)
        jacobian(jac, ys, t)

    compiler.compile_cubin(kernel, types.void(f8[:, ::1], f8[:, ::1], f8[::1], f8, f8[::1]), cc=cc)


def test_handles_need_a_signature_and_have_no_tuples():
    with pytest.raises(SignatureError, match=r"jvp\(f\): a handle needs the types of its arguments: give signature="):
        differentiate_cuda(f).externals["jvp"]
    with pytest.raises(SignatureError, match="declares no function with tuples"):
        differentiate_cuda(f, signature=f8(f8, f8)).externals["grad"]


def test_a_handle_may_give_one_float():
    @cuda.jit(device=True)
    def square(x):
        return x * x

    gradient = differentiate_cuda(square, signature=f8(f8)).externals["grad"]

    def kernel(out, x):
        out[0] = gradient(x)

    compiler.compile_cubin(kernel, types.void(f8[::1], f8), cc=(9, 0))
