"""Numbers that carry a derivative, in plain Python: what tests compare with."""

from __future__ import annotations

import math


class Dual:
    """A value and its derivative along one direction. Comparisons and branches look at the value."""

    def __init__(self, value, tangent=0.0):
        self.value, self.tangent = float(value), float(tangent)

    def __add__(self, other):
        other = lift(other)
        return Dual(self.value + other.value, self.tangent + other.tangent)

    def __sub__(self, other):
        other = lift(other)
        return Dual(self.value - other.value, self.tangent - other.tangent)

    def __mul__(self, other):
        other = lift(other)
        return Dual(self.value * other.value, self.tangent * other.value + self.value * other.tangent)

    def __truediv__(self, other):
        other = lift(other)
        quotient = self.value / other.value
        return Dual(quotient, (self.tangent - quotient * other.tangent) / other.value)

    def __pow__(self, n):
        return Dual(self.value**n, n * self.value ** (n - 1) * self.tangent)

    def __neg__(self):
        return Dual(-self.value, -self.tangent)

    def __abs__(self):
        return self if self.value >= 0 else -self

    def __radd__(self, other):
        return lift(other) + self

    def __rsub__(self, other):
        return lift(other) - self

    def __rmul__(self, other):
        return lift(other) * self

    def __rtruediv__(self, other):
        return lift(other) / self

    def __lt__(self, other):
        return self.value < lift(other).value

    def __le__(self, other):
        return self.value <= lift(other).value

    def __gt__(self, other):
        return self.value > lift(other).value

    def __ge__(self, other):
        return self.value >= lift(other).value

    def __int__(self):
        return int(self.value)


def lift(x):
    return x if isinstance(x, Dual) else Dual(x)


class DualMath:
    """`math`, as much of it as the tests use, for `Dual`."""

    pi = math.pi

    @staticmethod
    def sin(x):
        return Dual(math.sin(lift(x).value), math.cos(lift(x).value) * lift(x).tangent)

    @staticmethod
    def cos(x):
        return Dual(math.cos(lift(x).value), -math.sin(lift(x).value) * lift(x).tangent)

    @staticmethod
    def exp(x):
        value = math.exp(lift(x).value)
        return Dual(value, value * lift(x).tangent)

    @staticmethod
    def log(x):
        return Dual(math.log(lift(x).value), lift(x).tangent / lift(x).value)

    @staticmethod
    def sqrt(x):
        value = math.sqrt(lift(x).value)
        return Dual(value, lift(x).tangent / (2 * value))

    @staticmethod
    def tanh(x):
        value = math.tanh(lift(x).value)
        return Dual(value, (1 - value * value) * lift(x).tangent)


def partials(source, name, args, differentiated):
    """The function's value and its partials, by running its source on dual numbers."""
    results = []
    for n in differentiated:
        namespace = {"math": DualMath, "__name__": "dual"}
        exec(source, namespace)
        seeded = [Dual(arg, float(k == n)) if k in differentiated else arg for k, arg in enumerate(args)]
        results.append(lift(namespace[name](*seeded)))
    return results[0].value, tuple(result.tangent for result in results)
