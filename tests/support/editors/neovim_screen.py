"""Neovim's screen, read through its UI protocol (``ext_linegrid``), and a picture of it."""

from __future__ import annotations

import queue
import time
from html import escape
from typing import Any

Cell = tuple[str, int]  # its text, "" to the right of a wide one, and its highlight's number

_WIDTH, _HEIGHT = 8.43, 18  # of a cell at 14 px, in SVG's units


class Screen:
    """The cells of the one grid, with their colours."""

    def __init__(self) -> None:
        self.rows: list[list[Cell]] = []
        self.cursor = (0, 0)
        self.mode = "normal"
        self._awaited: tuple[str, queue.Queue[float]] | None = None
        self._colours = (0xFFFFFF, 0x000000)
        self._highlights: dict[int, dict[str, Any]] = {0: {}}

    def redraw(self, events: list[Any]) -> None:
        for name, *calls in events:
            handler = getattr(self, f"_{name}", None)
            if handler is not None:
                for arguments in calls:
                    handler(*arguments)

    def _grid_resize(self, grid: int, width: int, height: int) -> None:
        self.rows = [[(" ", 0)] * width for _ in range(height)]

    def _grid_clear(self, grid: int) -> None:
        self._grid_resize(grid, len(self.rows[0]), len(self.rows))

    def _grid_line(self, grid: int, row: int, column: int, cells: list[Any], *rest: Any) -> None:
        highlight = 0
        for text, *more in cells:
            highlight = more[0] if more else highlight
            for _ in range(more[1] if len(more) > 1 else 1):
                self.rows[row][column] = (text, highlight)
                column += 1

    def _grid_scroll(self, grid: int, *scrolled: int) -> None:
        top, end, left, right, by, _columns = scrolled
        moved = [row[left:right] for row in self.rows]
        for row in range(top, end):
            if top <= row + by < end:
                self.rows[row][left:right] = moved[row + by]

    def _grid_cursor_goto(self, grid: int, row: int, column: int) -> None:
        self.cursor = (row, column)

    def _mode_change(self, mode: str, number: int) -> None:
        self.mode = mode

    def _default_colors_set(self, foreground: int, background: int, *rest: Any) -> None:
        self._colours = (foreground, background)

    def _hl_attr_define(self, number: int, rgb: dict[str, Any], *rest: Any) -> None:
        self._highlights[number] = rgb

    def _flush(self) -> None:
        if self._awaited is not None and self._awaited[0] in self.text():
            self._awaited[1].put(time.perf_counter())
            self._awaited = None

    def await_text(self, part: str) -> queue.Queue[float]:
        """Return the ``time.perf_counter`` at which a complete screen first shows ``part``."""
        seen: queue.Queue[float] = queue.Queue()
        self._awaited = (part, seen)
        return seen

    def lines(self) -> list[str]:
        return ["".join(text for text, _ in list(row)).rstrip() for row in list(self.rows)]

    def text(self) -> str:
        return "\n".join(self.lines())

    def attributes(self, part: str) -> dict[str, Any]:
        """Return the attributes of the first cell of ``part``, such as its foreground."""
        for row in self.rows:
            at = "".join(text or " " for text, _ in row).find(part)
            if at >= 0:
                return self._highlights.get(row[at][1], {})
        raise AssertionError(f"{part!r} is not on the screen:\n{self.text()}")

    def svg(self) -> str:
        """Return the present screen in its colours."""
        return "\n".join([self.head(), *self.drawn(), "</g></svg>", ""])

    def head(self) -> str:
        """Return the head of a picture."""
        width, height = len(self.rows[0]) * _WIDTH + 16, len(self.rows) * _HEIGHT + 16
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
                f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">',
                f'<rect width="100%" height="100%" rx="6" fill="{_hex(self._colours[1])}"/>',
                '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, '
                '\'DejaVu Sans Mono\', monospace" font-size="14">',
            ]
        )

    def drawn(self) -> list[str]:
        """Each row as it stands, and the cursor."""
        rows = ["\n".join(self._row(number, row)) for number, row in enumerate(list(self.rows))]
        return [*rows, self._cursor()]

    def _row(self, number: int, row: list[Cell]) -> list[str]:
        top, parts, at = 8 + number * _HEIGHT, [], 0
        while at < len(row):
            end = at + 1
            while end < len(row) and row[end][1] == row[at][1]:
                end += 1
            parts += self._run("".join(t for t, _ in row[at:end]), row[at][1], at, end - at, top)
            at = end
        return parts

    def _run(self, text: str, highlight: int, at: int, cells: int, top: int) -> list[str]:
        drawn = self._highlights.get(highlight, {})
        front = drawn.get("foreground", self._colours[0])
        back = drawn.get("background", self._colours[1])
        if drawn.get("reverse"):
            front, back = back, front
        left, width, parts = 8 + at * _WIDTH, cells * _WIDTH, []
        if back != self._colours[1]:
            parts.append(
                f'<rect x="{left:.2f}" y="{top}" width="{width:.2f}" height="{_HEIGHT}" '
                f'fill="{_hex(back)}"/>'
            )
        if text.strip():
            # Blanks at the ends are left out and others hard: renderers swallow plain ones.
            left += (len(text) - len(text.lstrip())) * _WIDTH
            text = text.strip()
            style = "".join(
                f' {name}="{value}"'
                for flag, name, value in (
                    ("bold", "font-weight", "bold"),
                    ("italic", "font-style", "italic"),
                    ("underline", "text-decoration", "underline"),
                    ("underdotted", "text-decoration", "underline dotted"),
                    ("strikethrough", "text-decoration", "line-through"),
                )
                if drawn.get(flag)
            )
            parts.append(
                f'<text x="{left:.2f}" y="{top + 13}" textLength="{len(text) * _WIDTH:.2f}" '
                f'fill="{_hex(front)}"{style}>{escape(text).replace(" ", chr(0xA0))}</text>'
            )
        return parts

    def _cursor(self) -> str:
        row, column = self.cursor
        wide = 2.0 if self.mode.startswith("insert") else _WIDTH
        return (
            f'<rect x="{8 + column * _WIDTH:.2f}" y="{8 + row * _HEIGHT}" width="{wide}" '
            f'height="{_HEIGHT}" fill="{_hex(self._colours[0])}" fill-opacity="0.6"/>'
        )


def _hex(colour: int) -> str:
    return f"#{colour:06x}"
