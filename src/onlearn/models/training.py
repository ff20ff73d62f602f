"""``train``: from files to a model, as ``onlearn train`` does it.

The options are checked, and turned into a ``Plan``, before anything is read.
"""

from __future__ import annotations

import copy
import csv
import difflib
import inspect
import os
from dataclasses import MISSING, fields, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from onlearn import data
from onlearn.compiler import compile_seconds
from onlearn.data.sources import sources as sources_of
from onlearn.engine import registry
from onlearn.engine.learner import Learner
from onlearn.errors import PlanError
from onlearn.features import Interaction, extractors
from onlearn.features.text import TOKENS, WEIGHTINGS
from onlearn.models import evaluation
from onlearn.models.calibration import check as check_calibrated
from onlearn.models.model import Model, as_learner
from onlearn.models.multilabel import MULTILABEL
from onlearn.models.multilabel_run import MultilabelRun, check_multilabel, several_labels
from onlearn.models.plan import ROLES, Plan
from onlearn.models.ranking import RANK, RankRun, check_rank
from onlearn.models.run import Run
from onlearn.models.run_report import is_unfinished, run_report
from onlearn.models.stored_model import load_learner
from onlearn.models.tag_files import is_tagging
from onlearn.models.threshold import parse_criterion
from onlearn.models.train_options import (
    AUTO,
    MAX_BAD,
    FilePath,
    TrainOptions,
    check_bad_rows,
    check_output,
    keep_apart,
    longest_line,
    part,
)

if TYPE_CHECKING:
    from onlearn.models.tagger import Tagger

WORDS = {
    "task": ("classify", "regress", "tag", "multilabel", "rank"),
    "missing": extractors.MISSING,
    "weighting": WEIGHTINGS,
    "tokens": TOKENS,
    "scale": extractors.SCALES,
    "class_weight": ("balanced",),
}
# Options of ``onlearn.data.read``.
READING = ("format", "target", "weight", "id", "delimiter", "header", "label_separator", "group", "max_line")
CHOICES = ("rule", "geometry", "stabilizer", "multiclass", "class_weight", "calibration")  # of a learner
KERNEL = ("budget", "budget_policy", "cache_mb")  # of a learner with a kernel


def train(sources: FilePath | list[FilePath], output: FilePath | None = None, **options: Any) -> Model | Tagger:
    """Learn a model from files: ``onlearn train`` in Python.

    The options are those of the command, by the same names (``--max-names`` is ``max_names=``); ``TrainOptions`` lists
    them with their meaning. The model is written to ``output``, if that is given. Its ``report_`` is the report that
    the command prints with ``--json``: what was decided, and how good the model is.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "pets.csv")
    >>> _ = path.write_text(
    ...     "weight,name,label\\n" + "4.1,Tom,cat\\n31.0,Rex,dog\\n3.8,Kitty,cat\\n28.5,Bello,dog\\n" * 10
    ... )
    >>> model = train(path, passes=3, ignore="name")
    >>> model.predict([{"weight": 4.0}, {"weight": 30.0}]).tolist()
    ['cat', 'dog']
    >>> model.report_["progressive"]["n"], model.report_["progressive"]["majority"]
    (40, 0.5)
    """
    asked = TrainOptions(sources=sources, output=output, **options)
    if is_tagging(asked):
        from onlearn.models.tag_training import train_tagger

        return train_tagger(asked)
    run = prepare(asked)
    began = perf_counter() - compile_seconds()

    def save() -> None:
        if asked.output is not None:
            run.model.save(asked.output)

    run.go(None, save, asked.checkpoint_every or 0)
    seconds = perf_counter() - compile_seconds() - began  # without the time that compiling took
    save()
    model = run.model
    model.report_ = run_report(run, asked.output, seconds, stopped=False)
    test(run, asked, model.report_)
    return model


def _signature() -> inspect.Signature:
    """The options by name, for ``help(onlearn.train)``."""
    names = ("sources", "output")
    made = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD if one.name in names else inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if one.default is MISSING else one.default,
            annotation=one.type,
        )
        for one in fields(TrainOptions)
    ]
    return inspect.Signature(made, return_annotation="Model | Tagger")


train.__signature__ = _signature()  # type: ignore[attr-defined]


