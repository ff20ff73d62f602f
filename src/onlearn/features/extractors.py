"""Extractors of categories and numbers, and user-defined functions: they turn columns into named features.

Scales of numbers are learned in one pass: mean and variance by Welford's method, and the largest absolute value. Values
are added one by one, so the result does not depend on the size of batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Protocol, cast

import numpy as np

from onlearn.compiler import compiled
from onlearn.data.arrow import codes, is_missing, string_parts
from onlearn.data.batch import NamedRows, hash_name
from onlearn.features.assemble import hash_parts, rows_of_names, side_by_side, single_feature
from onlearn.features.tables import as_words, column, fixed, numbers, respelled
from onlearn.features.vocabulary import Vocabulary

MISSING = ("absent", "indicator", "zero", "error")


class Groups(NamedTuple):
    """The groups of features of one extractor: their prefixes, and how their values are weighted."""

    name: str  # for interactions
    prefixes: tuple[str, ...]
    binary: bool = False
    log: bool = False
    inverse: bool = False
    norm: bool = False
    square: bool = False  # whether the square of a feature of the first group is a new feature


class ReadColumn(Protocol):
    """A column of a batch, or several, as extractors have read it, with defaults for most methods.

    ``missing`` is a mask of rows without a value (None: all have one); ``known`` says whether all names have been
    looked up in a vocabulary.
    """

    missing: np.ndarray | None = None
    known: bool = False

    def rows(self, start: int, stop: int) -> NamedRows:
        """The features of some of the rows."""
        ...

    def cost(self) -> np.ndarray:
        """The work for the rows before each row, in features, approximately."""
        ...

    def spell(self, vocabulary: Vocabulary, learning: bool) -> None:
        """Adapt the spelling of names to the vocabulary."""
        return

    def learn(self, facts: np.ndarray) -> None:
        """Update the facts about the columns by their values; there is a line for each extractor of a column."""
        return

    def scale_by(self, facts: np.ndarray) -> None:
        """Set the facts by which the values are scaled."""
        return


def check_choice(value: Any, known: Sequence[str], what: str) -> None:
    """Refuse a value that is not one of the known ones."""
    if value not in known:
        raise ValueError(f"{what} must be {', '.join(map(repr, known[:-1]))} or {known[-1]!r}, not {value!r}")


def check_missing(value: Any, who: str) -> None:
    check_choice(value, MISSING, f"{who}: missing")


def check_grams(value: Any, what: str) -> tuple[int, int] | None:
    """A range of lengths, given as a pair or as one number."""
    if value is None:
        return None
    pair = (value, value) if isinstance(value, int) else tuple(value)
    good = len(pair) == 2 and all(isinstance(n, int) and not isinstance(n, bool) for n in pair)
    if not good or not 1 <= pair[0] <= pair[1] <= 20:
        raise ValueError(f"{what} must be a pair (shortest, longest) of lengths from 1 to 20, not {value!r}")
    return pair[0], pair[1]


class ColumnExtractor:
    """The base class of extractors of one column, which are dataclasses."""

    kind: ClassVar[str]

    def spell(self) -> dict[str, Any]:
        """The extractor as JSON, for the model file."""
        return {"kind": self.kind, **{one.name: getattr(self, one.name) for one in fields(cast(Any, self))}}


SCALES = ("standard", "log-standard", "max-abs", "log1p", "none", "kept")
LEAST = float(np.finfo(np.float32).tiny)  # stands for a zero that is to be told from a missing value
LARGEST = 1e140  # larger absolute values count as this one, so that squares and their sum stay finite
FACTS = 4  # count, mean, sum of squared differences from the mean, largest absolute value


@compiled
def update_facts(values: Any, facts: Any) -> None:
    """Update the facts about columns, one line each, by the values that are not missing (Welford 1962)."""
    for c in range(len(values)):
        count, mean, spread, largest = facts[c, 0], facts[c, 1], facts[c, 2], facts[c, 3]
        for x in values[c]:
            if x == x:
                count += 1.0
                x = min(max(x, -LARGEST), LARGEST)
                change = x - mean
                mean += change / count
                spread += change * (x - mean)
                largest = max(largest, abs(x))
        facts[c, 0], facts[c, 1], facts[c, 2], facts[c, 3] = count, mean, spread, largest


def combined_facts(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The facts about all values, one line a column, from those about two parts (Chan, Golub & LeVeque 1979).

    If one part has no values, they are exactly those of the other.
    """
    (count, mean, spread, largest), (more, other_mean, other_spread, other_largest) = first.T, second.T
    total, change = count + more, other_mean - mean
    share = np.divide(more, total, out=np.zeros(len(total)), where=total > 0)
    spread = spread + other_spread + change * change * count * share
    return np.column_stack([total, mean + change * share, spread, np.maximum(largest, other_largest)])


