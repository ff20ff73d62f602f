"""Worked examples from the literature and the lecture notes, with their exact numbers; and rules of one's own."""

from __future__ import annotations

import warnings
from functools import partial
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import onlearn
from onlearn import OnlineClassifier
from onlearn.engine import rules
from onlearn.engine.geometry import Additive
from onlearn.engine.stabilizers import Last
from onlearn.engine.training import Training

ONCE = dict(stabilizer="last", fit_intercept=False, shuffle=False, epochs=1)

# ---------------------------------------------------------------- Perceptron


def test_weights_are_the_sum_of_the_mistakes():
    """Mistakes on examples 1 and 2 (positive) and 4 (negative): w = x1 + x2 - x4."""
    x1, x2, _, x4, _ = X = np.array(
        [[1.0, 2.0, 0.0], [-3.0, 0.0, 1.0], [0.0, 1.0, 2.0], [-1.0, 0.0, 3.0], [-2.0, 4.0, -2.0]]
    )
    y = np.array([1, 1, 1, 0, 1])
    model = onlearn.Perceptron(fit_intercept=False, shuffle=False, epochs=1)
    wrong = []
    for i in range(len(X)):
        before = model.n_mistakes_ if i else 0
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
        wrong += [i + 1] * (model.n_mistakes_ - before)
    assert wrong == [1, 2, 4]
    assert np.array_equal(model.coef_[0], x1 + x2 - x4)
    assert np.array_equal(model.fit(X, y).coef_[0], x1 + x2 - x4)


@pytest.mark.parametrize(
    ("concept", "n"),
    [(all, 2), (all, 4), (any, 3), (lambda bits: sum(bits) >= 2, 3), (lambda bits: sum(bits) >= 3, 5)],
    ids=["and-of-2", "and-of-4", "or-of-3", "2-of-3", "3-of-5"],
)
@pytest.mark.parametrize("shuffle", [False, True])
def test_boolean_thresholds_are_learned_exactly(concept, n, shuffle):
    """AND, OR and m-of-n: passes until one is free of mistakes, and every row right."""
    X = np.array(list(product([0.0, 1.0], repeat=n)))
    y = np.array([int(concept(row)) for row in X])
    model = onlearn.Perceptron(epochs=None, shuffle=shuffle, random_state=0).fit(X, y)
    assert model.separable_ is True
    assert model.history_["passes"][-1]["mistakes"] == 0
    assert all(entry["mistakes"] > 0 for entry in model.history_["passes"][:-1])
    assert np.array_equal(model.predict(X), y)


def test_XOR_is_proved_not_separable():
    """In a fixed order the weights come back to what they were: no linear separator, and training stops."""
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    model = onlearn.Perceptron(epochs=None, shuffle=False)
    with pytest.warns(ConvergenceWarning, match="not linearly separable"):
        model.fit(X, [0, 1, 1, 0])
    assert model.separable_ is False
    assert len(model.history_["passes"]) < 100


def test_steps_lost_to_rounding_prove_nothing():
    """The second row is a mistake for ever, for its step is nothing beside the first: the rows are separable yet."""
    model = onlearn.Perceptron(epochs=None, shuffle=False, fit_intercept=False)
    with pytest.warns(ConvergenceWarning, match="or steps were lost to rounding"):
        model.fit([[1e20, 1.0], [1.0, -1e-20]], [0, 1])
    assert model.separable_ is None
    for X in ([[0.1, 1e-17], [0.1, 1e-17]], sp.csr_matrix([[0.3, 2**20], [0.3, 2**20]], dtype=np.float32)):
        with pytest.warns(ConvergenceWarning, match="data are not linearly separable:"):
            assert model.fit(X, [0, 1]).separable_ is False


def test_one_class_in_the_midst_of_others_proves_nothing_of_the_classes():
    """Three classes in a row can be told apart, but no line parts the middle one from both others."""
    X, y = np.array([[-1.0], [0.0], [1.0]]), [0, 1, 2]
    model = onlearn.Perceptron(epochs=None, shuffle=False, multiclass="one-vs-all")
    with pytest.warns(ConvergenceWarning, match="at least one class is not linearly separable from the rest"):
        model.fit(X, y)
    assert model.separable_ is None
    assert onlearn.Perceptron(epochs=None, shuffle=False, multiclass="true").fit(X, y).separable_ is True


