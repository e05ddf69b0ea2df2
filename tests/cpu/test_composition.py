"""Transforms of transforms: every nesting, to the third order and beyond, against exact partial derivatives."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit
from scipy.special import polygamma
from taylor import expand

from numba_enzyme import SignatureError, differentiable, grad, hessian, hvp, jacfwd, jacrev, jvp, value_and_grad, vjp

AT = (0.7, 0.4)


def product(x, y):
    return x * x * y * y * y


def waves(x, y):
    return math.sin(x * y) * math.exp(-x) + math.cos(y) * x


def powers(x, y):
    return x**3.5 * y**-2 + (x * y) ** 4


def saturated(x, y):
    return math.tanh(x * 2.0 - y) * math.tanh(y)


def linear(x, y):
    return 3.0 * x - 2.0 * y


def by_one_alone(x, y):
    return math.exp(x) * x


def branch(x, y):
    if x > y:
        return x * x * math.sin(y)
    return y * y * y + x


def conditional(x, y):
    return abs(y - x) * x if x * y > 0.1 else x


def helper(x, y):
    return x * x * y


@njit
def compiled_helper(x, y):
    return math.sin(x) * y


def calls(x, y):
    return helper(x, y) * compiled_helper(y, x) + helper(y, y)


def loop(x, y):
    s = x
    for k in range(5):
        s = s * y + math.sin(s) * (k + 1)
    return s


def newton(x, y):
    r = x + 1.0
    for _ in range(6):
        r = 0.5 * (r + (x + y) / r)
    return r * x


def while_loop(x, y):
    s = x
    while s < 3.0:
        s = s * 1.5 + y * s * s
    return s * y


def nested_loops(x, y):
    s = 0.0
    for i in range(4):
        t = y
        for j in range(i):
            if (i + j) % 2 == 1:
                continue
            t = t * x + j
        s = s * t * 0.5 + t * x
    return s


def leaves_early(x, y):
    s = y
    for _ in range(20):
        if s > 2.0:
            return s * x
        s = s * 1.4 + x * s
    return s


def overwritten(x, y):
    z = x
    for _ in range(4):
        z = 3.2 * z * (1.0 - z) + 0.1 * y
    return z


def power(x, n):
    if n < 1:
        return x * 0.0 + 1.0
    return x * power(x, n - 1)


def recursive(x, y):
    return power(x, 4) * power(y, 3)


def tuples(x, y):
    a, b = (x * y, x + y)
    pair = ((a, b), (b * b, a))
    return pair[0][0] * pair[1][0] + pair[1][1]


FUNCTIONS = [
    product,
    waves,
    powers,
    saturated,
    linear,
    by_one_alone,
    branch,
    conditional,
    calls,
    loop,
    newton,
    while_loop,
    nested_loops,
    leaves_early,
    overwritten,
    recursive,
    tuples,
]
each_function = pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)


def exact(f, order, at=AT):
    """The partials of `order`, nested as Jacobians of Jacobians are."""
    series = expand(f, at, order)

    def nested(directions):
        if len(directions) == order:
            return series.partial(*directions)
        return tuple(nested((*directions, n)) for n in range(series.variables))

    return nested(())


def flat(tree):
    return [leaf for child in tree for leaf in flat(child)] if isinstance(tree, tuple) else [tree]


def shape(tree):
    return tuple(shape(child) for child in tree) if isinstance(tree, tuple) else ()


def close(result, expected, rel=1e-12):
    """The same nesting, and the same numbers up to rounding."""
    assert shape(result) == shape(expected)
    assert flat(result) == pytest.approx(flat(expected), rel=rel, abs=rel)


def test_the_exact_partials_are_right():
    """What all other tests here compare with: by hand, by differences, and a wrong one is seen."""
    x, y = AT
    close(exact(product, 2), ((2 * y**3, 6 * x * y * y), (6 * x * y * y, 6 * x * x * y)), 1e-15)
    h = 1e-5
    for f in FUNCTIONS:
        up, down = f(x, y + h), f(x, y - h)
        assert exact(f, 1)[1] == pytest.approx((up - down) / (2 * h), rel=1e-8, abs=1e-8), f
        assert exact(f, 0) == pytest.approx(f(x, y), rel=1e-14), f
        change = [(a - b) / (2 * h) for a, b in zip(flat(exact(f, 2, (x + h, y))), flat(exact(f, 2, (x - h, y))), strict=True)]
        assert flat(exact(f, 3)[0]) == pytest.approx(change, rel=1e-6, abs=1e-6), f
    with pytest.raises(AssertionError):
        close(exact(product, 2), exact(calls, 2))


@each_function
def test_hessian(f):
    close(hessian(f)(*AT), exact(f, 2))


@each_function
def test_gradient_of_a_directional_derivative(f):
    # By the primals the Hessian times the direction, by the tangents the gradient.
    (xx, xy), (_, yy) = exact(f, 2)
    u, v = 0.3, -1.7
    close(grad(jvp(f))(AT, (u, v)), ((xx * u + xy * v, xy * u + yy * v), exact(f, 1)))


@each_function
def test_third_order(f):
    close(jacfwd(hessian(f))(*AT), exact(f, 3), 1e-11)


@each_function
def test_third_partial_by_gradients_alone(f):
    close(grad(grad(grad(f, 0), 1))(*AT), exact(f, 3)[0][1], 1e-11)


# What transforms of several results give.


def several(x, y):
    return waves(x, y), branch(x, y), while_loop(x, y)


PARTS = [waves, branch, while_loop]
JACOBIANS = {"jacfwd": jacfwd, "jacrev": jacrev}
two_jacobians = pytest.mark.parametrize(("outer", "inner"), list(itertools.product(JACOBIANS, JACOBIANS)))


def of_parts(order):
    return tuple(exact(f, order) for f in PARTS)


@two_jacobians
def test_jacobian_of_a_jacobian(outer, inner):
    close(JACOBIANS[outer](JACOBIANS[inner](several))(*AT), of_parts(2))


@pytest.mark.parametrize("inner", JACOBIANS)
def test_directional_derivative_of_a_jacobian(inner):
    u, v = 0.3, -1.7
    expected = tuple((xx * u + xy * v, xy * u + yy * v) for (xx, xy), (_, yy) in of_parts(2))
    close(jvp(JACOBIANS[inner](several))(AT, (u, v)), expected)


@pytest.mark.parametrize("inner", JACOBIANS)
def test_weighted_rows_of_a_jacobian(inner):
    weights = tuple((0.1 * k, 1.0 - 0.2 * k) for k in range(len(PARTS)))
    expected = tuple(math.fsum(a * row[0][j] + b * row[1][j] for (a, b), row in zip(weights, of_parts(2), strict=True)) for j in range(2))
    close(vjp(JACOBIANS[inner](several))(AT, weights), expected)


@pytest.mark.parametrize("outer", JACOBIANS)
def test_jacobian_of_a_directional_derivative(outer):
    u, v = 0.3, -1.7
    expected = tuple(
        ((xx * u + xy * v, xy * u + yy * v), first) for ((xx, xy), (_, yy)), first in zip(of_parts(2), of_parts(1), strict=True)
    )
    close(JACOBIANS[outer](jvp(several))(AT, (u, v)), expected)


@pytest.mark.parametrize("outer", JACOBIANS)
def test_jacobian_of_weighted_rows(outer):
    weights = tuple(1.0 - 0.15 * k for k in range(len(PARTS)))
    expected = tuple(
        tuple(math.fsum(w * rows[i][j] for w, rows in zip(weights, of_parts(2), strict=True)) for j in range(2)) for i in range(2)
    )
    close(JACOBIANS[outer](vjp(several), 0)(AT, weights), expected)
    # By the cotangent it is the transposed Jacobian.
    close(JACOBIANS[outer](vjp(several), 1)(AT, weights), tuple(zip(*of_parts(1), strict=True)))


def test_directional_derivatives_of_each_other():
    (u, v), (p, q) = (0.3, -1.7), (1.1, 0.6)
    second = tuple(u * (xx * p + xy * q) + v * (xy * p + yy * q) for (xx, xy), (_, yy) in of_parts(2))
    close(jvp(jvp(several))((AT, (u, v)), ((p, q), (0.0, 0.0))), second)
    # The inner tangents' own tangents add the first derivative along them.
    first = tuple(s + 2.0 * x - 0.5 * y for s, (x, y) in zip(second, of_parts(1), strict=True))
    close(jvp(jvp(several))((AT, (u, v)), ((p, q), (2.0, -0.5))), first)


THREE = [("jacfwd", "jacrev", "jacfwd"), ("jacrev", "jacfwd", "jacrev"), ("jacrev",) * 3, ("jacfwd",) * 3]


@pytest.mark.parametrize(("outer", "middle", "inner"), THREE)
def test_three_jacobians(outer, middle, inner):
    close(JACOBIANS[outer](JACOBIANS[middle](JACOBIANS[inner](several)))(*AT), of_parts(3), 1e-11)


def test_three_directional_derivatives():
    nothing = (0.0, 0.0)
    third = jvp(jvp(jvp(several)))
    for i, j, k in ((0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1)):
        u, v, w = (tuple(float(n == m) for m in range(2)) for n in (i, j, k))
        expected = tuple(rows[i][j][k] for rows in of_parts(3))
        close(third(((AT, u), (v, nothing)), ((w, nothing), (nothing, nothing))), expected, 1e-11)


# Products with the Hessian, and what is made of them.


@pytest.mark.parametrize("f", [waves, loop, leaves_early], ids=lambda f: f.__name__)
def test_hessian_vector_products(f):
    (xx, xy), (_, yy) = exact(f, 2)
    u, v = 0.3, -1.7
    close(hvp(f)(AT, (u, v)), (xx * u + xy * v, xy * u + yy * v))
    close(hvp(f, (1, 0))(AT, (v, u)), (xy * u + yy * v, xx * u + xy * v))
    close(hvp(f, 0)(AT, (u,)), xx * u)


@pytest.mark.parametrize("f", [waves, nested_loops], ids=lambda f: f.__name__)
def test_derivatives_of_hessian_vector_products(f):
    third, u, v = exact(f, 3), 0.3, -1.7
    expected = tuple(tuple(third[i][0][k] * u + third[i][1][k] * v for k in range(2)) for i in range(2))
    close(jacfwd(hvp(f), 0)(AT, (u, v)), expected, 1e-11)
    close(jacrev(hvp(f), 0)(AT, (u, v)), expected, 1e-11)
    close(jacfwd(hvp(f), 1)(AT, (u, v)), exact(f, 2))


@pytest.mark.parametrize("f", [waves, loop], ids=lambda f: f.__name__)
def test_gradient_of_a_squared_gradient(f):
    """`grad(|grad f|^2) = 2 H grad f`, by a function that calls a derivative."""
    first = grad(f)

    def squared(x, y):
        p, q = first(x, y)
        return p * p + q * q

    (p, q), ((xx, xy), (_, yy)) = exact(f, 1), exact(f, 2)
    expected = (2 * (xx * p + xy * q), 2 * (xy * p + yy * q))
    close(grad(squared)(*AT), expected)
    close(jacfwd(squared)(*AT), expected)
    close(grad(njit(squared))(*AT), expected)


# argnums at each level.


def test_argnums_at_each_level():
    def f(x, y, z):
        return x**2 * y**3 * z**4

    at = (2.0, 3.0, 0.5)
    xy, yz = 2 * 2 * 3 * 9 * 0.5**4, 4 * 3 * 9 * 4 * 0.5**3
    assert grad(grad(f, 0), 1)(*at) == grad(grad(f, 1), 0)(*at) == xy
    assert grad(grad(f, -1), (1,))(*at) == (yz,)
    assert jacfwd(grad(f, (1, 2)), (0,))(*at) == ((xy,), (2 * 2 * 27 * 4 * 0.5**3,))
    assert jacrev(jacfwd(f, (2, 0)), 1)(*at) == (yz, xy)
    assert hessian(f, (2, 0))(*at) == ((4 * 27 * 12 * 0.5**2, 4 * 27 * 4 * 0.5**3), (4 * 27 * 4 * 0.5**3, 2 * 27 * 0.5**4))
    assert jvp(grad(f, 1), 2)(at, (10.0,)) == 10.0 * yz
    assert vjp(jacrev(f, (0, 1)), 2)(at, (1.0, 0.0)) == 2 * 2 * 27 * 4 * 0.5**3
    assert grad(grad(grad(f, 0), 1), 2)(*at) == 2 * 2 * 3 * 9 * 4 * 0.5**3


def test_constants_stay_constant_at_each_level():
    def f(x, n, flag, scale):
        s = x * 0.0
        for k in range(n):
            s += x**k * scale[k]
        return s if flag else x

    scale = np.array([1.0, 2.0, 3.0, 4.0])
    assert grad(grad(f, 0), 0)(2.0, 4, True, scale) == 2 * 3.0 + 6 * 2.0 * 4.0
    assert jacfwd(jacrev(f, 0), 0)(2.0, 3, True, scale) == 2 * 3.0
    assert hessian(f, 0)(2.0, 4, False, scale) == 0.0
    assert grad(grad(grad(f, 0), 0), 0)(2.0, 4, True, scale) == 24.0
    assert hvp(f, 0)((2.0, 4, True, scale), (10.0,)) == 540.0


def test_integers_are_promoted_at_each_level():
    assert hessian(lambda x, y: x * x * y)(3, 2) == ((4.0, 6.0), (6.0, 0.0))
    assert grad(grad(lambda x: x**3, 0), 0)(2) == 12.0


def test_defaults_and_keywords_at_each_level():
    def f(x, y=3.0):
        return x * x * y

    assert hessian(f)(2.0) == ((6.0, 4.0), (4.0, 0.0))
    assert grad(grad(f, 0), 0)(x=2.0, y=5.0) == 10.0
    assert grad(grad(f, 1), 0)(2.0) == 4.0
    assert hvp(f)((2.0,), (1.0, 0.0)) == (6.0, 4.0)


def test_the_gradient_of_several_partials_is_refused():
    with pytest.raises(SignatureError, match=r"grad\(product\) gives 2.*jacrev"):
        grad(grad(product))(*AT)
    # One partial in a tuple counts as a scalar, as every result of one element does.
    assert grad(grad(lambda x: x * x * x))(2.0) == (12.0,)


# Types.


def test_float32_at_each_level():
    x, y = (np.float32(value) for value in AT)
    at = (float(x), float(y))
    for f in (waves, loop, while_loop):
        d = hessian(f)
        close(d(x, y), exact(f, 2, at), 2e-5)
        assert str(d.nopython_signatures[-1].return_type) == "UniTuple(UniTuple(float32 x 2) x 2)"
        third = jvp(hessian(f))
        close(third((x, y), (np.float32(1.0), np.float32(0.0))), exact(f, 3, at)[0], 2e-4)


def test_mixed_types_at_each_level():
    d = hessian(product)
    x, y = np.float32(0.5), 0.25
    assert d(x, y) == ((2 * 0.25**3, 6 * 0.5 * 0.25**2), (6 * 0.5 * 0.25**2, 6 * 0.25 * 0.25))
    assert str(d.nopython_signatures[-1].return_type) == "UniTuple(Tuple(float32, float64) x 2)"


class Point(NamedTuple):
    a: float
    b: float


def test_tuples_at_each_level():
    def f(p, t):
        return p.a * p.a * p.b * t[0] * t[1]

    at = (Point(2.0, 3.0), (5.0, 7.0))
    inner = Point(Point(210.0, 140.0), Point(140.0, 0.0))
    mixed = Point((84.0, 60.0), (28.0, 20.0))
    assert hessian(f)(*at)[0] == Point((inner.a, mixed.a), (inner.b, mixed.b))
    assert hessian(f, 0)(*at) == jacrev(grad(f, 0), 0)(*at) == jacfwd(jacfwd(f, 0), 0)(*at) == inner
    assert isinstance(hessian(f, 0)(*at).b, Point)
    assert jacfwd(grad(f, 0), 1)(*at) == mixed
    assert hvp(f, 0)(at, (Point(1.0, 10.0),)) == Point(210.0 + 1400.0, 140.0)


# Derivatives called by functions.


def test_no_confusion_of_perturbations():
    """d/dx (x d/dy (x + y)) is 1: an inner derivative does not see the outer one's seed."""
    partial, along = grad(lambda x, y: x + y, 1), jvp(lambda x, y: x + y, 1)
    assert grad(lambda x: x * partial(x, 1.0))(3.0) == (1.0,)
    assert jvp(lambda x: x * partial(x, 1.0))((3.0,), (1.0,)) == 1.0
    assert grad(lambda x: x * along((x, 1.0), (1.0,)))(3.0) == (1.0,)
    assert jvp(lambda x: x * along((x, 1.0), (1.0,)))((3.0,), (1.0,)) == 1.0
    scaled = grad(lambda x, y: x * y, 1)
    assert grad(lambda x: x * scaled(x, 1.0))(3.0) == (6.0,)