def run_of(plan: Plan, model: Model | None = None, bad: data.BadRows | None = None) -> Run:
    """The kind of run that suits the learner of a plan, or of a model to continue."""
    learner = as_learner(plan.learner if model is None else model.learner)
    if plan.task == MULTILABEL:
        return MultilabelRun(plan, model, bad)
    if plan.task == RANK:
        return RankRun(plan, model, bad)
    if learner is not None and learner.whole:
        from onlearn.models.whole_run import WholeRun

        return WholeRun(plan, model, bad)
    if learner is None or "kernel" not in learner.composition.parameters:
        return Run(plan, model, bad)
    if learner.representation == "primal":
        raise PlanError("the model has weights of its kernel's features, which only Python can go on with")
    from onlearn.models.kernel_run import KernelRun  # kernels take a while to import

    return KernelRun(plan, model, bad)


class Planned(NamedTuple):
    """What the options ask for, checked: the plan, what collects bad rows, and the model to continue, if there is one.

    ``note`` is about a task that was not asked for.
    """

    plan: Plan
    bad: data.BadRows
    model: Model | None = None
    note: str | None = None


def prepare(options: TrainOptions) -> Run:
    """The run that the options ask for; a ``PlanError`` or ``DataError`` if there can be none."""
    if options.learner == AUTO:
        from onlearn.models.tuned_run import TunedRun  # a race takes a while to import

        return TunedRun(options, raced_files(options))
    planned = plan_files(options)
    model = planned.model
    if model is not None and model.trained.get("cluster") and is_unfinished(model, planned.plan.sources):
        raise PlanError("the model is of an unfinished run on a cluster: resume it with cluster=", "resume")
    run = run_of(planned.plan, model, planned.bad)
    finish_preparing(run, planned, options)
    return run


def finish_preparing(run: Run, planned: Planned, options: TrainOptions) -> None:
    """Check what depends on the run, and tell what was decided before it."""
    if planned.model is not None and planned.plan.calibrate:  # which may be of the unfinished run
        check_calibrated(planned.model)
        read = [one.name for one in sources_of(planned.plan.calibrate)]  # must exist
        if options.output is not None:
            keep_apart(os.fspath(options.output), *read, parameter="output")
    run.report.notes += [] if planned.note is None else [planned.note]


def raced_files(options: TrainOptions) -> data.BadRows:
    """Check the files of a run that begins with a race; what collects bad rows."""
    output = checked_output(options)
    why = several_labels(options)
    if why is not None or options.task == MULTILABEL:
        because = "" if why is None else f" ({why})"
        raise PlanError(f"auto is not for several labels a row{because}: name a learner", "learner")
    if options.task == RANK:
        raise PlanError(f"auto is not for task={RANK}: name a learner", "learner")
    return checked_files(options, output)


def plan_files(options: TrainOptions) -> Planned:
    """The plan of a run over files, and the model that it continues; what cannot be is refused."""
    output = checked_output(options)
    why = several_labels(options)
    if refused := [name for name in ("space", "configurations", "time_limit") if options.is_given(name)]:
        raise PlanError(f"{refused[0]}= is about the race of learner=auto, which is not given")
    if why is not None:
        options = replace(options, task=MULTILABEL)
    plan = plan_of(options)
    bad = checked_files(options, output)
    model = None
    if options.resume is not None:
        resumed = os.fspath(options.resume)
        model = load_learner(resumed)
        if not isinstance(model, Model):
            raise data.DataError(f"{resumed} holds a learner without features, which only Python can go on with")
        plan.task = model.task
        plan.seed = int(model.trained.get("seed", plan.seed))
        if is_unfinished(model, plan.sources) and (options.passes or options.holdout):
            raise PlanError("the run is unfinished and goes on as it began: leave passes= and holdout= out")
    note = None
    if why is not None and options.label_separator is None:
        note = f"{why}: each label is learned by itself; say task=classify if it is one label"
    return Planned(plan, bad, model, note)


def checked_output(options: TrainOptions) -> str | None:
    """Where the model goes, if it can go there."""
    output = None if options.output is None else os.fspath(options.output)
    if output is not None:
        check_output(output)
    elif options.checkpoint_every is not None:
        raise PlanError("checkpoint_every= needs output=, the file to save the model to")
    return output


