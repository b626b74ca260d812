"""Open weights of every family: what is read, and that it computes what its publisher's does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redraft.model.huggingface import read_hf_checkpoint
from redraft.model.tokens import END, MASK, Tokenizer
from tiny_hf import LAYOUTS, Layout, reference_logits, write_hf


class Published:
    """A folder of one family and the reference its weights came from."""

    def __init__(self, folder: Path, layout: Layout, shards: int = 1) -> None:
        self.folder, self.layout = folder, layout
        self.model: Any = write_hf(folder, layout, shards=shards)


@pytest.fixture(scope="module", params=list(LAYOUTS))
def published(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    name = "x-bd3lm" if request.param == "Tiny-A2D by blocks" else "x"
    return Published(tmp_path_factory.mktemp("hf") / name, LAYOUTS[request.param])


def test_conventions_come_from_the_family(published: Published) -> None:
    layout = published.layout
    config, tensors, path = read_hf_checkpoint(published.folder)
    tokenizer = Tokenizer.from_file(path)
    assert (config.attention, config.block) == (layout.attention, layout.block)
    assert config.logit_shift == layout.shift
    assert config.adapter == "none"
    assert config.vocab == tokenizer.size == len(tensors["embed.weight"])
    assert tokenizer.special[config.end_token] == "<|endoftext|>"
    assert tokenizer.special[config.mask_token] == (layout.mask or "<|fim_pad|>")
    assert config.mask_token == tokenizer.mark(MASK)
    assert config.end_token == tokenizer.mark(END)
    assert set(config.text_ids) == set(range(tokenizer.size)) - set(tokenizer.special)
    assert ("head.weight" in tensors) is not layout.tied
