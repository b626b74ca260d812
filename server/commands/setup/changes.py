"""Changes that ``redraft setup`` makes, recorded so that they can be undone."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import platformdirs
from redraft.model.errors import EditorSetupError
from redraft.model.safe_files import atomic_file

#: Takes our entries out of a file that was edited since: its text now, and its text before the
#: set-up ("" if there was no file). Returns the text without them, "" if nothing else is left.
TakeOut = Callable[[str, str], str]

COMMAND_S = 120  # for a command of an editor to end, seconds


@dataclass(frozen=True, slots=True)
class SetupPlan:
    """The state of one editor after its set-up."""

    files: dict[Path, bytes] = field(default_factory=dict)  # ours alone
    edits: dict[Path, bytes] = field(default_factory=dict)  # of the user, with our entries
    links: dict[Path, Path] = field(default_factory=dict)  # the link, its target
    run: tuple[str, ...] = ()  # a command that is run after the files are written
    has_run: bool = True  # the command's effect is there already
    by_hand: str = ""  # what the user has to do besides


@dataclass(slots=True)
class Record:
    """Changes made to one editor; stored as JSON in ``record_folder``."""

    editor: str
    files: dict[str, str] = field(default_factory=dict)  # SHA-256 of what was written, by path
    edits: dict[str, str] = field(default_factory=dict)  # the same of files of the user
    copies: dict[str, str] = field(default_factory=dict)  # of their contents before, by path
    links: dict[str, str] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)  # that were made, outermost first

    @classmethod
    def load(cls, editor: str) -> Record | None:
        """Return the record of an editor, None if it was not set up.

        Raises:
            EditorSetupError: the record cannot be read.
        """
        file = record_folder() / f"{editor}.json"
        try:
            return cls(editor, **json.loads(file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise EditorSetupError(
                f"{file}, which says what was set up, cannot be read: {error}"
            ) from error

    def save(self) -> None:
        fields = asdict(self)
        del fields["editor"]
        _write(record_folder() / f"{self.editor}.json", json.dumps(fields, indent=1).encode())

    def before(self, path: Path, take_out: TakeOut) -> bytes | None:
        """Return what a file of the user holds without our entries, None if there is no file."""
        now, written = read(path), self.edits.get(str(path))
        if now is None or written is None:
            return now
        copy = self.copies.get(str(path))
        old = read(Path(copy)) if copy else None
        if _sha(now) == written and (old is not None or not copy):
            return old
        texts = text_of(now, path), text_of(old or b"", path)
        try:
            left = take_out(*texts).encode()
        except EditorSetupError as error:
            raise EditorSetupError(f"{path}: {error}") from error
        return left if left.strip() or copy else None

    def text_before(self, path: Path, take_out: TakeOut) -> str:
        """Return that content as text, "" if there is no file."""
        return text_of(self.before(path, take_out) or b"", path)

    def files_as_written(self) -> list[Path]:
        """Return our files and links that are as they were written."""
        files = {Path(name): written for name, written in self.files.items()}
        same = [path for path, written in files.items() if _sha(read(path) or b"") == written]
        links = {Path(name): Path(to) for name, to in self.links.items()}
        return same + [path for path, to in links.items() if _leads_to(path, to)]

    def revert(self, take_out: TakeOut) -> None:
        """Undo all but the command. What others have put in the place of our files stays."""
        for name in self.edits:
            path, now = Path(name), read(Path(name))
            before = self.before(path, take_out)
            if before is None:
                path.unlink(missing_ok=True)
            elif before != now:
                _write(path, before)
        for path in self.files_as_written():
            path.unlink()

    def forget(self) -> None:
        """Delete the record, the copies, and the folders that were made and are empty."""
        for name in (*self.copies.values(), str(record_folder() / f"{self.editor}.json")):
            Path(name).unlink(missing_ok=True)
        folders = map(Path, reversed(self.folders))
        for folder in (record_folder(), record_folder().parent, *folders):
            with suppress(OSError):  # others use it too
                folder.rmdir()


def record_folder() -> Path:
    """Return the folder of the records and of the copies of changed files."""
    return platformdirs.user_data_path("redraft", appauthor=False) / "setup"


def read(path: Path) -> bytes | None:
    """Return the content of a file, None if there is none.

    Raises:
        EditorSetupError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EditorSetupError(f"{path} cannot be read: {error.strerror}") from error


