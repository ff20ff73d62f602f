"""How the learners of shards become one: linear learners are mixed, and the counts of naive Bayes are added.

A ``Message`` holds what one shard has learned, or several: arrays, and facts, among them ``where`` (the worker that has
the rows of each shard) and ``moved`` (the bytes that travelled for it).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from onlearn.bayes.findings import add_findings, findings
from onlearn.bayes.learner import BayesLearner
from onlearn.cluster.message import Message, pack
from onlearn.engine import mixing
from onlearn.engine.learner import Learner
from onlearn.engine.mixing import Contribution
from onlearn.engine.objective import why_not as why_no_minimum
from onlearn.engine.reserve import FEWEST_ROWS
from onlearn.errors import PlanError

ROUNDS = 10  # for learners that do not say how many passes they usually make
ARRAYS = ("places", "moves", "gains", "surplus", "scale", "counts", "age")  # of a contribution


class Way(Protocol):
    """How learners of one kind become one."""

    rounds: int  # unless a number is given
    keeps_back: bool = False  # rows for calibration, which need scores of rows that were not learned from

    def why_not(self, learner: Any, mix: str | None) -> str | None:
        """Why this learner cannot be mixed so, in a sentence; None: it can."""

    def begin(self, base: Any, shards: int) -> Any:
        """A learner that learns from one of so many shards."""

    def learned(self, base: Any, learner: Any, mix: str) -> Message:
        """What a learner of a shard has learned since ``base``."""

    def added(self, parts: Sequence[Message]) -> Message:
        """The sum of what several shards have learned, in their order."""

    def mix(self, learner: Any, total: Message) -> None:
        """Have a learner learn what all shards have learned in a round."""


class Mixing(Way):
    """Linear learners: the weights that shards come to are mixed in rounds."""

    rounds = ROUNDS
    keeps_back = True

    def why_not(self, learner: Any, mix: str | None) -> str | None:
        return mixing.why_not(learner)

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


class Adding(Way):
    """Naive Bayes: one round, in which each shard counts for itself; counts add up exactly."""

    rounds = 1

    def why_not(self, learner: Any, mix: str | None) -> str | None:
        return None if mix in (None, "rows") else f"mix={mix} has no use with {learner.name}, whose counts are added"

    def begin(self, base: Any, shards: int) -> Any:
        return base.renewed()

    def learned(self, base: Any, learner: Any, mix: str) -> Message:
        return pack(*findings(learner))

    def added(self, parts: Sequence[Message]) -> Message:
        """Naive Bayes has no sum but in a learner: the parts are put side by side."""
        raise NotImplementedError
