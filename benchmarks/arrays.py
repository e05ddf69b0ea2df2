"""Derivatives of arrays against ones written by hand, in time on one core and in memory; where JAX is installed, JAX's against the same."""

from __future__ import annotations

import importlib.util
import math
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit
from numba.np.unsafe.ndarray import to_fixed_tuple

from benchmarks import by_hand
from benchmarks.timing import Row, calls, compare, pairs, ratio
from numba_enzyme import grad, jacfwd, jacrev, jvp, vjp

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import array_models

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

POINTS = 1_000_000
THIRD = 0.33
OBSERVATIONS = 10_000
TANGENTS = 16
STRIP = 32


@dataclass(frozen=True)
class Case:
    """A derivative, the same by hand, and what both are called with."""

    what: str
    derived: Callable[..., Any]
    by_hand: Callable[..., Any]
    args: tuple[Any, ...]
    bound: float | None = None
    args_by_hand: tuple[Any, ...] | None = None
    """If they are not the same."""

    def hand_args(self) -> tuple[Any, ...]:
        return self.args if self.args_by_hand is None else self.args_by_hand


# The objective of ADBench: the likelihood of a mixture of Gaussians, and a prior.


@njit
def log_of_sum(values):
    largest = values[0]
    for i in range(1, values.size):
        largest = max(largest, values[i])
    total = 0.0
    for i in range(values.size):
        total += math.exp(values[i] - largest)
    return largest + math.log(total)


@njit
def prior(icf, d, wishart_scale, wishart_extra):
    total = 0.0
    for c in range(icf.shape[0]):
        for at in range(icf.shape[1]):
            entry = math.exp(icf[c, at]) if at < d else icf[c, at]
            total += 0.5 * wishart_scale * wishart_scale * entry * entry
        for a in range(d):
            total -= wishart_extra * icf[c, a]
    return total


def mixture(alphas, means, icf, x, wishart_scale, wishart_extra):
    n, d = x.shape
    k = alphas.size
    diagonal, sums = np.exp(icf[:, :d]), np.empty(k)
    for c in range(k):
        sums[c] = icf[c, :d].sum()
    centred, whitened, terms = np.empty(d), np.empty(d), np.empty(k)
    total = 0.0
    for i in range(n):
        for c in range(k):
            for a in range(d):
                centred[a] = x[i, a] - means[c, a]
                whitened[a] = diagonal[c, a] * centred[a]
            at = d
            for b in range(d):
                for a in range(b + 1, d):
                    whitened[a] += icf[c, at] * centred[b]
                    at += 1
            squared = 0.0
            for a in range(d):
                squared += whitened[a] * whitened[a]
            terms[c] = alphas[c] + sums[c] - 0.5 * squared
        total += log_of_sum(terms)
    return total - n * log_of_sum(alphas) + prior(icf, d, wishart_scale, wishart_extra)


def mixture_of_strips(alphas, means, icf, x, wishart_scale, wishart_extra):
    """The same with some points innermost; `x` has points in columns."""
    d, n = x.shape
    k = alphas.size
    diagonal = np.exp(icf[:, :d])
    centred, whitened, terms = np.empty((d, STRIP)), np.empty((d, STRIP)), np.empty((k, STRIP))
    largest, sums = np.empty(STRIP), np.empty(STRIP)
    total = 0.0
    for start in range(0, n, STRIP):
        width = min(STRIP, n - start)
        for c in range(k):
            constant = alphas[c] + icf[c, :d].sum()
            for p in range(width):
                terms[c, p] = constant
            for a in range(d):
                for p in range(width):
                    centred[a, p] = x[a, start + p] - means[c, a]
                    whitened[a, p] = diagonal[c, a] * centred[a, p]
            at = d
            for b in range(d):
                for a in range(b + 1, d):
                    for p in range(width):
                        whitened[a, p] += icf[c, at] * centred[b, p]
                    at += 1
            for a in range(d):
                for p in range(width):
                    terms[c, p] -= 0.5 * whitened[a, p] * whitened[a, p]
        for p in range(width):
            largest[p], sums[p] = terms[0, p], 0.0
        for c in range(1, k):
            for p in range(width):
                largest[p] = max(largest[p], terms[c, p])
        for c in range(k):
            for p in range(width):
                sums[p] += math.exp(terms[c, p] - largest[p])
        for p in range(width):
            total += largest[p] + math.log(sums[p])
    return total - n * log_of_sum(alphas) + prior(icf, d, wishart_scale, wishart_extra)


