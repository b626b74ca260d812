"""What is imported: a Hugging Face folder or one GGUF file, read alike.

Knows what autoregressive weights are served as: their causal pass writes and judges, nothing is
denoised, and the prompt is the one they were trained on. Knows nothing of where the result goes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..config import ModelConfig
from ..errors import SettingsError, WeightsError
from ..prompts.registry import IN_PLACE, REDRAFT_2, check_format, native_format
from ..prompts.tokenizer import END, MASK, Tokenizer
from ..records import MAX_ANSWER_TOKENS
from .adapter import Adapter
from .combine import CHAT_TEMPLATE
from .families import EXPAND, conventions, family_of
from .files import explaining, read_json, sha256_of
from .gguf import GGUFFile, chat_template, read_checkpoint, stores_tied
from .huggingface import checkpoint_sha256, family_name, model_name, read_hf_checkpoint
from .safetensors_file import FloatArray, tensors_in
from .vocabularies import gguf_tokenizer, read_tokenizer, text_range

#: Positions of one judged pass of weights that only write from left to right: where they repeat
#: text, so many tokens come at once.
_JUDGED_WIDTH = 32
#: What GGUF calls a family, and what its config.json calls it.
_GGUF_TYPES = {"dream": "Dream", "llada": "llada"}


@dataclass(frozen=True, slots=True)
class Source:
    """Weights at hand, read but for the tensors themselves."""

    config: ModelConfig
    tensors: Mapping[str, FloatArray]  # by our names; each access reads one
    tokenizer: Tokenizer
    digest: str  # SHA-256 of all that decides them
    family: str  # for people
    license: str  # "" where nobody says
    names: tuple[str, ...]  # what the weights are called, here and by themselves
    template: str = ""  # of conversations, in Jinja


def read_source(path: Path, name: str | None = None, block: int | None = None) -> Source:
    """Read a folder or a file.

    Args:
        name: of the model; None: the folder's or file's.
        block: see :func:`read_hf_checkpoint`.

    Raises:
        WeightsError, SettingsError: it cannot be read, or is of no kind Redraft runs.
    """
    if path.is_dir():
        return _read_folder(path, name, block)
    if not path.exists():
        raise WeightsError(f"There is nothing at {path}. Name a folder, or a GGUF file.")
    return _read_gguf(path, name, block)


def served(source: Source, prompt_format: str | None) -> ModelConfig:
    """The configuration to serve weights by that nothing of ours was trained on.

    Args:
        prompt_format: None: what they were most likely trained on.

    Raises:
        SettingsError: their vocabulary cannot write this format, or they denoise.
    """
    special = set(source.tokenizer.special.values())
    if source.config.attention != "canvas":
        if prompt_format is not None:
            raise SettingsError(
                f"{source.config.name} is a diffusion model and reads Redraft's own prompt. Leave "
                "--format out."
            )
        return _growing(source)
    chosen = prompt_format or native_format(special, (source.config.name, *source.names))
    check_format(chosen, special)
    config = replace(source.config, specials_end=True, prompt_format=chosen)
    if config.verifier == "ar":  # trained to draft on canvases for its own judge
        return config
    return replace(config, verifier="ar", draft_after=MAX_ANSWER_TOKENS, canvas_width=_JUDGED_WIDTH)


#: The adapter beside Nemotron-Labs-Diffusion's weights that acts while a canvas drafts.
DRAFTING_FILE = "linear_spec_lora/adapter_model.safetensors"
_DRAFTED = re.compile(
    r"base_model\.model\.encoder\.layers\.(\d+)\.self_attn\.o_proj\.lora_([AB])\.weight"
)


def drafting_adapter(folder: Path) -> Adapter | None:
    """An adapter for canvases alone that lies beside the weights; None: there is none.

    Raises:
        WeightsError: it changes other matrices than those of the attention's output, or its
            description is damaged.
    """
    path = folder / DRAFTING_FILE
    if not path.is_file():
        return None
    about = read_json(path.with_name("adapter_config.json"))
    rank, alpha = about.get("r"), about.get("lora_alpha")
    if not isinstance(rank, int) or rank < 1 or not isinstance(alpha, int | float):
        raise WeightsError(
            f"{path.with_name('adapter_config.json')} says r = {rank!r}, lora_alpha = {alpha!r}. "
            f"Download it again, or remove {path.parent} to draft without it."
        )
    lora: dict[str, FloatArray] = {}
    for name, tensor in tensors_in(path).items():
        found = _DRAFTED.fullmatch(name)
        if found is None:
            raise WeightsError(
                f"{path} holds {name!r}, which this Redraft does not know. "
                f"Remove {path.parent} to draft without it."
            )
        lora[f"blocks.{found[1]}.attn.o.lora_{found[2].lower()}"] = tensor.read()
    return Adapter({"scale": str(alpha / rank)}, lora, None)


def _growing(source: Source) -> ModelConfig:
    """DreamOn's canvases grow and shrink, between the text before and behind them."""
    expand = source.tokenizer.special_id(EXPAND)
    if expand is None or source.config.attention != "bidirectional":
        return source.config
    return replace(source.config, expand_token=expand, prompt_format=IN_PLACE)


