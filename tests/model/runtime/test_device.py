"""The choice of provider and variant: CUDA, products of this processor, and cores to use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from redraft.model import calibrate, load
from redraft.model.errors import InstallError
from redraft.model.runtime import device, machine, product_probe
from redraft.model.runtime.device import choose

ort = pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install '.[cpu]')")


def test_without_cuda_the_cpu_is_chosen_with_a_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "cuda_problem", lambda _: "there is no driver")
    found = choose()
    assert found.provider == "CPU" and "there is no driver" in found.notice
    assert found.variant == "int8"
    assert choose("cpu").notice == ""
    with pytest.raises(InstallError, match="there is no driver"):
        choose("cuda")


def test_cuda_is_chosen_where_it_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "cuda_problem", lambda _: "")
    assert choose() == device.Device("CUDA", "fp16")
    assert choose("auto", "int8").provider == "CPU"
    assert choose("cpu").provider == "CPU"


def test_the_cpu_runs_the_fastest_of_what_a_model_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device, "cuda_problem", lambda _: "there is none")
    assert choose(on_cpu=lambda: "fp32").variant == "fp32"
    has = {"CUDA": "", "CPU": "q4"}
    found = choose(served=lambda provider, _: has[provider])
    assert found == device.Device("CPU", "q4", "Running on the CPU: there is none.")
    monkeypatch.setattr(device, "cuda_problem", lambda _: "")
    has["CUDA"] = "q4f16"
    assert choose(served=lambda provider, _: has[provider]) == device.Device("CUDA", "q4f16")
    has["CUDA"] = ""
    assert "neither in fp16 nor in q4f16" in choose(served=lambda one, _: has[one]).notice


def test_the_stored_probe_of_cuda_is_the_graph_meant() -> None:
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["a", "b"], ["c"])],
        "p",
        [info("a", TensorProto.UINT8, None), info("b", TensorProto.INT8, None)],
        [info("c", TensorProto.INT32, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    assert model.SerializeToString() == device.PROBE


def test_products_are_right_on_this_processor() -> None:
    found = product_probe.measure_products(ort)
    assert found.keys() == set(product_probe.CANDIDATES)
    assert all(milliseconds > 0 for milliseconds in found.values())


def test_a_variant_computed_wrong_is_not_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums that are too large saturate, as they do in 16 bits."""
    monkeypatch.setenv("REDRAFT_CACHE_DIR", str(tmp_path))
    real = product_probe._runner

    def saturating(runtime: Any, variant: str, *rest: Any) -> product_probe.Runner:
        run = real(runtime, variant, *rest)
        return run if variant == "fp32" else lambda rows: np.minimum(run(rows), 1e6)

    monkeypatch.setattr(product_probe, "_runner", saturating)
    assert [*calibrate.product_times()] == ["fp32"] and load.usual_on_cpu() == "fp32"
    assert (tmp_path / "calibration.json").exists()


def test_products_are_measured_once_a_week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_CACHE_DIR", str(tmp_path))
    times = iter([{"fp32": 2.0, "int8": 1.0}, {"fp32": 1.0, "int8": 2.0}])
    monkeypatch.setattr(calibrate, "measure_products", lambda _: next(times))
    day = 86_400.0
    assert [*calibrate.product_times(lambda: day)] == ["int8", "fp32"]
    assert [*calibrate.product_times(lambda: 6 * day)] == ["int8", "fp32"]
    assert [*calibrate.product_times(lambda: 9 * day)] == ["fp32", "int8"]


@pytest.mark.parametrize(
    ("most", "milliseconds", "expected"),
    [
        (2, {}, 2),  # too few to compare
        (15, {7: 9.0, 11: 6.0, 15: 4.0}, 15),
        (15, {7: 9.0, 11: 4.1, 15: 4.0}, 11),  # more threads add next to nothing
        (11, {5: 4.0, 8: 5.0, 11: 8.0}, 5),  # the others are slow cores
    ],
)
def test_the_fewest_nearly_as_fast_threads_are_taken(
    most: int,
    milliseconds: dict[int, float],
    expected: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REDRAFT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(calibrate, "default_threads", lambda: most)
    asked = []

    def measured(_: Any, variant: str, counts: tuple[int, ...]) -> dict[int, float]:
        asked.append(variant)
        return {count: milliseconds[count] for count in counts}

    monkeypatch.setattr(calibrate, "measure_products", lambda _: {"fp32": 2.0, "int8": 1.0})
    monkeypatch.setattr(calibrate, "measure_threads", measured)
    assert [calibrate.usual_threads(), calibrate.usual_threads()] == [expected, expected]
    assert asked == (["int8"] if milliseconds else []), "once, with the fastest variant"


def test_products_are_measured_for_each_thread_count() -> None:
    found = product_probe.measure_threads(ort, "int8", (1, 2))
    assert found.keys() == {1, 2} and min(found.values()) > 0


@pytest.mark.parametrize(
    ("files", "threads"),
    [
        ((), 15),
        (("max 100000\n",), 15),
        (("250000 100000\n",), 2),
        (("50000 100000\n",), 1),
        (("-1\n", "100000\n"), 15),
        (("400000\n", "100000\n"), 3),
        (("300000\n", "100000\n"), 3),
    ],
)
def test_threads_keep_to_a_quota_and_leave_one_core(
    files: tuple[str, ...], threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = tuple(tmp_path / str(number) for number in range(max(1, len(files))))
    for path, text in zip(paths, files, strict=False):
        path.write_text(text)
    monkeypatch.setattr(machine, "CORE_QUOTAS", (paths,))
    monkeypatch.setattr(machine.psutil, "cpu_count", lambda logical: 16)
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: range(64), raising=False)
    assert machine.default_threads() == threads
