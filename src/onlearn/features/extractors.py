"""Extractors of categories and numbers, and user-defined ones: from a column to named features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from onlearn.compiler import compiled
from onlearn.data.arrow import codes, is_missing, string_parts
from onlearn.data.named_rows import NamedRows, hash_name
from onlearn.features.assemble import hash_stretches, one_each, rows_of_names, side_by_side
from onlearn.features.tables import as_words, column, fixed, numbers, respelled
from onlearn.features.vocabulary import Vocabulary

# ----------------------------------------------------------------------------------------------------
# What extractors have in common: groups of features, checks of their parameters, their spelling as JSON.


MISSING = ("absent", "indicator", "zero", "error")


class Groups(NamedTuple):
    """The features of one extractor: a prefix for each of its groups, and how their values are weighed."""

    name: str  # by which interactions know it
    prefixes: tuple[str, ...]
    binary: bool = False
    log: bool = False
    inverse: bool = False
    norm: bool = False
    square: bool = False  # whether a feature of the first group times itself is another: a number, not a name


class ReadColumn(Protocol):
    """What an extractor has read of a batch, with what most of them have in common.

    ``missing`` says in which rows the value is missing (None: in none); ``known`` whether a vocabulary has been asked
    about all names already.
    """

    missing: np.ndarray | None = None
    known: bool = False

    def rows(self, start: int, stop: int) -> NamedRows:
        """The features of some of the rows."""
        ...

    def cost(self) -> np.ndarray:
        """How much work the rows before each row are, in features or so."""
        ...

    def spell(self, vocabulary: Vocabulary, learning: bool) -> None:
        """Spell names as the vocabulary does."""
        return

    def learn(self, facts: np.ndarray) -> None:
        """Take the values into facts about the column."""
        return

    def scale_by(self, facts: np.ndarray) -> None:
        """Scale the values by facts about the column."""
        return


def check_choice(value: Any, known: Sequence[str], what: str) -> None:
    if value not in known:
        raise ValueError(f"{what} must be {', '.join(map(repr, known[:-1]))} or {known[-1]!r}, not {value!r}")


def check_missing(value: Any, who: str) -> None:
    check_choice(value, MISSING, f"{who}: missing")


def check_grams(value: Any, what: str) -> tuple[int, int] | None:
    """A range of lengths, from a pair or from one number."""
    if value is None:
        return None
    pair = (value, value) if isinstance(value, int) else tuple(value)
    good = len(pair) == 2 and all(isinstance(n, int) and not isinstance(n, bool) for n in pair)
    if not good or not 1 <= pair[0] <= pair[1] <= 20:
        raise ValueError(f"{what} must be a pair (shortest, longest) of lengths from 1 to 20, not {value!r}")
    return pair[0], pair[1]


def spell(extractor: Any) -> dict[str, Any]:
    """An extractor as JSON."""
    if hasattr(extractor, "spell"):
        return dict(extractor.spell())
    return {"kind": extractor.kind, **asdict(extractor)}


# ----------------------------------------------------------------------------------------------------
# Scales of numeric columns, learned in one pass: mean and variance by Welford's method, and the largest size.
#
# One value after another, so the result does not depend on how many came at a time.


SCALES = ("standard", "max-abs", "log1p", "none")
LARGEST = 1e140  # in size; what is beyond counts as this much, so that squares, and their sum, stay finite
FACTS = 4  # count, mean, sum of squared differences from it, largest size


@compiled
def learn(values: Any, facts: Any) -> None:
    """Take values, but for the missing, into the facts (Welford 1962)."""
    count, mean, spread, largest = facts[0], facts[1], facts[2], facts[3]
    for x in values:
        if x == x:
            count += 1.0
            x = min(max(x, -LARGEST), LARGEST)
            change = x - mean
            mean += change / count
            spread += change * (x - mean)
            largest = max(largest, abs(x))
    facts[0], facts[1], facts[2], facts[3] = count, mean, spread, largest


def apply(values: np.ndarray, facts: np.ndarray, scale: str) -> np.ndarray:
    """Values on the scale; one too large for it is infinite, and becomes the largest when a matrix is made.

    "standard" puts a column that never changed, or was never seen, at its mean: 0.
    """
    if scale in ("standard", "max-abs"):
        values = np.clip(values, -LARGEST, LARGEST)  # as they were learned
    with np.errstate(over="ignore"):
        if scale == "standard":
            count, mean, spread, _ = facts
            deviation = np.sqrt(spread / count) if count else 0.0
            return (values - mean) / deviation if deviation > 0 else np.zeros_like(values)
        if scale == "max-abs":
            return values / facts[3] if facts[3] > 0 else values.copy()
    if scale == "log1p":
        return np.copysign(np.log1p(np.abs(values)), values)
    return values.copy()


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


class CategoryColumn(ReadColumn):
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
            absent = is_missing(words)
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

        if (words := respelled(self.words, self.booleans, known)) is not None:
            self._lay_out(words)

    def _lay_out(self, words: Any) -> None:
        text, places = string_parts(words)
        self.text = fixed(text)
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
        check_choice(self.scale, SCALES, f"Number({self.column!r}): scale")
        check_missing(self.missing, f"Number({self.column!r})")

    def groups(self) -> Groups:
        return Groups(self.column, ("",), square=True)

    def read(self, table: Any) -> NumberColumn:
        values = numbers(table, self.column)
        missing = np.isnan(values)
        if self.missing == "zero" and missing.any():
            values = np.where(missing, 0.0, values)
        return NumberColumn(self, values, missing if missing.any() else None)


class NumberColumn(ReadColumn):
    """A column's values, and the facts its scale is made of."""

    def __init__(self, spec: Number, values: np.ndarray, missing: np.ndarray | None) -> None:
        self.spec, self.values, self.missing = spec, values, missing
        self.facts = np.zeros(FACTS)

    def learn(self, facts: np.ndarray) -> None:
        """Take the values into facts about the column."""
        learn(fixed(self.values), facts)

    def scale_by(self, facts: np.ndarray) -> None:
        self.facts = facts

    def rows(self, start: int, stop: int) -> NamedRows:
        values = self.values[start:stop]
        present = ~np.isnan(values)
        scaled = apply(values[present], self.facts, self.spec.scale)
        return one_each(present, scaled, self.spec.column.encode(), "")

    def cost(self) -> np.ndarray:
        return np.arange(len(self.values) + 1)


