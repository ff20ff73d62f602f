"""``renewed``: the same learner before it learned anything; ``become``: the state of another, in place."""

import threading

import numpy as np
import pytest

import onlearn
from onlearn.engine.learner import Learner
from onlearn.models.model import Model


def rows(seed, classes=3, count=60, width=4):
    rng = np.random.default_rng(seed)
    return np.abs(rng.normal(size=(count, width))), rng.integers(0, classes, size=count)


def same_state(one, other):
    """Whether two learners, estimators or models would write the same file."""
    (facts, arrays), (others, further) = one._pack(), other._pack()
    assert repr(facts) == repr(others)
    assert arrays.keys() == further.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, further[name], err_msg=name)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    ("geometry", "stabilizer"),
    [
        ("additive", "averaged"),
        ("additive", "voted"),
        ("additive(l2=0.01)", "last"),
        ("adagrad", "averaged"),
        ("winnow", "survivor"),
        ("arow", "averaged"),
        ("ftrl", "last"),
        ("scinol", "averaged"),
        ("fading_adagrad", "last"),
    ],
)
def test_a_renewed_learner_learns_as_a_new_one(geometry, stabilizer, classes):
    def make():
        return Learner("OnlineClassifier", geometry=geometry, stabilizer=stabilizer, class_weight="balanced",
                       random_state=0)  # fmt: skip

    learner = make().partial_fit(*rows(0, classes), classes=range(classes))
    before = learner._pack()[1]
    renewed = learner.renewed()
    assert renewed.n_seen_ == 0 and list(renewed.classes_) == list(range(classes))
    renewed.partial_fit(*rows(1, classes))
    same_state(renewed, make().partial_fit(*rows(1, classes), classes=range(classes)))
    for name, array in learner._pack()[1].items():
        np.testing.assert_array_equal(array, before[name])  # it shares nothing with the one it was made of


@pytest.mark.parametrize(
    "make",
    [
        lambda: onlearn.LogisticRegression(random_state=0),
        lambda: onlearn.OnlineClassifier(init="random", random_state=0),
        lambda: onlearn.KernelClassifier("gaussian(1)", random_state=0),
        lambda: onlearn.KernelClassifier("gaussian(1)", budget=5, random_state=0),
        lambda: onlearn.KernelClassifier("polynomial(2)", representation="primal", random_state=0),
    ],
)
def test_renewed_classifiers(make):
    model = make().partial_fit(*rows(0), classes=[0, 1, 2])
    renewed = model.renewed()
    assert renewed.predict(rows(1)[0]).shape == (60,)  # it predicts before it has learned anything
    renewed.partial_fit(*rows(1))
    same_state(renewed, make().partial_fit(*rows(1), classes=[0, 1, 2]))
    assert model.become(renewed) is model
    same_state(model, renewed)
    assert model.n_seen_ == 60


def test_a_renewed_regressor():
    (X, _), (Z, _) = rows(0), rows(1)
    model = onlearn.OnlineRegressor(random_state=0).partial_fit(X, X[:, 0])
    renewed = model.renewed()
    np.testing.assert_array_equal(renewed.predict(Z), 0.0)
    same_state(renewed.partial_fit(Z, Z[:, 1]), onlearn.OnlineRegressor(random_state=0).partial_fit(Z, Z[:, 1]))


def test_what_has_grown_stays_known():
    model = onlearn.OnlineClassifier(grow=True, random_state=0).partial_fit(*rows(0, 2, width=2))
    model.partial_fit(*rows(1, 3, width=5))
    renewed = model.renewed()
    assert renewed.n_features_in_ == 5 and list(renewed.classes_) == [0, 1, 2]
    renewed.partial_fit(*rows(2, 4, width=7))
    assert model.n_features_in_ == 5 and list(renewed.classes_) == [0, 1, 2, 3]


def test_what_has_learned_nothing():
    model = onlearn.LogisticRegression(grow=True).partial_fit(*rows(0))
    empty = onlearn.LogisticRegression(grow=True).renewed()
    assert empty._training is None
    model.become(empty)
    assert model._training is None
    assert Model().renewed().learner is None


def test_a_renewed_model():
    texts, labels = ["cheap pills", "see you at lunch"] * 4, ["spam", "ham"] * 4
    model = Model().partial_fit(texts, labels)
    renewed = model.renewed()
    assert renewed.labels == ["ham", "spam"] and renewed.learner.n_seen_ == 0
    renewed.partial_fit(["cheap lunch, new words"] * 4, ["ham"] * 4)
    assert renewed.features.n_features_out_ > model.features.n_features_out_ == 10
    assert model.predict(["cheap pills"]).tolist() == ["spam"]
    model.become(renewed)
    assert model.predict(["cheap lunch"]).tolist() == ["ham"]
    same_state(model, renewed)


@pytest.mark.parametrize("make", [lambda: onlearn.LogisticRegression(grow=True, random_state=0), Model])
def test_others_may_predict_while_a_model_becomes_another(make):
    labels = ["no", "yes"]
    first = [{"a": -1.0}, {"a": 1.0}]
    model = make().partial_fit(first, labels) if make is Model else make().learn_one(first[0], "no")
    seen, stop = [], threading.Event()

    def read():
        try:
            while not stop.is_set():
                seen.append(model.predict_one({"a": 0.5, "name3": 1.0}))
        except Exception as error:  # whatever it is, the test is to name it
            seen.append(repr(error))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for n in range(60):
            other = model.renewed()
            for k in range(5):
                other.learn_one({"a": k - 2.0, f"name{n}": 1.0}, labels[k % 2])
            model.become(other)
    finally:
        stop.set()
        reader.join()
    assert set(seen) <= set(labels)
    assert model.predict_one({"a": 0.5}) in labels
