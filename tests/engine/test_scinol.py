"""ScInOL: a worked example, scales that do not matter, and values that no row should change it by."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import cases
import reference as ref
from onlearn import KernelClassifier, OnlineClassifier, OnlineRegressor, ScInOL
from onlearn.engine import rules
from onlearn.engine.geometry import ScInOL as Geometry
from onlearn.engine.stabilizers import Averaged, Last
from onlearn.engine.training import Training

LAYOUTS = {"dense": np.asarray, "csr": sp.csr_array}


def learner(rule="logistic", **others):
    return OnlineClassifier(rule, "scinol", **{"shuffle": False, "epochs": 1, **others})


def noisy(classes=2, rows=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 5)) * (rng.random((rows, 5)) < 0.7)
    return X, np.argmax(X @ rng.normal(size=(5, classes)) + 0.3 * rng.normal(size=(rows, classes)), axis=1)


def test_three_steps_by_hand():
    """One feature, perceptron steps of length 1: x = 3, 4, 12, each of them mistaken (labels +, -, +).

    M = 3, score 0, t = 1:   G = 3, S2 = 9, eta = 1:  w = (3 / sqrt 18) / (2 sqrt 18) = 1/12.
    M = 4: theta = 3/5, w = 0.6 / 10 = 0.06, score 0.24; t = -1: eta = 1 - 0.24 = 0.76, G = -1, S2 = 25,
           w = -0.76 / (2 * 41).
    M = 12: theta = -1/13, w = -0.76 / (2 * 169), score below 0; t = 1: eta = 0.76 - 12 * 0.76 / 338,
            G = 11, S2 = 169, w = eta * 11 / (2 * 313).
    """
    X, signs = np.array([[3.0], [4.0], [12.0]]), np.array([1.0, -1.0, 1.0])
    training = Training(rules.Perceptron(), Geometry(), Last(), None, 1, 1, 0.0)
    wealth = [1.0, 0.76, 0.76 * (1 - 12 / 338)]
    weights = [1 / 12, -0.76 / 82, wealth[2] * 11 / 626]
    for n in range(3):
        training.learn(X[n : n + 1], signs[n : n + 1], np.ones(1), np.arange(1))
        assert training.g.w[1] == pytest.approx(weights[n], rel=1e-14)
        assert training.g.wealth[1] == pytest.approx(wealth[n], rel=1e-14)
    assert training.g.largest[1] == 12.0 and training.g.gradients[1] == 11.0 and training.g.squares[1] == 169.0
    assert training.n_updates == 3


def test_a_score_knows_how_large_its_row_is():
    """After x = 1 the weight is 1/4; but x = 1e9 is not scored by it, for then M is 1e9."""
    model = learner("perceptron", stabilizer="last", fit_intercept=False)
    model.partial_fit([[1.0]], [1], classes=[0, 1])
    assert model.coef_[0, 0] == pytest.approx(0.25)
    model = learner("lms", stabilizer="last", fit_intercept=False).partial_fit([[1.0]], [1], classes=[0, 1])
    model.partial_fit([[1e9]], [1])
    assert model.history_["doubling"][1]["loss"] < 1.0  # squares of 1 and, as good as, 1, each halved


# ---------------------------------------------------------------- scales


@settings(max_examples=20)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("rule", "multiclass", "classes"), [
    ("logistic", "auto", 2), ("hinge", "auto", 2), ("logistic", "softmax", 3), ("perceptron", "true", 3),
    ("squared_hinge", "one-vs-all", 3),
])  # fmt: skip
@pytest.mark.parametrize("stabilizer", ["last", pytest.param("averaged", marks=pytest.mark.slow)])
@given(powers=arrays(np.int64, 5, elements=st.integers(-40, 40)))
def test_powers_of_two_change_no_prediction(layout, rule, multiclass, classes, stabilizer, powers):
    """Columns multiplied by powers of two, which rounds nothing: all scores stay what they were, bit for bit."""
    X, y = noisy(classes)
    scaled = X * 2.0**powers
    one, other = (learner(rule, multiclass=multiclass, stabilizer=stabilizer) for _ in range(2))
    one.fit(LAYOUTS[layout](X), y)
    other.fit(LAYOUTS[layout](scaled), y)
    assert one.history_ == other.history_
    np.testing.assert_array_equal(other.coef_ * 2.0**powers, one.coef_)
    assert np.array_equal(one.decision_function(LAYOUTS[layout](X)), other.decision_function(LAYOUTS[layout](scaled)))
    assert np.array_equal(one.predict_proba(X), other.predict_proba(scaled))


def test_any_scale_changes_predictions_by_rounding_only():
    X, y = noisy()
    scales = np.array([1e-12, 3e7, 0.7, 1e3, 1e12])
    one, other = learner().fit(X, y), learner().fit(X * scales, y)
    np.testing.assert_allclose(other.decision_function(X * scales), one.decision_function(X), rtol=1e-10)


# ---------------------------------------------------------------- the reference, on values of all sizes


@settings(max_examples=60)
@given(stream=st.data(), rule=st.sampled_from(sorted(cases.RULES)), sparse=st.booleans())
def test_values_of_all_sizes_are_learned_as_the_reference_learns_them(stream, rule, sparse):
    rows = stream.draw(st.integers(1, 20))
    sizes = stream.draw(arrays(np.float64, (rows, 3), elements=st.sampled_from([0.0, 1e-6, 0.03, 1.0, 7.0, 1e5])))
    X = sizes * np.random.default_rng(rows).uniform(-1, 1, (rows, 3))
    y = stream.draw(arrays(np.int64, rows, elements=st.integers(0, 1)))
    weight = stream.draw(arrays(np.float64, rows, elements=st.sampled_from([0.5, 1.0, 3.0])))
    trail = ref.learn(cases.RULES[rule], ref.ScInOL(), "binary", X, 2.0 * y - 1, weight=weight)
    model = learner(rule, stabilizer="last").partial_fit(
        sp.csr_array(X) if sparse else X, y, classes=[0, 1], sample_weight=weight
    )
    assert model.n_updates_ == trail.updates
    coef, intercept = trail.split(ref.last(trail))
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-8)
    np.testing.assert_allclose(model.intercept_, intercept, rtol=1e-8, atol=1e-300)


def test_wealth_stays_positive_whatever_the_steps():
    """Steps longer than 1 could take more than there is; half of it is the most."""
    X, y = noisy()
    for rule in ("lms", "squared_hinge", "aggressive"):
        model = learner(rule, epochs=5).fit(X, y, sample_weight=np.where(y, 1e3, 1.0))
        assert (model._training.g.wealth > 0).all() and np.isfinite(model.coef_).all()


@settings(max_examples=30)
@given(signs=st.lists(st.sampled_from([-1.0, 1.0]), min_size=1, max_size=60), seed=st.integers(0, 99))
def test_the_wealth_pays_for_what_was_lost(signs, seed):
    """The theorem behind the bound: epsilon less the linear losses of a coordinate is its wealth, never below 0.

    For steps of length 1 at most the guard against longer ones never acts, so this holds to rounding.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(len(signs), 1)) * 10.0 ** rng.integers(-3, 4, (len(signs), 1))
    reference, lost = ref.ScInOL(), 0.0
    reference.begin([False], 1)
    training = Training(rules.Hinge(), Geometry(), Last(), None, 1, 1, 0.0)
    for x, y in zip(X, signs):
        w = reference.seen_by(x)[0, 0]
        t = y if y * w * x[0] < 1 else 0.0
        lost -= t * x[0] * w
        if t:
            reference.step(0, x, t, 1.0)
        training.learn(x[None], np.array([y]), np.ones(1), np.arange(1))
    assert training.g.wealth[1] == pytest.approx(1.0 - lost, rel=1e-9)
    assert training.g.wealth[1] > 0


