"""The trace of a learner against the reference, which forgets nothing; and what is made of it."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import cases
import onlearn
import reference as ref
from cases import GEOMETRIES, LAYOUTS, RULES
from onlearn import OnlineClassifier, OnlineRegressor, Perceptron
from onlearn.engine.passes import shuffled

EPOCHS = 2
AND = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0, 0, 0, 1])
LAST = [case for case in (*cases.BINARY_COVERING, *cases.MANY_COVERING) if case.stabilizer == "last"]


def lines(trace, k):
    """A hypothesis as one line a class: intercept and weights."""
    return np.column_stack([np.atleast_1d(trace.intercept(k)), np.atleast_2d(trace.weights(k))])


def learned(model):
    return np.column_stack([model.intercept_, model.coef_])


# ---------------------------------------------------------------- conformance


@pytest.mark.parametrize("case", LAST, ids=str)
def test_trace_is_what_happened(case):
    """Rows, passes, steps, mistakes and every hypothesis are those of the reference; the last one to the bit."""
    binary = case.output == "binary"
    data = cases.data("binary" if binary else "multiclass", case.group == "winnow")
    X, y = LAYOUTS[case.layout](data.X), data.signs if binary else data.y
    outputs = 1 if binary else cases.CLASSES
    for geometry, make in GEOMETRIES[case.group].items():
        for rule in ["logistic"] if case.output == "softmax" else ["perceptron", "pa1(0.2)"]:
            where = f"{rule} {geometry} {case}"
            model = OnlineClassifier(
                rule, geometry, "last", "auto" if binary else case.output, shuffle=False, epochs=EPOCHS
            )
            plain = learned(model.fit(X, data.y))
            trace = model.fit(X, data.y, trace=True).trace_
            assert np.array_equal(learned(model), plain), where  # to the last bit
            trail = ref.learn(RULES[rule], make(), case.output, data.X, y, outputs=outputs, epochs=EPOCHS)
            when = np.flatnonzero(trail.changed)
            assert len(trace) == len(when) == model.n_updates_, where
            assert np.array_equal(trace.rows, when % cases.ROWS), where
            assert np.array_equal(trace.passes, when // cases.ROWS), where
            assert np.array_equal(trace.steps, when + 1), where
            assert np.array_equal(trace.mistakes, np.array(trail.mistaken)[when]), where
            assert np.array_equal(trace.votes, np.diff([0, *when, EPOCHS * cases.ROWS])), where
            for k, t in enumerate([0, *(when + 1)]):
                coef, intercept = trail.split(trail.hypotheses[t])
                wanted = np.column_stack([intercept, coef])
                scale = max(1.0, np.abs(wanted).max())
                np.testing.assert_allclose(lines(trace, k), wanted, rtol=1e-9, atol=1e-9 * scale, err_msg=where)
            if case.group not in cases.DRIFTING:
                assert np.array_equal(lines(trace, len(trace)), plain), where


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    shuffle=st.booleans(),
    stabilizer=st.sampled_from(["last", "averaged", "survivor", "voted"]),
    sparse=st.booleans(),
)
def test_trace_is_the_perceptron_by_hand(seed, shuffle, stabilizer, sparse):
    """Any order, any weights of the rows, zero among them, and whatever is handed out in the end."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-3, 4, size=(25, 4)).astype(float), rng.integers(0, 2, size=25)
    y[:2] = 0, 1
    weight = rng.integers(0, 3, size=25).astype(float)
    weight[:2] = 1.0
    model = OnlineClassifier(stabilizer=stabilizer, shuffle=shuffle, epochs=3, random_state=seed % 1000)
    rows = sp.csr_array(X) if sparse else X
    trace = model.fit(rows, y, sample_weight=weight, trace=True).trace_
    w, steps, t = np.zeros(5), [], 0
    hypotheses = [w]
    for epoch in range(3):
        for i in shuffled(25, model._learner.seed, epoch) if shuffle else np.arange(25):
            x, sign = np.append(1.0, X[i]), 2 * y[i] - 1
            if weight[i] == 0:
                continue
            t += 1
            if sign * (w @ x) <= 0:
                w = w + weight[i] * sign * x
                steps.append((i, epoch, t))
                hypotheses.append(w)
    assert steps == list(zip(trace.rows, trace.passes, trace.steps))
    assert trace.mistakes.all() and len(trace) == model.n_mistakes_
    for k in rng.permutation(len(hypotheses)):  # forward and back
        assert np.array_equal(np.append(trace.intercept(k), trace.weights(k)), hypotheses[k])
    for k in range(1, len(hypotheses)):
        columns = np.flatnonzero(hypotheses[k][1:] != hypotheses[k - 1][1:])
        changes = trace.changes(k)
        assert np.array_equal(np.sort(changes.columns), columns) and not changes.outputs.any()
        assert np.array_equal(hypotheses[k][1:][changes.columns], changes.values)
    assert np.array_equal(model.coef_last_[0], w[1:]) and model.intercept_last_[0] == w[0]
    assert trace.votes.sum() == model.n_seen_
    if stabilizer == "averaged":
        listed = model.hypotheses_
        mean = sum(h.votes * np.append(h.intercept, h.weights) for h in listed) / sum(h.votes for h in listed)
        np.testing.assert_allclose(np.append(model.intercept_, model.coef_[0]), mean, atol=1e-12)


