"""How good a tagger is on sentences whose labels are known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from onlearn import data
from onlearn.data.batch import Sentences
from onlearn.models.tagger import Tagger


def evaluate_tagger(tagger: Tagger, parts: Iterable[tuple[Sentences, np.ndarray, list[str]]]) -> dict[str, Any]:
    """Compare predictions with labels: batches of sentences, codes of their labels, and the names that these number.

    A label that the tagger does not know counts as an error.
    """
    from onlearn.sequence.tag_metrics import tag_report

    labels = tagger.labels
    known_labels = len(labels)
    position = {label: n for n, label in enumerate(labels)}
    gold, found, known, counts = [], [], [], []
    for sentences, codes, names in parts:
        for name in names:
            if name not in position:
                position[name] = len(labels)
                labels.append(name)
        table = np.array([*(position[name] for name in names), -1], dtype=np.int64)  # the last: no label
        taken = tagger.taken(sentences)
        gold.append(table[codes])
        found.append(tagger.predict_codes(taken))
        known.append(tagger.known(taken))
        counts.append(np.diff(sentences.offsets))
    if not gold or not sum(map(len, gold)):
        raise data.DataError("there are no labels to compare with")
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.concatenate(counts))])
    everything = np.concatenate(gold)
    report = tag_report(everything, np.concatenate(found), labels, offsets, np.concatenate(known))
    unknown = {
        labels[k]: int(count)
        for k, count in enumerate(np.bincount(everything[everything >= 0], minlength=len(labels)).tolist())
        if k >= known_labels and count
    }
    return {**report, "unknown_labels": unknown}
