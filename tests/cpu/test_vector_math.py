"""Vector forms of libm's functions in derivatives: in use, exact to 4 ulp, switched off, absent."""

from __future__ import annotations

import math
import os
import platform
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from numba import njit

from numba_enzyme import ArgumentError, grad, jvp, recall, value_and_grad, vjp
from numba_enzyme.adapters import vector_math
from numba_enzyme.llvm.vector_math import with_vector_forms

needs_library = pytest.mark.skipif(not vector_math.symbols(), reason="no libmvec on this machine")

FUNCTIONS = {
    "exp": (lambda x: math.exp(x), np.exp, (-700.0, 700.0)),
    "log": (lambda x: math.log(x), np.log, (1e-300, 1e300)),
    "sin": (lambda x: math.sin(x), np.sin, (-1e4, 1e4)),
    "cos": (lambda x: math.cos(x), np.cos, (-1e4, 1e4)),
    "pow": (lambda x: x ** np.float32(1.7), lambda x: x ** type(x[0])(np.float32(1.7)), (1e-100, 1e100)),
}
SMALLER = {"exp": (-80.0, 80.0), "log": (1e-30, 1e30), "pow": (1e-10, 1e10)}
SPECIAL = (math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1e22, -1e22, 1e308, -1e308, 710.0, -746.0, 1.0, -1.0)


def over_points(derivative):
    """A user's loop that keeps values and gradients."""

    @njit
    def loop(x, values, partials):
        for i in range(x.size):
            values[i], (partials[i],) = derivative(x[i])

    return loop


def computed(function, x):
    """The values and gradients of `function`, and the assembly of the loop that gave them."""
    loop, values, partials = over_points(value_and_grad(function)), np.empty_like(x), np.empty_like(x)
    loop(x, values, partials)
    return values, partials, "".join(loop.inspect_asm().values())


def fresh(function):
    """The same function as another object, for which nothing was built yet."""
    return type(function)(function.__code__, function.__globals__, function.__name__)


def called(assembly):
    return set(re.findall(r"_ZGV\w+", assembly))


@needs_library
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_loops_over_derivatives_call_vector_functions_within_4_ulp(name, dtype):
    function, exact, (low, high) = FUNCTIONS[name]
    if dtype == np.float32:
        low, high = SMALLER.get(name, (low, high))
    random = np.random.default_rng(0)
    uniform = random.uniform(low, high, 100_003)
    x = (uniform if low < 0.0 else np.exp(random.uniform(np.log(low), np.log(high), 100_003))).astype(dtype)
    values, _, assembly = computed(function, x)
    suffix = "f" if dtype == np.float32 else ""
    assert any(symbol.endswith(f"_{name}{suffix}") for symbol in called(assembly))
    wide = np.longdouble if dtype == np.float64 else np.float64
    expected = exact(x.astype(wide))
    assert (np.abs(values - expected) / np.spacing(np.abs(expected).astype(dtype))).max() <= 4.0


def test_square_roots_are_instructions_and_keep_their_bits():
    x = np.random.default_rng(0).uniform(0.1, 9.0, 1003)
    values, partials, assembly = computed(lambda x: x * math.sqrt(x), x)
    assert (values == x * np.sqrt(x)).all()
    np.testing.assert_allclose(partials, 1.5 * np.sqrt(x))
    if platform.machine() == "x86_64":
        assert "sqrtpd" in assembly


@needs_library
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name, monkeypatch):
    function = FUNCTIONS[name][0]
    x = np.array([value for value in SPECIAL if name not in {"log", "pow"} or not value < 0.0] * 16)
    if name == "log":
        x = x[x != 0.0]
    if name in {"sin", "cos"}:
        x = x[~np.isinf(x)]
    values, partials, assembly = computed(function, x)
    assert called(assembly)
    monkeypatch.setenv(vector_math.SWITCH, "0")
    scalar_values, scalar_partials, assembly = computed(fresh(function), x)
    assert not called(assembly)
    np.testing.assert_array_max_ulp(values, scalar_values, 4)
    np.testing.assert_array_max_ulp(partials, scalar_partials, 4)
    assert (np.signbit(values) == np.signbit(scalar_values))[~np.isnan(values)].all()


