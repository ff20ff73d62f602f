"""What taggers have learned: ``inspect`` and ``explain`` of models of sentences."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import typer

from onlearn.cli.tagging import as_data_error, size
from onlearn.cli.terminal import as_line, as_options, echo_json, plain_table, show, visible

if TYPE_CHECKING:
    from onlearn.data import Sentences
    from onlearn.models.tagger import Tagger

SHOWN = 20  # labels that are printed


def inspect(path: str, tagger: Tagger, top: int, asked: list[str] | None, as_json: bool) -> None:
    """Show what a tagger is and what it has learned."""
    report = {"file": {"path": path, "bytes": os.path.getsize(path)}, **describe(tagger, top, asked)}
    if as_json:
        echo_json(report)
    else:
        _print(report)


def describe(tagger: Tagger, top: int, asked: list[str] | None) -> dict[str, Any]:
    """Everything about a tagger, ready for JSON."""
    learner = tagger.learner
    given = {name: _plain(value) for name, value in learner.get_params().items()}
    usual = {name: _plain(value) for name, value in learner.defaults().items()}
    attributes: dict[str, list[Any]] = {label: [] for label in asked or tagger.labels}
    transitions: list[Any] = []
    chosen: list[Any] = [*asked] if asked else [None]
    for label in chosen:
        strong, between = learner.strongest(top, label) if top else ([], [])
        for one in strong:
            attributes.setdefault(one.label, []).append({"attribute": one.attribute, "weight": float(one.weight)})
        transitions += [
            {"from": one.attribute, "to": one.label, "weight": float(one.weight)}
            for one in between
            if not asked or one.label in asked
        ]
    return {
        "learner": learner.name,
        "parameters": given,
        "set": [name for name, value in given.items() if value != usual.get(name)],
        "task": "tag",
        "labels": tagger.labels,
        "scheme": tagger.scheme,
        "columns": tagger.columns,
        "described": learner.described(),
        "sequences": learner.sequences,
        "tokens": learner.tokens,
        "trained": tagger.trained,
        "top": attributes,
        "transitions": transitions,
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def _print(report: dict[str, Any]) -> None:
    table = plain_table()
    table.add_column(style="cyan")
    table.add_column(overflow="fold")
    labels = report["labels"]
    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    rows = {
        "file": f"{report['file']['path']}, {size(report['file']['bytes'])}",
        "learner": report["learner"],
        "parameters": ", ".join(f"{name}={report['parameters'][name]}" for name in report["set"])
        or "as they are by default",
        "task": "tag",
        "labels": f"{len(labels)}: {', '.join(labels[:SHOWN])}{more}",
        "spans": report["scheme"] or "none",
        "columns": ", ".join(report["columns"]),
        **{name.replace("_", " "): as_line(value) for name, value in report["described"].items()},
        "learned from": f"{report['sequences']:,} sentences, {report['tokens']:,} tokens, over all passes",
    }
    for name, value in report["trained"].items():
        if name == "files" or value in (None, []):
            continue
        text = "; ".join(as_options(str(one)) for one in value) if isinstance(value, list) else f"{value}"
        rows[f"trained: {name.replace('_', ' ')}"] = text
    for name, shown in rows.items():
        table.add_row(name, shown)
    show(table)
    for label, listed in report["top"].items():
        if listed:
            weights = plain_table(label, "weight")
            for one in listed:
                weights.add_row(visible(one["attribute"]), f"{one['weight']:.4g}")
            show(weights)
    if report["transitions"]:
        weights = plain_table("from", "to", "weight")
        for one in report["transitions"]:
            weights.add_row(one["from"], one["to"], f"{one['weight']:.4g}")
        show(weights)


# ---------------------------------------------------------------------- explain


def explain(
    tagger: Tagger, text: str | None, at: str | None, token: int | None, format: str | None, top: int, as_json: bool
) -> None:
    """Show why a token has its label."""
    if at is not None:
        sentences, place = _sentence_at(tagger, at, format, token)
    else:
        from onlearn.data.formats.sentences import tokens_of
        from onlearn.sequence.inputs import as_sentences

        words = tokens_of(str(text))
        if not words:
            raise typer.BadParameter("the sentence has no tokens", param_hint="ROW")
        made = as_sentences([words])
        sentences, place = made, _place(1 if token is None else token, len(words))  # type: ignore[assignment]
    with as_data_error("the sentence"):
        taken = tagger.taken(sentences)
        label, rival, parts = tagger.explain(taken, place)
    words = taken.words.tolist()
    total = sum(part.amount for part in parts)
    if as_json:
        echo_json(
            {
                "tokens": words,
                "token": place + 1,
                "word": words[place],
                "prediction": label,
                "against": rival,
                "total": float(total),
                "n_attributes": len(parts),
                "attributes": [
                    {
                        "attribute": part.name,
                        "value": float(part.value),
                        "weight": float(part.weight),
                        "contribution": float(part.amount),
                    }
                    for part in parts[:top]
                ],
            }
        )
        return
    told = f"Above zero speaks for {label}, below for {rival}:" if rival else "There is no other label."
    show(f"{words[place]}, token {place + 1}, is {label}. {told}")
    if not rival:
        return
    table = plain_table("attribute", "value", "weight", "contribution")
    for part in parts[:top]:
        table.add_row(visible(part.name), f"{part.value:.4g}", f"{part.weight:+.4g}", f"{part.amount:+.4g}")
    if rest := parts[top:]:
        table.add_row(f"{len(rest):,} more attributes", "", "", f"{sum(part.amount for part in rest):+.4g}")
    table.add_row("total", "", "", f"{total:+.4g}", style="bold")
    show(table)


def _place(token: int, count: int) -> int:
    if not 1 <= token <= count:
        raise typer.BadParameter(f"the sentence has {count} tokens: there is no token {token}", param_hint="--token")
    return token - 1


def _sentence_at(tagger: Tagger, at: str, format: str | None, token: int | None) -> tuple[Sentences, int]:
    """The sentence at FILE:LINE, and the place of the token: that of the line, unless ``token`` says which."""
    import numpy as np

    from onlearn.data import Sentences

    path, _, number = at.rpartition(":")
    if not path or not number.isdigit() or int(number) < 1:
        raise typer.BadParameter(f"{at!r} is not a file and a line, such as test.conllu:17", param_hint="--at")
    line, found = int(number), None
    with tagger.read(path, format=format) as reader:
        for batch in reader:
            if not isinstance(batch.parsed, Sentences):
                raise typer.BadParameter(f"{path} holds rows, and the model is a tagger", param_hint="--at")
            k = int(np.searchsorted(batch.lines, line, side="right")) - 1
            if k >= 0:
                found = batch.slice(k, k + 1)
            if len(batch.lines) and batch.lines[-1] > line:
                break
    if found is None:
        raise typer.BadParameter(f"there is no sentence on line {line} of {path}", param_hint="--at")
    count = int(found.parsed.offsets[-1])
    if token is not None:
        return found.parsed, _place(token, count)
    lines = _token_lines(path, int(found.lines[0]), line, list(found.parsed.columns))
    if not lines or lines[-1] != line or len(lines) > count:
        raise typer.BadParameter(f"there is no token on line {line} of {path}", param_hint="--at")
    return found.parsed, len(lines) - 1


def _token_lines(path: str, first: int, last: int, columns: list[str]) -> list[int]:
    """The lines of tokens, from the first of a sentence to ``last``."""
    from onlearn.data.formats.conll import UNIVERSAL, Conll, Conllu
    from onlearn.data.registry import Options
    from onlearn.data.sources import Stream, sources

    stream = Stream(sources(path)[0])
    try:
        lines = stream.all().split(b"\n")
    finally:
        stream.close()
    made: Any = (Conllu if columns == UNIVERSAL else Conll)(Options(), [])
    found = []
    for number in range(first, min(last, len(lines)) + 1):
        if not lines[number - 1].strip():
            break
        if made.is_token(lines[number - 1]):
            found.append(number)
    return found
