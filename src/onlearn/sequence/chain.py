"""How labels follow each other: counts of beginnings, transitions and ends, and the lattice that they make.

After a label i there is another label, or the sequence ends: N_i = sum_j c(i, j) + c(i, end) events, T_i of them
different. With L labels,

    maximum likelihood   P(j | i) = c(i, j) / N_i
    add-k                P(j | i) = (c(i, j) + k) / (N_i + k (L + 1))
    Witten-Bell          P(j | i) = (c(i, j) + T_i P(j)) / (N_i + T_i)

where P(j) is how often j occurs whatever comes before, in the same way smoothed by 1 / (L + 1). Beginnings are the
transitions from an extra label, which the end cannot follow. Witten and Bell (1991) have the second, method C.
"""

from __future__ import annotations

import numpy as np

from onlearn.sequence.lattice import Lattice, Posterior

LEAST = 1e-30  # the least probability of anything: what was never seen may come nevertheless


def logarithms(probabilities: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(probabilities, LEAST))


def witten_bell(counts: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """(c + T P) / (N + T) of each row; P itself of a row without counts."""
    events, kinds = counts.sum(axis=-1, keepdims=True), (counts > 0).sum(axis=-1, keepdims=True)
    total = events + kinds
    return np.where(total > 0, (counts + kinds * lower) / np.where(total > 0, total, 1), lower)


def add_k(counts: np.ndarray, k: float) -> np.ndarray:
    """(c + k) / (N + k events) of each row; the same for all where that is 0 / 0."""
    total = counts.sum(axis=-1, keepdims=True) + k * counts.shape[-1]
    return np.where(total > 0, (counts + k) / np.where(total > 0, total, 1), 1 / counts.shape[-1])


class Chain:
    """How often each label is the first of a sequence, the next after another, and the last."""

    def __init__(self, initial: np.ndarray, transitions: np.ndarray, final: np.ndarray) -> None:
        self.initial = initial
        self.transitions = transitions
        self.final = final

    @classmethod
    def empty(cls, labels: int) -> Chain:
        """Of that many labels, nothing counted yet."""
        return cls(np.zeros(labels), np.zeros((labels, labels)), np.zeros(labels))

    @classmethod
    def random(cls, labels: int, rng: np.random.Generator) -> Chain:
        """Probabilities to begin Baum-Welch with."""
        after = rng.dirichlet(np.ones(labels + 1), labels)
        return cls(rng.dirichlet(np.ones(labels)), after[:, :-1], after[:, -1])

    @classmethod
    def expected(cls, posterior: Posterior, offsets: np.ndarray) -> Chain:
        """The counts that forward and backward sums expect."""
        some = np.flatnonzero(np.diff(offsets))
        first, last = posterior.marginals[offsets[some]], posterior.marginals[offsets[some + 1] - 1]
        return cls(first.sum(axis=0), posterior.transitions, last.sum(axis=0))

    @property
    def labels(self) -> int:
        return len(self.initial)

    def grown(self, labels: int) -> Chain:
        """The same counts with room for more labels."""
        more = labels - self.labels
        grown = np.pad(self.initial, (0, more)), np.pad(self.transitions, (0, more)), np.pad(self.final, (0, more))
        return Chain(*grown) if more else self

    def add(self, codes: np.ndarray, offsets: np.ndarray) -> None:
        """Count the labels of sequences; -1 is a token without one, which is left out."""
        labels, some = self.labels, np.flatnonzero(np.diff(offsets))
        first, last = codes[offsets[some]], codes[offsets[some + 1] - 1]
        self.initial += np.bincount(first[first >= 0], minlength=labels)
        self.final += np.bincount(last[last >= 0], minlength=labels)
        inside = np.ones(len(codes), dtype=bool)
        inside[offsets[some]] = False
        after = np.flatnonzero(inside)
        after = after[(codes[after] >= 0) & (codes[after - 1] >= 0)]
        pairs = np.bincount(codes[after - 1] * labels + codes[after], minlength=labels * labels)
        self.transitions += pairs.reshape(labels, labels)

    # ------------------------------------------------------------------ probabilities

    def after(self) -> np.ndarray:
        """What follows each label; the end is the last column."""
        return np.column_stack([self.transitions, self.final])

    def maximum(self) -> Lattice:
        """The lattice of maximum likelihood."""
        after, initial = add_k(self.after(), 0.0), add_k(self.initial, 0.0)
        return Lattice(logarithms(after[:, :-1]), logarithms(initial), logarithms(after[:, -1]))

    def smoothed(self, smoothing: str, k: float) -> Lattice:
        """The lattice of smoothed probabilities."""
        after = self.after()
        if smoothing == "add-k":
            follows, begins = add_k(after, k), add_k(self.initial, k)
        else:
            every = after.sum(axis=0) + np.append(self.initial, 0.0)
            lower = witten_bell(every, np.full(len(every), 1 / len(every)))
            follows = witten_bell(after, lower)
            begins = witten_bell(self.initial, lower[:-1] / lower[:-1].sum())
        return Lattice(logarithms(follows[:, :-1]), logarithms(begins), logarithms(follows[:, -1]))
