"""Weights of the user's choice to begin with, in the shapes that ``coef_`` and ``intercept_`` have."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.engine.training import Training


def begin_at(training: Training, coef: Any, intercept: Any, two_classes: bool) -> None:
    """Have a training that has seen nothing begin at these weights and intercepts; None: where it begins as usual.

    ``two_classes``: there is one line of weights, also where a learner that may grow has two outputs for it.
    """
    features, outputs = training.features, training.outputs
    halved = two_classes and outputs == 2
    lines = 1 if halved else outputs
    w = np.array(training.g.w).reshape(-1, outputs)
    if halved and not training.geometry.signed:
        raise ValueError(f"{training.geometry!r} with grow=True begins at weights of its own: leave grow out")
    if coef is not None:
        given = _numbers("coef_init", coef, (lines, features), lines).T
        w[1 : features + 1] = np.hstack([-given / 2, given / 2]) if halved else given
    if intercept is not None:
        constant = _numbers("intercept_init", intercept, (lines,), lines) + training.theta
        if training.bias == 0.0 and constant.any():
            raise ValueError(
                "intercept_init has no use without an intercept: set fit_intercept, or leave intercept_init out"
            )
        if training.bias != 0.0:
            constant = constant / training.bias
            w[0] = np.concatenate([-constant / 2, constant / 2]) if halved else constant
    training.begin_at(w)


def _numbers(name: str, given: Any, shape: tuple[int, ...], lines: int) -> np.ndarray:
    """Finite numbers of a shape, of which one line need not be nested."""
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers, not {given!r}") from None
    if values.shape != shape and not (lines == 1 and values.shape == shape[1:]):
        wanted = f"{shape} or {shape[1:]}" if lines == 1 else f"{shape}"
        raise ValueError(f"{name} has the shape {values.shape}, but must have {wanted}")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite numbers")
    return values.reshape(shape)
