"""What all sequence learners share: calls that fail, paths beside the best one, constraints, explanations."""

from __future__ import annotations

import _thread
import copy
import itertools

import numpy as np
import pytest

import onlearn
import sequence_examples as examples

GIVEN, WORDS = [[{"a": 1}, {"b": 1}]], [["w", "v"]]
LEARNERS = [
    onlearn.StructuredPerceptron(random_state=0), onlearn.CRF(random_state=0),
    onlearn.CRF(solver="adagrad", random_state=0),
]  # fmt: skip


@pytest.mark.parametrize("model", LEARNERS, ids=repr)
def test_partial_fit_of_another_form_changes_nothing(model, tmp_path):
    model = copy.deepcopy(model).partial_fit(GIVEN, [["X", "Y"]])
    with pytest.raises(ValueError, match="was given words"):
        model.partial_fit(WORDS, [["X", "Z"]])
    assert model.classes_.tolist() == ["X", "Y"]
    assert model.predict(GIVEN) == [["X", "Y"]]
    model.save(tmp_path / "m.onl")
    assert onlearn.load(tmp_path / "m.onl").predict(GIVEN) == [["X", "Y"]]


def test_partial_fit_of_rows_of_another_width_changes_nothing():
    rows = [np.array([[0.0], [0.1], [5.0]])]
    model = onlearn.HMM(emissions="gaussian").partial_fit(rows, [["a", "a", "b"]])
    with pytest.raises(ValueError, match="2 numbers"):
        model.partial_fit([np.zeros((2, 2))], [["a", "c"]])
    assert model.classes_.tolist() == ["a", "b"] and model.predict(rows) == [["a", "a", "b"]]


def test_a_first_partial_fit_that_fails_changes_nothing():
    model = onlearn.CRF(template="U00:%x[0,1]\nB")
    with pytest.raises(ValueError, match="no column 1"):
        model.partial_fit(WORDS, [["X", "Y"]])
    model.set_params(template=None).partial_fit(WORDS, [["P", "Q"]])
    assert model.classes_.tolist() == ["P", "Q"]


@pytest.mark.parametrize("model", LEARNERS, ids=repr)
def test_partial_fit_is_finished_before_it_is_interrupted(model):
    X, y = examples.draw(3, sequences=10)
    model = copy.deepcopy(model).partial_fit(X, y)
    expected = copy.deepcopy(model).partial_fit(X, y)
    with pytest.raises(KeyboardInterrupt):
        model.learner_.partial_fit(X, y, watch=lambda _: _thread.interrupt_main())
    assert np.array_equal(model.learner_.weights(), expected.learner_.weights())


@pytest.mark.parametrize("model", LEARNERS, ids=repr)
def test_tokens_without_attributes(model):
    model = copy.deepcopy(model).fit([[{}, {}], [{}, {}]], [["X", "Y"], ["X", "Y"]])
    assert model.predict([[{}, {}]]) == [["X", "Y"]]
    rare = copy.deepcopy(model).set_params(min_count=100).fit([["a", "b"]] * 3, [["X", "Y"]] * 3)
    assert rare.predict([["a", "b"]]) == [["X", "Y"]]


@pytest.mark.parametrize("seed", range(4))
def test_k_best_fixed_labels_and_probabilities_of_paths(seed):
    X, y = examples.draw(seed, sequences=12)
    crf = onlearn.CRF(l2=0.5).fit(X, y)
    named, labels = examples.weights_by_name(crf.learner_), crf.learner_.labels
    for tokens, path in zip(X[:4], y[:4]):
        paths = [list(one) for one in itertools.product(labels, repeat=len(tokens))]
        scores = np.array([examples.dot(named, examples.path_features(tokens, one)) for one in paths])
        logs = scores - np.logaddexp.reduce(scores)
        [found] = crf.predict_k_best([tokens], 3)
        assert [score for _, score in found] == pytest.approx(np.sort(logs)[::-1][:3])
        assert found[0][0] == crf.predict([tokens])[0]
        assert crf.log_probability([tokens], [path])[0] == pytest.approx(logs[paths.index(path)])
        fixed = [labels[-1], *[None] * (len(tokens) - 1)]
        best = max((one for one in paths if one[0] == labels[-1]), key=lambda one: scores[paths.index(one)])
        assert crf.predict_fixed([tokens], [fixed]) == [best]
    with pytest.raises(ValueError, match="label 'none of them' is not known"):
        crf.predict_fixed(X[:1], [["none of them"] * len(X[0])])
    with pytest.raises(AttributeError, match="no probabilities"):
        onlearn.StructuredPerceptron().fit(X, y).log_probability(X, y)


SPANS = [[("x", "B-P"), ("x", "I-P"), ("x", "I-P"), ("y", "E-P"), ("z", "O")], [("x", "S-P"), ("z", "O")]] * 5


@pytest.mark.parametrize("greedy", [False, True])
def test_spans_are_closed_and_explained(greedy, tmp_path):
    lines = "\n".join("\n".join(f"{word} {label}" for word, label in one) + "\n" for one in SPANS)
    (tmp_path / "spans.conll").write_text(lines + "\n")
    tagger = onlearn.train(tmp_path / "spans.conll", None, learner=f"StructuredPerceptron(greedy={greedy})")
    assert tagger.scheme == "BIOES"
    for text in ("x x x", "x x", "x", "y z x"):
        [found] = tagger.predict([text])
        assert found[-1] in ("O", "S-P", "E-P")
        assert [tagger.explain(text, t)[0] for t in range(len(found))] == found


def test_probabilities_are_those_of_valid_paths(tmp_path):
    lines = "\n".join("\n".join(f"{word} {label}" for word, label in one) + "\n" for one in SPANS)
    (tmp_path / "spans.conll").write_text(lines + "\n")
    tagger = onlearn.train(tmp_path / "spans.conll", None, learner="crf")
    valid = tagger.predict_marginals(["x x", "z"])
    assert valid[0][0]["I-P"] == valid[0][0]["E-P"] == valid[0][1]["B-P"] == 0.0
    assert sum(valid[0][0].values()) == pytest.approx(1.0)
    tagger.constrained = False
    assert tagger.predict_marginals(["x x"])[0][0]["I-P"] > 0.0


def test_a_count_of_what_cannot_be_drawn():
    model = onlearn.HMM().fit([["a", "b"]], [["A", "B"]])
    for wrong in ({"n": -1}, {"length": -3}, {"length": 2.5}):
        with pytest.raises(ValueError, match="whole number"):
            model.sample(**wrong)
