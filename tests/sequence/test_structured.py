"""The structured perceptron against enumeration of all paths, and its manners."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlearn
import sequence_examples as examples
from onlearn.engine import rules
from onlearn.model_file import ModelFileError, load_learner
from onlearn.sequence.structured import StructuredPerceptronLearner


def preference(path, gold):
    """By what the first of equal rivals is chosen: from the end, a gold beginning, or else the first label."""
    return ["" if path[: t + 1] == gold[: t + 1] else path[t] for t in reversed(range(len(path)))]


def plain(X, y, rule, passes, cost=0.0, averaged=True):
    """The definition: the best path that is not the gold one, the difference of features, the rule's step."""
    rule = rules.RULES.get(rule)
    params, step = rules.values(rule), type(rule).step
    labels = sorted({label for path in y for label in path})
    seen = {(name, label) for tokens, path in zip(X, y) for t, label in zip(tokens, path) for name in t}
    w, total, count, mistakes = {}, {}, 0, 0
    for _ in range(passes):
        for tokens, gold in zip(X, y):
            if not tokens:
                continue
            best, rival, errors = -np.inf, None, 0
            others = [path for path in examples.all_paths(tokens, labels) if path != gold]
            for path in sorted(others, key=lambda path: preference(path, gold)):
                wrong = sum(a != b for a, b in zip(path, gold))
                value = examples.dot(w, examples.path_features(tokens, path)) + cost * wrong
                if value > best + 1e-9:
                    best, rival, errors = value, path, wrong
            margin = examples.dot(w, examples.path_features(tokens, gold)) - best + cost * errors
            d = examples.path_features(tokens, gold)
            for key, value in examples.path_features(tokens, rival).items():
                d[key] = d.get(key, 0.0) - value
            of_chain = ("->", "begin", "end")
            d = {key: value for key, value in d.items() if value and (key[0] in of_chain or key in seen)}
            s = margin - cost * errors + 1.0 if cost else margin
            t = step(s, 1.0, sum(value * value for value in d.values()), params)
            mistakes += margin <= 0
            for key, value in d.items():
                w[key] = w.get(key, 0.0) + t * value
            for key, value in w.items():
                total[key] = total.get(key, 0.0) + value
            count += 1
    return ({key: value / count for key, value in total.items()} if averaged else w), mistakes


@pytest.mark.parametrize("rule", ["perceptron", "pa1(0.3)", "pa2", "margin(0.5)", "hinge", "logistic", "aggressive"])
@pytest.mark.parametrize("stabilizer", ["averaged", "last"])
@pytest.mark.parametrize("cost", [0.0, 0.7])
def test_it_is_the_definition(rule, stabilizer, cost):
    X, y = examples.draw(5, sequences=12, values=True)
    learner = StructuredPerceptronLearner(
        rule=rule, stabilizer=stabilizer, cost=cost, epochs=3, shuffle=False, random_state=0
    ).fit(X, y)
    expected, mistakes = plain(X, y, rule, 3, cost, stabilizer == "averaged")
    found = examples.weights_by_name(learner)
    for key, value in expected.items():
        assert found.get(key, 0.0) == pytest.approx(value, abs=1e-9), key
    assert learner.training.n_mistakes == mistakes


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_predictions_are_the_best_paths(seed):
    X, y = examples.draw(seed, values=True)
    learner = StructuredPerceptronLearner(rule="pa1", epochs=2, random_state=0).fit(X, y)
    w = examples.weights_by_name(learner)
    for tokens, found in zip(X, learner.predict(X)):
        scores = [
            examples.dot(w, examples.path_features(tokens, path)) for path in examples.all_paths(tokens, learner.labels)
        ]
        assert examples.dot(w, examples.path_features(tokens, found)) == pytest.approx(max(scores), abs=1e-9)


def state_of(learner):
    training = learner.training
    return {
        (part, name): array[: learner.index.used] if array.size == training.g.w.size else array
        for part, state in (("g", training.g), ("st", training.st))
        for name, array in state._asdict().items()
    }


