"""jacfwd of a function of 60 arguments: against its grad, and at other widths of a forward sweep."""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numba import njit
from numba.np.unsafe.ndarray import to_fixed_tuple

from benchmarks.timing import compare
from numba_enzyme import grad, jacfwd
from numba_enzyme.entrypoints import host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.timing import Row

ARGUMENTS = 60
POINTS = 200
WIDTHS = (1, 2, 4, 8, 16)


def once(names: list[str], width: int) -> str:
    """Every partial is made of a few sines and exponentials, which the optimizer shares between sweeps."""
    terms = (f"math.sin({x} * {y}) * math.exp({z})" for x, y, z in zip(names, names[1:] + names[:1], names[2:] + names[:2], strict=True))
    return f"    return {width}.0 + {' + '.join(terms)}"


def loop(names: list[str], width: int) -> str:
    """Sweeps over a loop share nothing but what they carry at once."""
    terms = " + ".join(f"math.sin({x} * s + {y})" for x, y in zip(names, names[1:] + names[:1], strict=True))
    return f"    s = {width}.0\n    for _ in range(20):\n        s = ({terms}) / {len(names)}.0\n    return s"


def primal(body: Callable[[list[str], int], str], width: int) -> Callable[..., float]:
    """A function of 60 arguments; its text depends on `width`, so that no build at another width is found for it."""
    names = [f"x{k}" for k in range(ARGUMENTS)]
    namespace: dict[str, Callable[..., float]] = {}
    exec(f"def wide({', '.join(names)}):\n{body(names, width)}", {"math": math}, namespace)
    return namespace["wide"]


def over_points(function):
    """Calls `function` inside compiled code, since 60 arguments from Python cost more than either derivative; every partial is kept."""

    @njit
    def loop(points, partials):
        for i in range(points.shape[0]):
            for k, partial in enumerate(function(*to_fixed_tuple(points[i], ARGUMENTS))):
                partials[i, k] = partial

    return loop


@contextmanager
def sweeps_of(width: int) -> Iterator[None]:
    """Builds made meanwhile carry up to `width` tangents in a forward sweep."""
    usual = host.MAX_WIDTH
    host.MAX_WIDTH = width
    try:
        yield
    finally:
        host.MAX_WIDTH = usual


def rows() -> Iterator[Row]:
    points = np.random.default_rng(0).random((POINTS, ARGUMENTS))
    arrays = (points, np.empty_like(points))
    for name, body, bound in (("one expression", once, 10.0), ("a loop of 20 steps", loop, None)):
        for width in WIDTHS:
            function = primal(body, width)
            jacobian, gradient = jacfwd(function), grad(function)
            with sweeps_of(width):
                jacobian(*points[0])
            usual = width == host.MAX_WIDTH
            what = f"jacfwd of {ARGUMENTS} arguments against grad, {name}, width {width}" + (" (in use)" if usual else "")
            promised = bound if usual else None
            yield compare(what, over_points(jacobian), over_points(gradient), arrays, count=1, repeats=9, bound=promised)
