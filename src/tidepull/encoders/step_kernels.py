"""The compiled loops of one round: the features of all arms in one step from what is stored."""

from __future__ import annotations

import numpy as np
from numba import njit

from tidepull.encoders.activations import INSIDE, OPTIONS, sigmoid, tanh
from tidepull.types import FloatArray


@njit(**INSIDE)
def accumulate(out: FloatArray, x: FloatArray, W: FloatArray) -> None:
    """out += x W, for the few rows of one round."""
    for k in range(x.size):
        factor, row = x[k], W[k]
        for j in range(out.size):
            out[j] += factor * row[j]


@njit(**OPTIONS)
def gates_of_state(
    out: FloatArray, h: FloatArray, recurrent: FloatArray, bias: FloatArray, reward: float, row: FloatArray
) -> None:
    """out = bias + reward * row + h W: what all arms of the coming round share before their gates."""
    previous = out.dtype.type(reward)
    for j in range(out.size):
        out[j] = bias[j] + previous * row[j]
    accumulate(out, h, recurrent)


@njit(**OPTIONS)
def cell_step(
    shared: FloatArray,
    observation: FloatArray,
    first: FloatArray,
    second: FloatArray,
    arms: FloatArray,
    c: FloatArray,
    third: FloatArray,
    bias: FloatArray,
    U: FloatArray,
    H: FloatArray,
    C: FloatArray,
) -> None:
    """One step of the network from one state for several arms: features, and the states that follow.

    `shared` comes from `gates_of_state`, row k of `arms` is the k-th arm's own part of the gates, and
    the observation passes through the linear layers `first` and `second`.
    """
    hidden, width = c.size, shared.size
    common, linear = np.empty(width, shared.dtype), np.empty(second.shape[0], shared.dtype)
    for j in range(width):
        common[j] = shared[j]
    if observation.size > 0:
        for j in range(linear.size):
            linear[j] = 0
        accumulate(linear, observation, first)
        accumulate(common, linear, second)
    g = np.empty(width, shared.dtype)
    for k in range(arms.shape[0]):
        h, c_next, u, arm = H[k], C[k], U[k], arms[k]
        for j in range(3 * hidden):
            g[j] = sigmoid(common[j] + arm[j])
        for j in range(3 * hidden, width):
            g[j] = tanh(common[j] + arm[j])
        for j in range(hidden):
            c_next[j] = g[hidden + j] * c[j] + g[j] * g[3 * hidden + j]
            h[j] = g[2 * hidden + j] * tanh(c_next[j])
        for j in range(u.size):
            u[j] = bias[j]
        accumulate(u, h, third)
        for j in range(u.size):
            u[j] = tanh(u[j])


@njit(**OPTIONS)
def dense_step(
    shared: FloatArray, arms: FloatArray, third: FloatArray, bias: FloatArray, U: FloatArray
) -> None:
    """Features tanh(tanh(shared + arm) W + b) for several arms at once."""
    second = np.empty_like(shared)
    for k in range(arms.shape[0]):
        arm, u = arms[k], U[k]
        for j in range(second.size):
            second[j] = tanh(shared[j] + arm[j])
        for j in range(u.size):
            u[j] = bias[j]
        accumulate(u, second, third)
        for j in range(u.size):
            u[j] = tanh(u[j])
