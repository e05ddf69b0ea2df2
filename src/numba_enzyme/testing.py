"""A gradient checker, for users' tests and our own."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from numba_enzyme.api import jacfwd, jacrev, jvp, vjp
from numba_enzyme.errors import ArgumentError
from numba_enzyme.model.transform import normalize_argnums, pick

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Mode = Literal["forward", "reverse"]


@dataclass(frozen=True)
class _Row:
    order: int
    check: str
    expected: float
    got: float
    limit: float

    @property
    def error(self) -> float:
        if self.expected == self.got:  # infinities among them
            return 0.0
        return abs(self.got - self.expected) / max(1.0, abs(self.expected))

    @property
    def passed(self) -> bool:
        return self.error <= self.limit  # False for NaN


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 1,
    modes: Sequence[Mode] = ("forward", "reverse"),
    *,
    argnums: int | tuple[int, ...] | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    seed: int = 0,
) -> None:
    """Checks derivatives of `f` at `args` against numbers that owe nothing to them.

    Forward mode is compared with a central difference in one random direction v, `(f(x + h v) - f(x - h v)) / 2h` extrapolated to h = 0;
    reverse mode with forward mode by the adjoint identity `<w, J v> = <w J, v>` for a random weight w. For `order=2` the Jacobians of f are
    compared as well, and the same is done with one of them as the function, and so on.

    f takes and gives floats, arrays of them and tuples of both. `rtol` (1e-6 in float64, 1e-2 in float32) bounds the error relative to
    values above 1 and absolute below; `eps` is h. Raises `AssertionError` with a table of all comparisons if one fails, `ArgumentError` for an order or mode
    that there is not.

    >>> import math
    >>> from numba_enzyme.testing import check_grads
    >>> check_grads(lambda x, y: math.sin(x) * y, (1.0, 2.0), order=2)
    """
    unknown = set(modes) - {"forward", "reverse"}
    if unknown or not modes:
        raise ArgumentError(f"modes are 'forward' and 'reverse', not {tuple(modes)!r}")
    if order < 1:
        raise ArgumentError(f"order={order}: the first is 1")
    numbers = normalize_argnums(argnums)
    names = tuple(str(n) for n in range(len(args)))
    picked = pick(numbers, names, getattr(f, "__qualname__", repr(f)))
    everything = tuple(picked)
    single = any(np.asarray(leaf).dtype == np.float32 for n in picked for leaf in _leaves(args[n]))
    limit = rtol if rtol is not None else (1e-2 if single else 1e-6)
    step = eps if eps is not None else (1e-2 if single else 1e-4)
    rows = _rows(f, tuple(args), order, modes, everything, limit, step, random.Random(seed))  # noqa: S311 - directions, not secrets
    if not all(row.passed for row in rows):
        raise AssertionError(f"derivatives of {getattr(f, '__qualname__', f)} at {tuple(args)!r} do not check:\n{_table(rows)}")


def _rows(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    order: int,
    modes: Sequence[Mode],
    picked: tuple[int, ...],
    limit: float,
    step: float,
    rng: random.Random,
) -> list[_Row]:
    rows = []
    for level in range(1, order + 1):
        direction = tuple(_random_like(args[n], rng) for n in picked)
        weight = _random_like(f(*args), rng)
        difference = _dot(weight, _difference(f, args, picked, direction, step))
        tangent = _dot(weight, jvp(f, picked)(args, direction))
        if "forward" in modes:
            rows.append(_Row(level, "<w, J v>: jvp against a difference", difference, tangent, limit))
        if "reverse" in modes:
            adjoint = _dot(vjp(f, picked)(args, weight), direction)
            rows.append(_Row(level, "<w J, v>: vjp against jvp", tangent, adjoint, limit * 1e-3))
        if level < order:
            jacobians = {"forward": jacfwd(f, picked), "reverse": jacrev(f, picked)}
            for mode, jacobian in jacobians.items():
                if mode in modes:
                    contracted = _contracted(jacobian(*args), weight, direction)
                    rows.append(_Row(level, f"<w, J v>: {jacobian.transform.name} against jvp", tangent, contracted, limit * 1e-3))
            f = jacobians["forward" if "forward" in modes else "reverse"]
    return rows


def _difference(f: Callable[..., Any], args: tuple[Any, ...], picked: tuple[int, ...], direction: Any, step: float) -> Any:
    def central(h: float) -> Any:
        return _map(
            lambda hi, lo: (np.asarray(hi, np.float64) - np.asarray(lo, np.float64)) / (2 * h),
            f(*_moved(args, picked, direction, h)),
            f(*_moved(args, picked, direction, -h)),
        )

    # One step of Richardson's extrapolation: the error falls from h**2 to h**4.
    return _map(lambda fine, coarse: (4 * fine - coarse) / 3, central(step / 2), central(step))


def _moved(args: tuple[Any, ...], picked: tuple[int, ...], direction: Any, h: float) -> tuple[Any, ...]:
    moved = list(args)
    for n, v in zip(picked, direction, strict=True):
        moved[n] = _map(lambda x, d: _like(x, x + h * d), args[n], v)
    return tuple(moved)


def _random_like(value: Any, rng: random.Random) -> Any:
    def draw(x: Any) -> Any:
        drawn = np.array([rng.uniform(-1, 1) for _ in range(np.size(x))]).reshape(np.shape(x))
        return _like(x, drawn if isinstance(x, np.ndarray) else float(drawn))

    return _map(draw, value)


def _like(x: Any, value: Any) -> Any:
    """`value` in the type of `x`; what is differentiated as a float is one."""
    if isinstance(x, np.ndarray):
        return np.asarray(value, x.dtype)
    return type(x)(value) if isinstance(x, np.floating) else value


def _contracted(jacobian: Any, weight: Any, direction: Any) -> float:
    """`<w, J v>` of a Jacobian, nested `[output][argument]`."""
    if isinstance(weight, tuple):
        return sum(_contracted(*row, direction) for row in zip(jacobian, weight, strict=True))
    pairs = zip(_leaves(jacobian), _leaves(direction), strict=True)
    moved = [np.tensordot(np.asarray(block, np.float64), np.asarray(v, np.float64), axes=np.ndim(v)) for block, v in pairs]
    return float(np.sum(np.asarray(weight, np.float64) * sum(moved)))


def _map(function: Callable[..., Any], first: Any, *others: Any) -> Any:
    if isinstance(first, tuple):
        mapped = [_map(function, *items) for items in zip(first, *others, strict=True)]
        return type(first)(*mapped) if hasattr(first, "_fields") else tuple(mapped)
    return function(first, *others)


def _leaves(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, tuple) else [value]


def _dot(a: Any, b: Any) -> float:
    products = (np.asarray(x, np.float64) * np.asarray(y, np.float64) for x, y in zip(_leaves(a), _leaves(b), strict=True))
    return float(sum(np.sum(product) for product in products))


def _table(rows: Sequence[_Row]) -> str:
    lines = [f"{'order':>5}  {'check':<36} {'expected':>24} {'got':>24} {'error':>9} {'limit':>9}"]
    for row in rows:
        verdict = "" if row.passed else "  FAILED"
        lines.append(
            f"{row.order:>5}  {row.check:<36} {row.expected:>24.16g} {row.got:>24.16g} {row.error:>9.2g} {row.limit:>9.2g}{verdict}"
        )
    return "\n".join(lines)
