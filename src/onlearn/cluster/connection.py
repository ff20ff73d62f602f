"""The connection to a cluster: its workers, what they share, and tasks; each wait has a deadline.

A call to the scheduler has ``ANSWER`` seconds, a cluster without a worker ``patience`` seconds to get one, and tasks of
which none ends ``stall`` seconds. Whatever is too late ends the run with a ``ClusterError``.

A task says what it must be computed with (``Checked``), so a worker that comes later, with other packages, refuses it.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple, TypeVar

from onlearn.cluster.versions import Versions, differing, processors, versions_here
from onlearn.errors import ClusterError

T = TypeVar("T")

ANSWER = 30.0  # seconds that the scheduler has for an answer
PATIENCE = 60.0  # seconds without a worker
STALL = 3600.0  # seconds in which no task ends, though there are workers
ENDING = 10.0  # seconds for what is left to be told when a run ends
LOOK = 0.2  # seconds between two looks at the keyboard
COUNT = 2.0  # seconds between two counts of the workers
RETRIES = 2  # of a task that raises what no data explain, such as an error of an object store
SETTLE = 1.0  # seconds until the scheduler has noticed which workers are gone
LOSSES = 20  # times in a row that tasks may lose what they share
SAME = "install the same everywhere"


class WorkersLostError(ClusterError):
    """Worker processes ended again and again while they worked at the same tasks."""


class LostError(Exception):
    """Tasks have lost what they share, because all workers that had it are gone."""


class Worker(NamedTuple):
    """One worker process."""

    address: str
    threads: int
    memory: int  # bytes that it may use; 0: no limit is known


class Task(NamedTuple):
    """A call of a function on any worker. Futures and further tasks among the arguments become their results."""

    key: Any  # which task it is, for whoever reads the results
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    near: str | None = None  # the address of a worker that has what it needs; others may take it all the same


class Refused(NamedTuple):
    """The error of a task that would come again, however often it is tried."""

    error: Exception


def first_refused(arguments: Sequence[Any]) -> Refused | None:
    """The first error among the arguments of a task, or in a list among them: it is the task's result, too."""
    for one in arguments:
        for part in one if isinstance(one, list) else [one]:
            if isinstance(part, Refused):
                return part
    return None


class Checked(NamedTuple):
    """A function of tasks that is called only by what has the same versions as the client, ``expected``."""

    function: Callable[..., Any]
    expected: Versions

    def __call__(self, *arguments: Any) -> Any:
        """What the function returns; ``Refused`` if this is not the place for it, or if an argument is."""
        from distributed import get_worker

        if (refused := first_refused(arguments)) is not None:
            return refused
        if (why := differing(self.expected, versions_here())) is not None:
            return Refused(other_versions(f"worker {get_worker().address}", why))
        return self.function(*arguments)


