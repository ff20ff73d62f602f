"""What a kernel classifier can do besides learning: smaller forms, certificates, the model file, bad input."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import onlearn
from onlearn import KernelClassifier, KernelPerceptron, OnlineClassifier, kernels


def moons(rows: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    angle, y = rng.uniform(0, np.pi, rows), rng.integers(0, 2, rows)
    X = np.column_stack([np.cos(angle) + y, np.where(y, 0.5 - np.sin(angle), np.sin(angle))])
    return X + rng.normal(scale=0.1, size=X.shape), np.where(y, "down", "up")


def test_the_textbook_name_is_the_same_class() -> None:
    assert KernelPerceptron is KernelClassifier


def test_it_learns_what_no_line_separates() -> None:
    X, y = moons()
    T, u = moons(seed=1)
    assert OnlineClassifier(random_state=0).fit(X, y).score(T, u) < 0.93
    assert KernelClassifier("gaussian(0.3)", random_state=0).fit(X, y).score(T, u) > 0.97


def test_nested_parameters_are_searched_and_cloned() -> None:
    X, y = moons()
    model = make_pipeline(StandardScaler(), KernelClassifier(kernels.Gaussian(sigma=1.0), random_state=0, epochs=2))
    search = GridSearchCV(model, {"kernelclassifier__kernel__sigma": [0.3, 30.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"kernelclassifier__kernel__sigma": 0.3}
    assert clone(KernelClassifier("polynomial(3)")).get_params()["kernel__degree"] == 3
    assert KernelClassifier("polynomial(3)").set_params(kernel__degree=4).kernel == kernels.Polynomial(4)


def test_certificate_bounds_the_mistakes_in_the_feature_space() -> None:
    X, y = moons(100)
    model = KernelClassifier("gaussian(0.2)", stabilizer="last", epochs=None, random_state=0).fit(X, y)
    assert model.separable_ is True
    certificate = model.certificate(X, y)
    assert certificate.margin > 0 and certificate.holds()
    assert certificate.best is not None and certificate.best.value >= model.n_mistakes_
    linear = KernelClassifier("linear", stabilizer="last", random_state=0).fit(X, y)
    primal = OnlineClassifier(stabilizer="last", random_state=0).fit(X, y)
    ours, theirs = linear.certificate(X, y), primal.certificate(X, y)
    assert pytest.approx(theirs.R) == ours.R and ours.margin == pytest.approx(theirs.margin)
    assert ours.norm2 == pytest.approx(theirs.norm2)
    values = {bound.name: bound.value for bound in theirs.bounds}
    for bound in ours.bounds:
        assert bound.value == pytest.approx(values[bound.name])


@pytest.mark.parametrize("stabilizer", ["last", "averaged", "survivor"])
def test_collapsing_changes_no_decision_and_learning_goes_on(stabilizer: str) -> None:
    X, y = moons()
    T, u = moons(seed=2)
    model = KernelClassifier("polynomial(3)", stabilizer=stabilizer, random_state=0).fit(X, y)
    primal = model.to_primal()
    assert primal.representation_ == "primal" and "smaller" in primal.representation_reason_
    assert primal.coef_.shape == (1, 10)
    np.testing.assert_allclose(primal.decision_function(T), model.decision_function(T), rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(primal.predict(T), model.predict(T))
    model.partial_fit(T, u)
    primal.partial_fit(T, u)
    np.testing.assert_allclose(primal.decision_function(X), model.decision_function(X), rtol=1e-6, atol=1e-6)
    before, another = primal.decision_function(X), primal.to_primal()
    another.partial_fit(X, y)
    np.testing.assert_array_equal(primal.decision_function(X), before)


def test_collapsing_that_does_not_pay_is_refused() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 40))
    model = KernelClassifier("polynomial(4)", random_state=0).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match=r"neither smaller nor faster.*force=True"):
        model.to_primal()
    with pytest.raises(ValueError, match="no finite list of features"):
        KernelClassifier("gaussian").fit(X, X[:, 0] > 0).to_primal()
    with pytest.raises(ValueError, match="voted"):
        KernelClassifier("linear", stabilizer="voted").fit(X, X[:, 0] > 0).to_primal(force=True)


def test_representation_auto_says_why() -> None:
    X, y = moons(12000)
    model = KernelClassifier("polynomial(2)", representation="auto", random_state=0).fit(X, y)
    assert model.representation_ == "primal" and "6 features" in model.representation_reason_
    same = KernelClassifier("polynomial(2)", random_state=0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), same.decision_function(X), rtol=1e-7, atol=1e-7)
    assert KernelClassifier("gaussian", representation="auto").fit(X, y).representation_ == "dual"
    with pytest.raises(ValueError, match="no finite list"):
        KernelClassifier("gaussian", representation="primal").fit(X, y)


def test_more_features_than_there_are_floats_leave_the_dual() -> None:
    X = np.eye(8, 9000)
    model = KernelClassifier("monomials", representation="auto", random_state=0).fit(X, [0, 1] * 4)
    assert model.representation_ == "dual" and model.representation_reason_.startswith("about 10^4294 features")


def test_reducing_measures_what_is_lost(tmp_path: Path) -> None:
    X, y = moons(400)
    model = KernelClassifier("gaussian(0.5)", rule="hinge", random_state=0).fit(X, y)
    small = model.reduce(25, X, y)
    assert small.n_support_ == 25 < model.n_support_
    told = small.reduction_
    assert told.before == model.n_support_ and told.after == 25
    small.save(tmp_path / "m.onl")
    assert onlearn.load(tmp_path / "m.onl").reduction_ == told
    assert told.accuracy_before == model.score(X, y) and told.accuracy_after == small.score(X, y)
    assert told.accuracy_after > told.accuracy_before - 0.03 and 0 < told.lost < 0.5
    assert model.reduce(10**6).reduction_.lost < 1e-4
    assert model.reduce(50).reduction_.lost < model.reduce(5).reduction_.lost
    small.partial_fit(X[:50], y[:50])
    for given in (dict(X=X), dict(y=y)):
        with pytest.raises(ValueError, match="both, or neither"):
            model.reduce(5, **given)


def test_stages_are_the_hypotheses_after_each_pass(tmp_path: Path) -> None:
    X, y = moons()
    model = KernelClassifier("gaussian", epochs=4, keep_stages=True, random_state=0).fit(X, y)
    stages = list(model.staged_decision_function(X))
    assert len(stages) == 4
    for passes in (1, 2, 4):
        same = KernelClassifier("gaussian", epochs=passes, random_state=0).fit(X, y)
        np.testing.assert_allclose(stages[passes - 1], same.decision_function(X), atol=1e-9)
    with pytest.raises(ValueError, match="keep_stages"):
        list(KernelClassifier().fit(X, y).staged_decision_function(X))
    model.save(tmp_path / "m.onl")
    for found, wanted in zip(onlearn.load(tmp_path / "m.onl").staged_decision_function(X), stages, strict=True):
        np.testing.assert_array_equal(found, wanted)
    unfinished = KernelClassifier(keep_stages=True).partial_fit(X, y, classes=np.unique(y))
    with pytest.raises(ValueError, match="no stage yet"):
        list(unfinished.staged_decision_function(X))


@pytest.mark.parametrize("stabilizer", ["last", "averaged", "voted", "survivor"])
@pytest.mark.parametrize("kernel", ["gaussian(0.5)", "normalize(polynomial(3))"])
def test_a_saved_model_goes_on_as_if_it_had_never_been_away(kernel: str, stabilizer: str, tmp_path: Path) -> None:
    X, y = moons()
    T, u = moons(seed=3)
    model = KernelClassifier(kernel, stabilizer=stabilizer, random_state=0).partial_fit(X, y, classes=["down", "up"])
    model.save(tmp_path / "m.onl")
    loaded = onlearn.load(tmp_path / "m.onl")
    np.testing.assert_array_equal(loaded.decision_function(T), model.decision_function(T))
    np.testing.assert_array_equal(loaded.predict_proba(T), model.predict_proba(T))
    assert str(loaded.get_params()) == str(model.get_params())
    model.partial_fit(T, u)
    loaded.partial_fit(T, u)
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.n_support_ == model.n_support_


@pytest.mark.parametrize("few", [30, 600])  # rows; of few, zeros are not worth leaving out
def test_rows_with_zeros_are_multiplied_alike_after_loading(few: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 700)) * (rng.random((600, 700)) < 0.1)
    y = rng.integers(0, 2, len(X))
    model = KernelClassifier("polynomial(3)", rule="pa1(0.5)", random_state=0).partial_fit(X[:few], y[:few], [0, 1])
    model.save(tmp_path / "m.onl")
    loaded = onlearn.load(tmp_path / "m.onl")
    for learner in (model, loaded):
        learner.partial_fit(X, y)
    np.testing.assert_array_equal(loaded.dual_coef_, model.dual_coef_)


@pytest.mark.parametrize("policy", ["project", "merge", "remove(random)", "remove(oldest)"])
def test_a_saved_model_with_a_budget_goes_on_too(policy: str, tmp_path: Path) -> None:
    X, y = moons()
    T, u = moons(seed=3)
    model = KernelClassifier("gaussian(0.5)", budget=12, budget_policy=policy, stabilizer="last", random_state=0)
    model.partial_fit(X, y, classes=["down", "up"]).save(tmp_path / "m.onl")
    loaded = onlearn.load(tmp_path / "m.onl")
    for some in (model, loaded):
        some.partial_fit(T, u)
        assert some.n_support_ <= 12
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


def test_parameters_of_the_policy_are_nested() -> None:
    assert KernelClassifier(budget=5).get_params()["budget_policy__eta"] == 0.01
    assert KernelClassifier(budget=5).set_params(budget_policy__eta=0.1).budget_policy.eta == 0.1


def test_strings_under_a_budget() -> None:
    texts = ["".join(np.random.default_rng(n).choice(list("ab"), 12)) for n in range(80)]
    y = np.array(["aa" in text for text in texts])
    model = KernelClassifier("normalize(substrings(1, 3))", budget=20, random_state=0).fit(texts, y)
    assert model.n_support_ <= 20 and model.score(texts, y) > 0.75
    with pytest.raises(ValueError, match="budget already"):
        model.reduce(3)
    with pytest.raises(ValueError, match="precomputed"):
        KernelClassifier("precomputed", budget=3).fit(np.eye(4), [0, 1, 0, 1])


def test_sparse_and_collapsed_models_are_saved(tmp_path: Path) -> None:
    X, y = moons()
    model = KernelClassifier("polynomial(2)", random_state=0).fit(sp.csr_matrix(X), y)
    for made in (model, model.to_primal()):
        made.save(tmp_path / "m.onl")
        loaded = onlearn.load(tmp_path / "m.onl")
        np.testing.assert_array_equal(loaded.predict(sp.csr_matrix(X)), made.predict(sp.csr_matrix(X)))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_numbers_too_large_for_single_precision_are_told_from_infinity(form: Any) -> None:
    X, y = moons(40)
    model = KernelClassifier("linear", random_state=0).fit(form(X.astype(np.float32)), y)
    for call in (lambda X: model.predict(form(X)), lambda X: model.partial_fit(form(X), y)):
        with pytest.raises(OverflowError, match="in row 0, which is too large for float32"):
            call(X * 1e39)
    with pytest.raises(ValueError, match="infinity in row 0"):
        model.predict(form(X * np.inf))


def test_a_precomputed_matrix() -> None:
    X, y = moons()
    T, _ = moons(seed=4)
    gaussian = kernels.Gaussian(sigma=0.5)
    plain = KernelClassifier(gaussian, random_state=0).fit(X, y)
    given = KernelClassifier("precomputed", random_state=0).fit(gaussian(X), y)
    np.testing.assert_allclose(given.decision_function(gaussian(T, X)), plain.decision_function(T), atol=1e-12)
    for some in (gaussian(X)[:40], gaussian(X)[:, :40]):
        with pytest.raises(ValueError, match="must be square"):
            KernelClassifier("2*precomputed").fit(some, y[: len(some)])


def test_a_precomputed_matrix_is_saved_by_the_columns_it_needs(tmp_path: Path) -> None:
    X, y = moons()
    K = kernels.Gaussian()(X)
    model = KernelClassifier("precomputed", random_state=0).fit(K, y)
    model.save(tmp_path / "m.onl")
    np.testing.assert_array_equal(onlearn.load(tmp_path / "m.onl").predict(K), model.predict(K))


def test_what_is_not_a_kernel_is_warned_about_or_refused() -> None:
    X, y = moons()
    with pytest.warns(UserWarning, match="not a kernel: its smallest eigenvalue"):
        KernelClassifier("sigmoid(gamma=1.0, coef0=-1.0)", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="k\\(x, z\\) and k\\(z, x\\) differ"):
        KernelClassifier(kernels.Callable(lambda x, z: float(x[0] + 2 * z[0]))).fit(X[:20], y[:20])


def test_one_sentence_for_bad_input() -> None:
    X, y = moons(20)
    for settings, message in [
        (dict(kernel="gausian"), "did you mean 'gaussian'"),
        (dict(geometry="winnow"), "learns additively"),
        (dict(geometry="additive(l1=0.1)"), "without l1"),
        (dict(budget=0), "budget must be a whole number"),
        (dict(budget=True), "budget must be a whole number"),
        (dict(cache_mb=-1), "cache_mb must be"),
        (dict(cache_mb=True), "cache_mb must be"),
        (dict(time_limit=0), "time_limit must be"),
        (dict(time_limit=True), "time_limit must be"),
        (dict(representation="both"), "representation must be"),
        (dict(intercept_scaling="width"), "intercept_scaling must be a number above 0 or 'radius'"),
    ]:
        with pytest.raises(ValueError, match=message):
            KernelClassifier(**settings).fit(X, y)
    with pytest.raises(ValueError, match="NaN in row 3, column 1"):
        KernelClassifier().fit(np.where(np.arange(40).reshape(20, 2) == 7, np.nan, X), y)
    with pytest.raises(ValueError, match="2 features"):
        KernelClassifier().fit(X, y).predict(X[:, :1])
    with pytest.raises(AttributeError, match="dual_coef_"):
        _ = KernelClassifier().fit(X, y).coef_
    with pytest.raises(ValueError, match="whole number of at least 1, not True"):
        KernelClassifier().fit(X, y).reduce(True)


def test_a_function_that_fails_halfway_changes_nothing() -> None:
    X, y = moons(60)
    calls = [0]

    def product(x, z):  # type: ignore[no-untyped-def]
        calls[0] += 1
        if calls[0] == limit:
            raise RuntimeError("no more")
        return float(x @ z)

    limit = 0
    model = KernelClassifier(kernels.Callable(product), random_state=0).partial_fit(X, y, classes=["down", "up"])
    before = model.decision_function(X)
    limit = calls[0] + 60 + 60 * model.n_support_ + 90  # after the rows with themselves and with the support examples
    with pytest.raises(RuntimeError, match="no more"):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), before)
    with pytest.raises(OverflowError, match="of row 0 with itself is too large for float32"):
        KernelClassifier("polynomial(40)").fit(10 * X.astype(np.float32) + 10, y)


def test_float32_is_kept() -> None:
    X, y = moons()
    model = KernelClassifier("gaussian", random_state=0).fit(X.astype(np.float32), y)
    assert model.support_examples_.dtype == np.float32
    assert model.score(X.astype(np.float32), y) > 0.9


def test_time_and_memory_are_told_beforehand(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = moons()
    told = KernelClassifier("gaussian", epochs=3).estimate(X)
    assert KernelClassifier("gaussian", epochs=3, budget=5).estimate(X).supports == 5
    assert told.rows == 200 and told.supports == 20 and told.seconds > 0 and told.megabytes > 0
    model = KernelClassifier("gaussian", verbose=1, random_state=0).fit(X, np.arange(200) % 2)
    said = capsys.readouterr().err
    assert "beside the data for 200 examples, if 20 of them become support examples" in said
    assert "examples have become support examples: if that goes on, about" in said  # there is nothing to be learned
    assert model._training.after_block is None
    assert told.corrected(50, 10) is None and "11 of the first 50 examples" in str(told.corrected(50, 11))
    assert KernelClassifier(budget=5, verbose=1).fit(X, y).n_support_ == 5
    assert "if 5 of them become support examples" in capsys.readouterr().err


def test_a_time_limit_keeps_what_was_learned(tmp_path: Path) -> None:
    X, y = moons(3000)
    for kernel, representation, least in (("gaussian(0.3)", "dual", 0.9), ("polynomial(3)", "primal", 0.8)):
        settings = dict(representation=representation, time_limit=0.3, random_state=0)
        with pytest.warns(ConvergenceWarning, match="time limit was reached; what was learned is kept"):
            model = KernelClassifier(kernel, epochs=10**6, **settings).fit(X, y)
        assert model.score(X, y) > least and model.stopped_ == "the time limit was reached"
        model.save(tmp_path / "m.onl")
        assert onlearn.load(tmp_path / "m.onl").stopped_ == model.stopped_


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs signals")
def test_ctrl_c_keeps_what_was_learned() -> None:
    X, y = moons(3000)
    KernelClassifier("gaussian(0.3)", epochs=1, random_state=0).fit(X[:50], y[:50])
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    before = signal.getsignal(signal.SIGINT)
    start = time.monotonic()
    try:
        with pytest.warns(ConvergenceWarning, match="interrupted; what was learned is kept"):
            model = KernelClassifier("gaussian(0.3)", epochs=10**6, random_state=0).fit(X, y)
    finally:
        timer.cancel()
    assert time.monotonic() - start < 60
    assert model.score(X, y) > 0.9 and signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(("first", "second"), [(np.asarray, sp.csr_matrix), (sp.csr_matrix, np.asarray)])
def test_dense_rows_may_follow_sparse_ones_and_sparse_ones_dense(first, second, tmp_path: Path) -> None:
    X, y = moons(120)
    for budget in (None, 8):
        model = KernelClassifier("gaussian(0.3)", budget=budget, budget_policy="merge", random_state=0)
        model.partial_fit(first(X[:60]), y[:60], classes=["down", "up"]).partial_fit(second(X[60:]), y[60:])
        model.save(tmp_path / "m.onl")
        loaded = onlearn.load(tmp_path / "m.onl")
        np.testing.assert_allclose(loaded.decision_function(X), model.decision_function(X), rtol=1e-12)
        assert model.support_examples_.shape == (model.n_support_, 2)


def test_new_parameters_of_the_kernel_leave_what_was_learned() -> None:
    X, y = moons()
    kernel = kernels.Gaussian(0.3)
    model = KernelClassifier(kernel, random_state=0).fit(X, y)
    before = model.decision_function(X)
    model.set_params(kernel__sigma=5.0)
    assert (model.kernel.sigma, kernel.sigma) == (5.0, 0.3)
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_stages_are_not_kept_under_a_budget() -> None:
    X, y = moons()
    with pytest.raises(ValueError, match="no use with a budget"):
        KernelClassifier("gaussian", budget=10, keep_stages=True).fit(X, y)


def test_a_time_limit_is_that_of_its_fit() -> None:
    X, y = moons(80)
    model = KernelClassifier("gaussian(0.3)", epochs=1, time_limit=0.2, random_state=0).fit(X[:40], y[:40])
    time.sleep(0.25)
    model.partial_fit(X[40:], y[40:])
    assert model._training.n_seen == 80


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precomputed_matrices_are_saved_and_cross_validated(dtype: type, tmp_path: Path) -> None:
    X, y = moons(90)
    kernel = kernels.get("gaussian(0.3)")
    K = kernel(X).astype(dtype)
    model = KernelClassifier("precomputed", random_state=0).fit(K, y)
    model.save(tmp_path / "m.onl")
    np.testing.assert_array_equal(onlearn.load(tmp_path / "m.onl").decision_function(K), model.decision_function(K))
    by_matrix = cross_val_score(KernelClassifier("precomputed", random_state=0), K, y, cv=3)
    by_rows = cross_val_score(KernelClassifier(kernel, random_state=0), X.astype(dtype), y, cv=3)
    np.testing.assert_allclose(by_matrix, by_rows, atol=0.05)
    with pytest.raises(ValueError, match="at once"):
        model.partial_fit(K[40:50], y[40:50])
