"""Files whose rows are of another kind than those before: said in the words of files, not of features."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.data import Batch, DataError
from onlearn.data.named_rows import NamedRows
from onlearn.engine.labels import number
from onlearn.engine.spec import did_you_mean
from onlearn.errors import PlanError
from onlearn.features import FeatureMap, Interaction
from onlearn.features.feature_map import MATRIX, NAMED, TABLE, kind_of
from onlearn.models.model import Model

SAID = {
    MATRIX: "features with numbers (as in svmlight)",
    NAMED: "features with names (as in Vowpal Wabbit)",
    TABLE: "columns (as in CSV, JSON lines and Parquet)",
}


def refuse_other_kind(file: str, rows: Any, features: Any, fresh: bool) -> None:
    """Refuse rows that are not of the kind that was learned from, in this run if it is ``fresh``."""
    before, now = features.kind_, kind_of(rows)
    if before is not None and now != before:
        what = "the files before it have" if fresh else "the model has learned from"
        raise DataError(f"{file} has {SAID[now]}, but {what} {SAID[before]}: they cannot be learned from together")


# ----------------------------------------------------------------------------------------------------
# Labels that cannot be learned to be told apart: amounts, for which it is regression, or a single one.


MANY = 200  # so many distinct labels, most of them numbers, are taken for amounts
SOME = 100  # and more than so many, if they are fractions or hardly two rows have the same


def question(labels: list[str]) -> str | None:
    """What to ask about many labels that are numbers, if they are."""
    if len(labels) < MANY or sum(number(label) is not None for label in labels) <= 0.9 * len(labels):
        return None
    return f"{len(labels):,} distinct labels that are numbers: is this regression (task=regress)?"


def met(batch: Batch) -> list[int]:
    """The numbers of the labels that rows of a batch have."""
    if batch.codes is None:
        return []
    return np.flatnonzero(np.bincount(batch.codes[batch.codes >= 0])).tolist()


def refuse_many_numbers(labels: list[str], rows: int | None = None) -> None:
    """Refuse hundreds of labels that are numbers, unless it is said that they are classes."""
    if question(labels) is not None:
        raise _amounts(len(labels), rows)


def refuse_amounts(batch: Batch) -> None:
    """Refuse first rows whose labels can only be amounts: a class for each would take very long and teach nothing."""
    names = batch.label_names or []
    labels = [names[code] for code in met(batch)]
    refuse_many_numbers(labels, len(batch))
    values = [value for label in labels if (value := number(label)) is not None]
    if len(labels) <= SOME or len(values) < len(labels):
        return
    fractions = any(not float(value).is_integer() for value in values)
    if fractions or len(values) > len(batch) / 2:
        raise _amounts(len(values), len(batch))


def _amounts(labels: int, rows: int | None) -> PlanError:
    where = "the labels" if rows is None else f"the labels of the first {rows:,} rows"
    return PlanError(
        f"{where} are {labels:,} different numbers: say task=regress if they are amounts to predict, "
        "or task=classify if each is a class"
    )


def refuse_one(labels: list[str], rows: int, held_out: bool) -> None:
    """Refuse so many first rows that have only one label, or none."""
    if len(labels) < 2:
        which = "but for those held out, " if held_out else ""
        only = f", {labels[0]!r}" if labels else ""
        raise DataError(
            f"{which}the first {rows} rows have only one label{only}: there is nothing to tell apart "
            "(shuffle the rows, or name all labels with classes=)"
        )


# ----------------------------------------------------------------------------------------------------
# Columns that a model has never met, and so has no features of.


SHOWN = 5


def unknown_columns(model: Model, rows: Any) -> str | None:
    """A sentence that names the columns of a table that were not in those learned from; None if there are none."""
    known = model.features.columns_
    if known is None or not hasattr(rows, "column_names"):
        return None
    taken = {str(model.reading.get(role)) for role in ("target", "weight", "id")}
    new = [name for name in rows.column_names if name not in {*known, *taken}]
    if not new:
        return None
    more = f" and {len(new) - SHOWN} more" if len(new) > SHOWN else ""
    named, first = ", ".join(map(repr, new[:SHOWN])), "in the rows that the model first learned from"
    if len(new) == 1:
        return f"column {named} was not {first}: it is not used"
    return f"columns {named}{more} were not {first}: they are not used"


# ----------------------------------------------------------------------------------------------------
# Which namespaces occurred, so that an interaction with one that never did is told of.


class Namespaces:
    """Those of the rows that were learned from."""

    def __init__(self) -> None:
        self.met: set[str] = set()

    def meet(self, rows: Any, features: FeatureMap) -> None:
        """Some rows; those without namespaces are passed over, and so are all where nothing is multiplied."""
        if isinstance(rows, NamedRows) and _interactions(features):
            used = np.bincount(rows.groups, minlength=len(rows.prefixes))
            self.met.update(prefix.removesuffix("^") for prefix, count in zip(rows.prefixes, used) if count)

    def lacking(self, features: FeatureMap) -> list[str]:
        """A sentence for each interaction that had nothing to multiply."""
        if not self.met:
            return []
        asked = _interactions(features)
        few = [one for one in asked if not one.columns and len(self.met) < one.degree]
        there = ", ".join(repr(name) if name else "the one without a name" for name in sorted(self.met))
        return [
            f"interact={'pairs' if one.degree == 2 else 'triples'} has nothing to multiply: "
            f"it takes {one.degree} different namespaces, and there is only {there}"
            for one in few
        ] + [
            f"the namespace {name!r} of interact={','.join(one.columns)} never occurred"
            f"{did_you_mean(name, sorted(self.met - {''}))}"
            for one in asked
            for name in dict.fromkeys(one.columns)
            if name not in self.met
        ]


def _interactions(features: FeatureMap) -> list[Interaction]:
    given = features.extractors
    return [] if isinstance(given, str) else [one for one in given if isinstance(one, Interaction)]


# ----------------------------------------------------------------------------------------------------
# The order of rows: which are held out, and whether labels come sorted.


def held_out(start: int, count: int, part: float, seed: int) -> np.ndarray:
    """Which of the rows from ``start`` on are kept for testing: chosen by their number, so that any pass finds them."""
    numbers = np.arange(start, start + count, dtype=np.uint64)
    numbers += np.uint64(seed * 0x517CC1B727220A95 % 2**64)
    for factor in (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93):
        numbers = (numbers ^ (numbers >> np.uint64(31))) * np.uint64(factor)
    return (numbers >> np.uint64(32)).astype(np.float64) < part * 2.0**32


def looks_sorted(codes: np.ndarray | None) -> bool:
    """Whether labels change much more seldom than they would by chance."""
    if codes is None or len(codes) < 2:
        return False
    share = np.bincount(codes + 1) / len(codes)
    by_chance = (len(codes) - 1) * (1 - float(share @ share))
    return int(np.count_nonzero(np.diff(codes))) < 0.5 * by_chance - 3 or len(np.unique(codes)) == 1
