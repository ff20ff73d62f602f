"""A bank: learners that see the same rows, with their weights side by side, so that one gather serves all.

A bank is a ``Training`` whose outputs are those of its K members: output c of member m stands at c*K + m. Members that
differ in nothing but the rate of an additive or AdaGrad geometry share a bank; any other learner is a bank of one. Each
member learns as it would alone; its sums are taken in another order, so they differ in their last digits.

Before the members learn from an example, the bank takes down what a mixture needs (``record``): with L_m the log-loss
of member m so far and L the smallest of them, for each class c the sum of e^(L - L_m) p_m(c). Where a rule's scores are
no log-odds, they are taken for such all the same: p = 1 / (1 + e^-s), or the softmax of the scores.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import prefetch
from onlearn.compiler.inlining import Verb, helper
from onlearn.compiler.intrinsics import adapt_rows, add_rows, logistic_losses
from onlearn.engine.geometry import AdaGrad, Additive
from onlearn.engine.geometry.additive import POWERS
from onlearn.engine.loops import (
    DOUBLINGS,
    DUE,
    HIGHEST_LOSS,
    KEPT,
    LOSS,
    MISTAKES,
    SEEN,
    UPDATES,
    Audit,
    decide,
    record,
    take_steps,
)
from onlearn.engine.protocol import (
    LARGEST,
    Geometry,
    Numbers,
    Outputs,
    Weights,
    clock,
    expect,
    layout,
    move,
    settle,
    stride,
)
from onlearn.engine.rows import (
    FOUR,
    LINE,
    ONE,
    THREE,
    TWO,
    Sparse,
    column,
    scores,
    span,
    sqnorm,
    sqnorms,
    step_all,
)
from onlearn.engine.stabilizers import AveragedState, LastState
from onlearn.engine.training import Chronicle, Training

# ----------------------------------------------------------------------------------------------------
# Geometries that differ in the rate.


class AdditiveBankState(NamedTuple):
    w: Weights
    steps: Numbers
    power: Numbers  # of t, that the rates are divided by
    rates: Outputs


@stride.on(AdditiveBankState)
def _(g, t, c):
    return t * (g.rates[c] if g.power[0] == 0.0 else g.rates[c] * (g.steps[0] + 1.0) ** -g.power[0])


@move.on(AdditiveBankState)
def _(g, j, x, t, sqnorm):
    change = min(max(t * x, -LARGEST), LARGEST)
    g.w[j] += change
    return change


@settle.on(AdditiveBankState, object)
def _(g, st):
    g.steps[0] += 1.0


class AdaGradBankState(NamedTuple):
    w: Weights
    squares: Weights
    rates: Outputs


@Verb
def past(st):
    """Where a stabilizer keeps what changes have missed, all of them at the same clock; empty if it keeps nothing."""


@past.on(LastState)
def _(st):
    return st.nothing[:0]


@past.on(AveragedState)
def _(st):
    return st.u


@scores.on(Sparse, AdaGradBankState, object)
def _(rows, i, g, st, out):
    start, stop = span(rows, i)
    outputs = np.uint64(len(out))
    for p in range(start, stop):  # what the step will touch, too: the row is in the cache by then
        far = (np.uint64(rows.indices[p]) + ONE) * outputs
        for c in range(np.uint64(0), outputs, np.uint64(LINE // 8)):
            prefetch(g.w, far + c)
            prefetch(g.squares, far + c)
            expect(g, st, far + c)
    for c in range(outputs):
        out[c] = rows.bias * g.w[c]
    p = start
    while p + THREE < stop:
        j0, x0 = (np.uint64(rows.indices[p]) + ONE) * outputs, rows.data[p]
        j1, x1 = (np.uint64(rows.indices[p + ONE]) + ONE) * outputs, rows.data[p + ONE]
        j2, x2 = (np.uint64(rows.indices[p + TWO]) + ONE) * outputs, rows.data[p + TWO]
        j3, x3 = (np.uint64(rows.indices[p + THREE]) + ONE) * outputs, rows.data[p + THREE]
        add_rows(out, g.w, (j0, j1, j2, j3), (x0, x1, x2, x3))
        p += FOUR
    for n in range(p, stop):
        x, j = rows.data[n], (np.uint64(rows.indices[n]) + ONE) * outputs
        for c in range(outputs):
            out[c] += x * g.w[j + c]


@step_all.on(object, AdaGradBankState, object, object)
def _(rows, i, g, st, out):
    start, stop = span(rows, i)
    outputs, at, missed, p = np.uint64(len(out.t)), clock(st, 0), past(st), start
    if rows.bias != 0.0:
        adapt_rows(g.w, g.squares, missed, at, (np.uint64(0),), out.t, g.rates, (rows.bias,), LARGEST)
    while p + THREE < stop:
        j0, x0 = (column(rows, p, start) + ONE) * outputs, np.float64(rows.data[p])
        j1, x1 = (column(rows, p + ONE, start) + ONE) * outputs, np.float64(rows.data[p + ONE])
        j2, x2 = (column(rows, p + TWO, start) + ONE) * outputs, np.float64(rows.data[p + TWO])
        j3, x3 = (column(rows, p + THREE, start) + ONE) * outputs, np.float64(rows.data[p + THREE])
        adapt_rows(g.w, g.squares, missed, at, (j0, j1, j2, j3), out.t, g.rates, (x0, x1, x2, x3), LARGEST)
        p += FOUR
    for n in range(p, stop):
        j = (column(rows, n, start) + ONE) * outputs
        adapt_rows(g.w, g.squares, missed, at, (j,), out.t, g.rates, (np.float64(rows.data[n]),), LARGEST)


STATES = {Additive: AdditiveBankState, AdaGrad: AdaGradBankState}


def zeros_on_lines(count: int) -> np.ndarray:
    """Zeros from the beginning of a cache line, so that eight weights side by side are on one line, not on two."""
    made = np.zeros(count + LINE // 8)
    skip = -made.ctypes.data % LINE // 8
    return made[skip : skip + count]


class Rates(Geometry):
    """The geometry of a bank: that of its members, each with its own rate."""

    name = "rates"
    signed = True

    def __init__(self, members: list[Any]) -> None:
        self.members: list[Any] = members

    def start(self, features: int, outputs: int) -> Any:
        count, rates = features * outputs, np.array([one.rate for one in self.members])
        first, rates = self.members[0], np.tile(rates, outputs // len(self.members))
        if isinstance(first, AdaGrad):
            return AdaGradBankState(zeros_on_lines(count), zeros_on_lines(count), rates)
        return AdditiveBankState(zeros_on_lines(count), np.zeros(1), np.array([POWERS[first.schedule]]), rates)

    def without_constant(self, state: Any) -> None:
        """Weights start at zero, and that of a constant feature of size 0 stays there."""

    def mend(self, state: Any) -> None:
        """There are no sums over weights."""

    def __repr__(self) -> str:
        return f"rates({', '.join(map(repr, self.members))})"


# ----------------------------------------------------------------------------------------------------
# Outputs of several members. ``decide`` looks at the scores of all of them, each by itself.


class Members(NamedTuple):
    """Two classes, any rule."""

    s: np.ndarray
    t: np.ndarray
    q: np.ndarray
    which: np.ndarray  # as those of a single learner
    p: np.ndarray  # the probability of each output; of two classes, that of the right one
    nll: np.ndarray  # the log-loss of each member
    cost: np.ndarray  # its loss by the rule
    margin: np.ndarray
    losses: np.ndarray  # its log-loss so far
    counts: np.ndarray  # one number: 1 if the losses count, 0 in passes over rows that were seen before
    tallies: np.ndarray  # mistakes of the members, then updates, then losses by the rule
    doublings: np.ndarray  # the tallies when the number of examples was a power of two
    share: np.ndarray  # room for e^(L - L_m)
    mass: np.ndarray  # taken down of each example: the sum of share times probability, by class
    notes: np.ndarray  # and NOTES numbers
    at: np.ndarray  # how many examples were taken down


class LogisticMembers(Members):
    """Two classes, the logistic rule."""


class OneVsAllMembers(Members):
    """Several classes, one binary problem a class."""


class TrueMembers(Members):
    """Several classes: promote the right one, demote its best rival."""


class SoftmaxMembers(Members):
    """Several classes: multinomial logistic regression."""


SEVERAL = {"one-vs-all": OneVsAllMembers, "true": TrueMembers, "softmax": SoftmaxMembers}

NOTES = 5
LOWEST, TOTAL, COST, CHANGED, RIGHT = range(NOTES)  # L; sum of shares; -log of the right class's mass; ...; its number
TINY = 1e-280  # a probability below which logarithms are summed instead


@helper
def log_loss(margin: float) -> float:
    """log(1 + e^-margin)"""
    return np.log(1.0 + np.exp(-abs(margin))) - min(margin, 0.0)


@decide.on(LogisticMembers, object, object)
def _(out, gold, h, rule, loss, params, measured, g, rows, i):
    logistic_losses(out.s, gold, out.margin, out.p, out.t, out.nll)
    for m in range(len(out.losses)):
        out.cost[m] = out.nll[m]
    return out.margin[0], out.cost[0]


@decide.on(Members, object, object)
def _(out, gold, h, rule, loss, params, measured, g, rows, i):
    q = sqnorm(g, rows, i, len(out.losses), 0) if measured else 1.0
    for m in range(len(out.losses)):
        margin = out.s[m] * gold
        out.q[m] = q
        out.margin[m] = margin
        out.p[m] = 1.0 / (1.0 + np.exp(-margin))
        out.t[m] = rule(out.s[m], gold, h * q, params)
        out.nll[m] = log_loss(margin)
        out.cost[m] = loss(out.s[m], gold, q, params)
    return out.margin[0], out.cost[0]


@helper
def compare(out: Any, gold: int, members: int) -> None:
    """Each member's probabilities, the margin of the right class over its best rival, and the log-loss."""
    classes = len(out.s) // members
    for m in range(members):
        top, rival, total = out.s[m], -np.inf, 0.0
        for c in range(classes):
            top = max(top, out.s[c * members + m])
            rival = max(rival, out.s[c * members + m]) if c != gold else rival
        for c in range(classes):
            out.p[c * members + m] = np.exp(out.s[c * members + m] - top)
            total += out.p[c * members + m]
        for c in range(classes):
            out.p[c * members + m] /= total
        out.margin[m] = out.s[gold * members + m] - rival
        out.nll[m] = np.log(total) - (out.s[gold * members + m] - top)