def test_a_seed_that_is_differentiated():
    along = jvp(lambda x: x * x * x)
    back = vjp(lambda x: x * x * x)
    # x -> 3 x^2 * (x^2), by the seed too.
    assert grad(lambda x: along((x,), (x * x,)))(2.0) == (12.0 * 8.0,)
    assert grad(lambda x: back((x,), x * x)[0])(2.0) == (12.0 * 8.0,)
    assert jvp(lambda x: back((x,), x * x)[0])((2.0,), (1.0,)) == 96.0


def test_root_finding_by_a_derivative():
    """Newton's method calls a derivative in a loop; its limit has the derivative of the root."""

    def equation(r, c):
        return r * r * r + r - c

    slope = grad(equation, 0)

    def root(c):
        r = 1.0
        for _ in range(40):
            r = r - equation(r, c) / slope(r, c)
        return r

    def until_close(c):
        r = 1.0
        while abs(equation(r, c)) > 1e-9:
            r = r - equation(r, c) / slope(r, c)
        return r - equation(r, c) / slope(r, c)

    # At c = 10 the root is 2; r' = 1 / (3 r^2 + 1), r'' = -6 r r'^3.
    for f in (root, until_close):
        assert value_and_grad(f)(10.0) == (pytest.approx(2.0, rel=1e-14), (pytest.approx(1 / 13, rel=1e-12),))
        assert hessian(f, 0)(10.0) == pytest.approx(-12 / 13**3, rel=1e-10)
        assert jvp(f)((10.0,), (2.0,)) == pytest.approx(2 / 13, rel=1e-12)


