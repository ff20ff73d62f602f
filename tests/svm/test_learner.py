"""The learners: solutions against scikit-learn's, margins, limits, more rows, other forms, the model file."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn import svm
from sklearn.datasets import make_blobs, make_moons

from onlearn import kernels, model_file
from onlearn.engine.csr import CSR
from onlearn.svm.learner import SVCLearner, SVMLearner, SVRLearner

RNG = np.random.default_rng(0)
MOONS, SIDES = make_moons(120, noise=0.25, random_state=0)
BLOBS, COLOURS = make_blobs(160, centers=4, n_features=3, cluster_std=3.0, random_state=1)
WAVE = np.sin(2 * MOONS[:, 0]) + MOONS[:, 1]
TEXTS = ["".join(RNG.choice(list("abc"), 8)) for _ in range(60)]
AB = np.array(["ab" in text for text in TEXTS])

# ours and scikit-learn's
KERNELS: list[tuple[str, dict[str, Any]]] = [
    ("gaussian(gamma=0.5)", dict(kernel="rbf", gamma=0.5)),
    ("linear", dict(kernel="linear")),
    ("polynomial(3)", dict(kernel="poly", degree=3, gamma=1.0, coef0=1.0)),
]


def weights(rows: int) -> np.ndarray:
    return np.random.default_rng(3).choice([0.0, 0.5, 1.0, 3.0], rows)


# ----------------------------------------------------------------------------------------------------
# Solutions


@pytest.mark.parametrize(("kernel", "peer"), KERNELS)
@pytest.mark.parametrize("case", ["plain", "weighted", "class_weight", "balanced"])
def test_scores_are_those_of_libsvm(kernel: str, peer: dict[str, Any], case: str) -> None:
    given: Any = {"class_weight": {0: 3.0}, "balanced": "balanced"}.get(case)
    weight = weights(len(SIDES)) if case == "weighted" else None
    ours = SVCLearner(kernel=kernel, C=2.0, tol=1e-5, class_weight=given).fit(MOONS, SIDES, weight)
    theirs = svm.SVC(C=2.0, tol=1e-6, class_weight=given, **peer).fit(MOONS, SIDES, sample_weight=weight)
    np.testing.assert_allclose(ours.decision_function(MOONS), theirs.decision_function(MOONS), atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    np.testing.assert_array_equal(ours.predict(MOONS), theirs.predict(MOONS))
    if kernel == "linear":
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)


@pytest.mark.parametrize(("kernel", "peer"), KERNELS[:2])
def test_several_classes_are_those_of_libsvm(kernel: str, peer: dict[str, Any]) -> None:
    ours = SVCLearner(kernel=kernel, tol=1e-5).fit(BLOBS, COLOURS)
    theirs = svm.SVC(tol=1e-6, **peer).fit(BLOBS, COLOURS)
    np.testing.assert_allclose(ours.decision_function(BLOBS), theirs.decision_function(BLOBS), atol=1e-3)
    np.testing.assert_array_equal(ours.predict(BLOBS), theirs.predict(BLOBS))
    np.testing.assert_array_equal(np.sort(theirs.support_), ours.support_)
    np.testing.assert_array_equal(theirs.n_support_, ours.n_support_)
    np.testing.assert_array_equal(BLOBS[ours.support_], ours.support_examples_)


def test_one_vs_all_is_a_classifier_for_each_class() -> None:
    ours = SVCLearner(multiclass="one-vs-all", tol=1e-5).fit(BLOBS, COLOURS)
    for k in range(4):
        theirs = svm.SVC(gamma=0.5, tol=1e-6).fit(BLOBS, np.equal(COLOURS, k))
        np.testing.assert_allclose(ours.decision_function(BLOBS)[:, k], theirs.decision_function(BLOBS), atol=1e-3)
    assert ours.dual_coef_.shape == (4, len(ours.support_))


@pytest.mark.parametrize(("kernel", "peer"), KERNELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_regression_is_that_of_libsvm(kernel: str, peer: dict[str, Any], weighted: bool) -> None:
    weight = weights(len(WAVE)) if weighted else None
    ours = SVRLearner(kernel=kernel, C=2.0, epsilon=0.05, tol=1e-5).fit(MOONS, WAVE, weight)
    theirs = svm.SVR(C=2.0, epsilon=0.05, tol=1e-6, **peer).fit(MOONS, WAVE, sample_weight=weight)
    np.testing.assert_allclose(ours.predict(MOONS), theirs.predict(MOONS), atol=1e-3)
    if kernel == "linear":
        np.testing.assert_allclose(ours.coef_, theirs.coef_[0], atol=1e-3)


def test_the_margin_without_slack_is_the_largest() -> None:
    """C to infinity: minimise |w|^2 subject to y (w x + b) >= 1, by another solver."""
    X, y = make_blobs(40, centers=[[0, 0], [4, 3]], cluster_std=0.7, random_state=0)
    signs = np.where(y == 1, 1.0, -1.0)
    found = minimize(
        lambda v: v[:2] @ v[:2] / 2,
        np.array([1.0, 1.0, -3.0]),
        jac=lambda v: np.array([v[0], v[1], 0.0]),
        constraints={"type": "ineq", "fun": lambda v: signs * (X @ v[:2] + v[2]) - 1},
        method="SLSQP",
        options=dict(ftol=1e-12, maxiter=500),
    )
    w = found.x[:2]
    ours = SVCLearner(kernel="linear", C=1e8, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(ours.coef_[0], w, atol=1e-4)
    assert ours.report_.margin == pytest.approx(2 / np.linalg.norm(w), rel=1e-4)
    assert ours.report_.bounded == 0
    assert (signs * ours.decision_function(X) > 1 - 1e-4).all()


def test_solvers_agree() -> None:
    values = {}
    for solver in ("smo", "ascent"):
        learner = SVCLearner(solver=solver, fit_intercept=False, tol=1e-6).fit(MOONS, SIDES)
        values[solver] = learner.decision_function(MOONS)
        assert learner.intercept_.tolist() == [0.0]
    np.testing.assert_allclose(values["smo"], values["ascent"], atol=1e-3)


@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 10_000),
    st.integers(4, 40),
    st.sampled_from(["linear", "polynomial(2)", "gaussian(0.7)", "1 + 0.5*gaussian"]),
    st.sampled_from([0.01, 1.0, 50.0]),
    st.booleans(),
)
def test_the_optimum_is_where_the_conditions_hold(seed: int, rows: int, kernel: str, C: float, bias: bool) -> None:
    """y f is 1 for free support vectors, at most 1 for those at C, at least 1 for all others; rows may be equal."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-2, 3, (rows, 2)) / 2.0, np.arange(rows) % 2
    weight = rng.choice([0.5, 1.0, 2.0], rows)
    learner = SVCLearner(kernel=kernel, C=C, fit_intercept=bias, tol=1e-6).fit(X, y, weight)
    margins = np.where(y == 1, 1.0, -1.0) * learner.decision_function(X)
    alpha = np.zeros(rows)
    alpha[learner.support_] = np.abs(learner.dual_coef_[0])
    assert (alpha <= C * weight).all()
    if bias:
        assert abs(learner.dual_coef_.sum()) <= 1e-7 * max(1.0, alpha.sum())
    slack = 1e-4 * max(1.0, np.abs(margins).max())
    assert (margins[alpha < C * weight] > 1 - slack).all()
    assert (margins[alpha > 0] < 1 + slack).all()


