"""``Tuner``: scikit-learn's contract, every kind of space, and what a race promises."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Perceptron, SGDClassifier, SGDRegressor
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

import onlearn
from onlearn.tune import Log, Tuner

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 6))
W = np.array([3.0, -2.0, 0, 0, 1.0, 0.5])
Y = np.where(X @ W + 0.5 * RNG.normal(size=600) > 0, "yes", "no")
AMOUNTS = X @ W + 0.1 * RNG.normal(size=600)

WEIGHTS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "a weight of 2 is one longer step of a learner, not two visits"
    for kind in ("dense", "sparse")
}


@pytest.mark.parametrize("task", ["classify", "regress"])
def test_check_estimator_passes(task):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks feed data that do not converge
        results = check_estimator(
            Tuner(task=task, n_configurations=2, random_state=0), expected_failed_checks=WEIGHTS, on_skip=None
        )
    assert {one["check_name"] for one in results if one["status"] == "xfail"} == set(WEIGHTS)


def test_the_default_space():
    tuner = Tuner(random_state=0).fit(X, Y)
    assert tuner.score(X, Y) > 0.9 and tuner.classes_.tolist() == ["no", "yes"]
    assert len(tuner.results_["configurations"]) == 10 and tuner.results_["winner"] == tuner.best_index_
    assert sorted(one["rank"] for one in tuner.results_["configurations"]) == list(range(1, 11))
    json.dumps(tuner.results_, allow_nan=False)
    np.testing.assert_allclose(tuner.predict_proba(X).sum(axis=1), 1)
    assert np.array_equal(tuner.predict(X), np.where(tuner.decision_function(X) > 0, "yes", "no"))
    with_few = Tuner(n_configurations=3, random_state=0).fit(X, Y)
    assert len(with_few.results_["configurations"]) == 3


def test_it_finds_the_known_best():
    """Where most rows are of one class, a learner without an intercept is clearly worse, though it is the default."""
    gold = X @ W > 4
    space = {"fit_intercept": [False, True]}
    tuner = Tuner(space, estimator=onlearn.LogisticRegression(), random_state=1).fit(X, gold)
    assert tuner.best_params_["fit_intercept"] is True and tuner.best_estimator_.fit_intercept
    assert tuner.best_params_["epochs"] == tuner.best_estimator_.epochs


@pytest.mark.parametrize("form", ["list", "range"])
def test_rates_that_learn_nothing_lose(form):
    values = [1e-9, 0.1, 1e-7] if form == "list" else Log(1e-9, 1.0)
    tuner = Tuner({"rate": values}, 8, estimator=onlearn.LogisticRegression(), random_state=1).fit(X, Y)
    assert len(tuner.results_["configurations"]) == (3 if form == "list" else 8)
    assert tuner.best_params_["rate"] > 1e-3 and tuner.best_estimator_.rate == tuner.best_params_["rate"]


def test_never_much_worse_than_its_best_configuration():
    space = [onlearn.AROW(), onlearn.Perceptron(), onlearn.LogisticRegression(rate=1e-5), onlearn.LinearSVM()]
    test = RNG.normal(size=(2000, 6))
    gold = np.where(test @ W > 0, "yes", "no")
    tuner = Tuner(space, random_state=0).fit(X, Y)
    alone = [one.set_params(random_state=0).fit(X, Y).score(test, gold) for one in space]
    assert tuner.score(test, gold) >= max(alone) - 0.02


def test_estimators_of_others():
    space = [SGDClassifier(loss="log_loss"), onlearn.AROW(), GaussianNB(), Perceptron(), DecisionTreeClassifier()]
    tuner = Tuner(space, random_state=0).fit(X, Y)
    tree = tuner.results_["configurations"][4]
    assert "no partial_fit" in tree["why"] and tuner.score(X, Y) > 0.9
    only = Tuner([GaussianNB(), Perceptron()], random_state=0).fit(X, Y)
    assert not hasattr(only, "decision_function") or not hasattr(only, "predict_proba")


def test_names_of_learners_with_parameters():
    tuner = Tuner({"learner": ["AROW", "Perceptron"], "r": [0.1, 1.0]}, random_state=0).fit(X, Y)
    assert type(tuner.best_estimator_).__name__ in ("AROW", "Perceptron")
    listed = Tuner(["AROW(r=0.5)", "NoSuchLearner"], random_state=0).fit(X, Y)
    assert listed.best_estimator_.r == 0.5 and "NoSuchLearner" in listed.results_["configurations"][1]["why"]


def test_regression():
    tuner = Tuner(task="regress", random_state=0).fit(X, AMOUNTS)
    assert tuner.score(X, AMOUNTS) > 0.95 and not hasattr(tuner, "predict_proba")
    by_kind = Tuner([SGDRegressor(), onlearn.OnlineRegressor()], random_state=0).fit(X, AMOUNTS)
    assert by_kind.score(X, AMOUNTS) > 0.9


def test_configurations_that_diverge_are_dropped():
    wild = SGDRegressor(learning_rate="constant", eta0=1e200)
    tuner = Tuner([onlearn.OnlineRegressor(), wild], random_state=0).fit(X, AMOUNTS)
    assert tuner.best_index_ == 0 and tuner.results_["configurations"][1]["why"] is not None


def test_one_seed_gives_the_same_model():
    first, second = (Tuner(random_state=3, n_jobs=jobs).fit(X, Y) for jobs in (1, 2))
    assert np.array_equal(first.decision_function(X), second.decision_function(X))
    tables = [{**one.results_, "seconds": 0} for one in (first, second)]
    assert tables[0] == tables[1]


def test_sparse_rows_weights_pickles_and_cross_validation():
    weight = np.where(Y == "yes", 2.0, 1.0)
    tuner = Tuner(n_configurations=3, random_state=0).fit(sp.csr_matrix(X), Y, sample_weight=weight)
    again = pickle.loads(pickle.dumps(tuner))
    assert np.array_equal(again.predict(X), tuner.predict(sp.csr_matrix(X)))
    assert cross_val_score(Tuner(n_configurations=2, random_state=0), X, Y, cv=3).mean() > 0.85


def test_a_time_limit_keeps_the_best_so_far():
    tuner = Tuner(time_limit=1e-9, random_state=0).fit(X, Y)
    assert tuner.results_["ended_early"] and tuner.score(X, Y) > 0.8


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (dict(space=[]), "lists no estimators"),
        (dict(space={}), "no parameters"),
        (dict(space={"rat": [1]}), "did you mean 'rate'"),
        (dict(space=[3]), "no estimator"),
        (dict(estimator=onlearn.AROW()), "needs space="),
        (dict(task="rank"), "task must be"),
        (dict(n_configurations=0), "n_configurations"),
        (dict(max_passes=0), "max_passes"),
        (dict(time_limit=-1), "time_limit"),
        (dict(space=[DecisionTreeClassifier()]), "no configuration could learn"),
    ],
)
def test_errors(given, why):
    with pytest.raises((ValueError, TypeError), match=why):
        Tuner(**given).fit(X, Y)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="one class"):
        Tuner().fit(X, np.ones(600))
