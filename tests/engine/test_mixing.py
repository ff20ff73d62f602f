"""Mixing of parameters against dense formulas, and against a list of all hypotheses."""

from __future__ import annotations

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as some
from sklearn.datasets import load_svmlight_files

from onlearn import model_file
from onlearn.engine.csr import CSR
from onlearn.engine.geometry import GEOMETRIES
from onlearn.engine.learner import Learner
from onlearn.engine.loops import DUE, SEEN, hand_out
from onlearn.engine.mixing import WEIGHTINGS, added, begin_shard, contribution, geometries, mixed, why_not
from onlearn.engine.rules import RULES
from onlearn.engine.stabilizers import STABILIZERS
from onlearn.engine.training import Training

MIXABLE = (
    "additive(0.3)",
    "additive(0.5, schedule='1/sqrt(t)')",
    "additive(0.1, l2=0.2)",
    "additive(0.1, l2=4.0)",  # the scale is renewed within a round
    "additive(0.1, schedule='1/(lambda t)', l2=0.5)",
    "adagrad(0.3)",
    "adagrad(0.3, l2=0.2)",
    "arow(0.5)",
)
ORACLE = {"rtol": 1e-9, "atol": 1e-9}


@some.composite
def cases(draw):
    """Rows, targets, what learns them, and how they are cut into shards."""
    rng = np.random.default_rng(draw(some.integers(0, 2**32)))
    rows, features, outputs = draw(some.integers(0, 30)), draw(some.integers(1, 6)), draw(some.sampled_from([1, 3]))
    X = rng.normal(size=(rows, features)) * (rng.random((rows, features)) < draw(some.sampled_from([0.3, 1.0])))
    made = Training(
        RULES.get(draw(some.sampled_from(["perceptron", "hinge", "pa1(0.5)", "logistic"]))),
        GEOMETRIES.get(draw(some.sampled_from(MIXABLE))),
        STABILIZERS.get(draw(some.sampled_from(["last", "averaged"]))),
        None if outputs == 1 else draw(some.sampled_from(["true", "one-vs-all", "softmax"])),
        features,
        outputs,
        draw(some.sampled_from([0.0, 1.0])),
    )
    y = rng.choice([-1.0, 1.0], rows) if outputs == 1 else rng.integers(0, outputs, rows)
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], rows) if draw(some.booleans()) else np.ones(rows)
    before = draw(some.integers(0, rows))  # rows that were learned from before the first round
    made.learn(X, y, weight, np.arange(before), audit=False)
    shards = np.sort(rng.integers(0, rows + 1, draw(some.integers(0, 4))))
    cuts = [0, *shards.tolist(), rows]
    parts = [rng.permutation(np.arange(a, b)) for a, b in pairwise(cuts)]
    return made, X, y, weight, parts


def copy_state(training):
    """Weights as they are, of all features and outputs, and the states with all of them up to date."""
    g, st = copy.deepcopy((training.g, training.st))
    hand_out(g, st, training.outputs, np.empty(g.w.size))
    w = g.w * g.m[0] if hasattr(g, "m") else g.w
    return w, g, st


def sum_of_hypotheses(st, g):
    return np.resize(st.clock, g.w.size) * g.w - st.u


def a_round(base, X, y, weight, parts, weighting="rows"):
    """The trainings of the shards, and the mixed one."""
    learned = []
    for rows in parts:
        shard = begin_shard(base, len(parts))
        shard.learn(X, y, weight, rows, audit=False)
        learned.append(shard)
    return learned, mixed(base, added([contribution(base, shard, weighting) for shard in learned]))


# ---------------------------------------------------------------- the formulas, densely


def shares(learned, base, weighting):
    seen = np.array([one.tally[SEEN] - base.tally[SEEN] for one in learned])
    wrong = np.array([one.n_mistakes - base.n_mistakes for one in learned], dtype=float)
    return {"rows": seen, "mistakes": wrong, "uniform": np.ones(len(learned))}[weighting]


