"""Options that several commands share, commands made of a dataclass of options, and reading data by options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onlearn.cli.terminal import as_options, option_name, print_line, print_message, progress_of
from onlearn.cluster.options import ClusterOptions
from onlearn.models.train_options import MAX_BAD, About, about, keep_apart, longest_line, part

if TYPE_CHECKING:
    from onlearn.data import BadRows, Batch, Reader
    from onlearn.models import Model

ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A model file (.onl).", show_default=False)]
Data = Annotated[
    list[str],
    typer.Argument(metavar="DATA...", help="Files, patterns, or - for standard input.", show_default=False),
]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The format of the data, if the extension does not say: svmlight, vw, csv, tsv, jsonl, parquet, arrow, "
        "fasttext, conll, conllu, sentences.",
    ),
]
Target = Annotated[
    str | None, typer.Option(metavar="COL", help="The column that holds the label; by default as in training.")
]
Column = Annotated[
    str | None, typer.Option(metavar="COL", help="Of taggers: the column of labels; --target does the same.")
]
BadRowsFile = Annotated[str | None, typer.Option(metavar="FILE", help="Write rows that cannot be read to this file.")]
MaxBad = Annotated[str, typer.Option(metavar="SHARE", help="The part of the rows that may be bad, such as 5% or 0.05.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first row that cannot be read.")]
MaxLine = Annotated[str | None, typer.Option(metavar="SIZE", help=about("max_line").help)]
Unconstrained = Annotated[
    bool, typer.Option("--unconstrained", help="Of taggers: also predict spans that their scheme does not allow.")
]
DecisionThreshold = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        max=1.0,
        metavar="P",
        help="Two labels: the positive one where its probability is at least P; several: the best where its "
        "probability is at least P, and no label elsewhere. By default as the model has it.",
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(metavar="LABEL", help="Of two labels, the positive one; by default the second."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Report = Annotated[
    str | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Write a report: a page (.html) that needs nothing else, or its numbers (.json).",
        show_default=False,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Work on a cluster: the address of a scheduler, such as tcp://host:8786, or local:4 for 4 processes.",
    ),
]
ShardCount = Annotated[int | None, typer.Option(min=1, metavar="N", help=about("shards", ClusterOptions).help)]
Patience = Annotated[float | None, typer.Option(min=0, metavar="SECONDS", help=about("patience", ClusterOptions).help)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and results.")]


def options_command(
    options: type, required: tuple[str, ...] = (), without: Collection[str] = (), **more: Any
) -> Callable[[Any], Any]:
    """Make a command of a function of an options object: it takes the fields of a dataclass as options.

    Each field states its help and range. ``required`` are fields whose default the command does not offer, ``without``
    those that it does not have. ``more`` are options of the command alone, passed by name:
    ``name=(annotation, default)``.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        taken = [one for one in fields(options) if one.name not in without]
        names = [one.name for one in taken]

        def command(**given: Any) -> Any:
            own = {name: given.pop(name) for name in more}
            return function(options(**{name: given[name] for name in names}), **own)

        parameters = [_parameter(one.name, one, one.name in required) for one in taken]
        parameters += [_keyword(name, annotation, default) for name, (annotation, default) in more.items()]
        command.__name__, command.__doc__ = function.__name__, function.__doc__
        command.__annotations__ = {}
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return command

    return decorate


def _parameter(name: str, one: Any, required: bool) -> inspect.Parameter:
    about: About = one.metadata["about"]
    plain = list[str] if about.type is list else about.type
    if one.default is MISSING:
        argument = typer.Argument(metavar=about.metavar, help=about.help, show_default=False)
        return _keyword(name, Annotated[plain, argument], inspect.Parameter.empty)
    option = typer.Option(
        *about.flags, help=about.help, min=about.min, max=about.max, metavar=about.metavar, show_default=not required
    )
    if required:
        return _keyword(name, Annotated[plain, option], inspect.Parameter.empty)
    return _keyword(name, Annotated[plain if one.default is not None else plain | None, option], one.default)


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


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
    max_bad: str = MAX_BAD,
    strict: bool = False,
    max_line: str | None = None,
    quiet: bool = False,
    live: bool = False,
) -> Iterator[Reader]:
    """Read data as the model's training files were read, but by the given options; bad rows are reported at the end.

    ``live`` reads a pipe while it is written: rows are read as soon as their lines are complete.
    """
    given = {"format": format, "target": target, "id": id, "max_line": line_limit(max_line)}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    options["weight"] = None  # for learning only, and new data may lack it
    bad = bad_rows_of(bad_rows, max_bad, strict)
    with model.read(data, bad=bad, block_size=LARGE, live=live, **options) as reader:
        if bad_rows is not None:
            keep_apart(bad_rows, *(source.name for source in reader.sources), parameter="bad_rows")
        yield reader
    if not quiet:
        print_bad_rows(bad)


def line_limit(given: str | None) -> int | None:
    """The most bytes of a line, if they are given."""
    return None if given is None else longest_line(given)


def bad_rows_of(path: str | None, max_bad: str, strict: bool) -> BadRows:
    """What collects bad rows, by the options about them."""
    from onlearn.data import BadRows

    if strict and max_bad != MAX_BAD:
        raise typer.BadParameter("--strict stops at the first bad row, so --max-bad has no use with it")
    return BadRows(path, part(max_bad, "max_bad", whole=True), strict)


def batches(reader: Reader, quiet: bool, **for_tables: str | None) -> Iterator[Batch]:
    """The batches, with a progress bar on a terminal; ``for_tables`` are options that other rows than tables refuse."""
    from onlearn.models.raw_rows import refuse_columns, refuse_sentences

    with progress_of(reader.bytes_total, quiet) as advance:
        for batch in reader:
            refuse_sentences(batch)
            refuse_columns(batch, **for_tables)
            yield batch
            advance(reader.bytes_read, len(batch))


def set_threshold(model: Model, threshold: float | None, positive: str | None) -> None:
    """Let a model predict by the threshold that is given, if one is."""
    if threshold is None:
        if positive is not None:
            raise typer.BadParameter("it is about --threshold, which is not given", param_hint="--positive")
        return
    try:
        model.set_threshold(threshold, positive)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--threshold" if positive is None else "--positive") from None


def only_taggers(**given: Any) -> None:
    """Refuse options that are about sentences, with other models."""
    for name, value in given.items():
        if value not in (None, False):
            raise typer.BadParameter("it has no use here: the model is no tagger", param_hint=option_name(name))


@contextmanager
def as_data_error(reader: Reader) -> Iterator[None]:
    """Errors about rows that the model cannot take become a ``DataError`` that names their files."""
    from onlearn.models.evaluation import unusable_as_data_error

    with unusable_as_data_error(", ".join(source.name for source in reader.sources[:3])):
        yield


def print_bad_rows(bad: BadRows) -> None:
    """On stderr, how many rows could not be read, and the first of them."""
    if bad.count:
        first, *rest = bad.summary().splitlines()
        print_message(first)
        for line in rest:
            print_line(as_options(line))
