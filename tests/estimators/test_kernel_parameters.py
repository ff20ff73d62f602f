"""What learning began with is held to, and what cannot be learned from or said is refused in words."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onlearn
from onlearn import KernelClassifier, kernels

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
y = (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.parametrize(
    ("began", "changed", "words"),
    [
        ({}, {"budget": 5}, "budget was None when learning began and cannot change to 5"),
        ({"budget": 9}, {"budget": None}, "budget was 9"),
        ({"budget": 9}, {"budget_policy": "remove(oldest)"}, "budget_policy was project"),
        ({}, {"kernel": "linear"}, "kernel was gaussian when learning began and cannot change to linear"),
        ({}, {"kernel__sigma": 5.0}, "kernel was gaussian"),
        ({}, {"representation": "auto"}, "representation was 'dual'"),
        ({}, {"rule": "pa1"}, "rule was perceptron"),
        ({}, {"fit_intercept": False}, "fit_intercept was True"),
    ],
)
def test_parameters_that_would_have_no_effect_are_refused(began: Any, changed: Any, words: str) -> None:
    model = KernelClassifier("gaussian", **began, epochs=1, random_state=0).fit(X[:30], y[:30])
    before = model.decision_function(X)
    model.set_params(**changed)
    with pytest.raises(ValueError, match=words):
        model.partial_fit(X[30:], y[30:])
    model.warm_start = True
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), before)
    if "kernel" in changed:  # the others would compile loops of their own
        model.set_params(warm_start=False).fit(X, y).partial_fit(X, y)


def test_parameters_that_mean_the_same_or_do_not_matter_may_change(tmp_path: Path) -> None:
    model = KernelClassifier("gaussian", epochs=1, random_state=0).fit(X, y)
    model.set_params(kernel=kernels.Gaussian(sigma=1.0), budget_policy="merge", epochs=3, cache_mb=1)
    model.partial_fit(X, y).save(tmp_path / "m.onl")
    onlearn.load(tmp_path / "m.onl").partial_fit(X, y)
    model = KernelClassifier("polynomial(2)", epochs=1, random_state=0).fit(X, y)
    model.to_primal(force=True).partial_fit(X, y)
    model.reduce(5).partial_fit(X, y)


def test_a_kernel_that_is_changed_in_place_leaves_what_was_learned() -> None:
    kernel = kernels.Gaussian(1.0)
    model = KernelClassifier(kernel, random_state=0).fit(X, y)
    before = model.decision_function(X)
    kernel.set_params(sigma=9.0)
    np.testing.assert_array_equal(model.decision_function(X), before)
    with pytest.raises(ValueError, match="kernel was gaussian"):
        model.partial_fit(X, y)


def test_a_budget_that_was_set_too_late_is_not_saved(tmp_path: Path) -> None:
    for began, changed in ((None, {"budget": 5}), (7, {"budget": None}), (7, {"budget": 9, "budget_policy": "merge"})):
        model = KernelClassifier("gaussian", budget=began, random_state=0).fit(X, y)
        model.set_params(**changed).save(tmp_path / "m.onl")
        loaded = onlearn.load(tmp_path / "m.onl")
        assert (loaded.budget, str(loaded.budget_policy)) == (began, "project")
        np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
        loaded.partial_fit(X, y)


def test_new_classes_are_refused_without_advice_that_does_not_help() -> None:
    model = KernelClassifier().partial_fit(X, y, classes=[0, 1])
    for work in (model.partial_fit, model.certificate):
        with pytest.raises(ValueError, match=r"the label 2 \(row \d+\), which is not among the classes 0, 1$"):
            work(X, y + 1)


def test_no_bound_applies_where_theory_has_none() -> None:
    model = KernelClassifier("polynomial(2)", budget=4, stabilizer="last", random_state=0).fit(X, y)
    for learned in (model, model.to_primal(force=True)):
        certificate = learned.certificate(X, y)
        assert certificate.best is None and "budget" in str(certificate)
    with pytest.warns(UserWarning, match="not a kernel"):
        model = KernelClassifier("sigmoid(2, -1)", stabilizer="last", random_state=0).fit(X, y)
    certificate = model.certificate(X, y)
    assert certificate.best is None and all("is not a kernel" in bound.why for bound in certificate.bounds)
    assert KernelClassifier("gaussian", stabilizer="last", random_state=0).fit(X, y).certificate(X, y).best is not None


def test_strings_for_a_kernel_of_numbers() -> None:
    import pandas as pd

    for strings in (["c", "ab"], np.array(["c", "ab"]), np.array(["c", "ab"], dtype=object), pd.Series(["c", "ab"])):
        with pytest.raises(TypeError, match="gaussian works on rows of numbers, not on strings"):
            KernelClassifier("gaussian").fit(strings, [0, 1])
        with pytest.raises(TypeError, match="gaussian works on rows of numbers, not on strings"):
            kernels.Gaussian()(strings)


def test_a_string_model_says_why_it_has_no_primal() -> None:
    model = KernelClassifier("normalize(substrings)", random_state=0).fit(["abc", "xyz", "ab"], [0, 1, 0])
    with pytest.raises(ValueError, match=r"are pieces of the given strings.* it stays in the dual"):
        model.to_primal()


def test_labels_that_are_missing_are_refused_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="y holds nan in row"):
            KernelClassifier().fit(X, np.where(y, np.nan, 1))
