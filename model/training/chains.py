"""Chains of edits made up from a file by its syntax: what was begun, and is to be carried on.

A name and its uses, a parameter and the arguments for it, a literal that is said more than once, a
call that is wrapped, a function that becomes async, a key that all records of a kind get, a name
that was misspelt: in each the first edit says what the others are, and after the last nothing is
left to do.

Each kind is a pure function ``(path, text, rng) -> Change | None``: hunks in the order in which a
person makes them, the definition first, then downwards from it, then upwards; None where the file
has no such thing whose truth is certain. What parses parses afterwards. In Python, TypeScript,
JavaScript, Go, Rust and Java. Knows nothing of tokens or prompts.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Sequence

from tree_sitter import Node

from ..edits.hunks import Hunk
from ..text.names import whole_name
from .chain_hunks import LONGEST, MOST, Swap, chain_of
from .code_names import Call, Code, Function, read_code
from .commits import FileChange
from .made_up_changes import FIXED, indent_of, new_name

Chain = Callable[[str, str, random.Random], FileChange | None]

_TRIED = 4  # kinds of a file


def draw_chain(path: str, text: str, rng: random.Random) -> FileChange | None:
    """A chain of one of a few kinds drawn by weight, the first that the file has. Not of any kind
    it may have: nearly every file has names to misspell, few have calls to await."""
    left = dict(KINDS)
    for _ in range(_TRIED):
        kind = rng.choices(list(left), [weight for _, weight in left.values()])[0]
        change = left.pop(kind)[0](path, text, rng)
        if change is not None:
            return change
    return None


# --- names ------------------------------------------------------------------------------------


def renamed(path: str, text: str, rng: random.Random) -> FileChange | None:
    """A function, field, parameter or local variable, and all its uses."""
    code = read_code(path, text)
    if code is None:
        return None
    tries = rng.sample(sorted(code.names), len(code.names))
    for name in tries[:40]:
        spans = _all_of(code, name, rng) if len(name) > 2 and name not in FIXED else []
        if len({code.text.count("\n", 0, start) for start, _ in spans}) < 2:
            continue
        new = new_name(name, tries, rng)
        if new == name or whole_name(new).search(text):
            continue
        change = chain_of(path, code, [(start, end, new) for start, end in spans], rng)
        if change is not None:
            return change
    return None


def _all_of(code: Code, name: str, rng: random.Random) -> list[tuple[int, int]]:
    """Where what ``name`` means stands: in one function, or in the whole file for what a function
    or a field is called. Empty where that is not certain."""
    nodes = code.names[name]
    owners = [code.owner(node) for node in nodes]
    spans = [code.syntax.span(node) for node in nodes]
    if any(_is_told_outside(node) for node in nodes):
        return []
    functions = {each.name_start for each in code.functions}
    is_function = sum(start in functions for start, _ in spans)
    if any(owner is not None for owner in owners) or is_function:
        dotted = all(
            owner in code.own or (owner is None and _defines(code, node, start))
            for owner, node, (start, _) in zip(owners, nodes, spans, strict=True)
        )
        plain = is_function == 1 and all(owner is None for owner in owners)
        whole = code.is_only_here(name, 0, len(code.text)) and is_function < 2
        spans.sort(key=lambda span: span[0] not in functions)  # the definition first
        return spans if (dotted or plain) and whole else []
    around = {each.start: each for node in nodes if (each := code.function_around(node))}
    if not around:
        return []
    function = around[rng.choice(sorted(around))]
    within = range(function.start, function.end)
    if any(n.type != "identifier" for n, s in zip(nodes, spans, strict=True) if s[0] in within):
        return []
    inside = [span for span in spans if span[0] in within]
    elsewhere = [n for n, s in zip(nodes, spans, strict=True) if s[0] not in within]
    local = all(code.function_around(node) for node in elsewhere)  # else all may mean one thing
    certain = local and code.is_only_here(name, function.start, function.end)
    return inside if certain and _is_bound(code, name, function) else []


def _is_told_outside(node: Node) -> bool:
    """Is the name part of what others see: a keyword of a call, a key that stands for its value?"""
    parent = node.parent
    return node.type.startswith("shorthand") or (
        parent is not None and parent.type.startswith(("keyword_argument", "shorthand"))
    )


def _defines(code: Code, node: Node, start: int) -> bool:
    """Is this the name of a function or of a field where it is declared?"""
    if any(each.name_start == start for each in code.functions):
        return True
    return node.parent is not None and node.parent.type in _FIELDS


_FIELDS = (
    "field_declaration",
    "field_definition",
    "property_signature",
    "public_field_definition",
)


def _is_bound(code: Code, name: str, function: Function) -> bool:
    """Does the function bind the name: as a parameter, or by an assignment or declaration?"""
    head = code.text[function.opens : function.closes]
    body = code.text[function.closes : function.end]
    word = re.escape(name)
    return bool(
        re.search(rf"(?<![\w.]){word}(?!\w)", head)
        or re.search(rf"\b(?:let|const|var|let mut)\s+{word}\b|^\s*{word}\s*:?=(?!=)", body, re.M)
    )


def misspelt(path: str, text: str, rng: random.Random) -> FileChange | None:
    """A name that was typed wrongly a few lines ago, and is made right now."""
    code = read_code(path, text)
    if code is None:
        return None
    lines = text.split("\n")
    uses = [
        (name, code.syntax.span(node)[0])
        for name, nodes in code.names.items()
        if len(name) > 4 and name not in FIXED and len(nodes) > 1
        for node in nodes[1:]
    ]
    for name, start in rng.sample(uses, min(len(uses), 20)):
        line = text.count("\n", 0, start)
        behind = _a_few(lines, line + 1, rng)
        wrong = _mistyped(name, rng)
        if not behind or wrong in text or len(lines[line]) > LONGEST:
            continue
        column = start - text.rfind("\n", 0, start) - 1
        typed = lines[line][:column] + wrong + lines[line][column + len(name) :]
        old = [*lines[:line], typed, *lines[line + 1 + len(behind) :]]
        hunks = [Hunk(line + 1, line + 1, behind), Hunk(line, line + 1, (lines[line],))]
        return FileChange(path, old, lines, hunks)
    return None


def _mistyped(name: str, rng: random.Random) -> str:
    """Two letters that changed places, or one that is missing, doubled or another's neighbour."""
    at = rng.randrange(1, len(name) - 1)
    draw = rng.random()
    if draw < 0.5:
        return name[:at] + name[at + 1] + name[at] + name[at + 2 :]
    if draw < 0.75:
        return name[:at] + name[at + 1 :]
    return name[:at] + name[at] + name[at:]


