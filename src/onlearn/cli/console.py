"""The console that tables, notes and progress of commands are printed on.

Names of columns, labels, words and files come from others. Whatever they hold, markup of Rich or what a terminal obeys,
it is shown and does nothing: every string is taken as it is, and what is not seen of it is written as escapes.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from onlearn.inert_text import escaped


class PlainConsole(Console):
    """A console without markup, on which all strings are escaped before they are laid out."""

    def __init__(self, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, highlight=False, emoji=False)

    def render_str(self, text: str, **how: Any) -> Text:
        """What Rich makes of any string that it prints, in a table or by itself."""
        return super().render_str(escaped(text), **{**how, "markup": False, "emoji": False})
