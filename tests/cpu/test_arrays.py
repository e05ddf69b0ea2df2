"""Arrays as arguments and results: which there are, what comes back, what is refused, and what happens to memory."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit, prange
from trees import close

from numba_enzyme import (
    ArgumentError,
    SignatureError,
    UnsupportedError,
    differentiable,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    types,
    value_and_grad,
    vjp,
)

RNG = np.random.default_rng(7)


def random(*shape, dtype=np.float64):
    return RNG.uniform(0.3, 1.5, shape).astype(dtype)


X, Y = random(4), random(4)
A, B = random(3, 4), random(3, 4)


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def wave(x):
    return np.sin(x) * x


def slope_of_wave(x):
    return np.cos(x) * x + np.sin(x)


def product(x, y):
    return x * x * y


def energy(x, y):
    return (x * x * y).sum()


# Which arrays.

LAYOUTS = {
    "0-d": np.array(0.7),
    "1-d": random(5),
    "1-d, of one": random(1),
    "1-d, strided": random(9)[::2],
    "1-d, backwards": random(5)[::-1],
    "1-d, empty": np.zeros(0),
    "1-d, broadcast": np.broadcast_to(0.7, 4),
    "1-d, read-only": read_only(random(5)),
    "1-d, unaligned": np.frombuffer(b"\0" + random(3).tobytes(), np.float64, offset=1),
    "2-d": random(2, 3),
    "2-d, F": np.asfortranarray(random(2, 3)),
    "2-d, strided": random(4, 6)[::2, 1::2],
    "2-d, backwards": random(2, 3)[::-1, ::-1],
    "2-d, no rows": np.zeros((0, 3)),
    "2-d, no columns": np.zeros((3, 0)),
    "2-d, read-only F": read_only(np.asfortranarray(random(2, 3))),
    "3-d": random(2, 3, 4),
    "3-d, turned": np.transpose(random(2, 3, 4), (1, 2, 0)),
    "float32": random(5, dtype=np.float32),
    "float32, strided": random(2, 6, dtype=np.float32)[:, ::-2],
}


@pytest.mark.parametrize("x", LAYOUTS.values(), ids=LAYOUTS)
def test_layouts(x):
    before = x.copy()
    seed = np.cos(3.0 * x)
    # The result of an expression in 0-d arrays is a float, and what it is a result of has a partial that is an array.
    product_of = slope_of_wave(x) * seed
    expected = product_of if x.ndim else float(product_of)
    rtol = 1e-6 if x.dtype == np.float32 else 1e-14
    close(jvp(wave)((x,), (np.asarray(seed),)), expected, rtol)
    close(vjp(wave)((x,), seed if x.ndim else float(seed)), (np.asarray(product_of),), rtol)
    assert np.array_equal(x, before)


@pytest.mark.parametrize("transform", [jacfwd, jacrev])
@pytest.mark.parametrize("name", ["0-d", "1-d", "1-d, empty", "2-d, strided", "2-d, no rows", "3-d, turned", "float32"])
def test_jacobians_by_layout(transform, name):
    x = LAYOUTS[name]
    expected = np.diag(slope_of_wave(x).ravel()).reshape(x.shape * 2).astype(x.dtype)
    close(transform(wave)(x), (expected,), 1e-6 if x.dtype == np.float32 else 1e-14)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 16, 17, 1000])
def test_sizes_beside_a_sweeps_width(size):
    x = random(size)
    close(jacfwd(wave)(x)[0].diagonal().copy(), slope_of_wave(x))
    close(grad(energy)(x, x), (2 * x * x, x * x))


def test_a_million_numbers():
    x = np.linspace(0.0, 1.0, 1_000_000)
    value, (partial, _) = value_and_grad(energy)(x, x)
    assert abs(value / (x**3).sum() - 1.0) < 1e-12
    assert np.array_equal(partial, 2 * x * x)


def test_seeds_of_any_layout_and_number_type():
    seeds = [np.arange(8.0)[::2], np.arange(4)[::-1], np.linspace(0.0, 1.0, 4, dtype=np.float32), read_only(Y)]
    for seed in seeds:
        close(jvp(product, 0)((X, Y), (seed,)), 2 * X * Y * seed, 1e-14)
        close(vjp(product, 0)((X, Y), seed), 2 * X * Y * seed, 1e-14)


def test_types_are_those_of_arguments_and_results():
    x, y = X.astype(np.float32), Y
    by_x, by_y = (2 * x * y).astype(np.float32), (x * x).astype(np.float64)
    close(grad(energy)(x, y), (by_x, by_y), 1e-6)
    close(jvp(product)((x, y), (x, y)), 3.0 * product(x.astype(np.float64), y), 1e-6)
    close(jvp(lambda x: x * x)((x,), (x,)), 2 * x * x, 1e-6)
    for transform in (jacfwd, jacrev):
        close(transform(product)(x, y), (np.diag(by_x), np.diag(by_y)), 1e-6)


# What comes back.


@pytest.mark.parametrize(
    ("argnums", "pick"),
    [
        (None, lambda x, y: (x, y)),
        (0, lambda x, y: x),
        (-1, lambda x, y: y),
        ((1,), lambda x, y: (y,)),
        ((1, 0), lambda x, y: (y, x)),
    ],
    ids=["all", "first", "last", "one in a tuple", "turned"],
)
def test_argnums(argnums, pick):
    partials = 2 * X * Y, X * X
    close(value_and_grad(energy, argnums)(X, Y), (float((X * X * Y).sum()), pick(*partials)))
    close(vjp(product, argnums)((X, Y), Y), pick(*(p * Y for p in partials)))
    close(jacrev(product, argnums)(X, Y), pick(*(np.diag(p) for p in partials)))


def test_argnums_of_forward_sweeps():
    close(jacfwd(product, 0)(X, Y), np.diag(2 * X * Y))
    close(jacfwd(product, (1, 0))(X, Y), (np.diag(X * X), np.diag(2 * X * Y)))


def test_tangents_stand_as_argnums_say():
    close(jvp(product)((X, Y), (Y, X)), 2 * X * Y * Y + X**3)
    close(jvp(product, 1)((X, Y), (X,)), X**3)
    close(jvp(product, (1, 0))((X, Y), (X, Y)), 2 * X * Y * Y + X**3)


def test_a_constant_array_is_of_any_type_and_layout():
    for weights in (np.arange(8)[::2], np.arange(4) > 1, np.arange(4, dtype=np.float32), read_only(Y)):
        close(grad(energy, 0)(X, weights), 2 * X * weights, 1e-7)


def affine(scale, a, x):
    out = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i] += scale * a[i, j] * x[j]
    return out, scale * scale, a * scale


def test_blocks_of_a_jacobian():
    scale, m = 2.0, 3
    by_a = np.einsum("im,n->imn", np.eye(m), X) * scale
    eye = np.einsum("im,jn->ijmn", np.eye(3), np.eye(4))
    expected = (
        (A @ X, by_a, scale * A),
        (2 * scale, np.zeros((3, 4)), np.zeros(4)),
        (A, scale * eye, np.zeros((3, 4, 4))),
    )
    close(jacfwd(affine)(scale, A, X), expected)
    close(jacrev(affine)(scale, A, X), expected)
    close(jacrev(affine, 1)(scale, A, X), tuple(a for _, a, _ in expected))


def test_several_results_forward_and_reverse():
    tangents, cotangent = (0.5, B, Y), (random(3), 0.25, random(3, 4))
    expected = (2.0 * (B @ X + A @ Y) + 0.5 * (A @ X), 2 * 2.0 * 0.5, 2.0 * B + 0.5 * A)
    close(jvp(affine)((2.0, A, X), tangents), expected)
    w, u, v = cotangent
    by_scale = float(w @ A @ X + 4.0 * u + (v * A).sum())
    close(vjp(affine)((2.0, A, X), cotangent), (by_scale, 2.0 * np.outer(w, X) + 2.0 * v, 2.0 * (w @ A)))


class Layer(NamedTuple):
    weights: np.ndarray
    bias: np.ndarray
    scale: float


class Net(NamedTuple):
    first: Layer
    rest: tuple


def applied(net, x):
    s = 0.0
    for layer in (net.first, net.rest[0]):
        for i in range(layer.bias.size):
            s += layer.bias[i]
            for j in range(x.size):
                s += layer.scale * layer.weights[i, j] * x[j]
    return s


def test_trees_of_arrays():
    net = Net(Layer(A, random(3), 2.0), (Layer(np.asfortranarray(random(2, 4)), random(6)[::3], 3.0),))

    def partial(layer):
        rows = layer.bias.size
        by_scale = float((layer.weights @ X).sum())
        return Layer(np.tile(layer.scale * X, (rows, 1)), np.ones(rows), by_scale)

    by_net = Net(partial(net.first), (partial(net.rest[0]),))
    by_x = 2.0 * net.first.weights.sum(axis=0) + 3.0 * net.rest[0].weights.sum(axis=0)
    close(grad(applied)(net, X), (by_net, by_x))
    size = sum(float((p.weights**2).sum() + (p.bias**2).sum() + p.scale**2) for p in (by_net.first, by_net.rest[0]))
    close(jvp(applied, 0)((net, X), (by_net,)), size)


def both(p):
    return Layer(p.weights * p.scale, p.bias * p.bias, p.scale * p.scale)


def test_results_are_trees_too():
    p = Layer(A, X, 2.0)
    close(jvp(both)((p,), (Layer(B, Y, 0.5),)), Layer(B * 2.0 + A * 0.5, 2 * X * Y, 2.0))
    close(vjp(both)((p,), Layer(B, Y, 0.5)), (Layer(B * 2.0, 2 * X * Y, float((A * B).sum() + 2.0)),))


RESULTS = {
    "the argument": (lambda x: x, lambda x: np.eye(4)),
    "a view of it": (lambda x: x[1:3], lambda x: np.eye(4)[1:3]),
    "backwards": (lambda x: x[::-1], lambda x: np.eye(4)[::-1]),
    "turned": (lambda x: x.reshape(2, 2).T, lambda x: np.eye(4).reshape(2, 2, 4).transpose(1, 0, 2)),
    "a row": (lambda x: (x.reshape(2, 2) * 2.0)[1], lambda x: 2.0 * np.eye(4)[2:]),
    "the same twice": (lambda x: (x, x), lambda x: (np.eye(4), np.eye(4))),
    "itself and a view": (lambda x: (x * x, x), lambda x: (np.diag(2 * x), np.eye(4))),
    "0-d": (lambda x: np.array(x[0] * x[1]), lambda x: np.array([x[1], x[0], 0.0, 0.0])),
    "nothing": (lambda x: x[4:], lambda x: np.zeros((0, 4))),
    "constant": (lambda x: np.ones(2), lambda x: np.zeros((2, 4))),
    "F": (lambda x: np.asfortranarray(x.reshape(2, 2) * 2.0), lambda x: 2.0 * np.eye(4).reshape(2, 2, 4)),
}


@pytest.mark.parametrize(("f", "jacobian"), RESULTS.values(), ids=RESULTS)
def test_results(f, jacobian):
    before, v = X.copy(), Y.copy()
    expected = jacobian(X)
    blocks = expected if isinstance(expected, tuple) else (expected,)
    tangent = jvp(f)((X,), (v,))
    tangents = tangent if isinstance(tangent, tuple) else (tangent,)
    close(tangents, tuple(block @ Y if block.ndim > 1 else np.array(block @ Y) for block in blocks))
    # What comes back is the caller's to write to.
    for t in tangents:
        assert not np.shares_memory(t, v)
        assert t.flags.c_contiguous
        assert t.flags.writeable
        t[...] = 7.0
    weights = tuple(np.cos(np.arange(t.size, dtype=np.float64)).reshape(t.shape) for t in tangents)
    by_x = sum(np.tensordot(w, block, w.ndim) for w, block in zip(weights, blocks))
    close(vjp(f)((X,), weights if isinstance(expected, tuple) else weights[0]), (by_x,))
    assert np.array_equal(X, before)
    assert np.array_equal(v, Y)


def test_aux_with_arrays():
    def f(x, y):
        return (x * x * y).sum(), (x * y, x[::-1], 3, np.arange(2))

    aux = (X * Y, X[::-1].copy(), 3, np.arange(2))
    partials = (2 * X * Y, X * X)
    close(grad(f, has_aux=True)(X, Y), (partials, aux))
    close(value_and_grad(f, 1, has_aux=True)(X, Y), ((float((X * X * Y).sum()), aux), X * X))


def test_annotations_fix_types():
    def f(x: types.Array(types.Float64, 1), s: types.Float64) -> types.Array(types.Float64, 1):
        return x * s

    close(jvp(f)((X, 2.0), (Y, 3.0)), 2.0 * Y + 3.0 * X)
    close(vjp(f)((X[::-1], 2.0), Y), (2.0 * Y, float(X[::-1] @ Y)))
    with pytest.raises(SignatureError, match=r"f is annotated: parameter 'x' is .*1d.*2d"):
        jvp(f)((A, 2.0), (A, 3.0))
    with pytest.raises(SignatureError, match=r"f is annotated: parameter 'x' is .*float64.*float32"):
        jvp(f)((X.astype(np.float32), 2.0), (X, 3.0))


def test_an_object_with_its_derivatives():
    loss = differentiable(energy)
    close(loss(X, Y), float(energy(X, Y)))
    close(loss.grad(X, Y), (2 * X * Y, X * X))


# Within compiled code.


def test_inside_njit():
    by_x, along = grad(energy, 0), jvp(product)

    @njit
    def descend(x, y, steps):
        x = x.copy()
        for _ in range(steps):
            x -= 0.1 * by_x(x, y)
        return x, along((x, y), (y, x))

    expected = X.copy()
    for _ in range(5):
        expected -= 0.1 * (2 * expected * Y)
    close(descend(X, Y, 5), (expected, 2 * expected * Y * Y + expected**3))


def test_inside_njit_with_views():
    by_x, jacobian = grad(energy, 0), jacrev(wave)

    @njit
    def rows(a, b):
        out = np.zeros_like(a)
        for i in range(a.shape[0]):
            out[i] = by_x(a[i], b[i])
        return out, jacobian(a[:, 1])[0]

    close(rows(A, B), (2 * A * B, np.diag(slope_of_wave(A[:, 1]))))


def test_in_prange():
    partials, tangent = value_and_grad(energy, 0), jvp(product)

    @njit(parallel=True)
    def rows(a, b):
        values, out, along = np.empty(a.shape[0]), np.empty_like(a), np.empty_like(a)
        for i in prange(a.shape[0]):
            values[i], out[i] = partials(a[i], b[i])
            along[i] = tangent((a[i], b[i]), (b[i], a[i]))
        return values, out, along

    a, b = random(500, 6), random(500, 6)
    close(rows(a, b), ((a * a * b).sum(axis=1), 2 * a * b, 2 * a * b * b + a**3))


def test_of_a_function_with_prange():
    @njit(parallel=True)
    def f(x):
        out, s = np.empty_like(x), 0.0
        for i in prange(x.size):
            out[i] = np.sin(x[i]) * x[i]
            s += out[i]
        return out, s

    x = random(1000)
    close(jvp(f)((x,), (x,)), (slope_of_wave(x) * x, float((slope_of_wave(x) * x).sum())))
    close(vjp(f)((x,), (x, 2.0)), (slope_of_wave(x) * (x + 2.0),))


def test_in_threads():
    with ThreadPoolExecutor(8) as pool:
        inputs = [random(50) for _ in range(200)]
        for x, partial in zip(inputs, pool.map(lambda x: grad(energy, 0)(x, x), inputs)):
            close(partial, 2 * x * x)


# Second order.


def cubic(x, a):
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s += a[i, j] * x[i] * x[j] * x[j]
    return s


C = random(3, 3)
Z = random(3)
# d2/dx2 of sum_ij c_ij x_i x_j^2
SECOND = 2 * (C * Z + (C * Z).T) + 2 * np.diag(C.T @ Z)


def test_hessian():
    close(hessian(cubic, 0)(Z, C), SECOND)
    close(hessian(cubic, (0,))(Z[::-1].copy()[::-1], C), ((SECOND,),))


def test_hessian_blocks_of_two_arrays():
    mixed = np.zeros((3, 3, 3))
    for i in range(3):
        for j in range(3):
            mixed[i, i, j] += Z[j] ** 2
            mixed[j, i, j] += 2 * Z[i] * Z[j]
    (xx, xa), (ax, aa) = hessian(cubic)(Z, C)
    close((xx, xa, ax, aa), (SECOND, mixed, np.moveaxis(mixed, 0, -1).copy(), np.zeros((3, 3, 3, 3))))


def test_compositions():
    close(hvp(cubic, 0)((Z, C), (X[:3],)), SECOND @ X[:3])
    close(jacrev(grad(cubic, 0), 0)(Z, C), SECOND)
    close(jacfwd(jacfwd(cubic, 0), 0)(Z, C), SECOND)
    close(vjp(grad(cubic, 0), 0)((Z, C), X[:3]), SECOND @ X[:3])
    close(jvp(grad(energy, 0), 1)((X, Y), (X,)), 2 * X * X)


def test_a_function_that_calls_a_derivative_is_differentiated():
    slope = grad(energy, 0)

    def step(x, y):
        g = slope(x, y)
        return ((x - 0.1 * g) ** 2).sum()

    factor = 1.0 - 0.2 * Y
    close(grad(step)(X, Y), (2 * X * factor**2, -0.4 * X * X * factor))
    close(jvp(step, 0)((X, Y), (Y,)), float((2 * X * factor**2 * Y).sum()))


# What is refused.


def test_shapes_of_seeds_must_fit():
    with pytest.raises(ArgumentError, match=r"jvp\(product\): tangents must have the shapes"):
        jvp(product)((X, Y), (X[:3], Y))
    with pytest.raises(ArgumentError, match=r"jvp\(product\): tangents must have the shapes"):
        jvp(product)((X, Y), (X, Y[:0]))
    with pytest.raises(ArgumentError, match=r"jvp\(wave\): tangents must have the shapes"):
        jvp(wave)((A,), (A.T,))
    with pytest.raises(ArgumentError, match=r"vjp\(product\): the cotangent must have the shape of what product gives"):
        vjp(product)((X, Y), Y[:3])
    with pytest.raises(ArgumentError, match=r"vjp\(wave\): the cotangent must have the shape"):
        vjp(wave)((A,), A.T)
    with pytest.raises(ArgumentError, match=r"vjp\(affine\): the cotangent must have the shape"):
        vjp(affine)((2.0, A, X), (random(3), 1.0, random(4, 3)))


def test_shapes_are_checked_inside_njit():
    along, back = jvp(wave), vjp(wave)

    @njit
    def forward(x, v):
        return along((x,), (v,))

    @njit
    def backward(x, w):
        try:
            return back((x,), w)[0]
        except Exception:  # noqa: BLE001 - Numba knows no other
            return np.zeros(0)

    close(forward(X, Y), slope_of_wave(X) * Y)
    with pytest.raises(ArgumentError, match="tangents must have the shapes"):
        forward(X, Y[:2])
    assert backward(X, Y[:2]).size == 0


@pytest.mark.parametrize("seed", [1.0, A, (Y,), Y + 0j], ids=["float", "2-d", "tuple", "complex"])
def test_seeds_of_another_kind(seed):
    with pytest.raises(SignatureError, match=r"vjp\(wave\): the cotangent must be shaped like array\(float64, 1d, C\)"):
        vjp(wave)((X,), seed)
    with pytest.raises(SignatureError, match=r"jvp\(wave\): tangents, .* must be shaped like"):
        jvp(wave)((X,), (seed,))


@pytest.mark.parametrize("x", [np.arange(4), X > 1.0, X + 0j, X.astype(np.float16)], ids=["int", "bool", "complex", "half"])
def test_arrays_without_a_derivative(x):
    with pytest.raises(SignatureError, match=r"grad\(energy\): parameter 'x' of energy is .*argnums=\(1,\)"):
        grad(energy)(x, Y)


def test_lists_are_no_arrays():
    with pytest.raises(SignatureError, match=r"parameter 'x' of wave is a .*list"):
        grad(wave)([1.0, 2.0])
    with pytest.raises(UnsupportedError, match=r"parameter 'p' of .* is a .*list.*Pass a tuple or an array"):
        grad(lambda p, x: p[0] * x, 1)([1.0, 2.0], 3.0)


def test_several_results_have_no_gradient():
    with pytest.raises(SignatureError, match=r"one float as its result, but affine gives .*: use jacrev or jacfwd"):
        grad(affine)(2.0, A, X)


@pytest.mark.parametrize("transform", [grad, value_and_grad, hessian])
def test_an_array_has_no_gradient(transform):
    with pytest.raises(
        SignatureError, match=r"gradients and Hessians need a function with one float as its result, but wave gives .*jacrev"
    ):
        transform(wave)(X)


def adds_to_a_constant(x, c):
    c[0] += 1.0
    return x * c[0]


@pytest.mark.parametrize("transform", [jacfwd, jacrev])
def test_a_constant_must_be_the_same_in_each_sweep(transform):
    c = np.zeros(1)
    with pytest.raises(UnsupportedError, match="adds_to_a_constant several times, and it writes to its argument 'c'"):
        transform(adds_to_a_constant, 0)(X, c)
    assert c[0] == 0.0


# Memory.


def overwrites(x, y):
    for i in range(1, x.size):
        x[i] = x[i] * x[i - 1] * y[i]
    y[:] = 0.0
    return x


def overwritten(x, y):
    x, y = x.copy(), y.copy()
    return overwrites(x, y)


def jacobian_of_overwrites(x, y):
    products = overwritten(x, y)
    jx, jy = np.zeros((x.size, x.size)), np.zeros((x.size, x.size))
    jx[0, 0] = 1.0
    for i in range(1, x.size):
        jx[i] = jx[i - 1] * x[i] * y[i]
        jy[i] = jy[i - 1] * x[i] * y[i]
        jx[i, i] += products[i - 1] * y[i]
        jy[i, i] += products[i - 1] * x[i]
    return jx, jy


@pytest.mark.parametrize("layout", [np.ascontiguousarray, lambda x: np.repeat(x, 2)[::2]], ids=["contiguous", "strided"])
def test_arguments_that_f_writes_to_stay_as_they_are(layout):
    x, y = layout(X), layout(Y)
    jx, jy = jacobian_of_overwrites(X, Y)
    v, w = layout(Y), layout(X)
    close(jvp(overwrites)((x, y), (v, w)), jx @ Y + jy @ X)
    close(vjp(overwrites)((x, y), v), (Y @ jx, Y @ jy))
    close(jacfwd(overwrites)(x, y), (jx, jy))
    close(jacrev(overwrites)(x, y), (jx, jy))
    for given, value in ((x, X), (y, Y), (v, Y), (w, X)):
        assert np.array_equal(given, value)


def test_arguments_that_f_scales_in_place():
    def f(x):
        x *= 2.0
        return x

    x = X.copy()
    close(vjp(f)((x,), Y), (2.0 * Y,))
    assert np.array_equal(x, X)


def test_a_tangent_that_is_the_primal():
    close(jvp(product)((X, Y), (X, Y)), 3 * X * X * Y)
    close(jvp(product)((X, X), (X, X)), 3 * X**3)
    close(jvp(product)((X, Y), (Y, X)), 2 * X * Y * Y + X**3)
    jx, jy = jacobian_of_overwrites(X, Y)
    close(jvp(overwrites)((X, Y), (X, Y)), jx @ X + jy @ Y)
    close(vjp(product)((X, Y), X), (2 * X * X * Y, X**3))


def test_tangents_that_overlap_primals():
    memory = random(9)
    x, v, w = memory[:6], memory[3:], memory[5::-1]
    close(jvp(wave)((x,), (v,)), slope_of_wave(x) * v)
    close(jvp(wave)((v,), (x,)), slope_of_wave(v) * x)
    close(jvp(wave)((x,), (w,)), slope_of_wave(x) * w)
    close(jvp(product)((x, v), (v, x)), 2 * x * v * v + x**3)
    two = memory.reshape(3, 3)
    close(jvp(wave)((two,), (two.T,)), slope_of_wave(two) * two.T)


def test_one_array_as_two_arguments():
    close(grad(energy)(X, X), (2 * X * X, X * X))
    close(vjp(overwrites)((X, X), Y), tuple(Y @ j for j in jacobian_of_overwrites(X, X)))


def raises_late(x, limit):
    t = np.empty_like(x)
    s = 0.0
    for i in range(x.size):
        t[i] = x[i] * x[i] * s
        s += t[i] + x[i]
        if s > limit:
            raise ValueError("too much")
    return t


def test_exceptions_of_f():
    calls = {
        "jvp": lambda limit: jvp(raises_late, 0)((X, limit), (Y,)),
        "vjp": lambda limit: vjp(raises_late, 0)((X, limit), Y),
        "jacfwd": lambda limit: jacfwd(raises_late, 0)(X, limit),
        "jacrev": lambda limit: jacrev(raises_late, 0)(X, limit),
    }
    for call in calls.values():
        good = call(100.0)
        with pytest.raises(ValueError, match="too much"):
            call(1.0)
        close(call(100.0), good)


def test_an_exception_comes_before_the_shape_of_a_cotangent():
    with pytest.raises(ValueError, match="too much"):
        vjp(raises_late, 0)((X, 1.0), Y[:2])


def test_an_index_out_of_bounds_is_said_where_bounds_are_checked():
    @njit(boundscheck=True)
    def f(x):
        return x[4] * x[0]

    with pytest.raises(IndexError, match="out of bounds"):
        grad(f)(X)


# Other processes.

SCRIPT = """
    import warnings
    import numpy as np
    from numba_enzyme.enzyme import run
    runs = 0
    real = run.differentiate
    def counted(*args, **kwargs):
        global runs
        runs += 1
        return real(*args, **kwargs)
    run.differentiate = counted
    from numba_enzyme import jacfwd, jvp, vjp