@needs_library
def test_loops_within_derivatives_call_vector_functions(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_ENZYME_CACHE_DIR", str(tmp_path))  # what is loaded from the disk does not show its code

    def waves(x):
        y = np.empty_like(x)
        for i in range(x.size):
            y[i] = math.sin(x[i]) * math.exp(-x[i])
        return y

    x = np.linspace(0.0, 3.0, 1001)
    for derivative, args in ((vjp(waves), ((x,), np.ones(1001))), (jvp(waves), ((x,), (np.ones(1001),)))):
        np.testing.assert_allclose(np.array(derivative(*args)).ravel(), np.exp(-x) * (np.cos(x) - np.sin(x)), rtol=1e-12, atol=1e-15)
        (built,) = derivative.overloads.values()
        assert re.search(r"call .*@_ZGV", str(built.library._final_module))


@needs_library
def test_code_without_vector_loops_keeps_its_bits(monkeypatch):
    def function(x, y):
        for _ in range(5):
            x = math.exp(math.sin(x * y)) + math.log(2.0 + math.cos(x)) ** 1.3
        return x

    def points(derivative):
        return [derivative(0.1 * k, 1.0 + 0.01 * k) for k in range(100)]

    vector = points(value_and_grad(function))
    monkeypatch.setenv(vector_math.SWITCH, "0")
    assert points(value_and_grad(fresh(function))) == vector


@needs_library
@pytest.mark.parametrize(("fastmath", "vector"), [(False, False), ({"contract"}, False), ({"reassoc"}, True), (True, True)])
def test_sums_are_reassociated_where_the_function_may(fastmath, vector, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_ENZYME_CACHE_DIR", str(tmp_path))

    def total(x, scale):
        s = 0.0
        for i in range(x.size):
            s += math.exp(x[i] * scale)
        return s

    x = np.linspace(0.0, 1.0, 1001)
    derivative = grad(njit(fastmath=fastmath)(total), argnums=1)
    assert derivative(x, 0.5) == pytest.approx((x * np.exp(0.5 * x)).sum(), rel=1e-12)
    (built,) = derivative.overloads.values()
    # LLVM may cut a loop in two, of which one has no sum.
    sums = re.findall(r"= f(?:add|sub)[a-z ]* <\d+ x double>", str(built.library._final_module))
    assert bool(sums) == vector


@needs_library
def test_the_switch_decides_the_key_of_a_build(monkeypatch):
    on = recall.key("ir", "")
    monkeypatch.setenv(vector_math.SWITCH, "1")
    assert recall.key("ir", "") == on
    monkeypatch.setenv(vector_math.SWITCH, "0")
    assert vector_math.symbols() == ()
    assert recall.key("ir", "") != on


def test_a_switch_that_says_neither(monkeypatch):
    monkeypatch.setenv(vector_math.SWITCH, "maybe")
    with pytest.raises(ArgumentError, match="'maybe' is neither 0 nor 1"):
        grad(lambda x: math.exp(x) * x)(1.0)


@needs_library
def test_a_machine_without_the_library(monkeypatch):
    key = recall.key("ir", "")
    monkeypatch.setattr(vector_math, "_LIBRARY", "libnothing.so.0")
    monkeypatch.setattr(vector_math, "_LOADED", vector_math._load())
    assert not vector_math.symbols()
    assert recall.key("ir", "") != key
    values, _, assembly = computed(lambda x: math.exp(x * 0.5), np.ones(100))
    assert not called(assembly)
    assert values[0] == math.exp(0.5)


@needs_library
def test_only_functions_that_are_there_and_that_the_target_can_call(monkeypatch):
    listed = vector_math._symbols.__wrapped__
    assert "_ZGVbN2v_exp" in listed("")
    assert not [symbol for symbol in listed("-avx2,-avx512f") if not symbol.startswith("_ZGVb")]
    assert "_ZGVeN16vv_powf" in listed("+avx2,+avx512f")
    found = vector_math.ll.address_of_symbol
    monkeypatch.setattr(vector_math.ll, "address_of_symbol", lambda name: None if name.endswith("_exp") else found(name))
    assert not [symbol for symbol in listed("+avx2") if symbol.endswith("_exp")]


@needs_library
def test_a_caller_in_a_cache_of_numba(tmp_path):
    """Another process finds the caller's code, and in it calls of the library; nothing of the derivative is built or loaded there."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import math
        import numpy as np
        from numba import njit
        from numba_enzyme import grad

        def wave(x):
            return math.sin(x) * math.exp(-x)

        gradient = grad(wave)

        @njit(cache=True)
        def loop(x):
            d_x = np.empty_like(x)
            for i in range(x.size):
                (d_x[i],) = gradient(x[i])
            return d_x

        found = loop(np.linspace(0.0, 1.0, 1000))
        print(found.sum(), *(sum(hits.values()) for hits in (loop.stats.cache_hits, loop.stats.cache_misses)), len(gradient.overloads))
        """)
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "numba"), "NUMBA_ENZYME_CACHE_DIR": str(tmp_path / "ours")}
    runs = [
        subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, check=True).stdout.split()
        for _ in range(2)
    ]
    assert [run[1:] for run in runs] == [["0", "1", "1"], ["1", "0", "0"]]
    assert runs[0][0] == runs[1][0]


