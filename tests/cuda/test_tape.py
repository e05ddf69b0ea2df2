"""Loops in reverse mode: what they keep, and what happens if it does not fit."""

import cmath
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import numba_enzyme as ne
from numba_enzyme import device_pipeline as pipeline
from numba_enzyme.dispatch import device_forms
from numba_enzyme.llvm import tape

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")

from numba_cuda_mlir import compiler, cuda, types

f8 = types.float64


@cuda.jit(device=True)
def counted(x, n):
    s = 0.0
    for _ in range(n):
        s = s * x + math.sin(s + x)
    return s


@cuda.jit(device=True)
def nested(r, x, m):
    k = 0
    while k < m and x < 2.0:
        j = 0
        while j < k % 4 + 1 and x < 1.9:
            x = r * x * (1.0 - x) + 0.01 * math.sin(x)
            j += 1
        k += 1
    return x


@cuda.jit(device=True)
def fixed(x):
    s = x
    for _ in range(64):
        s = s * x + math.sin(s)
    return s


@cuda.jit(device=True)
def several(x, y, n):
    s, t = x, y
    for _ in range(n):
        s, t = math.sin(s * t) + x, math.exp(-t * s) * math.cos(s)
    return s + t


@cuda.jit(device=True)
def rewritten(x):
    a = cuda.local.array(8, types.float64)
    for i in range(8):
        a[i] = x * (i + 1)
    for k in range(20):
        for i in range(8):
            a[i] = math.sin(a[i]) + 0.1 * a[(i + k) % 8]
    return a[0] * a[5]


def by_complex_step(function, point, position):
    shifted = [complex(p) if isinstance(p, float) else p for p in point]
    shifted[position] += 1e-30j
    return function(*shifted).imag / 1e-30


def nested_reference(r, x, m):
    k = 0
    while k < m and x.real < 2.0:
        j = 0
        while j < k % 4 + 1 and x.real < 1.9:
            x = r * x * (1.0 - x) + 0.01 * cmath.sin(x)
            j += 1
        k += 1
    return x


def counted_reference(x, n):
    s = 0.0
    for _ in range(n):
        s = s * x + cmath.sin(s + x)
    return s


@pytest.mark.parametrize("turns", [0, 1, 7, 200])
def test_loops_of_a_length_known_at_run_time(evaluate, turns):
    want = by_complex_step(counted_reference, (0.5, turns), 0) if turns else 0.0
    np.testing.assert_allclose(evaluate(ne.grad(counted, argnums=0), 0.5, turns), want, rtol=1e-13)


@pytest.mark.parametrize("m", [0, 1, 2, 3, 5, 20, 37])
def test_nested_loops_that_end_when_values_say_so(evaluate, m):
    want = [by_complex_step(nested_reference, (3.1, 0.3, m), n) if m or n else 0.0 for n in range(2)]
    np.testing.assert_allclose(evaluate(ne.grad(nested, argnums=(0, 1)), 3.1, 0.3, m), want, rtol=1e-12, atol=1e-300)


def text_of(derivative, *argtypes):
    form = device_forms.form(derivative, argtypes, {})
    typed = derivative.typed(form.base_types)
    layout = derivative.layout(typed, spread=False, base_types=form.base_types)
    emitted = pipeline.emit_device(derivative._specialization(layout, form.call, typed))
    return pipeline.finish_device(emitted, pipeline.differentiate_device(emitted, pipeline.prepared(emitted)))


@pytest.mark.parametrize("function", [fixed, rewritten])
def test_loops_of_a_fixed_length_use_local_arrays(evaluate, function):
    text = text_of(ne.grad(function), f8)
    assert "@malloc" not in text
    assert "@numba_enzyme_allocate" not in text
    h = 1e-6
    value = ne.value_and_grad(function)
    want = (evaluate(value, 0.3 + h)[0] - evaluate(value, 0.3 - h)[0]) / (2 * h)
    np.testing.assert_allclose(evaluate(ne.grad(function), 0.3)[0], want, rtol=1e-6)


