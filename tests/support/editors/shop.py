"""A small workspace, an index of it, a document to write in, and questions about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from redraft.lsp.context.gatherer import Gathered
from redraft.lsp.context.index import make_entry
from redraft.lsp.context.scored_excerpts import KINDS, PieceKind
from redraft.lsp.documents.history import RecentEdits
from redraft.lsp.documents.open_documents import ContentChange, Document, OpenText
from redraft.lsp.documents.positions import Range
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.question import Question
from redraft.lsp.snapshot import RequestFlags, Snapshot
from redraft.lsp.suggestions.gates import Gates
from redraft.lsp.suggestions.memory import Memory
from redraft.lsp.workspace import Workspace
from redraft.model.records import Diagnostic, EditRequest, RecentEdit
from redraft.model.text.syntax import language_of

CART = """\
class Cart:
    \"\"\"What a customer is about to buy.\"\"\"

    def __init__(self, owner):
        self.owner = owner
        self.items = []

    def add_item(self, item, amount=1):
        self.items.append((item, amount))


def total_price(cart, discount):
    return sum(item.price * amount for item, amount in cart.items) * (1 - discount)
"""
TILL = "def total_price(receipt):\n    return receipt.total\n\n\ndef open_drawer(till):\n    pass\n"
MAIN = (
    "from shop.cart import Cart, total_price\n\n\n"
    + "".join(f"def filler_{number}(x):\n    return x + {number}\n\n\n" for number in range(40))
    + "def check_out(customer, discount):\n    cart = Cart(customer)\n    \n    return cart\n\n\n"
    + "".join(f"def padding_{number}(x):\n    return x - {number}\n\n\n" for number in range(40))
)
FILES = {"shop/cart.py": CART, "till/desk.py": TILL, "shop/main.py": MAIN}
AT = "    cart = Cart(customer)\n"
ROOT = "file:///w"


class Shop:
    """A gatherer whose thread is not started, and the document that the user is in.

    Args:
        files: that the index has.
        text: of the document ``shop/main.py``.
        at: the cursor is behind the first such text.
        budget: tokens of the prompt.
        reads: work in the background once the indexer is started.
    """

    def __init__(
        self,
        files: dict[str, str] = FILES,
        text: str = MAIN,
        at: str = AT,
        budget: int = 2_048,
        edits: tuple[RecentEdit, ...] = (),
        kinds: frozenset[PieceKind] = KINDS,
        reads: bool = False,
    ) -> None:
        self.now_s, self.budget, self.edits = 0.0, budget, edits
        self.workspace = Workspace(LspSettings(), lambda: self.now_s, reads=reads)
        self.workspace.folders = [ROOT]
        self.gatherer = self.workspace.context
        self.gatherer.kinds = kinds
        for path, content in files.items():
            self.put(path, content)
        self.document = self.open("shop/main.py", text)
        self.cursor = text.index(at) + len(at)

    def put(self, path: str, text: str) -> None:
        """Let the index have a file."""
        entry = make_entry(path, language_of(path) or "", text, (hash(text), len(text)))
        self.gatherer.indexer.index.put(entry, text)
        self.gatherer.indexer.index.renew()

    def open(self, path: str, text: str) -> Document:
        return self.workspace.open(f"{ROOT}/{path}", text, 0, language_of(path) or "")

    def close(self, document: Document) -> None:
        self.workspace.close(document.uri)

    def type(self, text: str) -> None:
        """Type at the cursor."""
        at = self.document.position(self.cursor)
        self.workspace.change(self.document.uri, [ContentChange(text, Range(at, at))], None)
        self.cursor += len(text)

    def snapshot(self, cursor: int | None = None, document: Document | None = None) -> Snapshot:
        self.workspace.context_tokens = self.budget
        at = self.cursor if cursor is None else cursor
        uri = (document or self.document).uri
        found = self.workspace.snapshot(uri, at, RequestFlags())
        return replace(found, edits=RecentEdits.of(self.edits))

    def gather(self, cursor: int | None = None) -> Gathered:
        """Move the cursor, if one is given, and gather there."""
        self.cursor = self.cursor if cursor is None else cursor
        return self.gatherer.gather(self.snapshot())

    def on_diagnostics(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.workspace.on_diagnostics(self.document.uri, tuple(diagnostics))


def question(uri: str, text: str, request: EditRequest) -> Question:
    """Return the first question of a session, about the only document of the folder ``/w``."""
    workspace = _workspace()
    workspace.open(uri, text, 1, "python")
    return Question(workspace.snapshot(uri, request.cursor, RequestFlags()), request, number=1)


def memory() -> Memory:
    """Return the memory of a session in which nothing happened, with the shipped gate."""
    return Memory(lambda _: None, Gates(None, _workspace()))


def _workspace() -> Workspace:
    workspace = Workspace(LspSettings(), lambda: 0.0, reads=False)
    workspace.folders = ["file:///w"]
    return workspace


def open_text(uri: str, path: str, language: str, text: str) -> OpenText:
    """Return an open document that may be read and edited."""
    document = Document(uri, text, 1, language)
    document.put(path, "", True)
    return document.current()
