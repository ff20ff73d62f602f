"""Numbers that are names, amounts and skewed counts are told by what they do."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlearn.features import guess_roles
from onlearn.features import value_effects as ve

ROWS = 6000


def labels(rng, score):
    """Classes drawn by a logistic model."""
    score = (score - score.mean()) / (score.std() or 1.0)
    return (rng.random(len(score)) < 1 / (1 + np.exp(-1.5 * score))).astype(np.int64)


def role(values, codes):
    return guess_roles(pa.table({"x": values}), ve.indicators(np.asarray(codes)))["x"]


@given(
    st.lists(st.tuples(st.integers(0, 6), st.floats(-3, 3)), min_size=ve.FEWEST, max_size=150),
    st.sampled_from(ve.PRIORS),
)
def test_the_error_of_values_leaves_each_row_out(pairs, prior):
    values, t = np.array([v for v, _ in pairs], float), np.array([y for _, y in pairs])
    _, inverse = np.unique(values, return_inverse=True)
    counts = np.bincount(inverse).astype(float)
    sums = np.bincount(inverse, t)[:, None]
    plain = 0.0
    for i in range(len(t)):
        others = [t[j] for j in range(len(t)) if j != i and values[j] == values[i]]
        plain += (t[i] - (sum(others) + prior * t.mean()) / (len(others) + prior)) ** 2
    found = ve._left_out_error(inverse, counts, sums, t[:, None], np.array([t.mean()]), prior)
    assert found == pytest.approx(plain, rel=1e-9, abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 9), st.floats(-3, 3)), min_size=10, max_size=60), st.sampled_from([1, 3]))
def test_the_error_of_neighbours_leaves_the_value_out(pairs, size):
    values, t = np.array([v for v, _ in pairs], float), np.array([y for _, y in pairs])
    _, inverse = np.unique(values, return_inverse=True)
    plain = 0.0
    for i in range(len(t)):
        near = [j for j in range(len(t)) if 0 < abs(inverse[j] - inverse[i]) <= size]
        rate = (t[near].sum() + ve.PRIORS[0] * t.mean()) / (len(near) + ve.PRIORS[0])
        plain += (t[i] - rate) ** 2
    counts, sums = np.bincount(inverse).astype(float), np.bincount(inverse, t)[:, None]
    found = ve._neighbour_error(counts, sums, np.array([t @ t]), np.array([t.mean()]), size)
    assert found == pytest.approx(plain, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("size", [12, 60, 400])
@pytest.mark.parametrize("gaps", [False, True])
def test_identifiers_are_categories(size, gaps):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        names = np.sort(rng.choice(10**6, size, replace=False)) if gaps else np.arange(size)
        drawn = rng.integers(0, size, ROWS)
        found = role(names[drawn], labels(rng, rng.normal(size=size)[drawn]))
        assert found.role == "categorical" or "values" in found.treatment, (
            seed,
            found,
        )  # twelve names may stand in line by chance
        assert size < 50 or found.role == "categorical", (seed, found)
        assert size < 50 or "act as names" in found.reason


@pytest.mark.parametrize(
    ("make", "effect"),
    [
        (lambda rng: rng.integers(17, 90, ROWS), lambda x: -np.abs(x - 50.0)),  # ages: a hump
        (lambda rng: rng.integers(1950, 2024, ROWS), lambda x: x),  # years
        (lambda rng: rng.integers(0, 24, ROWS), lambda x: np.sin(x / 24 * 2 * np.pi)),  # hours of the day
        (lambda rng: rng.integers(1, 6, ROWS), lambda x: np.minimum(x, 4)),  # ratings
        (lambda rng: rng.poisson(3, ROWS), lambda x: np.sqrt(x)),  # counts
        (lambda rng: np.floor(np.exp(rng.normal(4, 1.5, ROWS))), lambda x: np.log1p(x)),  # skewed counts
        (lambda rng: rng.integers(0, 10**6, ROWS), lambda x: x),  # amounts, as good as all different
    ],
)
def test_amounts_stay_numbers(make, effect):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        values = make(rng)
        assert role(values, labels(rng, effect(values).astype(float))).role == "numeric"


def test_what_has_no_effect_stays_numeric():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        found = role(rng.integers(0, 300, 3000), rng.integers(0, 3, 3000))
        assert found.role == "numeric" and not found.treatment


def test_a_bent_line_gets_weights_of_values():
    rng = np.random.default_rng(0)
    ages = rng.integers(17, 90, ROWS)
    found = role(ages, labels(rng, -np.abs(ages - 50.0)))
    assert "values" in found.treatment and "each value with a weight of its own" in found.reason
    assert not role(ages, labels(rng, ages.astype(float))).treatment


def test_numbers_are_targets_too():
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 40, 2000)
    y = rng.normal(size=40)[ids] + rng.normal(size=2000)
    assert guess_roles(pa.table({"x": ids}), y[:, None])["x"].role == "categorical"
    assert guess_roles(pa.table({"x": ids}))["x"].role == "numeric"  # without targets nothing tells


def test_missing_values_are_left_out():
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 60, ROWS)
    y = labels(rng, rng.normal(size=60)[ids])
    gone = rng.random(ROWS) < 0.3
    values = pa.array(ids.astype(float), mask=gone)
    assert guess_roles(pa.table({"x": values}), ve.indicators(y))["x"].role == "categorical"


def test_logarithms_of_skewed_numbers():
    rng = np.random.default_rng(0)
    skewed = np.floor(np.exp(rng.normal(3, 1.5, 1000)))
    assert guess_roles(pa.table({"x": skewed}))["x"].treatment == ("log",)
    for values in (rng.normal(size=1000), -skewed, rng.integers(0, 2, 1000), rng.integers(0, 50, 1000)):
        assert not guess_roles(pa.table({"x": values}))["x"].treatment


def test_indicators_are_of_the_most_common_classes():
    assert ve.indicators(np.array([0, 1, 1, 0, 1])).tolist() == [[0], [1], [1], [0], [1]]
    codes = np.repeat(np.arange(12), np.arange(12, 0, -1))
    assert ve.indicators(codes).shape == (len(codes), ve.CLASSES)
    assert (ve.indicators(codes).sum(axis=0) == np.arange(12, 4, -1)).all()
