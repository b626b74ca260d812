"""Prompts of edit clients as those clients write them.

The builders follow the documented formats: what is done to the text before it is sent (which line
ends are added, where markers go) is what makes an answer right or wrong to the byte.
"""

from __future__ import annotations

import re
from typing import Any


def mercury_as_cursortab(
    before: list[str], region: list[str], after: list[str], history: str = "", snippets: str = ""
) -> str:
    """Every line with its line end; ``<|cursor|>`` stands in ``region``."""

    def block(lines: list[str]) -> str:
        return "".join(f"{line}\n" for line in lines)

    return (
        f"<|recently_viewed_code_snippets|>\n{snippets}<|/recently_viewed_code_snippets|>\n\n"
        f"<|current_file_content|>\ncurrent_file_path: src/main.py\n{block(before)}"
        f"<|code_to_edit|>\n{block(region)}<|/code_to_edit|>\n{block(after)}"
        f"<|/current_file_content|>\n\n<|edit_diff_history|>\n{history}<|/edit_diff_history|>\n"
    )


def mercury_as_zed(before: str, region: str, after: str, history: str = "") -> str:
    """Each closing marker behind one added line end; the region without its last one."""
    return (
        "<|recently_viewed_code_snippets|>\n\n<|/recently_viewed_code_snippets|>\n"
        f"<|current_file_content|>\ncurrent_file_path: src/main.py\n{before}"
        f"<|code_to_edit|>\n{region}\n<|/code_to_edit|>\n{after}\n<|/current_file_content|>\n"
        f"<|edit_diff_history|>\n{history}\n<|/edit_diff_history|>\n"
    )


def mercury_body(content: str, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": content}]
    return {"model": "mercury-edit", "messages": messages, "stream": False, **fields}


def mercury_applied(content: str) -> str | None:
    """Return the new region as a Mercury client reads it, or None without an edit."""
    text = content.removeprefix("```\n").removesuffix("\n```")
    return None if text == "None" else text


def zeta2_as_zed(before: str, region: str, after: str, cursor: int, context: str = "") -> str:
    """``region`` ends before a line end, ``after`` begins with it."""
    marked = f"{region[:cursor]}<|user_cursor|>{region[cursor:]}"
    ending = "" if marked.endswith("\n") else "\n"
    tail = after if after.endswith("\n") else f"{after}\n"
    return (
        f"<[fim-suffix]>{tail}<[fim-prefix]>{context}<filename>src/main.rs\n{before}"
        f"<<<<<<< CURRENT\n{marked}{ending}=======\n<[fim-middle]>"
    )


def zeta2_applied(region: str, answer: str) -> str | None:
    """Return the region after the edit in Zed, which adds a line end to both sides."""
    if not answer:
        return None
    new = answer.removesuffix(">>>>>>> UPDATED\n")
    old = region if not region or region.endswith("\n") else f"{region}\n"
    new = new if not new or new.endswith("\n") else f"{new}\n"
    added = len(old) - len(region)
    return new[: len(new) - added] if added and new else new


def zeta21_as_zed(before: str, blocks: list[str], after: str, cursor: int) -> str:
    region, marked, at = "".join(blocks), "", 0
    for number, block in enumerate(blocks, 1):
        marked += f"<|marker_{number}|>"
        if at <= cursor <= at + len(block) and "<|user_cursor|>" not in marked:
            marked += f"{block[: cursor - at]}<|user_cursor|>{block[cursor - at :]}"
        else:
            marked += block
        at += len(block)
    marked += f"<|marker_{len(blocks) + 1}|>"
    assert marked.count("<|user_cursor|>") == 1, f"no place for the cursor in {region!r}"
    tail = after if after.endswith("\n") else f"{after}\n"
    return (
        f"<[fim-suffix]>{tail}<[fim-prefix]><filename>src/main.rs\n{before}{marked}\n<[fim-middle]>"
    )


def zeta21_applied(blocks: list[str], answer: str) -> str:
    """Return the region after the text between two markers replaced its lines."""
    offsets = [0]
    for block in blocks:
        offsets.append(offsets[-1] + len(block))
    region = "".join(blocks)
    tags = list(re.finditer(r"<\|marker_(\d+)\|>", answer))
    first, last = int(tags[0][1]), int(tags[-1][1])
    if first == last:
        return region
    text = answer[tags[0].end() : tags[-1].start()]
    return region[: offsets[first - 1]] + text + region[offsets[last - 1] :]


def zeta1_as_zed(before: str, region: str, after: str, cursor: int, events: str = "") -> str:
    marked = f"{region[:cursor]}<|user_cursor_is_here|>{region[cursor:]}"
    return (
        "### Instruction:\nYou are a code completion assistant and your task is to analyze user "
        f"edits.\n\n### User Edits:\n\n{events}\n\n### User Excerpt:\n\n```src/main.rs\n"
        f"<|start_of_file|>\n{before}<|editable_region_start|>\n{marked}\n<|editable_region_end|>"
        f"{after}\n```\n\n### Response:\n"
    )


def zeta1_applied(answer: str) -> str:
    text = answer.partition("<|editable_region_start|>\n")[2]
    return text.partition("\n<|editable_region_end|>")[0]


def sweep_as_zed(window: str, original: str = "", sections: str = "") -> str:
    def ended(text: str) -> str:
        return text if text.endswith("\n") else f"{text}\n"

    return (
        f"{sections}<|file_sep|>original/src/main.rs\n{ended(original or window)}"
        f"<|file_sep|>current/src/main.rs\n{ended(window)}<|file_sep|>updated/src/main.rs\n"
    )


def sweep_as_cursortab(file: list[str], first: int, last: int, row: int, column: int) -> str:
    """Lines [first, last) are the window; the new window is written up to the cursor's line."""
    window = file[first:last]
    marked = list(window)
    line = marked[row - first]
    marked[row - first] = f"{line[:column]}<|cursor|>{line[column:]}"
    span = f"src/main.py:{first + 1}:{last}"
    written = "".join(f"{one}\n" for one in window[: row - first])
    return (
        "<|file_sep|>src/main.py\n" + "\n".join(file) + "\n"
        f"<|file_sep|>original/{span}\n" + "\n".join(window) + "\n"
        f"<|file_sep|>current/{span}\n" + "\n".join(marked) + "\n"
        f"<|file_sep|>updated/{span}\n{written}"
    )


#: As llama.vim writes it.
VIM: dict[str, Any] = {
    "id_slot": 0,
    "input_prefix": "import os\n",
    "input_suffix": ")\nprint(x)\n",
    "input_extra": [
        {"text": "def a():\n    pass\n", "time": [1, 2], "filename": "old.py"},
        {"text": "def b():\n    pass\n", "time": [3, 4], "filename": "new.py"},
    ],
    "prompt": "x = f(",
    "n_predict": 128,
    "stop": ["\n\n"],
    "n_indent": 0,
    "top_k": 40,
    "top_p": 0.99,
    "stream": False,
    "samplers": ["top_k", "top_p", "infill"],
    "cache_prompt": True,
    "t_max_prompt_ms": 500,
    "t_max_predict_ms": 1000,
    "response_fields": [
        "content",
        *(
            f"timings/{part}_{figure}"
            for part in ("prompt", "predicted")
            for figure in ("n", "ms", "per_token_ms", "per_second")
        ),
        *("truncated", "tokens_cached", "no_such_field"),
    ],
}
