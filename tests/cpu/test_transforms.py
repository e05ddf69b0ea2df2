"""How transforms are called, what comes back, and what is refused in which words."""

from __future__ import annotations

import functools
import inspect
import math
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

import numba_enzyme
from numba_enzyme import (
    ArgumentError,
    DifferentiationError,
    SignatureError,
    UnsupportedError,
    differentiable,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    value_and_grad,
    vjp,
)
from numba_enzyme.types import Float32, Float64


class Point(NamedTuple):
    x: float
    y: float


def f(x, y, z):
    return x * x * y + math.sin(z)


def two(x, y):
    return x * y, x + 2.0 * y


def series(x, n):
    s = 0.0
    for k in range(n):
        s += x**k
    return s


PARTIALS = (12.0, 4.0, 1.0)  # of f at (2, 3, 0)


@pytest.mark.parametrize(
    ("argnums", "expected"),
    [
        (None, PARTIALS),
        (0, 12.0),
        (2, 1.0),
        (-1, 1.0),
        (-3, 12.0),
        ((0,), (12.0,)),
        ((1, 0), (4.0, 12.0)),
        ((-1, 0), (1.0, 12.0)),
        ([2, 1], (1.0, 4.0)),
        ((), ()),
        (np.int64(1), 4.0),
    ],
)
def test_argnums(argnums, expected):
    args = (2.0, 3.0, 0.0)
    assert grad(f, argnums)(*args) == expected
    assert value_and_grad(f, argnums)(*args) == (12.0, expected)
    assert vjp(f, argnums)(args, 1.0) == expected
    assert jacrev(f, argnums)(*args) == expected
    if expected != ():
        assert jacfwd(f, argnums)(*args) == expected


@pytest.mark.parametrize("argnums", [3, -4, (0, 3), (0, 0), (0, -3)])
def test_argnums_that_are_not_there(argnums):
    with pytest.raises(ArgumentError, match=r"argnums=.* f "):
        grad(f, argnums)


@pytest.mark.parametrize("argnums", ["x", 1.0, ("x",), {0}])
def test_argnums_of_the_wrong_kind(argnums):
    with pytest.raises(SignatureError, match="argnums"):
        grad(f, argnums)


def test_jvp_and_vjp():
    assert jvp(two)((2.0, 3.0), (1.0, 10.0)) == (23.0, 21.0)
    assert jvp(two, 1)((2.0, 3.0), (10.0,)) == (20.0, 20.0)
    assert jvp(two, (1, 0))((2.0, 3.0), (10.0, 1.0)) == (23.0, 21.0)
    assert vjp(two)((2.0, 3.0), (1.0, 10.0)) == (13.0, 22.0)
    assert vjp(two, 0)((2.0, 3.0), (1.0, 10.0)) == 13.0


def test_jacobians_and_second_order():
    assert jacfwd(two)(2.0, 3.0) == jacrev(two)(2.0, 3.0) == ((3.0, 2.0), (1.0, 2.0))
    assert jacfwd(two, 0)(2.0, 3.0) == jacrev(two, 0)(2.0, 3.0) == (3.0, 1.0)
    assert hessian(f, (0, 1))(2.0, 3.0, 0.0) == ((6.0, 4.0), (4.0, 0.0))
    assert hessian(f, 0)(2.0, 3.0, 0.0) == 6.0
    assert hvp(f)((2.0, 3.0, 0.0), (1.0, 0.0, 0.0)) == (6.0, 4.0, 0.0)


def test_keywords_and_defaults():
    def g(x, y=3.0, k=2):
        return x * y * k

    assert grad(g)(2.0) == (6.0, 4.0, 6.0)
    assert grad(g)(2.0, k=1) == (3.0, 2.0, 6.0)
    assert grad(g, 0)(y=5.0, x=2.0) == 10.0
    assert jvp(g)((2.0,), (1.0, 1.0, 0.0)) == 10.0
    assert jvp(g)((2.0, 1.0), (1.0, 1.0, 0.0)) == 6.0
    assert njit(lambda: 0)() == 0
    derivative = grad(g)

    @njit
    def caller(x):
        return derivative(x, k=3)

    assert caller(2.0) == (9.0, 6.0, 6.0)


