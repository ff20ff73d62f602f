"""Rows that are a label and a text, as in fastText's files: the text is text, whatever it looks like."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from onlearn.features import Role
from onlearn.features.roles import OneWord

COLUMN = "text"  # the only one; the label is in none


def with_text(guessed: dict[str, Role], named: Collection[str]) -> dict[str, Role]:
    """The roles of columns, of which that of a text alone is certain; ``named`` has "target" if a column is it."""
    if list(guessed) != [COLUMN] or "target" in named or guessed[COLUMN].role == "text":
        return guessed
    role = guessed[COLUMN]
    kind = OneWord if role.one_word or role.role == "ignore" else Role  # identifiers are single words
    return {COLUMN: kind("text", "there is nothing else in a row")}


def learned_from(reading: dict[str, Any], columns: list[str]) -> bool:
    """Whether a model that was ``reading`` so, and looks at these columns, has learned from such rows."""
    return "target" not in reading and columns == [COLUMN]
