"""Whether the data are separable in feature space, as passes in the dual find out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onlearn import KernelClassifier, OnlineClassifier

SQUARE = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
SETTINGS: dict[str, Any] = dict(stabilizer="last", epochs=None, max_epochs=200, shuffle=False)


@pytest.mark.parametrize("cache_mb", [0, 1024])
def test_separable_data_end_with_a_pass_without_a_mistake(cache_mb: float) -> None:
    for kernel, y in (("linear", [0, 0, 0, 1]), ("polynomial(2)", [0, 1, 1, 0])):
        model = KernelClassifier(kernel, **SETTINGS, cache_mb=cache_mb).fit(SQUARE, y)
        assert model.separable_ is True
        assert model.history_["passes"][-1]["mistakes"] == 0


@pytest.mark.parametrize("cache_mb", [0, 1024])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_cycle_is_found_where_the_linear_learner_finds_it(cache_mb: float, classes: int) -> None:
    X, y = np.vstack([SQUARE, [[5.0, 5.0]]])[: classes + 2], [0, 1, 1, 0, 2][: classes + 2]
    linear = OnlineClassifier(**SETTINGS, rule="perceptron")
    dual = KernelClassifier("linear", **SETTINGS, cache_mb=cache_mb)
    with pytest.warns(UserWarning, match="again") as ours:
        dual.fit(X, y)
    with pytest.warns(UserWarning, match="again") as theirs:
        linear.fit(X, y)
    assert dual.separable_ is linear.separable_
    assert len(dual.history_["passes"]) == len(linear.history_["passes"]) < 200
    assert str(ours[0].message) == str(theirs[0].message).replace("the weights are", "the scores of all rows are")


@pytest.mark.parametrize("cache_mb", [0, 1024])
def test_the_same_text_with_two_labels(cache_mb: float) -> None:
    texts, y = ["spam and eggs", "ham", "spam and eggs", "bread"], [0, 1, 1, 0]
    with pytest.warns(UserWarning, match="not linearly separable: after pass"):
        model = KernelClassifier("substrings(1, 3)", **SETTINGS, cache_mb=cache_mb).fit(texts, y)
    assert model.separable_ is False


def test_nothing_is_concluded_from_steps_that_rounding_swallows() -> None:
    X = np.array([[1e9], [-1e9], [1e-9], [1e-9]])
    model = KernelClassifier("linear", **SETTINGS, fit_intercept=False)
    with pytest.warns(UserWarning, match="or steps were lost to rounding"):
        model.fit(X, [1, 0, 0, 1])
    assert model.separable_ is None


def test_random_orders_prove_nothing() -> None:
    with pytest.warns(UserWarning, match="no pass without a mistake"):
        model = KernelClassifier("linear", **{**SETTINGS, "shuffle": True}, random_state=0).fit(SQUARE, [0, 1, 1, 0])
    assert model.separable_ is None
