"""The options of ``onlearn train`` as a plan; what is wrong with them is said before anything is read."""

from __future__ import annotations

import csv
import difflib
from pathlib import Path
from typing import Any

import typer

from onlearn.cli.options import OPTIONS, kernel_learner, refuse_without_kernel
from onlearn.features.extractors import MISSING, SCALES
from onlearn.features.text import WEIGHTINGS
from onlearn.models.plan import ROLES, Plan

WORDS = {"missing": MISSING, "weighting": WEIGHTINGS, "scale": SCALES}
CHOICES = ("rule", "geometry", "stabilizer", "multiclass")


def plan_of(asked: dict[str, Any]) -> Plan:
    """A plan from the options by name."""
    if asked["per_class"] and asked["min_count"] == 1:
        raise typer.BadParameter("--per-class is about --min-count, which is not given")
    if asked["prune_weights"] != asked["prune_weights"]:
        raise typer.BadParameter("nan is not the size of a weight", param_hint="--prune-weights")
    text: dict[str, Any] = {}
    if asked["chars"] is not None:
        text["chars"] = lengths(asked["chars"], "--chars")
    if asked["ngrams"] == "none":
        if asked["chars"] is None:
            raise typer.BadParameter("without words there must be characters: give --chars", param_hint="--ngrams")
        text["ngrams"] = None
    elif asked["ngrams"] is not None:
        text["ngrams"] = lengths(asked["ngrams"], "--ngrams")
    for option, words in WORDS.items():
        if asked[option] is not None:
            one_of(asked[option], words, f"--{option}")
    for name in ("weighting", "norm"):
        if asked[name] is not None:
            text[name] = asked[name]
    number = {} if asked["scale"] is None else {"scale": asked["scale"]}
    missing = {"missing": asked["missing"]} if asked["missing"] in ("zero", "indicator") else {}
    reading = {
        name: asked[name] for name in ("format", "target", "weight", "id", "delimiter") if asked[name] is not None
    }
    if asked["delimiter"] == "\\t":  # as one types it where a tab cannot be typed
        reading["delimiter"] = "\t"
    taken = {name: reading[name] for name in ("target", "weight", "id") if name in reading}
    for name, column in taken.items():
        others = [other for other in taken if other != name and taken[other] == column]
        if others:
            raise typer.BadParameter(f"column {column!r} cannot be both {name} and {others[0]}")
    if asked["header"] is not None:
        reading["header"] = asked["header"]
    if asked["missing"] != "absent":
        reading["missing"] = asked["missing"]
    roles: dict[str, str] = {}
    for role in ROLES:
        for column in asked[role] or ():
            if roles.setdefault(column, role) != role:
                raise typer.BadParameter(f"column {column!r} cannot be both {roles[column]} and {role}")
    return Plan(
        sources=asked["sources"],
        task=one_of(asked["task"] or "classify", ("classify", "regress"), "--task"),
        certain=asked["task"] is not None,
        reading=reading,
        roles=roles,
        text={**text, **missing},
        number={**number, **missing},
        category=missing,
        interactions=[interaction(one) for one in asked["interact"] or ()],
        max_names=asked["max_names"],
        bits=asked["bits"],
        labels=None if asked["classes"] is None else labels_of(asked["classes"]),
        learner=None if asked["resume"] else learner_of(asked),
        choices=choices_of(asked),
        passes=asked["passes"],
        seed=asked["seed"],
        min_count=asked["min_count"],
        per_class=asked["per_class"],
        prune_weights=asked["prune_weights"],
        holdout=0.0 if asked["holdout"] is None else held_out(asked["holdout"]),
        cache=cache_of(asked),
    )


def cache_of(asked: dict[str, Any]) -> bool | str:
    """Where parsed rows are kept: True is beside the files."""
    folder = asked["cache"]
    if folder is None:
        return not asked["no_cache"]
    if asked["no_cache"]:
        raise typer.BadParameter("--cache and --no-cache contradict each other")
    if "-" in asked["sources"]:
        raise typer.BadParameter("--cache has no use with standard input: only rows of files are kept")
    if not Path(folder).is_dir():
        raise typer.BadParameter(f"there is no directory {folder}", param_hint="--cache")
    return str(folder)


def choices_of(asked: dict[str, Any]) -> dict[str, Any]:
    """The choices that were made of a learner."""
    return {name: asked[name] for name in (*CHOICES, "class_weight") if asked[name] is not None}


def learner_of(asked: dict[str, Any]) -> Any:
    """The learner that was asked for; None if only some of its choices were, which are checked."""
    choices = choices_of(asked)
    if asked["task"] == "regress":
        for name in ("multiclass", "learner", "class_weight", "classes", "kernel", "per_class"):
            if asked[name] not in (None, False):
                raise typer.BadParameter(f"--{name.replace('_', '-')} has no use in regression")
    if asked["class_weight"] is not None:
        one_of(asked["class_weight"], ("balanced",), "--class-weight")
    if asked["kernel"] is not None:
        return kernel_learner(asked, choices)
    refuse_without_kernel(asked)
    name = asked["learner"]
    if name is None and not choices:
        return None
    from onlearn.engine.learner import Learner
    from onlearn.engine.named import NAMED

    if name is not None:
        one_of(name, tuple(NAMED), "--learner")
        refused = [key for key in choices if key not in NAMED[name].parameters]
        if refused:
            raise typer.BadParameter(f"--{refused[0].replace('_', '-')} has no use with --learner {name}")
    made = Learner(name or ("OnlineRegressor" if asked["task"] == "regress" else "OnlineClassifier"), **choices)
    try:
        made.choices  # noqa: B018  made here
    except (TypeError, ValueError) as error:  # a wrong spelling
        raise typer.BadParameter(str(error)) from None
    return None if name is None else made


