"""``redraft tour``: six scenes to try next edits on, copied into a folder of the user."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from redraft.model.errors import SettingsError


def tour(
    folder: Annotated[
        Path, typer.Argument(help="Copy them into this folder, which may not exist yet.")
    ] = Path("redraft-tour"),
) -> None:
    """Copy six small scenes to try next edits on, and print the file to open first.

    The comment at the top of a file says what to type and what is offered then.
    """
    from .console import err

    first, kept = copy_tour(folder)
    if kept:
        err.print(
            f"Left as you changed them: {', '.join(kept)}. Delete a file to get it anew.",
            markup=False,
        )
    err.print("Open this file in your editor, and do what its first lines say:", markup=False)
    typer.echo(first)


def copy_tour(folder: Path) -> tuple[Path, list[str]]:
    """Write the missing files of the tour; return the first one, and the names of changed ones.

    Raises:
        SettingsError: the folder has other files only, or cannot be written to.
    """
    wanted = {
        each.name.removesuffix(".txt"): each.read_bytes()
        for each in sorted(files("redraft.server").joinpath("tour").iterdir(), key=str)
    }
    kept = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = {each.name for each in folder.iterdir()}
        if found and not found & wanted.keys():
            raise SettingsError(f"{folder} has other files. Name a new folder for the tour.")
        for name, text in wanted.items():
            if name not in found:
                (folder / name).write_bytes(text)
            elif (folder / name).read_bytes() != text:
                kept.append(name)
    except OSError as error:
        raise SettingsError(
            f"The tour cannot be written to {folder}: {error.strerror}. Name another folder."
        ) from error
    return folder / min(wanted), kept