@pytest.mark.parametrize("cls", ["StructuredPerceptron", "CRF"])
@pytest.mark.parametrize("cut", [1, 4, 9])
def test_learning_in_parts_saved_and_loaded_is_learning_at_once(cls, cut, tmp_path):
    X, y = examples.draw(3, sequences=10, attributes=30)
    classes = ["L0", "L1", "L2"]
    once = getattr(onlearn, cls)(random_state=0).partial_fit(X, y, classes=classes)
    parts = getattr(onlearn, cls)(random_state=0).partial_fit(X[:cut], y[:cut], classes=classes)
    parts.save(tmp_path / "m.onl")
    parts = onlearn.load(tmp_path / "m.onl").partial_fit(X[cut:], y[cut:])
    a, b = state_of(once.learner_), state_of(parts.learner_)
    for key in a:
        np.testing.assert_array_equal(a[key], b[key], err_msg=str(key))
    assert examples.weights_by_name(once.learner_) == examples.weights_by_name(parts.learner_)
    assert once.learner_.described() == parts.learner_.described()


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"greedy": True},
        {"stabilizer": "survivor"},
        {"geometry": "adagrad"},
        {"geometry": "arow", "rule": "pa2"},
        {"geometry": "additive(l1=0.01)"},
    ],
)
def test_it_learns_what_can_be_learned(params):
    X = [["the", "old", "man"], ["a", "man", "sees", "the", "dog"], ["old", "dogs", "bark"], ["the", "dog", "barks"]]
    y = [["D", "A", "N"], ["D", "N", "V", "D", "N"], ["A", "N", "V"], ["D", "N", "V"]]
    learner = onlearn.StructuredPerceptron(epochs=20, random_state=0, **params).fit(X, y)
    assert learner.score(X, y) == 1.0
    assert learner.learner_.passes == 20


def test_a_saved_learner_predicts_and_goes_on_as_before(tmp_path):
    X, y = examples.draw(1, sequences=30, attributes=20)
    learner = StructuredPerceptronLearner(epochs=4, random_state=1).fit(X, y)
    learner.save(tmp_path / "m.onl")
    other = load_learner(tmp_path / "m.onl")
    assert other.predict(X) == learner.predict(X)
    more = examples.draw(2, sequences=30, attributes=25, labels=5)
    learner.partial_fit(*more)
    other.partial_fit(*more)
    assert examples.weights_by_name(other) == examples.weights_by_name(learner)
    assert learner.labels == ["L0", "L1", "L2", "L3", "L4"]


def test_averaged_weights_after_growing_are_those_of_a_learner_that_knew_all_from_the_start():
    X, y = examples.draw(7, sequences=20, attributes=40, values=True)
    learner = StructuredPerceptronLearner(random_state=0)
    for tokens, path in zip(X, y):
        learner.partial_fit([tokens], [path], classes=["L0", "L1", "L2"])
    once = StructuredPerceptronLearner(random_state=0).partial_fit(X, y, classes=["L0", "L1", "L2"])
    assert examples.weights_by_name(learner) == examples.weights_by_name(once)


@pytest.mark.parametrize("cls", ["StructuredPerceptron", "CRF"])
def test_edges(cls):
    make = getattr(onlearn, cls)
    learner = make(random_state=0).fit([[], ["a"], ["a", "b"]], [[], ["X"], ["X", "Y"]])
    assert learner.predict([[], ["a"], ["never", "seen"]])[:2] == [[], ["X"]]
    assert learner.predict([]) == []
    one = make(random_state=0).fit([["a", "b"]], [["X", "X"]])  # one label
    assert one.predict([["b", "c"]]) == [["X", "X"]]
    long = make(random_state=0).fit([["a", "b"] * 5000], [["X", "Y"] * 5000])
    assert long.predict([["a", "b"] * 5000]) == [["X", "Y"] * 5000]
    with pytest.raises(ValueError, match="X is empty"):
        make().fit([], [])
    with pytest.raises(ValueError, match=r"y\[0\] has 2 labels"):
        make().fit([["a"]], [["X", "Y"]])


def test_a_call_that_fails_changes_nothing():
    X, y = examples.draw(1)
    learner = onlearn.StructuredPerceptron(random_state=0).fit(X, y)
    before = examples.weights_by_name(learner.learner_)
    with pytest.raises(ValueError, match=r"X\[1\]\[0\] has the attribute"):
        learner.partial_fit([*X[:1], [{"a": float("nan")}]], [y[0], ["L9"]])
    with pytest.raises(ValueError):
        learner.fit(X, y[:-1])
    assert learner.classes_.tolist() == ["L0", "L1", "L2"]
    assert examples.weights_by_name(learner.learner_) == before


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"rule": "epsilon"}, "rule must be one that learns classes"),
        ({"stabilizer": "voted"}, "stabilizer must be one of"),
        ({"geometry": "winnow"}, "geometry must have weights of either sign"),
        ({"cost": -1}, "cost"),
        ({"epochs": 0}, "epochs"),
        ({"template": "U00:%x[0,0]"}, "template= has no use"),
    ],
)
def test_parameters_that_cannot_be(params, message):
    X, y = examples.draw(1)
    with pytest.raises(ValueError, match=message):
        StructuredPerceptronLearner(**params).fit(X, y)