@pytest.mark.parametrize(
    ("g", "constant"),
    [
        (series, 4),
        (lambda x, b: x * x * x if b else x, True),
        (lambda x, a: x * x * x * a[0], np.array([1.0, 2.0])),
        (lambda x, a: x * x * x * a[0], np.array([1, 2])),
        (lambda x, s: x * x * x * len(s), "a"),
        (lambda x, p: x * x * x * p.x, Point(1, 2.0)),
        (lambda x, z: x * x * x * z.real, 1.0 + 2.0j),
        (lambda x, t: x * x * x * t[0][1], ((0, 1), "text")),
        (lambda x, n: x * x * x, None),
    ],
    ids=["int", "bool", "array", "int array", "string", "named tuple", "complex", "nested tuple", "none"],
)
def test_constants_of_any_type(g, constant):
    expected = 1.0 + 2 * 2.0 + 3 * 4.0 if g is series else 12.0
    assert grad(g, 0)(2.0, constant) == expected
    assert jvp(g, 0)((2.0, constant), (1.0,)) == expected
    assert jacfwd(g, 0)(2.0, constant) == expected


def test_trees_of_floats():
    def g(p, q):
        (a, b), c = p
        return a * b * c + q.x * q.y

    at = (((2.0, 3.0), 4.0), Point(5.0, 6.0))
    partials = (((12.0, 8.0), 6.0), Point(6.0, 5.0))
    assert grad(g)(*at) == partials
    assert isinstance(grad(g)(*at)[1], Point)
    assert jvp(g)(at, (((1.0, 0.0), 0.0), Point(0.0, 1.0))) == 17.0
    assert jacfwd(g, 0)(*at) == partials[0]

    def h(x):
        return (x, (x * x, 3.0 * x)), Point(x, 1.0)

    assert jacrev(h)(2.0) == jacfwd(h)(2.0) == (((1.0,), ((4.0,), (3.0,))), Point((1.0,), (0.0,)))
    assert vjp(h)((2.0,), ((1.0, (10.0, 100.0)), Point(0.0, 0.0))) == (341.0,)


def test_one_element_result_counts_as_a_scalar():
    def g(x):
        return (x * x,)

    assert grad(g)(3.0) == (6.0,)
    assert value_and_grad(g)(3.0) == ((9.0,), (6.0,))


def test_dtypes():
    def product(x, y):
        return x * y

    x, y = np.float32(3.0), 2.0
    partial_types = [type(p) for p in jacfwd(product)(x, y)]
    assert partial_types == [type(p) for p in grad(product)(x, y)] == [float, float]
    assert [str(c.signature.return_type) for c in grad(product).overloads.values()] == ["Tuple(float32, float64)"]
    assert [str(c.signature.return_type) for c in jvp(lambda a: a * a).overloads.values()] == []
    single = jvp(lambda a: a * a)
    assert single((x,), (1.0,)) == 6.0
    assert [str(c.signature.return_type) for c in single.overloads.values()] == ["float32"]


def test_integers_are_promoted():
    assert grad(f)(2, 3, 0) == PARTIALS
    assert jvp(two)((2, 3), (1, 10)) == (23.0, 21.0)
    derivative = grad(lambda x: x * x)

    @njit
    def literal():
        return derivative(3)

    assert literal() == (6.0,)


def test_a_promoted_range_proposes_argnums():
    with pytest.raises(SignatureError, match=r"series .*\bn\b.*argnums"):
        grad(series)(2.0, 4)
    assert grad(series, 0)(2.0, 4) == 17.0


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (True, "bool"),
        ("text", "unicode"),
        (1.0j, "complex"),
        (np.ones(2, int), "array"),
        (np.float16(1.0), "float16"),
        ((1.0, "a"), "Tuple"),
    ],
    ids=["bool", "string", "complex", "array", "half", "mixed tuple"],
)
def test_what_has_no_derivative_is_named(value, said):
    def g(x, weight):
        return x

    with pytest.raises(SignatureError, match=rf"'weight' of .*g is .*{said}.*argnums=\(0,\)"):
        grad(g)(1.0, value)


@pytest.mark.parametrize("transform", [grad, value_and_grad, hessian])
def test_scalar_transforms_of_several_results(transform):
    with pytest.raises(SignatureError, match=r"two gives 2.*jacrev.*vjp"):
        transform(two)(1.0, 2.0)
    with pytest.raises(SignatureError, match=r"two gives 2.*jacrev.*vjp"):
        hvp(two)((1.0, 2.0), (1.0, 0.0))


@pytest.mark.parametrize(
    ("g", "said"),
    [
        (lambda x: x > 0, "bool"),
        (lambda x: None, "None"),
        (lambda x: "a", "unicode"),
        (lambda x: complex(x, 1.0), "complex"),
        (lambda x: (x, "a"), "Tuple"),
        (lambda x: x if x > 0 else None, "Optional"),
    ],
    ids=["bool", "none", "string", "complex", "mixed", "optional"],
)
def test_results_without_a_derivative(g, said):
    with pytest.raises(SignatureError, match=said):
        jacfwd(g)(1.0)


