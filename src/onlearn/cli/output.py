"""Where results go: standard output, or a file that appears only when it is whole."""

from __future__ import annotations

import io
import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import typer


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
        from onlearn.store import whole_file

        with whole_file(target) as temporary, open(temporary, "wb") as file:
            yield file
    except OSError as error:
        if isinstance(error, BrokenPipeError) or error.errno is None or error.filename == str(target):
            raise
        raise OSError(error.errno, f"cannot be written: {error.strerror}", str(target)) from error
