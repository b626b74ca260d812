"""Open weights by name from a hub: a local server speaks its interface."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from redraft.model.errors import SettingsError, WeightsError
from redraft.model.weights import catalog, open_weights, store
from redraft.model.weights.catalog import ModelInfo
from redraft.model.weights.open_weights import KNOWN, Known, find_known, pull_open
from redraft.server.commands.main import app
from support.weights.fake_hub import Hub, serving
from support.weights.tiny_gguf import write_llama
from support.weights.tiny_hf import LAYOUTS, write_hf
from typer.testing import CliRunner

COMMIT = "c" * 40


class FakeHub(Hub):
    """Repositories by name: their files, and what was asked for."""

    def __init__(self) -> None:
        super().__init__(b"", "", "")
        self.repos: dict[str, dict[str, bytes]] = {}
        self.says: dict[str, str] = {}  # SHA-256 that is stated instead of the right one
        self.got: list[str] = []
        self.listed: list[str] = []  # repositories whose listing was asked for

    def answer(self, method: str, path: str) -> tuple[bytes | None, dict[str, str]]:
        path = path.strip("/")
        if path.startswith("api/models/"):
            repo = path.removeprefix("api/models/").partition("/revision/")[0]
            self.listed.append(repo)
            return self.listing(repo), {"Content-Type": "application/json"}
        repo, _, rest = path.partition(f"/resolve/{COMMIT}/")
        if method == "GET":
            self.got.append(rest)
        return self.repos.get(repo, {}).get(rest), {
            "ETag": f'"{"e" * 40}"', "X-Repo-Commit": COMMIT,
        }  # fmt: skip

    def listing(self, repo: str) -> bytes | None:
        if repo not in self.repos:
            return None
        siblings: list[dict[str, Any]] = []
        for name, content in self.repos[repo].items():
            entry: dict[str, Any] = {"rfilename": name, "size": len(content), "blobId": "b" * 40}
            if name.endswith((".safetensors", ".gguf")):
                sha = self.says.get(name) or hashlib.sha256(content).hexdigest()
                entry["lfs"] = {"sha256": sha, "size": len(content), "pointerSize": 134}
            siblings.append(entry)
        card = {"license": "mit"}
        found = {"id": repo, "sha": COMMIT, "siblings": siblings, "cardData": card, "tags": []}
        return json.dumps(found).encode()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_TOKEN", "REDRAFT_MODELS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REDRAFT_CACHE_DIR", str(tmp_path / "cache"))
    found = FakeHub()
    with serving(found):
        monkeypatch.setenv("HF_ENDPOINT", found.url)
        yield found


def pull(asked: str, *rest: Any, **options: Any) -> ModelInfo:
    """Pull what ``asked`` names."""
    entry = find_known(asked)
    assert entry is not None
    return pull_open(entry, *rest, **options)


def gguf(tmp_path: Path) -> bytes:
    write_llama(tmp_path / "made.gguf")
    return (tmp_path / "made.gguf").read_bytes()


def folder(tmp_path: Path, layout: str = "Qwen2", seed: int = 0) -> dict[str, bytes]:
    write_hf(tmp_path / f"made{seed}", LAYOUTS[layout], seed=seed)
    return {path.name: path.read_bytes() for path in (tmp_path / f"made{seed}").iterdir()}


def test_a_file_of_a_repository_is_imported(hub: FakeHub, tmp_path: Path) -> None:
    hub.repos["some/Weights"] = {"w.Q8_0.gguf": gguf(tmp_path), "other.gguf": b"x"}
    made = pull("hf:some/Weights/w.Q8_0.gguf")
    assert (made.name, made.license) == ("w.q8_0", "mit")
    assert store.ready_variants(catalog.info("w.q8_0")) == ["int8"]
    assert hub.got == ["w.Q8_0.gguf"]  # and nothing else


def test_a_repository_is_fetched_without_its_code(hub: FakeHub, tmp_path: Path) -> None:
    more = {"modeling_x.py": b"raise SystemExit", "pytorch_model.bin": b"pickle", "a/b.gguf": b"x"}
    hub.repos["some/weights"] = folder(tmp_path) | more
    made = pull("hf:some/weights", "mine", drop_base=True)
    assert made.name == "mine" and "Qwen2" in made.summary
    assert not {"modeling_x.py", "pytorch_model.bin", "a/b.gguf"} & set(hub.got)
    assert not list((tmp_path / "cache" / "open").rglob("*.safetensors"))


def test_known_names_pull(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Known("sweep-next-edit-x", "sweepai/x", 1e6, "next edit", license="Apache-2.0")
    monkeypatch.setattr(open_weights, "KNOWN", (entry,))
    hub.repos["sweepai/x"] = folder(tmp_path)
    done = CliRunner().invoke(app, ["model", "pull", "sweep-next-edit-x"])
    assert done.exit_code == 0, done.output
    assert "Apache-2.0" in done.output
    assert catalog.info("sweep-next-edit-x").config.prompt_format == "sweep"
    listed = CliRunner().invoke(app, ["model", "list", "--known", "--json"])
    (row,) = json.loads(listed.stdout)
    assert (row["from"], row["revision"]) == ("sweepai/x", COMMIT)


def test_a_known_sum_counts(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Known("x", "some/x", 1e6, "infill", "w.gguf", "MIT", sha256="0" * 64)
    monkeypatch.setattr(open_weights, "KNOWN", (entry,))
    hub.repos["some/x"] = {"w.gguf": gguf(tmp_path)}
    with pytest.raises(WeightsError, match=r"w\.gguf of some/x has changed.*hf:some/x/w\.gguf"):
        pull("x")
    assert hub.got == []
    assert pull("hf:some/x/w.gguf").name == "w"  # asked for as it is


def test_an_interrupted_pull_goes_on_where_it_ended(hub: FakeHub, tmp_path: Path) -> None:
    hub.repos["some/weights"] = {"w.gguf": gguf(tmp_path)}
    hub.cut_after = [30_000]
    try:
        pull("hf:some/weights/w.gguf")
    except WeightsError:
        (part,) = (tmp_path / "cache").rglob("*.part")
        assert part.stat().st_size == 30_000
        pull("hf:some/weights/w.gguf")
    assert len(hub.got) == 2  # the library may have gone on by itself
    assert catalog.info("w").prebuilt == ("int8",)


@pytest.mark.parametrize(
    "name", ["..\\..\\x.safetensors", "a\\x.safetensors", "C:\\x.safetensors", "../x.safetensors"]
)
def test_a_file_name_out_of_the_folder_is_not_fetched(
    hub: FakeHub, tmp_path: Path, name: str
) -> None:
    right = folder(tmp_path)
    hub.repos["some/weights"] = right | {name: right["model.safetensors"]}
    pull("hf:some/weights")
    assert sorted(hub.got) == sorted(right)


@pytest.mark.parametrize("name", ["../w.gguf", "a/../../w.gguf"])
def test_a_named_file_out_of_the_folder_is_refused(hub: FakeHub, tmp_path: Path, name: str) -> None:
    hub.repos["some/weights"] = {name: gguf(tmp_path)}
    with pytest.raises(WeightsError, match="it is not fetched"):
        pull(f"hf:some/weights/{name}")
    assert hub.got == []


def test_bytes_that_the_hub_does_not_state_are_refused(hub: FakeHub, tmp_path: Path) -> None:
    hub.repos["some/weights"] = {"w.gguf": gguf(tmp_path)}
    hub.says["w.gguf"] = "0" * 64
    with pytest.raises(WeightsError, match=r"w\.gguf of some/weights has SHA-256"):
        pull("hf:some/weights/w.gguf")
    assert not list((tmp_path / "cache").rglob("*.gguf"))
    assert not list((tmp_path / "cache").rglob("*.onnx"))


def test_weights_changed_under_one_name_are_refused(hub: FakeHub, tmp_path: Path) -> None:
    hub.repos["some/weights"] = folder(tmp_path)
    pull("hf:some/weights")
    assert pull("hf:some/weights").name == "weights"  # the same again is no news
    hub.repos["some/weights"] = folder(tmp_path, seed=1)
    with pytest.raises(WeightsError, match=r"model\.safetensors of some/weights has changed"):
        pull("hf:some/weights")


def test_other_files_of_a_repository_may_change(hub: FakeHub, tmp_path: Path) -> None:
    hub.repos["some/weights"] = folder(tmp_path) | {"README.md": b"old"}
    pull("hf:some/weights")
    hub.repos["some/weights"] |= {
        "README.md": b"new",
        "config.json": hub.repos["some/weights"]["config.json"] + b"\n",
    }
    assert pull("hf:some/weights").name == "weights"


def test_two_pulls_at_once_do_not_spoil_each_other(hub: FakeHub, tmp_path: Path) -> None:
    hub.repos["some/weights"] = {"w.gguf": gguf(tmp_path)}
    with ThreadPoolExecutor(2) as pool:
        made = [*pool.map(pull, ["hf:some/weights/w.gguf"] * 2)]
    assert {each.name for each in made} == {"w"}
    assert catalog.info("w").prebuilt == ("int8",)
    assert not list((tmp_path / "cache").rglob("*.part"))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("hf:some/none", "does not exist"),
        ("hf:some/code", "neither safetensors nor GGUF"),
        ("hf:some/ggufs", r"It has a\.gguf, b\.gguf: name one"),
        ("hf:some/ggufs/c.gguf", r"does not have c\.gguf"),
    ],
)
def test_what_the_hub_does_not_have_is_said(hub: FakeHub, asked: str, said: str) -> None:
    hub.repos["some/code"] = {"README.md": b"hi"}
    hub.repos["some/ggufs"] = {"a.gguf": b"x", "b.gguf": b"y"}
    with pytest.raises(WeightsError, match=said):
        pull(asked)


@pytest.mark.parametrize(
    "asked",
    ["hf:x", "hf:a/b/c", "hf:a/b/c-00001-of-00003.gguf", "hf:../x/y.gguf", "hf:a/b/../../c.gguf"],
)
def test_names_that_name_nothing_are_refused(hub: FakeHub, asked: str) -> None:
    with pytest.raises((SettingsError, WeightsError)):
        pull(asked)
    assert hub.got == []


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("HF_HUB_OFFLINE", "1", "HF_HUB_OFFLINE"),
        (
            "HF_ENDPOINT",
            "http://127.0.0.1:9",
            "does not answer.*HF_ENDPOINT.*model pull FOLDER",
        ),
    ],
)
def test_without_a_network_the_error_names_another_way(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(WeightsError, match=said):
        pull("hf:some/weights")


def test_the_list_says_what_runs_here() -> None:
    small = Known("s", "a/b", 0.5e9, "infill")
    large = Known("l", "a/b", 8e9, "infill")
    slow = Known("d", "a/b", 1.5e9, "infill", denoises=True)
    assert [small.runs(6 << 30, "CPU"), large.runs(6 << 30, "CPU")] == ["yes", "no"]
    assert [large.runs(32 << 30, "CPU"), slow.runs(32 << 30, "CPU")] == ["slowly", "slowly"]
    assert [large.runs(8 << 30, "CUDA"), large.runs(12 << 30, "CUDA")] == ["no", "yes"]


def test_listed_weights_that_cannot_run_are_not_asked(hub: FakeHub) -> None:
    with pytest.raises(WeightsError, match=r"seed-coder-8b has 8\.3B weights.*list --known"):
        pull("seed-coder-8b", memory=4 << 30)
    assert not hub.got and not hub.listed


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"quantization_config": {"quant_method": "gptq"}}, r"quantised \(gptq\)"),
        ({"architectures": ["Mamba2ForCausalLM"], "model_type": "mamba2"}, "no family"),
        ({"num_hidden_layers": 4_000_000}, "takes .* GB as q4.*Choose smaller weights"),
    ],
)
def test_unimportable_weights_are_refused_unfetched(
    changes: dict[str, Any], said: str, hub: FakeHub, tmp_path: Path
) -> None:
    files = folder(tmp_path)
    files["config.json"] = json.dumps(json.loads(files["config.json"]) | changes).encode()
    hub.repos["some/weights"] = files
    with pytest.raises(WeightsError, match=said):
        pull("hf:some/weights")
    assert "config.json" in hub.got
    assert not any(name.endswith(".safetensors") for name in hub.got)


def test_the_list_names_all_and_is_json_for_programs(hub: FakeHub) -> None:
    shown = CliRunner().invoke(app, ["model", "list", "--known"]).output
    assert all(entry.name in shown for entry in KNOWN)
    found = CliRunner().invoke(app, ["model", "list", "--known", "--json"])
    rows = json.loads(found.stdout)
    names = [row["name"] for row in rows]
    assert names == [entry.name for entry in KNOWN] and len(set(names)) == len(names)
    assert {row["runs_here"] for row in rows} <= {"yes", "slowly", "no"}
    assert hub.got == []
