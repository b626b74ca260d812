"""Bodies that ask for decisions, read into one record.

TypeSafe's, which Mercury shares, has a ``state`` and an object of ``questions``; OpenAI's has an
``input`` and an array of them. A *noul* (OpenAI: predicate) is a statement that is true or not, a
*choice* names its labels, a *score* its levels from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from redraft.model.errors import InvalidRequest
from redraft.model.records import Conversation, EditRequest, Message
from redraft.model.validation import (
    Json,
    Text,
    brief,
    dump_json,
    json_type,
    read,
    without_surrogates,
)

#: Limits of the services whose clients ask here.
MAX_LABELS, MAX_LEVELS, MAX_QUESTIONS = 255, 10, 900
#: Labels of all questions together; the model scores each.
MAX_LABELS_IN_ALL = 2_048
YES, NO = "yes", "no"
_SYSTEM = (
    "You judge what you are shown. You are given a text, a question about it and the possible "
    "answers. You reply with exactly one of the possible answers and nothing else."
)
_PICTURES = frozenset({"image_url", "input_image"})
NO_PICTURES = "this model reads text alone. Describe the picture in words."

Kind = Literal["noul", "choice", "score"]


@dataclass(frozen=True, slots=True)
class TypeSafeQuestion:
    """A question of TypeSafe's body."""

    type: Literal["noul", "choice", "score", "box"]
    instructions: object = None
    criteria: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeSafeBody:
    """TypeSafe's body."""

    state: object
    questions: dict[str, TypeSafeQuestion]
    model: Text = ""
    assets: object = None


@dataclass(frozen=True, slots=True)
class OpenAIChoice:
    """A possible answer of a choice."""

    value: object
    description: Text | None = None


