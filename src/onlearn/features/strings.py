"""Texts as they are, for kernels that compare strings or trees: what a model has instead of features."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.engine.spec import did_you_mean
from onlearn.features.roles import PlanError, guess_roles
from onlearn.features.tables import as_source, column, is_plain_texts, is_text
from onlearn.features.text import Text


class Strings:
    """One column of a table, as a list of strings; a missing one is empty. It is used like a ``FeatureMap``.

    >>> Strings("word").transform({"word": ["ab", None], "size": [1, 2]})
    ['ab', '']
    """

    kind_ = "a table"
    dtype = "float64"  # of kernel values
    n_features_out_ = 1
    has_vocabulary = False
    columns_: list[str] | None = None  # of the first table, which no one asks for

    def __init__(self, column: str) -> None:
        self.column = column
        self.n_seen_ = 0

    def __repr__(self) -> str:
        return f"Strings(column={self.column!r})"

    def unfitted(self) -> Strings:
        """One that has seen nothing."""
        return Strings(self.column)

    @property
    def extractors(self) -> list[Text]:
        """What says that the column is text."""
        return [Text(self.column)]

    extractors_ = extractors

    def learn_transform(self, rows: Any, ordered: bool = True) -> list[str]:
        """The strings; there is nothing to be learned about them."""
        made = self.transform(rows)
        self.n_seen_ += len(made)
        return made

    def expect(self, share: float) -> None:
        """Nothing is kept of strings, so no room need be made for it."""

    def look_up(self, rows: Any) -> Any:
        """Nothing can be found out about strings before they are learned from."""
        return rows

    def transform(self, rows: Any) -> list[str]:
        """The strings of a table, or of a list of texts."""
        table = as_source(rows)
        if not hasattr(table, "column_names"):
            raise TypeError("this model learned from strings: it takes tables and lists of texts")
        values = column(table, table.column_names[0] if is_plain_texts(table) else self.column)
        if not is_text(values.type):
            import pyarrow as pa

            try:
                values = values.cast(pa.string())
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                raise ValueError(f"column {self.column!r} holds {values.type}, not text") from None
        return ["" if value is None else value for value in values.to_pylist()]

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"strings": self.column, "n_seen": self.n_seen_}, {}

    @classmethod
    def restore(cls, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> Strings:
        self = cls(str(facts["strings"]))
        self.n_seen_ = int(facts["n_seen"])
        return self


def strings_of(rows: Any, roles: dict[str, str], kernel: Any) -> tuple[Strings, list[str]]:
    """The column of text in rows such as these, and what was decided about it."""
    if not hasattr(rows, "column_names"):
        raise PlanError(f"the kernel {kernel} compares texts, but the rows have no columns")
    texts = [name for name, role in roles.items() if role == "text"]
    if len(texts) > 1:
        raise PlanError(f"the kernel {kernel} compares one text a row: text= names {len(texts)} columns")
    if texts and texts[0] not in rows.column_names:
        raise PlanError(f"there is no column {texts[0]!r}{did_you_mean(texts[0], rows.column_names)}")
    if texts:
        return Strings(texts[0]), []
    left = [name for name in rows.column_names if roles.get(name) != "ignore"]
    guessed = guess_roles(rows.select(left))
    found = left if len(left) == 1 else [name for name, role in guessed.items() if role.role == "text"]
    if len(found) != 1:
        raise PlanError(f"the kernel {kernel} compares one text a row: name its column with text= ({', '.join(left)})")
    return Strings(found[0]), [f"{found[0]} is the text that is compared; nothing else is looked at"]