# ---------------------------------------------------------------- what must leave no trace


def test_rows_without_a_step_change_nothing():
    model = learner("perceptron").partial_fit([[1.0, -1.0]], [1], classes=[0, 1])
    before = [array.copy() for array in model._training.g]
    model.partial_fit([[100.0, -50.0]], [1])
    assert model.n_updates_ == 1
    assert all(np.array_equal(a, b) for a, b in zip(before, model._training.g, strict=True))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_strange_value_enters_no_maximum(layout, strange, classes):
    X, y = noisy(classes)
    bad = X.copy()
    bad[120, 3] = strange
    model = learner().fit(LAYOUTS[layout](X), y)
    before = [array.copy() for array in model._training.g]
    for call in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=r"row 120\b|[Ii]nput"):
            call(LAYOUTS[layout](bad), y)
        assert all(np.array_equal(a, b) for a, b in zip(before, model._training.g, strict=True))


def test_the_largest_values_leave_everything_finite():
    for x in (1e300, 1e-300, 5e-324, np.finfo(float).max):
        for rule in ("logistic", "lms", "perceptron"):
            model = learner(rule, epochs=40).fit([[x, 1.0], [-x, 1.0], [x, 0.5]], [1, 0, 1])
            for array in (*model._training.g, *model._training.st, model.coef_):
                assert np.isfinite(array).all()


@pytest.mark.parametrize("stabilizer", [Last(), Averaged()])
@pytest.mark.parametrize("classes", [2, 3])
def test_scores_kept_for_calibration_are_those_of_what_is_handed_out(stabilizer, classes):
    """Not those by which it learns: they know how large the values of the row are."""
    X, y = noisy(classes, rows=40)
    X[::7] *= 1e3
    outputs, output = (1, None) if classes == 2 else (3, "softmax")
    labels = np.where(y, 1.0, -1.0) if classes == 2 else y
    training = Training(rules.Logistic(), Geometry(), stabilizer, output, 5, outputs, 1.0)
    for n in range(len(y)):
        handed = training.weights()
        training.learn(X[n : n + 1], labels[n : n + 1], np.ones(1), np.arange(1))
        kept = training.audit.scores.reshape(-1, outputs)[n]
        np.testing.assert_allclose(kept, handed[0] + X[n] @ handed[1:], rtol=1e-9, atol=1e-12)


def test_random_starts_and_kernels_are_refused():
    X, y = noisy()
    with pytest.raises(ValueError, match="init='random'"):
        learner(init="random").fit(X, y)
    with pytest.raises(ValueError, match="additive"):
        KernelClassifier(geometry="scinol").fit(X, y)


def test_the_certificate_says_that_nothing_applies():
    X, y = noisy()
    certificate = learner("perceptron", random_state=0).fit(X, y).certificate(X, y)
    assert not any(one.applies for one in certificate.bounds)


# ---------------------------------------------------------------- learning


def test_no_scaling_is_needed():
    """Where columns differ by factors of a million, one pass does as well as on standardised columns."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 8))
    y = (X @ rng.normal(size=8) > 0).astype(int)
    wild = X * 10.0 ** rng.integers(-6, 7, 8)
    model = ScInOL(epochs=1, random_state=0).fit(wild[:2000], y[:2000])
    assert model.score(wild[2000:], y[2000:]) > 0.95


def test_regression_reaches_the_target():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4000, 3)) * [1e-3, 1.0, 1e3]
    y = X @ [1e3, -2.0, 1e-3]
    model = OnlineRegressor("epsilon(0.01)", "scinol", epochs=3, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
