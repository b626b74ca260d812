"""Providers other than the CPU, used only if they compute the same results as the CPU.

All graphs are real and run. The CPU with damaged weights takes the part of a wrong provider.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from redraft.model.config import ModelConfig
from redraft.model.errors import InstallError, SettingsError
from redraft.model.network.quantize import HALF, VARIANTS
from redraft.model.runtime import device, machine
from redraft.model.runtime.device import choose
from redraft.model.runtime.provider_check import CLOSE, PLAIN, how_it_differs, network_like

pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install '.[cpu]')")
backends = pytest.importorskip("redraft.model.runtime.onnx_backend")

FLOATS = [variant for variant in VARIANTS if variant not in HALF]
MASKS: dict[str, Any] = {"adapter": "masks", "masks": 3, "mask_rank": 4, "sampler": 8}
#: The network that is compared for each kind of model.
KINDS = {
    "plain": PLAIN,
    "with masks": replace(PLAIN, **MASKS, qkv_bias=True, qk_norm=True),
    "by blocks": replace(PLAIN, attention="block", block=4, qk_norm=True),
    "in both directions": replace(PLAIN, attention="bidirectional", qkv_bias=True),
}


def cpu(folder: Path) -> Any:
    return backends.OnnxBackend(folder, "CPU", 1)


def damaging(change: Callable[[str, bytearray], None]) -> Callable[[Path], Any]:
    """Return a function that changes each tensor of a folder by name and bytes, and opens it."""

    def opened(folder: Path) -> Any:
        file = folder / "weights.bin"
        data = bytearray(file.read_bytes())
        (graph, *_) = folder.glob("*.onnx")
        for tensor in onnx.load(graph, load_external_data=False).graph.initializer:
            where = {entry.key: entry.value for entry in tensor.external_data}
            if where:
                part = slice(int(where["offset"]), int(where["offset"]) + int(where["length"]))
                damaged = bytearray(data[part])
                change(tensor.name, damaged)
                data[part] = damaged
        file.write_bytes(data)
        return cpu(folder)

    return opened


def lose_rows(name: str, data: bytearray) -> None:
    """Set the first rows of one matrix of the first layer to zero."""
    if name.startswith("blocks.0.mlp.down") and not name.endswith((".rows", ".blocks", ".nibbles")):
        data[: len(data) // 24] = bytes(len(data) // 24)


def swap_nibbles(name: str, data: bytearray) -> None:
    if name.endswith(".nibbles"):
        pairs = np.frombuffer(bytes(data), np.uint8)
        data[:] = (pairs >> 4 | pairs << 4).astype(np.uint8).tobytes()


def poison(name: str, data: bytearray) -> None:
    if name == "norm.weight":
        data[:4] = np.array(np.nan, np.float32).tobytes()


@pytest.mark.parametrize("variant", FLOATS)
@pytest.mark.parametrize("network", KINDS.values(), ids=KINDS)
def test_a_provider_with_the_same_results_is_used(network: ModelConfig, variant: str) -> None:
    assert how_it_differs(cpu, variant, network) == ""


def test_the_network_that_is_compared_has_the_operators_of_the_model() -> None:
    for network in KINDS.values():
        model = replace(network, hidden=896, heads=14, head_dim=64, layers=24, vocab=151_665)
        assert network_like(model) == network


@pytest.mark.parametrize("variant", HALF)
def test_half_precision_is_rounding(variant: str) -> None:
    """Compare half precision with full precision, as for CUDA.

    The CPU runs the graphs of half precision except for the adapter on masks.
    """
    assert how_it_differs(cpu, variant, PLAIN) == ""
    problem = how_it_differs(cpu, variant, KINDS["with masks"])
    assert problem.startswith(f"does not run our graphs in {variant}: ") and "Scatter" in problem


@pytest.mark.parametrize("variant", VARIANTS)
def test_damaged_weights_are_refused_with_how_far_they_are_off(variant: str) -> None:
    problem = how_it_differs(damaging(lose_rows), variant, PLAIN)
    assert f"computes something else in {variant}: logits differ" in problem
    apart = float(problem.partition(" by ")[2].partition("%")[0]) / 100
    assert 2 * CLOSE[variant] < apart < 1


@pytest.mark.parametrize("variant", ["q4", "q4f16"])
def test_four_bits_in_another_order_are_refused(variant: str) -> None:
    assert "computes something else" in how_it_differs(damaging(swap_nibbles), variant, PLAIN)


def test_logits_that_are_no_numbers_are_refused() -> None:
    assert "computes something else" in how_it_differs(damaging(poison), "fp32", PLAIN)


@pytest.mark.parametrize("variant", FLOATS)
def test_a_head_that_predicts_tokens_that_are_kept_out_is_refused(variant: str) -> None:
    def forgetful(folder: Path) -> Any:
        backend = cpu(folder)
        zeros = backend.memory.hold(np.zeros(PLAIN.vocab, np.float32))
        backend.suppressed = lambda _: zeros
        return backend

    assert "computes something else" in how_it_differs(forgetful, variant, PLAIN)


def test_a_graph_that_does_not_load_is_refused_with_the_reason() -> None:
    def opened(folder: Path) -> Any:
        (folder / "weights.bin").write_bytes(b"")
        return cpu(folder)

    assert how_it_differs(opened, "q8", PLAIN).startswith("does not run our graphs in q8: ")


# ------------------------------------------------------------------------------ choosing


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offer a provider OTHER, which is the CPU."""
    offered = {"CPU": "CPUExecutionProvider", "OTHER": "CPUExecutionProvider"}
    monkeypatch.setattr(device, "offered", lambda _: offered)
    monkeypatch.setattr("redraft.model.runtime.onnx_session.offered", lambda _: offered)