def checked_files(options: TrainOptions, output: str | None) -> data.BadRows:
    """Refuse files that do not exist or would be overwritten; what collects bad rows."""
    named = [*as_names(options.sources), *as_names(options.test), *as_names(options.calibrate)]
    read = [one.name for one in sources_of(named)] if named else []  # must exist
    resumed = [] if options.resume is None else [os.fspath(options.resume)]
    kept = None if options.bad_rows is None else os.fspath(options.bad_rows)
    if kept is not None:
        check_bad_rows(kept, output)
        keep_apart(kept, *read, *resumed, *([] if output is None else [output]), parameter="bad_rows")
    if output is not None:
        keep_apart(output, *read, parameter="output")
    return data.BadRows(
        kept, part(MAX_BAD if options.max_bad is None else options.max_bad, "max_bad", whole=True), options.strict
    )


def test(
    run: Run,
    options: TrainOptions,
    report: dict[str, Any],
    observer: evaluation.Observer | None = None,  # noqa: PT028 (it is no test of pytest's)
) -> data.BadRows | None:
    """Add figures on held-out rows and on the files of ``test=`` to the report; returns the bad rows of these files.

    An ``observer`` sees the rows of the files; without files, those held out.
    """
    if run.plan.holdout:
        sees = None if options.test else observer
        found = evaluation.evaluation_of(run.model)
        run.reading.add_held_out(found, sees)
        report["holdout"] = found.report()
    if not options.test:
        return None
    reader = None
    try:
        reader = run.model.read(options.test, labels="required", weight=None)
        found = evaluation.evaluate(run.model, reader, reader.bad, observer).report()
        report["test"] = {**found, "bad_rows": reader.bad.count}
    except (TypeError, ValueError) as error:
        why = str(error)
        if reader is not None and not isinstance(error, data.DataError):
            names = ", ".join(source.name for source in reader.sources[:3])
            why = f"{names} cannot be used with this model: {error}"
        where = "" if options.output is None else f" (the model is in {options.output} and was not tested)"
        raise data.DataError(f"{why}{where}") from error
    return reader.bad