def signed_log(values: np.ndarray) -> np.ndarray:
    """sign(x) log(1 + |x|)"""
    return np.copysign(np.log1p(np.abs(values)), values)


def scaled(values: np.ndarray, facts: np.ndarray, scale: str) -> np.ndarray:
    """Scaled values, a column for each line of facts; too large ones are infinite, and cut when a matrix is made.

    "standard" scales a column whose values are all equal, or that was never seen, to 0.
    """
    if scale in ("standard", "max-abs"):
        values = np.clip(values, -LARGEST, LARGEST)  # as in update_facts
        count, mean, spread, largest = facts.T
        with np.errstate(over="ignore"):
            if scale == "standard":
                deviation = np.sqrt(np.divide(spread, count, out=np.zeros(len(count)), where=count > 0))
                return np.divide(values - mean, deviation, out=np.zeros_like(values), where=deviation > 0)
            return np.divide(values, largest, out=values.copy(), where=largest > 0)
    if scale == "log1p":
        return signed_log(values)
    return np.where(values == 0.0, LEAST, values) if scale == "kept" else values.copy()


@dataclass(frozen=True)
class Category(ColumnExtractor):
    """A column of categories: the feature ``column=value`` is 1."""

    column: str
    missing: str = "absent"

    kind: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        check_missing(self.missing, f"Category({self.column!r})")

    def groups(self) -> Groups:
        return Groups(self.column, (f"{self.column}=",))

    def read(self, table: Any) -> CategoryColumn:
        return CategoryColumn(self, column(table, self.column))


class CategoryColumn(ReadColumn):
    """The distinct values as parts of a text, and the position of the value of each row (-1: missing)."""

    words: Any
    starts: np.ndarray
    lengths: np.ndarray

    def __init__(self, spec: Category, values: Any) -> None:
        import pyarrow as pa

        self.prefix: str = f"{spec.column}="
        self.booleans: Any = pa.types.is_boolean(values.type)
        if not pa.types.is_dictionary(values.type):
            values = as_words(values, spec.column).dictionary_encode()
        self.words = words = as_words(values.dictionary, spec.column)
        self.codes: np.ndarray = codes(values)
        if words.null_count:  # a dictionary may itself hold a missing value
            absent = is_missing(words)
            self.codes[np.isin(self.codes, np.flatnonzero(absent))] = -1
        self.missing: np.ndarray | None = self.codes < 0 if (self.codes < 0).any() else None
        self._set_words(words)

    def spell(self, vocabulary: Vocabulary, learning: bool) -> None:
        """Spell true and false as in the vocabulary; strings stay unchanged while learning."""
        if learning and not self.booleans:
            return

        # A word may also be known by its bucket. For booleans only names count, because any spelling has a bucket.
        number = vocabulary.known if self.booleans else vocabulary.lookup

        def known(word: str) -> bool:
            return bool(number(np.array([hash_name(word, hash_name(self.prefix))], np.uint64))[0] >= 0)

        if (words := respelled(self.words, self.booleans, known)) is not None:
            self._set_words(words)

    def _set_words(self, words: Any) -> None:
        """Set the text, places and hashes of the distinct values."""
        text, places = string_parts(words)
        self.text: np.ndarray = fixed(text)
        self.starts, self.lengths = places[:-1].copy(), np.diff(places)
        self.hashes: np.ndarray = np.empty(len(words), np.uint64)
        with np.errstate(over="ignore"):
            hash_parts(self.text, self.starts, self.lengths, hash_name(self.prefix), self.hashes)

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
            np.zeros(len(held), np.uint32),
            self.text,
            (self.prefix,),
        )

    def cost(self) -> np.ndarray:
        return np.arange(len(self.codes) + 1)


