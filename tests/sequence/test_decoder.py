"""Structured learning against plain oracles: every output enumerated, every hypothesis kept."""

from __future__ import annotations

import copy
import pickle
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlearn
from onlearn.sequence import Decoder, Lattice, SequenceDecoder, StructuredLearner
from onlearn.sequence.decoder import Pair, as_pair, difference, one_by_one
from onlearn.sequence.token_rows import TokenRows


class Enumerated(Decoder):
    """Outputs that are few enough to be looked at one by one; of equal ones the first is the best."""

    cost_weight = 0.0

    def outputs(self, x):
        raise NotImplementedError

    def cost(self, gold, output):
        return float(gold != output)

    def best(self, x, w):
        return max(self.outputs(x), key=lambda y: self.features(x, y) @ w)

    def rival(self, x, gold, w):
        if not self.cost_weight:
            return self.best(x, w), 1.0
        found = max(self.outputs(x), key=lambda y: self.features(x, y) @ w + self.cost_weight * self.cost(gold, y))
        return found, self.cost_weight * self.cost(gold, found)


class Matching(Enumerated):
    """Rows of x to its columns; x has the features of each pair."""

    def __init__(self, size, cost_weight=0.0):
        self.size, self.cost_weight = size, cost_weight

    def outputs(self, x):
        return permutations(range(len(x)))

    def cost(self, gold, output):
        return float(sum(a != b for a, b in zip(gold, output)))

    def features(self, x, output):
        return sum((x[i, j] for i, j in enumerate(output)), np.zeros(self.size))


class Classes(Decoder):
    """Several classes: the features of class c are those of x, at its place. The rival is the best other class."""

    def __init__(self, classes, features):
        self.classes, self.size = classes, classes * features

    def scores(self, x, w):
        return w.reshape(self.classes, -1) @ x

    def best(self, x, w):
        return int(np.argmax(self.scores(x, w)))

    def rival(self, x, gold, w):
        s = self.scores(x, w)
        s[gold] = -np.inf
        return int(np.argmax(s)), 1.0

    def features(self, x, output):
        return np.arange(len(x)) + output * len(x), x


def matchings(seed, count=8, side=3, size=4, whole=True):
    """Matchings that some weights find best."""
    rng = np.random.default_rng(seed)
    decoder, truth = Matching(size), rng.normal(size=size)
    X = [rng.integers(-2, 3, (side, side, size)).astype(float) if whole else rng.normal(size=(side, side, size))
         for _ in range(count)]  # fmt: skip
    return decoder, X, [decoder.best(x, truth) for x in X], truth


def followed(decoder, X, Y, step, epochs=1):
    """The plain learner: all hypotheses after each example, and whether each was a mistake."""
    w, hypotheses, wrong = np.zeros(decoder.size), [], []
    for _ in range(epochs):
        for x, gold in zip(X, Y):
            rival, cost = decoder.rival(x, gold, w)
            d = decoder.features(x, gold) - decoder.features(x, rival)
            if d.any():
                w = w + step(d @ w - cost + 1.0, d @ d) * d
            wrong.append(bool(d.any()) and bool(d @ hypotheses[-1] <= 0 if hypotheses else True))
            hypotheses.append(w)
    return np.array(hypotheses), wrong


def perceptron(s, q):
    return float(s <= 0)


def pa1(s, q, c=1.0):
    return min(c, max(0.0, 1.0 - s) / q)


