"""The roles of columns (numeric, categorical, text or ignore), guessed from the first rows, with the reasons."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from onlearn.data import arrow
from onlearn.errors import PlanError
from onlearn.features.extractors import Category, Number, check_choice
from onlearn.features.tables import as_source, column, is_text
from onlearn.features.text import Text
from onlearn.features.value_effects import effects, is_skewed

__all__ = ["PlanError", "Role", "extractors_for", "guess_roles"]

ROLES = ("numeric", "categorical", "text", "ignore")
LOOK_AT = 20_000  # rows
READ = 10_000  # rows whose strings are looked at
COUNT_IN = 1_000  # rows whose words are counted
ENOUGH = 20  # rows from which "all values differ" is evidence
MANY = 100  # rows from which "nearly all values differ" is evidence
NEARLY = 0.99
LETTERS = {"ngrams": None, "chars": (2, 5)}  # for texts of one word, such as DNA: n-grams inside the word
SHORT = 40  # words up to which texts are sentences and messages
LONG = 50  # letters from which a string is neither a category nor an identifier
WORD = re.compile(r"\w+")
DIGEST = re.compile(r"[0-9a-f]{32,}|[0-9A-F]{32,}")
NUMERAL = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")


class Role(NamedTuple):
    """The role of a column, and the reason."""

    role: str
    reason: str

    @property
    def one_word(self) -> bool:
        """Whether each value is one word and nearly all differ, so that words are useless as features."""
        return isinstance(self, OneWord)

    @property
    def treatment(self) -> tuple[str, ...]:
        """What is done to the values: of numbers "log" and "values", of texts "punctuation"; see ``Treated``."""
        return self._treatment if isinstance(self, Treated) else ()


class Treated(Role):
    """A role with a treatment of the values.

    "log": the logarithms of numbers are learned from. "values": each value is a category besides. "punctuation": texts
    are short, so that punctuation tells something.
    """

    _treatment: tuple[str, ...] = ()

    def __new__(cls, role: str, reason: str, treatment: tuple[str, ...] = ()) -> Treated:
        made = super().__new__(cls, role, reason)
        made._treatment = treatment
        return made


class OneWord(Role):
    """The role of a column of single words."""


def guess_roles(rows: Any, targets: np.ndarray | None = None, sample: np.ndarray | None = None) -> dict[str, Role]:
    """The role of each column: numeric, categorical, text or ignore.

    ``targets`` has a line for each row, or for each of the first, or for each row of a ``sample``: numbers, or the
    ``indicators`` of classes, or NaN where they are not to be looked at. By them, whole numbers that act as names (see
    ``value_effects``) are told from amounts.

    >>> guess_roles({"age": [31, 54], "review": ["a fine film, really", "not worth my time"]})["review"].role
    'text'
    """
    table = as_source(rows)
    if not hasattr(table, "column_names"):
        raise TypeError("roles are of the columns of a table; these rows have none")
    first = table.slice(0, LOOK_AT)
    told = first if sample is None else table.take(arrow.from_numpy(sample))
    seen = None if targets is None else targets[: told.num_rows]
    return {name: _guess(name, column(first, name), column(told, name), seen) for name in table.column_names}


def _guess(name: str, values: Any, told: Any, targets: np.ndarray | None = None) -> Role:
    """The role of a column by its first values, and by those whose targets are ``told``."""
    import pyarrow.types as kinds

    kind = values.type
    known = values.drop_null()
    if not len(known):
        return Role("ignore", "all values are missing")
    if kinds.is_boolean(kind):
        return Role("numeric", "true or false")
    if kinds.is_integer(kind) or kinds.is_floating(kind):
        numbers = arrow.numbers(known).astype(np.float64)
        whole = bool((numbers == np.floor(numbers)).all())  # readers of text give whole numbers as floats
        if whole and len(known) >= ENOUGH and (np.diff(numbers) == 1).all():
            return Role("ignore", "it counts the rows")
        if whole and _named_id(name) and len(known) >= ENOUGH and len(known.unique()) == len(known):
            return Role("ignore", "it is named like an identifier, and all values differ")
        if targets is None:
            return _guess_numbers(numbers, whole, numbers, None)
        there = targets[~arrow.is_missing(told)[: len(targets)]]
        return _guess_numbers(numbers, whole, arrow.numbers(told.drop_null()).astype(np.float64)[: len(there)], there)
    if kinds.is_decimal(kind):
        return Role("numeric", "numbers")
    if is_text(kind):
        return _guess_strings(name, known.slice(0, READ).to_pylist())
    return Role("ignore", f"values of type {kind} are neither numbers nor text")


def _guess_numbers(values: np.ndarray, whole: bool, told: np.ndarray, targets: np.ndarray | None) -> Role:
    """The role of numbers, amounts or names; of those ``told`` the targets are known."""
    finite = values[np.isfinite(values)]
    said, done = "whole numbers" if whole else "numbers", list[str]()
    if is_skewed(finite):
        said, done = f"skewed {said}, taken as logarithms", ["log"]
    whole = whole and bool((told == np.floor(told)).all())  # infinite ones are not
    if whole and targets is not None and np.isfinite(told).all() and finite.size == len(values) and np.ptp(values) >= 2:
        known = ~np.isnan(targets[:, 0])
        found = effects(told[known], targets[known])
        if found.as_names:
            return Role(
                "categorical", "whole numbers that act as names: the target depends on the value, not on the order"
            )
        if found.bent:
            said, done = f"{said}, each value with a weight of its own besides", [*done, "values"]
    return Treated("numeric", said, tuple(done)) if done else Role("numeric", said)


def _guess_strings(name: str, values: list[str]) -> Role:
    n, distinct = len(values), len(set(values))
    if all(NUMERAL.fullmatch(value) for value in values):
        return Role("numeric", "all strings read as numbers")
    words = sum(len(value.split()) for value in values[:COUNT_IN]) / min(n, COUNT_IN)
    letters = sum(map(len, values)) / n
    repeated = distinct <= 0.2 * n or distinct <= 2 < n
    count = f"{distinct} distinct value{'s' if distinct > 1 else ''} in {n} rows"
    if repeated and (words < 8 or distinct <= 0.02 * n):
        return Role("categorical", count)
    if words >= 3:
        if words <= SHORT and n >= ENOUGH:
            return Treated("text", f"{words:.3g} words in a row, so punctuation counts", ("punctuation",))
        return Role("text", f"{words:.3g} words in a row")
    differ = (distinct == n and n >= ENOUGH) or (distinct >= NEARLY * n and n >= MANY)
    share = "all" if distinct == n else f"{100 * distinct / n:.3g} % of the"
    if differ and all(DIGEST.fullmatch(value) for value in values):
        return Role("ignore", f"{share} values differ and are long hexadecimal numbers, as identifiers are")
    if letters >= LONG:
        if sum(len(WORD.findall(value)) for value in values) < 1.5 * n:
            return OneWord("text", f"{letters:.3g} letters in a row, and one word")
        return Role("text", f"{letters:.3g} letters in a row")
    if differ and words < 1.5:
        return OneWord("ignore", f"{share} values differ and are single words, as identifiers are")
    if words >= 1.5 and distinct > 0.5 * n:
        return Role("text", f"{words:.3g} words in a row, seldom the same")
    return Role("categorical", count)


def _named_id(name: str) -> bool:
    return bool(re.fullmatch(r"(?i)(.*[_\- ])?(id|ids|uuid|guid|index|rowid|key)", name))


def extractors_for(
    roles: dict[str, Any], text: Any = None, number: Any = None, category: Any = None
) -> list[Text | Category | Number]:
    """An extractor for each column, by its role; ``text``, ``number`` and ``category`` are dicts of their parameters.

    Text of one word each (``role.one_word``) is cut into n-grams of characters, unless ``text`` says into what.

    >>> extractors_for({"age": "numeric", "id": "ignore"}, number={"scale": "none"})
    [Number(column='age', scale='none', missing='absent')]
    """
    named = {name: getattr(role, "role", role) for name, role in roles.items()}
    for name, role in named.items():
        check_choice(role, ROLES, f"the role of column {name!r}")
    used = [name for name, role in named.items() if role != "ignore"]
    alone = {"prefix": ""} if len(used) == 1 else {}
    made: list[Text | Category | Number] = []
    for name in used:
        treatment = getattr(roles[name], "treatment", ())
        if named[name] == "text":
            given = text or {}
            letters = LETTERS if getattr(roles[name], "one_word", False) and given.keys().isdisjoint(LETTERS) else {}
            marks = {"tokens": "punctuation"} if "punctuation" in treatment else {}
            made.append(Text(name, **{**alone, **letters, **marks, **given}))
        elif named[name] == "numeric":
            scale = {"scale": "log-standard"} if "log" in treatment else {}
            made.append(Number(name, **{**scale, **(number or {})}))
            if "values" in treatment:
                made.append(Category(name))
        else:
            made.append(Category(name, **(category or {})))
    return made
