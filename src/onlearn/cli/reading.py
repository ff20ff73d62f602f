"""Reading data for a model: the options of commands turned into a reader, and what went wrong told."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from onlearn.cli.options import refuse_both, share
from onlearn.cli.output import keep_apart
from onlearn.cli.terminal import complain, progress_of

if TYPE_CHECKING:
    from onlearn.data import BadRows, Batch, Reader
    from onlearn.pipeline import Model

LARGE = 8 << 20  # bytes parsed at a time: each batch costs the same few milliseconds, however few rows it has


@contextmanager
def reading(
    model: Model,
    data: list[str],
    *,
    format: str | None = None,
    target: str | None = None,
    id: str | None = None,
    bad_rows: str | None = None,
    max_bad: str = "1%",
    strict: bool = False,
    quiet: bool = False,
) -> Iterator[Reader]:
    """The data, read as the model's were but for the options that are given; at the end, bad rows are told."""
    from onlearn.data import BadRows

    refuse_both(strict, max_bad)
    given = {"format": format, "target": target, "id": id}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    options["weight"] = None  # is for learning, and new data may lack it
    bad = BadRows(bad_rows, share(max_bad, "--max-bad"), strict)
    with model.read(data, bad=bad, block_size=LARGE, **options) as reader:
        if bad_rows is not None:
            keep_apart(bad_rows, *(source.name for source in reader.sources), option="--bad-rows")
        yield reader
    if not quiet:
        tell_bad(bad)


def batches(reader: Reader, quiet: bool, **for_tables: str | None) -> Iterator[Batch]:
    """The batches, with a bar on a terminal; options that only tables have are refused with others."""
    from onlearn.pipeline.model import refuse_sentences

    with progress_of(reader.bytes_total, quiet) as advance:
        for batch in reader:
            refuse_sentences(batch)
            if not hasattr(batch.rows, "column_names"):
                for name, value in for_tables.items():
                    if value is not None:
                        raise typer.BadParameter(f"{batch.file} is no table: it has no columns", param_hint=f"--{name}")
            yield batch
            advance(reader.bytes_read, len(batch))


@contextmanager
def data_to_blame(reader: Reader) -> Iterator[None]:
    """Rows that the model cannot take are bad data, and no failure of ours."""
    from onlearn.data import DataError

    try:
        yield
    except DataError:
        raise
    except (TypeError, ValueError) as error:
        names = ", ".join(source.name for source in reader.sources[:3])
        raise DataError(f"{names} cannot be used with this model: {error}") from error


def tell_bad(bad: BadRows) -> None:
    """On stderr, how many rows could not be read and where."""
    if bad.count:
        first, *rest = bad.summary().splitlines()
        complain(first)
        for line in rest:
            print(line, file=sys.stderr)
