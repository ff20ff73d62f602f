"""The structured perceptron (Collins 2002), and its relatives: every rule of the engine on label sequences.

On a sequence x with the labels y, the rival is the best other path,

    y' = argmax_{y' != y} w.f(x, y') + cost * (tokens that y' gets wrong)

and the engine learns from the example f(x, y) - f(x, y') with the label +1: the perceptron steps when the rival scores
higher, passive-aggressive rules and thick separators also when the margin is too small. With ``greedy``, labels are
decided from left to right, and each token is an example.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlearn.compiler import compiled
from onlearn.engine import rules
from onlearn.engine.compositions import Composition
from onlearn.engine.spec import param, parameters
from onlearn.engine.training import Training
from onlearn.sequence import loops
from onlearn.sequence.base import Watch
from onlearn.sequence.lattice import Lattice
from onlearn.sequence.linear import SHARED, LinearSequenceLearner, order_of
from onlearn.sequence.stopping import EarlyStopping, split_sequences
from onlearn.sequence.token_rows import TokenRows

STABILIZERS = ("last", "averaged", "survivor")


class Settings:
    """The parameters of a structured perceptron."""

    rule: Any = param("perceptron", "how large a step a sequence deserves", kind="rule")
    geometry: Any = param("additive", "how a step changes the weights", kind="geometry")
    stabilizer: Any = param("averaged", "which hypothesis is handed out", kind="stabilizer")
    cost: float = param(
        0.0, "what a wrong token adds to the score of a rival (cost-augmented decoding)", kind="number", at_least=0
    )
    greedy: bool = param(False, "whether labels are decided from left to right, one by one", kind="truth")
    epochs: int = param(10, "passes over the data that fit makes", kind="whole", at_least=1)
    shuffle: bool = param(True, "whether fit visits the sequences in a new random order each pass", kind="truth")


COMPOSITION = Composition(
    "StructuredPerceptron",
    "Learns to label sequences: the gold path against its best rival, by any rule.",
    shared=(),
    own={**parameters(dataclass(Settings)), **SHARED},
)


class StructuredPerceptronLearner(LinearSequenceLearner):
    """A structured perceptron."""

    FIXED: tuple[str, ...] = ("template", "rule", "geometry", "stabilizer", "greedy", "cost")

    @property
    def composition(self) -> Composition:
        return COMPOSITION

    def check(self) -> None:
        super().check()
        chosen = self.choices
        if chosen["stabilizer"].name not in STABILIZERS or chosen["stabilizer"].fades:
            raise ValueError(f"stabilizer must be one of {', '.join(STABILIZERS)}, not {chosen['stabilizer']!r}")
        if not chosen["geometry"].signed or chosen["geometry"].undecided:
            raise ValueError(f"geometry must have weights of either sign, from zero, not {chosen['geometry']!r}")
        if not chosen["rule"].classification:
            raise ValueError(f"rule must be one that learns classes, not {chosen['rule']!r}")

    def _depends_on(self) -> dict[str, Any]:
        return {**super()._depends_on(), **{name: self.choices[name] for name in ("rule", "geometry", "stabilizer")}}

    def _new_training(self) -> Training:
        chosen = self.choices
        return Training(chosen["rule"], chosen["geometry"], chosen["stabilizer"], None, 1, 1, 0.0)

    def _learn_all(self, sentences: Any, codes: np.ndarray, watch: Watch | None) -> None:
        self.features = self._make_features(sentences)
        self.index = type(self.index)(self._transitions())
        rows = self._without_rare(self.features.learn_transform(sentences), self.settings.min_count)
        held: EarlyStopping | None = None
        if self.settings.early_stopping:
            rows, codes, held = split_sequences(self, rows, codes)
        limits = self._number(rows, codes, at_once=True)
        for turn in range(self.settings.epochs):
            order = order_of(self.seed, turn, len(limits), self.settings.shuffle)
            self._pass(rows, codes, limits, order, (turn + 1, self.settings.epochs), watch)
            if held is not None and held.is_over():
                break
        if held is not None:
            held.restore()
        self.compact()

    def _learn_part(self, rows: TokenRows, order: np.ndarray, codes: np.ndarray, limits: np.ndarray, room: Any,
                    difference: Any) -> int:  # fmt: skip
        training = self._state()
        rule = training.rule
        loop = loops.learn_greedily if self.settings.greedy else loops.learn_sequences
        measured = training.geometry.measures or rules.uses_sqnorm(rule)
        step, loss = rules.compile_step(rule), rules.compile_loss(rule)
        return int(
            loop(
                rows, order, codes, limits, self.index.arrays, room, difference, step, loss, rules.values(rule),
                measured, float(self.settings.cost), training.g, training.st, training.tally, training.doubling,
            )
        )  # fmt: skip

    def decode(self, rows: TokenRows, allowed: Any = None) -> np.ndarray:
        """The labels of the best paths that constraints allow, or of those that are decided from left to right."""
        if not self.settings.greedy:
            return super().decode(rows, allowed)
        lattice = self.lattice() if allowed is None else self.lattice().constrained(*allowed)
        path = np.zeros(rows.tokens, np.int64)
        goes_on = ways_to_the_end(lattice, int(np.diff(rows.offsets).max(initial=0)))
        decide_greedily(self.emissions(rows), rows.offsets, lattice.transitions, lattice.initial, goes_on, path)
        return path

    def _beside(self, lattice: Lattice, path: np.ndarray, token: int, first: int, last: int) -> dict[str, np.ndarray]:
        beside = super()._beside(lattice, path, token, first, last)
        # From left to right nothing is known of what comes after.
        return dict(list(beside.items())[:1]) if self.settings.greedy else beside


def ways_to_the_end(lattice: Lattice, longest: int) -> np.ndarray:
    """Whether a path can go on from each label (columns) to the end, with so many tokens (rows) still to come."""
    goes_on = np.ones((longest + 1, lattice.labels), dtype=bool)
    allowed = lattice.transitions > -np.inf
    goes_on[0] = lattice.final > -np.inf
    for left in range(1, longest + 1):
        goes_on[left] = (allowed & goes_on[left - 1]).any(axis=1)
        if (goes_on[left] == goes_on[left - 1]).all():
            goes_on[left:] = goes_on[left]
            break
    return goes_on


@compiled
def decide_greedily(emissions: Any, offsets: Any, transitions: Any, initial: Any, goes_on: Any, path: Any) -> None:
    """The best label of each token after those before it, from left to right; -1 where no path is allowed."""
    for k in range(len(offsets) - 1):
        last, label = offsets[k + 1], -1
        for t in range(offsets[k], last):
            best, before = -np.inf, label
            label = -1
            for c in range(len(initial)):
                value = emissions[t, c] + (initial[c] if t == offsets[k] else transitions[before, c])
                if value > best and goes_on[last - 1 - t, c]:
                    best, label = value, c
            if label < 0:
                for i in range(offsets[k], last):
                    path[i] = -1
                break
            path[t] = label
