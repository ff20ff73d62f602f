"""Rounds of shards: mistakes within the bound of mixed perceptrons, and certificates that say what applies."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlearn.engine.geometry import GEOMETRIES
from onlearn.engine.learner import Learner
from onlearn.engine.loops import DUE, SEEN
from onlearn.engine.rounds import carry_round, mixing_of, note_round
from onlearn.engine.rules import RULES
from onlearn.engine.scoring import certificate_by
from onlearn.engine.stabilizers import STABILIZERS
from onlearn.engine.training import Training
from onlearn.theory import bounds

ONE_SEQUENCE = {
    "perceptron", "perceptron_noisy", "winnow", "normalized_winnow", "normalized_winnow_noisy",
    "normalized_winnow_simple", "additive", "multiplicative",
}  # fmt: skip
EQUAL, BY_MISTAKES, RANDOM = "equal", "by mistakes", "random"


def shares_of(kind, mistakes, rng):
    """The share of each shard in a round in which they made these mistakes."""
    if kind == RANDOM:
        return rng.dirichlet(np.ones(len(mistakes)))
    if kind == EQUAL or not mistakes.sum():
        return np.full(len(mistakes), 1.0 / len(mistakes))
    return mistakes / mistakes.sum()


def fresh(features, rule="perceptron", geometry="additive", bias=0.0, stabilizer="last"):
    choices = RULES.get(rule), GEOMETRIES.get(geometry), STABILIZERS.get(stabilizer)
    return Training(*choices, None, features, 1, bias)


def one_round(training, X, y, parts, kind, rng, weight=None):
    """Let a copy of the learner learn from each shard, and mix the weights and counts of the copies."""
    training.begin_pass()
    weight = np.ones(len(y)) if weight is None else weight
    apart = [copy.deepcopy(training) for _ in parts]
    for one, rows in zip(apart, parts):
        one.learn(X, y, weight, rows)
    mistakes = np.array([one.n_mistakes - training.n_mistakes for one in apart], dtype=float)
    shares = shares_of(kind, mistakes, rng)
    counts = sum(one.tally[: SEEN + 1] - training.tally[: SEEN + 1] for one in apart)
    training.tally[: SEEN + 1] += counts
    training.tally[DUE] = 2.0 ** np.ceil(np.log2(training.tally[SEEN] + 1))
    training.g.w[:] = sum(share * one.g.w for share, one in zip(shares, apart))
    training.even = all(one.even for one in apart)
    note_round(training.end_pass(), shares, mistakes)


def plain_counts(X, y, parts, kinds, rng, bias):
    """All mistakes, and the sum of the weighted ones, of perceptrons in plain NumPy."""
    X, mixed = np.column_stack([np.full(len(X), bias), X]), np.zeros(X.shape[1] + 1)
    total, weighted = 0, 0.0
    for kind in kinds:
        apart, mistakes = [mixed.copy() for _ in parts], np.zeros(len(parts))
        for i, rows in enumerate(parts):
            for row in rows:
                if y[row] * (apart[i] @ X[row]) <= 0:
                    apart[i] += y[row] * X[row]
                    mistakes[i] += 1
        shares = shares_of(kind, mistakes, rng)
        mixed = sum(share * one for share, one in zip(shares, apart))
        total, weighted = total + mistakes.sum(), weighted + shares @ mistakes
    return total, weighted


def planted(rng, rows, features, margin, noise=0.0):
    """Rows at least so far from a plane through zero, and their sides, of which some are wrong."""
    u = rng.normal(size=features)
    u /= np.linalg.norm(u)
    X = rng.normal(size=(rows, features))
    s = X @ u
    X += np.outer(np.sign(s) * np.maximum(0.0, margin - np.abs(s)), u)
    return X, np.where((X @ u > 0) ^ (rng.random(rows) < noise), 1.0, -1.0), u


def split(rng, rows, shards):
    """Shards of about the same size, or of any size."""
    order = rng.permutation(rows)
    if rng.random() < 0.5:
        return np.array_split(order, shards)
    return np.split(order, np.sort(rng.integers(0, rows + 1, shards - 1)))


def certify(training, X, y, from_zero=True):
    return certificate_by(training, X, y, from_zero)


def applying(certificate):
    return {bound.name for bound in certificate.bounds if bound.applies}


def bound(certificate, name):
    return next(one for one in certificate.bounds if one.name == name)


seeds, shard_counts, features = st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(1, 6)
kinds_of_shares = st.sampled_from([EQUAL, BY_MISTAKES, RANDOM])


# ---------------------------------------------------------------- worked examples


def test_the_bound_is_reached_by_shards_that_hold_the_same():
    """y x = 1 in both rows: each shard errs once, and both together twice as often as one learner may."""
    X, y, training = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), fresh(1)
    for _ in range(2):
        one_round(training, X, y, [np.array([0]), np.array([1])], EQUAL, None)
    assert training.g.w.tolist() == [0.0, 1.0]
    assert [entry["mixed_mistakes"] for entry in training.by_pass] == [1.0, 0.0]
    certificate = certify(training, X, y)
    assert certificate.mistakes == 2 > bounds.perceptron(1.0, 1.0)
    assert applying(certificate) == {"perceptron_mixed", "perceptron_mixed_noisy"}
    mixed = bound(certificate, "perceptron_mixed")
    assert (mixed.value, mixed.formula, mixed.counted) == (2.0, "S (R/g)^2", None)
    assert mixed.why.endswith("S = 2") and certificate.holds()
    assert certificate.mixing.mistakes == 1.0 and "2 examples in 2 shards" in str(certificate)


def test_shares_by_mistakes_with_exact_numbers():
    X, y = np.array([[1.0, 0.0], [0.0, -1.0], [1.0, 0.0]]), np.array([1.0, -1.0, 1.0])
    training = fresh(2)
    one_round(training, X, y, [np.array([0, 1]), np.array([2])], BY_MISTAKES, None)
    assert training.g.w == pytest.approx([0.0, 1.0, 2 / 3])
    entry = training.by_pass[0]
    assert (entry["seen"], entry["mistakes"], entry["shards"]) == (3, 3, 2)
    assert (entry["mixed_mistakes"], entry["largest_share"]) == pytest.approx((5 / 3, 2 / 3))
    certificate = certify(training, X, y)
    mixed = bound(certificate, "perceptron_mixed")
    assert mixed.counted == pytest.approx(5 / 3) and mixed.value == pytest.approx(2.0)  # (1 / sqrt(1/2))^2
    assert "limits the 1.667 mistakes weighted by the shares" in mixed.why
    assert certificate.mistakes == 3 and certificate.holds()
    sent = certificate.to_dict()
    assert sent["mixing"]["shards"] == 2 and sent["mixing"]["equal"] is False
    assert next(one for one in sent["bounds"] if one["name"] == "perceptron_mixed")["counted"] == mixed.counted


def test_a_certificate_that_does_not_hold_says_so():
    X, y, training = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), fresh(1)
    one_round(training, X, y, [np.array([0]), np.array([1])], EQUAL, None)
    training.by_pass[0]["mixed_mistakes"] = 1.5  # more than the theorem allows, though not of all mistakes
    certificate = certify(training, X, y)
    assert bound(certificate, "perceptron_mixed").counted == 1.5 and not certificate.holds()


# ---------------------------------------------------------------- properties


@given(seeds, shard_counts, features, st.floats(0.05, 1.0), kinds_of_shares, st.sampled_from([0.0, 1.0, 2.0]),
       st.sampled_from(["additive", "additive(0.01)", "additive(7)"]))  # fmt: skip
def test_mixed_perceptrons_stay_below_their_bound(seed, shards, n, margin, kind, bias, geometry):
    rng = np.random.default_rng(seed)
    X, y, u = planted(rng, 40, n, margin)
    parts, training = split(rng, 40, shards), fresh(n, geometry=geometry, bias=bias)
    for turn in range(12):
        one_round(training, X, y, parts, kind, np.random.default_rng([seed, turn]))
    weighted = sum(entry["mixed_mistakes"] for entry in training.by_pass)
    R, g = math.hypot(np.linalg.norm(X, axis=1).max(), bias), float((y * (X @ u)).min())
    assert weighted <= bounds.perceptron(R, g) * (1 + 1e-9)
    if kind != RANDOM:  # for shares by mistakes their weighted number is at least the mean over shards
        assert training.n_mistakes <= bounds.perceptron_mixed(R, g, shards) * (1 + 1e-9)
    certificate = certify(training, X, y)
    assert certificate.holds() and {"perceptron_mixed_noisy"} <= applying(certificate)
    assert applying(certificate) <= {"perceptron_mixed", "perceptron_mixed_noisy"}
    mixed = bound(certificate, "perceptron_mixed")
    assert mixed.applies == (certificate.margin > 0 or "maximum" in mixed.target)
    if kind == EQUAL and mixed.applies:
        assert mixed.value <= bounds.perceptron_mixed(R, g, shards) * (1 + 1e-6)  # u is no better than the best


@given(seeds, shard_counts, features, kinds_of_shares, st.sampled_from([0.0, 1.0]))
def test_mistakes_are_those_of_plain_perceptrons(seed, shards, n, kind, bias):
    rng = np.random.default_rng(seed)
    X, y, _ = planted(rng, 30, n, 0.1, noise=0.1)
    X = np.round(X * 8) / 8
    parts, training = split(rng, 30, shards), fresh(n, bias=bias)
    one_round(training, X, y, parts, kind, np.random.default_rng(seed))
    total, weighted = plain_counts(X, y, parts, [kind], np.random.default_rng(seed), bias)
    assert training.n_mistakes == total
    assert training.by_pass[0]["mixed_mistakes"] == pytest.approx(weighted)


@given(seeds, shard_counts, features, kinds_of_shares, st.floats(0.0, 0.4), st.integers(1, 8))
def test_noisy_rows_stay_below_the_noisy_bound(seed, shards, n, kind, noise, rounds):
    rng = np.random.default_rng(seed)
    X, y, u = planted(rng, 40, n, 0.3, noise)
    parts, training = split(rng, 40, shards), fresh(n)
    for turn in range(rounds):
        one_round(training, X, y, parts, kind, np.random.default_rng([seed, turn]))
    R, s = np.linalg.norm(X, axis=1).max(), y * (X @ u)
    weighted = sum(entry["mixed_mistakes"] for entry in training.by_pass)
    for g in (0.1, 0.3, 1.0, 3.0):
        squares = np.maximum(0.0, g - s) ** 2
        if kind == EQUAL:
            D2 = math.sqrt(rounds * squares.sum())
            assert training.n_mistakes <= bounds.perceptron_mixed_noisy(R, D2, g, shards) * (1 + 1e-9)
        share = max(entry["largest_share"] for entry in training.by_pass)
        assert weighted <= bounds.perceptron_noisy(R, math.sqrt(share * rounds * squares.sum()), g) * (1 + 1e-9)
    certificate = certify(training, X, y)
    noisy = bound(certificate, "perceptron_mixed_noisy")
    assert noisy.applies and certificate.holds()
    if kind == EQUAL and noisy.target == "learned weights" and training.g.w.any():
        learned = y * (X @ training.g.w[1:]) / np.linalg.norm(training.g.w)
        best = bounds.perceptron_noisy_best(math.sqrt(shards) * R, learned, rounds).value
        assert noisy.value == pytest.approx(min(best, rounds * 40))


# ---------------------------------------------------------------- what applies


def mixed_run(X, y, weight=None, kind=EQUAL, **choices):
    training = fresh(X.shape[1], **choices)
    for _ in range(3):
        parts = np.array_split(np.arange(len(y)), 4)
        one_round(training, X, y, parts, kind, np.random.default_rng(0), weight)
    return training


ROWS = planted(np.random.default_rng(0), 40, 3, 0.3)


@pytest.mark.parametrize(
    ("choices", "why"),
    [
        ({"rule": "pa1"}, "the rule is pa1"),
        ({"geometry": "adagrad"}, "the geometry is adagrad"),
        ({"geometry": "additive(schedule='1/sqrt(t)')"}, "same rate"),
        ({"geometry": "additive(l2=0.1)"}, "same rate"),
        ({"weight": np.where(np.arange(40) % 2, 2.0, 1.0)}, "same rate"),
        ({"from_zero": False}, "did not begin at the start"),
    ],
)
def test_why_the_mixed_bounds_do_not_apply(choices, why):
    X, y, _ = ROWS
    from_zero = choices.pop("from_zero", True)
    certificate = certify(mixed_run(X, y, **choices), X, y, from_zero)
    assert applying(certificate) == set()
    for name in ("perceptron_mixed", "perceptron_mixed_noisy"):
        assert why in bound(certificate, name).why


def test_theorems_on_one_sequence_do_not_apply_to_shards():
    X, y, _ = ROWS
    for geometry in ("additive", "balanced"):
        certificate = certify(mixed_run(X, y, geometry=geometry), X, y)
        assert {one.name for one in certificate.bounds} == ONE_SEQUENCE | {"perceptron_mixed", "perceptron_mixed_noisy"}
        for one in certificate.bounds:
            if one.name in ONE_SEQUENCE:
                assert not one.applies and one.why.startswith("weights of 4 shards were mixed")


def test_rows_that_are_not_separable_have_the_noisy_bound_alone():
    X, y, _ = ROWS
    X, y = np.concatenate([X, X[:1]]), np.append(y, -y[0])
    certificate = certify(mixed_run(X, y), X, y)
    assert applying(certificate) == {"perceptron_mixed_noisy"} and certificate.holds()


def test_one_shard_is_one_learner():
    X, y, _ = ROWS
    training, serial = fresh(3, bias=1.0), fresh(3, bias=1.0)
    for _ in range(3):
        one_round(training, X, y, [np.arange(40)], EQUAL, None)
        serial.begin_pass()
        serial.learn(X, y, np.ones(40), np.arange(40))
        serial.end_pass()
    assert certify(training, X, y).to_dict() == certify(serial, X, y).to_dict()
    assert mixing_of(training, 40) is None and "mixing" not in certify(serial, X, y).to_dict()


def test_what_one_learner_learned_has_a_share_of_one():
    X, y, _ = ROWS
    training = fresh(3)
    training.begin_pass()
    training.learn(X, y, np.ones(40), np.arange(40))
    alone = training.end_pass()["mistakes"]
    one_round(training, X, y, np.array_split(np.arange(40), 4), EQUAL, None)
    mixing, mixed = mixing_of(training, 40), training.by_pass[1]["mistakes"]
    assert mixing.mistakes == alone + mixed / 4 and mixing.share == pytest.approx((1 + 1 / 4) / 2)
    assert not mixing.equal and certify(training, X, y).holds()


def test_an_entry_without_the_largest_share_has_the_weaker_noisy_bound():
    X, y, _ = planted(np.random.default_rng(2), 200, 3, 0.05, noise=0.01)
    training = mixed_run(X, y)
    known = bound(certify(training, X, y), "perceptron_mixed_noisy").value
    for entry in training.by_pass:
        del entry["largest_share"]
    certificate = certify(training, X, y)
    assert known < bound(certificate, "perceptron_mixed_noisy").value and certificate.holds()
    assert mixing_of(training, 200).share == 1.0


@pytest.mark.parametrize("rows", [1, 20, 39, 41, 4000])
def test_no_bound_is_about_other_rows(rows):
    X, y, _ = ROWS
    learner = Learner("Perceptron", epochs=1, random_state=0).fit(X, y)
    learner.training = mixed_run(X, y, bias=1.0)
    assert applying(learner.certificate(X, y)) >= {"perceptron_mixed_noisy"}
    at = np.arange(rows) % 40
    assert applying(learner.certificate(X[at], y[at])) == set()


# ---------------------------------------------------------------- rows kept back, and the model file


@given(seeds, kinds_of_shares)
def test_rows_kept_back_are_learned_from_by_one_learner_in_the_end(seed, kind):
    rng = np.random.default_rng(seed)
    X, y, _ = planted(rng, 60, 3, 0.1)
    kept, training = np.arange(0, 60, 6), fresh(3, bias=1.0)
    parts, since = np.array_split(np.setdiff1d(np.arange(60), kept), 3), []
    for turn in range(3):
        since = training.tally.tolist()
        one_round(training, X, y, parts, kind, np.random.default_rng([seed, turn]))
        training.by_pass[-1]["kept_back"] = len(kept)
    assert training.saw_passes_of(60) and certify(training, X, y).holds()
    before = training.reopen_pass(since)
    training.learn(X, y, np.ones(60), kept, audit=False)
    entry = training.end_pass()
    carry_round(entry, before)
    assert (entry["seen"], entry["shards"], entry["largest_share"], training.passes) == (60, 3, 1.0, 3)
    extra = entry["mistakes"] - before["mistakes"]
    assert entry["mixed_mistakes"] == pytest.approx(before["mixed_mistakes"] + extra)
    assert training.saw_passes_of(60) and training.visits(60) == 3.0
    certificate = certify(training, X, y)
    assert certificate.holds() and "perceptron_mixed_noisy" in applying(certificate)


def test_a_pass_without_shards_stays_without():
    entry = {"seen": 3.0, "mistakes": 1.0, "loss": 0.5}
    carry_round(entry, dict(entry))
    assert "shards" not in entry


def test_rounds_come_back_from_a_model_file():
    X, y, _ = ROWS
    training = mixed_run(X, y)
    facts, arrays = training.pack()
    again = Training.unpack(facts, arrays)
    assert certify(again, X, y).to_dict() == certify(training, X, y).to_dict()
