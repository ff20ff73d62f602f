"""The race of configurations: successive halving, the halving algorithm applied to learners.

All contestants learn side by side from the same rows. Each block of rows is judged by the hypothesis that a contestant
hands out before it learns from the block (progressive validation; Blum, Kalai & Langford 1999), so every row tests all
contestants and teaches them afterwards. At doubling counts of examples the worse half is dropped (Jamieson & Talwalkar
2016): N contestants over n rows cost about as much as 1 + log2(N) / 2 passes of one of them. What counts is the loss
since the last rung, as a learner's first steps say little about it.

After the race over fresh rows come the ``finals``: the contestants that are left make further passes, and rows held
out, not the progressive loss, decide between them and about the number of passes; more passes fit the rows that were
seen better and better, and others worse at some time. Of few rows, several parts are held out in turn.

Contestant 0 is the default. It stays until it is clearly worse (by three standard errors of the paired differences) on
rows held out, after the passes it usually makes; and the winner must beat it by two of them: what noise decides is
decided for the default. Other ties go to the earlier one. A contestant that raises an error, or whose loss is not
finite, is dropped with the reason.

A race knows nothing of files: rows are numbers of rows in data that its contestants share. Nor does it know where they
learn, which is the business of its ``field``: in threads by default. The results do not depend on it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from onlearn.tune.field import ArrayContestant, Contestant, Failed, Field, Portion, Turn, reason, usual_field
from onlearn.tune.losses import Losses, joined

__all__ = ["PASSES", "SLOWEST", "ArrayContestant", "Contestant", "Race", "Rung", "Standing", "Stopwatch", "beats"]

FIRST = 256  # examples before the first rung, at least
CLEARLY = 3.0  # standard errors by which the default must be worse to be dropped
NOISE = 2.0  # standard errors by which the winner must beat the default
PASSES = (1, 3, 5, 8, 12, 20)  # after which finalists are judged
SLOWEST = 3  # passes before any finalist is dropped: slow learners come late
BLOCKS = 1  # between two rungs, each judged before it is learned from

Key = tuple[int, int]  # a contestant, and the fold it learns from


class Rung(NamedTuple):
    """How a contestant did since the rung before, or on rows held out."""

    examples: int  # learned from when it was judged, over all passes
    loss: float  # mean of the log-loss, or of the squared error
    mistakes: float  # of rows with weights, the sum of those that are wrong
    rows: float  # that were judged; of rows with weights, their sum
    cost: float  # mean of what ranks
    passes: int = 1


@dataclass
class Standing:
    """One contestant's way through the race."""

    number: int
    rungs: list[Rung] = dataclasses.field(default_factory=list)
    dropped_at: int | None = None  # examples
    why: str | None = None
    passes: int | None = None  # after which it was best, if there were finals
    rank: int = 0

    @property
    def alive(self) -> bool:
        return self.why is None

    def to_json(self) -> dict[str, Any]:
        """Plain facts; the figures are rounded as far as they mean something."""
        return {
            "number": self.number,
            "rungs": [
                {"examples": one.examples, "loss": round(one.loss, 6), "mistakes": _counted(one.mistakes),
                 "rows": _counted(one.rows), "passes": one.passes}
                for one in self.rungs
            ],
            "dropped_at": self.dropped_at,
            "why": self.why,
            "passes": self.passes,
            "rank": self.rank,
        }  # fmt: skip


class Stopwatch:
    """When a race has to end: after so many seconds, or when it is told to."""

    def __init__(self, seconds: float | None = None) -> None:
        self.began: float = perf_counter()
        self.seconds: float | None = seconds
        self.stopped: bool = False

    def __call__(self) -> bool:
        return self.stopped or (self.seconds is not None and perf_counter() - self.began >= self.seconds)


