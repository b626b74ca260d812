"""Variables that calls pass although nothing in sight defines them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from ..text.scopes import Bindings
from ..text.syntax import SCRIPTS, Syntax
from .modules import builtin_names
from .rule_edits import line_starts

#: Languages whose files say where each name comes from. In Go another file of the package may
#: define it: 0.97 % of the edits of train-commits would be refused.
LANGUAGES = frozenset(("python", "rust", *SCRIPTS))
_ARGUMENT = re.compile(r"[(,=]\s*([^\W\d_]\w*)\s*(?=[,)])")
#: What may define any name: imports of all that a module has, and code that is made at runtime.
_OPEN = {
    "python": re.compile(r"\bimport\s*\(?\s*\*|\b(?:exec|globals|locals|vars)\("),
    "rust": re.compile(r"::\s*\*|[{,]\s*\*\s*[,}]|\bmacro_rules!"),
}
_OPEN_SCRIPT = re.compile(r"\beval\(|\bwith\s*\(|/[/*]\s*global\b|\bdeclare\s+global\b")
_IS_MODULE = re.compile(r"^\s*(?:import|export)\b|\brequire\(", re.MULTILINE)
_CALLS = ("call", "call_expression", "new_expression")


def arguments_in(text: str, language: str) -> set[str]:
    """Return the names that a text may pass in calls, without those that the language defines.

    Names with a capital are left out: an edit may use a class or a constant before its import.
    """
    found = {name for name in _ARGUMENT.findall(text) if not name[0].isupper()}
    return found - builtin_names(language)


def find_unknown_argument(syntax: Syntax, names: Collection[str], span: tuple[int, int]) -> str:
    """Return a name that calls pass and nothing defines, "" without one.

    A name that the file uses otherwise without a binding counts as defined.

    Args:
        names: that may be unknown.
        span: the part of the text with the calls.
    """
    passed_at = {name: {*_passed(syntax, name, span)} for name in sorted(names)}
    if not any(passed_at.values()) or _defines_any(syntax):
        return ""
    starts = line_starts(syntax.text)
    for name, passed in passed_at.items():
        if not passed:
            continue
        places = Bindings(syntax, name).occurrences
        uses = {
            starts[one.line] + one.column
            for one in places
            if one.scope is None and one.role in ("use", "shorthand")
        }
        # The body of a class of Python sees its other fields, and Bindings does not say where.
        is_field = syntax.language == "python" and any(
            syntax.text[starts[one.line] + one.column - 1 :][:1] != "."
            for one in places
            if one.role == "field"
        )
        if uses == passed and not is_field:
            return name
    return ""


def _passed(syntax: Syntax, name: str, span: tuple[int, int]) -> Iterator[int]:
    """Yield the places in a span at which a call passes a name."""
    for leaf in syntax.leaves_named(name):
        at = syntax.char_of(leaf.start_byte)
        is_name = span[0] <= at < span[1] and leaf.type == "identifier"
        above = leaf.parent if is_name else None
        if above is not None and above.type == "keyword_argument":
            above = above.parent if above.child_by_field_name("value") == leaf else None
        call = above.parent if above is not None else None
        is_list = call is not None and call.child_by_field_name("arguments") == above
        if call is not None and is_list and call.type in _CALLS:
            yield at


def _defines_any(syntax: Syntax) -> bool:
    """Return whether a file may use names of which it does not say where they come from."""
    if syntax.tree.root_node.has_error:
        return True
    if syntax.language not in SCRIPTS:
        return _OPEN[syntax.language].search(syntax.text) is not None
    is_module = _IS_MODULE.search(syntax.text) is not None
    return not is_module or _OPEN_SCRIPT.search(syntax.text) is not None
