"""The budget is never exceeded, and each policy agrees with its plain form in NumPy here."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from onlearn import KernelClassifier, kernels, rule
from onlearn.dual.budget import BudgetTraining, splitmix64
from onlearn.dual.policies import POLICIES
from onlearn.dual.supports import SupportSlots

ALL = ["remove(random)", "remove(oldest)", "project(0.1)", "merge"]
EXACT = ["remove(random)", "remove(oldest)", "project(0)", "merge"]


def seldom(value: Any) -> Any:
    """One of many that would take long to compile."""
    return pytest.param(value, marks=pytest.mark.slow)


def examples(seed: int, rows: int, classes: int = 2, width: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, width))
    y = np.argmax(np.sin(X @ rng.normal(size=(width, classes)) * 2) + 0.3 * rng.normal(size=(rows, classes)), axis=1)
    y[:classes] = np.arange(classes)
    return X, y


# ---------------------------------------------------------------------- the plain way


class Plain:
    """A perceptron with a budget, one example at a time; weights and what averaging lacks in ``lines``."""

    def __init__(self, kernel: Any, budget: int, policy: str, outputs: int, seed: int, bias: float = 1.0) -> None:
        self.kernel, self.budget, self.policy, self.bias = kernel, budget, POLICIES.get(policy), bias
        self.X: list[np.ndarray] = []
        self.born: list[int] = []
        self.v, self.u = np.zeros((1, outputs)), np.zeros((1, outputs))
        self.seen = self.came = 0
        self.random, self.cost, self.lengths, self.steps = splitmix64(seed), 0.0, 0.0, 0

    def values(self, x: np.ndarray) -> np.ndarray:
        some = np.array(self.X) if self.X else np.zeros((0, len(x)))
        return np.concatenate([[self.bias], self.kernel(x[None], some)[0] if self.X else []])

    def learn(self, x: np.ndarray, target: np.ndarray) -> None:
        t = np.where((self.values(x) @ self.v) * target <= 0, target, 0.0)
        if t.any():
            self.step(x, t)
        self.seen += 1

    def step(self, x: np.ndarray, t: np.ndarray) -> None:
        own, values = self.kernel(x[None])[0, 0], self.values(x)
        self.lengths += (t @ t) * (own + self.bias**2)
        self.steps += 1
        direction = np.zeros(len(self.v) + 1)
        direction[0] = self.bias
        if self.policy.name == "project":
            K = self.kernel(np.array(self.X)) if self.X else np.zeros((0, 0))
            d = np.linalg.lstsq(K, values[1:], rcond=None)[0] if self.X else np.zeros(0)
            near = own - values[1:] @ d <= self.policy.eta**2 * own
            if near or len(self.X) == self.budget:
                direction = np.concatenate([[self.bias], d])
                self.v += np.outer(direction, t)
                self.u += np.outer(direction, t) * self.seen
                return
        direction[-1] = 1.0
        self.X.append(x)
        self.born.append(self.came)
        self.came += 1
        self.v, self.u = (np.vstack([line, np.zeros(len(t))]) for line in (self.v, self.u))
        self.v += np.outer(direction, t)
        self.u += np.outer(direction, t) * self.seen
        if len(self.X) > self.budget:
            {"remove": self.remove, "merge": self.merge}[self.policy.name]()

    def drop(self, k: int) -> None:
        """The last one comes to where k was."""
        self.X[k], self.born[k] = self.X[-1], self.born[-1]
        for line in (self.v, self.u):
            line[k + 1] = line[-1]
        self.X, self.born, self.v, self.u = self.X[:-1], self.born[:-1], self.v[:-1], self.u[:-1]

    def remove(self) -> None:
        if self.policy.which == "random":
            for left, by in ((True, 13), (False, 7), (True, 17)):
                self.random ^= (self.random << by if left else self.random >> by) & (2**64 - 1)
            k = self.random % self.budget
        else:
            k = int(np.argmin(self.born))
            s, f = self.v[k + 1], self.values(self.X[k]) @ self.v
            square = (s @ s) * (self.kernel(self.X[k][None])[0, 0] + self.bias**2)

            def cost(phi: float) -> float:
                return phi**2 * (square - 2 * s @ f) + 2 * phi * np.sqrt(square * self.lengths / self.steps)

            room, phi = 15 / 32 * self.lengths - self.cost, 1.0
            if cost(1.0) > room:
                low, high = 0.0, 1.0
                for _ in range(60):
                    middle = (low + high) / 2
                    low, high = (middle, high) if cost(middle) <= room else (low, middle)
                phi = low
            self.cost += cost(phi)
            self.u += (phi - 1) * self.v * self.seen
            self.v *= phi
        for line in (self.v, self.u):
            line[0] -= self.bias * line[k + 1]
        self.drop(k)

    def merge(self) -> None:
        K = self.kernel(np.array(self.X))
        alpha = self.v[1:]
        p = int(np.argmin((alpha**2).sum(axis=1) * self.kernel.diag(np.array(self.X))))
        shares = np.linspace(0, 0.5, 2001) if isinstance(self.kernel, kernels.Gaussian) else np.array([0.0, 1.0])
        best: tuple[float, int, np.ndarray, float, float] | None = None
        for q in range(len(self.X)):
            if q == p:
                continue
            for h in shares if len(shares) == 2 else [None]:
                hs = shares if h is None else np.array([h])
                if h is None:
                    at_p, at_q = K[p, q] ** ((1 - hs) ** 2), K[p, q] ** (hs**2)
                else:
                    stays = p if h == 1.0 else q
                    at_p, at_q = K[p, [stays]] / K[stays, stays], K[q, [stays]] / K[stays, stays]
                beta = at_p[:, None] * alpha[p] + at_q[:, None] * alpha[q]
                size = 1.0 if h is None else K[stays, stays]
                whole = (alpha[p] @ alpha[p]) * K[p, p] + (alpha[q] @ alpha[q]) * K[q, q]
                loss = whole + 2 * (alpha[p] @ alpha[q]) * K[p, q] - size * (beta**2).sum(axis=1)
                n = int(np.argmin(loss))
                if best is None or loss[n] < best[0]:
                    best = loss[n], q, hs[n], at_p[n], at_q[n]
        assert best is not None
        _, q, h, at_p, at_q = best
        if len(shares) > 2 and h > 0.0:  # more precisely
            hs = np.clip(np.linspace(h - 3e-4, h + 3e-4, 2001), 0, 0.5)
            beta = (K[p, q] ** ((1 - hs) ** 2))[:, None] * alpha[p] + (K[p, q] ** (hs**2))[:, None] * alpha[q]
            h = hs[np.argmax((beta**2).sum(axis=1))]
            at_p, at_q = K[p, q] ** ((1 - h) ** 2), K[p, q] ** (h**2)
        self.X[p] = h * self.X[p] + (1 - h) * self.X[q]
        for line in (self.v, self.u):
            line[p + 1] = at_p * line[p + 1] + at_q * line[q + 1]
        if h == 0.0:  # the one that stays keeps its slot
            self.X[q] = self.X[p]
            for line in (self.v, self.u):
                line[q + 1] = line[p + 1]
            q = p
        self.drop(q)

    def scores(self, X: np.ndarray, averaged: bool) -> np.ndarray:
        weights = self.v - self.u / self.seen if averaged else self.v
        return np.array([self.values(x) @ weights for x in X])


@pytest.mark.parametrize("stabilizer", ["last", seldom("averaged")])
@pytest.mark.parametrize("classes", [2, seldom(3)])
@pytest.mark.parametrize("kernel", ["gaussian", seldom("polynomial(2)")])
@pytest.mark.parametrize("policy", ALL)
def test_each_policy_agrees_with_its_plain_form(policy: str, kernel: str, classes: int, stabilizer: str) -> None:
    X, y = examples(3, 150, classes)
    model = KernelClassifier(
        kernel, stabilizer=stabilizer, budget=8, budget_policy=policy, multiclass="one-vs-all", random_state=5
    )
    model.partial_fit(X, y, classes=np.arange(classes))
    plain = Plain(kernels.get(kernel), 8, policy, 1 if classes == 2 else 3, seed=5)
    for x, label in zip(X, y, strict=True):
        plain.learn(x, np.array([2.0 * label - 1]) if classes == 2 else np.where(np.arange(3) == label, 1.0, -1.0))
    assert model.n_support_ == len(plain.X)
    # where the loss is smallest, h is known to the square root of the precision, and here as finely as the grid is
    loose = policy == "merge" and kernel == "gaussian"
    np.testing.assert_allclose(model.support_examples_, plain.X, atol=1e-3 if loose else 1e-10)
    expected = plain.scores(X, stabilizer == "averaged")
    found = np.asarray(model.decision_function(X)).reshape(len(X), -1)
    np.testing.assert_allclose(found, expected, atol=1e-2 if loose else 1e-6 * np.abs(expected).max())


# ---------------------------------------------------------------------- the budget


@pytest.mark.parametrize("policy", ALL)
def test_a_small_budget_is_never_exceeded(policy: str) -> None:
    X, y = examples(1, 90, 2)
    model = KernelClassifier("gaussian", budget=4, budget_policy=policy, stabilizer="last", random_state=0)
    for start in range(0, 90, 30):
        model.partial_fit(X[start : start + 30], y[start : start + 30], classes=[0, 1])
        assert model.n_support_ <= 4 and len(model.support_examples_) == model.n_support_


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    budget=st.integers(1, 12),
    policy=st.sampled_from(ALL),
    setting=st.sampled_from([(2, "perceptron", "auto"), (3, "pa1", "true"), (3, "logistic", "auto")]),
    kernel=st.sampled_from(["gaussian", "polynomial(2)"]),
    cuts=st.lists(st.integers(0, 200), max_size=4),
)
def test_the_budget_is_never_exceeded(
    seed: int, budget: int, policy: str, setting: tuple[int, str, str], kernel: str, cuts: list[int]
) -> None:
    classes, rule, multiclass = setting
    X, y = examples(seed, 200, classes)
    model = KernelClassifier(kernel, rule, budget=budget, budget_policy=policy, multiclass=multiclass, random_state=0)
    ends = [classes, *sorted(cuts), 200]
    model.partial_fit(X[:classes], y[:classes], classes=np.arange(classes))
    for start, stop in pairwise(ends):
        if stop > start:
            model.partial_fit(X[start:stop], y[start:stop])
            assert model.n_support_ <= budget
            assert len(model.support_examples_) == model.n_support_ == model.dual_coef_.shape[1]
            assert np.isfinite(model.dual_coef_).all()
    assert model.n_updates_ > 0 and np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("policy", EXACT)
@pytest.mark.parametrize("stabilizer", ["last", seldom("averaged"), seldom("survivor")])
@pytest.mark.parametrize("classes", [2, seldom(3)])
def test_a_budget_that_is_never_spent_changes_nothing(policy: str, stabilizer: str, classes: int) -> None:
    X, y = examples(1, 120, classes)
    common = dict(kernel="gaussian", rule="pa1", stabilizer=stabilizer, epochs=3, random_state=2)
    free = KernelClassifier(**common).fit(X, y)
    held = KernelClassifier(**common, budget=120, budget_policy=policy).fit(X, y)
    assert held.n_mistakes_ == free.n_mistakes_ and held.n_support_ <= free.n_support_
    np.testing.assert_allclose(held.decision_function(X), free.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(held.predict_proba(X), free.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("policy", ALL)
def test_chunks_learn_what_one_call_does(policy: str) -> None:
    X, y = examples(7, 300)
    common = dict(kernel="gaussian", budget=20, budget_policy=policy, stabilizer="last", random_state=0)
    whole = KernelClassifier(**common).partial_fit(X, y, classes=[0, 1])
    parts = KernelClassifier(**common)
    for rows in np.array_split(np.arange(300), 7):
        parts.partial_fit(X[rows], y[rows], classes=[0, 1])
    assert parts.n_mistakes_ == whole.n_mistakes_
    np.testing.assert_allclose(parts.support_examples_, whole.support_examples_, atol=1e-6)
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), atol=1e-5)


def test_an_example_in_the_span_is_represented_exactly() -> None:
    X, y = examples(4, 200, width=3)
    free = KernelClassifier("linear", random_state=0, epochs=2).fit(X, y)
    held = KernelClassifier("linear", random_state=0, epochs=2, budget=50, budget_policy="project").fit(X, y)
    assert held.n_support_ == 3
    np.testing.assert_allclose(held.decision_function(X), free.decision_function(X), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("geometry", ["additive(l2=0.05)", "additive(2.0, l2=5.0)", "additive(0.5, '1/sqrt(t)')"])
@pytest.mark.parametrize("policy", EXACT)
def test_decaying_weights(policy: str, geometry: str) -> None:
    X, y = examples(2, 100)
    common = dict(kernel="gaussian", rule="pa1", geometry=geometry, epochs=3, random_state=0)
    free = KernelClassifier(**common).fit(X, y)
    held = KernelClassifier(**common, budget=100, budget_policy=policy).fit(X, y)
    np.testing.assert_allclose(held.decision_function(X), free.decision_function(X), rtol=1e-6, atol=1e-7)
    small = KernelClassifier(**common, budget=5, budget_policy=policy).fit(X, y)
    assert small.n_support_ <= 5 and np.isfinite(small.decision_function(X)).all()


# ---------------------------------------------------------------------- kinds of data


@pytest.mark.parametrize("policy", ALL)
def test_sparse_rows_learn_what_dense_ones_do(policy: str) -> None:
    X, y = examples(6, 150)
    X[np.abs(X) < 0.5] = 0.0
    common = dict(kernel="polynomial(2)", budget=10, budget_policy=policy, stabilizer="last", epochs=3, random_state=0)
    dense, sparse = KernelClassifier(**common).fit(X, y), KernelClassifier(**common).fit(sp.csr_matrix(X), y)
    assert sp.issparse(sparse.support_examples_)
    np.testing.assert_allclose(sparse.support_examples_.toarray(), dense.support_examples_)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_matrix(X)), dense.decision_function(X), rtol=1e-6)


@pytest.mark.slow
def test_single_precision_is_kept() -> None:
    X, y = examples(6, 200)
    for policy in ALL:
        model = KernelClassifier("gaussian", budget=10, budget_policy=policy, random_state=0)
        model.fit(X.astype(np.float32), y)
        assert model.support_examples_.dtype == np.float32 and np.isfinite(model.decision_function(X)).all()


def test_more_slots_than_a_piece_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = examples(8, 200)
    common = dict(kernel="gaussian", budget=20, budget_policy="remove", random_state=0)
    expected = KernelClassifier(**common).fit(X, y).decision_function(X)
    monkeypatch.setattr("onlearn.dual.supports.PIECE", 6)
    np.testing.assert_allclose(KernelClassifier(**common).fit(X, y).decision_function(X), expected, atol=1e-10)


# ---------------------------------------------------------------------- going on


@pytest.mark.parametrize("policy", ALL)
@pytest.mark.parametrize("cut", [3, 150])
def test_training_continues_from_a_saved_state_bit_for_bit(policy: str, cut: int) -> None:
    X, y = examples(9, 300)
    model = KernelClassifier("gaussian", budget=12, budget_policy=policy, stabilizer="last", random_state=3)
    model.partial_fit(X[:cut], y[:cut], classes=[0, 1])
    training = model._training
    facts, arrays = training.pack()
    more, others = training.pack_budget()
    kept = {name: array.copy() for name, array in {**arrays, **others}.items()}
    slots = SupportSlots(kernels.get("gaussian"), 12, model.support_examples_)
    again = BudgetTraining.unpack(facts, kept).attach(slots).unpack_budget(more, kept)  # type: ignore[attr-defined]
    resumed = copy.deepcopy(model)
    resumed._learner.training = again
    for learner in (model, resumed):
        for rows in np.array_split(np.arange(cut, 300), 3):
            learner.partial_fit(X[rows], y[rows])
    np.testing.assert_array_equal(resumed.support_examples_, model.support_examples_)
    np.testing.assert_array_equal(resumed.dual_coef_, model.dual_coef_)
    np.testing.assert_array_equal(resumed.intercept_, model.intercept_)
    np.testing.assert_array_equal(resumed._training.policy_state, model._training.policy_state)


def test_a_state_that_contradicts_itself_is_refused() -> None:
    X, y = examples(9, 100)
    model = KernelClassifier("gaussian", budget=12, random_state=3).partial_fit(X, y, classes=[0, 1])
    facts, arrays = model._training.pack_budget()
    for name, wrong in (("budget.among", np.zeros(3)), ("budget.ages", np.zeros(3)), ("budget.numbers", np.zeros(9))):
        with pytest.raises(ValueError, match="does not have the shape"):
            model._training.unpack_budget(facts, {**arrays, name: wrong})
    with pytest.raises(ValueError, match="more support examples than the budget allows"):
        model._training.unpack_budget({**facts, "budget": 5}, arrays)
    with pytest.raises(ValueError, match="12 support examples, more than the budget of 5 allows"):
        SupportSlots(kernels.get("gaussian"), 5, X[:12])


@pytest.mark.parametrize("policy", ALL)
def test_a_budget_takes_memory_only_as_it_is_spent(policy: str) -> None:
    X, y = examples(9, 100)
    model = KernelClassifier("gaussian", budget=10**6, budget_policy=policy, stabilizer="last", random_state=3).fit(
        X, y
    )
    assert model._training.gram.size <= 300**2 and len(model._training.supports.slots.rows) <= 1000


@pytest.mark.parametrize("policy", ALL)
def test_an_endless_stream_takes_no_more_memory(policy: str) -> None:
    rng = np.random.default_rng(0)
    model = KernelClassifier("gaussian", budget=15, budget_policy=policy, stabilizer="last", random_state=0)

    def size() -> int:
        training = model._training
        own = (training.gram, training.arrivals, training.policy_state, training.supports.slots.rows)
        states = [*training.g, *training.st, *own]
        points = sum(len(piece) for piece in training.supports.pieces)
        return sum(array.nbytes for array in states) + points

    sizes = []
    for _ in range(30):
        X = rng.normal(size=(60, 3))
        model.partial_fit(X, (np.sin(3 * X[:, 0]) > X[:, 1]).astype(int), classes=[0, 1])
        sizes.append(size())
    assert model.n_support_ == 15 and len(set(sizes[10:])) == 1


def test_random_removal_follows_the_seed() -> None:
    X, y = examples(5, 200)

    def kept(seed: int) -> np.ndarray:
        model = KernelClassifier("gaussian", budget=10, budget_policy="remove", stabilizer="last", random_state=seed)
        return np.asarray(model.partial_fit(X, y, classes=[0, 1]).support_examples_)

    np.testing.assert_array_equal(kept(1), kept(1))
    assert not np.array_equal(kept(1), kept(2))


@pytest.mark.slow
def test_projecting_loses_less_than_removing() -> None:
    rng = np.random.default_rng(0)
    angle, y = np.pi * rng.random(1500), rng.integers(2, size=1500)
    X = np.stack([np.cos(angle) + y, (1 - 2 * y) * np.sin(angle) + 0.5 * y], axis=1) + 0.15 * rng.normal(size=(1500, 2))

    def score(policy: str) -> float:
        model = KernelClassifier("gaussian(0.5)", stabilizer="last", budget=12, budget_policy=policy, random_state=0)
        return float(model.partial_fit(X[:1000], y[:1000], classes=[0, 1]).score(X[1000:], y[1000:]))

    assert score("project") >= max(score("remove(random)"), score("remove(oldest)"))
    assert score("project") > 0.9 and score("merge") > 0.9


# ---------------------------------------------------------------------- bad parameters


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (dict(budget=0), "budget must be a whole number of at least 1"),
        (dict(budget=2.5), "budget must be a whole number of at least 1"),
        (dict(budget=5, budget_policy="forget"), "unknown budget policy 'forget'"),
        (dict(budget=5, budget_policy="remove(newest)"), "which must be 'random' or 'oldest'"),
        (dict(budget=5, budget_policy="project(1.5)"), "eta must be a number of at least 0 and below 1"),
        (dict(budget=5, stabilizer="voted"), "a voted learner keeps all hypotheses"),
        (dict(budget=5, representation="primal", kernel="linear"), "a budget is for the dual"),
    ],
)
def test_bad_parameters_are_refused(settings: dict[str, Any], says: str) -> None:
    X, y = examples(0, 20)
    with pytest.raises(ValueError, match=says):
        KernelClassifier(**settings).fit(X, y)


@pytest.mark.parametrize("policy", ["project", "remove"])
def test_a_rule_that_fails_is_named_with_its_row(policy: str) -> None:
    @rule
    def failing_on_a_budget(score, y):  # type: ignore[no-untyped-def]
        return float("nan") if abs(score) > 3.0 else y

    X, y = examples(9, 100)
    with pytest.raises(ValueError, match=r"rule 'failing_on_a_budget' returned NaN for the example in row \d+"):
        KernelClassifier("gaussian", failing_on_a_budget(), shuffle=False, budget=4, budget_policy=policy).fit(X, y)