def test_calls_of_the_wrong_form():
    with pytest.raises(SignatureError, match=r"primals must be the tuple of all arguments of two"):
        jvp(two)(1.0, 2.0)
    with pytest.raises(SignatureError, match=r"two takes 2 arguments \(x, y\), but primals has 1"):
        jvp(two)((1.0,), (1.0,))
    with pytest.raises(SignatureError, match=r"tangents, one entry for each"):
        jvp(two)((1.0, 2.0), (1.0,))
    with pytest.raises(SignatureError, match=r"tangents, one entry for each"):
        jvp(two)((1.0, 2.0), (1.0, True))
    with pytest.raises(SignatureError, match=r"the cotangent must be shaped like"):
        vjp(two)((1.0, 2.0), 1.0)


def test_calls_that_leave_arguments_out():
    with pytest.raises(SignatureError, match=r"^grad\(two\) was called without y: it is called as two\(x, y\) is$"):
        grad(two)(1.0)
    with pytest.raises(SignatureError, match=r"^jacrev\(two\) was called without x, y: it is called as two\(x, y\) is$"):
        jacrev(two)()
    with pytest.raises(SignatureError, match=r"^grad\(later\) was called without x: it is called as later\(x, y\) is$"):
        grad(later)(y=1.0)
    seeded = r"it is called \(primals, {}\), with the arguments of two\(x, y\) as primals$"
    with pytest.raises(SignatureError, match=r"^jvp\(two\) was called without tangents: " + seeded.format("tangents")):
        jvp(two)((1.0, 2.0))
    with pytest.raises(SignatureError, match=r"^vjp\(two\) was called without primals, cotangent: " + seeded.format("cotangent")):
        vjp(two)()
    with pytest.raises(TypingError, match=r"missing a required argument: 'y'(.|\n)*grad\(two\)"):
        njit(lambda x: gradient_of_two(x))(1.0)
    # What has a default may be left out, and signatures show no more than the function's.
    assert grad(later)(3.0) == (2.0, 3.0)
    assert [str(inspect.signature(transform(later))) for transform in (grad, jvp)] == ["(x, y=2.0)", "(primals, tangents)"]


def later(x, y=2.0):
    return x * y


gradient_of_two = grad(two)


@pytest.mark.parametrize("transform", [grad, value_and_grad, hessian, hvp], ids=lambda transform: transform.__name__)
def test_gradients_and_hessians_of_several_results_are_refused(transform):
    said = r"^gradients and Hessians need .* one float as its result, but two gives 2: .*jacrev or jacfwd.*jacfwd\(jacrev\(f\)\).*vjp"
    with pytest.raises(SignatureError, match=said):
        transform(two)(*(((1.0, 2.0), (1.0, 0.0)) if transform is hvp else (1.0, 2.0)))


@njit
def squared(x):
    return x * x


def test_compiled_code_that_makes_a_derivative_is_told_how_to():
    @njit
    def by_name(x):
        return grad(squared)(x)

    @njit
    def by_module(x):
        return numba_enzyme.hessian(squared)(x)

    @njit
    def calls_it(x):
        return by_name(x)

    for f, name, transform in ((by_name, "by_name", "grad"), (by_module, "by_module", "hessian"), (calls_it, "by_name", "grad")):
        with pytest.raises(UnsupportedError, match=rf"{name} calls {transform} itself, .* outside of it, as in `df = {transform}\(f\)`"):
            f(1.0)
    with pytest.raises(UnsupportedError, match=r"by_name cannot be differentiated: it calls grad itself, .*`df = grad\(f\)`"):
        jvp(by_name)((1.0,), (1.0,))
    # Other plain functions are what they were to Numba.
    with pytest.raises(TypingError, match="Cannot determine Numba type of <class 'function'>"):
        njit(lambda x: two(x, x))(1.0)


def prints(x):
    print(x)
    return x * x


def leaves_compiled_code(x):
    with numba.objmode(y="float64"):
        y = math.sin(x)
    return x * y


def draws(x):
    return x * np.random.random()


def appends(x):
    values = [x]
    values.append(x * x)
    return values[1]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (prints, r"Python objects \(objmode or print\)\. Print after the call, with has_aux=True"),
        (
            leaves_compiled_code,
            r"Python objects .* compute what objmode gives before the call, and pass .* argument that argnums leaves out",
        ),
        (draws, r"random numbers .*\. Draw them before the call, and pass .* argument that argnums leaves out"),
        (lambda x: {1: x}[1], r"a dictionary\. Use an array or a tuple"),
        (appends, r"a list .*\. Use an array or a tuple"),
    ],
)
def test_refusals_say_the_way_out(function, said):
    for call in (lambda: grad(function)(2.0), lambda: jvp(function)((2.0,), (1.0,))):
        with pytest.raises(DifferentiationError, match=f"^{function.__name__} cannot be differentiated: it uses {said}"):
            call()


