"""Fetches somebody's weights from the hub and imports them: by a known name, or hf:OWNER/NAME.

Which files there are, and the SHA-256 of each large one, the hub says itself. What it said first is
pinned in the cache: weights that change under the same name afterwards are refused until somebody
forgets the pin. Small files are pinned by what they were. It blocks.

:data:`KNOWN` is a list to choose from: open weights by a short name, with their use and size.
Nothing of it is fetched unless somebody asks by name.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from ..errors import SettingsError, SourceSilent, WeightsError
from . import hub
from .fetch import Progress, ProgressCallback, no_progress
from .files import (
    explaining,
    make_folder,
    read_json,
    require_space,
    sha256_of,
    write_atomically,
)
from .hub import HubFile, Listed
from .huggingface import announced, model_name
from .import_model import fitting, import_model
from .registry import ModelInfo, cache_dir, check_name

# --- the list of known weights --------------------------------------------------------------------

#: What they were trained to do: fill in at the cursor, or rewrite what stands around it.
Trained = Literal["infill", "next edit"]
Runs = Literal["yes", "slowly", "no"]

#: Bytes of a weight in q8; in the smallest variant for a CPU (q4) and for a GPU (q4f16); and what
#: running takes besides.
_Q8, _ON_CPU, _ON_GPU, _BESIDES = 1.2, 0.8, 1.0, 1.0e9
#: A CPU writes with at most so many weights in the time of a thought; denoising reads the whole
#: context in every step where nothing can be cached.
_FAST_WEIGHTS, _FAST_DENOISING = 2.0e9, 0.6e9


@dataclass(frozen=True, slots=True)
class Known:
    """Open weights that ``redraft model pull`` knows."""

    name: str
    repo: str  # on the hub
    file: str  # "": the folder of safetensors
    license: str  # "": as the hub says
    weights: float  # about how many
    trained: Trained
    denoises: bool = False  # a diffusion model without a cache
    sha256: str = ""  # of ``file``, where it was known when this list was made

    @property
    def place(self) -> str:
        """Repository and file, for people."""
        return f"{self.repo}/{self.file}".rstrip("/")

    @property
    def memory(self) -> float:
        """Bytes it takes to run on a CPU as q8, about."""
        return self.weights * _Q8 + _BESIDES

    def runs(self, memory: int, provider: str) -> Runs:
        """Return how well this machine runs the weights.

        Args:
            memory: bytes of this machine's, or of its GPU.
        """
        gpu = provider != "CPU"
        if self.weights * (_ON_GPU if gpu else _ON_CPU) + _BESIDES > 0.9 * memory:
            return "no"
        fast = _FAST_DENOISING if self.denoises else _FAST_WEIGHTS
        return "yes" if gpu or self.weights <= fast else "slowly"


_QWEN = "Qwen/Qwen2.5-Coder-"
_SWEEP = "sweepai/sweep-next-edit-"
KNOWN: tuple[Known, ...] = (
    Known(
        "sweep-next-edit-0.5b", f"{_SWEEP}0.5B", "sweep-next-edit-0.5b.q8_0.gguf", "Apache-2.0",
        0.5e9, "next edit",
        sha256="2d2f5ca856765a086d4ee3d0dc4d30358e9d562e36480e0c754240e9cf45ed64",
    ),
    Known(
        "sweep-next-edit-1.5b", f"{_SWEEP}1.5B", "sweep-next-edit-1.5b.q8_0.v2.gguf", "Apache-2.0",
        1.5e9, "next edit",
        sha256="1321ea5e5d7529e60f9770c6a0b3a965f89542d16cf4ae51bab267f6a88150da",
    ),
    Known("sweep-next-edit-7b", f"{_SWEEP}v2-7B", "", "", 7.6e9, "next edit"),
    Known("zeta-2", "zed-industries/zeta-2", "", "Apache-2.0", 8.3e9, "next edit"),
    Known("zeta-2.1", "zed-industries/zeta-2.1", "", "Apache-2.0", 8.3e9, "next edit"),
    Known("qwen2.5-coder-7b", f"{_QWEN}7B", "", "Apache-2.0", 7.6e9, "infill"),
    Known("mellum-4b", "JetBrains/Mellum-4b-base", "", "Apache-2.0", 4.0e9, "infill"),
    Known("seed-coder-8b", "ByteDance-Seed/Seed-Coder-8B-Base", "", "MIT", 8.3e9, "infill"),
    Known(
        "nemotron-labs-diffusion-3b", "nvidia/Nemotron-Labs-Diffusion-3B", "", "", 3.4e9, "infill"
    ),
    Known("open-dcoder-0.5b", "fredzzp/open-dcoder-0.5B", "", "", 0.5e9, "infill", True),
    Known("dreamon-7b", "Dream-org/DreamOn-v0-7B", "", "Apache-2.0", 7.6e9, "infill", True),
)  # fmt: skip


def known(name: str) -> Known | None:
    """The entry of this name."""
    return next((entry for entry in KNOWN if entry.name == name), None)


# --- pulling --------------------------------------------------------------------------------------

#: What names a repository: hf:OWNER/NAME, or one file of it.
PREFIX = "hf:"
_NAMED = re.compile(r"hf:([A-Za-z0-9._-]+/[A-Za-z0-9._-]+)(?:/([A-Za-z0-9._/+-]+\.gguf))?")
_PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
#: Files that an import reads; no code of a repository is ever fetched.
_SMALL = (
    "config.json", "tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt",
    "added_tokens.json", "model.safetensors.index.json", "README.md", "chat_template.jinja",
    "linear_spec_lora/adapter_config.json", "linear_spec_lora/adapter_model.safetensors",
)  # fmt: skip
#: A whole copy takes so much of what is fetched besides.
_CONVERTED = 1.3
_PINS = "pins.json"
#: Among the pins of a repository, the commit that was pulled last; no file is called so.
_REVISION = "@revision"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be fetched."""

    name: str  # of the model here
    repo: str
    file: str = ""  # "": the folder
    license: str = ""
    sha256: str = ""  # of the file, where it is known beforehand
    entry: Known | None = None  # of the list


