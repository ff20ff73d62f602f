"""Attributes of tokens by a template: the hot path of learning and tagging.

Columns come as codes of distinct words. Views are computed of distinct words only, and each view is hashed once. A line
with one macro gives the same attribute wherever a word stands, so ``transform`` looks it up once for each word, and
remembers it for the next call; only attributes of several macros are hashed and looked up for each token.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlearn.data.batch import Sentences, hash_name
from onlearn.features.vocabulary import Vocabulary
from onlearn.model_schema import NAMES, TEXT, Arrays, Record, check_facts
from onlearn.sequence.attributes import MOST, AttributeTable, numbered, pack_names, unpack_names
from onlearn.sequence.templates import Template
from onlearn.sequence.token_hashes import Lines, Tokens, gather, hash_lines, hash_words
from onlearn.sequence.token_rows import TokenRows
from onlearn.sequence.views import Part, View, Words, hashed, part_of
from onlearn.threads import over_rows

if TYPE_CHECKING:
    from onlearn.data.batch import Encoded

BLOCK = 1 << 14  # tokens whose attributes are hashed before they are numbered
REMEMBERED = 1 << 18  # words
HASHING = 16  # the cost of an attribute, in multiplications


class Remembered(NamedTuple):
    """What is known of words from earlier calls; words of all columns have rows in the same tables."""

    rows: list[dict[str, int]]  # the row of each word, by column
    singles: np.ndarray  # int32: the numbers of attributes of one word
    hashes: np.ndarray  # uint64: the hashes of views that are combined with others
    pad_numbers: np.ndarray  # int32 (lines, pads): the numbers of attributes of one value beyond the sentence
    used: np.ndarray  # int64: the number of rows in use, alone


class TemplateFeatures:
    """Numbers the attributes that a template makes of tokens, in order of first appearance.

    ``columns`` are those of the sentences, in the order in which the template numbers them. ``label``, if it is one of
    them, is the column of the labels, of which no attribute is made.

    >>> from onlearn.sequence.inputs import as_sentences
    >>> features = TemplateFeatures(Template.parse("U0:%x[0,0]\\nU1:%x[-1,0]/%x[0,0]"), ["form"])
    >>> features.learn_transform(as_sentences([["a", "a"], ["a"]])).indices.tolist()
    [0, 1, 0, 2, 0, 1]
    >>> features.names([0, 1, 2])
    ['U0:a', 'U1:_B-1/a', 'U1:a/a']
    """

    def __init__(self, template: Template, columns: Sequence[str], label: str | None = None) -> None:
        self.template: Template = template
        self.given_columns: list[str] = list(columns)
        self.label: str | None = label
        resolved = template.resolved(self.given_columns, label)
        self.columns: list[str] = list(dict.fromkeys(name for line in resolved for name in line))
        self.values: Vocabulary = Vocabulary(MOST)
        self.table: AttributeTable = AttributeTable(max(len(line.macros) for line in template.lines))
        self._remembered: Remembered | None = None
        self._prepare(resolved)

    def _prepare(self, resolved: list[list[str]]) -> None:
        """Turn the template into arrays for loops."""
        lines = self.template.lines
        kinds = {literals: n for n, literals in enumerate(dict.fromkeys(line.literals for line in lines))}
        self.literals: list[tuple[str, ...]] = list(kinds)
        self.seeds: np.ndarray = np.array([hash_name("\0".join(one)) for one in kinds], np.uint64)
        self.views: list[list[View]] = [[] for _ in self.columns]  # of each column
        self._single: list[list[tuple[np.uint64, int]]] = [[] for _ in self.columns]  # seed and view
        alone, columns, views = [], [], []
        for line, names in zip(lines, resolved):
            seed = self.seeds[kinds[line.literals]]
            for macro, name in zip(line.macros, names):
                column = self.columns.index(name)
                if macro.view not in self.views[column]:
                    self.views[column].append(macro.view)
                columns.append(column)
                views.append(self.views[column].index(macro.view))
            place = -1
            if len(names) == 1:
                singles = self._single[columns[-1]]
                if (seed, views[-1]) not in singles:
                    singles.append((seed, views[-1]))
                place = singles.index((seed, views[-1]))
            alone.append(place)
        macros = [macro for line in lines for macro in line.macros]
        ends = np.cumsum([0, *(len(line.macros) for line in lines)])
        rows = np.array([macro.row for macro in macros], np.int64)
        self._lines = Lines(
            np.array([self.seeds[kinds[line.literals]] for line in lines], np.uint64),
            np.array([kinds[line.literals] for line in lines], np.uint16),
            ends.astype(np.int64), np.array(columns, np.int64), rows, np.array(views, np.int64),
        )  # fmt: skip
        self._alone = np.array(alone, np.int64)
        several = np.flatnonzero(self._alone < 0)
        chosen = [p for line in several for p in range(ends[line], ends[line + 1])]
        self._several = Lines(
            self._lines.seeds[several],
            self._lines.kinds[several],
            np.cumsum([0, *np.diff(ends)[several]]).astype(np.int64),
            *(array[chosen] for array in self._lines[3:]),
        )
        reach = int(np.abs(rows).max(initial=0))
        self._pads = [f"_B{n:+d}" for n in range(-reach, reach + 1)]  # the middle one is not used
        self._pad_hashes = hashed(Words(self._pads).whole())

    @property
    def size(self) -> int:
        """The number of attributes."""
        return self.table.count

    # ------------------------------------------------------------------ tokens

    def _encoded(self, sentences: Any) -> list[Encoded]:
        """The columns that the template needs."""
        if not isinstance(sentences, Sentences):
            raise ValueError(
                "this learner makes attributes of words by a template, and was given attributes: "
                "give tokens as strings or tuples of strings"
            )
        found = []
        for name in self.columns:
            have = name
            if name not in sentences.columns and name in ("form", "c0"):  # the words, by the name they have elsewhere
                have = {"form": "c0", "c0": "form"}[name]
            if have not in sentences.columns:
                raise ValueError(
                    f"the sentences have no column {name!r}, which the template needs: "
                    f"they have {', '.join(sentences.columns)}"
                )
            found.append(sentences.encoded(have))
        return found

    def _tokens(self, sentences: Any, words: np.ndarray) -> Tokens:
        lengths = np.diff(sentences.offsets)
        return Tokens(np.repeat(sentences.offsets[:-1], lengths), np.repeat(sentences.offsets[1:], lengths), words)

    def check(self, sentences: Any) -> None:
        """Refuse sentences that rows cannot be made of."""
        if sentences.offsets[-1] > 0:
            self._encoded(sentences)

    def _empty(self, sentences: Any) -> TokenRows | None:
        """The rows of sentences without tokens, whatever kind they are; None if there are tokens."""
        if sentences.offsets[-1] > 0:
            return None
        return TokenRows(sentences.offsets, np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0))

    # ------------------------------------------------------------------ learning

    def learn_transform(self, sentences: Any) -> TokenRows:
        """Rows of attributes; new ones get the next numbers."""
        empty = self._empty(sentences)
        if empty is not None:
            return empty
        columns = [occurring(one) for one in self._encoded(sentences)]
        self._remembered = None
        rows = sum(len(distinct) for _, distinct in columns)
        width = max(map(len, self.views), default=0)
        hashes, ids = np.zeros((rows, width), np.uint64), np.full((rows, width), -1, np.int32)
        words = np.empty((len(columns), int(sentences.offsets[-1])), np.int32)
        first = 0
        for n, (codes, distinct) in enumerate(columns):
            np.add(codes, first, out=words[n])
            for v, part in enumerate(parts_of(distinct, self.views[n])):
                here = slice(first, first + len(distinct))
                hashes[here, v] = hashed(part)
                ids[here, v] = numbered(self.values, part, hashes[here, v])
            first += len(distinct)
        pads = Words(self._pads).whole()
        pad_ids = numbered(self.values, pads, self._pad_hashes)
        tokens, lines = self._tokens(sentences, words), self._lines
        total, width = words.shape[1], len(lines.seeds)
        counts = np.empty(total, np.int64)
        found = []
        for start in range(0, total, BLOCK):
            stop = min(total, start + BLOCK)
            grid = np.empty((stop - start) * width, np.uint64)

            def hash_some(a: int, b: int, start: int = start, grid: np.ndarray = grid) -> None:
                out = grid[a * width : b * width]
                hash_lines(lines, tokens, start + a, start + b, hashes, self._pad_hashes, out)

            over_rows(hash_some, stop - start, len(grid) * HASHING)
            numbers = self.table.learn(lines, tokens, start, ids, pad_ids, grid)
            there = numbers >= 0
            counts[start:stop] = there.reshape(-1, width).sum(axis=1)
            found.append(numbers[there])
        return token_rows(sentences, counts, found)

    # ------------------------------------------------------------------ tagging

    def transform(self, sentences: Any) -> TokenRows:
        """Rows of the attributes that are known, in the order of the template."""
        empty = self._empty(sentences)
        if empty is not None:
            return empty
        words = self._remember(self._encoded(sentences), int(sentences.offsets[-1]))
        known = self._remembered
        assert known is not None
        tokens, lines, several = self._tokens(sentences, words), self._lines, self._several
        total, width = words.shape[1], len(lines.seeds)
        counts = np.empty(total, np.int64)

        def some(start: int, stop: int) -> np.ndarray:
            grid = np.empty((stop - start) * len(several.seeds), np.uint64)
            hash_lines(several, tokens, start, stop, known.hashes, self._pad_hashes, grid)
            out = np.empty((stop - start) * width, np.int32)
            used = gather(
                lines, self._alone, known.pad_numbers, tokens, start, stop, known.singles, self.table.find(grid), out,
                counts,
            )  # fmt: skip
            return out[:used]

        return token_rows(sentences, counts, over_rows(some, total, total * width * HASHING))

    def _remember(self, columns: list[Encoded], tokens: int) -> np.ndarray:
        """The row of the tables of ``Remembered`` of each word of each column; what is not there is added."""
        if self._remembered is None or self._remembered.used[0] > REMEMBERED:
            self._remembered = self._nothing()
        words = np.empty((len(columns), tokens), np.int32)
        for n, one in enumerate(columns):
            codes, distinct = occurring(one) if len(one.distinct) > len(one.codes) else one
            rows = self._remembered.rows[n]
            at = np.fromiter(map(rows.get, distinct, [-1] * len(distinct)), np.int32, len(distinct))
            new = np.flatnonzero(at < 0)
            if len(new):
                at[new] = self._add(n, [distinct[k] for k in new.tolist()])
            np.take(at, codes, out=words[n])
        return words

    def _nothing(self) -> Remembered:
        pads = self._pad_hashes
        width = len(pads)
        pad_numbers = np.full((len(self._lines.seeds), width), -1, np.int32)
        for line in np.flatnonzero(self._alone >= 0):
            out = np.empty((width, 1), np.uint64)
            hash_words(self._lines.seeds[line : line + 1], np.zeros(1, np.int64), pads.reshape(-1, 1), out)
            pad_numbers[line] = self.table.find(out.reshape(-1))
        singles = np.zeros((1024, max(map(len, self._single), default=0)), np.int32)
        hashes = np.zeros((1024, max(map(len, self.views), default=0)), np.uint64)
        return Remembered([{} for _ in self.columns], singles, hashes, pad_numbers, np.zeros(1, np.int64))

    def _add(self, column: int, distinct: list[str]) -> np.ndarray:
        """Compute what is remembered of words of a column; returns their rows."""
        known = self._remembered
        assert known is not None
        first = int(known.used[0])
        past = first + len(distinct)
        if past > len(known.singles):
            room = max(past, 2 * len(known.singles))
            known = known._replace(singles=longer(known.singles, room), hashes=longer(known.hashes, room))
            self._remembered = known
        views = known.hashes[first:past]
        for v, part in enumerate(parts_of(distinct, self.views[column])):
            views[:, v] = hashed(part)
        single = self._single[column]
        out = np.empty((len(distinct), len(single)), np.uint64)
        seeds = np.array([seed for seed, _ in single], np.uint64)
        hash_words(seeds, np.array([view for _, view in single], np.int64), views, out)
        known.singles[first:past, : len(single)] = self.table.find(out.reshape(-1)).reshape(out.shape)
        known.used[0] = past
        rows = np.arange(first, past, dtype=np.int32)
        known.rows[column].update(zip(distinct, rows.tolist()))
        return rows

    # ------------------------------------------------------------------ names

    def names(self, numbers: Iterable[int]) -> list[str]:
        """The names of attributes, such as ``U05:the/dog``."""
        return [self._name(int(number)) for number in numbers]

    def _name(self, number: int) -> str:
        if not 0 <= number < self.size:
            raise IndexError(f"there is no attribute {number}: they are numbered from 0 to {self.size - 1}")
        literals = self.literals[self.table.kinds[number]]
        values = [self.values.name_of(int(part)) for part in self.table.parts[number] if part >= 0]
        return "".join(text for pair in zip(literals, [*values, ""]) for text in pair)

    def keep(self, mask: np.ndarray) -> None:
        """Keep the attributes where ``mask`` is true, and number them in the same order."""
        self.table.keep(mask)
        self._remembered = None

    # ------------------------------------------------------------------ the model file

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The attributes for the model file, without values that no attribute has.

        Values are numbered in the order of their first use, however the sentences came.
        """
        kinds, parts = self.table.kinds[: self.size], self.table.parts[: self.size]
        flat = parts[parts >= 0]
        used, first = np.unique(flat, return_index=True)
        order = used[np.argsort(first)].astype(np.int64)
        number = np.zeros(len(self.values), np.int32)
        number[order] = np.arange(len(order))
        facts = {
            "template": self.template.text,
            "name": self.template.name,
            "columns": self.given_columns,
            "label": self.label or "",
        }
        return facts, {"kinds": kinds, "parts": number[flat], **pack_names(self.values, order)}

    @classmethod
    def unpack(cls, facts: Mapping[str, Any], arrays: Arrays) -> TemplateFeatures:
        """The features that were packed; a ValueError if they contradict themselves."""
        check_facts(facts, FILED, "features")
        self = cls(Template.parse(facts["template"], facts["name"]), facts["columns"], facts["label"] or None)
        self.values = unpack_names(arrays)
        sizes = np.array([len(literals) - 1 for literals in self.literals], np.int64)
        self.table.unpack(arrays["kinds"], arrays["parts"], sizes, self.seeds, self.values.hashes())
        return self

    def __getstate__(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        facts, arrays = self.pack()
        return facts, {name: array.copy() for name, array in arrays.items()}

    def __setstate__(self, state: tuple[dict[str, Any], dict[str, np.ndarray]]) -> None:
        facts, arrays = state
        self.__dict__.update(TemplateFeatures.unpack(facts, Arrays(arrays)).__dict__)


FILED = Record(template=TEXT, name=TEXT, columns=NAMES, label=TEXT)


def occurring(column: Encoded) -> tuple[np.ndarray, list[str]]:
    """The codes and words of a column, without words that do not occur; a slice of a column has them."""
    there = np.zeros(len(column.distinct), dtype=bool)
    there[column.codes] = True
    if there.all():
        return column.codes, column.distinct
    number = np.cumsum(there, dtype=np.int32) - 1
    return number[column.codes], [column.distinct[n] for n in np.flatnonzero(there).tolist()]


def parts_of(distinct: list[str], views: list[View]) -> Iterable[Part]:
    """The views of words, one by one."""
    words = Words(distinct)
    return (part_of(words, view) for view in views)


def longer(array: np.ndarray, size: int) -> np.ndarray:
    """A copy with more rows."""
    made = np.zeros((size, *array.shape[1:]), array.dtype)
    made[: len(array)] = array
    return made


def token_rows(sentences: Any, counts: np.ndarray, indices: list[np.ndarray]) -> TokenRows:
    """Rows from the number of attributes of each token and the attributes, in pieces."""
    indptr = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    return TokenRows(sentences.offsets, indptr, np.concatenate(indices), np.zeros(0))
