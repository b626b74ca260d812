"""Calls to which a change of an argument is carried on, in files that are not open too.

A call is a place for certain if it no longer fits the definition, or if the user has changed two
calls alike by hand. What is unclear is left to the model, place by place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from redraft.model.records import RecentEdit
from redraft.model.rules.arity import Argument, Call, Signature, calls, signatures
from redraft.model.rules.series import ArgumentChange, argument_changes

from .code_file import CodeFile, UnclearUse
from .whole_rename import FileRename, WholeRename, WorkspaceFiles, mentioning


def find_series(
    edits: Sequence[RecentEdit], own: CodeFile, files: WorkspaceFiles
) -> Iterator[WholeRename]:
    """Yield the changes of arguments that fit other calls word for word, the newest first.

    Args:
        edits: oldest first.
        own: the document that the user is in.
    """
    for change in argument_changes(edits, own.path, own.language):
        if change.text and not change.is_portable:
            continue
        try:
            signature = _signature(change.function, own, files)
            if signature is None:
                continue
            sources = (own, *mentioning(own, files, change.function, change.function))
            changed = [_changed(each, change, signature) for each in sources]
        except UnclearUse:
            continue
        made = tuple(each for each in changed if each.spans)
        row = next(at for at, line in enumerate(own.text.split("\n")) if line == change.line)
        at = own.text.find("\n" * bool(row) + change.line) + bool(row)
        at = own.text.index(change.function, at)
        if made:
            yield WholeRename("", "", at, made, change.label)


def _signature(name: str, own: CodeFile, files: WorkspaceFiles) -> Signature | None:
    """Return the signature of the only function of a name, None if there are several or none."""
    found = signatures(own.syntax, name)
    defined = {each.path for each in files.index.places(name, own.language)} - {own.path}
    for path in defined:
        source = files.source(path)
        found += signatures(source.syntax, name) if source is not None else []
    return found[0] if len(found) == 1 else None


def _changed(source: CodeFile, change: ArgumentChange, signature: Signature) -> FileRename:
    spans = []
    for call in calls(source.syntax, signature):
        objection = call.objection(signature)
        if not change.text:
            span = _without(call, change, objection)
        elif _lacks(call, change, signature, objection):
            span = _with(source.text, call, change)
        else:
            span = None
        if span is not None:
            spans.append(span)
    return FileRename(source, tuple(spans))


def _lacks(call: Call, change: ArgumentChange, signature: Signature, objection: str) -> bool:
    """Return whether a call needs the argument that was added at another one."""
    by_place = [each for each in call.arguments if not each.name]
    if change.name and any(each.name == change.name for each in call.arguments):
        return False
    if not change.name and len(by_place) != change.index:
        return False
    if change.times > 1:
        return True
    parameter = change.name or _parameter_at(signature, change.index)
    return bool(parameter) and objection == f'Argument missing for parameter "{parameter}"'


def _parameter_at(signature: Signature, index: int) -> str:
    in_order = [each.name for each in signature.parameters if not each.by_name_only]
    return in_order[index] if index < len(in_order) else ""


def _with(text: str, call: Call, change: ArgumentChange) -> tuple[int, int, str]:
    """Return the span that adds the argument to a call, on a new line if the others are."""
    if change.index < len(call.arguments) and not change.name:
        at = call.arguments[change.index].start
        return at, at, f"{change.text}, "
    if not call.arguments:
        return call.opens, call.opens, change.text
    last = call.arguments[-1]
    begin = text.rfind("\n", 0, last.start) + 1
    indent = text[begin : last.start]
    is_alone = begin > call.opens and not indent.strip()
    return last.end, last.end, f",\n{indent}{change.text}" if is_alone else f", {change.text}"


def _without(call: Call, change: ArgumentChange, objection: str) -> tuple[int, int, str] | None:
    """Return the span that takes the dropped parameter's argument out of a call, None without."""
    given = list(call.arguments)
    at = next((i for i, each in enumerate(given) if change.name and each.name == change.name), -1)
    by_place = sum(1 for each in given if not each.name)
    if at < 0 and objection.startswith("Expected") and change.index < by_place:
        at = change.index
    if at < 0 or not objection:
        return None
    return _span_of(given, at)


def _span_of(given: Sequence[Argument], at: int) -> tuple[int, int, str]:
    if at + 1 < len(given):
        return given[at].start, given[at + 1].start, ""
    start = given[at - 1].end if at else given[at].start
    return start, given[at].end, ""
