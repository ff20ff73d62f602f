"""The mixture as an estimator, in training runs, and on the command line."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import GridSearchCV

import onlearn
from onlearn import cli
from onlearn.models.plan import Plan
from onlearn.models.run import Run

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 6))
Y = np.where(X @ [2, -1, 0, 0, 1, 0.5] + 0.5 * RNG.normal(size=200) > 0, "yes", "no")
SOME = [onlearn.AROW(), "LogisticRegression(rate=0.3)", onlearn.Perceptron(), onlearn.LogisticRegression(rate=1.0)]


def test_the_estimator_is_the_learner_and_its_theorem_holds():
    model = onlearn.Mixture(SOME, random_state=0).fit(X, Y)
    assert model.score(X, Y) > 0.85
    assert model.weights_.sum() == pytest.approx(1.0) and model.losses_.shape == (4,)
    assert model.loss_ <= model.losses_.min() + math.log(4) + 1e-9
    theorem = model.certificate()
    assert theorem.holds() and theorem.slack >= -1e-9
    assert str(theorem).startswith("log-loss ") and "best + ln 4" in str(theorem)
    assert json.loads(json.dumps(theorem.to_dict()))["bound"] == theorem.bound
    assert model.n_seen_ == 1000 and len(model.history_["passes"]) == 5
    assert not hasattr(model, "coef_") and model.separable_ is None
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    np.testing.assert_array_equal(model.predict(X) == "yes", model.decision_function(X) > 0)
    assert all(not hasattr(onlearn.Mixture(), name) for name in ("weights_", "losses_", "loss_", "leader_"))


def test_the_leader_is_an_estimator_of_its_own_class(tmp_path):
    model = onlearn.Mixture(SOME, random_state=0, epochs=1, shuffle=False).fit(X, Y)
    leader = model.leader_
    best = SOME[int(model.losses_.argmin())]
    assert type(leader).__name__ in (best if isinstance(best, str) else repr(best))
    assert leader.epochs == 1 and leader.score(X, Y) > 0.85
    assert leader.certificate(X, Y) is not None
    leader.save(tmp_path / "leader.onl")
    back = onlearn.load(tmp_path / "leader.onl")
    np.testing.assert_array_equal(back.partial_fit(X, Y).coef_, leader.partial_fit(X, Y).coef_)


def test_a_mixture_is_cloned_pickled_saved_and_searched_over(tmp_path):
    model = onlearn.Mixture(SOME, random_state=0)
    assert repr(clone(model).get_params()["learners"]) == repr(SOME)
    model.fit(X, Y).save(tmp_path / "m.onl")
    loaded, unpickled = onlearn.load(tmp_path / "m.onl"), pickle.loads(pickle.dumps(model))
    model.partial_fit(X[:50], Y[:50])
    for other in (loaded, unpickled):
        assert type(other) is onlearn.Mixture
        other.partial_fit(X[:50], Y[:50])
        np.testing.assert_array_equal(other.losses_, model.losses_)
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    grid = {"learners": [["Perceptron"], ["LogisticRegression", onlearn.AROW()]]}
    assert len(GridSearchCV(onlearn.Mixture(random_state=0), grid, cv=2).fit(X, Y).best_params_["learners"]) in (1, 2)
    assert onlearn.load(tmp_path / "m.onl").set_params(epochs=2, warm_start=True).fit(X, Y).n_seen_ == 1400


def test_the_usual_mixture_needs_no_rate():
    """Columns of any scale, and several classes."""
    wild, labels = load_breast_cancer(return_X_y=True)
    settings = dict(random_state=0, epochs=1)
    model, one = onlearn.Mixture(**settings).fit(wild, labels), onlearn.LogisticRegression(**settings).fit(wild, labels)
    assert model.history_["passes"][0]["loss"] < 0.5 * one.history_["passes"][0]["loss"]
    images, digits = load_digits(return_X_y=True)
    model = onlearn.Mixture(random_state=0, epochs=1).fit(sp.csr_matrix(images), digits)
    assert model.score(images, digits) > 0.93 and model.certificate().holds()
    np.testing.assert_allclose(model.predict_proba(images).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("learners", "sentence"),
    [
        ([], "an empty list"),
        ([onlearn.OnlineRegressor()], r"learners\[0\] is OnlineRegressor\(\), but must be a linear classifier"),
        ([onlearn.KernelClassifier()], r"learners\[0\] is KernelClassifier\(\), but must be a linear classifier"),
        ([onlearn.Mixture()], r"learners\[0\] is Mixture\(\), but must be"),
        (["Perceptron", onlearn.AROW(grow=True)], r"learners\[1\] sets grow"),
        ([onlearn.AROW(class_weight="balanced")], "sets class_weight"),
    ],
)
def test_what_cannot_be_mixed_is_refused(learners, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        onlearn.Mixture(learners).fit(X, Y)


def test_single_rows_are_as_many():
    """Mappings, too, whose names and classes are taken in as they come."""
    many = onlearn.Mixture(SOME, random_state=0).partial_fit(X[:30], Y[:30], classes=["no", "yes"])
    one = onlearn.Mixture(SOME, random_state=0).partial_fit(X[:1], Y[:1], classes=["no", "yes"])
    for x, y in zip(X[1:30], Y[1:30], strict=True):
        one.learn_one(x, y)
    np.testing.assert_array_equal(one.losses_, many.losses_)
    np.testing.assert_array_equal(one.predict_proba(X), many.predict_proba(X))
    assert one.predict_one(X[40]) == many.predict(X[40:42])[0]
    assert one.score_one(X[40]) == pytest.approx(many.decision_function(X[40:42])[0], rel=1e-12)
    assert one.predict_proba_one(X[40])["yes"] == pytest.approx(many.predict_proba(X[40:42])[0, 1], rel=1e-12)
    fruit = onlearn.Mixture(grow=True, random_state=0)
    for _ in range(10):
        fruit.learn_one({"size": 3.5, "colour": "red"}, "apple").learn_one({"size": 9.0}, "melon")
        fruit.learn_one({"size": 1.0, "colour": "blue", "sour": True}, "sloe", weight=2.0)
    assert fruit.predict_one({"colour": "red", "size": 3.0}) == "apple"
    assert sum(fruit.predict_proba_one({"sour": True}).values()) == pytest.approx(1.0)
    assert fruit.certificate().holds() and fruit.leader_.predict_one({"size": 9.0}) == "melon"


def test_predictions_made_while_another_thread_learns_are_of_a_whole_mixture():
    model = onlearn.Mixture(random_state=0).partial_fit(X, Y, classes=["no", "yes"])
    before, snapshot = model.predict_proba(X), model._learner.training.snapshot()
    scores = snapshot.log_probabilities(X, None)
    model.partial_fit(X, Y)
    np.testing.assert_array_equal(snapshot.log_probabilities(X, None), scores)
    assert (model.predict_proba(X) != before).any()


# ---------------------------------------------------------------- training runs and commands


def rows(path, classes=2, count=400):
    rng = np.random.default_rng(classes)
    with open(path, "w") as file:
        for _ in range(count):
            x = rng.normal(size=5)
            file.write(f"{int(np.argmax(x[:classes]))} " + " ".join(f"{j + 1}:{v:.4f}" for j, v in enumerate(x)) + "\n")
    return str(path)


@pytest.mark.parametrize("classes", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("passes", [1, 3])
def test_an_unfinished_run_goes_on_as_if_never_stopped(tmp_path, passes, classes):
    source = rows(tmp_path / "a.svm", classes)
    learner = onlearn.Mixture(SOME)
    whole = Run(Plan([source], passes=passes, learner=learner)).go()
    halted = Run(Plan([source], passes=passes, learner=onlearn.Mixture(SOME)))

    def checkpoint():
        halted.model.save(tmp_path / "half.onl")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        halted.go(checkpoint=checkpoint, every=137)
    resumed = Run(Plan([source], passes=passes), onlearn.load(tmp_path / "half.onl")).go()
    (facts, arrays), (others, more) = whole.learner._pack(), resumed.learner._pack()
    assert facts["members"] == others["members"] and arrays.keys() == more.keys()
    for key, array in arrays.items():
        np.testing.assert_array_equal(array, more[key], err_msg=key)


def test_the_commands_know_mixtures(tmp_path, capsys):
    source, model = rows(tmp_path / "a.svm"), str(tmp_path / "m.onl")

    def said(*arguments, code=0):
        assert cli.run([*map(str, arguments)]) == code
        printed = capsys.readouterr()
        return " ".join((printed.out + printed.err).split())

    assert "best + ln 8" in said("train", source, "-o", model, "--learner", "mixture", "--passes", "2")
    report = json.loads(said("inspect", model, "--json"))
    assert report["learner"] == "Mixture" and report["mixture"]["holds"]
    assert sum(one["weight"] for one in report["mixture"]["learners"]) == pytest.approx(1.0)
    assert "of the leader" in said("inspect", model)
    assert "its leader, LogisticRegression(" in said("explain", model, "1:2.0 2:-1.0")
    assert "which counts" in json.loads(said("explain", model, "1:2.0 2:-1.0", "--json"))["by"]
    assert json.loads(said("evaluate", model, source, "--json"))["accuracy"] > 0.9
    assert said("predict", model, source).count("0") > 100
    again = json.loads(said("train", source, "-o", model, "--resume", model, "--passes", "1", "--json"))
    assert again["mixture"]["loss"] > report["mixture"]["loss"]
    assert "prune-weights has no use with a mixture" in said(
        "train", source, "-o", model, "--learner", "Mixture", "--prune-weights", "0.1", code=2
    )
    assert "--rule has no use" in said("train", source, "-o", model, "--learner", "mixture", "--rule", "pa1", code=2)


def test_a_model_of_raw_rows_learns_by_a_mixture(tmp_path):
    source = rows(tmp_path / "a.svm", classes=3)
    model = onlearn.train(source, learner=onlearn.Mixture(), passes=1)
    assert model.report_["mixture"]["holds"]
    with onlearn.data.read(source) as reader:
        for batch in reader:
            model.partial_fit(batch.rows, batch.y)
    assert model.learner.n_seen_ == 800


def check_mean_of_members(learner, found, X):
    """The probabilities are the mean of the members' own, weighted by how much each counts."""
    mean = sum(weight * learner.member(k).predict_proba(X, "own") for k, weight in enumerate(learner.weights_))
    np.testing.assert_allclose(found, mean, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_after_more_rows_than_other_learners_keep_some_of_back(classes, tmp_path, capsys):
    rng = np.random.default_rng(classes)
    many = rng.normal(size=(5000, 5))
    labels = np.argmax(many[:, :classes] + rng.normal(size=(5000, classes)), axis=1)
    fitted = onlearn.Mixture(random_state=0, epochs=2).fit(many, labels)
    streamed = onlearn.Mixture(random_state=0).partial_fit(many, labels, classes=np.arange(classes))
    both = pickle.loads(pickle.dumps(fitted)).partial_fit(many[:9], labels[:9])
    for model in (fitted, streamed, both):
        found = model.predict_proba(many[:50])
        check_mean_of_members(model._learner, found, many[:50])
        np.testing.assert_array_equal(found.argmax(axis=1), model.predict(many[:50]))
        one = model.predict_proba_one(many[0])
        assert [one[label] for label in range(classes)] == pytest.approx(found[0].tolist())

    source, path = rows(tmp_path / "a.svm", classes, 5000), str(tmp_path / "m.onl")
    assert cli.run(["train", source, "-o", path, "--learner", "Mixture", "--passes", "2", "-q"]) == 0
    capsys.readouterr()
    assert cli.run(["predict", path, source, "--proba", "--format-out", "jsonl"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 5000
    model = onlearn.load(path)
    with onlearn.data.read(source) as reader:
        batch = next(iter(reader))
        expected = model.predict_proba(batch.rows)
    told = [[line["proba"][label] for label in model.labels] for line in lines[: len(expected)]]
    np.testing.assert_allclose(told, expected, atol=1e-6)
