"""What each transform gives in device code, in every form of call; evaluated on the CPU."""

import math

import numpy as np
import pytest

import numba_enzyme as ne

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")

from numba_cuda_mlir import cuda, types

f4, f8 = types.float32, types.float64


@cuda.jit(device=True)
def f(x, y):
    return x * y + math.sin(x)


@cuda.jit(device=True)
def pair(t, y):
    (a, b), c = t
    return (a * b * c + y, math.exp(a * y))


@cuda.jit(device=True)
def rhs(ys, t, ps):
    return (ys[0] * ps[0] - ys[1] * t, ys[1] * ys[0] * ps[1])


@cuda.jit(device=True)
def three(x, y):
    return (x * y, x + y, math.sin(x) * y)


POINT = (((1.0, 2.0), 3.0), 0.5)
E = math.exp(0.5)
JACOBIAN = [[6.0, 3.0, 2.0, 1.0], [0.5 * E, 0.0, 0.0, E]]
RHS = types.UniTuple(f8, 2)(types.UniTuple(f8, 2), f8, types.UniTuple(f8, 2))
SIGNATURE = f8(f8, f8)


def close(got, want):
    np.testing.assert_allclose(np.ravel(flat(got)), np.ravel(flat(want)), rtol=1e-13, atol=1e-15)


def flat(value):
    return [x for v in value for x in flat(v)] if isinstance(value, (tuple, list)) else np.ravel(value).tolist()


def test_grad_gives_a_tuple_in_one_sweep(evaluate):
    got = evaluate(ne.grad(f), 1.0, 2.0)
    assert isinstance(got, tuple)
    close(got, (2 + math.cos(1), 1.0))


@pytest.mark.parametrize(
    ("argnums", "want"), [(0, 2 + math.cos(1)), (-1, 1.0), ((1, 0), (1.0, 2 + math.cos(1))), ((0,), (2 + math.cos(1),))]
)
def test_argnums(evaluate, argnums, want):
    got = evaluate(ne.grad(f, argnums=argnums), 1.0, 2.0)
    assert isinstance(got, tuple) == isinstance(want, tuple)
    close(got, want)


def test_value_and_grad(evaluate):
    close(evaluate(ne.value_and_grad(f), 1.0, 2.0), (2 + math.sin(1), (2 + math.cos(1), 1.0)))


def test_integers_are_promoted(evaluate):
    close(evaluate(ne.grad(f), 1.0, 2), (2 + math.cos(1), 1.0))
    assert str(ne.grad(f).resolve((f8, types.int64), {}).restype) == "UniTuple(float64 x 2)"


def test_keywords_and_defaults(evaluate):
    @cuda.jit(device=True)
    def g(x, y=3.0):
        return x * x * y

    close(evaluate(ne.grad(g), 2.0), (12.0, 4.0))
    close(evaluate(ne.grad(g), 2.0, y=1.0), (4.0, 4.0))


def test_constant_arguments_of_any_scalar_type(evaluate):
    @cuda.jit(device=True)
    def g(x, n, b, t):
        s = 0.0
        for i in range(4):
            s += x * i * n
        return s * t[0] if b else -s

    d = ne.grad(g, argnums=0)
    close(evaluate(d, 1.5, 2, True, (3, 2.0)), 36.0)
    close(evaluate(d, 1.5, 2, False, (3, 2.0)), -12.0)


def test_float32_and_mixed(evaluate):
    resolved = ne.grad(f).resolve((f4, f8), {})
    assert str(resolved.restype) == "Tuple(float32, float64)"
    got = evaluate(ne.grad(f), np.float32(1.0), np.float32(2.0))
    np.testing.assert_allclose(got, (2 + math.cos(1), 1.0), rtol=1e-6)
    assert str(ne.grad(f).resolve((f4, f4), {}).restype) == "UniTuple(float32 x 2)"


def test_jvp_and_vjp_by_values(evaluate):
    close(evaluate(ne.jvp(f), (1.0, 2.0), (1.0, 0.5)), 2 + math.cos(1) + 0.5)
    close(evaluate(ne.vjp(f), (1.0, 2.0), 2.0), (2 * (2 + math.cos(1)), 2.0))
    close(evaluate(ne.vjp(pair), POINT, (1.0, 0.0)), (((6.0, 3.0), 2.0), 1.0))
    close(evaluate(ne.jvp(pair), POINT, (((1.0, 0.0), 0.0), 1.0)), (7.0, 1.5 * E))