def test_the_heap_of_the_device_is_never_used():
    for derivative, argtypes in (
        (ne.grad(counted, argnums=0), (f8, types.int64)),
        (ne.grad(nested, argnums=(0, 1)), (f8, f8, types.int64)),
    ):
        text = text_of(derivative, *argtypes)
        assert "@malloc" not in text
        assert "@free" not in text
        assert "@numba_enzyme_allocate" in text


def evaluated(*calls):
    """`on_host.evaluate` of each of these in a process of its own."""
    lines = "".join(f"print(on_host.evaluate({call}), flush=True)\n" for call in calls)
    code = f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nimport conftest, test_tape, on_host\n{lines}"
    code = code.replace("import conftest", "import numba_enzyme as ne, conftest")
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_a_tape_that_is_too_small_stops_with_the_name_the_option_and_the_size():
    small = "ne.grad(test_tape.counted, argnums=0, tape_bytes={})"
    done = evaluated(f"{small.format(128)}, 0.5, 8", f"{small.format(128)}, 0.5, 1001")
    assert done.returncode == 3
    assert len(done.stdout.split()) == 1
    assert "grad_counted of counted needs more than 128 bytes of tape in a thread: raise its option tape_bytes=, at least to" in done.stderr
    needed = re.search(r"^bytes of tape needed so far:(\d+): grad_counted of counted: Assertion", done.stderr, re.MULTILINE)
    assert needed, done.stderr
    assert int(needed[1]) >= 8 * 1001
    # Nothing more is asked for after that.
    assert evaluated(f"{small.format(needed[1])}, 0.5, 1001").returncode == 0


def test_what_a_loop_keeps_is_told_together():
    small = "ne.grad(test_tape.several, argnums=(0, 1), tape_bytes={})"
    needed = re.search(r"needed so far:(\d+): ", evaluated(f"{small.format(64)}, 0.5, 0.25, 100").stderr)
    assert int(needed[1]) >= 3 * 8 * 100
    done = evaluated(f"{small.format(needed[1])}, 0.5, 0.25, 100")
    assert done.returncode == 0, done.stderr


def test_allocations_of_a_block_are_reserved_at_once():
    block = (
        "define void @f(i64 %n) {\nentry:\n  %s = mul i64 %n, 8\n  %a = call i8* @malloc(i64 %s)\n  store i8 0, i8* %a\n"
        "  %t = add i64 %s, 4\n  %b = call i8* @malloc(i64 %t)\n  ret void\n}"
    )
    lines = tape.together(block).split("\n")
    first = next(n for n, line in enumerate(lines) if "@malloc" in line)
    assert lines[first - 1] == "  call void @numba_enzyme_reserve(i8* %tape, i64 %tape.0.1)"
    assert "  %t = add i64 %s, 4" in lines[:first]
    assert sum("%t = " in line for line in lines) == 1
    unknown = block.replace("add i64 %s, 4", "load i64, i64* @g")
    assert tape.together(unknown) == unknown


@pytest.mark.parametrize("cc", [(8, 0), (9, 0), (10, 0), (12, 0)])
def test_tapes_link(cc):
    derivative = ne.grad(nested, argnums=(0, 1))

    def kernel(out, x, m):
        a, b = derivative(x, 0.3, m)
        out[0] = a + b

    assert len(compiler.compile_cubin(kernel, types.void(f8[::1], f8, types.int64), cc=cc)) > 1000


def test_constant_allocations_once_become_arrays():
    before = "define void @f() {\nentry:\n  %m = tail call noalias nonnull i8* @malloc(i64 128), !enzyme_cache_alloc !0\n  ret void\n}"
    after = tape.constant_once(before)
    assert '%"m.local" = alloca [128 x i8], align 16' in after
    assert "malloc(" not in after
    in_loop = "define void @f() {\nentry:\n  br label %l\n\nl:\n  %m = call i8* @malloc(i64 128)\n  br label %l\n}"
    assert tape.constant_once(in_loop) == in_loop
