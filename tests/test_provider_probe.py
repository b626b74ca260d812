"""Other execution providers: used only where they compute what the CPU does. All graphs are real,
and run; what computes something else is the CPU over weights that were damaged."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from redraft.model.config import ModelConfig
from redraft.model.errors import InstallError, SettingsError
from redraft.model.network.quantize import HALF, VARIANTS
from redraft.model.runtime import device, provider_speed, providers, verdicts
from redraft.model.runtime.device import check_onnxruntime, installed_for, pick_device, problem_of
from redraft.model.runtime.provider_probe import (
    CLOSE,
    FULL,
    PLAIN,
    Opener,
    Tried,
    network_like,
    provider_problem,
)
from redraft.model.runtime.provider_speed import slower
from redraft.model.runtime.providers import CPU_NAME, OTHERS, Provider

runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install '.[cpu]')")
FLOATS = [variant for variant in VARIANTS if variant not in HALF]
#: What is tried for each kind of model.
KINDS = {
    "plain": PLAIN,
    "with masks": FULL,
    "by blocks": replace(PLAIN, attention="block", block=4, qk_norm=True),
    "in both directions": replace(PLAIN, attention="bidirectional", qkv_bias=True),
}
CPU = device.opener(runtime, "CPU")


def tried(
    on_other: Opener, variant: str, name: str = CPU_NAME, network: ModelConfig = PLAIN
) -> str:
    return provider_problem(CPU, on_other, name, variant, network).problem


def damaging(change: Callable[[str, bytearray], None]) -> Opener:
    """Opens a graph over weights of which ``change`` damaged a tensor, told its name and bytes."""

    def opened(path: Path) -> Any:
        file = path.with_name("weights.bin")
        data = bytearray(file.read_bytes())
        for tensor in onnx.load(path, load_external_data=False).graph.initializer:
            where = {entry.key: entry.value for entry in tensor.external_data}
            if where:
                part = slice(int(where["offset"]), int(where["offset"]) + int(where["length"]))
                damaged = bytearray(data[part])
                change(tensor.name, damaged)
                data[part] = damaged
        file.write_bytes(data)
        return CPU(path)

    return opened


def lose_rows(name: str, data: bytearray) -> None:
    """The first rows of one matrix of the first layer are lost."""
    if name.startswith("blocks.0.mlp.down") and not name.endswith((".rows", ".blocks", ".nibbles")):
        data[: len(data) // 24] = bytes(len(data) // 24)


def swap_nibbles(name: str, data: bytearray) -> None:
    if name.endswith(".nibbles"):
        pairs = np.frombuffer(bytes(data), np.uint8)
        data[:] = (pairs >> 4 | pairs << 4).astype(np.uint8).tobytes()


@pytest.mark.parametrize("variant", FLOATS)
@pytest.mark.parametrize("network", KINDS.values(), ids=KINDS)
def test_what_computes_the_same_is_used(network: ModelConfig, variant: str) -> None:
    assert tried(CPU, variant, network=network) == ""


def test_the_network_that_is_tried_has_the_operators_of_the_model() -> None:
    for network in KINDS.values():
        model = replace(network, hidden=896, heads=14, head_dim=64, layers=24, vocab=151_665)
        assert network_like(model) == network


@pytest.mark.parametrize("variant", HALF)
def test_half_precision_is_rounding(variant: str) -> None:
    """Compared with whole precision, as CUDA is: the CPU runs the graphs of half precision but for
    the masks' adapter."""
    assert tried(CPU, variant) == ""
    said = tried(CPU, variant, network=FULL)
    assert said.startswith(f"{CPU_NAME} does not run our graphs in {variant}") and "Scatter" in said


@pytest.mark.parametrize("variant", VARIANTS)
def test_damaged_weights_are_refused_with_how_far_they_are_off(variant: str) -> None:
    said = tried(damaging(lose_rows), variant)
    assert f"computes something else in {variant}: logits differ" in said
    apart = float(said.partition(" by ")[2].partition("%")[0]) / 100
    assert 2 * CLOSE[variant] < apart < 1