def is_open(name: str) -> bool:
    """Whether ``name`` is one that this module fetches."""
    return name.startswith(PREFIX) or known(name) is not None


def wanted(asked: str, name: str | None = None) -> Wanted:
    """What ``asked`` names.

    Raises:
        SettingsError: it names nothing.
    """
    entry: Known | None = known(asked)
    if entry is not None:
        chosen = name or entry.name
        return Wanted(chosen, entry.repo, entry.file, entry.license, entry.sha256, entry)
    found = _NAMED.fullmatch(asked)
    if found is None:
        raise SettingsError(
            f"{asked!r} names no weights: write hf:OWNER/NAME, hf:OWNER/NAME/FILE.gguf, or one of "
            f"{', '.join(entry.name for entry in KNOWN)}."
        )
    repo, file = found[1], found[2] or ""
    if _PART.search(file):
        raise SettingsError(
            f"{file} is a part of a GGUF file. Choose one of that repository that is whole, or "
            "import the parts once they are joined: llama-gguf-split --merge."
        )
    called = Path(file).stem if file else repo.partition("/")[2]
    return Wanted(name or model_name(called.lower()), repo, file)


def _listing(repo: str) -> hub.Listing:
    """
    Raises:
        FetchFailed: the hub does not have it.
        SourceSilent: no hub answers; says how to do without.
    """
    try:
        return hub.list_files(repo)
    except SourceSilent as error:
        raise SourceSilent(
            f"{error}. Check the network, or name a mirror with HF_ENDPOINT. Without one, download "
            f"{repo} on another machine, copy it here and run 'redraft model import PATH'."
        ) from error


def pull_open(
    asked: str,
    variants: Sequence[str] | None = None,
    name: str | None = None,
    progress: ProgressCallback = no_progress,
    drop_raw: bool = False,
    memory: int | None = None,
    gpu: bool = False,
) -> ModelInfo:
    """Fetch, check, import and register. What the small files of a folder tell is looked at before
    the large ones are fetched.

    Args:
        asked: a known name, hf:OWNER/NAME or hf:OWNER/NAME/FILE.gguf.
        variants, memory, gpu: see :func:`import_model`.
        name: what to call the model; None: as it is known, or as its repository or file.
        drop_raw: delete what was fetched once the model stands.

    Raises:
        SettingsError: ``asked`` names nothing, or the name is taken.
        WeightsError: the hub does not have it or not any more the same, it cannot be run here, or
            the disk does not take it. What was fetched stays for a later attempt.
    """
    want = wanted(asked, name)
    check_name(want.name)
    room = memory or psutil.virtual_memory().total
    _check_known(want, room, gpu)
    listing = _listing(want.repo)
    files = _files_of(want, listing.files)
    folder = cache_dir() / "open" / want.repo.replace("/", "--") / listing.revision[:16]
    pins = _check_pins(want, files)
    make_folder(folder)
    whole = sum(file.size for file in files)
    there = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    require_space(folder, int(max(whole - there, 0) + _CONVERTED * whole))
    done = 0
    for file in files:
        if _is_of_folder(file):
            fitting(announced(folder, want.name), variants, room, gpu)
        _fetch(want, file, folder, listing.revision, pins, whole, done, progress)
        done += file.size
    pins[_REVISION] = listing.revision
    _write_pins(want, pins)
    model = import_model(
        folder / want.file if want.file else folder,
        want.name,
        variants,
        progress=progress,
        license_=want.license or listing.license,
        called=(want.repo,),
        memory=room,
        gpu=gpu,
    )
    if drop_raw:
        shutil.rmtree(folder, ignore_errors=True)
    return model