def text_of(content: bytes, path: Path) -> str:
    """Return a file's content as text, with its line ends and its byte-order mark.

    Raises:
        EditorSetupError: it is not UTF-8.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise EditorSetupError(f"{path} is not UTF-8; it stays as it is") from error


def is_done(plan: SetupPlan, record: Record) -> bool:
    """Return whether the editor is in the planned state."""
    wanted = {**plan.files, **plan.edits}
    return (
        plan.has_run
        and all(read(path) == content for path, content in wanted.items())
        and all(_leads_to(path, to) for path, to in plan.links.items())
        and {*record.files, *record.edits, *record.links}
        == {str(path) for path in (*wanted, *plan.links)}
    )


def refuse_foreign(plan: SetupPlan, record: Record) -> None:
    """Raise an EditorSetupError if the plan would replace something that others made."""
    ours = {Path(name) for name in record.files} | {*record.files_as_written()}
    for path in (*plan.files, *plan.links):
        if os.path.lexists(path) and path not in ours:
            raise EditorSetupError(
                f"{path} exists and was not made by 'redraft setup'; move it away, then try again"
            )


def carry_out(plan: SetupPlan, record: Record, take_out: TakeOut) -> None:
    """Bring the editor into the planned state, from that of the record or of none.

    Raises:
        EditorSetupError: it cannot be done; files and links are as they were without Redraft.
    """
    before = {path: record.before(path, take_out) for path in plan.edits}
    done = Record(record.editor)
    done.files = {str(path): _sha(content) for path, content in plan.files.items()}
    done.edits = {str(path): _sha(content) for path, content in plan.edits.items()}
    done.links = {str(path): str(to) for path, to in plan.links.items()}
    own = record_folder() / f"{record.editor}.json"
    missing = _missing_folders((own, *plan.edits, *plan.files, *plan.links))
    done.folders = [*dict.fromkeys((*record.folders, *missing))]
    try:
        record.revert(take_out)
        for path, content in before.items():
            if content is not None:
                copy = record_folder() / f"{record.editor}-{path.name}"
                _write(copy, content)
                done.copies[str(path)] = str(copy)
        done.save()  # first, so that what follows can be undone wherever it ends
        for path, content in {**plan.edits, **plan.files}.items():
            _write(path, content)
        for path, to in plan.links.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(to)
        if plan.run:
            run(*plan.run)
    except (OSError, EditorSetupError) as error:
        with suppress(OSError, EditorSetupError):
            done.revert(take_out)
            done.forget()
        raise EditorSetupError(f"{error}. The editor is as it was without Redraft.") from error


def run(*command: str, environment: dict[str, str] | None = None) -> str:
    """Run a command of an editor and return what it prints.

    Raises:
        EditorSetupError: it fails, or does not end within ``COMMAND_S``.
    """
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_S, check=False,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EditorSetupError(f"'{shlex.join(command)}' failed: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise EditorSetupError(
            f"'{shlex.join(command)}' ended with code {done.returncode}: {said[-400:]}"
        )
    return done.stdout.decode(errors="replace")


def _leads_to(link: Path, to: Path) -> bool:
    return link.is_symlink() and link.readlink() == to


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _missing_folders(paths: tuple[Path, ...]) -> Iterator[str]:
    """Yield the folders that have to be made for files, outermost first."""
    for path in paths:
        missing = [folder for folder in path.parents if not os.path.lexists(folder)]
        yield from map(str, reversed(missing))


def _write(path: Path, content: bytes) -> None:
    """Replace a file whole. A link to it stays one, and its permissions stay."""
    real = path.resolve()
    real.parent.mkdir(parents=True, exist_ok=True)
    mode = real.stat().st_mode & 0o777 if real.exists() else None
    with atomic_file(real) as file:
        file.write(content)
    if mode is not None:
        real.chmod(mode)
