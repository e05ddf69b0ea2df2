"""A call of each transform from Python, against a hand-written Numba function of the same result shape."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from numba import njit

from benchmarks.timing import compare
from numba_enzyme import grad, hessian, hvp, jacfwd, jacrev, jvp, value_and_grad, vjp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.timing import Row


def scalar(x, y):
    return math.sin(x) * y + x * y * y


def pair(x, y):
    return x * y, math.sin(x) * y


@njit
def hand_grad(x, y):
    return math.cos(x) * y + y * y, math.sin(x) + 2.0 * x * y


@njit
def hand_value_and_grad(x, y):
    return math.sin(x) * y + x * y * y, (math.cos(x) * y + y * y, math.sin(x) + 2.0 * x * y)


@njit
def hand_jvp(primals, tangents):
    x, y = primals
    u, v = tangents
    return (math.cos(x) * y + y * y) * u + (math.sin(x) + 2.0 * x * y) * v


@njit
def hand_vjp(primals, cotangent):
    x, y = primals
    a, b = cotangent
    return a * y + b * math.cos(x) * y, a * x + b * math.sin(x)


@njit
def hand_jacobian(x, y):
    return (y, x), (math.cos(x) * y, math.sin(x))


@njit
def hand_hessian(x, y):
    return (-math.sin(x) * y, math.cos(x) + 2.0 * y), (math.cos(x) + 2.0 * y, 2.0 * x)


@njit
def hand_hvp(primals, tangents):
    x, y = primals
    u, v = tangents
    cross = math.cos(x) + 2.0 * y
    return -math.sin(x) * y * u + cross * v, cross * u + 2.0 * x * v


def rows() -> Iterator[Row]:
    point = (1.0, 2.0)
    seeded = (point, (1.0, 0.5))
    yield compare("call of grad", grad(scalar), hand_grad, point, count=100_000, bound=1.15)
    yield compare("call of value_and_grad", value_and_grad(scalar), hand_value_and_grad, point, count=100_000, bound=1.2)
    yield compare("call of jvp", jvp(scalar), hand_jvp, seeded, count=100_000, bound=1.2)
    yield compare("call of vjp", vjp(pair), hand_vjp, seeded, count=100_000, bound=1.2)
    yield compare("call of jacfwd", jacfwd(pair), hand_jacobian, point, count=100_000, bound=1.2)
    yield compare("call of jacrev", jacrev(pair), hand_jacobian, point, count=100_000, bound=1.2)
    yield compare("call of hessian", hessian(scalar), hand_hessian, point, count=100_000, bound=1.2)
    yield compare("call of hvp", hvp(scalar), hand_hvp, seeded, count=100_000, bound=1.2)
