"""Speed and correctness of a matrix product on this processor, in the variants that the CPU serves.

Processors differ in both: without VNNI, x86 adds products of bytes in 16 bits, which overflow if
the weights are not made for it (``quantize.quantize_rows``), and ARM has other kernels.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .machine import default_threads

#: Variants of the CPU that keep the quality of the weights.
CANDIDATES = ("int8", "fp32")
#: The widest linear map of redraft-0.5b, and the rows of a draft and of a part of a prompt.
OUTPUTS, INPUTS = 4_864, 896
NARROW, WIDE = 4, 64
_ROUNDS = 5

Runner = Callable[[NDArray[np.float32]], NDArray[np.float32]]
Key = TypeVar("Key")


def measure_products(
    runtime: ModuleType, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Return the milliseconds of a product by variant, without variants that compute it wrong.

    They take turns, and of each the fastest run counts. Half of the rows come in narrow passes.
    """
    rng = np.random.default_rng(0)
    matrix = rng.integers(-64, 65, (OUTPUTS, INPUTS)).astype(np.float32)
    matrix[:, :2] = 127, 0  # one step of 8 bits is 1
    matrix[0, 2:] = 64
    rows = rng.integers(-127, 128, (WIDE, INPUTS)).astype(np.float32)
    rows[0] = 127  # the largest sums of neighbours that the format allows
    expected = rows @ matrix.T
    threads = default_threads()
    runners = {name: _runner(runtime, name, matrix, threads) for name in CANDIDATES}
    right = {name: run for name, run in runners.items() if is_right(run, rows, expected)}
    return _fastest(right, rows, clock)


def measure_threads(
    runtime: ModuleType,
    variant: str,
    counts: Sequence[int],
    clock: Callable[[], float] = time.perf_counter,
) -> dict[int, float]:
    """Return the milliseconds of the same product with each number of threads."""
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((OUTPUTS, INPUTS)).astype(np.float32)
    rows = rng.standard_normal((WIDE, INPUTS)).astype(np.float32)
    runners = {count: _runner(runtime, variant, matrix, count) for count in counts}
    return _fastest(runners, rows, clock)


def is_right(run: Runner, rows: NDArray[np.float32], expected: NDArray[np.float32]) -> bool:
    """Return whether products of one, few and all rows are right: the kernels differ."""
    close = np.abs(expected).max() * 1e-5
    return all(
        np.allclose(run(rows[:count]), expected[:count], atol=close)
        for count in (1, NARROW, len(rows))
    )


def _fastest(
    runners: Mapping[Key, Runner], rows: NDArray[np.float32], clock: Callable[[], float]
) -> dict[Key, float]:
    found = dict.fromkeys(runners, float("inf"))
    for _ in range(_ROUNDS):
        for name, run in runners.items():
            begun = clock()
            run(rows)
            for _ in range(WIDE // NARROW):
                run(rows[:NARROW])
            found[name] = min(found[name], 1e3 * (clock() - begun))
    return found


def _runner(runtime: ModuleType, variant: str, matrix: NDArray[np.float32], threads: int) -> Runner:
    from ..network.onnx_linear import single_product  # brings onnx along

    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    model: Any = single_product(variant, matrix)
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def run(rows: NDArray[np.float32]) -> NDArray[np.float32]:
        (product,) = session.run(None, {"x": rows})
        return np.asarray(product)

    return run
