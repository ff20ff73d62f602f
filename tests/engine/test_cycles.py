"""Cycles of the Perceptron: ``separable_ = False`` is a proof, whatever rounding does."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import onlearn
from onlearn.engine import cycles
from onlearn.engine.cycles import count_steps, is_zero_sum
from onlearn.theory import separable

FIXED = dict(epochs=None, shuffle=False, max_epochs=100)


def verdict(X, y, model=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (model or onlearn.Perceptron(**FIXED)).fit(X, y).separable_


@pytest.mark.parametrize("kernel", [False, True])
def test_steps_lost_in_one_small_column_prove_nothing(kernel):
    X = [[0, 0, 1e5], [-200, -100, 1e-12], [200, 0, 1e-12], [200, 0, -1e-12], [-300, 200, 1e-12], [-100, -200, 1e-12]]
    y = [1, 1, 1, -1, 1, 1]
    model = onlearn.KernelPerceptron("linear", **FIXED) if kernel else onlearn.Perceptron(**FIXED)
    with pytest.warns(UserWarning, match="or steps were lost to rounding"):
        assert model.fit(X, y).separable_ is None


scales = st.sampled_from([1.0, 1e-12, 1e5, 2.0**-40, 1e-300, 3.7e9])


@given(
    X=arrays(np.float64, st.tuples(st.integers(2, 7), st.just(3)), elements=st.integers(-3, 3).map(float)),
    sizes=st.tuples(scales, scales, scales),
    target=st.tuples(*3 * [st.integers(-3, 3)]),
    layout=st.sampled_from([np.asarray, sp.csr_array]),
    kernel=st.booleans(),
)
def test_separable_rows_of_any_scale_are_never_called_inseparable(X, sizes, target, layout, kernel):
    X = X * sizes
    exact = [sum(Fraction(x) / Fraction(s) * u for x, s, u in zip(row, sizes, target)) for row in X]
    X, y = X[[s != 0 for s in exact]], np.array([s > 0 for s in exact if s != 0])
    if len(set(y.tolist())) < 2:
        return
    model = onlearn.KernelPerceptron("linear", **FIXED) if kernel else onlearn.Perceptron(**FIXED)
    assert verdict(layout(X), y, model) is not False


@given(
    X=arrays(np.float64, st.tuples(st.integers(2, 6), st.just(2)), elements=st.integers(-2, 2).map(float)),
    labels=st.integers(0, 63),
    kernel=st.sampled_from(["linear", "polynomial(1)", "polynomial(2)", None]),
)
def test_small_whole_numbers_are_decided_as_by_the_linear_program(X, labels, kernel):
    y = np.array([labels >> n & 1 for n in range(len(X))])
    if len(set(y.tolist())) < 2:
        return
    lifted = np.column_stack([X, X**2, X[:, 0] * X[:, 1]]) if kernel == "polynomial(2)" else X
    model = onlearn.KernelPerceptron(kernel, **FIXED) if kernel else onlearn.Perceptron(**FIXED)
    found = verdict(X, y, model)
    assert found in (bool(separable(lifted, y)), None)
    if kernel is None:
        assert found is not None or len(model.history_["passes"]) == 100


def test_near_examples_prove_nothing_in_the_feature_space_of_a_gaussian():
    X = np.array([[0.0], [1e-9], [1.0]])  # whose kernel values are 1, by rounding
    assert verdict(X, [0, 1, 0], onlearn.KernelPerceptron("gaussian(1)", **FIXED)) is None
    same = np.array([[0.1], [0.1], [1.0]])
    assert verdict(same, [0, 1, 0], onlearn.KernelPerceptron("gaussian(1)", **FIXED)) is False


@pytest.mark.parametrize("multiclass", ["true", "one-vs-all"])
def test_several_classes(multiclass):
    X, y = np.array([[0.1, 1.0], [0.1, 1.0], [-3.0, 0.5], [0.0, -2.0]]), [0, 1, 2, 1]
    model = onlearn.Perceptron(**FIXED, multiclass=multiclass)
    what = "data are not linearly separable:" if multiclass == "true" else "from the rest:"
    with pytest.warns(UserWarning, match=what):
        model.fit(X, y)
    assert model.separable_ is (False if multiclass == "true" else None)


def test_weighted_rows():
    X, y = np.array([[0.3, 0.1], [0.3, 0.1], [5.0, 1.0], [-1.0, 0.0]]), [0, 1, 1, 0]
    with pytest.warns(UserWarning, match="data are not linearly separable:"):
        model = onlearn.Perceptron(**FIXED).fit(X, y, sample_weight=[0.7, 0.7, 1.0, 1.0])
    assert model.separable_ is False
    assert onlearn.Perceptron(**FIXED).fit(X, y, sample_weight=[0.0, 0.7, 1.0, 1.0]).separable_ is True


def test_a_cycle_that_takes_too_long_to_run_again_proves_nothing(monkeypatch):
    monkeypatch.setattr(cycles, "LONGEST", 3)
    assert verdict([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]) is None


def test_weights_of_examples_that_were_not_kept_prove_nothing(monkeypatch):
    monkeypatch.setattr(cycles, "ROOM", 0)
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert verdict(square, [0, 1, 1, 0], onlearn.KernelPerceptron("linear", **FIXED)) is None
    assert verdict(square, [0, 1, 1, 0]) is False


floats = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(st.lists(st.tuples(st.integers(-5, 5).map(float), floats), min_size=1, max_size=8), st.booleans())
def test_the_exact_sum_against_fractions(terms, balanced):
    if balanced:
        terms = terms + [(-a, x) for a, x in terms]
    a, x = np.array([t[0] for t in terms])[:, None], np.array([t[1] for t in terms])[:, None]
    total = sum((Fraction(m) * Fraction(v) for m, v in terms), Fraction(0))
    assert is_zero_sum(a, x, 0.0) == (total == 0 and bool(a.any()))
    assert is_zero_sum(a, sp.csr_array(x), 1.0) == (total == 0 and a.sum() == 0 and bool(a.any()))


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 2.0]), st.booleans())
def test_steps_are_counted_as_the_learner_makes_them(seed, bias, sparse):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-3, 4, (12, 3)).astype(float), np.where(rng.random(12) < 0.5, 1.0, -1.0)
    y[:2] = -1.0, 1.0
    counts = count_steps(np.zeros((4, 1)), sp.csr_array(X) if sparse else X, y, np.ones(12), bias, 1.0, 3)
    made = dict(fit_intercept=bias > 0, intercept_scaling=bias or 1.0, shuffle=False, epochs=3)
    model = onlearn.Perceptron(**made)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    if len(model.history_["passes"]) == 3:
        assert np.abs(counts).sum() == model.n_mistakes_
        np.testing.assert_array_equal(counts[:, 0] @ X, model.coef_[0])