@pytest.mark.parametrize("variant", ["q4", "q4f16"])
def test_four_bits_in_another_order_are_refused(variant: str) -> None:
    assert "computes something else" in tried(damaging(swap_nibbles), variant)


def test_logits_that_are_no_numbers_are_refused() -> None:
    def poison(name: str, data: bytearray) -> None:
        if name == "norm.weight":
            data[:4] = np.array(np.nan, np.float32).tobytes()

    assert "not finite" in tried(damaging(poison), "fp32")


@pytest.mark.parametrize("variant", FLOATS)
def test_a_head_that_forgets_which_tokens_are_kept_out_is_refused(variant: str) -> None:
    class Forgetful:
        def __init__(self, path: Path) -> None:
            self._session = CPU(path)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._session, name)

        def run(self, names: list[str], feed: dict[str, Any]) -> Any:
            zeros = np.zeros_like(feed["suppressed"])
            return self._session.run(names, feed | {"suppressed": zeros})

    assert "must not be predicted" in tried(Forgetful, variant)


def test_what_leaves_all_to_the_cpu_in_silence_is_refused() -> None:
    """Azure's provider is in every build and takes no operator of a graph that lies here."""
    name = "AzureExecutionProvider"
    if name not in runtime.get_available_providers():
        pytest.skip(f"this onnxruntime has no {name}")

    def opened(path: Path) -> Any:
        options = runtime.SessionOptions()
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        return runtime.InferenceSession(str(path), options, providers=[name, CPU_NAME])

    assert "takes none of the 9 products of q8" in tried(opened, "q8", name)
    assert "does not load" in tried(CPU, "q8", name)


def test_a_graph_that_does_not_load_is_refused_with_the_reason() -> None:
    def opened(path: Path) -> Any:
        path.with_name("weights.bin").write_bytes(b"")
        return CPU(path)

    assert tried(opened, "q8").startswith(f"{CPU_NAME} does not run our graphs in q8: ")


@pytest.mark.parametrize(("ms", "chosen"), [(2.0, True), (3.5, True), (3.7, False), (9.0, False)])
def test_a_provider_has_to_be_faster_to_be_chosen_by_itself(ms: float, chosen: bool) -> None:
    """Both read in turns; a pass takes the CPU 4 ms, and now and then much more."""
    at, read = [0.0], [0]

    def clock() -> float:
        if read[0] % 2:  # the end of a pass
            turn = read[0] // 2
            at[0] += (ms if turn % 2 else 4.0) / 1e3 + (0.1 if turn % 5 == 0 else 0.0)
        read[0] += 1
        return at[0]

    said = slower((CPU, "q8"), (CPU, "fp32"), "OTHER", clock)
    assert (said == "") == chosen
    assert chosen or said == f"OTHER is slower here, {ms} ms a pass where the CPU takes 4.0"


# ------------------------------------------------------------------------------ which is used


@pytest.mark.parametrize(
    ("package", "provider"),
    [("onnxruntime-windowsml", "DIRECTML"), ("onnxruntime-ep-openvino", "OPENVINO")],
)
def test_what_is_installed_decides_once_it_was_tried(
    package: str, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"CUDA": "there is none", provider: "", "slower": ""}
    usual = "int8" if provider == "OPENVINO" else "q8"
    monkeypatch.setattr(device, "int8_is_exact", lambda _: True)
    assert installed_for(lambda kind: "1.30.0" if kind == package else None) == provider
    monkeypatch.setattr(device, "installed_for", lambda: provider)
    monkeypatch.setattr(device, "problem_of", lambda _, name, *tried: found[name])
    monkeypatch.setattr(device, "slower", lambda *_: found["slower"])
    assert pick_device() == device.Device(provider, usual)
    assert pick_device("auto", "q4") == device.Device(provider, "q4")
    assert pick_device("cpu").provider == "CPU"
    found["slower"] = f"{provider} takes 9 ms a pass, the CPU 5"
    assert pick_device() == device.Device("CPU", "int8", f"Running on the CPU: {found['slower']}.")
    assert pick_device(provider) == device.Device(provider, usual), "asked for, it is used"
    found[provider] = "logits differ by 30% of their spread"
    assert found[provider] in pick_device().notice
    with pytest.raises(InstallError, match="logits differ"):
        pick_device(provider)


