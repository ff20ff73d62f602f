"""What all transformers share: scikit-learn's contract, streams, and the model file."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_circles
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import onlearn
from onlearn import FeatureHasher, KernelPCA, Nystroem, RandomKitchenSinks, RandomProjection, kernels
from onlearn.model_file import ModelFileError

X = np.random.default_rng(0).normal(size=(40, 6))
FITTED = {
    "sinks": RandomKitchenSinks("gaussian(sigma=2)", 12, random_state=0),
    "orthogonal": RandomKitchenSinks(kernels.Gaussian(gamma=0.3), 13, orthogonal=True, random_state=0),
    "laplacian": RandomKitchenSinks("laplacian(0.2)", 12, random_state=0),
    "sketch": RandomKitchenSinks("polynomial(3)", 12, random_state=0),
    "nystroem": Nystroem("0.5*gaussian(2) + polynomial(2)", 12, random_state=0),
    "kmeans++": Nystroem(kernels.Gaussian(2.0), 12, landmarks="kmeans++", random_state=0),
    "rpcholesky": Nystroem("gaussian(2)", 12, landmarks="rpcholesky", random_state=0),
    "components": KernelPCA("gaussian(2)", 5),
    "components by landmarks": KernelPCA(kernels.Gaussian(2.0), 5, method="nystroem", n_landmarks=20, random_state=0),
    "own landmarks": Nystroem("gaussian(2)", landmarks=X[:9]),
    "projection": RandomProjection(5, random_state=0),
    "sparse projection": RandomProjection(5, density=0.5, random_state=0),
    "hasher": FeatureHasher(4, dtype=np.float32),
}
NEED_FIT = {name: made for name, made in FITTED.items() if name != "hasher"}
everyone = pytest.mark.parametrize("made", FITTED.values(), ids=FITTED.keys())
learners = pytest.mark.parametrize("made", NEED_FIT.values(), ids=NEED_FIT.keys())


def dense(A):
    return A.toarray() if sp.issparse(A) else A


# The others differ from these in which numbers are drawn only.
@pytest.mark.parametrize(
    "name", ["sinks", "sketch", "nystroem", "components", "projection", "sparse projection", "hasher"]
)
def test_check_estimator_passes(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(clone(FITTED[name]))


ALL_ROWS = (
    "n_components='auto' depends on how many rows there are in all, which the first call of partial_fit, that the "
    "check makes, does not know; with a number of components the check passes, as above"
)
BY_DEFAULT = {
    onlearn.Features: {},
    RandomProjection: {"check_n_features_in_after_fitting": ALL_ROWS},
}


@pytest.mark.parametrize("made", BY_DEFAULT)
def test_check_estimator_passes_by_default(made):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(made(), expected_failed_checks=BY_DEFAULT[made])
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(BY_DEFAULT[made])


@everyone
def test_clone_pickle_and_fit_again_give_the_same(made):
    first = clone(made).fit(X)
    expected = dense(first.transform(X))
    for other in (clone(made).fit(X), pickle.loads(pickle.dumps(first)), first.fit(X)):
        np.testing.assert_array_equal(dense(other.transform(X)), expected)


@everyone
def test_the_model_file_restores_the_transformer(made, tmp_path):
    fitted = clone(made).fit(pd.DataFrame(X, columns=list("abcdef")))
    fitted.save(tmp_path / "t.onl")
    loaded = onlearn.load(tmp_path / "t.onl")
    assert type(loaded) is type(fitted)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    np.testing.assert_array_equal(dense(loaded.transform(frame)), dense(fitted.transform(frame)))
    assert list(loaded.feature_names_in_) == list("abcdef")
    if hasattr(made, "kernel"):
        assert str(loaded.get_params()) == str(fitted.get_params())
    assert list(loaded.get_feature_names_out()) == list(fitted.get_feature_names_out())
    again = clone(loaded).fit(frame)
    np.testing.assert_array_equal(dense(again.transform(frame)), dense(fitted.transform(frame)))


@learners
def test_settings_changed_later_do_not_change_what_was_fitted(made, tmp_path):
    fitted = clone(made).fit(X)
    expected, names = fitted.transform(X), list(fitted.get_feature_names_out())
    for count in (4, 400):
        fitted.set_params(n_components=count).save(tmp_path / "t.onl")
        for one in (fitted, onlearn.load(tmp_path / "t.onl")):
            np.testing.assert_array_equal(one.transform(X), expected)
            assert list(one.get_feature_names_out()) == names and one.n_components == count


@pytest.mark.parametrize("cls", [Nystroem, RandomKitchenSinks])
def test_a_kernel_changed_later_does_not_change_what_was_fitted(cls):
    part = kernels.Gaussian(2.0)
    fitted = cls(part + kernels.Linear() if cls is Nystroem else part, 5, random_state=0).fit(X)
    known = str(fitted.kernel_)
    part.sigma = 0.5
    assert str(fitted.kernel_) == known != str(fitted.fit(X).kernel_)


def test_a_stream_continues_after_loading(tmp_path):
    whole, part = (Nystroem("gaussian(2)", 8, random_state=3).partial_fit(X[:20]) for _ in range(2))
    part.save(tmp_path / "n.onl")
    whole.partial_fit(X[20:])
    loaded = onlearn.load(tmp_path / "n.onl").partial_fit(X[20:])
    np.testing.assert_array_equal(loaded.transform(X), whole.transform(X))
    assert loaded.n_seen_ == 40 and loaded.error_ == whole.error_


def test_a_kernel_with_arrays_is_stored_and_one_with_a_function_is_refused(tmp_path):
    A = X[:6].T @ X[:6]
    fitted = Nystroem(kernels.Bilinear(A), 5, random_state=0).fit(X)
    fitted.save(tmp_path / "n.onl")
    np.testing.assert_array_equal(onlearn.load(tmp_path / "n.onl").transform(X), fitted.transform(X))
    own = Nystroem(kernels.Callable(lambda x, z: float(x @ z)), 5, random_state=0).fit(X)
    with pytest.raises(ValueError, match="function"):
        own.save(tmp_path / "own.onl")
    assert not (tmp_path / "own.onl").exists()


def test_a_damaged_file_is_refused(tmp_path):
    from safetensors import safe_open
    from safetensors.numpy import save_file

    for name, key in (("sinks", "frequencies_"), ("sketch", "places_"), ("nystroem", "whitening")):
        path = tmp_path / f"{name}.onl"
        clone(FITTED[name]).fit(X).save(path)
        with safe_open(path, framework="numpy") as file:
            arrays, told = {k: file.get_tensor(k) for k in file.keys()}, file.metadata()  # noqa: SIM118
        arrays[key] = arrays[key][1:]
        save_file(arrays, path, metadata=told)
        with pytest.raises(ModelFileError, match="shape"):
            onlearn.load(path)


@everyone
@pytest.mark.parametrize("wrap", [pd.DataFrame, pl.DataFrame, pa.RecordBatch.from_pandas, sp.csr_matrix, sp.csr_array])
def test_tables_of_all_libraries(made, wrap):
    fitted = clone(made).fit(X)
    if wrap is pl.DataFrame:
        rows = pl.DataFrame(X, schema=[str(k) for k in range(6)])
    elif wrap is sp.csr_matrix or wrap is sp.csr_array:
        rows = wrap(X)
    else:
        rows = wrap(pd.DataFrame(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the rows have names now
        np.testing.assert_allclose(dense(fitted.transform(rows)), dense(fitted.transform(X)), atol=1e-6)


@learners
def test_single_precision_is_kept(made):
    fitted = clone(made).fit(X.astype(np.float32))
    assert fitted.transform(X.astype(np.float32)).dtype == np.float32
    assert fitted.transform(X.astype(np.float16)).dtype == np.float32  # which there is no arithmetic for
    assert fitted.transform(X).dtype == np.float64


@learners
def test_names_and_set_output(made):
    fitted = clone(made).set_output(transform="pandas").fit(X)
    frame = fitted.transform(X)
    assert list(frame.columns) == list(fitted.get_feature_names_out())
    assert frame.columns[0] == f"{type(made).__name__.lower()}0"


@learners
def test_bad_rows_are_refused(made):
    with pytest.raises(NotFittedError):
        clone(made).transform(X)
    fitted = clone(made).fit(X)
    bad = X.copy()
    bad[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN in row 3, column 2"):
        fitted.transform(bad)
    with pytest.raises(ValueError, match="NaN in row 3, column 2"):
        clone(made).fit(bad)
    with pytest.raises(ValueError, match="7 features"):
        fitted.transform(np.ones((2, 7)))
    with pytest.raises(ValueError, match="0 sample"):
        fitted.transform(np.ones((0, 6)))
    with pytest.raises(ValueError, match="2D"):
        fitted.transform(X[0])
    assert np.isfinite(fitted.transform(np.zeros((2, 6)))).all()


@pytest.mark.parametrize("name", ["sinks", "sketch", "nystroem", "projection", "hasher"])
def test_streams(name):
    fitted = clone(FITTED[name])
    for start in range(0, 40, 10):
        fitted.partial_fit(X[start : start + 10])
    with pytest.raises(ValueError, match="features"):
        fitted.partial_fit(X[:, :4])
    assert dense(fitted.transform(X)).shape[0] == 40


def test_a_linear_learner_behind_it_learns_circles():
    rows, y = make_circles(400, factor=0.5, noise=0.05, random_state=0)
    for made in (RandomKitchenSinks("gaussian(sigma=0.5)", 200, random_state=0), Nystroem("gaussian(0.5)", 40)):
        pipe = make_pipeline(made, onlearn.AveragedPerceptron(random_state=0)).fit(rows[:200], y[:200])
        assert pipe.score(rows[200:], y[200:]) > 0.97
    search = GridSearchCV(
        make_pipeline(Nystroem("gaussian(sigma=1)", 30, random_state=0), onlearn.Perceptron(random_state=0)),
        {"nystroem__kernel__sigma": [0.01, 0.5]},
        cv=3,
    ).fit(rows, y)
    assert search.best_params_ == {"nystroem__kernel__sigma": 0.5}
    for made in (RandomKitchenSinks("gaussian(2)"), Nystroem(kernels.Gaussian(2))):
        assert made.get_params()["kernel__sigma"] == 2
        assert made.set_params(kernel__sigma=3).kernel == kernels.Gaussian(3)
