"""Batches: some rows of one file with their labels and their places in the file. Rows may have named features.

A vocabulary turns ``NamedRows`` into rows with numbered features. Names are not copied: each is a part of a text. A
name consists of the prefix of its group (of a column or a namespace, such as ``"colour="``) and the bytes after it. Its
hash is that of these bytes, seeded with the hash of the prefix, so a prefix is hashed only once. The hash takes eight
bytes at a time: multiply, and fold the upper half onto the lower.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import compiled
from onlearn.data.arrow import from_numpy
from onlearn.engine.csr import CSR

ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / the golden ratio
OTHER = np.uint64(0xD6E8FEB86659FD93)
HALF = np.uint64(32)
BYTE = np.uint64(8)
ONE = np.uint64(1)
START = np.uint64(0x243F6A8885A308D3)  # the seed of names without a prefix: digits of pi


class NamedRows(NamedTuple):
    """Rows of named features."""

    indptr: np.ndarray  # int64: row i has the features indptr[i] to indptr[i + 1]
    hashes: np.ndarray  # uint64: the hash of prefix and name
    values: np.ndarray  # float64
    starts: np.ndarray  # int64: the start of the name in the text
    lengths: np.ndarray  # int64: the bytes of the name
    groups: np.ndarray  # uint32: the namespace or column of the feature
    text: np.ndarray  # uint8
    prefixes: tuple[str, ...]  # of the groups; the full name is the prefix and the name
    known: np.ndarray | None = None  # int32: the numbers in a vocabulary, as of an earlier lookup; -1: unknown

    @property
    def shape(self) -> tuple[int]:
        """The number of rows. The number of features depends on the vocabulary."""
        return (len(self.indptr) - 1,)

    def between(self, start: int, stop: int) -> NamedRows:
        """The rows ``start`` to ``stop``, as views."""
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        return self.with_features(self.indptr[start : stop + 1] - first, slice(first, last))

    def with_features(self, indptr: np.ndarray, features: slice | np.ndarray) -> NamedRows:
        """Rows with some of the features only."""
        return self._replace(
            indptr=indptr,
            hashes=self.hashes[features],
            values=self.values[features],
            starts=self.starts[features],
            lengths=self.lengths[features],
            groups=self.groups[features],
            known=None if self.known is None else self.known[features],
        )

    def name(self, k: int) -> str:
        """The full name of the feature at position k."""
        start = int(self.starts[k])
        raw = self.text[start : start + int(self.lengths[k])].tobytes()
        return self.prefixes[int(self.groups[k])] + raw.decode("utf-8", "replace")


class Encoded(NamedTuple):
    """A column of words as codes: token t has the word ``distinct[codes[t]]``. Some of ``distinct`` may not occur."""

    codes: np.ndarray  # int32
    distinct: list[str]

    @classmethod
    def of(cls, words: np.ndarray) -> Encoded:
        """Encode an array of words; they are numbered in the order of their first occurrence."""
        listed = words.tolist()
        position = {word: n for n, word in enumerate(dict.fromkeys(listed))}
        return cls(np.fromiter(map(position.__getitem__, listed), np.int32, len(listed)), list(position))

    def words(self) -> np.ndarray:
        """The words as an object array of str."""
        distinct = np.empty(len(self.distinct), dtype=object)
        distinct[:] = self.distinct
        return distinct[self.codes]

    @classmethod
    def concatenated(cls, parts: Sequence[Encoded]) -> Encoded:
        """Several columns, one after another, with one list of distinct words."""
        if len(parts) == 1:
            return parts[0]
        position: dict[str, int] = {}
        codes = []
        for part in parts:
            numbers = [position.setdefault(word, len(position)) for word in part.distinct]
            codes.append(np.array(numbers, dtype=np.int32)[part.codes])
        return cls(np.concatenate(codes), list(position))


class Columns(Mapping[str, np.ndarray]):
    """The columns of tokens by name: object arrays of str, made when first asked for, and codes likewise."""

    __slots__ = ("_arrays", "_encoded", "_names")

    def __init__(self, arrays: Mapping[str, np.ndarray], encoded: Mapping[str, Encoded], names: Iterable[str]) -> None:
        self._names = tuple(names)
        self._arrays = dict(arrays)
        self._encoded = dict(encoded)

    def __getitem__(self, name: str) -> np.ndarray:
        found = self._arrays.get(name)
        if found is None:
            found = self._arrays[name] = self._encoded[name].words()
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:  # that of ``Mapping`` would make the array
        return name in self._names

    def __repr__(self) -> str:
        return f"<columns of tokens: {', '.join(self._names)}>"

    def encoded(self, name: str) -> Encoded:
        """A column as codes."""
        found = self._encoded.get(name)
        if found is None:
            found = self._encoded[name] = Encoded.of(self._arrays[name])
        return found

    def between(self, first: int, last: int) -> Columns:
        """The columns of the tokens ``first`` to ``last``, as views."""
        arrays = {name: array[first:last] for name, array in self._arrays.items()}
        encoded = {name: Encoded(one.codes[first:last], one.distinct) for name, one in self._encoded.items()}
        return Columns(arrays, encoded, self._names)


class Aside(NamedTuple):
    """A line of CoNLL-U that is no token, and its place: a comment, a word of several tokens, an empty node."""

    sentence: int  # the one that it belongs to
    token: int  # the one that it stands before; the end of the sentence, if it stands behind all of its tokens
    line: str


class Sentences:
    """The tokens of several sentences, by column; sentence i has the tokens ``offsets[i]`` to ``offsets[i + 1]``.

    ``columns`` is given as object arrays of str, one entry for each token, or as ``Encoded`` ones, and can be used as
    a mapping of object arrays in either case. ``encoded`` gives a column without making an object for each token.
    ``asides`` are the other lines of the file, in order, if ``read`` was asked for comments.

    >>> sentences = Sentences({"form": np.array(["a", "b", "a"], dtype=object)}, np.array([0, 1, 3]))
    >>> sentences.encoded("form")
    Encoded(codes=array([0, 1, 0], dtype=int32), distinct=['a', 'b'])
    """

    __slots__ = ("asides", "columns", "offsets")

    def __init__(
        self, columns: Mapping[str, np.ndarray | Encoded], offsets: np.ndarray, asides: Sequence[Aside] = ()
    ) -> None:
        if isinstance(columns, Columns):
            self.columns: Columns = columns
        else:
            encoded = {name: column for name, column in columns.items() if isinstance(column, Encoded)}
            arrays = {name: column for name, column in columns.items() if not isinstance(column, Encoded)}
            self.columns = Columns(arrays, encoded, columns)
        self.offsets: np.ndarray = offsets  # int64
        self.asides: Sequence[Aside] = asides

    @property
    def word_column(self) -> str:
        """The name of the column of words: ``form``, or else the first."""
        return "form" if "form" in self.columns else next(iter(self.columns))

    @property
    def words(self) -> np.ndarray:
        """The column ``form``, or else the first."""
        return self.columns[self.word_column]

    def encoded(self, name: str) -> Encoded:
        """A column as codes (int32) and the distinct words that they number; a KeyError if there is no such column."""
        return self.columns.encoded(name)

    def between(self, start: int, stop: int) -> Sentences:
        """The sentences ``start`` to ``stop``; the columns are views."""
        first, last = int(self.offsets[start]), int(self.offsets[stop])
        asides = [
            Aside(sentence - start, token - first, line)
            for sentence, token, line in self.asides
            if start <= sentence < stop or sentence == stop == len(self)
        ]
        return Sentences(self.columns.between(first, last), self.offsets[start : stop + 1] - first, asides)

    @classmethod
    def concatenated(cls, parts: Sequence[Sentences]) -> Sentences:
        """The sentences of several parts that have the same columns."""
        columns = {name: Encoded.concatenated([part.encoded(name) for part in parts]) for name in parts[0].columns}
        ends = np.cumsum([0, *(part.offsets[-1] for part in parts)])
        offsets = [parts[0].offsets[:1], *(part.offsets[1:] + end for part, end in zip(parts, ends))]
        return cls(columns, np.concatenate(offsets))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"<Sentences: {len(self)} with {int(self.offsets[-1])} tokens; {', '.join(self.columns)}>"


class Batch:
    """Rows in the order of their file.

    ``rows`` is a ``csr_matrix``, ``NamedRows``, a ``pyarrow.Table`` or ``Sentences``; ``parsed`` is the same with a
    ``CSR`` instead of a ``csr_matrix``. ``y`` holds the labels as written (str; None for a row without a label), or
    float64 for regression. ``codes`` are positions in ``label_names``, a list that only grows from batch to batch; -1
    is a row without a label. Training on codes creates no strings. ``Sentences`` have a label for each token. Where
    rows may have several labels, ``label_sets`` has those of each name, and ``y`` holds lists of labels.
    """

    __slots__ = (
        "_rows",
        "_y",
        "codes",
        "file",
        "groups",
        "ids",
        "label_names",
        "label_sets",
        "lines",
        "parsed",
        "weight",
    )

    def __init__(
        self,
        rows: Any,
        y: np.ndarray | None = None,
        weight: np.ndarray | None = None,
        ids: np.ndarray | None = None,
        groups: np.ndarray | None = None,
        file: str = "",
        lines: np.ndarray | None = None,
        codes: np.ndarray | None = None,
        label_names: list[str] | None = None,
        label_sets: list[tuple[str, ...]] | None = None,
    ) -> None:
        self.parsed: Any = as_parsed(rows)
        self._rows = None if isinstance(rows, CSR) else rows  # converted on first use
        self._y = y
        self.weight: np.ndarray | None = weight
        self.ids: np.ndarray | None = ids
        self.groups: np.ndarray | None = groups
        self.file: str = file
        self.lines: np.ndarray = np.arange(1, len(self) + 1) if lines is None else lines
        self.codes: np.ndarray | None = codes
        self.label_names: list[str] | None = label_names
        self.label_sets: list[tuple[str, ...]] | None = label_sets

    @property
    def rows(self) -> Any:
        """The rows, as users get them."""
        if self._rows is None:
            self._rows = as_public(self.parsed)
        return self._rows

    @property
    def y(self) -> np.ndarray | None:
        """The labels."""
        if self._y is None and self.codes is not None and self.label_sets is not None:
            self._y = np.empty(len(self.codes), dtype=object)
            sets = [*self.label_sets, ()]  # code -1: none at all
            self._y[:] = [list(sets[code]) for code in self.codes.tolist()]
        if self._y is None and self.codes is not None and self.label_names is not None:
            names = np.empty(len(self.label_names) + 1, dtype=object)  # the last entry, for code -1, is None
            names[:-1] = self.label_names
            self._y = names[self.codes]
        return self._y

    def __len__(self) -> int:
        return rows_in(self.parsed)

    def __repr__(self) -> str:
        return f"<Batch of {len(self)} rows ({type(self.parsed).__name__}) from {self.file or 'memory'}>"

    def slice(self, start: int, stop: int) -> Batch:
        """The rows ``start`` to ``stop``."""

        def part(array: np.ndarray | None, rows: slice) -> np.ndarray | None:
            return None if array is None else array[rows]

        here = slice(start, stop)
        targets = here
        if isinstance(self.parsed, Sentences):
            targets = slice(int(self.parsed.offsets[start]), int(self.parsed.offsets[stop]))
        return Batch(
            rows_between(self.parsed, start, stop),
            part(self._y, targets),
            part(self.weight, here),
            part(self.ids, here),
            part(self.groups, here),
            self.file,
            self.lines[here],
            part(self.codes, targets),
            self.label_names,
            self.label_sets,
        )

    def take(self, keep: np.ndarray) -> Batch:
        """The rows at some positions; not for sentences."""

        def part(array: np.ndarray | None) -> np.ndarray | None:
            return None if array is None else array[keep]

        return Batch(
            rows_at(self.parsed, keep),
            part(self._y),
            part(self.weight),
            part(self.ids),
            part(self.groups),
            self.file,
            self.lines[keep],
            part(self.codes),
            self.label_names,
            self.label_sets,
        )

    def split(self, most: int) -> Iterator[Batch]:
        """Split the batch into parts of at most ``most`` rows."""
        for start in range(0, len(self), most):
            yield self.slice(start, min(start + most, len(self)))


def is_table(rows: Any) -> bool:
    """Whether rows are a PyArrow table, without importing PyArrow."""
    return hasattr(rows, "column_names")


def as_parsed(rows: Any) -> Any:
    """Rows in the internal form: a SciPy matrix becomes a ``CSR``."""
    return CSR.of(rows) if hasattr(rows, "tocsr") else rows


def as_public(rows: Any) -> Any:
    """Rows in the public form: a ``CSR`` becomes a SciPy matrix."""
    return rows.to_scipy() if isinstance(rows, CSR) else rows


def rows_in(rows: Any) -> int:
    """The number of rows."""
    if isinstance(rows, NamedRows):
        return len(rows.indptr) - 1
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def rows_between(rows: Any, start: int, stop: int) -> Any:
    """The rows ``start`` to ``stop``, of any kind."""
    if isinstance(rows, (CSR, NamedRows, Sentences)):
        return rows.between(start, stop)
    if is_table(rows):
        return rows.slice(start, stop - start)
    return rows[start:stop]


def rows_at(rows: Any, keep: np.ndarray) -> Any:
    """The rows at some positions, of any kind but sentences."""
    if isinstance(rows, NamedRows):
        counts = np.diff(rows.indptr)
        mask = np.zeros(len(counts), dtype=bool)
        mask[keep] = True
        indptr = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts[mask])])
        return rows.with_features(indptr, np.repeat(mask, counts))
    if isinstance(rows, CSR):
        return rows.take(keep)
    return rows.take(from_numpy(keep)) if is_table(rows) else rows[keep]


# ----------------------------------------------------------------------------------------------------
# The hash of a name.


@compiled
def mix(h: Any, word: Any) -> Any:
    """Mix one word into a hash."""
    h = (h ^ word) * ODD
    return h ^ (h >> HALF)


@compiled
def finish(h: Any) -> Any:
    """Spread the effect of the last word over all bits."""
    h = h * OTHER
    h = h ^ (h >> HALF)
    h = h * ODD
    return h ^ (h >> HALF)


@compiled
def hash_bytes(text: Any, start: Any, stop: Any, seed: Any) -> Any:
    """The hash of ``text[start:stop]``; text is an array of bytes."""
    p: Any = np.uint64(start)
    end = np.uint64(stop)
    word: Any
    n: Any
    h = mix(seed, end - p)
    while p + BYTE <= end:
        word = np.uint64(0)
        for n in range(np.uint64(0), BYTE):
            word |= np.uint64(text[p + n]) << (n * BYTE)
        h = mix(h, word)
        p += BYTE
    if p < end:
        word, n = np.uint64(0), np.uint64(0)
        while p < end:
            word |= np.uint64(text[p]) << n
            n += BYTE
            p += ONE
        h = mix(h, word)
    return finish(h)


@compiled
def combine(first: Any, second: Any) -> Any:
    """The hash of a pair of features, or of an n-gram and the next word; the order matters."""
    return finish(mix(first * OTHER, second))


def hash_name(name: str | bytes, seed: np.uint64 = START) -> np.uint64:
    """The hash of one name; for a prefix, the seed of the names that follow it."""
    raw = np.frombuffer(name.encode() if isinstance(name, str) else name, dtype=np.uint8)
    with np.errstate(over="ignore"):  # NumPy would warn if it runs interpreted
        return np.uint64(hash_bytes(raw, 0, len(raw), seed))
