"""How commands speak: results on stdout, all else on stderr, colours and bars only on a terminal."""

from __future__ import annotations

import _thread
import errno
import io
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Stopped(Exception):  # noqa: N818 (it is no error)
    """Ctrl-C ended a command that has something to say about it."""


def complain(text: str) -> None:
    """One line on stderr."""
    print(f"onlearn: {text}", file=sys.stderr, flush=True)


def as_options(text: str) -> str:
    """What Python's users are told to say, as those of the command line say it: ``target=`` is ``--target``."""
    text = text.replace("say header=True", "say --header").replace("say header=False", "say --no-header")
    text = re.sub(r"\b(\w+)= has no use", r"--\1 has no use", text)
    return re.sub(
        r"\bsay (\w+)=(?=(\w?))", lambda found: f"say --{found[1].replace('_', '-')}{' ' if found[2] else ''}", text
    )


class Closed(io.RawIOBase):
    """Standard output that was closed (``>&-``): who needs none does not notice, others say so."""

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        raise OSError(errno.EBADF, "standard output is closed")


def stand_in_for_closed() -> None:
    """Streams where Python has none, for the shell closed them; what is to go to stderr is lost."""
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(Closed(), "utf-8", write_through=True)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (as long as the process lives)


@contextmanager
def manners() -> Iterator[None]:
    """Warnings take one line, and Ctrl-C is obeyed wherever it comes."""

    def warn(message: Warning | str, *_: Any, **__: Any) -> None:
        complain(f"warning: {' '.join(str(message).split())}")

    def unraisable(lost: Any) -> None:
        # Ctrl-C while LLVM calls back into Python is lost there: it is sent again, to arrive elsewhere.
        if lost.exc_type is KeyboardInterrupt:
            again = threading.Timer(0.1, _thread.interrupt_main)
            again.daemon = True
            again.start()
        else:
            sys.__unraisablehook__(lost)

    sys.unraisablehook = unraisable
    with warnings.catch_warnings():
        warnings.showwarning = warn
        yield


@contextmanager
def progress(doing: str, total: int) -> Iterator[Callable[[str], None]]:
    """A bar on stderr; call what it yields with the name of each part that is done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        TextColumn(doing),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total)
        yield lambda part: bar.update(task, advance=1, description=part)


@contextmanager
def progress_of(total: int | None, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr for data that are read; call what it yields with the bytes read so far and the rows since."""
    if quiet or not sys.stderr.isatty():
        yield lambda bytes_read, rows: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    text = "{task.fields[rows]:,} rows"
    columns = (BarColumn(), TextColumn(text), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task, seen = bar.add_task("", total=total, rows=0), 0

        def advance(bytes_read: int, rows: int) -> None:
            nonlocal seen
            seen += rows
            bar.update(task, completed=bytes_read, rows=seen)

        yield advance