def test_learning_rate_of_a_descent():
    """The derivative of where gradient descent ends, by the step it takes."""
    loss_gradient = grad(lambda w: (w - 3.0) ** 2, 0)

    def final(rate):
        w = 0.0
        for _ in range(10):
            w -= rate * loss_gradient(w)
        return w

    # w - 3 is multiplied by 1 - 2 rate in each step.
    assert grad(final, 0)(0.1) == pytest.approx(3.0 * 20 * 0.8**9, rel=1e-13)
    assert hessian(final, 0)(0.1) == pytest.approx(-3.0 * 40 * 9 * 0.8**8, rel=1e-12)


def test_a_derivative_behind_a_branch_and_a_callee():
    slope = grad(lambda x: math.sin(x), 0)

    @njit
    def outer(x):
        return slope(x) * x

    def f(x):
        if x > 0.0:
            return outer(x) + slope(2.0 * x)
        return slope(x)

    assert grad(f, 0)(1.0) == pytest.approx(math.cos(1.0) - math.sin(1.0) - 2 * math.sin(2.0), rel=1e-14)
    assert grad(f, 0)(-1.0) == pytest.approx(math.sin(1.0), rel=1e-14)
    assert hessian(f, 0)(1.0) == pytest.approx(-2 * math.sin(1.0) - math.cos(1.0) - 4 * math.cos(2.0), rel=1e-14)


