"""Paired tests against brute force, SciPy and simulation."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from onlearn.models import significance
from onlearn.models.significance import holm, mcnemar, mid_p, paired_bootstrap

counts = st.integers(0, 60)


def by_sum(b: int, c: int) -> float:
    """The mid-p value as it is defined: outcomes that are less likely count whole, those as likely count half."""
    n = b + c
    chance = [comb(n, k) / 2**n for k in range(n + 1)]
    far = abs(b - n / 2)
    return sum(p * (1.0 if abs(k - n / 2) > far else 0.5 if abs(k - n / 2) == far else 0.0)
               for k, p in enumerate(chance))  # fmt: skip


@given(counts, counts)
def test_mid_p_is_its_definition(b, c):
    expected = by_sum(b, c)
    if b == c:  # both tails meet: half of one outcome, and all others
        expected = 1 - comb(b + c, b) / 2 ** (b + c) / 2 if b else 1.0
    assert mid_p(b, c) == pytest.approx(expected, abs=1e-12)
    assert mid_p(b, c) == mid_p(c, b)


@given(counts, counts)
def test_mid_p_is_at_most_the_exact_one(b, c):
    exact = binomtest(b, b + c).pvalue if b + c else 1.0
    assert mid_p(b, c) <= exact + 1e-9
    if b != c:
        assert mid_p(b, c) == pytest.approx(exact - comb(b + c, b) / 2 ** (b + c), abs=1e-9)


def test_mid_p_of_many_rows():
    assert mid_p(500_000, 502_000) == pytest.approx(binomtest(500_000, 1_002_000).pvalue, rel=0.01)
    assert 0 <= mid_p(10, 1_000_000) < 1e-300


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=200))
def test_mcnemar_of_rows(pairs):
    first, second = np.array(pairs).T
    found, swapped = mcnemar(first, second), mcnemar(second, first)
    assert found.difference == pytest.approx(first.mean() - second.mean())
    assert found.p == swapped.p and found.low == pytest.approx(-swapped.high)
    assert -1 <= found.low <= found.high <= 1
    if len(pairs) > 50:
        assert found.low - 0.02 <= found.difference <= found.high + 0.02


def test_equal_predictions_show_nothing():
    right = np.array([True, False] * 10)
    found = mcnemar(right, right)
    assert found.difference == 0 and found.p == 1 and found.low < 0 < found.high


def test_mcnemar_is_right_as_often_as_it_says():
    """Two classifiers that are equally good are told apart in no more than 5 % of trials, about."""
    rng = np.random.default_rng(1)
    told, covered = 0, 0
    for _ in range(1000):
        easy = rng.random(300) < 0.7
        first, second = easy | (rng.random(300) < 0.3), easy | (rng.random(300) < 0.3)
        found = mcnemar(first, second)
        told += found.p < 0.05
        covered += found.low <= 0 <= found.high
    assert told <= 65 and covered >= 935


def test_bootstrap_by_brute_force(monkeypatch):
    """All samples of four rows, each as likely as the others."""
    monkeypatch.setattr(significance, "RESAMPLES", 20_000)
    losses = np.array([0.1, 0.4, 0.2, 0.9])
    other = np.array([0.3, 0.2, 0.9, 1.4])
    means = np.sort([np.mean((other - losses)[list(rows)]) for rows in product(range(4), repeat=4)])
    found = paired_bootstrap(losses, other)
    assert found.difference == pytest.approx((other - losses).mean())
    for edge, part in ((found.low, 0.025), (found.high, 0.975)):  # a quantile may be one of several equal means
        assert np.mean(means < edge - 1e-12) - 0.01 <= part <= np.mean(means <= edge + 1e-12) + 0.01
    assert found.p == pytest.approx(2 * np.mean(means <= 0), abs=0.01)


@pytest.mark.parametrize("rows", [200, 25_000])
def test_bootstrap_covers_what_it_says(rows, monkeypatch):
    """Of the intervals of simulated pairs, about 95 % hold the true difference; also if rows are drawn in groups."""
    monkeypatch.setattr(significance, "GROUPS", 1000)
    monkeypatch.setattr(significance, "RESAMPLES", 300)
    rng = np.random.default_rng(0)
    covered = 0
    trials = 300
    for _ in range(trials):
        shared = rng.exponential(1.0, rows)
        found = paired_bootstrap(shared + rng.exponential(0.5, rows), shared + rng.exponential(0.6, rows))
        covered += found.low <= 0.1 <= found.high
    assert 0.9 * trials <= covered <= 0.985 * trials


def test_bootstrap_is_the_same_by_seed():
    rng = np.random.default_rng(0)
    a, b = rng.random(100), rng.random(100)
    assert paired_bootstrap(a, b, 3) == paired_bootstrap(a, b, 3)
    assert paired_bootstrap(a, a).p == 1.0 and paired_bootstrap(a[:0], b[:0]).p == 1.0


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm(values):
    adjusted = holm(values)
    order = np.argsort(values, kind="stable")
    by_rule = [max([min(1.0, (len(values) - k) * values[order[k]]) for k in range(place + 1)])
               for place in range(len(values))]  # fmt: skip
    assert [adjusted[n] for n in order] == pytest.approx(by_rule)
    assert all(after >= before for before, after in zip(values, adjusted))