def _a_few(lines: Sequence[str], first: int, rng: random.Random) -> tuple[str, ...]:
    """One to three lines of the same block from ``first`` on; none where the block ends."""
    taken: list[str] = []
    for line in lines[first : first + rng.randint(1, 3)]:
        if not line.strip() or (taken and indent_of(line) < indent_of(taken[0])):
            break
        taken.append(line)
    return tuple(taken)


# --- functions and their calls ----------------------------------------------------------------


def parameter_added(path: str, text: str, rng: random.Random) -> FileChange | None:
    """A parameter at the end of a function's, and an argument for it in every call."""
    code = read_code(path, text)
    found = _called(code) if code is not None else []
    for function, calls in rng.sample(found, len(found)):
        assert code is not None
        name, declared, given = _parameter(code.language, rng)
        said = f"{text[function.opens : function.closes]} {declared}"
        if len(re.findall(rf"\b{name}\b", said)) > 1 + ("=" in declared and declared != name):
            continue
        places = [(function.opens, function.closes, declared)]
        places += [(call.opens, call.closes, given) for call in calls]
        swaps = [_one_more(text, *place) for place in places]
        change = None if None in swaps else chain_of(path, code, [s for s in swaps if s], rng)
        if change is not None:
            return change
    return None


def _called(code: Code) -> list[tuple[Function, list[Call]]]:
    """Functions with calls outside of themselves, one to seven."""
    found = []
    for function in code.functions:
        calls = code.calls_of(function)
        outside = [call for call in calls if not function.start <= call.start < function.end]
        if len(outside) == len(calls) and 1 <= len(calls) < MOST:
            found.append((function, calls))
    return found


def _one_more(text: str, opens: int, closes: int, what: str) -> Swap | None:
    """``what`` behind the last between two brackets; None where they are lines apart, or the last
    takes all that comes."""
    inside = text[opens:closes]
    if "\n" in inside or re.search(r"\.\.\.|\*|(?<!&)&$", inside):
        return None
    kept = inside.rstrip()
    if kept.endswith(","):
        return opens + len(kept), closes, f" {what},"
    return opens + len(kept), closes, f", {what}" if kept else what


