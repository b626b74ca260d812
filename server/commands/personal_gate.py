"""``redraft gate``: fit, show and delete the gate that decides what is shown."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from redraft.model.errors import SettingsError
from redraft.model.gate.eagerness import Eagerness

from .more import group_of

app = typer.Typer(
    cls=group_of("gate"),
    help="Fit, show or delete your own gate. The gate decides which suggestions are shown.",
    no_args_is_help=True,
)


@app.command()
def fit(
    eagerness: Annotated[Eagerness, typer.Option(help="Eagerness to fit for.")] = "medium",
) -> None:
    """Fit your own gate on your recordings. It is used only if it beats the shipped one."""
    from redraft.lsp.learning.fit_gate import fit_own_gate

    from .console import harmless
    from .console import out as console

    for line in fit_own_gate(eagerness):
        console.print(harmless(line), markup=False)


@app.command()
def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show which gate is in use, and why."""
    from redraft.lsp.recording.own_gate import OUTDATED
    from redraft.lsp.recording.recordings_folder import Recordings
    from redraft.model.gate.gate import SHIPPED, is_outdated, load_shipped, read_gate

    from .console import harmless
    from .console import out as console

    recordings = Recordings()
    state: dict[str, Any] = {"in_use": load_shipped().name, "own": None, "file": None}
    state["shipped"] = read_gate(SHIPPED)[1]
    if recordings.has_learned():
        made, card = read_gate(recordings.learned)
        state |= {"own": card, "file": str(recordings.learned)}
        if is_outdated(made):
            state["own"] = card | {"taken": False, "told": OUTDATED}
        elif card.get("taken") is True:
            state["in_use"] = made.name
    if as_json:
        console.print_json(data=state, ensure_ascii=True)
        return
    card = state["own"] or {}
    console.print(f"In use: {harmless(str(state['in_use']))}", markup=False)
    if state["own"] is None:
        console.print(
            "Your own gate: none yet. Turn on 'redraft record on': after 50 accepted or rejected "
            "suggestions the language server fits one, and uses it if it beats the shipped gate."
        )
    else:
        lines = (card.get("told", ""), *card.get("left_out", ()), state["file"])
        for line in lines:
            console.print(harmless(str(line)), markup=False)


@app.command()
def reset() -> None:
    """Delete your own gate and use the shipped one. Recordings stay."""
    from redraft.lsp.recording.recordings_folder import Recordings

    from .console import out as console

    recordings = Recordings()
    path = recordings.learned
    if recordings.forget():
        console.print(f"Deleted {path.name}. The shipped gate is in use.")
    elif path.exists():
        raise SettingsError(
            f"{path} is not a gate of Redraft, so it was not deleted. Move it away yourself."
        )
    else:
        console.print("You have no gate of your own. The shipped gate is in use.")
