"""The real 0.5B base from the network; only where REDRAFT_TEST_PULL=1 asks for its 491 MB."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from redraft.model.errors import WeightsError
from redraft.model.prompts.tokenizer import Tokenizer
from redraft.model.weights.catalog import DEFAULT_MODEL, info
from redraft.model.weights.store import pull

pytestmark = pytest.mark.skipif(
    os.environ.get("REDRAFT_TEST_PULL") != "1", reason="REDRAFT_TEST_PULL=1 pulls 491 MB"
)


@pytest.mark.timeout(1_800)
def test_the_base_is_made_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_CACHE_DIR", str(tmp_path))
    try:
        folder = pull(DEFAULT_MODEL)
    except WeightsError as error:
        pytest.skip(str(error))
    tokenizer = Tokenizer.from_file(folder / "tokenizer.json")
    config = info(DEFAULT_MODEL).config
    assert tokenizer.size == config.vocab
    assert tokenizer.special[config.end_token] == "<|endoftext|>"
    assert tokenizer.special[151_661] == "<|fim_suffix|>"
    for text in ("def f(x):\n    return 12\n", "größe = '日本' # 👩‍👩‍👧"):
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert (folder / "chat_template.jinja").read_text("utf-8").startswith("{%- if tools %}")
