"""The slow, obvious reference: every learner of the engine, written from the textbook definitions.

Dense, pure NumPy, one example after another, every weight touched every time, every hypothesis kept. An
example is its row with the constant feature (if there is one) in front; a learner is one column of weights
an output. Nothing here is shared with the engine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

# ---------------------------------------------------------------- rules: score, y, |x|^2 -> step; and the loss


class Perceptron:
    def step(self, s, y, q):
        return y if y * s <= 0 else 0.0

    def loss(self, s, y):
        return max(0.0, -y * s)


@dataclass
class Margin:
    plus: float
    minus: float

    def step(self, s, y, q):
        promote = y == +1 and (s < self.plus or s <= 0)
        demote = y == -1 and (s > -self.minus or s >= 0)
        return +1.0 if promote else -1.0 if demote else 0.0

    def loss(self, s, y):
        return max(0.0, (self.plus if y == +1 else self.minus) - y * s)


@dataclass
class Aggressive:
    m: float

    def step(self, s, y, q):
        return (y * self.m - s) / q if y * s <= 0 else 0.0

    def loss(self, s, y):
        return max(0.0, self.m - y * s) if y * s <= 0 else 0.0


@dataclass
class PassiveAggressive1:
    C: float

    def step(self, s, y, q):
        return y * min(self.C, hinge_loss(s, y) / q)

    def loss(self, s, y):
        return hinge_loss(s, y)


@dataclass
class PassiveAggressive2:
    C: float

    def step(self, s, y, q):
        return y * hinge_loss(s, y) / (q + 1 / (2 * self.C))

    def loss(self, s, y):
        return hinge_loss(s, y)


class LeastMeanSquares:
    def step(self, s, y, q):
        return y - s

    def loss(self, s, y):
        return (y - s) ** 2 / 2


class Hinge:
    def step(self, s, y, q):
        return 0.0 if y * s > 1 else y

    def loss(self, s, y):
        return hinge_loss(s, y)


class SquaredHinge:
    def step(self, s, y, q):
        return 2 * y * hinge_loss(s, y)

    def loss(self, s, y):
        return hinge_loss(s, y) ** 2


class Logistic:
    def step(self, s, y, q):
        return y * (1 - 1 / (1 + math.exp(-y * s)))

    def loss(self, s, y):
        return math.log(1 + math.exp(-y * s))


@dataclass
class Epsilon:
    epsilon: float

    def step(self, s, y, q):
        return math.copysign(1.0, y - s) if abs(y - s) > self.epsilon else 0.0

    def loss(self, s, y):
        return max(0.0, abs(y - s) - self.epsilon)


class NormalisedLeastMeanSquares:
    def step(self, s, y, q):
        return (y - s) / q if q > 0 else 0.0

    def loss(self, s, y):
        return (y - s) ** 2 / 2


@dataclass
class PassiveAggressiveEpsilon:
    epsilon: float
    C: float

    def step(self, s, y, q):
        return math.copysign(min(self.C, self.loss(s, y) / q), y - s) if q > 0 else 0.0

    def loss(self, s, y):
        return max(0.0, abs(y - s) - self.epsilon)


@dataclass
class Weighted:
    """The step for an example of some importance.

    Above 1 that of an example with ``importance`` times the cost C; a rule without cost goes as far as it always does,
    one that does not look at the length that many times as far. Below 1 a part of the usual step.
    """

    rule: object
    importance: float

    def step(self, s, y, q):
        h = self.importance
        if h <= 1:
            return h * self.rule.step(s, y, q)
        if isinstance(self.rule, (Aggressive, NormalisedLeastMeanSquares)):
            return self.rule.step(s, y, q)
        if hasattr(self.rule, "C"):
            return replace(self.rule, C=h * self.rule.C).step(s, y, q)
        return h * self.rule.step(s, y, q)

    def loss(self, s, y):
        return self.rule.loss(s, y)


def hinge_loss(s, y):
    return max(0.0, 1 - y * s)


# ---------------------------------------------------------------- geometries: how a step changes the weights
#
# begin(free, outputs): ``free`` marks the inputs without penalty (the constant one). w is inputs x outputs.
# length(c, x): the squared length of an example, as a rule sees it.
# seen_by(x): the weights that score an example before it is learned from.
# step(c, x, t, q): move output c. done(): after every example, learned from or not.


class Geometry:
    theta = 0.0
    importance = 1.0  # of the present example

    def begin(self, free, outputs):
        self.free = np.asarray(free, dtype=bool)
        self.w = np.zeros((len(free), outputs))

    def begin_at(self, w):
        """Begin with other weights."""
        self.w = w.copy()

    def length(self, c, x):
        return x @ x

    def seen_by(self, x):
        """The weights that an example is scored by before it is learned from."""
        return self.w

    def done(self):
        pass

    def add_output(self):
        """One output more, as new as all were at the beginning; returns its weights."""
        known = {name: array for name, array in vars(self).items() if np.ndim(array) == 2}
        others = {name: value for name, value in vars(self).items() if name not in known}
        self.begin(self.free, self.w.shape[1] + 1)
        for name, array in known.items():
            getattr(self, name)[:, :-1] = array
        vars(self).update(others)
        return self.w[:, -1:].copy()


class Penalised(Geometry):
    """w = soft(S, Q) with the sums S of all steps and Q of all l1 penalties; l2 shrinks both by 1 + r l2.

    It always minimises -<S, w> + Q |w|_1 + |w|_2^2 / 2: dual averaging. The rate may differ from weight to weight.
    """

    def begin(self, free, outputs):
        super().begin(free, outputs)
        self.S, self.Q = self.w.copy(), np.zeros_like(self.w)

    def begin_at(self, w):
        self.w, self.S = w.copy(), w.copy()

    def penalise(self, rate):
        under = ~self.free[:, None] * rate  # the constant feature is free of it
        self.S = self.S / (1 + under * self.l2)
        self.Q = (self.Q + under * self.l1) / (1 + under * self.l2)
        self.w = np.sign(self.S) * np.maximum(0.0, np.abs(self.S) - self.Q)


@dataclass
class Additive(Penalised):
    rate: float = 1.0
    schedule: str = "constant"
    l1: float = 0.0
    l2: float = 0.0

    def begin(self, free, outputs):
        super().begin(free, outputs)
        self.t = 1

    def rate_now(self):
        if self.schedule == "constant":
            return self.rate
        if self.schedule == "1/sqrt(t)":
            return self.rate / math.sqrt(self.t)
        return self.rate / (self.l2 * self.t)

    def step(self, c, x, t, q):
        self.S[:, c] += self.rate_now() * t * x

    def add_output(self):
        made = super().add_output()
        self.Q[:, -1] = self.Q[:, 0]  # as if it had been there all along
        return made

    def done(self):
        self.penalise(self.rate_now())
        self.t += 1


@dataclass
class AdaGrad(Penalised):
    rate: float = 1.0
    l1: float = 0.0
    l2: float = 0.0

    def begin(self, free, outputs):
        super().begin(free, outputs)
        self.G = np.zeros_like(self.w)

    def rates(self):
        return np.divide(self.rate, np.sqrt(self.G), out=np.zeros_like(self.G), where=self.G > 0)

    def step(self, c, x, t, q):
        self.G[:, c] += (t * x) ** 2
        self.S[:, c] += self.rates()[:, c] * t * x

    def done(self):
        self.penalise(self.rates())


@dataclass
class FadingAdaGrad(Geometry):
    rate: float = 1.0
    memory: float = 1000.0

    def begin(self, free, outputs):
        super().begin(free, outputs)
        self.G = np.zeros_like(self.w)

    def step(self, c, x, t, q):
        for i in np.flatnonzero(x):
            self.G[i, c] = (1 - 1 / self.memory) * self.G[i, c] + (t * x[i]) ** 2
            self.w[i, c] += self.rate * t * x[i] / math.sqrt(self.G[i, c])


@dataclass
class AROW(Geometry):
    r: float = 1.0

    def begin(self, free, outputs):
        super().begin(free, outputs)
        self.S = np.ones_like(self.w)

    def length(self, c, x):
        return x @ (self.S[:, c] * x)

    def step(self, c, x, t, q):
        S = self.S[:, c]
        self.w[:, c] += t * S * x
        self.S[:, c] = S - (S * x) ** 2 / (q + self.r / self.importance)


@dataclass
class FTRL(Geometry):
    """Algorithm 1 of McMahan et al. (2013), with a negative step for their gradient."""

    rate: float = 0.1
    beta: float = 1.0
    l1: float = 0.0
    l2: float = 0.0

    def begin(self, free, outputs):
        super().begin(free, outputs)
        self.z, self.n = np.zeros_like(self.w), np.zeros_like(self.w)

    def step(self, c, x, t, q):
        for i in np.flatnonzero(x):
            l1, l2 = (0.0, 0.0) if self.free[i] else (self.l1, self.l2)
            g = -t * x[i]
            sigma = (math.sqrt(self.n[i, c] + g * g) - math.sqrt(self.n[i, c])) / self.rate
            self.z[i, c] += g - sigma * self.w[i, c]
            self.n[i, c] += g * g
            z, n = self.z[i, c], self.n[i, c]
            if abs(z) <= l1:
                self.w[i, c] = 0.0
            else:
                self.w[i, c] = -(z - math.copysign(l1, z)) / ((self.beta + math.sqrt(n)) / self.rate + l2)


@dataclass
class Winnow(Geometry):
    alpha: float = 2.0
    threshold: float | None = None

    def begin(self, free, outputs):
        super().begin(free, outputs)
        self.w += 1.0
        features = len(free) - np.count_nonzero(free)
        self.theta = float(features) if self.threshold is None else self.threshold

    def step(self, c, x, t, q):
        self.w[:, c] *= self.alpha ** (t * x)


@dataclass
class BalancedWinnow(Geometry):
    alpha: float = 2.0
    threshold: float = 0.0

    def begin(self, free, outputs):
        super().begin(free, outputs)
        self.theta = self.threshold
        self.plus, self.minus = np.ones_like(self.w), np.ones_like(self.w)

    def step(self, c, x, t, q):
        self.plus[:, c] *= self.alpha ** (t * x)
        self.minus[:, c] *= self.alpha ** (-t * x)
        self.w = self.plus - self.minus


@dataclass
class Exponentiated(Geometry):
    eta: float = 0.1

    def begin(self, free, outputs):
        super().begin(free, outputs)
        self.w += 1 / len(free)

    def step(self, c, x, t, q):
        moved = self.w[:, c] * np.exp(self.eta * t * x)
        self.w[:, c] = moved / moved.sum()


@dataclass
class ScInOL(Geometry):
    """Algorithm 2 of Kempka, Kotlowski & Warmuth (2019), on the examples that have a step."""

    epsilon: float = 1.0

    def begin(self, free, outputs):
        super().begin(free, outputs)
        self.G, self.S2, self.M = (np.zeros_like(self.w) for _ in range(3))
        self.eta = np.full_like(self.w, self.epsilon)

    def bets(self, M):
        w = np.zeros_like(self.w)
        for at in zip(*np.nonzero(self.S2 + M**2)):
            root = math.sqrt(self.S2[at] + M[at] ** 2)
            theta = self.G[at] / root
            w[at] = math.copysign(min(abs(theta), 1.0), theta) / (2 * root) * self.eta[at]
        return w

    def seen_by(self, x):
        return self.bets(np.maximum(self.M, np.abs(x)[:, None]))

    def step(self, c, x, t, q):
        self.M[:, c] = np.maximum(self.M[:, c], np.abs(x))
        w = self.bets(self.M)[:, c]
        self.eta[:, c] = np.maximum(self.eta[:, c] + t * x * w, self.eta[:, c] / 2)
        self.G[:, c] += t * x
        self.S2[:, c] += (t * x) ** 2
        self.w = self.bets(self.M)


# ---------------------------------------------------------------- outputs: scores -> the step of every output


def best_rival(s, gold):
    """The class other than the right one with the highest score; of equals the first."""
    return max((c for c in range(len(s)) if c != gold), key=lambda c: (s[c], -c))


def margin_over_rival(s, gold):
    return s[gold] - s[best_rival(s, gold)]


def binary(rule, geometry, x, y, s):
    """One output, y = -1 or +1 (or a number, in regression)."""
    q = geometry.length(0, x)
    return {0: (rule.step(s[0], y, q), q)}, s[0] * y <= 0, rule.loss(s[0], y)


def one_vs_all(rule, geometry, x, gold, s):
    """A binary problem a class."""
    moves = {}
    for c in range(len(s)):
        q = geometry.length(c, x)
        moves[c] = rule.step(s[c], +1.0 if c == gold else -1.0, q), q
    return moves, margin_over_rival(s, gold) <= 0, math.nan  # which of the losses? nobody says


def true_multiclass(rule, geometry, x, gold, s):
    """A binary problem on the difference between x in the gold class's place and x in the rival's."""
    rival = best_rival(s, gold)
    q = geometry.length(gold, x) + geometry.length(rival, x)
    margin = s[gold] - s[rival]
    t = rule.step(margin, +1.0, q)
    return {gold: (t, q), rival: (-t, q)}, margin <= 0, rule.loss(margin, +1.0)


def softmax(rule, geometry, x, gold, s):
    """The gradient of log P(gold): the feature of the gold class minus its expectation."""
    P = np.exp(s - s.max())
    P /= P.sum()
    moves = {c: (rule.importance * ((c == gold) - P[c]), geometry.length(c, x)) for c in range(len(s))}
    return moves, margin_over_rival(s, gold) <= 0, -math.log(P[gold])


OUTPUTS = {"binary": binary, "one-vs-all": one_vs_all, "true": true_multiclass, "softmax": softmax}


# ---------------------------------------------------------------- learning, with nothing forgotten


@dataclass
class Trail:
    """All that happened: the hypothesis before the first example and after each, and how each example went."""

    hypotheses: list
    bias: float
    theta: float
    sparse: np.ndarray  # the inputs whose weights are under l1
    mistaken: list = field(default_factory=list)
    changed: list = field(default_factory=list)
    losses: list = field(default_factory=list)

    @property
    def mistakes(self):
        return sum(self.mistaken)

    @property
    def updates(self):
        return sum(self.changed)

    def split(self, w):
        """A hypothesis as scikit-learn's coef_ and intercept_."""
        if not self.bias:
            return w.T, np.full(w.shape[1], -self.theta)
        return w[1:].T, self.bias * w[0] - self.theta


