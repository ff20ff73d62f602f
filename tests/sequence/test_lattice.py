"""The lattice against the enumeration of all paths."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlearn.sequence.lattice import NO_LABEL, Lattice


def every_path(lattice, emissions):
    """All paths of one sequence with their scores, the best first; of equal ones the first labels first."""
    found = []
    for path in product(range(lattice.labels), repeat=len(emissions)):
        score = lattice.initial[path[0]] + lattice.final[path[-1]] if path else 0.0
        for t, label in enumerate(path):
            score += emissions[t, label]
            if t:
                score += lattice.transitions[path[t - 1], label]
        found.append((score, path))
    return sorted(found, key=lambda one: -one[0])


@st.composite
def problems(draw, spread=(0.1, 3.0, 30.0, 800.0), forbidden=True):
    """A lattice and a batch of sequences, some of them empty, with weights of some size."""
    labels, seed = draw(st.integers(1, 4)), draw(st.integers(0, 10**6))
    lengths = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    rng, size = np.random.default_rng(seed), draw(st.sampled_from(spread))
    offsets = np.concatenate([[0], np.cumsum(lengths)])

    def weights(*shape):
        made = rng.normal(scale=size, size=shape)
        return np.where(rng.random(shape) < 0.2, -np.inf, made) if forbidden and draw(st.booleans()) else made

    return Lattice(weights(labels, labels), weights(labels), weights(labels)), weights(offsets[-1], labels), offsets


@settings(deadline=None, max_examples=150)
@given(problems())
def test_best_paths_and_sums_are_those_of_all_paths(problem):
    lattice, emissions, offsets = problem
    path, scores = lattice.best(emissions, offsets)
    many, ranked = lattice.k_best(emissions, offsets, 3)
    posterior = lattice.posterior(emissions, offsets)
    expected = np.zeros_like(lattice.transitions)
    for k, (first, last) in enumerate(pairwise(offsets)):
        some = every_path(lattice, emissions[first:last])
        allowed = [one for one in some if one[0] > -np.inf]
        assert scores[k] == pytest.approx(some[0][0], rel=1e-12, abs=1e-9)
        for r in range(3):
            if r >= len(allowed):
                assert ranked[r, k] == -np.inf and (many[r, first:last] == NO_LABEL).all()
                continue
            assert ranked[r, k] == pytest.approx(allowed[r][0], rel=1e-12, abs=1e-9)
            if last > first:
                own = lattice.path_scores(emissions[first:last], [0, last - first], many[r, first:last])[0]
                assert own == pytest.approx(allowed[r][0], rel=1e-12, abs=1e-9)
        if not allowed:
            assert posterior.log_z[k] == -np.inf and not posterior.marginals[first:last].any()
            assert (path[first:last] == NO_LABEL).all()
            continue
        best = max(score for score, _ in allowed)
        powers = np.exp([score - best for score, _ in allowed])
        assert posterior.log_z[k] == pytest.approx(best + np.log(powers.sum()), rel=1e-12, abs=1e-9)
        marginals = np.zeros((last - first, lattice.labels))
        for share, (_, one) in zip(powers / powers.sum(), allowed, strict=True):
            for t, label in enumerate(one):
                marginals[t, label] += share
                if t:
                    expected[one[t - 1], label] += share
        np.testing.assert_allclose(posterior.marginals[first:last], marginals, atol=1e-9)
    np.testing.assert_allclose(posterior.transitions, expected, atol=1e-9)


@settings(deadline=None, max_examples=60)
@given(problems(spread=(1.0,)), st.integers(0, 10**6))
def test_fixed_labels_are_kept(problem, seed):
    lattice, emissions, offsets = problem
    rng = np.random.default_rng(seed)
    fixed = np.where(rng.random(len(emissions)) < 0.5, rng.integers(lattice.labels, size=len(emissions)), NO_LABEL)
    path, scores = lattice.best(emissions, offsets, fixed)
    posterior = lattice.posterior(emissions, offsets, fixed)
    for k, (first, last) in enumerate(pairwise(offsets)):
        agreeing = [
            score
            for score, one in every_path(lattice, emissions[first:last])
            if all(f in (NO_LABEL, label) for f, label in zip(fixed[first:last], one, strict=True))
        ]
        assert scores[k] == pytest.approx(max(agreeing), abs=1e-9)
        if scores[k] > -np.inf:
            kept = fixed[first:last] != NO_LABEL
            assert (path[first:last][kept] == fixed[first:last][kept]).all()
            total = np.log(np.exp(agreeing).sum())
            assert posterior.log_z[k] == pytest.approx(total, abs=1e-9)


def test_worked_example():
    """Tags of three words by a hidden Markov model: the best path, and the best that ends in VB."""
    with np.errstate(divide="ignore"):
        transitions = np.log([[0.1, 0.3], [0.4, 0.1]])  # NN, VB
        initial, final = np.log([0.2, 0.3]), np.log([0.1, 0.02])
        emissions = np.log([[0.001, 0.003], [0.003, 0.04], [0.05, 0.0002]])
    lattice = Lattice(transitions, initial, final)
    path, score = lattice.best(emissions, [0, 3])
    assert path.tolist() == [1, 1, 0]
    assert np.exp(score[0]) == pytest.approx(7.2e-9, rel=1e-12)
    ends = lattice.constrained(final=[False, True])
    path, score = ends.best(emissions, [0, 3])
    assert path[-1] == 1
    assert np.exp(score[0]) == pytest.approx(1.44e-12, rel=1e-12)
    same, fixed_score = lattice.best(emissions, [0, 3], fixed=[-1, -1, 1])
    assert same.tolist() == path.tolist() and fixed_score == score


def test_forbidden_transitions_are_not_taken():
    allowed = np.array([[True, True, False], [True, True, True], [True, True, True]])  # O, B, I: no I after O
    rng = np.random.default_rng(0)
    lattice = Lattice(rng.normal(size=(3, 3))).constrained(allowed, initial=[True, True, False])
    emissions, offsets = rng.normal(size=(3000, 3)), np.arange(0, 3001, 30)
    path, scores = lattice.best(emissions, offsets)
    assert np.isfinite(scores).all()
    for first in offsets[:-1]:
        one = path[first : first + 30]
        assert one[0] != 2 and not ((one[:-1] == 0) & (one[1:] == 2)).any()
    np.testing.assert_allclose(lattice.path_scores(emissions, offsets, path), scores)


def test_ten_thousand_tokens_neither_underflow_nor_lose_accuracy():
    rng = np.random.default_rng(1)
    lattice = Lattice(rng.normal(size=(5, 5)), rng.normal(size=5), rng.normal(size=5))
    emissions = rng.normal(size=(10_000, 5)) - 50.0
    posterior = lattice.posterior(emissions, [0, 10_000])
    assert posterior.log_z[0] < -400_000
    np.testing.assert_allclose(posterior.marginals.sum(axis=1), 1.0, atol=1e-9)
    assert posterior.transitions.sum() == pytest.approx(9999)
    assert lattice.log_probability(emissions, [0, 10_000], posterior.marginals.argmax(axis=1))[0] < 0


def test_weights_beyond_powers_of_doubles():
    """Two labels whose way is 2,000 below the other at every step but the last, where only it is allowed."""
    lattice = Lattice([[0.0, -np.inf], [-np.inf, -2000.0]], final=[-np.inf, 0.0])
    posterior = lattice.posterior(np.zeros((3, 2)), [0, 3])
    assert posterior.log_z[0] == -4000.0
    np.testing.assert_array_equal(posterior.marginals, [[0, 1], [0, 1], [0, 1]])
    np.testing.assert_array_equal(posterior.transitions, [[0, 0], [0, 2]])


def test_backward_sums_beyond_doubles():
    """The first token all but rules out the label that the second one and the transitions ask for."""
    lattice = Lattice([[0.0, -600.0], [300.0, 0.0]], initial=[0.0, -900.0])
    emissions = np.array([[381.0, 602.0], [-70.0, -1582.0], [207.0, 98.0]])
    posterior = lattice.posterior(emissions, [0, 3])
    found = every_path(lattice, emissions)
    best = found[0][0]
    powers = np.exp([score - best for score, _ in found])
    expected = np.zeros((3, 2))
    for share, (_, path) in zip(powers / powers.sum(), found, strict=True):
        expected[np.arange(3), path] += share
    np.testing.assert_allclose(posterior.marginals, expected, atol=1e-12)
    assert posterior.log_z[0] == pytest.approx(best + np.log(powers.sum()))


@settings(deadline=None, max_examples=150)
@given(problems(spread=(200.0, 400.0, 800.0), forbidden=False))
def test_marginals_of_extreme_weights_are_probabilities(problem):
    lattice, emissions, offsets = problem
    posterior = lattice.posterior(emissions, offsets)
    np.testing.assert_allclose(posterior.marginals.sum(axis=1), 1.0, atol=1e-9)
    assert np.isfinite(posterior.transitions).all()


def test_one_thread_and_many_say_the_same():
    rng = np.random.default_rng(2)
    lattice = Lattice(rng.normal(size=(20, 20)))
    lengths = rng.integers(0, 40, size=400)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    emissions = rng.normal(size=(offsets[-1], 20))
    path, scores = lattice.best(emissions, offsets)
    posterior = lattice.posterior(emissions, offsets)
    for k in range(0, 400, 37):
        part = emissions[offsets[k] : offsets[k + 1]]
        alone, score = lattice.best(part, [0, len(part)])
        assert (alone == path[offsets[k] : offsets[k + 1]]).all() and score[0] == scores[k]
        assert lattice.log_z(part, [0, len(part)])[0] == posterior.log_z[k]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Lattice(np.zeros((2, 3))), "square"),
        (lambda: Lattice(np.zeros((0, 0))), "at least one label"),
        (lambda: Lattice(np.zeros((2, 2)), initial=[1.0]), "initial must have one weight"),
        (lambda: Lattice([[np.nan, 0], [0, 0]]), "transitions weights must be finite"),
        (lambda: Lattice(np.zeros((2, 2))).best([[np.inf, 0]], [0, 1]), "emissions must be finite"),
        (lambda: Lattice(np.zeros((2, 2))).best(np.zeros((3, 2)), [0, 2]), "offsets must go from 0"),
        (lambda: Lattice(np.zeros((2, 2))).best(np.zeros((3, 2)), [0, 3, 1, 3]), "must not fall"),
        (lambda: Lattice(np.zeros((2, 2))).best(np.zeros((3, 3)), [0, 3]), "column for each of 2 labels"),
        (lambda: Lattice(np.zeros((2, 2))).best(np.zeros((1, 2)), [0, 1], fixed=[2]), "fixed must have"),
        (lambda: Lattice(np.zeros((2, 2))).k_best(np.zeros((1, 2)), [0, 1], 0), "k must be"),
        (lambda: Lattice(np.zeros((2, 2))).path_scores(np.zeros((1, 2)), [0, 1], [5]), "a path has a label"),
    ],
)
def test_what_cannot_be_is_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()
