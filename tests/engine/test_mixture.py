"""The mixture against an oracle of plain learners, and its theorem on any stream."""

from __future__ import annotations

import copy
import math
import pickle
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as some

import onlearn
import reference as ref
from onlearn import model_file
from onlearn.compiler.inlining import Loop
from onlearn.compiler.intrinsics import adapt_rows, logistic_losses
from onlearn.engine.learner import Learner
from onlearn.engine.mixture import USUAL, MixtureLearner, parse_learner, spell_learner

LAYOUTS = {"dense": np.asarray, "csr": sp.csr_array, "csr32": lambda X: sp.csr_array(X.astype(np.float32))}

ADAGRAD = {rate: ref.AdaGrad(rate) for rate in (0.01, 0.1, 1.0)}
LOGISTIC = [(f"LogisticRegression(rate={rate})", ref.Logistic(), ref.AdaGrad(rate)) for rate in (0.01, 0.3, 2.0)]
BANKS = {
    "adagrad": LOGISTIC,
    "adagrad of five": LOGISTIC + [("LogisticRegression(0.1)", ref.Logistic(), ref.AdaGrad(0.1)),
                                   ("LogisticRegression(0.6)", ref.Logistic(), ref.AdaGrad(0.6))],
    "hinge": [(f"AdaGrad(rate={rate})", ref.Hinge(), ref.AdaGrad(rate)) for rate in (0.1, 1.0)],
    "additive": [
        (f"OnlineClassifier('pa1(0.2)', 'additive({rate})')", ref.PassiveAggressive1(0.2), ref.Additive(rate))
        for rate in (0.05, 0.5)
    ],
    "falling": [
        (f"OnlineClassifier('logistic', \"additive({rate}, schedule='1/sqrt(t)')\")", ref.Logistic(),
         ref.Additive(rate, "1/sqrt(t)"))
        for rate in (0.05, 0.5)
    ],
    "of all sorts": [
        ("Perceptron", ref.Perceptron(), ref.Additive()),
        ("LogisticRegression(rate=0.3)", ref.Logistic(), ref.AdaGrad(0.3)),
        ("AROW(r=2.0)", ref.PassiveAggressive2(0.25), ref.AROW(2.0)),
        ("LogisticRegression(rate=0.3, fit_intercept=False)", ref.Logistic(), ref.AdaGrad(0.3)),
        ("LogisticRegression(rate=3.0)", ref.Logistic(), ref.AdaGrad(3.0)),
        ("LogisticRegression(rate=0.3, l2=0.1)", ref.Logistic(), ref.AdaGrad(0.3, l2=0.1)),
        ("FTRL(rate=0.3)", ref.Logistic(), ref.FTRL(0.3)),
        ("BalancedWinnow(alpha=1.05)", ref.Perceptron(), ref.BalancedWinnow(1.05)),
    ],
}  # fmt: skip


def examples(classes, rows=40, seed=0):
    rng = np.random.default_rng([seed, classes])
    X = rng.normal(size=(rows, 7)) * (rng.random((rows, 7)) < 0.7)
    X = X.astype(np.float32).astype(np.float64)
    scores = X @ rng.normal(size=(7, classes)) + 0.5 * rng.normal(size=(rows, classes))
    return X, scores.argmax(axis=1), rng.choice([0.3, 1.0, 2.5], size=rows)


def log_sum_exp(values):
    top = max(values)
    return top + math.log(sum(math.exp(value - top) for value in values))


def log_probabilities(s):
    """Of each class, by the scores of one example: log-odds, or one a class."""
    if len(s) == 1:
        return np.array([-np.logaddexp(0.0, s[0]), -np.logaddexp(0.0, -s[0])])
    return np.array([one - log_sum_exp(s) for one in s])