# ---------------------------------------------------------------- lists of hypotheses


@pytest.mark.parametrize(
    ("geometry", "multiclass"),
    [("additive", False), ("balanced(1.3)", False), ("exponentiated(0.4)", False), ("exponentiated(0.4)", True)],
)
def test_hypotheses_of_a_voted_learner(geometry, multiclass):
    data = cases.data("multiclass" if multiclass else "binary", positive=False)
    model = OnlineClassifier(geometry=geometry, stabilizer="voted", random_state=1).fit(data.X, data.y, trace=True)
    kept, traced = model.hypotheses_, model.trace_.hypotheses()
    assert len(kept) == len(traced) == model.n_updates_ + 1
    for one, other in zip(kept, traced):
        assert one.votes == other.votes
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-12)
        np.testing.assert_allclose(one.intercept, other.intercept, atol=1e-12)
    assert sum(h.votes for h in kept) == model.n_seen_
    votes = np.zeros((len(data.X), 3))
    for h in kept:  # the vote that is predicted by
        scores = data.X @ np.atleast_2d(h.weights).T + h.intercept
        best = np.argmax(scores, axis=1) if multiclass else (scores[:, 0] > 0).astype(int)
        votes[np.arange(len(best)), best] += h.votes
    assert np.array_equal(np.argmax(votes[:, : 3 if multiclass else 2], axis=1), model.predict(data.X))
    assert kept[-1].votes == kept[len(kept) - 1].votes and len(kept[1:3]) == 2
    with pytest.raises(IndexError):
        kept[len(kept)]


def test_survivor_has_the_longest_run():
    data = cases.data("binary", positive=False)
    model = OnlineClassifier(stabilizer="survivor", random_state=0, epochs=4).fit(data.X, data.y, trace=True)
    runs = model.hypotheses_
    right = [h.votes - (k > 0) for k, h in enumerate(runs)]  # the example that made it was a mistake
    assert model.longest_run_ == max(right)
    best = right.index(max(right)) if right[-1] < max(right) else len(right) - 1  # the last one wins a tie
    assert np.array_equal(model.coef_[0], runs[best].weights)
    with pytest.raises(AttributeError, match="survivor"):
        _ = Perceptron().fit(*AND).longest_run_


