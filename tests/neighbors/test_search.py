"""The search for neighbours, against distances written out pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlearn import kernels
from onlearn.engine.csr import CSR
from onlearn.neighbors.columns import Columns, spread_of
from onlearn.neighbors.distances import METRICS, Induced, make_index
from onlearn.neighbors.search import nearest


def brute_force(metric, Z, X, columns, scale):
    """Distances of all pairs: the definitions, one pair at a time."""
    X, Z = X.astype(np.float64), Z.astype(np.float64)
    deviations = np.ones(Z.shape[1])
    means = np.zeros(Z.shape[1])
    if scale:
        for j in range(Z.shape[1]):
            number = columns.numbers[j] and not set(Z[:, j]) <= {0.0, 1.0}
            if number and Z[:, j].min() < Z[:, j].max():
                means[j], deviations[j] = Z[:, j].mean(), Z[:, j].std()
    w = columns.weights

    def distance(x, z):
        if metric == "hamming":
            return (w * (x != z)).sum() / w.sum()
        if metric == "manhattan":
            return (w * abs(x - z) / deviations).sum()
        if metric == "cosine":
            x, z = (np.sqrt(w) * (row - means) / deviations for row in (x, z))
            length = np.linalg.norm(x) * np.linalg.norm(z)
            return 1 - x @ z / length if length else 1.0
        same = columns.categories
        return np.sqrt((w * np.where(same, x != z, ((x - z) / deviations) ** 2)).sum())

    return np.array([[distance(x, z) for z in Z] for x in X])


def check(found, distances, k, skip=None):
    """Each list has the k smallest distances, sorted; at equal distances lower numbers first."""
    distances = distances.copy()
    if skip is not None:
        distances[np.arange(len(distances)), skip] = np.inf
    values, numbers = found
    wanted = np.sort(distances, axis=1)[:, :k]
    scale = 1 + distances[np.isfinite(distances)].max(initial=0)
    np.testing.assert_allclose(values, wanted, rtol=1e-9, atol=1e-7 * scale)
    np.testing.assert_allclose(np.take_along_axis(distances, numbers, 1), wanted, rtol=1e-9, atol=1e-7 * scale)
    equal = values[:, 1:] == values[:, :-1]
    assert (values[:, 1:] >= values[:, :-1]).all()
    assert (numbers[:, 1:] > numbers[:, :-1])[equal].all()


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, q, d = draw(st.integers(1, 40)), draw(st.integers(1, 8)), draw(st.integers(1, 7))
    whole = draw(st.booleans())
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    Z, X = (rng.integers(0, 3, (m, d)) if whole else rng.normal(size=(m, d)) for m in (n, q))
    if draw(st.booleans()):
        Z, X = (rows * rng.integers(0, 2, rows.shape) for rows in (Z, X))
    offset = draw(st.sampled_from([0.0, 1e3]))
    weights = rng.integers(1, 4, d).astype(float) if draw(st.booleans()) else np.ones(d)
    categories = [j for j in range(d) if rng.random() < 0.4] if whole else []
    X[: q // 2] = Z[rng.integers(0, n, q // 2)]  # some queries are rows
    return (Z + offset).astype(dtype), (X + offset).astype(dtype), weights, categories, draw(st.integers(1, n))


@settings(deadline=None, max_examples=60)
@given(problems(), st.sampled_from(METRICS), st.booleans(), st.booleans())
def test_nearest_are_those_of_brute_force(problem, metric, scale, sparse):
    Z, X, weights, categories, k = problem
    sparse = sparse and metric != "mixed" and not (metric == "cosine" and scale)
    columns = Columns.of(Z.shape[1], categories if metric == "mixed" else (), weights)
    rows, queries = (CSR.of(Z), CSR.of(X)) if sparse else (Z, X)
    index = make_index(metric, rows, columns, scale)
    check(nearest(index, queries, k), brute_force(metric, Z, X, columns, scale), k)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("sparse", [False, True])
def test_many_rows_in_many_tiles(metric, sparse):
    rng = np.random.default_rng(1)
    Z, X = rng.integers(0, 4, (5000, 12)) * (rng.random((5000, 12)) < 0.2), rng.integers(0, 4, (70, 12))
    Z, X = Z.astype(float), X.astype(float)
    columns = Columns.of(12, [3, 4] if metric == "mixed" and not sparse else ())
    scale = metric != "cosine" or not sparse
    index = make_index(metric, CSR.of(Z) if sparse else Z, columns, scale)
    check(nearest(index, CSR.of(X) if sparse else X, 25), brute_force(metric, Z, X, columns, scale), 25)


@pytest.mark.parametrize("metric", METRICS)
def test_rows_that_are_passed_over(metric):
    X = np.random.default_rng(2).integers(0, 3, (60, 4)).astype(float)
    columns = Columns.of(4)
    found = nearest(make_index(metric, X, columns, True), X, 59, np.arange(60))
    check(found, brute_force(metric, X, X, columns, True), 59, np.arange(60))
    assert not (found[1] == np.arange(60)[:, None]).any()


def test_too_few_rows_leave_room():
    values, numbers = nearest(make_index("euclidean", np.eye(2), Columns.of(2), False), np.eye(2), 2, np.arange(2))
    assert values[:, 1].tolist() == [np.inf] * 2 and numbers.tolist() == [[1, -1], [0, -1]]


def test_equal_rows_come_in_order_of_their_numbers():
    Z = np.tile(np.random.default_rng(0).normal(size=(3, 5)), (2000, 1))
    for metric in METRICS:
        _, numbers = nearest(make_index(metric, Z, Columns.of(5), True), Z[:3], 4)
        assert numbers.tolist() == [[n, n + 3, n + 6, n + 9] for n in range(3)]


@pytest.mark.parametrize("size", [1e-200, 1e-20, 1.0, 1e20, 1e200])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_sizes_of_numbers_do_not_matter(size, scale, sparse):
    rng = np.random.default_rng(3)
    Z, X = rng.normal(size=(300, 3)), rng.normal(size=(20, 3))
    wide = np.zeros((300, 9)), np.zeros((20, 9))
    wide[0][:, ::4], wide[1][:, ::4] = Z, X
    for metric in ("euclidean", "manhattan", "cosine"):
        rows, queries = map(CSR.of, (wide[0] * size, wide[1] * size)) if sparse else (Z * size, X * size)
        index = make_index(metric, rows, Columns.of(rows.shape[1]), scale)
        usual = make_index(metric, CSR.of(wide[0]) if sparse else Z, Columns.of(rows.shape[1]), scale)
        np.testing.assert_array_equal(
            nearest(index, queries, 5)[1], nearest(usual, CSR.of(wide[1]) if sparse else X, 5)[1]
        )


def test_large_offsets_and_far_queries():
    rng = np.random.default_rng(4)
    Z = 1.6e9 + rng.normal(size=(500, 2))
    X = 1.6e9 + rng.normal(size=(50, 2))
    index = make_index("euclidean", Z, Columns.of(2), False)
    check(nearest(index, X, 3), brute_force("euclidean", Z, X, Columns.of(2), False), 3)
    far = np.array([[1e300, 0.0], [-1e300, 1.0], [0.0, 1e25]])
    values, numbers = nearest(make_index("euclidean", rng.normal(size=(9, 2)), Columns.of(2), False), far, 2)
    np.testing.assert_allclose(values, [[1e300] * 2, [1e300] * 2, [1e25] * 2])
    assert (numbers >= 0).all()


def test_numbers_other_than_0_and_1_differ_from_bits():
    Z = np.random.default_rng(5).integers(0, 2, (100, 70)).astype(float)
    X = np.where(np.random.default_rng(6).random((7, 70)) < 0.1, 0.5, Z[:7])
    for rows, queries in ((Z, X), (CSR.of(Z), CSR.of(X))):
        check(nearest(make_index("hamming", rows, Columns.of(70), True), queries, 9), (X[:, None] != Z).mean(axis=2), 9)


@pytest.mark.parametrize("spelling", ["linear", "polynomial(2)", "gaussian(0.7)", "normalize(polynomial(3)) + linear"])
@pytest.mark.parametrize("sparse", [False, True])
def test_distances_in_the_feature_space_of_a_kernel(spelling, sparse):
    rng, kernel = np.random.default_rng(7), kernels.get(spelling)
    Z, X = rng.integers(0, 3, (50, 3)).astype(float), rng.integers(0, 3, (9, 3)).astype(float)
    squares = kernel.diag(X)[:, None] - 2 * kernel(X, Z) + kernel.diag(Z)
    index = Induced(CSR.of(Z) if sparse else Z, kernel)
    check(nearest(index, CSR.of(X) if sparse else X, 6), np.sqrt(np.maximum(squares, 0)), 6)
    assert (nearest(Induced(Z, kernel), Z, 1)[0] == 0).all()


def test_strings_and_trees_have_neighbours():
    texts = ["abab", "abba", "cdcd", "abab", "dcdc"]
    _, numbers = nearest(Induced(texts, kernels.get("normalize(substrings(1, 3))")), ["ababa", "cdcdc"], 2)
    assert numbers.tolist() == [[0, 3], [2, 4]]
    trees = ["(S (A a) (B b))", "(S (A a) (B c))", "(T (C c))"]
    values, numbers = nearest(Induced(trees, kernels.get("normalize(trees)")), ["(S (A a) (B b))"], 3)
    assert numbers[0].tolist() == [0, 1, 2] and values[0, 0] == 0


def test_spread_of_columns():
    X = np.array([[1.0, 0.0, 5.0, 1e200], [3.0, 1.0, 5.0, 3e200], [2.0, 1.0, 5.0, 2e200]])
    for rows in (X, CSR.of(X)):
        means, deviations = spread_of(rows, Columns.of(4), True)
        np.testing.assert_allclose(means, [2, 0, 0, 2e200])
        np.testing.assert_allclose(deviations, [np.sqrt(2 / 3), 1, 1, np.sqrt(2 / 3) * 1e200])
