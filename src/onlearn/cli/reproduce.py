"""``onlearn reproduce``: published results computed again, beside the published ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from onlearn.cli.options import Report
from onlearn.cli.reporting import check_report, write_report
from onlearn.cli.terminal import echo, echo_json, group, progress

app = group("Compute published results again and show both.")

Folder = Annotated[Path | None, typer.Option("--data", metavar="DIR", help="Where the files of the data set are.")]
Seed = Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of the order of rows and of random features.")]
Json = Annotated[bool, typer.Option("--json", help="Print the table as JSON.")]


@app.command()
def ocr(
    data: Folder = None,
    line: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help='Only this line, such as "degree 4"; may be repeated.')
    ] = None,
    rows: Annotated[int | None, typer.Option(min=100, help="Learn from fewer rows, for a quick look.")] = None,
    seed: Seed = 1,
    seeds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Show the mean over so many seeds, too; each takes as long.")
    ] = 3,
    report_file: Report = None,
    json: Json = False,
) -> None:
    """Handwritten digits by kernel perceptrons, test error after 0.1 to 10 passes; and its mean over several seeds.

    The four files of MNIST are looked for in DIR, or in mnist/ of the folder that ONLEARN_DATA names.

    \b
    Examples:
      onlearn reproduce ocr
      onlearn reproduce ocr --line "degree 4" --data ~/mnist
      onlearn reproduce ocr --rows 6000 --json
    """
    from onlearn.reproduce.ocr import LINES, ocr

    chosen = line or list(LINES)
    unknown = [name for name in chosen if name not in LINES]
    if unknown:
        known = ", ".join(repr(name) for name in LINES)
        raise typer.BadParameter(f"there is no line {unknown[0]!r}; there are {known}", param_hint="--line")
    _run(
        lambda report: ocr(data, chosen, seed=seed, seeds=seeds, rows=rows, report=report),
        len(chosen),
        json,
        report_file,
    )


@app.command()
def spam(data: Folder = None, seed: Seed = 0, report_file: Report = None, json: Json = False) -> None:
    """E-mails as 57 numbers: averaged perceptrons, plain and on random kitchen sinks; and a decision tree.

    The files spambase.data and traintest.txt are looked for in DIR, or in spambase/ of the folder that ONLEARN_DATA
    names.

    \b
    Examples:
      onlearn reproduce spam --report spam.html
      onlearn reproduce spam --data ~/spambase --json
    """
    from onlearn.reproduce.spam import PASSES, spam

    _run(lambda report: spam(data, seed=seed, report=report), len(PASSES) + 1, json, report_file)


def _run(work: Callable[[Callable[[str], None]], Any], lines: int, json: bool, report_file: str | None) -> None:
    check_report(report_file)
    with progress("learning", lines) as advance:
        table = work(advance)
    write_report(report_file, "reproduce", table.to_dict())
    if json:
        echo_json(table.to_dict())
    else:
        echo(str(table))
