"""What workers do: each task is a pure function of a shard, the round and what is shared.

What a worker keeps (``worker_memory``) saves time and changes no result. An error that would come again is returned as
``Refused``, so that Dask does not try the task once more; whoever gets it as an argument passes it on.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import numpy as np

from onlearn.cluster import descent, ways
from onlearn.cluster.collections import batches_of, first_rows
from onlearn.cluster.connection import Refused, first_refused
from onlearn.cluster.message import Message, changed
from onlearn.cluster.shard_reading import Job, Rows, ShardReading
from onlearn.cluster.shards import Shard
from onlearn.cluster.survey import Survey
from onlearn.cluster.worker_memory import MEMORY
from onlearn.data import BadRows, DataError
from onlearn.data.sources import Source, state_of
from onlearn.engine import reserve
from onlearn.engine.csr import rows_at
from onlearn.engine.training import AUDITED
from onlearn.models.model import Model
from onlearn.threads import at_most


class Prepared(NamedTuple):
    """What is known when all shards have been surveyed: the final features and labels."""

    model: Model  # without a learner
    shards: int
    starts: np.ndarray  # the number of the first row of each shard, and of all rows: those that are learned from
    digests: tuple[Any, ...]  # of the content of each shard
    label_counts: np.ndarray  # rows of each class
    rounds: int
    keeps_back: bool  # whether rows are kept back until the last round, for calibration
    audits: bool  # whether instead the scores of the first round are used for it
    descends: bool  # whether L-BFGS follows the rounds


def task(function: Callable[..., Any]) -> Callable[..., Any]:
    """A task: one thread, and errors about data and parameters as ``Refused``."""

    @wraps(function)
    def done(*arguments: Any) -> Any:
        if (refused := first_refused(arguments)) is not None:
            return refused
        try:
            with at_most(1):
                return function(*arguments)
        except (ValueError, TypeError, OverflowError) as error:  # of data, parameters, or a rule of the user's
            return Refused(error)
        except MemoryError:
            return Refused(DataError("a worker has too little memory for a shard: use more shards"))

    return done


def here() -> str | None:
    """The address of this worker."""
    from distributed import get_worker

    try:
        return str(get_worker().address)
    except ValueError:  # not inside a worker, as in tests
        return None


def check_there(*pieces: Source) -> None:
    """Refuse files that this worker does not find."""
    for path, name in dict.fromkeys((piece.path, piece.name) for piece in pieces):
        if path is not None and not path.exists():
            raise DataError(f"{name} is not there for the worker {here()}: all must find files by the same path")


@task
def survey(job: Job, shard: Shard, given: Any) -> Survey:
    """What the rows of a shard tell about features and labels."""
    check_there(*shard.pieces)
    model = copy.copy(job.model)
    model.labels = None if model.labels is None else list(model.labels)
    model.far = model.far.unfitted()
    return ShardReading(job, shard, model).survey(given)._replace(where=here())


def rows_of(job: Job, prepared: Prepared, shard: Shard, given: Any) -> Rows:
    """The rows of a shard in the final features, read unless they are kept and the file has the same size and time."""
    check_there(*shard.pieces)
    state = tuple(tuple(state_of(file)) for file in dict.fromkeys(piece._replace(part=None) for piece in shard.pieces))

    def read() -> tuple[Rows, int]:
        model = copy.copy(prepared.model)
        model.labels = None if model.labels is None else list(model.labels)
        reading = ShardReading(job, shard, model)
        rows = reading.numbered_rows(given)
        if reading.digest != prepared.digests[shard.number]:
            names = ", ".join(dict.fromkeys(piece.name for piece in shard.pieces)) or shard.name
            raise DataError(f"{names} changed since the run began: train anew")
        return rows, rows.nbytes

    return MEMORY.get((job.run, "rows", shard.number, state), read, job.room)


def learner_at(job: Job, number: int, state: list[Message]) -> Any:
    """The learner that a round begins with; tasks share it, so it must not be changed.

    ``state`` is a whole state, of an earlier round or of this one, and the changes since, one a round.
    """
    key = (job.run, "learner")
    kept_number, learner = MEMORY.find(key) or (-1, None)
    if kept_number == number:
        return learner
    arrays, nbytes = arrays_at(job, number, state)
    learner = copy.copy(job.learner)
    learner._unpack(state[-1].facts, arrays)
    MEMORY.keep(key, (number, learner), nbytes, job.room, first=True)
    return learner


def arrays_at(job: Job, number: int, state: list[Message]) -> tuple[dict[str, np.ndarray], int]:
    """The arrays of a state, made of those of an earlier round if these are kept; and their bytes."""
    whole, *later = state
    first, key = number - len(later), (job.run, "arrays")
    kept_number, arrays = MEMORY.find(key) or (-1, {})
    if not first <= kept_number <= number:
        kept_number, arrays = first, whole.unpacked()
    for change in later[kept_number - first :]:
        arrays = changed(arrays, change.unpacked())
    for array in arrays.values():
        array.flags.writeable = False  # others compute with it, too
    nbytes = sum(array.nbytes for array in arrays.values())
    MEMORY.keep(key, (number, arrays), nbytes, job.room, first=True)
    return arrays, nbytes


def kept_back(prepared: Prepared, shard: Shard, rows: Rows) -> np.ndarray:
    """The rows of a shard that are kept back for calibration: chosen by their number among all rows."""
    if not prepared.keeps_back:
        return np.zeros(0, np.int64)
    first, stop = map(int, prepared.starts[shard.number : shard.number + 2])
    kept = reserve.among(first, stop, int(prepared.starts[-1]))
    kept = kept[prepared.label_counts[rows.y[kept]] >= reserve.RARE]
    return kept if rows.weight is None else kept[rows.weight[kept] > 0]


@task
def learn(job: Job, prepared: Prepared, number: int, state: list[Message], shard: Shard, given: Any) -> Message:
    """Learn from the rows of a shard once, beginning with the state of this round; what changed."""
    rows, base = rows_of(job, prepared, shard, given), learner_at(job, number, state)
    order = np.random.default_rng([job.plan.seed, number, shard.number]).permutation(len(rows.y))
    audit, kept = None, kept_back(prepared, shard, rows)
    if number + 1 == prepared.rounds and not prepared.descends:  # they are scored now, and then learned from
        audit = scores_of(base, rows, kept) if prepared.keeps_back else None
    elif len(kept):
        held = np.zeros(len(order), dtype=bool)
        held[kept] = True
        order = order[~held[order]]
    learner = ways.way_of(base).begin(base, prepared.shards)
    audits = number == 0 and prepared.audits
    learner._learn_rows(rows.X, rows.y, rows.weight, order, first=audits)
    if audits:
        scores, gold = learner.training.audited()
        some = AUDITED // 2 // prepared.shards
        audit = scores[-some:], gold[-some:]
    return ways.learned(base, learner, job.mix, shard.number, here(), audit)


@task
def add(job: Job, parts: list[Message]) -> Message:
    """The sum of what shards have learned, in their order."""
    return ways.added(ways.way_of(job.learner), parts)


@task
def gradient(job: Job, prepared: Prepared, number: int, state: list[Message], w: list[Message], shard: Shard,
             given: Any) -> Message:  # fmt: skip
    """The losses of the rows of a shard, and their gradient, at some weights."""
    rows, learner = rows_of(job, prepared, shard, given), learner_at(job, number, state)
    order = np.setdiff1d(np.arange(len(rows.y)), kept_back(prepared, shard, rows))
    arrays: dict[str, np.ndarray] = {}
    for change in w:
        arrays = changed(arrays, change.unpacked())
    message = descent.gradient_of(learner, rows_at(rows.X, order), rows, order, arrays["w"])
    return message._replace(facts={**message.facts, "where": {shard.number: here()}})


@task
def add_gradients(job: Job, parts: list[Message]) -> Message:
    """The sum of losses and gradients, in the order of the shards."""
    return descent.added(parts)


def sum_of(add: Callable[..., Any], job: Job, parts: list[Message]) -> Message:
    """The same sum, made here."""
    found = add(job, parts)
    if isinstance(found, Refused):
        raise found.error
    return found


@task
def first_batch(part: Any, name: str, columns: Any, task: str) -> Any:
    """The first rows of a part of a collection; None if there are none."""
    found = batches_of(first_rows(part), name, columns, task, [], BadRows(limit=1.0))
    return next(found, None)


@task
def audit_kept(
    job: Job, prepared: Prepared, number: int, state: list[Message], shard: Shard, given: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The scores by this state of the rows that were kept back, and their targets."""
    rows, learner = rows_of(job, prepared, shard, given), learner_at(job, number, state)
    return scores_of(learner, rows, kept_back(prepared, shard, rows))


def scores_of(learner: Any, rows: Rows, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The scores of some rows, and their targets."""
    return learner._scores(rows_at(rows.X, some)), learner.task.targets(rows.y[some], learner.training.output)
