"""K-fold cross-validation against scikit-learn's and by its definition."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

import onlearn
from onlearn.tune import cross_validate
from onlearn.tune.cross_validation import corrected_interval, fold_numbers, splits_of, take_rows


@given(st.lists(st.integers(0, 4), min_size=2, max_size=80), st.integers(2, 8), st.integers(0, 9))
def test_folds_are_a_stratified_partition(labels, folds, seed):
    if folds > len(labels):
        with pytest.raises(ValueError, match="folds"):
            fold_numbers(len(labels), folds, labels, seed)
        return
    numbers = fold_numbers(len(labels), folds, labels, seed)
    sizes = np.bincount(numbers, minlength=folds)
    assert sizes.max() - sizes.min() <= 1 and sizes.min() >= 1
    for label in set(labels):
        counts = np.bincount(numbers[np.array(labels) == label], minlength=folds)
        assert counts.max() - counts.min() <= 1
    tested = np.concatenate([test for _, test in splits_of(numbers)])
    assert sorted(tested.tolist()) == list(range(len(labels)))
    assert all(not set(train) & set(test) for train, test in splits_of(numbers))
    assert np.array_equal(numbers, fold_numbers(len(labels), folds, labels, seed))


def test_seeds_give_other_folds():
    assert not np.array_equal(fold_numbers(50, 5, seed=1), fold_numbers(50, 5, seed=2))


@pytest.mark.parametrize("folds", [1, 0, 2.5, True, "5"])
def test_folds_that_cannot_be(folds):
    with pytest.raises(ValueError, match="folds must be"):
        fold_numbers(10, folds)


def test_the_corrected_interval_is_wider():
    scores = np.random.default_rng(0).normal(0.9, 0.01, 10)
    from scipy.stats import t

    plain = t.interval(0.95, 9, scores.mean(), scores.std(ddof=1) / np.sqrt(10))
    found = corrected_interval(scores, 1 / 9)
    assert found.high - found.low == pytest.approx((plain[1] - plain[0]) * np.sqrt(1 + 10 / 9))
    assert corrected_interval([0.5, 0.5, 0.5], 0.5)[:3] == (0.5, 0.5, 0.5)
    assert np.isnan(corrected_interval([0.5], 0.5).low)


def test_the_corrected_test_keeps_its_level():
    """Differences of folds that share a part of their noise, as training sets do: 5 % are taken for real, about."""
    rng, told = np.random.default_rng(0), 0
    for _ in range(1000):
        shared = rng.normal(0, 0.5)  # correlation 1/5, as the correction for five folds assumes
        told += corrected_interval(shared + rng.normal(0, 1, 5), 1 / 4).p < 0.05
    assert 20 <= told <= 80


@pytest.mark.parametrize("form", ["dense", "sparse", "frame", "list"])
def test_every_kind_of_rows(form):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    if form == "sparse":
        X = sp.csr_matrix(X)
    elif form == "frame":
        import pandas as pd

        X, y = pd.DataFrame(X, columns=["a", "b", "c"]), pd.Series(y)
    elif form == "list":
        X, y = X.tolist(), y.tolist()
    found = cross_validate(onlearn.AROW(random_state=0), X, y, folds=3)
    assert len(found.scores) == 3 and found.mean == pytest.approx(np.mean(found.scores)) and found.mean > 0.85
    assert "Nadeau & Bengio" in str(found) and found.to_dict()["folds"] == 3


def test_rows_of_arrow_tables():
    table = pa.table({"a": [1, 2, 3]})
    assert take_rows(table, np.array([2, 0])).to_pydict() == {"a": [3, 1]}


def test_against_folds_by_hand():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=60)
    numbers = fold_numbers(60, 4, seed=7)
    by_hand = [Ridge().fit(X[numbers != k], y[numbers != k]).score(X[numbers == k], y[numbers == k]) for k in range(4)]
    assert cross_validate(Ridge(), X, y, folds=4, random_state=7).scores == pytest.approx(by_hand)
    repeated = cross_validate(Ridge(), X, y, folds=4, repeats=3, scoring="neg_mean_squared_error", random_state=7)
    assert len(repeated.scores) == 12 and repeated.mean < 0 and "3 times" in str(repeated)


def test_sequences():
    X = [["the", "dog", "runs"], ["a", "cat", "sleeps"]] * 6
    y = [["D", "N", "V"]] * 12
    found = cross_validate(onlearn.StructuredPerceptron(random_state=0), X, y, folds=3)
    assert found.mean == 1.0


def test_what_cannot_be():
    X, y = np.zeros((10, 2)), np.arange(10) % 2
    for wrong, why in ((dict(level=1.5), "level"), (dict(repeats=0), "repeats"), (dict(folds=11), "11 folds")):
        with pytest.raises(ValueError, match=why):
            cross_validate(onlearn.AROW(), X, y, **wrong)
    with pytest.raises(ValueError, match="10 rows"):
        cross_validate(onlearn.AROW(), X, y[:5])
