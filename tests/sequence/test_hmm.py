"""The hidden Markov model: counts, smoothing, unknown words, prediction, samples, the model file."""

from __future__ import annotations

import gzip
import itertools
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import onlearn
from onlearn.engine import registry
from onlearn.sequence.chain import Chain
from onlearn.sequence.emissions import WordEmissions
from onlearn.sequence.hmm import HMMLearner
from onlearn.sequence.lattice import Lattice
from onlearn.sequence.spans import Constraints
from onlearn.sequence.unknown_words import WordClasses, classes_of, shape

X = [["people", "learning", "changes"], ["changes", "people"], ["learning"], []]
Y = [["NN", "VB", "NN"], ["VB", "NN"], ["VB"], []]


def sequences(most: int = 4):
    tokens = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("ST")), max_size=most)
    return st.lists(tokens, min_size=1, max_size=6).filter(lambda some: any(some))


def split(some):
    return [[w for w, _ in one] for one in some], [[t for _, t in one] for one in some]


def test_the_worked_example_through_the_lattice_of_a_model():
    """Best path VB VB NN, 7.2e-9; the best that ends in VB has 1.44e-12."""
    learner = HMMLearner().fit([["learning", "changes", "people"]], [["NN", "VB", "NN"]])
    learner.found = True
    learner.lattice = lambda: Lattice(np.log([[0.1, 0.3], [0.4, 0.1]]), np.log([0.2, 0.3]), np.log([0.1, 0.02]))
    table = np.log([[0.001, 0.003], [0.003, 0.04], [0.05, 0.0002]])
    learner.emissions = lambda sentences: table
    sentences = learner._taken([["learning", "changes", "people"]])
    assert learner.predict(sentences) == [["VB", "VB", "NN"]]
    _, score = learner.lattice().best(table, [0, 3])
    assert np.exp(score[0]) == pytest.approx(7.2e-9, rel=1e-12)
    _, score = learner.lattice().best(table, [0, 3], fixed=[-1, -1, 1])
    assert np.exp(score[0]) == pytest.approx(1.44e-12, rel=1e-12)


def test_counts_are_those_of_the_labels():
    learner = HMMLearner().fit(X, Y)
    assert learner.labels == ["NN", "VB"]
    assert learner.chain.initial.tolist() == [1, 2]
    assert learner.chain.transitions.tolist() == [[0, 1], [2, 0]]
    assert learner.chain.final.tolist() == [2, 1]
    assert dict(zip(learner.features.words, learner.features.counts.tolist())) == {
        "people": [2, 0],
        "learning": [0, 2],
        "changes": [1, 1],
    }


def test_witten_bell_smoothing_of_transitions_by_hand():
    lattice = Chain(np.array([1.0, 2.0]), np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([2.0, 1.0])).smoothed(
        "witten-bell", 0.0
    )
    # All events: NN 3, VB 3, end 3; three kinds of nine: (3 + 3 / 3) / (9 + 3) = 1/3 each.
    # After NN: VB 1 and end 2, two kinds: (0 + 2/3) / 5, (1 + 2/3) / 5, (2 + 2/3) / 5.
    assert np.exp(lattice.transitions[0]) == pytest.approx([2 / 15, 5 / 15])
    assert np.exp(lattice.final[0]) == pytest.approx(8 / 15)
    # First labels: NN 1, VB 2, two kinds, each 1/2 whatever comes before: (1 + 1) / 5, (2 + 1) / 5.
    assert np.exp(lattice.initial) == pytest.approx([0.4, 0.6])


def test_add_k_smoothing_by_hand():
    learner = HMMLearner(smoothing="add-k", k=0.5).fit(X, Y)
    lattice = learner.lattice()
    assert np.exp(lattice.transitions[0]) == pytest.approx([0.5 / 4.5, 1.5 / 4.5])
    assert np.exp(lattice.final[0]) == pytest.approx(2.5 / 4.5)
    assert np.exp(lattice.initial) == pytest.approx([1.5 / 4, 2.5 / 4])
    # P(people | NN) = (2 + k) / (3 + k (3 words + 1))
    assert np.exp(learner.emissions([["people"]])) == pytest.approx(np.array([[2.5 / 5, 0.5 / 5]]))


