"""What people write with arrays: forward mode against differences, and each row of the reverse mode's Jacobian against forward mode.

Each program is a function and the arguments at which it is differentiated; its name says what is in it.
"""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, prange, stencil
from trees import difference, leaves, random_like

from numba_enzyme import DifferentiationError, UnsupportedError, grad, jacfwd, jacrev, jvp

RNG = np.random.default_rng(0)


def random(*shape):
    return RNG.uniform(0.3, 1.5, shape)


V, W = random(7), random(7)
A, B = random(4, 4), random(4, 4)
C, T = random(3, 5), random(2, 3, 4)
INDICES = np.array([0, 2, 2, 5])
TABLE = np.zeros(3, dtype=[("a", "f8"), ("n", "i8")])
TABLE["a"] = [1.0, 2.0, 3.0]
TABLE["n"] = [2, 0, 1]

PROGRAMS = []


def program(*args):
    def register(f):
        PROGRAMS.append(pytest.param(f, args, id=f.__name__))
        return f

    return register


# Memory of its own.


@program(V)
def zeros(x):
    t = np.zeros(x.shape)
    for i in range(x.size):
        t[i] = x[i] ** 2
    return t


@program(V)
def zeros_like(x):
    t = np.zeros_like(x)
    t += x
    return t * x


@program(V)
def empty_ones_full(x):
    a = np.empty(7)
    a[:] = x
    return a * np.ones(7) * np.full(7, x[0])


@program(V)
def full_like(x):
    return np.full_like(x, x[1]) * np.ones_like(x)


@program(V)
def copies(x):
    return x.copy() * np.copy(x)


@program(V)
def zero_dimensions(x):
    return np.array(x[0] * x[1])


@program(V)
def ramp(x):
    return np.linspace(x[0], x[1], 5)


@program(A)
def diagonals(a):
    return np.diag(a) * np.trace(a) + (a * np.eye(4))[0]


# Expressions.


@program(V, W)
def expression(x, y):
    return np.exp(x) * np.sin(y) + np.log(x) / np.sqrt(y) - np.tanh(x * y)


@program(V, W)
def functions_of_two(x, y):
    return np.arctan2(x, y) + np.hypot(x, y) + np.power(x, y) + np.maximum(x, y) + np.minimum(x, y) + np.abs(x - y)


@program(V, W)
def more_functions(x, y):
    a = np.cosh(x) + np.sinh(y) + np.arcsin(x / 3) + np.expm1(x) + np.log1p(y)
    return a + np.log2(x) + np.exp2(y) + np.square(x) + np.reciprocal(y) + np.cbrt(x)


@program(V)
def sinc(x):
    return np.sinc(x)


@program(V)
def clip(x):
    return np.clip(x, 0.5, 1.0)


@program(V)
def broadcast(x):
    return x.reshape(7, 1) * x


@program(V)
def new_axes(x):
    return x[:, np.newaxis] * x[np.newaxis, :]


@program(V)
def polynomial(x):
    r = np.zeros_like(x)
    for c in (1.0, 2.0, 3.0):
        r = r * x + c
    return r


@program(V, W)
def where(x, y):
    return np.where(x > y, x * y, y - x)


@program(V)
def where_with_a_number(x):
    return np.where(x > 0.5, 1 / np.sqrt(x), 0.0)


# Sums and the like.


@program(V)
def sums_and_means(x):
    return x.sum() * np.sum(x) + np.mean(x) * x.mean()


@program(V)
def variances(x):
    return x.var() + np.std(x)


@program(V)
def extremes(x):
    return x.max() * x.min() + np.max(x) * np.min(x) + np.ptp(x)


@program(V)
def extremes_by_index(x):
    return x[np.argmax(x)] * x[np.argmin(x)]


@program(V)
def products(x):
    return np.prod(x) * x.prod()


@program(V)
def running(x):
    return np.cumsum(x) * np.cumprod(x)


@program(A)
def sums_along_axes(a):
    return a.sum(axis=0) * np.sum(a * a, axis=1)


@program(T)
def sum_along_the_middle(a):
    return np.sum(a * a, axis=1)


@program(A)
def means_of_rows(a):
    return np.array([a[i].mean() for i in range(4)])


@program(V)
def without_nan(x):
    return np.nansum(x) * np.nanmean(x)


@program(V)
def median(x):
    return np.median(x)


@program(V)
def any_of_them(x):
    if np.any(x > 1.0):
        return x.sum()
    return x.prod()


# Parts of arrays.


@program(V)
def slices(x):
    return x[1:] * x[:-1] + x[::2].sum()


@program(V)
def views_of_views(x):
    return x[1:][::2][1:] * 2


@program(V)
def views_that_are_written_to(x):
    t = np.zeros(9)
    u = t[1:8]
    u[:] = x
    v = u[::2]
    v *= x[:4]
    t[:3] += t[3:6]
    return t


