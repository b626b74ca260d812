"""Rules of style that ruff does not check, and the places that break them."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("model", "lsp", "server", "evals")
MAX_FILES = 16
MAX_TEST_NAME = 50

#: First words of docstrings that ruff takes for verbs or nouns.
FIRST_WORDS = frozenset((
    "Are", "Because", "But", "By", "Can", "Did", "Do", "Does", "For", "Has", "How", "If", "In",
    "Is", "Of", "On", "One", "Once", "So", "That", "What", "When", "Where", "Whether", "Which",
    "Who", "Whom", "Whose", "Why", "With",
))  # fmt: skip

_FIRST_WORD = re.compile(rf"[\"']{{1,3}}\s*(?:{'|'.join(FIRST_WORDS)})\b")

#: Words that hide the actor or the object of a sentence.
_REFUSED = (
    r"who(?:m)?ever",
    r"(?:some|any|every|no)body",
    r"told",
    r"tells",
    r"(?:its|their|his|her|one's) own",
    r"comes? of",
    r"stands? for",
    r"knows? nothing",
    r"that which",
)
REFUSED_WORDS = re.compile(rf"\b(?:{'|'.join(_REFUSED)})\b", re.IGNORECASE)

#: Participles, with which no function begins: they do not say who acts, or on what.
_IRREGULAR = (
    "begun|bound|broken|built|chosen|done|drawn|found|given|gone|held|hidden|kept|known|left|lost|"
    "made|met|said|seen|sent|shown|spent|taken|told|written"
)
_PARTICIPLE = re.compile(
    r"^\s*(?:async )?def ((?:(?!feed|need|nothing|seed|speed|string)[a-z]+(?:ed|ing)"
    rf"|(?:over|re|un)?(?:{_IRREGULAR}))(?:_\w+)?)\b",
    re.MULTILINE,
)
_PROPERTY = re.compile(r"@(?:cached_)?property\s+def \w+")

_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def python_files(root: Path = ROOT) -> list[Path]:
    """Return the Python files of the packages and of the tests, sorted."""
    folders = (root / name for name in (*PACKAGES, "tests"))
    found = (path for folder in folders for path in folder.rglob("*.py"))
    return sorted(path for path in found if path.parent != root / "tests" / "samples")


def pages(root: Path = ROOT) -> list[Path]:
    """Return the Markdown pages, sorted."""
    tops = ("*.md", *(f"{name}/**/*.md" for name in (*PACKAGES, "tests", "editor-clients")))
    found = (path for top in tops for path in root.glob(top))
    return sorted(path for path in found if "node_modules" not in path.parts)


@cache
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and the statements in it, without their expressions."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _statements(child)


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Yield the docstrings of a module, its classes and its functions."""
    for node in _statements(tree):
        if isinstance(node, _DOCUMENTED):
            text = ast.get_docstring(node)
            if text:
                yield text


def _help_texts(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in ("help", "short_help", "epilog"):
            for part in ast.walk(node.value):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


def _comments(source: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def refused_words(path: Path) -> list[str]:
    """Return the refused words in a page, or in the docstrings, comments and help texts of code."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        texts = [re.sub(r"```.*?```|`[^`]*`", "", source, flags=re.DOTALL)]
    elif not REFUSED_WORDS.search(re.sub(r"[\s#]+", " ", source)):
        return []  # quick: most files have none of these words anywhere
    else:
        tree = _parsed(source)
        texts = [*docstrings(tree), *_help_texts(tree), *_comments(source)]
    joined = (re.sub(r"[\s#]+", " ", text) for text in texts)
    return [match[0] for text in joined for match in REFUSED_WORDS.finditer(text)]


def first_words(path: Path) -> list[str]:
    """Return the refused words with which docstrings of a file begin."""
    source = path.read_text(encoding="utf-8")
    if not _FIRST_WORD.search(source):
        return []
    tree = _parsed(source)
    words = (re.match(r"\w+", text) for text in docstrings(tree))
    return [word[0] for word in words if word and word[0] in FIRST_WORDS]


def long_test_names(path: Path) -> list[str]:
    """Return the names of a file's tests that have more than ``MAX_TEST_NAME`` characters."""
    names = re.findall(r"^\s*(?:async )?def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
    return [name for name in names if len(name) > MAX_TEST_NAME]


def participles(path: Path) -> list[str]:
    """Return the functions of a file, properties aside, whose names begin with a participle."""
    return _PARTICIPLE.findall(_PROPERTY.sub("", path.read_text("utf-8")))


def _product(root: Path) -> list[Path]:
    return [path for path in python_files(root) if path.relative_to(root).parts[0] in PACKAGES]


def _repeated(names: Iterator[tuple[str, Path]], root: Path) -> dict[str, list[str]]:
    files: dict[str, list[str]] = {}
    for name, path in names:
        files.setdefault(name, []).append(path.relative_to(root).as_posix())
    return {name: sorted(found) for name, found in files.items() if len(found) > 1}


def repeated_class_names(root: Path = ROOT) -> dict[str, list[str]]:
    """Return the public class names that stand in several modules, each with its modules."""
    form = re.compile(r"^class ([A-Za-z]\w*)", re.MULTILINE)
    files = _product(root)
    names = ((name, path) for path in files for name in form.findall(path.read_text("utf-8")))
    return _repeated(names, root)


def repeated_module_names(root: Path = ROOT) -> dict[str, list[str]]:
    """Return the names that several modules have, each with its modules."""
    names = ((path.stem, path) for path in _product(root) if path.name != "__init__.py")
    return _repeated(names, root)


def full_folders(root: Path = ROOT) -> dict[str, list[str]]:
    """Return the folders with too many Python files; ``tests`` itself is flat and left out."""
    counts: dict[str, int] = {}
    for path in python_files(root):
        folder = path.parent.relative_to(root).as_posix()
        counts[folder] = counts.get(folder, 0) + (path.name != "__init__.py")
    full = {folder: count for folder, count in counts.items() if count > MAX_FILES}
    full.pop("tests", None)
    return {folder: [f"{count} files"] for folder, count in full.items()}


def _by_file(
    check: Callable[[Path], list[str]], files: list[Path], root: Path
) -> dict[str, list[str]]:
    found = ((path.relative_to(root).as_posix(), check(path)) for path in files)
    return {name: broken for name, broken in found if broken}


def violations(root: Path = ROOT) -> dict[str, dict[str, list[str]]]:
    """Return every violation: check, then file, folder or class name, then details."""
    files = python_files(root)
    tests = [file for file in files if file.name.startswith("test_")]
    return {
        "first_words": _by_file(first_words, files, root),
        "refused_words": _by_file(refused_words, [*files, *pages(root)], root),
        "full_folders": full_folders(root),
        "test_names": _by_file(long_test_names, tests, root),
        "participles": _by_file(participles, _product(root), root),
        "class_names": repeated_class_names(root),
        "module_names": repeated_module_names(root),
    }
