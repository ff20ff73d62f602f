"""Attributes and their numbers: a table of those that templates make, and features that are given by name.

An attribute of a template is the literals of its line and the values of its macros. Values are numbered by a
vocabulary, so an attribute is stored as a few small numbers, however long its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from onlearn.data.batch import NamedRows
from onlearn.features import hash_table
from onlearn.features.tables import fixed
from onlearn.features.vocabulary import LONGEST, Vocabulary
from onlearn.sequence.inputs import GivenAttributes
from onlearn.sequence.token_hashes import hash_attributes, number_attributes
from onlearn.sequence.token_rows import TokenRows
from onlearn.sequence.views import Part, Words, hashed

MOST = (1 << 30) - 1  # names of a vocabulary
SMALLEST = 1 << 12  # slots of a table
FULLEST = 0.5  # the share of used slots at which it grows
CONTRADICTS = "the attributes contradict themselves"


class AttributeTable:
    """The attributes of templates and their numbers, in order of first appearance."""

    def __init__(self, width: int) -> None:
        self.count: int = 0
        self.kinds: np.ndarray = np.zeros(SMALLEST, np.uint16)
        self.parts: np.ndarray = np.zeros((SMALLEST, max(1, width)), np.int32)  # numbers of values; -1: no more
        self.hashes: np.ndarray = np.zeros(SMALLEST, np.uint64)
        self.slots: np.ndarray = np.zeros(SMALLEST, np.uint64)

    def find(self, hashes: np.ndarray) -> np.ndarray:
        """The number of each hash, or -1."""
        out = np.empty(len(hashes), np.int32)
        hash_table.find(self.slots, self.hashes, fixed(hashes), out)
        return out

    def learn(self, lines: Any, tokens: Any, start: int, ids: np.ndarray, pad_ids: np.ndarray, hashes: Any) -> Any:
        """The number of each hash that ``hash_lines`` gave for the tokens from ``start`` on; -1 for no attribute."""
        out = np.empty(len(hashes), np.int32)
        done = 0
        while True:
            room = min(len(self.hashes), int(FULLEST * len(self.slots)))
            done, self.count = number_attributes(
                self.slots, self.hashes, self.kinds, self.parts, lines, tokens, start, ids, pad_ids, hashes, done,
                room, self.count, out,
            )  # fmt: skip
            if done == len(hashes):
                return out
            self._make_room(2 * self.count)

    def _make_room(self, count: int) -> None:
        """Room for so many attributes."""
        if count > len(self.hashes):
            for name in ("kinds", "parts", "hashes"):
                old = getattr(self, name)
                new = np.zeros((count, *old.shape[1:]), old.dtype)
                new[: self.count] = old[: self.count]
                setattr(self, name, new)
        if count > FULLEST * len(self.slots):
            size = len(self.slots)
            while count > FULLEST * size:
                size *= 2
            self.slots = np.empty(size, np.uint64)
            self.slots.fill(0)
            hash_table.place(self.slots, self.hashes, 0, self.count)

    def keep(self, mask: np.ndarray) -> None:
        """Keep some of the attributes and number them in the same order."""
        mask = np.asarray(mask, dtype=bool)
        if mask.shape != (self.count,):
            raise ValueError(f"there are {self.count} attributes, and the mask has the shape {mask.shape}")
        kept = np.flatnonzero(mask)
        self.set(self.kinds[kept], self.parts[kept], self.hashes[kept])

    def set(self, kinds: np.ndarray, parts: np.ndarray, hashes: np.ndarray) -> None:
        """Take these attributes instead of all others."""
        room = max(SMALLEST, len(kinds))
        self.count = len(kinds)
        self.kinds, self.parts, self.hashes = (
            np.concatenate([array, np.zeros((room - len(array), *array.shape[1:]), array.dtype)])
            for array in (kinds, parts, hashes)
        )
        self.slots = np.zeros(SMALLEST, np.uint64)
        if self.count > FULLEST * len(self.slots):
            self._make_room(self.count)
        else:
            hash_table.place(self.slots, self.hashes, 0, self.count)

    def unpack(self, kinds: np.ndarray, flat: np.ndarray, literals: np.ndarray, seeds: Any, values: np.ndarray) -> None:
        """Take packed attributes; ``literals`` has the number of values of each kind, ``values`` their hashes."""
        fits = (
            kinds.ndim == flat.ndim == 1
            and kinds.dtype.kind in "iu"
            and flat.dtype.kind in "iu"
            and (not len(kinds) or 0 <= kinds.min() <= kinds.max() < len(literals))
            and (not len(flat) or 0 <= flat.min() <= flat.max() < len(values))
        )
        if not fits:
            raise ValueError(CONTRADICTS)
        sizes = literals[kinds.astype(np.int64)]
        if sizes.sum() != len(flat):
            raise ValueError(CONTRADICTS)
        parts = np.full((len(kinds), self.parts.shape[1]), -1, np.int32)
        parts[np.arange(parts.shape[1]) < sizes[:, None]] = flat
        hashes = np.empty(len(kinds), np.uint64)
        kinds = kinds.astype(np.uint16)
        hash_attributes(seeds, kinds, parts, fixed(values), hashes)
        if len(np.unique(hashes)) < len(hashes):
            raise ValueError(f"{CONTRADICTS}: some are there twice")
        self.set(kinds, parts, hashes)


# ----------------------------------------------------------------------------------------------------
# Values and names.


def numbered(vocabulary: Vocabulary, part: Part, hashes: np.ndarray) -> np.ndarray:
    """The number of each value, new ones added; -1 where the length is -1."""
    present = np.flatnonzero(part.lengths >= 0)
    groups = np.zeros(len(present), np.uint32)
    rows = NamedRows(
        np.array([0, len(present)]), hashes[present], np.zeros(0), part.starts[present], part.lengths[present], groups,
        part.text, ("",),
    )  # fmt: skip
    ids = np.full(len(hashes), -1, np.int32)
    ids[present] = vocabulary.learn(rows)
    return ids


def pack_names(vocabulary: Vocabulary, kept: np.ndarray) -> dict[str, np.ndarray]:
    """Some of the names of a vocabulary, in the order given.

    Hashes can be made of the names again, but for those so long that only their beginning is stored.
    """
    arrays = vocabulary.pack()[1]
    lengths = np.diff(arrays["ends"])[kept]
    ends, pool = np.zeros(len(kept) + 1, np.int64), np.empty(int(lengths.sum()), np.uint8)
    hash_table.copy_names(arrays["ends"], arrays["pool"], kept, ends, pool)
    return {"lengths": lengths, "text": pool, "long": arrays["hashes"][kept][lengths >= LONGEST]}


def unpack_names(arrays: Mapping[str, np.ndarray]) -> Vocabulary:
    """The vocabulary of packed names, numbered in their order."""
    lengths, text, long = (arrays[name] for name in ("lengths", "text", "long"))
    fits = lengths.ndim == text.ndim == long.ndim == 1 and lengths.dtype.kind in "iu" and text.dtype == np.uint8
    if not fits or (len(lengths) and not 0 <= lengths.min() <= lengths.max() <= LONGEST):
        raise ValueError(CONTRADICTS)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths.astype(np.int64))])
    if ends[-1] != len(text):
        raise ValueError(CONTRADICTS)
    hashes = hashed(Part(ends[:-1], np.diff(ends), text))
    cut = lengths >= LONGEST
    if long.dtype != np.uint64 or len(long) != cut.sum():
        raise ValueError(CONTRADICTS)
    hashes[cut] = long
    facts = {"max_names": MOST, "bits": 1, "state": "grow", "prefixes": [""]}
    prefix = np.zeros(len(hashes), np.uint32)
    return Vocabulary.unpack(facts, {"hashes": hashes, "ends": ends, "prefix": prefix, "pool": text})


class NamedFeatures:
    """Attributes that are given by name, numbered in order of first appearance.

    >>> from onlearn.sequence.inputs import as_sentences
    >>> features = NamedFeatures()
    >>> features.learn_transform(as_sentences([[{"word": "a"}, {"word": "b"}]])).indices.tolist(), features.names([1])
    ([0, 1], ['word:b'])
    """

    columns: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.vocabulary: Vocabulary = Vocabulary(MOST)

    @property
    def size(self) -> int:
        """The number of attributes."""
        return len(self.vocabulary)

    def learn_transform(self, sentences: Any) -> TokenRows:
        """Rows of attributes; new ones get the next numbers."""
        given = self._given(sentences)
        part = Words(given.distinct).whole()
        return self._rows(given, numbered(self.vocabulary, part, hashed(part)))

    def transform(self, sentences: Any) -> TokenRows:
        """Rows of the attributes that are known."""
        given = self._given(sentences)
        return self._rows(given, self.vocabulary.lookup(hashed(Words(given.distinct).whole())))

    def check(self, sentences: Any) -> None:
        """Refuse sentences that rows cannot be made of."""
        self._given(sentences)

    def _given(self, sentences: Any) -> GivenAttributes:
        if isinstance(sentences, GivenAttributes):
            return sentences
        if sentences.offsets[-1] > 0:
            raise ValueError("this learner takes tokens as dicts, lists or sets of attributes, and was given words")
        none = np.zeros(0)
        return GivenAttributes(sentences.offsets, np.zeros(1, np.int64), none.astype(np.int64), [], none)

    def _rows(self, given: GivenAttributes, ids: np.ndarray) -> TokenRows:
        indices = ids[given.codes]
        known = indices >= 0
        if known.all():
            return TokenRows(given.offsets, given.indptr, indices, given.values)
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(known)])
        values = given.values[known] if len(given.values) else given.values
        return TokenRows(given.offsets, before[given.indptr], indices[known], values)

    def names(self, numbers: Iterable[int]) -> list[str]:
        """The names of attributes."""
        return [self.vocabulary.name_of(int(number)) for number in numbers]

    def keep(self, mask: np.ndarray) -> None:
        """Keep the attributes where ``mask`` is true, and number them in the same order."""
        mask = np.asarray(mask, dtype=bool)
        if mask.shape != (self.size,):
            raise ValueError(f"there are {self.size} attributes, and the mask has the shape {mask.shape}")
        self.vocabulary.keep(np.flatnonzero(mask))

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The attributes for the model file."""
        return {}, pack_names(self.vocabulary, np.arange(self.size))

    @classmethod
    def unpack(cls, facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> NamedFeatures:
        """The features that were packed; a ValueError if they contradict themselves."""
        self = cls()
        self.vocabulary = unpack_names(arrays)
        return self
