"""How a gradient changes the weights of a network: gradient descent with momentum, AdaGrad and Adam.

A step t with gradient g, the penalty l2 |w|^2 / 2 included, and the rate r_t of the schedule:

    sgd       w <- w - r_t g                                       (momentum a:  u <- a u - r_t g,  w <- w + u)
    adagrad   s <- s + g^2,                                        w <- w - r_t g / (sqrt(s) + e)
    adam      m <- b1 m + (1 - b1) g,  v <- b2 v + (1 - b2) g^2,   w <- w - r_t c_t m / (sqrt(v) + e)

with c_t = sqrt(1 - b2^t) / (1 - b1^t), for m and v begin at zero. (Duchi, Hazan & Singer 2011; Kingma & Ba 2015, in
the form at the end of their section 2.) Each weight goes its own way, so the state of an optimizer is a few arrays
beside the weights, and ``advance`` is one walk over all of them.

**Weights that nobody touches.** A sparse row has a gradient for the weights of its features only, but under momentum,
Adam or l2 the others move, too. ``coast`` takes them through the steps that they missed when they are next needed, in
the processor's registers: they are late, not approximate. The rates of past steps are kept for that (``Rates``), and
all weights are brought up to date when there is no room for more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlearn.compiler.inlining import Loop, Verb
from onlearn.engine.geometry.additive import POWERS
from onlearn.engine.spec import Family, choice, param

FASTEST = 1e9  # of a rate
SCHEDULE = "how the rate falls with the steps: by 1, sqrt(t) or l2 t"
LARGEST = 1e15  # of a weight: sums of many products of two such are finite in single precision
FAINT, FAINTER = 1e-20, 1e-36  # what decays is zero below: numbers without a leading digit are slow
REMEMBERED = 1024  # steps whose rates are kept


class Usual:
    """What is said of an optimizer that says nothing else."""

    rate: float
    schedule: str

    def rates(self, steps: np.ndarray, l2: float) -> np.ndarray:
        """The rates of some steps, counted from 1."""
        start = self.rate / l2 if self.schedule == "1/(lambda t)" else self.rate
        return np.asarray(start * steps ** -POWERS[self.schedule])

    def check_l2(self, l2: float) -> None:
        """Refuse an l2 that the schedule cannot do with."""
        if self.schedule == "1/(lambda t)" and not self.rate < FASTEST * l2:
            raise ValueError(f'the schedule "1/(lambda t)" needs l2, its lambda, above 0 and not tiny, not {l2:g}')


OPTIMIZERS = Family("optimizer", Usual)


@choice(OPTIMIZERS, "sgd")
class SGD:
    """Stochastic gradient descent, with momentum if that is above 0."""

    rate: float = param(0.01, "learning rate", above=0, below=FASTEST)
    momentum: float = param(0.0, "share of the last step that is taken again", at_least=0, below=1)
    schedule: str = param("constant", SCHEDULE, words=tuple(POWERS))

    def start(self, w):
        return MomentumState(w, np.zeros_like(w), self.knobs(w)) if self.momentum else PlainState(w, self.knobs(w))

    def knobs(self, w):
        return np.array([self.momentum], w.dtype)


@choice(OPTIMIZERS, "adagrad")
class AdaGrad:
    """A rate for each weight, r / sqrt(its sum of squared gradients): rare features keep a large one."""

    rate: float = param(0.02, "learning rate", above=0, below=FASTEST)
    schedule: str = param("constant", SCHEDULE, words=tuple(POWERS))

    def start(self, w):
        return AdaGradState(w, np.zeros_like(w), self.knobs(w))

    def knobs(self, w):
        return np.array([1e-8], w.dtype)


@choice(OPTIMIZERS, "adam")
class Adam:
    """Means of the gradients and of their squares, that forget: r m / sqrt(v)."""

    rate: float = param(0.001, "learning rate", above=0, below=FASTEST)
    beta1: float = param(0.9, "what the mean of the gradients keeps at a step", at_least=0, below=1)
    beta2: float = param(0.999, "what the mean of their squares keeps", at_least=0, below=1)
    epsilon: float = param(1e-8, "added to sqrt(v)", above=0)
    schedule: str = param("constant", SCHEDULE, words=tuple(POWERS))

    def start(self, w):
        return AdamState(w, np.zeros_like(w), np.zeros_like(w), self.knobs(w))

    def knobs(self, w):
        return np.array([self.beta1, self.beta2, self.epsilon], w.dtype)

    def rates(self, steps, l2):
        """With the correction c_t."""
        usual = Usual.rates(self, steps, l2)
        return usual * np.sqrt(1.0 - self.beta2**steps) / (1.0 - self.beta1**steps)


class PlainState(NamedTuple):
    w: np.ndarray
    knobs: np.ndarray


class MomentumState(NamedTuple):
    w: np.ndarray
    u: np.ndarray
    knobs: np.ndarray  # momentum


class AdaGradState(NamedTuple):
    w: np.ndarray
    s: np.ndarray
    knobs: np.ndarray  # epsilon


class AdamState(NamedTuple):
    w: np.ndarray
    m: np.ndarray
    v: np.ndarray
    knobs: np.ndarray  # beta1, beta2, epsilon


MOMENTS = ("u", "s", "m", "v")  # the fields with a number for each weight, beside w


class Rates(NamedTuple):
    """The rates of the latest steps, and up to which step the weights of each feature are up to date."""

    past: np.ndarray  # that of step t at t % REMEMBERED
    step: np.ndarray  # steps so far
    last: np.ndarray  # for each feature; -1: its weights are as they began, and nothing moves them
    l2: np.ndarray


# ----------------------------------------------------------------------------------------------------
# Steps. What would not be a sound number leaves the weight as it was, and is counted. (Places are unsigned, for Numba
# counts negative ones from the end; and constants have the type of the weights, for else single precision becomes
# double.)


@Verb
def advance(o, first, count, grad, at, rate, l2):
    """One step of the weights from ``first`` on, with the gradients from ``at`` on; returns how many could not be."""


@advance.on(PlainState)
def _(o, first, count, grad, at, rate, l2):
    limit, zero, one = o.w.dtype.type(LARGEST), o.w.dtype.type(0), o.w.dtype.type(1)
    refused = zero
    for k in range(np.uint64(count)):
        j = np.uint64(first) + k
        w = o.w[j]
        new = w - rate * (grad[np.uint64(at) + k] + l2 * w)
        sound = abs(new) <= limit
        o.w[j] = new if sound else w
        refused += zero if sound else one
    return refused


@advance.on(MomentumState)
def _(o, first, count, grad, at, rate, l2):
    momentum, limit, faint = o.knobs[0], o.w.dtype.type(LARGEST), o.w.dtype.type(FAINT)
    zero, one = o.w.dtype.type(0), o.w.dtype.type(1)
    refused = zero
    for k in range(np.uint64(count)):
        j = np.uint64(first) + k
        w = o.w[j]
        u = momentum * o.u[j] - rate * (grad[np.uint64(at) + k] + l2 * w)
        u = u if abs(u) > faint else zero
        sound = abs(w + u) <= limit
        o.u[j] = u if sound else zero
        o.w[j] = w + u if sound else w
        refused += zero if sound else one
    return refused


@advance.on(AdaGradState)
def _(o, first, count, grad, at, rate, l2):
    epsilon, limit = o.knobs[0], o.w.dtype.type(LARGEST * LARGEST)
    zero, one = o.w.dtype.type(0), o.w.dtype.type(1)
    refused = zero
    for k in range(np.uint64(count)):
        j = np.uint64(first) + k
        w, before = o.w[j], o.s[j]
        g = grad[np.uint64(at) + k] + l2 * w
        s = before + g * g
        new = w - rate * g / (np.sqrt(s) + epsilon)
        sound = abs(new) + s <= limit
        o.s[j] = s if sound else before
        o.w[j] = new if sound else w
        refused += zero if sound else one
    return refused


@advance.on(AdamState)
def _(o, first, count, grad, at, rate, l2):
    keep, keep2, epsilon, one = o.knobs[0], o.knobs[1], o.knobs[2], o.w.dtype.type(1)
    faint, fainter, zero = o.w.dtype.type(FAINT), o.w.dtype.type(FAINTER), o.w.dtype.type(0)
    add, add2, limit = one - keep, one - keep2, o.w.dtype.type(LARGEST * LARGEST)
    refused = zero
    for k in range(np.uint64(count)):
        j = np.uint64(first) + k
        w, m_before, v_before = o.w[j], o.m[j], o.v[j]
        g = grad[np.uint64(at) + k] + l2 * w
        m = keep * m_before + add * g
        v = keep2 * v_before + add2 * g * g
        m = m if abs(m) > faint else zero
        v = v if v > fainter else zero
        new = w - rate * m / (np.sqrt(v) + epsilon)
        sound = abs(new) + v <= limit
        o.m[j] = m if sound else m_before
        o.v[j] = v if sound else v_before
        o.w[j] = new if sound else w
        refused += zero if sound else one
    return refused


# ----------------------------------------------------------------------------------------------------
# Steps that were missed, those after ``since`` up to ``now``: their gradient is that of the penalty alone.


@Verb
def coast(o, first, count, rates, since, now):
    """Take the weights from ``first`` on through the steps that they missed."""


@coast.on(PlainState, object)
def _(o, first, count, rates, since, now):
    l2 = rates.l2[0]
    if l2 != 0.0:
        for t in range(since + 1, now + 1):
            shrink = rates.past[t % REMEMBERED] * l2
            for k in range(np.uint64(first), np.uint64(first + count)):
                o.w[k] -= shrink * o.w[k]


@coast.on(MomentumState, object)
def _(o, first, count, rates, since, now):
    l2, momentum = rates.l2[0], o.knobs[0]
    faint, zero = o.w.dtype.type(FAINT), o.w.dtype.type(0)
    t, moving = since + 1, True
    while t <= now and moving:
        shrink, total = rates.past[t % REMEMBERED] * l2, zero
        for k in range(np.uint64(first), np.uint64(first + count)):
            u = momentum * o.u[k] - shrink * o.w[k]
            u = u if abs(u) > faint else zero
            o.u[k] = u
            o.w[k] += u
            total += abs(u)
        moving = total > zero or l2 > zero
        t += 1


@coast.on(AdaGradState, object)
def _(o, first, count, rates, since, now):
    l2, epsilon = rates.l2[0], o.knobs[0]
    if l2 != 0.0:
        for t in range(since + 1, now + 1):
            rate = rates.past[t % REMEMBERED]
            for k in range(np.uint64(first), np.uint64(first + count)):
                g = l2 * o.w[k]
                s = o.s[k] + g * g
                o.s[k] = s
                o.w[k] -= rate * g / (np.sqrt(s) + epsilon)


@coast.on(AdamState, object)
def _(o, first, count, rates, since, now):
    l2, keep, keep2, epsilon, one = rates.l2[0], o.knobs[0], o.knobs[1], o.knobs[2], o.w.dtype.type(1)
    faint, fainter, zero = o.w.dtype.type(FAINT), o.w.dtype.type(FAINTER), o.w.dtype.type(0)
    add, add2 = one - keep, one - keep2
    t, moving = since + 1, True
    while t <= now and moving:
        rate, total = rates.past[t % REMEMBERED], zero
        for k in range(np.uint64(first), np.uint64(first + count)):
            g = l2 * o.w[k]
            m = keep * o.m[k] + add * g
            v = keep2 * o.v[k] + add2 * g * g
            m = m if abs(m) > faint else zero
            v = v if v > fainter else zero
            o.m[k] = m
            o.v[k] = v
            o.w[k] -= rate * m / (np.sqrt(v) + epsilon)
            total += abs(m)
        moving = total > zero or l2 > zero
        t += 1
    if t <= now:  # the weights have come to rest, and only v decays
        left = o.w.dtype.type(keep2 ** (now + 1 - t))
        for k in range(np.uint64(first), np.uint64(first + count)):
            v = left * o.v[k]
            o.v[k] = v if v > fainter else zero


# ----------------------------------------------------------------------------------------------------
# What is called from Python.


@Loop
def take_step(o, first, count, grad, at, rate, l2):
    """A step of some weights that lie one after another; returns how many could not take it."""
    refused = advance(o, first, count, grad, at, rate, l2)
    return np.float64(refused)


@Loop
def catch_up_rows(o, rates, features, count, width):
    """Bring the weights of some features up to date, ``width`` for each."""
    now = rates.step[0]
    for n in range(count):
        j = features[n]
        since = rates.last[j]
        if 0 <= since < now:
            coast(o, j * width, width, rates, since, now)
            rates.last[j] = now


@Loop
def step_rows(o, rates, features, count, width, grad, rate, l2):
    """The same for the weights of some features, with a row of gradients for each."""
    now, refused = rates.step[0], 0.0
    for n in range(count):
        j = features[n]
        refused += advance(o, j * width, width, grad, n * width, rate, l2)
        rates.last[j] = now
    return refused
