"""Kernels that the user brings along, checks and repairs, storing, and scikit-learn."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from kernels.examples import BOOLEAN, COMPOSITES, LEAVES, rows
from onlearn import kernels

X, Z = rows(6), rows(5, seed=1)
A = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 0.0]])


def test_bilinear_is_the_formula():
    k = kernels.Bilinear(A)
    np.testing.assert_allclose(k(X, Z), X @ A @ Z.T, rtol=1e-12)
    np.testing.assert_allclose(k(sp.csr_matrix(X), Z), X @ A @ Z.T, rtol=1e-12)
    np.testing.assert_allclose(k.diag(X), np.diag(X @ A @ X.T), rtol=1e-12)
    assert k(X.astype(np.float32)).dtype == np.float32
    assert k.n_features(3) == 2  # its rank
    assert kernels.Bilinear(sp.csr_matrix(A)) == k
    assert clone(k) == k and hash(clone(k)) == hash(k) and k != kernels.Bilinear(np.eye(3))


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "smallest eigenvalue is -1"),
        ([[1.0, 2.0], [0.0, 1.0]], r"symmetric, but holds 2 at \(0, 1\)"),
        ([[1.0, 2.0]], "square"),
        ([[np.nan]], "NaN"),
        (np.empty((0, 0)), "square"),
    ],
)
def test_bilinear_needs_a_psd_matrix(matrix, words):
    with pytest.raises(ValueError, match=words):
        kernels.Bilinear(matrix)


def test_bilinear_needs_its_number_of_columns():
    with pytest.raises(ValueError, match="for 3 columns, but X has 2"):
        kernels.Bilinear(A)(X[:, :2])


def test_precomputed_looks_up():
    k, K = kernels.Precomputed(), kernels.Gaussian()(X)
    np.testing.assert_array_equal(k(K), K)
    P = k.points(K)
    np.testing.assert_array_equal(k.block(P.take([4, 1]), P.take([3])), K[[4, 1]][:, [3]])
    np.testing.assert_array_equal(k.diagonal(P.take([2])), [1.0])
    joined = P.take([1]).join([P.take([0])])
    np.testing.assert_array_equal(k.block(joined, P), K[[1, 0]])
    new = k.points(kernels.Gaussian()(Z, X))
    np.testing.assert_array_equal(k.block(new, P.take([5, 0])), kernels.Gaussian()(Z, X)[:, [5, 0]])
    assert not k.always_psd
    with pytest.raises(ValueError, match="must be square"):
        k(K[:, :3])
    with pytest.raises(ValueError, match="cannot be joined"):
        P.join([new])
    np.testing.assert_allclose((2 * k)(K), 2 * K)


def test_precomputed_knows_lengths_of_training_examples_alone():
    k, K, new = kernels.Precomputed(), kernels.Polynomial()(X), kernels.Polynomial()(Z, X)
    np.testing.assert_array_equal(k.diag(K), np.diag(K))
    for some, found in ((new, "5 by 6"), (new[:, :5], "not symmetric")):
        with pytest.raises(ValueError, match=f"known of the training examples alone.*{found}"):
            (2 * k).diag(some)
    for formula in ("normalize(precomputed)", "normalize(1 + precomputed**2)"):
        with pytest.raises(ValueError, match=r"cannot be normalised.*before the matrix is computed"):
            kernels.get(formula)


def test_a_function_of_two_examples():
    k = kernels.Callable(lambda x, z: float(x == z))
    np.testing.assert_array_equal(k(["a", "b"], ("a", "c", "b")), [[1, 0, 0], [0, 0, 1]])
    P = k.points(["a", "b", "c"])
    np.testing.assert_array_equal(k.block(P.take(np.array([2, 0])).join([P.take([1])]), P)[0], [0, 0, 1])
    np.testing.assert_array_equal(k.diag(["a", "b"]), [1, 1])
    dots = kernels.Callable(np.dot)
    np.testing.assert_allclose(dots(X, Z), X @ Z.T)
    assert dots(X.astype(np.float32)).dtype == np.float32


def test_a_function_of_two_matrices():
    k = kernels.Callable(lambda P, Q: P @ Q.T, pairs=False)
    np.testing.assert_allclose(k(X, Z), X @ Z.T)
    np.testing.assert_allclose(k.diag(X), (X**2).sum(1))
    both = k + kernels.Linear()
    np.testing.assert_allclose(both(X, Z), 2 * X @ Z.T)
    joined = k.points(X).join([k.points(Z)])
    np.testing.assert_allclose(k.block(joined, k.points(Z)), np.vstack([X, Z]) @ Z.T)


@pytest.mark.parametrize(
    ("k", "data", "words"),
    [
        (lambda: kernels.Callable(3), X, "must be a function"),
        (lambda: kernels.Callable(lambda x, z: "a"), X, "returns a number"),
        (lambda: kernels.Callable(lambda x: 1.0), X, "function of two examples"),
        (lambda: kernels.Callable(lambda x, z: np.nan), X, "returned NaN"),
        (lambda: kernels.Callable(lambda x, z: np.inf), X, "too large"),
        (lambda: kernels.Callable(lambda P, Q: np.ones(3), pairs=False), X, r"shape \(6, 6\)"),
        (lambda: kernels.Callable(lambda P, Q: np.ones(3)), 3, "a list or an array"),
    ],
)
def test_functions_are_checked(k, data, words):
    with pytest.raises((ValueError, TypeError, OverflowError), match=words):
        k()(data)


# -- is it one?


def test_is_psd():
    assert kernels.is_psd(np.eye(3)) and kernels.is_psd(np.zeros((2, 2))) and kernels.is_psd(np.empty((0, 0)))
    assert kernels.is_psd(kernels.Linear()(rows(30)))  # rank 3: eigenvalues that are 0 but for rounding
    assert kernels.is_psd(kernels.Gaussian()(rows(30).astype(np.float32)))
    assert not kernels.is_psd([[1.0, 2.0], [2.0, 1.0]])
    assert kernels.is_psd(sp.csr_matrix(np.eye(3)))
    assert not kernels.is_psd([[1.0, 0.5], [0.4, 1.0]])
    assert kernels.is_psd([[1.0, 1.001], [1.001, 1.0]], tol=0.01)
    for bad, words in (([[1.0, 2.0]], "square"), ([[np.nan]], "NaN"), ([["a"]], "numbers")):
        with pytest.raises((ValueError, TypeError), match=words):
            kernels.is_psd(bad)


def test_verdicts():
    data = np.random.default_rng(0).normal(size=(50, 2))
    bad = kernels.check_kernel("sigmoid(2, -1)", data)
    assert not bad and bad.smallest < 0 and bad.symmetric and "is not a kernel" in str(bad)
    lucky = kernels.check_kernel("sigmoid", np.eye(4))
    assert lucky and "not always one" in str(lucky)
    good = kernels.check_kernel("gaussian", data, sample=20)
    assert good and good.examples == 20 and "it always is" in good.sentence
    skewed = kernels.check_kernel(kernels.Callable(lambda x, z: x[0] - z[1]), data)
    assert not skewed and not skewed.symmetric and "differ" in str(skewed)
    with pytest.raises(ValueError, match="no examples"):
        kernels.check_kernel("linear", np.empty((0, 2)))
    for sample in (0, -1, 2.5):
        with pytest.raises(ValueError, match="sample must be a whole number of at least 1"):
            kernels.check_kernel("linear", data, sample=sample)


@pytest.mark.parametrize("how", ["clip", "flip", "shift"])
def test_repair(how):
    K = kernels.get("sigmoid(2, -1)")(np.random.default_rng(0).normal(size=(20, 2)))
    made = kernels.repair(K, how)
    assert not kernels.is_psd(K) and kernels.is_psd(made)
    values = np.linalg.eigvalsh(K)
    wanted = {"clip": values.clip(0), "flip": np.abs(values), "shift": values - values[0]}[how]
    np.testing.assert_allclose(np.linalg.eigvalsh(made), np.sort(wanted), atol=1e-10)
    good = kernels.Gaussian()(X)
    np.testing.assert_allclose(kernels.repair(good, how), good, atol=1e-12)
    assert kernels.repair(good.astype(np.float32), how).dtype == np.float32


@pytest.mark.filterwarnings("error")
def test_matrices_of_the_largest_numbers_and_of_none():
    large = np.array([[1e308, -1e308], [-1e308, 1e308]])
    for how in ("clip", "flip", "shift"):
        np.testing.assert_allclose(kernels.repair(np.diag([1e308, 1e308]), how), np.diag([1e308, 1e308]))
        np.testing.assert_allclose(kernels.repair(large, how), large)
        assert kernels.repair(np.zeros((0, 0)), how).shape == (0, 0)
    assert kernels.is_psd(large) and not kernels.is_psd(np.abs(large) * [[1, 1], [-1, 1]])
    with pytest.raises(OverflowError, match="too large for float64: scale K"):
        kernels.repair([[1e308, 1.7e308], [1.7e308, -1.7e308]], "flip")


def test_repair_refuses():
    with pytest.raises(ValueError, match="'clip', 'flip' or 'shift'"):
        kernels.repair(np.eye(2), "hope")
    with pytest.raises(ValueError, match="symmetric"):
        kernels.repair([[1.0, 2.0], [0.0, 1.0]])


# -- storing


@pytest.mark.parametrize("name", [*LEAVES, *COMPOSITES, *BOOLEAN, "precomputed", "sigmoid(2, -1)"])
def test_kernels_are_stored_as_facts_and_arrays(name):
    k = kernels.get(name)
    facts, arrays = kernels.pack(k)
    again = kernels.unpack(json.loads(json.dumps(facts)), arrays)
    assert again == k and str(again) == str(k)


def test_two_matrices_in_one_kernel():
    k = kernels.Bilinear(A) + kernels.Bilinear(np.eye(3))
    facts, arrays = kernels.pack(k)
    assert len(arrays) == 2 and kernels.unpack(facts, arrays) == k


@pytest.mark.parametrize(
    "k", [kernels.Callable(np.dot), kernels.warp("linear", np.sum), 2 * kernels.compose("linear", np.abs)]
)
def test_functions_cannot_be_stored(k):
    with pytest.raises(ValueError, match="a model file holds no code"):
        kernels.pack(k)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (None, "None for kernel"),
        ({"name": 3}, "3 for kernel.name"),
        ({"name": "new"}, "newer version"),
        ({"name": "linear", "tilt": 3}, "newer version"),
        ({"name": "bilinear", "A": {"array": "kernel.0"}}, "missing"),
        ({"name": "exp"}, "not complete"),
        ({"name": "gaussian", "sigma": -1}, "sigma must be"),
    ],
)
def test_damaged_descriptions(facts, words):
    with pytest.raises(ValueError, match=words):
        kernels.unpack(facts, {})


@pytest.mark.parametrize(
    "data",
    [
        X,
        X.astype(np.float32),
        X > 0.5,
        sp.csr_matrix(X),
        ["ab", "", "grün \ud800", "\0"],
        [b"\xff", b""],
        [],
        np.array(["a", "bc"]),
        np.array(["a", "bc"], dtype=object),
        ["(S (NP we) (VP sleep))"],
    ],
    ids=str,
)
def test_examples_are_stored_as_facts_and_arrays(data):
    facts, arrays = kernels.pack_data(data)
    again = kernels.unpack_data(json.loads(json.dumps(facts)), arrays)
    if sp.issparse(data):
        assert (again != data).nnz == 0 and again.dtype == data.dtype
    elif isinstance(data, np.ndarray) and data.dtype.kind in "fb":
        np.testing.assert_array_equal(again, data)
        assert again.dtype == data.dtype
    else:
        assert again == list(data)


def test_trees_are_stored_as_text():
    facts, arrays = kernels.pack_data([("S", ("NP", "we"), ("VP", ("V", "sleep")))])
    assert kernels.unpack_data(facts, arrays) == ["(S (NP we) (VP (V sleep)))"]
    for bad in (("S", "a b"), ("S", ""), (("S",),), ("S", 3)):
        with pytest.raises(ValueError):
            kernels.pack_data([bad])


def test_mixed_examples_are_refused():
    with pytest.raises(TypeError, match="all be of one kind"):
        kernels.pack_data([b"a", "b"])


def test_damaged_examples():
    facts, arrays = kernels.pack_data(["ab", "c"])
    for change in ({"ends": np.array([2, 9])}, {"ends": np.array([3, 2])}, {"text": arrays["text"][:1]}):
        with pytest.raises(ValueError, match="damaged"):
            kernels.unpack_data(facts, {**arrays, **change})
    facts, arrays = kernels.pack_data(sp.csr_matrix(X))
    with pytest.raises(ValueError, match="do not fit together"):
        kernels.unpack_data(facts, {**arrays, "indices": arrays["indices"] + 7})
    for facts, words in (
        ({"kind": "hologram"}, "for examples.kind"),
        (None, "None for examples"),
        ({"kind": "dense"}, "missing"),
    ):
        with pytest.raises(ValueError, match=words):
            kernels.unpack_data(facts, {})


# -- scikit-learn


def test_two_single_rows_give_a_number():
    """As scikit-learn calls functions that compare two examples."""
    k = 0.5 * kernels.Gaussian(1.0) + kernels.Polynomial(2)
    assert isinstance(k(X[0], Z[1]), float) and k(X[0].tolist(), Z[1]) == k(X, Z)[0, 1]
    y = X.sum(axis=1)
    theirs = KernelRidge(kernel="precomputed").fit(k(X), y).predict(k(Z, X))
    np.testing.assert_allclose(KernelRidge(kernel=k).fit(X, y).predict(Z), theirs, rtol=1e-9)
    with pytest.raises(ValueError, match="1D"):
        k(X[0])


def test_svc_takes_a_kernel():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(120, 2))
    y = (np.abs(data).sum(1) > 1.1).astype(int)
    k = 0.5 * kernels.Gaussian(1.0) + kernels.Polynomial(2)
    ours = SVC(kernel=k).fit(data[:80], y[:80])
    theirs = SVC(kernel="precomputed").fit(k(data[:80]), y[:80])
    np.testing.assert_array_equal(ours.predict(data[80:]), theirs.predict(k(data[80:], data[:80])))
    copy = clone(ours)
    assert copy.kernel == k and copy.kernel is not k
    search = GridSearchCV(copy, {"kernel__k1__k__sigma": [0.1, 1.0, 10.0], "C": [1.0]}, cv=3).fit(data, y)
    assert search.best_params_["kernel__k1__k__sigma"] in (0.1, 1.0, 10.0)
    assert search.best_estimator_.kernel.k1.k.sigma == search.best_params_["kernel__k1__k__sigma"]
    assert k.k1.k.sigma == 1.0
