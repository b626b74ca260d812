"""``redraft setup``: shows what it will do, asks, does it, and checks it."""

from __future__ import annotations

import difflib
import os
import shlex
import sys
from pathlib import Path

import typer
from redraft.model.errors import EditorSetupError

from ..console import harmless, out
from .changes import Record, SetupPlan, carry_out, is_done, read, refuse_foreign, run
from .clients import server_program
from .editors import EDITORS, Editor


def run_setup(editor: str | None, remove: bool, yes: bool) -> None:
    """Set an editor up, undo that, or list the editors.

    Raises:
        EditorSetupError: it cannot be done; says what to do instead.
    """
    try:
        Path.home()
    except RuntimeError as error:
        raise EditorSetupError(f"your home folder is unknown: {error} Set HOME.") from error
    try:
        if editor is None and not remove:
            _list_editors()
        elif editor not in EDITORS:
            raise typer.BadParameter(f"name one of {', '.join(EDITORS)}", param_hint="EDITOR")
        elif remove:
            _remove(editor, EDITORS[editor], yes)
        else:
            _install(editor, EDITORS[editor], yes)
    except OSError as error:
        raise EditorSetupError(str(error)) from error


def _list_editors() -> None:
    program, missing = server_program(), []
    for name, editor in EDITORS.items():
        record, where = Record.load(name), editor.find()
        if record or where:
            _say(f"{name:<12} {_state(name, editor, record, program)}  {where}")
        else:
            missing.append(name)
    _say(f"not found    {', '.join(missing)}")
    _say("'redraft setup EDITOR' installs or updates, 'redraft setup EDITOR --remove' undoes it.")


def _state(name: str, editor: Editor, record: Record | None, program: str) -> str:
    if record is None:
        return "without Redraft"
    if not editor.find():
        return "set up, but the editor is gone"
    try:
        plan = editor.plan(record, program)
    except EditorSetupError as error:
        return f"set up, not checked: {error}"
    if is_done(plan, record):
        return "set up, current"
    return f"set up, not current: 'redraft setup {name}' updates it"


def _install(name: str, editor: Editor, yes: bool) -> None:
    where = editor.find()
    if not where and not editor.can_be_absent:
        raise EditorSetupError(
            f"{editor.title} is not on this machine, or its command is not on the PATH"
        )
    program = server_program()
    known = Record.load(name)
    record = known or Record(name)
    plan = editor.plan(record, program)
    if known and is_done(plan, record):
        _say(f"{editor.title} is set up already, and current.")
    else:
        refuse_foreign(plan, record)
        _say(f"To set up Redraft in {editor.title}{f' ({where})' if where else ''}:")
        _show(plan)
        _ask(yes)
        if editor.plan(record, program) != plan:
            raise EditorSetupError("files have changed meanwhile; run it again")
        carry_out(plan, record, editor.take_out)
        _say(f"Done. To undo it: redraft setup {name} --remove")
    if plan.by_hand:
        _say(plan.by_hand)
    finding = editor.check(program)
    _say(f"{finding.verdict}: {finding.what}{f' → {finding.advice}' if finding.advice else ''}")
    if finding.verdict == "problem":
        raise typer.Exit(1)


def _remove(name: str, editor: Editor, yes: bool) -> None:
    record = Record.load(name)
    if record is None:
        _say(f"'redraft setup' has installed nothing in {editor.title}; nothing to remove.")
        return
    _say(f"To remove Redraft from {editor.title}:")
    command = editor.command_to_undo()
    if command:
        _say(f"  run     {shlex.join(command)}")
    for edited in map(Path, record.edits):
        _show_edit(edited, record.before(edited, editor.take_out))
    for path in record.files_as_written():
        _say(f"  delete  {_short(path)}")
    _ask(yes)
    if command:
        run(*command)
    record.revert(editor.take_out)
    record.forget()
    _say("Done.")


def _show(plan: SetupPlan) -> None:
    for path, content in plan.edits.items():
        _show_edit(path, content)
    for path, content in plan.files.items():
        if read(path) != content:
            _say(f"  write   {_short(path)}")
    for path, to in plan.links.items():
        _say(f"  link    {_short(path)} → {_short(to)}")
    if plan.run:
        _say(f"  run     {shlex.join(plan.run)}")


def _show_edit(path: Path, content: bytes | None) -> None:
    """Show a change of a file of the user as a diff."""
    now = read(path)
    if content is None:
        return _say(f"  delete  {_short(path)}") if now is not None else None
    if content == now:
        return None
    _say(f"  {'create' if now is None else 'edit'}    {_short(path)}")
    old, new = ((each or b"").decode("utf-8", "replace").splitlines() for each in (now, content))
    for line in list(difflib.unified_diff(old, new, n=2, lineterm=""))[2:]:
        _say(f"    {line.expandtabs(4)}")
    return None


def _ask(yes: bool) -> None:
    """Ask whether to go on.

    Raises:
        EditorSetupError: there is no terminal to ask in.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise EditorSetupError("nothing was changed: without a terminal, give --yes to do this")
    typer.confirm("Go on?", default=True, abort=True)


def _short(path: Path | str) -> str:
    home, text = f"{Path.home()}{os.sep}", str(path)
    return f"~{os.sep}{text.removeprefix(home)}" if text.startswith(home) else text


def _say(text: str) -> None:
    out.print("\n".join(map(harmless, text.split("\n"))), markup=False)
