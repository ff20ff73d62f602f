"""``onlearn explain``: which features moved the prediction of one row."""

from __future__ import annotations

import json as text_of
import math
import os
import tempfile
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onlearn.cli.options import Format, Json, ModelFile, only_taggers
from onlearn.cli.terminal import echo_json, print_message

if TYPE_CHECKING:
    from onlearn.models import Model
    from onlearn.models.explain import Explanation, Part


def explain(
    model: ModelFile,
    row: Annotated[
        str | None,
        typer.Argument(
            metavar="[ROW]",
            help="A JSON object, or a line of an svmlight, Vowpal Wabbit or fastText file.",
            show_default=False,
        ),
    ] = None,
    text: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A text, for models with one column of text.")
    ] = None,
    at: Annotated[str | None, typer.Option(metavar="FILE:LINE", help="The row on this line of a file.")] = None,
    token: Annotated[
        int | None, typer.Option(metavar="K", min=1, help="Of taggers: the token of the sentence, counted from 1.")
    ] = None,
    format: Format = None,
    top: Annotated[int, typer.Option(min=1, help="How many features to show.")] = 20,
    json: Json = False,
) -> None:
    """Show which features moved a prediction, the largest first.

    Each adds value x weight to the score. Of two classes, a contribution above zero speaks for the second; of several,
    for the predicted one against the runner-up. The total is the sum of all and the intercept. For a model with a
    kernel, the support examples are shown, each with its kernel value.

    \b
    Examples:
      onlearn explain m.onl --text "cheap pills"
      onlearn explain m.onl '{"age":39,"job":"clerk"}'
      onlearn explain m.onl --at test.csv:17 --json
      onlearn explain tagger.onl "The dog barks ." --token 3
    """
    from onlearn.cli.tagging import tagger_in
    from onlearn.models import explain, open_model

    given = [name for name, value in (("ROW", row), ("--text", text), ("--at", at)) if value is not None]
    if len(given) != 1:
        what = "they cannot go together" if given else "what is to be explained is missing"
        raise typer.BadParameter(
            f"give a row, --text or --at FILE:LINE: {what}", param_hint=" and ".join(given) or "ROW"
        )
    if not _is_text(row) or not _is_text(text):
        raise typer.BadParameter("it is not UTF-8", param_hint=given[0])
    if format is not None and at is None:
        raise typer.BadParameter("it is for --at FILE:LINE", param_hint="--format")
    tagger = tagger_in(model)
    if tagger is not None:
        from onlearn.cli import tag_facts

        return tag_facts.explain(tagger, row if text is None else text, at, token, format, top, json)
    only_taggers(token=token)
    opened = open_model(model)
    if text is not None:
        rows = _text(opened, text)
    elif at is not None:
        rows = _line_of(opened, at, format)
    else:
        rows = _row(opened, str(row))
    try:
        found = explain.explain(opened, rows)
    except (TypeError, ValueError) as error:
        from onlearn.data import DataError

        raise DataError(f"the row cannot be explained by this model: {error}") from error
    if json:
        report = found._asdict()
        what, parts = report.pop("of"), report.pop("parts")
        report[f"n_{what}"] = len(parts)
        value_name = report.pop("value_name")
        report[what] = [as_json(part, what, value_name) for part in parts[:top]]
        for name in ("by", "note"):
            if report[name] is None:
                del report[name]
        echo_json(report)
    else:
        _print(found, top)


# ---------------------------------------------------------------------- the row


def _is_text(given: str | None) -> bool:
    """Whether an argument, of which Python keeps other bytes as halves of characters, is UTF-8."""
    try:
        (given or "").encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(model: Model, text: str) -> Any:
    """A table of one text."""
    from onlearn.features import Text

    columns = [one.column for one in model.features.extractors_ if isinstance(one, Text)]
    if len(columns) != 1 or len(model.columns) != 1:
        listed = ", ".join(model.columns)
        why = f"its columns are {listed}" if listed else f"it takes {model.features.kind_}"
        raise typer.BadParameter(f"the model has not just one column of text: {why}", param_hint="--text")
    return _table(model, {columns[0]: text})


def _table(model: Model, row: dict[str, Any]) -> Any:
    """A table of one row; columns of the model that it lacks are missing values."""
    import pyarrow as pa

    from onlearn.data.arrow import from_values

    row = {name: None if isinstance(value, (dict, list)) else value for name, value in row.items()}
    lacking = {name: None for name in model.columns if name not in row}
    return pa.table({name: from_values([value]) for name, value in {**row, **lacking}.items()})


