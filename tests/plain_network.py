"""The textbook's network, an example at a time in double precision: what the fast one is held against."""

from __future__ import annotations

import numpy as np

UNITS = {
    "relu": (lambda z: np.maximum(z, 0.0), lambda z: (z > 0).astype(float)),
    "tanh": (np.tanh, lambda z: 1 / np.cosh(z) ** 2),
    "logistic": (lambda z: 1 / (1 + np.exp(-z)), lambda z: np.exp(-z) / (1 + np.exp(-z)) ** 2),
}


def error(loss, s, y):
    """E of the scores of one example."""
    if loss == "regression":
        return (s[0] - y) ** 2 / 2
    if loss == "softmax":
        return np.log(np.exp(s).sum()) - s[int(y)]
    t = np.array([y]) if len(s) == 1 else np.eye(len(s))[int(y)]
    o = 1 / (1 + np.exp(-s))
    if loss == "squared":
        return ((o - t) ** 2).sum() / 2
    return -(t * np.log(o) + (1 - t) * np.log(1 - o)).sum()


def scores(unit, W, b, x):
    """Forward."""
    a = x
    for n in range(len(W)):
        z = a @ W[n] + b[n]
        a = UNITS[unit][0](z) if n < len(W) - 1 else z
    return a


def gradients(unit, loss, W, b, x, y):
    """Backward: dE/dW and dE/db of one example, and E."""
    a, z = [x], []
    for n in range(len(W)):
        z.append(a[-1] @ W[n] + b[n])
        a.append(UNITS[unit][0](z[-1]) if n < len(W) - 1 else z[-1])
    s = z[-1]
    t = np.array([y]) if len(s) == 1 else np.eye(len(s))[int(y)]
    if loss == "softmax":
        d = np.exp(s) / np.exp(s).sum() - t
    elif loss == "regression":
        d = s - y
    else:
        o = 1 / (1 + np.exp(-s))
        d = (o - t) * (o * (1 - o) if loss == "squared" else 1.0)
    dW, db = [None] * len(W), [None] * len(W)
    for n in range(len(W) - 1, -1, -1):
        dW[n], db[n] = np.outer(a[n], d), d
        if n:
            d = (W[n] @ d) * UNITS[unit][1](z[n - 1])
    return dW, db, error(loss, s, y)


class PlainOptimizer:
    """The formulas of the optimizers for one array."""

    def __init__(self, choice, l2):
        self.choice, self.l2, self.t, self.kept = choice, l2, 0, {}

    def step(self, key, w, g, penalised):
        """The array after step ``self.t``."""
        g = g + (self.l2 * w if penalised else 0.0)
        powers = {"constant": 0.0, "1/sqrt(t)": 0.5, "1/(lambda t)": 1.0}
        rate = self.choice.rate / self.t ** powers[self.choice.schedule]
        rate = rate / self.l2 if self.choice.schedule == "1/(lambda t)" else rate
        first, second = self.kept.get(key, (np.zeros_like(w), np.zeros_like(w)))
        if self.choice.name == "sgd":
            first = self.choice.momentum * first - rate * g
            change = first
        elif self.choice.name == "adagrad":
            first = first + g * g
            change = -rate * g / (np.sqrt(first) + 1e-8)
        else:
            b1, b2 = self.choice.beta1, self.choice.beta2
            first, second = b1 * first + (1 - b1) * g, b2 * second + (1 - b2) * g * g
            right = np.sqrt(1 - b2**self.t) / (1 - b1**self.t)
            change = -rate * right * first / (np.sqrt(second) + self.choice.epsilon)
        self.kept[key] = first, second
        return w + change


def train(unit, loss, W, b, choice, l2, batch, X, y, weight):
    """One pass in the order of the rows; the weights and the sum of errors."""
    W, b, optimizer, total = [w.copy() for w in W], [c.copy() for c in b], PlainOptimizer(choice, l2), 0.0
    for start in range(0, len(X), batch):
        rows = range(start, min(start + batch, len(X)))
        sums_W, sums_b = [np.zeros_like(w) for w in W], [np.zeros_like(c) for c in b]
        for i in rows:
            dW, db, cost = gradients(unit, loss, W, b, X[i], y[i])
            total += weight[i] * cost
            for n in range(len(W)):
                sums_W[n] += weight[i] * dW[n] / len(rows)
                sums_b[n] += weight[i] * db[n] / len(rows)
        optimizer.t += 1
        for n in range(len(W)):
            W[n] = optimizer.step(("W", n), W[n], sums_W[n], penalised=True)
            b[n] = optimizer.step(("b", n), b[n], sums_b[n], penalised=False)
    return W, b, total
