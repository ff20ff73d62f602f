"""Tables on standard output, with colours on a terminal only; labels and names are shown as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table


def plain_table(first: str | None = None, *numbers: str, title: str | None = None) -> Table:
    """A table without a frame: a first column of names and further ones of numbers; or no columns yet."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE if first is not None else None,
        title=None if title is None else Text(title, style="bold"),
        title_justify="left",
        show_header=first is not None,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
    if first is not None:
        table.add_column(Text(first), style="cyan", overflow="fold")
    for name in numbers:
        table.add_column(Text(name), justify="right")
    return table


def visible(name: str) -> str:
    """A name as it is; in quotes where a space at its edge, or what is not printed, would go unseen."""
    return name if name == name.strip() and name.isprintable() else repr(name)


def show(what: Any) -> None:
    """Print it, and an empty line. Nothing in it is markup: a label may look like ``[red]``."""
    from rich.console import Console

    console = Console(markup=False, highlight=False, emoji=False)
    console.print(what)
    console.print()