@given(case=cases(), weighting=some.sampled_from(list(WEIGHTINGS)), rounds=some.integers(1, 3))
def test_rounds_follow_the_formulas(case, weighting, rounds):
    base, X, y, weight, parts = case
    for _ in range(rounds):
        learned, after = a_round(base, X, y, weight, parts, weighting)
        q = shares(learned, base, weighting)
        (w0, g0, st0), (w, g, st) = copy_state(base), copy_state(after)
        states = [copy_state(one) for one in learned]
        if not q.sum():  # nobody has a say
            assert np.array_equal(w, w0)
        elif base.geometry.name == "arow":
            P = [1.0 / one.variance for _, one, _ in states]
            assert np.allclose(w, sum(k * p * v for k, p, (v, _, _) in zip(q, P, states, strict=True))
                               / sum(k * p for k, p in zip(q, P, strict=True)), **ORACLE)  # fmt: skip
            assert np.allclose(1.0 / g.variance, sum(k * p for k, p in zip(q, P, strict=True)) / q.sum(), **ORACLE)
        else:
            assert np.allclose(w, sum(k * v for k, (v, _, _) in zip(q, states, strict=True)) / q.sum(), **ORACLE)
        if base.geometry.name == "adagrad" and q.sum():
            mean = sum(k * one.squares for k, (_, one, _) in zip(q, states, strict=True)) / q.sum()
            assert np.allclose(g.squares, mean, **ORACLE)
        if hasattr(g, "steps"):
            seen = sum(one.tally[SEEN] - base.tally[SEEN] for one in learned)
            assert np.isclose(g.steps[0], g0.steps[0] + seen / len(parts))
        if base.stabilizer.name == "averaged":
            H0 = sum_of_hypotheses(st0, g0)
            H = H0 + sum(sum_of_hypotheses(s, v) - H0 for _, v, s in states)
            assert st.seen[0] == after.n_seen
            assert np.allclose(sum_of_hypotheses(st, g), H, **ORACLE)
        base = after


@given(case=cases(), rounds=some.integers(1, 3))
def test_the_average_is_that_of_all_hypotheses_of_all_shards(case, rounds):
    base, X, y, weight, parts = case
    assume(base.stabilizer.name == "averaged")
    total = base.st.seen[0] * base.weights() if base.n_seen else np.zeros((base.features + 1, base.outputs))
    for _ in range(rounds):
        sent = []
        for rows in parts:
            shard = begin_shard(base, len(parts))
            for row in rows:
                shard.learn(X, y, weight, np.array([row]), audit=False)
                if weight[row]:
                    total = total + copy_state(shard)[0].reshape(-1, base.outputs)
            sent.append(contribution(base, shard))
        base = mixed(base, added(sent))
    if base.n_seen:
        assert np.allclose(base.weights(), total / base.n_seen, **ORACLE)


@given(case=cases(), rounds=some.integers(1, 3))
def test_one_shard_is_serial_learning(case, rounds):
    base, X, y, weight, parts = case
    order, serial = np.concatenate(parts), base.copied()
    for _ in range(rounds):
        serial.learn(X, y, weight, order, audit=False)
        _, base = a_round(base, X, y, weight, [order])
    largest = max(1.0, serial.largest_weight())
    assert np.allclose(base.weights(), serial.weights(), rtol=1e-12, atol=1e-12 * largest)
    assert np.array_equal(base.tally[: SEEN + 1], serial.tally[: SEEN + 1])
    for name, array in serial.g._asdict().items():
        if name != "last":  # of weights that are up to date in one of the two only
            assert name in ("w", "m") or np.allclose(getattr(base.g, name), array, rtol=1e-12)


# ---------------------------------------------------------------- contributions


