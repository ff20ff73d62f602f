"""Solvers of the dual problem, against each other, a plain oracle, and the KKT conditions."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlearn import kernels
from onlearn.svm import SOLVERS, ascent, qp, smo
from onlearn.svm.problem import KernelColumns, Limits, Problem, feasible, violation
from svm.plain_solver import minimise, objective

KERNELS = ["linear", "polynomial(2)", "polynomial(3)", "gaussian(gamma=0.3)", "laplacian(gamma=0.2)", "1 + linear"]
TIGHT = Limits(tol=1e-6)


def classification(X, y, C, bias=True, kernel="gaussian(gamma=0.3)", cache=1 << 24, dtype=None) -> Problem:
    k = kernels.get(kernel)
    columns = KernelColumns(k, k.points(X), cache, dtype)
    n = len(y)
    return Problem(columns, np.arange(n), np.asarray(y, float), -np.ones(n), np.broadcast_to(C, n).astype(float), bias)


def regression(X, targets, C, epsilon=0.1, bias=True, kernel="gaussian(gamma=0.3)") -> Problem:
    k = kernels.get(kernel)
    n = len(targets)
    linear = np.concatenate([epsilon - targets, epsilon + targets])
    signs = np.repeat([1.0, -1.0], n)
    return Problem(KernelColumns(k, k.points(X), 1 << 24), np.tile(np.arange(n), 2), signs, linear,
                   np.full(2 * n, float(C)), bias)  # fmt: skip


@st.composite
def problems(draw, bias=None):
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    n, width = draw(st.integers(1, 30)), draw(st.integers(1, 4))
    X = rng.normal(size=(n, width))
    kind = draw(st.sampled_from(["plain", "duplicates", "zeros", "constant", "whole"]))
    if kind == "duplicates":
        X[n // 2 :] = X[: n - n // 2]
    elif kind == "zeros":
        X[::2] = 0.0
    elif kind == "constant":
        X[:] = X[0]
    elif kind == "whole":
        X = np.round(X)
    X = X.astype(draw(st.sampled_from([np.float32, np.float64])))
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], n) if draw(st.booleans()) else np.ones(n)
    C = draw(st.sampled_from([1e-3, 0.1, 1.0, 10.0]))
    kernel = draw(st.sampled_from(KERNELS))
    bias = draw(st.booleans()) if bias is None else bias
    if draw(st.booleans()):
        return classification(X, rng.choice([-1.0, 1.0], n), C * weights, bias, kernel)
    made = regression(X, X[:, 0] + 0.5 * rng.normal(size=n), C, 0.1, bias, kernel)
    return made._replace(upper=C * np.tile(weights, 2))


def is_feasible(problem: Problem, alpha: np.ndarray) -> bool:
    balanced = not problem.bias or abs(problem.signs @ alpha) <= 1e-9 * max(1.0, alpha.sum())
    return bool(np.isfinite(alpha).all() and (alpha >= 0).all() and (alpha <= problem.upper).all() and balanced)


def close(a: float, b: float, scale: float = 1e-4) -> bool:
    return abs(a - b) <= scale * max(1.0, abs(a), abs(b))


@settings(max_examples=60, deadline=None)
@given(problems())
def test_smo_finds_the_optimum(problem):
    found = smo.solve(problem, TIGHT)
    assert is_feasible(problem, found.alpha)
    assert found.stopped == "tol"
    assert close(found.objective, objective(problem, minimise(problem)))
    assert found.violation <= 1.1e-6
    assert -1e-9 * max(1.0, abs(found.objective)) <= found.gap <= 1e-4 * max(1.0, abs(found.objective))


@settings(max_examples=40, deadline=None)
@given(problems())
def test_what_a_solution_says_is_true(problem):
    found = smo.solve(problem, TIGHT)
    K = problem.columns.rows(problem.examples, problem.examples).astype(float)
    G = problem.signs * (K @ (found.alpha * problem.signs)) + problem.linear
    assert np.allclose(found.gradient, G, atol=1e-4 * max(1.0, np.abs(G).max()))
    assert close(found.objective, objective(problem, found.alpha), 1e-5)
    slack = np.maximum(0.0, -(G + problem.signs * found.intercept))
    w2 = (found.alpha * problem.signs) @ K @ (found.alpha * problem.signs)
    assert close(found.gap, 0.5 * w2 + problem.upper @ slack - found.objective, 1e-4)
    assert np.isclose(found.violation, violation(problem, found.alpha, G), atol=1e-4)


@settings(max_examples=30, deadline=None)
@given(problems(bias=False))
def test_ascent_is_smo_without_a_bias(problem):
    one = smo.solve(problem, Limits(tol=1e-5))
    other = ascent.solve(problem, Limits(tol=1e-5, max_iter=500_000))
    assert is_feasible(problem, other.alpha)
    assert other.stopped in ("tol", "iterations")
    if other.stopped == "tol":
        assert close(one.objective, other.objective)


@settings(max_examples=40, deadline=None)
@given(problems())
def test_quadratic_program_is_smo(problem):
    pytest.importorskip("qpsolvers")
    one, other = smo.solve(problem, TIGHT), qp.solve(problem, Limits())
    assert is_feasible(problem, other.alpha)
    assert close(one.objective, other.objective)


@settings(max_examples=30, deadline=None)
@given(problems(), st.integers(0, 2**31))
def test_warm_start(problem, seed):
    cold = smo.solve(problem, TIGHT)
    start = np.random.default_rng(seed).normal(size=len(problem.upper)) * problem.upper.max(initial=0.0)
    assert is_feasible(problem, feasible(problem, start))
    assert close(cold.objective, smo.solve(problem, TIGHT, start).objective)
    again = smo.solve(problem, TIGHT, cold.alpha)
    assert again.iterations <= max(20, cold.iterations // 2)
    assert close(cold.objective, again.objective, 1e-6)


# -- bigger problems, with several working sets and little memory


def many(n=1500, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)).astype(dtype)
    return X, np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("cache", [0, 1 << 20, 1 << 28])
def test_working_sets(monkeypatch, bias, cache):
    X, y = many()
    whole = smo.solve(classification(X, y, 2.0, bias), Limits(tol=1e-4))
    for name in ("FEWEST", "FIRST", "MOST"):
        monkeypatch.setattr(smo, name, 256)
    parts = classification(X, y, 2.0, bias, cache=cache)
    found = smo.solve(parts, Limits(tol=1e-4))
    assert found.stopped == "tol"
    assert close(whole.objective, found.objective, 1e-5)
    assert parts.columns.nbytes <= max(cache, parts.columns.most * parts.columns.line_bytes)


@pytest.mark.parametrize("bias", [True, False])
def test_shrinking_changes_nothing(monkeypatch, bias):
    monkeypatch.setattr(smo, "FEWEST", 256)
    monkeypatch.setattr(smo, "FIRST", 256)
    X, y = many(2500)
    problem, shrunk = classification(X, y, 0.5, bias, cache=1 << 20), []
    shrink = smo.State.shrink
    monkeypatch.setattr(smo.State, "shrink", lambda self, worst: shrink(self, worst) or shrunk.append(self.active))
    on = smo.solve(problem, Limits(tol=1e-4))
    assert any(active is not None for active in shrunk)
    off = smo.solve(problem, Limits(tol=1e-4), shrinking=False)
    assert on.stopped == off.stopped == "tol"
    assert close(on.objective, off.objective, 1e-6)
    assert np.allclose(on.gradient, smo.State(problem, on.alpha).gradient(), atol=1e-4)


def test_subsets_share_columns():
    X, y = many(600)
    shared = classification(X, y, 1.0)
    for fold in range(3):
        rows = np.flatnonzero(np.arange(len(y)) % 3 != fold)
        some = shared._replace(examples=rows, signs=y[rows], linear=-np.ones(len(rows)), upper=np.ones(len(rows)))
        alone = classification(X[rows], y[rows], 1.0)
        assert close(smo.solve(some, TIGHT).objective, smo.solve(alone, TIGHT).objective, 1e-6)
    assert shared.columns.hits


def test_known_gradient():
    X, y = many(500)
    problem = classification(X, y, 1.0)
    one = smo.solve(problem, TIGHT)
    columns = problem.columns
    before = columns.hits + columns.misses
    assert smo.solve(problem, TIGHT._replace(tol=1e-3), one.alpha, one.gradient).iterations == 0
    assert columns.hits + columns.misses == before  # no kernel value was needed
    more = problem._replace(upper=np.full(500, 3.0))
    scaled = 3.0 * (one.gradient - problem.linear) + problem.linear
    with_it = smo.solve(more, TIGHT, 3.0 * one.alpha, scaled)
    assert close(with_it.objective, smo.solve(more, TIGHT, 3.0 * one.alpha).objective, 1e-6)
    wrong = smo.solve(more, TIGHT, np.full(500, 9.0), np.zeros(500))  # not feasible, so its gradient is not used
    assert close(with_it.objective, wrong.objective, 1e-6)


def test_limits():
    X, y = many(800)
    problem = classification(X, y, 10.0)
    full = smo.solve(problem, TIGHT)
    for limits, why in [
        (TIGHT._replace(max_iter=7), "iterations"),
        (TIGHT._replace(deadline=time.monotonic()), "time"),
        (TIGHT._replace(interrupted=lambda: True), "interrupt"),
    ]:
        found = smo.solve(problem, limits)
        assert found.stopped == why
        assert is_feasible(problem, found.alpha)
        assert found.iterations <= 7
        assert found.objective <= full.objective
        assert close(smo.solve(problem, TIGHT, found.alpha).objective, full.objective, 1e-6)


def test_interrupt_in_the_middle(monkeypatch):
    monkeypatch.setattr(smo, "SLICE", 10)
    X, y = many(800)
    problem, calls = classification(X, y, 10.0), []
    seen = []
    limits = TIGHT._replace(
        interrupted=lambda: calls.append(0) or len(calls) > 5, progress=lambda steps, worst: seen.append((steps, worst))
    )
    found = smo.solve(problem, limits)
    assert found.stopped == "interrupt"
    assert 0 < found.iterations <= 60
    assert is_feasible(problem, found.alpha)
    assert np.allclose(found.gradient, smo.State(problem, found.alpha).gradient(), atol=1e-4)
    assert [steps for steps, _ in seen] == sorted(steps for steps, _ in seen)


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_no_variable_may_move(name):
    X, y = many(20)
    if name == "qp":
        pytest.importorskip("qpsolvers")
    found = SOLVERS[name](classification(X, y, 0.0, bias=False), Limits())
    assert found.stopped == "tol"
    assert not found.alpha.any()
    assert found.violation == found.gap == found.objective == 0.0


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("C", [1e-12, 1e9, np.inf])
def test_tiny_and_huge_bounds(bias, C):
    X, _ = many(60)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)  # separable
    problem = classification(X, y, C, bias, "gaussian(gamma=1)")
    found = smo.solve(problem)
    assert found.stopped == "tol"
    assert np.isfinite(found.alpha).all()
    assert np.isfinite([found.objective, found.gap, found.intercept]).all()
    if C > 1:
        assert (y * (y * (found.gradient + 1) + found.intercept) > 0.99).all()
    else:
        assert found.alpha.sum() <= 60 * C


def test_one_variable():
    problem = classification(np.ones((1, 2)), [1.0], 3.0, bias=False, kernel="linear")
    for name in ("smo", "ascent"):
        assert np.allclose(SOLVERS[name](problem, Limits(tol=1e-9)).alpha, 0.5)
    assert smo.solve(problem._replace(bias=True)).alpha[0] == 0.0


@pytest.mark.parametrize("scale", [1e-9, 1e9])
@pytest.mark.parametrize("kernel", ["linear", "polynomial(2)"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bias", [True, False])
def test_scales(scale, kernel, dtype, bias):
    X, _ = many(50)
    y = np.where(X[:, 0] + X[:, 1] > 0, 1.0, -1.0)
    if kernel == "linear":
        X1, C1 = X, 1.0
        one = smo.solve(classification(X1, y, C1, bias, kernel))
        found = smo.solve(classification((X1 * scale).astype(dtype), y, C1 / scale**2, bias, kernel))
        assert close(one.objective, found.objective * scale**2, 1e-3)
    else:
        found = smo.solve(classification((X * scale).astype(dtype), y, 1.0, bias, kernel), Limits(max_iter=100_000))
    assert np.isfinite(found.alpha).all()
    assert np.isfinite([found.objective, found.gap, found.violation, found.intercept]).all()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kernel", ["sigmoid(gamma=1, coef0=-1)", "sigmoid(gamma=0.1)"])
def test_kernels_that_are_none_end(bias, kernel):
    X, y = many(200)
    for C in (1.0, 100.0):
        problem = classification(X, y, C, bias, kernel)
        found = smo.solve(problem, Limits(max_iter=200_000))
        assert is_feasible(problem, found.alpha)
        assert np.isfinite([found.objective, found.gap, found.violation]).all()
        if not bias:
            ended = ascent.solve(problem, Limits(max_iter=50_000))
            assert is_feasible(problem, ended.alpha)


def test_single_precision_is_refined():
    """With a large C, sums of kernel values in single precision are too coarse for the tolerance."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    y = np.where(rng.random(300) < 0.5, 1.0, -1.0)
    coarse = classification(X, y, 1e3, True, "gaussian(gamma=5)")
    fine = classification(X.astype(np.float64), y, 1e3, True, "gaussian(gamma=5)")
    one, other = smo.solve(coarse, Limits(tol=1e-7)), smo.solve(fine, Limits(tol=1e-7))
    assert one.stopped == other.stopped == "tol"
    assert close(one.objective, other.objective, 1e-9)
    rounded = classification(X.astype(np.float64), y, 1e3, True, "gaussian(gamma=5)", dtype=np.float32)
    assert rounded.columns.dtype == np.float32
    assert close(smo.solve(rounded, Limits(tol=1e-7)).objective, other.objective, 1e-9)