def test_several_derivatives_of_one_function_in_one():
    a, b, c, d = grad(waves, 0), jvp(waves), hessian(waves), value_and_grad(waves)

    def f(x, y):
        value, (p, _) = d(x, y)
        return a(x, y) + b((x, y), (0.0, 1.0)) + c(x, y)[0][1] + value * p + waves(x, y)

    s = exact(waves, 3)
    (x, y), ((xx, xy), (_, yy)), value = exact(waves, 1), exact(waves, 2), exact(waves, 0)
    expected = (xx + xy + s[0][0][1] + x * x + value * xx + x, xy + yy + s[0][1][1] + x * y + value * xy + y)
    close(grad(f)(*AT), expected, 1e-11)
    close(jacfwd(f)(*AT), expected, 1e-11)


def test_three_levels_of_functions_that_call_derivatives():
    one = grad(lambda x: x**5, 0)
    two = grad(lambda x: one(x) * x, 0)
    three = grad(lambda x: two(x) + one(x), 0)
    # x^5 -> 5 x^4 -> (5 x^5)' = 25 x^4 -> (25 x^4 + 5 x^4)' = 120 x^3
    assert three(2.0) == 960.0
    assert grad(three, 0)(2.0) == 360.0 * 4.0


def test_local_arrays_at_second_order():
    def f(x, y):
        a = np.zeros(4)
        for k in range(4):
            a[k] = x**k * y
        return (a * a).sum() + a[1] * a[2]

    x, y = AT
    # The second partials of the square of y times the sum of x to the powers 0, 2, 3, 4 and 6.
    first = y * y * (2 + 12 * x**2 + 30 * x**4 + 6 * x)
    mixed = 2 * y * (2 * x + 4 * x**3 + 6 * x**5 + 3 * x**2)
    expected = ((first, mixed), (mixed, 2 * (1 + x**2 + x**4 + x**6 + x**3)))
    close(hessian(f)(x, y), expected)
    close(jacrev(jacfwd(f))(x, y), expected)