@given(case=cases(), fan_in=some.integers(2, 4))
def test_contributions_may_be_added_in_any_tree(case, fan_in):
    base, X, y, weight, parts = case
    learned, _ = a_round(base, X, y, weight, parts)
    sent = [contribution(base, one) for one in learned]
    whole, tree = added(sent), sent
    while len(tree) > 1:
        tree = [added(tree[k : k + fan_in]) for k in range(0, len(tree), fan_in)]
    (root,) = tree
    for name, value in whole._asdict().items():
        assert np.allclose(value, getattr(root, name), rtol=1e-9, atol=1e-12), name
    assert np.array_equal(whole.places, root.places)
    assert (np.diff(whole.places) > 0).all()
    again = added([pickle.loads(pickle.dumps(one)) for one in sent])
    for name, value in whole._asdict().items():
        assert np.array_equal(value, getattr(again, name)), name


@given(case=cases())
def test_what_no_shard_touches_stays_to_the_bit(case):
    base, X, y, weight, parts = case
    assume(not (base.geometry.lazy or (base.geometry.drifts and base.geometry.l2 > 1)))
    X = X.copy()
    X[:, 0] = 0.0  # learned from before, perhaps, and not now
    _, after = a_round(base, X, y, weight, parts)
    mine = slice(base.outputs, 2 * base.outputs)
    for part in ("g", "st"):
        before, now = getattr(base, part), getattr(after, part)
        for name, array in before._asdict().items():
            if array.size == base.g.w.size:
                assert np.array_equal(array[mine], getattr(now, name)[mine]), name


def test_a_contribution_is_as_small_as_what_changed():
    base = Training(RULES.get("logistic"), GEOMETRIES.get("adagrad"), STABILIZERS.get("averaged"), None, 10**6, 1, 1.0)
    X = CSR(np.ones(2), np.array([7, 10**6 - 1], np.int32), np.array([0, 2], np.int32), (1, 10**6))
    shard = begin_shard(base, 2)
    shard.learn(X, np.ones(1), np.ones(1), np.arange(1))
    sent = contribution(base, shard)
    assert sent.places.tolist() == [0, 8, 10**6]
    assert sent.places.dtype == np.int32
    assert len(pickle.dumps(sent)) < 2000


@given(case=cases())
def test_a_round_changes_neither_base_nor_contributions(case):
    base, X, y, weight, parts = case
    before = pickle.dumps(base.pack())
    learned, _ = a_round(base, X, y, weight, parts)
    sent = [contribution(base, one) for one in learned]
    kept = pickle.dumps(sent)
    after = mixed(base, added(sent))
    after.learn(X, y, weight, np.arange(len(y)))
    assert pickle.dumps(base.pack()) == before
    assert pickle.dumps(sent) == kept


# ---------------------------------------------------------------- soundness


@pytest.mark.parametrize("size", [1e-200, 1e-150, 1e150, 1e200])
@pytest.mark.parametrize("geometry", MIXABLE)
@pytest.mark.parametrize("rule", ["perceptron", "pa2(0.5)", "logistic", "lms"])
def test_large_and_small_values_leave_finite_weights(geometry, rule, size):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)) * size, rng.choice([-1.0, 1.0], 40)
    X[::3] /= size
    base = Training(RULES.get(rule), GEOMETRIES.get(geometry), STABILIZERS.get("averaged"), None, 3, 1, 1.0)
    for _ in range(4):
        _, base = a_round(base, X, y, np.ones(40), np.split(rng.permutation(40), 4))
        assert all(np.isfinite(array).all() for state in (base.g, base.st) for array in state)
        assert np.isfinite(base.weights()).all()


def separable(seed, rows=60):
    rng = np.random.default_rng(seed)
    X, u = rng.normal(size=(rows, 4)), rng.normal(size=4)
    margins = X @ u
    X += np.outer(np.sign(margins) * 0.3 - 0.0, u / (u @ u))
    return X, np.sign(margins), 0.3 / np.linalg.norm(u)