def test_duplicated_rows_count_twice() -> None:
    doubled = SVCLearner(tol=1e-6).fit(np.vstack([MOONS, MOONS]), np.tile(SIDES, 2))
    weighted = SVCLearner(tol=1e-6).fit(MOONS, SIDES, np.full(len(SIDES), 2.0))
    same = SVCLearner(tol=1e-6, C=2.0).fit(MOONS, SIDES)
    for other in (doubled, weighted):
        np.testing.assert_allclose(other.decision_function(MOONS), same.decision_function(MOONS), atol=1e-3)


def test_rows_without_weight_are_as_if_they_were_not_there() -> None:
    weight = (np.arange(len(COLOURS)) % 3 > 0).astype(float)
    weight[COLOURS == 3] = 0.0
    few = SVCLearner(tol=1e-6, random_state=0).fit(BLOBS[weight > 0], COLOURS[weight > 0])
    all_of_them = SVCLearner(tol=1e-6, random_state=0).fit(BLOBS, COLOURS, weight)
    assert all_of_them.classes_.tolist() == [0, 1, 2]
    np.testing.assert_allclose(few.decision_function(BLOBS), all_of_them.decision_function(BLOBS), atol=1e-3)
    assert weight[all_of_them.support_].all()


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_any_scale_is_right_with_a_kernel_to_match(scale: float) -> None:
    usual = SVCLearner(kernel="gaussian(0.7)", tol=1e-5).fit(MOONS, SIDES)
    other = SVCLearner(kernel=kernels.Gaussian(sigma=0.7 * scale), tol=1e-5).fit(MOONS * scale, SIDES)
    np.testing.assert_allclose(usual.decision_function(MOONS), other.decision_function(MOONS * scale), atol=1e-3)
    linear = SVCLearner(kernel="linear", C=1.0, tol=1e-5).fit(MOONS, SIDES)
    moved = SVCLearner(kernel="linear", C=1.0 / scale**2, tol=1e-5).fit(MOONS * scale, SIDES)
    np.testing.assert_allclose(linear.decision_function(MOONS), moved.decision_function(MOONS * scale), atol=1e-3)


