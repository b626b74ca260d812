"""Open weights of each kind, random ones: imported by the command, used and measured."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from redraft.server.commands.main import app
from support.weights.tiny_gguf import write_llama
from support.weights.tiny_hf import LAYOUTS, Layout, write_hf
from typer.testing import CliRunner

pytestmark = pytest.mark.usefixtures("spawn", "cache")

pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install '.[cpu]')")

SEED = ["<[end▁of▁sentence]>", "<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", "<filename>"]
OF_SEED = replace(LAYOUTS["Llama"], more=SEED)
CODE = "".join(f"def area_{i}(w, h):\n    size = w * h\n    return size\n\n\n" for i in range(12))

#: What it is called, its layout (None: a GGUF file), how it says that it serves, what it foresees.
KINDS: dict[str, tuple[Layout | None, str, tuple[str, ...]]] = {
    "qwen-tiny": (LAYOUTS["Qwen2"], "left to right, in the prompt fim-qwen", ("infill",)),
    "llama-tiny": (None, "left to right, in the prompt prefix", ("infill",)),
    "sweep-next-edit-tiny": (LAYOUTS["Qwen2"], "in the prompt sweep;", ("infill", "edits")),
    "sweep-next-edit-v2-tiny": (LAYOUTS["Qwen2"], "in the prompt sweep-v2", ("infill", "edits")),
    "zeta-2-tiny": (OF_SEED, "in the prompt zeta-2;", ("infill", "edits")),
    "zeta-2.1-tiny": (OF_SEED, "in the prompt zeta-2.1", ("infill", "edits")),
    "nemotron-tiny": (LAYOUTS["Nemotron-Labs-Diffusion"], "drafts on canvases", ("infill",)),
    "dreamon-tiny": (LAYOUTS["DreamOn"], "grows and shrinks", ("infill",)),
    "sdar-tiny": (LAYOUTS["SDAR"], "block by block", ("infill", "edits")),
    "dream-tiny": (LAYOUTS["Dream"], "whole context in every step", ("infill", "edits")),
}


@pytest.mark.parametrize("name", list(KINDS))
def test_open_weights_are_imported_used_and_measured(name: str, tmp_path: Path) -> None:
    layout, says, tasks = KINDS[name]
    path = tmp_path / name
    if layout is None:
        path = tmp_path / f"{name}.gguf"
        write_llama(path, "Q8_0")
    else:
        write_hf(path, layout)
    imported = run("model", "pull", str(path))
    assert says in " ".join(imported.split()) and name in imported
    code = tmp_path / "code" / "area.py"
    code.parent.mkdir()
    code.write_text(CODE)
    asked = ("--model", name, "--threads", "1")
    answered = run("complete", f"{code}:2:12", "--max-tokens", "8", *asked)
    assert f"{name} int8" in answered and "tokens in" in answered
    for task in tasks:
        out = tmp_path / f"{task}.jsonl"
        source = ("--files", str(code.parent)) if task == "infill" else ("--suite", "carry-on")
        run(
            "eval",
            task,
            *source,
            "--limit",
            "1",
            "--context-tokens",
            "600",
            "--out",
            str(out),
            *asked,
        )
        head, *episodes = map(json.loads, out.read_text().splitlines())
        assert head["run"]["model"].startswith(name) and len(episodes) == 1


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})
    assert done.exit_code == 0, (arguments, done.output, done.exception)
    return done.output
