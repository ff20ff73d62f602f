"""What a network says of rows: scores, and their gradients for explanations.

In double precision, whatever that of learning: so a row has the same score among others as by itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.engine.loops import HIGHEST_SCORE
from onlearn.mlp import loops
from onlearn.mlp.batches import as_kind, dense_batch, flat, has_room, scaled
from onlearn.mlp.network import LOSSES, REGRESSION, UNITS, Layout, Workspace, backward, forward
from onlearn.mlp.scaling import FAR, Scaler

BLOCK = 512  # rows scored at a time


class Design(NamedTuple):
    """What a network is, and how it learns."""

    hidden: tuple[int, ...]
    unit: str
    loss: str  # of LOSSES, or "regression"
    optimizer: Any
    l2: float
    batch: int
    dtype: str
    scaled: bool

    @property
    def activation(self) -> Any:
        """The units of hidden layers."""
        return UNITS[self.unit]

    @property
    def error(self) -> Any:
        return REGRESSION if self.loss == "regression" else LOSSES[self.loss]


class Scorer:
    """A network that learns no more. ``numbers`` are the measures of the numbers it predicts."""

    design: Design
    layout: Layout
    sparse: bool
    made_of: np.ndarray  # the weights that it has a copy of
    steps: int
    outputs: int
    W: list[np.ndarray]
    b: list[np.ndarray]
    inputs: Scaler
    shift: float
    unit: float

    def __init__(self, design: Design, layout: Layout, sparse: bool, w: np.ndarray, steps: int, inputs: Scaler,
                 numbers: Scaler | None) -> None:  # fmt: skip
        self.design, self.layout, self.sparse, self.made_of, self.steps = design, layout, sparse, w, steps
        self.outputs = layout.sizes[-1]
        self.W, self.b = layout.views(w.astype(np.float64))
        self.inputs = inputs.fixed()
        self.shift, self.unit = 0.0, 1.0  # of the numbers predicted
        if numbers is not None:
            shift, factor = numbers.factors
            self.shift, self.unit = float(shift[0]), 1.0 / factor[0] if factor[0] > 0 else 0.0

    def scores(self, X: Any) -> np.ndarray:
        """Scores of raw rows by output; in regression the numbers predicted."""
        X, rows = as_kind(X, self.sparse), X.shape[0]
        out = np.empty((rows, self.outputs))
        X = scaled(X, self.sparse, self.inputs, np.float64)
        room = Workspace(self.layout, min(rows, BLOCK), np.float64, has_room(self.sparse, self.layout.sizes[0]))
        for start in range(0, rows, BLOCK):
            some = np.arange(start, min(start + BLOCK, rows))
            space = room.part(len(some))
            dense = dense_batch(X, some, self.sparse, space)
            if dense is None:
                width, z = self.layout.sizes[1], flat(space.a[0])
                loops.first_layer(X.data, X.indices, X.indptr, some, flat(self.W[0]), width, z)
            with np.errstate(over="ignore", invalid="ignore"):
                out[start : start + len(some)] = forward(self.design.activation, self.W, self.b, dense, space)
        if self.design.loss == "regression":
            out = out * self.unit + self.shift
        if not np.isfinite(out).all():
            out = np.nan_to_num(out, nan=0.0, posinf=HIGHEST_SCORE, neginf=-HIGHEST_SCORE)
        return out

    def gradient_of(self, row: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient of a combination of scores by the columns of a raw row, and what columns are counted from."""
        shift, factor = self.inputs.factors
        space = Workspace(self.layout, 1, np.float64)
        x = np.clip((row - shift) * factor, -FAR, FAR)
        unit = self.design.activation
        forward(unit, self.W, self.b, x, space)
        space.a[-1][...] = wanted
        gradients = [np.empty_like(one) for one in self.W], [np.empty_like(one) for one in self.b]
        d = backward(unit, self.W, x, space, *gradients)
        return (d @ self.W[0].T)[0] * factor * self.unit, shift
