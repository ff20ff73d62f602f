"""How the learners of shards become one: linear learners are mixed, and the counts of naive Bayes are added.

A ``Message`` holds what one shard has learned, or several: arrays, and facts, among them ``where`` (the worker that has
the rows of each shard) and ``moved`` (the bytes that travelled).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Protocol

from onlearn.bayes.findings import add_findings, findings
from onlearn.bayes.learner import BayesLearner
from onlearn.cluster.message import Message, pack, unpack_array
from onlearn.engine import mixing
from onlearn.engine.learner import Learner
from onlearn.engine.mixing import Contribution

ROUNDS = 10  # of learners that do not say how many passes they usually make
ARRAYS = ("places", "moves", "gains", "surplus", "scale", "counts", "age")  # of a contribution


class Way(Protocol):
    """How learners of one kind become one."""

    keeps_back: bool = False  # whether rows are kept back for calibration

    def why_not(self, learner: Any) -> str | None:
        """Why this learner cannot be had so, in a sentence; None: it can."""

    def rounds(self, learner: Any) -> int:
        """How many rounds there are, unless a number is given."""
        return 1

    def begin(self, base: Any, shards: int) -> Any:
        """A learner that learns from one of so many shards; ``base`` is left as it is."""

    def learned(self, base: Any, learner: Any, mix: str) -> Message:
        """What a learner of a shard has learned since ``base``."""

    def added(self, parts: Sequence[Message]) -> Message:
        """The sum of what several shards have learned, in their order."""

    def mix(self, learner: Any, total: Message) -> None:
        """Have a learner learn what all shards have learned in a round."""


class Mixing(Way):
    """Linear learners: the weights that shards come to are mixed, round after round."""

    keeps_back = True

    def why_not(self, learner: Any) -> str | None:
        if learner._holds_out():
            return "calibration=holdout has no use on a cluster: say auto, online or own, or give files by calibrate="
        return mixing.why_not(learner)

    def rounds(self, learner: Any) -> int:
        return int(learner.usual_passes or ROUNDS)

    def begin(self, base: Any, shards: int) -> Any:
        made = copy.copy(base)
        made.training = mixing.begin_shard(base.training, shards)
        return made

    def learned(self, base: Any, learner: Any, mix: str) -> Message:
        return _packed(mixing.contribution(base.training, learner.training, mix))

    def added(self, parts: Sequence[Message]) -> Message:
        return _packed(mixing.added([_contribution(one) for one in parts]))

    def mix(self, learner: Any, total: Message) -> None:
        learner.training = mixing.mixed(learner.training, _contribution(total))


def _packed(one: Contribution) -> Message:
    facts = {name: value for name, value in one._asdict().items() if name not in ARRAYS}
    return pack(facts, {name: getattr(one, name) for name in ARRAYS})


def _contribution(message: Message) -> Contribution:
    arrays: dict[str, Any] = dict(message.unpacked())
    return Contribution(**arrays, **{name: message.facts[name] for name in Contribution._fields if name not in ARRAYS})


class Adding(Way):
    """Naive Bayes: one round, in which each shard is counted for itself; counts add up exactly."""

    def why_not(self, learner: Any) -> str | None:
        return None

    def begin(self, base: Any, shards: int) -> Any:
        return base.renewed()

    def learned(self, base: Any, learner: Any, mix: str) -> Message:
        facts, arrays = findings(learner)
        message = pack(None, arrays)
        return Message({"parts": [facts]}, {f"0 {name}": array for name, array in message.arrays.items()})

    def added(self, parts: Sequence[Message]) -> Message:
        """Counts are added in a learner alone, so the parts are put side by side."""
        facts: list[Any] = []
        arrays = {}
        for part in parts:
            for name, array in part.arrays.items():
                number, _, own = name.partition(" ")
                arrays[f"{len(facts) + int(number)} {own}"] = array
            facts += part.facts["parts"]
        return Message({"parts": facts}, arrays)

    def mix(self, learner: Any, total: Message) -> None:
        found: list[dict[str, Any]] = [{} for _ in total.facts["parts"]]
        for name, array in total.arrays.items():
            number, _, own = name.partition(" ")
            found[int(number)][own] = unpack_array(array)
        add_findings(learner, zip(total.facts["parts"], found))
        learner._end_pass()


WAYS: dict[type, Way] = {Learner: Mixing(), BayesLearner: Adding()}


def why_not(learner: Any) -> str | None:
    """Why a learner cannot learn on a cluster, in a sentence; None: it can."""
    way = WAYS.get(type(learner))
    if way is None:
        return f"{learner.name} learns on one machine only: use a linear learner or NaiveBayes on a cluster"
    return way.why_not(learner)


def way_of(learner: Any) -> Way:
    """How learners of this kind become one."""
    return WAYS[type(learner)]


def learned(base: Any, learner: Any, mix: str, number: int, worker: str | None, audit: Any = None) -> Message:
    """What a learner of a shard has learned, and where its rows are.

    ``audit`` has scores of rows, made before they were learned from, and their targets; they go with it.
    """
    message = way_of(base).learned(base, learner, mix)
    facts = {**message.facts, "where": {number: worker}, "moved": message.nbytes}
    return message._replace(facts=facts if audit is None else {**facts, "audit": [audit]})


def added(way: Way, parts: Sequence[Message]) -> Message:
    """The sum of what several shards have learned, in their order."""
    if len(parts) == 1:
        return parts[0]
    message = way.added(parts)
    where = {number: one for part in parts for number, one in part.facts["where"].items()}
    moved = sum(part.facts["moved"] for part in parts) + message.nbytes
    audit = [one for part in parts for one in part.facts.get("audit", ())]
    return message._replace(facts={**message.facts, "where": where, "moved": moved, "audit": audit})