def test_constant_features_do_no_harm() -> None:
    X = np.column_stack([MOONS, np.full(len(MOONS), 7.0), np.zeros(len(MOONS))])
    usual, other = (SVCLearner(tol=1e-6).fit(some, SIDES).decision_function(some) for some in (MOONS, X))
    np.testing.assert_allclose(usual, other, atol=1e-4)
    same = SVCLearner().fit(np.ones((10, 2)), np.arange(10) % 2)  # nothing to tell them apart
    assert np.isfinite(same.decision_function(np.ones((2, 2)))).all()


# ----------------------------------------------------------------------------------------------------
# Kinds of examples


def test_sparse_and_dense_rows_are_the_same() -> None:
    X = np.where(RNG.random((90, 6)) < 0.4, RNG.normal(size=(90, 6)), 0.0)
    y = (X @ np.arange(-2, 4) > 0).astype(int)
    dense = SVCLearner(tol=1e-5).fit(X, y)
    for rows in (sp.csr_matrix(X), CSR.of(X)):
        sparse = SVCLearner(tol=1e-5).fit(rows, y)
        np.testing.assert_allclose(sparse.decision_function(rows), dense.decision_function(X), atol=1e-4)
        np.testing.assert_array_equal(sparse.support_, dense.support_)


def test_strings_and_trees() -> None:
    learner = SVCLearner(kernel="normalize(substrings(1, 3))", C=10.0).fit(TEXTS, AB)
    gram = kernels.get("normalize(substrings(1, 3))")(TEXTS)
    theirs = svm.SVC(kernel="precomputed", C=10.0).fit(gram, AB)
    np.testing.assert_allclose(learner.decision_function(TEXTS), theirs.decision_function(gram), atol=5e-3)
    assert learner.support_examples_ == [TEXTS[n] for n in learner.support_]
    with pytest.raises(AttributeError, match="no columns"):
        learner.n_features_in_  # noqa: B018
    trees = ["(S (A x) (B y))", "(S (A x) (B z))", "(S (C x) (D y))", "(S (C w) (D y))"]
    assert SVCLearner(kernel="trees", C=10.0).fit(trees, [0, 0, 1, 1]).predict(trees).tolist() == [0, 0, 1, 1]


def test_precomputed_matrices(tmp_path: Path) -> None:
    gram = kernels.get("gaussian(gamma=0.5)")(MOONS)
    learner = SVCLearner(kernel="precomputed", tol=1e-5).fit(gram, SIDES)
    usual = SVCLearner(kernel="gaussian(gamma=0.5)", tol=1e-5).fit(MOONS, SIDES)
    np.testing.assert_allclose(learner.decision_function(gram[:9]), usual.decision_function(MOONS[:9]), atol=1e-4)
    learner.save(tmp_path / "m.onl")
    loaded = model_file.load_learner(tmp_path / "m.onl")
    np.testing.assert_array_equal(loaded.decision_function(gram[:9]), learner.decision_function(gram[:9]))
    with pytest.raises(ValueError, match="square"):
        SVCLearner(kernel="precomputed").fit(gram[:50], SIDES[:50])


