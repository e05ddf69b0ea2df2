"""Times two things in alternation and gives the ratio of the first to the second."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    median: float
    least: float
    bound: float | None = None
    """What the project promises of the median, where it promises something."""
    unit: str = "x"
    note: str = ""


def calls(function: Callable[..., Any], args: Sequence[Any], count: int) -> float:
    """Seconds for one of `count` calls from Python."""
    repeats = range(count)
    start = time.perf_counter()
    for _ in repeats:
        function(*args)
    return (time.perf_counter() - start) / count


def pairs(first: Callable[[], float], second: Callable[[], float], repeats: int) -> Iterator[tuple[float, float]]:
    """The times of both, measured one right after the other; which one starts alternates."""
    for k in range(repeats):
        if k % 2:
            after = second()
            yield first(), after
        else:
            yield first(), second()


def ratio(what: str, measured: Sequence[tuple[float, float]], bound: float | None = None) -> Row:
    """The median of the pairs' ratios, and the ratio of the two least times."""
    a, b = zip(*measured, strict=True)
    note = f"{readable(statistics.median(a))} against {readable(statistics.median(b))}"
    return Row(what, statistics.median(x / y for x, y in measured), min(a) / min(b), bound, note=note)


def compare(
    what: str,
    first: Callable[..., Any],
    second: Callable[..., Any],
    args: Sequence[Any],
    *,
    count: int,
    repeats: int = 11,
    bound: float | None = None,
) -> Row:
    """Calls of `first` against calls of `second`, both compiled before."""
    first(*args)
    second(*args)
    return ratio(what, list(pairs(lambda: calls(first, args, count), lambda: calls(second, args, count), repeats)), bound)


def readable(seconds: float) -> str:
    """A time with a unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
