"""Files whose rows are of another kind than those before: said in the words of files, not of features."""

from __future__ import annotations

from typing import Any

from onlearn.data import DataError
from onlearn.features.transformer import MATRIX, NAMED, TABLE, kind_of

SAID = {
    MATRIX: "features with numbers (as in svmlight)",
    NAMED: "features with names (as in Vowpal Wabbit)",
    TABLE: "columns (as in CSV, JSON lines and Parquet)",
}


def refuse_other_kind(file: str, rows: Any, features: Any, fresh: bool) -> None:
    """Refuse rows that are not of the kind that was learned from, in this run if it is ``fresh``."""
    before, now = getattr(features, "kind_", None), kind_of(rows)
    if before is not None and now != before:
        what = "the files before it have" if fresh else "the model has learned from"
        raise DataError(f"{file} has {SAID[now]}, but {what} {SAID[before]}: they cannot be learned from together")