def with_constant(X, bias):
    X = np.asarray(X, dtype=np.float64)
    return np.column_stack([np.full(len(X), bias), X]) if bias else X


def learn(rule, geometry, output, X, y, *, outputs=1, weight=None, epochs=1, bias=1.0, start=None):
    """Take a fresh geometry through the examples, in the order given; from given weights, if any."""
    decide = OUTPUTS[output]
    inputs = with_constant(X, bias)
    geometry.begin([False] * np.shape(X)[1] if not bias else [True] + [False] * np.shape(X)[1], outputs)
    if start is not None:
        geometry.begin_at(start)
    sparse = ~geometry.free[:, None] & (getattr(geometry, "l1", 0.0) > 0)
    trail = Trail([geometry.w.copy()], bias, geometry.theta, sparse)
    weight = np.ones(len(y)) if weight is None else weight
    for _ in range(epochs):
        for x, label, importance in zip(inputs, y, weight):
            learn_example(rule, geometry, decide, x, label, importance, trail)
    return trail


def learn_example(rule, geometry, decide, x, label, importance, trail):
    s = x @ geometry.seen_by(x) - geometry.theta
    moves, mistake, loss = decide(Weighted(rule, importance), geometry, x, label, s)
    for c, (t, q) in moves.items():
        if t != 0:
            geometry.importance = importance
            geometry.step(c, x, t, q)
    geometry.done()
    trail.hypotheses.append(geometry.w.copy())
    trail.mistaken.append(bool(mistake))
    trail.changed.append(any(t != 0 for t, _ in moves.values()))
    trail.losses.append(loss)