def test_minimum_counts_and_templates():
    X = [["a", "b", "a"], ["a", "c"]]
    y = [["X", "Y", "X"], ["X", "Z"]]
    learner = StructuredPerceptronLearner(template="U00:%x[0,0]\nB\n", min_count=2, random_state=0).fit(X, y)
    names = learner.features.names(np.arange(learner.features.size))
    assert names == ["U00:a"]
    free = StructuredPerceptronLearner(template="U00:%x[0,0]\n", random_state=0).fit(X, y)
    assert not free._decoder()[1].transitions.any()
    assert free.predict([["c", "a"]]) == [["Z", "X"]]


def test_early_stopping_keeps_the_best_weights():
    X, y = examples.draw(11, sequences=60, attributes=12, longest=6)
    learner = StructuredPerceptronLearner(epochs=30, early_stopping=True, patience=2, random_state=3).fit(X, y)
    assert learner.passes < 30
    with pytest.raises(ValueError, match="early_stopping would hold out 0 of 2"):
        StructuredPerceptronLearner(early_stopping=True).fit(X[:2], y[:2])


def test_a_rule_of_the_users_own():
    @onlearn.rule
    def half(score, y):
        return 0.5 * y if score * y <= 0.0 else 0.0

    X, y = examples.draw(4, values=True)
    mine = StructuredPerceptronLearner(rule=half(), epochs=2, shuffle=False, random_state=0).fit(X, y)
    theirs = StructuredPerceptronLearner(epochs=2, shuffle=False, random_state=0).fit(X, y)
    for key, value in examples.weights_by_name(theirs).items():
        assert examples.weights_by_name(mine).get(key, 0.0) == pytest.approx(value / 2)


def test_what_was_learned_and_why():
    X = [["the", "dog"], ["a", "cat"], ["the", "cat"]]
    y = [["D", "N"]] * 3
    learner = StructuredPerceptronLearner(random_state=0).fit(X, y)
    strong, moves = learner.strongest(top=3)
    assert {one.label for one in strong} == {"D", "N"}
    assert all(abs(a.weight) >= abs(b.weight) for a, b in itertools.pairwise(moves))
    from onlearn.sequence.inputs import as_sentences

    sentences = as_sentences([["the", "cat"]])
    label, rival, parts = learner.contributions(sentences, 1)
    assert (label, rival) == ("N", "D")
    rows = learner.features.transform(sentences)
    emissions, lattice = learner.emissions(rows), learner._decoder()[1]
    paths = [np.array([learner.labels.index("D"), learner.labels.index(last)]) for last in ("N", "D")]
    scores = [lattice.path_scores(emissions, rows.offsets, path)[0] for path in paths]
    assert sum(part.amount for part in parts) == pytest.approx(scores[0] - scores[1])
    with pytest.raises(ValueError, match="there is no label 'Q'"):
        learner.strongest(label="Q")


def test_damaged_files_are_refused(tmp_path):
    from onlearn import model_file

    X, y = examples.draw(1)
    learner = StructuredPerceptronLearner(random_state=0).fit(X, y)
    header, arrays = model_file.describe(learner)
    for name, change in {
        "index.transitions": lambda a: a + 1000,
        "index.owner": lambda a: np.where(a >= 0, a + 1000, a).astype(np.int32),
        "index.label": lambda a: np.where(a >= 0, 99, a).astype(np.int32),
        "index.block": lambda a: a + 10_000,
        "index.width": lambda a: a + 99,
        "training.g.w": lambda a: a[:-1],
        "words": lambda a: None,
    }.items():
        damaged = {key: array for key, array in arrays.items() if key != name}
        if (made := change(arrays[name])) is not None:
            damaged[name] = made
        path = tmp_path / "damaged.onl"
        model_file.write_arrays(str(path), {k: np.ascontiguousarray(v) for k, v in damaged.items()},
                                {"onlearn": json.dumps({"format": 1, **header})})  # fmt: skip
        with pytest.raises(ModelFileError):
            load_learner(path)
