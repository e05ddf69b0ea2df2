"""jacfwd of a function of 60 arguments: against its grad, and at other widths of a forward sweep."""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING

from numba import njit

from benchmarks.timing import compare
from numba_enzyme import grad, jacfwd
from numba_enzyme.entrypoints import host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.timing import Row

ARGUMENTS = 60
WIDTHS = (1, 2, 4, 8, 16)


def primal(width: int) -> Callable[..., float]:
    """A function of 60 arguments; its text depends on `width`, so that no build at another width is found for it."""
    names = [f"x{k}" for k in range(ARGUMENTS)]
    terms = (f"math.sin({x} * {y}) * math.exp({z})" for x, y, z in zip(names, names[1:] + names[:1], names[2:] + names[:2], strict=True))
    namespace: dict[str, Callable[..., float]] = {}
    exec(f"def wide{width}({', '.join(names)}):\n    return {width}.0 + {' + '.join(terms)}", {"math": math}, namespace)
    return namespace[f"wide{width}"]


def repeated(function, point):
    """Calls `function` inside compiled code, since 60 arguments from Python cost more than either derivative."""
    count = len(point)

    @njit
    def loop(x, repeats):
        total = 0.0
        for i in range(repeats):
            total += function(x + 1e-9 * i, *point[1:])[count - 1]
        return total

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
    point = tuple(0.1 + 0.01 * k for k in range(ARGUMENTS))
    for width in WIDTHS:
        function = primal(width)
        jacobian, gradient = jacfwd(function), grad(function)
        with sweeps_of(width):
            jacobian(*point)
        usual = width == host.MAX_WIDTH
        what = f"jacfwd of {ARGUMENTS} arguments against grad, width {width}" + (" (in use)" if usual else "")
        bound = 10.0 if usual else None
        yield compare(what, repeated(jacobian, point), repeated(gradient, point), (0.1, 1000), count=1, repeats=9, bound=bound)
