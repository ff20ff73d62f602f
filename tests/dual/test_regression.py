"""Regression in the dual: against a plain serial version, against the primal, and what it begins with."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import onlearn
import reference as ref
from onlearn import KernelRegressor, OnlineRegressor, kernels, rule
from onlearn.dual.regression import mean_level, part_of_steps
from onlearn.dual.regressor import DualRegressor
from onlearn.model_file import ModelFileError, read_file, write_arrays

pytestmark = pytest.mark.filterwarnings("ignore:the mean squared error")  # of few examples, with rules of any rate

RULES: dict[str, Any] = {
    "nlms": ref.NormalisedLeastMeanSquares(),
    "pa_epsilon(0.2)": ref.PassiveAggressiveEpsilon(0.2, np.inf),
    "pa_epsilon(0.1, 0.3)": ref.PassiveAggressiveEpsilon(0.1, 0.3),
    "lms": ref.LeastMeanSquares(),
    "epsilon(0.2)": ref.Epsilon(0.2),
}


def examples(seed: int, rows: int, width: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, width))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=rows) + 5.0


def serial(K: np.ndarray, y: np.ndarray, step: Any, rate: float, order: Any, start: float, weight: Any = None) -> Any:
    """One example after another; the last and the mean hypothesis as weights and intercept."""
    weight = np.ones(len(y)) if weight is None else weight
    alpha, b = np.zeros(len(y)), start
    total, total_b, seen = np.zeros(len(y)), 0.0, 0
    for one_pass in order:
        for i in one_pass:
            t = rate * weight[i] * step.step(K[i] @ alpha + b, y[i], K[i, i] + 1.0)
            alpha[i] += t
            b += t
            total += alpha
            total_b += b
            seen += 1
    return (alpha, b), (total / seen, total_b / seen)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(2, 150),
    passes=st.integers(1, 4),
    name=st.sampled_from(list(RULES)),
    stabilizer=st.sampled_from(["last", "averaged"]),
    init=st.sampled_from(["mean", "zeros"]),
    cache_mb=st.sampled_from([0, 1e-2, 64]),
    weighted=st.booleans(),
)
def test_blocks_learn_what_the_serial_algorithm_learns(
    seed: int, rows: int, passes: int, name: str, stabilizer: str, init: str, cache_mb: float, weighted: bool
) -> None:
    X, y = examples(seed, rows)
    weight = np.random.default_rng(seed).uniform(0.1, 2.0, rows) if weighted else None
    rate = 0.25 if name in ("lms", "epsilon(0.2)") else 0.8
    kernel = kernels.Gaussian(0.9)
    model = KernelRegressor(
        kernel, name, stabilizer, epochs=passes, init=init, cache_mb=cache_mb, geometry=f"additive({rate})",
        random_state=seed,
    )  # fmt: skip
    model.fit(X, y, sample_weight=weight)
    order = [np.random.default_rng([seed, n]).permutation(rows) for n in range(passes)]
    start = 0.0 if init == "zeros" else np.average(y, weights=weight)
    if weighted and type(model._learner.choices["rule"]).projects:
        weight = weight / weight.max()
    alpha, b = serial(kernel(X), y, RULES[name], rate, order, start, weight)[stabilizer == "averaged"]
    np.testing.assert_allclose(model.predict(X), kernel(X) @ alpha + b, rtol=1e-8, atol=1e-8)
    assert model.n_seen_ == passes * rows
    np.testing.assert_allclose(model.intercept_, [b], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("stabilizer", ["last", "averaged"])
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("geometry", ["additive(0.05)", "additive(0.05, '1/sqrt(t)', l2=0.01)"])
def test_linear_kernel_learns_what_the_linear_learner_learns(name: str, stabilizer: str, geometry: str) -> None:
    X, y = examples(1, 80)
    y = y - 5.0
    common = dict(rule=name, geometry=geometry, stabilizer=stabilizer, epochs=3, random_state=1)
    plain = dict(init="zeros", damping=0)
    primal = OnlineRegressor(**common).fit(X, y)
    for representation in ("dual", "primal"):
        dual = KernelRegressor("linear", representation=representation, **plain, **common).fit(X, y)
        assert dual.n_updates_ == primal.n_updates_
        np.testing.assert_allclose(dual.predict(X), primal.predict(X), atol=1e-9)
        assert dual.history_["passes"][-1]["loss"] == pytest.approx(primal.history_["passes"][-1]["loss"])
    collapsed = KernelRegressor("linear", **plain, **common).fit(X, y).to_primal(force=True)
    np.testing.assert_allclose(collapsed.coef_, primal.coef_, atol=1e-9)
    np.testing.assert_allclose(collapsed.intercept_, primal.intercept_, atol=1e-9)


def test_primal_and_dual_begin_alike() -> None:
    X, y = examples(2, 60)
    dual, primal = (
        KernelRegressor("polynomial(2)", representation=kind, random_state=0).fit(X, y) for kind in ("dual", "primal")
    )
    np.testing.assert_allclose(dual.predict(X), primal.predict(X), rtol=1e-9)


@pytest.mark.parametrize("name", ["nlms", "pa_epsilon(0)"])
def test_predictions_follow_the_scale_and_the_level_of_y(name: str) -> None:
    X, y = examples(3, 100)
    plain = KernelRegressor(rule=name, random_state=0).fit(X, y).predict(X)
    other = KernelRegressor(rule=name, random_state=0).fit(X, 1e6 - 40 * y).predict(X)
    np.testing.assert_allclose(other, 1e6 - 40 * plain, rtol=1e-9)


@pytest.mark.parametrize("budget", [None, 15])
def test_chunks_learn_what_one_call_does(budget: int | None) -> None:
    X, y = examples(7, 200)
    whole = KernelRegressor(budget=budget, random_state=0).partial_fit(X, y)
    parts = KernelRegressor(budget=budget, random_state=0)
    for rows in np.array_split(np.arange(200), 11):
        parts.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=1e-9)
    single = KernelRegressor(random_state=0)
    for row, number in zip(X[:30], y[:30], strict=True):
        single.learn_one(row, number)
    few = KernelRegressor(random_state=0).partial_fit(X[:30], y[:30])
    np.testing.assert_allclose(single.predict(X), few.predict(X), atol=1e-10)
    assert single.predict_one(X[0]) == pytest.approx(few.predict(X[:1])[0])


def test_a_stream_begins_with_its_first_number() -> None:
    X, y = examples(4, 50)
    kernel = kernels.Gaussian()
    model = KernelRegressor(kernel, stabilizer="last").partial_fit(X, y, sample_weight=np.r_[0.0, np.ones(49)])
    (alpha, b), _ = serial(kernel(X), y, RULES["nlms"], 1.0, [np.arange(1, 50)], y[1])
    np.testing.assert_allclose(model.predict(X), kernel(X) @ alpha + b, rtol=1e-9)
    assert model.predict(X[49:])[0] == pytest.approx(y[49])  # the last example was learned to the end


def test_weights_are_parts_of_a_step() -> None:
    X, y = examples(5, 60)
    weight = np.random.default_rng(0).uniform(0.1, 3.0, 60)
    plain, heavy, light = (
        KernelRegressor(random_state=0).fit(X, y, sample_weight=some).predict(X)
        for some in (None, np.full(60, 50.0), weight)
    )
    np.testing.assert_array_equal(heavy, plain)
    by_hand = KernelRegressor(random_state=0).fit(X, y, sample_weight=weight / weight.max()).predict(X)
    np.testing.assert_allclose(light, by_hand, rtol=1e-12)
    stream = KernelRegressor(random_state=0).partial_fit(X, y, sample_weight=np.full(60, 50.0)).predict(X)
    np.testing.assert_array_equal(stream, KernelRegressor(random_state=0).partial_fit(X, y).predict(X))
    lms = [KernelRegressor(rule="lms", geometry=f"additive({r})", epochs=1, random_state=0) for r in (0.1, 0.2)]
    twice = lms[0].fit(X, y, sample_weight=np.full(60, 2.0)).predict(X)  # whose steps have a length of their own
    np.testing.assert_allclose(twice, lms[1].fit(X, y).predict(X), rtol=1e-9)


@pytest.mark.parametrize("representation", ["dual", "primal"])
def test_damping_divides_by_the_mean_length_at_least(representation: str) -> None:
    X, y = examples(5, 60)
    q = kernels.Polynomial(2).diag(X) + 1.0
    common = dict(kernel="polynomial(2)", representation=representation, random_state=0, damping=0, init="zeros")
    y = y - 5.0
    for damping, least in (("mean", q.mean()), (20, 20.0), (0, 0.0)):
        model = KernelRegressor(**{**common, "damping": damping}).fit(X, y)
        by_hand = KernelRegressor(**common).fit(X, y, sample_weight=q / np.maximum(q, least))
        np.testing.assert_allclose(model.predict(X), by_hand.predict(X), rtol=1e-9)
    stream = KernelRegressor(**{**common, "damping": "mean"}).partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    means = np.cumsum(q) / np.arange(1, 61)
    by_hand = KernelRegressor(**common).partial_fit(X, y, sample_weight=q / np.maximum(q, means))
    np.testing.assert_allclose(stream.predict(X), by_hand.predict(X), rtol=1e-9)
    assert KernelRegressor("polynomial(2)", random_state=0).fit(X, y).score(X, y) > 0  # without damping it is not


def test_parts_of_steps_are_never_more_than_whole() -> None:
    assert part_of_steps(np.array([0.0, 1.0, 2.0, 3.0]), 2.0).tolist() == [1.0, 0.5, 1.0, 1.0]
    assert part_of_steps(np.array([1.0, 1e308]), np.inf).tolist() == [1.0, 1.0]


def test_mean_of_very_large_numbers() -> None:
    assert mean_level(np.array([1e308, 1.5e308]), np.ones(2)) == pytest.approx(1.25e308)
    assert mean_level(np.zeros(3), np.ones(3)) == mean_level(np.ones(2), np.zeros(2)) == 0.0


@pytest.mark.parametrize("policy", ["project", "merge"])
def test_a_budget_is_kept(policy: str) -> None:
    X, y = examples(6, 300, width=1)
    whole = KernelRegressor(random_state=0).fit(X, y).score(X, y)
    model = KernelRegressor(budget=50, budget_policy=policy, random_state=0).fit(X, y)
    assert model.n_support_ <= 50
    assert model.score(X, y) == pytest.approx(whole, abs=0.02)


def test_examples_are_not_removed() -> None:
    """Each is a part of every prediction: what is left would be far off."""
    X, y = examples(6, 30)
    with pytest.raises(ValueError, match="budget_policy='project' or 'merge'"):
        KernelRegressor(budget=10, budget_policy="remove(oldest)").fit(X, y)


def test_warm_starts_match_the_rows_that_are_support_examples() -> None:
    X, y = examples(3, 60)
    whole = KernelRegressor(epochs=3, random_state=0).fit(X, y)
    parts = KernelRegressor(epochs=1, warm_start=True, random_state=0).fit(X, y).fit(X, y).fit(X, y)
    assert parts.n_support_ == whole.n_support_ == 60
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=1e-11)


class TestExamples:
    """Dense and sparse rows, strings, trees and a precomputed matrix."""

    def test_sparse_rows_learn_what_dense_ones_do(self) -> None:
        X, y = examples(6, 120)
        X[np.abs(X) < 0.7] = 0.0
        dense = KernelRegressor("polynomial(2)", random_state=0).fit(X, y)
        sparse = KernelRegressor("polynomial(2)", random_state=0).fit(sp.csr_matrix(X), y)
        np.testing.assert_allclose(sparse.predict(sp.csr_matrix(X)), dense.predict(X), rtol=1e-9)

    def test_single_precision(self) -> None:
        X, y = examples(6, 120)
        model = KernelRegressor(random_state=0).fit(X.astype(np.float32), y)
        np.testing.assert_allclose(
            model.predict(X.astype(np.float32)), KernelRegressor(random_state=0).fit(X, y).predict(X), rtol=1e-4
        )

    def test_strings(self) -> None:
        rng = np.random.default_rng(0)
        texts = ["".join(rng.choice(list("ab"), n)) for n in rng.integers(3, 9, 80)]
        y = np.array([text.count("ab") for text in texts], dtype=float)
        model = KernelRegressor("substrings(1, 2)", random_state=0).fit(texts[:60], y[:60])
        assert model.score(texts[60:], y[60:]) > 0.9

    def test_trees(self) -> None:
        trees = ["(A (B x))", "(A (B x) (B x))", "(A (B x) (C y))", "(A (C y))"]
        y = [1.0, 2.0, 1.0, 0.0]  # how often there is a B
        model = KernelRegressor("trees", epochs=40, stabilizer="last", random_state=0).fit(trees, y)
        np.testing.assert_allclose(model.predict(trees), y, atol=0.05)

    def test_a_precomputed_matrix(self) -> None:
        X, y = examples(8, 70)
        k = kernels.Gaussian()
        given = KernelRegressor("precomputed", random_state=0).fit(k(X[:50]), y[:50])
        usual = KernelRegressor(k, random_state=0).fit(X[:50], y[:50])
        np.testing.assert_allclose(given.predict(k(X[50:], X[:50])), usual.predict(X[50:]), rtol=1e-9)


def test_rules_of_users() -> None:
    @rule
    def half_way_dual(score, y, sqnorm):  # type: ignore[no-untyped-def]
        return 0.5 * (y - score) / sqnorm

    X, y = examples(9, 40)
    model = KernelRegressor(rule=half_way_dual(), random_state=0).fit(X, y)
    half = KernelRegressor(geometry="additive(0.5)", random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), half.predict(X), rtol=1e-9)


@pytest.mark.filterwarnings("ignore:sigmoid")
def test_what_has_no_length_teaches_nothing() -> None:
    X = np.array([[0.0], [1.0]])
    model = KernelRegressor("linear", fit_intercept=False, epochs=3).fit(X, [7.0, 2.0])
    np.testing.assert_allclose(model.predict(X), [0.0, 2.0], atol=0.5)
    assert np.isfinite(KernelRegressor("sigmoid(1, -3)", epochs=2).fit(X, [1.0, 2.0]).predict(X)).all()


def test_renewed_learners_begin_again() -> None:
    X, y = examples(1, 40)
    learner = DualRegressor(random_state=0).partial_fit(X, y)
    again = learner.renewed().partial_fit(X, y)
    np.testing.assert_array_equal(again.predict(X), learner.predict(X))
    assert again.n_seen_ == 40


def test_a_budget_in_single_precision_is_the_same_after_its_file(tmp_path):
    X, y = examples(0, 60)
    model = KernelRegressor("gaussian(3)", budget=10, random_state=0).fit(X.astype(np.float32), y)
    model.save(tmp_path / "a.onl")
    onlearn.load(tmp_path / "a.onl").save(tmp_path / "b.onl")
    assert (tmp_path / "a.onl").read_bytes() == (tmp_path / "b.onl").read_bytes()


def damaged(tmp_path, model, change):
    """Load the file of a model after a change of its header and arrays."""
    model.save(tmp_path / "m.onl")
    header, arrays = read_file(tmp_path / "m.onl")
    arrays = {name: np.array(array) for name, array in arrays.items()}
    change(header, arrays)
    write_arrays(str(tmp_path / "n.onl"), arrays, {"onlearn": json.dumps({**header, "format": 1})})
    return onlearn.load(tmp_path / "n.onl")


def test_damaged_files_are_refused(tmp_path):
    X, y = examples(0, 60)
    plain = KernelRegressor("gaussian(1)", random_state=0).fit(X, y)
    few = KernelRegressor("gaussian(1)", budget=10, random_state=0).fit(X, y)
    for value in (None, 0, "x", [1]):
        with pytest.raises(ModelFileError, match="must be 'dual' or 'primal'"):
            damaged(tmp_path, plain, lambda header, _, value=value: header["dual"].update(representation=value))
    for place, value in ((0, 0.0), (2, -1.0), (1, 1e300)):
        with pytest.raises(ModelFileError, match="the state of the budget"):
            damaged(tmp_path, few, lambda _, arrays, n=place, to=value: arrays["budget.among"].__setitem__(n, to))
    with pytest.raises(ModelFileError, match="the kernel gaussian is damaged"):
        damaged(tmp_path, plain, lambda header, _: header["dual"]["kernel"].update(sigma=1e308))
    for stored in ([1.0], [1.0, -1.0], ["a", 1.0], [np.nan, 1.0], None):
        with pytest.raises(ModelFileError, match="for mean_length"):
            damaged(tmp_path, plain, lambda header, _, stored=stored: header.update(mean_length=stored))
