"""Kernels with derivatives up to a linked cubin for each architecture, without a GPU; and what the machine code looks like."""

import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import numba_enzyme as ne

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")

from numba_cuda_mlir import compiler, cuda, types

from numba_enzyme.adapters import cuda_installation

f4, f8 = types.float32, types.float64
TOOLKIT = max(part.version[0] for part in cuda_installation.found())
CAPABILITIES = [*([(7, 0)] if TOOLKIT == 12 else []), (7, 5), (8, 0), (9, 0), (10, 0), (12, 0)]


@cuda.jit(device=True)
def f(x, y):
    return x * y + math.sin(x)


@cuda.jit(device=True)
def rhs(ys, t, ps):
    return (ys[0] * ps[0] - ys[1] * t, ys[1] * ys[0] * ps[1])


grad_f, value_and_grad_f, jvp_f, hessian_f = ne.grad(f), ne.value_and_grad(f), ne.jvp(f), ne.hessian(f)
RHS = types.UniTuple(f8, 2)(types.UniTuple(f8, 2), f8, types.UniTuple(f8, 2))
sweep, jacobian, twice = ne.jvp(rhs, signature=RHS), ne.jacfwd(rhs), ne.jvp(ne.jvp(rhs, signature=RHS), signature=RHS)


@cuda.jit(device=True)
def through_a_device_function(x, y):
    a, b = grad_f(x, y)
    return a * b


def scalars(out, x):
    i = cuda.grid(1)
    if i < x.shape[0]:
        a, b = grad_f(x[i], 2)
        v, (c, d) = value_and_grad_f(x[i], y=2.0)
        h = hessian_f(x[i], 2.0)
        out[i] = a + b + v + c + d + jvp_f((x[i], 2.0), (1.0, 0.0)) + h[0][0] + through_a_device_function(x[i], 1.0) + f(x[i], 3.0)


def arrays(tangent, jac, ys, t, ps, dys, dps):
    i = cuda.grid(1)
    if i < ys.shape[0]:
        local = cuda.local.array(2, types.float64)
        shared = cuda.shared.array(2, types.float64)
        constant = cuda.const.array_like(CONSTANT)
        sweep(tangent[i], ys[i], t[i], ps[i], dys[i], 1.0, dps[i])
        sweep(local, ys[i], t[i], (1.0, 2.0), dys[i, 0:2], 1, constant)
        sweep(shared, ys[i], t[i], ps[i, 2:4], local, 0.0, dps[i])
        tangent[i, 0] += local[0] * shared[1]
        twice(local, ys[i], t[i], ps[i], dys[i], 0.0, dps[i], dys[i], 1.0, dps[i], (0.0, 0.0), 0.0, (0.0, 0.0))
        tangent[i, 1] += local[1]
        jacobian(jac[i], (ys[i, 0], ys[i, 1]), t[i], (ps[i, 0], ps[i, 1]))


CONSTANT = np.array([1.0, 2.0])
VECTOR, MATRIX = f8[::1], f8[:, ::1]


@pytest.mark.parametrize("cc", CAPABILITIES)
def test_values_link(cc):
    assert len(compiler.compile_cubin(scalars, types.void(VECTOR, VECTOR), cc=cc)) > 1000


@pytest.mark.parametrize("cc", CAPABILITIES)
def test_arrays_link(cc):
    signature = types.void(MATRIX, f8[:, :, ::1], MATRIX, VECTOR, MATRIX, MATRIX, MATRIX)
    assert len(compiler.compile_cubin(arrays, signature, cc=cc)) > 1000


def disassemble(cubin, tmp_path):
    tool = next(Path(p) / "nvidia/cu13/bin/nvdisasm" for p in sys.path if (Path(p) / "nvidia/cu13/bin/nvdisasm").exists())
    file = tmp_path / "kernel.cubin"
    file.write_bytes(cubin)
    return subprocess.run([tool, "-c", file], capture_output=True, text=True, check=True).stdout


def floating(sass, kinds="DFMA|DADD|DMUL|MUFU|FFMA|FADD|FMUL"):
    return len(re.findall(rf"\b(?:{kinds})\b", sass))


needs_nvdisasm = pytest.mark.skipif(
    not any((Path(p) / "nvidia/cu13/bin/nvdisasm").exists() for p in sys.path), reason="nvidia-cuda-nvdisasm is not installed"
)


def kernel_of(function, columns):
    def kernel(out, x):
        i = cuda.grid(1)
        if i < x.shape[0]:
            out[i] = function(x[i, 0], x[i, 1], x[i, 2])

    assert columns == 3
    return kernel


@needs_nvdisasm
@pytest.mark.parametrize("cc", CAPABILITIES)
def test_derivatives_are_inlined(cc, tmp_path):
    @cuda.jit(device=True)
    def g(x, y, z):
        return x * y * z + x * x

    d = ne.grad(g, argnums=1)
    sass = disassemble(compiler.compile_cubin(kernel_of(d, 3), types.void(VECTOR, MATRIX), cc=cc), tmp_path)
    assert len(re.findall(r"^\.text\.\S+:", sass, re.MULTILINE)) == 1
    assert "CALL" not in sass


@needs_nvdisasm
def test_a_literal_unit_tangent_costs_its_column(tmp_path):
    @cuda.jit(device=True)
    def g(x, y, z):
        return x * y * z + x * x * y + z * z * y

    @cuda.jit(device=True)
    def by_hand(x, y, z):
        return x * y + 2.0 * z * y

    directional = ne.jvp(g)

    @cuda.jit(device=True)
    def column(x, y, z):
        return directional((x, y, z), (0.0, 0.0, 1.0))

    counts = [
        floating(disassemble(compiler.compile_cubin(kernel_of(k, 3), types.void(VECTOR, MATRIX), cc=(9, 0)), tmp_path))
        for k in (column, by_hand)
    ]
    assert counts[0] <= counts[1]


@needs_nvdisasm
def test_no_double_precision_in_float32(tmp_path):
    @cuda.jit(device=True)
    def g(x, y, z):
        return x * y * z + x * x / (y + z * z)

    d = ne.grad(g)

    @cuda.jit(device=True)
    def total(x, y, z):
        a, b, c = d(x, y, z)
        return a + b + c

    sass = disassemble(compiler.compile_cubin(kernel_of(total, 3), types.void(f4[::1], f4[:, ::1]), cc=(9, 0)), tmp_path)
    assert floating(sass, "DFMA|DADD|DMUL|DSETP|F2F[^ ]*F64[^ ]*") == 0