# ----------------------------------------------------------------------------------------------------
# What cannot be


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (dict(C=0.0), "C must be a number above 0, not 0.0"),
        (dict(C=-1.0), "C must be a number above 0"),
        (dict(tol=0.0), "tol must be"),
        (dict(solver="newton"), "solver must be 'smo', 'ascent' or 'qp'"),
        (dict(solver="ascent", fit_intercept=True), "fit_intercept='auto'"),
        (dict(multiclass="true"), "multiclass must be 'one-vs-one' or 'one-vs-all'"),
        (dict(calibration="online"), "unknown calibration 'online'"),
        (dict(time_limit=-1.0), "time_limit must be a number of seconds above 0"),
        (dict(kernel="gauss"), "gaussian"),
        (dict(fit_intercept="no"), "fit_intercept must be True, False or 'auto'"),
    ],
)
def test_wrong_parameters_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SVCLearner(**params).fit(MOONS, SIDES)


def test_wrong_data_are_refused() -> None:
    with pytest.raises(ValueError, match="only one class"):
        SVCLearner().fit(MOONS, np.zeros(len(MOONS)))
    X = MOONS.copy()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        SVCLearner().fit(X, SIDES)
    with pytest.raises(ValueError, match="y contains NaN"):
        SVRLearner().fit(MOONS, np.where(np.arange(len(MOONS)) == 3, np.nan, WAVE))
    with pytest.raises(ValueError, match="zero"):
        SVCLearner().fit(MOONS, SIDES, np.zeros(len(SIDES)))
    with pytest.raises(OverflowError, match="too large"):
        SVCLearner(kernel="polynomial(40)").fit(MOONS * 1e9, SIDES)
    with pytest.raises(ValueError, match="epsilon"):
        SVRLearner(epsilon=-1.0).fit(MOONS, WAVE)


def test_a_fit_that_fails_changes_nothing() -> None:
    learner = SVCLearner().fit(MOONS, SIDES)
    before = learner.decision_function(MOONS)
    with pytest.raises(ValueError):
        learner.fit(MOONS, np.zeros(len(MOONS)))
    np.testing.assert_array_equal(learner.decision_function(MOONS), before)


# ----------------------------------------------------------------------------------------------------
# Limits


def hard(rows: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.normal(size=(rows, 3)), rng.integers(2, size=rows)


def test_iterations_are_limited() -> None:
    X, y = hard(300)
    with pytest.warns(UserWarning, match="max_iter was reached"):
        learner = SVCLearner(C=1e4, max_iter=20).fit(X, y)
    assert learner.report_.stopped == "iterations" and learner.stopped_ == "max_iter was reached"
    assert learner.report_.violation > 1e-3
    assert np.isfinite(learner.decision_function(X)).all()
    alpha = learner.dual_coef_[0]
    assert abs(alpha.sum()) < 1e-6 * np.abs(alpha).sum()


def test_time_is_limited() -> None:
    X, y = hard()
    with pytest.warns(UserWarning, match="the time was up"):
        learner = SVCLearner(C=1e6, tol=1e-9, time_limit=0.05).fit(X, y)
    assert learner.report_.stopped == "time"
    assert learner.predict(X).shape == (len(X),)
    assert np.allclose(learner.predict_proba(X).sum(axis=1), 1)


def test_several_classes_share_the_time() -> None:
    X, _ = hard()
    y = np.random.default_rng(2).integers(4, size=len(X))
    with pytest.warns(UserWarning, match="the time was up"):
        learner = SVCLearner(C=1e6, tol=1e-9, time_limit=1e-6).fit(X, y)
    assert set(learner.predict(X)) <= {0, 1, 2, 3}
    assert len(learner.report_.problems) == 6


def test_ctrl_c_leaves_a_usable_model() -> None:
    X, y = hard(3000)
    press = threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGINT))
    learner = SVCLearner(C=1e6, tol=1e-10)
    press.start()
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            learner.fit(X, y)
    finally:
        press.cancel()
    if learner.report_.stopped == "tol":  # a very fast machine
        pytest.skip("it had converged by then")
    assert learner.report_.stopped == "interrupt"
    assert "interrupted" in str(told[-1].message)
    assert np.isfinite(learner.decision_function(X[:5])).all()


def test_whoever_runs_a_learner_may_stop_it() -> None:
    X, y = hard()
    learner = SVCLearner(C=1e6, tol=1e-10)
    stop = time.monotonic() + 0.1
    learner.interrupted = lambda: time.monotonic() > stop
    with pytest.warns(UserWarning, match="interrupted"):
        learner.fit(X, y)
    assert learner.report_.stopped == "interrupt"