"""


def child(code, tmp_path):
    """Runs `code` from a file in a new process; what it prints."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    environment = {**os.environ, "NUMBA_ENZYME_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_another_process_runs_no_opt(tmp_path):
    code = (
        SCRIPT
        + """
    def f(x, s):
        if s < 0.0:
            raise ValueError("negative")
        return x * x * s, x.sum()
    x = np.array([1.0, 2.0])
    print(jvp(f)((x, 2.0), (x, 1.0))[0].tolist())
    print(vjp(f)((x, 2.0), (x, 1.0))[0].tolist())
    print(jacfwd(f, 0)(x, 2.0)[0].tolist())
    for _ in range(1000):
        jvp(f)((x, 2.0), (x, 1.0))
    try:
        vjp(f)((x, -2.0), (x, 1.0))
    except ValueError as error:
        print(error)
    print(runs)
    """
    )
    expected = "[5.0, 20.0]\n[5.0, 17.0]\n[[4.0, 0.0], [0.0, 8.0]]\nnegative\n"
    assert child(code, tmp_path) == expected + "3"
    assert child(code, tmp_path) == expected + "0"


def test_memory_is_given_back(tmp_path):
    code = """
    import os
    import numpy as np
    from numba import njit
    from numba_enzyme import ArgumentError, grad, jacfwd, jacrev, jvp, vjp

    def swapped(x):
        a, b = x.copy(), np.empty_like(x)
        for _ in range(4):
            for i in range(a.size):
                b[i] = a[i] * a[i - 1]
            a, b = b, a
        return a

    def in_loop(x):
        a = x
        for _ in range(3):
            t = np.empty(a.size)
            for i in range(a.size):
                t[i] = np.sin(a[i]) * a[i - 1]
            a = t
        return a, a.sum()

    def squares(x):
        return (np.exp(x) * x).sum()

    def raising(x):
        t = x * x
        u = t * x
        if u[0] > 0.0:
            raise ValueError("positive")
        return u

    def writing(x):
        for i in range(x.size):
            x[i] *= 2.0
        return x

    x = np.linspace(0.1, 1.0, 500)
    few = x[:20].copy()
    slope = grad(squares)

    @njit
    def inside(x, n):
        s = 0.0
        for _ in range(n):
            s += slope(x)[0][0]
        return s

    def quiet(call, error):
        try:
            call()
        except error:
            return
        raise AssertionError

    back, along, rows, columns = vjp(swapped), jvp(in_loop), jacrev(swapped), jacfwd(in_loop)
    weighted = jvp(lambda x: (x * np.ones(x.size)).sum())
    raised_back, raised_along, overwritten = vjp(raising), jvp(raising), vjp(writing)
    aux = grad(lambda x: (x.sum(), x * 2.0), has_aux=True)
    calls = {
        "vjp": lambda: back((x,), x),
        "vjp, strided": lambda: back((x[::2],), x[::2]),
        "jvp": lambda: along((x,), (x,)),
        "jvp, with memory that has no derivative": lambda: weighted((x,), (x,)),
        "jacrev": lambda: rows(few),
        "jacfwd": lambda: columns(few),
        "njit": lambda: inside(x, 3),
        "aux": lambda: aux(x),
        "writing": lambda: overwritten((x,), x),
        "an exception in reverse mode": lambda: quiet(lambda: raised_back((x,), x), ValueError),
        "an exception in forward mode": lambda: quiet(lambda: raised_along((x,), (x,)), ValueError),
        "a wrong tangent": lambda: quiet(lambda: along((x,), (few,)), ArgumentError),
        "a wrong cotangent": lambda: quiet(lambda: back((x,), few), ArgumentError),
    }

    def resident():
        with open("/proc/self/statm") as counts:
            return int(counts.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for name, call in calls.items():
        for _ in range(200):
            call()
        before = resident()
        for _ in range(3000):
            call()
        print(name, (resident() - before) / 3000, sep="\\t")
    """
    for line in child(code, tmp_path).splitlines():
        name, bytes_per_call = line.split("\t")
        # An array of 500 numbers that is lost in each call has 4000.
        assert float(bytes_per_call) < 100.0, f"{name}: {bytes_per_call} bytes a call"