@pytest.mark.parametrize("transform", [ne.jacfwd, ne.jacrev])
def test_jacobians(evaluate, transform):
    close(evaluate(transform(f), 1.0, 2.0), (2 + math.cos(1), 1.0))
    close(evaluate(transform(pair), *POINT), JACOBIAN)
    jac = np.full((3, 5), 7.0)
    assert evaluate(transform(pair), jac, *POINT) is None
    close(jac[:2, :4], JACOBIAN)
    assert (jac[2] == 7).all()
    assert (jac[:, 4] == 7).all()


def test_jvp_into_an_array_with_one_and_more_sets(evaluate):
    out = np.zeros(3)
    evaluate(ne.jvp(pair), out, *POINT, ((1.0, 0.0), 0.0), 0.0)
    close(out, [6.0, 0.5 * E, 0.0])
    out = np.zeros((2, 2))
    evaluate(ne.jvp(pair), out, *POINT, ((1.0, 0.0), 0.0), 0.0, ((0.0, 0.0), 0.0), 1)
    close(out, [[6.0, 0.5 * E], [1.0, E]])


def test_eleven_sets_of_tangents(evaluate):
    out = np.zeros((11, 3))
    evaluate(ne.jvp(three), out, 1.0, 2.0, *(float(x) for k in range(11) for x in (k, 1)))
    J = np.array([[2.0, 1.0], [1.0, 1.0], [2 * math.cos(1), math.sin(1)]])
    close(out, [J @ [k, 1] for k in range(11)])


def test_vjp_into_an_array_with_one_and_more_rows(evaluate):
    out = np.zeros(4)
    evaluate(ne.vjp(pair), np.array([1.0, 2.0]), out, *POINT)
    close(out, np.array([1.0, 2.0]) @ JACOBIAN)
    rows, out = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0]]), np.zeros((3, 4))
    evaluate(ne.vjp(pair), rows, out, *POINT)
    close(out, rows @ JACOBIAN)


def test_tuples_given_as_arrays(evaluate):
    ys, ps, dys, dps = np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([0.1, 0.2]), np.array([0.0, 1.0])
    want = [0.1 * 3 - 0.2 * 0.5 - 2.0, 0.2 * 4 + 2 * 0.1 * 4 + 2]
    out = np.zeros(2)
    evaluate(ne.jvp(rhs, signature=RHS), out, ys, 0.5, ps, dys, 1.0, dps)
    close(out, want)
    evaluate(ne.jvp(rhs), out, (1.0, 2.0), 0.5, (3.0, 4.0), dys, 1.0, (0.0, 1.0))
    close(out, want)


@pytest.mark.parametrize("inner", [ne.jvp, ne.vjp, ne.jacfwd, ne.jacrev, ne.grad])
@pytest.mark.parametrize("outer", [ne.jacfwd, ne.jacrev])
def test_every_transform_over_every_other(evaluate, inner, outer):
    """Second derivatives of f by whatever way: they agree with those of the closed form."""
    x, y = 1.0, 2.0
    hessian = np.array([[-math.sin(x), 1.0], [1.0, 0.0]])
    gradient = np.array([y + math.cos(x), x])
    if inner is ne.jvp:
        close(evaluate(outer(inner(f)), (x, y), (1.0, 0.5)), (tuple(hessian @ [1.0, 0.5]), tuple(gradient)))
    elif inner is ne.vjp:
        close(evaluate(outer(inner(f)), (x, y), 3.0), [(*(3 * hessian[n]), gradient[n]) for n in range(2)])
    else:
        close(evaluate(outer(inner(f)), x, y), hessian)


