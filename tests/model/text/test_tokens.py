"""Text to tokens and back, and the marks no text can forge."""

from __future__ import annotations

from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from redraft.model.errors import WeightsError
from redraft.model.prompts.tokenizer import END, MARKS, MASK, Tokenizer, find_unfinished_word
from redraft.model.weights.vocabularies import build_bpe
from support.models.tiny import tiny_tokenizer

TOKENIZER = tiny_tokenizer()


@given(st.text())
def test_text_survives_encoding_and_decoding(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


@given(st.text(alphabet=st.characters(min_codepoint=0xD7F0, max_codepoint=0xE010)))
def test_lone_surrogates_are_replaced_not_fatal(text: str) -> None:
    decoded = TOKENIZER.decode(TOKENIZER.encode(text))
    assert not any("\ud800" <= char <= "\udfff" for char in decoded)


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_in_ordinary_text_is_only_text(mark: str) -> None:
    ids = TOKENIZER.encode(f"a {mark} b")
    assert TOKENIZER.mark(mark) not in ids
    assert TOKENIZER.decode(ids) == f"a {mark} b"


def test_special_tokens_decode_to_nothing() -> None:
    assert (
        TOKENIZER.decode([TOKENIZER.mark(END), *TOKENIZER.encode("x"), TOKENIZER.mark(MASK)]) == "x"
    )


def test_digits_are_single_tokens() -> None:
    assert len(TOKENIZER.encode("1234")) == 4


def test_saved_tokenizer_encodes_the_same(tmp_path: Path) -> None:
    TOKENIZER.save(tmp_path / "tokenizer.json")
    again = Tokenizer.from_file(tmp_path / "tokenizer.json")
    text = "def foo():\n    return <|endoftext|> é日"
    assert again.encode(text) == TOKENIZER.encode(text)
    assert again.vocab_bytes == TOKENIZER.vocab_bytes


def test_damaged_tokenizer_file_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text('{"version": "1.0", "trunc')
    with pytest.raises(WeightsError, match="redraft model pull"):
        Tokenizer.from_file(path)


def test_tokenizer_of_another_model_is_refused() -> None:
    with pytest.raises(WeightsError, match="another model"):
        Tokenizer(build_bpe({"a": 0}, [], {}), {})


@pytest.mark.parametrize(
    ("text", "held_back"),
    [
        ("x = ge", " ge"),
        ("foo(", ""),
        ("get_us", "us"),
        ("a = ", " "),
        ("    ", " "),
        ("x12", ""),
        ("line\n", ""),
        ("", ""),
        ("naïve", "naïve"),
    ],
)
def test_holds_back_only_what_may_still_grow(text: str, held_back: str) -> None:
    assert find_unfinished_word(text) == held_back


def test_a_stored_tokenizer_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_tokenizer().save(tmp_path / "tokenizer.json")
    parsed: list[str] = []
    original = tokenizers.Tokenizer

    class Counting:
        """Library class that counts what it parses: a real vocabulary takes 0.2 s."""

        @staticmethod
        def from_file(path: str) -> tokenizers.Tokenizer:
            parsed.append("file")
            return original.from_file(path)

        @staticmethod
        def from_str(text: str) -> tokenizers.Tokenizer:
            parsed.append("text")
            return original.from_str(text)

    monkeypatch.setattr(tokenizers, "Tokenizer", Counting)
    assert Tokenizer.from_file(tmp_path / "tokenizer.json").encode("x")
    assert parsed == ["file"]
