"""The probabilities of a classifier: which scores they are fitted to, and when."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from onlearn import calibrate
from onlearn.soundness import SHARE, check_array, check_facts, either


class HeldOut(NamedTuple):
    """Rows that fit did not learn from."""

    scores: np.ndarray
    codes: np.ndarray  # of their classes
    fraction: float | None  # of all rows, as was asked for; None if a model file does not say

    @classmethod
    def unpack(cls, facts: dict[str, Any], arrays: dict[str, np.ndarray], classes: int) -> HeldOut:
        """What a model file holds of them."""
        scores, codes, fraction = arrays["held_out.scores"], arrays["held_out.codes"], facts.get("held_out")
        check_facts({"held_out": fraction}, {"held_out": either(None, SHARE)})
        columns = 1 if classes == 2 else max(1, classes)
        check_array("held_out.scores", scores, "float64 float32", (codes.size, columns))
        check_array("held_out.codes", codes, "int64 int32", (codes.size,), 0, classes - 1)
        return cls(scores, codes, fraction)


class Calibrated:
    """The part of a classifier that turns its scores into probabilities."""

    families: ClassVar[dict[str, Any]]
    calibration: Any
    _choices: Any
    _training: Any
    _seed: int
    _per_class: Any
    decision_function: Any
    _held_out: HeldOut | None

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class; the largest is where ``predict`` is."""
        scores = self.decision_function(X).astype(np.float64, copy=False)
        a, b, link = self._calibration()
        if scores.ndim == 1:
            return calibrate.binary(scores, a, b)
        return calibrate.several(scores, a, b, link)

    def _calibration(self) -> tuple[float, float, str]:
        """A, B and the link for several classes; fitted once after learning."""
        choice = self.families["calibration"].get(self.calibration)
        known = self._training.calibrated
        if known is None or known[0] != repr(choice):
            known = self._training.calibrated = repr(choice), self._fit_calibration(choice)
        return known[1]

    def _fit_calibration(self, choice: Any) -> tuple[float, float, str]:
        training = self._training
        link, apart = getattr(choice, "link", "softmax"), training.output == "one-vs-all"
        votes = training.stabilizer.name == "voted"  # shares of votes are no log-odds, whatever the rule
        own = getattr(training.rule, "own_probabilities", False) and not votes
        if choice.name == "own" and votes:
            raise ValueError(
                "calibration='own' takes scores for log-odds, but those of voted learners are shares of votes"
            )
        if choice.name == "own" or (choice.name == "auto" and own):
            return 1.0, 0.0, "normalized" if apart else "softmax"
        if choice.name != "holdout":
            scores, gold = self._audited()
        elif self._held_out is None:
            raise ValueError(
                f"calibration={choice!r} needs rows that the last call held out, and it held out none: fit anew"
            )
        elif self._held_out.fraction not in (choice.fraction, None):
            raise ValueError(
                f"calibration={choice!r} needs {choice.fraction:g} of the rows held out, and the last call held out "
                f"{self._held_out.fraction:g} of them: set it back, or fit anew"
            )
        else:
            scores, gold, _ = self._held_out
        return (*calibrate.fit(scores, gold, link), link)

    def _audited(self) -> tuple[np.ndarray, np.ndarray]:
        scores, gold = self._training.audited()
        return self._per_class(scores), (gold > 0 if self._training.output is None else gold).astype(int)

    def _held_out_rows(self, rows: int) -> np.ndarray:
        """The rows that fit keeps for calibration."""
        calibration = self._choices()["calibration"]
        if calibration.name != "holdout":
            return np.empty(0, dtype=np.intp)
        chosen = np.random.default_rng([self._seed, 2]).permutation(rows)
        return np.sort(chosen[: min(rows - 1, max(1, round(calibration.fraction * rows)))])
