"""Device functions that carry their derivatives, and globals that are bound anew."""

import math

import numpy as np
import pytest

import numba_enzyme as ne

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")

from numba_cuda_mlir import compiler, cuda, types

f8 = types.float64
OUTER, INNER = 2.0, 3.0


@ne.differentiable
@cuda.jit(device=True)
def area(x, y):
    """The area of something."""
    return x * y + math.sin(x)


@ne.differentiable
@cuda.jit(device=True)
def pair(x, y):
    return (x * y, x + y)


@cuda.jit(device=True)
def through(x, y):
    a, b = area.grad(x, y)
    return area(x, y) * a + b


@cuda.jit(device=True)
def inner(x):
    return INNER * x


@cuda.jit(device=True)
def outer(x):
    return OUTER * inner(x) * x


def test_attributes_are_the_transforms(evaluate):
    x, y = 0.3, 2.0
    np.testing.assert_allclose(evaluate(area.grad, x, y), (y + math.cos(x), x))
    np.testing.assert_allclose(evaluate(area.hvp, (x, y), (1.0, 0.0)), (-math.sin(x), 1.0))
    np.testing.assert_allclose(evaluate(pair.jvp, (x, y), (1.0, 0.0)), (y, 1.0))
    assert area.grad is ne.grad(area.callee)
    assert ne.grad(area) is area.grad
    with pytest.raises(AttributeError, match="has no attribute 'gradient'"):
        _ = area.gradient


def test_what_it_is_called():
    assert (area.__name__, area.__qualname__, area.__doc__) == ("area", "area", "The area of something.")
    with pytest.raises(ne.SignatureError, match="area is a device function, and is called in kernels and device functions only"):
        area(1.0, 2.0)
    with pytest.raises(ne.SignatureError, match="differentiable: kernel is a kernel"):
        ne.differentiable(cuda.jit(kernel))


def test_a_function_that_calls_it_and_its_derivatives_is_differentiated(evaluate):
    x, y = 0.3, 2.0
    value, slope, bend = x * y + math.sin(x), y + math.cos(x), -math.sin(x)
    np.testing.assert_allclose(evaluate(ne.grad(through), x, y), (slope * slope + value * bend + 1.0, x * slope + value))


def kernel(out, x):
    out[0] = area(x, 2.0)
    out[1], out[2] = area.grad(x, 2.0)
    out[3], out[4] = pair.jvp((x, 2.0), (1.0, 0.0))
    out[5] = through(x, 2.0) + area(y=x, x=1.0)


@pytest.mark.parametrize("cc", [(8, 0), (9, 0), (12, 0)])
def test_kernels_link(cc):
    assert len(compiler.compile_cubin(kernel, types.void(f8[::1], f8), cc=cc)) > 1000


@pytest.mark.gpu
def test_on_a_device():
    if not cuda.is_available():
        pytest.skip("no CUDA device")
    out = cuda.to_device(np.zeros(6))
    x = 0.3
    cuda.jit(kernel)[1, 1](out, x)
    slope, value = 2.0 + math.cos(x), x * 2.0 + math.sin(x)
    want = [value, slope, x, 2.0, 1.0, value * slope + x + x + math.sin(1.0)]
    np.testing.assert_allclose(out.copy_to_host(), want, rtol=1e-14)


def test_a_derivative_is_offered_too():
    second = ne.differentiable(ne.grad(area, argnums=0))

    def calls(out, x):
        out[0] = second(x, 2.0) + second.grad(x, 2.0)[0]

    assert len(compiler.compile_cubin(calls, types.void(f8[::1], f8), cc=(9, 0))) > 1000


def symbol(derivative):
    return derivative.resolve((f8,), {}).link((9, 0), ((),))[0]


@pytest.mark.parametrize("name", ["OUTER", "INNER"])
def test_a_global_that_is_bound_anew_is_seen_by_the_next_call_site(monkeypatch, name):
    gradient, hessian = ne.grad(outer), ne.hessian(outer)
    before = symbol(gradient), symbol(hessian)
    assert (symbol(gradient), symbol(hessian)) == before
    monkeypatch.setitem(outer.py_func.__globals__, name, 5.0)
    after = symbol(gradient), symbol(hessian)
    assert all(new != old for new, old in zip(after, before, strict=True))
    monkeypatch.undo()
    assert (symbol(gradient), symbol(hessian)) == before