def test_the_last_hypothesis_beside_the_mean():
    data = cases.data("multiclass", positive=False)
    mean = OnlineClassifier(random_state=0).fit(data.X, data.y)
    last = OnlineClassifier(stabilizer="last", random_state=0).fit(data.X, data.y)
    assert np.array_equal(mean.coef_last_, last.coef_) and np.array_equal(mean.intercept_last_, last.intercept_)
    assert not np.array_equal(mean.coef_, mean.coef_last_)
    shrunk = dict(rule="hinge", geometry="additive(0.1, l1=0.01, l2=0.1)", random_state=0, epochs=2)
    before = OnlineClassifier(**shrunk).fit(data.X, data.y)
    assert np.array_equal(before.coef_last_, OnlineClassifier(stabilizer="last", **shrunk).fit(data.X, data.y).coef_)
    assert np.array_equal(before.coef_, OnlineClassifier(**shrunk).fit(data.X, data.y).coef_)  # looking changes nothing


# ---------------------------------------------------------------- normalised Winnow


@pytest.mark.parametrize(("eta", "size"), [(0.1, 1.0), (0.5, 1.0), (4.0, 10.0)])
def test_divergence_is_that_of_the_definition(eta, size):
    """Also where steps are so long that the weights are formed anew after nearly each of them."""
    rng = np.random.default_rng(0)
    X = size * rng.choice([-1.0, 1.0], size=(200, 8))
    y = (X[:, :3].sum(axis=1) > 0).astype(int)
    model = onlearn.NormalizedWinnow(eta=eta, epochs=2, stabilizer="last", random_state=0).fit(X, y, trace=True)
    trace, u = model.trace_, np.array([1 / 3] * 3 + [0.0] * 5)
    found = trace.divergence(u)
    assert len(found) == len(trace) + 1 and found[0] == pytest.approx(np.log(8 / 3))
    with np.errstate(divide="ignore"):
        wanted = [np.sum(u[:3] * np.log(u[:3] / np.maximum(trace.weights(k)[:3], 1e-320))) for k in range(len(found))]
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)
    assert np.array_equal(trace.weights(len(trace)), model.coef_[0])
    assert trace.weights(len(trace)).sum() == pytest.approx(1.0)