@given(seed=some.integers(0, 1000), shards=some.integers(1, 6), weighting=some.sampled_from(list(WEIGHTINGS)))
@example(seed=0, shards=3, weighting="mistakes")
def test_mixed_mistakes_of_a_perceptron_are_bounded(seed, shards, weighting):
    """Theorem 3 of McDonald, Hall & Mann (2010): sum of mu_s m_s <= (R / margin)^2."""
    X, y, margin = separable(seed)
    base = Training(RULES.get("perceptron"), GEOMETRIES.get("additive"), STABILIZERS.get("last"), None, 4, 1, 0.0)
    for _ in range(10):
        _, base = a_round(base, X, y, np.ones(len(y)), np.array_split(np.arange(len(y)), shards), weighting)
    passes = base.history["passes"]
    assert [one["shards"] for one in passes] == [shards] * 10
    assert sum(one["mixed_mistakes"] for one in passes) <= (X**2).sum(axis=1).max() / margin**2
    if weighting == "uniform":
        assert all(np.isclose(one["mixed_mistakes"], one["mistakes"] / shards) for one in passes)


@pytest.mark.parametrize("geometry", MIXABLE)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_mixed_learner_is_saved_loaded_and_learns_on(geometry, classes, tmp_path):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 4))
    y = (X @ rng.normal(size=(4, classes))).argmax(axis=1)
    learner = Learner("OnlineClassifier", rule="hinge", geometry=geometry, random_state=0)
    learner.partial_fit(X[:8], y[:8], np.unique(y))
    targets = np.where(y == 1, 1.0, -1.0) if classes == 2 else y
    for _ in range(2):
        parts = np.array_split(np.arange(8, 90), 3)
        learned, learner.training = a_round(learner.training, X, targets, np.ones(90), parts)
    last = learner.history_["passes"][-1]
    assert learner.training.n_seen == 8 + 2 * 82
    assert learner.training.tally[DUE] == 256
    assert (last["seen"], last["shards"]) == (82, 3)
    assert last["mistakes"] == sum(one.n_mistakes for one in learned) - 3 * (
        learner.training.n_mistakes - last["mistakes"]
    )
    model_file.save(learner, tmp_path / "mixed.onl")
    loaded = model_file.load_learner(tmp_path / "mixed.onl")
    assert loaded.history_ == learner.history_
    assert loaded.n_mistakes_ == learner.n_mistakes_
    for one in (learner, loaded):
        one.partial_fit(X, y)
    assert np.array_equal(loaded.coef_, learner.coef_)
    assert np.array_equal(loaded.predict_proba(X), learner.predict_proba(X))
    assert (learner.predict(X) == y).mean() > 0.5


def test_rounds_are_passes_over_all_rows():
    X, y, _ = separable(1)
    base = Training(RULES.get("perceptron"), GEOMETRIES.get("additive"), STABILIZERS.get("averaged"), None, 4, 1, 0.0)
    for _ in range(3):
        _, base = a_round(base, X, y, np.ones(60), np.split(np.arange(60), 3))
    assert base.passes == 3
    assert base.saw_passes_of(60)
    assert not base.saw_passes_of(20)


def test_no_mistake_bound_of_one_sequence_is_claimed():
    X, y, _ = separable(2)
    model = Learner("Perceptron", random_state=0, epochs=1, fit_intercept=False).fit(X, y)
    assert any(bound.applies for bound in model.certificate(X, y).bounds)
    _, model.training = a_round(model.training, X, y, np.ones(60), np.split(np.arange(60), 3))
    certificate = model.certificate(X, y)
    applying = [bound.name for bound in certificate.bounds if bound.applies]
    assert applying
    assert all(name.startswith("perceptron_mixed") for name in applying)
    assert "3 shards were mixed" in certificate.bounds[0].why
    assert certificate.holds()


# ---------------------------------------------------------------- what is refused


def test_geometries_that_can_be_mixed():
    assert geometries() == ["adagrad", "additive", "arow"]