@program(A)
def rows_and_columns(a):
    s = 0.0
    for i in range(a.shape[0]):
        s += (a[i] * a[:, i]).sum()
    return s


@program(A)
def rows_that_are_set(a):
    b = np.zeros_like(a)
    for i in range(4):
        b[i, :] = a[:, i] * 2
    return b


@program(A)
def augmented(a):
    b = a.copy()
    b *= 2
    b += a
    b[1:] -= 1.0
    return b * b


@program(V)
def augmented_slice(x):
    t = np.ones(3)
    t[1:] *= x[0]
    return t[0] * t[1] * t[2]


@program(V)
def parts(x):
    a, b = x[:3], x[3:6]
    return a * b


@program(V)
def picked(x):
    return x[INDICES]


@program(V)
def masked(x):
    return x[x > 0.7] ** 2


# Shape and order.


@program(A)
def transposed(a):
    return a.T * a


@program(C)
def transposed_alone(a):
    return a.T


@program(C)
def reshaped(a):
    return a.reshape(5, 3) * 2.0


@program(C)
def flattened(a):
    return a.ravel() * a.flatten()


@program(V)
def more_dimensions(x):
    return np.atleast_2d(x) * 2


@program(V, W)
def joined(x, y):
    return np.concatenate((x, y * y))


@program(V, W)
def stacked(x, y):
    return np.stack((x, x * y))


@program(V, W)
def stacked_both_ways(x, y):
    return np.hstack((x, y)).sum() * np.vstack((x, y)).sum()


@program(V, W)
def columns(x, y):
    return np.column_stack((x, y))


@program(V)
def appended(x):
    return np.append(np.repeat(x, 2), x * 2)


@program(V)
def turned(x):
    return x[::-1] * np.flip(x)


@program(V)
def rolled(x):
    return np.roll(x, 2) * x


@program(V)
def differences(x):
    return np.diff(x)


@program(A)
def triangles(a):
    return np.tril(a) + np.triu(a, 1) * 2


@program(V)
def sort(x):
    return np.sort(x) * np.arange(7.0)


@program(V)
def sort_in_place(x):
    y = x.copy()
    y.sort()
    return y[2] * y[3]


@program(V)
def argsort(x):
    return x[np.argsort(x)] * np.arange(7.0)


@program(V)
def searched(x):
    return x[np.searchsorted(np.arange(7.0), 3.2)] * np.interp(0.5, np.arange(7.0), x)


# Products and linear algebra.


@program(V, W)
def vector_products(x, y):
    return np.dot(x, y) * np.vdot(x, y) + x @ y


@program(A, A[0].copy())
def matrix_vector(a, x):
    return np.dot(a, x) * (a @ x)


@program(A, A[0].copy())
def vector_matrix(a, x):
    return x @ a


@program(A, B)
def matrix_matrix(a, b):
    return np.dot(a, b)


@program(A, C.T[:4].copy())
def products_of_views(a, b):
    return a.T @ b[:, ::-1].copy()


@program(V, W)
def outer(x, y):
    return np.outer(x, y)


@program(V, W)
def cross(x, y):
    return np.cross(x[:3], y[:3])


@program(V, W)
def kronecker(x, y):
    return np.kron(x[:2].reshape(1, 2), y[:2].reshape(2, 1))


@program(V[:2], V[:4], W[:3])
def gates_in_a_buffer(cell, bias, x):
    out = np.empty(cell.size)
    gate = np.empty(4)
    for j in range(cell.size):
        for g in range(4):
            s = bias[g]
            for i in range(x.size):
                s += x[i] * bias[i]
            for i in range(cell.size):
                s += x[i] * cell[i]
            gate[g] = np.tanh(s) if g == 3 else 1.0 / (1.0 + np.exp(-s))
        out[j] = gate[2] * np.tanh(gate[0] * cell[j] + gate[1] * gate[3])
    return out


@program(V, W)
def convolution(x, y):
    return np.convolve(x, y)


@program(V)
def norm(x):
    return np.linalg.norm(x)


@program(A)
def norm_of_a_matrix(a):
    return np.linalg.norm(a)


@program(A, A[0].copy())
def solve(a, b):
    return np.linalg.solve(a, b)


@program(A, B)
def solve_for_a_matrix(a, b):
    return np.linalg.solve(a, b)


@program(A)
def inverse(a):
    return np.linalg.inv(a)


@program(A)
def determinants(a):
    return np.linalg.det(a) * np.linalg.slogdet(a)[1]


# Control flow.


@program(V)
def swap(x):
    a = x.copy()
    b = np.empty_like(a)
    for _ in range(4):
        for i in range(a.size):
            b[i] = a[i] * a[(i + 1) % a.size]
        a, b = b, a
    return a


@program(V)
def allocated_in_a_loop(x):
    a = x.copy()
    for _ in range(3):
        t = np.empty(a.size)
        for i in range(a.size):
            t[i] = np.sin(a[i]) * a[i - 1]
        a = t
    return a


