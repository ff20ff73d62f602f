"""From the options of training to a plan. What is wrong with them is said before anything is read."""

from __future__ import annotations

import copy
import csv
import difflib
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

from onlearn.engine.learner import Learner
from onlearn.engine.named import NAMED
from onlearn.errors import PlanError
from onlearn.features import Interaction
from onlearn.features.extractors import MISSING, SCALES
from onlearn.features.text import WEIGHTINGS
from onlearn.models.model import as_learner
from onlearn.models.plan import ROLES, Plan
from onlearn.models.train_options import MAX_BAD, TrainOptions

WORDS = {
    "task": ("classify", "regress"),
    "missing": MISSING,
    "weighting": WEIGHTINGS,
    "scale": SCALES,
    "class_weight": ("balanced",),
}
READING = ("format", "target", "weight", "id", "delimiter", "header")  # options of ``onlearn.data.read``
CHOICES = ("rule", "geometry", "stabilizer", "multiclass", "class_weight")  # of a learner
KERNEL = ("budget", "budget_policy", "cache_mb")  # of a kernel classifier


def plan_of(options: TrainOptions) -> Plan:
    """The plan that the options ask for; a ``PlanError`` where they contradict each other."""
    check_options(options)
    missing = {"missing": options.missing} if options.missing in ("zero", "indicator") else {}
    number = {} if options.scale is None else {"scale": options.scale}
    return Plan(
        sources=as_names(options.sources),
        task=options.task or "classify",
        certain=options.task is not None,
        reading=reading_of(options),
        roles=roles_of(options),
        text={**text_of(options), **missing},
        number={**number, **missing},
        category=missing,
        interactions=[interaction(one) for one in options.interact or ()],
        max_names=options.max_names,
        bits=options.bits,
        labels=None if options.classes is None else labels_of(options.classes),
        learner=None if options.resume else learner_of(options),
        choices=choices_of(options),
        passes=options.passes,
        seed=options.seed,
        min_count=options.min_count,
        per_class=options.per_class,
        prune_weights=options.prune_weights,
        holdout=held_out(options.holdout),
        cache=cache_of(options),
    )


def check_options(options: TrainOptions) -> None:
    """Refuse values out of range, words that are not known, and options that do not go together."""
    for one in fields(options):
        about, value = one.metadata["about"], getattr(options, one.name)
        if value is None or about.min is None:
            continue
        if not (value >= about.min and (about.max is None or value <= about.max)):
            most = "" if about.max is None else f" and at most {about.max:g}"
            raise PlanError(f"{value} is not a number of at least {about.min:g}{most}", one.name)
    for name, words in WORDS.items():
        if isinstance(value := getattr(options, name), str):
            one_of(value, words, name)
    if options.per_class and not options.is_given("min_count"):
        raise PlanError("per_class= is about min_count=, which is not given")
    if options.strict and options.is_given("max_bad"):
        raise PlanError("strict= stops at the first bad row, so max_bad= has no use with it")
    if options.holdout is not None and "-" in as_names(options.sources):
        raise PlanError("holdout= reads the data twice, which standard input cannot be: use test=")
    if options.resume and (decided := options.given("in_model")):
        raise PlanError(f"{decided[0]}= has no use with resume=: the model has decided it")


def as_names(paths: Any) -> list[str]:
    """Paths of options, which are a list by now."""
    return list(paths or ())


def reading_of(options: TrainOptions) -> dict[str, Any]:
    """What is said about how files are read."""
    reading = {name: value for name in READING if (value := getattr(options, name)) is not None}
    if options.delimiter == "\\t":  # as one types it where a tab cannot be typed
        reading["delimiter"] = "\t"
    taken = {name: reading[name] for name in ("target", "weight", "id") if name in reading}
    for name, column in taken.items():
        others = [other for other in taken if other != name and taken[other] == column]
        if others:
            raise PlanError(f"column {column!r} cannot be both {name} and {others[0]}")
    if options.missing != "absent":
        reading["missing"] = options.missing
    return reading


def roles_of(options: TrainOptions) -> dict[str, str]:
    """What columns are, where that is said."""
    roles: dict[str, str] = {}
    for role in ROLES:
        for column in getattr(options, role):
            if roles.setdefault(column, role) != role:
                raise PlanError(f"column {column!r} cannot be both {roles[column]} and {role}")
    return roles


