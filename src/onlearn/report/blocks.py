"""What pages are made of: sections of blocks. Templates show them; a block knows nothing of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from onlearn.inert_text import NOTHING, inert, number
from onlearn.report.charts import Chart, HeatMap


class Tile(NamedTuple):
    """A main figure: its name, its value, and what to compare it with."""

    name: str
    value: str
    note: str = ""


class Tiles(NamedTuple):
    """The main figures."""

    tiles: list[Tile]
    kind: str = "tiles"


class Text(NamedTuple):
    """A paragraph; ``tone`` is "plain", "lead", "note" or "warning"."""

    text: str
    tone: str = "plain"
    kind: str = "text"


class Items(NamedTuple):
    """A list of sentences."""

    items: list[str]
    kind: str = "items"


class Facts(NamedTuple):
    """Names with values."""

    facts: list[tuple[str, str]]
    kind: str = "facts"


class Code(NamedTuple):
    """A command as it was typed."""

    code: str
    kind: str = "code"


class Table(NamedTuple):
    """Rows of cells. Those of ``words`` columns are words, the others numbers; ``strong`` is the row that matters."""

    caption: str
    columns: list[str]
    rows: list[list[str]]
    words: int = 1
    strong: int | None = None
    note: str = ""
    kind: str = "table"

    @property
    def wide(self) -> bool:
        """Whether it needs the whole width of a page."""
        return self.words > 2 or len(self.columns) > 5


class Bar(NamedTuple):
    """A bar of ``Bars``: its name, its value as text, and its length from -1 to 1."""

    name: str
    value: str
    length: float


class Bars(NamedTuple):
    """Names with a bar each, such as features with their weights."""

    caption: str
    bars: list[Bar]
    kind: str = "bars"


Block = Tiles | Text | Items | Facts | Code | Table | Bars | Chart | HeatMap


class Section(NamedTuple):
    """A part of a page."""

    id: str
    title: str
    blocks: list[Block]

    @property
    def lone(self) -> bool:
        """Whether it has a single chart, which may then have the whole width."""
        return sum(block.kind == "chart" for block in self.blocks) == 1


class Caps(NamedTuple):
    """How much is shown of what may be without end; a page that is too large is made again with smaller ones."""

    labels: int = 60  # rows of tables of labels
    cells: int = 20  # labels of a heat map
    weights: int = 10  # of a label
    classes: int = 24  # with their weights
    rows: int = 20  # most wrong
    text: int = 280  # characters of a row
    notes: int = 80
    lines: int = 40  # curves of a chart
    entries: int = 100  # rows of other tables

    def smaller(self) -> Caps:
        """Half of all that."""
        return Caps(*(max(2, cap // 2) for cap in self))


def cut(shown: int, whole: int, what: str) -> str:
    """A sentence that says what is left out; empty if nothing is.

    >>> cut(20, 100, "labels"), cut(3, 3, "labels")
    ('20 of 100 labels are shown.', '')
    """
    return f"{shown:,} of {whole:,} {what} are shown." if shown < whole else ""


def percent(share: float | None) -> str:
    """A share in per cent.

    >>> percent(0.8531), percent(0.99996), percent(1.0)
    ('85.3 %', '99.996 %', '100 %')
    """
    if share is None:
        return NOTHING
    places = 0 if share in (0, 1) else 1 if share <= 0.999 else 3
    return f"{100 * share:.{places}f} %"


def cells(values: Sequence[Any]) -> list[str]:
    """Values as the cells of a table."""
    return [number(value) if not isinstance(value, str) else inert(value) for value in values]


def seconds_text(seconds: float | None) -> str:
    """A time in words.

    >>> seconds_text(0.0123), seconds_text(75)
    ('12 ms', '1 min 15 s')
    """
    if seconds is None:
        return NOTHING
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def bytes_text(size: float | None) -> str:
    """A number of bytes with its unit.

    >>> bytes_text(512), bytes_text(3_400_000)
    ('512 bytes', '3.4 MB')
    """
    if size is None:
        return NOTHING
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.0f} bytes"
