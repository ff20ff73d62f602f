"""Linear-chain conditional random fields (Lafferty, McCallum and Pereira 2001): p(y | x) = e^(s(x, y) - log Z(x)).

``solver="lbfgs"`` minimises the sum of -log p(y | x) + l2/2 |w|^2 over all sequences by L-BFGS; with l1 above 0, also
l1 |w|_1 by OWL-QN. ``"adagrad"`` and ``"sgd"`` learn on-line, one sequence at a time, and so does
``partial_fit`` whatever the solver: the gradient is the gold features less the expected ones, and the engine's
geometries take it.

With sequences of one token it is multinomial logistic regression, over the pairs of attribute and label that have a
weight (``weight_index`` says which).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlearn.engine import rules
from onlearn.engine.compositions import Composition
from onlearn.engine.geometry import AdaGrad, Additive
from onlearn.engine.quasi_newton import minimize
from onlearn.engine.spec import param, parameters
from onlearn.engine.stabilizers import Last
from onlearn.engine.training import Training
from onlearn.sequence import loops
from onlearn.sequence.base import Progress, Watch
from onlearn.sequence.likelihood import Likelihood
from onlearn.sequence.linear import SHARED, LinearSequenceLearner, order_of
from onlearn.sequence.stopping import EarlyStopping, split_sequences
from onlearn.sequence.token_rows import TokenRows

PERIOD = 10  # iterations over which the objective must fall by the part ``tol``
LOOK_EVERY = 5  # iterations between two looks at the sequences held out
SEEN_BEFORE = 1.0  # the sum of squared gradients that AdaGrad takes for granted after L-BFGS


class Settings:
    """The parameters of a conditional random field."""

    l2: float = param(1.0, "weight of |w|_2^2 / 2 beside the sum of all losses", kind="number", at_least=0)
    l1: float = param(0.0, "weight of |w|_1 beside the sum of all losses", kind="number", at_least=0)
    solver: str = param("lbfgs", "how fit minimises", words=("lbfgs", "adagrad", "sgd"))
    epochs: int = param(
        300, "the most iterations of 'lbfgs', or passes of the other solvers, that fit makes", kind="whole", at_least=1
    )
    tol: float = param(
        1e-5,
        "fit ends when ten iterations, or one pass, lower the objective by less than this part",
        kind="number",
        at_least=0,
    )
    rate: float = param(0.1, "learning rate of on-line learning", kind="number", above=0)
    prior_size: int = param(10_000, "on-line, l1 and l2 are spread over so many sequences", kind="whole", at_least=1)
    shuffle: bool = param(True, "whether on-line solvers visit the sequences in a random order", kind="truth")


COMPOSITION = Composition(
    "CRF",
    "A conditional random field: learns the probability of label sequences.",
    shared=(),
    own={**parameters(dataclass(Settings)), **SHARED},
)


class CRFLearner(LinearSequenceLearner):
    """A linear-chain conditional random field."""

    FIXED: tuple[str, ...] = ("template", "l1", "l2", "rate", "prior_size")
    has_marginals = True

    @property
    def composition(self) -> Composition:
        return COMPOSITION

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.objective: list[float] = []  # after each iteration or pass of the last fit
        self.stopped: str | None = None  # why it ended

    def _new_training(self) -> Training:
        one = self.settings
        l1, l2 = one.l1 / one.prior_size, one.l2 / one.prior_size
        kind: Any = Additive if one.solver == "sgd" else AdaGrad
        falls = {"schedule": "1/sqrt(t)"} if one.solver == "sgd" else {}
        geometry = kind(rate=one.rate, l1=l1, l2=l2, **falls)
        return Training(rules.Logistic(), geometry, Last(), None, 1, 1, 0.0)

    def _depends_on(self) -> dict[str, Any]:
        return {**super()._depends_on(), "sgd": self.settings.solver == "sgd"}

    # ------------------------------------------------------------------ learning

    def _learn_all(self, sentences: Any, codes: np.ndarray, watch: Watch | None) -> None:
        self.features = self._make_features(sentences)
        self.index = type(self.index)(self._transitions())
        rows = self._without_rare(self.features.learn_transform(sentences), self.settings.min_count)
        held: EarlyStopping | None = None
        if self.settings.early_stopping:
            rows, codes, held = split_sequences(self, rows, codes)
        limits = self._number(rows, codes, at_once=True)
        if self.settings.solver == "lbfgs":
            self._minimize(rows, codes, held, watch)
        else:
            self._learn_passes(rows, codes, limits, held, watch)
        if held is not None:
            held.restore()
        self.compact()

    def _minimize(self, rows: TokenRows, codes: np.ndarray, held: EarlyStopping | None, watch: Watch | None) -> None:
        """Minimise by L-BFGS or OWL-QN."""
        training, used, limit = self._state(), self.index.used, int(self.settings.epochs)
        l1, l2 = float(self.settings.l1), float(self.settings.l2)
        smooth = Likelihood(rows, codes, self.index.arrays, used, l2)
        self.objective, self.stopped = [], "epochs"

        def is_over(value: float, w: np.ndarray) -> bool:
            if not np.isfinite(value):
                raise ValueError("the likelihood is not a finite number: scale the values of attributes")
            self.objective.append(value)
            turn = len(self.objective)
            self.tokens += rows.tokens
            self.sequences += len(rows.offsets) - 1
            self.passes += 1
            if watch is not None:
                watch(Progress(turn, limit, self.tokens, -1, value / max(1, len(rows.offsets) - 1)))
            if held is not None and turn % LOOK_EVERY == 0:
                self._set_weights(w)
                if held.is_over():
                    self.stopped = "validation"
                    return True
            if turn > PERIOD and self.objective[-1 - PERIOD] - value < self.settings.tol * abs(value):
                self.stopped = "tol"
                return True
            return False

        self._set_weights(minimize(smooth, np.zeros(used), l1, limit, is_over))
        if held is not None and not held.scores:
            held.is_over()
        training.by_pass = []

    def _set_weights(self, w: np.ndarray) -> None:
        training = self._state()
        training.g.w[: len(w)] = w
        if hasattr(training.g, "squares"):
            training.g.squares[: len(w)] = np.where(w != 0, SEEN_BEFORE, 0.0)
        training._handed = self._decoding = None

    def _learn_passes(self, rows: TokenRows, codes: np.ndarray, limits: np.ndarray, held: EarlyStopping | None,
                      watch: Watch | None) -> None:  # fmt: skip
        """Learn on-line, pass by pass."""
        self.objective, self.stopped = [], "epochs"
        for turn in range(self.settings.epochs):
            order = order_of(self.seed, turn, len(limits), self.settings.shuffle)
            self._pass(rows, codes, limits, order, (turn + 1, self.settings.epochs), watch)
            self.objective.append(self._state().by_pass[-1]["loss"] * len(limits))
            if held is not None and held.is_over():
                self.stopped = "validation"
                break
            if turn and self.objective[-2] - self.objective[-1] < self.settings.tol * abs(self.objective[-1]):
                self.stopped = "tol"
                break

    def _learn_part(self, rows: TokenRows, order: np.ndarray, codes: np.ndarray, limits: np.ndarray, room: Any,
                    difference: Any) -> int:  # fmt: skip
        training = self._state()
        sums = loops.make_sums(len(self.labels), len(room.path))
        return int(
            loops.learn_likelihood(
                rows, order, codes, limits, self.index.arrays, room, difference, sums, training.geometry.measures,
                training.g, training.st, training.tally, training.doubling,
            )
        )  # fmt: skip

    # ------------------------------------------------------------------ what it has learned

    def described(self) -> dict[str, Any]:
        """The numbers of attributes and weights, and how the last fit ended."""
        made = super().described()
        if self.objective:
            made |= {"objective": self.objective[-1], "iterations": len(self.objective), "stopped": self.stopped}
        return made
