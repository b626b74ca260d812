"""Expressions with a newer form: ``"%s!" % name`` is ``f"{name}!"``, ``a && a.b`` is ``a?.b``.

Each form is read piece by piece, so places with other texts and other numbers of parts follow too.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tree_sitter import Node

from ...text.syntax import SCRIPTS, Syntax

_MOST_PARTS = 20
_UNFIT = re.compile(r"[`\n]|//|/\*")  # in a template literal
_QUOTE = "\"'"
_PLACEHOLDER = re.compile(r"%(?:%|([sdr])|(\.\d+f))|%")
_BRACES = re.compile(r"\{\{|\}\}|\{(!r|:[\w.,<>^+]+)?\}|[{}]")


def find_newer_form(syntax: Syntax, node: Node) -> tuple[str, str] | None:
    """Return the form of an expression and what it becomes, None if no form is known."""
    if not node.has_error:
        for form in _FORMS.get((syntax.language, node.type), ()):
            text = form(syntax, node)
            if text is not None:
                return form.__name__, text
    return None


def _percent(syntax: Syntax, node: Node) -> str | None:
    """Return ``"%s" % a`` of Python as an f-string."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    sign = node.child_by_field_name("operator")
    if left is None or right is None or sign is None or syntax.text_of(sign) != "%":
        return None
    if right.type == "dictionary":
        return None
    values = right.named_children if right.type == "tuple" else [right]
    if any(each.type in ("comment", "list_splat") for each in values):
        return None

    def part(match: re.Match[str]) -> str | None:
        if match[0] == "%%":
            return "%"
        if match[0] == "%":
            return None
        return {"s": "", "d": "", "r": "!r"}[match[1]] if match[1] else f":{match[2]}"

    return _f_string(syntax, left, values, _PLACEHOLDER, part, ("%%", "%"))


def _format(syntax: Syntax, node: Node) -> str | None:
    """Return ``"{}".format(a)`` of Python as an f-string."""
    called, given = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if called is None or given is None or called.type != "attribute":
        return None
    text, name = called.child_by_field_name("object"), called.child_by_field_name("attribute")
    if text is None or name is None or syntax.text_of(name) != "format":
        return None
    values = given.named_children
    if any(each.type in ("comment", "keyword_argument") or "splat" in each.type for each in values):
        return None

    def part(match: re.Match[str]) -> str | None:
        if match[0] in ("{{", "}}"):
            return match[0]
        return None if match[0] in ("{", "}") else match[1] or ""

    return _f_string(syntax, text, values, _BRACES, part, ("{{", "}}"))


def _f_string(
    syntax: Syntax,
    text: Node,
    values: list[Node],
    pattern: re.Pattern[str],
    part: Callable[[re.Match[str]], str | None],
    plain: tuple[str, ...],
) -> str | None:
    """Return a string with values as an f-string that Python 3.8 reads too.

    Args:
        pattern: of placeholders.
        part: returns what follows a value in its braces, None if that is not known.
        plain: placeholders that take no value.
    """
    raw = syntax.text_of(text)
    quote = raw[:1]
    is_plain = text.type == "string" and quote in _QUOTE and raw[-1:] == quote and len(raw) > 1
    if not is_plain or raw.startswith(3 * quote):
        return None
    other, body = _QUOTE.replace(quote, ""), raw[1:-1]
    left, made, at = list(values), "", 0

    def escape(kept: str) -> str:
        return kept.replace("{", "{{").replace("}", "}}") if "%%" in plain else kept

    for match in pattern.finditer(body):
        after = part(match)
        made += escape(body[at : match.start()])
        at = match.end()
        if after is None:
            return None
        if match[0] in plain:
            made += after
            continue
        if not left:
            return None
        value = _value(syntax, left.pop(0), quote, other)
        if value is None:
            return None
        made += f"{{{value}{after}}}"
    made += escape(body[at:])
    return None if left or len(values) == 0 else f"f{quote}{made}{quote}"


def _value(syntax: Syntax, node: Node, quote: str, other: str) -> str | None:
    """Return a value as it may stand in an f-string, its strings in the other quotes."""
    text = syntax.text_of(node)
    if node.type in ("lambda", "conditional_expression", "named_expression", "await", "yield"):
        return None
    if any(sign in text for sign in ("\n", "\\", "#", "{", "}", ":=", "!")):
        return None
    if quote in text and other in text:
        return None
    return text.replace(quote, other)


def _joined(syntax: Syntax, node: Node) -> str | None:
    """Return ``"a" + b`` of scripts as a template literal."""
    if node.parent is None or _sides(syntax, node.parent, "+")[0] is not None:
        return None
    parts = _operands(syntax, node)
    texts = [_script_text(syntax, each) for each in parts]
    # The first two are a text, because numbers may be added before one comes.
    if all(text is not None for text in texts) or all(text is None for text in texts[:2]):
        return None
    made = ""
    for each, text in zip(parts, texts, strict=True):
        value = syntax.text_of(each)
        if text is None and (each.type == "string" or _UNFIT.search(value)):
            return None
        made += f"${{{value}}}" if text is None else text
    return f"`{made}`"


def _operands(syntax: Syntax, node: Node) -> list[Node]:
    """Return what is added up, none if that is too much."""
    found, at = list[Node](), node
    while len(found) < _MOST_PARTS:
        left, right = _sides(syntax, at, "+")
        if left is None or right is None:
            return [at, *reversed(found)]
        found.append(right)
        at = left
    return []


def _script_text(syntax: Syntax, node: Node) -> str | None:
    """Return what a string has between its quotes, None for something else."""
    text = syntax.text_of(node)
    if node.type != "string" or "`" in text or "${" in text or re.search(r"\\[\"'\n]", text):
        return None
    return text[1:-1]


def _chained(syntax: Syntax, node: Node) -> str | None:
    """Return ``a && a.b`` of scripts as ``a?.b``; with brackets around it, without them."""
    if node.type == "parenthesized_expression":
        inner = node.named_children[0] if node.named_child_count == 1 else node
        return _chained(syntax, inner) if inner.type == "binary_expression" else None
    left, right = _sides(syntax, node, "&&")
    if left is None or right is None or (node.parent and _sides(syntax, node.parent, "&&")[0]):
        return None
    known, text = syntax.text_of(left), syntax.text_of(right)
    is_simple = re.fullmatch(r"[\w$.\[\]]+", known) and right.type in _CHAINS
    if not is_simple or not re.match(r"\.[\w$]", text[len(known) :]) or text[: len(known)] != known:
        return None
    return f"{known}?{text[len(known) :]}"


def _sides(syntax: Syntax, node: Node, sign: str) -> tuple[Node | None, Node | None]:
    """Return the operands of an operation, None for another one."""
    named = node.child_by_field_name("operator") if node.type == "binary_expression" else None
    if named is None or syntax.text_of(named) != sign:
        return None, None
    return node.child_by_field_name("left"), node.child_by_field_name("right")


_CHAINS = ("member_expression", "call_expression", "subscript_expression")
_FORMS: dict[tuple[str, str], tuple[Callable[[Syntax, Node], str | None], ...]] = {
    ("python", "binary_operator"): (_percent,),
    ("python", "call"): (_format,),
    **{(language, "binary_expression"): (_joined, _chained) for language in SCRIPTS},
    **{(language, "parenthesized_expression"): (_chained,) for language in SCRIPTS},
}
