"""Cells above in the prompt, in the choice of excerpts and in the edits by rule."""

from __future__ import annotations

import pytest
from redraft.lsp.context.index import make_entry
from redraft.lsp.documents.notebooks import NotebookCell
from redraft.lsp.documents.open_documents import ContentChange
from redraft.lsp.documents.positions import Range
from redraft.lsp.edit_places import questions
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.schedule import Schedule
from redraft.lsp.snapshot import RequestFlags
from redraft.lsp.workspace import Workspace
from redraft.model.prompts.redraft3 import render_edit, render_infill
from redraft.model.prompts.registry import OTHERS
from redraft.model.records import EditRequest, RelatedFile
from redraft.model.text.common import common_head
from support.foreign_prompts import TOKENIZERS, rendered
from support.models.tiny import tiny_tokenizer
from support.rules import history, proposed

TOKENIZER = tiny_tokenizer()
CART = "class Cart:\n    def __init__(self, owner):\n        self.owner = owner\n"


def request(above: str, text: str = "x = 1\n", task: str = "infill") -> EditRequest:
    related = (RelatedFile("b.py", "y = 2\n"), RelatedFile("a.ipynb.py", above, is_above=True))
    return EditRequest(task, "a.ipynb.py", text, len(text), related=related)  # type: ignore[arg-type]


# --- the prompt --------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["infill", "next_edit"])
def test_the_document_continues_the_cells_above(task: str) -> None:
    above = "# %%\nimport os\n# %%\n"
    asked = request(above, task=task)
    render = render_infill if task == "infill" else render_edit
    text = TOKENIZER.decode(list(render(asked, TOKENIZER, 1_024).tokens))
    assert text.count("a.ipynb.py") == 1
    assert text.index("y = 2") < text.index("a.ipynb.py") < text.index(above)


def test_the_nearest_lines_stay_put_while_typing() -> None:
    above = "".join(f"line_{number} = {number}\n" for number in range(600))
    prompts = [
        list(render_infill(request(above, f"x = {typed}"), TOKENIZER, 512).tokens)
        for typed in ("", "12 + ", "12 + 34 ")
    ]
    text = TOKENIZER.decode(prompts[0])
    assert "line_599 = 599\n" in text and "line_0 = 0\n" not in text
    for tokens in prompts[1:]:
        assert common_head(prompts[0], tokens) >= len(prompts[0]) - 5


@pytest.mark.parametrize("name", list(OTHERS))
def test_every_format_shows_them(name: str) -> None:
    task = "next_edit" if name.startswith(("sweep", "zeta")) else "infill"
    above = "".join(f"line_{number} = {number}\n" for number in range(300))
    prompt = rendered(name, request(above, task=task), 1_024)
    tokens = [*prompt.tokens, *prompt.behind]
    assert "line_299 = 299" in TOKENIZERS[name].decode(tokens)


# --- edits by rule -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("above", "is_offered"),
    [
        ("", True),
        ("# %%\nimport json\n", False),
        ("# %%\nimport simplejson as json\n", False),
        ("# %%\njson = Codec()\n", False),
        ("# %%\ndef f(json):\n    return json\n", True),
        ("# %%\n# import json\n", True),
    ],
)
def test_what_a_cell_above_binds_needs_no_import(above: str, is_offered: bool) -> None:
    before, after = "x = 1\n", "x = 1\ny = json.loads(x)\n"
    related = (RelatedFile("a.ipynb.py", above, is_above=True),) if above else ()
    found = proposed(history(before, after), after, language="python", related=related)
    assert bool([each for each in found if each.name == "json"]) == is_offered


def test_an_import_above_is_no_pattern_for_another() -> None:
    before, after = "x = 1\n", "x = 1\ny = load_prices(x)\n"
    text = "from shop.prices import load_prices\n"
    edits = history(before, after)

    def imports(related: RelatedFile) -> list[str]:
        found = proposed(edits, after, language="python", related=(related,))
        return [each.name for each in found if each.name]

    assert imports(RelatedFile("b.py", text)) == ["load_prices"]
    assert imports(RelatedFile("a.ipynb.py", text, is_above=True)) == []


# --- excerpts ----------------------------------------------------------------------------------