def text_of(options: TrainOptions) -> dict[str, Any]:
    """What is said about text."""
    text: dict[str, Any] = {}
    if options.chars is not None:
        text["chars"] = lengths(options.chars, "chars")
    if options.ngrams == "none":
        if options.chars is None:
            raise PlanError("without words there must be characters: give chars=", "ngrams")
        text["ngrams"] = None
    elif options.ngrams is not None:
        text["ngrams"] = lengths(options.ngrams, "ngrams")
    for name in ("weighting", "norm"):
        if (value := getattr(options, name)) is not None:
            text[name] = value
    return text


def cache_of(options: TrainOptions) -> bool | str:
    """Where parsed rows are kept: True is beside the files."""
    folder = options.cache
    if folder is None:
        return not options.no_cache
    if options.no_cache:
        raise PlanError("cache= and no_cache= contradict each other")
    if "-" in as_names(options.sources):
        raise PlanError("cache= has no use with standard input: only rows of files are kept")
    if not Path(folder).is_dir():
        raise PlanError(f"there is no directory {folder}", "cache")
    return str(folder)


# ----------------------------------------------------------------------------------------------------
# The learner.


def choices_of(options: TrainOptions) -> dict[str, Any]:
    """The choices that were made of a learner."""
    return {name: value for name in CHOICES if (value := getattr(options, name)) is not None}


def learner_of(options: TrainOptions) -> Any:
    """The learner that was asked for; None if only some of its choices were, which are checked."""
    choices = choices_of(options)
    if options.task == "regress" and (refused := options.given("classes_only")):
        raise PlanError(f"{refused[0]}= has no use in regression")
    if options.kernel is not None:
        return kernel_learner(options, choices)
    if refused := options.given("with_kernel"):
        raise PlanError(f"{refused[0]}= is about kernel=, which is not given")
    name = options.learner
    if name is None and not choices:
        return None
    if name is None:
        made: Any = Learner("OnlineRegressor" if options.task == "regress" else "OnlineClassifier", **choices)
    elif isinstance(name, str):
        parameters = NAMED[one_of(name, tuple(NAMED), "learner")].parameters
        unknown = [key for key in choices if key not in parameters]
        if unknown:
            raise PlanError(f"{unknown[0]}= has no use with learner={name}")
        made = Learner(name, **choices)
    elif choices:
        raise PlanError(f"{next(iter(choices))}= has no use with a learner that is given as an object: set it there")
    else:
        made = copy.deepcopy(as_learner(name))  # training changes it
    try:
        made.choices  # noqa: B018  worked out when asked for
    except (TypeError, ValueError) as error:  # a wrong spelling
        raise PlanError(str(error)) from None
    return None if name is None else made


def kernel_learner(options: TrainOptions, choices: dict[str, Any]) -> Any:
    """The kernel classifier that was asked for."""
    from onlearn import kernels
    from onlearn.dual.learner import DualLearner

    for name in ("learner", "prune_weights"):
        if options.is_given(name):
            raise PlanError(f"{name}= has no use with kernel=")
    try:
        kernel = kernels.get(options.kernel)
    except (TypeError, ValueError) as error:
        raise PlanError(str(error), "kernel") from None
    if kernel.data in ("strings", "trees") and (refused := options.given("of_features")):
        raise PlanError(f"{refused[0]}= has no use with {kernel}, which compares texts as they are")
    given = {name: getattr(options, name) for name in KERNEL if options.is_given(name)}
    if "budget_policy" in given and "budget" not in given:
        raise PlanError("budget_policy= is about budget=, which is not given")
    made = DualLearner(kernel=options.kernel, **choices, **given)
    try:
        made.check()
    except (TypeError, ValueError) as error:
        raise PlanError(str(error)) from None
    return made


# ----------------------------------------------------------------------------------------------------
# Files that are written.


