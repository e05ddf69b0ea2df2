"""Loops, branches and calls, against the same source run on dual numbers."""

from __future__ import annotations

import math
import textwrap

import numpy as np
import pytest
from dual import partials
from numba import njit

from numba_enzyme import DifferentiationError, grad, jvp, value_and_grad
from numba_enzyme.testing import check_grads

# Each is a function f of two floats and an integer.
SOURCES = {
    "for": "s = x\nfor k in range(n):\n    s = s * 1.1 + math.sin(s) * y\nreturn s",
    "for with a constant end": "s = x\nfor k in range(7):\n    s = s * y + k\nreturn s",
    "for with a step": "s = x\nfor k in range(1, n * 3, 2):\n    s = s * y + k * x\nreturn s",
    "for downwards": "s = x\nfor k in range(n, 0, -1):\n    s = s * y + k * x\nreturn s",
    "loop that does not run": "s = x * y\nfor k in range(n - n):\n    s = s * s\nreturn s",
    "sum": "s = 0.0\nfor k in range(n):\n    s += math.exp(-x * k) * y\nreturn s",
    "product": "p = 1.0\nfor k in range(n):\n    p *= x + k * y\nreturn p",
    "while": "s = x\nk = 0\nwhile k < n:\n    s = s * y + math.cos(s)\n    k += 1\nreturn s",
    "while on a float": "s = x\nwhile s < 10.0:\n    s = s * 1.5 + y\nreturn s",
    "newton": "r = x\nwhile abs(r * r - x) > 1e-14:\n    r = 0.5 * (r + x / r)\nreturn r * y",
    "break": "s = x\nfor k in range(n):\n    if s > 2.0:\n        break\n    s = s * 1.3 + y\nreturn s",
    "break at once": "s = x\nfor k in range(n):\n    if s > -1.0:\n        break\n    s = s * s\nreturn s * y",
    "continue": "s = x\nfor k in range(n):\n    if k % 2 == 1:\n        continue\n    s = s * y + k\nreturn s",
    "continue and break": "s = x\nfor k in range(n + 3):\n    if k % 3 == 1:\n        continue\n    if s > 5.0:\n"
    "        break\n    s = s * 1.1 + math.sin(s) * y\nreturn s",
    "for else": "s = x\nfor k in range(n):\n    if s > 1e9:\n        break\n    s = s * y\nelse:\n    s = s + x\nreturn s",
    "early return": "for k in range(n):\n    if x * k > 1.0:\n        return x * k * y\nreturn x - y",
    "nested": "s = 0.0\nfor i in range(n):\n    for j in range(i):\n        s += x**i * math.cos(j * y)\nreturn s",
    "nested with a product": "s = 1.0\nfor i in range(n):\n    t = x\n    for j in range(i):\n        t = t * y + j\n"
    "    s = s + t * s * 0.1\nreturn s",
    "nested while": "s = x\ni = 0\nwhile i < n:\n    t = s\n    while t < 2.0:\n        t = t * 1.7 + y * 0.1\n"
    "    s = s + 0.1 * t\n    i += 1\nreturn s",
    "loop bounds from a float": "s = x\nfor k in range(int(x * 10)):\n    s = s * 1.01 + y\nreturn s",
    "return out of nested loops": "s = x\nfor i in range(n):\n    for j in range(n):\n        s = s + x * i * j\n"
    "        if s > 6.0:\n            return s * s * y\nreturn s",
    "break out of nested loops": "s = x\ndone = False\nfor i in range(n):\n    for j in range(n):\n        s = s + x * i * j\n"
    "        if s > 6.0:\n            done = True\n            break\n    if done:\n        break\nreturn s * s * y",
    "return on the counters": "s = x\nfor i in range(n):\n    for j in range(n):\n        s = s + x * i * j\n"
    "        if i * j > 3:\n            return s * s * y\nreturn s",
    "return out of a triangle": "s = x\nfor i in range(n):\n    for j in range(i):\n        s = s + x * j * j\n"
    "        if s > 6.0:\n            return s * s * y\nreturn s",
    "return out of three loops": "s = x\nfor i in range(n):\n    for j in range(n):\n        for k in range(n):\n"
    "            s = s + x * i * j * k\n            if s > 6.0:\n                return s * s * y\nreturn s",
    "branch": "if x > y:\n    return x * x\nreturn math.exp(-x) * y",
    "branch in a loop": "s = x\nfor k in range(n):\n    if s > 1.0:\n        s = s / 2.0 + y\n    else:\n        s = s * s + x\nreturn s",
    "elif": "if x < 0.0:\n    return -x\nelif x < 0.2:\n    return x * x\nelif x < 0.5:\n    return x**3 * y\nreturn 1.0 * y",
    "boolean operators": "if (x > 0.1 and y > 0.1) or n > 100:\n    return x * y * y\nreturn x",
    "swap": "a = x\nb = y\nfor k in range(n):\n    a, b = b, a * 1.1 + b\nreturn a * b",
    "rebinding": "z = x\nx = z * y\nz = x * z\nreturn z",
    "logistic map": "z = x\nfor k in range(n):\n    z = 3.2 * z * (1.0 - z) + 0.01 * y\nreturn z",
    "oscillator": "q = x\np = y\nfor k in range(50):\n    p = p - 0.05 * math.sin(q)\n    q = q + 0.05 * p\nreturn q * q + p * p",
    "horner": "s = 0.0\nfor k in range(n):\n    s = s * x + (k + 1) * y\nreturn s",
    "guarded division": "if x == 0.0:\n    return y\nreturn y / x",
    "guarded logarithm": "return math.log(x) * y if x > 0.0 else 0.0",
    "many variables": "a = x + y\nb = a * x\nc = b - y\nd = c / a\ne = d * b\nreturn math.tanh(e) + a * b * c * d",
    "assert": "assert x > 0.0\nreturn math.sqrt(x) * y",
    "raise": "if x < 0.0:\n    raise ValueError('negative')\nreturn math.sqrt(x) * y",
    "raise in a loop": "s = x\nfor k in range(n):\n    if s > 1e6:\n        raise OverflowError('large')\n    s = s * 1.5 + y\nreturn s",
}
ARGS = (0.37, 1.2, 6)


