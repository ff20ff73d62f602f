"""Arguments that no theorem is about: one sentence each, never a number."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

import onlearn
from onlearn import theory
from onlearn.theory import DNF, Conjunction, Elimination, Halving, QueryTeacher, RandomTeacher, bounds, plots


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: bounds.normalized_winnow_noisy_best(10, [0.5], passes=-3), "passes must be at least 1"),
        (lambda: bounds.normalized_winnow_noisy_best(10, [5.0]), "at most 1"),
        (lambda: bounds.normalized_winnow_noisy_best(-4, [-0.5]), "p must be at least 1"),
        (lambda: bounds.perceptron_noisy_best(1.0, [5.0]), "at most R"),
        (lambda: bounds.perceptron_noisy_best(1.0, [0.5], passes=math.nan), "passes must be at least 1"),
        (lambda: bounds.halving(1.5), "size must be a whole number"),
        (lambda: bounds.halving(math.nan), "size must be a whole number"),
        (lambda: bounds.halving("a"), "size must be a whole number"),
        (lambda: bounds.normalized_winnow(2.5, 0.1), "p must be a whole number"),
        (lambda: bounds.normalized_winnow("a", 0.1), "p must be a whole number"),
        (lambda: bounds.winnow(10, 2, alpha="a"), "alpha must be above 1"),
        (lambda: bounds.winnow(10, 2, threshold="a"), "threshold must be a number"),
        (lambda: bounds.additive([math.inf], [[1.0]], [1]), "finite weights"),
        (lambda: bounds.multiplicative([1.0], [[1.0]], [1], n=math.nan), "n must be a whole number"),
        (lambda: bounds.multiplicative([-1.0], [[-1.0]], [1], n=1), "n must be at least 2"),
        (lambda: Conjunction(["a"]), "must be a whole number"),
        (lambda: Conjunction(3, n=5), "list of whole numbers"),
        (lambda: DNF([1, 2]), "list of whole numbers"),
        (lambda: Halving([1, 2], n=2), "iterable of concepts"),
        (lambda: Conjunction([1], n=2).sample(3, noise="a"), "noise must be a probability"),
        (lambda: plots.extreme_scenarios_data(sizes=(1,), examples=10), "sizes must hold"),
        (lambda: plots.irrelevant_attributes_data(sizes=()), "sizes must hold"),
    ],
)
def test_values_that_cannot_be(call, why):
    with pytest.raises(ValueError, match=why):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: QueryTeacher(Conjunction([1], n=2)).run(Elimination(2)),
        lambda: RandomTeacher(Conjunction([1], n=2), m=5).run(3),
    ],
)
def test_objects_that_do_not_learn(call):
    with pytest.raises(TypeError, match="learner"):
        call()


def test_a_target_with_negative_weights_needs_twice_as_many():
    X, y = [[1.0], [1.0], [-1.0]], [-1, -1, 1]
    assert bounds.multiplicative([-1.0], X, y) == pytest.approx(2 * math.log(2))
    assert onlearn.BalancedWinnow(epochs=1, fit_intercept=False, shuffle=False).fit(X, y).n_mistakes_ <= 1


def test_large_factors_of_winnow():
    assert bounds.winnow(1024, 3, alpha=1e308) == math.inf
    assert bounds.winnow_threshold(1024, 3, 1.0, alpha=1e308) == math.inf


def test_warnings_where_the_caller_has_no_name():
    program = "import onlearn, warnings\nwith warnings.catch_warnings():\n    warnings.simplefilter('ignore')\n"
    exec(program + "    onlearn.Perceptron(epochs=None, max_epochs=2).fit([[1.0]] * 4, [0, 1, 0, 1])", {})


def test_sparse_rows_and_learners_of_concepts():
    X = sp.csr_array(np.eye(3)[[0, 1, 2] * 30])
    pac = theory.to_pac(Elimination(3), 0.2, 0.2).fit(X, [0, 1, 0] * 30)
    assert pac.guarantee.mistakes <= 4


def test_features_that_matter_are_features():
    advice = theory.recommend([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 0, 0, 1])
    assert advice.relevant <= 2
    assert theory.recommend(np.zeros((4, 2)), [0, 1, 0, 1]).relevant == 0


def test_intervals_of_accuracies_are_accuracies():
    found = theory.compare_learners("Perceptron", theory.MOfN(n=120), examples=200, repeats=2, noise=[])
    ends = [one for one in found.measures if one.quantity.startswith("accuracy")]
    assert ends and all(0.0 <= one.low <= one.high <= 1.0 for one in ends)


def test_hypotheses_are_those_of_all_examples():
    X, y = np.eye(4), [0, 1, 0, 1]
    model = onlearn.Perceptron(epochs=2, shuffle=False).fit(X, y, trace=True)
    assert len(model.hypotheses_) == len(model.trace_) + 1
    with pytest.raises(ValueError, match="read-only"):
        model.trace_.rows[:] = 7
    with pytest.raises(TypeError):
        model.trace_.weights(1.5)
    model.partial_fit(X, y)
    assert not hasattr(model, "hypotheses_") and len(model.trace_) > 0


def test_located_mistakes_are_at_most_the_examples_seen():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(52, 3)), np.arange(52) % 2
    model = onlearn.Perceptron(epochs=3).fit(X, y, order="worst")
    [noisy] = [one for one in model.certificate(X, y).bounds if one.name == "perceptron_noisy"]
    assert model.n_mistakes_ <= noisy.value <= 156
