"""A connection to the scheduler of a cluster, or to one that is started on this machine."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onlearn.cluster.connection import ANSWER, COUNT, PATIENCE, STALL, Connection, end, one_line, within
from onlearn.errors import ClusterError, PlanError

LOCAL = re.compile(r"local(?::(\d+))?")
MOST_LOCAL = 256  # processes
SHARE_OF_MEMORY = 0.9  # of the machine's memory, for local workers
SILENT = logging.CRITICAL + 1  # a level of logs that nothing has


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
        if getattr(given, "status", "running") == "closed":
            raise PlanError("the client is closed: give one that is connected", "cluster")
        return Connection(given, **limits)
    name = os.fspath(given)
    local = LOCAL.fullmatch(name)
    if local is not None:
        return _start_local(None if local[1] is None else int(local[1]), limits)
    if name.endswith(".json"):
        address = _address_in(name)
    elif "://" in name or re.fullmatch(r"[\w.-]+:\d+", name):
        address = name
    else:
        raise PlanError(f"{name!r} is no cluster: name one as local:4 or tcp://host:8786", "cluster")
    if re.match("tls:|wss:", address) and not distributed.Security().get_connection_args("client").get("ssl_context"):
        raise PlanError(f"{name} needs certificates: name them in distributed.comm.tls of Dask's settings", "cluster")
    _quiet()
    seconds = min(ANSWER, patience)
    try:
        # Dask's own deadline does not hold for what answers, and then says nothing.
        client = within(lambda: distributed.Client(address, timeout=seconds, set_as_default=False), seconds + COUNT)
    except Exception as error:  # whatever the connections of a protocol raise
        raise ClusterError(f"there is no scheduler at {name}: {one_line(error)}") from None
    return Connection(client, [client], **limits)


def _address_in(path: str) -> str:
    """The address in a scheduler file."""
    try:
        address = json.loads(Path(path).read_bytes())["address"]
    except FileNotFoundError:
        raise PlanError(f"there is no scheduler file {path}", "cluster") from None
    except OSError as error:
        raise PlanError(f"{path} cannot be read: {error.strerror or error}", "cluster") from None
    except (ValueError, TypeError, KeyError):
        address = None
    if not isinstance(address, str):
        raise PlanError(f"{path} is no scheduler file, for it has no address", "cluster")
    return address


def _start_local(number: int | None, limits: dict[str, float]) -> Connection:
    import distributed
    from distributed.system import MEMORY_LIMIT

    from onlearn.threads import cores

    if number == 0:
        raise PlanError("local:0 has no process: say local:1 or more", "cluster")
    number = number or cores()
    if number > MOST_LOCAL:
        raise PlanError(f"{number} processes are more than {MOST_LOCAL}: name a scheduler", "cluster")
    _quiet()
    owned: list[Any] = []
    try:
        with _interrupts_later():
            cluster = distributed.LocalCluster(
                n_workers=number,
                threads_per_worker=1,
                processes=True,
                memory_limit=int(SHARE_OF_MEMORY * MEMORY_LIMIT / number),
                dashboard_address="127.0.0.1:0",  # any port that is free
                silence_logs=SILENT,
                preload=["onlearn.cluster.local_worker"],
            )
            owned.append(cluster)
        client = distributed.Client(cluster, set_as_default=False)
    except BaseException as error:
        end(owned)
        if not isinstance(error, (OSError, TimeoutError, RuntimeError)):
            raise
        raise ClusterError(f"{number} local worker processes cannot be started: {one_line(error)}") from None
    made = Connection(client, [client, *owned], **limits)
    # Dask gives a local worker up that ends twice within some seconds.
    made.revive = lambda: cluster.scale(number)
    return made


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Ctrl-C comes later, and never to what is started now: a worker that is only being imported would show it.

    Threads and processes inherit the signals that are blocked. ``local_worker`` does the same where this is unknown.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # The first lock starts Python's tracker of resources, which would unblock the signal for the process started next.
    multiprocessing.get_context("spawn").Lock()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _quiet() -> None:
    """Dask logs each worker and client that ends, with a traceback; what matters of it is told in a sentence."""
    named = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    for name in ("distributed", "tornado.application", *named):  # Dask gives some of its loggers levels of their own
        logging.getLogger(name).setLevel(SILENT)
