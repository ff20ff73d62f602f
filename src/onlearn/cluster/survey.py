"""What shards hold: what each of them told of its rows, and the rows and labels of them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from onlearn.cluster.shards import Shard, dealt
from onlearn.data import DataError
from onlearn.data.bad_rows import Bad
from onlearn.engine.inputs import positions
from onlearn.features import Counts
from onlearn.models.run_reading import Reading


class Survey(NamedTuple):
    """What one shard holds."""

    rows: int  # good ones, those held out included
    lines: list[int]  # of each piece
    values: int
    learned: int  # rows that are not held out
    digest: Any  # of the content, by which a change is noticed
    labels: list[str] | None  # in the order in which they came
    label_counts: np.ndarray  # rows of each, held-out ones left out
    label_weights: np.ndarray  # their weights
    features: tuple[dict[str, Any], dict[str, np.ndarray]]
    counts: Counts | None  # rows of each feature, for min_count
    far: Any
    namespaces: set[str]
    bad: list[tuple[int | None, Bad]]  # with the places of their pieces
    bad_count: int
    where: str | None = None  # the worker


def take_rows(reading: Reading, shards: Sequence[Shard], surveys: Sequence[Survey]) -> None:
    """Count rows and values, and tell of bad rows by the lines of their files."""
    for one in surveys:
        reading.bad.seen(one.rows)
        reading.rows += one.rows
        reading.values += one.values
    lines: dict[str, int] = {}
    for number, place in dealt(shards):
        name, one = shards[number].pieces[place].name, surveys[number]
        before = lines.setdefault(name, 0)
        lines[name] += one.lines[place]
        for bad in (bad for there, bad in one.bad if there == place):
            reading.bad.add(name, bad._replace(line=bad.line + before))
    for shard, one in zip(shards, surveys):
        for bad in (bad for there, bad in one.bad if there is None):
            reading.bad.add(shard.name, bad)
        reading.bad.untold(one.bad_count - sum(bad.rows for _, bad in one.bad))
    reading.bad.check()
    reading.bad.close()
    if not reading.rows:
        raise DataError(f"none of the rows could be read; {reading.bad.first()}")
    if not any(one.learned for one in surveys):
        raise DataError("all rows are held out, so there is nothing to learn from")


def take_labels(reading: Reading, surveys: Sequence[Survey]) -> tuple[list[np.ndarray], np.ndarray]:
    """List the labels of all shards; returns the codes of each shard's labels, and the weight of each class."""
    model = reading.model
    if model.labels is None:
        return [np.zeros(0, np.int64)] * len(surveys), np.zeros(0)
    for one in surveys:
        names = one.labels or []
        reading._add_labels(model.labels, names, list(range(len(names))))
    reading.sort_labels()
    counts, weights = np.zeros(len(model.labels), np.int64), np.zeros(len(model.labels))
    codes = []
    for one in surveys:
        own = np.array(positions(one.labels or [], model.labels, dots=False), dtype=np.int64)
        np.add.at(counts, own[: len(one.label_counts)], one.label_counts)
        np.add.at(weights, own[: len(one.label_weights)], one.label_weights)
        codes.append(own)
    reading.label_counts = counts
    return codes, weights
