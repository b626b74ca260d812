"""Fields of a body that constrain the form of its answer, as one ``Grammar``.

``response_format`` is OpenAI's, ``guided_…`` vLLM's, ``grammar`` and ``json_schema`` llama.cpp's;
``guided_infill`` is ours.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, replace
from typing import Literal

from redraft.model.errors import InvalidRequest
from redraft.model.records import Grammar
from redraft.model.validation import Json, Text, dump_json, load_json, read

from .prompt_questions import Infilling
from .respond import HttpQuestion

#: Schema of ``json_object``.
ANY_OBJECT = '{"type": "object"}'

InfillKind = Literal["line", "identifier", "string", "comment"]
#: Regular expressions of ``guided_infill``: a line, a name, the inside of a string or comment.
INFILLS: dict[InfillKind, str] = {
    "line": r"[^\r\n]*",
    "identifier": r"[A-Za-z_$][A-Za-z0-9_$]*",
    "string": r"([^\r\n\"'`\\]|\\[^\r\n])*",
    "comment": r"([^\r\n*]|\*[^\r\n/*])*",
}


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """``response_format.json_schema`` of OpenAI."""

    name: Text = "answer"
    description: Text = ""
    schema: object = None
    strict: object = None  # it always is


@dataclass(frozen=True, slots=True)
class ResponseFormat:
    """``response_format`` of OpenAI."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """The fields, read from a body besides those of its route."""

    response_format: ResponseFormat | None = None
    guided_json: object = None  # a schema, or one as text
    json_schema: object = None  # the same, as llama.cpp calls it
    guided_regex: Text | None = None
    guided_grammar: Text | None = None  # Lark's or llama.cpp's notation
    grammar: Text | None = None  # the same
    guided_infill: InfillKind | None = None


FIELDS = tuple(field.name for field in dataclasses.fields(Constraints))


def grammar_of(body: Json) -> Grammar | None:
    """Return the form that ``body`` demands of its answer, or None.

    Schemas are taken from the body unchanged, because ``null`` has a meaning in them.

    Raises:
        InvalidRequest: names the field and what it must be.
    """
    asked = read(Constraints, {name: body[name] for name in FIELDS if name in body})
    found: dict[str, Grammar] = {}
    if asked.response_format is not None:
        grammar = _formatted(asked.response_format, body["response_format"])
        if grammar is not None:
            found["response_format"] = grammar
    for name in ("guided_json", "json_schema"):
        if getattr(asked, name) is not None:
            found[name] = _schema(body[name], name)
    if asked.guided_regex is not None:
        found["guided_regex"] = Grammar("regex", asked.guided_regex)
    for name in ("guided_grammar", "grammar"):
        text: str | None = getattr(asked, name)
        if text is not None:
            found[name] = Grammar("lark", _lark(text, name))
    if asked.guided_infill is not None:
        found["guided_infill"] = Grammar("regex", INFILLS[asked.guided_infill])
    if len(found) > 1:
        one, other, *_ = found
        raise InvalidRequest(f"'{other}' and '{one}' both say what the answer must be. Send one.")
    return next((replace(each, field=name) for name, each in found.items()), None)


def constrain(question: HttpQuestion, body: Json) -> HttpQuestion:
    """Return ``question`` with the form that ``body`` demands of its answer.

    Raises:
        InvalidRequest: see :func:`grammar_of`; or the question is not an infill.
    """
    grammar = grammar_of(body)
    if grammar is None:
        return question
    if not isinstance(question, Infilling):
        name = next(name for name in FIELDS if body.get(name) is not None)
        raise InvalidRequest(f"'{name}' binds infills alone, and this prompt asks for an edit.")
    return replace(question, request=replace(question.request, grammar=grammar))


def _formatted(wanted: ResponseFormat, raw: Json) -> Grammar | None:
    if wanted.type == "text":
        return None
    if wanted.type == "json_object":
        return Grammar("json_schema", ANY_OBJECT)
    name = "response_format.json_schema"
    if wanted.json_schema is None or wanted.json_schema.schema is None:
        raise InvalidRequest(f"'{name}.schema' is missing. Add it to the request.")
    return _schema(raw["json_schema"]["schema"], f"{name}.schema")


def _schema(value: object, name: str) -> Grammar:
    if isinstance(value, str):
        try:
            value = load_json(value)
        except json.JSONDecodeError as error:
            raise InvalidRequest(f"'{name}' is not JSON: {error}. Send a JSON schema.") from None
        except ValueError as error:
            raise InvalidRequest(f"'{name}' {error}. Send another schema.") from None
    return Grammar("json_schema", schema_text(value, name))


def schema_text(value: object, name: str) -> str:
    """Return a schema as text.

    Raises:
        InvalidRequest: it is not a schema, or holds a number that is not finite.
    """
    if value is True:
        value = {}
    if not isinstance(value, dict):
        raise InvalidRequest(f"'{name}' must be a JSON schema, an object. Send one.")
    return dump_json(value, name)


def _lark(text: str, name: str) -> str:
    """Return a grammar in Lark's notation; one in llama.cpp's notation is converted."""
    if "::=" not in text:
        return text
    from llguidance.gbnf_to_lark import any_to_lark

    try:
        return str(any_to_lark(text))
    except Exception as error:  # the converter raises plain Exception
        raise InvalidRequest(
            f"'{name}' looks like a grammar in llama.cpp's notation but cannot be read: {error}. "
            "Mend it, or write it as Lark does."
        ) from None
