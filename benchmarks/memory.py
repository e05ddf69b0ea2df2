"""Resident memory over many calls, and over many specializations of closures that die."""

from __future__ import annotations

import ctypes
import gc
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from numba import njit

from benchmarks.timing import Row
from numba_enzyme import grad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CALLS = 100_000
CLOSURES = 10_000
COMPILATIONS = 200


def resident() -> float:
    """KiB of this process in memory, after what can be given back was given back."""
    gc.collect()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return float(line.split()[1])


def closure(k: float) -> Callable[[float], float]:
    def scaled_square(x):
        return k * x * x

    return scaled_square


def growth(step: Callable[[int], object], count: int) -> float:
    """KiB gained by `count` steps, after a tenth of them to warm up."""
    for n in range(count // 10):
        step(n)
    before = resident()
    for n in range(count):
        step(count + n)
    return resident() - before


def by_calls() -> float:
    derivative = grad(closure(2.0))
    return growth(lambda _: derivative(1.0), CALLS)


def by_derivatives() -> float:
    return growth(lambda n: grad(closure(float(n)))(1.0), CLOSURES)


def by_compilations() -> float:
    return growth(lambda n: njit(closure(float(n)))(1.0), COMPILATIONS)


def rows() -> Iterator[Row]:
    """Each in a process of its own, since memory that earlier work left free hides what is gained."""
    for what, measure, bound in (
        (f"memory gained by {CALLS:,} calls", by_calls, 0.0),
        (f"memory gained by {CLOSURES:,} specializations of dying closures, grad", by_derivatives, 20.0 * 1024),
        (f"memory gained by {COMPILATIONS} specializations of dying closures, njit, for comparison", by_compilations, None),
    ):
        with get_context("spawn").Pool(1) as pool:
            gained = pool.apply(measure)
        yield Row(what, gained, gained, bound, "KiB")
