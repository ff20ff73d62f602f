"""Hypotheses rebuilt from what changed: the first one, and for each later one the weights that a step set anew.

A weight is the stored weight v over a normaliser, which is one number an output and hypothesis. So a step that touches
few weights is stored as few numbers even where it divides all of them by their sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from onlearn.compiler import compiled


class Hypothesis(NamedTuple):
    """A hypothesis v_i and its votes c_i: the number of examples that it survived, the one that made it included.

    With two classes, and in regression, there are (features,) weights and one intercept; with more classes
    (classes, features) weights and (classes,) intercepts.
    """

    weights: np.ndarray
    intercept: Any
    votes: int


class Changes(NamedTuple):
    """What one step set anew: ``values[n]`` is the weight of column ``columns[n]`` for class number ``outputs[n]``."""

    columns: np.ndarray
    outputs: np.ndarray
    values: np.ndarray


class Shape(NamedTuple):
    """How the weights of a learner are shown: see ``Hypothesis``."""

    features: int
    bias: float  # the size of the constant feature
    theta: float  # the threshold
    difference: bool  # two outputs stand for one score, their difference

    def split(self, handed: np.ndarray) -> tuple[np.ndarray, Any]:
        """Weights and intercept of (1 + features) x outputs weights, which may have room for more features."""
        w, b = handed[1 : self.features + 1], handed[0] * self.bias - self.theta
        if self.difference:
            w, b = w[:, 1:] - w[:, :1], b[1:] - b[:1]
        return (w[:, 0].copy(), float(b[0])) if w.shape[1] == 1 else (np.ascontiguousarray(w.T), b)


class Replay:
    """The hypotheses 0 to K of a learner, as changes in stored weights.

    ``value`` is the new stored weight at place ``at``, or if it ``adds`` the change of it. Those of hypothesis k
    begin at ``start[k]`` and end at ``start[k + 1]``; the first has none. ``norms`` is hypotheses by outputs.
    """

    def __init__(self, base: np.ndarray, at: np.ndarray, value: np.ndarray, start: np.ndarray, norms: np.ndarray,
                 adds: bool = False) -> None:  # fmt: skip
        self.base, self.at, self.value, self.start = base, at, value, start
        self.norms, self.adds = norms, adds
        self.outputs: int = norms.shape[1]
        self.latest: tuple[int, np.ndarray] = 0, base  # the stored weights that were last asked for

    def stored(self, k: int) -> np.ndarray:
        """The stored weights after k steps. Going forward costs no more than the changes on the way."""
        known, w = self.latest
        if k < known:
            known, w = 0, self.base
        w = w.copy()
        apply_changes(w, self.at, self.value, int(self.start[known + 1]), int(self.start[k + 1]), self.adds)
        self.latest = k, w
        return w

    def weights(self, k: int) -> np.ndarray:
        """The hypothesis after k steps, features by outputs; line 0 belongs to the constant feature."""
        return self.stored(k).reshape(-1, self.outputs) / self.norms[k]

    def changes(self, k: int) -> Changes:
        """What step k set anew, the weight of the constant feature as column -1."""
        some = slice(int(self.start[k]), int(self.start[k + 1]))
        at = self.at[some]
        outputs = at % self.outputs
        values = self.stored(k)[at] if self.adds else self.value[some]
        return Changes(at // self.outputs - 1, outputs, values / self.norms[k][outputs])


@compiled
def apply_changes(w: Any, at: Any, value: Any, start: int, stop: int, adds: bool) -> None:
    """Set weights anew, or add to them, in order."""
    for n in range(start, stop):
        if adds:
            w[at[n]] += value[n]
        else:
            w[at[n]] = value[n]


class Hypotheses(Sequence[Hypothesis]):
    """The list of (v_i, c_i); each is made when it is asked for."""

    def __init__(self, replay: Replay, votes: np.ndarray, shape: Shape) -> None:
        self.replay, self.votes, self.shape = replay, votes, shape

    def __len__(self) -> int:
        return len(self.votes)

    @overload
    def __getitem__(self, place: int) -> Hypothesis: ...

    @overload
    def __getitem__(self, place: slice) -> list[Hypothesis]: ...

    def __getitem__(self, place: int | slice) -> Hypothesis | list[Hypothesis]:
        if isinstance(place, slice):
            return [self._made(k) for k in range(*place.indices(len(self)))]
        return self._made(range(len(self))[place])

    def __iter__(self) -> Iterator[Hypothesis]:
        return map(self._made, range(len(self)))

    def _made(self, k: int) -> Hypothesis:
        return Hypothesis(*self.shape.split(self.replay.weights(k)), int(self.votes[k]))

    def __repr__(self) -> str:
        return f"<{len(self)} hypotheses with {int(self.votes.sum())} votes>"


def voted_hypotheses(st: Any, shape: Shape, normalised: bool) -> Hypotheses:
    """The hypotheses that a voted learner keeps (``stabilizers.VotedState``); ``normalised``: weights sum to 1."""
    changes, present, outputs = int(st.used[0]), int(st.used[1]), st.outputs.size
    start = np.append(st.start[: present + 1], changes)
    norms = 1.0 / st.scales[: (present + 1) * outputs].reshape(-1, outputs)
    if normalised and not st.votes[0]:  # the loop notes the scale of those that have a vote
        norms[0] = st.base.reshape(-1, outputs).sum(axis=0)
    replay = Replay(st.base, st.at[:changes], st.change[:changes], start, norms, adds=True)
    return Hypotheses(replay, st.votes[: present + 1], shape)
