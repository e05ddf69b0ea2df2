"""Derivatives that are asked for at one place go through one opt run."""

import math

import pytest

import numba_enzyme as ne
from numba_enzyme import device_pipeline
from numba_enzyme.cuda import differentiate_cuda
from numba_enzyme.llvm import typed

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")

from numba_cuda_mlir import compiler, cuda, types
from numba_cuda_mlir.cuda import libdevice

f8 = types.float64


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """The symbols that each run of opt is asked for, with nothing on the disk and nothing asked for before."""
    from numba_enzyme import device_batch

    monkeypatch.setenv("NUMBA_ENZYME_CACHE_DIR", str(tmp_path))
    device_batch._pending.clear()
    seen = []
    run = device_pipeline.run.differentiate_typed

    def counted(toolchain, ir, keep, *, fastmath):
        seen.append(list(keep))
        return run(toolchain, ir, keep, fastmath=fastmath)

    monkeypatch.setattr(device_pipeline.run, "differentiate_typed", counted)
    return seen


def fresh(factor):
    @cuda.jit(device=True)
    def f(x, y):
        s = 0.0
        for _ in range(20):
            s = math.sin(s * y) + x * factor
        return s * math.exp(x)

    return f


def test_a_kernel_is_one_run(runs):
    gradient, tangent, hessian = ne.grad(fresh(2.0)), ne.jvp(fresh(3.0)), ne.hessian(fresh(4.0))

    def kernel(out, x):
        a, b = gradient(x, 2.0)
        out[0] = a + b + tangent((x, 1.0), (1.0, 0.0)) + hessian(x, 1.0)[0][1]

    compiler.compile_cubin(kernel, types.void(f8[::1], f8), cc=(9, 0))
    assert [len(symbols) for symbols in runs] == [3]


def test_the_code_is_that_of_a_run_by_itself(runs, tmp_path, monkeypatch):
    def codes(*, together):
        made = []
        for transform in (ne.grad, ne.value_and_grad, ne.jacfwd, ne.hessian):
            symbol, code = transform(fresh(2.0)).resolve((f8, f8), {}).request((9, 0), ((), ()))
            made.append((symbol, code if together else code()))
        return [(symbol, code() if together else code) for symbol, code in made]

    first = codes(together=True)
    monkeypatch.setenv("NUMBA_ENZYME_CACHE_DIR", str(tmp_path / "another"))
    assert codes(together=False) == first
    assert [len(symbols) for symbols in runs] == [4, 1, 1, 1, 1]


def test_handles_are_one_run(runs):
    externals = differentiate_cuda(fresh(5.0), signature=f8(f8, f8), modes=["jvp", "vjp", "jacfwd"]).externals
    jvp, vjp, jacobian = externals["jvp"], externals["vjp"], externals["jacfwd"]

    def kernel(out, jac, x):
        jvp(out, x, 1.0, 1.0, 0.0)
        vjp(out, out, x, 1.0)
        jacobian(jac, x, 1.0)

    compiler.compile_cubin(kernel, types.void(f8[::1], f8[:, ::1], f8), cc=(9, 0))
    assert [len(symbols) for symbols in runs] == [3]


def test_options_of_a_run_are_not_mixed(runs):
    exact, fast = ne.grad(fresh(6.0)), ne.grad(cuda.jit(device=True, fastmath=True)(fresh(7.0).py_func))

    def kernel(out, x):
        out[0] = exact(x, 1.0)[0] + fast(x, 1.0)[0]

    compiler.compile_cubin(kernel, types.void(f8[::1], f8), cc=(9, 0))
    assert [len(symbols) for symbols in runs] == [1, 1]


def test_what_cannot_be_differentiated_is_named_and_the_others_are_built(runs):
    @cuda.jit(device=True)
    def without(x, y):
        return libdevice.erfcx(x) * y

    good, bad = ne.grad(fresh(8.0)), ne.grad(without)

    def kernel(out, x):
        out[0] = good(x, 1.0)[0] + bad(x, 1.0)[0]

    with pytest.raises(ne.DifferentiationError, match=r"without cannot be differentiated: it uses __nv_erfcx"):
        compiler.compile_cubin(kernel, types.void(f8[::1], f8), cc=(9, 0))
    count = len(runs)
    good.resolve((f8, f8), {}).link((9, 0), ((), ()))
    assert len(runs) == count


def test_a_module_out_of_a_larger_one():
    text = """source_filename = "x"
target triple = "t"
@used = internal constant i32 1
@unused = internal constant i32 2
declare double @sin(double)
declare double @cos(double)
define double @a(double %x) {
entry:
  %r = call double @b(double %x) #0
  ret double %r
}
define internal double @b(double %x) {
entry:
  %n = load i32, i32* @used
  %r = call double @sin(double %x)
  ret double %r
}
define double @c(double %x) {
entry:
  %r = call double @cos(double %x)
  ret double %r
}
attributes #0 = { nounwind }
"""
    found = typed.parts(typed.extracted(text, "a"))
    assert (list(found.definitions), list(found.declarations), list(found.globals)) == (["a", "a_0"], ["sin"], ["used"])
    assert "call double @a_0(" in found.definitions["a"]
    assert "attributes #0" in typed.extracted(text, "a")
    assert 'target triple = "t"' in typed.extracted(text, "c")
