"""The learners of a mixture, taken through the same examples, bank by bank; and what they say together."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from onlearn.compiler.inlining import Loop
from onlearn.engine.bank import CHANGED, COST, LOWEST, NOTES, RIGHT, TINY, TOTAL, Bank, log_loss, may_share
from onlearn.engine.loops import HIGHEST_LOSS, LOSS, MISTAKES, SEEN, UPDATES, remember
from onlearn.engine.scoring import scores_by
from onlearn.engine.training import Chronicle, Training
from onlearn.threads import over_rows

BATCH = 2048  # examples that the banks take turns at
NUMBERS = 1 << 18  # probabilities taken down at a time, at most


@Loop
def mix(mass, notes, banks, room, count, classes, found, tally, doubling):
    """Count what the mixture of all banks said of ``count`` examples; there is ``room`` for so many of each bank."""
    for n in range(count):
        lowest, least = notes[n * NOTES + LOWEST], notes[n * NOTES + LOWEST] + notes[n * NOTES + COST]
        for b in range(banks):
            at = (b * room + n) * NOTES
            lowest = min(lowest, notes[at + LOWEST])
            least = min(least, notes[at + LOWEST] + notes[at + COST])
        for c in range(classes):
            found[c] = 0.0
        total, right, changed = 0.0, 0.0, False
        for b in range(banks):
            at = (b * room + n) * NOTES
            share = 1.0 if banks == 1 else np.exp(lowest - notes[at + LOWEST])
            total += share * notes[at + TOTAL]
            right += 1.0 if banks == 1 else np.exp(least - (notes[at + LOWEST] + notes[at + COST]))
            changed = changed or notes[at + CHANGED] != 0.0
            for c in range(classes):
                found[c] += share * mass[(b * room + n) * classes + c]
        gold = np.int64(notes[n * NOTES + RIGHT])
        rival = total - found[gold] if classes == 1 else -1.0
        for c in range(classes):
            rival = max(rival, found[c]) if c != gold else rival
        tally[MISTAKES] += found[gold] <= rival
        tally[UPDATES] += changed
        loss = least - lowest + np.log(total)
        if banks > 1:  # else it is log(1)
            loss -= np.log(right)
        tally[LOSS] += min(max(loss, 0.0), HIGHEST_LOSS)
        tally[SEEN] += 1.0
        remember(tally, doubling)


class MixtureTraining(Chronicle):
    """Banks of learners, taken through the same examples; the counts are those of the mixture."""

    # Nothing that theorems about one learner speak of; and probabilities are not calibrated.
    rule: Any = SimpleNamespace(name="mixture", own_probabilities=True)
    stabilizer: Any = SimpleNamespace(every_hypothesis=False)
    calibrated: Any = None
    reserved: int = 0  # no rows are kept back for it
    audits_last: bool = False

    def __init__(self, members: list[Training], geometry: Any) -> None:
        super().__init__()
        self.geometry = geometry  # the facts of the learners' geometries
        self.banks: list[Bank] = []
        self.places: list[tuple[int, int]] = [(0, 0)] * len(members)  # of each learner: its bank, and where in it
        left = list(range(len(members)))
        while left:
            first = left[0]
            alike = [k for k in left if k == first or may_share(members[first], members[k])]
            for m, k in enumerate(alike):
                self.places[k] = len(self.banks), m
            self.banks.append(Bank([members[k] for k in alike]))
            left = [k for k in left if k not in alike]
        self.output: str | None = None if members[0].output is None else "mixture"
        self.stopped: str | None = None  # there is nothing that stops it early

    def __copy__(self) -> MixtureTraining:
        made = object.__new__(MixtureTraining)
        made.__dict__.update(self.__dict__)
        made.banks = [copy.copy(bank) for bank in self.banks]
        return made

    def snapshot(self) -> MixtureTraining:
        """What predicts as this does now, whatever is learned later; itself if there is none."""
        snapshots: list[Any] = [bank.snapshot() for bank in self.banks]
        if any(one is bank for one, bank in zip(snapshots, self.banks, strict=True)):
            return self
        made = copy.copy(self)
        made.banks = snapshots
        return made

    # ------------------------------------------------------------------ facts

    @property
    def features(self) -> int:
        return self.banks[0].features

    @property
    def outputs(self) -> int:
        """Of each learner."""
        return self.banks[0].classes

    @property
    def audit(self) -> Any:
        """That of the first bank: all take scores of the same examples, for the calibration of a leader."""
        return self.banks[0].audit

    @property
    def theta(self) -> float:
        return max(bank.theta for bank in self.banks)

    @property
    def may_fail(self) -> bool:
        """Whether learning may fail halfway, at something the user wrote."""
        return any(bank.may_fail for bank in self.banks)

    @property
    def checked(self) -> bool:
        """Whether rows were searched for NaN and infinity; else they are when one shows."""
        return all(bank.checked for bank in self.banks)

    @checked.setter
    def checked(self, value: bool) -> None:
        for bank in self.banks:
            bank.checked = value

    # ------------------------------------------------------------------ learning

    def learn(self, X: Any, y: np.ndarray, weight: np.ndarray, order: np.ndarray, *, audit: bool = True,
              progress: Callable[[int], None] | None = None, gathered: bool = False) -> None:  # fmt: skip
        """Learn from the rows of X in the given order, as ``Training.learn`` does; unless ``audit``, they were seen."""
        self._own()
        classes, banks = self.outputs, self.banks
        room = max(1, min(BATCH, NUMBERS // classes, len(order)))
        mass, notes, found = (
            np.empty((len(banks), room * classes)),
            np.empty((len(banks), room * NOTES)),
            np.empty(classes),
        )
        for start in range(0, len(order), room):
            some = order[start : start + room]
            mine = slice(start, start + room) if gathered else some
            targets, importance = y[mine], weight[mine]
            for n, bank in enumerate(banks):
                bank.take_down_in(mass[n], notes[n])
                bank.counts[0] = 1.0 if audit else 0.0
                bank.learn(X, targets, importance, some, audit=audit, gathered=True)
            count = int(banks[0].at[0])
            mix(mass.reshape(-1), notes.reshape(-1), len(banks), room, count, classes, found, self.tally, self.doubling)
            if progress is not None:
                progress(len(some))

    def _own(self) -> None:
        """Copy what cannot be written to, as ``Training._own`` does."""
        for name in ("tally", "doubling"):
            if not getattr(self, name).flags.writeable:
                setattr(self, name, np.array(getattr(self, name)))

    def begin_pass(self) -> None:
        super().begin_pass()
        for bank in self.banks:
            bank.begin_pass()

    def end_pass(self) -> dict[str, float]:
        for bank in self.banks:
            bank.end_pass()
        return super().end_pass()

    def grow(self, features: int, outputs: int) -> None:
        """Make room for more features and outputs."""
        for bank in self.banks:
            bank.grow(features, bank.count * outputs)

    def select(self, kept: np.ndarray) -> None:
        """Keep some features only, in the given order."""
        for bank in self.banks:
            bank.select(kept)

    # ------------------------------------------------------------------ the learners

    @property
    def losses(self) -> np.ndarray:
        """The log-loss of each learner so far."""
        return np.array([self.banks[b].losses[m] for b, m in self.places])

    @property
    def leader(self) -> int:
        """The learner with the smallest loss, the first of them."""
        return int(np.argmin(self.losses))

    def member(self, k: int) -> Training:
        """Learner k by itself."""
        bank, m = self.places[k]
        return self.banks[bank].member(m)

    def log_probabilities(self, X: Any, names: Any) -> np.ndarray:
        """Of each row and output, by what the learners hand out; with one output, the log-odds of the second class."""
        losses = np.concatenate([bank.losses for bank in self.banks])
        log_weights = losses.min() - losses
        log_weights -= np.log(np.exp(log_weights).sum())
        made = [scores_by(bank, X, names).reshape(X.shape[0], self.outputs, bank.count) for bank in self.banks]
        scores = np.ascontiguousarray(made[0] if len(made) == 1 else np.concatenate(made, axis=2), dtype=np.float64)
        out, count = np.empty((X.shape[0], self.outputs)), len(losses)
        weights = np.exp(log_weights)

        def work(start: int, stop: int) -> None:
            lines = scores[start:stop].reshape(-1), out[start:stop].reshape(-1)
            blend(
                lines[0], weights, log_weights, np.empty(2 * count + self.outputs), self.outputs, stop - start, lines[1]
            )

        over_rows(work, X.shape[0], 20 * scores.size)
        return out

    def size(self) -> float:
        """|w| of what the leader hands out: the scores for its calibration grow with that."""
        return self.member(self.leader).size()

    def rescale_audit(self, factor: float) -> None:
        """The leader grew by a factor on examples that are not audited."""
        for bank in self.banks:
            bank.rescale_audit(factor)

    def largest_weight(self) -> float:
        """The largest absolute stored weight."""
        return max(bank.largest_weight() for bank in self.banks)


@Loop
def blend(scores, weights, log_weights, room, outputs, rows, out):
    """The logarithm of each row's mixed probabilities, from the scores of all members, side by side in each output."""
    members = len(weights)
    top, total, mixed = room[:members], room[members : 2 * members], room[2 * members :]
    for i in range(rows):
        line = scores[i * outputs * members : (i + 1) * outputs * members]
        if outputs == 1:
            first, second = 0.0, 0.0
            for m in range(members):
                power = np.exp(-abs(line[m]))
                high, low = weights[m] / (1.0 + power), weights[m] * (power / (1.0 + power))
                second += high if line[m] >= 0.0 else low
                first += low if line[m] >= 0.0 else high
            if first > TINY and second > TINY:
                out[i] = np.log(second) - np.log(first)
            else:  # one of them would be rounded to nothing
                least, most = np.inf, np.inf
                for m in range(members):
                    most = min(most, log_loss(line[m]) - log_weights[m])
                    least = min(least, log_loss(-line[m]) - log_weights[m])
                first, second = 0.0, 0.0
                for m in range(members):
                    second += np.exp(most - (log_loss(line[m]) - log_weights[m]))
                    first += np.exp(least - (log_loss(-line[m]) - log_weights[m]))
                out[i] = (np.log(second) - most) - (np.log(first) - least)
        else:
            for m in range(members):
                top[m], total[m] = -np.inf, 0.0
            for c in range(outputs):
                for m in range(members):
                    top[m] = max(top[m], line[c * members + m])
            for c in range(outputs):
                for m in range(members):
                    total[m] += np.exp(line[c * members + m] - top[m])
            for c in range(outputs):
                mixed[c] = 0.0
                for m in range(members):
                    mixed[c] += weights[m] * np.exp(line[c * members + m] - top[m]) / total[m]
                if mixed[c] > TINY:
                    out[i * outputs + c] = np.log(mixed[c])
                else:
                    least = np.inf
                    for m in range(members):
                        least = min(least, np.log(total[m]) - (line[c * members + m] - top[m]) - log_weights[m])
                    sum_of = 0.0
                    for m in range(members):
                        sum_of += np.exp(least - (np.log(total[m]) - (line[c * members + m] - top[m]) - log_weights[m]))
                    out[i * outputs + c] = np.log(sum_of) - least