# ------------------------------------------------------------------------------ a folder


def _read_folder(folder: Path, name: str | None, block: int | None) -> Source:
    config, tensors, tokenizer_file = read_hf_checkpoint(folder, name, block)
    return Source(
        config=config,
        tensors=tensors,
        tokenizer=read_tokenizer(tokenizer_file),
        digest=checkpoint_sha256(folder),
        family=family_name(folder),
        license=_license(folder),
        names=(folder.resolve().name,),
        template=_template(folder),
    )


def _template(folder: Path) -> str:
    """How conversations are written: in a file of its own, or named in tokenizer_config.json,
    alone or as the one called "default"; "" where nothing is said."""
    own = folder / CHAT_TEMPLATE
    if own.is_file():
        with explaining("read", own):
            return own.read_text(encoding="utf-8", errors="replace")
    found = read_json(folder / "tokenizer_config.json").get("chat_template")
    if isinstance(found, list):
        named = {each.get("name"): each.get("template") for each in found if isinstance(each, dict)}
        found = named.get("default")
    return found if isinstance(found, str) else ""


def _license(folder: Path) -> str:
    """As the model card states it at its top; "" where it does not."""
    card = folder / "README.md"
    if not card.is_file():
        return ""
    with explaining("read", card):
        head = card.read_text(encoding="utf-8", errors="replace")[:20_000]
    found = re.search(
        r"\A---\n(?:.*\n)*?license: *['\"]?([\w.+-]+)", head.partition("\n---")[0] + "\n"
    )
    return found[1] if found else ""


# ------------------------------------------------------------------------------ a GGUF file


def _read_gguf(path: Path, name: str | None, block: int | None) -> Source:
    file = GGUFFile(path)
    fields, tensors = read_checkpoint(path, tied=stores_tied(file))
    tokenizer = gguf_tokenizer(file)
    called = file.value("general.name")
    kind = file.text("general.architecture")
    hf = {"model_type": _GGUF_TYPES.get(kind, kind)}
    family = family_of(hf, {text: i for i, text in tokenizer.special.items()})
    fields |= conventions({}, family, block) | _vocabulary(
        path, file, tokenizer, fields, family.plain
    )
    config = ModelConfig(name=name or model_name(path.stem), **fields)
    stated = file.value("general.license")
    return Source(
        config=config,
        tensors=tensors,
        tokenizer=tokenizer,
        digest=sha256_of(path),
        family=family.name,
        license=stated if isinstance(stated, str) else "",
        names=(path.stem, called if isinstance(called, str) else ""),
        template=chat_template(file),
    )


def _vocabulary(
    path: Path, file: GGUFFile, tokenizer: Tokenizer, fields: Mapping[str, Any], plain: bool
) -> dict[str, Any]:
    size = tokenizer.size
    if size != fields["vocab"]:
        raise WeightsError(
            f"{path} has {fields['vocab']:,} rows for its {size:,} tokens. It is damaged: download "
            "it again."
        )
    if not plain:
        tokenizer.check_marks()
    mask = tokenizer.mark(MASK if tokenizer.has_mark(MASK) else END)
    first, last = text_range(tokenizer.special, size)
    return {
        "mask_token": file.integer("tokenizer.ggml.mask_token_id", mask),
        "end_token": tokenizer.mark(END),
        "prompt_format": REDRAFT_2,
        "special_tokens": first,
        "special_from": last if last < size else 0,
    }