def _check_known(want: Wanted, memory: int, gpu: bool) -> None:
    """
    Raises:
        WeightsError: weights of the list that would not run here.
    """
    entry = want.entry
    if entry is not None and entry.runs(memory, "CUDA" if gpu else "CPU") == "no":
        raise WeightsError(
            f"{entry.name} has {entry.weights / 1e9:.1f}B weights, too many for {memory / 1e9:.1f} "
            "GB of memory. 'redraft model list --known' says what runs here."
        )


def _files_of(want: Wanted, listed: Sequence[Listed]) -> list[Listed]:
    """The files that are read.

    Raises:
        WeightsError: there are none; says what there is.
    """
    if want.file:
        found = [file for file in listed if file.name == want.file]
    else:
        weights = [file for file in listed if _is_of_folder(file)]
        small = [file for file in listed if file.name in _SMALL]
        found = [*small, *weights] if weights else []
    if found:
        return found
    ggufs = [file.name for file in listed if file.name.endswith(".gguf")]
    advice = (
        f"It has {', '.join(ggufs[:6])}: name one as hf:{want.repo}/FILE.gguf."
        if ggufs
        else "It has neither safetensors nor GGUF files: choose another repository."
    )
    missing = want.file or "safetensors"
    raise WeightsError(f"{hub.endpoint()}/{want.repo} does not have {missing}. {advice}")


def _is_of_folder(file: Listed) -> bool:
    """Whether it holds weights of a Hugging Face folder."""
    return file.name.endswith(".safetensors") and "/" not in file.name


def _fetch(
    want: Wanted,
    file: Listed,
    folder: Path,
    revision: str,
    pins: dict[str, str],
    whole: int,
    before: int,
    progress: ProgressCallback,
) -> None:
    """One file, whole and under its SHA-256; what is not is deleted."""
    target = folder / file.name
    make_folder(target.parent)
    expected = file.sha256 or pins.get(file.name, "")
    part = target.with_name(f"{target.name}.part")
    if not target.exists():
        hub.download(
            HubFile(want.repo, file.name),
            expected,
            file.size,
            part,
            lambda done: progress(Progress("download", before + done, whole)),
            revision,
        )
        with explaining("write", target):
            part.replace(target)
    found = sha256_of(target)
    if expected and found != expected:
        with explaining("delete", target):
            target.unlink()
        raise WeightsError(
            f"{file.name} of {want.repo} has SHA-256 {found}, not {expected}: it was deleted. Pull "
            "again."
        )
    pins[file.name] = found


# ------------------------------------------------------------------------------ pins


def _check_pins(want: Wanted, files: Sequence[Listed]) -> dict[str, str]:
    """SHA-256 of the files that were fetched from this repository before.

    Raises:
        WeightsError: the hub has others.
    """
    pins = dict(read_json(cache_dir() / "open" / _PINS).get(want.repo, {}))
    if want.sha256:
        pins.setdefault(want.file, want.sha256)
    for file in files:
        before = pins.get(file.name)
        if file.sha256 and before and before != file.sha256:
            raise WeightsError(
                f"{file.name} of {want.repo} has changed: its SHA-256 was {before[:16]}… when it "
                f"was first pulled or listed and is {file.sha256[:16]}… today. If you trust the "
                f"change, remove the entry of {want.repo} from {cache_dir() / 'open' / _PINS}, and "
                f"name the file as hf:{want.repo}/{file.name}."
            )
    return pins


def pulled_revision(repo: str) -> str:
    """The commit of a repository that was pulled last; "" where none was."""
    return str(dict(read_json(cache_dir() / "open" / _PINS).get(repo, {})).get(_REVISION, ""))


def _write_pins(want: Wanted, pins: dict[str, str]) -> None:
    path = cache_dir() / "open" / _PINS
    content = read_json(path) | {want.repo: pins}
    write_atomically(path, json.dumps(content, indent=1, sort_keys=True).encode())
