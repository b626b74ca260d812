"""What an editor reports, read from the words of its messages."""

from __future__ import annotations

from redraft.model.rules.diagnostics import undefined_name


def test_a_long_message_without_a_name_is_read_at_once() -> None:
    words = "Cannot find " + "dependencies" * 10 + " required by configuration settings"
    assert undefined_name(words) is None
    assert undefined_name("Cannot find name 'Money'.") == "Money"
    assert undefined_name("cannot find value, or function `money` in this scope") == "money"