class Oracle:
    """K plain learners, each by itself, and their mixture by the formula, example by example."""

    def __init__(self, bank, X, y, weight, output, classes):
        self.trails = []
        inputs, probabilities = {}, []  # learners x examples x classes
        for spelling, rule, geometry in bank:
            bias = 0.0 if "fit_intercept=False" in spelling else 1.0
            inputs[bias] = ref.with_constant(X, bias)
            binary = output == "binary"
            kind = output if binary or output != "auto" else ("softmax" if isinstance(rule, ref.Logistic) else "true")
            targets = np.where(y == 1, 1.0, -1.0) if binary else y
            trail = ref.learn(rule, copy.deepcopy(geometry), kind, X, targets, outputs=1 if binary else classes,
                              weight=weight, bias=bias)  # fmt: skip
            self.trails.append(trail)
            probabilities.append([log_probabilities(x @ w - trail.theta)
                                  for x, w in zip(inputs[bias], trail.hypotheses, strict=False)])  # fmt: skip
        self.losses, self.loss, self.mistakes, self.progressive = np.zeros(len(bank)), 0.0, 0, 0.0
        for i, (gold, importance) in enumerate(zip(y, weight, strict=True)):
            said = np.array([of_learner[i] for of_learner in probabilities])
            shares = -self.losses - log_sum_exp(-self.losses)
            mixed = np.array([log_sum_exp(shares + said[:, c]) for c in range(classes)])
            self.progressive -= mixed[gold]
            self.loss -= log_sum_exp(shares + importance * said[:, gold])
            self.mistakes += mixed[gold] <= max(mixed[c] for c in range(classes) if c != gold)
            self.losses -= importance * said[:, gold]

    def mixed(self, X, stabilizer):
        """Probabilities of other rows, by what is handed out."""
        shares = np.exp(-self.losses - log_sum_exp(-self.losses))
        total = 0.0
        for share, trail in zip(shares, self.trails, strict=True):
            w = ref.STABILIZERS[stabilizer](trail)
            total += share * np.exp([log_probabilities(x @ w - trail.theta) for x in ref.with_constant(X, trail.bias)])
        return total


def spelled(bank, stabilizer):
    """The learners of a bank; a named learner may have its stabilizer fixed."""
    made = []
    for spelling, _, _ in bank:
        learner = parse_learner(spelling)
        if "stabilizer" in learner.get_params():
            learner.set_params(stabilizer=stabilizer)
        made.append(spell_learner(learner))
    return made


@pytest.mark.parametrize(
    ("name", "stabilizer", "layout"),
    [
        (name, stabilizer, layout)
        if (stabilizer, layout) == ("last", "csr") or (name, stabilizer) == ("adagrad", "last")
        else pytest.param(name, stabilizer, layout, marks=pytest.mark.slow)
        for name, stabilizer, layout in product(BANKS, ["last", "averaged"], LAYOUTS)
    ],
)
def test_two_classes_agree_with_plain_learners_and_the_formula(name, stabilizer, layout):
    bank = BANKS[name]
    X, y, weight = examples(2)
    oracle = Oracle(bank, X, y, weight, "binary", 2)
    mixture = MixtureLearner(learners=spelled(bank, stabilizer), random_state=0)
    mixture.partial_fit(LAYOUTS[layout](X), y, classes=[0, 1], sample_weight=weight)
    check_against(oracle, mixture, bank, stabilizer, X if "32" not in layout else X.astype(np.float32))


@pytest.mark.parametrize("layout", [pytest.param("dense", marks=pytest.mark.slow), "csr"])
@pytest.mark.parametrize(
    ("name", "multiclass"),
    [("adagrad", "auto"), ("additive", "true"), ("additive", "one-vs-all"), ("falling", "softmax"),
     pytest.param("adagrad", "one-vs-all", marks=pytest.mark.slow),
     pytest.param("hinge", "true", marks=pytest.mark.slow),
     pytest.param("of all sorts", "auto", marks=pytest.mark.slow)],
)  # fmt: skip
def test_several_classes_agree_with_plain_learners_and_the_formula(name, multiclass, layout):
    bank = BANKS[name]
    X, y, weight = examples(4)
    oracle = Oracle(bank, X, y, weight, multiclass, 4)
    learners = [spell_learner(parse_learner(one).set_params(multiclass=multiclass)) for one in spelled(bank, "last")]
    mixture = MixtureLearner(learners=learners, random_state=0)
    mixture.partial_fit(LAYOUTS[layout](X), y, classes=range(4), sample_weight=weight)
    check_against(oracle, mixture, bank, "last", X)


