"""Random projections keep distances, dense or sparse, on any kind of rows."""

import numpy as np
import pytest
import scipy.sparse as sp

import onlearn
from onlearn import RandomProjection
from onlearn.estimators import projection

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 1200))
DENSITIES = [None, "auto", 1 / 3, 1.0]


@pytest.mark.parametrize("density", DENSITIES)
def test_distances_are_kept_within_eps(density):
    made = RandomProjection(eps=0.5, density=density, random_state=0).fit_transform(X)
    before, after = (((A[:, None] - A) ** 2).sum(axis=2)[np.triu_indices(30, 1)] for A in (X, made))
    assert made.shape[1] < 200
    assert (np.abs(after / before - 1) < 0.5).all()


@pytest.mark.parametrize("density", DENSITIES)
def test_where_columns_are_fewer_than_directions_would_be_they_stay(density, tmp_path):
    made = RandomProjection(eps=0.1, density=density)
    with pytest.warns(UserWarning, match=r"need n_components=2915, which is more than the 1200 features"):
        made.fit(X)
    assert made.n_components_ == 1200 and len(made.get_feature_names_out()) == 1200
    made.save(tmp_path / "p.onl")
    for one in (made, onlearn.load(tmp_path / "p.onl")):
        for rows in (X, sp.csr_matrix(X), X.astype(np.float32)):
            np.testing.assert_array_equal(one.transform(rows), rows.toarray() if sp.issparse(rows) else rows)


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_sparse_and_slow_products_agree(density, dtype, monkeypatch):
    rows = (X * (RNG.random(X.shape) < 0.1)).astype(dtype)
    fitted = RandomProjection(40, density=density, random_state=0).fit(rows)
    R = fitted.components_.toarray() if sp.issparse(fitted.components_) else fitted.components_
    exact, close = rows.astype(float) @ R.T, 1e-4 if dtype == np.float32 else 1e-10
    monkeypatch.setattr(projection, "MOST_BYTES", 0)
    slow = fitted.transform(rows)
    monkeypatch.undo()
    for made in (
        slow,
        fitted.transform(rows),
        fitted.transform(sp.csr_matrix(rows)),
        fitted.transform(rows[:, :].copy("F")),
    ):
        assert made.dtype == dtype and isinstance(made, np.ndarray)
        np.testing.assert_allclose(made, exact, atol=close)


def test_the_density_is_the_requested_one():
    thin = RandomProjection(500, density=0.1, random_state=0).fit(X)
    assert thin.components_.nnz / thin.components_.toarray().size == pytest.approx(0.1, rel=0.02)
    assert RandomProjection(5, density="auto").fit(X).density_ == pytest.approx(1200**-0.5)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (dict(eps=1.5), "eps must be"),
        (dict(n_components="many"), "n_components must be"),
        (dict(n_components=-1), "n_components must be"),
        (dict(n_components=3, density=0), "density must be"),
        (dict(n_components=3, density=True), "density must be"),
        (dict(n_components=3, density="thin"), "density must be"),
    ],
)
def test_wrong_parameters_are_refused(settings, why):
    with pytest.raises(ValueError, match=why):
        RandomProjection(**settings).fit(X)


def test_a_stream_needs_a_number():
    with pytest.raises(ValueError, match="partial_fit"):
        RandomProjection().partial_fit(X)
    assert RandomProjection(3).partial_fit(X).partial_fit(X).transform(X).shape == (30, 3)