class Thing:
    def method(self, x):
        return x

    def __call__(self, x):
        return x


def generator(x):
    yield x


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (Thing().method, "method bound to an object"),
        (Thing(), "Thing object"),
        (functools.partial(f, 1.0), "functools.partial"),
        (math.sin, "without Python source"),
        (np.sin, "without Python source"),
        (float, "a class"),
        (None, "NoneType"),
        (generator, "generator"),
        (lambda *x: x[0], r"\*x"),
        (lambda **x: 1.0, r"\*\*x"),
        (lambda *, x: x, "names and places"),
        (lambda: 1.0, "no arguments"),
    ],
)
def test_what_is_not_a_function_with_code(function, said):
    for transform in (grad, jvp, jacfwd):
        with pytest.raises(SignatureError, match=said):
            transform(function)


def test_static_methods_are_functions():
    class Holder:
        @staticmethod
        def square(x):
            return x * x

    assert grad(Holder.square)(3.0) == (6.0,)


def test_device_options_are_for_device_functions():
    with pytest.raises(SignatureError, match="signature= is an option for CUDA"):
        grad(f, signature=None)
    with pytest.raises(SignatureError, match="cc= is an option for CUDA"):
        jvp(f, cc=(8, 0))
    with pytest.raises(SignatureError, match="bogus="):
        jvp(f, bogus=1)


@numba.experimental.jitclass([("k", numba.float64)])
class Spring:
    def __init__(self, k):
        self.k = k

    def energy(self, x):
        return self.k * x * x


@numba.cfunc("float64(float64)")
def pointer(x):
    return x * x


def test_code_that_cannot_be_seen():
    with pytest.raises(UnsupportedError, match=r"test_code.*Spring"):
        grad(lambda x: Spring(x).energy(x))(1.0)
    with pytest.raises(UnsupportedError, match=r"'s' of .*Spring"):
        grad(lambda s, x: s.energy(x), 1)(Spring(1.0), 1.0)
    with pytest.raises(UnsupportedError, match=r"test_code.*pointer"):
        grad(lambda x: pointer(x))(1.0)
    for transform in (grad, jvp):
        with pytest.raises(UnsupportedError, match=rf"test_code.*calls {transform.__name__} itself.*outside"):
            grad(lambda x: transform(f)(x, x))(1.0)  # noqa: B023


def test_exceptions_with_run_time_values_say_what_the_values_are():
    def g(x):
        if x < 0.0:
            raise ValueError("negative", x)
        return x * x

    assert grad(g)(3.0) == (6.0,)
    with pytest.raises(ValueError, match="negative") as raised:
        grad(g)(-1.0)
    assert raised.value.args == ("negative", "<float64>")


def test_differentiable():
    d = differentiable(two)
    assert d(2.0, 3.0) == (6.0, 8.0)
    assert d.jacfwd(2.0, 3.0) == ((3.0, 2.0), (1.0, 2.0))
    assert d.jvp is d.jvp
    assert grad(d.py_func, 0) is grad(two, 0)
    assert jacfwd(d) is jacfwd(two)
    with pytest.raises(AttributeError):
        _ = d.gradient


# Annotations.


def annotated(x: Float64, v: Float32) -> Float64:
    return x * x * v


def annotated_tuple(p: tuple[Float64, Float64]) -> Float64:
    return p[0] * p[1]


def single(x: Float32) -> Float32:
    return x * 2.0


def test_annotations_fix_the_types():
    derivative = grad(annotated)
    assert [str(s) for s in derivative.signatures[0]] == ["float64", "float32"]
    assert derivative(2.0, np.float32(3.0)) == (12.0, 4.0)
    with pytest.raises(SignatureError, match=r"annotated.*'v' is a float32, and a float64 was given"):
        derivative(2.0, 3.0)
    assert jvp(annotated_tuple)(((2.0, 3.0),), ((1.0, 0.0),)) == 3.0
    assert len(jvp(annotated_tuple).signatures) == 1
    assert value_and_grad(single)(np.float32(3.0)) == (6.0, (2.0,))
    assert str(value_and_grad(single).overloads[value_and_grad(single).signatures[0]].signature.return_type).startswith("Tuple(float32")


def test_other_annotations_do_no_harm():
    def partial(x: Float64, y):
        return x * y

    def plain(x: float, y: int) -> float:
        return x * y

    def nonsense(x):
        return x * x

    nonsense.__annotations__ = {"x": "no such name", "return": "neither"}

    assert grad(partial)(2.0, 3.0) == grad(plain)(2.0, 3.0) == (3.0, 2.0)
    assert grad(nonsense)(3.0) == (6.0,)
    assert grad(partial).overloads.keys() == {(numba.float64, numba.float64)}
