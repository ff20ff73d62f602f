"""``onlearn inspect``: what a model is, how it was trained, and what it has learned."""

from __future__ import annotations

import difflib
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onlearn.cli import terminal
from onlearn.cli.options import Json, ModelFile
from onlearn.cli.terminal import as_options, echo_json

if TYPE_CHECKING:
    from onlearn.models import Model

SHOWN = 20  # labels and extractors that are printed


def inspect(
    model: ModelFile,
    top: Annotated[int, typer.Option(min=0, help="How many of the largest weights to show for each label.")] = 10,
    label: Annotated[
        list[str] | None, typer.Option("--class", metavar="LABEL", help="Only this label; may be repeated.")
    ] = None,
    json: Json = False,
) -> None:
    """Show what a model is and what it has learned.

    The learner and its parameters, how it was trained, how many features it has and how many weights are not zero,
    and for each label the features that speak for it most.

    \b
    Examples:
      onlearn inspect m.onl
      onlearn inspect m.onl --class spam --top 30
      onlearn inspect m.onl --json
    """
    from onlearn.cli.tagging import tagger_in

    tagger = tagger_in(model)
    if tagger is not None:
        from onlearn.cli import tag_facts

        return tag_facts.inspect(model, tagger, top, _known(label, tagger.labels), json)
    from onlearn.models import open_model

    opened = open_model(model)
    asked = _known(label, opened.labels)
    report = {"file": {"path": model, "bytes": os.path.getsize(model)}, **describe(opened, top, asked)}
    if json:
        echo_json(report)
    else:
        _print(report)


def _known(asked: list[str] | None, labels: list[str] | None) -> list[str] | None:
    for name in asked or []:
        if labels is None:
            raise typer.BadParameter("a regression model has no labels", param_hint="--class")
        if name not in labels:
            close = difflib.get_close_matches(name, labels, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(labels[:10])}"
            raise typer.BadParameter(f"the model has no label {name!r}: {hint}", param_hint="--class")
    return asked


def describe(model: Model, top: int, asked: list[str] | None) -> dict[str, Any]:
    """Everything about a model, ready for JSON."""
    import numpy as np

    from onlearn.models.explain import is_dual, top_weights, weights
    from onlearn.models.run_report import described, hashed_features, kernel_facts, mixture_facts

    learner, features = model.learner, model.features
    given = {name: _plain(value) for name, value in learner.get_params(deep=False).items()}
    usual = learner.defaults()
    made: dict[str, Any] = {
        "learner": learner.name,
        "parameters": given,
        "set": [name for name, value in given.items() if value != _plain(usual.get(name))],
        "task": model.task,
        "labels": model.labels,
        "trained": model.trained,
        "reading": {name: value for name, value in model.reading.items() if value is not None},
        "examples": int(learner.n_seen_),
        "mistakes": int(learner.n_mistakes_) if model.labels is not None and learner.is_progressive else None,
        "updates": int(learner.n_updates_),
        "features": {"rows": features.kind_, "count": None if model.compares_texts else learner.n_features_in_},
        **kernel_facts(learner),
        **mixture_facts(learner),
        **described(learner),
    }
    if features.has_vocabulary:
        made["features"]["names"] = len(features.vocabulary_)
        made["features"]["extractors"] = [repr(one) for one in features.extractors_]
        if features.vocabulary_.state == "hash":
            made["features"]["collisions"] = features.vocabulary_.collisions()
    elif (far := model.far.collisions()) is not None:
        made["features"]["collisions"] = far
    made["features"].update((key, value) for key, value in hashed_features(model).items() if key != "names")
    try:
        coef, intercepts = weights(model)
    except ValueError as error:
        return {**made, "weights": None, "intercepts": None, "top": None, "why_no_weights": str(error)}
    of = "examples" if is_dual(model) else "features"
    made["weights"] = {
        "all": int(coef.size),
        "nonzero": int(np.count_nonzero(coef)),
        f"{of}_in_use": int(np.count_nonzero(coef.any(axis=0))),
    }
    made["intercepts"] = intercepts.tolist()
    found = top_weights(model, top)
    made["top"] = {
        name: [{of.removesuffix("s"): one, "weight": weight} for one, weight in listed]
        for name, listed in found.items()
        if not asked or name in asked
    }
    return made


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def _print(report: dict[str, Any]) -> None:
    from onlearn.cli.terminal import plain_table, show, visible

    table = plain_table()
    table.add_column(style="cyan")
    table.add_column(overflow="fold")
    labels = report["labels"]
    given = ", ".join(f"{name}={report['parameters'][name]}" for name in report["set"]) or "as they are by default"
    rows: dict[str, Any] = {
        "file": f"{report['file']['path']}, {size(report['file']['bytes'])}",
        "learner": report["learner"],
        "parameters": given,
        "task": report["task"],
    }
    if labels is not None:
        more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
        rows["labels"] = f"{len(labels)}: {', '.join(labels[:SHOWN])}{more}"
    rows["examples"] = f"{report['examples']:,}, over all passes"
    if report["updates"]:
        rows["examples"] += f"; {report['updates']:,} changed the weights"
    if report["mistakes"] is not None:
        rows["mistakes"] = f"{report['mistakes']:,} while learning"
    if "kernel" in report:
        rows["kernel"] = report["kernel"]
        rows["support examples"] = f"{report['support_examples']:,}"
    if "mixture" in report:
        rows["mixture"] = report["mixture"]["theorem"]
        listed = report["mixture"]["learners"]
        lines = (f"{one['learner']}: {one['weight']:.3g}, log-loss {one['loss']:,.6g}" for one in listed)
        rows["its learners"] = "\n".join(lines)
    for name, value in report.get("described", {}).items():
        rows[name.replace("_", " ")] = terminal.as_line(value)
    count = report["features"]["count"]
    made = "none: texts as they are"
    if count is not None:
        made = f"{terminal.feature_count(count, report['features'])}, from {report['features']['rows']}"
    rows["features"] = made
    if (shared := terminal.hashed_line(report["features"])) is not None:
        rows["hashed features"] = shared
    extractors = report["features"].get("extractors", [])
    if extractors:
        more = f"\nand {len(extractors) - SHOWN} more" if len(extractors) > SHOWN else ""
        rows["made by"] = "\n".join(extractors[:SHOWN]) + more
    if report["weights"] is None:
        rows["weights"] = report["why_no_weights"]
    else:
        rows["weights"] = f"{report['weights']['nonzero']:,} of {report['weights']['all']:,} are not zero"
        rows["weights"] += ", of the leader" if "mixture" in report else ""
    for name, value in report["trained"].items():
        if (
            name in ("files", "plan") or value is None or value == []
        ):  # only --resume needs these; or there is nothing to show
            continue
        shown = "; ".join(as_options(str(one)) for one in value) if isinstance(value, list) else value
        rows[f"trained: {name.replace('_', ' ')}"] = shown
    for name, value in rows.items():
        table.add_row(name, f"{value}")
    show(table)
    for name, listed in (report["top"] or {}).items():
        if listed:
            what = "example" if "example" in listed[0] else "feature"
            weights = plain_table(name if labels is not None else what, "weight")
            for one in listed:
                weights.add_row(visible(one[what]), f"{one['weight']:.4g}")
            show(weights)


def size(count: int) -> str:
    """A number of bytes with its unit."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} bytes"
