"""The learner inside the kernel classifier: what runs over files and loaded models use, without an estimator around."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onlearn
from onlearn import KernelClassifier, model_file
from onlearn.dual.learner import DualLearner
from onlearn.engine.csr import CSR

rng = np.random.default_rng(0)
X = np.where(rng.random((80, 4)) < 0.6, rng.normal(size=(80, 4)), 0.0)
y = np.where(X[:, 0] * X[:, 1] > 0, "same", np.where(X[:, 2] > 0, "above", "below"))
TEXTS = ["".join(rng.choice(list("ab"), 9)) for _ in range(60)]
CHOICES: list[dict[str, Any]] = [
    dict(kernel="gaussian(2)", rule="pa1(0.5)", keep_stages=True),
    dict(kernel="polynomial(2)", representation="primal", stabilizer="last"),
    dict(kernel="gaussian", budget=15, budget_policy="remove(oldest)", stabilizer="last"),
]


@pytest.mark.parametrize("choices", CHOICES)
def test_the_classifier_is_its_learner(choices: dict[str, Any], tmp_path: Path) -> None:
    """Sparse rows of ours and of SciPy: one model file, and the same answers."""
    rows = CSR.of(X)
    estimator = KernelClassifier(**choices, random_state=0).fit(rows.to_scipy(), y)
    learner = DualLearner(**choices, random_state=0).fit(rows, y)
    np.testing.assert_array_equal(learner.decision_function(rows), estimator.decision_function(rows.to_scipy()))
    np.testing.assert_array_equal(learner.predict(X), estimator.predict(X))
    np.testing.assert_array_equal(learner.predict_proba(X), estimator.predict_proba(X))
    for made, name in ((estimator, "a.onl"), (learner, "b.onl")):
        made.save(tmp_path / name)
    assert (tmp_path / "a.onl").read_bytes() == (tmp_path / "b.onl").read_bytes()
    loaded, bare = onlearn.load(tmp_path / "b.onl"), model_file.load_learner(tmp_path / "a.onl")
    assert type(loaded) is KernelClassifier and type(bare) is DualLearner
    for some in (loaded, bare, pickle.loads(pickle.dumps(learner))):
        some.partial_fit(X, y)
    learner.partial_fit(X, y)
    np.testing.assert_array_equal(loaded.decision_function(X), learner.decision_function(X))
    np.testing.assert_array_equal(bare.decision_function(X), learner.decision_function(X))


def test_sparse_support_examples_are_of_the_kind_that_each_takes(tmp_path: Path) -> None:
    estimator = KernelClassifier("linear", random_state=0).fit(CSR.of(X).to_scipy(), y)
    estimator.save(tmp_path / "m.onl")
    loaded, bare = onlearn.load(tmp_path / "m.onl"), model_file.load_learner(tmp_path / "m.onl")
    assert type(loaded.support_examples_) is type(estimator.support_examples_)
    assert isinstance(bare.support_examples_, CSR)
    np.testing.assert_array_equal(loaded.support_examples_.toarray(), bare.support_examples_.toarray())


def test_strings_have_no_columns(tmp_path: Path) -> None:
    labels = np.array(["aa" in text for text in TEXTS])
    learner = DualLearner(kernel="substrings(1, 3)", random_state=0).fit(TEXTS, labels)
    learner.save(tmp_path / "m.onl")
    for some in (learner, model_file.load_learner(tmp_path / "m.onl"), onlearn.load(tmp_path / "m.onl")):
        assert not hasattr(some, "n_features_in_")
        np.testing.assert_array_equal(some.predict(TEXTS), learner.predict(TEXTS))


def test_a_learner_has_the_parameters_of_the_classifier() -> None:
    learner = DualLearner(kernel="polynomial(3)", budget=9)
    assert learner.get_params() == KernelClassifier("polynomial(3)", budget=9).get_params(deep=False)
    assert repr(learner) == "KernelClassifier(budget=9, kernel='polynomial(3)')"
    with pytest.raises(TypeError, match="KernelClassifier has no parameter 'grow'"):
        DualLearner(grow=True)


def test_several_parameters_of_a_kernel_change_together() -> None:
    """Each of them alone would not go with the other."""
    for made in (KernelClassifier("substrings(1, 2)"), onlearn.Nystroem("substrings(1, 2)")):
        made.set_params(kernel__min_length=5, kernel__max_length=6)
        assert str(made.kernel) == "substrings(min_length=5, max_length=6)"


def test_examples_that_a_run_cannot_have() -> None:
    learner = DualLearner(kernel="linear", representation="primal")
    with pytest.raises(ValueError, match="in the dual: leave representation='primal' out"):
        learner._start(3, np.ones(2), np.float64)
    learner = DualLearner(kernel="linear").fit(X, y)
    for work in (lambda: learner._take_in(5, 3), lambda: learner.keep_features(np.arange(2))):
        with pytest.raises(ValueError, match="a learner with a kernel cannot"):
            work()


def test_the_radius_is_that_of_all_rows_of_a_run_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0.2).astype(int)
    settings = dict(kernel="polynomial(2)", intercept_scaling="radius", shuffle=False, epochs=2, stabilizer="last")
    whole, run = DualLearner(**settings).fit(X, y), DualLearner(**settings)
    run._start(3, np.bincount(y), np.float64)
    rows = run.prepare_rows(X)
    for _ in range(2):
        rows.begin_pass()
        run._learn_rows(rows, y, None, np.arange(60), first=True)
        run._end_pass()
    run.release_rows()
    assert whole.training.bias == run.training.bias == np.sqrt((((X * X).sum(axis=1) + 1) ** 2).max())
    assert np.array_equal(whole.decision_function(X), run.decision_function(X))
    assert whole.certificate(X, y).holds()
    with pytest.raises(ValueError, match="for linear learners, not for KernelClassifier"):
        whole.fit(X, y, trace=True)