def _row(model: Model, row: str) -> Any:
    """A row that is a JSON object or a line of a file."""
    from onlearn.data.table_roles import spread
    from onlearn.models.plan import learned_from
    from onlearn.models.run_checks import unknown_columns

    kind = model.features.kind_
    if row.lstrip().startswith("{"):
        try:
            found = spread(text_of.loads(row))
        except text_of.JSONDecodeError as error:
            raise typer.BadParameter(f"it is not JSON: {error}", param_hint="ROW") from error
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="ROW") from error
        if kind == "a table":
            if not found.keys() & set(model.columns):
                listed = ", ".join(model.columns[:12])
                raise typer.BadParameter(f"it has no column that the model knows: {listed}", param_hint="ROW")
            rows = _parsed(model, text_of.dumps({**dict.fromkeys(model.columns), **found}), "jsonl")
            if (new := unknown_columns(model, rows)) is not None:
                print_message(f"note: {new}")
            return rows
        raise typer.BadParameter(f"the model takes {kind}: give a line of its file", param_hint="ROW")
    if kind == "a table" and not learned_from(model.reading, model.columns):
        listed = ", ".join(model.columns[:12])
        raise typer.BadParameter(
            f"the model takes tables: give a JSON object with the columns {listed}; or --at FILE:LINE", param_hint="ROW"
        )
    if "\n" in row.strip():
        raise typer.BadParameter("it is more than one line: give one row", param_hint="ROW")
    if kind == "a table":
        return _parsed(model, row, "fasttext") if row.strip() else _text(model, row)
    return _parsed(model, row.strip("\r\n"), "svmlight" if kind == "a matrix" else "vw")


def _parsed(model: Model, line: str, format: str) -> Any:
    """The row on a line of a file of some format, with or without a label."""
    from onlearn.data import DataError

    if format == "svmlight" and ":" in "".join(line.split(maxsplit=1)[:1]):
        line = f"0 {line}"
    handle, name = tempfile.mkstemp(prefix="row.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(line + "\n")
        with model.read(name, format=format, strict=True, workers=0, weight=None) as reader:
            return next(reader).parsed
    except DataError as error:
        reason = str(error).replace(name, "the row").replace("the row, line 1", "the row")
        raise typer.BadParameter(reason, param_hint="ROW") from error
    finally:
        os.unlink(name)


def _line_of(model: Model, at: str, format: str | None) -> Any:
    """The row at FILE:LINE."""
    import numpy as np

    path, _, line = at.rpartition(":")
    if not path or not line.isdigit() or int(line) < 1:
        raise typer.BadParameter(f"{at!r} is not a file and a line, such as test.csv:17", param_hint="--at")
    options = {"weight": None} if format is None else {"weight": None, "format": format}
    with model.read(path, **options) as reader:
        for batch in reader:
            place = np.flatnonzero(batch.lines == int(line))
            if len(place):
                return batch.slice(int(place[0]), int(place[0]) + 1).parsed
    bad = f", and {reader.bad.count} of its rows cannot be read" if reader.bad.count else ""
    raise typer.BadParameter(f"there is no row on line {line} of {path}{bad}", param_hint="--at")


# ---------------------------------------------------------------------- printing


def as_json(part: Part, what: str, value_name: str | None = None) -> dict[str, Any]:
    """A part of an explanation for JSON: of a feature its value, of a support example its kernel value."""
    made = part._asdict()
    if what == "examples":
        return {"example": made.pop("feature"), value_name or "kernel": made.pop("value"), **made}
    return made


def amount_format(found: Explanation) -> str:
    """One format for all amounts, so that they add up: four digits of the largest, and its decimals for all."""
    largest = max((abs(part.contribution) for part in found.parts), default=0.0) or abs(found.total) or 1.0
    decimals = max(3 - math.floor(math.log10(largest)), 0)
    too_long = decimals > 12 or max(abs(found.intercept), abs(found.total), largest) >= 1e15
    return "+.4g" if too_long else f"+.{decimals}f"


def _print(found: Explanation, top: int) -> None:
    from onlearn.cli.terminal import plain_table, show, visible

    form = amount_format(found)
    if found.favours is None:
        show(f"{format(found.prediction, form).removeprefix('+')}, from these {found.of}:")
    else:
        show(
            f"{found.prediction}, with probability {found.probability:.3f}. "
            f"Above zero speaks for {found.favours}, below for {found.against}:"
        )
    if found.by is not None:
        show(f"A mixture has no weights; these are of its leader, {found.by}:")
    if found.note is not None:
        show(found.note)
    examples = found.of == "examples"
    value = found.value_name or ("kernel" if examples else "value")
    table = plain_table("like" if examples else "feature", value, "weight", "contribution")
    for part in found.parts[:top]:
        table.add_row(
            visible(part.feature), f"{part.value:.4g}", f"{part.weight:+.4g}", format(part.contribution, form)
        )
    rest = found.parts[top:]
    if rest:
        table.add_row(f"{len(rest):,} more {found.of}", "", "", format(sum(part.contribution for part in rest), form))
    table.add_row("intercept", "", "", format(found.intercept, form))
    table.add_row("total", "", "", format(found.total, form), style="bold")
    show(table)
