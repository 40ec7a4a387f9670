"""What bounds an epoch with 64 units: bytes through the first-level cache, and operations of the
products.

    python -m research.benchmarks.roofline [--write]

Measures the compiled product x W with matrices that fit the first-level cache (16 KB), that are
larger than it (64 KB, the recurrent matrix of 64 units) and that come from the second level (256
KB), then the parts of one epoch beside torch and JAX, all in this process. `--write` puts the
tables into research/lab/performance.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
from numba import njit

from research.benchmarks import epoch, machine
from research.benchmarks.__main__ import Table, markdown, show, use_one_core
from research.benchmarks.regret_rows import write_between
from research.benchmarks.timing import best_of
from tidepull.encoders import kernels, simd
from tidepull.encoders.layers import aligned_zeros
from tidepull.types import FloatArray

UNITS, LANES, TIMES, TURNS = 64, 8, 200, 60
PAGE = Path(__file__).parents[2] / "research" / "lab" / "performance.md"


def products(rows: int, columns: int, alternating: bool) -> Callable[[], None]:
    """So many products x W in a row, W read downward, or downward and upward in turns."""
    W, x, out = (
        aligned_zeros(shape, np.float32) for shape in ((rows, columns), (rows,), (columns,))
    )

    @njit(error_model="numpy")  # type: ignore[untyped-decorator]
    def run(out: FloatArray, x: FloatArray, W: FloatArray) -> None:
        for k in range(TIMES):
            simd.add_product(out, 0, x, 0, W, rows, columns, LANES, alternating and k % 2 == 1)

    run(out, x, W)
    return lambda: run(out, x, W)


def cache_table() -> tuple[Table, float]:
    """The table, and the shortest time of one product with the recurrent matrix (µs)."""
    cases = {
        (rows, columns, how): products(rows, columns, how == "alternating")
        for rows, columns in ((64, 64), (64, 256), (256, 256))
        for how in ("downward", "alternating")
    }
    best = best_of({str(case): call for case, call in cases.items()}, TURNS)
    micro = {case: 1e6 * best[str(case)] / TIMES for case in cases}
    rows = [
        [
            f"{rows * columns * 4 // 1024} KB",
            how,
            f"{time:.3f}",
            f"{4e-3 * rows * columns / time:.0f}",
            f"{2e-3 * rows * columns / time:.0f}",
        ]
        for (rows, columns, how), time in micro.items()
    ]
    title = "One product of a vector and a matrix, in our compiled loop"
    return (title, ["matrix", "read", "µs", "GB/s", "GFLOP/s"], rows), micro[64, 256, "alternating"]


def parts() -> dict[str, Callable[[], object]]:
    """The parts of one epoch, each to be called by itself."""
    network, inputs, rewards = epoch.problem(UNITS)
    rows = epoch.with_ones(inputs)
    network.loss(rows, rewards)
    n, w, g, s = len(rows), network.weights, network.gradient, network._workspace
    G, DZ, DH, U = s.G[:n], s.DZ[:n], s.DH[:n], s.U[:n]
    return {
        "forward": lambda: network._recurrence[0](G, network._recurrent, s.H, s.C, s.TC),
        "backward": lambda: network._recurrence[1](
            G, network._transposed, s.C[:n], s.TC[:n], DH, network._window
        ),
        "gates of the inputs": lambda: network._pair.forward(rows, G),
        "their gradient": lambda: network._pair.backward(rows, G),
        "gradient of the recurrent matrix": lambda: np.matmul(s.H[:n].T, G, out=g["recurrent"]),
        "third layer": lambda: np.matmul(s.H[1 : n + 1], w["third"], out=U),
        "its gradient": lambda: np.matmul(s.H[1 : n + 1].T, DZ, out=g["third"]),
        "gradient of the outputs": lambda: np.matmul(DZ, w["third"].T, out=DH),
        "tanh and loss": lambda: (
            kernels.tanh_rows(U, w["third_bias"]),
            kernels.head(U, w["output"], rewards, DZ, g["output"], g["third_bias"]),
        ),
    }


def epoch_table(product: float) -> tuple[Table, str]:
    """Parts beside their bounds (µs a round), and what follows for the ratio to torch and JAX."""
    with np.errstate(all="ignore"):
        micro = {name: 1e6 * s / epoch.ROUNDS for name, s in best_of(parts(), TURNS).items()}
    row = epoch.measure(UNITS, 20)
    gates, matrix, square = (epoch.INPUTS + 1) * 4 * UNITS, 4 * UNITS * UNITS, UNITS * UNITS
    multiplied = {
        "gates of the inputs": gates,
        "their gradient": gates,
        "gradient of the recurrent matrix": matrix,
        "third layer": square,
        "its gradient": square,
        "gradient of the outputs": square,
    }
    bound = {"forward": product, "backward": product}
    bound |= {name: 2e-3 * count / row.blas for name, count in multiplied.items()}
    rows = [
        [name, f"{time:.3f}", f"{bound[name]:.3f}" if name in bound else ""]
        for name, time in micro.items()
    ]
    floor = sum(bound.values())
    rows.append(["whole epoch, with Adam", f"{row.ours:.3f}", f"{floor:.3f}"])
    says = (
        f"In the same run torch took {row.torch:.2f} µs ({row.torch / row.ours:.1f}x) and JAX "
        f"{row.jax:.2f} "
        f"({row.jax / row.ours:.1f}x). Four times as fast as both would be "
        f"{min(row.torch, row.jax) / 4:.2f} µs; "
        f"the bounds alone add up to {floor:.2f}."
    )
    return (
        "The parts of an epoch with 64 units (µs a round)",
        ["part", "measured", "bound"],
        rows,
    ), says


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="into research/lab/performance.md")
    given = parser.parse_args()
    use_one_core()
    caches, product = cache_table()
    show(caches)
    whole, says = epoch_table(product)
    show(whole)
    print(says)
    if given.write:
        where = f"`python -m research.benchmarks.roofline`, {date.today()}: {machine.describe()}."
        write_between(
            PAGE, "roofline", "\n\n".join([where, markdown(caches), markdown(whole), says])
        )


if __name__ == "__main__":
    main()