@pytest.mark.parametrize(
    ("name", "parameters", "word"),
    [
        ("Winnow", {}, "winnow"),
        ("BalancedWinnow", {}, "balanced"),
        ("NormalizedWinnow", {}, "exponentiated"),
        ("FTRL", {}, "ftrl"),
        ("ScInOL", {}, "scinol"),
        ("OnlineClassifier", {"geometry": "fading_adagrad"}, "fading_adagrad"),
        ("OnlineClassifier", {"geometry": "additive(0.1, l1=0.1)"}, "without l1"),
        ("LogisticRegression", {"l1": 0.1}, "without l1"),
        ("OnlineClassifier", {"stabilizer": "voted"}, "'averaged' or 'last'"),
        ("OnlineClassifier", {"stabilizer": "survivor"}, "'averaged' or 'last'"),
        ("OnlineClassifier", {"stabilizer": "averaged(window=50)"}, "window"),
    ],
)
def test_what_cannot_be_mixed_is_said_in_a_sentence(name, parameters, word):
    learner = Learner(name, **parameters)
    said = why_not(learner)
    assert word in said
    assert "cannot be mixed: " in said
    assert said == why_not(learner.choices)
    X = np.array([[1.0], [2.0]])
    training = learner.fit(X, np.array([0, 1])).training
    assert said == why_not(training)
    for call in (lambda: begin_shard(training, 2), lambda: contribution(training, training)):
        with pytest.raises(ValueError, match="cannot be mixed"):
            call()


@pytest.mark.parametrize("name", ["AveragedPerceptron", "PassiveAggressive", "LogisticRegression", "AROW", "LinearSVM",
                                  "Adaline", "OnlineRegressor", "AdaGrad"])  # fmt: skip
def test_what_can_be_mixed(name):
    assert why_not(Learner(name)) is None
    assert why_not(Learner(name).choices) is None


def test_learners_of_other_kinds_are_refused():
    from onlearn.engine.registry import parse_learner

    for spelling in ("NaiveBayes", "Mixture", "KernelPerceptron"):
        try:
            learner = parse_learner(spelling)
        except ValueError:
            continue
        assert "cannot be mixed" in why_not(learner), spelling
    assert "cannot be mixed" in why_not({"kernel": "linear"})


def test_what_does_not_go_together_is_refused():
    X, y, _ = separable(0)
    made = [Training(RULES.get("hinge"), GEOMETRIES.get("additive"), STABILIZERS.get("last"), None, n, 1, 1.0)
            for n in (4, 5)]  # fmt: skip
    with pytest.raises(ValueError, match="make room"):
        contribution(*made)
    with pytest.raises(ValueError, match="make room"):
        added([contribution(one, one) for one in made])
    with pytest.raises(ValueError, match="has 6"):
        mixed(made[1], contribution(made[0], made[0]))
    with pytest.raises(ValueError, match="no contributions"):
        added([])
    with pytest.raises(ValueError, match="weighting"):
        contribution(made[0], made[0], "size")
    later = made[0].copied()
    later.learn(X, y, np.ones(60), np.arange(60))
    with pytest.raises(ValueError, match="fewer examples"):
        contribution(later, made[0])


# ---------------------------------------------------------------- real data


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LogisticRegression", "AROW", "AveragedPerceptron", "PassiveAggressive", "LinearSVM"])
@pytest.mark.parametrize("shards", [4, 16])
def test_a9a_in_shards_is_within_a_third_of_a_point_of_one_sequence(name, shards, data):
    """The file is sorted by class, and its rows are dealt to the shards in blocks."""
    folder = data("a9a")
    X, y, Xt, yt = load_svmlight_files([str(folder / "a9a.svm"), str(folder / "a9a.t.svm")])
    order = np.argsort(y, kind="stable")
    learner = Learner(name, random_state=0).fit(X, y)
    serial = (learner.predict(Xt) == yt).mean()
    base, rng, blocks = learner.renewed().partial_fit(X[:1], y[:1], [-1.0, 1.0]).training, np.random.default_rng(0), 256
    parts = [order[np.arange(len(y)) // blocks % shards == s] for s in range(shards)]
    for _ in range(5):
        _, base = a_round(base, X, y, np.ones(len(y)), [rng.permutation(part) for part in parts])
    learner.training = base
    assert (learner.predict(Xt) == yt).mean() >= serial - 0.0033
