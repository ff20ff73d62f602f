"""Columns of text: words, word n-grams and character n-grams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onlearn.data.batch import NamedRows, hash_name
from onlearn.features import tokenizer
from onlearn.features.extractors import ColumnExtractor, Groups, ReadColumn, check_choice, check_grams, check_missing
from onlearn.features.tables import strings
from onlearn.features.tokenizer import SLACK, characters

TOKENS = ("words", "punctuation")
WEIGHTINGS = ("counts", "binary", "log", "idf", "tfidf", "log-tfidf")


@dataclass(frozen=True)
class Text(ColumnExtractor):
    """A column of text: words, n-grams of words and n-grams of characters.

    Words are runs of letters, digits and combining marks, in lower case as ``str.lower`` has it; with ``apostrophes``
    also an apostrophe inside a word, and with ``tokens="punctuation"`` each punctuation mark or symbol is a word, too.
    Character n-grams are taken of each word with a space before and after it.

    A feature's value is its count, or 1 (``weighting="binary"``), 1 + log count (``"log"``), the inverse document
    frequency (``"idf"``), that times the count (``"tfidf"``) or times 1 + log count (``"log-tfidf"``); with ``norm``
    the values of the column are scaled to a vector of length 1.
    """

    column: str = "text"
    ngrams: tuple[int, int] | None = (1, 2)
    chars: tuple[int, int] | None = None
    weighting: str = "log-tfidf"
    norm: bool = True
    lowercase: bool = True
    apostrophes: bool = False
    missing: str = "absent"
    prefix: str | None = None  # of names; None: the column and a colon
    tokens: str = "words"

    kind: ClassVar[str] = "text"

    def __post_init__(self) -> None:
        for field in ("ngrams", "chars"):
            object.__setattr__(self, field, check_grams(getattr(self, field), f"Text({self.column!r}): {field}"))
        if self.ngrams is None and self.chars is None:
            raise ValueError(f"Text({self.column!r}) has neither ngrams nor chars, so it has no features")
        check_choice(self.weighting, WEIGHTINGS, f"Text({self.column!r}): weighting")
        check_choice(self.tokens, TOKENS, f"Text({self.column!r}): tokens")
        check_missing(self.missing, f"Text({self.column!r})")

    def groups(self) -> Groups:
        """The prefixes of the features, and how they are weighted."""
        prefix = f"{self.column}:" if self.prefix is None else self.prefix
        prefixes = tuple(
            made for made, given in ((prefix, self.ngrams), (f"{prefix}chars:", self.chars)) if given is not None
        )
        return Groups(
            self.column,
            prefixes,
            binary=self.weighting in ("binary", "idf"),
            log="log" in self.weighting,
            inverse="idf" in self.weighting,
            norm=self.norm,
        )

    def read(self, table: Any) -> TextColumn:
        """The column, ready to be cut into features."""
        text, offsets, missing = strings(table, self.column, "text")
        return TextColumn(self, text, offsets, missing)


class TextColumn(ReadColumn):
    """The bytes of a column, and the offsets of its rows."""

    spec: Text
    text: np.ndarray
    offsets: np.ndarray
    missing: np.ndarray | None

    def __init__(self, spec: Text, text: np.ndarray, offsets: np.ndarray, missing: np.ndarray | None) -> None:
        self.spec, self.text, self.offsets, self.missing = spec, text, offsets, missing
        beyond = bool(len(text)) and int(text[offsets[0] : offsets[-1]].max(initial=0)) >= 0x80
        self.tables, self.growth = characters(spec.lowercase, beyond), 3 if beyond else 2
        self.prefixes: tuple[str, ...] = spec.groups().prefixes

    def rows(self, start: int, stop: int) -> NamedRows:
        """The features of some of the rows."""
        spec, count = self.spec, stop - start
        size = int(self.offsets[stop] - self.offsets[start])
        marks = spec.tokens == "punctuation"  # which need no space between them to be words
        text = np.empty(size * (self.growth + 2 * marks) // 2 + 2 * count + SLACK, np.uint8)
        most = (size if marks else size // 2) + count + 2
        words, word_starts, word_ends = (
            np.empty(count + 1, np.int64),
            np.empty(most, np.int64),
            np.empty(most, np.int64),
        )
        word_hashes = np.empty(most, np.uint64)
        seed = hash_name(self.prefixes[0])
        used = tokenizer.tokenise(
            self.text, self.offsets, start, stop, self.tables, spec.apostrophes, marks, seed,
            text, words, word_starts, word_ends, word_hashes,
        )  # fmt: skip
        indptr = np.zeros(count + 1, np.int64)
        sizes = indptr[1:]
        if spec.ngrams is not None:
            tokenizer.count_word_grams(words, *spec.ngrams, sizes)
        if spec.chars is not None:
            tokenizer.count_character_grams(text, words, word_starts, word_ends, *spec.chars, sizes)
        np.cumsum(sizes, out=sizes)
        features = int(indptr[-1])
        hashes, starts, lengths = (
            np.empty(features, np.uint64),
            np.empty(features, np.int64),
            np.empty(features, np.int64),
        )
        groups, cursor = np.empty(features, np.uint32), indptr[:-1].copy()
        if spec.ngrams is not None:
            tokenizer.word_grams(
                words, word_starts, word_ends, word_hashes, *spec.ngrams, np.uint32(0),
                cursor, hashes, starts, lengths, groups,
            )  # fmt: skip
        if spec.chars is not None:
            tokenizer.character_grams(
                text, words, word_starts, word_ends, *spec.chars, hash_name(self.prefixes[-1]),
                np.uint32(len(self.prefixes) - 1), cursor, hashes, starts, lengths, groups,
            )  # fmt: skip
        return NamedRows(indptr, hashes, np.ones(features), starts, lengths, groups, text[:used], self.prefixes)

    def cost(self) -> np.ndarray:
        """The work for the rows before each row, in features, approximately."""
        return (self.offsets - self.offsets[0]) * (1 if self.spec.chars is None else 4) // 3
