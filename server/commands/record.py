"""``redraft record``: turn recording on and off, see and delete recordings."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from redraft.model.errors import SettingsError

if TYPE_CHECKING:
    from redraft.lsp.recording.recordings_folder import Recordings, StoredRecording

app = typer.Typer(
    help="Record your editing on this disk, to evaluate Redraft and to fit your own gate. Off by "
    "default.",
    no_args_is_help=True,
)

_MB = 1_000_000
_NAMED = 5  # other files of the folder that are listed


def _recordings() -> Recordings:
    from redraft.lsp.recording.recordings_folder import Recordings

    return Recordings()


@app.command("on")
def turn_on(
    limit: Annotated[
        int | None,
        typer.Option(
            min=20,
            metavar="MB",
            help="Delete the oldest recordings beyond this size. Default: 500.",
        ),
    ] = None,
) -> None:
    """Start recording in every editor that runs Redraft, open ones included."""
    from redraft.lsp.recording.recordings_folder import FILE_BYTES, FolderLimits

    from .console import out

    recordings = _recordings()
    recordings.turn_on(FolderLimits(FILE_BYTES, limit * _MB) if limit else None)
    limits = recordings.limits()
    out.print(
        f"Recording is on. Into {recordings.folder} goes, {limits.total_bytes // _MB} MB at most:\n"
        "  the text of the files you have open, and every change of them with its time\n"
        "  where the cursor is when a suggestion is wanted\n"
        "  each suggestion, shown or not, and what became of it\n"
        "Never: files that the setting secretGlobs names (.env, *.pem, *.key …). Nothing is sent "
        "anywhere.\n"
        "'redraft record off' ends it, 'redraft record delete --all' deletes everything.",
        markup=False,
    )


@app.command("off")
def turn_off() -> None:
    """Stop recording in every editor. Recordings stay until you delete them."""
    from .console import out

    recordings = _recordings()
    recordings.turn_off()
    kept = recordings.list_recordings()
    rest = f" {len(kept)} recordings stay in {recordings.folder}." if kept else ""
    out.print(f"Recording is off.{rest}", markup=False)


@app.command()
def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show whether recording is on, the folder and its size."""
    from .console import harmless, out

    recordings = _recordings()
    kept, limits, others = recordings.list_recordings(), recordings.limits(), recordings.others()
    size, problem = sum(each.size for each in kept), recordings.problem()
    found = {
        "on": recordings.is_on(),
        "problem": problem,
        "folder": str(recordings.folder),
        "recordings": len(kept),
        "bytes": size,
        "limit_bytes": limits.total_bytes,
        "other_files": len(others),
        "other_names": others[:_NAMED],
    }
    if as_json:
        out.print_json(data=found, ensure_ascii=True)
        return
    lines = [f"Recording is {'on' if found['on'] else 'off'}."]
    if problem:
        lines.append(f"It was on: {problem}. When that is mended, turn it on again.")
    lines.append(
        f"{len(kept)} recordings, {_size(size)} of {_size(limits.total_bytes)}, in "
        f"{recordings.folder}"
    )
    if others:
        more = ", …" if len(others) > _NAMED else ""
        lines.append(
            f"{len(others)} other files are in there, never counted or deleted: "
            f"{', '.join(others[:_NAMED])}{more}"
        )
    for line in lines:
        out.print(harmless(line), markup=False)


@app.command("list")
def list_recordings(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the recordings, oldest first."""
    from rich.table import Table
    from rich.text import Text

    from .console import harmless, out

    rows = [_described(each) for each in _recordings().list_recordings()]
    if as_json:
        out.print_json(data=rows, ensure_ascii=True)
        return
    if not rows:
        out.print("There are no recordings.")
        return
    table = Table(box=None, padding=(0, 3, 0, 0))
    for heading in ("recording", "last written", "size", "changes", "workspace"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        size, changes = _size(row["bytes"]), f"{row['changes']:,}"
        workspace = Text(harmless(row["workspace"]))  # Text, so that markup in it is shown as it is
        table.add_row(row["name"], row["last_written"], size, changes, workspace)
    out.print(table, soft_wrap=False)


@app.command()
def delete(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RECORDING]…", help="Names as 'record list' prints them."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Delete every recording.")] = False,
    older_than: Annotated[
        int | None, typer.Option(min=0, metavar="DAYS", help="Delete recordings older than this.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without a question.")] = False,
) -> None:
    """Delete recordings. A running editor starts a new one while recording is on."""
    from .console import out

    recordings = _recordings()
    chosen = _chosen(recordings, names or [], everything, older_than)
    if not chosen:
        out.print("There is nothing to delete.")
        return
    size = _size(sum(each.size for each in chosen))
    if not yes:
        typer.confirm(f"Delete {len(chosen)} recordings, {size}?", abort=True)
    left = recordings.delete([each.path for each in chosen])
    if left:
        recordings.forget()
        raise SettingsError(
            f"{len(left)} recordings are being written to, first of all {left[0].name}: turn "
            "recording off, close the editor, and delete again"
        )
    forgotten = " What was learned from them is deleted too." if recordings.forget() else ""
    out.print(f"Deleted {len(chosen)} recordings, {size}.{forgotten}", markup=False)


# --- small parts ---------------------------------------------------------------------------------


def _chosen(
    recordings: Recordings, names: list[str], everything: bool, older_than: int | None
) -> list[StoredRecording]:
    """Return the recordings to delete.

    Raises:
        SettingsError: nothing was chosen, or a name is unknown.
    """
    kept = recordings.list_recordings()
    if everything:
        return kept
    if older_than is not None:
        limit_s = time.time() - 86_400 * older_than
        return [each for each in kept if each.changed_s < limit_s]
    if not names:
        raise SettingsError("name the recordings to delete, or give --all or --older-than DAYS")
    by_name = {each.path.name: each for each in kept} | {each.path.stem: each for each in kept}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise SettingsError(f"there is no recording {unknown[0]!r}; see 'redraft record list'")
    return list(dict.fromkeys(by_name[name] for name in names))


def _described(kept: StoredRecording) -> dict[str, Any]:
    changes = 0
    try:
        with kept.path.open("rb") as file:
            changes = sum(line.startswith(b'{"kind":"changed"') for line in file)
    except OSError:
        pass  # deleted meanwhile
    return {
        "name": kept.path.stem,
        "last_written": time.strftime("%Y-%m-%d %H:%M", time.localtime(kept.changed_s)),
        "bytes": kept.size,
        "changes": changes,
        "workspace": kept.workspace,
    }


def _size(count: int) -> str:
    return f"{count / _MB:,.1f} MB"
