"""Hidden Markov models without labels, or with some; and of rows of numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlearn
from onlearn.sequence.chain import Chain
from onlearn.sequence.gaussian import as_vectors
from onlearn.sequence.hmm import HMMLearner

TEXTS = st.lists(st.lists(st.sampled_from("abcd"), max_size=6), min_size=1, max_size=5).filter(any)


def rises(likelihoods: list[float]) -> bool:
    return all(b >= a - 1e-9 * abs(a) - 1e-9 for a, b in itertools.pairwise(likelihoods))


@settings(max_examples=50, deadline=None)
@given(TEXTS, st.integers(1, 4), st.integers(0, 100))
def test_an_iteration_never_lowers_the_likelihood_of_words(texts, states, seed):
    learner = HMMLearner(n_states=states, iterations=15, tol=0.0, random_state=seed).fit(texts)
    assert learner.labels == [f"s{n}" for n in range(states)]
    last = float(learner.log_likelihood(texts).sum())
    assert rises([*learner.log_likelihoods_, last])


@settings(max_examples=50, deadline=None)
@given(TEXTS, st.data())
def test_an_iteration_never_lowers_the_likelihood_with_some_labels(texts, data):
    label = st.sampled_from(["S", "T", None])
    labels = [[data.draw(label) for _ in one] for one in texts]
    learner = HMMLearner(iterations=15, tol=0.0, random_state=0).fit(texts, labels)
    assert rises(learner.log_likelihoods_)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 1000))
def test_an_iteration_never_lowers_the_likelihood_of_numbers(width, states, seed):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(length, width)) * 10 for length in (7, 1, 0, 12)]
    learner = HMMLearner(emissions="gaussian", n_states=states, iterations=15, tol=0.0, random_state=seed).fit(X)
    assert rises([*learner.log_likelihoods_, float(learner.log_likelihood(X).sum())])


def test_one_iteration_is_that_of_all_paths():
    """Expected counts by enumeration of all paths of two states."""
    texts = [["a", "b", "a"], ["b"]]
    once = HMMLearner(n_states=2, iterations=1, random_state=3).fit(texts)
    rng = np.random.default_rng(3)
    chain = Chain.random(2, rng)
    words = rng.dirichlet(np.ones(2), 2).T
    initial, transitions, final = np.zeros(2), np.zeros((2, 2)), np.zeros(2)
    counts, total = np.zeros((2, 2)), 0.0
    for text in ([0, 1, 0], [1]):
        odds = {}
        for path in itertools.product(range(2), repeat=len(text)):
            p = chain.initial[path[0]] * chain.final[path[-1]]
            p *= np.prod([words[w, j] for w, j in zip(text, path)])
            odds[path] = p * np.prod([chain.transitions[i, j] for i, j in itertools.pairwise(path)])
        z = sum(odds.values())
        total += np.log(z)
        for path, p in odds.items():
            initial[path[0]] += p / z
            final[path[-1]] += p / z
            for i, j in itertools.pairwise(path):
                transitions[i, j] += p / z
            for w, j in zip(text, path):
                counts[w, j] += p / z
    assert once.log_likelihoods_ == pytest.approx([total])
    assert once.chain.initial == pytest.approx(initial) and once.chain.final == pytest.approx(final)
    assert once.chain.transitions == pytest.approx(transitions)
    assert once.features.counts == pytest.approx(counts)


def test_the_same_seed_finds_the_same_model():
    texts = [list("abcab"), list("bca")]
    one, two = (HMMLearner(n_states=3, random_state=7, iterations=10).fit(texts) for _ in range(2))
    assert np.array_equal(one.features.counts, two.features.counts)
    assert one.predict([["a", "zzz"]]) == two.predict([["a", "zzz"]])


def test_it_ends_when_little_is_gained_and_tells_of_each_iteration():
    told = []
    learner = HMMLearner(n_states=2, random_state=0, tol=1e-3, iterations=500)
    learner.fit([list("abab") * 10] * 3, watch=told.append)
    assert 2 <= len(learner.log_likelihoods_) == len(told) == learner.passes < 500
    assert told[-1].loss == pytest.approx(-learner.log_likelihoods_[-1] / 3)


def test_labels_that_are_given_stay_and_teach_the_others():
    texts = [["the", "dog"], ["the", "cat"], ["a", "cat"], ["a", "dog"]] * 3
    labels = [["D", "N"], *[[None, None]] * 11]
    learner = HMMLearner(iterations=20).fit(texts, labels)
    assert learner.labels == ["D", "N"]
    assert learner.predict([["a", "cat"]]) == [["D", "N"]]
    with pytest.raises(ValueError, match="found by Baum-Welch"):
        learner.partial_fit([["a"]], [["D"]])


def test_what_baum_welch_never_saw_can_be_labelled_nevertheless():
    learner = HMMLearner(n_states=2, random_state=0).fit([["a", "b"]] * 5)
    assert all(label in ("s0", "s1") for label in learner.predict([["b", "b", "a", "new"]])[0])
    assert np.isfinite(learner.log_likelihood([["b", "b", "a", "new"]])).all()


# ----------------------------------------------------------------------------------------------------
# Rows of numbers.


def two_clouds(seed: int = 0):
    rng = np.random.default_rng(seed)
    states = [np.cumsum(rng.random(length) < 0.2) % 2 for length in (40, 25, 1)]
    X = [np.column_stack([5 * s + rng.normal(size=len(s)), rng.normal(size=len(s)) * 2]) for s in states]
    return X, [["hi" if one else "lo" for one in s] for s in states]


def test_supervised_moments_are_those_of_each_label():
    X, y = two_clouds()
    learner = HMMLearner(emissions="gaussian").fit(X, y)
    values, labels = np.concatenate(X), np.concatenate(y)
    means, variances = learner.features.moments()
    for j, label in enumerate(learner.labels):
        assert means[:, j] == pytest.approx(values[labels == label].mean(axis=0))
        assert variances[:, j] == pytest.approx(values[labels == label].var(axis=0))
    assert learner.score(X, y) > 0.95
    row, mean, variance = values[0], means[:, 0], variances[:, 0]
    density = -0.5 * ((row - mean) ** 2 / variance + np.log(2 * np.pi * variance)).sum()
    assert learner.emissions(X)[0, 0] == pytest.approx(density)


def test_numbers_cut_into_calls_leave_the_same_bits():
    X, y = two_clouds()
    whole = HMMLearner(emissions="gaussian").partial_fit(X, y)
    parts = HMMLearner(emissions="gaussian")
    for one, labels in zip(X, y):
        parts.partial_fit([one], [labels], classes=whole.labels)
    for name, array in whole._pack_learned()[1].items():
        assert np.array_equal(array, parts._pack_learned()[1][name])


def test_two_clouds_are_found_without_labels_and_stored(tmp_path):
    X, y = two_clouds()
    made = onlearn.HMM(emissions="gaussian", random_state=0).fit(X)
    found, gold = np.concatenate(made.predict(X)), np.concatenate(y)
    agree = np.mean((found == "s0") == (gold == "lo"))
    assert max(agree, 1 - agree) > 0.95
    made.save(tmp_path / "m.onl")
    again = onlearn.load(tmp_path / "m.onl")
    assert np.array_equal(again.log_likelihood(X), made.log_likelihood(X))
    texts, labels = again.sample(2, length=5, random_state=0)
    assert [one.shape for one in texts] == [(5, 2), (5, 2)] and len(labels[0]) == 5
    assert len(again.learner_.strongest(1)[0]) == 2 and len(again.learner_.contributions(X, 0)[2]) == 3


def test_variances_have_a_floor():
    learner = HMMLearner(emissions="gaussian", min_variance=0.5).fit([np.ones((4, 1))], [["S"] * 4])
    assert learner.features.moments()[1].tolist() == [[0.5]]
    assert np.isfinite(learner.log_likelihood([np.full((3, 1), 1e90)])).all()


@pytest.mark.parametrize(
    ("X", "says"),
    [
        (np.zeros((3, 2)), "give one sequence as"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], "different widths"),
        ([np.array([[np.nan]])], "missing, infinite"),
        ([np.array([[1e200]])], "missing, infinite"),
        ("text", "list of arrays"),
        (7, "list of arrays"),
        ([], "X is empty"),
    ],
)
def test_numbers_that_cannot_be_are_refused(X, says):
    with pytest.raises(ValueError, match=says):
        HMMLearner(emissions="gaussian").fit(X)


def test_other_tokens_than_those_learned_from_are_refused():
    X, y = two_clouds()
    learner = HMMLearner(emissions="gaussian").fit(X, y)
    with pytest.raises(ValueError, match="this HMM knows 2"):
        learner.predict([np.zeros((2, 3))])
    with pytest.raises(ValueError, match="not an array of numbers"):
        learner.predict([["a", "b"]])
    assert learner.predict([np.zeros((0, 2)), []]) == [[], []]
    assert len(as_vectors(np.zeros((2, 3, 1)))) == 2
    assert learner.set_params(emissions="categorical").fit([["a"]], [["S"]]).predict([["a"]]) == [["S"]]