def _parameter(language: str, rng: random.Random) -> tuple[str, str, str]:
    """A new parameter: its name, as it is declared and as it is given."""
    name = rng.choice(("timeout", "strict", "limit", "verbose", "depth", "encoding", "retries"))
    kind, value = {
        "strict": ("bool", "true"),
        "verbose": ("bool", "false"),
        "encoding": ("text", '"utf-8"'),
    }.get(name, ("number", str(rng.choice((1, 2, 5, 10, 30, 100)))))
    types = {
        "go": {"bool": "bool", "text": "string", "number": "int"},
        "rust": {"bool": "bool", "text": "&str", "number": "u32"},
        "java": {"bool": "boolean", "text": "String", "number": "int"},
        "python": {"bool": "bool", "text": "str", "number": "int"},
        "typescript": {"bool": "boolean", "text": "string", "number": "number"},
    }.get(language.removesuffix("react"), {})
    if language == "python":
        value = {"true": "True", "false": "False"}.get(value, value)
        if rng.random() < 0.5:
            default = {"bool": "False", "text": '"ascii"', "number": "0"}[kind]
            return name, f"{name}: {types[kind]} = {default}", f"{name}={value}"
        return name, rng.choice((name, f"{name}: {types[kind]}")), value
    if language == "go":
        return name, f"{name} {types[kind]}", value
    if language == "java":
        return name, f"{types[kind]} {name}", value
    return name, f"{name}: {types[kind]}" if types else name, value


def wrapped(path: str, text: str, rng: random.Random) -> FileChange | None:
    """Calls of the same function put into another's, or taken out of it."""
    code = read_code(path, text)
    if code is None:
        return None
    by_name: dict[str, list[Call]] = defaultdict(list)
    for call in code.calls:
        if call.name not in FIXED and "\n" not in text[call.start : call.end]:
            by_name[call.name].append(call)
    usable = sorted(name for name, calls in by_name.items() if 2 <= len(calls) <= MOST)
    for name in rng.sample(usable, len(usable)):
        calls = [call for call in by_name[name] if _stands_alone(call)]
        wrapper = rng.choice(_WRAPPERS)
        if len(calls) != len(by_name[name]) or re.search(rf"\b{wrapper}\b", text):
            continue
        swaps = [(c.start, c.end, f"{wrapper}({text[c.start : c.end]})") for c in calls]
        change = chain_of(path, code, swaps, rng)
        if change is not None:
            return _turned_round(change) if rng.random() < 0.3 else change
    return None


_WRAPPERS = ("checked", "cached", "normalize", "trim", "required", "wrap", "clean", "resolve")


def _stands_alone(call: Call) -> bool:
    """Is the call a value, and not a statement, an owner, or part of another call's name?"""
    parent = call.node.parent
    return parent is not None and parent.type in (
        *("assignment", "variable_declarator", "let_declaration", "argument_list", "arguments"),
        *("return_statement", "pair", "expression_list", "assignment_expression"),
    )


def _turned_round(change: FileChange) -> FileChange:
    """The change back from its end to its beginning; all hunks keep the number of lines."""
    hunks = [Hunk(h.first, h.last, tuple(change.old[h.first : h.last])) for h in change.hunks]
    return FileChange(change.path, change.new, change.old, hunks)


def made_async(path: str, text: str, rng: random.Random) -> FileChange | None:
    """A function that becomes async: its calls are awaited, and who calls it becomes async too."""
    code = read_code(path, text)
    if code is None or code.language not in ("python", *_SCRIPTS):
        return None
    found = _called(code)
    for function, calls in rng.sample(found, len(found)):
        callers = [code.function_around(call.node) for call in calls]
        if _is_async(text, function) or _is_special(function, text) or None in callers:
            continue
        around = {each.start: each for each in callers if each is not None}
        if any(_is_special(each, text) for each in around.values()):
            continue
        if not all(_may_be_awaited(call) for call in calls):
            continue
        swaps = [(_async_at(function), _async_at(function), "async ")]
        for call in _onwards(calls, function.start):
            swaps.append((call.start, call.start, "await "))
            head = code.function_around(call.node)
            if head is not None and not _is_async(text, head):
                swaps.append((_async_at(head), _async_at(head), "async "))
        swaps = list(dict.fromkeys(swaps))  # a caller may call twice
        change = chain_of(path, code, swaps, rng, as_given=True)
        if change is not None:
            return change
    return None


def _onwards(calls: Sequence[Call], start: int) -> list[Call]:
    """Those behind ``start`` from there on, then those before it, the nearest first."""
    behind = [call for call in calls if call.start >= start]
    return [*behind, *reversed([call for call in calls if call.start < start])]


_SCRIPTS = ("typescript", "typescriptreact", "javascript", "javascriptreact")


def _is_async(text: str, function: Function) -> bool:
    return bool(re.search(r"\basync\b", text[function.start : function.opens]))


def _async_at(function: Function) -> int:
    is_method = function.node.type == "method_definition"
    return function.name_start if is_method else function.start


