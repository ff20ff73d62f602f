"""What a training run refuses or warns of as it reads: rows of other kinds, labels that are amounts, unknown names."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.data import Batch, DataError
from onlearn.data.batch import NamedRows
from onlearn.engine.inputs import number
from onlearn.engine.spec import did_you_mean
from onlearn.errors import PlanError
from onlearn.features import FeatureMap, Interaction
from onlearn.features.feature_map import MATRIX, NAMED, TABLE, kind_of
from onlearn.inert_text import inert
from onlearn.models.model import Model


def refuse_hashed(features: Any, parameter: str) -> None:
    """Refuse to drop features by a parameter if some of them share weights."""
    if features.vocabulary_.state == "hash":
        raise PlanError(f"{parameter}= cannot tell features apart that share a weight: raise max_names=")


KIND_NAMES = {
    MATRIX: "features with numbers (as in svmlight)",
    NAMED: "features with names (as in Vowpal Wabbit)",
    TABLE: "columns (as in CSV, JSON lines and Parquet)",
}


def refuse_other_kind(file: str, rows: Any, features: Any, fresh: bool) -> None:
    """Refuse rows of another kind than those learned from before, by this run if it is ``fresh``."""
    before, now = features.kind_, kind_of(rows)
    if before is not None and now != before:
        what = "the files before it have" if fresh else "the model has learned from"
        raise DataError(
            f"{file} has {KIND_NAMES[now]}, but {what} {KIND_NAMES[before]}: they cannot be learned from together"
        )


MANY_LABELS = 200  # so many distinct labels, most of them numbers, are taken for amounts
SOME_LABELS = 100  # and more than so many, if they are fractions or differ in most rows


def regression_question(labels: list[str]) -> str | None:
    """A question whether many labels that are numbers are amounts; None if they are few or no numbers."""
    if len(labels) < MANY_LABELS or sum(number(label) is not None for label in labels) <= 0.9 * len(labels):
        return None
    return f"{len(labels):,} distinct labels that are numbers: is this regression (task=regress)?"


def used_labels(batch: Batch) -> list[int]:
    """The positions of the labels that rows of a batch have, among all labels of the reader."""
    if batch.codes is None:
        return []
    return np.flatnonzero(np.bincount(batch.codes[batch.codes >= 0])).tolist()


def refuse_many_numbers(labels: list[str], rows: int | None = None) -> None:
    """Refuse hundreds of labels that are numbers, which may be amounts."""
    if regression_question(labels) is not None:
        raise _amounts(len(labels), rows)


def refuse_amounts(batch: Batch) -> None:
    """Refuse first rows whose labels can only be amounts: a class for each would be slow and useless."""
    names = batch.label_names or []
    labels = [names[code] for code in used_labels(batch)]
    refuse_many_numbers(labels, len(batch))
    values = [value for label in labels if (value := number(label)) is not None]
    if len(labels) <= SOME_LABELS or len(values) < len(labels):
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


def refuse_one_label(labels: list[str], rows: int, held_out: bool) -> None:
    """Refuse first rows, so many of them, that have only one label, or none."""
    if len(labels) < 2:
        which = "but for those held out, " if held_out else ""
        only = f", {inert(labels[0])!r}" if labels else ""
        raise DataError(
            f"{which}the first {rows} rows have only one label{only}: there is nothing to tell apart "
            "(shuffle the rows, or name all labels with classes=)"
        )


SHOWN_COLUMNS = 5


def unknown_columns(model: Model, rows: Any) -> str | None:
    """A sentence that names the columns of a table that the model has no features of; None if there are none."""
    known = model.features.columns_
    if known is None or kind_of(rows) != TABLE:
        return None
    expected = {*known, *(str(model.reading.get(role)) for role in ("target", "weight", "group", "id"))}
    new = [name for name in rows.column_names if name not in expected]
    if not new:
        return None
    more = f" and {len(new) - SHOWN_COLUMNS} more" if len(new) > SHOWN_COLUMNS else ""
    named, first = ", ".join(map(repr, new[:SHOWN_COLUMNS])), "in the rows that the model first learned from"
    if len(new) == 1:
        return f"column {named} was not {first}: it is not used"
    return f"columns {named}{more} were not {first}: they are not used"


class Namespaces:
    """The namespaces that occur in the rows, to warn of interactions with others."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def add(self, rows: Any, features: FeatureMap) -> None:
        """Add the namespaces of some rows, if the features have interactions."""
        if isinstance(rows, NamedRows) and _interactions(features):
            used = np.bincount(rows.groups, minlength=len(rows.prefixes))
            self.found.update(prefix.removesuffix("^") for prefix, count in zip(rows.prefixes, used) if count)

    def warnings(self, features: FeatureMap) -> list[str]:
        """A sentence for each interaction that had nothing to multiply."""
        if not self.found:
            return []
        asked = _interactions(features)
        few = [one for one in asked if not one.columns and len(self.found) < one.degree]
        there = ", ".join(repr(name) if name else "the one without a name" for name in sorted(self.found))
        return [
            f"interact={'pairs' if one.degree == 2 else 'triples'} has nothing to multiply: "
            f"it takes {one.degree} different namespaces, and there is only {there}"
            for one in few
        ] + [
            f"the namespace {name!r} of interact={','.join(one.columns)} never occurred"
            f"{did_you_mean(name, sorted(self.found - {''}))}"
            for one in asked
            for name in dict.fromkeys(one.columns)
            if name not in self.found
        ]


def _interactions(features: FeatureMap) -> list[Interaction]:
    given = features.extractors
    return [] if isinstance(given, str) else [one for one in given if isinstance(one, Interaction)]