def check_resumed(asked: dict[str, Any]) -> None:
    """Options that a resumed model has decided already."""
    if asked["task"] is not None or asked["missing"] != "absent":
        option = "task" if asked["task"] is not None else "missing"
        raise typer.BadParameter(f"--{option} has no use with --resume: the model has decided it")
    decided = [*CHOICES, *OPTIONS, "kernel", "learner", "class_weight", "ngrams", "chars", "weighting", "norm",
               "scale", "interact", "numeric", "categorical", "text", "ignore", "classes"]  # fmt: skip
    given = [name for name in decided if asked[name] not in (None, [])]
    defaults = {"min_count": 1, "prune_weights": 0.0, "max_names": 1 << 21, "bits": 22, "per_class": False, "seed": 0}
    given += [name for name, default in defaults.items() if asked[name] != default]
    if given:
        raise typer.BadParameter(f"--{given[0].replace('_', '-')} has no use with --resume: the model has decided it")


def check_output(path: str) -> None:
    """Refuse to write where a model cannot go, or would overwrite something that is none."""
    from onlearn.model_file import ModelFileError, read_header

    target = Path(path)
    if path == "-":
        raise typer.BadParameter("a model does not go to standard output: name a file", param_hint="--output")
    if target.is_dir():
        raise typer.BadParameter(f"{target} is a directory, not a file to write a model to", param_hint="--output")
    if not target.parent.is_dir():
        raise typer.BadParameter(f"there is no directory {target.parent}", param_hint="--output")
    if target.exists():
        try:
            read_header(target)
        except ModelFileError:
            raise typer.BadParameter(
                f"{target} exists and is not a model: it is left alone", param_hint="--output"
            ) from None
    import os

    if not os.access(target.parent, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise typer.BadParameter(f"there is no permission to write {target}", param_hint="--output")


def check_bad_rows(path: str, output: str) -> None:
    """Refuse a file for bad rows that cannot be written, before there is a bad row."""
    import os

    if os.path.abspath(path) == os.path.abspath(output):
        raise typer.BadParameter(f"{path} is where the model goes", param_hint="--bad-rows")
    if not Path(path).parent.is_dir():
        raise typer.BadParameter(f"there is no directory {Path(path).parent}", param_hint="--bad-rows")
    if Path(path).is_dir():
        raise typer.BadParameter(f"{path} is a directory, not a file to write to", param_hint="--bad-rows")


def one_of(value: str, words: tuple[str, ...], option: str) -> str:
    if value not in words:
        small = {word.lower(): word for word in words}
        close = difflib.get_close_matches(value.lower(), small, n=1, cutoff=0.5)
        hint = f"did you mean {small[close[0]]}?" if close else f"known are {', '.join(words)}"
        raise typer.BadParameter(f"there is no {value!r}: {hint}", param_hint=option)
    return value


def lengths(value: str, option: str) -> tuple[int, int]:
    """1-2 or 2 as a pair of lengths."""
    first, _, last = value.partition("-")
    try:
        low, high = int(first), int(last or first)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is not a range of lengths such as 1-2", param_hint=option) from None
    if not 1 <= low <= high:
        raise typer.BadParameter(f"{value!r} is not a range of lengths such as 1-2", param_hint=option)
    return low, high


def labels_of(value: str) -> list[str]:
    """a,b,c as a list of labels; one that has a comma is in quotes, as in a CSV file."""
    labels = [one.strip() for one in next(csv.reader([value], skipinitialspace=True), [])]
    if not all(labels) or len(set(labels)) < len(labels) or len(labels) < 2:
        raise typer.BadParameter(f"{value!r} is not a list of two or more different labels", param_hint="--classes")
    return labels


def part(value: str, option: str, whole: bool = False) -> float:
    """10% or 0.1 as a number from 0 to below 1, or to 1 if the ``whole`` is a part."""
    try:
        number = float(value.rstrip("%")) / (100 if value.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1 and not (whole and number == 1):
        raise typer.BadParameter(f"{value!r} is not a part of the rows such as 10%", param_hint=option)
    return number


def held_out(value: str) -> float:
    """The part of the rows to test on, which is not nothing."""
    number = part(value, "--holdout")
    if number == 0:
        raise typer.BadParameter(f"{value!r} holds no rows out: leave --holdout out", param_hint="--holdout")
    return number


def interaction(value: str) -> Any:
    """A,B or A,B,C or pairs or triples."""
    from onlearn.features import Interaction

    if value in ("pairs", "triples"):
        return Interaction(degree=2 if value == "pairs" else 3)
    columns = [one.strip() for one in value.split(",")]
    if len(columns) not in (2, 3) or not all(columns):
        raise typer.BadParameter(f"{value!r} is not two or three names, nor pairs or triples", param_hint="--interact")
    return Interaction(*columns)
