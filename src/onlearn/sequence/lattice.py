"""The lattice of a sequence: every label at every position, every transition between neighbours, and the best path.

A path y_1 ... y_n through the labels of n tokens has the score

    s(y) = initial[y_1] + sum_t emissions[t, y_t] + sum_t transitions[y_t, y_t+1] + final[y_n]

With logarithms of probabilities for weights it is the log-probability of a hidden Markov model; with any weights,
p(y) = e^(s(y) - log Z) is that of a conditional random field. A weight of minus infinity forbids what it belongs to.

All algorithms take time proportional to the number of tokens times the square of the number of labels:

    Viterbi            v_t(j) = emissions[t, j] + max_i (v_t-1(i) + transitions[i, j])          the best path
    forward            a_t(j) = emissions[t, j] + log sum_i e^(a_t-1(i) + transitions[i, j])    log Z
    backward           b_t(i) = log sum_j e^(transitions[i, j] + emissions[t+1, j] + b_t+1(j))
    marginals          p(y_t = j) = e^(a_t(j) + b_t(j) - log Z)

The forward and backward sums are taken of powers, scaled so that they add up to 1 at each token, and begun anew in
logarithms for a sequence in which so much is lost to rounding that it could show. So nothing underflows.

Rabiner (1989) has the algorithms for hidden Markov models, Lafferty, McCallum and Pereira (2001) conditional random
fields.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import compiled
from onlearn.sequence.sums import lower_emissions, posterior_in_logarithms, posterior_in_powers
from onlearn.threads import over_rows

NO_LABEL = -1  # in paths: there is none


class Posterior(NamedTuple):
    """What forward and backward sums say of sequences.

    ``log_z`` has one number a sequence, minus infinity if no path is allowed; ``marginals`` the probability of each
    label at each token; ``transitions`` how often each transition is expected, summed over all sequences.
    """

    log_z: np.ndarray
    marginals: np.ndarray
    transitions: np.ndarray


class Lattice:
    """The weights of labels, transitions, beginnings and ends; sequences are given as one array of emissions.

    Sequence k of ``offsets`` has the rows ``offsets[k]`` to ``offsets[k + 1]`` of the emissions, a row for each token
    and a column for each label. Sequences may be empty.

    >>> lattice = Lattice(np.log([[0.7, 0.3], [0.4, 0.6]]), initial=np.log([0.6, 0.4]))
    >>> emissions = np.log([[0.5, 0.1], [0.4, 0.3], [0.1, 0.6]])
    >>> path, score = lattice.best(emissions, [0, 3])
    >>> path, np.exp(score).round(5)
    (array([0, 0, 1]), array([0.01512]))
    """

    def __init__(self, transitions: Any, initial: Any = None, final: Any = None) -> None:
        self.transitions: np.ndarray = np.ascontiguousarray(transitions, dtype=np.float64)
        if self.transitions.ndim != 2 or self.transitions.shape[0] != self.transitions.shape[1]:
            raise ValueError(f"transitions must be a square matrix, not an array of shape {self.transitions.shape}")
        self.labels: int = len(self.transitions)
        if not self.labels:
            raise ValueError("a lattice needs at least one label")
        self.initial: np.ndarray = self._line(initial, "initial")
        self.final: np.ndarray = self._line(final, "final")
        for name in ("transitions", "initial", "final"):
            weights = getattr(self, name)
            if not (weights < np.inf).all():  # which NaN is not, either
                raise ValueError(f"{name} weights must be finite, or minus infinity for what is forbidden")

    def _line(self, given: Any, name: str) -> np.ndarray:
        line = np.zeros(self.labels) if given is None else np.ascontiguousarray(given, dtype=np.float64)
        if line.shape != (self.labels,):
            raise ValueError(f"{name} must have one weight for each of {self.labels} labels, not shape {line.shape}")
        return line

    def constrained(self, transitions: Any = None, initial: Any = None, final: Any = None) -> Lattice:
        """The lattice with only those transitions, beginnings and ends that are True here."""
        kept = [self.transitions, self.initial, self.final]
        for k, allowed in enumerate((transitions, initial, final)):
            if allowed is not None:
                allowed = np.asarray(allowed, dtype=bool)
                if allowed.shape != kept[k].shape:
                    raise ValueError(f"constraints of shape {allowed.shape} do not fit weights of {kept[k].shape}")
                kept[k] = np.where(allowed, kept[k], -np.inf)
        return Lattice(*kept)

    # ------------------------------------------------------------------ the best paths

    def best(self, emissions: Any, offsets: Any, fixed: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The labels of the best path of each sequence, one a token, and its score; of equal ones the first labels.

        ``fixed`` holds the label of each token that is given, and ``NO_LABEL`` (-1) for the others. If no path is
        allowed, the score is minus infinity and the labels are ``NO_LABEL``.
        """
        emissions, offsets = self._checked(emissions, offsets, fixed)
        path, scores = np.full(len(emissions), NO_LABEL), np.zeros(len(offsets) - 1)
        longest = int(np.diff(offsets).max(initial=0))

        def work(start: int, stop: int) -> None:
            room, came = np.empty(2 * self.labels), np.empty((longest, self.labels), np.int32)
            viterbi(emissions, offsets, start, stop, *self.weights(), room, came, path, scores)

        over_rows(work, len(offsets) - 1, self._cost(emissions))
        return path, scores

    def k_best(self, emissions: Any, offsets: Any, k: int, fixed: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The k best paths of each sequence, best first: labels (k, tokens) and scores (k, sequences).

        Where there are fewer paths, the score is minus infinity and the labels are ``NO_LABEL``.
        """
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
            raise ValueError(f"k must be a whole number of at least 1, not {k!r}")
        emissions, offsets = self._checked(emissions, offsets, fixed)
        path, scores = np.full((k, len(emissions)), NO_LABEL), np.full((k, len(offsets) - 1), -np.inf)
        longest = int(np.diff(offsets).max(initial=0))

        def work(start: int, stop: int) -> None:
            room, turn = np.empty(2 * self.labels * k), np.empty(self.labels, np.int64)
            came = np.empty((longest, self.labels * k), np.int64)
            k_viterbi(emissions, offsets, start, stop, k, *self.weights(), room, turn, came, path, scores)

        over_rows(work, len(offsets) - 1, self._cost(emissions) * k)
        return path, scores

    def path_scores(self, emissions: Any, offsets: Any, path: Any) -> np.ndarray:
        """The score of one path of each sequence, given by the labels of its tokens."""
        emissions, offsets = self._checked(emissions, offsets, None)
        path = np.asarray(path, dtype=np.int64)
        if path.shape != (len(emissions),) or not ((path >= 0) & (path < self.labels)).all():
            raise ValueError(f"a path has a label from 0 to {self.labels - 1} for each of {len(emissions)} tokens")
        scores = np.zeros(len(offsets) - 1)
        score_paths(emissions, offsets, *self.weights(), path, scores)
        return scores

    # ------------------------------------------------------------------ sums over all paths

    def posterior(self, emissions: Any, offsets: Any, fixed: Any = None) -> Posterior:
        """log Z, the marginals of labels, and the expected counts of transitions.

        Where no path is allowed, all marginals are 0.
        """
        emissions, offsets = self._checked(emissions, offsets, fixed)
        sequences, labels = len(offsets) - 1, self.labels
        log_z, marginals = np.zeros(sequences), np.zeros_like(emissions)
        tops = np.zeros(len(emissions))
        longest = int(np.diff(offsets).max(initial=0))
        highest = np.max(self.transitions, initial=-np.inf, where=np.isfinite(self.transitions))
        shift = float(highest) if np.isfinite(highest) else 0.0
        powers = np.exp(self.transitions - shift)

        def work(start: int, stop: int) -> np.ndarray:
            room, scales, counts = np.empty((longest, labels)), np.empty(longest), np.zeros((labels, labels))
            short, sums, other = np.empty((labels, labels)), np.empty(2 * labels), np.empty((longest, labels))
            lower_emissions(emissions, offsets, start, stop, self.initial, tops, marginals)
            rows = slice(int(offsets[start]), int(offsets[stop]))
            np.exp(marginals[rows], out=marginals[rows])
            posterior_in_powers(
                offsets, start, stop, powers, shift, self.final, tops, room, scales, sums, short, log_z, marginals,
                counts,
            )  # fmt: skip
            again = np.flatnonzero(np.isnan(log_z[start:stop])) + start
            posterior_in_logarithms(
                emissions, offsets, again, *self.weights(), room, other, sums, log_z, marginals, counts
            )
            return counts

        counts = np.zeros((labels, labels))
        for one in over_rows(work, sequences, 16 * self._cost(emissions)):
            counts += one
        return Posterior(log_z, marginals, counts)

    def log_z(self, emissions: Any, offsets: Any, fixed: Any = None) -> np.ndarray:
        """The logarithm of the sum of e^score over all paths of each sequence."""
        return self.posterior(emissions, offsets, fixed).log_z

    def log_probability(self, emissions: Any, offsets: Any, path: Any) -> np.ndarray:
        """The log-probability of one path of each sequence among all its paths."""
        return self.path_scores(emissions, offsets, path) - self.log_z(emissions, offsets)

    def posterior_labels(self, emissions: Any, offsets: Any) -> np.ndarray:
        """The label of the largest marginal of each token; these may not form a path that is allowed."""
        posterior = self.posterior(emissions, offsets)
        some = np.repeat(posterior.log_z > -np.inf, np.diff(np.asarray(offsets)))
        return np.where(some, np.argmax(posterior.marginals, axis=1), NO_LABEL)

    # ------------------------------------------------------------------ input

    def weights(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.transitions, self.initial, self.final

    def _cost(self, emissions: np.ndarray) -> int:
        return int(len(emissions) * self.labels * self.labels)

    def _checked(self, emissions: Any, offsets: Any, fixed: Any) -> tuple[np.ndarray, np.ndarray]:
        """Emissions and offsets as the loops take them; where labels are fixed, the others are forbidden."""
        emissions = np.ascontiguousarray(emissions, dtype=np.float64)
        offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        if emissions.ndim != 2 or emissions.shape[1] != self.labels:
            raise ValueError(f"emissions must have a column for each of {self.labels} labels, not {emissions.shape}")
        if not (emissions < np.inf).all():
            raise ValueError("emissions must be finite, or minus infinity for what is forbidden")
        if offsets.ndim != 1 or not len(offsets) or offsets[0] != 0 or offsets[-1] != len(emissions):
            raise ValueError(f"offsets must go from 0 to the number of tokens, {len(emissions)}")
        if (np.diff(offsets) < 0).any():
            raise ValueError("offsets must not fall")
        if fixed is None:
            return emissions, offsets
        fixed = np.asarray(fixed, dtype=np.int64)
        if fixed.shape != (len(emissions),) or not ((fixed >= NO_LABEL) & (fixed < self.labels)).all():
            raise ValueError(f"fixed must have a label or -1 for each of {len(emissions)} tokens")
        given = np.flatnonzero(fixed != NO_LABEL)
        kept = emissions[given, fixed[given]]
        emissions = emissions.copy()
        emissions[given] = -np.inf
        emissions[given, fixed[given]] = kept
        return emissions, offsets


# ----------------------------------------------------------------------------------------------------
# Compiled passes.


@compiled
def viterbi(emissions, offsets, start, stop, transitions, initial, final, room, came, path, scores):
    """The best path of the sequences from ``start`` to ``stop``."""
    labels = len(initial)
    now, before = room[:labels], room[labels:]
    for k in range(start, stop):
        first, last = offsets[k], offsets[k + 1]
        if first == last:
            scores[k] = 0.0
            continue
        for j in range(labels):
            now[j] = initial[j] + emissions[first, j]
        for t in range(first + 1, last):
            for j in range(labels):
                before[j] = now[j]
                now[j] = -np.inf
                came[t - first, j] = 0
            for i in range(labels):  # along rows of the transitions, so that the inner loop is a vector's
                for j in range(labels):
                    value = before[i] + transitions[i, j]
                    if value > now[j]:
                        now[j] = value
                        came[t - first, j] = i
            for j in range(labels):
                now[j] += emissions[t, j]
        best, label = -np.inf, -1
        for j in range(labels):
            if now[j] + final[j] > best:
                best, label = now[j] + final[j], j
        scores[k] = best
        if label < 0:  # nothing is allowed
            continue
        for t in range(last - 1, first - 1, -1):
            path[t] = label
            label = came[t - first, label] if t > first else label


@compiled
def k_viterbi(emissions, offsets, start, stop, k, transitions, initial, final, room, turn, came, path, scores):
    """The k best paths of each sequence: each label keeps the k best ways to it, best first."""
    labels = len(initial)
    now, before = room[: labels * k], room[labels * k :]
    for n in range(start, stop):
        first, last = offsets[n], offsets[n + 1]
        if first == last:
            scores[0, n] = 0.0
            continue
        for j in range(labels):
            now[j * k] = initial[j] + emissions[first, j]
            for r in range(1, k):
                now[j * k + r] = -np.inf
        for t in range(first + 1, last):
            for m in range(labels * k):
                before[m] = now[m]
            for j in range(labels):
                for i in range(labels):
                    turn[i] = 0
                for r in range(k):
                    best, who = -np.inf, -1
                    for i in range(labels):
                        if turn[i] < k and before[i * k + turn[i]] + transitions[i, j] > best:
                            best, who = before[i * k + turn[i]] + transitions[i, j], i
                    now[j * k + r] = best + emissions[t, j]
                    came[t - first, j * k + r] = -1
                    if who >= 0:
                        came[t - first, j * k + r] = who * k + turn[who]
                        turn[who] += 1
        for i in range(labels):
            turn[i] = 0
        for r in range(k):
            best, who = -np.inf, -1
            for i in range(labels):
                if turn[i] < k and now[i * k + turn[i]] + final[i] > best:
                    best, who = now[i * k + turn[i]] + final[i], i
            if who < 0:
                break
            scores[r, n], at = best, who * k + turn[who]
            turn[who] += 1
            for t in range(last - 1, first - 1, -1):
                path[r, t] = at // k
                at = came[t - first, at] if t > first else at


@compiled
def score_paths(emissions, offsets, transitions, initial, final, path, scores):
    """The score of one path of each sequence."""
    for k in range(len(offsets) - 1):
        first, last = offsets[k], offsets[k + 1]
        total = 0.0
        if first < last:
            total = initial[path[first]] + final[path[last - 1]]
        for t in range(first, last):
            total += emissions[t, path[t]]
            if t > first:
                total += transitions[path[t - 1], path[t]]
        scores[k] = total