def test_strings_and_matrices():
    words = ["spam", "spams", "pams", "eggs", "egg", "gegs"] * 3
    y = np.array([1.0, 1, 1, -1, -1, -1] * 3)
    k = kernels.get("normalize(substrings(1, 3))")
    n = len(words)
    of_strings = Problem(KernelColumns(k, k.points(words), 1 << 20), np.arange(n), y, -np.ones(n), np.ones(n), True)
    given_matrix = kernels.get("precomputed")
    matrix = k(words)
    of_matrix = of_strings._replace(columns=KernelColumns(given_matrix, given_matrix.points(matrix), 1 << 20))
    assert close(smo.solve(of_strings, TIGHT).objective, smo.solve(of_matrix, TIGHT).objective, 1e-9)


def test_errors_are_sentences():
    X, y = many(10)
    problem = classification(X, y, 1.0)
    with pytest.raises(ValueError, match="no bias"):
        ascent.solve(problem)
    with pytest.raises(ValueError, match="upper must"):
        smo.solve(problem._replace(upper=-np.ones(10)))
    with pytest.raises(ValueError, match="10 variables, but signs has 3"):
        smo.solve(problem._replace(signs=np.ones(3)))
    with pytest.raises(ValueError, match="start has 3 variables"):
        smo.solve(problem, Limits(), np.ones(3))
    with pytest.raises(OverflowError, match="too large"):
        classification(X.astype(float) * 1e60, y, 1.0, kernel="polynomial(3)")


def test_quadratic_program_refuses_other_matrices():
    pytest.importorskip("qpsolvers")
    X, y = many(40)
    with pytest.raises(ValueError, match="semi-definite"):
        qp.solve(classification(X, y, 1.0, True, "sigmoid(gamma=1, coef0=-1)"))


def test_missing_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "qpsolvers", None)
    X, y = many(10)
    with pytest.raises(ImportError, match="pip install"):
        qp.solve(classification(X, y, 1.0))
