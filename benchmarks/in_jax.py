"""Models of `arrays.py` as one writes them for JAX, and JAX's derivatives of them; float64, compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

if TYPE_CHECKING:
    from collections.abc import Callable

jax.config.update("jax_enable_x64", val=True)
jax.config.update("jax_platforms", "cpu")


def _pulled_back(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda primals, cotangent: jax.vjp(f, *primals)[1](cotangent)


def _lstm(by_input, by_hidden, bias, x, hidden, cell):
    forget, taken, shown, change = jnp.split(by_input @ x + by_hidden @ hidden + bias, 4)
    new_cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(taken) * jnp.tanh(change)
    return jax.nn.sigmoid(shown) * jnp.tanh(new_cell), new_cell


def _brusselator(u, v, rate, step):
    def spread(field):
        return sum(jnp.roll(field, shift, axis) for shift in (-1, 1) for axis in (0, 1)) - 4.0 * field

    reaction = u * u * v
    new_u = u + step * (1.0 + reaction - (rate + 1.0) * u + 0.1 * spread(u))
    return new_u, v + step * (rate * u - reaction + 0.05 * spread(v))


def _projection(camera, point, weight, seen):
    relative, axis = point - camera[3:6], camera[:3]
    angle = jnp.sqrt(axis @ axis)
    axis = axis / angle
    turned = relative * jnp.cos(angle) + jnp.cross(axis, relative) * jnp.sin(angle) + axis * (axis @ relative) * (1.0 - jnp.cos(angle))
    image = turned[:2] / turned[2]
    radius = image @ image
    return weight * (camera[6] * (1.0 + radius * (camera[9] + radius * camera[10])) * image + camera[7:9] - seen)


def _projections(cameras, points, weights, seen, *_):
    return jax.vmap(jax.jacrev(_projection, (0, 1, 2)))(cameras, points, weights, seen)


def _mixture(alphas, means, icf, x, wishart_scale, wishart_extra):
    n, d = x.shape
    diagonal = jnp.exp(icf[:, :d])
    columns, rows = jnp.triu_indices(d, 1)
    factors = jnp.zeros((alphas.size, d, d)).at[:, rows, columns].set(icf[:, d:])
    factors = factors + jax.vmap(jnp.diag)(diagonal)
    whitened = jnp.einsum("cab,ncb->nca", factors, x[:, None, :] - means)
    terms = alphas + icf[:, :d].sum(axis=1) - 0.5 * (whitened * whitened).sum(axis=2)
    prior = 0.5 * wishart_scale**2 * (factors * factors).sum() - wishart_extra * icf[:, :d].sum()
    return jax.nn.logsumexp(terms, axis=1).sum() - n * jax.nn.logsumexp(alphas) + prior


def _waves(x):
    return jnp.sin(x) * jnp.exp(-x)


_DERIVATIVES: dict[str, Callable[..., Any]] = {
    "LSTM step": _pulled_back(_lstm),
    "stencil of a Brusselator": lambda primals, cotangent: _pulled_back(_brusselator)(primals, cotangent)[:3],
    "bundle adjustment, arrays": _projections,
    "mixture of Gaussians": jax.grad(_mixture, (0, 1, 2)),
    "logsumexp": jax.grad(jax.nn.logsumexp),
    "exp and sin, vjp of arrays": _pulled_back(_waves),
}


def derivative(what: str, args: tuple[Any, ...]) -> Callable[[], Any] | None:
    """JAX's derivative of the model called `what`, with the arguments where JAX keeps them; None if it is not written here."""
    if what not in _DERIVATIVES:
        return None
    compiled = jax.jit(_DERIVATIVES[what])
    kept = jax.tree.map(jnp.asarray, args)
    return lambda: jax.block_until_ready(compiled(*kept))