def check_output(path: str) -> None:
    """Refuse to write where a model cannot go, or would overwrite something that is none."""
    from onlearn.model_file import ModelFileError, read_header

    target = Path(path)
    if path == "-":
        raise PlanError("a model does not go to standard output: name a file", "output")
    if target.is_dir():
        raise PlanError(f"{target} is a directory, not a file to write a model to", "output")
    if not target.parent.is_dir():
        raise PlanError(f"there is no directory {target.parent}", "output")
    if target.exists():
        try:
            read_header(target)
        except ModelFileError:
            raise PlanError(f"{target} exists and is not a model: it is left alone", "output") from None
    if not os.access(target.parent, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise PlanError(f"there is no permission to write {target}", "output")


def check_bad_rows(path: str, output: str | None) -> None:
    """Refuse a file for bad rows that cannot be written, before there is a bad row."""
    if output is not None and os.path.abspath(path) == os.path.abspath(output):
        raise PlanError(f"{path} is where the model goes", "bad_rows")
    if not Path(path).parent.is_dir():
        raise PlanError(f"there is no directory {Path(path).parent}", "bad_rows")
    if Path(path).is_dir():
        raise PlanError(f"{path} is a directory, not a file to write to", "bad_rows")


def keep_apart(path: str, *inputs: str, parameter: str) -> None:
    """Refuse to write over what is read."""
    if os.path.exists(path) and any(os.path.exists(name) and os.path.samefile(path, name) for name in inputs):
        raise PlanError(f"{path} is read from, so it cannot be written to", parameter)


# ----------------------------------------------------------------------------------------------------
# Single values, as the command line spells them or as Python does.


def one_of(value: str, words: tuple[str, ...], parameter: str) -> str:
    """A word that must be one of some."""
    if value not in words:
        small = {word.lower(): word for word in words}
        close = difflib.get_close_matches(value.lower(), small, n=1, cutoff=0.5)
        hint = f"did you mean {small[close[0]]}?" if close else f"known are {', '.join(words)}"
        raise PlanError(f"there is no {value!r}: {hint}", parameter)
    return value


def lengths(value: str | tuple[int, int], parameter: str) -> tuple[int, int]:
    """A pair of lengths: ``"1-2"``, ``"2"`` or ``(1, 2)``."""
    try:
        first, last = value.partition("-")[::2] if isinstance(value, str) else value
        low, high = int(first), int(last or first)
    except (TypeError, ValueError):
        low, high = 0, 0
    if not 1 <= low <= high:
        raise PlanError(f"{value!r} is not a range of lengths such as 1-2", parameter)
    return low, high


def labels_of(value: str | list[str]) -> list[str]:
    """A list of labels, or ``"a,b,c"``; a label that has a comma is in quotes there, as in a CSV file."""
    given = next(csv.reader([value], skipinitialspace=True), []) if isinstance(value, str) else value
    labels = [str(one).strip() for one in given]
    if not all(labels) or len(set(labels)) < len(labels) or len(labels) < 2:
        raise PlanError(f"{value!r} is not a list of two or more different labels", "classes")
    return labels


def part(value: str | float, parameter: str, whole: bool = False) -> float:
    """``"10%"``, ``"0.1"`` or 0.1 as a number from 0 to below 1, or to 1 if the ``whole`` is a part."""
    try:
        text = str(value)
        number = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1 and not (whole and number == 1):
        raise PlanError(f"{value!r} is not a part of the rows such as 10%", parameter)
    return number


def held_out(value: str | float | None) -> float:
    """The part of the rows to test on, which is not nothing."""
    if value is None:
        return 0.0
    number = part(value, "holdout")
    if number == 0:
        raise PlanError(f"{value!r} holds no rows out: leave holdout= out", "holdout")
    return number


def max_bad(options: TrainOptions) -> float:
    """The part of the rows that may be bad."""
    return part(MAX_BAD if options.max_bad is None else options.max_bad, "max_bad", whole=True)


def interaction(value: str) -> Interaction:
    """``A,B`` or ``A,B,C`` or ``pairs`` or ``triples``."""
    if value in ("pairs", "triples"):
        return Interaction(degree=2 if value == "pairs" else 3)
    columns = [one.strip() for one in value.split(",")]
    if len(columns) not in (2, 3) or not all(columns):
        raise PlanError(f"{value!r} is not two or three names, nor pairs or triples", "interact")
    return Interaction(*columns)
