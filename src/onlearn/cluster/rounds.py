"""What the rounds of a run share with workers: values that every worker has, the learner's state, and trees of sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    loss: float
    nbytes: int  # that travelled
    workers: int  # alive at the end
    seconds: float

    def __str__(self) -> str:
        wrong = "" if self.mistakes is None else f", {self.mistakes:,} mistakes"
        alive = f"{self.workers} worker{'' if self.workers == 1 else 's'}"
        return (
            f"round {self.number} of {self.rounds}: loss {self.loss:.4f}{wrong}, {size_text(self.nbytes)} moved, "
            f"{alive}, {self.seconds:.2f} s"
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


class State:
    """The learner's state as workers get it: a whole one, and the changes of the rounds since."""

    def __init__(self, connection: Connection, number: int, learner: Any) -> None:
        self.connection: Connection = connection
        self.number: int = number  # of the round that begins with it, from 0
        self.nbytes: int = 0  # shared since it was last asked
        self._arrays: dict[str, np.ndarray] = {}
        self._messages: list[Shared] = []
        self._share(learner, anew=True)

    def follow(self, learner: Any) -> None:
        """Go on to the state of the next round."""
        self.number += 1
        self._share(learner, anew=len(self._messages) > CHANGES)

    def futures(self) -> list[Any]:
        """The whole state and the changes, as an argument of tasks."""
        return [one.future() for one in self._messages]

    def take_nbytes(self) -> int:
        """The bytes that were shared since this was last asked, with all workers."""
        taken, self.nbytes = self.nbytes, 0
        return taken * max(1, len(self.connection.workers()))

    def _share(self, learner: Any, anew: bool) -> None:
        facts, arrays = learner._pack()
        arrays = {name: np.array(array) for name, array in arrays.items()}  # the learner goes on with its own
        anew = anew or arrays.keys() != self._arrays.keys()
        message = pack(facts, arrays if anew else changes(self._arrays, arrays))
        if not anew and sum(one.value.nbytes for one in self._messages[1:]) + message.nbytes > self.whole_nbytes:
            anew, message = True, pack(facts, arrays)
        self._arrays, self.nbytes = arrays, self.nbytes + message.nbytes
        if anew:
            self._messages, self.whole_nbytes = [], message.nbytes
        self._messages.append(Shared(self.connection, message))




def tree_of(leaves: Sequence[Task], add: Callable[..., Any], fan_in: int = FAN_IN) -> list[Task]:
    """At most ``fan_in`` tasks whose results add up to those of the leaves; sums are in the order of the leaves.

    How the sums are grouped depends on the number of leaves alone.

    >>> leaves = [Task(n, int, (n,)) for n in range(5)]
    >>> [[one.key for one in task.arguments[0]] for task in tree_of(leaves, sum, fan_in=3)]
    [[0, 1, 2], [3, 4]]
    """
    level = list(leaves)
    while len(level) > fan_in:
        groups = [level[k : k + fan_in] for k in range(0, len(level), fan_in)]
        level = [Task(n, add, (group,)) for n, group in enumerate(groups)]
    return level
