"""Cells of notebooks: their order, and the cells above as the text that a cell continues."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from redraft.lsp.context.index import make_entry
from redraft.lsp.documents.cells_above import MOST_CHARACTERS, CellText, join_cells
from redraft.lsp.documents.notebooks import NotebookCell, Notebooks
from redraft.lsp.documents.open_documents import ContentChange
from redraft.lsp.documents.positions import Range
from redraft.lsp.edit_places import questions
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.schedule import Schedule
from redraft.lsp.snapshot import RequestFlags
from redraft.lsp.workspace import Workspace
from redraft.model.errors import InvalidRequest
from redraft.model.prompts.redraft3 import render_edit, render_infill
from redraft.model.prompts.registry import OTHERS
from redraft.model.records import EditRequest, RelatedFile
from redraft.model.text.common import common_head
from support.editors.lsp import LspHere, insert_texts, lsp_client
from support.foreign_prompts import TOKENIZERS, rendered
from support.models.tiny import tiny_tokenizer
from support.notebook import ClientNotebook
from support.rules import history, proposed

BOOK = "file:///w/a.ipynb"
SALES = [
    ("python", "import pandas as pd"),
    ("markdown", "# Sales\n\nOf last *year*."),
    ("python", "sales = pd.read_csv('sales.csv')"),
    ("sql", "select day from sales"),
    ("python", "sales."),
]
ABOVE_SALES = (
    "# %%\nimport pandas as pd\n# %% [markdown]\n# # Sales\n# Of last *year*.\n"
    "# %%\nsales = pd.read_csv('sales.csv')\n# %% [sql]\n# select day from sales\n# %%\n"
)


def cells(names: str) -> list[NotebookCell]:
    return [NotebookCell(name) for name in names]


def above(notebooks: Notebooks, name: str) -> str:
    return "".join(cell.uri for cell in notebooks.above(name))


# --- their order -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "count", "added", "order"),
    [
        (0, 0, "x", "xabc"),
        (3, 0, "xy", "abcxy"),
        (1, 1, "", "ac"),
        (0, 3, "x", "x"),
        (1, 2, "cb", "acb"),  # a move
        (0, 3, "", ""),
    ],
)
def test_the_order_follows_each_splice(start: int, count: int, added: str, order: str) -> None:
    notebooks = Notebooks()
    notebooks.open(BOOK, cells("abc"))
    notebooks.splice(BOOK, start, count, cells(added))
    for at, name in enumerate(order):
        assert above(notebooks, name) == order[:at]
        assert notebooks.file_of(name) == BOOK
    for name in {*"abc"} - {*order}:
        assert above(notebooks, name) == ""
        assert notebooks.file_of(name) == name


def test_a_cell_moved_before_its_removal_stays() -> None:
    notebooks = Notebooks()
    notebooks.open(BOOK, cells("abc"))
    notebooks.splice(BOOK, 3, 0, cells("a"))
    notebooks.splice(BOOK, 0, 1, ())
    assert above(notebooks, "a") == "bc"


@pytest.mark.parametrize(("start", "count"), [(4, 0), (0, 4), (2**31 - 1, 1)])
def test_a_splice_of_no_cells_leaves_order_unknown(start: int, count: int) -> None:
    notebooks = Notebooks()
    notebooks.open(BOOK, cells("abc"))
    with pytest.raises(InvalidRequest, match=r"has 3 cells.*close and reopen the notebook"):
        notebooks.splice(BOOK, start, count, cells("x"))
    assert above(notebooks, "c") == ""
    with pytest.raises(InvalidRequest, match="order of its cells is not known"):
        notebooks.splice(BOOK, 0, 0, cells("x"))
    assert notebooks.file_of("c") == BOOK  # it is still excluded with its notebook
    notebooks.open(BOOK, cells("abc"))
    assert above(notebooks, "c") == "ab"
    notebooks.close(BOOK)
    assert (above(notebooks, "c"), notebooks.file_of("c")) == ("", "c")


def test_notebooks_do_not_mix() -> None:
    notebooks = Notebooks()
    notebooks.open(BOOK, cells("abc"))
    notebooks.open("file:///w/b.ipynb", cells("xyz"))
    notebooks.update(BOOK, [NotebookCell("a", is_prose=True), NotebookCell("x", is_prose=True)])
    assert notebooks.above("b") == [NotebookCell("a", is_prose=True)]
    assert notebooks.above("y") == cells("x")


# --- their text --------------------------------------------------------------------------------


def joined(language: str, *texts: tuple[str, str]) -> str:
    found = join_cells([CellText(text, name, name == "markdown") for name, text in texts], language)
    return found.text if found is not None else ""


@pytest.mark.parametrize(
    ("language", "texts", "expected"),
    [
        ("python", SALES[:4], ABOVE_SALES),
        ("python", [("python", "\n\n"), ("markdown", " ")], ""),
        ("python", [("python", "%matplotlib inline\n!pip install x\ny = 5 % x\n")],
         "# %%\n# %matplotlib inline\n# !pip install x\ny = 5 % x\n# %%\n"),
        ("python", [("python", "%%time\ny = 1")], "# %%\n# %%time\ny = 1\n# %%\n"),
        ("python", [("python", "%%bash -e\nls\n")], "# %% [bash]\n# ls\n# %%\n"),
        ("python", [("raw", "a\tb")], "# %% [raw]\n# a\tb\n# %%\n"),
        ("javascript", [("javascript", "let x = 1"), ("markdown", "Then")],
         "// %%\nlet x = 1\n// %% [markdown]\n// Then\n// %%\n"),
        ("sql", [("python", "x = 1"), ("sql", "select 1")],
         "-- %% [python]\n-- x = 1\n-- %%\nselect 1\n-- %%\n"),
        ("markdown", [("markdown", "# A\n\nb"), ("python", "x = 1")],
         "# A\n\nb\n\n```python\nx = 1\n```\n\n"),
    ],
)  # fmt: skip
def test_cells_above_are_one_text_with_their_languages(
    language: str, texts: list[tuple[str, str]], expected: str
) -> None:
    assert joined(language, *texts) == expected


def test_cells_in_other_languages_are_short() -> None:
    text = joined("python", ("markdown", "\n".join(["word " * 1_000] * 100)), ("python", "x = 1"))
    assert len(text) < 2_500
    assert text.endswith("# %%\nx = 1\n# %%\n")


def test_the_nearest_cells_are_kept_in_their_order() -> None:
    long = "x = 1\n" * (MOST_CHARACTERS // 12)
    text = joined(
        "python", ("python", "first = 1"), *[("python", long)] * 2, ("python", "near = 1")
    )
    assert text.endswith(f"{long}# %%\nnear = 1\n# %%\n")
    assert "first" not in text
    assert len(text) <= MOST_CHARACTERS + 5


# --- in the language server ----------------------------------------------------------------------


@pytest.fixture
def client() -> Iterator[LspHere]:
    with lsp_client("x.sum()") as client:
        client.initialize(capabilities={"notebookDocument": {"synchronization": {}}})
        yield client


def test_a_question_has_the_cells_above_and_no_output(client: LspHere) -> None:
    notebook = ClientNotebook(client, [*SALES, ("python", "below = 1")])
    assert notebook.above(4, 0, 6) == ABOVE_SALES
    assert [path for path, _ in client.asked()[-1]["related"]] == ["sales.ipynb.py"]
    assert notebook.above(0) == ""
    asked = json.dumps(client.asked())
    assert "printed" not in asked and "below" not in asked
    notebook.close()
    assert "error" in client.complete(0, 0, uri=notebook.cells[0])


def test_ghost_text_ends_before_the_next_cell(client: LspHere) -> None:
    notebook = ClientNotebook(client, [("javascript", "let x = 1"), ("javascript", "x")])
    notebook.above(1, 0, 1)
    assert client.asked()[-1]["stop"] == ["\n// %%"]
    notebook.above(0)
    assert "stop" not in client.asked()[-1]


@pytest.mark.parametrize(("new", "is_shown"), [("b = 7", True), ("b = 2\n# %%\nc = 3", False)])
def test_a_next_edit_begins_no_other_cell(new: str, is_shown: bool) -> None:
    with lsp_client({"edit": ["b = 2", new]}) as client:
        client.initialize()
        notebook = ClientNotebook(client, [("python", "a = 1"), ("python", "b = 2\nc = ")])
        notebook.type(1, 1, 4, "5")
        asked = {"textDocument": {"uri": notebook.cells[1]}, "context": {"triggerKind": 1}}
        asked["position"] = {"line": 1, "character": 5}
        result = client.request("redraft/nextEdit", asked)["result"]
        assert bool(result["edits"]) == is_shown
        assert is_shown or "begins another cell" in result["reason"]


def test_changes_of_the_notebook_change_what_is_above(client: LspHere) -> None:
    notebook = ClientNotebook(client, [("python", "a = 1"), ("python", "b = 2"), ("python", "")])
    notebook.type(0, 0, 5, "0")
    assert notebook.above(2) == "# %%\na = 10\n# %%\nb = 2\n# %%\n"
    notebook.move(0, 1)
    assert notebook.above(2) == "# %%\nb = 2\n# %%\na = 10\n# %%\n"
    notebook.splice(0, 1, ("python", "c = 3"), ("markdown", "d"))
    assert notebook.above(3) == "# %%\nc = 3\n# %% [markdown]\n# d\n# %%\na = 10\n# %%\n"
    kinds = [{"kind": 1, "document": notebook.cells[2]}]
    notebook.change(data=kinds)
    assert notebook.above(3).endswith("# %% [markdown]\n# d\n# %% [markdown]\n# a = 10\n# %%\n")


def test_a_wrong_splice_is_refused_and_cells_go_on(client: LspHere) -> None:
    notebook = ClientNotebook(client, [("python", "a = 1"), ("python", "b")])
    at = {"line": 0, "character": 1}
    typed = {"range": {"start": at, "end": at}, "text": " = a"}
    document = {"uri": notebook.cells[1], "version": 9}
    notebook.change(
        structure={"array": {"start": 7, "deleteCount": 1}},
        textContent=[{"document": document, "changes": [typed]}],
    )
    assert notebook.above(1, 0, 5) == ""
    assert client.asked()[-1]["cursor"] == 5  # its text is still followed
    assert "has 2 cells" in client.log_text()


def test_an_unreadable_change_stops_until_reopened(
    client: LspHere,
) -> None:
    notebook = ClientNotebook(client, [("python", "a = 1"), ("python", "b")])
    notebook.change(textContent=[{"document": {"uri": notebook.cells[1]}, "changes": 5}])
    result = client.complete(0, 1, uri=notebook.cells[1])["result"]
    assert not result["items"] and "lost track" in result["reason"]
    again = ClientNotebook(client, [("python", "a = 1"), ("python", "b")])
    assert insert_texts(client.complete(0, 1, uri=again.cells[1])) == ["x.sum()"]


def test_secret_cells_and_disabled_languages_stay_out(client: LspHere) -> None:
    token = f"ghp_{'a1' * 20}"
    sent = {"redraft": {"disabledLanguages": ["markdown"]}}
    client.notify("workspace/didChangeConfiguration", {"settings": sent})
    notebook = ClientNotebook(
        client, [("python", token), ("markdown", "# Title"), ("python", "a = 1"), ("python", "")]
    )
    assert notebook.above(3) == "# %%\na = 1\n# %%\n"


@pytest.mark.parametrize("scheme", ["vscode-notebook-cell:", "vscode-notebook-cell://ssh-remote"])
@pytest.mark.parametrize("by", ["setting", "file"])
@pytest.mark.usefixtures("spawn")  # git
def test_cells_are_excluded_with_their_notebook(tmp_path: Path, scheme: str, by: str) -> None:
    globs = ["sales.ipynb"] if by == "setting" else []
    if by == "file":
        (tmp_path / ".redraftignore").write_text("/sales.ipynb\n")
    with lsp_client("x.sum()", settings={"secret_globs": globs}) as client:
        client.initialize(rootUri=tmp_path.as_uri())
        notebook = ClientNotebook(
            client,
            SALES,
            uri=f"{tmp_path.as_uri()}/sales.ipynb",
            cell_uri=f"{scheme}{tmp_path.as_posix()}/sales.ipynb",
        )
        result = client.complete(0, 6, uri=notebook.cells[4])["result"]
        assert not result["items"] and "sales.ipynb" in result["reason"]
        assert client.asked() == []


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
