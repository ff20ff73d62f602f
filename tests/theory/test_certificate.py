"""Certificates: the numbers, which bounds apply and why not, and small learners that never break them."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import onlearn
from onlearn.engine.rounds import note_round
from onlearn.theory import Certificate, Mixing, bounds
from onlearn.theory.certificate import certify
from onlearn.theory.theorems import smallest_disjunction

PERCEPTRON = {"rule": "perceptron", "geometry": "additive"}


def bound(certificate: Certificate, name: str):
    return next(b for b in certificate.bounds if b.name == name)


def applying(certificate: Certificate) -> set[str]:
    return {b.name for b in certificate.bounds if b.applies}


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.csr_matrix, lambda X: np.asarray(X, np.float32)])
def test_the_numbers_by_hand(layout):
    X = layout([[3.0, 4.0], [0.0, -1.0]])
    c = certify(X, [1, -1], [0.0, 2.0], intercept=1.0, bias=2.0, mistakes=1, **PERCEPTRON)
    # u = (0, 2, 1/2) and x = (3, 4, 2), (0, -1, 2): scores 9 and -1
    assert pytest.approx(math.sqrt(29)) == c.R
    assert (c.radius_inf, c.norm1, c.mistakes, c.n_examples) == (4.0, 2.5, 1, 2)
    assert c.norm2 == pytest.approx(math.sqrt(4.25))
    assert c.margin == pytest.approx(1 / math.sqrt(4.25))
    # the largest margin: the two signed rows are at right angles, so 1/g^2 = 1/29 + 1/5
    assert bound(c, "perceptron").value == pytest.approx(29 * (1 / 29 + 1 / 5))
    assert bound(c, "additive").value == pytest.approx(29 * (1 / 29 + 1 / 5))
    assert bound(c, "additive").target == "maximum-margin separator"
    wide, widest = np.array([[3.0, 4.0, 2.0], [0.0, -1.0, 2.0]]), np.array([3, 4, 2]) / 29 + np.array([0, 1, -2]) / 5
    assert bound(c, "multiplicative").value == pytest.approx(bounds.multiplicative(widest, wide, [1, -1], n=6))
    assert bound(c, "multiplicative").value < 2 * math.log(3) * 2.5**2 * 4**2  # that of the learned weights
    assert applying(c) == {"perceptron", "perceptron_noisy", "additive"}
    assert c.holds()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rule": "pa1"}, "the rule is pa1"),
        ({"geometry": "adagrad"}, "the geometry is adagrad"),
        ({"init_zero": False}, "did not begin"),
        ({"single_rate": False}, "same rate"),
        ({"threshold": 0.1}, "threshold is fixed"),
        ({"X": np.ones((2, 2))}, "do not separate"),
    ],
)
def test_why_the_perceptron_bound_does_not_apply(change, why):
    known = {"X": np.eye(2), "y": [1, -1], "weights": [1.0, -1.0], "mistakes": 100, **PERCEPTRON}
    assert not certify(**known).holds()
    c = certify(**(known | change))
    assert not bound(c, "perceptron").applies
    assert why in bound(c, "perceptron").why
    assert bound(c, "perceptron_noisy").applies == ("X" in change)


def test_the_noisy_bound_is_for_the_rows_as_often_as_seen():
    X, y = np.array([[1.0, 0.2], [-1.0, 0.1], [1.0, 0.0]] * 20), [1, -1, 1] * 19 + [1, -1, -1]
    once, ten = (certify(X, y, [1.0, 0.0], passes=p, **PERCEPTRON) for p in (1, 9.5))
    signed = np.array(y) * X[:, 0]
    for c, passes in ((once, 1), (ten, 10)):
        value = bounds.perceptron_noisy_best(c.R, signed, passes).value
        assert bound(c, "perceptron_noisy").value == pytest.approx(value)
        assert not bound(c, "perceptron").applies
        assert c.best is bound(c, "perceptron_noisy")


def test_weights_of_zero_and_rows_of_zero():
    c = certify(np.zeros((3, 2)), [1, -1, 1], [0.0, 0.0], mistakes=3, **PERCEPTRON)
    assert (c.R, c.margin, c.norm2) == (0.0, 0.0, 0.0)
    assert applying(c) == {"perceptron_noisy"}
    assert c.holds()


def test_huge_numbers_stay_finite():
    c = certify(np.eye(2) * 1e300, [1, -1], [1e300, -1e300], mistakes=2, **PERCEPTRON)
    assert bound(c, "perceptron").value == pytest.approx(2.0)
    assert c.holds()


@pytest.mark.parametrize(
    "change",
    [
        {"y": [1, 0]},
        {"y": [1]},
        {"weights": [1.0]},
        {"weights": [math.nan, 1.0]},
        {"mistakes": -1},
        {"intercept": 1.0},
    ],
)
def test_bad_arguments(change):
    known = {"X": np.eye(2), "y": [1, -1], "weights": [1.0, -1.0], **PERCEPTRON}
    with pytest.raises(ValueError, match=r"\.$"):
        certify(**(known | change))


def test_it_can_be_read_and_sent():
    c = certify(np.ones((2, 2)), [1, -1], [1.0, 0.0], mistakes=2, **PERCEPTRON)
    sent = json.loads(json.dumps(c.to_dict(), allow_nan=False))
    assert sent["holds"] is True
    assert sent["bounds"][0] == {
        "name": "perceptron",
        "value": None,
        "formula": "(R/g)^2",
        "applies": False,
        "why": "the learned weights do not separate the rows (margin -1)",
        "target": "learned weights",
    }
    assert str(c) == repr(c)
    assert all(b.name in str(c) and b.why in str(c) for b in c.bounds)


def test_weights_of_shards_that_were_mixed():
    """The numbers of `theory.bounds`, for equal shares and for others; runs are in tests/engine/test_rounds.py."""
    X, y = np.array([[1.0, 0.2], [-1.0, 0.1], [1.0, 0.0]] * 20), [1, -1, 1] * 20
    equal, other = Mixing(4, 1.0, 0.25, True), Mixing(4, 1.0, 0.5, False)
    serial, c, weighted = (
        certify(X, y, [1.0, 0.0], mistakes=4, passes=10, mixing=one, **PERCEPTRON) for one in (None, equal, other)
    )
    one = bound(serial, "perceptron").value
    assert (bound(c, "perceptron_mixed").value, bound(weighted, "perceptron_mixed").value) == (4 * one, one)
    assert (bound(c, "perceptron_mixed").counted, bound(weighted, "perceptron_mixed").counted) == (None, 1.0)
    assert applying(c) == applying(weighted) == {"perceptron_mixed", "perceptron_mixed_noisy"}
    assert c.best is bound(c, "perceptron_mixed") and c.holds() and weighted.holds()
    assert "in 4 shards" in str(c) and "shards" in c._repr_html_() and "shards" not in serial._repr_html_()
    assert "mixing" not in serial.to_dict() and "counted" not in serial.to_dict()["bounds"][0]
    y = [1, -1, 1] * 19 + [1, -1, -1]  # the last is on the wrong side
    signed = np.array(y) * X[:, 0]
    c, weighted = (certify(X, y, [1.0, 0.0], passes=10, mixing=one, **PERCEPTRON) for one in (equal, other))
    best = bounds.perceptron_noisy_best(2 * c.R, signed, 10)
    assert bound(c, "perceptron_mixed_noisy").value == pytest.approx(best.value)
    assert best.value == pytest.approx(bounds.perceptron_mixed_noisy(c.R, best.D2, best.margin, 4))
    half = bounds.perceptron_noisy_best(c.R, signed, 5)  # sqrt(1/2) D2 of ten passes is D2 of five
    assert bound(weighted, "perceptron_mixed_noisy").value == pytest.approx(half.value)


def run_perceptron(X, y, passes, bias):
    X = np.column_stack([X, np.full(len(X), bias)])
    w, mistakes = np.zeros(X.shape[1]), 0
    for _ in range(passes):
        for x, label in zip(X, y):
            if label * (w @ x) <= 0:
                w, mistakes = w + label * x, mistakes + 1
    return w[:-1], w[-1] * bias, mistakes


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 5),
    st.integers(1, 30),
    st.sampled_from([0.0, 1.0, 4.0]),
    st.floats(0, 0.3),
)
def test_the_perceptron_is_never_above_its_certificate(seed, n, passes, bias, noise):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, n))
    y = np.where((X.sum(axis=1) > 0) ^ (rng.random(20) < noise), 1, -1)
    w, b, mistakes = run_perceptron(X, y, passes, bias)
    c = certify(sp.csr_array(X), y, w, b, bias, mistakes, passes=passes, **PERCEPTRON)
    assert "perceptron_noisy" in applying(c)
    assert c.holds()


def winnow(**change):
    # The first two features, or: all of the examples
    X = np.array(list(itertools.product([0, 1], repeat=4)))
    known = {
        "X": X,
        "y": np.where(X[:, :2].any(axis=1), 1, -1),
        "weights": [8.0, 8.0, 0.5, 0.5],
        "rule": "perceptron",
        "geometry": "winnow",
        "threshold": 4.0,
        "alpha": 2.0,
        "mistakes": 5,
    }
    return certify(**(known | change))


def test_winnows_certificate():
    c = winnow()
    assert applying(c) == {"winnow"}
    assert c.best.value == 3 * 2 * (2 + 1) + 2
    assert c.best.formula == "3k(log2 n + 1) + 2"
    assert "k = 2 of n = 4" in c.best.why
    assert c.margin > 0
    assert winnow(X=sp.csr_array(np.array(list(itertools.product([0, 1], repeat=4))))).best == c.best


def test_winnows_certificate_says_where_a_smaller_disjunction_may_do():
    X = np.array(list(itertools.product([0, 1], repeat=4)))
    three = winnow(y=np.where(X[:, :3].any(axis=1), 1, -1), weights=[8.0, 8.0, 8.0, 1.0])
    assert "k = 3 (found greedily: fewer may do) of n = 4" in bound(three, "winnow").why


def test_winnows_certificate_for_other_factors_and_thresholds():
    assert winnow(threshold=2.0).best.value == bounds.winnow(4, 2, 2.0, 2.0)
    assert winnow(alpha=1.5).best.value == bounds.winnow(4, 2, 1.5, 4.0)
    # A constant feature is one more irrelevant feature.
    assert winnow(bias=1.0).best.value == bounds.winnow(5, 2, 2.0, 4.0)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"geometry": "balanced"}, "not winnow"),
        ({"rule": "margin"}, "the rule is margin"),
        ({"single_rate": False}, "same rate"),
        ({"threshold": 0.5}, "below 1"),
        ({"alpha": None}, "alpha"),
        ({"bias": 2.0}, "constant feature"),
        ({"y": [1] + [-1] * 15}, "not a monotone disjunction"),
        ({"X": np.array(list(itertools.product([0, 2], repeat=4)))}, "not a monotone disjunction"),
    ],
)
def test_why_winnows_bound_does_not_apply(change, why):
    b = bound(winnow(**change), "winnow")
    assert not b.applies
    assert b.value == math.inf
    assert why in b.why


@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.integers(1, 25), st.booleans())
def test_the_greedy_disjunction_against_all_disjunctions(seed, n, m, planted):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (m, n))
    y = X[:, rng.random(n) < 0.4].any(axis=1) if planted else rng.random(m) < 0.5
    subsets = itertools.chain.from_iterable(itertools.combinations(range(n), k) for k in range(n + 1))
    fewest = next((len(s) for s in subsets if (X[:, list(s)].any(axis=1) == y).all()), None)
    k = smallest_disjunction(X, y)
    assert k == smallest_disjunction(sp.csr_array(X), y)
    if fewest is None:
        assert k is None
    else:
        assert fewest <= k <= fewest * (1 + math.log(max(1, y.sum())))


def run_exponentiated(X, y, eta, passes, balanced):
    wide = np.column_stack([X, -X]) if balanced else X
    log_w, mistakes = np.zeros(wide.shape[1]), 0
    for _ in range(passes):
        for x, label in zip(wide, y):
            if label * (np.exp(log_w - log_w.max()) @ x) <= 0:
                log_w, mistakes = log_w + eta * label * x, mistakes + 1
    w = np.exp(log_w - log_w.max())
    w = w[: X.shape[1]] - w[X.shape[1] :] if balanced else w / w.sum()
    return w, mistakes


@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 12),
    st.floats(0.02, 1.0),
    st.booleans(),
    st.sampled_from([0.5, 1.0, 3.0]),
)
def test_normalised_and_balanced_winnow_are_never_above_their_certificates(seed, n, eta, balanced, size):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-size, size, (30, n))
    u = rng.dirichlet(np.full(n, 0.5)) * (rng.choice([-1, 1], n) if balanced else 1)
    y = np.where(X @ u > 0, 1, -1)
    w, mistakes = run_exponentiated(X, y, eta, 40, balanced)
    kind = {"geometry": "balanced", "alpha": math.exp(eta)} if balanced else {"geometry": "exponentiated", "eta": eta}
    c = certify(X, y, w, 0.0, 0.0, mistakes, rule="perceptron", passes=40, **kind)
    assert c.holds()
    assert applying(c) <= {
        "normalized_winnow",
        "normalized_winnow_noisy",
        "normalized_winnow_simple",
        "multiplicative",
    }
    if size > 1.0:
        assert not bound(c, "normalized_winnow").applies


def test_normalised_winnows_certificate_at_the_best_rate():
    X, y, u = np.array([[1.0, -0.2], [0.2, -1.0]]), [1, -1], [0.5, 0.5]
    known = {"X": X, "y": y, "weights": u, "rule": "perceptron", "geometry": "exponentiated"}
    g = 0.4
    c = certify(eta=bounds.best_eta(g), **known)
    assert applying(c) == {
        "normalized_winnow",
        "normalized_winnow_noisy",
        "normalized_winnow_simple",
        "multiplicative",
    }
    assert bound(c, "normalized_winnow").value == pytest.approx(bounds.normalized_winnow(2, g))
    assert bound(c, "multiplicative").value == pytest.approx(bounds.multiplicative(u, X, y))
    assert applying(certify(eta=2 * g, **known)) == {"normalized_winnow", "normalized_winnow_noisy"}
    assert applying(certify(eta=5.0, **known)) == {"normalized_winnow_noisy"}
    assert bound(certify(eta=5.0, **known), "normalized_winnow_noisy").value == 2  # as many as there were examples
    assert applying(certify(**known)) == set()


def test_the_best_target_on_the_simplex_is_used_whatever_was_learned():
    X, y = np.array([[1.0, -0.2], [0.2, -1.0]]), [1, -1]
    for geometry, rate in (("exponentiated", {"eta": 0.4}), ("balanced", {"alpha": math.exp(0.4)})):
        for weights in ([1.5, -0.1], [-1.0, 0.0]):
            b = bound(certify(X, y, weights, rule="perceptron", geometry=geometry, **rate), "normalized_winnow")
            assert b.applies and b.target == "best target on the simplex"
            p = 2 if geometry == "exponentiated" else 4
            assert b.value == pytest.approx(bounds.normalized_winnow(p, 0.4, 0.4), rel=1e-6)


def test_the_learned_weights_are_used_where_the_data_are_too_large(monkeypatch):
    from onlearn.theory import certificate

    X, y, known = np.eye(2), [1, -1], {"rule": "perceptron", "mistakes": 2}
    best = bound(certify(X, y, [3.0, -1.0], geometry="additive", **known), "perceptron")
    assert (best.target, best.value) == ("maximum-margin separator", pytest.approx(2.0))
    monkeypatch.setattr(certificate, "LARGEST", 1)
    monkeypatch.setattr(certificate, "LARGEST_PROGRAM", 1)
    learned = bound(certify(X, y, [3.0, -1.0], geometry="additive", **known), "perceptron")
    assert (learned.target, learned.value) == ("learned weights", pytest.approx(10.0))
    simple = bound(certify(X, y, [3.0, -1.0], geometry="balanced", alpha=1.2, **known), "multiplicative")
    assert simple.target == "learned weights"


def test_the_import_is_light():
    code = "import sys, onlearn.theory; print(*{'numba', 'sklearn'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_in_the_feature_space_of_a_kernel_the_certificate_is_that_of_the_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.where(X @ [1.0, -2.0, 0.5] > 0.3, 1, 0)
    settings = dict(epochs=None, shuffle=False, stabilizer="last")
    linear = onlearn.OnlineClassifier(rule="perceptron", **settings).fit(X, y).certificate(X, y)
    dual = onlearn.KernelPerceptron("linear", **settings).fit(X, y).certificate(X, y)
    for name in ("perceptron", "perceptron_noisy", "additive"):
        assert bound(dual, name).target == bound(linear, name).target
        assert bound(dual, name).value == pytest.approx(bound(linear, name).value, rel=1e-4)
    assert bound(dual, "perceptron").target == "maximum-margin separator"
    assert dual.holds() and linear.holds()


def test_shards_in_the_feature_space_of_a_kernel():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X @ [1.0, -2.0, 0.5] > 0.3
    model = onlearn.KernelPerceptron("linear", epochs=3, stabilizer="last", random_state=0).fit(X, y)
    one = bound(model.certificate(X, y), "perceptron").value
    for entry in model.history_["passes"]:
        note_round(entry, np.array([0.5, 0.5]), np.array([0.0, entry["mistakes"]]))
    certificate = model.certificate(X, y)
    assert applying(certificate) == {"perceptron_mixed", "perceptron_mixed_noisy"}
    assert bound(certificate, "perceptron_mixed").value == pytest.approx(2 * one)
    assert certificate.holds()


LEARNERS = (
    ("Perceptron", lambda rng: {"intercept_scaling": float(rng.choice([0.5, 1.0, 4.0]))}),
    ("NormalizedWinnow", lambda rng: {"eta": float(rng.uniform(0.01, 0.5)), "stabilizer": "last"}),
    ("BalancedWinnow", lambda rng: {"alpha": float(rng.uniform(1.01, 1.6)), "stabilizer": "last"}),
    ("Winnow", lambda rng: {"alpha": 2.0, "stabilizer": "last"}),
)


def random_run(seed):
    """The certificate of a learner of random rows: by a dense or a sparse target, with or without noise."""
    rng = np.random.default_rng(seed)
    name, parameters = LEARNERS[seed % len(LEARNERS)]
    m, n = int(rng.integers(2, 40)), int(rng.integers(1, 15))
    X = (rng.random((m, n)) < 0.3).astype(float) if name == "Winnow" else rng.uniform(-1, 1, (m, n))
    u = rng.normal(size=n) * (rng.random(n) < rng.choice([0.3, 1.0]))
    y = X[:, u > 0].any(axis=1) if name == "Winnow" else X @ (np.abs(u) if name == "NormalizedWinnow" else u) > 0
    y ^= rng.random(m) < rng.choice([0.0, 0.1])
    if len(set(y.tolist())) < 2:
        return None
    model = getattr(onlearn, name)(epochs=int(rng.integers(1, 20)), random_state=0, **parameters(rng))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y).certificate(X, y)


@pytest.mark.parametrize(
    "seeds", [range(200), pytest.param(range(200, 4000), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_no_run_of_a_learner_is_above_a_bound_that_applies(seeds):
    certificates = [c for c in map(random_run, seeds) if c is not None]
    assert all(c.holds() for c in certificates)
    applied = {b.name for c in certificates for b in c.bounds if b.applies}
    assert applied == {b.name for b in certificates[0].bounds}
    better = [b.target != "learned weights" for c in certificates for b in c.bounds if b.applies]
    assert sum(better) > 0.2 * len(better)