@program(V)
def early_exit(x):
    s = 0.0
    for i in range(x.size):
        if s > 2.0:
            return s * x[i]
        s += x[i] * x[i]
    return s


@program(V)
def until_it_settles(x):
    y = x.copy()
    while y.max() > 0.1:
        y = y * y * 0.5
    return y


@program(V, W)
def iterated(x, y):
    s = 0.0
    for i, q in enumerate(x):
        s += i * q * q
    for p, q in zip(x, y):
        s += p * q
    return s


@program(A)
def iterated_over_all(a):
    s = 0.0
    for (i, j), q in np.ndenumerate(a):
        s += i * q * q + j
    for q in a.flat:
        s += q * q
    for row in a:
        s += row[0] * row[1]
    return s


@program(V)
def raises(x):
    if x[0] > 100:
        raise ValueError("big")
    return x * x


@program(V)
def rows_of_a_record(x):
    s = 0.0
    for i in range(3):
        s += TABLE[i]["a"] * x[TABLE[i]["n"]] ** 2
    return s


@njit
def callee(x, out):
    for i in range(x.size):
        out[i] = x[i] * x[i - 1]


@program(V)
def calls_that_write(x):
    t = np.empty_like(x)
    callee(x, t)
    callee(t, t)
    return t


@njit(parallel=True)
def parallel_sum(x):
    s = 0.0
    for i in prange(x.size):
        s += np.sin(x[i]) * x[i]
    return s


@njit(parallel=True)
def parallel_map(x):
    t = np.empty_like(x)
    for i in prange(x.size):
        t[i] = np.sin(x[i]) * x[i]
    return t


@program(V)
def parallel(x):
    return parallel_map(x) * parallel_sum(x)


# Results.


@program(V)
def identity(x):
    return x


@program(V)
def several(x):
    return x * 2, x[0], x.sum() * x


@pytest.mark.parametrize(("f", "args"), PROGRAMS)
def test_programs(f, args):
    rng = np.random.default_rng(1)
    direction = random_like(args, rng)
    expected = difference(f, args, direction)
    tangent = jvp(f)(args, direction)
    for got, wanted in zip(leaves(tangent), leaves(expected), strict=True):
        assert np.shape(got) == np.shape(wanted)
        np.testing.assert_allclose(got, wanted, rtol=1e-7, atol=1e-7)
    rows = jacrev(f)(*args)
    for got, row in zip(leaves(tangent), rows if isinstance(tangent, tuple) else (rows,), strict=True):
        product = sum(np.tensordot(block, v, v.ndim) for block, v in zip(row, direction, strict=True))
        np.testing.assert_allclose(product, got, rtol=1e-12, atol=1e-12)


def blocks(x):
    factors = np.ones(1)
    out = np.empty((2, x.size))
    for k in range(2):
        for j in range(x.size):
            out[k, j : j + 1] = x[j] * factors
    return out


def test_sweeps_in_a_loop_are_apart():
    # Enzyme says of what a sweep keeps that it never changes: so it is within one sweep, and there are eight in a row here.
    expected = np.tile(np.eye(4), (2, 1)).reshape(2, 4, 4)
    np.testing.assert_array_equal(jacrev(blocks, 0)(V[:4]), expected)
    np.testing.assert_array_equal(jacfwd(blocks, 0)(V[:4]), expected)


# What is refused.


@stencil
def neighbours(a):
    return a[0] * a[1] - a[-1]


def calls_a_stencil(x):
    return neighbours(x).sum()


def list_of_floats(x):
    values = [x[i] * x[i] for i in range(x.size)]
    values.append(x[0])
    s = 0.0
    for v in values:
        s += v * v
    return s


def cholesky(x):
    return np.linalg.cholesky(np.outer(x, x) + np.eye(x.size))[0, 0]


def eigenvalues(x):
    return np.linalg.eigvalsh(np.outer(x, x))[0]


def singular_values(x):
    return np.linalg.svd(np.outer(x, x))[1][0]


def prints(x):
    print(x[0])
    return x.sum()


def dictionary(x):
    d = {0: x[0] * x[0]}
    d[1] = x[1]
    return d[0] * d[1]


def random_numbers(x):
    return (x * np.random.random()).sum()


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (calls_a_stencil, "it calls a stencil"),
        (list_of_floats, "a list"),
        (cholesky, "numba_xxpotrf"),
        (eigenvalues, "numba_ez_xxxevd"),
        (singular_values, "numba_ez_gesdd"),
        (prints, "Python objects"),
        (dictionary, "container|dictionary"),
        (random_numbers, "random numbers"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_has_no_derivative_is_refused(f, said):
    for transform in (grad, lambda f: lambda x: jvp(f)((x,), (x,))):
        with pytest.raises((DifferentiationError, UnsupportedError), match=f"{f.__name__} cannot be differentiated: .*({said})"):
            transform(f)(V)
