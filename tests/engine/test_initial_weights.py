"""A start of one's own: ``fit(X, y, coef_init=..., intercept_init=...)``."""

from __future__ import annotations

import numpy as np
import pytest

import cases
import onlearn
import reference as ref
from onlearn import OnlineClassifier, OnlineRegressor, Perceptron

AND = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0, 0, 0, 1])


@pytest.mark.parametrize("rule", ["perceptron", "pa1(0.2)", "logistic"])
def test_learning_from_a_start_is_that_of_the_reference(rule):
    data, rng = cases.data("multiclass", positive=False), np.random.default_rng(0)
    start = rng.normal(size=(cases.FEATURES + 1, cases.CLASSES))
    trail = ref.learn(
        cases.RULES[rule], ref.Additive(0.1), "one-vs-all", data.X, data.y, outputs=3, epochs=2, bias=2.0, start=start
    )
    for stabilizer in ("last", "averaged"):
        model = OnlineClassifier(
            rule, "additive(0.1)", stabilizer, "one-vs-all", shuffle=False, epochs=2, intercept_scaling=2.0
        ).fit(data.X, data.y, coef_init=start[1:].T, intercept_init=2.0 * start[0])
        coef, intercept = trail.split(ref.STABILIZERS[stabilizer](trail))
        np.testing.assert_allclose(model.coef_, coef, atol=1e-12)
        np.testing.assert_allclose(model.intercept_, intercept, atol=1e-12)


@pytest.mark.parametrize(
    "geometry",
    ["additive", "additive(l2=0.1)", "adagrad", "fading_adagrad", "arow", "winnow(1.5)", "balanced(1.5)",
     "exponentiated(0.4)", "ftrl(0.3)", "ftrl(0.3, 1.0, l1=0.1, l2=0.2)"],
)  # fmt: skip
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.filterwarnings("ignore:neither the features nor the weights")
def test_every_geometry_begins_where_it_is_told(geometry, fit_intercept):
    data = cases.data("binary", positive=True)
    coef = np.arange(1.0, cases.FEATURES + 1)
    constant = 0.5 if fit_intercept else 0.0
    if geometry.startswith("exponentiated"):
        coef = coef / (coef.sum() + constant)
        constant = 1 - coef.sum() if fit_intercept else 0.0
    threshold = cases.FEATURES if geometry.startswith("winnow") else 0.0
    model = OnlineClassifier(geometry=geometry, fit_intercept=fit_intercept, shuffle=False, epochs=1)
    trace = model.fit(data.X, data.y, coef_init=coef, intercept_init=[constant - threshold], trace=True).trace_
    np.testing.assert_allclose(trace.weights(0), coef, rtol=1e-14)
    assert trace.intercept(0) == pytest.approx(constant - threshold, rel=1e-12)
    # and the first step is as long as from there
    before, after = trace.weights(0), trace.weights(1)
    x, sign = data.X[trace.rows[0]], 2 * data.y[trace.rows[0]] - 1
    if geometry == "winnow(1.5)":
        np.testing.assert_allclose(after, before * 1.5 ** (sign * x))
    if geometry == "balanced(1.5)":
        up = (before + np.sqrt(before**2 + 4)) / 2 * 1.5 ** (sign * x)
        np.testing.assert_allclose(after, up - 1 / up)
    if geometry == "exponentiated(0.4)":
        raw = before * np.exp(0.4 * sign * x)
        np.testing.assert_allclose(after, raw / (raw.sum() + constant * np.exp(0.4 * sign)))


def test_a_start_goes_on_where_another_learner_ended():
    data = cases.data("binary", positive=False)
    first = Perceptron(epochs=1, shuffle=False).fit(data.X, data.y)
    second = Perceptron(epochs=1, shuffle=False).fit(
        data.X, data.y, coef_init=first.coef_, intercept_init=first.intercept_
    )
    both = Perceptron(epochs=2, shuffle=False).fit(data.X, data.y)
    assert np.array_equal(second.coef_, both.coef_) and np.array_equal(second.intercept_, both.intercept_)
    grown = OnlineClassifier(stabilizer="last", grow=True, epochs=1).fit(*AND, coef_init=[1, 2], trace=True)
    assert grown.trace_.weights(0).tolist() == [1, 2]
    numbers = OnlineRegressor(epochs=50).fit(AND[0], AND[1], coef_init=[1, 2], intercept_init=3.0, trace=True)
    assert numbers.trace_.weights(0).tolist() == [1, 2] and numbers.trace_.intercept(0) == 3.0


def test_no_theorem_is_about_such_a_start(tmp_path):
    assert Perceptron(epochs=None, random_state=0).fit(*AND).certificate(*AND).best is not None
    model = Perceptron(epochs=None, random_state=0).fit(*AND, coef_init=[1, 1])
    model.save(tmp_path / "own.onl")
    for one in (model, onlearn.load(tmp_path / "own.onl")):
        certificate = one.certificate(*AND)
        assert certificate.best is None and "begin at the start" in certificate.bounds[0].why
    model.fit(*AND)
    assert model.certificate(*AND).best is not None


@pytest.mark.parametrize(
    ("model", "start", "message"),
    [
        (Perceptron(), dict(coef_init=[1.0]), r"coef_init has the shape \(1,\), but must have \(1, 2\) or \(2,\)"),
        (Perceptron(), dict(coef_init=[1.0, np.nan]), "coef_init must be finite"),
        (Perceptron(), dict(coef_init="ab"), "coef_init must hold numbers"),
        (Perceptron(), dict(intercept_init=[1.0, 2.0]), r"intercept_init has the shape \(2,\)"),
        (Perceptron(fit_intercept=False), dict(intercept_init=1.0), "without an intercept"),
        (onlearn.Winnow(), dict(coef_init=[0.0, 1.0]), "positive weights"),
        (onlearn.NormalizedWinnow(), dict(coef_init=[-1.0, 1.0]), "not negative"),
        (onlearn.NormalizedWinnow(), dict(coef_init=[0.0, 0.0]), "sum above 0"),
        (onlearn.BalancedWinnow(), dict(coef_init=[1e200, 0.0]), "balanced begins at weights from"),
        (onlearn.ScInOL(), dict(coef_init=[1.0, 1.0]), "cannot begin at given weights"),
        (OnlineClassifier(geometry="ftrl(beta=0)"), dict(coef_init=[1.0, 1.0]), "beta=0"),
        (OnlineClassifier(geometry="winnow", grow=True), dict(coef_init=[1.0, 1.0]), "grow=True"),
    ],
)
def test_what_cannot_be_is_refused(model, start, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*AND, **start)


def test_a_learner_that_goes_on_has_no_start():
    model = Perceptron(warm_start=True, epochs=1).fit(*AND, coef_init=[1, 1])
    with pytest.raises(ValueError, match="warm_start goes on"):
        model.fit(*AND, coef_init=[1, 1])