def plan_of(options: TrainOptions) -> Plan:
    """The plan that the options ask for; a ``PlanError`` where they contradict each other."""
    check_options(options)
    learner = None if options.resume else learner_of(options)
    task = options.task or ("classify" if learner is None else learner.composition.task)
    missing = {"missing": options.missing} if options.missing in ("zero", "indicator") else {}
    number = {} if options.scale is None else {"scale": options.scale}
    return Plan(
        sources=as_names(options.sources),
        task=task,
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
        learner=learner,
        choices=choices_of(options),
        passes=options.passes,
        seed=options.seed,
        min_count=options.min_count,
        per_class=options.per_class,
        prune_weights=options.prune_weights,
        holdout=held_out(options.holdout),
        calibrate=as_names(options.calibrate),
        cache=cache_of(options),
        threshold=threshold_of(options),
        positive=options.positive,
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
    if options.task == MULTILABEL:
        check_multilabel(options)
    elif options.label_separator is not None and options.task is not None:
        raise PlanError(f"label_separator= has no use with task={options.task}: it is for task={MULTILABEL}")
    if options.task == RANK:
        check_rank(options)
        if refused := [name for name in ("calibration", "calibrate") if options.is_given(name)]:
            raise PlanError(f"{refused[0]}= has no use with task={RANK}, which predicts no probabilities")
    elif options.group is not None and not options.resume:
        raise PlanError(f"group= is for task={RANK}, the order of rows within groups")
    if options.per_class and not options.is_given("min_count"):
        raise PlanError("per_class= is about min_count=, which is not given")
    if options.strict and options.is_given("max_bad"):
        raise PlanError("strict= stops at the first bad row, so max_bad= has no use with it")
    if options.holdout is not None and "-" in as_names(options.sources):
        raise PlanError("holdout= reads the data twice, which standard input cannot be: use test=")
    if options.resume and (decided := options.given("in_model")):
        raise PlanError(f"{decided[0]}= has no use with resume=: the model has decided it")


def as_names(paths: Any) -> list[str]:
    """The paths of an option, as ``TrainOptions`` lists them."""
    return list(paths or ())


def reading_of(options: TrainOptions) -> dict[str, Any]:
    """Options of ``onlearn.data.read``."""
    reading = {name: value for name in READING if (value := getattr(options, name)) is not None}
    if options.delimiter == "\\t":  # as one types it where a tab cannot be typed
        reading["delimiter"] = "\t"
    if options.max_line is not None:
        reading["max_line"] = longest_line(options.max_line)
    taken = {name: reading[name] for name in ("target", "weight", "id", "group") if name in reading}
    for name, column in taken.items():
        others = [other for other in taken if other != name and taken[other] == column]
        if others:
            raise PlanError(f"column {column!r} cannot be both {name} and {others[0]}")
    if options.missing != "absent":
        reading["missing"] = options.missing
    return reading


def roles_of(options: TrainOptions) -> dict[str, str]:
    """The roles of columns that are given."""
    roles: dict[str, str] = {}
    for role in ROLES:
        for column in getattr(options, role):
            if roles.setdefault(column, role) != role:
                raise PlanError(f"column {column!r} cannot be both {roles[column]} and {role}")
    return roles


def text_of(options: TrainOptions) -> dict[str, Any]:
    """Parameters of ``Text``."""
    text: dict[str, Any] = {}
    if options.chars is not None:
        text["chars"] = lengths(options.chars, "chars")
    if options.ngrams == "none":
        if options.chars is None:
            raise PlanError("without words there must be characters: give chars=", "ngrams")
        text["ngrams"] = None
    elif options.ngrams is not None:
        text["ngrams"] = lengths(options.ngrams, "ngrams")
    for name in ("weighting", "tokens", "norm"):
        if (value := getattr(options, name)) is not None:
            text[name] = value
    return text


def cache_of(options: TrainOptions) -> bool | str:
    """Where parsed rows are kept: True is beside the files, False nowhere."""
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


def threshold_of(options: TrainOptions) -> str | float | None:
    """The threshold that is given: a probability, or the criterion it is to suit."""
    given = options.threshold
    if given is None:
        if options.positive is not None:
            raise PlanError("positive= is about threshold=, which is not given")
        return None
    try:
        number = float(given)
    except (TypeError, ValueError):
        try:
            return str(parse_criterion(str(given)))
        except ValueError as error:
            raise PlanError(f"{error}; a number is one from 0 to 1", "threshold") from None
    if not 0.0 <= number <= 1.0:
        raise PlanError(f"{given} is not a probability from 0 to 1", "threshold")
    return number


def choices_of(options: TrainOptions) -> dict[str, Any]:
    """Choices of the learner that are given."""
    return {name: value for name in CHOICES if (value := getattr(options, name)) is not None}


def learner_of(options: TrainOptions) -> Any:
    """The learner that is given; None if only choices are, or nothing is. Choices are checked."""
    choices, name = choices_of(options), options.learner
    if options.task == "regress" and name is None:
        refuse_in_regression(options)
    if name is None and options.kernel is not None:
        return kernel_learner(options, choices)
    if isinstance(name, str):
        made: Any = named_learner(options, choices)
    elif refused := options.given("with_kernel"):
        raise PlanError(f"{refused[0]}= is about kernel=, which is not given")
    elif name is not None:
        if choices or options.kernel is not None:
            given = next(iter(choices), "kernel")
            raise PlanError(f"{given}= has no use with a learner that is given as an object: set it there")
        made = copy.deepcopy(as_learner(name))  # it is left as it was given
    elif choices:
        made = Learner("OnlineRegressor" if options.task == "regress" else "OnlineClassifier", **choices)
    else:
        return None
    try:
        made.check()
    except (TypeError, ValueError) as error:  # a wrong spelling, or a value that cannot be
        raise PlanError(str(error)) from None
    if options.calibrate:
        refuse_calibrate(made)
    if name is None:
        return None
    task = made.composition.task
    if options.task not in (None, task) and not (options.task in (MULTILABEL, RANK) and task == "classify"):
        kind = "classes" if task == "classify" else "numbers"
        raise PlanError(f"{made.name} predicts {kind}: it is not for task={options.task}", "learner")
    if task == "regress":
        refuse_in_regression(options)
    return made


def refuse_calibrate(learner: Any) -> None:
    """Refuse ``calibrate`` with a learner whose probabilities would be the same without it."""
    if not hasattr(learner, "calibrate_by"):
        raise PlanError(f"calibrate= has no use with {learner.name}, whose probabilities are its own")
    if learner.task.classifies and learner.choices["calibration"].name == "own":
        raise PlanError("calibrate= has no use with calibration=own, which takes scores for log-odds: leave one out")


def refuse_in_regression(options: TrainOptions) -> None:
    """Refuse options that are about classes."""
    if refused := options.given("classes_only"):
        raise PlanError(f"{refused[0]}= has no use in regression")


def named_learner(options: TrainOptions, choices: dict[str, Any]) -> Any:
    """The learner of a name, or of a name with its parameters as in Python; further options are parameters of it."""
    text = str(options.learner)
    try:
        name, values, named = registry.parse_call(text)
        name = registry.full_name(name, options.task)
        one_of(name, registry.learner_names(), "learner")
        parameters = registry.composition_of(name).parameters
        given = registry.parameters_of_call(text, list(parameters), values, named)
    except PlanError:
        raise
    except ValueError as error:
        raise PlanError(str(error), "learner") from None
    added = {key: getattr(options, key) for key in ("kernel", *KERNEL) if options.is_given(key)} | choices
    if "epochs" in given:
        raise PlanError("epochs is about fit in Python: passes= says how many passes are made over files", "learner")
    for key in added:
        if key not in parameters:
            raise PlanError(f"{key}= has no use with learner={name}")
        if key in given:
            raise PlanError(f"{key}= is given twice, by itself and by learner=")
    if "kernel" in added:
        check_texts(options, added["kernel"])
    try:
        return registry.make_learner(name, **{**given, **added})
    except (TypeError, ValueError) as error:
        raise PlanError(str(error), "learner") from None


def check_texts(options: TrainOptions, text: Any) -> None:
    """Refuse a kernel that is spelled wrongly, and options about features with one that compares texts."""
    from onlearn import kernels

    try:
        kernel = kernels.get(text)
    except (TypeError, ValueError) as error:
        raise PlanError(str(error), "kernel") from None
    if kernel.data in ("strings", "trees") and (refused := options.given("of_features")):
        raise PlanError(f"{refused[0]}= has no use with {kernel}, which compares texts as they are")


def kernel_learner(options: TrainOptions, choices: dict[str, Any]) -> Any:
    """The learner with a kernel that is given."""
    if options.is_given("prune_weights"):
        raise PlanError("prune_weights= has no use with kernel=")
    check_texts(options, options.kernel)
    given = {name: getattr(options, name) for name in KERNEL if options.is_given(name)}
    if "budget_policy" in given and "budget" not in given:
        raise PlanError("budget_policy= is about budget=, which is not given")
    name = "KernelRegressor" if options.task == "regress" else "KernelClassifier"
    made = registry.make_learner(name, kernel=options.kernel, **choices, **given)
    try:
        made.check()
    except (TypeError, ValueError) as error:
        raise PlanError(str(error)) from None
    if options.calibrate:
        refuse_calibrate(made)
    return made


def one_of(value: str, words: tuple[str, ...], parameter: str) -> str:
    """Refuse a word that is not one of these; a similar one is proposed."""
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
    """A list of labels, or ``"a,b,c"``; there, a label with a comma is quoted as in a CSV file."""
    given = next(csv.reader([value], skipinitialspace=True), []) if isinstance(value, str) else value
    labels = [str(one).strip() for one in given]
    if not all(labels) or len(set(labels)) < len(labels) or len(labels) < 2:
        raise PlanError(f"{value!r} is not a list of two or more different labels", "classes")
    return labels


def held_out(value: str | float | None) -> float:
    """The part of the rows to test on; 0 if none is given."""
    if value is None:
        return 0.0
    number = part(value, "holdout")
    if number == 0:
        raise PlanError(f"{value!r} holds no rows out: leave holdout= out", "holdout")
    return number


def interaction(value: str) -> Interaction:
    """``A,B`` or ``A,B,C`` or ``pairs`` or ``triples``."""
    if value in ("pairs", "triples"):
        return Interaction(degree=2 if value == "pairs" else 3)
    columns = [one.strip() for one in value.split(",")]
    if len(columns) not in (2, 3) or not all(columns):
        raise PlanError(f"{value!r} is not two or three names, nor pairs or triples", "interact")
    return Interaction(*columns)
