"""Whole renames as edits of the workspace, in the protocol's terms."""

from __future__ import annotations

from typing import Any

from ..documents.positions import Position, Range, units
from ..renames.whole_rename import FileRename, WholeRename


def workspace_edit(rename: WholeRename) -> dict[str, Any]:
    """Return a whole rename as an edit that names the version of each open document."""
    return {"documentChanges": [_text_document_edit(each) for each in rename.files]}


def _text_document_edit(file: FileRename) -> dict[str, Any]:
    source, edits = file.source, list[dict[str, Any]]()
    for start, end, text in file.spans:
        range_ = Range(_position(source.text, start), _position(source.text, end))
        edits.append({"range": range_.as_json(), "newText": text})
    identifier = {"uri": source.uri, "version": source.version}
    return {"textDocument": identifier, "edits": edits}


def _position(text: str, index: int) -> Position:
    line_start = text.rfind("\n", 0, index) + 1
    return Position(text.count("\n", 0, index), units(text[line_start:index]))
