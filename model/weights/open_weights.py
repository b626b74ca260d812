"""Open weights of the Hugging Face hub: downloaded, checked and imported.

Which files there are, and the SHA-256 of each large one, the hub says itself. What it said first is
pinned in the cache: weights that change under the same name afterwards are refused until the pin is
removed. Everything here blocks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Literal

import psutil

from ..errors import SettingsError, SourceSilent, WeightsError
from . import hub
from .catalog import HubFile, ModelInfo, cache_dir, check_name
from .download import Progress, ProgressCallback, no_progress
from .files import (
    BytesCallback,
    delete,
    make_folder,
    read_json,
    require_space,
    sha256_of,
    write_atomically,
)
from .hub import Listed
from .huggingface import model_name, read_announced
from .import_model import find_fitting, import_weights
from .store import hold_lock

#: Bytes of a weight in int8; in the smallest variant for a CPU (q4) and for a GPU (q4f16); and what
#: running takes besides.
_INT8, _ON_CPU, _ON_GPU, _BESIDES = 1.2, 0.8, 1.0, 1.0e9
#: A CPU writes with at most so many weights in the time of a thought; denoising reads the whole
#: context in every step where nothing can be cached.
_FAST_WEIGHTS, _FAST_DENOISING = 2.0e9, 0.6e9

#: Names of a repository, or of one file of it.
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
#: Among the pins of a repository, the commit that was pulled last; no file is called so.
_REVISION = "@revision"


@dataclass(frozen=True, slots=True)
class Known:
    """Open weights that can be pulled by a short name; nothing is fetched unless it is asked for.

    ``trained`` says what they were trained to do: fill in at the cursor, or rewrite around it.
    """

    name: str
    repo: str  # on the hub
    weights: float  # about how many
    trained: Literal["infill", "next edit"]
    file: str = ""  # "": the folder of safetensors
    license: str = ""  # "": as the hub says
    denoises: bool = False  # a diffusion model without a cache
    sha256: str = ""  # of ``file``, where it was known when this list was made

    @property
    def memory(self) -> float:
        """Return the bytes it takes to run on a CPU as int8, about."""
        return self.weights * _INT8 + _BESIDES

    def runs(self, memory: int, provider: str) -> Literal["yes", "slowly", "no"]:
        """Return how well a machine runs the weights.

        Args:
            memory: bytes of the machine, or of its GPU.
        """
        gpu = provider != "CPU"
        if self.weights * (_ON_GPU if gpu else _ON_CPU) + _BESIDES > 0.9 * memory:
            return "no"
        fast = _FAST_DENOISING if self.denoises else _FAST_WEIGHTS
        return "yes" if gpu or self.weights <= fast else "slowly"


KNOWN = tuple(
    Known(**entry)
    for entry in json.loads(Path(__file__).with_name("known.json").read_text("utf-8"))
)


def find_known(asked: str, name: str | None = None) -> Known | None:
    """Return the weights of a short name, or those at hf:OWNER/NAME or hf:OWNER/NAME/FILE.gguf.

    Args:
        name: for those that are not in the list; None: that of the repository or file.

    Raises:
        SettingsError: it begins with "hf:" and names no weights.
    """
    if not asked.startswith("hf:"):
        return next((entry for entry in KNOWN if entry.name == asked), None)
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
    return Known(name or model_name(called.lower()), repo, 0.0, "infill", file)


def pull_open(  # noqa: PLR0913 - all but the first are optional
    asked: Known,
    name: str | None = None,
    variant: str | None = None,
    *,
    prompt_format: str | None = None,
    drop_base: bool = False,
    memory: int | None = None,
    gpu: bool = False,
    progress: ProgressCallback = no_progress,
) -> ModelInfo:
    """Download, check, import and register weights.

    The small files of a folder are checked before the large ones are downloaded.

    Args:
        name: of the model; None: as the weights are known.
        drop_base: delete what was downloaded once the model stands.
        variant, prompt_format, memory, gpu: see :func:`import_weights`.

    Raises:
        SettingsError: the name is taken or cannot be one.
        WeightsError: the hub does not have it or not any more the same, it cannot be run here, or
            the disk does not take it. What was fetched stays for a later attempt.
    """
    name = name or asked.name
    check_name(name)
    memory = memory or psutil.virtual_memory().total
    if asked.runs(memory, "CUDA" if gpu else "CPU") == "no":
        raise WeightsError(
            f"{asked.name} has {asked.weights / 1e9:.1f}B weights, too many for "
            f"{memory / 1e9:.1f} GB of memory. 'redraft model list --known' says what runs here."
        )
    try:
        listing = hub.list_files(asked.repo)
    except SourceSilent as error:
        raise SourceSilent(
            f"{error}. Check the network, or name a mirror with HF_ENDPOINT. Without one, download "
            f"{asked.repo} on another machine, copy it here and run 'redraft model pull FOLDER'."
        ) from error
    files = _files_of(asked, listing.files)
    pins = _checked_pins(asked, files)
    folder = cache_dir() / "open" / name / listing.revision[:16]
    whole, done = sum(file.size for file in files), 0
    with hold_lock(progress):
        make_folder(folder)
        there = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
        require_space(folder, int(max(whole - there, 0) + _CONVERTED * whole))
        for file in files:
            if _holds_weights(file) and not asked.file:
                find_fitting(read_announced(folder, name), variant, memory, gpu)

            def report(fetched: int, before: int = done) -> None:
                progress(Progress("download", before + fetched, whole))

            _fetch(HubFile(asked.repo, file.name), file, folder, listing.revision, report)
            done += file.size
        pins |= {file.name: file.sha256 for file in files if file.sha256}
        _write_pins(asked.repo, pins | {_REVISION: listing.revision})
    model = import_weights(
        folder / asked.file,
        name,
        variant,
        prompt_format=prompt_format,
        license_=asked.license or listing.license,
        called=asked.repo,
        memory=memory,
        gpu=gpu,
        progress=progress,
    )
    if drop_base:
        delete(folder)
    return model


def _files_of(asked: Known, listed: Sequence[Listed]) -> list[Listed]:
    """Return the files that are read, those with weights last."""
    weights = [file for file in listed if _holds_weights(file)]
    found = [file for file in listed if file.name in _SMALL] + weights
    if asked.file:
        weights = found = [file for file in listed if file.name == asked.file]
    if weights:
        return found
    where = f"{hub.endpoint()}/{asked.repo}"
    ggufs = [file.name for file in listed if file.name.endswith(".gguf")]
    advice = (
        f"It has {', '.join(ggufs[:6])}: name one as hf:{asked.repo}/FILE.gguf."
        if ggufs
        else "It has neither safetensors nor GGUF files: choose another repository."
    )
    raise WeightsError(f"{where} does not have {asked.file or 'safetensors'}. {advice}")


def _holds_weights(file: Listed) -> bool:
    return file.name.endswith(".safetensors") and "/" not in file.name and "\\" not in file.name


def _fetch(
    source: HubFile, file: Listed, folder: Path, revision: str, report: BytesCallback
) -> None:
    """Put one file in the folder, whole and under its SHA-256; delete what is not.

    Raises:
        WeightsError: its name leads out of the folder, on this or on another system; or its
            SHA-256 is another.
    """
    name = PureWindowsPath(file.name)  # which also splits at "/"
    if name.anchor or ".." in name.parts or "\\" in file.name:
        raise WeightsError(f"{source.repo} has a file named {file.name!r}: it is not fetched.")
    target = folder / file.name
    make_folder(target.parent)
    if not target.exists():
        part = target.with_name(f"{target.name}.part")
        hub.download(source, file.sha256, file.size, part, report, revision)
        part.replace(target)
    if file.sha256 and (found := sha256_of(target)) != file.sha256:
        delete(target)
        raise WeightsError(
            f"{file.name} of {source.repo} has SHA-256 {found}, not {file.sha256}: it was deleted. "
            "Pull again."
        )


# --- pins -----------------------------------------------------------------------------------------


def _pins_file() -> Path:
    return cache_dir() / "open" / "pins.json"


def read_pulled_revision(repo: str) -> str:
    """Return the commit of a repository that was pulled last; "" where none was."""
    return str(dict(read_json(_pins_file()).get(repo, {})).get(_REVISION, ""))


def _checked_pins(asked: Known, files: Sequence[Listed]) -> dict[str, str]:
    """Return the SHA-256 of the large files that were fetched from this repository before.

    Raises:
        WeightsError: the hub has others today.
    """
    pins: dict[str, str] = dict(read_json(_pins_file()).get(asked.repo, {}))
    if asked.sha256:
        pins.setdefault(asked.file, asked.sha256)
    for file in files:
        before = pins.get(file.name)
        if file.sha256 and before and before != file.sha256:
            raise WeightsError(
                f"{file.name} of {asked.repo} has changed: its SHA-256 was {before[:16]}… when it "
                f"was first pulled or listed and is {file.sha256[:16]}… today. If you trust the "
                f"change, remove the entry of {asked.repo} from {_pins_file()}, and name the file "
                f"as hf:{asked.repo}/{file.name}."
            )
    return pins


def _write_pins(repo: str, pins: dict[str, str]) -> None:
    content = read_json(_pins_file()) | {repo: pins}
    write_atomically(_pins_file(), json.dumps(content, indent=1, sort_keys=True).encode())
