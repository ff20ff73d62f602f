"""The longest-survivor conversion: it stops when it should, and over many draws the guarantee holds."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import scipy.sparse as sp

import onlearn
from onlearn import theory
from onlearn.theory import bounds, to_pac


class Elimination:
    """Monotone conjunctions: drop what a positive example denies."""

    def __init__(self, n):
        self.literals = np.ones(n, dtype=bool)

    def predict(self, x):
        return bool(x[self.literals].all())

    def learn(self, x, y):
        self.literals &= x.astype(bool) | (not y)


class Stubborn:
    """Predicts 0, whatever it is told."""

    def predict(self, x):
        return 0

    def learn(self, x, y):
        pass


def examples(rng, n, target, chance):
    while True:
        x = rng.random(n) < chance
        yield x, bool(x[target].all())


EPSILON, DELTA, N = 0.1, 0.2, 12


@pytest.mark.parametrize("bound", [N, None])
def test_the_guarantee_holds_over_many_draws(bound):
    """The true error is known: of 400 runs at most delta may end with one above epsilon, and fewer do."""
    target, chance, failures, lengths = [1, 4, 7], 0.8, 0, []
    for seed in range(400):
        learner = Elimination(N)
        pac = to_pac(learner, EPSILON, DELTA, bound).fit(examples(np.random.default_rng(seed), N, target, chance))
        assert pac.stopped and pac.guarantee.survived == pac.guarantee.needed
        # It errs on what the target takes and a literal too many denies.
        error = chance ** len(target) - chance ** learner.literals.sum()
        failures += error > EPSILON
        lengths.append(pac.guarantee.examples)
        if bound is not None:
            assert pac.guarantee.examples <= pac.guarantee.most_examples
    assert failures <= DELTA * 400
    assert max(lengths) < 1000


def test_shorter_waits_break_the_guarantee():
    """What the guarantee rests on: hypotheses that survive only a few examples are often bad ones."""
    failures = 0
    for seed in range(400):
        learner = Elimination(N)
        stream = examples(np.random.default_rng(seed), N, [1, 4, 7], 0.8)
        pac = to_pac(learner, 0.99, 0.9, N).fit(stream)
        assert pac.guarantee.needed == 3
        failures += 0.8**3 - 0.8 ** learner.literals.sum() > EPSILON
    assert failures > 2 * DELTA * 400


def test_how_long_a_hypothesis_must_survive():
    assert to_pac(Stubborn(), 0.1, 0.05, 40).needed == math.ceil(math.log(40 / 0.05) / 0.1)
    pac = to_pac(Stubborn(), 0.1, 0.05)
    for mistakes in range(1, 4):
        assert pac.needed == math.ceil(math.log(mistakes * (mistakes + 1) / 0.05) / 0.1)
        pac.learn(None, 1)
    assert to_pac(Stubborn(), 0.1, 0.05, 0).needed == math.ceil(math.log(1 / 0.05) / 0.1)


def test_it_learns_from_mistakes_only_and_not_after_it_stopped():
    seen = []

    class Recorder(Stubborn):
        def learn(self, x, y):
            seen.append(x)

    pac = to_pac(Recorder(), 0.5, 0.5, 4)
    assert pac.needed == 5
    answers = [pac.learn(n, n in (1, 3)) for n in range(12)]
    assert seen == [1, 3] and answers == [False] * 8 + [True] * 4
    assert pac.guarantee.examples == 9 and pac.guarantee.mistakes == 2
    assert bool(pac.guarantee) and "error at most 0.5 with probability 0.5" in str(pac.guarantee)
    assert json.loads(json.dumps(pac.guarantee.to_dict()))["stopped"] is True


def test_a_stream_that_ends_too_early_carries_no_guarantee():
    pac = to_pac(Stubborn(), 0.01, 0.01, 5).fit([(0, 0)] * 20)
    assert not pac.stopped and not pac.guarantee
    assert "no guarantee yet: after 20 examples and 0 mistakes" in str(pac.guarantee)
    assert "survived 20 of the 622" in str(pac.guarantee)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("labels", [lambda y: y, lambda y: y.astype(int), lambda y: np.where(y, "yes", "no")])
def test_our_estimators(layout, labels):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (4000, 30)).astype(float)
    y = labels(X[:, :2].any(axis=1))
    bound = bounds.winnow(30, 2)
    pac = to_pac(onlearn.Winnow(alpha=2.0, stabilizer="last"), 0.05, 0.05, bound).fit(layout(X), y)
    assert pac.stopped and pac.guarantee.mistakes <= bound
    later, truth = X[2000:], y[2000:]
    assert np.mean([pac.predict(x) != t for x, t in zip(later, truth)]) <= 0.05
    for model in (onlearn.AveragedPerceptron(), onlearn.KernelPerceptron("polynomial(2)")):
        assert to_pac(model, 0.1, 0.1).fit(layout(X), y).stopped


def test_one_example_at_a_time():
    pac = to_pac(onlearn.Perceptron(), 0.2, 0.2, classes=["no", "yes"])
    with pytest.raises(ValueError, match="learned nothing yet"):
        pac.predict([1.0])
    while not pac.learn([1.0], "yes") and not pac.learn([-1.0], "no"):
        pass
    assert pac.predict([2.0]) == "yes"


def test_mistakes_beyond_the_bound_are_an_error():
    pac = to_pac(Stubborn(), 0.1, 0.1, 2)
    with pytest.raises(ValueError, match=r"Example 3 is mistake 3, which the bound of 2 excludes"):
        pac.fit([(0, 1)] * 3)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((Stubborn(), 0, 0.1), ValueError),
        ((Stubborn(), 0.1, 1.0), ValueError),
        ((Stubborn(), 0.1, 0.1, -1), ValueError),
        ((Stubborn(), 0.1, 0.1, math.inf), ValueError),
        ((object(), 0.1, 0.1), TypeError),
    ],
)
def test_bad_arguments(arguments, error):
    with pytest.raises(error, match=r"\.$"):
        to_pac(*arguments)


@pytest.mark.parametrize("monotone", [True, False])
def test_learners_of_concepts_bring_their_bound(monotone):
    rng = np.random.default_rng(0)
    learner = theory.Elimination(15, monotone=monotone)
    pac = to_pac(learner, 0.05, 0.05)
    assert pac.mistake_bound == learner.bound
    pac.fit((x, int(x[2] and x[5])) for x in rng.integers(0, 2, (5000, 15)))
    assert pac.stopped and pac.guarantee.examples <= pac.guarantee.most_examples
    assert pac.predict(np.ones(15, dtype=int)) == 1
    halving = to_pac(theory.Halving(theory.conjunctions(5)), 0.05, 0.05)
    halving.fit((x, int(x[2] and not x[4])) for x in rng.integers(0, 2, (5000, 5)))
    assert halving.stopped and halving.guarantee.mistakes <= 5 * math.log2(3)


def test_labels_and_rows_must_go_together():
    with pytest.raises(ValueError, match="one label for each of the 3 rows"):
        to_pac(Stubborn(), 0.1, 0.1).fit(np.eye(3), [0, 1])
