"""Races on a cluster: the turns of contestants are tasks, and what contestants have learned stays on the workers.

A task is a function of a contestant before its turn and of rows that all workers share, so a result that is lost with
its worker is computed again, from the contestant that has learned nothing if need be, and the race is that of threads,
bit for bit. Here is known which turns each contestant took; Dask knows where it is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from onlearn.cluster.connection import (
    PATIENCE,
    Connection,
    LostError,
    Task,
    WorkersLostError,
)
from onlearn.cluster.rounds import Shared
from onlearn.cluster.scheduler import connect
from onlearn.threads import at_most
from onlearn.tune.field import Contestant, Failed, Outcome, Portion, Turn, racing_on, take_turn

WHAT = "the race"
TOGETHER = 3  # times that all workers may be lost before contestants learn one after another
ALONE = 3  # times that they may be lost while one contestant learns alone, before it is dropped
GONE = ("cancelled", "lost", "error")


@contextmanager
def on(cluster: Any, *, patience: float = PATIENCE) -> Iterator[Connection]:
    """Within, races are run on a cluster: those of ``onlearn.tune.Tuner``, and of ``train`` with ``learner="auto"``.

    ``cluster`` is a client of Dask's, the address of a scheduler, or ``"local:4"`` for processes that end afterwards.
    ``patience`` are seconds to wait for a worker when there is none.
    """
    with connect(cluster, patience=patience) as connection, racing_on(ClusterField(connection)):
        yield connection


# ---------------------------------------------------------------------- on the workers


class Progress(NamedTuple):
    """A contestant after a turn, without its rows (None if it failed), and how the turn went."""

    contestant: Any
    outcome: Outcome


class Part(NamedTuple):
    """A portion without the list of numbers that it is part of."""

    start: int
    stop: int | None
    seed: tuple[int, ...] | None


def advance(rows: Any, before: Any, orders: list[Any], parts: list[Part | None]) -> Progress:
    """The contestant after a turn; the one before it stays as it is, for a task may be computed again.

    ``orders`` and ``parts`` make the portions of the turn.
    """
    if isinstance(before, Progress):
        before = before.contestant
    contestant = copy.deepcopy(before)
    contestant.rows = rows
    learn, *judged = [None if part is None else Portion(order, *part) for order, part in zip(orders, parts)]
    assert learn is not None
    with at_most(1):  # there are as many tasks as the worker has threads
        outcome = take_turn(contestant, Turn(learn, *judged))
    contestant.rows = None
    return Progress(None if isinstance(outcome, Failed) else contestant, outcome)


def outcome_of(progress: Progress) -> Outcome:
    """How the turn went, which alone leaves the worker."""
    return progress.outcome


# ---------------------------------------------------------------------- here


class Place:
    """What stands for a contestant: what it was in the beginning, the turns it took, and what has become of it."""

    def __init__(self, contestant: Contestant, rows: Shared) -> None:
        self.beginning: Any = copy.copy(contestant)
        self.beginning.rows = None
        self.rows: Shared = rows
        self.turns: list[tuple[list[Shared | None], list[Part | None]]] = []
        self.future: Any = None  # the progress after the first ``done`` turns
        self.done: int = 0

    def forget(self) -> None:
        """Begin anew the next time."""
        self.future, self.done = None, 0

    def follow(self, connection: Connection) -> Any:
        """The future of the progress after all turns."""
        if self.future is not None and self.future.status in GONE:
            self.forget()
        while self.done < len(self.turns):
            orders, parts = self.turns[self.done]
            before = self.beginning if self.future is None else self.future
            shared = [None if one is None else one.future() for one in orders]
            self.future = connection.submit(advance, self.rows.future(), before, shared, parts)
            self.done += 1
        return self.future


class ClusterField:
    """The workers of a cluster, where contestants learn."""

    def __init__(self, connection: Connection) -> None:
        self.connection: Connection = connection
        self._shared: WeakValueDictionary[Any, Shared] = WeakValueDictionary()  # by what is shared
        self._checked: bool = False  # whether the workers have the same versions

    def enter(self, contestant: Contestant) -> Place:
        """A contestant begins on any worker."""
        return Place(contestant, self._share(contestant.rows))

    def take_turns(self, turns: Sequence[tuple[Any, Turn]], over: Callable[[], bool]) -> list[Outcome] | None:
        """Let contestants take a turn each; None if they were given up, because the race is ``over`` early."""
        places = [place for place, _ in turns]
        for place, turn in turns:
            orders = [None if one is None else self._share(one.order) for one in turn]
            place.turns.append((orders, [None if one is None else Part(*one[1:]) for one in turn]))
        before, self.connection.interrupted = self.connection.interrupted, over
        try:
            if not self._checked:
                self.connection.check_versions()
                self._checked = True
            return self._outcomes(places)
        except KeyboardInterrupt:
            if not over():
                raise
            for place in places:
                place.turns.pop()
                place.forget()
            return None
        finally:
            self.connection.interrupted = before

    def _outcomes(self, places: list[Place]) -> list[Outcome]:
        """How the turns of contestants went.

        If workers end again and again, contestants learn one after another, which shows whose fault it is.
        """
        found: dict[int, Outcome] = {}
        try:
            self._compute(places, range(len(places)), found, TOGETHER)
        except WorkersLostError:
            for n in [n for n in range(len(places)) if n not in found]:
                places[n].forget()
            for n in [n for n in range(len(places)) if n not in found]:
                try:
                    self._compute(places, [n], found, ALONE)
                except WorkersLostError:
                    places[n].forget()
                    found[n] = Failed("its worker processes ended again and again, as with too little memory")
        return [found[n] for n in range(len(places))]

    def _compute(self, places: list[Place], numbers: Sequence[int], found: dict[int, Outcome], losses: int) -> None:
        """Let contestants of these numbers take their turns, and note how these went."""
        begun = False

        def make() -> list[Task]:
            nonlocal begun
            if begun:  # what they shared was lost
                for n in numbers:
                    places[n].forget()
            begun = True
            try:
                return [Task(n, outcome_of, (places[n].follow(self.connection),)) for n in numbers]
            except Exception as error:
                if type(error).__name__ in ("CancelledError", "FutureCancelledError"):
                    raise LostError from error
                raise

        for number, outcome in self.connection.results(make, WHAT, losses):
            found[number] = outcome

    def _share(self, value: Any) -> Shared:
        """What several contestants share is sent to the workers once."""
        key = tuple(map(id, value)) if isinstance(value, tuple) else id(value)  # alive as long as it is shared
        found = self._shared.get(key)
        if found is None:
            self._shared[key] = found = Shared(self.connection, value)
        return found
