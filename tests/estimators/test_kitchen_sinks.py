"""Random kitchen sinks: they approximate the kernel at the known rate, without bias."""

import numpy as np
import pytest
import scipy.sparse as sp

from onlearn import RandomKitchenSinks, kernels

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 6)) / 2
KERNELS = [
    "gaussian(sigma=1.5)",
    "gaussian(gamma=0.2)",
    "laplacian(gamma=0.3)",
    "polynomial(2)",
    "polynomial(3, coef0=0)",
]


def errors(text, count, seeds, rows=X, **settings):
    """approximate - exact kernel values of all pairs, for several draws."""
    exact = kernels.get(text)(rows)
    made = []
    for seed in seeds:
        phi = RandomKitchenSinks(text, count, random_state=seed, **settings).fit_transform(rows)
        made.append(phi @ phi.T - exact)
    return np.array(made)


@pytest.mark.parametrize("text", KERNELS)
def test_there_is_no_bias(text):
    found = errors(text, 60, range(400))
    deviation = found.std(axis=0) / np.sqrt(len(found))
    assert np.abs(found.mean(axis=0) / np.maximum(deviation, 1e-9)).mean() < 1.1  # 0.8 if normal and without bias


@pytest.mark.parametrize("text", ["gaussian(sigma=1.5)", "laplacian(gamma=0.3)"])
def test_the_error_falls_with_the_root_of_the_number(text):
    few, many = (np.sqrt(np.mean(errors(text, count, range(30)) ** 2)) for count in (100, 1600))
    assert few < 1 / np.sqrt(100)
    assert 3 < few / many < 5.3  # 4, for 16 times as many


def test_the_variance_is_that_of_the_literature():
    """Sutherland and Schneider: var = (1 + k(2 delta) - 2 k(delta)^2) / D for D features in pairs."""
    rows, count = np.array([[0.0], [0.7]]), 40
    found = errors("gaussian(sigma=1)", count, range(1500), rows=rows)[:, 0, 1]
    k = np.exp(-(np.array([0.7, 1.4]) ** 2) / 2)
    assert np.var(found) == pytest.approx((1 + k[1] - 2 * k[0] ** 2) / count, rel=0.12)


def test_orthogonal_has_less_variance_and_no_bias():
    plain, orthogonal = (errors("gaussian(sigma=1.5)", 12, range(400), orthogonal=flag) for flag in (False, True))
    apart = ~np.eye(len(X), dtype=bool)
    assert np.mean(orthogonal[:, apart] ** 2) < 0.8 * np.mean(plain[:, apart] ** 2)
    assert abs(orthogonal[:, apart].mean()) < 0.01


def test_orthogonal_frequencies_are_orthogonal_in_blocks():
    W = RandomKitchenSinks(n_components=28, orthogonal=True, random_state=0).fit(X).frequencies_
    for block in (W[:, :6], W[:, 6:12], W[:, 12:]):
        gram = block.T @ block
        assert np.abs(gram - np.diag(np.diag(gram))).max() < 1e-12


@pytest.mark.parametrize("count", [1, 2, 7, 50])
def test_any_number_of_components(count):
    phi = RandomKitchenSinks(n_components=count, random_state=0).fit_transform(X)
    assert phi.shape == (30, count)
    if count % 2 == 0:
        np.testing.assert_allclose(np.linalg.norm(phi, axis=1), 1.0)


def test_an_odd_number_has_no_bias_either():
    found = errors("gaussian(sigma=1.5)", 3, range(1000), rows=X[:4])
    assert np.abs(found.mean(axis=0)).max() < 0.08


@pytest.mark.parametrize("text", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_give_what_dense_rows_give(text, dtype):
    rows = (X * (RNG.random(X.shape) < 0.4)).astype(dtype)
    sinks = RandomKitchenSinks(text, 101, random_state=0).fit(rows)
    dense, sparse = sinks.transform(rows), sinks.transform(sp.csr_matrix(rows))
    assert dense.dtype == sparse.dtype == dtype
    np.testing.assert_allclose(dense, sparse, atol=1e-5 if dtype == np.float32 else 1e-12)


def test_single_precision_is_close_to_double():
    sinks = RandomKitchenSinks("gaussian(sigma=1)", 200, random_state=0).fit(X)
    np.testing.assert_allclose(sinks.transform(X.astype(np.float32)), sinks.transform(X), atol=1e-6)


def test_a_polynomial_sketch_of_degree_one_is_a_count_sketch():
    phi = RandomKitchenSinks("polynomial(1, coef0=0)", 4000, random_state=0).fit_transform(X)
    np.testing.assert_allclose(phi @ phi.T, X @ X.T, atol=0.3)


def test_tiles_do_not_change_the_result(monkeypatch):
    from onlearn.estimators import transformer

    for text in ("gaussian", "polynomial(2)"):
        sinks = RandomKitchenSinks(text, 20, random_state=0).fit(X)
        whole = sinks.transform(X)
        with monkeypatch.context() as patch:
            patch.setattr(transformer, "TILE", 1000)
            np.testing.assert_allclose(sinks.transform(X), whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (dict(kernel="laplacian", orthogonal=True), "no orthogonal form"),
        (dict(kernel="polynomial(2)", orthogonal=True), "no orthogonal form"),
        (dict(kernel="sigmoid"), "use Nystroem"),
        (dict(kernel="gaussian + linear"), "use Nystroem"),
        (dict(n_components=0), "at least 1"),
        (dict(n_components=2.5), "at least 1"),
    ],
)
def test_wrong_parameters_are_refused(settings, why):
    with pytest.raises(ValueError, match=why):
        RandomKitchenSinks(**settings).fit(X)


def test_rows_too_large_for_a_cosine_are_refused():
    sinks = RandomKitchenSinks(n_components=10, random_state=0).fit(X)
    with pytest.raises(OverflowError, match="scale the data"):
        sinks.transform(np.full((1, 6), 1e38, np.float32))
    sketch = RandomKitchenSinks("polynomial(3)", 10, random_state=0).fit(X)
    with pytest.raises(OverflowError, match="row 0"):
        sketch.transform(np.full((1, 6), 1e30, np.float32))
