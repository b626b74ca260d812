"""Memory of the runtime, its embedding, and folders it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from redraft.model.errors import InstallError, InvalidRequest, SettingsError, WeightsError
from redraft.model.runtime import device, machine
from redraft.model.runtime import kv_memory as memory_module
from redraft.model.runtime.device import choose
from redraft.model.runtime.kv_memory import RESERVE, DeviceMemory, Pool, size_class
from redraft.model.runtime.machine import check_onnxruntime
from redraft.model.runtime.onnx_session import open_session
from support.models.onnx_models import BASE, predictable, store, weights_for
from support.models.runtimes import NOTHING, TOKENS, WINDOW, fresh

runtime = pytest.importorskip("redraft.model.runtime.onnx_backend")
ort = pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install '.[cpu]')")


def test_size_classes_hold_what_is_asked_and_no_more() -> None:
    found = [size_class(n) for n in (1, 1_280, 1_281, 2_048, 32_768 + 600)]
    assert found == [1_280, 1_280, 2_304, 2_304, 34_816]
    with pytest.raises(InvalidRequest, match=r"40,000 tokens.*34,816"):
        size_class(40_000)


class CountingMemory:
    """Hands out empty buffers and counts them."""

    def __init__(self) -> None:
        self.allocated = 0

    def allocate(self, capacity: int) -> Any:
        self.allocated += 1
        return SimpleNamespace(capacity=capacity)

    def touch(self, buffer: Any) -> None:
        buffer.touched = True


def test_the_pool_keeps_buffers_within_its_budget() -> None:
    memory = CountingMemory()
    pool = Pool(memory, budget_bytes=6_000, bytes_per_token=1)  # type: ignore[arg-type]
    small, large = pool.take(2_048), pool.take(4_096)
    pool.give_back(small)
    assert pool.free == []  # 4,096 in use and 2,048 free would be over
    pool.give_back(large)
    assert pool.take(4_096) is large
    assert memory.allocated == 2


def test_a_buffer_over_budget_is_given_but_not_kept() -> None:
    memory = CountingMemory()
    pool = Pool(memory, budget_bytes=6_000, bytes_per_token=1)  # type: ignore[arg-type]
    huge, small = pool.take(34_816), pool.take(2_048)
    pool.give_back(small)
    assert pool.free == [small], "the huge one is outside the budget"
    pool.give_back(huge)
    assert pool.free == [small]
    assert pool.in_use == 0


def test_a_smaller_budget_drops_oldest_free_buffers() -> None:
    pool = Pool(CountingMemory(), budget_bytes=6_000, bytes_per_token=1)  # type: ignore[arg-type]
    older, newer = pool.take(2_048), pool.take(1_024)
    pool.give_back(older)
    pool.give_back(newer)
    pool.limit(2_500)
    assert pool.free == [newer]


def test_memory_limits_contexts(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    backend = runtime.OnnxBackend(folders["fp32"], threads=1)
    free = SimpleNamespace(available=RESERVE + 1_280 * backend.bytes_per_token)
    monkeypatch.setattr(memory_module.psutil, "virtual_memory", lambda: free)
    with pytest.raises(InvalidRequest, match=r"34,816 tokens.*context_tokens"):
        backend.open(32_768)
    small = fresh(backend, TOKENS)
    assert small.capacity == 1_280, "what fits is served all the same"


def test_a_prepared_buffer_is_the_first_one_taken() -> None:
    memory = CountingMemory()
    pool = Pool(memory, budget_bytes=3_000, bytes_per_token=1)  # type: ignore[arg-type]
    pool.prepare(2_048)
    assert pool.take(2_048).touched  # type: ignore[attr-defined]
    assert memory.allocated == 1
    pool.prepare(4_096)  # over the budget: not made
    assert memory.allocated == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_device_buffers_copy_the_tokens_kept(dtype: Callable[[], object]) -> None:
    """The path that CUDA takes, on a device every machine has."""
    memory = DeviceMemory(ort, BASE, np.dtype(dtype), "cpu")
    source, target = memory.allocate(64), memory.allocate(128)
    rng = np.random.default_rng(0)
    for _, value in source.values():
        value.update_inplace(rng.normal(size=value.shape()).astype(dtype))
    memory.copy(source, target, 40)
    for (_, old), (_, new) in zip(source.values(), target.values(), strict=True):
        assert np.array_equal(old.numpy()[:, :, :40], new.numpy()[:, :, :40])


@pytest.mark.parametrize("name", ["fp32", "int8", "fp16"])
def test_tokens_are_read_as_the_head_holds_them(folders: dict[str, Path], name: str) -> None:
    backend = runtime.OnnxBackend(folders[name], provider="CPU", threads=1)
    context, canvas = weights_for(BASE)
    tokens = np.array([BASE.mask_token, *TOKENS[:30], BASE.mask_token])
    expected = context["embed.weight"][tokens]
    close = {"fp32": 0.0, "fp16": 1e-3}.get(name, 0.005) * np.abs(expected).max()
    found = backend.embedding.rows(tokens, canvas=False)
    assert found.shape == (1, len(tokens), BASE.hidden) and found.dtype == backend.dtype
    assert np.abs(found[0] - expected).max() <= close
    learnt = backend.embedding.rows(tokens, canvas=True)
    assert np.array_equal(learnt[0, 1:-1], found[0, 1:-1])
    for place in (0, -1):
        mask = canvas["embed.weight"][BASE.mask_token].astype(backend.dtype)
        assert np.array_equal(learnt[0, place], mask)


@pytest.mark.parametrize("change", ["forms", "tables", "elsewhere"])
def test_an_incomplete_folder_is_refused_with_advice(tmp_path: Path, change: str) -> None:
    store(BASE, "int8", tmp_path)
    about = json.loads((tmp_path / "graphs.json").read_text())
    if change == "elsewhere":
        about["tables"]["embed.blocks"]["offset"] = 1 << 40
    else:
        del about[change]
    (tmp_path / "graphs.json").write_text(json.dumps(about))
    with pytest.raises(WeightsError, match="redraft model pull"):
        runtime.OnnxBackend(tmp_path, threads=1)


def test_a_changed_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    from redraft.model.weights.files import write_manifest

    store(BASE, "fp32", tmp_path)
    write_manifest(tmp_path, "test")
    runtime.OnnxBackend(tmp_path, threads=1).close()
    data = bytearray((tmp_path / "weights.bin").read_bytes())
    data[5_000] ^= 1
    (tmp_path / "weights.bin").write_bytes(data)
    with pytest.raises(WeightsError, match=r"weights\.bin.*redraft model pull"):
        runtime.OnnxBackend(tmp_path)


def test_truncated_data_or_missing_folder_is_refused(tmp_path: Path) -> None:
    store(BASE, "fp32", tmp_path)
    data = (tmp_path / "weights.bin").read_bytes()
    (tmp_path / "weights.bin").write_bytes(data[: len(data) // 2])
    for folder in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(WeightsError, match="redraft model pull"):
            runtime.OnnxBackend(folder)


@pytest.mark.parametrize("way", ["overwritten", "truncated", "replaced"])
def test_weights_written_to_while_in_use_are_noticed(tmp_path: Path, way: str) -> None:
    store(BASE, "fp32", tmp_path)
    file = tmp_path / "weights.bin"
    backend = runtime.OnnxBackend(tmp_path, threads=1)
    assert backend.why_changed() == ""
    if way == "replaced":  # what is in use stays as it was
        (tmp_path / "new").write_bytes(b"other weights")
        (tmp_path / "new").replace(file)
        assert backend.why_changed() == ""
    else:
        with file.open("r+b") as opened:
            opened.write(b"\1" * 64) if way == "overwritten" else opened.truncate(4_096)
        assert "weights.bin was written to" in backend.why_changed()
    backend.close()


@pytest.mark.parametrize("content", ["", "{}", '{"layout": 99, "variant": "fp32"}', "[1]"])
def test_a_folder_of_another_layout_is_refused(tmp_path: Path, content: str) -> None:
    store(BASE, "fp32", tmp_path)
    (tmp_path / "graphs.json").write_text(content)
    with pytest.raises(WeightsError, match=r"layout.*redraft model pull"):
        runtime.OnnxBackend(tmp_path)


@pytest.mark.parametrize(
    ("installed", "advice"),
    [
        ({}, r"not installed.*\.\[cpu\]"),
        ({"onnxruntime": "1.31.1", "onnxruntime-gpu": "1.31.1"}, "overwrite.*pip uninstall -y"),
        ({"onnxruntime": "1.29.2"}, r"1\.29\.2 is too old.*1\.30"),
        ({"onnxruntime-gpu": "1.9.0"}, "too old"),
    ],
)
def test_unusable_installations_say_what_to_do(
    installed: dict[str, str], advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_installed_version", installed.get)
    with pytest.raises(InstallError, match=advice):
        check_onnxruntime()


@pytest.mark.parametrize("version", ["1.30.0", "1.31.1", "2.0", "1.32.0.dev20260101"])
def test_recent_installations_are_accepted(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_installed_version", {"onnxruntime": version}.get)
    assert check_onnxruntime() == version


def test_impossible_wishes_are_refused(folders: dict[str, Path]) -> None:
    with pytest.raises(SettingsError, match="'tpu': choose auto, cpu or cuda"):
        choose("tpu")
    with pytest.raises(SettingsError, match=r"fp16 does not run on CPU"):
        choose("cpu", "fp16")
    with pytest.raises(SettingsError, match="int8 does not run on CUDA"):
        runtime.OnnxBackend(folders["int8"], provider="CUDA")


def test_a_session_without_its_provider_is_not_opened(folders: dict[str, Path]) -> None:
    if not device.cuda_problem(ort):
        pytest.skip("CUDA works here")
    with pytest.raises(InstallError, match="CUDA cannot be used"):
        open_session(ort, folders["fp16"] / "causal.onnx", "CUDA", 1)


def test_cuda_equals_the_cpu(folders: dict[str, Path]) -> None:
    if problem := device.cuda_problem(ort):
        pytest.skip(f"no CUDA here: {problem}")
    on_cpu = fresh(runtime.OnnxBackend(folders["fp32"], threads=1), TOKENS)
    backend = runtime.OnnxBackend(folders["fp16"], provider="CUDA")
    on_gpu = fresh(backend, TOKENS)
    found, expected = (each.denoise(WINDOW, NOTHING, logits=True) for each in (on_gpu, on_cpu))
    ids = predictable(BASE)
    scale = np.abs(expected.logits[:, ids]).max()
    assert np.abs(found.logits[:, ids] - expected.logits[:, ids]).max() < 1e-2 * scale
    fork = backend.fork(on_gpu, 50, 3_000)
    fork.extend(TOKENS[50:])
    assert np.allclose(fork.denoise(WINDOW, NOTHING).top_logprob, found.top_logprob, atol=5e-3)
