"""Builds of CUDA derivatives on disk."""

import math

import pytest

import numba_enzyme as ne
from numba_enzyme import device_pipeline
from numba_enzyme.adapters import numba_cuda_mlir as adapter
from numba_enzyme.frontend import cuda_recall

from numba_cuda_mlir import cuda, types  # isort: skip

f8 = types.float64


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_ENZYME_CACHE_DIR", str(tmp_path))
    return tmp_path


def fresh(factor):
    @cuda.jit(device=True)
    def f(x, y):
        return x * y * factor + math.sin(x)

    return ne.grad(f)


def link(derivative, cc=(9, 0)):
    return derivative.resolve((f8, f8), {}).link(cc, ((), ()))


def test_the_second_build_is_found(folder, monkeypatch):
    first = link(fresh(2.0))
    monkeypatch.setattr(device_pipeline, "_built", None)
    assert link(fresh(2.0)) == first
    for other, cc in ((fresh(3.0), (9, 0)), (fresh(2.0), (8, 0))):
        with pytest.raises(TypeError):
            link(other, cc)


def test_another_libnvvm_builds_again(folder, monkeypatch):
    link(fresh(2.0))
    assert adapter.libnvvm_identity()[1] > 1_000_000
    monkeypatch.setattr(device_pipeline.backend_cuda, "identity", lambda: ("another",))
    monkeypatch.setattr(device_pipeline, "_built", None)
    with pytest.raises(TypeError):
        link(fresh(2.0))


def test_a_damaged_entry_is_built_again(folder):
    symbol, code = link(fresh(2.0))
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_size > 1000:
            path.write_bytes(path.read_bytes()[:-7] + b"damaged")
    assert link(fresh(2.0))[0] == symbol
    assert len(link(fresh(2.0))[1]) == len(code)


def calls_a_derivative(factor):
    inner = fresh(factor)

    @cuda.jit(device=True)
    def outer(x, y):
        a, b = inner(x, y)
        return a * b

    return ne.grad(outer)


@pytest.mark.parametrize("make", [fresh, calls_a_derivative])
def test_the_compiler_is_not_asked_for_what_is_on_the_disk(folder, monkeypatch, make):
    first = link(make(2.0))
    # As in a process that has compiled nothing.
    monkeypatch.setattr(device_pipeline, "_modules", {})
    monkeypatch.setattr(adapter, "lower", None)
    monkeypatch.setattr(device_pipeline, "_built", None)
    assert link(make(2.0)) == first
    with pytest.raises(TypeError):
        link(make(3.0))


def test_functions_whose_meaning_cannot_be_said_are_lowered_each_time():
    opaque = object()

    def function(x, y=opaque):
        return x * y

    assert cuda_recall.key(cuda.jit(device=True)(function), (f8, f8), (9, 0)) is None
    assert cuda_recall.key(fresh(2.0).function, (f8, f8), (9, 0)) is not None
    assert cuda_recall.key(fresh(2.0).function, (types.complex128, f8), (9, 0)) is None
