"""Where elements of arrays are read: early enough to be right, late enough to fit into registers."""

import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import numba_enzyme as ne
from numba_enzyme.llvm import schedule

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")

from numba_cuda_mlir import compiler, cuda, types

f8 = types.float64
STATES = 48
TUPLE = types.UniTuple(f8, STATES)


def ring():
    lines = [f"math.sin(y[{(k + 1) % STATES}]) * p[{k}] - y[{k}] * y[{k - 1 if k else STATES - 1}] + t" for k in range(STATES)]
    namespace = {"math": math}
    exec(f"def ring(y, t, p):\n    return ({', '.join(lines)})\n", namespace)
    return cuda.jit(device=True)(namespace["ring"])


tangent = ne.jvp(ring(), signature=TUPLE(TUPLE, f8, TUPLE))
pullback = ne.vjp(ring(), signature=TUPLE(TUPLE, f8, TUPLE))


def arrays():
    rng = np.random.default_rng(7)
    return tuple(rng.uniform(0.5, 1.5, STATES) for _ in range(4))


def expected(y, p, dy, dp):
    up, down = np.roll(y, -1), np.roll(y, 1)
    return np.cos(up) * np.roll(dy, -1) * p + np.sin(up) * dp - dy * down - y * np.roll(dy, 1) + 1.0


def test_many_states(evaluate):
    y, p, dy, dp = arrays()
    out = np.zeros(STATES)
    evaluate(tangent, out, y, 0.3, p, dy, 1.0, dp)
    np.testing.assert_allclose(out, expected(y, p, dy, dp), rtol=1e-13)
    weights, partials = np.linspace(0.5, 1.5, STATES), np.zeros(2 * STATES + 1)
    evaluate(pullback, weights, partials, y, 0.3, p)
    direction = np.concatenate([dy, [1.0], dp])
    np.testing.assert_allclose(partials @ direction, weights @ expected(y, p, dy, dp), rtol=1e-12)


@pytest.mark.parametrize("which", range(4))
def test_a_result_may_take_the_place_of_an_argument(which):
    from on_host import evaluate

    given = arrays()
    want = expected(*given)
    y, p, dy, dp = given
    evaluate(tangent, given[which], y, 0.3, p, dy, 1.0, dp)
    np.testing.assert_allclose(given[which], want, rtol=1e-13)


def tool(name):
    return next((Path(p) / "nvidia/cu13/bin" / name for p in sys.path if (Path(p) / "nvidia/cu13/bin" / name).exists()), None)


@pytest.mark.skipif(tool("cuobjdump") is None, reason="nvidia-cuda-cuobjdump is not installed")
def test_many_states_stay_in_registers(tmp_path):
    def kernel(out, y, p, dy, dp):
        i = cuda.grid(1)
        if i < y.shape[0]:
            tangent(out[i], y[i], 0.3, p[i], dy[i], 1.0, dp[i])

    cubin = tmp_path / "kernel.cubin"
    cubin.write_bytes(compiler.compile_cubin(kernel, types.void(*[f8[:, ::1]] * 5), cc=(9, 0)))
    said = subprocess.run([tool("cuobjdump"), "--dump-resource-usage", cubin], capture_output=True, text=True, check=True).stdout
    registers, stack = map(int, re.search(r"REG:(\d+) STACK:(\d+)", said).groups())
    assert registers <= 168
    assert stack <= 40  # what the argument reduction of sin and cos takes


BLOCK = """define void @f(double* %a, double* %b) {
entry:
  %p = getelementptr double, double* %a, i64 1
  %x = load double, double* %p, align 8
  %y = load double, double* %a, align 8
  %s = call double @sin(double %y) #1
  %t = fmul double %s, %x
  store double %t, double* %b, align 8
  %z = load double, double* %a, align 8
  %u = call double @unknown(double %z)
  br label %end

end:
  store double %z, double* %b, align 8
  ret void
}"""


def test_loads_go_down_to_their_use_but_past_nothing_that_writes():
    lines = [line.strip() for line in schedule.loads_at_use(BLOCK, frozenset({"sin"})).split("\n")]
    at = {line.partition(" =")[0]: n for n, line in enumerate(lines) if " = " in line}
    assert at["%y"] < at["%s"] < at["%p"] < at["%x"] < at["%t"] < at["%z"] < at["%u"]
    assert lines.index("store double %t, double* %b, align 8") < at["%z"]
    assert sorted(lines) == sorted(line.strip() for line in BLOCK.split("\n"))
    # Nothing is known of sin here, so that what is read before it stays there.
    unknown = [line.strip() for line in schedule.loads_at_use(BLOCK, frozenset()).split("\n")]
    assert unknown.index("%x = load double, double* %p, align 8") < unknown.index("%s = call double @sin(double %y) #1")
