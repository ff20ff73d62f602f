"""The race of configurations: successive halving, the halving algorithm applied to learners.

All contestants learn side by side from the same rows. Each block of rows is judged by the hypothesis that a contestant
hands out before it learns from the block (progressive validation; Blum, Kalai & Langford 1999), so every row tests all
contestants and teaches them afterwards. At doubling counts of examples the worse half is dropped (Jamieson & Talwalkar
2016): N contestants over n rows cost about as much as 1 + log2(N) / 2 passes of one of them. What counts is the loss
since the last rung, as a learner's first steps say little about it.

After the race over fresh rows come the ``finals``: the contestants that are left make further passes, and rows held
out, not the progressive loss, decide between them and about the number of passes; more passes fit the rows that were
seen better and better, and others worse at some time. Of few rows, several parts are held out in turn.

Contestant 0 is the default. It stays unless it is clearly worse (three standard errors of the paired differences), and
the winner must beat it by one standard error: what noise decides is decided for the default. Other ties go to the
earlier one. A contestant that raises an error, or whose loss is not finite, is dropped with the reason.

A race knows nothing of files: rows are numbers of rows in data that its contestants share. They learn in threads, since
compiled loops release Python's lock; the results do not depend on how many there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np

from onlearn.threads import cores, over_pieces
from onlearn.tune.losses import Losses, joined, of_answers, of_numbers, of_probabilities, of_scores

FIRST = 256  # examples before the first rung, at least
CLEARLY = 3.0  # standard errors by which the default must be worse to be dropped
NOISE = 1.0  # standard errors by which the winner must beat the default
PASSES = (1, 2, 3, 5, 8, 12, 20)  # after which finalists are judged
BLOCKS = 2  # between two rungs, each judged before it is learned from


class Contestant(Protocol):
    """One configuration at work."""

    def judge(self, rows: np.ndarray) -> Losses:
        """What rows of these numbers cost by the present hypothesis."""
        ...

    def learn(self, rows: np.ndarray) -> None:
        """Learn from rows of these numbers, in this order."""
        ...


class Rung(NamedTuple):
    """How a contestant did since the rung before, or on rows held out."""

    examples: int  # learned from when it was judged, over all passes
    loss: float  # mean of the log-loss, or of the squared error
    mistakes: int
    rows: int  # that were judged
    cost: float  # mean of what ranks
    passes: int = 1


@dataclass
class Standing:
    """One contestant's way through the race."""

    number: int
    rungs: list[Rung] = field(default_factory=list)
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
                {"examples": one.examples, "loss": round(one.loss, 6), "mistakes": one.mistakes, "rows": one.rows,
                 "passes": one.passes}
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
    >>> race.winner, race.standings[0].why
    (1, 'half')
    """

    def __init__(
        self,
        contestants: Sequence[Contestant | str],
        *,
        keep: int = 1,
        over: Callable[[], bool] | None = None,
        workers: int | None = None,
        on_rung: Callable[[Race], None] | None = None,
    ) -> None:
        """``keep`` contestants are left by halving; one that is a text could not begin, for that reason.

        ``over`` is asked between blocks whether to end early. ``on_rung`` is called after each rung.
        """
        self.contestants: list[Any] = list(contestants)
        self.standings: list[Standing] = [
            Standing(n, why=one if isinstance(one, str) else None, dropped_at=0 if isinstance(one, str) else None)
            for n, one in enumerate(self.contestants)
        ]
        self.keep: int = max(1, keep)
        self.over: Callable[[], bool] = over or (lambda: False)
        self.workers: int = cores() if workers is None else workers
        self.on_rung: Callable[[Race], None] = on_rung or (lambda race: None)
        self.examples: int = 0  # that each contestant has learned from
        self.ended_early: bool = False
        self._since: list[list[Losses]] = [[] for _ in self.contestants]  # the last rung
        self._order: list[int] = [one.number for one in self.standings if one.alive]  # from the best to the worst
        self._held: dict[int, Losses] = {}  # the best of each finalist on rows held out

    # ------------------------------------------------------------------ fresh rows

    @property
    def alive(self) -> list[int]:
        """The numbers of the contestants that are still in the race."""
        return [one.number for one in self.standings if one.alive]

    def run(self, rows: np.ndarray) -> None:
        """Race over rows that nobody has seen, in this order; the worse half is dropped at doubling counts."""
        for start, stop, is_rung in blocks(len(rows), len(self.alive), self.keep):
            if self._ends():
                return
            self.step(rows[start:stop])
            if is_rung:
                self.end_rung()

    def step(self, rows: np.ndarray) -> None:
        """One block: each contestant is judged by it, and learns from it. The first block is learned from only."""
        first = self.examples == 0

        def work(number: int) -> None:
            contestant = self.contestants[number]
            losses = None if first else contestant.judge(rows)
            contestant.learn(rows)
            if losses is not None:
                self._since[number].append(losses)

        self._side_by_side(work, self.alive)
        self.examples += len(rows)

    def end_rung(self) -> None:
        """Judge by the rows since the last rung, and drop the worse half."""
        losses = {n: joined(self._since[n]) for n in self.alive if self._since[n]}
        self._since = [[] for _ in self.contestants]
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
            cost = float(one.cost.mean()) if len(one.cost) else math.inf
            rung = Rung(examples, float(one.loss.mean()), int(one.mistakes.sum()), len(one.loss), cost, passes)
            if not math.isfinite(cost):
                self._drop_one(number, "diverged: its loss is not finite")
            else:
                self.standings[number].rungs.append(rung)
        return sorted(
            (n for n in losses if self.standings[n].alive), key=lambda n: (self.standings[n].rungs[-1].cost, n)
        )

    def _drop(self, order: list[int], losses: dict[int, Losses], keep: int, why: str) -> None:
        """Drop all but the first so many; the default stays unless it is clearly worse than the best."""
        for number in order[keep:]:
            if number == 0 and not beats(losses[order[0]], losses[0], CLEARLY):
                continue
            self._drop_one(number, why)

    def _drop_one(self, number: int, why: str) -> None:
        standing = self.standings[number]
        standing.why, standing.dropped_at = why, self.examples
        self.contestants[number] = None  # its memory is free

    def _side_by_side(self, work: Callable[[int], None], numbers: Sequence[int]) -> None:
        """Work for each contestant, in threads; one that raises an error is dropped."""
        failed: dict[int, str] = {}

        def piece(n: int) -> None:
            try:
                work(numbers[n])
            except Exception as error:  # whatever a configuration does, the race goes on without it
                failed[numbers[n]] = reason(error)

        with np.errstate(all="ignore"):
            over_pieces(piece, len(numbers), min(self.workers, max(1, len(numbers))))
        for number, why in failed.items():
            self._drop_one(number, why)

    def _ends(self) -> bool:
        self.ended_early = self.ended_early or self.over()
        return self.ended_early or not self.alive

    # ------------------------------------------------------------------ rows held out

    def finals(
        self,
        folds: Sequence[tuple[np.ndarray, np.ndarray]],
        make: Callable[[int, int], Contestant],
        most: Callable[[int], Sequence[int]] = lambda number: PASSES,
        *,
        seed: int = 0,
        begun: int = 0,
        keep: int = 2,
    ) -> None:
        """Passes over rows, after some of which rows held out are judged; ``folds`` are pairs of rows, seen and held.

        ``make(number, fold)`` gives a contestant for each part, but the first ``begun`` folds go on with those of the
        race, who have made their first pass. ``most(number)`` are the passes after which a contestant is judged. Each
        time the worse half of the finalists is dropped, but for ``keep``.
        """
        finalists: dict[int, list[Any]] = {
            n: [self.contestants[n] if f < begun else None for f in range(len(folds))] for n in self.alive
        }
        judged = {n: sorted(set(most(n))) for n in finalists}
        best: dict[int, float] = {}
        for turn in range(1, max((max(one) for one in judged.values()), default=0) + 1):
            running = [n for n in self.alive if turn <= max(judged[n])]
            if not running or self._ends():
                break
            found: dict[int, list[Losses]] = {n: [] for n in running}

            def work(number: int, turn: int = turn, found: dict[int, list[Losses]] = found) -> None:
                for f, (seen, held) in enumerate(folds):
                    if finalists[number][f] is None:
                        finalists[number][f] = make(number, f)
                    one = finalists[number][f]
                    if not (turn == 1 and f < begun):
                        one.learn(np.random.default_rng([seed, turn, f]).permutation(seen))
                    if turn in judged[number]:
                        found[number].append(one.judge(held))

            self._side_by_side(work, running)
            losses = {n: joined(parts) for n, parts in found.items() if parts and self.standings[n].alive}
            if not losses:
                continue
            order = self._ranked(losses, turn * max(len(seen) for seen, _ in folds), turn)
            for number in order:
                cost = self.standings[number].rungs[-1].cost
                if number not in best or cost < best[number]:
                    best[number], self.standings[number].passes = cost, turn
                    self._held[number] = losses[number]
            known = sorted((n for n in best if self.standings[n].alive), key=lambda n: (best[n], n))
            self._drop(known, self._held, max(keep, math.ceil(len(known) / 2)), "half")
            self._order = known
            for number in [n for n in finalists if not self.standings[n].alive]:
                finalists[number] = []
            self.on_rung(self)

    # ------------------------------------------------------------------ the result

    @property
    def winner(self) -> int | None:
        """The best contestant; the default if noise would decide. None if no contestant is left."""
        order = [n for n in self._order if self.standings[n].alive] or self.alive
        if not order:
            return None
        if order[0] != 0 and 0 in order and self._held.keys() >= {0, order[0]}:
            return order[0] if beats(self._held[order[0]], self._held[0], NOISE) else 0
        return order[0]

    def finish(self) -> list[Standing]:
        """The standings from the winner on, with their ranks: who stayed longer is better, then who cost less."""
        won = self.winner

        def key(one: Standing) -> tuple[Any, ...]:
            failed = one.why is not None and one.why != "half"
            cost = self._held[one.number].cost.mean() if one.number in self._held else None
            cost = cost if cost is not None else one.rungs[-1].cost if one.rungs else math.inf
            stayed = math.inf if one.dropped_at is None else len(one.rungs)
            return one.number != won, failed, -stayed, float(cost), one.number

        ordered = sorted(self.standings, key=key)
        for rank, one in enumerate(ordered, 1):
            one.rank = rank
        return ordered


def beats(one: Losses, other: Losses, errors: float) -> bool:
    """Whether one cost less on the same rows, by so many standard errors of the paired differences.

    >>> even = Losses(np.ones(100), np.zeros(100))
    >>> beats(even, even, 1.0), beats(Losses(np.zeros(100), np.zeros(100)), even, 1.0)
    (False, True)
    """
    if len(one.cost) != len(other.cost) or not len(one.cost):
        return False
    differences = other.cost - one.cost
    error = float(differences.std()) / math.sqrt(len(differences))
    return bool(float(differences.mean()) > max(errors * error, 1e-12))


def blocks(rows: int, contestants: int, keep: int) -> Iterable[tuple[int, int, bool]]:
    """Blocks of rows, from and to, and whether a rung is at the end of each; the rungs double.

    The first rung comes so early that halving is over when the rows are, but not before ``FIRST`` examples. The first
    block teaches only.
    """
    halvings = max(1, math.ceil(math.log2(max(2, contestants) / max(1, keep))))
    first = min(rows, max(FIRST, rows >> halvings))
    done, rung = 0, first
    while done < rows:
        parts = 2 * BLOCKS if not done else BLOCKS
        ends = np.unique(np.linspace(done, rung, parts + 1).astype(int)).tolist()
        for start, stop in pairwise(ends):
            yield start, stop, stop == rung
        done, rung = rung, min(rows, 2 * rung) if 2 * rung <= rows - rung // 2 else rows


def reason(error: BaseException) -> str:
    """Why a contestant was dropped, in one line."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