@decide.on(SoftmaxMembers, object, object)
def _(out, gold, h, rule, loss, params, measured, g, rows, i):
    members = len(out.losses)
    compare(out, gold, members)
    for j in range(len(out.s)):
        out.t[j] = -out.p[j]
    for m in range(members):
        out.t[gold * members + m] += 1.0
        out.cost[m] = out.nll[m]
    return out.margin[0], out.cost[0]


@decide.on(OneVsAllMembers, object, object)
def _(out, gold, h, rule, loss, params, measured, g, rows, i):
    members = len(out.losses)
    compare(out, gold, members)
    if measured:
        sqnorms(g, rows, i, out.q)
    for j in range(len(out.s)):
        out.t[j] = rule(out.s[j], 1.0 if j // members == gold else -1.0, h * out.q[j], params)
    for m in range(members):
        j = gold * members + m
        out.cost[m] = loss(out.s[j], 1.0, out.q[j], params)
    return out.margin[0], out.cost[0]


@decide.on(TrueMembers, object, object)
def _(out, gold, h, rule, loss, params, measured, g, rows, i):
    members, outputs = len(out.losses), len(out.s)
    compare(out, gold, members)
    for m in range(members):
        right, rival, q = gold * members + m, (1 if gold == 0 else 0) * members + m, 1.0
        for j in range(m, outputs, members):
            out.t[j] = 0.0
            rival = j if j != right and out.s[j] > out.s[rival] else rival
        if measured:
            q = sqnorm(g, rows, i, outputs, right) + sqnorm(g, rows, i, outputs, rival)
        for j in range(m, outputs, members):
            out.q[j] = q
        out.t[right] = rule(out.margin[m], 1.0, h * q, params)
        out.t[rival] = -out.t[right]
        out.cost[m] = loss(out.margin[m], 1.0, q, params)
    return out.margin[0], out.cost[0]


@take_steps.on(LogisticMembers, object, object, object)
@take_steps.on(Members, object, object, object)
@take_steps.on(SoftmaxMembers, object, object, object)
def _(out, rows, i, g, st):
    step_all(rows, i, g, st, out)


@helper
def take_down(out: Any, right: Any, classes: Any, importance: float, change: bool, tally: np.ndarray) -> None:
    """What ``record`` does; ``right`` is the right class among as many classes as there are probabilities of."""
    members, at = len(out.losses), out.at[0]
    lowest, total = out.losses[0], 0.0
    for m in range(members):
        lowest = min(lowest, out.losses[m])
    for m in range(members):
        behind = out.losses[m] - lowest
        out.share[m] = 1.0 if behind == 0.0 else np.exp(-behind) if behind < 700.0 else 0.0
        total += out.share[m]
    for c in range(classes):
        mass = 0.0
        for m in range(members):
            mass += out.share[m] * out.p[c * members + m]
        out.mass[at * classes + c] = mass
    mass, cost = out.mass[at * classes + right], 0.0
    if mass > TINY:
        cost = -np.log(mass)
    else:  # it would be rounded to nothing
        least = out.losses[0] - lowest + out.nll[0]
        for m in range(members):
            least = min(least, out.losses[m] - lowest + out.nll[m])
        mass = 0.0
        for m in range(members):
            mass += np.exp(least - (out.losses[m] - lowest + out.nll[m]))
        cost = least - np.log(mass)
    out.notes[at * NOTES + LOWEST] = lowest
    out.notes[at * NOTES + TOTAL] = total
    out.notes[at * NOTES + COST] = cost
    out.notes[at * NOTES + CHANGED] = 1.0 if change else 0.0
    out.notes[at * NOTES + RIGHT] = right
    out.at[0] = at + 1
    for m in range(members):
        stepped = False
        for c in range(m, len(out.t), members):
            stepped = stepped or out.t[c] != 0.0
        out.losses[m] += min(out.nll[m], HIGHEST_LOSS) * out.counts[0] * importance
        out.tallies[m] += out.margin[m] <= 0.0
        out.tallies[members + m] += stepped
        out.tallies[2 * members + m] += min(out.cost[m], HIGHEST_LOSS)
    if tally[SEEN] + 1.0 == tally[DUE]:
        for n in range(3 * members):
            out.doublings[np.int64(tally[KEPT]) * 3 * members + n] = out.tallies[n]


@record.on(LogisticMembers)
@record.on(Members)
def _(out, gold, importance, change, tally):
    take_down(out, 0, 1, importance, change, tally)


@record.on(OneVsAllMembers)
@record.on(TrueMembers)
@record.on(SoftmaxMembers)
def _(out, gold, importance, change, tally):
    take_down(out, gold, len(out.p) // len(out.losses), importance, change, tally)


# ----------------------------------------------------------------------------------------------------


def may_share(one: Training, other: Training) -> bool:
    """Whether two learners can be members of one bank."""
    kinds = type(one.geometry), type(other.geometry)
    alike = [
        (t.output, t.outputs, t.features, t.bias, repr(t.rule), type(t.rule), t.stabilizer.name) for t in (one, other)
    ]
    if kinds[0] is not kinds[1] or kinds[0] not in STATES or alike[0] != alike[1] or type(one.g) is not type(other.g):
        return False
    plain = {**one.geometry.get_params(), "rate": 1.0}, {**other.geometry.get_params(), "rate": 1.0}
    usual = {**kinds[0]().get_params(), **{name: plain[0][name] for name in ("schedule",) if name in plain[0]}}
    # AdaGrad's rates are multiplied in where all outputs move; survivors and votes are of a learner as a whole
    moves_all = kinds[0] is Additive or one.output in (None, "softmax")
    return plain[0] == plain[1] == usual and moves_all and one.stabilizer.name in ("last", "averaged")


class Bank(Training):
    """Learners side by side. ``count`` of them, with ``outputs / count`` outputs each."""

    def __init__(self, members: list[Training]) -> None:
        first, self.count = members[0], len(members)
        self.kind: str | None = first.output
        geometry = first.geometry if self.count == 1 else Rates([one.geometry for one in members])
        outputs = first.outputs * self.count
        super().__init__(first.rule, geometry, first.stabilizer, first.output or "binary", first.capacity, outputs,
                         first.bias)  # fmt: skip
        self.features, self.classifies = first.features, first.classifies
        self.even, self.checked = first.even, first.checked
        self.losses: np.ndarray = np.zeros(self.count)
        self.counts: np.ndarray = np.ones(1)
        self.tallies: np.ndarray = np.array([[float(one.tally[n]) for one in members] for n in KEPT_OF_MEMBERS])
        self.doublings: np.ndarray = np.stack([one.doubling.reshape(DOUBLINGS, 4)[:, :3] for one in members], axis=2)
        self.tally, self.doubling, self.passes = first.tally.copy(), first.doubling.copy(), first.passes
        self.since, self.by_pass = list(first.since), list(first.by_pass)
        self.sinces = [list(one.since) for one in members]
        self.by_passes = [list(one.by_pass) for one in members]
        for part in ("g", "st"):
            setattr(self, part, self._joined(getattr(self, part), [getattr(one, part) for one in members]))
        scores = np.stack([one.audit.scores.reshape(-1, first.outputs) for one in members], axis=2)
        now = np.zeros(outputs)
        self.audit = Audit(scores.reshape(-1), first.audit.gold.copy(), now, first.audit.due.copy())
        self.mass: np.ndarray = np.zeros(0)
        self.notes: np.ndarray = np.zeros(0)
        self.at: np.ndarray = np.zeros(1, np.int64)

    def _joined(self, fresh: Any, states: list[Any]) -> Any:
        """The state of the bank that holds those of its members."""
        if self.count == 1:
            return states[0]
        for name, holds in layout(type(fresh)).items():
            array = getattr(fresh, name)
            for m, state in enumerate(states):
                mine = getattr(state, name, None)
                if mine is None:
                    continue  # the rates, and what else is of the bank alone
                if holds == "numbers":
                    array[:] = mine
                elif mine.any():  # memory that nothing is put into takes no room
                    array.reshape(-1, self.count)[:, m] = mine
        return fresh

    # ------------------------------------------------------------------ members

    @property
    def geometries(self) -> list[Any]:
        return self.geometry.members if isinstance(self.geometry, Rates) else [self.geometry]

    def member(self, m: int) -> Training:
        """One of the learners by itself; it shares nothing with the bank."""
        outputs = self.outputs // self.count
        made = Training(self.rule, self.geometries[m], self.stabilizer, self.kind, self.capacity, outputs, self.bias)
        made.features, made.classifies, made.even = self.features, self.classifies, self.even
        for part in ("g", "st"):
            setattr(made, part, self._parted(getattr(made, part), getattr(self, part), m))
        scores = self.audit.scores.reshape(-1, outputs, self.count)[..., m]
        made.audit = Audit(scores.reshape(-1).copy(), self.audit.gold.copy(), np.zeros(outputs), self.audit.due.copy())
        chronicle = self.chronicle(m)
        for name in ("tally", "doubling", "passes", "by_pass", "since"):
            setattr(made, name, getattr(chronicle, name))
        return made

    def _parted(self, fresh: Any, state: Any, m: int) -> Any:
        """The part of a state of the bank that is of member m."""
        if self.count == 1:
            return copy.deepcopy(state)
        fields = {}
        for name, holds in layout(type(fresh)).items():
            mine = getattr(state, name, None)
            if mine is None:
                fields[name] = getattr(fresh, name)
            else:
                fields[name] = mine.copy() if holds == "numbers" else mine.reshape(-1, self.count)[:, m].copy()
        return type(fresh)(**fields)

    def chronicle(self, m: int) -> Chronicle:
        """What happened to member m."""
        made = Chronicle()
        made.tally[:] = self.tally
        made.tally[list(KEPT_OF_MEMBERS)] = self.tallies[:, m]
        doubling = self.doubling.reshape(DOUBLINGS, 4).copy()
        doubling[:, :3] = self.doublings[:, :, m]
        made.doubling, made.passes, made.classifies = doubling.reshape(-1), self.passes, self.classifies
        made.by_pass, made.since = list(self.by_passes[m]), list(self.sinces[m])
        return made

    def begin_pass(self) -> None:
        super().begin_pass()
        self.sinces = [self.chronicle(m).tally.tolist() for m in range(self.count)]

    def end_pass(self) -> dict[str, float]:
        made = [self.chronicle(m) for m in range(self.count)]
        for one in made:
            one.end_pass()
        self.by_passes = [one.by_pass for one in made]
        return super().end_pass()

    # ------------------------------------------------------------------ learning

    @property
    def classes(self) -> int:
        """How many probabilities are taken down of an example."""
        return self.outputs // self.count

    def take_down_in(self, mass: np.ndarray, notes: np.ndarray) -> None:
        """Where to take down what the members say of the next examples."""
        self.mass, self.notes = mass, notes
        self.at[0] = 0

    def snapshot(self) -> Training:
        made: Any = super().snapshot()
        if made is not self:
            made.losses = self.losses.copy()
        return made

    def _own(self) -> None:
        super()._own()
        for name in ("losses", "tallies", "doublings"):
            if not getattr(self, name).flags.writeable:
                setattr(self, name, np.array(getattr(self, name)))

    def _room(self) -> Any:
        kind = SEVERAL[self.kind] if self.kind is not None else Members
        if self.kind is None and self.rule.name == "logistic":
            kind = LogisticMembers
        numbers = np.zeros((4, self.outputs))
        of_members = np.zeros((4, self.count))
        which = np.zeros(self.outputs, dtype=np.uint64)
        s, t, q, p = numbers
        nll, cost, margin, share = of_members
        return kind(s, t, q, which, p, nll, cost, margin, self.losses, self.counts, self.tallies.reshape(-1),
                    self.doublings.reshape(-1), share, self.mass, self.notes, self.at)  # fmt: skip


KEPT_OF_MEMBERS = (MISTAKES, UPDATES, LOSS)
