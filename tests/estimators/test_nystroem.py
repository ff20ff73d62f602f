"""Nystrom's method: exact between landmarks, and its error estimate."""

import numpy as np
import pytest
import scipy.sparse as sp

from onlearn import Nystroem, kernels

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 5))
WAYS = ["uniform", "kmeans++", "rpcholesky"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", ["gaussian(sigma=2)", "polynomial(2)", "laplacian(0.3)", "0.5*gaussian(1) + linear"])
def test_with_all_as_landmarks_it_is_exact(way, text):
    phi = Nystroem(text, 80, landmarks=way, random_state=0).fit(X)
    made, exact = phi.transform(X), kernels.get(text)(X)
    np.testing.assert_allclose(made @ made.T, exact, atol=1e-6 * np.abs(exact).max())


def test_a_finite_map_needs_no_more_landmarks_than_it_has_features():
    phi = Nystroem("linear", 40, random_state=0).fit(X)
    assert phi.n_components_ == 5 == phi.transform(X).shape[1]
    np.testing.assert_allclose(phi.transform(X) @ phi.transform(X).T, X @ X.T, atol=1e-9)
    assert phi.error_ < 1e-9 and Nystroem("linear", 9, landmarks="rpcholesky", random_state=0).fit(X).error_ < 1e-9


def test_between_landmarks_the_kernel_is_exact():
    phi = Nystroem("gaussian(sigma=2)", landmarks=X[:20]).fit(X)
    made = phi.transform(X)
    exact = kernels.get("gaussian(sigma=2)")(X)
    np.testing.assert_allclose(made @ made[:20].T, exact[:, :20], atol=1e-9)
    assert np.linalg.eigvalsh(exact - made @ made.T)[0] > -1e-9


@pytest.mark.parametrize("way", WAYS)
def test_the_error_is_the_part_of_the_trace_that_is_missed(way):
    k = kernels.get("gaussian(sigma=1.5)")
    phi = Nystroem(k, 15, landmarks=way, random_state=0).fit(X)
    missed = 0.0
    for x in X:  # each seen from the landmarks but itself
        others = phi.landmarks_[(phi.landmarks_ != x).any(axis=1)]
        c = k(x[None], others)
        missed += 1 - (c @ np.linalg.solve(k(others), c.T)).item()
    assert phi.error_ == pytest.approx(missed / 80, abs=1e-9)


@pytest.mark.parametrize("way", WAYS)
def test_the_error_is_that_of_new_examples(way):
    rows = RNG.normal(size=(2400, 3))
    phi = Nystroem("gaussian(sigma=0.7)", 200, landmarks=way, random_state=0).fit(rows[:400])
    new = 1 - np.square(phi.transform(rows[400:])).sum() / 2000
    assert phi.error_ == pytest.approx(new, rel=0.3)  # it was half as large with landmarks seen from themselves


def test_the_error_on_a_sample_is_close(monkeypatch):
    from onlearn.estimators import nystroem

    rows = RNG.normal(size=(3000, 3))
    whole = Nystroem("gaussian(sigma=1)", 30, random_state=0)
    monkeypatch.setattr(nystroem, "SAMPLE", 3000)
    exact = whole.fit(rows).error_
    monkeypatch.setattr(nystroem, "SAMPLE", 500)
    assert whole.fit(rows).error_ == pytest.approx(exact, rel=0.15)


def test_more_landmarks_less_error():
    found = [
        Nystroem("gaussian(sigma=1.5)", n, landmarks="rpcholesky", random_state=0).fit(X).error_ for n in (5, 20, 60)
    ]
    assert found[0] > found[1] > found[2] >= 0


def test_repeated_and_zero_rows_do_no_harm():
    rows = np.vstack([np.zeros((10, 5)), np.repeat(X[:3], 10, axis=0)])
    phi = Nystroem("gaussian", 40, random_state=0).fit(rows)
    assert phi.n_components_ == 4
    assert np.isfinite(phi.transform(rows)).all()
    zeros = Nystroem("linear", 5, random_state=0).fit(np.zeros((8, 3)))
    assert zeros.transform(np.ones((2, 3))).tolist() == [[0.0], [0.0]]
    assert zeros.error_ == 0


@pytest.mark.parametrize("way", WAYS)
def test_sparse_and_single_precision(way):
    rows = (X * (RNG.random(X.shape) < 0.5)).astype(np.float32)
    phi = Nystroem("gaussian(sigma=2)", 20, landmarks=way, random_state=0).fit(sp.csr_matrix(rows))
    dense = Nystroem("gaussian(sigma=2)", landmarks=phi.landmarks_.toarray()).fit(rows)
    for made in (phi.transform(sp.csr_matrix(rows)), phi.transform(rows), dense.transform(rows)):
        assert made.dtype == np.float32
        np.testing.assert_allclose(made @ made.T, dense.transform(rows) @ dense.transform(rows).T, atol=1e-4)


def test_a_stream_keeps_a_uniform_reservoir():
    counts = np.zeros(40)
    for seed in range(150):
        phi = Nystroem("gaussian", 8, random_state=seed)
        for start in range(0, 40, 10):
            phi.partial_fit(np.arange(start, start + 10.0)[:, None])
        kept = phi.landmarks_[:, 0].astype(int)
        assert len(set(kept)) == 8 and phi.n_seen_ == 40
        counts[kept] += 1
    assert counts.min() > 10 and counts.max() < 55  # 30 expected, deviation 5


def test_a_stream_that_changes_no_landmark_leaves_the_map_alone():
    phi = Nystroem("gaussian", 1, random_state=0).partial_fit(X)
    before = phi.transform(X)
    for row in range(5):
        phi.partial_fit(X[row : row + 1] * 0 + phi.landmarks_)
    np.testing.assert_array_equal(phi.transform(X), before)


def test_only_uniform_landmarks_can_be_kept_of_a_stream():
    with pytest.raises(AttributeError, match="partial_fit"):
        Nystroem(landmarks="rpcholesky").partial_fit(X)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (dict(landmarks="best"), "landmarks must be"),
        (dict(landmarks=None), "landmarks must be"),
        (dict(landmarks=[]), "landmarks must be"),
        (dict(landmarks=X[:, :3]), "features"),
        (dict(n_components=0), "at least 1"),
        (dict(kernel="sigmoid(gamma=1, coef0=-1)"), "not positive semi-definite"),
        (dict(kernel="gausian"), "gaussian"),
    ],
)
def test_wrong_parameters_are_refused(settings, why):
    with pytest.raises(ValueError, match=why):
        Nystroem(**settings).fit(X)


