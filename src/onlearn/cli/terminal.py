"""Input and output of commands: groups, tables, files, messages, options in messages, Ctrl-C and progress.

Results go to standard output, or to a file that appears only when it is complete; all else goes to stderr. Colours and
progress bars appear on a terminal only.

Names of columns, labels, words and files come from others, and may hold what a terminal obeys. So commands print by
what is here alone: ``echo``, ``show`` and ``print_message`` write escapes in its place wherever they write to, and
``output`` does on a terminal; to files and pipes it writes data as they are.
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
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import typer

from onlearn.cluster.options import ClusterOptions
from onlearn.errors import PlanError
from onlearn.inert_text import escaped
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
            echo(context.get_help())

    return made


def echo(text: str) -> None:
    """Print lines for people on standard output."""
    print(escaped(text), flush=True)


def plain_table(first: str | None = None, *numbers: str, title: str | None = None) -> Table:
    """A table without a frame: a first column of names and further ones of numbers; or without columns."""
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE if first is not None else None,
        title=title,
        title_style="bold",
        title_justify="left",
        show_header=first is not None,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
    if first is not None:
        table.add_column(first, style="cyan", overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right")
    return table


def visible(name: str) -> str:
    """A name, in quotes if it begins or ends with spaces or has characters that are not seen."""
    return name if name == name.strip() and name.isprintable() else repr(name)


def show(what: Any) -> None:
    """Print a table or a text, wrapped, and an empty line."""
    from onlearn.cli.console import PlainConsole

    console = PlainConsole()
    console.print(what)
    console.print()


def echo_json(report: Any, indent: int | None = 2) -> None:
    """Print a report as JSON. NaN and infinity, which JSON does not have, are null."""
    echo(_as_ascii(json.dumps(_strict(report), indent=indent, allow_nan=False)))


def _as_ascii(json_text: str) -> str:
    """JSON without characters that are not seen: of ASCII, ``json`` leaves the last one."""
    return json_text.replace("\x7f", "\\u007f")


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


class TerminalWriter:
    """Lines of data for a terminal, where characters that are not seen, but for tabs, are written as escapes."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def write(self, lines: bytes | memoryview) -> int:
        self.file.write(escaped(bytes(lines).decode("utf-8", "backslashreplace"), kept="\n\t").encode())
        return len(lines)


@contextmanager
def output(path: str | None, *inputs: str, parameter: str = "output") -> Iterator[IO[bytes]]:
    """A file to write to, which appears when it is complete; standard output for None and ``-``.

    A file that is read (``inputs``) is refused.
    """
    if path is None or path == "-":
        sys.stdout.flush()
        out = sys.stdout.buffer
        whole = UnbufferedWriter(out) if isinstance(out, io.RawIOBase) else out
        yield cast(IO[bytes], TerminalWriter(whole) if sys.stdout.isatty() else whole)
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


def echo_files(paths: Iterable[str | os.PathLike[str]]) -> None:
    """Print names of files, one a line, on standard output: they are data, for programs that open the files."""
    with output(None) as out:
        out.write(b"".join(os.fsencode(path) + b"\n" for path in paths))


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
    print_line(f"onlearn: {text}")


def print_line(text: str) -> None:
    """One line on stderr that goes on with the message before."""
    print(escaped(text, kept=""), file=sys.stderr, flush=True)


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


def prepare_streams() -> None:
    """Make standard output and error fit to write any text to.

    Of those that the shell closed, for which Python has None, what is written to stderr is lost. What the encoding of
    standard output does not have is written as escapes, as on stderr.
    """
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(Closed(), "utf-8", write_through=True)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (as long as the process lives)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print warnings, and those of our log, in one line each; and never lose Ctrl-C."""
    import logging

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            warn(record.getMessage())

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
    log, lines = logging.getLogger("onlearn"), Lines(logging.WARNING)
    log.addHandler(lines)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = warn
            yield
    finally:
        log.removeHandler(lines)


@contextmanager
def progress(doing: str, total: int) -> Iterator[Callable[[str], None]]:
    """A progress bar on stderr; call what it yields with the name of each part that is done."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from onlearn.cli.console import PlainConsole

    console = PlainConsole(stderr=True)
    columns = (
        TextColumn(doing),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
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
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from onlearn.cli.console import PlainConsole

    text = "{task.fields[rows]:,} rows"
    columns = (BarColumn(), TextColumn(text), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, console=PlainConsole(stderr=True), transient=True) as bar:
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