class ArrayContestant:
    """An estimator with ``partial_fit`` on arrays: one of onlearn, of scikit-learn, or of anybody.

    It is judged by ``decision_function``, else ``predict_proba``, else ``predict``. ``classes`` None is regression.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, *, classes: Any = None, sample_weight: Any = None) -> None:
        self.estimator: Any = estimator
        self.X, self.y = X, np.asarray(y)
        self.classes: np.ndarray | None = None if classes is None else np.asarray(classes)
        self.weight: np.ndarray | None = None if sample_weight is None else np.asarray(sample_weight)
        self._begun: bool = False

    def learn(self, rows: np.ndarray) -> None:
        options: dict[str, Any] = {}
        if self.classes is not None and not self._begun:
            options["classes"] = self.classes
        if self.weight is not None:
            options["sample_weight"] = self.weight[rows]
        self.estimator.partial_fit(self._rows(rows), self.y[rows], **options)
        self._begun = True

    def judge(self, rows: np.ndarray) -> Losses:
        X, y = self._rows(rows), self.y[rows]
        if self.classes is None:
            return of_numbers(self.estimator.predict(X), y)
        numbers = np.searchsorted(self.classes, y)
        if hasattr(self.estimator, "decision_function"):
            return of_scores(self.estimator.decision_function(X), numbers)
        if hasattr(self.estimator, "predict_proba"):
            return of_probabilities(self.estimator.predict_proba(X), numbers)
        return of_answers(np.asarray(self.estimator.predict(X)) == y, len(self.classes))

    def _rows(self, rows: np.ndarray) -> Any:
        return self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]
