"""Edits by rule that put something where the language does not allow it.

Pure.
"""

from __future__ import annotations

import re

from ..text.lines import defines_function
from .example import Example

#: Functions that are never asynchronous.
_NEVER_ASYNC = re.compile(r"\b__init__\b|\bconstructor\s*\(|\b[gs]et\s+\w+\s*\(")
_AWAIT_DEFINED = re.compile(r"\b(?:def|function|fn)\s+await\b")


def is_misplaced(example: Example, old: str, new: str) -> bool:
    """Return whether a line would get something that cannot stand there.

    That is a declared parameter in a call, ``async`` before a function that cannot be
    asynchronous, or ``await`` in place of a function's name.
    """
    return _declares_in_call(example, old, new) or _breaks_async(old, new)


def _declares_in_call(example: Example, old: str, new: str) -> bool:
    if defines_function(old):
        return False
    for pair in example.pairs:
        gone, come = pair.entry
        argument = come.strip().strip(",").strip()
        if gone.strip() or not defines_function(pair.new) or not re.search(r"\W", argument):
            continue
        if new.count(argument) > old.count(argument) and "(" not in argument:
            return True
    return False


def _breaks_async(old: str, new: str) -> bool:
    if "await" in new and _AWAIT_DEFINED.search(new):
        return True
    return "async" in new and "async" not in old and _NEVER_ASYNC.search(new) is not None