class Race:
    """A race between contestants; ``standings`` tell how each did, ``winner`` is the number of the best so far.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 5))
    >>> y = (X @ [1.0, -2, 0, 0, 3] > 0).astype(int)
    >>> from onlearn.engine.learner import Learner
    >>> learners = [Learner("LogisticRegression", rate=rate) for rate in (1e-6, 0.1)]
    >>> race = Race([ArrayContestant(one, X, y, classes=[0, 1]) for one in learners])
    >>> race.run(np.arange(4000))
    >>> race.winner, race.alive
    (1, [0, 1])
    """

    def __init__(
        self,
        contestants: Sequence[Contestant | str | None],
        *,
        keep: int = 1,
        first: int = 0,
        default: bool = True,
        over: Callable[[], bool] | None = None,
        field: Field | None = None,
        on_rung: Callable[[Race], None] | None = None,
    ) -> None:
        """``keep`` contestants are left by halving; one that is a text could not begin, for that reason.
        One that is None takes part in ``finals`` only.

        The first rung is not before ``first`` examples. Without a ``default``, contestant 0 is one like any other.

        ``over`` is asked between blocks whether to end early. ``field`` is where contestants learn. ``on_rung`` is
        called after each rung.
        """
        self.field: Field = usual_field() if field is None else field
        self.standings: list[Standing] = [
            Standing(n, why=one if isinstance(one, str) else None, dropped_at=0 if isinstance(one, str) else None)
            for n, one in enumerate(contestants)
        ]
        self._places: list[Any] = [  # what stands for each contestant in the field
            None if one is None or isinstance(one, str) else self.field.enter(one) for one in contestants
        ]
        self.keep: int = max(1, keep)
        self.first: int = max(first, FIRST)
        self.default: int | None = 0 if default else None
        self.over: Callable[[], bool] = over or (lambda: False)
        self.on_rung: Callable[[Race], None] = on_rung or (lambda race: None)
        self.examples: int = 0  # that each contestant has learned from
        self.ended_early: bool = False
        self._since: list[list[Losses]] = [[] for _ in self.standings]  # the last rung
        self._order: list[int] = [one.number for one in self.standings if one.alive]  # from the best to the worst
        self._trials: dict[int, dict[int, Losses]] = {}  # of finalists, by passes, on rows held out
        self._usual: dict[int, int] = {}  # passes that finalists make if nothing is said
        self.learned: int = 0  # examples that all of them have learned from together

    # ------------------------------------------------------------------ fresh rows

    @property
    def alive(self) -> list[int]:
        """The numbers of the contestants that are still in the race."""
        return [one.number for one in self.standings if one.alive]

    def run(self, rows: np.ndarray) -> None:
        """Race over rows that nobody has seen, in this order; the worse half is dropped at doubling counts."""
        for start, stop, is_rung in blocks(len(rows), len(self.alive), self.keep, self.first):
            if self._ends():
                return
            if self.step(Portion(rows, start, stop)) and is_rung:
                self.end_rung()

    def step(self, rows: Portion) -> bool:
        """One block: each contestant is judged by it, and learns from it. The first block is learned from only.

        False if the race ended meanwhile.
        """
        before = None if self.examples == 0 else rows
        found = self._side_by_side({(n, 0): (self._places[n], Turn(rows, before=before)) for n in self.alive})
        if found is None:
            return False
        for (number, _), losses in found.items():
            if losses is not None:
                self._since[number].append(losses)
        self.examples += rows.size
        return True

    def end_rung(self) -> None:
        """Judge by the rows since the last rung, and drop the worse half."""
        losses = {n: joined(self._since[n]) for n in self.alive if self._since[n]}
        self._since = [[] for _ in self.standings]
        if not losses:
            return
        order = self._ranked(losses, self.examples)
        if order:
            self._drop(order, losses, max(self.keep, math.ceil(len(order) / 2)), "half")
            self._order = order
        self.on_rung(self)

    def _ranked(self, losses: dict[int, Losses], examples: int, passes: int = 1) -> list[int]:
        """Note how each contestant did; their numbers from the best on, without those whose loss is not finite."""
        for number, one in losses.items():
            cost = one.mean_cost if len(one.cost) else math.inf
            rung = Rung(examples, one.mean(one.loss), one.total(one.mistakes), one.total(), cost, passes)
            if not math.isfinite(cost):
                self.drop(number, "diverged: its loss is not finite")
            else:
                self.standings[number].rungs.append(rung)
        return sorted(
            (n for n in losses if self.standings[n].alive), key=lambda n: (self.standings[n].rungs[-1].cost, n)
        )

    def _drop(self, order: list[int], losses: dict[int, Losses], keep: int, why: str) -> None:
        """Drop all but the first so many; the default stays until it is clearly worse after its usual passes."""
        for number in order[keep:]:
            if number == self.default and not (self._is_judged() and beats(losses[order[0]], losses[0], CLEARLY)):
                continue
            self.drop(number, why)

    def _is_judged(self) -> bool:
        """Whether the default has made its passes, on which rows held out were judged."""
        return self._usual.get(0, 0) in self._trials.get(0, {})

    def drop(self, number: int, why: str) -> None:
        """A contestant leaves the race."""
        standing = self.standings[number]
        standing.why, standing.dropped_at = why, self.examples
        self._places[number] = None  # its memory is free

    def _side_by_side(self, turns: dict[Key, tuple[Any, Turn]]) -> dict[Key, Losses | None] | None:
        """Contestants take turns; the losses of those that were judged. One that fails is dropped.

        None if the race ended meanwhile, when the turns do not count.
        """
        outcomes = self.field.take_turns(list(turns.values()), self.over)
        if outcomes is None:
            self.ended_early = True
            return None
        self.learned += sum(turn.learn.size for _, turn in turns.values())
        found: dict[Key, Losses | None] = {}
        for key, outcome in zip(turns, outcomes):
            if not isinstance(outcome, Failed):
                found[key] = outcome
            elif self.standings[key[0]].alive:
                self.drop(key[0], outcome.why)
        return found

    def _ends(self) -> bool:
        self.ended_early = self.ended_early or self.over()
        return self.ended_early or not self.alive

    # ------------------------------------------------------------------ rows held out

    def finals(
        self,
        folds: Sequence[tuple[np.ndarray, np.ndarray]],
        make: Callable[[int, int], Contestant],
        passes: Callable[[int], Sequence[int]] = lambda number: PASSES,
        usual: Callable[[int], int] = lambda number: PASSES[1],
        *,
        seed: int = 0,
        keep: int = 2,
    ) -> None:
        """Passes over rows, after some of which rows held out are judged; ``folds`` are pairs of rows, seen and held.

        ``make(number, fold)`` gives a new contestant for each part. ``passes(number)`` are the numbers of passes after
        which it is judged; another than the ``usual`` one must be better by two standard errors. From pass
        ``SLOWEST`` on, the worse half of the finalists is dropped each time, but for ``keep`` of them.
        """
        self._places = [None for _ in self._places]  # their memory is free
        finalists = self._finalists(len(folds), make)
        self._usual = {n: usual(n) for n in finalists}
        judged = {n: sorted({*passes(n)}) for n in finalists}
        for turn in range(1, max((one[-1] for one in judged.values()), default=0) + 1):
            running = [n for n in self.alive if turn <= judged[n][-1]]
            if not running or self._ends():
                break
            losses = self._pass({n: finalists[n] for n in running}, judged, folds, turn, seed)
            if not losses:
                continue
            self.examples = turn * max(len(seen) for seen, _ in folds)
            for number in self._ranked(losses, self.examples, turn):
                self._trials.setdefault(number, {})[turn] = losses[number]
            best = {n: self._best(n)[1] for n in self._trials if self.standings[n].alive}
            self._order = sorted(best, key=lambda n: (best[n].mean_cost, n))
            if turn >= SLOWEST:
                self._drop(self._order, best, max(keep, math.ceil(len(best) / 2)), "half")
            for number in [n for n in finalists if not self.standings[n].alive]:
                finalists[number] = []
            self.on_rung(self)
        for number, trials in self._trials.items():
            cut_short = self.ended_early and max(trials) < self._usual[number] in judged[number]
            self.standings[number].passes = self._usual[number] if cut_short else self._best(number)[0]

    def _finalists(self, folds: int, make: Callable[[int, int], Contestant]) -> dict[int, list[Any]]:
        """What stands for the new contestants, one for each fold; one that cannot be made is dropped."""
        finalists: dict[int, list[Any]] = {}
        for number in self.alive:
            try:
                finalists[number] = [self.field.enter(make(number, fold)) for fold in range(folds)]
            except Exception as error:  # whatever a configuration does, the race goes on without it
                self.drop(number, reason(error))
        return finalists

    def _pass(
        self,
        running: dict[int, list[Any]],
        judged: dict[int, list[int]],
        folds: Sequence[tuple[np.ndarray, np.ndarray]],
        turn: int,
        seed: int,
    ) -> dict[int, Losses]:
        """One pass of each finalist over each fold; what the rows held out cost those that are judged after it."""
        turns: dict[Key, tuple[Any, Turn]] = {}
        for number, places in running.items():
            for f, (seen, held) in enumerate(folds):
                after = Portion(held) if turn in judged[number] else None
                turns[number, f] = places[f], Turn(Portion(seen, seed=(seed, turn, f)), after=after)
        found: dict[int, list[Losses]] = {n: [] for n in running}
        for (number, _), losses in (self._side_by_side(turns) or {}).items():
            if losses is not None:
                found[number].append(losses)
        return {n: joined(parts) for n, parts in found.items() if parts and self.standings[n].alive}

    def _best(self, number: int) -> tuple[int, Losses]:
        """The number of passes at which a finalist was best, the usual one if noise would decide; and its losses."""
        trials, usual = self._trials[number], self._usual[number]
        best = min(trials, key=lambda turn: (trials[turn].mean_cost, turn))
        if usual in trials and not beats(trials[best], trials[usual], NOISE):
            best = usual
        return best, trials[best]

    # ------------------------------------------------------------------ the result

    @property
    def order(self) -> list[int]:
        """The contestants that are still in the race, from the best to the worst so far."""
        return [n for n in self._order if self.standings[n].alive]

    @property
    def winner(self) -> int | None:
        """The best contestant; the default if noise would decide. None if no contestant is left."""
        order = self.order or self.alive
        if not order:
            return None
        if self.default is not None and order[0] != 0 and 0 in order and self._trials.keys() >= {0, order[0]}:
            return order[0] if beats(self._best(order[0])[1], self._best(0)[1], NOISE) else 0
        return order[0]

    def usual_passes(self, number: int) -> int | None:
        """The passes that a finalist makes if nothing is said."""
        return self._usual.get(number)

    def finish(self) -> list[Standing]:
        """The standings from the winner on, with their ranks: who stayed longer is better, then who cost less."""
        won = self.winner

        def key(one: Standing) -> tuple[Any, ...]:
            failed = one.why is not None and one.why != "half"
            cost = one.rungs[-1].cost if one.rungs else math.inf
            if one.number in self._trials:
                cost = self._best(one.number)[1].mean_cost
            stayed = math.inf if one.dropped_at is None else len(one.rungs)
            return one.number != won, failed, -stayed, cost, one.number

        ordered = sorted(self.standings, key=key)
        for rank, one in enumerate(ordered, 1):
            one.rank = rank
        return ordered