CALLS = """\
define double @f(double %x, float %y) {
  %a = tail call fast double @llvm.exp.f64(double %x) #4
  %b = call double @exp(double %x), !dbg !1
  %c = call float @llvm.pow.f32(float %y, float 2.500000e+00)
  %d = call double @tanh(double %x)
  %e = call double @llvm.exp2.f64(double %x)
}
"""


def test_text():
    written = with_vector_forms(CALLS, ["_ZGVdN4v_exp", "_ZGVbN2v_exp", "_ZGVdN8vv_powf", "_ZGVdN4v_log"])
    pure = "nounwind willreturn memory(none)"
    exp = '"vector-function-abi-variant"="_ZGV_LLVM_N4v_{0}(_ZGVdN4v_exp),_ZGV_LLVM_N2v_{0}(_ZGVbN2v_exp)"'
    power = '"vector-function-abi-variant"="_ZGV_LLVM_N8vv_llvm.pow.f32(_ZGVdN8vv_powf)"'
    kept = "@llvm.compiler.used = appending global [3 x ptr] [ptr @_ZGVdN4v_exp, ptr @_ZGVbN2v_exp, ptr @_ZGVdN8vv_powf]"
    assert written.splitlines() == [
        "define double @f(double %x, float %y) {",
        f"  %a = tail call fast double @llvm.exp.f64(double %x) {exp.format('llvm.exp.f64')} #4",
        f"  %b = call double @exp(double %x) {exp.format('exp')}, !dbg !1",
        f"  %c = call float @llvm.pow.f32(float %y, float 2.500000e+00) {power}",
        *CALLS.splitlines()[4:],
        "",
        f'{kept}, section "llvm.metadata"',
        f"declare <4 x double> @_ZGVdN4v_exp(<4 x double>) {pure}",
        f"declare <2 x double> @_ZGVbN2v_exp(<2 x double>) {pure}",
        f"declare <8 x float> @_ZGVdN8vv_powf(<8 x float>, <8 x float>) {pure}",
    ]
    assert with_vector_forms(CALLS, ["_ZGVdN4v_log"]) == CALLS
