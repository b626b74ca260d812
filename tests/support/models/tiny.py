"""A tokenizer and a model shape small enough to make in a millisecond."""

from __future__ import annotations

from collections.abc import Iterable

from redraft.model.config import ModelConfig
from redraft.model.prompts.format import Prompt
from redraft.model.prompts.registry import format_of
from redraft.model.prompts.tokenizer import Tokenizer, byte_alphabet
from redraft.model.records import EditRequest
from redraft.model.weights.vocabularies import build_bpe

_SPECIAL_NAMES = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<reponame>", "<file_sep>",
    "<filename>", "<gh_stars>", "<issue_start>", "<issue_comment>", "<issue_closed>",
    "<jupyter_start>", "<jupyter_text>", "<jupyter_code>", "<jupyter_output>",
    "<jupyter_script>", "<empty_output>",
]  # fmt: skip
_MERGES = ["Ġ Ġ", "ĠĠ Ġ", "Ċ ĠĠĠ", "r e", "re t", "ret u", "retu r", "retur n", "Ġ return", "d e",
           "de f", "( )", "() :", "Ġ x", "f o", "fo o", "Ġ foo"]  # fmt: skip


def tiny_tokenizer() -> Tokenizer:
    """Bytes, a handful of merges and the real special tokens with their real ids."""
    merged = [merge.replace(" ", "") for merge in _MERGES]
    tokens = [*_SPECIAL_NAMES, *byte_alphabet(), *merged]
    special = dict(enumerate(_SPECIAL_NAMES))
    merges = [tuple(merge.split(" ")) for merge in _MERGES]
    vocab = {token: i for i, token in enumerate(tokens)}
    return Tokenizer(build_bpe(vocab, merges, special), special)


def byte_tokenizer(names: Iterable[str]) -> Tokenizer:
    """Return a tokenizer of single bytes with these special tokens."""
    vocab = {char: i for i, char in enumerate(byte_alphabet())}
    special = dict(enumerate(names, len(vocab)))
    return Tokenizer(build_bpe(vocab | {n: i for i, n in special.items()}, [], special), special)


def rendered(
    request: EditRequest, tokenizer: Tokenizer, config: ModelConfig, budget: int
) -> Prompt:
    """Return the prompt of ``request`` in the format of ``config``."""
    prompt = format_of(config.prompt_format).render(request, tokenizer, config, budget)
    assert isinstance(prompt, Prompt), prompt
    return prompt


def tiny_config(**changes: object) -> ModelConfig:
    """Two layers of the real architecture over the tiny tokenizer's vocabulary."""
    shape: dict[str, object] = {
        "name": "tiny", "vocab": tiny_tokenizer().size, "hidden": 48, "layers": 2, "heads": 6,
        "kv_heads": 2, "head_dim": 8, "intermediate": 64, "max_positions": 512, "canvas_width": 8,
        "verifier": "ar", "draft_after": 4_096,
    }  # fmt: skip
    return ModelConfig(**{**shape, **changes})  # type: ignore[arg-type]