def mixture_data(n):
    random = np.random.default_rng(0)
    d, k = 10, 25
    return random.normal(size=k), random.normal(size=(k, d)), 0.3 * random.normal(size=(k, d * (d + 1) // 2)), random.normal(size=(n, d))


# Bundle adjustment, with arrays and with numbers.


def projection(r0, r1, r2, c0, c1, c2, focal, p0, p1, k1, k2, x, y, z, weight, seen0, seen1):
    x, y, z = x - c0, y - c1, z - c2
    angle = math.sqrt(r0 * r0 + r1 * r1 + r2 * r2)
    cosine, sine = math.cos(angle), math.sin(angle)
    a, b, c = r0 / angle, r1 / angle, r2 / angle
    along = (a * x + b * y + c * z) * (1.0 - cosine)
    u = x * cosine + (b * z - c * y) * sine + a * along
    v = y * cosine + (c * x - a * z) * sine + b * along
    w = z * cosine + (a * y - b * x) * sine + c * along
    u, v = u / w, v / w
    radius = u * u + v * v
    stretched = 1.0 + radius * (k1 + radius * k2)
    return weight * (focal * stretched * u + p0 - seen0), weight * (focal * stretched * v + p1 - seen1)


def over_observations(jacobian):
    """A compiled loop that keeps the Jacobian of `array_models.projection_in_loops` at each observation."""

    @njit
    def loop(cameras, points, weights, seen, d_cameras, d_points, d_weights):
        for i in range(weights.size):
            d_cameras[i], d_points[i], d_weights[i] = jacobian(cameras[i], points[i], weights[i], seen[i])

    return loop


def over_numbers(jacobian):
    """The same for a Jacobian of `projection`."""

    @njit
    def loop(cameras, points, weights, seen, d_cameras, d_points, d_weights):
        for i in range(weights.size):
            camera, point = to_fixed_tuple(cameras[i], 11), to_fixed_tuple(points[i], 3)
            rows = jacobian(*camera, *point, weights[i], seen[i, 0], seen[i, 1])
            for row in range(2):
                for j in range(11):
                    d_cameras[i, row, j] = rows[row][j]
                for j in range(3):
                    d_points[i, row, j] = rows[row][11 + j]
                d_weights[i, row] = rows[row][14]

    return loop


def observations(n):
    random = np.random.default_rng(0)
    each = [array_models.projection_data(random) for _ in range(n)]
    data = tuple(np.array(column) for column in zip(*each, strict=True))
    return (*data, np.empty((n, 2, 11)), np.empty((n, 2, 3)), np.empty((n, 2)))


# Loops over exponentials and sines.


def wave(x):
    return math.sin(x) * math.exp(-x)


def waves(x):
    y = np.empty_like(x)
    for i in range(x.size):
        y[i] = math.sin(x[i]) * math.exp(-x[i])
    return y


def over_points(gradient):
    @njit
    def loop(x, d_x):
        for i in range(x.size):
            (d_x[i],) = gradient(x[i])

    return loop


def oscillation(*x):
    s = 0.5
    for _ in range(100):
        t = 0.0
        for i in range(TANGENTS):
            t += math.sin(x[i] * s) * math.exp(-x[i])
        s = t
    return s


@njit
def sweeps(x):
    """The gradient of `oscillation` in as many forward sweeps as there are numbers."""
    partials = np.empty(TANGENTS)
    tangents = np.zeros(TANGENTS)
    for i in range(TANGENTS):
        tangents[i] = 1.0
        partials[i] = oscillation_along(to_fixed_tuple(x, TANGENTS), to_fixed_tuple(tangents, TANGENTS))
        tangents[i] = 0.0
    return partials


@njit
def at_once(x):
    return oscillation_partials(*to_fixed_tuple(x, TANGENTS))


def many(names: list[str]) -> Callable[..., float]:
    """`oscillation` with parameters that have names, as derivatives ask for."""
    namespace: dict[str, Any] = {"oscillation": njit(oscillation)}
    exec(f"def named({', '.join(names)}):\n    return oscillation({', '.join(names)})", namespace)
    return namespace["named"]


_NAMED = many([f"x{i}" for i in range(TANGENTS)])
oscillation_along, oscillation_partials = jvp(_NAMED), jacfwd(_NAMED)


def lstm_case(h: int) -> Case:
    random = np.random.default_rng(0)
    data, cotangent = array_models.lstm_data(random, h, h), (random.normal(size=h), random.normal(size=h))
    return Case("LSTM step", vjp(array_models.lstm_in_loops), by_hand.lstm, (data, cotangent), 1.1, (*data, *cotangent))


def stencil_case(n: int) -> Case:
    random = np.random.default_rng(0)
    data, cotangent = array_models.brusselator_data(random, n, n), (random.normal(size=(n, n)), random.normal(size=(n, n)))
    derived = vjp(array_models.brusselator_in_loops, argnums=(0, 1, 2))
    return Case("stencil of a Brusselator", derived, by_hand.brusselator, (data, cotangent), 1.1, (*data, *cotangent))


def bundle_case(n: int) -> Case:
    derived = over_observations(jacrev(array_models.projection_in_loops, argnums=(0, 1, 2)))
    return Case("bundle adjustment, arrays", derived, by_hand.projections, observations(n), 1.3)


def bundle_of_numbers_case(n: int) -> Case:
    derived = over_numbers(jacfwd(projection, argnums=tuple(range(15))))
    return Case("bundle adjustment, numbers", derived, by_hand.projections, observations(n), 1.3)


def mixture_case(n: int) -> Case:
    derived = grad(mixture, argnums=(0, 1, 2))
    return Case("mixture of Gaussians", derived, by_hand.mixture, (*mixture_data(n), 1.0, 2.0), 2.6)


def strips_case(n: int) -> Case:
    derived = grad(mixture_of_strips, argnums=(0, 1, 2))
    alphas, means, icf, x = mixture_data(n)
    args = (alphas, means, icf, np.ascontiguousarray(x.T), 1.0, 2.0)
    return Case("mixture of Gaussians, points innermost", derived, by_hand.mixture, args, 1.0, (alphas, means, icf, x, 1.0, 2.0))


def log_of_sum_case(n: int) -> Case:
    x = np.random.default_rng(0).normal(size=n)
    return Case("logsumexp", grad(log_of_sum, argnums=0), by_hand.log_of_sum, (x,))


def reassociated_case(n: int) -> Case:
    x = np.random.default_rng(0).normal(size=n)
    derived = grad(njit(fastmath={"reassoc"})(log_of_sum.py_func), argnums=0)
    return Case("logsumexp, sums in any order", derived, by_hand.log_of_sum, (x,))


def wave_case(n: int) -> Case:
    x = np.random.default_rng(0).random(n)
    return Case("exp and sin, grad in a loop", over_points(grad(wave)), by_hand.over_points, (x, np.empty(n)), THIRD)


def waves_case(n: int) -> Case:
    random = np.random.default_rng(0)
    x, cotangent = random.random(n), random.random(n)
    return Case("exp and sin, vjp of arrays", vjp(waves, argnums=0), by_hand.waves, ((x,), cotangent), THIRD, (x, cotangent))


# Sizes for time, and those that show in a process's memory.
CASES = (
    (lstm_case, 100, 1200),
    (stencil_case, 256, 1200),
    (bundle_case, OBSERVATIONS, OBSERVATIONS),
    (bundle_of_numbers_case, OBSERVATIONS, None),
    (mixture_case, 1000, 20_000),
    (strips_case, 1000, 20_000),
    (log_of_sum_case, POINTS, None),
    (reassociated_case, POINTS, None),
    (wave_case, POINTS, None),
    (waves_case, POINTS, None),
)


def flat(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for element in value:
            yield from flat(element)
    elif value is not None:
        yield np.asarray(value)


def results(function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
    """What `function` gives, or leaves in its arguments."""
    given = list(flat(function(*args)))
    return given or [array.copy() for array in flat(args)]


def agree(some: list[Any], others: list[Any]) -> None:
    """Raises `AssertionError` if they do not. Functions that leave results in arguments are compared from the last on."""
    for one, other in zip(reversed(some), reversed(others), strict=False):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def checked(case: Case) -> Case:
    """Raises `AssertionError` if the two sides do not agree; both are compiled afterwards."""
    agree(results(case.derived, case.args), results(case.by_hand, case.hand_args()))
    return case


def timed(what: str, first: Callable[..., Any], first_args: tuple[Any, ...], case: Case, bound: float | None = None) -> Row:
    """`first` against `case` by hand, in about a second."""
    hand = case.hand_args()
    repeats = min(201, max(7, int(0.5 / calls(first, first_args, 1))))
    return ratio(what, list(pairs(lambda: calls(first, first_args, 1), lambda: calls(case.by_hand, hand, 1), repeats)), bound)


def peak(function: Callable[..., Any], args: tuple[Any, ...]) -> float:
    """KiB that a call adds to this process at most."""
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    function(*args)
    return status("VmHWM") - before


def status(name: str) -> float:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return float(line.split()[1])


def peaks(make: Callable[[int], Case], small: int, large: int) -> tuple[float, float, str]:
    """KiB of arguments and of what is held besides, at most: for a derivative and for one by hand; and what was derived."""
    case = make(small)
    case.derived(*case.args)
    case.by_hand(*case.hand_args())
    case = make(large)
    arguments = sum(array.nbytes for array in flat(case.args)) / 1024
    return arguments + peak(case.derived, case.args), arguments + peak(case.by_hand, case.hand_args()), case.what


def memory(make: Callable[[int], Case], small: int, large: int) -> Row:
    with get_context("spawn").Pool(1) as pool:
        derived, hand, what = pool.apply(peaks, (make, small, large))
    note = f"{derived / 1024:.1f} MiB against {hand / 1024:.1f} MiB"
    return Row(f"peak memory, {what} ({large:,})", derived / hand, derived / hand, 1.5, note=note)


@contextmanager
def one_core() -> Iterator[None]:
    """Keeps what runs meanwhile, threads of JAX included, on one core."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    usual = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(usual)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, usual)


def of_jax(case: Case) -> Iterator[Row]:
    if importlib.util.find_spec("jax") is None:
        return
    from benchmarks import in_jax

    derivative = in_jax.derivative(case.what, case.args)
    if derivative is not None:
        agree(list(flat(derivative())), results(case.by_hand, case.hand_args()))
        yield timed(f"{case.what} against by hand, JAX's", derivative, (), case)


def tangents() -> Row:
    x = np.random.default_rng(0).random(TANGENTS)
    np.testing.assert_allclose(at_once(x), sweeps(x))
    return compare(f"jacfwd at {TANGENTS} tangents against {TANGENTS} sweeps", at_once, sweeps, (x,), count=10, repeats=51, bound=THIRD)


def rows() -> Iterator[Row]:
    with one_core():
        for make, size, _ in CASES:
            case = checked(make(size))
            yield timed(f"{case.what} against by hand", case.derived, case.args, case, case.bound)
            yield from of_jax(case)
        yield tangents()
    for make, size, large in CASES:
        if large is not None:
            yield memory(make, size, large)
