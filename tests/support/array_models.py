"""Models that people differentiate, each written twice: in loops and with whole arrays.

What is written with whole arrays also runs in NumPy on complex numbers, which tests take derivatives from.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

# The likelihood of a mixture of Gaussians: k components in d dimensions, at n points. A component's inverse covariance is L L^T; the
# diagonal of L is given by its logarithms, what is below it row by row.


def mixture_in_loops(weights, means, logs, below, points):
    k, d = means.shape
    log_of_weights = 0.0
    for c in range(k):
        log_of_weights += math.exp(weights[c])
    log_of_weights = math.log(log_of_weights)
    centred, terms = np.empty(d), np.empty(k)
    total = 0.0
    for i in range(points.shape[0]):
        for c in range(k):
            for a in range(d):
                centred[a] = points[i, a] - means[c, a]
            term = weights[c] - log_of_weights
            for a in range(d):
                y = math.exp(logs[c, a]) * centred[a]
                start = a * (a - 1) // 2
                for b in range(a):
                    y += below[c, start + b] * centred[b]
                term += logs[c, a] - 0.5 * y * y
            terms[c] = term
        largest = terms[0]
        for c in range(1, k):
            largest = max(largest, terms[c])
        s = 0.0
        for c in range(k):
            s += math.exp(terms[c] - largest)
        total += largest + math.log(s)
    return total


def mixture_in_arrays(weights, means, logs, below, points):
    k, d = means.shape
    terms = np.zeros((points.shape[0], k), means.dtype)
    for c in range(k):
        centred = points - means[c]
        whitened = centred * np.exp(logs[c])
        for a in range(d):
            for b in range(a):
                whitened[:, a] += below[c, a * (a - 1) // 2 + b] * centred[:, b]
        terms[:, c] = weights[c] + logs[c].sum() - 0.5 * (whitened * whitened).sum(axis=1)
    total = -np.log(np.exp(weights).sum()) * points.shape[0]
    for row in terms:
        largest = row.max()
        total += largest + np.log(np.exp(row - largest).sum())
    return total


def mixture_data(rng, d, k, n):
    means = rng.normal(size=(k, d))
    below = 0.3 * rng.normal(size=(k, d * (d - 1) // 2))
    return rng.normal(size=k), means, 0.2 * rng.normal(size=(k, d)), below, rng.normal(size=(n, d))


# Bundle adjustment: where a camera sees a point, beside where it was seen. The camera is a rotation vector, a centre, a focal length, a
# principal point and two coefficients of radial distortion.


def projection_in_loops(camera, point, weight, seen):
    x, y, z = point[0] - camera[3], point[1] - camera[4], point[2] - camera[5]
    a, b, c = camera[0], camera[1], camera[2]
    squared = a * a + b * b + c * c
    angle = math.sqrt(squared)
    cosine, sine = math.cos(angle), math.sin(angle)
    a, b, c = a / angle, b / angle, c / angle
    along = (a * x + b * y + c * z) * (1.0 - cosine)
    u = x * cosine + (b * z - c * y) * sine + a * along
    v = y * cosine + (c * x - a * z) * sine + b * along
    w = z * cosine + (a * y - b * x) * sine + c * along
    u, v = u / w, v / w
    radius = u * u + v * v
    stretched = 1.0 + radius * (camera[9] + radius * camera[10])
    out = np.empty(2)
    out[0] = weight * (camera[6] * stretched * u + camera[7] - seen[0])
    out[1] = weight * (camera[6] * stretched * v + camera[8] - seen[1])
    return out


def projection_in_arrays(camera, point, weight, seen):
    relative = point - camera[3:6]
    angle = np.sqrt((camera[:3] * camera[:3]).sum())
    axis = camera[:3] / angle
    turned = relative * np.cos(angle) + np.cross(axis, relative) * np.sin(angle)
    turned = turned + axis * (axis * relative).sum() * (1.0 - np.cos(angle))
    flat = turned[:2] / turned[2]
    radius = (flat * flat).sum()
    return weight * (camera[6] * (1.0 + camera[9] * radius + camera[10] * radius * radius) * flat + camera[7:9] - seen)


def projection_data(rng):
    camera = np.concatenate((rng.uniform(0.2, 1.0, 3), rng.normal(size=3), rng.uniform(1.0, 2.0, 1), 0.1 * rng.normal(size=4)))
    return camera, np.array([0.2, -0.4, 6.0]) + rng.normal(size=3), 0.7, rng.normal(size=2)


# One step of an LSTM: h hidden units, n inputs. Gates stand one after the other: forget, input, output, change.


def lstm_in_loops(by_input, by_hidden, bias, x, hidden, cell):
    h = hidden.size
    sums = np.empty(4 * h)
    for row in range(4 * h):
        sums[row] = bias[row]
        for i in range(x.size):
            sums[row] += by_input[row, i] * x[i]
        for i in range(h):
            sums[row] += by_hidden[row, i] * hidden[i]
    new_hidden, new_cell = np.empty(h), np.empty(h)
    for j in range(h):
        forget = 1.0 / (1.0 + math.exp(-sums[j]))
        taken = 1.0 / (1.0 + math.exp(-sums[h + j]))
        shown = 1.0 / (1.0 + math.exp(-sums[2 * h + j]))
        new_cell[j] = forget * cell[j] + taken * math.tanh(sums[3 * h + j])
        new_hidden[j] = shown * math.tanh(new_cell[j])
    return new_hidden, new_cell


def lstm_in_arrays(by_input, by_hidden, bias, x, hidden, cell):
    h = hidden.size
    gates = by_input @ x + by_hidden @ hidden + bias
    opened = 1.0 / (1.0 + np.exp(-gates[: 3 * h]))
    new_cell = opened[:h] * cell + opened[h : 2 * h] * np.tanh(gates[3 * h :])
    return opened[2 * h :] * np.tanh(new_cell), new_cell


def lstm_data(rng, h, n):
    return (
        rng.normal(size=(4 * h, n)) / math.sqrt(n),
        rng.normal(size=(4 * h, h)) / math.sqrt(h),
        rng.normal(size=4 * h),
        rng.normal(size=n),
        np.tanh(rng.normal(size=h)),
        rng.normal(size=h),
    )


# One explicit step of the Brusselator with diffusion, on a torus.


def brusselator_in_loops(u, v, rate, step):
    n, m = u.shape
    new_u, new_v = np.empty_like(u), np.empty_like(v)
    for i in range(n):
        up, down = (i - 1) % n, (i + 1) % n
        for j in range(m):
            left, right = (j - 1) % m, (j + 1) % m
            reaction = u[i, j] * u[i, j] * v[i, j]
            spread_u = u[up, j] + u[down, j] + u[i, left] + u[i, right] - 4.0 * u[i, j]
            spread_v = v[up, j] + v[down, j] + v[i, left] + v[i, right] - 4.0 * v[i, j]
            new_u[i, j] = u[i, j] + step * (1.0 + reaction - (rate + 1.0) * u[i, j] + 0.1 * spread_u)
            new_v[i, j] = v[i, j] + step * (rate * u[i, j] - reaction + 0.05 * spread_v)
    return new_u, new_v


@njit
def spread(field):
    rows = np.concatenate((field[-1:], field[:-1])) + np.concatenate((field[1:], field[:1]))
    columns = np.concatenate((field[:, -1:], field[:, :-1]), axis=1) + np.concatenate((field[:, 1:], field[:, :1]), axis=1)
    return rows + columns - 4.0 * field


def brusselator_in_arrays(u, v, rate, step):
    reaction = u * u * v
    new_u, new_v = step * (1.0 + reaction - (rate + 1.0) * u) + u, step * (rate * u - reaction) + v
    new_u += 0.1 * step * spread(u)
    new_v += 0.05 * step * spread(v)
    return new_u, new_v


def brusselator_data(rng, n, m):
    return rng.uniform(0.5, 1.5, (n, m)), rng.uniform(1.0, 3.0, (n, m)), 1.7, 0.05


# The energy of n bodies: kinetic, and by softened gravity.


def bodies_in_loops(positions, velocities, masses):
    energy = 0.0
    for i in range(masses.size):
        for a in range(3):
            energy += 0.5 * masses[i] * velocities[i, a] ** 2
        for j in range(i):
            squared = 0.01
            for a in range(3):
                squared += (positions[i, a] - positions[j, a]) ** 2
            energy -= masses[i] * masses[j] / math.sqrt(squared)
    return energy


def bodies_in_arrays(positions, velocities, masses):
    energy = 0.5 * (masses * (velocities * velocities).sum(axis=1)).sum()
    for i in range(1, masses.size):
        apart = positions[:i] - positions[i]
        energy -= masses[i] * (masses[:i] / np.sqrt(0.01 + (apart * apart).sum(axis=1))).sum()
    return energy


def bodies_data(rng, n):
    return rng.normal(size=(n, 3)), rng.normal(size=(n, 3)), rng.uniform(0.5, 2.0, n)


# Matrix factorisation: the squared error of what was rated, and a penalty.


def factorisation_in_loops(users, items, ratings, rated, penalty):
    loss = 0.0
    for i in range(users.shape[0]):
        for j in range(items.shape[0]):
            if rated[i, j]:
                error = ratings[i, j]
                for k in range(users.shape[1]):
                    error -= users[i, k] * items[j, k]
                loss += error * error
    for factors in (users, items):
        for row in factors:
            for value in row:
                loss += penalty * value * value
    return loss


def factorisation_in_arrays(users, items, ratings, rated, penalty):
    errors = np.where(rated, ratings - users @ np.ascontiguousarray(items.T), 0.0)
    return (errors * errors).sum() + penalty * ((users * users).sum() + (items * items).sum())


def factorisation_data(rng, users, items, rank):
    rated = rng.uniform(size=(users, items)) < 0.4
    return rng.normal(size=(users, rank)), rng.normal(size=(items, rank)), rng.normal(size=(users, items)), rated, 0.3
