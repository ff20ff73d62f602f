"""The objective over all rows against plain NumPy, its minimum against scikit-learn; learners that go on from it."""

from __future__ import annotations

import copy
import json
import re
from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize as scipy_minimize
from sklearn.linear_model import Lasso, Ridge
from sklearn.linear_model import LogisticRegression as TheirLogisticRegression

from cases import LAYOUTS
from onlearn.bayes.learner import BayesLearner
from onlearn.engine.csr import CSR
from onlearn.engine.learner import Learner
from onlearn.engine.objective import Objective, Problem, install, loss_and_gradient, run, scale_of, why_not
from onlearn.engine.rules import RULES

ROWS, FEATURES = 40, 5

# ----------------------------------------------------------------------------------------------------
# The oracle: the loss of each row and its derivative by the scores, as a textbook has them.


def logistic(s, y):
    return np.logaddexp(0.0, -s * y), -y / (1.0 + np.exp(s * y))


def squared_hinge(s, y):
    rest = np.maximum(0.0, 1.0 - s * y)
    return rest**2, -2.0 * y * rest


def squares(s, y):
    return 0.5 * (s - y) ** 2, s - y


PLAIN = {"logistic": logistic, "squared_hinge": squared_hinge, "lms": squares}


def plain_sums(rule, output, X, y, h, w, bias):
    A = np.hstack([np.full((len(X), 1), bias), X])
    S = A @ w.reshape(A.shape[1], -1)
    if output is None:
        losses, slopes = PLAIN[rule](S, y[:, None])
    elif output == "softmax":
        P = np.exp(S - S.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        gold = np.eye(S.shape[1])[y]
        losses, slopes = -np.log((P * gold).sum(axis=1, keepdims=True)), P - gold
    else:
        losses, slopes = PLAIN[rule](S, 2.0 * np.eye(S.shape[1])[y] - 1.0)
    return h @ losses.sum(axis=1), (A.T @ (h[:, None] * slopes)).ravel(), h.sum()


KINDS = [
    ("logistic", None, 1),
    ("squared_hinge", None, 1),
    ("lms", None, 1),
    ("lms", "regression", 1),
    ("logistic", "softmax", 2),
    ("logistic", "softmax", 4),
    ("logistic", "one-vs-all", 3),
    ("squared_hinge", "one-vs-all", 3),
    ("lms", "one-vs-all", 4),
]


def drawn(rule, output, outputs, seed=0, rows=ROWS, bias=1.0):
    """A problem, and rows, targets, weights (some of them zero) and weights of features for it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, FEATURES)) * (rng.random((rows, FEATURES)) < 0.6)
    if output == "regression":
        y = rng.normal(size=rows)
    elif output is None:
        y = rng.choice([-1.0, 1.0], rows)
    else:
        y = rng.integers(0, outputs, rows)
    w = rng.normal(size=(1 + FEATURES) * outputs)
    kind = None if output == "regression" else output
    return Problem(RULES.get(rule), kind, outputs, bias), X, y, rng.choice([0.0, 0.5, 1.0, 3.0], rows), w


def test_every_smooth_rule_is_among_the_cases():
    smooth = {name for name, kind in RULES.members.items() if kind.smooth}
    assert smooth == {rule for rule, _, _ in KINDS} == set(PLAIN)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("rule", "output", "outputs"), KINDS)
def test_sums_are_those_of_the_textbook(rule, output, outputs, layout):
    for bias in (1.0, 0.3, 0.0):
        problem, X, y, h, w = drawn(rule, output, outputs, bias=bias)
        form = LAYOUTS[layout](X)
        form = CSR(form.data, form.indices, form.indptr, form.shape) if sp.issparse(form) else form
        X = X.astype(np.float32).astype(np.float64) if "32" in layout else X
        loss, gradient, weight = loss_and_gradient(problem, form, y, h, w)
        wanted = plain_sums(rule, problem.output, X, y, h, w, bias)
        np.testing.assert_allclose(loss, wanted[0], rtol=1e-12)
        np.testing.assert_allclose(gradient, wanted[1], rtol=1e-10, atol=1e-11)
        assert weight == wanted[2]
        if bias == 0.0:
            assert not gradient[:outputs].any()


@pytest.mark.parametrize(("rule", "output", "outputs"), KINDS)
def test_gradient_is_what_finite_differences_say(rule, output, outputs):
    problem, X, y, h, w = drawn(rule, output, outputs, seed=1)
    gradient, small = loss_and_gradient(problem, X, y, h, w)[1], 1e-6
    for j, along in enumerate(np.eye(len(w)) * small):
        ahead, behind = (loss_and_gradient(problem, X, y, h, w + side)[0] for side in (along, -along))
        assert (ahead - behind) / (2 * small) == pytest.approx(gradient[j], rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("rule", [name for name, kind in RULES.members.items() if kind.smooth])
@given(st.floats(-30, 30), st.sampled_from([-1.0, 1.0]))
def test_steps_of_smooth_rules_are_minus_the_derivative(rule, s, y):
    kind, small = RULES.members[rule], 1e-6
    slope = (kind.loss(s + small, y, 1.0, ()) - kind.loss(s - small, y, 1.0, ())) / (2 * small)
    assert kind.step(s, y, 1.0, ()) == pytest.approx(-slope, rel=1e-4, abs=1e-4)


@settings(max_examples=30)
@given(st.sampled_from(KINDS), st.integers(0, 10**6), st.lists(st.integers(0, 60), max_size=4), st.booleans())
def test_shards_add_up_to_the_whole(kind, seed, cuts, sparse):
    problem, X, y, h, w = drawn(*kind, seed=seed, rows=60)
    form = CSR.of(X) if sparse else X
    whole = loss_and_gradient(problem, form, y, h, w)
    edges = [0, *sorted(cuts), 60]
    parts = [
        loss_and_gradient(problem, form.between(a, b) if sparse else form[a:b], y[a:b], h[a:b], w)
        for a, b in pairwise(edges)
    ]
    for found, wanted in zip(map(sum, zip(*parts)), whole):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-11)


def test_weights_of_another_shape_are_refused():
    problem, X, y, h, w = drawn("logistic", None, 1)
    with pytest.raises(ValueError, match=r"5 weights do not go with 5 columns and 1 outputs: there must be 6"):
        loss_and_gradient(problem, X, y, h, w[1:])


def test_rows_with_nan_are_named():
    problem, X, y, h, w = drawn("logistic", None, 1)
    X[7, 2], h[:] = np.nan, 1.0
    with pytest.raises(ValueError, match="row 7"):
        loss_and_gradient(problem, X, y, h, w)


# ----------------------------------------------------------------------------------------------------
# The minimum.


def data(classes, seed=0, rows=300, features=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) * np.linspace(0.5, 2.0, features)
    noisy = X @ rng.normal(size=(features, max(classes, 2))) + 2 * rng.normal(size=(rows, max(classes, 2)))
    return X, (noisy[:, 0] if classes == 1 else noisy.argmax(axis=1))


def sums_of(learner, X, y, weight=None, shards=1):
    """What a caller adds up: the sums of some shards, in their order."""
    training, task = learner.training, learner.task
    h = np.ones(len(y)) if weight is None else weight
    targets = task.targets(task.numbers(y, h), training.output)
    h = task.weighted(task.numbers(y, h), h, learner._class_weight)
    problem, edges = Problem.of(training), np.linspace(0, len(y), shards + 1).astype(int)

    def sums(w):
        parts = [loss_and_gradient(problem, X[a:b], targets[a:b], h[a:b], w) for a, b in pairwise(edges)]
        return tuple(sum(part) for part in zip(*parts))

    return sums


def minimum(learner, X, y, weight=None, scaled=False, tol=0.0):
    goal = Objective.of(learner.training, sums_of(learner, X, y, weight, shards=3))
    descent = goal.begin(np.zeros((1 + X.shape[1]) * learner.training.outputs))
    run(descent, 2000, tol=tol)
    return descent


def begun(X, y, name="OnlineClassifier", rule="logistic", geometry="adagrad(l2=0.01)", **params):
    params = {"stabilizer": "averaged", "epochs": 1, "random_state": 0, **params}
    return Learner(name, rule=rule, geometry=geometry, **params).fit(X, y)


@pytest.mark.parametrize("classes", [2, 4])
def test_logistic_minimum_is_that_of_scikit_learn(classes):
    X, y = data(classes)
    learner = begun(X, y)
    install(learner.training, minimum(learner, X, y).w)
    theirs = TheirLogisticRegression(C=1 / (len(y) * 0.01), tol=1e-12, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(learner.coef_, theirs.coef_, atol=1e-6)
    ours, others = learner.intercept_, theirs.intercept_
    if classes > 2:  # a constant over all classes changes nothing
        ours, others = ours - ours.mean(), others - others.mean()
    np.testing.assert_allclose(ours, others, atol=1e-6)


def test_class_weights_and_example_weights_are_in_the_minimum():
    X, y = data(2, seed=3)
    h = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(y))
    learner = begun(X, y, class_weight={0: 1.0, 1: 3.0})
    install(learner.training, minimum(learner, X, y, h).w)
    whole = h @ np.where(y == 1, 3.0, 1.0)
    theirs = TheirLogisticRegression(C=1 / (whole * 0.01), class_weight={0: 1, 1: 3}, tol=1e-12, max_iter=10_000)
    np.testing.assert_allclose(learner.coef_, theirs.fit(X, y, sample_weight=h).coef_, atol=1e-6)


@pytest.mark.parametrize("scaling", [1.0, 7.0])
def test_ridge_and_lasso_are_those_of_scikit_learn(scaling):
    X, y = data(1, seed=1)
    for geometry, theirs in (
        ("additive(0.001, l2=0.05)", Ridge(alpha=0.05 * len(y), tol=1e-12)),
        ("adagrad(l1=0.3)", Lasso(alpha=0.3, tol=1e-12)),
    ):
        learner = begun(X, y, "OnlineRegressor", "lms", geometry, intercept_scaling=scaling)
        install(learner.training, minimum(learner, X, y).w)
        theirs.fit(X, y)
        np.testing.assert_allclose(learner.coef_, theirs.coef_, atol=1e-6)
        np.testing.assert_allclose(learner.intercept_, theirs.intercept_, atol=1e-6)
        assert (learner.coef_ == 0.0).tolist() == (theirs.coef_ == 0.0).tolist()


@pytest.mark.parametrize("rule", ["squared_hinge", "logistic", "lms"])
def test_one_vs_all_minimum_is_that_of_scipy(rule):
    X, y = data(3, seed=2)
    learner = begun(X, y, rule=rule, multiclass="one-vs-all", geometry="additive(0.01, l2=0.1)")
    found = minimum(learner, X, y)

    def smooth(w):
        loss, gradient, whole = plain_sums(rule, "one-vs-all", X, y, np.ones(len(y)), w, 1.0)
        free = np.repeat([0.0] + [0.1] * X.shape[1], 3)
        return loss / whole + 0.5 * free @ w**2, gradient / whole + free * w

    theirs = scipy_minimize(smooth, np.zeros(found.w.size), jac=True, tol=1e-12, options={"maxiter": 5000})
    assert found.value == pytest.approx(theirs.fun, rel=1e-10)
    np.testing.assert_allclose(found.w, theirs.x, atol=1e-5)


@pytest.mark.parametrize(
    "geometry", ["adagrad(0.3, l2=0.01)", "adagrad(0.3, l1=0.01)", "additive(0.1, '1/sqrt(t)', l1=0.01, l2=0.01)"]
)
@pytest.mark.parametrize("classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_long_on_line_learning_comes_near_the_minimum_and_not_below(geometry, classes):
    """So what l1 and l2 weigh is the same in both."""
    X, y = data(classes, seed=4)
    learner = begun(X, y, geometry=geometry, epochs=200)
    goal = Objective.of(learner.training, sums_of(learner, X, y))
    reached = goal.begin(learner.training.weights()).value
    lowest = minimum(learner, X, y).value
    assert lowest <= reached <= lowest * 1.005


def test_l_bfgs_stops_where_nothing_is_gained_and_says_what_it_did():
    X, y = data(2)
    learner, seen = begun(X, y), []
    goal = Objective.of(learner.training, sums_of(learner, X, y))
    descent = goal.begin(np.zeros(1 + X.shape[1]))
    why = run(
        descent, 100, tol=1e-4, watch=lambda now: seen.append((now.values[-1], now.slope_size(), now.evaluations))
    )
    assert why == "tol" and len(seen) == descent.iterations < 20
    values, slopes, evaluations = zip(*seen)
    assert all(a >= b for a, b in pairwise(values)) and slopes[-1] < slopes[0]
    assert evaluations[-1] == descent.evaluations >= descent.iterations + 1
    assert run(descent, 3) == "iterations"
    assert run(goal.begin(descent.w), 1000, tol=0.0) in ("minimum", "tol")
    no_rows = Objective(lambda w: (0.0, np.zeros(3), 0.0), 1)
    with pytest.raises(ValueError, match="weights of all examples are zero"):
        no_rows.begin(np.zeros(3))


@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_a_minimisation_is_resumed_bit_for_bit(l1):
    X, y = data(3)
    learner = begun(X, y, geometry=f"adagrad(l1={l1}, l2=0.001)")
    goal = Objective.of(learner.training, sums_of(learner, X, y))
    scale = np.linspace(0.5, 2.0, 3 * 7)
    for given_scale in (None, scale):
        whole, part = (goal.begin(np.zeros(3 * 7), given_scale) for _ in range(2))
        run(whole, 25, tol=0.0)
        run(part, 11, tol=0.0)
        facts, arrays = copy.deepcopy(part.pack())
        again = goal.resume(json.loads(json.dumps(facts)), arrays)
        run(again, 25, tol=0.0)
        assert again.w.tobytes() == whole.w.tobytes()
        assert (again.values, again.evaluations) == (whole.values, whole.evaluations)


def test_scale_of_adagrad_leads_to_the_same_minimum_sooner():
    X, y = data(2)
    X = X * np.array([1e-3, 1.0, 1e3, 30.0, 1.0, 0.1])  # so different that steps alike are hopeless
    for geometry in ("adagrad", "adagrad(l1=0.001)"):
        learner = begun(X, y, geometry=geometry)
        goal, start = Objective.of(learner.training, sums_of(learner, X, y)), learner.training.weights()
        descents = [goal.begin(start, scale) for scale in (scale_of(learner.training), None)]
        for descent in descents:
            run(descent, 40, tol=0.0)
        assert descents[0].value < descents[1].value
    steepest = goal.begin(start, None).slope_size()
    run(descents[0], 1000, tol=0.0)
    assert descents[0].slope_size() < 1e-7 * steepest  # rounding of the values ends it
    assert scale_of(begun(X, y, geometry="additive").training) is None
    assert scale_of(learner.renewed().training) is None


# ----------------------------------------------------------------------------------------------------
# Learners that go on from the minimum.

GEOMETRIES = [
    "additive(0.1)",
    "additive(0.1, l2=0.1)",
    "additive(0.1, l1=0.02, l2=0.1)",
    "additive(0.1, '1/sqrt(t)', l1=0.02)",
    "adagrad",
    "adagrad(l2=0.1)",
    "adagrad(l1=0.02, l2=0.1)",
]
WITH_STABILIZERS = [
    *product(GEOMETRIES, ["last", "averaged", "survivor"]),
    *product(GEOMETRIES[:2], ["averaged(window=50)"]),  # lazy penalties do not go with a window
]


@pytest.mark.parametrize("classes", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("geometry", "stabilizer"), WITH_STABILIZERS)
def test_installed_weights_are_handed_out_and_learned_from(geometry, stabilizer, classes):
    X, y = data(classes)
    learner = begun(X, y, geometry=geometry, stabilizer=stabilizer, grow=True)
    w = np.random.default_rng(0).normal(size=(1 + X.shape[1]) * learner.training.outputs)
    w[9:12] = 0.0
    seen, mistakes = learner.n_seen_, learner.n_mistakes_
    install(learner.training, w)
    assert learner.training.weights().ravel().tobytes() == w.tobytes()
    assert (learner.n_seen_, learner.n_mistakes_) == (seen, mistakes)
    learner.predict(X), learner.predict_proba(X)
    facts, arrays = learner.training.pack()
    again = copy.copy(learner.training).unpack(facts, {name: array.copy() for name, array in arrays.items()})
    assert again.weights().ravel().tobytes() == w.tobytes()
    small = X[:1] * 0.01
    learner.partial_fit(small, y[:1])
    assert learner.n_seen_ == seen + 1
    near = learner.training.weights().ravel()
    np.testing.assert_allclose(near, w, atol=0.35)
    if "l1" in geometry:  # what is zero at the minimum is not made something by one example
        assert not near[9:12].any()
    wide = np.hstack([X, X])
    learner.partial_fit(wide, y)  # it grows
    assert learner.training.weights().shape[0] == 1 + wide.shape[1]


def test_adagrad_goes_on_at_the_rates_it_has_come_to():
    X, y = data(2)
    learner = begun(X, y, geometry="adagrad", epochs=3)
    squares = learner.training.g.squares.copy()
    install(learner.training, np.ones(7))
    assert learner.training.g.squares.tobytes() == squares.tobytes()
    fresh = learner.renewed()
    install(fresh.training, np.array([0.0, 1, 1, 1, 1, 1, 1]))
    assert fresh.training.g.squares.tolist() == [0.0, 1, 1, 1, 1, 1, 1]


def test_wrong_weights_are_not_installed():
    X, y = data(2)
    training = begun(X, y).training
    for w in (np.zeros(3), np.full(7, np.nan)):
        with pytest.raises(ValueError, match="must be 7 finite numbers"):
            install(training, w)


# ----------------------------------------------------------------------------------------------------
# What has no such objective.


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"rule": "hinge"}, "loss of the rule .*hinge.* is not smooth.* use 'lms' or 'squared_hinge' or 'logistic'"),
        ({"rule": "pa1"}, "is not smooth"),
        ({"rule": "nlms", "name": "OnlineRegressor"}, "is not smooth.*: use 'lms'$"),
        ({"geometry": "ftrl"}, "ftrl.* states no objective"),
        ({"geometry": "arow"}, "states no objective"),
        ({"geometry": "balanced"}, "states no objective"),
        ({"stabilizer": "voted", "geometry": "additive"}, "voted.* needs the hypotheses"),
        ({"multiclass": "true"}, "multiclass='true' is not smooth.* use multiclass='softmax'"),
        ({"rule": "squared_hinge"}, "multiclass='true' is not smooth.* use multiclass='one-vs-all'"),
        ({}, None),
        ({"rule": "squared_hinge", "multiclass": "one-vs-all"}, None),
        ({"rule": "lms", "name": "OnlineRegressor"}, None),
    ],
)
def test_why_not(params, said):
    X, y = data(1 if params.get("name") == "OnlineRegressor" else 3)
    params = {"geometry": "adagrad", "rule": "logistic", "name": "OnlineClassifier", **params}
    learner = Learner(epochs=1, random_state=0, **params)
    if "true" not in (said or ""):
        _check(why_not(learner), said)  # before it learned anything
    _check(why_not(learner.fit(np.abs(X), y)), said)


def _check(found, said):
    if said is None:
        assert found is None
    else:
        assert re.search(said, found), found


def test_named_learners_and_others():
    assert why_not(Learner("LogisticRegression")) is None
    assert "hinge" in why_not(Learner("AdaGrad"))
    assert "use a linear learner" in why_not(BayesLearner())
