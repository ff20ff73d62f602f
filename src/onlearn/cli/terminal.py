"""Input and output of commands: groups, tables, files, messages, options in messages, Ctrl-C and progress.

Results go to standard output, or to a file that appears only when it is complete; all else goes to stderr. Colours and
progress bars appear on a terminal only.
"""

from __future__ import annotations

import _thread
import errno
import io
import json
import math
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import typer

from onlearn.cluster.options import ClusterOptions
from onlearn.errors import PlanError
from onlearn.models.train_options import keep_apart

if TYPE_CHECKING:
    from rich.table import Table


command_line: ContextVar[tuple[str, ...]] = ContextVar("command_line", default=())  # of the running command


def group(what: str) -> typer.Typer:
    """A group of commands, such as ``onlearn data``; without a command it shows its help."""
    made = typer.Typer(rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})

    @made.callback(invoke_without_command=True, help=what)
    def alone(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    return made


def plain_table(first: str | None = None, *numbers: str, title: str | None = None) -> Table:
    """A table without a frame: a first column of names and further ones of numbers; or without columns."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE if first is not None else None,
        title=None if title is None else Text(title, style="bold"),
        title_justify="left",
        show_header=first is not None,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
    if first is not None:
        table.add_column(Text(first), style="cyan", overflow="fold")
    for name in numbers:
        table.add_column(Text(name), justify="right")
    return table


def visible(name: str) -> str:
    """A name, in quotes if it begins or ends with spaces or has characters that are not printed."""
    return name if name == name.strip() and name.isprintable() else repr(name)


def show(what: Any) -> None:
    """Print something and an empty line. Markup is off: a label may look like ``[red]``."""
    from rich.console import Console

    console = Console(markup=False, highlight=False, emoji=False)
    console.print(what)
    console.print()


def echo_json(report: Any, indent: int | None = 2) -> None:
    """Print a report as JSON. NaN and infinity, which JSON does not have, are null."""
    typer.echo(json.dumps(_strict(report), indent=indent, allow_nan=False))


def _strict(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _strict(inner) for key, inner in value.items()}
    return [_strict(inner) for inner in value] if isinstance(value, (list, tuple)) else value


class UnbufferedWriter:
    """Standard output without a buffer (PYTHONUNBUFFERED), whose writes may be partial and are then continued."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self.raw: io.RawIOBase = raw

    def write(self, content: bytes | memoryview) -> int:
        view = memoryview(content).cast("B")
        done = 0
        while done < len(view):
            done += self.raw.write(view[done:]) or 0
        return done


@contextmanager
def output(path: str | None, *inputs: str, parameter: str = "output") -> Iterator[IO[bytes]]:
    """A file to write to, which appears when it is complete; standard output for None and ``-``.

    A file that is read (``inputs``) is refused.
    """
    if path is None or path == "-":
        sys.stdout.flush()
        out = sys.stdout.buffer
        yield cast(IO[bytes], UnbufferedWriter(out)) if isinstance(out, io.RawIOBase) else out
        out.flush()
        return
    target = Path(path)
    if target.is_dir():
        raise PlanError(f"{target} is a directory, not a file to write to", parameter)
    if not target.parent.is_dir():
        raise PlanError(f"there is no directory {target.parent} to write to", parameter)
    keep_apart(path, *inputs, parameter=parameter)
    try:
        if target.exists() and not target.is_file():  # a pipe or a device cannot be replaced
            with open(target, "wb") as file:
                yield file
            return
        from onlearn.whole_file import whole_file

        with whole_file(target) as temporary, open(temporary, "wb") as file:
            yield file
    except OSError as error:
        if isinstance(error, BrokenPipeError) or error.errno is None or error.filename == str(target):
            raise
        raise OSError(error.errno, f"cannot be written: {error.strerror}", str(target)) from error


def hashed_line(report: dict[str, Any]) -> str | None:
    """How many features are hashed, and how many collide; None if none is hashed."""
    if not report["hashed_features"]:
        return None
    about = "at least" if report["estimate_is_at_least"] else "about"
    return (
        f"{about} {report['hashed_features']:,.0f} share {report['hashed_weights']:,} weights: "
        f"{about} {report['estimated_collisions']:,.0f} collisions"
    )


def feature_count(features: int, report: dict[str, Any]) -> str:
    """The number of features; also their range of indices if they have no names, for not all of them need occur."""
    indices = report.get("names") is None and not report["hashed_features"]
    return index_range(features) if indices else f"{features:,}"


def index_range(features: int) -> str:
    """The number of features without names, and the range of their indices."""
    return f"{features:,}, numbered 0 to {features - 1:,}" if features else "0"


class Stopped(Exception):  # noqa: N818 (it is no error)
    """Ctrl-C ended a command, with a message."""


def print_message(text: str) -> None:
    """One line on stderr."""
    print(f"onlearn: {text}", file=sys.stderr, flush=True)


def announce_compiling(quiet: bool) -> None:
    """Have one line printed on a terminal before the command first waits for code to be compiled; unless quiet."""
    from onlearn.compiler import before_compiling

    silent = quiet or not sys.stderr.isatty()
    before_compiling(None if silent else lambda: print_message("compiling for this machine, once: about 10 s"))


def option_name(parameter: str) -> str:
    """A parameter as the command line spells it: ``max_names`` is ``--max-names``."""
    return f"--{parameter.replace('_', '-')}"


@cache
def _parameters() -> re.Pattern[str]:
    """Parameters in a message of Python: ``target=``, ``task=regress``, ``header=True``."""
    of_others = ["data", "folds", "trials", "format_out", "proba", "top"]  # not of training
    known = [*of_others, *(one.name for one in fields(ClusterOptions))]
    names = "|".join(sorted(known, key=len, reverse=True))
    return re.compile(rf"(?<![\w'\"-])({names})=(True\b|False\b|\w+(?:[,.-]\w+)*|(['\"])([\w,.-]+)\3)?")


def as_options(text: str) -> str:
    """A message of Python with its parameters as options.

    >>> as_options("say target=, or task=regress; max_names= needs names")
    'say --target, or --task regress; --max-names needs names'
    >>> as_options("say header=False")
    'say --no-header'
    """

    def spell(found: re.Match[str]) -> str:
        name, value = found[1], found[4] or found[2]
        if value in ("True", "False"):
            return option_name(name if value == "True" else f"no_{name}")
        return option_name(name) + (f" {value}" if value else "")

    return _parameters().sub(spell, text)


class Closed(io.RawIOBase):
    """Standard output that the shell closed (``>&-``): writing to it is an error."""

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        raise OSError(errno.EBADF, "standard output is closed")


def replace_closed_streams() -> None:
    """Replace the streams that the shell closed, for which Python has None; what is written to stderr is lost."""
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(Closed(), "utf-8", write_through=True)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (as long as the process lives)


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print warnings in one line, and never lose Ctrl-C."""

    def warn(message: Warning | str, *_: Any, **__: Any) -> None:
        print_message(f"warning: {' '.join(str(message).split())}")

    def unraisable(lost: Any) -> None:
        # Ctrl-C while LLVM calls back into Python is lost: it is sent again, a moment later.
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
    """A progress bar on stderr; call what it yields with the name of each part that is done."""
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
    """A progress bar on stderr while data are read; call what it yields with all bytes read and the new rows."""
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


def as_line(value: Any) -> str:
    """What a learner tells about itself, in one line: numbers in short, lists and mappings by their parts."""
    if isinstance(value, bool) or value is None:
        return "none" if value is None else "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {as_line(one)}" for name, one in value.items())
    if isinstance(value, (list, tuple)):
        shown = [f"({as_line(one)})" if isinstance(one, (list, dict)) else as_line(one) for one in value[:LISTED]]
        return ", ".join(shown) + (", ..." if len(value) > LISTED else "")
    return str(value)


LISTED = 12  # entries of a list that are shown
