"""Models that people differentiate, in loops and with whole arrays, against NumPy's complex numbers and gradients written by hand."""

from __future__ import annotations

from typing import NamedTuple

import array_models as models
import numpy as np
import pytest
from numba import njit
from trees import close, dot, leaves, mapped, random_like

from numba_enzyme import grad, hvp, jacfwd, jacrev, jvp, value_and_grad, vjp


class Model(NamedTuple):
    in_loops: object
    in_arrays: object
    argnums: tuple
    data: object
    """Makes arguments of the sizes that follow."""
    small: tuple
    large: tuple


MODELS = {
    "mixture": Model(models.mixture_in_loops, models.mixture_in_arrays, (0, 1, 2, 3), models.mixture_data, (2, 3, 4), (6, 8, 50)),
    "projection": Model(models.projection_in_loops, models.projection_in_arrays, (0, 1, 2), models.projection_data, (), ()),
    "lstm": Model(models.lstm_in_loops, models.lstm_in_arrays, (0, 1, 2, 3, 4, 5), models.lstm_data, (2, 3), (32, 16)),
    "brusselator": Model(models.brusselator_in_loops, models.brusselator_in_arrays, (0, 1, 2), models.brusselator_data, (3, 4), (40, 30)),
    "bodies": Model(models.bodies_in_loops, models.bodies_in_arrays, (0, 1, 2), models.bodies_data, (4,), (60,)),
    "factorisation": Model(
        models.factorisation_in_loops, models.factorisation_in_arrays, (0, 1), models.factorisation_data, (3, 4, 2), (50, 40, 5)
    ),
}
STYLES = ["in_loops", "in_arrays"]


def along(model, args, direction):
    """The derivative along `direction`: a step off the real axis, exact to rounding."""
    moved = list(args)
    for n, v in zip(model.argnums, direction, strict=True):
        moved[n] = args[n] + 1e-30j * v
    return mapped(lambda out: np.imag(out) * 1e30, model.in_arrays(*moved))


def units(values):
    """A direction for each number in `values`."""
    for n, value in enumerate(values):
        for k in range(np.size(value)):
            direction = [np.zeros(np.shape(other)) for other in values]
            direction[n].flat[k] = 1.0
            yield n, k, tuple(direction)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_models(model, style):
    f = getattr(model, style)
    forward, reverse = jvp(f, model.argnums), vjp(f, model.argnums)
    rng = np.random.default_rng(11)
    for sizes in (model.small, model.large):
        args = model.data(rng, *sizes)
        picked = tuple(args[n] for n in model.argnums)
        direction = random_like(picked, rng)
        expected = along(model, args, direction)
        tangent = forward(args, direction)
        cotangent = random_like(tangent, rng)
        partials = reverse(args, cotangent)
        for one, other in zip(leaves(tangent), leaves(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)
        assert dot(partials, direction) == pytest.approx(dot(cotangent, tangent), rel=1e-11)
        if sizes == model.small:
            for n, k, unit in units(picked):
                assert np.asarray(partials[n]).flat[k] == pytest.approx(dot(cotangent, along(model, args, unit)), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("style", STYLES)
def test_the_gradient_of_a_factorisation(style):
    users, items, ratings, rated, penalty = args = models.factorisation_data(np.random.default_rng(2), 80, 60, 7)
    errors = np.where(rated, ratings - users @ items.T, 0.0)
    loss, (by_users, by_items) = value_and_grad(getattr(models, f"factorisation_{style}"), (0, 1))(*args)
    assert loss == pytest.approx((errors**2).sum() + penalty * ((users**2).sum() + (items**2).sum()), rel=1e-13)
    close(by_users, -2 * errors @ items + 2 * penalty * users, 1e-11)
    close(by_items, -2 * errors.T @ users + 2 * penalty * items, 1e-11)


@pytest.mark.parametrize("style", STYLES)
def test_forces_between_bodies(style):
    positions, velocities, masses = args = models.bodies_data(np.random.default_rng(3), 30)
    apart = positions[:, None] - positions[None]
    inverse = 1.0 / np.sqrt(0.01 + (apart**2).sum(axis=-1))
    pull = np.einsum("i,j,ij,ija->ia", masses, masses, inverse**3, apart)
    by_mass = 0.5 * (velocities**2).sum(axis=1) - (inverse - np.diag(inverse.diagonal())) @ masses
    close(grad(getattr(models, f"bodies_{style}"))(*args), (pull, masses[:, None] * velocities, by_mass), 1e-11)


def test_curvature_of_a_factorisation():
    users, items, ratings, rated, penalty = args = models.factorisation_data(np.random.default_rng(4), 9, 8, 3)
    v, w = random_like((users, items), np.random.default_rng(5))
    errors = np.where(rated, ratings - users @ items.T, 0.0)
    change = np.where(rated, -(v @ items.T + users @ w.T), 0.0)
    expected = (
        -2 * (change @ items + errors @ w) + 2 * penalty * v,
        -2 * (change.T @ users + errors.T @ v) + 2 * penalty * w,
    )
    close(hvp(models.factorisation_in_loops, (0, 1))(args, (v, w)), expected, 1e-11)


def test_the_jacobian_of_a_projection():
    camera, point, weight, seen = models.projection_data(np.random.default_rng(6))
    model = MODELS["projection"]
    rows = jacfwd(models.projection_in_loops, model.argnums)(camera, point, weight, seen)
    close(jacrev(models.projection_in_loops, model.argnums)(camera, point, weight, seen), rows, 1e-12)
    for n, k, unit in units((camera, point, weight)):
        close(rows[n].reshape(2, -1)[:, k].copy(), along(model, (camera, point, weight, seen), unit), 1e-12)


def test_an_lstm_over_a_sequence():
    step = njit(models.lstm_in_loops)

    def loss(by_input, by_hidden, bias, xs):
        h = bias.size // 4
        hidden, cell, total = np.zeros(h), np.zeros(h), 0.0
        for x in xs:
            hidden, cell = step(by_input, by_hidden, bias, x, hidden, cell)
            total += (hidden * hidden).sum()
        return total

    rng = np.random.default_rng(8)
    by_input, by_hidden, bias, *_ = models.lstm_data(rng, 3, 2)
    args = (by_input, by_hidden, bias, rng.normal(size=(5, 2)))
    partials = grad(loss)(*args)

    def on_complex_numbers(by_input, by_hidden, bias, xs):
        hidden, cell, total = np.zeros(3), np.zeros(3), 0.0
        for x in xs:
            hidden, cell = models.lstm_in_arrays(by_input, by_hidden, bias, x, hidden, cell)
            total += (hidden * hidden).sum()
        return total

    for n, k, unit in units(args):
        expected = np.imag(on_complex_numbers(*(x + 1e-30j * d for x, d in zip(args, unit)))) * 1e30
        assert partials[n].flat[k] == pytest.approx(expected, rel=1e-11, abs=1e-12)