def test_witten_bell_smoothing_of_words_by_hand():
    words = WordEmissions(2)
    words.numbers, words.room = {"people": 0, "so": 1}, np.array([[12.0, 0.0], [1.0, 1.0]])
    table, classes = words.made("witten-bell", 0.0, 2)
    # 'so' is rare, 'people' is not. P(t): (13 + 1) / 16, (1 + 1) / 16. Rare words: (1 + 2 P(t)) / 4.
    usual, rare = np.array([14 / 16, 2 / 16]), np.array([2.75 / 4, 1.25 / 4])
    assert classes.labels == pytest.approx(rare[np.newaxis])  # one word makes no class of its own
    labels = np.array([(np.array([12, 0]) + rare) / 13, (np.array([1, 1]) + 2 * rare) / 4])
    share = np.array([[12 / 16], [2 / 16]])  # c(w) / (N + V)
    assert np.exp(table[:2]) == pytest.approx(labels * share / usual)
    assert np.exp(table[2]) == pytest.approx(rare * (2 / 16) / usual)


@settings(max_examples=60, deadline=None)
@given(sequences(), st.sampled_from(["witten-bell", "add-k"]))
def test_prediction_and_likelihood_are_those_of_all_paths(some, smoothing):
    texts, labels = split(some)
    learner = HMMLearner(smoothing=smoothing, k=0.3).fit(texts, labels)
    new = [["a", "z", "b"], ["c"], []]
    lattice = learner.lattice()
    found, marginals, likelihood = learner.predict(new), learner.predict_marginals(new), learner.log_likelihood(new)
    for k, words in enumerate(new):
        table = learner.emissions([words])
        paths = list(itertools.product(range(len(learner.labels)), repeat=len(words)))
        scores = np.array([lattice.path_scores(table, [0, len(words)], np.array(path, int))[0] for path in paths])
        best = tuple(learner.labels.index(label) for label in found[k])
        assert scores[paths.index(best)] == pytest.approx(scores.max())
        assert likelihood[k] == pytest.approx(np.logaddexp.reduce(scores))
        odds = np.exp(scores - likelihood[k])
        for t, by_label in enumerate(marginals[k]):
            for j, label in enumerate(learner.labels):
                assert by_label[label] == pytest.approx(
                    sum(p for p, path in zip(odds, paths) if path[t] == j), abs=1e-9
                )


@settings(max_examples=60, deadline=None)
@given(sequences(), st.data())
def test_counts_are_the_same_however_sequences_are_cut_into_calls(some, data):
    texts, labels = split(some)
    cut = data.draw(st.integers(0, len(texts)))
    whole, parts = HMMLearner(), HMMLearner()
    whole.partial_fit(texts, labels, classes=["S", "T"])
    parts.partial_fit(texts[:cut], labels[:cut], classes=["S", "T"])
    parts.partial_fit(texts[cut:], labels[cut:])
    (facts, arrays), (facts_too, arrays_too) = whole._pack_learned(), parts._pack_learned()
    assert facts == facts_too
    for name, array in arrays.items():
        assert np.array_equal(array, arrays_too[name])
    assert np.array_equal(whole.emissions([["a", "z"]]), parts.emissions([["a", "z"]]))


def test_labels_that_come_later_are_taken_in():
    learner = HMMLearner().partial_fit(X, Y).partial_fit([["so", "it"]], [["ADV", "PRON"]])
    assert learner.labels == ["NN", "VB", "ADV", "PRON"]
    assert learner.predict([["so", "it"]]) == [["ADV", "PRON"]]


def test_probabilities_of_labels_and_words_add_up_to_one():
    learner = HMMLearner(smoothing="add-k").fit(X, Y)
    for smoothing in ("witten-bell", "add-k"):
        lattice = learner.set_params(smoothing=smoothing).lattice()
        assert np.exp(lattice.transitions).sum(axis=1) + np.exp(lattice.final) == pytest.approx([1, 1])
        assert np.exp(lattice.initial).sum() == pytest.approx(1)
    assert np.exp(learner.set_params(smoothing="add-k", k=0.0).emissions(X)).max() <= 1


# ----------------------------------------------------------------------------------------------------
# Unknown words.


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("dog", "x"),
        ("Dog", "Xx"),
        ("I", "X"),
        ("USA", "XX"),
        ("B2B", "XdX"),
        ("e-mail", "x-x"),
        ("", ""),
        ("東京", "a"),
    ],
)
def test_shapes(word, kind):
    assert shape(word) == kind


def test_an_unknown_word_has_the_labels_of_words_with_its_suffix():
    words = ["walking", "talking", "singing", "houses", "horses", "London", "Berlin", "1999", "2001"]
    labels = ["V", "V", "V", "N", "N", "P", "P", "D", "D"]
    learner = HMMLearner().fit([[word] for word in words], [[label] for label in labels])
    found = learner.predict([["bringing"], ["noses"], ["Dublin"], ["1812"], [""], ["a b -c"]])
    assert found[:4] == [["V"], ["N"], ["P"], ["D"]]