class WithIndicator(ReadColumn):
    """A column and, in rows where its value is missing, the feature ``column=missing``."""

    def __init__(self, inner: ReadColumn, name: str) -> None:
        self.inner, self.name, self.missing = inner, name, inner.missing

    def learn(self, facts: np.ndarray) -> None:
        self.inner.learn(facts)

    def scale_by(self, facts: np.ndarray) -> None:
        self.inner.scale_by(facts)

    def rows(self, start: int, stop: int) -> NamedRows:
        absent = np.zeros(stop - start, bool) if self.missing is None else self.missing[start:stop]
        flags = one_each(absent, np.ones(int(absent.sum())), b"missing", f"{self.name}=")
        return side_by_side([self.inner.rows(start, stop), flags])

    def cost(self) -> np.ndarray:
        return self.inner.cost()


# ----------------------------------------------------------------------------------------------------
# User-defined functions as extractors.


FUNCTIONS: dict[str, Own] = {}  # by name: where a model file looks for them


class Own:
    """A function from a row, as a dict, to names, or to names with values. Make one by ``@onlearn.feature``."""

    kind = "own"
    column = missing = None

    def __init__(self, function: Callable[[dict[str, Any]], Any]) -> None:
        self.function = function
        self.name = function.__name__
        # a pickle refers to it as to a function: by module and name
        self.__doc__, self.__module__, self.__qualname__ = function.__doc__, function.__module__, function.__qualname__

    def __reduce__(self) -> str:
        return self.__qualname__

    def __call__(self, row: dict[str, Any]) -> Any:
        return self.function(row)

    def __repr__(self) -> str:
        return self.name

    def spell(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name}

    def groups(self) -> Groups:
        return Groups(self.name, (f"{self.name}:",))

    def read(self, table: Any) -> OwnRows:
        rows = (dict(row) for row in table.to_pylist())
        return OwnRows(rows_of_names((self._checked(n, row) for n, row in enumerate(rows)), f"{self.name}:"))

    def _checked(self, n: int, row: dict[str, Any]) -> Iterator[str | tuple[str, float]]:
        """What the function makes of a row; a single name will do for a list of one."""
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
    """All that a function made of a batch."""

    def __init__(self, made: NamedRows) -> None:
        self.made = made

    def rows(self, start: int, stop: int) -> NamedRows:
        return self.made.between(start, stop)

    def cost(self) -> Any:
        return self.made.indptr


def feature(function: Callable[[dict[str, Any]], Any]) -> Own:
    """Make an extractor of a function that takes a row as a dict and yields names or (name, value) pairs.

    It may return a dict of values by name as well. Names get the function's own as a prefix. A model file knows the
    function by its name only, so it must have been defined again before the model is loaded.

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
