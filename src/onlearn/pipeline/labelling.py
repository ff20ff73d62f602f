"""Labels that cannot be learned to be told apart: amounts, for which it is regression, or a single one."""

from __future__ import annotations

import numpy as np

from onlearn.data import Batch, DataError
from onlearn.labels import number
from onlearn.pipeline.plan import PlanError

MANY = 200  # from so many distinct labels on, most of them numbers, they may be no labels at all
SOME = 100  # and from so many on they are none, if they are fractions or hardly two rows have the same


def question(labels: list[str]) -> str | None:
    """What to ask about many labels that are numbers, if they are."""
    if len(labels) < MANY or sum(number(label) is not None for label in labels) <= 0.9 * len(labels):
        return None
    return f"{len(labels):,} distinct labels that are numbers: is this regression (--task regress)?"


def met(batch: Batch) -> list[int]:
    """The numbers of the labels that rows of a batch have."""
    if batch.codes is None:
        return []
    return np.flatnonzero(np.bincount(batch.codes[batch.codes >= 0])).tolist()


def refuse_amounts(batch: Batch) -> None:
    """Refuse first rows whose labels can only be amounts: a class for each would take very long and teach nothing."""
    names = batch.label_names or []
    values = [number(names[code]) for code in met(batch)]
    if len(values) <= SOME or any(value is None for value in values):
        return
    fractions = any(value is not None and not float(value).is_integer() for value in values)
    if fractions or len(values) > len(batch) / 2:
        raise PlanError(
            f"the labels of the first {len(batch):,} rows are {len(values):,} different numbers: this looks like "
            "regression (say --task regress, or --task classify if each number is a class)"
        )


def refuse_one(labels: list[str], rows: int, held_out: bool) -> None:
    """Refuse so many first rows that have only one label, or none."""
    if len(labels) < 2:
        which = "but for those held out, " if held_out else ""
        only = f", {labels[0]!r}" if labels else ""
        raise DataError(
            f"{which}the first {rows} rows have only one label{only}: there is nothing to tell apart "
            "(shuffle the rows, or name all labels with --classes)"
        )
