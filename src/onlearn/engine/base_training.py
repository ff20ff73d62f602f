"""The training of a learner that is not linear: what it has learned, counted as all trainings are, and in the file."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from onlearn.engine.loops import DUE, LOSS, MISTAKES, SEEN, UPDATES
from onlearn.engine.training import Chronicle
from onlearn.model_schema import COUNT, TEXT, TRUTH, Arrays, Record, either

COUNTS = Record(features=COUNT, outputs=COUNT, classifies=TRUTH, stopped=either(None, TEXT))  # besides the chronicle


class BaseTraining(Chronicle):
    """What a learner has learned, and what happened meanwhile; trainings that are not linear are subclasses.

    ``outputs`` counts the columns of scores, and ``output`` is None where two classes have one column.
    """

    FILED: ClassVar[Record] = Record({**Chronicle.FILED.facts, **COUNTS.facts})  # subclasses add facts of their own

    output: str | None = "classes"
    may_fail: bool = False  # learning may fail halfway, at something the user wrote
    checked: bool = True  # rows were searched for NaN and infinity
    stopped: str | None = None  # why learning stopped early, if it did
    features: int
    outputs: int
    tally: np.ndarray
    doubling: np.ndarray

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.features, self.outputs = features, outputs

    def grow(self, features: int, outputs: int) -> None:
        """Make room for features and outputs."""
        if (features, outputs) != (self.features, self.outputs):
            raise ValueError("this learner can take in neither features nor classes")

    def snapshot(self) -> Any:
        """A copy that predicts as this does now, whatever this learns later; itself where there is none."""
        return self

    def size(self) -> float:
        """The size of the hypothesis, by which scores grow in later passes; 0: they are not calibrated by it."""
        return 0.0

    def count(self, seen: float, mistakes: float = 0.0, loss: float = 0.0, updates: float = 0.0) -> None:
        """Examples were met, before they were learned from, with so many mistakes and so much loss in all."""
        self.tally[[SEEN, MISTAKES, LOSS, UPDATES]] += (seen, mistakes, loss, updates)
        self.tally[DUE] = max(self.tally[DUE], self.tally[SEEN] + 1)

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The counts; subclasses add what was learned."""
        facts, arrays = self.pack_chronicle()
        return {**facts, **{name: getattr(self, name) for name in COUNTS.facts}}, arrays

    def take_counts(self, facts: dict[str, Any], arrays: Arrays) -> None:
        """What ``pack`` took apart, its facts checked by ``FILED``; refuses what could not have come from it."""
        if (facts["features"], facts["outputs"]) != (self.features, self.outputs):
            raise ValueError("the learner does not have the shape that the header says")
        self.take_chronicle(facts, arrays)
        for name in COUNTS.facts:
            setattr(self, name, facts[name])
