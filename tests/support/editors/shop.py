"""A small workspace, an index of it, and a document to write in."""

from __future__ import annotations

from collections.abc import Iterable

from redraft.lsp.context.excerpts import KINDS, PieceKind
from redraft.lsp.context.gather import Gathered, Gatherer
from redraft.lsp.context.index import make_entry
from redraft.lsp.context.opened import OpenDocuments
from redraft.lsp.documents import ContentChange, Document
from redraft.lsp.positions import Range
from redraft.lsp.settings import LspSettings
from redraft.lsp.suggestion import Query
from redraft.model.records import Diagnostic, RecentEdit
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
    """

    def __init__(
        self,
        files: dict[str, str] = FILES,
        text: str = MAIN,
        at: str = AT,
        budget: int = 2_048,
        edits: tuple[RecentEdit, ...] = (),
        kinds: frozenset[PieceKind] = KINDS,
    ) -> None:
        self.now_s, self.budget, self.edits = 0.0, budget, edits
        self.documents: list[Document] = []
        opened = OpenDocuments(lambda: self.documents, lambda: [ROOT], LspSettings)
        self.gatherer = Gatherer(
            opened,
            lambda: self.now_s,
            edits=lambda: self.edits,
            budget=lambda: self.budget,
            kinds=kinds,
        )
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
        document = Document(f"{ROOT}/{path}", text, 0, language_of(path) or "")
        self.documents.append(document)
        return document

    def type(self, text: str) -> None:
        """Type at the cursor."""
        at = self.document.position(self.cursor)
        splices = self.document.apply([ContentChange(text, Range(at, at))], None)
        self.gatherer.changed(self.document.uri, splices)
        self.cursor += len(text)

    def query(self, cursor: int | None = None) -> Query:
        path = self.document.uri.removeprefix(f"{ROOT}/")
        return Query.at(self.document, path, self.cursor if cursor is None else cursor)

    def gather(self, cursor: int | None = None) -> Gathered:
        """Move the cursor, if one is given, and gather there."""
        self.cursor = self.cursor if cursor is None else cursor
        return self.gatherer.gather(self.query())

    def diagnosed(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.gatherer.diagnosed(self.document.uri, tuple(diagnostics))