def test_XOR_in_random_order_stops_at_max_epochs():
    """Without a fixed order nothing is proved; training gives up where it is told to, and says so."""
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    model = onlearn.Perceptron(epochs=None, max_epochs=7, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_epochs=7"):
        model.fit(X, [0, 1, 1, 0])
    assert model.separable_ is None
    assert len(model.history_["passes"]) == 7


def test_passes_that_prove_nothing():
    """A fixed number of passes says nothing about data it still errs on, and proves those it does not."""
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert onlearn.Perceptron(epochs=1, shuffle=False).fit(X, [0, 1, 1, 1]).separable_ is None
    assert onlearn.Perceptron(epochs=50, shuffle=False).fit(X, [0, 1, 1, 1]).separable_ is True


@pytest.mark.parametrize(
    "make", [onlearn.Perceptron, onlearn.AveragedPerceptron, partial(onlearn.KernelClassifier, "linear")]
)
@pytest.mark.parametrize("y", [[0, 1, 1, 0], [0, 1, 1, 1]], ids=["XOR", "OR"])
def test_so_many_epochs_are_so_many_passes(make, y):
    """Neither a cycle nor a pass without a mistake ends them, and what was proved meanwhile is told."""
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = make(epochs=60, shuffle=False).fit(X, y)
    assert len(model.history_["passes"]) == 60
    assert model.n_seen_ == 60 * len(X)
    assert model.separable_ is (y[3] == 1)


def test_the_mean_is_that_of_all_passes_asked_for():
    """The averaged perceptron over 31 passes of XOR, which come back to where they were long before."""
    X, signs = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), [-1, 1, 1, -1]
    w, total = np.zeros(3), np.zeros(3)
    for x, sign in list(zip(np.column_stack([np.ones(4), X]), signs)) * 31:
        w = w + sign * x if sign * (w @ x) <= 0 else w
        total += w
    model = onlearn.AveragedPerceptron(epochs=31, shuffle=False).fit(X, [0, 1, 1, 0])
    np.testing.assert_allclose(model.coef_[0], total[1:] / 124, rtol=1e-12)
    np.testing.assert_allclose(model.intercept_, total[0] / 124, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rate", [1.0, 0.25])
def test_primal_textbook_algorithm(seed, rate):
    """Cristianini & Shawe-Taylor (2000), table 2.1: w += r y x and b += r y R^2 on a mistake."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3)) + 0.5
    y = np.where(X @ [1.0, -2.0, 0.5] > 0.8, 1, -1)
    w, b, R, k = np.zeros(3), 0.0, np.linalg.norm(X, axis=1).max(), 0
    for _ in range(5):
        for xi, yi in zip(X, y):
            if yi * (w @ xi + b) <= 0:
                w = w + rate * yi * xi
                b = b + rate * yi * R**2
                k = k + 1
    model = OnlineClassifier(
        geometry=f"additive({rate})", stabilizer="last", intercept_scaling="radius", shuffle=False, epochs=5
    ).fit(X, y)
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-12)
    np.testing.assert_allclose(model.intercept_, b, rtol=1e-12)
    assert model.n_mistakes_ == k


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("spelling", "k"), [
    ("linear", lambda X: X @ X.T), ("polynomial(2)", lambda X: (X @ X.T + 1) ** 2),
    ("gaussian(1.5)", lambda X: np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / (2 * 1.5**2))),
])  # fmt: skip
def test_dual_textbook_algorithm(seed, spelling, k):
    """Cristianini & Shawe-Taylor (2000), table 2.2: alpha_i += 1 and b += y_i R^2 on a mistake, R = max |phi(x)|."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3)) + 0.5
    y = np.where(X @ [1.0, -2.0, 0.5] > 0.8, 1, -1)
    K = k(X)
    alpha, b, R = np.zeros(40), 0.0, np.sqrt(K.diagonal().max())
    for _ in range(5):
        for i in range(40):
            if y[i] * ((alpha * y) @ K[:, i] + b) <= 0:
                alpha[i] += 1
                b += y[i] * R**2
    settings = dict(stabilizer="last", intercept_scaling="radius", shuffle=False, epochs=5)
    model = onlearn.KernelClassifier(spelling, **settings).fit(X, y)
    np.testing.assert_allclose(model.intercept_, b, rtol=1e-9)
    np.testing.assert_allclose(model.decision_function(X), (alpha * y) @ K + b, rtol=1e-9, atol=1e-9 * R**2)
    assert model.n_mistakes_ == alpha.sum()
    if spelling == "polynomial(2)":  # the same of the kernel's features
        primal = onlearn.KernelClassifier(spelling, representation="primal", **settings).fit(X, y)
        np.testing.assert_allclose(primal.decision_function(X), model.decision_function(X), rtol=1e-7, atol=1e-7)
    with pytest.raises(ValueError, match="needs fit, which sees all the data"):
        onlearn.KernelClassifier(spelling, **settings).partial_fit(X, y, classes=[-1, 1])


# ---------------------------------------------------------------- rules


@pytest.mark.parametrize("thickness", [dict(m_plus=2.0, m_minus=0.5), dict(m_plus=2.0)])
def test_margin_has_a_thickness_on_each_side(thickness):
    """Promote when s < m_plus, demote when s > -m_minus; one number is for both sides."""
    minus = thickness.get("m_minus", 2.0)
    rule = rules.Margin(**thickness)
    p = rules.values(rule)
    for s in (-3.0, -2.0, -1.0, -0.5, -0.1, 0.0, 0.1, 1.0, 2.0, 3.0):
        assert rules.Margin.step(s, 1.0, 1.0, p) == (1.0 if s < 2.0 else 0.0)
        assert rules.Margin.step(s, -1.0, 1.0, p) == (-1.0 if s > -minus else 0.0)
    # and in the loop: scores 0, 1 (thin), 2 (thick enough) of a positive example; 0, -1 of a negative one
    updates = [OnlineClassifier(rule, **ONCE).fit([[1.0, 0.0]] * n + [[0.0, 1.0]] * n, [1] * n + [0] * n).n_updates_
               for n in (1, 2, 3)]  # fmt: skip
    assert updates == ([2, 3, 3] if minus == 0.5 else [2, 4, 4])


def test_zero_margin_is_the_perceptron():
    """Ties are mistakes even where no thickness is asked for."""
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, size=(50, 3)).astype(float)
    y = rng.integers(0, 2, 50)
    margin = OnlineClassifier("margin(0)", **ONCE).fit(X, y)
    perceptron = OnlineClassifier("perceptron", **ONCE).fit(X, y)
    assert np.array_equal(margin.coef_, perceptron.coef_)
    assert margin.n_updates_ == perceptron.n_updates_


