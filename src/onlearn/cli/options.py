"""Options that several commands have, so that they are spelled and explained alike."""

from __future__ import annotations

from typing import Annotated

import typer

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