class Connection:
    """A connected client of Dask's."""

    def __init__(
        self, client: Any, owned: Sequence[Any] = (), *, patience: float = PATIENCE, stall: float = STALL
    ) -> None:
        self.client: Any = client
        self.patience: float = patience
        self.stall: float = stall
        self.interrupted: Callable[[], bool] = lambda: False  # asked all the time: whether to stop
        self._owned: Sequence[Any] = owned  # what was started here
        self.revive: Callable[[], None] = lambda: None  # called while there is no worker
        self._workers: list[Worker] = []
        self._counted: float = float("-inf")  # when the workers were counted
        self._address: str = "an unknown address"

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End what was started here; a client that was given stays."""
        end(self._owned)
        self._owned = ()

    @property
    def address(self) -> str:
        """The address of the scheduler, as far as it was ever known."""
        scheduler = getattr(self.client, "scheduler", None)
        self._address = str(getattr(scheduler, "address", self._address))
        return self._address

    @property
    def dashboard(self) -> str | None:
        """The address of the dashboard; None if there is none, as without bokeh."""
        try:
            import bokeh  # noqa: F401
        except ImportError:
            return None
        return str(self.client.dashboard_link or "") or None

    # ------------------------------------------------------------------ workers

    def workers(self, fresh: bool = False) -> list[Worker]:
        """The workers that are alive; counted every few seconds, or now if that must be ``fresh``."""
        if fresh or time.monotonic() - self._counted > COUNT:
            told = self._ask(lambda: self.client.scheduler_info(n_workers=-1)).get("workers")
            if told is None:
                raise ClusterError(f"the scheduler at {self.address} is gone")
            self._workers = [
                Worker(address, int(one["nthreads"]), int(one.get("memory_limit") or 0))
                for address, one in sorted(told.items())
            ]
            self._counted = time.monotonic()
        return self._workers

    def wait_for_workers(self) -> list[Worker]:
        """The workers, once there is one."""
        began = time.monotonic()
        while not (found := self.workers(fresh=True)):
            self.revive()
            if time.monotonic() - began > self.patience:
                raise ClusterError(f"the cluster at {self.address} had no worker for {self.patience:g} s")
            self._pause(LOOK)
        return found

    def check_versions(self) -> list[str]:
        """Refuse a scheduler and workers with other packages than here; returns a note if the workers' processors
        differ.
        """
        self.wait_for_workers()
        self._check_scheduler()
        told = self._ask(lambda: self.client.run(versions_here, on_error="return"), self.patience)
        found: list[tuple[str, Versions]] = []
        alive = {one.address for one in self.workers(fresh=True)}
        for address, answer in sorted(told.items()):
            if isinstance(answer, Versions):
                found.append((address, answer))
            elif address in alive:  # else it has gone meanwhile
                raise ClusterError(f"the worker {address} {unable(answer)}: {SAME}")
        return refuse_other(versions_here(), found)

    def _check_scheduler(self) -> None:
        """Refuse a scheduler that cannot load tasks, which it does before it hands them on; it computes nothing."""
        name = f"scheduler {self.address}"
        try:
            there = self._ask(lambda: self.client.run_on_scheduler(versions_here))
        except (ImportError, AttributeError, TypeError, ValueError) as error:  # of what is loaded there
            raise ClusterError(f"the {name} {unable(error)}: {SAME}") from None
        here = versions_here()
        if (why := differing(here, there._replace(packages=here.packages))) is not None:
            raise other_versions(name, why)

    def tell_workers(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Have every worker call a function; what it returns, and whether there is still a worker, does not matter."""
        self._aside(lambda: self.client.run(function, *arguments, wait=False, on_error="ignore"))

    # ------------------------------------------------------------------ what is shared

    def share(self, value: Any) -> Any:
        """The future of a value that goes to a worker past the scheduler; others get it from there with their tasks."""
        began = time.monotonic()
        for turn in count():
            workers = self.wait_for_workers()
            address = workers[turn % len(workers)].address
            try:
                return self._within(
                    lambda: self.client.scatter([value], workers=[address], direct=True, hash=False)[0],  # noqa: B023
                    self.stall,
                    lambda: all(one.address != address for one in self.workers()),  # noqa: B023
                )
            except (OSError, KeyError, ValueError) as error:  # the worker has gone meanwhile
                why = one_line(error)
            if time.monotonic() - began > self.patience:
                break
            self._pause(LOOK)
        raise ClusterError(
            f"the workers could not be reached for {self.patience:g} s; models go to them from here, and not by way of "
            f"the scheduler ({why})"
        )

    # ------------------------------------------------------------------ tasks

    def results(self, make: Callable[[], list[Task]], what: str, losses: int = LOSSES) -> Iterator[tuple[Any, Any]]:
        """The keys and results of tasks, as they end.

        ``make`` makes them. It is called again if what they share is lost with the last worker that had it, up to
        ``losses`` times, and then has to share it anew; tasks whose results are known are left out.
        """
        known: set[Any] = set()
        for _ in range(losses):
            lost = False
            try:
                for key, result in self._ended([one for one in make() if one.key not in known], what):
                    known.add(key)
                    yield key, result
            except LostError:
                lost = True
            if not lost:
                return
            self._pause(SETTLE)
        raise WorkersLostError(f"{what}: all workers were lost {losses} times, and with them what they share")

    def _ended(self, tasks: list[Task], what: str) -> Iterator[tuple[Any, Any]]:
        """The keys and results of tasks, as they end; a ``LostError`` if what they share is lost."""
        ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        waiting: dict[str, Any] = {}
        made: list[Any] = []  # all futures, so that none is forgotten while others depend on it
        try:
            for task in tasks:
                waiting[self._submit(task, made).key] = task.key
            for future in made:  # any that ends is progress
                future.add_done_callback(ended.put)
            began, lonely = time.monotonic(), None
            while waiting:
                try:
                    future = ended.get(timeout=LOOK)
                except queue.Empty:
                    self._look()
                    lonely = self._check_lonely(lonely, what)
                    if time.monotonic() - began > self.stall:
                        raise ClusterError(f"{what}: no task ended for {self.stall:g} s") from None
                    continue
                began, lonely = time.monotonic(), None
                if future.key in waiting:
                    result = self._outcome(future, what)
                    yield waiting.pop(future.key), result
                    began = time.monotonic()
                    self._look()
        finally:
            if waiting:
                self._cancel(made)

    def _cancel(self, futures: list[Any]) -> None:
        """Cancel what has not ended."""
        if futures:
            self._aside(lambda: self.client.cancel(futures, force=True))

    def _aside(self, call: Callable[[], Any]) -> None:
        """Call what ends a run; a scheduler that does not answer is not waited for, and errors do not matter."""

        def attempt() -> None:
            with contextlib.suppress(Exception):
                call()

        thread = threading.Thread(target=attempt, name="onlearn-cluster", daemon=True)
        thread.start()
        thread.join(ENDING)

    def _submit(self, task: Task, made: list[Any]) -> Any:
        """The future of a task, after those of the tasks among its arguments."""
        future = self.submit(task.function, *(self._argument(one, made) for one in task.arguments), near=task.near)
        made.append(future)
        return future

    def submit(self, function: Callable[..., Any], *arguments: Any, near: str | None = None) -> Any:
        """The future of a call on a worker that computes with the same versions as this process."""
        where = {} if near is None else {"workers": [near], "allow_other_workers": True}
        checked = Checked(function, versions_here())
        return self.client.submit(checked, *arguments, pure=False, retries=RETRIES, key=key_of(function), **where)

    def _argument(self, one: Any, made: list[Any]) -> Any:
        if isinstance(one, Task):
            return self._submit(one, made)
        return [self._argument(item, made) for item in one] if isinstance(one, list) else one

    def in_order(
        self,
        following: Callable[[], Any],
        make: Callable[[Any], Task],
        what: str,
        most: Callable[[], int],
    ) -> Iterator[tuple[Any, Any]]:
        """The keys and results of tasks in the order in which ``following`` gives the keys; results are brought here
        one at a time.

        ``following`` is asked for a key while fewer than ``most`` tasks are under way; None: there is none for now,
        until the next result has been taken, or at the end. ``make`` makes the task, and once more if what it shares
        is lost.
        """
        ended: queue.SimpleQueue[None] = queue.SimpleQueue()
        under_way: deque[tuple[Any, Any]] = deque()

        def submit(key: Any) -> Any:
            future = self._submit(make(key), [])
            future.add_done_callback(lambda _: ended.put(None))
            return future

        losses = 0
        try:
            while True:
                while len(under_way) < most() and (key := following()) is not None:
                    under_way.append((key, submit(key)))
                if not under_way:
                    return
                key, future = under_way[0]
                try:
                    self._wait(future, ended, what)
                    result = self._outcome(future, what)
                except LostError:
                    losses += 1
                    if losses == LOSSES:
                        raise ClusterError(
                            f"{what}: all workers were lost {LOSSES} times, and with them what they share"
                        ) from None
                    self._cancel([future for _, future in under_way])
                    self._pause(SETTLE)
                    under_way = deque((key, submit(key)) for key, _ in under_way)
                    continue
                losses = 0
                under_way.popleft()
                del future  # so that the worker may drop the result
                yield key, result
                self._look()
        finally:
            self._cancel([future for _, future in under_way])

    def _wait(self, future: Any, ended: queue.SimpleQueue[None], what: str) -> None:
        """Wait for the end of a task; ``ended`` tells of any that has ended, so that there is progress."""
        began, lonely = time.monotonic(), None
        while not future.done():
            try:
                ended.get(timeout=LOOK)
                began, lonely = time.monotonic(), None
            except queue.Empty:
                self._look()
                lonely = self._check_lonely(lonely, what)
                if time.monotonic() - began > self.stall:
                    raise ClusterError(f"{what}: no task ended for {self.stall:g} s") from None

    def _outcome(self, future: Any, what: str) -> Any:
        """The result of a future that has ended, brought here past the scheduler."""
        if future.status == "finished":
            try:
                (result,) = self._within(
                    lambda: self.client.gather([future], direct=True),
                    self.stall,
                    lambda: future.status != "finished" or not self.workers(),
                )
            except TimeoutError as error:
                if future.status == "finished" and self.workers():
                    raise ClusterError(f"{what}: a result could not be had for {self.stall:g} s") from error
                raise LostError from error
            except (OSError, KeyError) as error:
                raise LostError from error
            except Exception as error:
                if type(error).__name__ in ("CancelledError", "FutureCancelledError"):
                    raise LostError from error
                raise ClusterError(f"{what}: {one_line(error)}") from error
            if isinstance(result, Refused):
                raise result.error
            return result
        if future.status != "error":  # cancelled or lost
            raise LostError
        raised = future.exception()
        if type(raised).__name__ == "KilledWorker":
            raise WorkersLostError(
                f"{what}: worker processes ended one after another while they worked at the same task; too little "
                "memory is the usual reason: use more shards, or workers with more memory"
            )
        raise ClusterError(f"{what}: {one_line(raised)}")

    # ------------------------------------------------------------------ deadlines

    def _ask(self, call: Callable[[], T], more: float = 0.0) -> T:
        """The scheduler's answer to a call, which may take ``more`` seconds than others."""
        try:
            return self._within(call, ANSWER + more, lambda: getattr(self.client, "status", "running") == "closed")
        except TimeoutError:
            raise ClusterError(f"the scheduler at {self.address} does not answer") from None

    def _within(self, call: Callable[[], T], seconds: float, hopeless: Callable[[], bool]) -> T:
        return within(call, seconds, hopeless, self._look)

    def _look(self) -> None:
        if self.interrupted():
            raise KeyboardInterrupt

    def _pause(self, seconds: float) -> None:
        self._look()
        time.sleep(seconds)

    def _check_lonely(self, since: float | None, what: str) -> float | None:
        """Since when there is no worker; None if there is one."""
        try:
            if self.workers():
                return None
        except OSError as error:
            raise ClusterError(f"the scheduler at {self.address} is gone ({one_line(error)})") from error
        self.revive()
        now = time.monotonic()
        if since is not None and now - since > self.patience:
            raise ClusterError(f"{what}: the cluster at {self.address} had no worker for {self.patience:g} s")
        return now if since is None else since