def source_of(body):
    return "def f(x, y, n):\n" + textwrap.indent(body, "    ") + "\n"


@pytest.mark.parametrize("name", SOURCES)
def test_as_dual_numbers(name):
    source = source_of(SOURCES[name])
    namespace = {"math": math, "__name__": "tests"}
    exec(source, namespace)
    f = namespace["f"]
    for args in (ARGS, (0.81, 0.4, 3), (0.2, 0.7, 5)):
        value, expected = partials(source, "f", args, (0, 1))
        got_value, got = value_and_grad(f, (0, 1))(*args)
        assert got_value == pytest.approx(value, rel=1e-13)
        assert got == pytest.approx(expected, rel=1e-12, abs=1e-12)
        forward = jvp(f, (0, 1))
        assert (forward(args, (1.0, 0.0)), forward(args, (0.0, 1.0))) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@njit
def recursive(x, n):
    if n <= 0:
        return x
    return math.sin(recursive(x, n - 1)) * x


@njit
def even(x, n):
    if n <= 0:
        return x
    return odd(x, n - 1) * x


@njit
def odd(x, n):
    if n <= 0:
        return 2.0 * x
    return even(x, n - 1) + x


def power(x, n):
    if n < 0.5:
        return 1.0
    return x * power(x, n - 1.0)


def test_recursion():
    check_grads(lambda x: recursive(x, 4), (0.37,))
    # even(x, 2) = odd(x, 1) * x = (even(x, 0) + x) * x = 2 x * x
    assert grad(lambda x: even(x, 2))(2.0) == (8.0,)
    assert grad(power)(1.1, 5.0) == (pytest.approx(5 * 1.1**4), 0.0)


def test_inner_function():
    def f(x):
        def inner(y):
            return y * x

        return inner(x) + inner(2.0)

    assert grad(f)(3.0) == (8.0,)


def test_try_and_except():
    def f(x):
        try:
            if x < 0.0:
                raise ValueError("negative")
            return x * x
        except Exception:  # noqa: BLE001
            return 2.0 * x

    assert grad(f)(3.0) == (6.0,)
    assert grad(f)(-3.0) == (2.0,)


def test_tuples_and_their_loops():
    def f(x):
        s = 0.0
        for i, v in enumerate((x, 2.0 * x, x * x)):
            s += i * v
        for a, b in zip((x, x * x), (1.0, x)):
            s += a * b
        return s

    assert grad(f)(3.0) == (2.0 + 4.0 * 3.0 + 1.0 + 3.0 * 9.0,)


def test_local_arrays():
    def f(x):
        a = np.zeros(5)
        for i in range(5):
            a[i] = x * i
        b = np.array([x, x * x, 1.0])
        return a.sum() + (a * a).mean() + b[0] * b[1] + b[2]

    assert grad(f)(2.0) == (pytest.approx(10.0 + 2 * 2.0 * 30 / 5 + 3 * 4.0),)


def test_printing_is_refused_by_name():
    def f(x):
        print(x)
        return x * x

    with pytest.raises(DifferentiationError, match=r"test_printing.*print"):
        grad(f)(3.0)
