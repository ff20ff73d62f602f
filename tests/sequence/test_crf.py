"""Conditional random fields against enumeration, finite differences and multinomial logistic regression."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlearn
import sequence_examples as examples
from onlearn.engine.quasi_newton import minimize
from onlearn.sequence.crf import CRFLearner
from onlearn.sequence.inputs import as_sentences
from onlearn.sequence.likelihood import Likelihood
from onlearn.sequence.weight_index import WeightIndex


def problem(X, y, l2=0.0):
    """The likelihood of sequences as a function of the weights, and a learner that has their numbers."""
    learner = CRFLearner(random_state=0)
    sentences = as_sentences(X)
    codes = learner._encode(sentences, y)
    learner.features = learner._make_features(sentences)
    learner.index = WeightIndex()
    rows = learner.features.learn_transform(sentences)
    learner._number(rows, codes, at_once=True)
    return Likelihood(rows, codes, learner.index.arrays, learner.index.used, l2), learner


@given(st.integers(0, 10_000), st.booleans())
@settings(max_examples=20, deadline=None)
def test_likelihood_and_gradient(seed, values):
    X, y = examples.draw(seed, sequences=4, values=values, shortest=0)
    X, y = [*X, [{"a0": 1.0}]], [*y, ["L0"]]
    objective, learner = problem(X, y, l2=0.3)
    w = np.random.default_rng(seed).normal(size=learner.index.used)
    w[0] = 0.0
    named = examples.weights_by_name(learner, w)
    expected = 0.15 * w @ w
    for tokens, path in zip(X, y):
        paths = examples.all_paths(tokens, learner.labels)
        scores = np.array([examples.dot(named, examples.path_features(tokens, one)) for one in paths])
        expected += np.logaddexp.reduce(scores) - examples.dot(named, examples.path_features(tokens, path))
    value, gradient = objective(w)
    assert value == pytest.approx(expected)
    for j in range(1, len(w)):
        ahead, behind = w.copy(), w.copy()
        ahead[j] += 1e-5
        behind[j] -= 1e-5
        slope = (objective(ahead)[0] - objective(behind)[0]) / 2e-5
        assert gradient[j] == pytest.approx(slope, abs=1e-6)


def test_the_likelihood_of_weights_that_leave_the_range_of_doubles_is_finite():
    X, y = examples.draw(2)
    objective, learner = problem(X, y)
    w = 400.0 * np.random.default_rng(0).normal(size=learner.index.used)
    w[0] = 0.0
    value, gradient = objective(w)
    assert np.isfinite(value) and np.isfinite(gradient).all()


@pytest.mark.parametrize("l1", [0.0, 0.5])
def test_fit_is_optimal(l1):
    X, y = examples.draw(8, sequences=30, attributes=12)
    crf = CRFLearner(l1=l1, l2=0.5, tol=0.0, epochs=400).fit(X, y)
    objective, learner = problem(X, y, l2=0.5)
    named = examples.weights_by_name(crf)
    w = np.zeros(learner.index.used)
    a, owner = learner.index.arrays, learner.index.owners()
    names = learner.features.names(np.arange(learner.features.size))
    for i, one in enumerate(learner.labels):
        w[a.initial[i]], w[a.final[i]] = named["begin", one], named["end", one]
        for j, other in enumerate(learner.labels):
            w[a.transitions[i, j]] = named["->", one, other]
    for j in range(1, len(w)):
        if owner[j] >= 0:
            w[j] = named.get((names[owner[j]], learner.labels[a.links[j, 0]]), 0.0)
    _, gradient = objective(w)
    moved = w != 0
    assert np.abs(gradient[moved] + l1 * np.sign(w[moved])).max() < 1e-3
    assert np.abs(gradient[~moved]).max(initial=0.0) <= l1 + 1e-3
    assert (l1 > 0) == bool((w[1:] == 0).any())


def test_multinomial_logistic_regression_is_the_field_of_length_one():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(60, 4))
    labels = np.array(["a", "b", "c"])[np.argmax(rows[:, :3] + rng.normal(size=(60, 3)), axis=1)]
    X = [[{f"x{k}": float(value) for k, value in enumerate(row)}] for row in rows]
    y = [[label] for label in labels]
    crf = onlearn.CRF(solver="sgd", rate=0.5, l2=0.0, epochs=3, tol=0.0, shuffle=False, random_state=0).fit(X, y)
    # Beginning and end of a single token are two constant features: one of size sqrt(2) moves as they do.
    softmax = onlearn.OnlineClassifier(
        rule="logistic", geometry="additive(0.5, schedule='1/sqrt(t)')", multiclass="softmax", stabilizer="last",
        epochs=3, shuffle=False, intercept_scaling=2**0.5, random_state=0,
    ).fit(rows, labels)  # fmt: skip
    named = examples.weights_by_name(crf.learner_)
    assert crf.learner_.passes == 3
    for c, label in enumerate(softmax.classes_):
        for k in range(4):
            assert named[f"x{k}", label] == pytest.approx(softmax.coef_[c, k], abs=1e-6)
    found = np.array([[one[label] for label in softmax.classes_] for [one] in crf.predict_marginals(X)])
    np.testing.assert_allclose(found, softmax.predict_proba(rows), atol=1e-6)


@pytest.mark.parametrize("solver", ["lbfgs", "adagrad", "sgd"])
def test_marginals_and_saving(solver, tmp_path):
    X, y = examples.draw(4, sequences=20)
    crf = onlearn.CRF(solver=solver, epochs=5, random_state=0).fit(X, y)
    named = examples.weights_by_name(crf.learner_)
    for tokens, found in zip(X[:5], crf.predict_marginals(X[:5])):
        paths = examples.all_paths(tokens, crf.learner_.labels)
        p = np.exp([examples.dot(named, examples.path_features(tokens, path)) for path in paths])
        for t, one in enumerate(found):
            for label, share in one.items():
                mine = [q for path, q in zip(paths, p) if path[t] == label]
                assert share == pytest.approx(sum(mine) / p.sum(), abs=1e-9)
    crf.save(tmp_path / "m.onl")
    again = onlearn.load(tmp_path / "m.onl")
    assert again.predict_marginals(X) == crf.predict_marginals(X)
    before = dict(named)
    again.partial_fit(*examples.draw(5))
    assert examples.weights_by_name(again.learner_) != before
    assert crf.learner_.passes == len(crf.objective_)


def test_l1_leaves_out_weights_and_attributes(tmp_path):
    X, y = examples.draw(6, sequences=40, attributes=30)
    dense, sparse = CRFLearner(l2=0.1).fit(X, y), CRFLearner(l1=2.0, l2=0.0).fit(X, y)
    assert sparse.described()["weights"] < dense.described()["weights"] / 2
    assert sparse.features.size < dense.features.size
    assert not (sparse.weights()[sparse.index.arrays.head[sparse.index.arrays.head > 0]] == 0).any()


def test_objective_falls_and_fit_stops():
    X, y = examples.draw(9, sequences=30)
    crf = onlearn.CRF(tol=1e-3, random_state=0).fit(X, y)
    assert crf.stopped_ == "tol"
    assert all(a >= b - 1e-9 for a, b in zip(crf.objective_, crf.objective_[1:], strict=False))
    short = onlearn.CRF(epochs=3).fit(X, y)
    assert short.stopped_ == "epochs" and len(short.objective_) == 3


def test_early_stopping():
    X, y = examples.draw(12, sequences=60, attributes=10)
    crf = onlearn.CRF(l2=1e-6, early_stopping=True, patience=1, tol=0.0, random_state=0).fit(X, y)
    assert crf.stopped_ == "validation"


def test_owl_qn_on_a_lasso_with_a_known_answer():
    rng = np.random.default_rng(0)
    q, _ = np.linalg.qr(rng.normal(size=(12, 5)))
    target = q @ np.array([3.0, -2.0, 0.4, 0.0, 1.0])

    def smooth(w):
        rest = q @ w - target
        return 0.5 * float(rest @ rest), q.T @ rest

    found = minimize(smooth, np.zeros(5), 0.5, 200, lambda value, w: False)
    np.testing.assert_allclose(found, [2.5, -1.5, 0.0, 0.0, 0.5], atol=1e-6)
    assert found[2] == 0.0 and found[3] == 0.0


@pytest.mark.parametrize("params", [{"l2": -1.0}, {"solver": "newton"}, {"rate": 0}, {"prior_size": 0}])
def test_parameters_that_cannot_be(params):
    with pytest.raises(ValueError, match=next(iter(params))):
        onlearn.CRF(**params).fit(*examples.draw(1))