def test_special_functions_at_each_order():
    x = 2.5
    orders = [float(polygamma(n, x)) for n in range(3)]
    assert grad(math_lgamma, 0)(x) == pytest.approx(orders[0], rel=1e-13)
    assert grad(grad(math_lgamma, 0), 0)(x) == pytest.approx(orders[1], rel=1e-12)
    assert jvp(hessian(math_lgamma, 0))((x,), (1.0,)) == pytest.approx(orders[2], rel=1e-11)


def math_lgamma(x):
    return math.lgamma(x)


# Orders beyond.


@pytest.mark.parametrize("transform", [grad, jacfwd, jacrev], ids=lambda t: t.__name__)
def test_fifth_order(transform):
    def f(x):
        return math.sin(2.0 * x) + x**6

    x, d = 0.3, f
    for order in range(1, 6):
        d = transform(d, 0)
        expected = 2.0**order * math.sin(2.0 * x + order * math.pi / 2) + math.perm(6, order) * x ** (6 - order)
        assert d(x) == pytest.approx(expected, rel=1e-11), order


def test_fourth_order_by_all_transforms_in_turn():
    def f(x, y):
        return math.exp(x) * y**4

    mixed = jvp(jacrev(jacfwd(grad(f, 0), 1), 1), 1)
    assert mixed((0.5, 2.0), (3.0,)) == pytest.approx(3.0 * 24 * 2.0 * math.exp(0.5), rel=1e-13)


