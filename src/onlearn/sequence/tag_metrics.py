"""How good predicted labels of tokens are, as facts that are ready for JSON.

Log-loss and calibration error are defined as for classifiers (``models.evaluation``): probabilities keep a distance
from 0 and 1, the error is the mean difference between the probability of the predicted label and the share of right
ones, over equally wide bins of that probability, and tokens whose label the model does not know are left out of both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from onlearn.sequence.spans import detect_scheme, share, span_figures

BINS = 15
TINY = float(np.finfo(np.float64).eps)
NAMELESS = "?"  # stands for labels that the model does not know, if their names are not given


def tag_report(
    gold: Any,
    predicted: Any,
    labels: Sequence[str],
    offsets: Any,
    known: Any = None,
    marginals: Any = None,
    unknown: Sequence[str] = (),
) -> dict[str, Any]:
    """Compare predicted labels with the right ones.

    :param gold: the right label of each token as a position in ``labels``; -1: the model does not know it
    :param predicted: the predicted label of each token, likewise; -1: no path was allowed
    :param offsets: where the sentences begin, and the number of tokens
    :param known: whether the word of each token was among those learned from
    :param marginals: the probability of each label (a column) at each token (a row)
    :param unknown: the names of the right labels that the model does not know, one for each -1, in order; without them
        they count as outside of spans

    >>> made = tag_report([0, 1, 1], [0, 1, 0], ["N", "V"], [0, 2, 3], known=[True, True, False])
    >>> made["accuracy"], made["unknown_words"], made["confusion"]
    (0.6666666666666666, {'tokens': 1, 'right': 0, 'accuracy': 0.0}, [('N', 'N', 1), ('V', 'N', 1), ('V', 'V', 1)])
    """
    gold, predicted = np.asarray(gold, dtype=np.int64), np.asarray(predicted, dtype=np.int64)
    offsets = np.asarray(offsets, dtype=np.int64)
    _check(gold, predicted, labels, offsets, known, unknown)
    # Labels that the model does not know are numbered behind those it knows, so that all else treats them alike.
    lacking = gold < 0
    as_written = gold if len(unknown) == 0 else None
    names, gold = _with_unknown(gold, labels, unknown)
    hit = gold == predicted
    made: dict[str, Any] = {
        "tokens": len(gold),
        "sentences": len(offsets) - 1,
        "right": int(hit.sum()),
        "accuracy": share(hit.sum(), len(hit)) if len(hit) else None,
    }
    if known is not None:
        known = np.asarray(known, dtype=bool)
        made["known_words"], made["unknown_words"] = _accuracy(hit[known]), _accuracy(hit[~known])
    wrong = np.concatenate([[0], np.cumsum(~hit)])
    whole = wrong[offsets[1:]] == wrong[offsets[:-1]]
    made["sentences_right"] = int(whole.sum())
    made["sentence_accuracy"] = share(whole.sum(), len(whole)) if len(whole) else None
    made["per_label"] = _per_label(gold, predicted, hit, names)
    made["confusion"] = _confusion(gold, predicted, names)
    made["unknown_labels"] = dict(Counter(names[code] for code in gold[lacking].tolist()))
    if as_written is None:
        made["scheme"], made["spans"] = _spans(gold, predicted, names, offsets)
    else:
        made["scheme"], made["spans"] = _spans(as_written, predicted, list(labels), offsets)
    if marginals is not None:
        made.update(_probabilities(gold, predicted, np.asarray(marginals, dtype=np.float64), lacking))
    return made


def _check(gold: Any, predicted: Any, labels: Any, offsets: Any, known: Any, unknown: Any) -> None:
    if len(gold) != offsets[-1] or len(predicted) != len(gold) or (known is not None and len(known) != len(gold)):
        raise ValueError(f"labels and known words must be one for each of {offsets[-1]} tokens, not {len(gold)}")
    for side in (gold, predicted):
        if len(side) and not -1 <= side.min() <= side.max() < len(labels):
            raise ValueError(f"codes of labels must be from -1 to {len(labels) - 1}")
    lacking = int(np.count_nonzero(gold < 0))
    if len(unknown) and len(unknown) != lacking:
        raise ValueError(f"there are {lacking} labels that the model does not know, and names of {len(unknown)}")


def _with_unknown(gold: np.ndarray, labels: Sequence[str], unknown: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The names of all labels, those that the model does not know at the end, and the right labels in terms of them."""
    lacking = np.flatnonzero(gold < 0)
    if not len(lacking):
        return list(labels), gold
    nameless = NAMELESS
    while nameless in labels:
        nameless += NAMELESS
    new = list(unknown) or [nameless] * len(lacking)
    position = {name: len(labels) + n for n, name in enumerate(dict.fromkeys(new))}
    gold = gold.copy()
    gold[lacking] = [position[name] for name in new]
    return [*labels, *position], gold


def _accuracy(hit: np.ndarray) -> dict[str, Any]:
    right = int(hit.sum())
    return {"tokens": len(hit), "right": right, "accuracy": share(right, len(hit)) if len(hit) else None}


def _per_label(gold: np.ndarray, predicted: np.ndarray, hit: np.ndarray, names: list[str]) -> dict[str, Any]:
    """Precision, recall and F1 of each label that occurs, and how many tokens have it."""
    found = predicted[predicted >= 0]
    right, made, there = (np.bincount(one, minlength=len(names)).tolist() for one in (gold[hit], found, gold))
    return {
        name: {
            "precision": share(right[k], made[k]),
            "recall": share(right[k], there[k]),
            "f1": share(2 * right[k], made[k] + there[k]),
            "support": there[k],
        }
        for k, name in enumerate(names)
        if there[k] or made[k]
    }


def _confusion(gold: np.ndarray, predicted: np.ndarray, names: list[str]) -> list[tuple[str, str, int]]:
    """How often each right label was predicted as each other: pairs that occur, the most frequent first."""
    count = len(names) + 1  # the last one for tokens without a prediction
    pairs = np.bincount(gold * count + np.where(predicted < 0, count - 1, predicted), minlength=0)
    there = np.flatnonzero(pairs)
    order = there[np.argsort(-pairs[there], kind="stable")].tolist()
    shown = [*names, ""]
    return [(names[one // count], shown[one % count], int(pairs[one])) for one in order]


def _spans(
    gold: np.ndarray, predicted: np.ndarray, names: list[str], offsets: np.ndarray
) -> tuple[str | None, dict[str, Any] | None]:
    """The scheme of the labels and the figures of spans; None if the labels are no tags of spans."""
    scheme = detect_scheme(names, gold, offsets)
    return scheme, None if scheme is None else span_figures(gold, predicted, names, offsets)


def _probabilities(
    gold: np.ndarray, predicted: np.ndarray, marginals: np.ndarray, lacking: np.ndarray
) -> dict[str, float | None]:
    """Log-loss and calibration error."""
    if len(marginals) != len(gold):
        raise ValueError(f"there are marginals of {len(marginals)} tokens, and labels of {len(gold)}")
    rows = np.flatnonzero(~lacking & (predicted >= 0))
    if not len(rows):
        return {"log_loss": None, "calibration_error": None}
    gold, predicted = gold[rows], predicted[rows]
    loss = -np.log(np.clip(marginals[rows, gold], TINY, 1 - TINY)).mean()
    top = marginals[rows, predicted]
    places = np.clip((top * BINS).astype(np.int64), 0, BINS - 1)
    off = np.bincount(places, weights=(gold == predicted) - top, minlength=BINS)
    return {"log_loss": float(loss), "calibration_error": float(np.abs(off).sum() / len(rows))}
