"""The dual learns what the primal learns, and blocks learn what the serial algorithm learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from onlearn import KernelClassifier, OnlineClassifier, kernels, rule
from onlearn.dual import scores as scores_module
from onlearn.dual import training as training_module
from onlearn.dual.learner import DualLearner

RULES = ["perceptron", "margin(0.5)", "aggressive", "pa1(0.5)", "pa2", "lms", "hinge", "squared_hinge", "logistic"]
GENTLE = "additive(0.05)"  # a rate at which lms does not diverge


def examples(seed: int, rows: int, classes: int, width: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, width))
    y = np.argmax(X @ rng.normal(size=(width, classes)) + rng.normal(size=(rows, classes)), axis=1)
    y[:classes] = np.arange(classes)
    return X, y


def serial(kernel: kernels.Kernel, X: np.ndarray, y: np.ndarray, order: list[np.ndarray], bias: float) -> tuple:
    """The kernel perceptron of the textbook, averaged: one example after another."""
    K = kernel(X) + bias**2
    alpha, total, seen = np.zeros(len(X)), np.zeros(len(X)), 0
    mistakes = 0
    for one_pass in order:
        for i in one_pass:
            if y[i] * (K[i] @ alpha) <= 0:
                alpha[i] += y[i]
                mistakes += 1
            total += alpha
            seen += 1
    return alpha, total / seen, mistakes


LEARNERS = [
    pytest.param(classes, rule, stabilizer, marks=[pytest.mark.slow] if seldom else [])
    for classes in (2, 3)
    for rule in RULES
    for stabilizer in ("last", "averaged", "voted", "survivor")
    # for several classes these differ from the others in their loops, which take long to compile
    for seldom in [classes == 3 and (stabilizer != "averaged" or rule in ("lms", "logistic"))]
]


@pytest.mark.parametrize(("classes", "rule", "stabilizer"), LEARNERS)
def test_linear_kernel_learns_what_the_linear_learner_learns(rule: str, stabilizer: str, classes: int) -> None:
    X, y = examples(0, 60, classes)
    common = dict(rule=rule, geometry=GENTLE, stabilizer=stabilizer, epochs=3, random_state=1)
    primal = OnlineClassifier(**common).fit(X, y)
    dual = KernelClassifier("linear", **common).fit(X, y)
    assert dual.n_mistakes_ == primal.n_mistakes_
    assert dual.n_updates_ == primal.n_updates_
    np.testing.assert_allclose(dual.decision_function(X), primal.decision_function(X), atol=1e-8)


@pytest.mark.parametrize("stabilizer", ["last", "averaged", "voted", "survivor"])
@pytest.mark.parametrize("classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_probabilities_of_one_pass_are_those_of_the_linear_learner(stabilizer: str, classes: int) -> None:
    X, y = examples(0, 300, classes)
    common = dict(stabilizer=stabilizer, epochs=1, random_state=1)
    primal = OnlineClassifier(**common).fit(X, y)
    dual = KernelClassifier("linear", **common).fit(X, y)
    np.testing.assert_allclose(dual.predict_proba(X), primal.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("multiclass", [pytest.param("one-vs-all", marks=pytest.mark.slow), "true"])
def test_kinds_of_multiclass(multiclass: str) -> None:
    X, y = examples(1, 80, 4)
    common = dict(rule="pa1", multiclass=multiclass, epochs=2, random_state=3)
    primal = OnlineClassifier(**common).fit(X, y)
    dual = KernelClassifier("linear", **common).fit(X, y)
    np.testing.assert_allclose(dual.decision_function(X), primal.decision_function(X), atol=1e-8)


@pytest.mark.parametrize(
    "geometry",
    [
        "additive(0.5, '1/sqrt(t)')",
        "additive(l2=0.01)",
        "additive(schedule='1/(lambda t)', l2=0.1)",
        "additive(2.0, l2=5.0)",
    ],
)
@pytest.mark.parametrize("stabilizer", ["averaged", pytest.param("last", marks=pytest.mark.slow),
                                        pytest.param("survivor", marks=pytest.mark.slow)])  # fmt: skip
def test_rates_and_decay(geometry: str, stabilizer: str) -> None:
    X, y = examples(2, 150, 2)
    common = dict(rule="hinge", geometry=geometry, stabilizer=stabilizer, epochs=3, random_state=0)
    primal = OnlineClassifier(**common).fit(X, y)
    dual = KernelClassifier("linear", **common).fit(X, y)
    np.testing.assert_allclose(dual.decision_function(X), primal.decision_function(X), rtol=1e-7, atol=1e-9)


def test_sample_and_class_weights_count_as_in_the_primal() -> None:
    X, y = examples(3, 70, 3)
    weight = np.random.default_rng(0).choice([0.0, 1.0, 2.5], size=70)
    common = dict(rule="pa1", epochs=2, random_state=0, class_weight="balanced")
    primal = OnlineClassifier(**common).fit(X, y, sample_weight=weight)
    dual = KernelClassifier("linear", **common).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(dual.decision_function(X), primal.decision_function(X), atol=1e-8)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(2, 200),
    passes=st.integers(1, 5),
    cache_mb=st.sampled_from([0, 1e-2, 64]),
)
def test_blocks_learn_what_the_serial_algorithm_learns(seed: int, rows: int, passes: int, cache_mb: float) -> None:
    X, y = examples(seed, rows, 2)
    kernel = kernels.Polynomial(2)
    model = KernelClassifier(kernel, epochs=passes, random_state=seed, cache_mb=cache_mb).fit(X, y)
    order = [np.random.default_rng([seed, n]).permutation(rows) for n in range(passes)]
    alpha, average, mistakes = serial(kernel, X, np.where(y == 1, 1, -1), order, 1.0)
    assert model.n_mistakes_ == mistakes
    assert model.n_support_ == np.count_nonzero(np.abs(alpha) + np.abs(average))
    np.testing.assert_allclose(model.decision_function(X), (kernel(X) + 1.0) @ average, rtol=1e-9, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    passes=st.integers(2, 5),
    least=st.sampled_from([1, 5, 40, 1000]),
    few=st.sampled_from([0, 10, 1000]),
    cache_mb=st.sampled_from([0, 1e-2, 0.1]),  # less than the Gram matrix takes
)
def test_finished_rows_of_a_block_get_later_changes_in_the_next_pass(
    seed: int, passes: int, least: int, few: int, cache_mb: float
) -> None:
    X, y = examples(seed, 150, 2)
    y[::7] = 1 - y[::7]  # so that there are mistakes in every pass
    kernel = kernels.Polynomial(2)
    done = []

    class Recording(training_module.CurrentScores):
        def columns(self, rows: Any, points: Any, which: Any, start: int, there: int) -> Any:
            if not there:
                self.column_buffer.fill(np.nan)  # of the block before: nobody may read it
            done.append(start)
            return super().columns(rows, points, which, start, there)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_module, "CurrentScores", Recording)
        patch.setattr(training_module, "SMALL", least)
        patch.setattr(training_module, "STEPS", 10**6)  # so all rows are one block
        patch.setattr(scores_module, "FEW", few)
        patch.setattr(scores_module, "COSTLY", 0)
        model = KernelClassifier(kernel, epochs=passes, random_state=seed, cache_mb=cache_mb).fit(X, y)
    assert any(done) or least > 1  # a step that nobody saw coming is made in any noise
    assert not any(done) or least < 150
    order = [np.random.default_rng([seed, n]).permutation(150) for n in range(passes)]
    _, average, mistakes = serial(kernel, X, np.where(y == 1, 1, -1), order, 1.0)
    assert model.n_mistakes_ == mistakes
    np.testing.assert_allclose(model.decision_function(X), (kernel(X) + 1.0) @ average, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_neither_cache_nor_block_size_changes_what_is_learned(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = examples(5, 400, classes)
    noisy = np.where(np.random.default_rng(0).random(400) < 0.15, (y + 1) % classes, y)  # so that many are met again

    def learn(**settings: float) -> np.ndarray:
        model = KernelClassifier("gaussian(2)", epochs=6, random_state=0, **settings).fit(X, noisy)
        return model.decision_function(X)

    expected = learn(cache_mb=64)
    np.testing.assert_allclose(learn(cache_mb=0), expected, atol=1e-10)
    np.testing.assert_allclose(learn(cache_mb=0.05), expected, atol=1e-10)
    monkeypatch.setattr(scores_module, "COSTLY", 0)
    np.testing.assert_allclose(learn(cache_mb=0.5), expected, atol=1e-10)
    monkeypatch.setattr(training_module, "LARGE", 7)
    monkeypatch.setattr(training_module, "SMALL", 3)
    monkeypatch.setattr(scores_module, "MOST", 5)
    monkeypatch.setattr(scores_module, "FEWEST", 5)
    monkeypatch.setattr(scores_module, "AMOUNTS", 1)
    np.testing.assert_allclose(learn(cache_mb=64), expected, atol=1e-10)
    np.testing.assert_allclose(learn(cache_mb=0.05), expected, atol=1e-10)


def test_sparse_rows_learn_what_dense_ones_do() -> None:
    X, y = examples(6, 120, 3)
    X[np.abs(X) < 0.7] = 0.0
    dense = KernelClassifier("polynomial(3)", random_state=0).fit(X, y)
    sparse = KernelClassifier("polynomial(3)", random_state=0).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_matrix(X)), dense.decision_function(X), rtol=1e-9)


def test_chunks_learn_what_one_call_does() -> None:
    X, y = examples(7, 300, 3)
    whole = KernelClassifier("gaussian").partial_fit(X, y, classes=[0, 1, 2])
    parts = KernelClassifier("gaussian")
    for rows in np.array_split(np.arange(300), 11):
        parts.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    assert parts.n_mistakes_ == whole.n_mistakes_
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), atol=1e-10)
    np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, lambda X: [str(row) for row in X]])
@pytest.mark.parametrize("budget", [None, 12])
def test_warm_starts_match_the_rows_that_are_support_examples(form: Any, budget: int | None) -> None:
    X, y = examples(3, 60, 2)
    X = form(X)
    kernel = "normalize(substrings)" if isinstance(X, list) else "gaussian"
    common = dict(kernel=kernel, budget=budget, budget_policy="remove(oldest)", random_state=0)
    whole = KernelClassifier(epochs=3, **common).fit(X, y)
    parts = KernelClassifier(epochs=1, warm_start=True, **common).fit(X, y).fit(X, y).fit(X, y)
    assert parts.n_support_ == whole.n_support_
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), atol=1e-12)
    np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), atol=1e-6)


def test_user_defined_rules_work_in_the_dual() -> None:
    @rule
    def cautious_dual(score, y, sqnorm, C=0.5):  # type: ignore[no-untyped-def]
        return y * min(C, 1 / sqnorm) if score * y <= 0 else 0.0

    X, y = examples(8, 60, 2)
    primal = OnlineClassifier(cautious_dual(0.2), random_state=0).fit(X, y)
    dual = KernelClassifier("linear", cautious_dual(0.2), random_state=0).fit(X, y)
    np.testing.assert_allclose(dual.decision_function(X), primal.decision_function(X), atol=1e-10)


def test_a_rule_that_fails_is_named_with_its_row_and_nothing_is_learned() -> None:
    @rule
    def failing_dual(score, y):  # type: ignore[no-untyped-def]
        return float("nan") if score * y < 0 else y

    X, y = examples(9, 40, 2)
    with pytest.raises(ValueError, match=r"rule 'failing_dual' returned NaN for the example in row \d+"):
        KernelClassifier("gaussian", failing_dual(), shuffle=False).fit(X, y)


@pytest.mark.parametrize("width", [900, 2001, 3000])
def test_kernel_values_too_large_for_floats_decide_as_whole_numbers_do(width: int) -> None:
    """They are scaled, and so is the intercept's constant feature: large beside them, it would outvote them."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (120, width))
    y = np.where(X[:, :9].sum(1) > 4, 1, -1).tolist()
    same = X @ X.T + (1 - X) @ (1 - X).T
    K = [[(1 << int(n)) + 1 for n in line] for line in same]
    alpha: dict[int, int] = {}
    for i in range(60):
        if y[i] * sum(a * K[i][j] for j, a in alpha.items()) <= 0:
            alpha[i] = y[i]
    wanted = [1 if sum(a * K[i][j] for j, a in alpha.items()) > 0 else -1 for i in range(60, 120)]
    model = KernelClassifier("monomials", stabilizer="last", epochs=1, shuffle=False).fit(X[:60], y[:60])
    assert model.n_mistakes_ == len(alpha)
    np.testing.assert_array_equal(model.predict(X[60:]), wanted)
    run = DualLearner(kernel="monomials", stabilizer="last", epochs=1)
    run._start(width, np.bincount(np.array(y[:60]) == 1), np.float64)  # as runs over files do, before there are rows
    scores = run.prepare_rows(X[:60].astype(float))
    scores.begin_pass()
    run._learn_rows(scores, (np.array(y[:60]) == 1).astype(int), None, np.arange(60), first=True)
    np.testing.assert_array_equal(run.decision_function(X[60:]), model.decision_function(X[60:]))
