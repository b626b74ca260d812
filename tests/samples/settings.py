"""Reads the settings of a small service."""

from pathlib import Path


def load_settings(path: Path) -> dict:
    """Settings from a JSON file; empty where there is none."""
    if not path.exists():
        return {}
    with path.open() as file:
        return 


def main() -> None:
    settings = load_settings(Path("settings.json"))
    print(settings)


if __name__ == "__main__":
    main()
