"""Mixing of parameters: learning from shards of the data side by side, in rounds.

The rows are cut into S shards. In each round every shard begins at the same weights w0 and learns from its own rows;
what changed is sent, summed, and gives the weights that all shards begin the next round at (iterative parameter
mixing: McDonald, Hall & Mann 2010). With w_s the weights of shard s in the end, and q_s the share it has,

    w = w0 + sum_s a_s (w_s - w0) / sum_s a_s,     a_s = q_s m_s p_s

m_s is the scale of stored weights (under l2 they are stored as v with w = m v; the same formula then gives v, and the
mean of the m_s is their scale). p_s is 1, or where the geometry is ``confident`` the precision of the weight: AROW's
1/variance. The share of a shard is the number of its examples, unless another of ``WEIGHTINGS`` is chosen.

What a geometry has seen of a weight (its ``evidence``: AdaGrad's sum of squared gradients, AROW's precision) becomes
that of one shard, P0 + sum_s q_s (P_s - P0) / sum_s q_s. For the mean moves as far as one shard does: with the sum of
all the rates would fall as if it had moved S times as far. Nor do moves add up: the precisions of independent
observations do, and w0 + sum_s P_s (w_s - w0) / P with P = P0 + sum_s (P_s - P0) is exact for those, but from the
second round on the same rows are met again, all shards make the same correction, and their sum goes S times too far.

AdaGrad's sums are no precisions here: with them as p_s (Agarwal, Chapelle, Dudik & Langford 2014) the errors of
logistic regression on 4 and on 64 shards of texts are higher than with p_s = 1, given the rates of ``begin_shard``.

The average is over all hypotheses of all shards. With S v - u the sum of hypotheses at clock S, those of a shard sum to
(S_s - S0) v0 + e_s, where e_s = S_s (v_s - v0) - (u_s - u0) is zero for a weight that did not change. So

    S = S0 + sum_s (S_s - S0),     u = u0 + S (v - v0) - sum_s e_s

A ``Contribution`` is what a shard sends, and holds nothing of weights that did not change. They are added in any tree,
in the order of the shards; sums of the same grouping are the same to the bit.

>>> from onlearn.engine.learner import Learner
>>> X, y = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 2.0]]), np.array([-1.0, 1.0, -1.0, 1.0])
>>> base = Learner("Perceptron").fit(X[:2], y[:2]).training
>>> sent = []
>>> for rows in (np.array([0, 1]), np.array([2, 3])):
...     shard = begin_shard(base, 2)
...     shard.learn(X, y, np.ones(4), rows, audit=False)
...     sent.append(contribution(base, shard))
>>> mixed(base, added(sent)).history["passes"][-1]["shards"]
2
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from onlearn.engine.geometry import GEOMETRIES
from onlearn.engine.learner import Learner
from onlearn.engine.loops import MISTAKES, SEEN
from onlearn.engine.protocol import layout, scale
from onlearn.engine.training import Training

# The share that a shard has in the mean of weights, by what it counted. Of shards of one size "rows" and "uniform" are
# the same. With "mistakes" a shard without a mistake has no say (McDonald et al. 2010, theorem 4 and after).
WEIGHTINGS: dict[str, Callable[[np.ndarray], float]] = {
    "rows": lambda counts: float(counts[SEEN]),
    "mistakes": lambda counts: float(counts[MISTAKES]),
    "uniform": lambda counts: 1.0,
}

SHORT = np.iinfo(np.int32).max
LARGEST_PRECISION = 1e250  # sums of very many are finite


class Contribution(NamedTuple):
    """What changed in a round: of one shard, or the sum of several."""

    places: np.ndarray  # flat places of the weights that changed, ascending
    moves: np.ndarray  # for each: sum of a_s (v_s - v0)
    gains: np.ndarray  # for each: sum of q_s m_s (P_s - P0); empty where the geometry has no evidence
    surplus: np.ndarray  # for each: sum of e_s; empty where there is no average
    scale: np.ndarray  # for each output: sum of q_s m_s
    share: float  # sum of q_s
    largest_share: float  # of the q_s
    mistakes: float  # sum of q_s times the mistakes
    counts: np.ndarray  # what was added to the first numbers of a tally, in all
    age: np.ndarray  # what was added to the clocks of the stabilizer, in all
    shards: int
    size: int  # of the state: all weights, with room made ahead
    even: bool  # all examples so far had the same weight


# ----------------------------------------------------------------------------------------------------
# What can be mixed.


def why_not(what: Learner | Training | Mapping[str, Any]) -> str | None:
    """Why a learner (or a training, or choices by their kind) cannot be mixed, as a sentence; None: it can.

    >>> why_not(Learner("AROW"))
    >>> why_not(Learner("VotedPerceptron"))
    "stabilizer voted cannot be mixed: it is about hypotheses of one sequence; use 'averaged' or 'last'"
    """
    if isinstance(what, Mapping):
        geometry, stabilizer = what.get("geometry"), what.get("stabilizer")
    elif type(what) is Training:
        geometry, stabilizer = what.geometry, what.stabilizer
    elif type(what) is Learner:
        geometry, stabilizer = what.choices["geometry"], what.choices["stabilizer"]
    else:
        geometry = stabilizer = None
    if geometry is None or stabilizer is None:
        name = getattr(what, "name", type(what).__name__)
        return f"{name} cannot be mixed: only weights of linear learners can, such as those of OnlineClassifier"
    if geometry.unmixed is not None:
        able = ", ".join(repr(name) for name in geometries())
        without = "" if getattr(geometry, "l1", 0.0) == 0.0 else ", without l1"
        return f"geometry {geometry!r} cannot be mixed: {geometry.unmixed}; use one of {able}{without}"
    if stabilizer.unmixed is not None:
        return f"stabilizer {stabilizer!r} cannot be mixed: {stabilizer.unmixed}; use 'averaged' or 'last'"
    return None


def geometries() -> list[str]:
    """The names of the geometries that can be mixed."""
    return [name for name, kind in GEOMETRIES.members.items() if kind().unmixed is None]


# ----------------------------------------------------------------------------------------------------
# A round.


def begin_shard(base: Training, shards: int) -> Training:
    """A copy of the mixed state that learns from one of so many shards, at the rate that suits their number."""
    refused = why_not(base)
    if refused is not None:
        raise ValueError(refused)
    made = base.copied()
    made.g, made.st = made.settled()  # what is due is due at the rate there was
    made.geometry.begin_shard(made.g, shards)
    return made


def contribution(base: Training, learned: Training, weighting: str = "rows") -> Contribution:
    """What a shard that began at ``base`` has learned."""
    refused = why_not(base)
    if refused is not None:
        raise ValueError(refused)
    if weighting not in WEIGHTINGS:
        raise ValueError(f"weighting must be one of {', '.join(map(repr, WEIGHTINGS))}, not {weighting!r}")
    if learned.g.w.size != base.g.w.size or learned.outputs != base.outputs:
        raise ValueError(f"a shard has {learned.g.w.size} weights, but it began with {base.g.w.size}: make room first")
    counts = learned.tally[: SEEN + 1] - base.tally[: SEEN + 1]
    if not counts[SEEN] >= 0:
        raise ValueError("a shard has seen fewer examples than the state it is said to have begun at")
    geometry, stabilizer, outputs = base.geometry, base.stabilizer, base.outputs
    (g0, st0), (g, st) = base.settled(), learned.settled()
    share = WEIGHTINGS[weighting](counts)
    scales = share * output_scales(g, outputs)
    places = changed_places(geometry, g0, st0, g, st)
    change = g.w[places] - g0.w[places]
    factor, gains = scales[places % outputs], np.zeros(0)
    moves = factor * change
    if geometry.evidence is not None:
        before, after = (precisions(geometry, state, places) for state in (g0, g))
        gains = factor * (after - before)
        moves = moves * after if geometry.confident else moves
    return Contribution(
        places=places.astype(np.int32) if g.w.size <= SHORT else places,
        moves=moves,
        gains=gains,
        surplus=stabilizer.surplus(st0, st, places, change),
        scale=scales,
        share=share,
        largest_share=share,
        mistakes=share * float(counts[MISTAKES]),
        counts=counts,
        age=stabilizer.age(st0, st),
        shards=1,
        size=g.w.size,
        even=learned.even,
    )


def changed_places(geometry: Any, g0: Any, st0: Any, g: Any, st: Any) -> np.ndarray:
    """Where two states differ in weights, in evidence, or in the account of an average."""
    changed = g.w != g0.w
    if geometry.evidence is not None:
        changed |= getattr(g, geometry.evidence) != getattr(g0, geometry.evidence)
    for name, holds in layout(type(st)).items():
        if holds == "weights":
            changed |= getattr(st, name) != getattr(st0, name)
    return np.flatnonzero(changed)


def output_scales(g: Any, outputs: int) -> np.ndarray:
    """What turns the stored weights of each output into weights."""
    return np.array([scale(g, c) for c in range(outputs)])


def precisions(geometry: Any, g: Any, places: np.ndarray) -> np.ndarray:
    """What was seen of some weights, in finite numbers that add up."""
    return np.minimum(geometry.precision(getattr(g, geometry.evidence)[places]), LARGEST_PRECISION)


def added(contributions: Sequence[Contribution]) -> Contribution:
    """The sum of contributions, in their order."""
    if not contributions:
        raise ValueError("there are no contributions to add")
    first = contributions[0]
    if len(contributions) == 1:
        return first
    sizes = {one.size for one in contributions}
    if len(sizes) > 1:
        raise ValueError(f"shards have {' and '.join(map(str, sorted(sizes)))} weights: make room before the round")
    places = np.concatenate([one.places for one in contributions])
    places.sort(kind="stable")  # runs in order are merged
    places = places[np.append(True, places[1:] != places[:-1])[: len(places)]]
    sums = {name: np.zeros(len(places)) for name in BY_PLACE if any(getattr(one, name).size for one in contributions)}
    for one in contributions:
        at = np.searchsorted(places, one.places)
        for name, total in sums.items():
            total[at] += getattr(one, name)
    return Contribution(
        places=places,
        moves=sums.get("moves", np.zeros(0)),
        gains=sums.get("gains", np.zeros(0)),
        surplus=sums.get("surplus", np.zeros(0)),
        scale=_sum([one.scale for one in contributions]),
        share=_sum([one.share for one in contributions]),
        largest_share=max(one.largest_share for one in contributions),
        mistakes=_sum([one.mistakes for one in contributions]),
        counts=_sum([one.counts for one in contributions]),
        age=_sum([one.age for one in contributions]),
        shards=_sum([one.shards for one in contributions]),
        size=first.size,
        even=all(one.even for one in contributions),
    )


BY_PLACE = ("moves", "gains", "surplus")


def _sum(numbers: list[Any]) -> Any:
    total = numbers[0]
    for one in numbers[1:]:
        total = total + one
    return total


def mixed(base: Training, total: Contribution) -> Training:
    """The state after a round that began at ``base``: a training that may learn on, with the round as one pass."""
    if total.size != base.g.w.size:
        raise ValueError(f"the shards have {total.size} weights, but the state they began at has {base.g.w.size}")
    made = base.copied()
    geometry, outputs, places = made.geometry, made.outputs, total.places
    made.g, made.st = made.settled()
    g = made.g
    factor = total.scale[places % outputs]
    weight = factor
    if geometry.evidence is not None:
        before = precisions(geometry, g, places)
        if geometry.confident:
            weight = factor * before + total.gains
        gained = np.divide(total.gains, factor, out=np.zeros(len(places)), where=factor > 0.0)
        more = gained != 0.0
        getattr(g, geometry.evidence)[places[more]] = geometry.from_precision(before[more] + gained[more])
    stored = g.w[places]
    g.w[places] += np.divide(total.moves, weight, out=np.zeros(len(places)), where=weight > 0.0)
    scales = total.scale / total.share if total.share > 0.0 else output_scales(g, outputs)
    geometry.end_round(g, float(total.counts[SEEN]) / total.shards, scales)
    made.stabilizer.end_round(made.st, places, g.w[places] - stored, total.surplus, total.age)
    made.even = base.even and total.even
    entry = made.count_round(total.counts)
    entry["shards"] = total.shards
    if made.classifies:  # with shares that sum to 1, what the theorem on mixed perceptrons is about
        entry["mixed_mistakes"] = total.mistakes / total.share if total.share > 0.0 else 0.0
        entry["largest_share"] = total.largest_share / total.share if total.share > 0.0 else 1.0
    return made
