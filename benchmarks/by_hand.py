"""Derivatives written by hand in plain Numba by one who knows the mathematics: what those of arrays are timed against."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit
def logistic(x):
    return 1.0 / (1.0 + math.exp(-x))


@njit
def lstm(by_input, by_hidden, bias, x, hidden, cell, to_hidden, to_cell):
    h, n = hidden.size, x.size
    sums = np.empty(4 * h)
    for row in range(4 * h):
        s = bias[row]
        for i in range(n):
            s += by_input[row, i] * x[i]
        for i in range(h):
            s += by_hidden[row, i] * hidden[i]
        sums[row] = s
    d_sums, d_cell = np.empty(4 * h), np.empty(h)
    for j in range(h):
        forget, taken, shown = logistic(sums[j]), logistic(sums[h + j]), logistic(sums[2 * h + j])
        change = math.tanh(sums[3 * h + j])
        squashed = math.tanh(forget * cell[j] + taken * change)
        d_new = to_cell[j] + to_hidden[j] * shown * (1.0 - squashed * squashed)
        d_cell[j] = d_new * forget
        d_sums[j] = d_new * cell[j] * forget * (1.0 - forget)
        d_sums[h + j] = d_new * change * taken * (1.0 - taken)
        d_sums[2 * h + j] = to_hidden[j] * squashed * shown * (1.0 - shown)
        d_sums[3 * h + j] = d_new * taken * (1.0 - change * change)
    d_by_input, d_by_hidden = np.empty((4 * h, n)), np.empty((4 * h, h))
    d_x, d_hidden = np.zeros(n), np.zeros(h)
    for row in range(4 * h):
        d = d_sums[row]
        for i in range(n):
            d_by_input[row, i] = d * x[i]
            d_x[i] += d * by_input[row, i]
        for i in range(h):
            d_by_hidden[row, i] = d * hidden[i]
            d_hidden[i] += d * by_hidden[row, i]
    return d_by_input, d_by_hidden, d_sums, d_x, d_hidden, d_cell


@njit
def brusselator(u, v, rate, step, to_u, to_v):
    """The stencil is its own adjoint, so that each cell gathers."""
    n, m = u.shape
    d_u, d_v = np.empty_like(u), np.empty_like(v)
    d_rate = 0.0
    for i in range(n):
        up, down = (i - 1) % n, (i + 1) % n
        for j in range(m):
            left, right = (j - 1) % m, (j + 1) % m
            spread_u = to_u[up, j] + to_u[down, j] + to_u[i, left] + to_u[i, right] - 4.0 * to_u[i, j]
            spread_v = to_v[up, j] + to_v[down, j] + to_v[i, left] + to_v[i, right] - 4.0 * to_v[i, j]
            apart = to_u[i, j] - to_v[i, j]
            slope = 2.0 * u[i, j] * v[i, j]
            d_u[i, j] = to_u[i, j] + step * (apart * (slope - rate) - to_u[i, j] + 0.1 * spread_u)
            d_v[i, j] = to_v[i, j] + step * (apart * u[i, j] * u[i, j] + 0.05 * spread_v)
            d_rate -= apart * u[i, j]
    return d_u, d_v, step * d_rate


@njit
def projection(camera, point, weight, seen, d_camera, d_point, d_weight):
    """The Jacobian of one observation, both rows from what they share."""
    x, y, z = point[0] - camera[3], point[1] - camera[4], point[2] - camera[5]
    a, b, c = camera[0], camera[1], camera[2]
    angle = math.sqrt(a * a + b * b + c * c)
    cosine, sine = math.cos(angle), math.sin(angle)
    a, b, c = a / angle, b / angle, c / angle
    inner = a * x + b * y + c * z
    along = inner * (1.0 - cosine)
    w = z * cosine + (a * y - b * x) * sine + c * along
    u = (x * cosine + (b * z - c * y) * sine + a * along) / w
    v = (y * cosine + (c * x - a * z) * sine + b * along) / w
    radius = u * u + v * v
    focal, k1, k2 = camera[6], camera[9], camera[10]
    stretched = 1.0 + radius * (k1 + radius * k2)
    d_weight[0] = focal * stretched * u + camera[7] - seen[0]
    d_weight[1] = focal * stretched * v + camera[8] - seen[1]
    for row in range(2):
        g, seen_along = (weight, u) if row == 0 else (0.0, v)
        h = weight - g
        d_stretched = weight * focal * seen_along
        d_radius = d_stretched * (k1 + 2.0 * radius * k2)
        d_u = g * focal * stretched + 2.0 * u * d_radius
        d_v = h * focal * stretched + 2.0 * v * d_radius
        p, q = d_u / w, d_v / w
        r = -(p * u + q * v)
        d_along = a * p + b * q + c * r
        d_cosine = x * p + y * q + z * r - inner * d_along
        d_sine = (b * z - c * y) * p + (c * x - a * z) * q + (a * y - b * x) * r
        d_inner = d_along * (1.0 - cosine)
        d_a = along * p + sine * (y * r - z * q) + d_inner * x
        d_b = along * q + sine * (z * p - x * r) + d_inner * y
        d_c = along * r + sine * (x * q - y * p) + d_inner * z
        d_angle = cosine * d_sine - sine * d_cosine - (a * d_a + b * d_b + c * d_c) / angle
        d_point[row, 0] = cosine * p + sine * (c * q - b * r) + d_inner * a
        d_point[row, 1] = cosine * q + sine * (a * r - c * p) + d_inner * b
        d_point[row, 2] = cosine * r + sine * (b * p - a * q) + d_inner * c
        d_camera[row, 0] = d_a / angle + a * d_angle
        d_camera[row, 1] = d_b / angle + b * d_angle
        d_camera[row, 2] = d_c / angle + c * d_angle
        for i in range(3):
            d_camera[row, 3 + i] = -d_point[row, i]
        d_camera[row, 6] = weight * stretched * seen_along
        d_camera[row, 7], d_camera[row, 8] = g, h
        d_camera[row, 9] = d_stretched * radius
        d_camera[row, 10] = d_stretched * radius * radius


@njit
def projections(cameras, points, weights, seen, d_cameras, d_points, d_weights):
    for i in range(weights.size):
        projection(cameras[i], points[i], weights[i], seen[i], d_cameras[i], d_points[i], d_weights[i])


@njit
def mixture(alphas, means, icf, x, wishart_scale, wishart_extra):
    """ADBench's objective: weights of logarithms `alphas`, inverse covariances in `icf`, logarithms of the diagonal first."""
    n, d = x.shape
    k = alphas.size
    d_alphas, d_means, d_icf = np.zeros(k), np.zeros((k, d)), np.zeros(icf.shape)
    diagonal, sums = np.exp(icf[:, :d]), np.empty(k)
    for c in range(k):
        sums[c] = icf[c, :d].sum()
    centred, whitened, terms = np.empty((k, d)), np.empty((k, d)), np.empty(k)
    to_whitened = np.empty(d)
    for i in range(n):
        largest = -np.inf
        for c in range(k):
            for a in range(d):
                centred[c, a] = x[i, a] - means[c, a]
                whitened[c, a] = diagonal[c, a] * centred[c, a]
            at = d
            for b in range(d):
                for a in range(b + 1, d):
                    whitened[c, a] += icf[c, at] * centred[c, b]
                    at += 1
            squared = 0.0
            for a in range(d):
                squared += whitened[c, a] * whitened[c, a]
            terms[c] = alphas[c] + sums[c] - 0.5 * squared
            largest = max(largest, terms[c])
        total = 0.0
        for c in range(k):
            terms[c] = math.exp(terms[c] - largest)
            total += terms[c]
        for c in range(k):
            share = terms[c] / total
            d_alphas[c] += share
            for a in range(d):
                to_whitened[a] = -share * whitened[c, a]
                d_icf[c, a] += share + to_whitened[a] * diagonal[c, a] * centred[c, a]
                d_means[c, a] -= to_whitened[a] * diagonal[c, a]
            at = d
            for b in range(d):
                for a in range(b + 1, d):
                    d_icf[c, at] += to_whitened[a] * centred[c, b]
                    d_means[c, b] -= to_whitened[a] * icf[c, at]
                    at += 1
    total = 0.0
    for c in range(k):
        total += math.exp(alphas[c])
    for c in range(k):
        d_alphas[c] -= n * math.exp(alphas[c]) / total
        for a in range(d):
            d_icf[c, a] += wishart_scale * wishart_scale * diagonal[c, a] * diagonal[c, a] - wishart_extra
        for at in range(d, icf.shape[1]):
            d_icf[c, at] += wishart_scale * wishart_scale * icf[c, at]
    return d_alphas, d_means, d_icf


@njit
def log_of_sum(x):
    largest = x[0]
    for i in range(1, x.size):
        largest = max(largest, x[i])
    d_x = np.empty(x.size)
    total = 0.0
    for i in range(x.size):
        d_x[i] = math.exp(x[i] - largest)
        total += d_x[i]
    for i in range(x.size):
        d_x[i] /= total
    return d_x


@njit
def wave(x):
    return math.exp(-x) * (math.cos(x) - math.sin(x))


@njit
def over_points(x, d_x):
    for i in range(x.size):
        d_x[i] = wave(x[i])


@njit
def waves(x, to_y):
    d_x = np.empty_like(x)
    for i in range(x.size):
        d_x[i] = to_y[i] * wave(x[i])
    return d_x
