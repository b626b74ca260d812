"""Keeps the notes of a small service."""

from pathlib import Path


def read_notes(path: Path) -> str:
    """The text of a notes file; empty where there is none."""
    if not path.exists():
        return ""
    with path.open() as file:
        return 


def main() -> None:
    notes = read_notes(Path("notes.txt"))
    print(notes)


if __name__ == "__main__":
    main()
