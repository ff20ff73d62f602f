"""The report on predicted labels."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlearn.models.evaluation import Evaluation
from onlearn.sequence.tag_metrics import tag_report

LABELS = ["N", "V", "D"]


def test_a_worked_example():
    gold, made = [2, 0, 1, 2, 0], [2, 0, 0, 2, 1]
    found = tag_report(gold, made, LABELS, [0, 2, 5], known=[True, True, False, True, False])
    assert (found["tokens"], found["sentences"], found["right"], found["accuracy"]) == (5, 2, 3, 0.6)
    assert found["known_words"] == {"tokens": 3, "right": 3, "accuracy": 1.0}
    assert found["unknown_words"] == {"tokens": 2, "right": 0, "accuracy": 0.0}
    assert (found["sentences_right"], found["sentence_accuracy"]) == (1, 0.5)
    assert found["per_label"]["N"] == {"precision": 0.5, "recall": 0.5, "f1": 0.5, "support": 2}
    assert found["per_label"]["V"] == {"precision": 0, "recall": 0, "f1": 0, "support": 1}
    assert found["confusion"] == [("D", "D", 2), ("N", "N", 1), ("N", "V", 1), ("V", "N", 1)]
    assert found["unknown_labels"] == {} and found["scheme"] is None and found["spans"] is None
    assert "log_loss" not in found
    json.dumps(found, allow_nan=False)


def test_spans_are_rated_if_there_are_any():
    labels = ["O", "B-P", "I-P"]
    found = tag_report([1, 2, 0, 1], [1, 2, 0, 0], labels, [0, 4])
    assert found["scheme"] == "BIO" and found["spans"]["f1"] == 2 / 3
    assert found["spans"]["by_type"]["P"]["recall"] == 0.5
    # B-Q is not known to the model: its span counts, and is missed
    found = tag_report([1, 2, 0, -1], [1, 2, 0, 0], labels, [0, 4], unknown=["B-Q"])
    assert found["spans"]["gold"] == 2 and found["spans"]["recall"] == 0.5
    assert found["unknown_labels"] == {"B-Q": 1} and found["confusion"][-1] == ("B-Q", "O", 1)
    assert found["per_label"]["B-Q"] == {"precision": 0, "recall": 0, "f1": 0, "support": 1}
    found = tag_report([1, 2, 0, -1], [1, 2, 0, 0], labels, [0, 4])
    assert found["spans"]["gold"] == 1 and found["unknown_labels"] == {"?": 1} and found["accuracy"] == 0.75


def test_a_label_named_as_the_nameless():
    found = tag_report([1, 0, 2, -1], [1, 0, 2, 0], ["O", "B-P", "?"], [0, 4])
    assert found["scheme"] is None and found["per_label"]["?"]["support"] == 1 and found["unknown_labels"] == {"??": 1}
    json.dumps(found)


def test_nothing_to_rate():
    for marginals in (None, np.empty((0, 3))):
        found = tag_report([], [], LABELS, [0], known=[], marginals=marginals)
        assert found["accuracy"] is None and found["sentence_accuracy"] is None and found["tokens"] == 0
        assert found["known_words"]["accuracy"] is None and found["confusion"] == []
        assert found.get("log_loss") is None
    assert tag_report([], [], LABELS, [0, 0])["sentence_accuracy"] == 1.0  # an empty sentence has nothing wrong
    assert tag_report([0], [-1], LABELS, [0, 1])["confusion"] == [("N", "", 1)]


def test_what_is_refused():
    with pytest.raises(ValueError, match="one for each of 2 tokens, not 1"):
        tag_report([0], [0], LABELS, [0, 2])
    with pytest.raises(ValueError, match="from -1 to 2"):
        tag_report([3], [0], LABELS, [0, 1])
    with pytest.raises(ValueError, match="there are 1 labels that the model does not know, and names of 2"):
        tag_report([-1], [0], LABELS, [0, 1], unknown=["a", "b"])
    with pytest.raises(ValueError, match="there are marginals of 2 tokens, and labels of 1"):
        tag_report([0], [0], LABELS, [0, 1], marginals=np.ones((2, 3)))


@given(st.data(), st.lists(st.integers(0, 4), min_size=1, max_size=5))
def test_against_plain_counting(data, lengths):
    offsets = np.cumsum([0, *lengths])
    tokens = int(offsets[-1])
    gold, made, known = (
        data.draw(st.lists(values, min_size=tokens, max_size=tokens))
        for values in (st.integers(-1, 2), st.integers(0, 2), st.booleans())
    )
    marginals = np.random.default_rng(tokens).dirichlet(np.ones(3), size=tokens)
    names = [["A", "B"][t % 2] for t in range(tokens) if gold[t] < 0]
    found = tag_report(gold, made, LABELS, offsets, known, marginals, names)
    rest = iter(names)
    plain = [LABELS[code] if code >= 0 else next(rest) for code in gold]
    predicted = [LABELS[code] for code in made]
    pairs = Counter(zip(plain, predicted))
    assert {(a, b): n for a, b, n in found["confusion"]} == pairs
    assert [n for *_, n in found["confusion"]] == sorted(pairs.values(), reverse=True)
    hit = [a == b for a, b in zip(plain, predicted)]
    assert found["right"] == sum(hit) and found["unknown_labels"] == Counter(names)
    assert found["known_words"]["right"] == sum(h for h, k in zip(hit, known) if k)
    assert found["sentences_right"] == sum(all(hit[a:b]) for a, b in pairwise(offsets))
    evaluation = Evaluation(LABELS)  # which knows of no sequences, and must agree about tokens
    evaluation.add(np.array(gold, dtype=np.int64), np.array(made, dtype=np.int64), marginals)
    other = evaluation.report()
    for name in ("accuracy", "log_loss"):
        assert found[name] == pytest.approx(other[name])
    off = Counter()  # by bins of the probability of the predicted label, which need not be the most probable one
    rated = [t for t in range(tokens) if gold[t] >= 0]
    for t in rated:
        off[min(int(marginals[t, made[t]] * 15), 14)] += marginals[t, made[t]] - hit[t]
    if rated:
        assert found["calibration_error"] == pytest.approx(sum(map(abs, off.values())) / len(rated))
    for label, one in found["per_label"].items():
        if label in LABELS:
            assert one == pytest.approx(other["per_class"][label])
    json.dumps(found, allow_nan=False)