def test_divergence_falls_at_every_mistake():
    """The proof: where |x|_inf is 1 and y u.x >= g, a mistake takes eta g - ln cosh eta or more off KL(u||w)."""
    rng = np.random.default_rng(1)
    X = rng.choice([-1.0, 1.0], size=(300, 20))
    u = np.array([1 / 3] * 3 + [0.0] * 17)
    y, margin = (X @ u > 0).astype(int), 1 / 3
    eta = np.arctanh(margin)  # 1/2 ln((1+g)/(1-g)), for which it is most
    model = onlearn.NormalizedWinnow(eta=eta, epochs=None, random_state=0).fit(X, y, trace=True)
    found, fall = model.trace_.divergence(u), eta * margin - np.log(np.cosh(eta))
    assert fall > 0.05
    assert all(before - after >= fall - 1e-12 for before, after in pairwise(found))
    assert found[-1] >= 0
    for wrong, message in [
        ([1.0], "20 features"),
        (-u, "distribution"),
        (2 * u, "distribution"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.trace_.divergence(wrong)
    with pytest.raises(ValueError, match="sum to 1"):
        Perceptron().fit(X, y, trace=True).trace_.divergence(u)


# ---------------------------------------------------------------- manners


def test_worked_run():
    """AND, from the first row on: w and b after every mistake, as one computes them with pen and paper."""
    trace = Perceptron(epochs=2, shuffle=False).fit(*AND, trace=True).trace_
    assert trace.rows.tolist() == [0, 3, 0, 1, 3] and trace.steps.tolist() == [1, 4, 5, 6, 8]
    run = [(trace.weights(k).tolist(), trace.intercept(k)) for k in range(6)]
    assert run == [([0, 0], 0), ([0, 0], -1), ([1, 1], 0), ([1, 1], -1), ([1, 0], -2), ([2, 1], -1)]
    assert trace.changes(4).columns.tolist() == [1] and trace.changes(4).values.tolist() == [0.0]
    assert repr(trace) == "<trace of 5 steps, 5 of them on mistakes>"
    for wrong in (-1, 6):
        with pytest.raises(IndexError, match="after 0 to 5 steps"):
            trace.weights(wrong)
    with pytest.raises(IndexError, match="counted from 1"):
        trace.changes(0)


def test_margin_steps_are_told_from_mistakes():
    data = cases.data("binary", positive=False)
    model = onlearn.PassiveAggressive(epochs=2, random_state=0).fit(data.X, data.y, trace=True)
    assert 0 < model.trace_.mistakes.sum() == model.n_mistakes_ < len(model.trace_) == model.n_updates_


def test_callback_sees_every_step():
    seen = []

    def watch(trace):
        seen.append((trace.rows[-1], trace.intercept(len(trace)), *trace.weights(len(trace)), len(trace)))

    model = Perceptron(epochs=2, shuffle=False).fit(*AND, trace=watch)
    trace = model.trace_
    assert seen == [(trace.rows[k - 1], trace.intercept(k), *trace.weights(k), k) for k in range(1, len(trace) + 1)]

    def fail(trace):
        raise RuntimeError("enough")

    before = learned(model)
    model.warm_start = True
    with pytest.raises(RuntimeError, match="enough"):
        model.fit(*AND, trace=fail)
    assert np.array_equal(learned(model), before) and model.n_seen_ == 8
    assert np.array_equal(learned(model.fit(*AND)), learned(Perceptron(epochs=4, shuffle=False).fit(*AND)))


def test_trace_goes_on_with_warm_start():
    model = Perceptron(epochs=1, shuffle=False, warm_start=True).fit(*AND)
    trace = model.fit(*AND, trace=True).trace_
    assert trace.weights(0).tolist() == [1, 1] and trace.rows.tolist() == [0, 1, 3]
    assert trace.passes.tolist() == [1, 1, 1] and trace.steps.tolist() == [1, 2, 4]


def test_trace_of_learners_that_may_grow():
    """Two classes have two outputs then, and one score."""
    model = OnlineClassifier(stabilizer="last", grow=True, shuffle=False, epochs=3).fit(*AND, trace=True)
    trace = model.trace_
    assert np.array_equal(trace.weights(len(trace)), model.coef_[0])
    assert trace.intercept(len(trace)) == model.intercept_[0]
    assert np.array_equal(model.coef_last_, model.coef_)


def test_trace_of_regression():
    data = cases.data("regression", positive=False)
    model = OnlineRegressor("epsilon(0.2)", stabilizer="last", random_state=0).fit(data.X, data.y, trace=True)
    trace = model.trace_
    assert len(trace) == model.n_updates_ and not trace.mistakes.any()
    assert np.array_equal(trace.weights(len(trace)), model.coef_)
    assert trace.intercept(len(trace)) == model.intercept_[0]


def test_there_is_a_trace_only_where_one_was_asked_for():
    model = Perceptron(epochs=2, shuffle=False).fit(*AND, trace=True)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.trace_.weights(3), model.trace_.weights(3))
    for name in ("trace_", "hypotheses_"):
        with pytest.raises(AttributeError, match="trace=True"):
            getattr(model.fit(*AND), name)
        with pytest.raises(AttributeError, match="before fit"):
            getattr(Perceptron(), name)
    with pytest.raises(TypeError, match="trace must be True, False or a function"):
        model.fit(*AND, trace="yes")
    with pytest.raises(AttributeError):
        _ = model.renewed().trace_


def test_rules_that_fail_say_so_with_a_trace():
    bad = np.array([[1.0, 2.0], [np.nan, 1.0]])
    with pytest.raises(ValueError, match="NaN in row 1, column 0"):
        Perceptron().fit(bad, [0, 1], trace=True)

    @onlearn.rule
    def fails(s, y):
        return y if s * y <= 0 else float("nan")

    with pytest.raises(ValueError, match="row 1"):
        OnlineClassifier(fails, shuffle=False).fit(np.ones((4, 1)), [1, 1, 0, 0], trace=True)