def beats(one: Losses, other: Losses, errors: float) -> bool:
    """Whether one cost less on the same rows, by so many standard errors of the paired differences.

    With weights h, the mean of differences d is m = sum(h d) / sum(h), its error sqrt(sum(h^2 (d - m)^2)) / sum(h).

    >>> even = Losses(np.ones(100), np.zeros(100))
    >>> beats(even, even, 1.0), beats(Losses(np.zeros(100), np.zeros(100)), even, 1.0)
    (False, True)
    """
    if len(one.cost) != len(other.cost) or not len(one.cost):
        return False
    differences = other.cost - one.cost
    gain = one.mean(differences)
    spread = differences - gain if one.weight is None else one.weight * (differences - gain)
    error = math.sqrt(float(spread @ spread)) / max(one.total(), 1e-300)
    return gain > max(errors * error, 1e-12)


def blocks(rows: int, contestants: int, keep: int, least: int = FIRST) -> Iterable[tuple[int, int, bool]]:
    """Blocks of rows, from and to, and whether a rung is at the end of each; the rungs double.

    The first rung comes so early that halving is over when the rows are, but not before ``least`` examples. The first
    block teaches only.
    """
    halvings = max(1, math.ceil(math.log2(max(2, contestants) / max(1, keep))))
    first = min(rows, max(least, rows >> halvings))
    done, rung = 0, _or_all(first, rows)
    while done < rows:
        parts = 2 * BLOCKS if not done else BLOCKS
        ends = np.unique(np.linspace(done, rung, parts + 1).astype(int)).tolist()
        for start, stop in pairwise(ends):
            yield start, stop, stop == rung
        done, rung = rung, _or_all(2 * rung, rows)


def _counted(value: float) -> float:
    """A number of rows, or a sum of their weights, as short as it can be written."""
    return int(value) if float(value).is_integer() else round(value, 6)


def _or_all(rung: int, rows: int) -> int:
    """A rung, or all rows if what is left behind it is less than half as much."""
    return rung if rung + rung // 2 < rows else rows