class Book:
    """A notebook of some cells, and a gatherer with one file in its index."""

    def __init__(self, *texts: str) -> None:
        self.workspace = Workspace(LspSettings(), lambda: 0.0, reads=False)
        self.workspace.folders = ["file:///w"]
        uris = [f"cell:/w/a.ipynb#{number}" for number in range(len(texts))]
        self.workspace.notebooks.open("file:///w/a.ipynb", [NotebookCell(uri) for uri in uris])
        self.cells = [
            self.workspace.open(uri, text, 1, "python")
            for uri, text in zip(uris, texts, strict=True)
        ]
        index = self.workspace.context.indexer.index
        index.put(make_entry("store/cart.py", "python", CART, (1, 1)), CART)
        index.renew()

    def type(self, cell: int, text: str) -> None:
        """Type at the end of a cell."""
        document = self.cells[cell]
        at = document.position(len(document.text))
        changes = [ContentChange(text, Range(at, at))]
        splices = self.workspace.change(document.uri, changes, None)
        self.workspace.record(document.uri, splices, accepted=False)

    def gather(self, cell: int):  # type: ignore[no-untyped-def]
        """Gather at the end of a cell."""
        document = self.cells[cell]
        at = len(document.text)
        return self.workspace.context.gather(
            self.workspace.snapshot(document.uri, at, RequestFlags())
        )


def paths(gathered) -> list[str]:  # type: ignore[no-untyped-def]
    return [piece.path for piece in gathered.pieces]


def test_an_import_above_makes_a_definition_likely() -> None:
    use = "basket = Cart("
    score = Book("x = 1", use).gather(1).pieces[0].score
    found = Book("from store.cart import Cart", use).gather(1)
    assert paths(found) == ["store/cart.py", "a.ipynb.py"]
    assert found.pieces[0].score > 2 * score


def test_a_definition_above_needs_no_other_file() -> None:
    imported, defined = "from store.cart import *", "class Cart:\n    pass"
    assert "store/cart.py" in paths(Book(imported, "basket = Cart(").gather(1))
    assert "store/cart.py" not in paths(Book(imported, defined, "basket = Cart(").gather(2))


def test_a_key_keeps_what_is_above_unlike_a_cell_there() -> None:
    book = Book("a = 1", "b = 2", "c = ")
    first = book.gather(2).pieces
    book.type(2, "3")
    assert book.gather(2).pieces[-1].text is first[-1].text
    book.type(0, "0")
    assert "a = 10\n" in book.gather(2).pieces[-1].text
    assert book.gather(0).pieces == ()


@pytest.mark.parametrize("why", ["excluded", "secret", "language"])
def test_leaving_a_cell_out_joins_the_others_anew(why: str) -> None:
    book = Book("token = 1", "b = 2", "c = ")
    uri = book.cells[2].uri

    def above() -> str:
        found = book.workspace.snapshot(uri, 0, RequestFlags()).above
        return "" if found is None else found.text

    assert "token = 1\n" in above() and "b = 2\n" in above()
    if why == "excluded":
        first = book.cells[0]
        first.put(first.path, "a .redraftignore excludes it", True)
    elif why == "secret":
        key = "-----BEGIN RSA PRIVATE KEY-----\ntoken = 1\n"
        book.workspace.change(book.cells[0].uri, [ContentChange(key)], None)
    else:
        book.workspace.settings = LspSettings(disabled_languages=("python",))
    assert "token = 1\n" not in above()
    assert ("b = 2\n" in above()) == (why != "language")


def test_long_cells_above_leave_less_room_for_excerpts() -> None:
    long = "".join(f"line_{number} = {number}\n" for number in range(200))
    assert Book(long, "c = ").gather(1).room < Book("a = 1", "c = ").gather(1).room


@pytest.mark.parametrize(("above", "places"), [("x = 1", [0]), ("import json", [])])
def test_no_place_lacks_an_import_of_a_cell_above(above: str, places: list[int]) -> None:
    text = "".join(f"x_{number} = {number}\n" for number in range(60))
    book = Book(above, text)
    book.type(1, "y = json.loads(x)")
    context, at = book.workspace.context, len(book.cells[1].text)
    snapshot = book.workspace.snapshot(book.cells[1].uri, at, RequestFlags())
    found = questions(snapshot, context, Schedule(lambda: 0.0))
    assert [one.snapshot.line for one in found if one.about and one.about.name == "json"] == places