def rows_of(rng, lengths, attributes, whole=True, each=3):
    """Token rows of sequences of these lengths, each token with some attributes."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    counts = rng.integers(0, each + 1, offsets[-1])
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    indices = rng.integers(0, attributes, indptr[-1]).astype(np.int32)
    values = np.zeros(0) if whole else rng.normal(size=indptr[-1])
    return TokenRows(offsets, indptr, indices, values)


# ------------------------------------------------------------------ what is learned


@pytest.mark.parametrize(("rule", "step"), [("perceptron", perceptron), ("pa1(0.3)", lambda s, q: pa1(s, q, 0.3))])
@pytest.mark.parametrize("cost", [0.0, 0.5, 1.0])
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_learns_what_the_plain_learner_learns(rule, step, cost, seed):
    decoder, X, Y, _ = matchings(seed)
    decoder.cost_weight = cost
    hypotheses, wrong = followed(decoder, X, Y, step, epochs=2)
    learner = StructuredLearner(decoder, rule, stabilizer="last", epochs=2, shuffle=False).fit(X, Y)
    np.testing.assert_allclose(learner.weights_, hypotheses[-1], rtol=1e-9, atol=1e-9)
    assert (learner.n_seen_, learner.n_mistakes_) == (16, sum(wrong))
    assert learner.n_updates_ == np.any(np.diff(hypotheses, axis=0, prepend=0.0), axis=1).sum()
    mean = StructuredLearner(decoder, rule, epochs=2, shuffle=False).fit(X, Y)
    np.testing.assert_allclose(mean.weights_, hypotheses.mean(axis=0), rtol=1e-9, atol=1e-9)


def test_survivor_is_the_hypothesis_of_the_longest_run():
    for seed in range(5):
        decoder, X, Y, _ = matchings(seed, count=12)
        rng = np.random.default_rng(seed)
        Y = [y if rng.random() < 0.8 else tuple(rng.permutation(3).tolist()) for y in Y]
        hypotheses, wrong = followed(decoder, X, Y, perceptron)
        before = np.concatenate([np.zeros((1, decoder.size)), hypotheses])  # what each example met
        run, best = 0, (0, before[0])
        for n, mistake in enumerate([*wrong, True]):
            if mistake and run > best[0]:
                best = run, before[n]
            run = 0 if mistake else run + 1
        if not wrong[-1]:  # the last run is compared as it is, and counts if it is as long
            last = next(n for n, mistake in enumerate(reversed([True, *wrong])) if mistake)
            best = (last, before[-1]) if last >= best[0] else best
        else:
            best = (0, before[-1]) if best[0] == 0 else best
        learner = StructuredLearner(decoder, stabilizer="survivor", epochs=1, shuffle=False).fit(X, Y)
        np.testing.assert_array_equal(learner.weights_, best[1])


def test_a_step_of_pa1_has_the_margin_of_the_cost():
    decoder, X, Y, _ = matchings(3, whole=False)
    decoder.cost_weight = 1.0
    learner = StructuredLearner(decoder, "pa1(1e9)", stabilizer="last").partial_fit(X[:1], Y[:1])
    rival, cost = decoder.rival(X[0], Y[0], np.zeros(4))
    d = decoder.features(X[0], Y[0]) - decoder.features(X[0], rival)
    np.testing.assert_allclose(learner.weights_, cost / (d @ d) * d, rtol=1e-12)
    assert learner.weights_ @ d == pytest.approx(cost)
    assert learner.history_["doubling"][0]["loss"] == pytest.approx(cost)  # cost less the margin, which was 0


def test_the_structured_hinge_loss_is_that_of_the_definition():
    decoder, X, Y, _ = matchings(5, whole=False)
    decoder.cost_weight = 1.0
    learner = StructuredLearner(decoder, "hinge", "additive(1e-12)", "last", epochs=1).fit(X, Y)
    worst = [max(decoder.cost(y, r) for r in decoder.outputs(x)) for x, y in zip(X, Y)]  # at weights of next to nothing
    assert learner.history_["passes"][0]["loss"] == pytest.approx(np.mean(worst), rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_the_mistake_bound_holds_on_separable_matchings(seed):
    decoder, X, Y, truth = matchings(seed, count=10, whole=False)
    every = [decoder.features(x, y) - decoder.features(x, r)
             for x, y in zip(X, Y) for r in decoder.outputs(x) if r != y]  # fmt: skip
    radius = max(np.linalg.norm(d) for d in every)
    margin = min(d @ truth for d in every) / np.linalg.norm(truth)
    assert margin > 0
    learner = StructuredLearner(decoder, stabilizer="last", epochs=200, random_state=seed).fit(X, Y)
    assert learner.n_mistakes_ <= (radius / margin) ** 2
    if learner.history_["passes"][-1]["mistakes"] == 0:
        assert learner.score(X, Y) == 1.0


@pytest.mark.parametrize("rule", ["perceptron", "margin(1.5)", "pa1", "pa2", "hinge", "logistic", "aggressive"])
@pytest.mark.parametrize("stabilizer", ["last", "averaged", "survivor"])
def test_classes_as_a_decoder_are_true_multiclass(rule, stabilizer):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 5)), rng.integers(0, 4, 60)
    made = dict(rule=rule, stabilizer=stabilizer, epochs=3, shuffle=False)
    flat = onlearn.OnlineClassifier(**made, multiclass="true", fit_intercept=False).fit(X, y)
    learner = StructuredLearner(Classes(4, 5), **made).fit(X, y)
    np.testing.assert_allclose(learner.weights_.reshape(4, 5), flat.coef_, rtol=1e-9, atol=1e-12)
    assert (learner.n_mistakes_, learner.n_updates_) == (flat.n_mistakes_, flat.n_updates_)
    assert learner.predict(X) == flat.predict(X).tolist()


@pytest.mark.parametrize(
    "geometry",
    ["adagrad(0.5)", "fading_adagrad(0.5)", "arow", "ftrl", "scinol", "balanced(1.2)", "additive(l2=0.01)",
     'additive(schedule="1/sqrt(t)")'],
)  # fmt: skip
def test_every_geometry_of_both_signs_learns(geometry):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(50, 5)), rng.integers(0, 3, 50)
    made = dict(rule="pa2", geometry=geometry, epochs=2, shuffle=False)
    flat = onlearn.OnlineClassifier(**made, multiclass="true", fit_intercept=False).fit(X, y)
    learner = StructuredLearner(Classes(3, 5), **made).fit(X, y)
    assert np.isfinite(learner.weights_).all() and learner.weights_.any()
    if geometry != "scinol":  # whose weights depend on the size of the values that they are multiplied by
        np.testing.assert_allclose(learner.weights_.reshape(3, 5), flat.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("geometry", ["additive(0.1, l2=0.01)", "additive(0.1, l1=0.01)", "adagrad(0.1, l1=0.01)"])
@pytest.mark.parametrize("stabilizer", [pytest.param("last", marks=pytest.mark.slow), "averaged"])
def test_decoders_see_weights_under_a_penalty_as_they_are(geometry, stabilizer):
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(40, 5)), rng.integers(0, 3, 40)
    made = dict(rule="hinge", geometry=geometry, stabilizer=stabilizer, epochs=2, shuffle=False)
    flat = onlearn.OnlineClassifier(**made, multiclass="true", fit_intercept=False).fit(X, y)
    learner = StructuredLearner(Classes(3, 5), **made).fit(X, y)
    np.testing.assert_allclose(learner.weights_.reshape(3, 5), flat.coef_, rtol=1e-9, atol=1e-12)


def test_a_rule_of_ones_own_learns_for_a_decoder():
    @onlearn.rule
    def half_of_it(score, y):
        return 0.5 * y if score * y <= 0 else 0.0

    decoder, X, Y, _ = matchings(7)
    mine = StructuredLearner(decoder, half_of_it, epochs=2, random_state=0).fit(X, Y)
    usual = StructuredLearner(decoder, "perceptron", epochs=2, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(mine.weights_, usual.weights_ / 2)

    @onlearn.rule
    def fails_late(score, y):
        return y if score > -1e-9 else np.nan

    learner = StructuredLearner(decoder, fails_late, stabilizer="last")
    with pytest.raises(ValueError, match=r"^example \d: the rule 'fails_late' returned .*; nothing was learned$"):
        learner.partial_fit(X * 5, [tuple(reversed(y)) for y in Y] * 5)
    with pytest.raises(ValueError, match="not learned anything yet"):
        learner.weights_  # noqa: B018


# ------------------------------------------------------------------ going on, order, copies


@pytest.mark.parametrize(
    ("stabilizer", "geometry"),
    [(a, b) for a in ("last", "averaged", "survivor") for b in ("additive", "arow", "additive(l1=0.001)", "adagrad")]
    + [("averaged(window=5)", "additive")],
)
def test_partial_fit_in_cuts_is_one_go(stabilizer, geometry):
    decoder, X, Y, _ = matchings(11, count=9, whole=False)
    learners = [StructuredLearner(decoder, "pa1", geometry, stabilizer) for _ in range(2)]
    learners[0].partial_fit(X, Y)
    for a, b in ((0, 1), (1, 1), (1, 5), (5, 9)):
        learners[1].partial_fit(X[a:b], Y[a:b])
        learners[1].weights_  # noqa: B018  looking does not change what is learned
        learners[1] = pickle.loads(pickle.dumps(learners[1]))
    one, other = learners
    assert one.weights_.tobytes() == other.weights_.tobytes() and one.history_ == other.history_


def test_the_order_depends_on_the_seed_alone():
    decoder, X, Y, _ = matchings(12, count=20, whole=False)
    weights = [StructuredLearner(decoder, random_state=seed, epochs=1).fit(X, Y).weights_ for seed in (0, 0, 1)]
    assert weights[0].tobytes() == weights[1].tobytes() != weights[2].tobytes()


def test_fit_learns_anew_and_params_can_be_cloned():
    from sklearn.base import clone

    decoder, X, Y, _ = matchings(13)
    learner = StructuredLearner(decoder, "pa1", random_state=3)
    first = learner.fit(X, Y).weights_
    np.testing.assert_array_equal(learner.fit(X, Y).weights_, first)
    twin = clone(learner)
    assert twin.get_params().keys() == learner.get_params().keys() and twin.rule == "pa1"
    np.testing.assert_array_equal(twin.fit(X, Y).weights_, first)
    assert "rule='pa1', random_state=3" in repr(learner)


# ------------------------------------------------------------------ decoders of any kind


def test_the_number_of_features_may_grow():
    class Words(Decoder):
        """Which of some words: each is a feature when it is first met."""

        def __init__(self):
            self.number = {}

        def best(self, x, w):
            numbers = [self.number.setdefault(word, len(self.number)) for word in x]
            return x[int(np.argmax([w[n] if n < len(w) else 0.0 for n in numbers]))]

        def features(self, x, output):
            return {self.number.setdefault(output, len(self.number)): 1.0}

    X, Y = [("a", "b"), ("c", "d"), ("b", "d"), ("e", "b")], ["b", "d", "d", "b"]
    learner = StructuredLearner(Words(), epochs=4, shuffle=False).fit(X, Y)
    assert learner.predict(X) == Y and learner.score(X, Y) == 1.0
    assert learner.predict([("z", "a")]) == ["z"]  # a new one has weight 0, and a lost once
    assert learner.decision_function([("z", "y")], ["y"]).tolist() == [0.0]
    cut = StructuredLearner(Words())
    for x, y in zip(X * 3, Y * 3):
        cut.partial_fit([x], [y])
    go = StructuredLearner(Words()).partial_fit(X * 3, Y * 3)
    assert cut.weights_.tobytes() == go.weights_.tobytes()


def test_a_decoder_need_not_derive_from_the_protocol():
    class Plain:
        def best(self, x, w):
            return int(len(w) > 0 and w[0] * x < 0)

        def features(self, x, output):
            return {0: x if output == 0 else -x}

    learner = StructuredLearner(Plain(), epochs=3, shuffle=False).fit([1, -2, 3], [1, 0, 1])
    assert learner.predict([5, -5]) == [1, 0]
    assert learner.decision_function([5]).tolist() == [5 * abs(learner.weights_[0])]


def test_a_score_of_ones_own_may_add_what_is_not_learned():
    class Offset(Decoder):
        size = 1

        def best(self, x, w):
            return max((0, 1), key=lambda y: self.score(x, y, w))

        def features(self, x, output):
            return np.array([float(output)])

        def score(self, x, output, w):
            return w[0] * output + (2.5 if output == 0 else 0.0)

    learner = StructuredLearner(Offset(), stabilizer="last", epochs=5, shuffle=False).fit([None], [1])
    assert learner.weights_.tolist() == [3.0] and learner.n_mistakes_ == 3  # the fixed part had to be outweighed


def test_nothing_is_learned_where_the_rival_is_right_but_the_hypothesis_lives():
    decoder, X, _, _ = matchings(14)
    learner = StructuredLearner(decoder, stabilizer="averaged").partial_fit(X[:1], [(2, 1, 0)])
    w = learner.weights_
    assert w.any()
    again = [decoder.best(x, w) for x in X]
    learner.partial_fit(X, again)
    assert (learner.n_seen_, learner.n_updates_, learner.n_mistakes_) == (9, 1, 1)
    np.testing.assert_allclose(learner.weights_, w)


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("features", "said"),
    [
        (lambda: np.array([1.0, np.nan]), "the value nan for feature 1, and values must be finite"),
        (lambda: np.ones(3), r"an array of shape \(3,\) instead of 2 numbers"),
        (lambda: np.ones((2, 1)), r"an array of shape \(2, 1\) instead of 2 numbers"),
        (lambda: {-1: 1.0}, "feature -1, and there is none below 0"),
        (lambda: {2: 1.0}, "feature 2, and there may be 2, from 0 to 1"),
        (lambda: {"a": 1.0}, "features that are not numbered by whole numbers"),
        (lambda: {0.5: 1.0}, "features that are not numbered by whole numbers"),
        (lambda: ([0, 1], [1.0]), r"features of shape \(2,\) with values of shape \(1,\)"),
        (lambda: ([0], [1.0], [2.0]), r"a tuple of 3 instead of the two \(features, values\)"),
        (lambda: None, "NoneType instead of numbers|an array of shape"),
        (lambda: "words", "str instead of numbers"),
    ],
)
def test_bad_features_are_refused_with_the_example(features, said):
    class Bad(Decoder):
        size = 2

        def best(self, x, w):
            return 0

        def features(self, x, output):
            return features() if x == "bad" else np.array([1.0, float(output)])

    learner = StructuredLearner(Bad(), stabilizer="last").partial_fit(["good"], [1])
    before = learner.weights_
    with pytest.raises(ValueError, match=f"^example 1: as the features of the right output the decoder gave {said}"):
        learner.partial_fit(["good", "bad"], [3, 1])
    np.testing.assert_array_equal(learner.weights_, before)  # a call that fails changes nothing
    with pytest.raises(ValueError, match=r"^example 1: "):
        StructuredLearner(Bad(), shuffle=False).fit(["good", "bad"], [1, 1])


@pytest.mark.parametrize("found", [3, (3,), [3, 1.0], (3, np.nan), (3, -1.0), (3, np.inf), (3, "dear"), (3, None)])
def test_bad_rivals_are_refused_with_the_example(found):
    class Bad(Matching):
        def rival(self, x, gold, w):
            return found

    _, X, Y, _ = matchings(0)
    with pytest.raises(ValueError, match=r"^example 0: (the decoder's rival must be a tuple|the cost of a rival must)"):
        StructuredLearner(Bad(4)).partial_fit(X, Y)


def test_bad_scores_are_refused_with_the_example():
    class Bad(Matching):
        def score(self, x, output, w):
            return np.nan

    _, X, Y, _ = matchings(0)
    with pytest.raises(ValueError, match=r"^example 0: the decoder gave a score that is not finite$"):
        StructuredLearner(Bad(4)).partial_fit(X, Y)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (dict(rule="epsilon"), "the rule 'epsilon' learns numbers"),
        (dict(rule="perzeptron"), "unknown rule"),
        (dict(geometry="winnow"), "either sign: use 'additive'"),
        (dict(geometry="exponentiated"), "either sign: use 'additive'"),
        (dict(geometry="balanced(threshold=1)"), "has a threshold"),
        (dict(stabilizer="voted"), "'voted' would decode once for every hypothesis"),
        (dict(epochs=0), "epochs must be a whole number of at least 1, not 0"),
        (dict(epochs=None), "epochs must be"),
        (dict(epochs=True), "epochs must be"),
        (dict(shuffle="no"), "shuffle must be True or False, not 'no'"),
        (dict(random_state=-1), "random_state must be from 0"),
        (dict(decoder=3), "the decoder 3 has no method 'best': write best and features"),
        (dict(decoder=Matching(0)), "the size of a decoder must be a whole number of at least 1, or None, not 0"),
    ],
)
def test_what_cannot_be_is_refused(changed, said):
    decoder, X, Y, _ = matchings(0)
    with pytest.raises(ValueError, match=said):
        StructuredLearner(**{"decoder": decoder, **changed}).fit(X, Y)


def test_inputs_and_outputs_go_together():
    decoder, X, Y, _ = matchings(0)
    learner = StructuredLearner(decoder)
    with pytest.raises(ValueError, match="there are 8 inputs and 7 outputs"):
        learner.fit(X, Y[:7])
    with pytest.raises(ValueError, match="not learned anything yet: call fit first"):
        learner.predict(X)
    learner.fit(X, Y)
    with pytest.raises(ValueError, match="no examples to score"):
        learner.score([], [])
    with pytest.raises(ValueError, match="no parameter 'rate'"):
        learner.set_params(rate=1)
    learner.set_params(rule="pa1")
    with pytest.raises(ValueError, match="rule was perceptron when learning began"):
        learner.partial_fit(X, Y)
    with pytest.raises(ValueError, match="read-only"):
        learner.weights_[0] = 1.0
    assert StructuredLearner(decoder).fit([], []).weights_.tolist() == [0.0] * 4


def test_the_weights_a_decoder_sees_cannot_be_changed():
    class Meddler(Matching):
        def best(self, x, w):
            w[0] = 1.0

    _, X, Y, _ = matchings(0)
    with pytest.raises(ValueError, match="read-only"):
        StructuredLearner(Meddler(4)).partial_fit(X, Y)


def test_differences_leave_nothing_of_equal_features():
    a = as_pair(([3, 0, 3], [0.1, 0.2, 0.2]), None)
    b = as_pair({0: 0.2, 3: 0.1 + 0.2, 5: 0.0}, None)
    assert len(difference(a, b).features) == 0
    found = difference(a, Pair(np.array([0, 7]), np.array([1.0, 2.0])))
    assert found.features.tolist() == [0, 3, 7]
    np.testing.assert_allclose(found.values, [-0.8, 0.3, -2.0])


# ------------------------------------------------------------------ sequences


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), labels=st.integers(1, 3), length=st.integers(0, 4), cost=st.sampled_from([0.0, 0.7]))
def test_sequences_as_a_decoder_against_enumeration(seed, labels, length, cost):
    rng = np.random.default_rng(seed)
    x = one_by_one(rows_of(rng, [2, length, 1], attributes=5, whole=bool(rng.integers(2))))[1]
    decoder = SequenceDecoder(labels, cost)
    full = labels * (labels + 2) + 5 * labels
    w = rng.normal(size=full)[: rng.integers(0, full + 1)]  # features that were not met yet have no weight
    emission, transitions, initial, final = decoder.parts(w)
    paths = [np.array(path, dtype=np.int64) for path in product(range(labels), repeat=length)]
    scores = np.array([decoder.score(x, path, w) for path in paths])
    values = x.values if len(x.values) else np.ones(len(x.indices))
    emissions = np.zeros((length, labels))
    for t in range(length):
        for p in range(x.indptr[t], x.indptr[t + 1]):
            if x.indices[p] < len(emission):
                emissions[t] += values[p] * emission[x.indices[p]]
    lattice = Lattice(transitions, initial, final)
    for path, s in zip(paths, scores):
        assert lattice.path_scores(emissions, [0, length], path)[0] == pytest.approx(s, abs=1e-9)
    assert decoder.score(x, decoder.best(x, w), w) == pytest.approx(scores.max(), abs=1e-9)
    gold = paths[rng.integers(len(paths))]
    rival, paid = decoder.rival(x, gold, w)
    wrong = np.array([np.count_nonzero(path != gold) for path in paths])
    if len(paths) == 1:
        assert paid == 0.0 and np.array_equal(rival, gold)
        return
    assert not np.array_equal(rival, gold)
    assert paid == (pytest.approx(cost * np.count_nonzero(rival != gold)) if cost else 1.0)
    highest = (scores + cost * wrong)[wrong > 0].max()
    assert decoder.score(x, rival, w) + paid * bool(cost) == pytest.approx(highest, abs=1e-9)


def test_a_sequence_learner_learns_transitions():
    rng = np.random.default_rng(0)
    rows = rows_of(rng, rng.integers(0, 7, 40), attributes=6)
    X, decoder = one_by_one(rows), SequenceDecoder(3)
    truth = rng.normal(size=15 + 18)
    Y = [decoder.best(x, truth) for x in X]
    learner = StructuredLearner(decoder, epochs=30, random_state=0).fit(X, Y)
    assert learner.score(X, Y) > 0.9
    emission, transitions, initial, final = decoder.parts(learner.weights_)
    assert emission.shape == (6, 3) and transitions.shape == (3, 3) and initial.shape == final.shape == (3,)
    augmented = StructuredLearner(SequenceDecoder(3, cost=1.0), "pa1(0.1)", epochs=30, random_state=0).fit(X, Y)
    assert augmented.score(X, Y) > 0.9


def test_ties_go_to_the_first_labels():
    x = rows_of(np.random.default_rng(0), [4], attributes=2)
    assert SequenceDecoder(3).best(x, np.zeros(0)).tolist() == [0, 0, 0, 0]
    assert SequenceDecoder(2, cost=1.0).rival(x, [0, 1, 0, 1], np.zeros(0))[0].tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("output", [[0, 1], [0, 1, 3], [0, -1, 1], [0.0, 1.0, 1.0], "abc", [[0, 1, 2]]])
def test_outputs_that_are_no_label_sequences_are_refused(output):
    x = rows_of(np.random.default_rng(0), [3], attributes=2)
    with pytest.raises(ValueError, match=r"an output must be the number of a label|labels go from 0 to 2"):
        SequenceDecoder(3).features(x, output)
    with pytest.raises(ValueError, match="labels must be"):
        SequenceDecoder(0)
    with pytest.raises(ValueError, match="cost must be"):
        SequenceDecoder(2, cost=-1.0)


def test_a_copy_goes_its_own_way():
    decoder, X, Y, _ = matchings(20)
    learner = StructuredLearner(decoder, random_state=0).fit(X, Y)
    before, twin = learner.weights_, copy.deepcopy(learner)
    twin.partial_fit(X, [tuple(reversed(y)) for y in Y])
    assert learner.weights_.tobytes() == before.tobytes() != twin.weights_.tobytes()
