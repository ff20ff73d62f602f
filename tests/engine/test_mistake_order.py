"""Learning from one mistake of the whole set at a time: ``fit(X, y, order=...)``."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import cases
import onlearn
from onlearn import OnlineClassifier, OnlineRegressor, Perceptron
from onlearn.theory import bounds

AND = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0, 0, 0, 1])


def separable_rows(seed, rows=20, features=4):
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, size=(rows, features)).astype(float)
    scores = X @ rng.integers(-3, 4, size=features) + 0.5
    if (scores > 0).all() or (scores < 0).all():
        X[0], scores[0] = -X[0], -scores[0]
    return X, (scores > 0).astype(int)


def by_hand(X, y, order, limit):
    """The rows taken and the weights, intercept first, of a perceptron that takes one mistake at a time."""
    Z, signs, w, taken = np.column_stack([np.ones(len(X)), X]), 2 * y - 1, np.zeros(X.shape[1] + 1), []
    while len(taken) < limit:
        margins = signs * (Z @ w)
        left = np.flatnonzero(margins <= 0)
        if not len(left):
            break
        row = left[0] if order == "first" else left[np.argmin(margins[left])]
        w = w + signs[row] * Z[row]
        taken.append(row)
    return taken, w


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), order=st.sampled_from(["first", "worst"]), sparse=st.booleans())
def test_rows_are_taken_as_by_hand(seed, order, sparse):
    X, y = separable_rows(seed)
    if len(np.unique(y)) < 2:
        return
    model = Perceptron(epochs=None, max_epochs=200).fit(sp.csr_array(X) if sparse else X, y, order=order, trace=True)
    taken, w = by_hand(X, y, order, 200 * len(y))
    assert model.trace_.rows.tolist() == taken and model.n_mistakes_ == model.n_seen_ == len(taken)
    assert np.array_equal(np.append(model.intercept_, model.coef_), w)
    assert model.separable_ is True and model.score(X, y) == 1.0


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), order=st.sampled_from(["first", "random", "worst"]))
def test_the_perceptron_bound_holds_whichever_mistake_comes_next(seed, order):
    X, y = separable_rows(seed)
    if len(np.unique(y)) < 2:
        return
    model = Perceptron(epochs=None, random_state=seed % 1000).fit(X, y, order=order)
    certificate = model.certificate(X, y)
    assert certificate.holds() and certificate.n_seen is None
    Z = np.column_stack([np.ones(len(X)), X])
    u = np.append(model.intercept_, model.coef_)
    margin = ((2 * y - 1) * (Z @ u)).min() / np.linalg.norm(u)
    limit = bounds.perceptron(np.linalg.norm(Z, axis=1).max(), margin)
    assert model.n_mistakes_ <= limit * (1 + 1e-9)
    [bound] = [b.value for b in certificate.bounds if b.name == "perceptron"]  # that of the largest margin
    assert model.n_mistakes_ <= bound * (1 + 1e-9) and bound <= limit * (1 + 1e-9)


@pytest.mark.parametrize("order", ["first", "random", "worst"])
@pytest.mark.parametrize(
    ("geometry", "dtype"),
    [("additive", np.float64), ("additive", np.float32), ("balanced(1.3)", np.float64), ("arow", np.float64)],
)
def test_any_geometry_and_several_classes(order, geometry, dtype):
    """Every step is on a row that the hypothesis before it gets wrong; at the end there is none."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 5)).astype(dtype)
    y = np.argmax(X[:, :3], axis=1)
    model = OnlineClassifier(geometry=geometry, stabilizer="last", multiclass="true", epochs=None, random_state=3)
    trace = model.fit(X, y, order=order, trace=True).trace_
    for k, row in enumerate(trace.rows):
        scores = X[row].astype(float) @ trace.weights(k).T + trace.intercept(k)
        assert scores[y[row]] <= np.delete(scores, y[row]).max() + 1e-9
    assert model.separable_ is True and model.score(X, y) == 1.0
    assert model.predict_proba(X).shape == (40, 3)


def test_learning_stops_where_there_is_no_end():
    data = cases.data("binary", positive=False)
    X, y = np.vstack([data.X, data.X[:1]]), np.append(data.y, 1 - data.y[0])
    with pytest.warns(UserWarning, match="mistakes left after 3 x 31 steps"):
        model = Perceptron(epochs=3).fit(X, y, order="worst")
    assert model.n_seen_ == 93 and model.separable_ is None
    assert model.history_["passes"][0]["chosen_of"] == 31


def test_certificates_count_how_often_a_row_may_have_been_seen():
    """A row that is chosen may be chosen each time, so sums over passes count it as often."""
    data = cases.data("binary", positive=False)
    X, y = np.vstack([data.X, data.X[:1]]), np.append(data.y, 1 - data.y[0])
    with pytest.warns(UserWarning, match="mistakes left"):
        certificate = Perceptron(epochs=3).fit(X, y, order="worst").certificate(X, y)
    noisy = next(bound for bound in certificate.bounds if bound.name == "perceptron_noisy")
    assert certificate.holds() and noisy.value == 93  # or one for each example seen, which is less here
    other = Perceptron(epochs=None).fit(*AND, order="first").certificate(AND[0][1:], AND[1][1:])
    assert other.best is None


def test_rows_without_weight_are_never_taken():
    X, y = np.vstack([AND[0], [[1.0, 1.0]]]), np.append(AND[1], 0)
    model = Perceptron(epochs=None).fit(X, y, sample_weight=[1, 1, 1, 1, 0], order="random", trace=True)
    assert model.separable_ is True and 4 not in model.trace_.rows


def test_what_cannot_be_is_refused(tmp_path):
    for make, message in [
        (lambda: Perceptron().fit(*AND, order="last"), "order must be one of 'pass', 'first', 'random', 'worst'"),
        (lambda: Perceptron(tol=0.1).fit(*AND, order="worst"), "leave tol out"),
        (lambda: OnlineRegressor()._fit(*AND, None, order="worst"), "which regression has not"),
    ]:
        with pytest.raises(ValueError, match=message):
            make()
    model = Perceptron(epochs=None).fit(*AND, order="worst")
    model.save(tmp_path / "worst.onl")
    assert onlearn.load(tmp_path / "worst.onl").certificate(*AND).best is not None
