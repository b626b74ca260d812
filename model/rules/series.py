"""Arguments that the user added at a call or dropped from a definition, to be carried on.

They are read from the lines of the recent edits. Where the same change fits all other calls word
for word, no model is needed. A call that lacks the argument of a new parameter gets the variable of
its name, if there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..edits.edit import Edit
from ..records import RecentEdit
from ..text.lines import defines, is_comment
from ..text.scopes import Bindings
from ..text.syntax import Syntax, language_of, parse, parse_cached
from .arity import Argument, Call, Parameter, Signature, calls, means, signatures, with_argument
from .rule_edits import MOST_EDITS, RuleEdit, changes_in, line_starts, pairs_of
from .touched_names import call_changes

_STRING = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`")
_CALLED = re.compile(r"([^\W\d]\w*)\s*\(")
_KEYWORD = re.compile(r"([^\W\d]\w*)\s*=(?!=)")
_NAME = re.compile(r"[^\W\d]\w*")
_VARIABLE = re.compile(r"(?<![\w.])[^\W\d]\w*|(?<=\.\.)[^\W\d]\w*")
_PREFIXED = re.compile(r"[\w$]\"")  # a string such as f"…"
_CONSTANTS = frozenset(("True", "False", "None", "true", "false", "null", "nil", "undefined"))
_SELF = re.compile(r"&?(?:mut\s+)?(?:self|cls)\b")
#: In train-commits 41 of 68 such edits are lines of the final text as they are; 54 of the calls get
#: the variable, some beside other changes.
_CHANCE = 0.6
_ASSIGNMENTS = ("assignment", "variable_declarator", "short_var_declaration", "let_declaration")
#: Languages that write the type of a parameter before its name.
_TYPE_FIRST = frozenset(("java", "c", "cpp", "csharp"))


@dataclass(frozen=True, slots=True)
class ArgumentChange:
    """Argument that was added at calls of a function, or parameter dropped from its definition."""

    function: str
    line: str  # of the newest of the edits, as it is now
    index: int  # among the arguments
    text: str = ""  # of the argument that was added; "": one was dropped
    name: str = ""  # of its keyword, or of the parameter; "" for an argument by place
    times: int = 1  # how many of the edits made it

    @property
    def variables(self) -> frozenset[str]:
        """The names by which the argument depends on its place; none if it is made of literals.

        Pieces of an interpolated string count as names that nothing binds.
        """
        value = self.text[self.text.index("=") + 1 :] if self.name else self.text
        bare = _STRING.sub('""', value)
        if "`" in value or _PREFIXED.search(bare):
            return frozenset(("{",))
        return frozenset(_VARIABLE.findall(bare)) - _CONSTANTS

    @property
    def label(self) -> str:
        """The sentence that the user sees, without the number of places."""
        what = f"add `{self.text}` to" if self.text else f"drop `{self.name}` of"
        return f"{what} `{self.function}`"


def argument_changes(edits: Sequence[RecentEdit], path: str, language: str) -> list[ArgumentChange]:
    """Return the changes that edits of a file made, the newest first.

    Args:
        edits: oldest first.
        language: LSP id.
    """
    found: dict[tuple[str, int, str, str], ArgumentChange] = {}
    rows = dict[tuple[str, int, str, str], int]()  # of the newest edit that made the change
    for edit in reversed([each for each in edits if each.path == path][-MOST_EDITS:]):
        for old, new in pairs_of([edit]):
            for change in _changes(old, new, language):
                key = change.function, change.index, change.text, change.name
                known = found.get(key)
                if known is None:
                    found[key], rows[key] = change, edit.line
                elif known.line != change.line or rows[key] != edit.line:
                    found[key] = replace(known, times=known.times + 1)
    return list(found.values())


def _changes(old: str, new: str, language: str) -> Iterator[ArgumentChange]:
    """Yield the changes of one line that became another.

    The calls of a name are compared in their order; if their number changed, none is.
    """
    if is_comment(new, language):
        return
    earlier, later = (
        {name: [one for one in found if one[1] == name] for name in {one[1] for one in found}}
        for found in ([*_CALLED.finditer(_blank(line))] for line in (old, new))
    )
    both = (
        pair
        for name, calls in later.items()
        if len(calls) == len(earlier.get(name, ()))
        for pair in zip(earlier[name], calls, strict=True)
    )
    for before, match in sorted(both, key=lambda pair: pair[1].start()):
        name = match[1]
        had, has = _arguments(old, before.end()), _arguments(new, match.end())
        if had is None or has is None or abs(len(had) - len(has)) != 1:
            continue
        longer, shorter = (has, had) if len(has) > len(had) else (had, has)
        index = next((i for i, each in enumerate(shorter) if each != longer[i]), len(shorter))
        if longer[:index] + longer[index + 1 :] != shorter:
            continue
        text, is_definition = longer[index], defines(new, name)
        if is_definition and longer is had and not _SELF.match(text):
            by = int(bool(had) and _SELF.match(had[0]) is not None)
            yield ArgumentChange(name, new, index - by, name=_parameter(text, language))
        elif not is_definition and longer is has:
            label = _KEYWORD.match(text)
            yield ArgumentChange(name, new, index, text, label[1] if label else "")


def _blank(line: str) -> str:
    """Return a line with its strings blanked, as long as before."""
    return _STRING.sub(lambda match: "_" * len(match[0]), line)


def _arguments(line: str, opens: int) -> list[str] | None:
    """Return what stands between a bracket and its partner, cut at commas; None without one."""
    blank, depth, begin = _blank(line), 0, opens
    found: list[str] = []
    for at in range(opens, len(line)):
        char = blank[at]
        if char in "([{":
            depth += 1
        elif char in ")]}" and depth:
            depth -= 1
        elif (char == "," or char == ")") and not depth:
            found.append(line[begin:at].strip())
            begin = at + 1
            if char == ")":
                return found[:-1] if not found[-1] else found
    return None


def _parameter(text: str, language: str) -> str:
    names: list[str] = _NAME.findall(re.split(r"[:=?]", text, maxsplit=1)[0])
    if not names:
        return ""
    return names[-1] if language in _TYPE_FIRST else names[0]


# --- parameters that were added ------------------------------------------------------------------


def new_arguments(
    edits: Sequence[RecentEdit], path: str, text: str, language: str
) -> Iterator[RuleEdit]:
    """Yield the arguments that new parameters need at calls whose function binds their names.

    Args:
        edits: oldest first; those of other files may have changed functions that this one calls.
        language: LSP id.
    """
    for edit in edits[-MOST_EDITS:]:
        for change in call_changes([edit]):
            added = change.added if change.is_defined and change.name in text else ()
            syntax = parse_cached(text, language) if added else None
            source = syntax if edit.path == path else _source_of(edit, change.name)
            found = signatures(source, change.name) if syntax is not None and source else []
            if syntax is None or len(found) != 1 or not means(syntax, path, found[0], edit.path):
                continue
            for one in found[0].parameters:
                if one.name in added and not one.is_optional:
                    yield from _given(syntax, found[0], one)


def _source_of(edit: RecentEdit, name: str) -> Syntax | None:
    """Return the lines around an edit of a function, None without its definition."""
    hunks = (new for _, new in changes_in(edit.diff) if any(defines(one, name) for one in new))
    lines = next(hunks, None)
    return parse("\n".join(lines), language_of(edit.path) or "") if lines else None


def _given(syntax: Syntax, signature: Signature, new: Parameter) -> Iterator[RuleEdit]:
    """Yield the calls with the variable that has the name of a new parameter."""
    found = [*calls(syntax, signature)]
    is_named = any(each.name == new.name for call in found for each in call.arguments)
    in_order = [one.name for one in signature.parameters if not one.by_name_only]
    for call in found:
        by_place = sum(1 for each in call.arguments if not each.name)
        by_name = new.by_name_only or is_named or in_order.index(new.name) > by_place
        label = new.name if by_name else ""
        after = replace(call, arguments=(*call.arguments, Argument(0, 0, label)))
        is_mended = call.objection(signature) and not after.objection(signature)
        is_call = syntax.language == "go" and syntax.text[call.end - 2] == ")"  # of several values
        is_unclear = is_call or call.has_comments or (by_name and syntax.language != "python")
        is_passed = any(syntax.text[each.start : each.end] == new.name for each in call.arguments)
        if is_passed or not is_mended or is_unclear or not _is_bound(syntax, new.name, call):
            continue
        value = f"{label}={new.name}" if label else new.name
        index = None if by_name else in_order.index(new.name)
        edit = Edit(syntax.text, *with_argument(syntax.text, call, value, index))
        yield RuleEdit.of(edit, "argument", _CHANCE)


def _is_bound(syntax: Syntax, name: str, call: Call) -> bool:
    """Return whether a function around a call has bound a name above it."""
    root, at = syntax.tree.root_node, syntax.byte_of(call.at)
    starts = line_starts(syntax.text)
    for one in Bindings(syntax, name).occurrences:
        scope = one.scope
        if one.role != "binding" or scope is None or scope == (root.start_byte, root.end_byte):
            continue
        if not scope[0] <= at < scope[1] or one.line >= call.line:
            continue
        node = syntax.node_at(starts[one.line] + one.column)
        while node is not None and node.end_byte <= at:
            node = node.parent
        if node is not None and node.type not in _ASSIGNMENTS:  # the call is not its value
            return True
    return False