# ----------------------------------------------------------------------------------------------------
# Reports, progress


def test_the_report_tells_what_happened() -> None:
    learner = SVCLearner(tol=1e-4).fit(MOONS, SIDES)
    report = learner.report_
    alpha = np.abs(learner.dual_coef_[0])
    assert report.bounded == (alpha == 1.0).sum() and report.free == ((alpha > 0) & (alpha < 1.0)).sum()
    gram = kernels.get("gaussian")(learner.support_examples_)
    w = float(np.sqrt(learner.dual_coef_[0] @ gram @ learner.dual_coef_[0]))
    assert report.margin == pytest.approx(2 / w, rel=1e-4)
    assert report.objective == pytest.approx(alpha.sum() - w * w / 2, rel=1e-4)
    assert 0 <= report.gap < 0.1 and report.violation <= 1e-4 and report.stopped == "tol"
    assert report.iterations > 0 and report.seconds > 0 and report.values > 0
    told = str(report)
    assert "duality gap" in told and "margin" in told and "it converged" in told
    assert report.to_dict()["problems"][0]["examples"] == len(SIDES)
    assert learner.described()["support_vectors"] == len(learner.support_)


def test_progress_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    SVCLearner(verbose=1).fit(BLOBS, COLOURS)
    assert "problems" in capsys.readouterr().out


# ----------------------------------------------------------------------------------------------------
# Going on


@pytest.mark.parametrize("kind", ["one-vs-one", "one-vs-all"])
def test_more_rows_begin_from_the_support_vectors(kind: str) -> None:
    """The support vectors stand for the rows of before, which near the optimum they do well."""
    order = np.random.default_rng(0).permutation(len(COLOURS))
    X, y = BLOBS[order], COLOURS[order]
    whole = SVCLearner(multiclass=kind).fit(X, y)
    part = SVCLearner(multiclass=kind).fit(X[:100], y[:100])
    part.learn_more(X[100:], y[100:], None, same_rows=False)
    assert part.n_seen_ == len(y)
    assert (part.predict(X) == whole.predict(X)).mean() > 0.95
    assert part.report_.objective == pytest.approx(whole.report_.objective, rel=0.02)
    assert (part.support_ == -1).all()
    again = SVCLearner(multiclass=kind).fit(X, y)
    before = again.decision_function(X)
    again.learn_more(X, y, None, same_rows=True)  # nothing new: nothing to do
    assert again.n_seen_ == len(y)
    np.testing.assert_allclose(again.decision_function(X), before, atol=1e-2)
    assert again.report_.iterations <= whole.report_.iterations // 4


def test_regression_goes_on() -> None:
    part = SVRLearner(C=3.0).fit(MOONS[:80], WAVE[:80])
    part.learn_more(MOONS[80:], WAVE[80:], None, same_rows=False)
    whole = SVRLearner(C=3.0).fit(MOONS, WAVE)
    np.testing.assert_allclose(part.predict(MOONS), whole.predict(MOONS), atol=0.1)


def test_what_has_no_support_vectors_cannot_go_on() -> None:
    learner = SVCLearner().fit(MOONS, SIDES)
    for other in (learner.reduce(10), SVCLearner(kernel="linear").fit(MOONS, SIDES).to_primal(force=True)):
        with pytest.raises(ValueError, match="train anew"):
            other.learn_more(MOONS, SIDES, None, same_rows=False)


# ----------------------------------------------------------------------------------------------------
# Other forms, copies, the model file


@pytest.mark.parametrize("multiclass", ["one-vs-one", "one-vs-all"])
def test_the_primal_is_the_same_classifier(multiclass: str) -> None:
    learner = SVCLearner(kernel="polynomial(2)", multiclass=multiclass).fit(BLOBS, COLOURS)
    primal = learner.to_primal(force=True)
    np.testing.assert_allclose(primal.decision_function(BLOBS), learner.decision_function(BLOBS), atol=1e-6)
    np.testing.assert_allclose(primal.predict_proba(BLOBS), learner.predict_proba(BLOBS), atol=1e-6)
    assert primal.coef_.shape == (6 if multiclass == "one-vs-one" else 4, 10)
    with pytest.raises(AttributeError, match="primal"):
        primal.support_  # noqa: B018
    with pytest.raises(ValueError, match="no finite list"):
        SVCLearner().fit(MOONS, SIDES).to_primal()