@dataclass(frozen=True, slots=True)
class OpenAILevel:
    """A level of a score."""

    label: Text
    description: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIQuestion:
    """A question of OpenAI's body."""

    type: Literal["predicate", "choice", "score"]
    instructions: object
    name: Text | None = None
    choices: tuple[OpenAIChoice, ...] = ()
    levels: tuple[OpenAILevel, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIBody:
    """OpenAI's body."""

    input: object
    questions: tuple[OpenAIQuestion, ...]
    model: Text = ""


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question, whatever body asked it.

    Args:
        labels: what the model may write.
        meanings: of the labels, as sent; None where a label says it alone.
        values: what the answer calls the labels.
        requests: that score the labels, of which the mean counts. The labels of a choice are shown
            in the order given and in reverse, because a small model prefers places.
    """

    name: str | None
    kind: Kind
    labels: tuple[str, ...]
    meanings: tuple[object, ...]
    values: tuple[object, ...]
    requests: tuple[EditRequest, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """All questions of a body, and whose body it was."""

    model: str
    questions: tuple[AskedQuestion, ...]
    is_openai: bool


def read_decisions(data: Json) -> Asked:
    """Return the questions of either body.

    Raises:
        InvalidRequest: names the field and what it must be.
    """
    asked = _read_openai(data) if "input" in data else _read_typesafe(data)
    count = sum(len(question.labels) for question in asked.questions)
    if count > MAX_LABELS_IN_ALL:
        raise InvalidRequest(
            f"'questions' have {count} labels in all, at most {MAX_LABELS_IN_ALL} are scored. "
            "Send fewer questions at once."
        )
    return asked


def _read_typesafe(data: Json) -> Asked:
    if data.get("assets"):
        raise InvalidRequest(f"'assets' are pictures; {NO_PICTURES}")
    body = read(TypeSafeBody, data)
    _check_count(body.questions)
    state = _text(data["state"], "state")
    found = []
    for name, question in body.questions.items():
        where, raw = f"questions.{name}", data["questions"][name]
        if question.type == "box":
            raise InvalidRequest(f"'{where}.type' is 'box', a place in a picture; {NO_PICTURES}")
        labels, meanings = _labels(question.type, raw.get("criteria"), f"{where}.criteria")
        told = _text(raw.get("instructions") or "", f"{where}.instructions")
        named = read(Text, name, "questions")
        requests = _requests(question.type, state, named, told, labels, meanings)
        found.append(AskedQuestion(name, question.type, labels, meanings, labels, requests))
    return Asked(body.model, tuple(found), False)


def _read_openai(data: Json) -> Asked:
    body = read(OpenAIBody, data)
    _check_count(body.questions)
    state = _input_text(data["input"])
    found = []
    for index, question in enumerate(body.questions):
        where = f"questions[{index}]"
        kind: Kind = "noul" if question.type == "predicate" else question.type
        told = _parts_text(question.instructions, f"{where}.instructions")
        labels, meanings, values = _openai_labels(question, where)
        requests = _requests(kind, state, question.name or "", told, labels, meanings)
        found.append(AskedQuestion(question.name, kind, labels, meanings, values, requests))
    return Asked(body.model, tuple(found), True)


def _check_count(questions: Sequence[object] | dict[str, TypeSafeQuestion]) -> None:
    if not questions:
        raise InvalidRequest("'questions' is empty. Ask at least one.")
    if len(questions) > MAX_QUESTIONS:
        raise InvalidRequest(
            f"'questions' has {len(questions)} entries, at most {MAX_QUESTIONS} are answered."
        )


def _labels(kind: str, criteria: object, where: str) -> tuple[tuple[str, ...], tuple[object, ...]]:
    if kind == "noul":
        given = criteria if isinstance(criteria, dict) else {}
        return (YES, NO), (given.get("true"), given.get("false"))
    if kind == "score":
        if not isinstance(criteria, list) or not 1 <= len(criteria) <= MAX_LEVELS:
            raise InvalidRequest(f"'{where}' must be an array of 1 to {MAX_LEVELS} levels.")
        return tuple(map(str, range(len(criteria)))), tuple(criteria)
    if not isinstance(criteria, dict) or not 1 <= len(criteria) <= MAX_LABELS:
        raise InvalidRequest(f"'{where}' must be an object of 1 to {MAX_LABELS} labels.")
    return tuple(_label(label, where) for label in criteria), tuple(criteria.values())


def _openai_labels(
    question: OpenAIQuestion, where: str
) -> tuple[tuple[str, ...], tuple[object, ...], tuple[object, ...]]:
    """Return the labels of a question, their meanings, and what its answer calls them."""
    if question.type == "predicate":
        return (YES, NO), (None, None), (True, False)
    if question.type == "score":
        levels = question.levels
        if not 1 <= len(levels) <= MAX_LEVELS:
            raise InvalidRequest(f"'{where}.levels' must be an array of 1 to {MAX_LEVELS} levels.")
        meanings = [
            level.label if level.description is None else f"{level.label}: {level.description}"
            for level in levels
        ]
        labels = tuple(map(str, range(len(levels))))
        return labels, tuple(meanings), tuple(level.label for level in levels)
    choices = question.choices
    if not 1 <= len(choices) <= MAX_LABELS:
        raise InvalidRequest(f"'{where}.choices' must be an array of 1 to {MAX_LABELS} choices.")
    values = tuple(choice.value for choice in choices)
    for index, value in enumerate(values):
        if not isinstance(value, str | bool):
            raise InvalidRequest(
                f"'{where}.choices[{index}].value' must be a string or a boolean, not "
                f"{json_type(value)}."
            )
    if len({(type(value), value) for value in values}) < len(values):
        raise InvalidRequest(f"'{where}.choices' name a value twice. Name each once.")
    names = (value if isinstance(value, str) else str(value).lower() for value in values)
    labels = tuple(_label(name, f"{where}.choices") for name in names)
    return labels, tuple(choice.description for choice in choices), values


def _label(label: str, where: str) -> str:
    if not read(Text, label, where).strip():
        raise InvalidRequest(f"'{where}' has an empty label. Name each one.")
    return label


def _requests(
    kind: Kind,
    state: str,
    name: str,
    told: str,
    labels: tuple[str, ...],
    meanings: tuple[object, ...],
) -> tuple[EditRequest, ...]:
    """Return the requests that score ``labels``; the state comes first, so that it is read once."""
    lines = [
        label if meaning is None else f"{label}: {_text(meaning, 'criteria')}"
        for label, meaning in zip(labels, meanings, strict=True)
    ]
    question = f"Question: {name}\n{told}".strip()
    scored = tuple(map(without_surrogates, labels))
    made = []
    for order in [lines, lines[::-1]] if kind == "choice" and len(lines) > 1 else [lines]:
        answers = "\n".join(order)
        text = without_surrogates(f"{state}\n\n{question}\n\nPossible answers:\n{answers}")
        said = (Message("system", _SYSTEM), Message("user", text))
        conversation = Conversation(said, think=False, labels=scored)
        made.append(EditRequest("chat", "", "", cursor=0, max_tokens=64, conversation=conversation))
    return tuple(made)


def _text(value: object, where: str) -> str:
    """Return a text unchanged, anything else as JSON. Pictures are refused."""
    if isinstance(value, str):
        return read(Text, value, where)
    if any(part in _PICTURES for part in _types(value)):
        raise InvalidRequest(f"'{where}' holds a picture; {NO_PICTURES}")
    return read(Text, dump_json(value, where), where)


def _types(value: object) -> Iterator[object]:
    """Yield the ``type`` of each object inside a value, which may be of any kind that JSON has."""
    if isinstance(value, dict):
        if isinstance(value.get("type"), str):
            yield value["type"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _types(each)


def _input_text(value: object) -> str:
    """Return OpenAI's ``input`` as text: itself, or a line for each message, call and output."""
    if not isinstance(value, list):
        return read(Text, value, "input")
    return "\n".join(_turn_text(turn, f"input[{index}]") for index, turn in enumerate(value))


def _turn_text(turn: object, where: str) -> str:
    if not isinstance(turn, dict):
        raise InvalidRequest(f"'{where}' must be an object, not {json_type(turn)}.")
    kind = turn.get("type", "message")
    if kind == "message":
        role = read(Text, turn.get("role"), f"{where}.role")
        return f"{role}: {_parts_text(turn.get('content'), f'{where}.content')}"
    if kind in ("function_call", "custom_tool_call"):
        given = "arguments" if kind == "function_call" else "input"
        name, passed = (read(Text, turn.get(key), f"{where}.{key}") for key in ("name", given))
        return f"call of {name}: {passed}"
    if kind in ("function_call_output", "custom_tool_call_output"):
        return f"output: {_parts_text(turn.get('output'), f'{where}.output')}"
    raise InvalidRequest(f"'{where}.type' is {brief(kind)}, which is not read here. Leave it out.")


def _parts_text(content: object, where: str) -> str:
    """Return a text, or the texts and JSON values of an array of parts, one below the other."""
    if not isinstance(content, list):
        return read(Text, content, where)
    texts = []
    for index, part in enumerate(content):
        if not isinstance(part, dict):
            raise InvalidRequest(f"'{where}[{index}]' must be an object, not {json_type(part)}.")
        kind, place = part.get("type"), f"{where}[{index}]"
        if kind in ("input_text", "output_text", "text"):
            texts.append(read(Text, part.get("text"), f"{place}.text"))
        elif kind == "refusal":
            texts.append(read(Text, part.get("refusal"), f"{place}.refusal"))
        elif kind == "input_json":
            texts.append(read(Text, dump_json(part.get("data"), place), place))
        elif kind in _PICTURES:
            raise InvalidRequest(f"'{place}' is a picture; {NO_PICTURES}")
        else:
            raise InvalidRequest(f"'{place}.type' is {brief(kind)}, which is not read here.")
    return "\n".join(texts)
