"""Random programs: forward mode, reverse mode and second order against dual numbers run on the same source.

NUMBA_ENZYME_EXAMPLES sets how many programs are tried.
"""

from __future__ import annotations

import math
import os

import pytest
from dual import Dual, DualMath, lift
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from numba_enzyme import grad, hessian, jvp, value_and_grad

EXAMPLES = int(os.environ.get("NUMBA_ENZYME_EXAMPLES", "15"))
VARIABLES = ("x", "y", "s", "t")


def leaves():
    constants = st.sampled_from(["0.5", "1.25", "2.0", "-0.75"])
    return st.one_of(st.sampled_from(VARIABLES), constants)


def combined(inner):
    binary = st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})")
    # Arguments are kept where the functions are smooth and values small.
    bounded = st.tuples(st.sampled_from(["math.sin", "math.cos", "math.tanh"]), inner).map(lambda p: f"{p[0]}({p[1]})")
    divided = st.tuples(inner, inner).map(lambda p: f"({p[0]} / (1.5 + {p[1]} * {p[1]}))")
    rooted = inner.map(lambda e: f"math.sqrt(1.0 + {e} * {e})")
    return st.one_of(binary, bounded, divided, rooted)


EXPRESSIONS = st.recursive(leaves(), combined, max_leaves=5)
CONDITIONS = st.tuples(EXPRESSIONS, st.sampled_from("<>"), st.sampled_from(["0.1", "0.6", "-0.2"])).map(lambda p: f"{p[0]} {p[1]} {p[2]}")


def indented(lines):
    return ["    " + line for line in lines]


def uncounted(lines):
    """Without what an inner loop does to the counter."""
    return [line for line in lines if not line.lstrip().startswith("k = ")]


def assignments():
    # tanh keeps what is carried around a loop from running away.
    return st.tuples(st.sampled_from(["s", "t", "x"]), EXPRESSIONS).map(lambda p: [f"{p[0]} = math.tanh({p[1]}) + 0.3 * {p[0]}"])


def blocks(statement):
    body = st.lists(statement, min_size=1, max_size=3).map(lambda parts: [line for part in parts for line in part])
    branch = st.tuples(CONDITIONS, body, body).map(lambda p: [f"if {p[0]}:", *indented(p[1]), "else:", *indented(p[2])])
    loop = st.tuples(st.sampled_from(["n", "3", "n + 1", "2 * n"]), body).map(lambda p: [f"for _ in range({p[0]}):", *indented(p[1])])
    leaving = st.tuples(st.sampled_from(["n", "5"]), CONDITIONS, st.sampled_from(["break", "continue"]), body).map(
        lambda p: [f"for _ in range({p[0]}):", *indented([f"if {p[1]}:", f"    {p[2]}", *p[3]])]
    )
    until = st.tuples(CONDITIONS, body).map(lambda p: ["k = 0", f"while k < n and {p[0]}:", *indented(["k += 1", *uncounted(p[1])])])
    returning = st.tuples(CONDITIONS, EXPRESSIONS).map(lambda p: [f"if {p[0]}:", f"    return {p[1]} * x"])
    return st.one_of(branch, loop, leaving, until, returning)


STATEMENTS = st.recursive(assignments(), blocks, max_leaves=6)
PROGRAMS = st.tuples(st.lists(STATEMENTS, min_size=1, max_size=4), EXPRESSIONS).map(
    lambda p: (
        "\n    ".join(
            ["def f(x, y, n):", "s = x * y", "t = 0.5 * y", *[line for part in p[0] for line in part], f"return {p[1]} + 0.1 * s * x"]
        )
        + "\n"
    )
)


def compiled(source, mathematics):
    namespace = {"math": mathematics}
    exec(source, namespace)
    return namespace["f"]


def near_a_branch(source, args):
    """Whether a value that decides a branch is so close that rounding could take the other way."""
    shifted = [compiled(source, math)(args[0] * (1 + e), args[1] * (1 - e), args[2]) for e in (0.0, 1e-9, -1e-9)]
    return max(shifted) - min(shifted) > 1e-6


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
@given(PROGRAMS, st.integers(0, 4))
def test_programs(source, n):
    args = (0.37, 0.81, n)
    if near_a_branch(source, args):
        return
    f = compiled(source, math)
    dual = compiled(source, DualMath)
    by_x, by_y = lift(dual(Dual(args[0], 1.0), args[1], n)), lift(dual(args[0], Dual(args[1], 1.0), n))
    expected = pytest.approx((by_x.tangent, by_y.tangent), rel=1e-10, abs=1e-10)
    value, partials = value_and_grad(f, (0, 1))(*args)
    assert value == pytest.approx(by_x.value, rel=1e-12, abs=1e-12), source
    assert partials == expected, source
    forward = jvp(f, (0, 1))
    assert (forward(args, (1.0, 0.0)), forward(args, (0.0, 1.0))) == expected, source
    rows = hessian(f, (0, 1))(*args)
    again = tuple(grad(grad(f, n), (0, 1))(*args) for n in (0, 1))
    for row, other in zip(rows, again, strict=True):
        assert other == pytest.approx(row, rel=1e-9, abs=1e-9), source
    assert rows[0][1] == pytest.approx(rows[1][0], rel=1e-9, abs=1e-9), source