@pytest.mark.usefixtures("other")
def test_a_named_provider_is_compared_with_the_cpu() -> None:
    assert choose("other") == device.Device("OTHER", "q8")
    assert choose("Other", "fp32", KINDS["with masks"]).provider == "OTHER"
    with pytest.raises(SettingsError, match="fp16 does not run on OTHER"):
        choose("other", "fp16")


@pytest.mark.usefixtures("other")
def test_a_provider_with_other_results_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = damaging(lose_rows)
    monkeypatch.setattr(device, "how_it_differs", lambda _, *of: how_it_differs(damaged, *of))
    with pytest.raises(InstallError, match=r"provider other .* differ .*%.* the provider cpu\."):
        choose("other", "q8")


def test_the_variant_that_is_served_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model without the usual variant of a device is compared in the one it has."""
    compared: list[tuple[str, str]] = []
    problem = [""]

    def problem_of(_: object, provider: str, variant: str, *_config: object) -> str:
        compared.append((provider, variant))
        return problem[0]

    has = {"CUDA": "q4f16", "CPU": "fp32"}
    monkeypatch.setattr(device, "problem_of", problem_of)
    monkeypatch.setattr(device, "cuda_problem", lambda _: "there is none")

    def choice() -> device.Device:
        compared.clear()
        return choose(served=lambda provider, _: has[provider])

    assert choice() == device.Device("CUDA", "q4f16") and compared == [("CUDA", "q4f16")]
    problem[0] = "it is broken"
    assert choice() == device.Device("CPU", "fp32", "Running on the CPU: it is broken.")
    has["CUDA"] = ""
    assert choice() == device.Device("CPU", "fp32", "Running on the CPU: there is none.")
    assert compared == []


def test_an_unknown_provider_is_refused_with_those_there_are() -> None:
    with pytest.raises(SettingsError, match=r"'tpu': choose auto, .*cpu.*cuda"):
        choose("tpu")


def test_the_stored_probe_is_the_graph_it_is_meant_to_be() -> None:
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["a", "b"], ["c"])],
        "p",
        [info("a", TensorProto.UINT8, None), info("b", TensorProto.INT8, None)],
        [info("c", TensorProto.INT32, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    assert model.SerializeToString() == machine.PROBE