def test_fewer_support_vectors() -> None:
    learner = SVCLearner().fit(BLOBS, COLOURS)
    small = learner.reduce(60)
    assert len(small.support_) <= 60 < len(learner.support_)
    assert (small.predict(BLOBS) == learner.predict(BLOBS)).mean() > 0.85
    assert small.training is not None and small.training.reduction is not None
    assert 0 < small.training.reduction.lost < 1
    same = learner.reduce(1000)
    np.testing.assert_allclose(same.decision_function(BLOBS), learner.decision_function(BLOBS), atol=1e-3)


LEARNERS: list[tuple[SVMLearner, Any, Any]] = [
    (SVCLearner(random_state=0), MOONS, np.where(SIDES == 1, "up", "down")),
    (SVCLearner(kernel="0.5*gaussian(2) + linear", multiclass="one-vs-all"), BLOBS.astype(np.float32), COLOURS),
    (SVCLearner(kernel="linear", calibration="none"), sp.csr_matrix(BLOBS), COLOURS),
    (SVCLearner(kernel="normalize(substrings(1, 2))"), TEXTS, AB),
    (SVRLearner(C=3.0), MOONS, WAVE),
]


@pytest.mark.parametrize("number", range(len(LEARNERS)))
@pytest.mark.parametrize("form", ["dual", "reduced", "primal"])
def test_files_and_pickles_give_the_same_scores_to_the_bit(number: int, form: str, tmp_path: Path) -> None:
    learner, X, y = LEARNERS[number]
    made = type(learner)(**learner.get_params()).fit(X, y)
    if form == "reduced":
        made = made.reduce(20)
    elif form == "primal":
        if made.kernel.name != "linear":
            pytest.skip("the features of this kernel cannot be listed")
        made = made.to_primal(force=True)
    made.save(tmp_path / "m.onl")
    loaded = model_file.load_learner(tmp_path / "m.onl")
    for other in (loaded, pickle.loads(pickle.dumps(made))):
        assert type(other) is type(made)
        if made.task.classifies:
            np.testing.assert_array_equal(other.decision_function(X), made.decision_function(X))
            np.testing.assert_array_equal(other.classes_, made.classes_)
            if learner.settings.calibration != "none":
                np.testing.assert_array_equal(other.predict_proba(X), made.predict_proba(X))
        np.testing.assert_array_equal(other.predict(X), made.predict(X))
        assert other.report_ == made.report_
        if form == "dual":
            np.testing.assert_array_equal(other.support_, made.support_)
    if form == "dual":
        again, more = (pickle.loads(pickle.dumps(one)) for one in (loaded, made))
        for one in (again, more):
            one.learn_more(X, y, None, same_rows=True)
        np.testing.assert_array_equal(again.predict(X), more.predict(X))


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    made = SVCLearner(random_state=0).fit(BLOBS, COLOURS)
    header, arrays = model_file.describe(made)
    training = header["training"]

    def refused(changes: dict[str, Any], new: dict[str, np.ndarray]) -> None:
        damaged = {**header, "training": {**training, **changes}}
        with pytest.raises((ValueError, KeyError, TypeError, IndexError)):
            model_file.rebuild(damaged, {**arrays, **new})

    coefs, curves = arrays["training.coefs"], arrays["training.curves"]
    refused({"classes": 5}, {})
    refused({"classes": 1 << 30}, {})
    refused({"classes": "four"}, {})
    refused({"kind": "one-vs-all"}, {})
    refused({"kind": "voted"}, {})
    refused({"report": {**training["report"], "problems": []}}, {})
    refused({"report": {**training["report"], "seconds": "long"}}, {})
    refused({"hypothesis": {"supports": {"kind": "columns"}}}, {})
    refused({"kernel": {"name": "unheard"}}, {})
    refused({}, {"training.coefs": coefs[:-1]})
    refused({}, {"training.coefs": coefs[:, :-1]})
    refused({}, {"training.coefs": coefs.astype(np.float32)})
    refused({}, {"training.intercepts": arrays["training.intercepts"][:-1]})
    refused({}, {"training.curves": curves[:-1]})
    refused({}, {"training.curves": -curves})
    refused({}, {"training.rows": arrays["training.rows"] - 5})
    refused({}, {"training.targets": arrays["training.targets"] + 4})
    refused({}, {"training.weight": arrays["training.weight"][1:]})
