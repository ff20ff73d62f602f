"""The learner without scikit-learn: the same as the estimators, from the same parameters."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import onlearn
from onlearn.engine import calibration
from onlearn.engine.compositions import COMPOSITIONS, NAMED
from onlearn.engine.csr import CSR
from onlearn.engine.learner import Learner
from onlearn.estimators import linear

RNG = np.random.default_rng(0)
X = np.abs(RNG.normal(size=(90, 6))) * (RNG.random((90, 6)) < 0.6)
Y = np.array(["a", "b", "c"])[(X @ [2.0, -1, 0, 0, 1, 0.5] > 0).astype(int) + (X[:, 1] > 0.8)]


def own(S):
    S = sp.csr_matrix(S)
    return CSR(S.data, S.indices, S.indptr, S.shape)


@pytest.mark.parametrize("name", COMPOSITIONS)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, own])
def test_a_learner_is_what_the_estimator_of_its_name_is(name, make):
    y = X[:, 0] if name == "OnlineRegressor" else Y
    learner = Learner(name, random_state=0, epochs=2).fit(make(X), y)
    rows = sp.csr_matrix(X) if make is own else make(X)
    estimator = getattr(onlearn, name)(random_state=0, epochs=2).fit(rows, y)
    np.testing.assert_array_equal(learner.predict(make(X)), estimator.predict(rows))
    if name != "VotedPerceptron":
        np.testing.assert_array_equal(learner.coef_, estimator.coef_)
        np.testing.assert_array_equal(learner.intercept_, estimator.intercept_)
    if name != "OnlineRegressor":
        np.testing.assert_array_equal(learner.predict_proba(X), estimator.predict_proba(X))
        assert learner.n_mistakes_ == estimator.n_mistakes_ and list(learner.classes_) == ["a", "b", "c"]
    assert learner.history_ == estimator.history_
    assert repr(learner) == " ".join(repr(estimator).split())
    assert learner.get_params() == estimator.get_params(deep=False)


def test_importing_the_learner_brings_in_neither_scikit_learn_nor_scipy():
    program = "import sys, json, onlearn.engine.learner; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    heavy = {"sklearn", "scipy", "pandas", "pyarrow", "numba"}
    assert heavy.isdisjoint(name.partition(".")[0] for name in json.loads(done.stdout))


@pytest.mark.parametrize("name", NAMED)
def test_the_docstring_of_a_named_learner_lists_every_parameter(name):
    cls = linear.NAMED[name]
    lines = cls.__doc__.splitlines()
    for parameter in list(inspect.signature(cls).parameters.values()):
        (line,) = (line for line in lines if line.startswith(f"{parameter.name} : "))
        assert line.endswith(f"by default {parameter.default!r}")
        assert lines[lines.index(line) + 1].startswith("    ")  # what it means


@pytest.mark.parametrize("name", ["OnlineClassifier", "OnlineRegressor"])
def test_signatures_that_are_written_out_have_the_defaults_of_the_specification(name):
    shown = inspect.signature(getattr(onlearn, name)).parameters.values()
    assert [(one.name, one.default) for one in shown] == [
        (one.name, one.default) for one in COMPOSITIONS[name].parameters.values()
    ]


def test_parameters_that_do_not_exist_or_cannot_be_are_refused():
    with pytest.raises(TypeError, match="AdaGrad has no parameter 'speed'"):
        Learner("AdaGrad", speed=1)
    for wrong, sentence in (
        (dict(epochs=0), "epochs must be a whole number of at least 1, or None, not 0"),
        (dict(init="ones"), "init must be 'zeros' or 'random', not 'ones'"),
        (dict(tol="x"), "tol must be a number or None, not 'x'"),
        (dict(shuffle=2), "shuffle must be True or False, not 2"),
        (dict(intercept_scaling=0), "intercept_scaling must be a number above 0 or 'radius', not 0"),
        (dict(intercept_scaling=np.inf), "intercept_scaling must be a number above 0 or 'radius', not inf"),
        (dict(verbose=-1), "verbose must be a whole number of at least 0, not -1"),
        (dict(class_weight=[1]), r"class_weight must be a dict of weights, 'balanced' or None, not \[1\]"),
        (dict(random_state=-1), "random_state must be from 0 to"),
        (dict(random_state="x"), "cannot be used to seed"),
    ):
        with pytest.raises(ValueError, match=sentence):
            Learner(**wrong).fit(X, Y)
    Learner(tol=np.inf, epochs=np.int64(1), shuffle=np.True_, fit_intercept=1, verbose=False).fit(X, Y)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_goes_on_as_the_learner_does(copied):
    learner = Learner("PassiveAggressive", random_state=0).partial_fit(X, Y, classes=["a", "b", "c"])
    other = copied(learner)
    np.testing.assert_array_equal(learner.partial_fit(X, Y).coef_, other.partial_fit(X, Y).coef_)


def test_a_call_that_fails_changes_nothing():
    learner = Learner(grow=True).partial_fit(X, Y)
    before = learner.coef_
    with pytest.raises(ValueError, match="contains NaN in row 3, column 1"):
        learner.partial_fit(np.where((np.arange(90)[:, None] == 3) & (np.arange(6) == 1), np.nan, X), np.full(90, "d"))
    with pytest.raises(ValueError, match="X has 90 rows but y has 3 entries"):
        learner.partial_fit(np.pad(X, ((0, 0), (0, 2))), Y[:3])
    np.testing.assert_array_equal(learner.coef_, before)
    assert list(learner.classes_) == ["a", "b", "c"] and learner.n_features_in_ == 6
    learner.partial_fit(np.pad(X, ((0, 0), (0, 2))), np.full(90, "d"))
    assert list(learner.classes_) == ["a", "b", "c", "d"] and learner.coef_.shape == (4, 8)
    for wider in (np.pad(X, ((0, 0), (0, 5))), sp.csr_matrix(np.pad(X, ((0, 0), (0, 5)))), X, own(X)):
        np.testing.assert_allclose(learner.decision_function(wider), X @ learner.coef_.T[:6] + learner.intercept_)


def test_before_anything_is_learned_there_is_nothing_to_see():
    for name in ("coef_", "classes_", "n_seen_", "history_", "n_features_in_", "feature_names_in_", "separable_"):
        assert not hasattr(Learner(), name)
    fitted = Learner("OnlineRegressor", random_state=0).fit(X, X[:, 0])
    assert not hasattr(fitted, "classes_") and not hasattr(fitted, "n_mistakes_")


def test_functions_that_scipy_has_too_give_the_same_to_the_last_bit():
    from scipy import special

    for rows, classes, size in [(1000, 3, 1.0), (256, 10, 5.0), (50, 100, 300.0), (1000, 2, 1e5), (7, 26, 1e-3)]:
        z = RNG.normal(size=(rows, classes)) * size
        for one in (z, np.asfortranarray(z), np.round(z), z[:, : classes - 1]):
            np.testing.assert_array_equal(calibration.softmax(one), special.softmax(one, axis=1))
            np.testing.assert_array_equal(calibration.log_sum_exp(one), special.logsumexp(one, axis=1))
            np.testing.assert_array_equal(calibration.expit(one), special.expit(one))