# ---------------------------------------------------------------- stabilizers: which hypothesis is handed out


def last(trail):
    return trail.hypotheses[-1]


def averaged(trail):
    """Each hypothesis weighted by the number of examples it was in force after; under l1 zero where the last one is."""
    return with_zeros(trail, np.mean(trail.hypotheses[1:], axis=0))


def with_zeros(trail, mean):
    return np.where(trail.sparse & (trail.hypotheses[-1] == 0), 0.0, mean)


def averaged_over(window, trail):
    """Each hypothesis weighs 1 - 1/window of the one after the next example."""
    weights = (1 - 1 / window) ** np.arange(len(trail.hypotheses) - 1)[::-1]
    return with_zeros(trail, np.average(trail.hypotheses[1:], axis=0, weights=weights))


def survivor(trail):
    """The end of the longest run of examples without a mistake; a run that still goes on wins a tie."""
    best, longest, run = None, 0, 0
    for in_force, mistake in zip(trail.hypotheses, trail.mistaken):
        if not mistake:
            run += 1
            continue
        if run > longest:
            best, longest = in_force, run
        run = 0
    return trail.hypotheses[-1] if run >= longest else best


STABILIZERS = {"last": last, "averaged": averaged, "survivor": survivor}


def voted(trail, X):
    """The part of the votes each output gets: each hypothesis has a vote for every example it was in force
    after. With one output, the votes for it less those against it; a score of zero is against."""
    inputs = with_constant(X, trail.bias)
    votes = np.zeros((len(inputs), trail.hypotheses[0].shape[1]))
    for w in trail.hypotheses[1:]:
        s = inputs @ w - trail.theta
        if s.shape[1] == 1:
            votes += np.where(s > 0, 1.0, -1.0)
        else:
            votes[np.arange(len(s)), np.argmax(s, axis=1)] += 1.0
    return votes / (len(trail.hypotheses) - 1)
