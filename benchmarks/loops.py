"""Derivatives that run inside compiled code: in a loop over many points, and of a loop of many steps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from benchmarks.timing import compare
from numba_enzyme import grad

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.timing import Row

POINTS = 1_000_000


def transcendental(x, y):
    return math.sin(x) * y + x * y * y


@njit
def hand_transcendental(x, y):
    return math.cos(x) * y + y * y, math.sin(x) + 2.0 * x * y


def polynomial(x, y):
    return x * x * x * y + 3.0 * x * y * y - y + 0.5 * x


@njit
def hand_polynomial(x, y):
    return 3.0 * x * x * y + 3.0 * y * y + 0.5, x * x * x + 6.0 * x * y - 1.0


def over_points(gradient):
    """A compiled loop that stores the gradient at each point."""

    @njit
    def loop(x, y, dx, dy):
        for i in range(x.shape[0]):
            dx[i], dy[i] = gradient(x[i], y[i])

    return loop


def lotka_volterra(a, b, c):
    u = 1.0
    v = 0.5
    for _ in range(1000):
        du = a * u - b * u * v
        dv = b * u * v - c * v
        u += 0.001 * du
        v += 0.001 * dv
    return u * u + v


def pendulum(stiffness, damping, drive):
    x = 1.0
    v = 0.0
    t = 0.0
    for _ in range(1000):
        dv = drive * math.cos(t) - stiffness * math.sin(x) - damping * v
        x += 0.01 * v
        v += 0.01 * dv
        t += 0.01
    return x


def logistic(rate, capacity, start):
    x = start
    for _ in range(1000):
        x += 0.01 * rate * x * (1.0 - x / capacity)
    return x


def rows() -> Iterator[Row]:
    random = np.random.default_rng(0)
    arrays = (random.random(POINTS), random.random(POINTS), np.empty(POINTS), np.empty(POINTS))
    for name, primal, hand in (
        ("transcendental", transcendental, hand_transcendental),
        ("polynomial", polynomial, hand_polynomial),
    ):
        derived = over_points(grad(primal))
        yield compare(f"grad in a loop over 1e6 points, {name}", derived, over_points(hand), arrays, count=1, repeats=31, bound=1.05)
    for name, rhs, parameters in (
        ("Lotka-Volterra", lotka_volterra, (1.1, 0.4, 0.3)),
        ("driven pendulum", pendulum, (1.1, 0.4, 0.3)),
        ("logistic growth", logistic, (1.1, 10.0, 0.3)),
    ):
        what = f"grad of 1000 Euler steps against the primal, {name}"
        yield compare(what, grad(rhs), njit(rhs), parameters, count=50, repeats=41, bound=1.9)
