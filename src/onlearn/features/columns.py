"""Columns of categories and of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlearn.dictionaries import codes
from onlearn.features import scaling, truth
from onlearn.features.named import beside, hash_stretches, one_each
from onlearn.features.spec import Groups, check_choice, check_missing
from onlearn.features.tables import as_words, column, fixed, numbers
from onlearn.features.vocabulary import Vocabulary
from onlearn.hashing import hash_name
from onlearn.named import NamedRows


@dataclass(frozen=True)
class Category:
    """A column of categories: the feature ``column=value`` is 1."""

    column: str
    missing: str = "absent"

    kind = "category"

    def __post_init__(self) -> None:
        check_missing(self.missing, f"Category({self.column!r})")

    def groups(self) -> Groups:
        return Groups(self.column, (f"{self.column}=",))

    def read(self, table: Any) -> CategoryColumn:
        return CategoryColumn(self, column(table, self.column))


class CategoryColumn:
    """The distinct values as stretches of a text, and which of them each row has (-1: missing)."""

    def __init__(self, spec: Category, values: Any) -> None:
        import pyarrow as pa

        self.prefix = f"{spec.column}="
        self.booleans = pa.types.is_boolean(values.type)
        if not pa.types.is_dictionary(values.type):
            values = as_words(values, spec.column).dictionary_encode()
        self.words = words = as_words(values.dictionary, spec.column)
        self.codes = codes(values)
        if words.null_count:  # a dictionary may itself hold a missing value
            absent = words.is_null().to_numpy(zero_copy_only=False)
            self.codes[np.isin(self.codes, np.flatnonzero(absent))] = -1
        self.missing = self.codes < 0 if (self.codes < 0).any() else None
        self._lay_out(words)

    def spell(self, vocabulary: Vocabulary, learning: bool) -> None:
        """Spell true and false as the vocabulary does; but words that are learned from stay as they are."""
        if learning and not self.booleans:
            return

        # a word beyond those with names may have been learned, too; booleans go by names, or any spelling would do
        number = vocabulary.known if self.booleans else vocabulary.lookup

        def known(word: str) -> bool:
            return bool(number(np.array([hash_name(word, hash_name(self.prefix))], np.uint64))[0] >= 0)

        if (words := truth.respelled(self.words, self.booleans, known)) is not None:
            self._lay_out(words)

    def _lay_out(self, words: Any) -> None:
        _, offsets, data = words.buffers()
        self.text = fixed(np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8))
        places = np.zeros(1, np.int64)
        if len(words):
            places = np.frombuffer(offsets, np.int64)[words.offset : words.offset + len(words) + 1]
        self.starts, self.lengths = places[:-1].copy(), np.diff(places)
        self.hashes = np.empty(len(words), np.uint64)
        with np.errstate(over="ignore"):
            hash_stretches(self.text, self.starts, self.lengths, hash_name(self.prefix), self.hashes)

    def rows(self, start: int, stop: int) -> NamedRows:
        codes = self.codes[start:stop]
        present = codes >= 0
        indptr = np.zeros(len(codes) + 1, np.int64)
        np.cumsum(present, out=indptr[1:])
        held = codes[present]
        return NamedRows(
            indptr,
            self.hashes[held],
            np.ones(len(held)),
            self.starts[held],
            self.lengths[held],
            np.zeros(len(held), np.uint16),
            self.text,
            (self.prefix,),
        )

    def cost(self) -> np.ndarray:
        return np.arange(len(self.codes) + 1)


@dataclass(frozen=True)
class Number:
    """A column of numbers: the feature ``column`` has the value, scaled.

    ``scale="standard"`` has mean 0 and deviation 1, ``"max-abs"`` a largest size of 1, as learned so far;
    ``"log1p"`` is sign(x) log(1 + |x|). A missing value is as good as a scaled value of 0; with
    ``missing="zero"`` it is a 0 like any other, before scaling.
    """

    column: str
    scale: str = "standard"
    missing: str = "absent"

    kind = "number"

    def __post_init__(self) -> None:
        check_choice(self.scale, scaling.SCALES, f"Number({self.column!r}): scale")
        check_missing(self.missing, f"Number({self.column!r})")

    def groups(self) -> Groups:
        return Groups(self.column, ("",), square=True)

    def read(self, table: Any) -> NumberColumn:
        values = numbers(table, self.column)
        missing = np.isnan(values)
        if self.missing == "zero" and missing.any():
            values = np.where(missing, 0.0, values)
        return NumberColumn(self, values, missing if missing.any() else None)


class NumberColumn:
    """A column's values, and the facts its scale is made of."""

    def __init__(self, spec: Number, values: np.ndarray, missing: np.ndarray | None) -> None:
        self.spec, self.values, self.missing = spec, values, missing
        self.facts = np.zeros(scaling.FACTS)

    def learn(self, facts: np.ndarray) -> None:
        """Take the values into facts about the column."""
        scaling.learn(fixed(self.values), facts)

    def rows(self, start: int, stop: int) -> NamedRows:
        values = self.values[start:stop]
        present = ~np.isnan(values)
        scaled = scaling.apply(values[present], self.facts, self.spec.scale)
        return one_each(present, scaled, self.spec.column.encode(), "")

    def cost(self) -> np.ndarray:
        return np.arange(len(self.values) + 1)


class WithIndicator:
    """A column and, in rows where its value is missing, the feature ``column=missing``."""

    def __init__(self, inner: Any, name: str) -> None:
        self.inner, self.name, self.missing = inner, name, inner.missing

    def rows(self, start: int, stop: int) -> NamedRows:
        absent = np.zeros(stop - start, bool) if self.missing is None else self.missing[start:stop]
        flags = one_each(absent, np.ones(int(absent.sum())), b"missing", f"{self.name}=")
        return beside([self.inner.rows(start, stop), flags])

    def cost(self) -> np.ndarray:
        return self.inner.cost()
