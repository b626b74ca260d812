"""A little workspace, what an indexer knows of it, and a place to write in."""

from __future__ import annotations

from dataclasses import replace

from redraft.lsp.context.gather import View
from redraft.lsp.context.index import make_entry
from redraft.lsp.context.indexer import Indexer
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


def indexer_of(files: dict[str, str]) -> Indexer:
    """Return an indexer without a running thread."""
    indexer = Indexer(lambda path: "")
    for path, text in files.items():
        put(indexer, path, text)
    return indexer


def put(indexer: Indexer, path: str, text: str) -> None:
    entry = make_entry(path, language_of(path) or "", text, (hash(text), len(text)))
    indexer.index.put(entry, text)
    indexer.index.renew()


def view(text: str = MAIN, at: str = "    cart = Cart(customer)\n", **changes: object) -> View:
    """Return a view of MAIN with the cursor after the first ``at``."""
    cursor = text.index(at) + len(at)
    seen = View("file:///main.py", "shop/main.py", "python", text, cursor)
    return replace(seen, **changes)  # type: ignore[arg-type]