@dataclass(frozen=True)
class Number(ColumnExtractor):
    """A column of numbers: the feature ``column`` has the value, scaled.

    ``scale="standard"`` gives mean 0 and deviation 1, ``"max-abs"`` a largest absolute value of 1, both by the rows
    learned from so far; ``"log1p"`` is sign(x) log(1 + |x|), ``"log-standard"`` that with mean 0 and deviation 1, for
    skewed counts and amounts; ``"none"`` is x. A missing value counts as a scaled value of 0; with ``missing="zero"``
    it is a 0 before scaling. ``"kept"`` is x, but the smallest number above 0 for a 0, so that learners which tell
    missing values from zeros (naive Bayes) can do so.
    """

    column: str
    scale: str = "standard"
    missing: str = "absent"

    kind: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        check_choice(self.scale, SCALES, f"Number({self.column!r}): scale")
        check_missing(self.missing, f"Number({self.column!r})")

    def groups(self) -> Groups:
        return Groups(self.column, ("",), square=True)

    def read(self, table: Any) -> NumberColumns:
        return NumberColumns([self], table)

    def goes_with(self, other: Any) -> bool:
        """Whether both columns can be read as one ``NumberColumns``."""
        alike = isinstance(other, Number) and self.scale == other.scale
        return alike and {self.missing, other.missing} <= {"absent", "zero"}


class NumberColumns(ReadColumn):
    """The values of columns that are scaled alike, and the facts by which they are scaled; a line for each column.

    Columns that stand together are read together, for a table may have a hundred thousand of them.
    """

    def __init__(self, specs: Sequence[Number], table: Any) -> None:
        self.values: np.ndarray = np.empty((len(specs), table.num_rows))
        for line, spec in zip(self.values, specs):
            line[:] = numbers(table, spec.column)
            if spec.missing == "zero":
                line[np.isnan(line)] = 0.0
        absent = np.logical_or.reduce(np.isnan(self.values))
        self.missing: np.ndarray | None = absent if absent.any() else None
        self.scale: str = specs[0].scale
        if self.scale == "log-standard":
            self.values, self.scale = signed_log(self.values), "standard"
        self.facts: np.ndarray = np.zeros((len(specs), FACTS))
        names = [spec.column.encode() for spec in specs]
        self.text: np.ndarray = fixed(np.frombuffer(b"".join(names), np.uint8))
        self.lengths: np.ndarray = np.array([*map(len, names)], np.int64)
        self.starts: np.ndarray = np.cumsum(self.lengths) - self.lengths
        self.hashes: np.ndarray = np.empty(len(names), np.uint64)
        with np.errstate(over="ignore"):
            hash_parts(self.text, self.starts, self.lengths, hash_name(""), self.hashes)

    def learn(self, facts: np.ndarray) -> None:
        update_facts(fixed(self.values), facts)

    def scale_by(self, facts: np.ndarray) -> None:
        self.facts = facts

    def rows(self, start: int, stop: int) -> NamedRows:
        values = np.ascontiguousarray(self.values[:, start:stop].T)
        present = ~np.isnan(values)
        columns = np.broadcast_to(np.arange(len(self.values), dtype=np.uint32), values.shape)[present]
        indptr = np.zeros(len(values) + 1, np.int64)
        np.cumsum(present.sum(axis=1), out=indptr[1:])
        return NamedRows(
            indptr,
            self.hashes[columns],
            scaled(values, self.facts, self.scale)[present],
            self.starts[columns],
            self.lengths[columns],
            columns,
            self.text,
            ("",) * len(self.values),
        )

    def cost(self) -> np.ndarray:
        return np.arange(self.values.shape[1] + 1) * len(self.values)


