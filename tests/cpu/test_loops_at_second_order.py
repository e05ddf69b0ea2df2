"""Second derivatives of loops: every nesting of transforms against an exact value.

Enzyme's reverse mode over its own reverse mode gave 1.48 where the answer is 2 for `skips`, and aborted on `divides`. A reverse transform
of a function that holds a reverse sweep therefore runs forward sweeps.
"""

from __future__ import annotations

import pytest

from numba_enzyme import grad, hessian, jacrev, jvp, vjp


def skips(x, n):
    s = x
    for i in range(n):
        if i % 3 == 1:
            continue
        if s > 5.0:
            break
        s = s * s
    return s


def divides(x, n):
    y = x
    for _ in range(n):
        y = 0.5 * (y + x / y)
    return y


def breaks(x, n):
    s = x
    for _ in range(n):
        if s > 2.0:
            break
        s = s * 1.1 + s * s * x
    return s


def nests(x, n):
    s = x
    for i in range(n):
        for j in range(i):
            if (i + j) % 2 == 1:
                continue
            s = s * x + j
    return s


class Jet:
    """A number with its first and second derivative."""

    def __init__(self, value, first=0.0, second=0.0):
        self.value, self.first, self.second = value, first, second

    def __add__(self, other):
        other = other if isinstance(other, Jet) else Jet(other)
        return Jet(self.value + other.value, self.first + other.first, self.second + other.second)

    __radd__ = __add__

    def __mul__(self, other):
        other = other if isinstance(other, Jet) else Jet(other)
        return Jet(
            self.value * other.value,
            self.first * other.value + self.value * other.first,
            self.second * other.value + 2 * self.first * other.first + self.value * other.second,
        )

    __rmul__ = __mul__

    def __truediv__(self, other):
        inverse = 1 / other.value
        first = -other.first * inverse**2
        second = -other.second * inverse**2 + 2 * other.first**2 * inverse**3
        return self * Jet(inverse, first, second)

    def __gt__(self, other):
        return self.value > other


ORDERS = {
    "hessian": lambda f, x, n: hessian(f, 0)(x, n),
    "grad of grad": lambda f, x, n: grad(grad(f, 0), 0)(x, n),
    "jacrev of grad": lambda f, x, n: jacrev(grad(f, 0), 0)(x, n),
    "vjp of grad": lambda f, x, n: vjp(grad(f, 0), 0)((x, n), 1.0),
}


@pytest.mark.parametrize("f", [skips, divides, breaks, nests], ids=lambda f: f.__name__)
@pytest.mark.parametrize("order", ["hessian", "grad of grad", "jacrev of grad", "vjp of grad"])
def test_every_nesting_is_exact(f, order):
    for x in (0.37, 1.3):
        for n in (1, 2, 3, 5):
            expected = f(Jet(x, 1.0), n).second
            assert ORDERS[order](f, x, n) == pytest.approx(expected, rel=1e-12, abs=1e-12), (x, n)


@pytest.mark.parametrize("f", [skips, divides, breaks, nests], ids=lambda f: f.__name__)
def test_reverse_over_forward_is_exact(f):
    def along(x, n):
        return forward((x, n), (1.0,))

    forward = jvp(f, (0,))
    for x in (0.37, 1.3):
        for n in (1, 2, 3, 5):
            expected = f(Jet(x, 1.0), n).second
            assert grad(along, 0)(x, n) == pytest.approx(expected, rel=1e-12, abs=1e-12), (x, n)
            assert jvp(along, (0,))((x, n), (1.0,)) == pytest.approx(expected, rel=1e-12, abs=1e-12), (x, n)
