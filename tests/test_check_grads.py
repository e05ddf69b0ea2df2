"""The gradient checker passes right derivatives and fails wrong ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from numba_enzyme import ArgumentError, testing
from numba_enzyme import jvp as real_jvp
from numba_enzyme import vjp as real_vjp
from numba_enzyme.testing import check_grads


def f(x, y):
    return math.sin(x) * y, x * y * y


def test_right_derivatives_pass():
    check_grads(f, (1.0, 2.0), order=3)
    check_grads(f, (1.0, 2.0), modes=("forward",))
    check_grads(f, (1.0, 2.0), modes=("reverse",), order=2)
    check_grads(f, (np.float32(1.0), np.float32(2.0)))
    check_grads(lambda x, p: x * p[0] * p[1][0], (1.0, (2.0, (3.0,))), order=2)
    check_grads(lambda x, n: x**n, (1.5, 3), argnums=0)


@pytest.mark.parametrize(("transform", "line"), [("jvp", "jvp against a difference"), ("vjp", "vjp against jvp")])
def test_a_wrong_derivative_fails_with_a_table(monkeypatch, transform, line):
    real = getattr(testing, transform)

    def wrong(function, argnums=None):
        derivative = real(function, argnums)
        return lambda *args: testing._map(lambda value: value * 1.001, derivative(*args))

    monkeypatch.setattr(testing, transform, wrong)
    with pytest.raises(AssertionError, match="do not check") as caught:
        check_grads(f, (1.0, 2.0))
    failed = [text for text in str(caught.value).splitlines() if text.endswith("FAILED")]
    assert any(line in text for text in failed)
    assert "expected" in str(caught.value)


@pytest.mark.parametrize("transform", ["jacfwd", "jacrev"])
def test_a_wrong_jacobian_fails(monkeypatch, transform):
    real = getattr(testing, transform)

    class Wrong:
        def __init__(self, function, argnums=None):
            self.transform = real(function, argnums).transform
            self.right = real(function, argnums)

        def __call__(self, *args):
            return testing._map(lambda value: value * 1.001, self.right(*args))

    monkeypatch.setattr(testing, transform, Wrong)
    if transform == "jacfwd":
        monkeypatch.setattr(testing, "jvp", lambda f, argnums=None: real_jvp(getattr(f, "right", f), argnums))
        monkeypatch.setattr(testing, "vjp", lambda f, argnums=None: real_vjp(getattr(f, "right", f), argnums))
    with pytest.raises(AssertionError, match=rf"{transform} against jvp.*FAILED"):
        check_grads(f, (1.0, 2.0), order=2)


def test_arrays():
    matrix, vector = np.array([[2.0, 1.0], [0.5, 3.0]]), np.array([0.3, -0.7])
    check_grads(lambda a, b: np.linalg.solve(a, b), (matrix, vector), order=2)
    check_grads(lambda x, k: ((x * x).sum() * k, x[::-1] * k), (vector.astype(np.float32), 2.0))
    check_grads(lambda x: x * x, (np.array(2.0),), order=2)


def test_a_kink_is_seen():
    with pytest.raises(AssertionError):
        check_grads(lambda x: abs(x), (1e-5,))


def test_nan_fails():
    with pytest.raises(AssertionError):
        check_grads(lambda x: math.acos(min(x, 1.0)) ** 2 + x, (1.0,), modes=("forward",))


def test_arguments_that_there_are_not():
    with pytest.raises(ArgumentError, match="order"):
        check_grads(f, (1.0, 2.0), order=0)
    with pytest.raises(ArgumentError, match="modes"):
        check_grads(f, (1.0, 2.0), modes=("sideways",))