def test_classes_are_nested_and_estimated_from_the_widest():
    classes = WordClasses(["bing", "sing"], np.array([[2.0, 0.0], [1.0, 1.0]]), 2, np.array([0.5, 0.5]))
    assert classes_of("zing", 2) == [("x", ""), ("x", "g"), ("x", "ng")]
    root = np.array([(3 + 2 * 0.5) / 6, (1 + 2 * 0.5) / 6])
    by_shape = (np.array([3, 1]) + 2 * root) / 6
    assert classes.labels[classes.of("Z9")] == pytest.approx(root)
    assert classes.labels[classes.of("zoo")] == pytest.approx(by_shape)
    assert classes.labels.sum(axis=1) == pytest.approx(np.ones(len(classes.labels)))


def test_a_sequence_of_ten_thousand_tokens_does_not_underflow():
    learner = HMMLearner().fit(X, Y)
    long = [["changes", "people", "never"][n % 3] for n in range(10_000)]
    assert len(learner.predict([long])[0]) == 10_000
    assert np.isfinite(learner.log_likelihood([long])).all() and learner.log_likelihood([long])[0] < -5000
    assert all(sum(one.values()) == pytest.approx(1) for one in learner.predict_marginals([long])[0][::500])


# ----------------------------------------------------------------------------------------------------
# What it tells, what it refuses, where it is stored.


def test_constraints_hold():
    learner = HMMLearner().fit([["a", "b", "c"]] * 2, [["O", "I-P", "I-P"], ["B-P", "I-P", "O"]])
    allowed = Constraints.of(learner.labels, "BIO")
    found = [learner.labels[n] for n in learner.predict_codes(learner._taken([["a", "b", "c"]]), allowed)]
    assert found == ["B-P", "I-P", "O"] or "I-P" not in found


def test_samples_are_of_the_model():
    learner = HMMLearner(smoothing="add-k", k=0.0).fit(X, Y)
    texts, labels = learner.sample(2000, random_state=1)
    assert (texts, labels) == learner.sample(2000, random_state=1)
    assert [len(one) for one in texts] == [len(one) for one in labels]
    assert np.mean([one[0] == "VB" for one in labels]) == pytest.approx(2 / 3, abs=0.05)
    people = [word == "people" for one, two in zip(texts, labels) for word, label in zip(one, two) if label == "NN"]
    assert np.mean(people) == pytest.approx(2 / 3, abs=0.05)
    assert [len(one) for one in learner.sample(3, length=7, random_state=0)[0]] == [7, 7, 7]
    assert learner.sample(0) == ([], [])


def test_a_model_that_never_ends_needs_a_length(monkeypatch):
    monkeypatch.setattr("onlearn.sequence.hmm.LONGEST", 50)
    learner = HMMLearner(smoothing="add-k", k=0.0).partial_fit([["a", "b"]], [["S", "T"]])
    learner.chain = Chain(np.array([1.0, 0.0]), np.array([[1.0, 0.0], [1.0, 0.0]]), np.zeros(2))
    with pytest.raises(ValueError, match="give a length"):
        learner.sample(1, random_state=0)


def test_contributions_add_up_to_the_difference_of_two_paths():
    learner = HMMLearner().fit(X, Y)
    sentences = learner._taken([["people", "zzz", "changes"]])
    path = learner.predict_codes(sentences)
    label, rival, parts = learner.contributions(sentences, 1)
    other = path.copy()
    other[1] = learner.labels.index(rival)
    table = learner.emissions(sentences)
    scores = [learner.lattice().path_scores(table, [0, 3], one)[0] for one in (path, other)]
    assert label == learner.labels[path[1]] and rival != label
    assert sum(one.amount for one in parts) == pytest.approx(scores[0] - scores[1])
    assert any(one.name.startswith("unknown word zzz") for one in parts)
    with pytest.raises(ValueError, match="there is no token 3"):
        learner.contributions(sentences, 3)


def test_the_strongest_are_the_most_probable_words_and_transitions():
    words, transitions = HMMLearner().fit(X, Y).strongest(1)
    assert [(one.label, one.attribute) for one in words] == [("NN", "people"), ("VB", "learning")]
    assert (transitions[0].attribute, transitions[0].label) == ("VB", "NN")
    with pytest.raises(ValueError, match="no label 'XX'"):
        HMMLearner().fit(X, Y).strongest(1, "XX")