# Inside compiled code.


def test_derivatives_of_derivatives_inside_njit():
    second, third, along, product_with = hessian(loop), jacfwd(jacrev(jacfwd(loop))), jvp(grad(loop)), hvp(loop)

    @njit
    def caller(x, y):
        return second(x, y), third(x, y), along((x, y), (1.0, 0.0)), product_with((x, y), (0.0, 1.0))

    a, b, c, d = caller(*AT)
    close(a, exact(loop, 2))
    close(b, exact(loop, 3), 1e-11)
    close(c, exact(loop, 2)[0])
    close(d, exact(loop, 2)[1])


def test_newtons_method_inside_njit():
    """Minimises Rosenbrock's function with its Hessian."""

    def f(x, y):
        return (1.0 - x) ** 2 + 100.0 * (y - x * x) ** 2

    first, second = grad(f), hessian(f)

    @njit
    def minimise(x, y):
        for _ in range(20):
            p, q = first(x, y)
            (a, b), (_, d) = second(x, y)
            det = a * d - b * b
            x, y = x - (d * p - b * q) / det, y - (a * q - b * p) / det
        return x, y

    assert minimise(-1.2, 1.0) == pytest.approx((1.0, 1.0), rel=1e-12)


def test_derivatives_of_what_differentiable_offers():
    area = differentiable(product)
    close(jacfwd(area.grad)(*AT), exact(product, 2))
    close(area.hessian(*AT), exact(product, 2))
    assert grad(lambda x: area.grad(x, 0.5)[0])(2.0) == (2 * 0.5**3,)


# What holds for f holds at each level.


def test_exceptions_at_each_level():
    def f(x):
        if x < 0.0:
            raise ValueError("negative")
        return x * x * x

    second = grad(grad(f, 0), 0)
    assert second(2.0) == 12.0
    for derivative in (second, hessian(f), jacrev(jacfwd(f)), grad(grad(grad(f, 0), 0), 0)):
        with pytest.raises(ValueError, match="negative"):
            derivative(-1.0)
    with pytest.raises(ValueError, match="negative"):
        hvp(f)((-1.0,), (1.0,))


def test_the_error_model_at_each_level():
    def f(x):
        return 1.0 / x

    with pytest.raises(ZeroDivisionError):
        hessian(f)(0.0)
    assert grad(grad(njit(error_model="numpy")(f), 0), 0)(0.0) == math.inf


def test_values_on_the_other_side_of_a_branch():
    """One build serves all branches."""
    d = hessian(branch)
    for at in ((0.7, 0.4), (0.4, 0.7), (-0.3, 0.2), (5.0, -1.0)):
        close(d(*at), exact(branch, 2, at))
    d = hessian(leaves_early)
    for at in ((0.7, 0.4), (0.01, 0.01), (0.3, 3.0), (1.5, 0.9)):
        close(d(*at), exact(leaves_early, 2, at), 1e-11)