def check_against(oracle, mixture, bank, stabilizer, X):
    close = {"rtol": 1e-8 if X.dtype == np.float64 else 1e-3, "atol": 1e-9 if X.dtype == np.float64 else 1e-4}
    np.testing.assert_allclose(mixture.losses_, oracle.losses, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(mixture.loss_, oracle.loss, rtol=1e-8)
    shares = np.exp(-oracle.losses - log_sum_exp(-oracle.losses))
    np.testing.assert_allclose(mixture.weights_, shares, rtol=1e-6, atol=1e-12)
    assert mixture.training.tally[2] == pytest.approx(oracle.progressive, rel=1e-8)
    assert mixture.n_mistakes_ == oracle.mistakes
    assert mixture.n_seen_ == len(X)
    handed = {"averaged": "averaged"}.get(stabilizer, "last")
    if all("Perceptron" not in one and "FTRL" not in one for one, _, _ in bank) or handed == "last":
        np.testing.assert_allclose(mixture.predict_proba(X), oracle.mixed(X, handed), **close)
    leader = mixture.leader_
    assert leader.name == parse_learner(bank[int(np.argmin(oracle.losses))][0]).name
    for k, trail in enumerate(oracle.trails):
        member = mixture.member(k)
        handed = member.choices["stabilizer"].name
        coef, intercept = trail.split(ref.STABILIZERS[handed](trail))
        np.testing.assert_allclose(member.coef_, coef, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(member.intercept_, intercept, rtol=1e-7, atol=1e-9)
        assert member.n_mistakes_ == trail.mistakes and member.n_updates_ == trail.updates
        assert member.history_["doubling"][-1]["mistakes"] == sum(trail.mistaken[:32])


# ---------------------------------------------------------------- the theorem

sizes = some.sampled_from([1.0, 1e-3, 30.0, 1e6, 1e100])
numbers = some.floats(-5, 5).map(lambda x: round(x, 3))


@some.composite
def streams(draw):
    """Any stream: rows of any size, labels of any kind, weights from 0 on."""
    rows, classes = draw(some.integers(1, 12)), draw(some.integers(2, 3))
    size = draw(sizes)
    X = np.array(draw(some.lists(some.lists(numbers, min_size=3, max_size=3), min_size=rows, max_size=rows))) * size
    y = np.array(draw(some.lists(some.integers(0, classes - 1), min_size=rows, max_size=rows)))
    weight = np.array(draw(some.lists(some.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=rows, max_size=rows)))
    return X, y, classes, weight


MEMBERS = [
    ["LogisticRegression(rate=0.1)", "LogisticRegression(rate=10.0)", "LogisticRegression(rate=0.001)"],
    ["Perceptron", "LogisticRegression(rate=1.0)", "AROW"],
]


@given(streams(), some.sampled_from(MEMBERS))
def test_the_loss_is_at_most_that_of_the_best_and_ln_k_on_every_stream(stream, learners):
    X, y, classes, weight = stream
    mixture = MixtureLearner(learners=learners, random_state=0)
    mixture.partial_fit(X, y, classes=range(classes), sample_weight=weight)
    theorem = mixture.certificate()
    assert theorem.holds() and np.isfinite(theorem.loss)
    assert theorem.loss <= mixture.losses_.min() * (1 + 1e-12) + math.log(3) + 1e-9
    np.testing.assert_allclose(mixture.weights_.sum(), 1.0)


@given(streams())
def test_the_loss_is_that_of_what_predict_proba_said_before_each_example(stream):
    X, y, classes, _ = stream
    X = np.clip(X, -30, 30)
    learners = [f"LogisticRegression(rate={rate}, stabilizer='last')" for rate in (0.01, 0.1, 1.0)]
    mixture, total = MixtureLearner(learners=learners, random_state=0), math.log(classes)
    mixture.partial_fit(X[:1], y[:1], classes=range(classes))
    for i in range(1, len(y)):
        total -= math.log(mixture.predict_proba(X[i : i + 1])[0, y[i]])
        mixture.partial_fit(X[i : i + 1], y[i : i + 1])
    assert mixture.loss_ == pytest.approx(total, rel=1e-9)
    assert mixture.training.tally[2] == pytest.approx(total, rel=1e-9)
    assert total <= mixture.losses_.min() + math.log(3) + 1e-9


def test_losses_beyond_what_a_probability_can_say_stay_finite():
    """e^-800 is 0 in floating point, and its logarithm would be infinite."""
    X, y = np.array([[1e3], [1e3], [1e3], [-1e3]] * 5), np.array([1, 1, 0, 1] * 5)
    for learners in (
        ["LogisticRegression(rate=10.0)", "LogisticRegression(rate=9.0)"],
        ["Perceptron", "OnlineClassifier('hinge', 'additive(2.0)')"],
    ):
        for classes in (2, 3):
            mixture = MixtureLearner(learners=learners).partial_fit(X, y, classes=range(classes))
            assert 800 < mixture.loss_ < 1e8
            assert mixture.training.tally[2] == pytest.approx(mixture.loss_, rel=1e-9)
            scores, probabilities = mixture.decision_function(X), mixture.predict_proba(X)
            assert np.isfinite(scores).all() and np.isfinite(probabilities).all()
            np.testing.assert_array_equal(mixture.predict(X), probabilities.argmax(axis=1))


def test_a_weight_is_so_many_sights_before_the_learners_learn():
    X, y, _ = examples(2)
    mixture = MixtureLearner(learners=MEMBERS[0], random_state=0).partial_fit(X[:9], y[:9], classes=[0, 1])
    said = np.array([_present(mixture.member(k), X[9:10], y[9]) for k in range(3)])
    share, losses, loss = mixture.weights_, mixture.losses_, mixture.loss_
    mixture.partial_fit(X[9:10], y[9:10], sample_weight=[2.0])
    np.testing.assert_allclose(mixture.losses_, losses - 2 * np.log(said))
    first = share @ said  # after a first sight of the example the learners count otherwise
    second = (share * said / first) @ said
    assert mixture.loss_ - loss == pytest.approx(-math.log(first) - math.log(second), rel=1e-9)


def _present(learner, X, gold):
    """The probability of a class by the last hypothesis of a learner of two classes."""
    training = learner.training
    s = X[0] @ training.g.w[1:] + training.g.w[0]
    return math.exp(log_probabilities([s])[gold])


# ---------------------------------------------------------------- arithmetic in vectors


@Loop
def losses_of(s, y, margin, p, t, loss):
    logistic_losses(s, y, margin, p, t, loss)


@Loop
def move_from_zero(w, squares, t, rates):
    adapt_rows(w, squares, w[:0], 0.0, (np.uint64(0),), t, rates, (1.0,), 1e150)


@pytest.mark.parametrize("count", [1, 3, 8, 13])
def test_vectors_compute_to_a_few_units_in_the_last_place(count):
    rng = np.random.default_rng(count)
    few = 4 * np.finfo(float).eps
    for size in (1e-12, 1e-3, 1.0, 10.0, 100.0, 1e300):
        for y in (-1.0, 1.0):
            s = np.clip(rng.normal(size=count), -2, 2) * size
            margin, p, t, loss = np.zeros((4, count))
            losses_of(s, y, margin, p, t, loss)
            exact = (s * y).astype(np.longdouble)
            power = np.exp(-np.abs(exact))
            np.testing.assert_array_equal(margin, s * y)
            np.testing.assert_allclose(
                loss, (np.log1p(power) - np.minimum(exact, 0)).astype(float), rtol=few, atol=1e-300
            )
            right, wrong = (np.where(side, power, 1.0) / (1.0 + power) for side in (exact < 0, exact >= 0))
            np.testing.assert_allclose(p, right.astype(float), rtol=few, atol=1e-300)
            np.testing.assert_allclose(t, (y * wrong).astype(float), rtol=few, atol=1e-300)
    for size in (0.0, 1e-140, 1e-20, 1.0, 1e20, 1e140):
        squares, steps, w = rng.random(count) * size**2, rng.normal(size=count) * size, np.zeros(count)
        after = squares + steps * steps
        move_from_zero(w, squares, steps, np.full(count, 0.3))
        np.testing.assert_allclose(squares, after, rtol=few)
        np.testing.assert_allclose(w, 0.3 * steps / np.sqrt(np.where(after > 0, after, 1.0)), rtol=2 * few)


# ---------------------------------------------------------------- the same in chunks as in one go


@pytest.mark.parametrize(
    ("name", "stabilizer"),
    [("adagrad", "averaged"), *((name, "last") for name in BANKS)]
    + [pytest.param(name, "averaged", marks=pytest.mark.slow) for name in BANKS if name != "adagrad"],
)
@pytest.mark.parametrize("classes", [2, 3])
def test_chunks_leave_the_same_bits_and_so_does_a_file(name, stabilizer, classes, tmp_path):
    X, y, weight = examples(classes)
    X = sp.csr_array(X)
    weight[5] = 0.0
    learners = spelled(BANKS[name], stabilizer)
    whole = MixtureLearner(learners=learners, random_state=0)
    whole.partial_fit(X, y, classes=range(classes), sample_weight=weight)
    parts = MixtureLearner(learners=learners, random_state=0)
    for n, stretch in enumerate((slice(0, 1), slice(1, 20), slice(20, 21), slice(21, 40))):
        if n == 1:
            parts = pickle.loads(pickle.dumps(parts))
        if n == 2:
            parts.save(tmp_path / "m.onl")
            parts = model_file.load_learner(tmp_path / "m.onl")
        parts.partial_fit(X[stretch], y[stretch], classes=range(classes), sample_weight=weight[stretch])
    check_same_bits(whole, parts)
    np.testing.assert_array_equal(whole.predict_proba(X), parts.predict_proba(X))


def check_same_bits(one, other):
    (facts, arrays), (others, more) = one._pack(), other._pack()
    assert facts == others
    assert arrays.keys() == more.keys()
    for key, array in arrays.items():
        np.testing.assert_array_equal(array, more[key], err_msg=key)


def test_rows_without_weight_are_as_if_they_were_not_there():
    X, y, _ = examples(3)
    weight = np.where(np.arange(len(y)) % 3, 1.0, 0.0)
    weighted = MixtureLearner(random_state=0).partial_fit(X, y, classes=range(3), sample_weight=weight)
    plain = MixtureLearner(random_state=0).partial_fit(X[weight > 0], y[weight > 0], classes=range(3))
    check_same_bits(weighted, plain)


def test_more_rows_than_are_taken_down_at_a_time_are_as_any_others(monkeypatch):
    X, y, weight = examples(3)
    settings = dict(learners=[one for one, _, _ in BANKS["of all sorts"]], random_state=0, epochs=2)
    whole = MixtureLearner(**settings).fit(X, y, weight)
    expected = whole.predict_proba(X)
    monkeypatch.setattr("onlearn.engine.mixture_training.BATCH", 7)
    monkeypatch.setattr("onlearn.engine.mixture.SCORES", 100)
    few = MixtureLearner(**settings).fit(X, y, weight)
    check_same_bits(whole, few)
    np.testing.assert_array_equal(few.predict_proba(X), expected)
    np.testing.assert_array_equal(few.predict_proba(sp.csr_array(X)), whole.predict_proba(sp.csr_array(X)))
    with pytest.raises(ValueError, match="row 30"):
        few.predict(np.where(np.arange(40)[:, None] == 30, np.nan, X))


# ---------------------------------------------------------------- passes, growth, the leader


def test_only_the_first_pass_says_how_much_a_learner_counts():
    X, y, _ = examples(2)
    one = MixtureLearner(random_state=0, epochs=1).fit(X, y)
    three = MixtureLearner(random_state=0, epochs=3).fit(X, y)
    np.testing.assert_array_equal(one.losses_, three.losses_)
    assert three.n_seen_ == 3 * len(y) and len(three.history_["passes"]) == 3
    assert three.history_["passes"][0] == one.history_["passes"][0]
    assert len(three.leader_.history_["passes"]) == 3
    again = MixtureLearner(random_state=0, epochs=1, warm_start=True)
    for _ in range(3):
        again.fit(X, y)
    np.testing.assert_array_equal(again.losses_, three.losses_)
    np.testing.assert_array_equal(again.predict_proba(X), three.predict_proba(X))
    after = copy.deepcopy(three).partial_fit(X, y)  # a stream that goes on is new
    assert (after.losses_ > three.losses_).all()


@pytest.mark.parametrize("name", ["adagrad", "additive", "of all sorts"])
def test_features_and_classes_are_taken_in(name):
    X, y, _ = examples(4)
    learners = [one for one, _, _ in BANKS[name]]
    late = MixtureLearner(learners=learners, random_state=0, grow=True)
    late.partial_fit(X[:10, :4], np.minimum(y[:10], 1)).partial_fit(X[10:], y[10:])
    assert late.classes_.tolist() == [0, 1, 2, 3] and late.n_features_in_ == 7
    alone = [Learner(one.name, **{**one.get_params(), "grow": True}) for one in map(parse_learner, learners)]
    for k, one in enumerate(alone):
        one.partial_fit(X[:10, :4], np.minimum(y[:10], 1)).partial_fit(X[10:], y[10:])
        np.testing.assert_allclose(late.member(k).coef_, one.coef_, rtol=1e-7, atol=1e-9)
    probabilities = late.predict_proba(X)
    assert probabilities.shape == (40, 4)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert late.certificate().holds()
    one_class = MixtureLearner(grow=True, random_state=0).partial_fit(X[:3], [7, 7, 7])
    assert one_class.predict(X[:2]).tolist() == [7, 7]
    columns = MixtureLearner(grow="features", random_state=0).partial_fit(X[:9, :4], y[:9] % 2, classes=[0, 1])
    assert columns.partial_fit(X, y % 2).n_features_in_ == 7


def test_members_are_the_learners_that_they_would_be_alone():
    X, y, weight = examples(3)
    mixture = MixtureLearner(learners=MEMBERS[1], random_state=0, epochs=2).fit(X, y, weight)
    for k, spelling in enumerate(MEMBERS[1]):
        given = parse_learner(spelling)
        alone = Learner(given.name, **{**given.get_params(), "random_state": 0, "epochs": 2}).fit(X, y, weight)
        member = mixture.member(k)
        np.testing.assert_allclose(member.coef_, alone.coef_, rtol=1e-12)
        assert member.get_params() == alone.get_params() and member.n_mistakes_ == alone.n_mistakes_
        for mine, others in zip(member.history_["passes"], alone.history_["passes"], strict=True):
            assert mine == pytest.approx(others)
        if k == mixture.training.leader:
            np.testing.assert_allclose(member.predict_proba(X), alone.predict_proba(X), rtol=1e-6)


def test_the_leader_goes_on_by_itself():
    X, y, _ = examples(2)
    mixture = MixtureLearner(random_state=0, epochs=1).fit(X, y)
    leader, losses = mixture.leader_, mixture.losses_
    before = copy.deepcopy(mixture.training.banks[0].g.w)
    leader.partial_fit(X, y)
    np.testing.assert_array_equal(mixture.training.banks[0].g.w, before)
    np.testing.assert_array_equal(mixture.losses_, losses)
    mixture.partial_fit(X, y)
    np.testing.assert_allclose(mixture.member(int(np.argmin(losses))).coef_, leader.coef_, rtol=1e-9)


def test_a_renewed_mixture_is_as_new():
    X, y, _ = examples(3)
    learners = [one for one, _, _ in BANKS["of all sorts"]]
    used, new = (MixtureLearner(learners=learners, random_state=0).partial_fit(X, y, classes=range(3)) for _ in "ab")
    fresh = MixtureLearner(learners=learners, random_state=0).partial_fit(X[:20], y[:20], classes=range(3))
    renewed = used.renewed()
    assert not renewed.losses_.any() and renewed.n_seen_ == 0
    check_same_bits(renewed.partial_fit(X[:20], y[:20]), fresh)
    check_same_bits(used, new)
    check_same_bits(used.become(renewed), fresh)


def test_forgetting_features_keeps_the_others():
    X, y, _ = examples(2)
    mixture = MixtureLearner(random_state=0).partial_fit(X, y, classes=[0, 1])
    weights = mixture.leader_.coef_
    mixture.keep_features(np.array([5, 2]))
    np.testing.assert_array_equal(mixture.leader_.coef_, weights[:, [5, 2]])


@onlearn.rule
def picky(s, y, sqnorm):
    return float("nan") if sqnorm > 30 else y - s


def test_a_call_that_fails_changes_nothing():
    X, y, _ = examples(2)
    learners = ["LogisticRegression(rate=1.0)", "OnlineClassifier('picky', 'additive(0.1)')"]
    mixture = MixtureLearner(learners=learners, random_state=0, grow="features").partial_fit(X, y, classes=[0, 1])
    kept = copy.deepcopy(mixture)
    large = np.concatenate([X[:5], 1e3 + X[5:]])
    with pytest.raises(ValueError, match="the rule 'picky' returned NaN for the example in row 5"):
        mixture.partial_fit(large, y)
    check_same_bits(mixture, kept)
    with pytest.raises(ValueError, match="label"):
        mixture.partial_fit(np.column_stack([X, X]), np.full(len(y), 9))
    with pytest.raises(ValueError, match="NaN"):
        mixture.partial_fit(np.where(X > 0, X, np.nan), y)
    check_same_bits(mixture, kept)
    back = pickle.loads(pickle.dumps(mixture))
    check_same_bits(back.partial_fit(X, y), mixture.partial_fit(X, y))


# ---------------------------------------------------------------- spelling, errors


@pytest.mark.parametrize("text", [*USUAL, "Perceptron", "OnlineClassifier('pa1(0.5)', geometry='adagrad(0.3)')"])
def test_a_learner_is_spelled_as_it_is_read(text):
    learner = parse_learner(text)
    again = parse_learner(spell_learner(learner))
    assert again.name == learner.name and again.get_params() == learner.get_params()
    given = Learner("OnlineClassifier", rule=onlearn.rules.PA1(0.5), geometry=onlearn.geometry.AdaGrad(0.3))
    assert parse_learner(spell_learner(given)).choices == given.choices


WRONG = {
    "empty": ([], ValueError, "an empty list"),
    "text": ("Perceptron", TypeError, "must be a list"),
    "number": (3, TypeError, "must be a list"),
    "other": ([3], TypeError, r"learners\[0\] is 3, but must be a linear classifier"),
    "regressor": (["OnlineRegressor"], ValueError, "is a regression"),
    "unknown": (["LogisticRegresion"], ValueError, "did you mean 'LogisticRegression'"),
    "kernel": (["KernelClassifier"], ValueError, "there is no learner 'KernelClassifier' for a mixture"),
    "code": (["Perceptron(print(1))"], ValueError, "cannot read the learner"),
    "parameter": (["LogisticRegression(speed=1)"], ValueError, "no parameter 'speed'"),
    "twice": (["LogisticRegression(1.0, rate=1.0)"], ValueError, "given twice"),
    "range": (["LogisticRegression(rate=-1)"], ValueError, "rate must be a number above 0"),
    "grow": (["Perceptron(grow=True)"], ValueError, r"learners\[0\] sets grow, which is the same for all"),
    "epochs": (["Perceptron", "AROW(epochs=3)"], ValueError, r"learners\[1\] sets epochs"),
    "held out": (["Perceptron(calibration='holdout')"], ValueError, "no rows held out"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_mixed_is_refused(case):
    learners, kind, sentence = WRONG[case]
    X, y, _ = examples(2)
    with pytest.raises(kind, match=sentence):
        MixtureLearner(learners=learners).fit(X, y)


def test_learners_cannot_change_while_learning_goes_on():
    X, y, _ = examples(2)
    mixture = MixtureLearner(learners=MEMBERS[0], random_state=0).partial_fit(X, y, classes=[0, 1])
    mixture.set_params(learners=MEMBERS[1])
    with pytest.raises(ValueError, match=r"learners was .* when learning began"):
        mixture.partial_fit(X, y)


@pytest.mark.parametrize("change", ["losses", "seen", "members", "shape"])
def test_a_file_that_contradicts_itself_is_refused(change):
    X, y, _ = examples(2)
    mixture = MixtureLearner(learners=MEMBERS[0], random_state=0).partial_fit(X, y, classes=[0, 1])
    header, arrays = copy.deepcopy(model_file.describe(mixture))
    if change == "losses":
        arrays["losses"][1] = -1.0
    elif change == "seen":
        arrays["member.1.tally"][3] -= 1
    elif change == "members":
        header["members"].pop()
    else:
        arrays["tally"] = arrays["tally"][:3]
    with pytest.raises((ValueError, IndexError)):
        model_file.rebuild(header, arrays)
