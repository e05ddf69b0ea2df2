"""Arrays without a derivative beside arrays with one: a pointer that may lead to either must not be read or written as the other."""

from __future__ import annotations

import numpy as np
import pytest

from numba_enzyme import grad, hessian, jacfwd, jacrev, jvp, value_and_grad, vjp
from numba_enzyme.llvm.calls import recursive

TABLE = np.array([5.0, 6.0, 7.0])


def picked(x):
    a, b = np.empty(1), np.empty(1)
    a[0], b[0] = x * x, 3.0
    c = a if x > 0 else b
    return c[0]


def summed(x):
    a, b = np.empty(3), np.ones(3)
    for i in range(3):
        a[i] = x * x * i
    c = a if x > 0 else b
    return c.sum() * x


def used_before(x):
    a, b = np.empty(3), np.empty(3)
    for i in range(3):
        a[i], b[i] = x * i, i + 1.0
    s = 0.0
    for i in range(3):
        s += b[i] * x * x
    c = a if x > 0 else b
    for i in range(3):
        s += c[i] * c[i]
    return s


def from_global(x):
    a = np.empty(3)
    for i in range(3):
        a[i] = x * x * i
    c = a if x > 0 else TABLE
    s = 0.0
    for i in range(3):
        s += c[i] * x
    return s


def in_tuple(x):
    arrays = np.array([x * x]), np.array([3.0])
    return arrays[0 if x > 0 else 1][0]


# Function, and at each point the first and second derivative.
CASES = {
    "picked": (picked, {2.0: (4.0, 2.0), -2.0: (0.0, 0.0)}),
    "summed": (summed, {2.0: (36.0, 36.0), -2.0: (3.0, 0.0)}),
    "used before": (used_before, {2.0: (44.0, 22.0), -2.0: (-24.0, 12.0)}),
    "from a global": (from_global, {2.0: (36.0, 36.0), -2.0: (18.0, 0.0)}),
    "in a tuple": (in_tuple, {2.0: (4.0, 2.0), -2.0: (0.0, 0.0)}),
    "np.where, constant": (lambda x: np.where(x > 0, x * x, 3.0)[()], {2.0: (4.0, 2.0), -2.0: (0.0, 0.0)}),
    "np.where, linear": (lambda x: np.where(x > 0, x * x, -x)[()], {2.0: (4.0, 2.0), -2.0: (-1.0, 0.0)}),
}


@pytest.mark.parametrize("name", CASES)
def test_first_order(name):
    f, points = CASES[name]
    for x, (first, _) in points.items():
        assert grad(f)(x) == value_and_grad(f)(x)[1] == vjp(f)((x,), 1.0) == (first,)
        assert jvp(f)((x,), (1.0,)) == first
        assert jacfwd(f)(x) == jacrev(f)(x) == (first,)


@pytest.mark.parametrize("name", CASES)
def test_second_order(name):
    f, points = CASES[name]
    for x, (_, second) in points.items():
        assert hessian(f)(x) == ((second,),)
        assert jacfwd(jacfwd(f, 0), 0)(x) == jacrev(jacfwd(f, 0), 0)(x) == jacrev(jacrev(f, 0), 0)(x) == second
        assert jvp(jvp(f))(((x,), (1.0,)), ((1.0,), (0.0,))) == second


def test_constant_arguments_are_left_alone():
    def f(x, table):
        a = np.empty(3)
        for i in range(3):
            a[i] = x * i
        c = a if x > 0 else table
        s = 0.0
        for i in range(3):
            s += c[i] * x
        return s

    table = np.array([5.0, 6.0, 7.0])
    assert [grad(f, 0)(-2.0, table) for _ in range(3)] == [18.0] * 3
    assert jvp(f, 0)((-2.0, table), (1.0,)) == 18.0
    assert table.tolist() == [5.0, 6.0, 7.0]


def test_functions_that_call_themselves_are_found():
    b = """define void @"b$1"() {\n  call void @c()\n  ret void\n}\n"""
    chain = f"""define void @a() {{\n  call void @"b$1"()\n  ret void\n}}\n\n{b}\ndeclare void @c()\n"""
    assert not recursive(chain)
    assert recursive(chain.replace("call void @c()", "call void @a()"))
    assert recursive(chain.replace("call void @c()", 'call void @"b$1"()'))
    assert recursive(chain.replace("call void @c()", '%p = load ptr, ptr @".numba.unresolved$a"'))