@pytest.mark.parametrize("m", [1.0, 0.3, 25.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_aggressive_brings_the_score_to_the_mark(m, intercept):
    """After a mistake the score of that example is y m exactly; an example that was right changes nothing."""
    rng = np.random.default_rng(1)
    model = OnlineClassifier(rules.Aggressive(m), stabilizer="last", fit_intercept=intercept)
    mistakes = 0
    for _ in range(40):
        x, y = rng.normal(size=(1, 4)), int(rng.integers(2))
        before = model.decision_function(x) if hasattr(model, "classes_") else 0.0
        model.partial_fit(x, [y], classes=[0, 1])
        wrong = model.n_mistakes_ - mistakes
        mistakes = model.n_mistakes_
        wanted = (m if y else -m) if wrong else before
        np.testing.assert_allclose(model.decision_function(x), wanted, rtol=1e-9)
    assert 0 < mistakes < 40


@pytest.mark.parametrize("C", [0.05, 0.4, 100.0])
def test_passive_aggressive_margin_after_the_step(C):
    """PA-I: the margin becomes 1, or grows by C |x|^2 where that is less; PA-II: by less than PA-I without C."""
    rng = np.random.default_rng(2)
    for kind in (rules.PA1, rules.PA2):
        model = OnlineClassifier(kind(C), stabilizer="last", fit_intercept=False)
        before = 0.0
        for n in range(40):
            x, y = rng.normal(size=(1, 4)), int(rng.integers(2))
            sign, q = 2 * y - 1, (x @ x.T).item()
            before = sign * model.decision_function(x).item() if n else 0.0
            model.partial_fit(x, [y], classes=[0, 1])
            after = sign * model.decision_function(x).item()
            loss = max(0.0, 1 - before)
            step = min(C, loss / q) if kind is rules.PA1 else loss / (q + 1 / (2 * C))
            np.testing.assert_allclose(after, before + step * q, rtol=1e-9, atol=1e-12)
            if kind is rules.PA1:
                np.testing.assert_allclose(after, max(before, min(1.0, before + C * q)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("make", [
    lambda: OnlineClassifier("hinge", **ONCE),
    lambda: OnlineClassifier("hinge", **{**ONCE, "stabilizer": "averaged"}),
    lambda: onlearn.KernelClassifier("linear", rule="hinge", **ONCE),
    lambda: onlearn.KernelClassifier("linear", rule="hinge", **ONCE, budget=9),
])  # fmt: skip
def test_hinge_steps_at_a_margin_of_exactly_one(make):
    """No step where y s > 1, a step otherwise: scores of 0, 1 and 2 give two steps, on either side."""
    for label, side in ((1, 1.0), (0, -1.0)):
        model = make().partial_fit([[side], [side], [side]], [label] * 3, classes=[0, 1])
        assert model.n_updates_ == 2
        model.partial_fit([[side]], [label])
        assert model.n_updates_ == 2
    three = make().partial_fit([[1.0], [1.0]], [2, 2], classes=[0, 1, 2])  # margins over the rivals: 0, and 1 over both
    assert three.n_updates_ == 2


GRADIENTS = ["perceptron", "lms", "hinge", "squared_hinge", "logistic", "margin(0.7, 0.2)", "epsilon(0.3)"]


@pytest.mark.parametrize("name", GRADIENTS)
def test_the_step_descends_the_loss(name):
    """The step is minus the derivative of the loss by the score, where there is one."""
    rule = rules.RULES.get(name)
    p, h = rules.values(rule), 1e-6
    for s, y in product(np.linspace(-3.03, 3.03, 24), (-1.0, 1.0)):
        slope = (type(rule).loss(s + h, y, 1.0, p) - type(rule).loss(s - h, y, 1.0, p)) / (2 * h)
        assert type(rule).step(s, y, 1.0, p) == pytest.approx(-slope, abs=1e-5)


# ---------------------------------------------------------------- geometries


@pytest.mark.parametrize("rate", [1.0, 0.05])
def test_adagrad_first_step_has_the_size_of_the_rate(rate):
    """G then is the first gradient's own square: every feature of the example moves by r, whatever its size."""
    X, y = [[1e-3, -50.0, 0.0, 2.0], [0.0, 0.0, 0.0, 0.0]], [1, 0]
    model = OnlineClassifier("hinge", f"adagrad({rate})", **ONCE).fit(X, y)
    np.testing.assert_allclose(model.coef_[0], [rate, -rate, 0.0, rate], rtol=1e-12)


def test_ftrl_gives_exact_zeros_under_l1():
    """Noise features end at exactly zero, relevant ones do not; without l1 none is zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 20))
    y = (X[:, 0] - X[:, 1] > 0).astype(int)
    sparse = onlearn.FTRL(l1=60.0, random_state=0).fit(X, y).coef_[0]
    assert (sparse[:2] != 0).all()
    assert (sparse[2:] == 0).all()
    assert (onlearn.FTRL(random_state=0).fit(X, y).coef_ != 0).all()


def test_ftrl_first_steps_by_hand():
    """rate 0.5, beta 1, l1 0.2: gradient -1/2 puts z at -0.5 and w at 0.3 / ((1 + 0.5) / 0.5)."""
    model = OnlineClassifier("logistic", "ftrl(0.5, 1.0, l1=0.2)", **ONCE).fit([[1.0, 0.2], [0.0, 0.0]], [1, 0])
    np.testing.assert_allclose(model.coef_[0], [0.3 / 3.0, 0.0], rtol=1e-12)


@pytest.mark.parametrize("alpha", [2.0, 1.5])
def test_winnow_weights_are_powers_of_alpha(alpha):
    """On Boolean features a weight is alpha to the promotions less the demotions of its feature: exactly for 2."""
    rng = np.random.default_rng(4)
    X = (rng.random((200, 12)) < 0.3).astype(float)
    y = (X[:, :3].sum(axis=1) > 0).astype(int)
    model = onlearn.Winnow(alpha=alpha, stabilizer="last", shuffle=False, epochs=1).fit(X, y)
    exponents, w = np.zeros(12), np.ones(12)
    for x, sign in zip(X, 2 * y - 1):
        if sign * (w @ x - 12) <= 0:
            exponents += sign * x
            w = alpha**exponents
    assert np.ptp(exponents) > 3
    if alpha == 2.0:
        assert np.array_equal(model.coef_[0], 2.0**exponents)
    np.testing.assert_allclose(model.coef_[0], alpha**exponents, rtol=1e-12)
    assert model.intercept_ == -12.0


def test_balanced_winnow_first_step_by_hand():
    """w = alpha^e - alpha^-e: after one promotion of a feature of size 1, 2 - 1/2."""
    model = OnlineClassifier("perceptron", "balanced(2)", **ONCE).fit([[1.0, -1.0, 0.0], [0, 0, 0]], [1, 0])
    assert np.array_equal(model.coef_[0], [1.5, -1.5, 0.0])


# ---------------------------------------------------------------- softmax

W = np.array([1.3, 0.9, -5, 3.2, -0.1, 0, 1.1, -1.7, -1.3]).reshape(3, 3)  # a row a class
F = np.array([[1.0, 1.0, 0.0]])
GRADIENT = np.array([0.79, 0.79, 0, -0.77, -0.77, 0, -0.02, -0.02, 0]).reshape(3, 3)


def softmax_step(weights):
    """The weights after one example of the first class, by the engine, from given weights."""
    training = Training(rules.Logistic(), Additive(), Last(), "softmax", 3, 3, 0.0)
    training.g.w.reshape(4, 3)[1:] = weights.T
    training.learn(F, np.array([0]), np.ones(1), np.arange(1))
    return training.weights()[1:].T


def test_softmax_gradient():
    """With P = [.21, .77, .02] the feature of the gold class minus its expectation is the gradient."""
    weights = np.zeros((3, 3))
    weights[:, 0] = np.log([0.21, 0.77, 0.02])
    np.testing.assert_allclose(softmax_step(weights) - weights, GRADIENT, atol=1e-12)


def test_softmax_step():
    """That gradient takes w = [1.3, .9, -5, 3.2, -.1, 0, 1.1, -1.7, -1.3] to P = [.89, .10, .01].

    (The lecture's P is not quite that of its w, which is [.28, .70, .02]; its own step follows from that.)
    """
    weights = np.zeros((3, 3))
    weights[:, 0] = np.log([0.21, 0.77, 0.02])
    moved = W + (softmax_step(weights) - weights)
    assert softmax(moved @ F[0]).round(2).tolist() == [0.89, 0.10, 0.01]
    assert softmax(W @ F[0]).round(2).tolist() == [0.28, 0.70, 0.02]
    P = softmax(W @ F[0])
    np.testing.assert_allclose(softmax_step(W), W + np.outer([1 - P[0], -P[1], -P[2]], F[0]), rtol=1e-12)
    assert softmax(softmax_step(W) @ F[0]).round(2).tolist() == [0.86, 0.13, 0.01]


# ---------------------------------------------------------------- a rule of one's own

RNG = np.random.default_rng(8)
X = RNG.normal(size=(80, 5))
Y = (X @ RNG.normal(size=5) + 0.5 * RNG.normal(size=80) > 0).astype(int)
Y3 = RNG.integers(0, 3, 80)


@onlearn.rule
def my_pa1(score, y, sqnorm, aggressiveness=1.0):
    """Passive-aggressive I, once more."""
    return y * min(aggressiveness, max(0.0, 1.0 - score * y) / sqnorm)


@onlearn.rule
def my_perceptron(score, y):
    return y if score * y <= 0 else 0


@onlearn.rule
def my_margin(score, y, plus=1.0, minus=0.5):
    return y if score * y < (plus if y > 0 else minus) else 0.0


@onlearn.rule(loss=lambda score, y: max(0.0, 1.0 - score * y))
def my_hinge(score, y):
    return y if score * y <= 1 else 0.0


SAME = {
    "my_pa1(0.3)": "pa1(0.3)",
    "my_perceptron": "perceptron",
    "my_margin(0.8, 0.2)": "margin(0.8, 0.2)",
    "my_hinge": "hinge",
}


@pytest.mark.parametrize("mine", SAME)
def test_own_rule_equals_the_built_in(mine):
    """Written the same it is the same, to the bit, with two classes or three, in any geometry."""
    for geometry, y in product(["additive(0.1, l1=0.05)", "arow(0.5)", "balanced(1.1)"], [Y, Y3]):
        ours = OnlineClassifier(SAME[mine], geometry, random_state=0).fit(X, y)
        theirs = OnlineClassifier(mine, geometry, random_state=0).fit(X, y)
        assert np.array_equal(theirs.coef_, ours.coef_)
        assert theirs.n_mistakes_ == ours.n_mistakes_


def test_own_rule_goes_wherever_a_rule_goes():
    """By name, by name with parameters, as a class, as an object; and in every place with the same result."""
    by_name = OnlineClassifier("my_pa1", random_state=0).fit(X, Y)
    for rule in (my_pa1, my_pa1(), my_pa1(1.0), "my_pa1(aggressiveness=1.0)"):
        assert np.array_equal(OnlineClassifier(rule, random_state=0).fit(X, Y).coef_, by_name.coef_)
    other = OnlineClassifier(my_pa1(aggressiveness=0.01), random_state=0).fit(X, Y)
    assert not np.array_equal(other.coef_, by_name.coef_)
    assert repr(my_pa1(0.25)) == "my_pa1(aggressiveness=0.25)"
    assert "my_pa1" in rules.RULES


def test_own_rule_reports_its_loss():
    """``loss=`` is what the history reports; without it, the share of mistakes."""
    mine = OnlineClassifier("my_hinge", random_state=0).fit(X, Y).history_
    hinge = OnlineClassifier("hinge", random_state=0).fit(X, Y).history_
    assert mine == hinge
    for entry in OnlineClassifier("my_perceptron", random_state=0).fit(X, Y).history_["passes"]:
        assert entry["loss"] == entry["mistakes"] / entry["seen"]


def test_parameters_of_an_own_rule_are_nested_parameters():
    """get_params, set_params, clone and grid search see them."""
    model = OnlineClassifier(my_pa1(0.5), random_state=0)
    assert model.get_params()["rule__aggressiveness"] == 0.5
    model.set_params(rule__aggressiveness=0.25)
    assert clone(model).rule.aggressiveness == 0.25
    search = GridSearchCV(model, {"rule__aggressiveness": [1e-6, 0.1], "epochs": [1, 2]}, cv=2).fit(X, Y)
    assert search.best_params_["rule__aggressiveness"] in (1e-6, 0.1)
    assert len(set(search.cv_results_["mean_test_score"])) > 1
    assert model.rule.aggressiveness == 0.25


@onlearn.rule
def fails_on_large(score, y, sqnorm):
    return np.nan if sqnorm > 50 else y * 0.1


@pytest.mark.parametrize("y", [Y, Y3], ids=["two-classes", "three-classes"])
@pytest.mark.parametrize("stabilizer", ["averaged", "survivor"])
def test_a_rule_that_returns_nan_is_named_and_nothing_changes(y, stabilizer):
    """The error names the rule and the row; the learner is what it was, and goes on as if never called."""
    classes = np.unique(y)
    model = OnlineClassifier("fails_on_large", stabilizer=stabilizer, multiclass="true")
    untouched = clone(model).partial_fit(X[:40], y[:40], classes=classes)
    model.partial_fit(X[:40], y[:40], classes=classes)
    bad = X[40:].copy()
    bad[17] = 100.0
    with pytest.raises(ValueError, match=r"'fails_on_large' returned NaN .* row 17\b"):
        model.partial_fit(bad, y[40:])
    assert np.array_equal(model.coef_, untouched.coef_)
    assert model.n_seen_ == untouched.n_seen_ == 40
    assert model.history_ == untouched.history_
    for learner in (model, untouched):
        learner.partial_fit(X[40:], y[40:])
    assert np.array_equal(model.coef_, untouched.coef_)
    assert np.array_equal(model.predict_proba(X), untouched.predict_proba(X))


def test_a_rule_that_returns_nan_in_fit_leaves_no_fitted_learner():
    """The row named is a row of X, in whatever order rows were visited."""
    bad = X.copy()
    bad[33] = 100.0
    model = OnlineClassifier("fails_on_large", random_state=0)
    with pytest.raises(ValueError, match=r"row 33\b"):
        model.fit(bad, Y)
    assert not hasattr(model, "classes_")


def test_a_rule_with_the_wrong_arguments_is_refused():
    """Score and y, |x|^2 if wanted, then parameters with defaults; anything else is explained."""
    with pytest.raises(TypeError, match=r"rule lonely must take \(score, y\) or \(score, y, sqnorm\)"):

        @onlearn.rule
        def lonely(score):
            return score

    with pytest.raises(TypeError, match=r"it takes \(score, y, sqnorm, C\)"):

        @onlearn.rule
        def crowded(score, y, sqnorm, C):
            return C

    assert "lonely" not in rules.RULES
    with pytest.raises(ValueError, match="unknown rule 'lonely'"):
        OnlineClassifier("lonely").fit(X, Y)


def test_a_parameter_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="no parameter 'C'"):
        OnlineClassifier("my_pa1(C=2)").fit(X, Y)
    with pytest.raises(ValueError, match="must be a finite number"):
        my_pa1(aggressiveness="large")
