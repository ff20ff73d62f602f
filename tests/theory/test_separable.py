"""Linear separability: the proof of every answer is checked, on easy, planted, degenerate and bad data."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from onlearn.theory import separable, simplex_margin

CUBE = np.array(list(itertools.product([0, 1], repeat=2)))


def check(X, y, answer, fit_intercept=True):
    """The proof that comes with the answer is one."""
    dense = np.asarray(X.todense() if sp.issparse(X) else X, dtype=float)
    signs = np.where(np.asarray(y) == answer.classes[1], 1.0, -1.0)
    if answer:
        assert answer.multipliers is None
        assert fit_intercept or answer.intercept == 0.0
        assert (signs * (dense @ answer.weights + answer.intercept) > 0).all()
    else:
        assert answer.weights is None
        lam = answer.multipliers
        assert (lam >= 0).all()
        if fit_intercept:
            assert lam[signs > 0].sum() == pytest.approx(1.0)
            assert lam[signs < 0].sum() == pytest.approx(1.0)
        else:
            assert lam.sum() == pytest.approx(1.0)
        assert np.abs((lam * signs) @ dense).max() <= 1e-7 * max(1e-300, np.abs(dense).max())
    return bool(answer)


def test_of_the_sixteen_functions_of_two_bits_all_but_xor_and_its_negation():
    not_separable = []
    for y in itertools.product([0, 1], repeat=4):
        if len(set(y)) == 2 and not check(CUBE, y, separable(CUBE, y)):
            not_separable.append(y)
    assert not_separable == [(0, 1, 1, 0), (1, 0, 0, 1)]


def test_the_number_of_threshold_functions_of_three_bits_is_104():
    cube = np.array(list(itertools.product([0, 1], repeat=3)))
    some = [y for y in itertools.product([0, 1], repeat=8) if len(set(y)) == 2]
    assert sum(check(cube, y, separable(cube, y)) for y in some) + 2 == 104


def test_without_an_intercept():
    X, y = [[1.0], [2.0]], ["a", "b"]
    assert check(np.array(X), y, separable(X, y))
    assert not check(np.array(X), y, separable(X, y, fit_intercept=False), fit_intercept=False)


def test_a_zero_row_needs_an_intercept():
    X, y = np.array([[0.0], [1.0]]), [0, 1]
    assert check(X, y, separable(X, y))
    assert not check(X, y, separable(X, y, fit_intercept=False), fit_intercept=False)


def test_the_same_row_with_both_labels():
    X, y = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]), [0, 0, 1]
    assert not check(X, y, separable(X, y))


def brute_force(X, y) -> bool:
    """In the plane, exactly: if any line separates, one through two of the points does, turned a little."""
    points = [(Fraction(int(a)), Fraction(int(b))) for a, b in X]
    plus = [p for p, label in zip(points, y) if label]
    minus = [p for p, label in zip(points, y) if not label]
    # Turned a little: ties along the normal of the line are broken along the line, either way.
    differences = {(q[0] - p[0], q[1] - p[1]) for p in points for q in points if p != q}
    for dx, dy in differences:
        for turn in (1, -1):
            key = lambda p: (-dy * p[0] + dx * p[1], turn * (dx * p[0] + dy * p[1]))  # noqa: E731, B023
            if min(map(key, plus)) > max(map(key, minus)):
                return True
    return False


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.booleans()), min_size=2, max_size=9),
    st.booleans(),
)
def test_agrees_with_brute_force_in_the_plane(rows, sparse):
    y = [label for _, _, label in rows]
    if len(set(y)) < 2:
        return
    X = np.array([row[:2] for row in rows], dtype=float)
    layout = sp.csr_array(X) if sparse else X
    assert check(layout, y, separable(layout, y)) == brute_force(X, y)


@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.booleans(), st.booleans())
def test_planted_separators_and_planted_meeting_points(seed, n, sparse, fit_intercept):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, n)) * 10.0 ** rng.integers(-6, 6, n)
    u = rng.normal(size=n) / np.abs(X).max(axis=0)
    y = np.where(X @ u + (rng.normal() if fit_intercept else 0.0) > 0, 7, 3)
    if len(set(y)) < 2:
        return
    layout = sp.csr_array(X) if sparse else X
    assert check(layout, y, separable(layout, y, fit_intercept), fit_intercept)
    # The mean of some rows of one class, given to the other.
    own = X[y == 7]
    X, y = np.vstack([X, own.mean(axis=0)]), np.append(y, 3)
    layout = sp.csr_array(X) if sparse else X
    assert not check(layout, y, separable(layout, y, fit_intercept), fit_intercept)


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1.0, 1e12, 1e300])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_unit_does_not_matter(scale, sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = X @ rng.normal(size=5) > 0.1
    layout = sp.csr_array(X * scale) if sparse else X * scale
    assert check(layout, y, separable(layout, y))
    flipped = y.copy()
    flipped[np.argmax(X @ np.ones(5))] ^= True
    flipped[np.argmin(X @ np.ones(5))] ^= True
    assert not separable(layout, flipped)


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-11])
def test_a_narrow_gap(gap):
    X, y = np.array([[-1.0], [0.0], [gap], [1.0]]), [0, 0, 1, 1]
    assert check(X, y, separable(X, y))


def test_dense_data_far_from_the_origin():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, -1.0, 0.5] > 0
    shifted = X * 1e3 + 1.7e9  # seconds since 1970
    assert check(shifted, y, separable(shifted, y))


def test_a_decision_list_that_needs_weights_of_ten_thousand_million():
    n, rng = 50, np.random.default_rng(0)
    X, y = [], []
    for i in range(n):
        for tail in (
            np.zeros(n),
            np.ones(n),
            np.arange(n) % 2,
            (np.arange(n) + 1) % 2,
            rng.integers(0, 2, n),
        ):
            X.append(np.where(np.arange(n) < i, 0, np.where(np.arange(n) == i, 1, tail)))
            y.append(i % 2)
    X = np.array(X, dtype=float)
    answer = separable(X, y)
    assert check(X, y, answer)
    assert np.abs(answer.weights).max() / np.abs(answer.weights).min() > 1e9


def test_more_rows_than_the_first_program_takes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    side = X @ [1.0, 2.0, 3.0]
    y = side > 0
    X[np.abs(side) < 1e-4] *= 3.0
    assert check(X, y, separable(X, y))
    y[np.argmax(side)] = False
    assert not check(X, y, separable(X, y))


@pytest.mark.parametrize(
    ("X", "y", "says"),
    [
        (np.empty((0, 2)), [], "rows and columns"),
        (np.empty((2, 0)), [0, 1], "rows and columns"),
        ([1.0, 2.0], [0, 1], "rows and columns"),
        ([[1.0], [np.nan]], [0, 1], "row 1, column 0"),
        (sp.csr_array([[1.0, 0.0], [0.0, np.inf]]), [0, 1], "row 1, column 1"),
        ([[1.0], [2.0]], [0, 0], "holds 1"),
        ([[1.0], [2.0], [3.0]], [0, 1, 2], "holds 3"),
        ([[1.0], [2.0]], [0.0, np.nan], "NaN in row 1"),
        ([[1.0], [2.0]], [0, 1, 1], "one label for each"),
        ([["a"], ["b"]], [0, 1], "real numbers"),
    ],
)
def test_bad_input(X, y, says):
    with pytest.raises(ValueError, match=says):
        separable(X, y)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.booleans())
def test_no_other_point_of_the_simplex_has_a_larger_margin(seed, n, sparse):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(12, n)), rng.choice([-1, 1], 12)
    g, u = simplex_margin(sp.csr_array(X) if sparse else X, y)
    assert (u >= 0).all()
    assert u.sum() == pytest.approx(1.0)
    assert g == pytest.approx((y * (X @ u)).min())
    others = np.vstack([rng.dirichlet(np.full(n, 0.5), 200), np.eye(n)])
    assert ((y[:, None] * (X @ others.T)).min(axis=0) <= g + 1e-7).all()
    # The other player's weights on the rows prove it (von Neumann): checked through the transposed game.
    value, _ = simplex_margin(-(X * y[:, None]).T, np.ones(n))
    assert g == pytest.approx(-value, abs=1e-6)


def test_the_simplex_margin_of_a_disjunction():
    # k relevant features and a constant -1: u puts 2/(2k + 1) on each and 1/(2k + 1) on the constant.
    k, n = 3, 8
    X = np.array([[*row, -1] for row in itertools.product([0, 1], repeat=n)])
    y = np.where(X[:, :k].any(axis=1), 1, -1)
    g, u = simplex_margin(X, y)
    assert g == pytest.approx(1 / (2 * k + 1))
    assert u[:k] == pytest.approx(np.full(k, 2 / (2 * k + 1)))


def test_simplex_margin_takes_any_two_labels_and_scales_with_the_rows():
    X = np.array([[1.0, 0.5], [-0.5, -1.0]])
    g, _ = simplex_margin(X, ["no", "yes"][::-1])
    assert g == pytest.approx(0.75)
    assert simplex_margin(X * 1e6, [1, -1])[0] == pytest.approx(0.75e6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("X", "y", "fit_intercept", "answer"),
    [
        ([[5e-324], [0.0]], [0, 1], True, True),
        ([[5e-324], [0.0]], [0, 1], False, False),
        ([[5e-324], [1e-323], [1.5e-323]], [0, 1, 0], True, False),
        ([[5e-324, 1e308], [0.0, 1e308]], [0, 1], True, True),
        ([[2e-308], [1.0000001e-308]], [0, 1], True, True),
        ([[-1.7e308], [1.7e308], [0.0]], [0, 1, 0], True, True),
    ],
)
def test_the_smallest_and_the_largest_numbers(X, y, fit_intercept, answer):
    found = separable(X, y, fit_intercept)
    assert bool(found) is answer
    if answer:
        side = np.asarray(X) @ found.weights + found.intercept
        assert ((side > 0) == np.array(y, dtype=bool)).all()


@pytest.mark.filterwarnings("error")
def test_what_cannot_be_decided_is_one_clear_error():
    with pytest.raises(ArithmeticError, match=r"too near to each other to decide if they are separable\.$"):
        separable([[5e-324, 1e308], [0.0, 1e308]], [0, 1], fit_intercept=False)
