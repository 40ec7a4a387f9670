"""The recurrence of an LSTM, forward and backward, as compiled kernels; imported when it is first
run."""

from __future__ import annotations

import functools

import numpy as np

from tidepull.encoders import simd
from tidepull.encoders.kernels import Kernel, compiled, lanes_of, sigmoid, tanh
from tidepull.types import FloatArray


@functools.cache
def recurrence(hidden: int) -> tuple[Kernel, Kernel]:
    """Forward and backward loops of an LSTM whose size is known to the compiler.

    The four gates lie side by side in a row: input, forget, output, candidate. The recurrent matrix
    W and its transpose WT are packed (`simd.pack`).
    """
    H2, H3, H4 = 2 * hidden, 3 * hidden, 4 * hidden
    lanes = lanes_of(hidden)

    @compiled
    def forward(G: FloatArray, W: FloatArray, H: FloatArray, C: FloatArray, TC: FloatArray) -> None:
        """G holds x_t Wx + b and becomes the gates; row t + 1 of H and C the state after round
        t."""
        for t in range(G.shape[0]):
            row, now, after = t * H4, t * hidden, (t + 1) * hidden
            simd.add_product(G, row, H, now, W, hidden, H4, lanes, t % 2 == 1)
            for j in range(0, hidden, lanes):
                i = sigmoid(simd.load(G, row + j, lanes))
                f = sigmoid(simd.load(G, row + hidden + j, lanes))
                o = sigmoid(simd.load(G, row + H2 + j, lanes))
                a = tanh(simd.load(G, row + H3 + j, lanes))
                # c_t = f c_{t-1} + i a and h_t = o tanh(c_t)
                c = f * simd.load(C, now + j, lanes) + i * a
                tc = tanh(c)
                simd.store(G, row + j, i)
                simd.store(G, row + hidden + j, f)
                simd.store(G, row + H2 + j, o)
                simd.store(G, row + H3 + j, a)
                simd.store(C, after + j, c)
                simd.store(TC, now + j, tc)
                simd.store(H, after + j, o * tc)

    @compiled
    def backward(
        G: FloatArray, WT: FloatArray, C: FloatArray, TC: FloatArray, DH: FloatArray, window: int
    ) -> None:
        """G holds the gates and becomes the loss's gradient before them; DH is that of the outputs
        h.

        No gradient passes from one window of rounds to the one before it.
        """
        last = G.shape[0] - 1
        one = G.dtype.type(1)
        DC = np.zeros(hidden, G.dtype)
        for t in range(last, -1, -1):
            row, now = t * H4, t * hidden
            if (t + 1) % window == 0:
                for j in range(hidden):
                    DC[j] = 0
            elif t < last:
                simd.add_product(DH, now, G, row + H4, WT, H4, hidden, lanes, t % 2 == 1)
            for j in range(0, hidden, lanes):
                i, f = simd.load(G, row + j, lanes), simd.load(G, row + hidden + j, lanes)
                o, a = simd.load(G, row + H2 + j, lanes), simd.load(G, row + H3 + j, lanes)
                tc, dh = simd.load(TC, now + j, lanes), simd.load(DH, now + j, lanes)
                dc = simd.load(DC, j, lanes) + dh * o * (one - tc * tc)
                df = dc * f
                simd.store(DC, j, df)
                simd.store(G, row + j, dc * a * i * (one - i))
                simd.store(G, row + hidden + j, df * simd.load(C, now + j, lanes) * (one - f))
                simd.store(G, row + H2 + j, dh * tc * o * (one - o))
                simd.store(G, row + H3 + j, dc * i * (one - a * a))

    return forward, backward