def test_jvp_of_jvp_of_a_tuple_with_arrays(evaluate):
    """What solvers of sensitivity equations call."""
    out, u, v, w = np.zeros(3), np.array([1.0, 0.5]), np.array([0.3, -0.2]), np.array([0.7, 0.1])
    twice = ne.jvp(ne.jvp(three, signature=types.UniTuple(f8, 3)(f8, f8)), signature=types.UniTuple(f8, 3)(f8, f8))
    x, y = 1.0, 2.0
    evaluate(twice, out, x, y, *map(float, u), *map(float, v), *map(float, w))
    J = np.array([[y, x], [1.0, 1.0], [y * math.cos(x), math.sin(x)]])
    dJ = v[0] * np.array([[0, 1], [0, 0], [-y * math.sin(x), math.cos(x)]]) + v[1] * np.array([[1, 0], [0, 0], [math.cos(x), 0]])
    close(out, dJ @ u + J @ w)


def test_third_order(evaluate):
    x = (1.0, 2.0)
    third = ne.jvp(ne.jvp(ne.jvp(f)))
    e0, zero = (1.0, 0.0), (0.0, 0.0)
    close(evaluate(third, ((x, e0), (e0, zero)), ((e0, zero), (zero, zero))), -math.cos(1))
    close(evaluate(ne.grad(ne.jvp(ne.jvp(f))), (x, e0), (e0, zero))[0][0][0], -math.cos(1))


def test_hessian_and_hvp(evaluate):
    close(evaluate(ne.hessian(f), 1.0, 2.0), ((-math.sin(1), 1.0), (1.0, 0.0)))
    close(evaluate(ne.hvp(f), (1.0, 2.0), (1.0, 1.0)), (1 - math.sin(1), 1.0))


def test_derivative_called_in_a_function_that_is_differentiated(evaluate):
    inner = ne.grad(f, argnums=0)

    @cuda.jit(device=True)
    def uses(x, y):
        return x * inner(x * x, y)

    close(evaluate(ne.grad(uses), 1.2, 2.0), (2 + math.cos(1.44) - 2.88 * math.sin(1.44), 1.2))
    close(evaluate(ne.jvp(uses), (1.2, 2.0), (1.0, 0.0)), 2 + math.cos(1.44) - 2.88 * math.sin(1.44))


def test_array_form_called_in_a_function_that_is_differentiated(evaluate):
    jacobian = ne.jacfwd(three)

    @cuda.jit(device=True)
    def determinant(x, y):
        jac = cuda.local.array((3, 2), types.float64)
        jacobian(jac, x, y)
        return jac[0, 0] * jac[2, 1] - jac[0, 1] * jac[2, 0]

    x, y = 1.0, 2.0
    close(evaluate(ne.grad(determinant), x, y), (y * x * math.sin(x) + y * math.cos(x) - y * math.cos(x), math.sin(x) - x * math.cos(x)))


def test_more_than_thirty_arguments(evaluate):
    names = [f"a{k}" for k in range(40)]
    code = f"def star({', '.join(names)}):\n    return {' + '.join(f'a{k} * a{(k + 1) % 40}' for k in range(40))}\n"
    namespace = {}
    exec(code, namespace)
    point = [0.1 * k for k in range(40)]
    got = evaluate(ne.grad(cuda.jit(device=True)(namespace["star"])), *point)
    close(got, [point[(k + 1) % 40] + point[k - 1] for k in range(40)])


def test_closures_of_one_text_do_not_share(evaluate):
    def make(k):
        @cuda.jit(device=True)
        def g(x):
            return k * x * x

        return ne.grad(g)

    close(evaluate(make(2.0), 3.0), (12.0,))
    close(evaluate(make(5.0), 3.0), (30.0,))


def test_same_text_over_other_callees(evaluate):
    def make(inner):
        @cuda.jit(device=True)
        def g(x):
            return inner(x) * x

        return ne.grad(g)

    @cuda.jit(device=True)
    def a(x):
        return x * x

    @cuda.jit(device=True)
    def b(x):
        return math.sin(x)

    close(evaluate(make(a), 3.0), (27.0,))
    close(evaluate(make(b), 3.0), (math.sin(3) + 3 * math.cos(3),))


def test_results_of_one_tuple_count_as_a_scalar(evaluate):
    @cuda.jit(device=True)
    def one(x):
        return (x * x,)

    close(evaluate(ne.grad(one), 3.0), (6.0,))
