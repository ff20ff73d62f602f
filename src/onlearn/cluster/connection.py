"""The connection to a cluster: its workers, what they share, and tasks; each wait has a deadline.

A call to the scheduler has ``ANSWER`` seconds, a cluster without a worker ``patience`` seconds to get one, and tasks of
which none ends ``stall`` seconds. Whatever is too late ends the run with a ``ClusterError``.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple, TypeVar

from onlearn.cluster.versions import Versions, differing, processors, versions_here
from onlearn.errors import PlanError

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
LOCAL = re.compile(r"local(?::(\d+))?")
MOST_LOCAL = 256  # processes
SILENT = logging.CRITICAL + 1  # a level of logs that nothing has
SHARE_OF_MEMORY = 0.9  # of the machine's memory, for local workers


class ClusterError(RuntimeError):
    """What went wrong with the cluster, and not with the data; one sentence."""


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

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End what was started here; a client that was given stays."""
        for one in self._owned:
            with contextlib.suppress(Exception):  # what cannot be ended in time ends with the process
                one.close(timeout=ENDING)
        self._owned = ()

    @property
    def address(self) -> str:
        """The address of the scheduler."""
        scheduler = getattr(self.client, "scheduler", None)
        return str(getattr(scheduler, "address", "an unknown address"))

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
        """Refuse workers with other packages than here; returns a note if their processors differ."""
        self.wait_for_workers()
        told = self._ask(lambda: self.client.run(versions_here, on_error="return"), self.patience + ANSWER)
        found: list[tuple[str, Versions]] = []
        for address, answer in sorted(told.items()):
            if isinstance(answer, ImportError):
                raise ClusterError(f"the worker {address} has no onlearn: install the same everywhere")
            if isinstance(answer, Versions):  # else it has gone meanwhile
                found.append((address, answer))
        return refuse_other(versions_here(), found)

    def tell_workers(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Have every worker call a function, some time; nobody waits for it."""
        from distributed import fire_and_forget

        for one in self._workers:
            fire_and_forget(self.client.submit(function, *arguments, workers=[one.address], pure=False))

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
                future = self._submit(task, made)
                waiting[future.key] = task.key
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
                if future.key not in waiting:
                    continue
                result = self._outcome(future, what)
                began, lonely = time.monotonic(), None
                yield waiting.pop(future.key), result
                self._look()
        finally:
            if waiting:
                self._abandon(made)

    def _abandon(self, futures: list[Any]) -> None:
        """Cancel what has not ended; a scheduler that does not answer is not waited for."""

        def cancel() -> None:
            with contextlib.suppress(Exception):
                self.client.cancel(futures, force=True)

        thread = threading.Thread(target=cancel, name="onlearn-cluster", daemon=True)
        thread.start()
        thread.join(ENDING)

    def _submit(self, task: Task, made: list[Any]) -> Any:
        """The future of a task, after those of the tasks among its arguments."""
        arguments = [self._argument(one, made) for one in task.arguments]
        near = {} if task.near is None else {"workers": [task.near], "allow_other_workers": True}
        future = self.client.submit(task.function, *arguments, pure=False, retries=RETRIES, **near)
        made.append(future)
        return future

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
                    self._cancel(under_way)
                    self._pause(SETTLE)
                    under_way = deque((key, submit(key)) for key, _ in under_way)
                    continue
                losses = 0
                under_way.popleft()
                del future  # so that the worker may drop the result
                yield key, result
                self._look()
        finally:
            self._cancel(under_way)

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

    def _cancel(self, under_way: deque[tuple[Any, Any]]) -> None:
        if under_way:
            with contextlib.suppress(Exception):
                self.client.cancel([future for _, future in under_way], force=True)

    def _outcome(self, future: Any, what: str) -> Any:
        """The result of a future that has ended, brought here past the scheduler."""
        if future.status == "finished":
            try:
                (result,) = self._within(
                    lambda: self.client.gather([future], direct=True), self.stall, lambda: future.status != "finished"
                )
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

    def _ask(self, call: Callable[[], T], seconds: float = ANSWER) -> T:
        """The scheduler's answer to a call."""
        try:
            return self._within(call, seconds, lambda: getattr(self.client, "status", "running") == "closed")
        except TimeoutError:
            raise ClusterError(f"the scheduler at {self.address} does not answer") from None

    def _within(self, call: Callable[[], T], seconds: float, hopeless: Callable[[], bool]) -> T:
        """The result of a call that may wait; a ``TimeoutError`` after so many seconds, or once that is ``hopeless``.

        The call runs in a thread, which is left alone if it comes to nothing.
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
                self._look()
                if hopeless() or time.monotonic() > late:
                    raise TimeoutError("there was no answer") from None
        if fine:
            return result
        raise result

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


def refuse_other(here: Versions, workers: list[tuple[str, Versions]]) -> list[str]:
    """Refuse workers with other packages than here; a note if their processors differ."""
    for address, there in workers:
        if (why := differing(here, there)) is not None:
            raise ClusterError(f"the worker {address} {why}: install the same everywhere")
    return processors([here, *(there for _, there in workers)])


def one_line(error: BaseException | None) -> str:
    """The message of an error in one line; its kind if there is none."""
    return " ".join(str(error).split()) or type(error).__name__


# ---------------------------------------------------------------------- connecting


def connect(given: Any, *, patience: float = PATIENCE, stall: float = STALL) -> Connection:
    """A connection to a client of Dask's, to the address of a scheduler, or to ``local:N`` processes started here.

    Without a number there is a process for each processor. What ends with .json is taken for a scheduler file.
    """
    try:
        import distributed
    except ImportError:
        raise PlanError("a cluster needs Dask: pip install 'onlearn[cluster]'", "cluster") from None
    limits: dict[str, Any] = {"patience": patience, "stall": stall}
    if not isinstance(given, (str, os.PathLike)):
        if not all(hasattr(given, name) for name in ("submit", "scatter", "gather")):
            raise PlanError(f"a client of Dask's, or an address, is needed, not {given!r}", "cluster")
        if getattr(given, "asynchronous", False):
            raise PlanError("the client is asynchronous: give one that is not", "cluster")
        return Connection(given, **limits)
    name = os.fspath(given)
    local = LOCAL.fullmatch(name)
    if local is not None:
        return _start_local(int(local[1] or 0), limits)
    if name.endswith(".json"):
        if not os.path.isfile(name):
            raise PlanError(f"there is no scheduler file {name}", "cluster")
        where: dict[str, Any] = {"scheduler_file": name}
    elif "://" in name or re.fullmatch(r"[\w.-]+:\d+", name):
        where = {"address": name}
    else:
        raise PlanError(f"{name!r} is no cluster: name one as local:4 or tcp://host:8786", "cluster")
    _quiet()
    try:
        client = distributed.Client(**where, timeout=min(ANSWER, patience), set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(f"there is no scheduler at {name}: {one_line(error)}") from None
    return Connection(client, [client], **limits)


def _start_local(number: int, limits: dict[str, float]) -> Connection:
    import distributed
    from distributed.system import MEMORY_LIMIT

    from onlearn.threads import cores

    number = number or cores()
    if number > MOST_LOCAL:
        raise PlanError(f"{number} processes are more than {MOST_LOCAL}: name a scheduler", "cluster")
    _quiet()
    try:
        cluster = distributed.LocalCluster(
            n_workers=number,
            threads_per_worker=1,
            processes=True,
            memory_limit=int(SHARE_OF_MEMORY * MEMORY_LIMIT / number),
            dashboard_address="127.0.0.1:0",  # any port that is free
            silence_logs=SILENT,
            preload=["onlearn.cluster.local_worker"],
        )
        client = distributed.Client(cluster, set_as_default=False)
    except (OSError, TimeoutError, RuntimeError) as error:
        raise ClusterError(f"{number} local worker processes cannot be started: {one_line(error)}") from None
    made = Connection(client, [client, cluster], **limits)
    # Dask gives a local worker up that ends twice within some seconds.
    made.revive = lambda: cluster.scale(number)
    return made


def _quiet() -> None:
    """Dask logs each worker and client that ends, with a traceback; what matters of it is told in a sentence."""
    for name in ("distributed", "tornado.application"):
        logging.getLogger(name).setLevel(SILENT)