def _is_special(function: Function, text: str) -> bool:
    """Must it stay as it is: a constructor, a property, a generator?"""
    line = text.rfind("\n", 0, function.start) + 1
    above = text[text.rfind("\n", 0, max(line - 1, 0)) + 1 : line]
    return bool(
        function.name.startswith("__")
        or function.name == "constructor"
        or re.search(r"\byield\b", text[function.start : function.end])
        or re.search(r"\b(?:get|set)\s|\*", text[function.start : function.name_start])
        or re.search(r"@property|@\w+\.setter", above)
    )


def _may_be_awaited(call: Call) -> bool:
    """Does ``await`` before it bind to the call alone?"""
    parent = call.node.parent
    return parent is not None and parent.type in (
        *("expression_statement", "assignment", "variable_declarator", "return_statement"),
        *("assignment_expression", "argument_list", "arguments", "pair"),
    )


# --- values -----------------------------------------------------------------------------------


def literal_changed(path: str, text: str, rng: random.Random) -> FileChange | None:
    """A number or a string that is said more than once, and is another now."""
    code = read_code(path, text)
    if code is None:
        return None
    usable = [
        said
        for said, nodes in sorted(code.literals.items())
        if 2 <= len(nodes) <= MOST and 3 <= len(said) <= 40 and "\n" not in said
    ]
    for said in rng.sample(usable, len(usable)):
        new = _other_value(said, sorted(code.names), rng)
        if new is None or new in code.literals:
            continue
        swaps = [(*code.syntax.span(node), new) for node in code.literals[said]]
        change = chain_of(path, code, swaps, rng)
        if change is not None:
            return change
    return None


def _other_value(said: str, others: list[str], rng: random.Random) -> str | None:
    if said.isdigit():
        number = int(said)
        return str(rng.choice((number + 1, number + 10, number * 2, number * 10)))
    inside = re.fullmatch(r"([\"'])([\w .:/-]{2,})\1", said)
    if inside is None or not re.search(r"[a-zA-Z]{2}", inside[2]):
        return None
    return f"{inside[1]}{new_name(inside[2], others, rng)}{inside[1]}"


def key_added(path: str, text: str, rng: random.Random) -> FileChange | None:
    """A key that all records with the same keys get, behind their last."""
    code = read_code(path, text)
    if code is None:
        return None
    alike: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for i, record in enumerate(code.records):
        if len(record.keys) > 1:
            alike[record.keys].append(i)
    usable = sorted(keys for keys, found in alike.items() if 2 <= len(found) <= MOST)
    for keys in rng.sample(usable, len(usable)):
        key, value = _new_key(code, keys[-1], rng)
        if re.sub(r"\W", "", key) in {re.sub(r"\W", "", each) for each in keys}:
            continue
        swaps = [_new_entry(code, i, f"{key}: {value}") for i in alike[keys]]
        change = chain_of(path, code, [swap for swap in swaps if swap], rng)
        if change is not None:
            return change
    return None


def _new_key(code: Code, like: str, rng: random.Random) -> tuple[str, str]:
    """A key as the others are written, and its value."""
    name = rng.choice(("enabled", "order", "note", "unit", "group", "hidden", "weight", "label"))
    quoted = like[:1] if like[:1] in "\"'`" else ""
    if not quoted and like[:1].isupper():
        name = name.capitalize()
    true, false = ("True", "False") if code.language == "python" else ("true", "false")
    values = {"enabled": true, "hidden": false, "order": "0", "weight": "1"}
    single = code.language in ("python", *_SCRIPTS) and code.text.count("'") > code.text.count('"')
    return f"{quoted}{name}{quoted}", values.get(name.lower(), "''" if single else '""')


def _new_entry(code: Code, index: int, entry: str) -> Swap | None:
    """Behind the last entry of a record: in a line of its own where that one has one."""
    start, end = code.records[index].entries[-1]
    text = code.text
    indent = text[text.rfind("\n", 0, start) + 1 : start]
    if indent.strip():
        return end, end, f", {entry}"
    below = re.compile(r"[ \t]*(,?)[ \t]*\n").match(text, end)
    if below is None:
        return None
    if below[1]:
        return below.end(), below.end(), f"{indent}{entry},\n"
    return end, end, f",\n{indent}{entry}"


# --- all kinds ---------------------------------------------------------------------------------

#: The kinds by name, and how often each is tried first: what few files have is tried more often.
#: Of 100 training files 63 have a name to rename, 18 a parameter to add, 15 records that share
#: their keys, 10 a function to make async, 93 a name to misspell.
KINDS: dict[str, tuple[Chain, float]] = {
    "renamed": (renamed, 0.20),
    "parameter added": (parameter_added, 0.22),
    "async": (made_async, 0.18),
    "key added": (key_added, 0.18),
    "wrapped": (wrapped, 0.10),
    "literal changed": (literal_changed, 0.06),
    "misspelt": (misspelt, 0.06),
}
