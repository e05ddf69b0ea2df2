"""Truncated Taylor series in several variables, in plain Python: exact partial derivatives of every order to compare with."""

from __future__ import annotations

import itertools
import math
from types import FunctionType


class Series:
    """A function near a point as coefficients by exponents: `{(1, 0): 3.0}` is 3 dx. Comparisons look at the value."""

    def __init__(self, coefficients, order, variables):
        self.coefficients, self.order, self.variables = coefficients, order, variables

    @property
    def value(self):
        return self.coefficients.get((0,) * self.variables, 0.0)

    def _of(self, coefficients):
        return Series(coefficients, self.order, self.variables)

    def _lift(self, other):
        return other if isinstance(other, Series) else self._of({(0,) * self.variables: float(other)})

    def __add__(self, other):
        other = self._lift(other).coefficients
        keys = self.coefficients.keys() | other.keys()
        return self._of({key: self.coefficients.get(key, 0.0) + other.get(key, 0.0) for key in keys})

    def __mul__(self, other):
        product = {}
        for (a, p), (b, q) in itertools.product(self.coefficients.items(), self._lift(other).coefficients.items()):
            key = tuple(i + j for i, j in zip(a, b, strict=True))
            if sum(key) <= self.order:
                product[key] = product.get(key, 0.0) + p * q
        return self._of(product)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return self * -1.0

    def __sub__(self, other):
        return self + -self._lift(other)

    def __rsub__(self, other):
        return -self + other

    def __truediv__(self, other):
        return self * self._lift(other) ** -1

    def __rtruediv__(self, other):
        return self**-1 * other

    def __pow__(self, exponent):
        derivatives, factor = [], 1.0
        for k in range(self.order + 1):
            derivatives.append(factor * self.value ** (exponent - k) if factor else 0.0)
            factor *= exponent - k
        return self.through(derivatives)

    def through(self, derivatives):
        """A function of this series from the function's derivatives at its value."""
        step = self - self.value
        result, power = self._lift(derivatives[0]), self._lift(1.0)
        for k, derivative in enumerate(derivatives[1:], 1):
            power = power * step
            result = result + power * (derivative / math.factorial(k))
        return result

    def __lt__(self, other):
        return self.value < self._lift(other).value

    def __gt__(self, other):
        return self.value > self._lift(other).value

    def __abs__(self):
        return self if self.value >= 0 else -self

    def partial(self, *directions):
        """The partial derivative by these variables: `partial(0, 0, 1)` is once by the second and twice by the first."""
        exponents = tuple(directions.count(n) for n in range(self.variables))
        return self.coefficients.get(exponents, 0.0) * math.prod(map(math.factorial, exponents))


class SeriesMath:
    """`math` for `Series`, as much of it as the tests use."""

    @staticmethod
    def sin(x):
        return x.through([math.sin(x.value + k * math.pi / 2) for k in range(x.order + 1)])

    @staticmethod
    def cos(x):
        return x.through([math.cos(x.value + k * math.pi / 2) for k in range(x.order + 1)])

    @staticmethod
    def exp(x):
        return x.through([math.exp(x.value)] * (x.order + 1))

    @staticmethod
    def tanh(x):
        return 1.0 - 2.0 / (SeriesMath.exp(2.0 * x) + 1.0)


def expand(f, at, order):
    """What `f`, with `math` meaning `SeriesMath`, gives for series around the floats `at`; other arguments stay as they are."""
    floats = [n for n, value in enumerate(at) if isinstance(value, float)]
    nothing = (0,) * len(floats)
    arguments = list(at)
    for k, n in enumerate(floats):
        one = tuple(int(k == m) for m in range(len(floats)))
        arguments[n] = Series({nothing: at[n], one: 1.0}, order, len(floats))
    return _translated(f)(*arguments)


def _translated(f):
    """`f` and the functions of its module that it calls, with another `math`."""
    names = {**f.__globals__, "math": SeriesMath}
    for name, value in f.__globals__.items():
        function = getattr(value, "py_func", value)
        if isinstance(function, FunctionType) and function.__globals__ is f.__globals__:
            names[name] = FunctionType(function.__code__, names, name, function.__defaults__, function.__closure__)
    return FunctionType(f.__code__, names, f.__name__, f.__defaults__, f.__closure__)
