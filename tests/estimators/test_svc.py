"""SVC and SVR: scikit-learn's manners."""

from __future__ import annotations

import inspect
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import onlearn
from onlearn import SVC, SVR, kernels

X, Y = make_moons(150, noise=0.25, random_state=0)
NAMES = np.where(Y == 1, "up", "down")
WAVE = np.sin(2 * X[:, 0]) + X[:, 1]

WEIGHTS = (
    "the check compares a weight of 2 with a row that comes twice to 7 digits; the solver stops at the same tolerance "
    "on another path, and one of two equal rows that is left out is still there. To the tolerance they are equal: "
    "tests/svm/test_learner.py"
)
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}


@pytest.mark.parametrize("made", [SVC(), SVR()], ids=["SVC", "SVR"])
def test_check_estimator_passes(made: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(made, expected_failed_checks=EXPECTED)
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(EXPECTED)


def test_parameters_are_those_of_the_learner() -> None:
    for made in (SVC(), SVR()):
        assert list(made._composition.parameters) == list(inspect.signature(type(made)).parameters)
        assert made.get_params(deep=False) == {name: one.default for name, one in made._composition.parameters.items()}
    assert SVC("gaussian(gamma=0.5)").get_params()["kernel__gamma"] == 0.5
    assert clone(SVC(kernels.Polynomial(3), C=2.0)).get_params()["kernel__degree"] == 3


def test_what_was_learned_has_the_usual_names() -> None:
    ours, theirs = SVC("gaussian(gamma=0.5)", tol=1e-5).fit(X, NAMES), svm.SVC(gamma=0.5, tol=1e-6).fit(X, NAMES)
    assert ours.classes_.tolist() == ["down", "up"]
    np.testing.assert_array_equal(ours.support_, np.sort(theirs.support_))
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_array_equal(ours.support_vectors_, X[ours.support_])
    order = np.argsort(theirs.support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_[:, order], atol=2e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    assert ours.n_features_in_ == 2 and ours.n_iter_ == ours.report_.iterations and ours.stopped_ is None
    with pytest.raises(AttributeError, match="coef_ is for the linear one"):
        ours.coef_  # noqa: B018
    sparse = SVC("linear").fit(sp.csr_matrix(X), Y)
    assert sp.issparse(sparse.support_vectors_) and sparse.coef_.shape == (1, 2)
    with pytest.raises(NotFittedError):
        SVC().predict(X)


def test_grid_search_and_pipelines() -> None:
    search = GridSearchCV(SVC(random_state=0), {"C": [0.1, 1.0], "kernel__sigma": [0.3, 1.0]}, cv=3).fit(X, Y)
    assert search.best_params_["kernel__sigma"] in (0.3, 1.0) and search.best_score_ > 0.85
    assert cross_val_score(make_pipeline(StandardScaler(), SVR()), X, WAVE).mean() > 0.8
    frame = pd.DataFrame(X, columns=["a", "b"])
    assert SVC().fit(frame, NAMES).feature_names_in_.tolist() == ["a", "b"]
    gram = kernels.get("gaussian")(X)
    assert cross_val_score(SVC("precomputed"), gram, Y).mean() == cross_val_score(SVC(), X, Y).mean()


def test_a_path_gives_estimators() -> None:
    found = SVC().path(X, NAMES, Cs=[0.1, 1.0, 10.0])
    assert [one.C for one in found] == [0.1, 1.0, 10.0] and all(type(one) is SVC for one in found)
    for one in found:
        np.testing.assert_array_equal(one.predict(X), clone(one).fit(X, NAMES).predict(X))
    table = SVC(random_state=0).cross_validate(X, NAMES, Cs=[0.01, 1.0], folds=5)
    assert table.best_C == 1.0 and table.errors.shape == (2, 5)
    assert SVR(random_state=0).cross_validate(X, WAVE, Cs=[0.01, 1.0]).best_C == 1.0


def test_probabilities_are_there_unless_they_are_not_wanted() -> None:
    assert not hasattr(SVC(calibration="none"), "predict_proba")
    assert not hasattr(SVC(calibration="none").fit(X, Y), "predict_proba")
    assert not hasattr(SVR().fit(X, WAVE), "predict_proba")
    p = SVC().fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(np.argmax(p, axis=1), SVC().fit(X, Y).predict(X))


def test_limits_warn_as_scikit_learn_does() -> None:
    with pytest.warns(ConvergenceWarning, match="max_iter was reached"):
        made = SVC(C=1e5, max_iter=5).fit(X, Y)
    assert made.stopped_ == "max_iter was reached" and made.report_.stopped == "iterations"


@pytest.mark.parametrize("made", [SVC(random_state=0), SVR(C=3.0)], ids=["SVC", "SVR"])
def test_files_and_pickles(made: Any, tmp_path: Path) -> None:
    made = clone(made).fit(X, Y)
    made.save(tmp_path / "m.onl")
    for other in (onlearn.load(tmp_path / "m.onl"), pickle.loads(pickle.dumps(made))):
        assert type(other) is type(made) and other.get_params() == made.get_params()
        np.testing.assert_array_equal(other.predict(X), made.predict(X))
        assert other.report_ == made.report_


def test_smaller_forms() -> None:
    made = SVC("polynomial(2)").fit(X, Y)
    np.testing.assert_allclose(made.to_primal(force=True).decision_function(X), made.decision_function(X), atol=1e-6)
    small = made.reduce(5, X, Y)
    assert len(small.support_) <= 5 and small.reduction_.accuracy_after is not None
    with pytest.raises(AttributeError, match="not made by reduce"):
        made.reduction_  # noqa: B018
    with pytest.raises(ValueError, match="give both"):
        made.reduce(5, X)


def test_files_are_read_again_in_each_sweep(tmp_path: Path) -> None:
    lines = [f"{label} 1:{a:.17g} 2:{b:.17g}" for label, (a, b) in zip(NAMES, X, strict=True)]
    (tmp_path / "a.svm").write_text("\n".join(lines[:90]) + "\n")
    (tmp_path / "b.svm").write_text("\n".join(lines[90:]) + "\n")
    whole = SVC(tol=1e-5).fit(X, NAMES)
    files = [str(tmp_path / name) for name in ("a.svm", "b.svm")]
    found = SVC(tol=1e-5, chunk_size=40).fit_reader(files)
    assert found.classes_.tolist() == ["down", "up"]
    padded = np.column_stack([np.zeros(len(X)), X]) if found.n_features_in_ == 3 else X  # where indices begin at 0
    np.testing.assert_allclose(found.decision_function(padded), whole.decision_function(X), atol=2e-3)
    np.testing.assert_array_equal(found.support_, whole.support_)
    assert found.report_.sweeps > 1

    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": WAVE})
    table.to_csv(tmp_path / "wave.csv", index=False)
    found = SVR(tol=1e-5, chunk_size=40).fit_reader(str(tmp_path / "wave.csv"), target="y")
    np.testing.assert_allclose(found.predict(X), SVR(tol=1e-5).fit(X, WAVE).predict(X), atol=2e-3)


def test_parts_may_be_tuples_or_a_function() -> None:
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(Y))
    parts = [(X[n : n + 30], Y[n : n + 30], weight[n : n + 30]) for n in range(0, 150, 30)]
    whole = SVC(tol=1e-5).fit(X, Y, weight)
    for source in (parts, lambda: iter(parts), [(sp.csr_matrix(a), b, c) for a, b, c in parts]):
        found = SVC(tol=1e-5, chunk_size=50).fit_reader(source)
        np.testing.assert_allclose(found.decision_function(X), whole.decision_function(X), atol=2e-3)
    with pytest.raises(TypeError, match="iterator"):
        SVC().fit_reader(iter(parts))
    with pytest.raises(ValueError, match="no rows"):
        SVC().fit_reader([])


def test_a_reader_is_gone_through_again_and_again(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(90, 3))
    labels = np.where((rows**2).sum(axis=1) < 2, "in", "out")
    lines = [",".join([*(f"{value:.6f}" for value in row), label]) for row, label in zip(rows, labels)]
    (tmp_path / "a.csv").write_text("a,b,c,y\n" + "\n".join(lines) + "\n")
    made = SVC(chunk_size=20)
    reader = onlearn.data.read(tmp_path / "a.csv", target="y", batch_rows=16)
    by_reader = made.fit_reader(reader).decision_function(rows)
    by_file = made.fit_reader(tmp_path / "a.csv", target="y").decision_function(rows)
    np.testing.assert_allclose(by_reader, by_file, atol=1e-2)
    assert set(made.classes_) == {"in", "out"}


def test_numbers_beyond_single_precision():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 3))
    y = rows[:, 0] > 0
    made = SVC("gaussian(gamma=1e-200)").fit(rows * 1e100, y)
    wanted = SVC("gaussian(gamma=1)").fit(rows, y)
    np.testing.assert_allclose(made.decision_function(rows * 1e100), wanted.decision_function(rows), atol=1e-2)
    sparse = SVC("gaussian(gamma=1e-200)").fit(sp.csr_matrix(rows * 1e100), y)
    np.testing.assert_allclose(sparse.decision_function(rows * 1e100), wanted.decision_function(rows), atol=1e-2)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_class_of_weight_zero_is_refused(classes: int) -> None:
    rows = np.arange(12.0)[:, None]
    with pytest.raises(ValueError, match=r"class_weight of 1 is 0, which would leave no examples of that class"):
        SVC(class_weight={1: 0}).fit(rows, np.arange(12) % classes)
