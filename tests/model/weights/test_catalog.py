"""The catalog of models, and exports of ready folders."""

from __future__ import annotations

import re
import shutil
from typing import Any

import pytest
from redraft.model.errors import UnknownModel, WeightsError
from redraft.model.weights import catalog, store
from redraft.model.weights.adapter import check_adapter, load_adapter
from support.weights.models_on_disk import (
    World,
    sha,
)

pytestmark = pytest.mark.usefixtures("spawn")


@pytest.mark.parametrize("name", catalog.OWN_MODELS)
def test_built_in_models_are_described_truly(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDRAFT_MODELS", raising=False)
    model = catalog.info(name)
    assert model.folder is None and model.adapter is not None
    assert sha(model.adapter) == model.adapter_sha256
    assert model.adapter.stat().st_size < 36_000_000
    adapter = load_adapter(model.adapter)
    assert adapter.metadata["prompt_format"] == "redraft-3"
    check_adapter(adapter, model.config, model.base.gguf_sha256)


@pytest.mark.parametrize("name", catalog.OWN_MODELS)
def test_the_base_of_a_model_holds_its_conversations(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REDRAFT_MODELS", raising=False)
    model = catalog.info(name)
    chat = catalog.info(model.chat)
    assert (chat.origin, chat.adapter, chat.chat) == (model.origin, None, "")
    assert chat.config.vocab == model.config.vocab and chat.config.verifier == "ar"


def test_an_unknown_model_is_refused_with_known_ones(world: World) -> None:
    with pytest.raises(UnknownModel, match=r"tiny.*redraft-0\.5b"):
        catalog.info("gpt-9")


def test_a_removed_model_is_refused_with_its_successor(world: World) -> None:
    expected = re.escape(
        "redraft-135m is no longer part of Redraft; use redraft-0.5b "
        "(redraft model pull redraft-0.5b)"
    )
    for ask in (catalog.info, store.ensure, store.pull, store.base_path):
        with pytest.raises(UnknownModel, match=f"^{expected}$"):
            ask("redraft-135m")
    with pytest.raises(UnknownModel, match=expected):
        store.check_known("redraft-135m", None)
    assert "redraft-135m" not in [model.name for model in catalog.list_models()]


def test_a_folder_of_the_user_hides_the_built_in_model(world: World) -> None:
    world.describe(name=catalog.DEFAULT_MODEL)
    assert catalog.info(catalog.DEFAULT_MODEL).folder == world.folder
    names = [model.name for model in catalog.list_models()]
    assert names.count(catalog.DEFAULT_MODEL) == 1


def test_models_in_the_cache_are_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDRAFT_MODELS")
    shutil.copytree(world.folder, world.cache / "models" / "any")
    assert "tiny" in [model.name for model in catalog.list_models()]


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "../evil"},
        {"version": "a/b"},
        {"adapter": {"file": "../../x.safetensors", "sha256": "0" * 64}},
        {"adapter": {"file": "x.safetensors", "sha256": "0"}},
        {"adapter": "x"},
        {"default_variant": "int3"},
        {"prebuilt": ["../.."]},
        {"config": {"wings": 2}},
        {"config": None},
        {"base": {}},
        {"base": "../tiny"},
        {"base": "nobody"},
        {"base": {"gguf_sha256": "0" * 64, "gguf_size": 9, "hub": None, "wheels": []}},
        {"base": {"gguf_sha256": "0" * 64, "gguf_size": -1, "hub": None, "wheels": []}},
        {"base": None},
    ],
)
def test_a_broken_description_hides_no_other_model(world: World, changes: dict[str, Any]) -> None:
    world.describe(**changes)
    own = {*catalog.OWN_MODELS}
    built_in = own | {catalog.info(name).chat for name in own}
    assert {m.name for m in catalog.list_models()} == built_in
    with pytest.raises(WeightsError, match=r"model\.json"):
        catalog.info("tiny")


@pytest.mark.parametrize("content", ["", "[]", "{", "null", "\x00", "[" * 100_000])
def test_a_description_that_is_no_object_is_named(world: World, content: str) -> None:
    (world.folder / "model.json").write_text(content)
    with pytest.raises(WeightsError, match=r"model\.json"):
        catalog.info("tiny")


# ------------------------------------------------------------------------------ export


def test_folders_of_variants_that_are_gone_are_removed(world: World) -> None:
    gone = store.ensure("tiny", "fp32").with_name("q8")
    shutil.copytree(gone.with_name("fp32"), gone)
    assert store.ensure("tiny", "int8").is_dir()
    assert not gone.exists() and gone.with_name("fp32").is_dir()


def test_exports_run_alone(world: World, monkeypatch: pytest.MonkeyPatch, made: list[str]) -> None:
    out = world.root / "usb" / "stick"
    assert store.export("tiny", "fp32", out) == out
    store.export("tiny", "int8", out)
    monkeypatch.setenv("REDRAFT_MODELS", str(out))
    monkeypatch.setenv("REDRAFT_CACHE_DIR", str(world.root / "other"))
    monkeypatch.delenv("PIP_FIND_LINKS")
    model = catalog.info("tiny")
    assert store.ready_variants(model) == ["fp32", "int8"]
    assert store.ensure("tiny", "int8") == out / "int8"
    with pytest.raises(WeightsError, match="exported as fp32, int8"):
        store.ensure("tiny", "q4")
    (out / "int8" / "canvas.npz").write_bytes(b"damaged")
    with pytest.raises(WeightsError, match="Copy the exported model anew"):
        store.ensure("tiny", "int8")
    assert made == ["fp32", "int8"]


def test_an_export_overwrites_nothing_else(world: World) -> None:
    (world.root / "full").mkdir()
    (world.root / "full" / "thesis.txt").write_text("years of work")
    with pytest.raises(WeightsError, match="not empty"):
        store.export("tiny", None, world.root / "full")
    assert [p.name for p in (world.root / "full").iterdir()] == ["thesis.txt"]
    with pytest.raises(WeightsError, match=r"tiny\.gguf"):
        store.export("tiny", None, world.gguf)
