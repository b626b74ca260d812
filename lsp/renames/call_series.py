"""Calls to which a change of an argument is carried on, in files that are not open too.

A call is a place for certain if it no longer fits the definition, or if the user has changed two
calls alike by hand. An argument that names constants of a file is carried on in that file. What is
unclear is left to the model, place by place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from redraft.model.records import RecentEdit
from redraft.model.rules.arity import Call, Signature, calls, means, signatures, with_argument
from redraft.model.rules.series import ArgumentChange, argument_changes
from redraft.model.text.scopes import NAMED
from redraft.model.text.syntax import parse

from .code_file import CodeFile, UnclearUse
from .whole_rename import FileRename, WholeRename, WorkspaceFiles, find_mentioning

#: Arguments that may have an effect: dropping them changes more than the call.
_DOES = re.compile(r"[(`!]|:=|\+\+|--|\b(?:await|yield)\b")

#: Nodes that define a constant or type, besides those of :data:`NAMED`.
_FIXED = ("const_spec", "const_item", "type_spec")
_QUOTES = re.compile(r"[\"'`\\{}]")  # what may end the string around a call


def find_series(
    edits: Sequence[RecentEdit], own: CodeFile, files: WorkspaceFiles
) -> Iterator[WholeRename]:
    """Yield the changes of arguments that fit other calls word for word, the newest first.

    Args:
        edits: oldest first.
        own: the document that the user is in.
    """
    for change in argument_changes(edits, own.path, own.language):
        at = own.text.find(change.line)
        if at < 0:
            continue
        names = change.variables if change.text else frozenset[str]()
        try:
            known_from = max((_constant_from(name, own) for name in names), default=0)
            home, signature = _definition(change.function, own, files)
            others = () if names else find_mentioning(own, files, change.function, change.function)
            sources = (own, *others)
            changed = [_changed(each, change, signature, home) for each in sources]
        except UnclearUse:
            continue
        made = tuple(each for each in changed if each.spans)
        if made and all(span[0] > known_from for each in made for span in each.spans):
            at = own.text.index(change.function, at)
            yield WholeRename("", "", at, made, change.label)


def _constant_from(name: str, own: CodeFile) -> int:
    """Return the index from which on a name means the same everywhere in a file.

    Raises:
        UnclearUse: it may not: it is no constant, type, function or import of the whole file.
    """
    bound = [each for each in own.occurrences(name) if each.role in ("binding", "import")]
    if len(bound) == 1 and bound[0].scope == own.whole:
        above = own.node(bound[0]).parent
        is_fixed = above is not None and above.type in (*NAMED, *_FIXED)
        if is_fixed or name.isupper() or bound[0].role == "import":
            return own.index(bound[0])
    if not bound and own.language == "go":
        return 0  # a name of the package
    raise UnclearUse(f"{name} may not be the same at each call")


def _definition(name: str, own: CodeFile, files: WorkspaceFiles) -> tuple[CodeFile, Signature]:
    """Return the file and the signature of the only function of a name.

    Raises:
        UnclearUse: there are several, or none.
    """
    known = {each.path for each in files.index.places(name, own.language)} - {own.path}
    sources = [own, *(each for path in known if (each := files.source(path)) is not None)]
    found = [(each, one) for each in sources for one in signatures(each.syntax, name)]
    if len(found) != 1:
        raise UnclearUse(f"{len(found)} functions are called {name}")
    return found[0]


def _changed(
    source: CodeFile, change: ArgumentChange, signature: Signature, home: CodeFile
) -> FileRename:
    """Return the calls of one file with the change.

    Raises:
        UnclearUse: a call cannot be changed for certain.
    """
    if not means(source.syntax, source.path, signature, home.path):
        if source.path == home.path:
            raise UnclearUse(f"{source.path} binds {change.function} again")
        return FileRename(source, ())
    spans = list[tuple[int, int, str]]()
    end = 0
    for call in calls(source.syntax, signature):
        span = _span(source, call, change, signature)
        if span is None:
            continue
        is_quoted = call.is_in_string and _QUOTES.search(change.text) is not None
        if call.has_comments or is_quoted or call.at < end:
            raise UnclearUse(f"line {call.line + 1} has comments, a string or a call within a call")
        spans.append(span)
        end = call.end
    made = FileRename(source, tuple(spans))
    after = parse(made.result, source.language) if spans else None
    if after is not None and after.tree.root_node.has_error:
        raise UnclearUse(f"{source.path} would have errors")
    return made


def _span(
    source: CodeFile, call: Call, change: ArgumentChange, signature: Signature
) -> tuple[int, int, str] | None:
    """Return what of a call becomes what, None if it stays."""
    if not change.text:
        return _without(source.text, call, change, signature)
    objection = call.objection(signature)
    given = call.arguments
    if source.language == "go" and len(given) == 1 and source.text[given[0].end - 1] == ")":
        return None  # a call may give several values
    if not _lacks(call, change, signature, objection):
        return None
    return with_argument(source.text, call, change.text, None if change.name else change.index)


def _lacks(call: Call, change: ArgumentChange, signature: Signature, objection: str) -> bool:
    """Return whether a call needs the argument that was added at another one."""
    by_place = [each for each in call.arguments if not each.name]
    if change.name and any(each.name == change.name for each in call.arguments):
        return False
    if not change.name and (len(by_place) != change.index or len(by_place) < len(call.arguments)):
        return False
    if change.times > 1:
        return True
    parameter = change.name or _parameter_at(signature, change.index)
    return bool(parameter) and objection == f'Argument missing for parameter "{parameter}"'


def _parameter_at(signature: Signature, index: int) -> str:
    in_order = [each.name for each in signature.parameters if not each.by_name_only]
    return in_order[index] if index < len(in_order) else ""


def _without(
    text: str, call: Call, change: ArgumentChange, signature: Signature
) -> tuple[int, int, str] | None:
    """Return the span that takes the dropped parameter's argument out of a call, None without."""
    given, objection = list(call.arguments), call.objection(signature)
    at = next((i for i, each in enumerate(given) if change.name and each.name == change.name), -1)
    by_place = sum(1 for each in given if not each.name)
    if at < 0 and objection.startswith("Expected") and change.index < by_place:
        at = change.index
    later = [each for each in signature.parameters if not each.by_name_only][change.index :]
    if not objection and by_place > change.index and any(each.is_optional for each in later):
        raise UnclearUse(f"line {call.line + 1} may give the argument of the next parameter")
    if at < 0 or not objection:
        return None
    if _DOES.search(text, given[at].start, given[at].end):
        raise UnclearUse(f"the argument of line {call.line + 1} may do something")
    if len(given) == 1:
        return call.opens, call.end - 1, ""
    if at + 1 < len(given):
        return given[at].start, given[at + 1].start, ""
    return given[at - 1].end, given[at].end, ""
