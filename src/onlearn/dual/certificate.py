"""The mistake bounds of a kernel learner: radius and margin in the feature space, by kernel values alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn import kernels
from onlearn.dual.scoring import staged_scores
from onlearn.theory.certificate import certify_scores

CHECKED = 200  # examples on which a function that may not be a kernel is tried


def verdict_on(kernel: Any, points: Any) -> Any:
    """Whether a function that need not be a kernel is one on (a sample of) these examples."""
    some = points.take(np.linspace(0, len(points) - 1, min(CHECKED, len(points))).astype(np.int64))
    return kernels.judge(kernel, some)


def dual_certificate(training: Any, points: Any, y: np.ndarray) -> Any:
    """The certificate of a learner of two classes on the examples that it was trained on."""
    supports, geometry = training.supports, training.geometry
    if supports.kernel.data == "matrix":
        supports = supports.found_in(points)
    handed = training.weights()
    line = handed if training.outputs == 1 else handed[:, 1:] - handed[:, :1]
    scores = staged_scores(training, points, [handed])[0]
    score = scores[:, 0] if training.outputs == 1 else scores[:, 1] - scores[:, 0]
    weights, constant = line[1:, 0], float(line[0, 0])
    every = supports.every() if len(supports) else None
    square = weights @ (supports.products(every).astype(np.float64) @ weights) if every is not None else 0.0
    lengths = supports.kernel.diagonal(points) + training.bias**2
    certificate = certify_scores(
        y * score,
        radius=float(np.sqrt(max(0.0, lengths.max()))),  # of what is no kernel it may be below 0
        norm=float(np.sqrt(max(0.0, square) + constant**2)),
        mistakes=training.n_mistakes,
        rule=training.rule.name if training.output is None else f"{training.rule.name}, {training.output}",
        passes=training.n_seen / len(points),
        single_rate=training.even and geometry.schedule == "constant" and not geometry.drifts,
    )
    verdict = None if supports.kernel.always_psd else verdict_on(supports.kernel, points)
    return certificate if verdict is None or verdict else certificate.beyond_theory(str(verdict))