@pytest.mark.parametrize(
    ("params", "x", "y", "says"),
    [
        ({}, [[{"word": "a"}]], [["S"]], "takes words, not attributes"),
        ({}, [], None, "X is empty"),
        ({}, [[]], [[]], "X is empty"),
        ({}, [["a"]], [["S", "T"]], "2 labels"),
        ({"smoothing": "none"}, [["a"]], [["S"]], "smoothing"),
        ({"k": -1.0}, [["a"]], [["S"]], "k must"),
        ({"n_states": 0}, [["a"]], None, "n_states"),
        ({"emissions": "gaussian"}, [["a"]], None, "not an array of numbers"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(params, x, y, says):
    with pytest.raises(ValueError, match=says):
        HMMLearner(**params).fit(x, y)


def test_partial_fit_needs_all_labels():
    learner = HMMLearner().partial_fit(X, Y)
    with pytest.raises(ValueError, match="partial_fit needs labels"):
        learner.partial_fit(X)
    with pytest.raises(ValueError, match="needs a label for every token"):
        learner.partial_fit([["a", "b"]], [["NEW", None]])
    assert learner.labels == ["NN", "VB"]


@pytest.mark.parametrize("params", [{}, {"n_states": 3, "random_state": 0, "iterations": 5}])
def test_the_model_file_holds_all(tmp_path, params):
    made = onlearn.HMM(**params).fit(X, None if params else Y)
    made.save(tmp_path / "m.onl")
    again = onlearn.load(tmp_path / "m.onl")
    new = [["people", "Zed"], []]
    assert type(again) is onlearn.HMM and again.predict(new) == made.predict(new)
    assert np.array_equal(again.log_likelihood(new), made.log_likelihood(new))
    assert again.log_likelihoods_ == made.log_likelihoods_ and again.get_params() == made.get_params()
    if not params:
        assert again.partial_fit([["so"]], [["ADV"]]).predict([["so"]]) == [["ADV"]]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("counts", lambda a: -a),
        ("counts", lambda a: a[:-1]),
        ("ends", lambda a: a[::-1].copy()),
        ("ends", lambda a: a + 1),
        ("letters", lambda a: a + np.uint8(140)),
        ("letters", lambda a: a[:-1]),
        ("transitions", lambda a: a[:1]),
        ("initial", lambda a: a - 5),
        ("final", lambda a: a.astype(np.float32)),
    ],
)
def test_a_damaged_file_is_refused(name, change):
    facts, arrays = HMMLearner().fit(X, Y)._pack()
    arrays[name] = change(arrays[name])
    with pytest.raises(ValueError):
        HMMLearner()._unpack(facts, arrays)


def test_it_is_an_estimator_as_scikit_learn_has_them():
    texts, labels = X[:3] * 4, Y[:3] * 4
    made = onlearn.HMM(max_suffix=2).fit(texts, labels)
    assert clone(made).get_params() == made.get_params() and not hasattr(clone(made), "_learner")
    assert pickle.loads(pickle.dumps(made)).predict(texts) == made.predict(texts)
    assert cross_val_score(onlearn.HMM(), texts, labels, cv=3).shape == (3,)
    assert made.classes_.tolist() == ["NN", "VB"] and made.score(texts, labels) > 0.8
    with pytest.raises(AttributeError, match="before fit"):
        onlearn.HMM().classes_  # noqa: B018
    with pytest.raises(ValueError, match="not fitted"):
        onlearn.HMM().predict(texts)


def test_its_signature_is_that_of_the_parameters():
    assert onlearn.HMM().get_params() == HMMLearner().get_params()
    assert list(onlearn.HMM._composition.parameters) == list(registry.composition_of("HMM").parameters)


@pytest.mark.skipif("ONLEARN_DATA" not in os.environ, reason="needs real data")
def test_parts_of_speech_of_real_sentences():
    def read(part):
        path = Path(os.environ["ONLEARN_DATA"]) / "ud_english_ewt" / f"{part}.conllu.gz"
        if not path.exists():
            pytest.skip("needs UD English EWT")
        texts, labels = [[]], [[]]
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                cells = line.rstrip("\n").split("\t")
                if cells == [""]:
                    texts.append([])
                    labels.append([])
                elif cells[0].isdigit():
                    texts[-1].append(cells[1])
                    labels[-1].append(cells[3])
        return texts, labels

    learner = HMMLearner().fit(*read("train"))
    assert learner.score(*read("test")) > 0.915


def test_score_without_labels_is_the_log_likelihood():
    X, y = [["a", "b"], ["b"]], [["A", "B"], ["B"]]
    model = onlearn.HMM().fit(X, y)
    assert model.score(X) == pytest.approx(model.log_likelihood(X).sum())
    assert model.score(X, y) == 1.0
