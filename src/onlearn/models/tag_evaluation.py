"""How good a tagger is on sentences whose labels are known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from onlearn import data
from onlearn.data.batch import Sentences
from onlearn.models.tagger import Tagger
from onlearn.sequence.tag_metrics import tag_report

MOST = 1 << 25  # probabilities that are kept for log-loss and calibration error; of more tokens there are none


class SentenceObserver(Protocol):
    """Sees what is evaluated: sentences, the names and codes of their labels, and the labels that are predicted."""

    def observe_sentences(
        self, sentences: Sentences, names: list[str], codes: np.ndarray, found: np.ndarray
    ) -> None: ...


def evaluate_tagger(
    tagger: Tagger,
    parts: Iterable[tuple[Sentences, np.ndarray, list[str]]],
    observer: SentenceObserver | None = None,
) -> dict[str, Any]:
    """Compare predictions with labels: batches of sentences, codes of their labels, and the names that these number.

    A label that the tagger does not know counts as an error. An ``observer`` sees all that is predicted.
    """
    position = {label: n for n, label in enumerate(tagger.labels)}
    gold, found, known, counts, marginals = [], [], [], [], []
    unknown: list[str] = []
    tokens = 0
    for sentences, codes, names in parts:
        table = np.array([*(position.get(name, -1) for name in names), -1], dtype=np.int64)  # the last: no label
        taken = tagger.taken(sentences)
        gold.append(table[codes])
        unknown += [names[code] if code >= 0 else "" for code in codes[gold[-1] < 0].tolist()]
        found.append(tagger.predict_codes(taken))
        if observer is not None:
            told = np.array([*tagger.labels, ""], dtype=object)[found[-1]]
            observer.observe_sentences(sentences, names, codes, told)
        known.append(tagger.known(taken))
        counts.append(np.diff(sentences.offsets))
        tokens += len(codes)
        if tagger.learner.has_marginals and tokens * len(position) <= MOST:
            marginals.append(tagger.marginals(taken))
    if not tokens:
        raise data.DataError("there are no labels to compare with")
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.concatenate(counts))])
    whole = np.concatenate(marginals) if len(marginals) == len(gold) else None
    return tag_report(
        np.concatenate(gold), np.concatenate(found), tagger.labels, offsets, np.concatenate(known), whole, unknown
    )
