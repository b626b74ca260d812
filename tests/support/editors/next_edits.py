"""Next edits in a session, as their tests use them."""

from __future__ import annotations

from redraft.lsp.suggestions.suggestion import Offer

from support.editors.workbench import Workbench, showing

CODE = (
    "def area(r):\n    return 3.14 * r * r\n\n\ndef show(r):\n    print(area(r))\n"
    "\n\ndef main():\n    show(2)\n"
)


def edited(**settings: object) -> Workbench:
    """Return a workbench whose user has just added a parameter to ``area``."""
    desk = Workbench(CODE, **settings)
    desk.swap("area(r)", "area(r, pi)")
    return desk


def shown_edit(desk: Workbench) -> Offer:
    return showing(desk.edit("print(area(r))", "print(area(r, 3))"))