def end(owned: Sequence[Any]) -> None:
    """Close what was started here: clients and clusters."""
    for one in owned:
        with contextlib.suppress(Exception):  # what cannot be ended in time ends with the process
            one.close(timeout=ENDING)


def within(
    call: Callable[[], T], seconds: float, hopeless: Callable[[], bool] = bool, look: Callable[[], None] = lambda: None
) -> T:
    """The result of a call that may wait; a ``TimeoutError`` after so many seconds, or once that is ``hopeless``.

    The call runs in a thread, which is left alone if it comes to nothing; ``look`` may raise meanwhile.
    """
    answer: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answer.put((True, call()))
        except BaseException as error:  # raised below, in the thread that waits
            answer.put((False, error))

    threading.Thread(target=ask, name="onlearn-cluster", daemon=True).start()
    late = time.monotonic() + seconds
    while True:
        try:
            fine, result = answer.get(timeout=LOOK)
            break
        except queue.Empty:
            look()
            if hopeless() or time.monotonic() > late:
                raise TimeoutError("there was no answer") from None
    if fine:
        return result
    raise result


def key_of(function: Callable[..., Any]) -> str:
    """A key for a call of a function, by which Dask's dashboard names it."""
    return f"{function.__name__}-{uuid.uuid4().hex}"


def unable(error: Any) -> str:
    """What is wrong with a worker that cannot load onlearn, as the end of a sentence about it."""
    told = one_line(error) if isinstance(error, BaseException) else str(error)
    return "has no onlearn" if "No module named 'onlearn'" in told else f"cannot compute with this onlearn ({told})"


def other_versions(name: str, why: str) -> ClusterError:
    """The error about a worker or a scheduler with other versions than here."""
    return ClusterError(f"the {name} {why}: {SAME}")


def refuse_other(here: Versions, workers: list[tuple[str, Versions]]) -> list[str]:
    """Refuse workers with other packages than here; a note if their processors differ."""
    for address, there in workers:
        if (why := differing(here, there)) is not None:
            raise other_versions(f"worker {address}", why)
    return processors([here, *(there for _, there in workers)])


def one_line(error: BaseException | None) -> str:
    """The message of an error in one line; its kind if there is none."""
    return " ".join(str(error).split()) or type(error).__name__