@pytest.mark.parametrize("way", WAYS)
def test_values_that_overflow_are_refused(way):
    rows = X.copy()
    rows[40:] *= 1e200
    with pytest.raises(OverflowError, match=r"polynomial\(2\) is too large"):
        Nystroem("polynomial(2)", 8, landmarks=way, random_state=0).fit(rows)
    with pytest.raises(TypeError, match="gaussian works on rows of numbers, not on strings"):
        Nystroem("gaussian", landmarks=way).fit(["one", "two"])


class TestObjects:
    """Kernels of strings."""

    WORDS = ("ACGT", "ACGA", "TTTT", "TTGT", "ACTT", "GGGG", "")

    def test_strings(self):
        kernel = kernels.Substrings(1, 3)
        phi = Nystroem(kernel, 7, random_state=0).fit(list(self.WORDS))
        made = phi.transform(list(self.WORDS))
        np.testing.assert_allclose(made @ made.T, kernel(list(self.WORDS)), atol=1e-8)
        assert isinstance(phi.landmarks_, list)
        with pytest.raises(TypeError, match="one text"):
            phi.transform("ACGT")

    def test_a_function_of_two_objects(self):
        if not hasattr(kernels, "Callable"):
            pytest.skip("no kernels.Callable")
        kernel = kernels.Callable(shared_letters)
        phi = Nystroem(kernel, 7, random_state=0).fit(list(self.WORDS))
        made = phi.transform(["TTGA"])
        assert made.shape == (1, phi.n_components_) and np.isfinite(made).all()


def shared_letters(x, z):
    return float(sum(x.count(letter) * z.count(letter) for letter in "ACGT"))