def test_what_is_served_is_what_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is not here in the variant that suits a device is tried in the one it has."""
    tried: list[tuple[object, ...]] = []
    has = {"CUDA": "q4f16", "OPENVINO": "q4", "CPU": "fp32"}
    cuda = [""]

    def problem(_: object, name: Provider, variant: str, *network: object) -> str:
        tried.append((name, variant))
        return cuda[0] if name == "CUDA" else ""

    monkeypatch.setattr(device, "installed_for", lambda: "OPENVINO")
    monkeypatch.setattr(device, "problem_of", problem)
    monkeypatch.setattr(device, "cuda_problem", lambda _: "there is none")
    monkeypatch.setattr(device, "slower", lambda _, *asked: tried.append(asked[:-1]) or "")

    def served(provider: Provider, usual: str) -> str:
        return has[provider]

    def picked(threads: int | None = None) -> device.Device:
        tried.clear()
        return pick_device("auto", "auto", None, served, threads)

    assert picked() == device.Device("CUDA", "q4f16") and tried == [("CUDA", "q4f16")]
    cuda[0] = "it is broken"
    assert picked(3) == device.Device("OPENVINO", "q4")
    assert tried[1:] == [("OPENVINO", "q4"), ("OPENVINO", "q4", "fp32", 3)]
    has["CUDA"] = has["OPENVINO"] = ""
    found = picked()
    assert (found.provider, found.variant, tried) == ("CPU", "fp32", [])
    assert "there is none" in found.notice
    assert pick_device("openvino", "auto", None, served).variant in ("int8", "q8")


def test_a_provider_is_timed_with_the_threads_that_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []

    def opening(_: Any, path: Path, provider: Provider, options: Any, threads: int) -> Any:
        opened.append((options.intra_op_num_threads, threads))
        raise OSError("not opened")

    monkeypatch.setattr(device, "open_on", opening)
    assert "could not be timed" in device.slower(runtime, "OPENVINO", "q8", "q8", 3)
    assert opened == [(3, 3)]


def test_a_plugin_is_registered_once_however_many_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    registered, second = [], threading.Event()

    class Runtime:
        def get_available_providers(self) -> list[str]:
            return [CPU_NAME]

        def register_execution_provider_library(self, name: str, path: str) -> None:
            second.wait(0.05)  # nobody else gets as far meanwhile
            registered.append(name)
            second.set()

        def get_ep_devices(self) -> list[Any]:
            return []

    plugin = ModuleType("plugin")
    monkeypatch.setattr(plugin, "get_library_path", lambda: "", raising=False)
    monkeypatch.setitem(sys.modules, OTHERS["OPENVINO"].plugin, plugin)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: plugin)
    here: Any = Runtime()
    said: list[str] = []
    asking = [
        threading.Thread(target=lambda: said.append(providers.missing(here, "OPENVINO")))
        for _ in range(2)
    ]
    for each in asking:
        each.start()
    for each in asking:
        each.join()
    assert len(registered) == 1 and len(set(said)) == 1 and "finds no device" in said[0]


class Starts:
    """A provider that is asked for at start after start; what it would come to, and the time."""

    def __init__(self, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.notes, self.now, self.said = notes, 1e9, Tried("")
        self.asked: list[object] = []
        self.runtime: Any = runtime
        monkeypatch.setattr(device, "missing", lambda *_, **__: "")
        monkeypatch.setattr(device, "provider_problem", self._problem)

    def _problem(self, *tried: object) -> Any:
        self.asked.append(tried[3])
        return self.said

    def found(self, variant: str = "q8") -> str:
        verdicts.forget()  # as a new process
        return problem_of(self.runtime, "COREML", variant, PLAIN, self.notes, lambda: self.now)

    def asks(self, days: float = 0.0) -> bool:
        """Whether a start so much later tries once more."""
        self.now += days * 86_400
        before = len(self.asked)
        self.found()
        return len(self.asked) > before


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Starts:
    return Starts(tmp_path / "cache" / "providers.json", monkeypatch)


def test_what_a_provider_came_to_is_kept_between_starts(starts: Starts) -> None:
    assert (starts.found(), starts.found(), starts.asked) == ("", "", ["q8"])
    starts.said = Tried("it computes something else")
    assert starts.found("q4") == starts.found("q4") == starts.said.problem
    assert starts.asked == ["q8", "q4"]
    assert starts.found() == "", "another variant's verdict is not touched"
    starts.notes.write_text("[1, {", encoding="utf-8")
    assert starts.found() == starts.said.problem
    verdicts.forget(starts.notes)
    starts.said = Tried("")
    assert starts.found() == "", "asked again once it is forgotten"


def test_what_failed_may_be_mended_until_the_next_start(starts: Starts) -> None:
    starts.said = Tried("there was no memory", lasts=False)
    assert starts.asks() and starts.asks()


def test_that_a_provider_works_holds_for_a_while_and_that_it_does_not_for_longer(
    starts: Starts,
) -> None:
    assert starts.asks() and not starts.asks(days=29)
    starts.said = Tried("it computes something else")
    assert starts.asks(days=2) and not starts.asks(days=900)


def test_a_clock_that_was_put_back_makes_no_verdict_last(starts: Starts) -> None:
    assert starts.asks() and starts.asks(days=-1) and not starts.asks()


@pytest.mark.parametrize("said", ["", "it is slower"])
def test_what_was_timed_holds_for_a_shorter_while(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[float] = []

    def slow(*_: object) -> str:
        timed.append(1.0)
        return said

    def asks(now: float) -> bool:
        verdicts.forget()
        before = len(timed)
        notes = tmp_path / "providers.json"
        device.slower(runtime, "COREML", "q8", "int8", 1, notes, lambda: now)
        return len(timed) > before

    monkeypatch.setattr(provider_speed, "slower", slow)
    assert [asks(day * 86_400) for day in (0, 6, 8)] == [True, False, True]


class Listing:
    """onnxruntime with devices of its own."""

    def __init__(self, *listed: tuple[str, str, int, dict[str, str]]) -> None:
        self.listed = listed

    def __getattr__(self, name: str) -> Any:
        return getattr(runtime, name)

    def get_ep_devices(self) -> list[Any]:
        return [
            SimpleNamespace(
                ep_name=name,
                ep_metadata=about,
                device=SimpleNamespace(
                    type=SimpleNamespace(name=kind), vendor_id=1, device_id=number, metadata=about
                ),
            )
            for name, kind, number, about in self.listed
        ]


@pytest.mark.parametrize(
    ("module", "name"), [(platform, "platform"), (verdicts, "processor"), (verdicts, "driver")]
)
def test_another_system_machine_or_driver_is_tried_anew(
    module: ModuleType, name: str, starts: Starts, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert starts.asks() and not starts.asks()
    monkeypatch.setattr(module, name, lambda *_: "another")
    assert starts.asks() and not starts.asks()


def test_another_device_or_its_driver_is_tried_anew(starts: Starts) -> None:
    def asks(*listed: tuple[str, str, int, dict[str, str]]) -> bool:
        starts.runtime = Listing(*listed)
        return starts.asks()

    name = OTHERS["COREML"].name
    gpu = (name, "GPU", 7, {"Description": "a card", "os_driver_version": "31.0"})
    assert asks(gpu) and not asks(gpu)
    assert asks((name, "GPU", 8, gpu[3])), "another device"
    assert asks((*gpu[:3], {**gpu[3], "os_driver_version": "31.1"})), "another driver"
    other = ("AnotherProvider", "GPU", 9, {})
    assert not asks((*gpu[:3], {**gpu[3], "LUID": "5"}), other), "each start names it otherwise"


def test_a_provider_that_hangs_is_given_up_and_remembered_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, goes_on, asked = tmp_path / "providers.json", threading.Event(), []

    def hang(*tried: object, **named: object) -> Any:
        asked.append(tried)
        goes_on.wait()
        return Tried("")

    def at(now: float) -> list[str]:
        verdicts.forget()
        clock = (lambda: now,)
        return [
            problem_of(runtime, "COREML", "q8", PLAIN, notes, *clock),
            device.slower(runtime, "COREML", "q8", "q8", 1, notes, *clock),
        ]

    monkeypatch.setattr(device, "missing", lambda *_, **__: "")
    monkeypatch.setattr(device, "provider_problem", hang)
    monkeypatch.setattr(provider_speed, "slower", hang)
    monkeypatch.setattr(verdicts, "MOST_S", 0.01)
    try:
        for now, times in ((0, 2), (6 * 86_400, 2), (8 * 86_400, 4)):
            for said in at(now):
                assert "COREML was not tried to the end" in said and "redraft doctor" in said
            assert len(asked) == times
    finally:
        goes_on.set()


@pytest.mark.parametrize(
    ("provider", "asks"), [("CUDA", "cuda_problem"), ("OPENVINO", "missing"), ("COREML", "missing")]
)
def test_a_driver_that_hangs_while_it_is_loaded_does_not_hang_the_start(
    provider: Provider, asks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, goes_on, asked = tmp_path / "providers.json", threading.Event(), []

    def hang(*_: object, **__: object) -> str:
        asked.append(provider)
        goes_on.wait()
        return ""

    monkeypatch.setattr(device, "installed_for", lambda: provider if provider in OTHERS else None)
    monkeypatch.setattr(device, "missing", lambda *_, **__: "there is none")
    monkeypatch.setattr(device, "cuda_problem", lambda _: "there is none")
    monkeypatch.setattr(device, asks, hang)
    monkeypatch.setattr(verdicts, "MOST_S", 0.01)
    try:
        for _ in range(2):
            found = pick_device(notes=notes)
            assert found.provider == "CPU" and f"{provider} was not tried" in found.notice
            verdicts.forget()  # as a new process
        assert asked == [provider], "the next start knows"
    finally:
        goes_on.set()


@pytest.mark.parametrize(
    ("does", "limit_s", "says"),
    [
        ("time.sleep(60)", 0.5, "not tried to the end"),
        ("os._exit(9)", 60.0, "ends a process that loads it, with status 9"),
    ],
)
def test_a_plugin_that_hangs_or_crashes_while_it_is_loaded_is_not_loaded_here(
    does: str, limit_s: float, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading a library holds Python's lock, so that no thread could end it."""
    (tmp_path / f"{OTHERS['OPENVINO'].plugin}.py").write_text(
        f"import os, time\nNOTES = {str(tmp_path / 'loaded by')!r}\n"
        "def get_library_path():\n"
        "    with open(NOTES, 'a') as file:\n        file.write(f'{os.getpid()}\\n')\n"
        f"    {does}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    monkeypatch.setattr(verdicts, "MOST_S", limit_s)
    monkeypatch.setattr(device, "installed_for", lambda: "OPENVINO")
    found = pick_device()
    assert found.provider == "CPU" and says in found.notice
    by = tmp_path / "loaded by"
    assert not by.exists() or str(os.getpid()) not in by.read_text().split()


@pytest.mark.parametrize(
    ("kind", "extra"), [("onnxruntime-openvino", "openvino"), ("onnxruntime-directml", "directml")]
)
def test_builds_that_ended_are_refused_with_what_goes_on(kind: str, extra: str) -> None:
    assert installed_for(lambda name: "1.31.0" if name == "onnxruntime" else None) is None
    with pytest.raises(InstallError, match=rf"1\.24\.1 is too old.*-y {kind}.*\.\[{extra}\]"):
        check_onnxruntime(lambda name: "1.24.1" if name == kind else None)


@pytest.mark.parametrize("provider", list(OTHERS))
def test_a_provider_that_is_not_installed_is_refused_with_what_to_do(provider: Provider) -> None:
    if not providers.missing(runtime, provider):
        pytest.skip(f"{provider} is installed here")
    with pytest.raises(InstallError, match=f"{provider} was asked for but the installed"):
        pick_device(provider.lower())
    with pytest.raises(SettingsError, match="openvino"):
        pick_device("tpu")


@pytest.mark.parametrize("variant", FLOATS)
def test_openvino_computes_what_the_cpu_does(variant: str) -> None:
    if why := providers.missing(runtime, "OPENVINO"):
        pytest.skip(f"no OpenVINO here: {why}")
    for network in KINDS.values():
        assert problem_of(runtime, "OPENVINO", variant, network) == ""
