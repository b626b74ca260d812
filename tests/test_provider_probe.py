"""Other execution providers: used only where they compute what the CPU does."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from redraft.model.errors import InstallError, SettingsError
from redraft.model.runtime import device
from redraft.model.runtime.device import OTHERS, check_onnxruntime, installed_for, pick_device
from redraft.model.runtime.provider_probe import Opener, provider_problem

runtime = pytest.importorskip(
    "onnxruntime", reason="needs onnxruntime (pip install 'redraft[cpu]')"
)
OTHER = "SomeExecutionProvider"
#: An onnxruntime that says it has one provider more.
WITH_OTHER: Any = SimpleNamespace(get_available_providers=lambda: [OTHER, "CPUExecutionProvider"])


class Session:
    """The CPU under another provider's name, whose logits are changed."""

    def __init__(self, path: Path, change: float, names: tuple[str, ...] = (OTHER,)) -> None:
        self._real = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        self._change, self._names = change, names

    def get_providers(self) -> tuple[str, ...]:
        return self._names

    def get_inputs(self) -> Any:
        return self._real.get_inputs()

    def run(self, wanted: list[str], feed: dict[str, Any]) -> list[Any]:
        (logits,) = self._real.run(wanted, feed)
        return [logits + np.where(np.arange(logits.shape[-1]) == 7, self._change, 0.0)]


def opening(change: float, *names: str) -> Opener:
    def opened(path: Path, provider: str) -> Any:
        return Session(path, change if provider == OTHER else 0.0, names or (OTHER,))

    return opened


def test_what_computes_the_same_is_used() -> None:
    assert provider_problem(runtime, "CPUExecutionProvider") == ""
    assert provider_problem(WITH_OTHER, OTHER, opening(0.01)) == ""


@pytest.mark.parametrize("change", [0.5, float("nan"), float("inf")])
def test_other_logits_are_refused(change: float) -> None:
    said = provider_problem(WITH_OTHER, OTHER, opening(change))
    assert f"{OTHER} computes something else" in said


def test_what_falls_back_to_the_cpu_in_silence_is_refused() -> None:
    said = provider_problem(WITH_OTHER, OTHER, opening(0.0, "CPUExecutionProvider"))
    assert "does not load" in said


def test_what_breaks_is_refused_with_its_reason() -> None:
    def opened(path: Path, provider: str) -> Any:
        if provider == OTHER:
            raise RuntimeError("no such operator\nand more")
        return Session(path, 0.0)

    said = provider_problem(WITH_OTHER, OTHER, opened)
    assert said == f"{OTHER} does not run our graphs: no such operator"


@pytest.mark.parametrize(
    ("package", "provider"),
    [("onnxruntime-directml", "DIRECTML"), ("onnxruntime-openvino", "OPENVINO")],
)
def test_what_is_installed_decides_once_it_was_tried(
    package: str, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    problem = ""

    def probe(found: Any, name: str) -> str:
        tried.append(name)
        return problem

    assert installed_for(lambda kind: "1.30.0" if kind == package else None) == provider
    monkeypatch.setattr(device, "installed_for", lambda: provider)
    monkeypatch.setattr(device, "cuda_problem", lambda _: "there is no CUDA")
    monkeypatch.setattr(device, "provider_problem", probe)
    device._problem_of.cache_clear()
    assert [pick_device() for _ in range(2)] == [device.Device(provider, "q8")] * 2  # type: ignore[arg-type]
    assert tried == [OTHERS[provider][0]]
    assert pick_device("cpu").provider == "CPU"
    problem = "it computes something else: logits differ by 7 from the CPU's"
    device._problem_of.cache_clear()
    refused = pick_device()
    device._problem_of.cache_clear()
    assert refused.provider == "CPU" and problem in refused.notice


def test_an_onnxruntime_for_one_provider_that_is_too_old_says_how_to_go_on() -> None:
    assert installed_for(lambda kind: "1.31.0" if kind == "onnxruntime" else None) is None
    with pytest.raises(InstallError, match=r"openvino 1\.24\.1 is too old.*Until there is one"):
        check_onnxruntime(lambda kind: "1.24.1" if kind == "onnxruntime-openvino" else None)


@pytest.mark.parametrize("provider", list(OTHERS))
def test_a_provider_that_is_not_installed_is_refused_with_what_to_do(provider: str) -> None:
    if OTHERS[provider][0] in runtime.get_available_providers():
        pytest.skip(f"{provider} is installed here")
    with pytest.raises(InstallError, match=f"{provider} was asked for but the installed"):
        pick_device(provider.lower())
    with pytest.raises(SettingsError, match="openvino"):
        pick_device("tpu")
