"""Options that several commands have, so that they are spelled and explained alike."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onlearn.cli.terminal import complain, keep_apart, progress_of

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
        help="What the data are, where the extension does not say: svmlight, vw, csv, tsv, jsonl, parquet, arrow, "
        "fasttext.",
    ),
]
Target = Annotated[
    str | None, typer.Option(metavar="COL", help="The column that holds the label; by default as in training.")
]
BadRowsFile = Annotated[str | None, typer.Option(metavar="FILE", help="Keep rows that cannot be read in this file.")]
MaxBad = Annotated[
    str, typer.Option(metavar="SHARE", help="Stop when more rows than this cannot be read, such as 5% or 0.05.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first row that cannot be read.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing on stderr but errors.")]


MAX_BAD = "1%"  # what --max-bad is by default


def refuse_both(strict: bool, max_bad: str) -> None:
    """With --strict no row may be bad, whatever --max-bad says."""
    if strict and max_bad != MAX_BAD:
        raise typer.BadParameter("--strict stops at the first bad row, so --max-bad has no use with it")


def share(text: str, option: str) -> float:
    """``"5%"`` or ``"0.05"`` as a number from 0 to 1."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise typer.BadParameter(f"{text!r} is not a share of the rows, such as 5% or 0.05", param_hint=option)
    return value


# ----------------------------------------------------------------------------------------------------
# The options of ``onlearn train`` about kernels.


OPTIONS = ("budget", "budget_policy", "cache_mb")
OF_FEATURES = ("numeric", "categorical", "ngrams", "chars", "weighting", "norm", "scale", "interact")


def flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def kernel_learner(asked: dict[str, Any], choices: dict[str, Any]) -> Any:
    """The kernel classifier that was asked for."""
    from onlearn import kernels
    from onlearn.estimators.kernel import KernelClassifier

    for name in ("learner", "prune_weights"):
        if asked[name]:
            raise typer.BadParameter(f"{flag(name)} has no use with --kernel")
    try:
        kernel = kernels.get(asked["kernel"])
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(str(error), param_hint="--kernel") from None
    if kernel.data in ("strings", "trees"):
        for name in OF_FEATURES:
            if asked[name] not in (None, []):
                raise typer.BadParameter(f"{flag(name)} has no use with {kernel}, which compares texts as they are")
    given = {name: asked[name] for name in OPTIONS if asked[name] is not None}
    if "budget_policy" in given and "budget" not in given:
        raise typer.BadParameter("--budget-policy is about --budget, which is not given")
    made = KernelClassifier(asked["kernel"], **choices, **given)
    try:
        made._check_settings()
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None
    return made


def refuse_without_kernel(asked: dict[str, Any]) -> None:
    """What has a meaning only with a kernel."""
    for name in OPTIONS:
        if asked[name] is not None:
            raise typer.BadParameter(f"{flag(name)} is about --kernel, which is not given")


def told(learner: Any) -> dict[str, Any]:
    """The kernel and the support examples of a learner that has them."""
    if getattr(learner, "representation_", None) != "dual":
        return {}
    return {"kernel": str(learner._kernel), "support_examples": learner.n_support_}


# ----------------------------------------------------------------------------------------------------
# Reading data for a model: the options of commands turned into a reader, and what went wrong told.


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
    from onlearn.models.model import refuse_sentences

    with progress_of(reader.bytes_total, quiet) as advance:
        for batch in reader:
            refuse_sentences(batch)
            if not hasattr(batch.parsed, "column_names"):
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
