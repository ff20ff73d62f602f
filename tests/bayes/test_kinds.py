"""Counts, moments and the hypotheses made of them, against plain loops."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes import plain
from onlearn.bayes import kinds
from onlearn.bayes.counts import Counts, Moments
from onlearn.engine.csr import CSR


def problem(seed: int, rows: int, columns: int, classes: int, whole: bool = True):
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.7, (rows, columns)) * 1.0 if whole else rng.normal(size=(rows, columns)) * 3 + 1
    y = np.concatenate([np.arange(classes), rng.integers(0, classes, rows - classes)])
    return X, y, rng.choice([0.5, 1.0, 2.0], rows), rng.poisson(0.7, (7, columns)) * 1.0


problems = st.builds(
    problem, st.integers(0, 10**6), st.integers(6, 30), st.integers(1, 9), st.integers(2, 5), st.booleans()
)


def scored(made, X, classes):
    out = np.zeros((X.shape[0], classes))
    made.add_scores(X, out)
    return out


@pytest.mark.parametrize("sparse", [False, True])
@settings(max_examples=30, deadline=None)
@given(problems, st.sampled_from([1e-3, 0.5, 1.0]), st.integers(0, 30))
def test_discrete_kinds_are_those_of_the_textbook(sparse, made, alpha, cut):
    X, y, weight, T = made
    X, classes = np.abs(X), int(y.max()) + 1
    form = CSR.of if sparse else np.asarray
    counts, presence = Counts(classes, X.shape[1]), Counts(classes, X.shape[1])
    for part in (slice(0, cut), slice(cut, None)):
        rows = np.arange(len(y[part]))
        counts.add(form(X[part]), y[part], weight[part], rows)
        presence.add_presence(form(X[part]), y[part], weight[part], rows, 0.5)
    total, T = plain.class_weights(y, weight, classes), np.abs(T)
    for found, wanted in (
        (kinds.multinomial(counts, alpha), plain.multinomial(X, y, weight, classes, alpha, T)),
        (kinds.complement(counts, alpha, False), plain.complement(X, y, weight, classes, alpha, T)),
        (kinds.complement(counts, alpha, True), plain.complement(X, y, weight, classes, alpha, T, True)),
        (kinds.bernoulli(presence, total, alpha, 0.5), plain.bernoulli(X, y, weight, classes, alpha, T, 0.5)),
    ):
        np.testing.assert_allclose(scored(found, form(T), classes), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
@settings(max_examples=30, deadline=None)
@given(problems, st.integers(0, 30))
def test_gaussian_is_that_of_the_textbook(sparse, made, cut):
    X, y, weight, T = made
    classes = int(y.max()) + 1
    form = CSR.of if sparse else np.asarray
    state = Moments(classes, X.shape[1])
    for part in (slice(0, cut), slice(cut, None)):
        state.add(form(X[part]), y[part], weight[part], np.arange(len(y[part])))
    found = kinds.gaussian(state, plain.class_weights(y, weight, classes), 0.1, skips=np.zeros(X.shape[1], bool))
    wanted = plain.gaussian(X, y, weight, classes, 0.1, T)
    if np.ptp(X):
        np.testing.assert_allclose(scored(found, form(T), classes), wanted, rtol=1e-7, atol=1e-7)


@settings(max_examples=30, deadline=None)
@given(problems, st.lists(st.integers(0, 30), max_size=4), st.booleans())
def test_cuts_change_no_bit(made, cuts, sparse):
    X, y, weight, _ = made
    weight, classes = weight * 0.3, int(y.max()) + 1
    form = CSR.of if sparse else np.asarray
    edges = [0, *sorted(min(c, len(y)) for c in cuts), len(y)]
    states = []
    for edge in ([0, len(y)], edges):
        counts, moments = Counts(classes, X.shape[1]), Moments(classes, X.shape[1])
        for a, b in pairwise(edge):
            rows = np.arange(b - a)
            counts.add(form(np.abs(X[a:b]) * 0.1), y[a:b], weight[a:b], rows)
            moments.add(form(X[a:b]), y[a:b], weight[a:b], rows)
        states.append({**counts.pack(), **moments.pack()})
    for name, array in states[0].items():
        assert array.tobytes() == states[1][name].tobytes(), name


def test_groups_have_totals_of_their_own():
    X, y, weight, T = problem(3, 40, 6, 3)
    groups = np.array([0, 1, 1, 0, 2, 2], np.int32)
    state = Counts(3, 6, groups, 3)
    state.add(CSR.of(X), y, weight, np.arange(40))
    found = scored(kinds.multinomial(state, 0.5), T, 3)
    np.testing.assert_allclose(found, plain.multinomial(X, y, weight, 3, 0.5, T, groups), rtol=1e-9)


def test_threads_change_no_bit(monkeypatch):
    rng = np.random.default_rng(0)
    X, y, weight = rng.random((4000, 60)), rng.integers(0, 7, 4000), rng.random(4000)
    found = []
    for count in (1, 2, 5):
        monkeypatch.setattr("onlearn.bayes.counts.cores", lambda count=count: count)
        state = Counts(7, 60)
        state.add(X, y, weight, np.arange(4000))
        found.append(state.pack()["counts"].tobytes())
    assert len(set(found)) == 1


def test_missing_values_say_nothing():
    X, y = np.array([[1.0, 5.0], [2.0, 0.0], [8.0, 6.0], [9.0, 0.0]]), np.array([0, 0, 1, 1])
    state, heavy = Moments(2, 2), np.array([2.0, 2.0])
    state.add(CSR.of(X), y, np.ones(4), np.arange(4))
    made = kinds.gaussian(state, heavy, 1e-9, skips=np.ones(2, bool))
    full, lacking = scored(made, CSR.of(np.array([[2.0, 0.0]])), 2), scored(made, CSR.of(np.zeros((1, 2))), 2)
    assert full[0, 0] > full[0, 1] and lacking.tolist() == [[0.0, 0.0]]


def test_constant_columns_and_huge_scales():
    y = np.array([0, 0, 1, 1])
    for scale in (1e-150, 1e-9, 1.0, 1e9, 1e140):
        X = np.array([[1.0, 3.0], [1.1, 3.0], [2.0, 3.0], [2.1, 3.0]]) * scale
        state = Moments(2, 2)
        state.add(X, y, np.ones(4), np.arange(4))
        made = kinds.gaussian(state, np.array([2.0, 2.0]), 1e-9, skips=np.zeros(2, bool))
        assert np.isfinite(made.rate).all() and np.isfinite(made.mean).all()
        assert np.argmax(scored(made, X, 2), axis=1).tolist() == y.tolist(), scale
    state = Moments(2, 1)
    state.add(np.ones((4, 1)), y, np.ones(4), np.arange(4))
    made = scored(kinds.gaussian(state, np.array([2.0, 2.0]), 1e-9, np.zeros(1, bool)), np.ones((1, 1)), 2)
    assert made[0, 0] == made[0, 1] and np.isfinite(made).all()
