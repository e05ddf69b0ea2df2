"""Values as derivatives take and give them: floats, arrays, and tuples of them."""

from __future__ import annotations

import numpy as np


def leaves(value):
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, tuple) else [value]


def mapped(function, value, *others):
    """`function` of each leaf, in the same tuples."""
    if isinstance(value, tuple):
        items = [mapped(function, *item) for item in zip(value, *others, strict=True)]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return function(value, *others)


def random_like(value, rng):
    """Numbers from -1 to 1 in the place of each number."""

    def drawn(leaf):
        made = rng.uniform(-1.0, 1.0, np.shape(leaf))
        return made.astype(leaf.dtype) if isinstance(leaf, np.ndarray) else float(made)

    return mapped(drawn, value)


def dot(a, b):
    return float(sum(np.sum(np.multiply(x, y, dtype=np.float64)) for x, y in zip(leaves(a), leaves(b), strict=True)))


def close(got, expected, rtol=1e-13):
    """Asserts that values are as near, and of the same kind: tuples, shapes and types of numbers."""
    if isinstance(expected, tuple):
        assert type(got) is type(expected)
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            close(one, other, rtol)
        return
    assert type(got) is type(expected), (got, expected)
    if isinstance(expected, np.ndarray):
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol)


def difference(f, args, direction, step=1e-4):
    """The derivative of f along `direction`, by central differences extrapolated to a step of 0."""

    def central(h):
        up, down = (f(*mapped(lambda x, d, s=s: x + s * h * d, args, direction)) for s in (1, -1))
        return mapped(lambda a, b: (a - b) / (2 * h), up, down)

    return mapped(lambda fine, coarse: (4 * fine - coarse) / 3, central(step / 2), central(step))
