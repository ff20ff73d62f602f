"""What the rounds of a run share with workers: values that every worker has, the learner's state, and trees of sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from onlearn.cluster.connection import Connection, Task
from onlearn.cluster.message import changes, pack

FAN_IN = 16  # parts that one task adds up
CHANGES = 8  # rounds after which the whole state is sent anew, for workers that come later


class Round(NamedTuple):
    """What happened in one round."""

    number: int  # from 1
    rounds: int
    seen: int
    mistakes: int | None  # None in regression
    loss: float | None  # None if rows are not scored before they are learned from
    nbytes: int  # that travelled
    workers: int  # alive at the end
    seconds: float

    def __str__(self) -> str:
        told = [] if self.loss is None else [f"loss {self.loss:.4f}"]
        told += [] if self.mistakes is None else [f"{self.mistakes:,} mistakes"]
        alive = f"{self.workers} worker{'' if self.workers == 1 else 's'}"
        return f"round {self.number} of {self.rounds}: " + ", ".join(
            [*told, f"{size_text(self.nbytes)} moved", alive, f"{self.seconds:.2f} s"]
        )


def size_text(nbytes: float) -> str:
    """A number of bytes as people read it.

    >>> size_text(900), size_text(1_250_000)
    ('900 B', '1.2 MB')
    """
    for unit in ("B", "kB", "MB"):
        if nbytes < 1000:
            return f"{nbytes:.0f} B" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} GB"


class Shared:
    """A value that tasks share; it is shared anew if all workers that had it are gone."""

    def __init__(self, connection: Connection, value: Any) -> None:
        self.connection: Connection = connection
        self.value: Any = value
        self._future: Any = None

    def future(self) -> Any:
        """The future of the value, as an argument of tasks."""
        if self._future is None or self._future.status != "finished":
            self._future = self.connection.share(self.value)
        return self._future


class Changing:
    """Arrays that change and that all workers follow: shared whole, and then by what changes."""

    def __init__(self, connection: Connection) -> None:
        self.connection: Connection = connection
        self.nbytes: int = 0  # shared since it was last asked
        self._arrays: dict[str, np.ndarray] | None = None
        self._messages: list[Shared] = []
        self._whole: int = 0  # bytes of what was shared whole

    def follow(self, arrays: Mapping[str, np.ndarray], facts: Any = None) -> bool:
        """Share the next arrays; returns whether they are shared whole."""
        now = {name: np.array(array) for name, array in arrays.items()}  # whose owner goes on with its own
        before, self._arrays = self._arrays, now
        anew = before is None or before.keys() != now.keys() or len(self._messages) > CHANGES
        message = pack(facts, now if anew or before is None else changes(before, now))
        if not anew and sum(one.value.nbytes for one in self._messages[1:]) + message.nbytes > self._whole:
            anew, message = True, pack(facts, now)
        if anew:
            self._messages, self._whole = [], message.nbytes
        self._messages.append(Shared(self.connection, message))
        self.nbytes += message.nbytes
        return anew

    def futures(self) -> list[Any]:
        """The whole arrays and the changes since, as an argument of tasks."""
        return [one.future() for one in self._messages]

    def take_nbytes(self) -> int:
        """The bytes that were shared since this was last asked, with all workers."""
        taken, self.nbytes = self.nbytes, 0
        return taken * max(1, len(self.connection.workers()))


class State(Changing):
    """The state of a learner, round after round."""

    def __init__(self, connection: Connection, number: int, learner: Any) -> None:
        super().__init__(connection)
        self.number: int = number - 1
        self.follow_learner(learner)

    def follow_learner(self, learner: Any) -> None:
        """Go on to the state that the next round begins with."""
        self.number += 1  # of that round, from 0
        facts, arrays = learner._pack()
        self.follow(arrays, facts)


def tree_of(leaves: Sequence[Task], add: Callable[[int, list[Task]], Task], fan_in: int = FAN_IN) -> list[Task]:
    """At most ``fan_in`` tasks whose results add up to those of the leaves; ``add`` makes one of several.

    Sums are in the order of the leaves, and how they are grouped depends on the number of leaves alone.

    >>> leaves = [Task(n, int, (n,)) for n in range(5)]
    >>> tops = tree_of(leaves, lambda n, group: Task(n, sum, (group,)), fan_in=3)
    >>> [[one.key for one in task.arguments[0]] for task in tops]
    [[0, 1, 2], [3, 4]]
    """
    level = list(leaves)
    while len(level) > fan_in:
        groups = [level[k : k + fan_in] for k in range(0, len(level), fan_in)]
        level = [add(n, group) for n, group in enumerate(groups)]
    return level