class WithIndicator(ReadColumn):
    """A column with the feature ``column=missing`` in rows without a value."""

    inner: ReadColumn
    name: str
    missing: np.ndarray | None

    def __init__(self, inner: ReadColumn, name: str) -> None:
        self.inner, self.name, self.missing = inner, name, inner.missing

    def learn(self, facts: np.ndarray) -> None:
        self.inner.learn(facts)

    def scale_by(self, facts: np.ndarray) -> None:
        self.inner.scale_by(facts)

    def rows(self, start: int, stop: int) -> NamedRows:
        absent = np.zeros(stop - start, bool) if self.missing is None else self.missing[start:stop]
        flags = single_feature(absent, np.ones(int(absent.sum())), b"missing", f"{self.name}=")
        return side_by_side([self.inner.rows(start, stop), flags])

    def cost(self) -> np.ndarray:
        return self.inner.cost()


FUNCTIONS: dict[str, Own] = {}  # by name, for loading model files


class Own:
    """A user-defined function from a row, as a dict, to names or (name, value) pairs; made by ``@onlearn.feature``."""

    kind: ClassVar[str] = "own"
    column: ClassVar[None] = None
    missing: ClassVar[None] = None

    def __init__(self, function: Callable[[dict[str, Any]], Any]) -> None:
        self.function: Callable[[dict[str, Any]], Any] = function
        self.name: str = function.__name__
        # a pickle refers to this object by module and name, as to a function
        self.__doc__, self.__module__, self.__qualname__ = function.__doc__, function.__module__, function.__qualname__

    def __reduce__(self) -> str:
        return self.__qualname__

    def __call__(self, row: dict[str, Any]) -> Any:
        return self.function(row)

    def __repr__(self) -> str:
        return self.name

    def spell(self) -> dict[str, Any]:
        """The extractor as JSON, for the model file."""
        return {"kind": self.kind, "name": self.name}

    def groups(self) -> Groups:
        return Groups(self.name, (f"{self.name}:",))

    def read(self, table: Any) -> OwnRows:
        rows = (dict(row) for row in table.to_pylist())
        return OwnRows(rows_of_names((self._checked(n, row) for n, row in enumerate(rows)), f"{self.name}:"))

    def _checked(self, n: int, row: dict[str, Any]) -> Iterator[str | tuple[str, float]]:
        """The names or pairs that the function gives for a row; a single name counts as a list of one."""
        made = self.function(row)
        if isinstance(made, Mapping):
            made = made.items()
        alone = isinstance(made, str) or not hasattr(made, "__iter__")
        for item in [] if made is None else [made] if alone else made:
            if isinstance(item, str):
                yield item
                continue
            try:
                name, value = item
                pair = str(name), float(value)
            except (TypeError, ValueError):
                raise TypeError(
                    f"{self.name} must yield names or (name, value) pairs, but row {n} gave {item!r}"
                ) from None
            if pair[1] - pair[1] != 0.0:
                raise ValueError(f"{self.name} gave {pair[0]!r} the value {pair[1]} in row {n}: it must be finite")
            yield pair


class OwnRows(ReadColumn):
    """The features that a function gives for a batch."""

    def __init__(self, made: NamedRows) -> None:
        self.made = made

    def rows(self, start: int, stop: int) -> NamedRows:
        return self.made.between(start, stop)

    def cost(self) -> Any:
        return self.made.indptr


def feature(function: Callable[[dict[str, Any]], Any]) -> Own:
    """Make an extractor of a function that takes a row as a dict and yields names or (name, value) pairs.

    The function may also return a dict of values by name. Its own name is the prefix of all names. A model file stores
    only the name of the function, so it must be defined before the model is loaded.

    >>> @feature
    ... def shape(row):
    ...     yield "long" if len(row["text"]) > 10 else "short"
    ...     yield "length", len(row["text"])
    >>> list(shape({"text": "so it is"}))
    ['short', ('length', 8)]
    """
    if not callable(function) or not hasattr(function, "__name__"):
        raise TypeError(f"@onlearn.feature takes a function that has a name, not {function!r}")
    made = Own(function)
    FUNCTIONS[made.name] = made
    return made
