"""How commands speak: results on stdout, all else on stderr, colours and bars only on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table
import io
import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

if TYPE_CHECKING:
    from onlearn.models import Model
import _thread
import errno
import re
import threading
import warnings
from collections.abc import Callable

# ----------------------------------------------------------------------------------------------------
# Commands that have commands of their own.


def group(what: str) -> typer.Typer:
    """A place for commands, which alone shows its help, as ``onlearn`` does."""
    made = typer.Typer(rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})

    @made.callback(invoke_without_command=True, help=what)
    def alone(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    return made


# ----------------------------------------------------------------------------------------------------
# Tables on standard output, with colours on a terminal only; labels and names are shown as they are.


def plain_table(first: str | None = None, *numbers: str, title: str | None = None) -> Table:
    """A table without a frame: a first column of names and further ones of numbers; or no columns yet."""
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
    """A name as it is; in quotes where a space at its edge, or what is not printed, would go unseen."""
    return name if name == name.strip() and name.isprintable() else repr(name)


def show(what: Any) -> None:
    """Print it, and an empty line. Nothing in it is markup: a label may look like ``[red]``."""
    from rich.console import Console

    console = Console(markup=False, highlight=False, emoji=False)
    console.print(what)
    console.print()


# ----------------------------------------------------------------------------------------------------
# Where results go: standard output, or a file that appears only when it is whole.


def echo_json(report: Any, indent: int | None = 2) -> None:
    """Print a report as JSON, which has no numbers that are infinite or none: those are null."""
    typer.echo(json.dumps(_strict(report), indent=indent, allow_nan=False))


def _strict(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _strict(inner) for key, inner in value.items()}
    return [_strict(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def keep_apart(path: str, *inputs: str, option: str) -> None:
    """Refuse to write over what is read."""
    if os.path.exists(path) and any(os.path.exists(name) and os.path.samefile(path, name) for name in inputs):
        raise typer.BadParameter(f"{path} is read from, so it cannot be written to", param_hint=option)


class Whole:
    """Standard output without a buffer (PYTHONUNBUFFERED), which may take a part of what it is given and say so."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self.raw = raw

    def write(self, content: bytes | memoryview) -> int:
        view = memoryview(content).cast("B")
        done = 0
        while done < len(view):
            done += self.raw.write(view[done:]) or 0
        return done


@contextmanager
def output(path: str | None, *inputs: str, option: str = "--output") -> Iterator[IO[bytes]]:
    """A file to write to, beside its place and renamed in the end; standard output for None and ``-``.

    What is read (``inputs``) cannot be written to as well.
    """
    if path is None or path == "-":
        sys.stdout.flush()
        out = sys.stdout.buffer
        yield cast(IO[bytes], Whole(out)) if isinstance(out, io.RawIOBase) else out
        out.flush()
        return
    target = Path(path)
    if target.is_dir():
        raise typer.BadParameter(f"{target} is a directory, not a file to write to", param_hint=option)
    if not target.parent.is_dir():
        raise typer.BadParameter(f"there is no directory {target.parent} to write to", param_hint=option)
    keep_apart(path, *inputs, option=option)
    try:
        if target.exists() and not target.is_file():  # a pipe or a device has no place beside it
            with open(target, "wb") as file:
                yield file
            return
        from onlearn.model_file import whole_file

        with whole_file(target) as temporary, open(temporary, "wb") as file:
            yield file
    except OSError as error:
        if isinstance(error, BrokenPipeError) or error.errno is None or error.filename == str(target):
            raise
        raise OSError(error.errno, f"cannot be written: {error.strerror}", str(target)) from error


# ----------------------------------------------------------------------------------------------------
# What is told of features that are hashed, and so may share a weight.


def told(model: Model) -> dict[str, Any]:
    """The names that are kept (None: there are none to keep), how many features are hashed, and how many collide."""
    named = model.features.has_vocabulary
    found = model.features.vocabulary_.collisions() if named else model.far.collisions()
    bits = model.features.bits if named else getattr(model.far, "bits", 0)
    there = found is not None and found["features"] > 0
    return {
        "names": len(model.features.vocabulary_) if named else None,
        "hashed_features": round(found["features"], 1) if found and there else 0,
        "hashed_weights": 1 << bits if there else 0,
        "estimated_collisions": round(found["collisions"], 1) if found and there else 0,
        "estimate_is_at_least": bool(found and there and found["buckets"] == 1 << bits),
    }


def line(report: dict[str, Any]) -> str | None:
    """That in one line for people; None if nothing is hashed."""
    if not report["hashed_features"]:
        return None
    about = "at least" if report["estimate_is_at_least"] else "about"
    return (
        f"{about} {report['hashed_features']:,.0f} share {report['hashed_weights']:,} weights: "
        f"{about} {report['estimated_collisions']:,.0f} collisions"
    )


def counted(features: int, told: dict[str, Any]) -> str:
    """How many features there are; where indices are all that is known of them, which, for not all need occur."""
    indices = told.get("names") is None and not told["hashed_features"]
    return numbered(features) if indices else f"{features:,}"


def numbered(features: int) -> str:
    """How many features there are, if indices are all that is known of them."""
    return f"{features:,}, numbered 0 to {features - 1:,}" if features else "0"


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
