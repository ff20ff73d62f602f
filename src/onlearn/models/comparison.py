"""``compare``: several learners on one data set, the same rows for all, and which differences are more than noise.

The data are read once. The learners are tested on a file, on a part of the rows that is held out, or on every row by
cross-validation. The best, by accuracy or by the squared error, is compared with each of the others: by McNemar's test
and the paired bootstrap on the same test rows (see ``significance``), or by the corrected t-test over the folds (see
``tune.cross_validation``); p-values are adjusted for their number by Holm's method.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from onlearn import data
from onlearn.engine.registry import full_name, parse_call
from onlearn.errors import PlanError
from onlearn.models.comparison_table import ComparisonTable, Entry, Pair
from onlearn.models.contestants import Contestant, Curve, MakeRun, OurLearner, PeerLearner, Split, Trial
from onlearn.models.kept_rows import KeptRows, RowsAtHand
from onlearn.models.peers import is_peer, parse_peer
from onlearn.models.plan import Plan, is_text
from onlearn.models.run_reading import held_out
from onlearn.models.significance import LEVEL, Difference, holm, mcnemar, paired_bootstrap
from onlearn.models.train_options import AUTO, NOT_COMPARED, FilePath, TrainOptions, as_list, part
from onlearn.models.training import checked_files, plan_of, run_of
from onlearn.tune.cross_validation import corrected_interval, fold_numbers

HOLDOUT = "20%"
DEFAULT = "default"  # the name of the learner that ``onlearn train`` takes if none is named

# Learners that are compared if none are named, besides the one that ``train`` takes.
ON_TEXT = ("LogisticRegression", "PassiveAggressive", "AveragedPerceptron", "NaiveBayes")
ON_OTHERS = ("AROW", "AveragedPerceptron", "ScInOL", "NaiveBayes")
OF_NUMBERS = (
    "OnlineRegressor(geometry='scinol', stabilizer='last')",
    "OnlineRegressor(rule='pa_epsilon', geometry='additive')",
)

Watch = Callable[[str, "Entry | None"], None]  # called with a name when a learner begins, and with its entry at the end


def compare(
    sources: FilePath | list[FilePath] | tuple[Any, Any],
    learners: Iterable[Any] | Mapping[str, Any] | None = None,
    *,
    peers: Iterable[Any] | Mapping[str, Any] = (),
    folds: int | None = None,
    curves: bool = True,
    watch: Watch | None = None,
    **options: Any,
) -> ComparisonTable:
    """Compare learners on data: accuracy, log-loss, mistakes, time, memory, size; and what of it is noise.

    - sources: files, or a pair (X, y) of rows as ``Model.partial_fit`` takes them and their labels; ``test`` likewise.
    - learners: names with parameters such as "AROW" or "LogisticRegression(rate=0.5)", "default" for what ``train``
      takes by itself, estimators of ours or of others; by default a few that suit the data. A mapping names them.
    - peers: estimators of other packages, or their spelling "sklearn.linear_model:SGDClassifier(loss=log_loss)". They
      learn from the features that ours have by default.
    - test, holdout, folds: files to test on, a part of the rows (20% by default), or cross-validation.
    - curves: whether peers learn a second time, for their learning curves.
    - options: those of ``train`` about reading, features and passes, and ``seed``.

    A learner that fails has an entry with the reason. After Ctrl-C the table has what is finished, and ``stopped``.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "pets.csv")
    >>> _ = path.write_text("weight,label\\n" + "4.1,cat\\n31.0,dog\\n3.8,cat\\n28.5,dog\\n" * 25)
    >>> result = compare(path, ["AROW", "LogisticRegression"], holdout="30%")
    >>> result.best.accuracy, [pair.verdict() for pair in result.pairs if pair.measure == "accuracy"]
    (1.0, ['no difference shown (p 1)'])
    """
    refused = [name for name in NOT_COMPARED if name in options]
    if refused:
        raise PlanError(f"{refused[0]}= has no use in a comparison: learners are spelled with their parameters")
    test, holdout = options.pop("test", None), options.pop("holdout", None)
    given = [
        name for name, value in (("test", test), ("holdout", holdout), ("folds", folds)) if value not in (None, [])
    ]
    if len(given) > 1:
        raise PlanError(f"{given[0]}= and {given[1]}= are two ways of testing: give one of them")
    # Rows at hand are read once, as those of a pipe are.
    files: list[FilePath] = ["-"] if isinstance(sources, tuple) else [*as_list(sources)]
    asked = TrainOptions(sources=files, test=None if isinstance(test, tuple) else test, **options)
    task = task_of(asked, learners, peers)
    contestants = contestants_of(asked, learners, peers, task)
    usual = plan_of(_with(asked, None, task))
    if isinstance(sources, tuple):
        kept = KeptRows(RowsAtHand.of(sources, task))
    else:
        kept = KeptRows.of(usual, checked_files(asked, None))
    if not learners:
        contestants = contestants_of(asked, usual_learners(usual, kept), (), task) + contestants
    if isinstance(test, tuple):
        splits = [Split(kept, None, KeptRows(RowsAtHand.of(test, task)), usual, asked.seed)]
    else:
        splits = splits_of(kept, usual, asked, holdout, folds)
    trials, stopped = hold(contestants, splits, curves, watch)
    if trials and all(isinstance(found, str) for found in trials.values()):
        name, why = next(iter(trials.items()))
        raise data.DataError(f"no learner could be compared; {name}: {why}")
    return result(kept, asked, task, contestants, trials, splits, stopped)


def compare_contestants(options: TrainOptions, contestants: Sequence[Contestant], folds: int) -> ComparisonTable:
    """Cross-validate contestants on the files of the options."""
    plan = plan_of(options)
    kept = KeptRows.of(plan, checked_files(options, None))
    splits = splits_of(kept, plan, options, None, folds)
    trials, stopped = hold(contestants, splits, False, None)
    return result(kept, options, plan.task, contestants, trials, splits, stopped)


def given_options(options: TrainOptions) -> dict[str, Any]:
    """The options by name, as they are given."""
    return {one.name: getattr(options, one.name) for one in fields(options)}


def task_of(options: TrainOptions, learners: Any, peers: Any) -> str:
    """The task that is given, or that one of the learners decides."""
    asked = [one for _, one in (*_named(learners), *_named(peers))]
    task = options.task or next((known for known in map(_task_of, asked) if known), "classify")
    if task not in ("classify", "regress"):
        raise PlanError(
            f"learners are compared by one label or number a row, not by {task}: classify or regress", "task"
        )
    about_races = [name for name in ("space", "configurations", "time_limit") if options.is_given(name)]
    if about_races and AUTO not in asked:
        raise PlanError(f"{about_races[0]}= is about the race of learner=auto, which is not among the learners")
    return task


def usual_learners(plan: Plan, kept: KeptRows) -> tuple[str, ...]:
    """Learners that suit the data, what ``train`` takes first."""
    if plan.task == "regress":
        return DEFAULT, *OF_NUMBERS
    plan = copy.deepcopy(plan)
    plan.taken = {
        str(column): role for role, column in kept.reader.found().items() if role in ("target", "weight", "id")
    }
    features, _ = plan.features(kept.batches[0].parsed)
    return DEFAULT, *(ON_TEXT if is_text(features) else ON_OTHERS)


def contestants_of(options: TrainOptions, learners: Any, peers: Any, task: str) -> list[Contestant]:
    """Those that take part, by name; a ``PlanError`` if one is not known or two are called the same."""
    made: list[Contestant] = []
    for name, one in _named(learners):
        if is_peer(one):
            made.append(_peer(name, one))
        else:
            known = one if isinstance(one, str) else type(one).__name__
            made.append(OurLearner(name or known, run_maker(options, None if one == DEFAULT else one, task)))
    made += [_peer(name, one) for name, one in _named(peers)]
    names = [one.name for one in made]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise PlanError(f"two learners are called {twice!r}: leave one out, or in Python give them names by a dict")
    return made


def _peer(name: str | None, one: Any) -> PeerLearner:
    spelled, estimator = parse_peer(one) if isinstance(one, str) else (type(one).__name__, one)
    return PeerLearner(name or spelled, estimator)


def _named(given: Any) -> list[tuple[str | None, Any]]:
    if given is None:
        return []
    if isinstance(given, Mapping):
        return [(str(name), one) for name, one in given.items()]
    single = isinstance(given, str) or hasattr(given, "fit")
    return [(None, one) for one in ([given] if single else given)]


def _task_of(learner: Any) -> str | None:
    """The task that a learner decides; None if it suits either."""
    kind = getattr(learner, "_estimator_type", None)
    name = type(learner).__name__
    if isinstance(learner, str):
        try:
            name = full_name(parse_call(learner)[0])
        except ValueError:  # reported where the learner is made
            return None
    elif kind is None and hasattr(learner, "__sklearn_tags__"):
        kind = learner.__sklearn_tags__().estimator_type
    return "regress" if kind == "regressor" or name.endswith(("Regressor", "SVR")) else None


def run_maker(options: TrainOptions, learner: Any, task: str) -> MakeRun:
    """What makes training runs of a learner; a ``PlanError`` if there can be none."""
    asked = _with(options, learner, task)
    if learner == AUTO:
        from onlearn.models.tuned_run import TunedRun

        TunedRun(asked)
        return lambda bad: TunedRun(asked, bad)
    plan = plan_of(asked)
    return lambda bad: run_of(copy.deepcopy(plan), None, bad)


def _with(options: TrainOptions, learner: Any, task: str) -> TrainOptions:
    given = {"task": task} if task == "regress" else {}
    return TrainOptions(**{**given_options(options), **given, "learner": learner, "test": None})


def splits_of(
    kept: KeptRows, plan: Plan, options: TrainOptions, holdout: str | float | None, folds: int | None
) -> list[Split]:
    """The rows to learn from and to test on."""
    seed = options.seed
    if options.test:
        return [Split(kept, None, as_list(options.test), plan, seed)]
    if folds is not None:
        classes = kept.targets() if plan.task == "classify" else None
        try:
            numbers = fold_numbers(kept.rows, folds, classes, seed)
        except ValueError as error:
            raise PlanError(str(error), "folds") from None
        return [Split(kept, numbers != fold, numbers == fold, plan, seed) for fold in range(folds)]
    share = part(HOLDOUT if holdout is None else holdout, "holdout")
    test = held_out(0, kept.rows, share, seed)
    if not test.any() or test.all():
        raise PlanError(f"{share:.0%} of {kept.rows} rows leaves none to learn from or to test on", "holdout")
    return [Split(kept, ~test, test, plan, seed)]


def hold(
    contestants: Sequence[Contestant], splits: list[Split], curves: bool, watch: Watch | None
) -> tuple[dict[str, list[Trial] | str], bool]:
    """The trials of each contestant, or why it failed; and whether Ctrl-C ended it early."""
    trials: dict[str, list[Trial] | str] = {}
    watch = watch or (lambda name, entry: None)
    try:
        for one in contestants:
            watch(one.name, None)
            trials[one.name] = _trials(one, splits, curves)
            watch(one.name, entry_of(one, trials[one.name], 0.0))
    except KeyboardInterrupt:
        return trials, True
    return trials, False


def _trials(one: Contestant, splits: list[Split], curves: bool) -> list[Trial] | str:
    try:
        return [one.compete(split, curves and n == 0) for n, split in enumerate(splits)]
    except Exception as error:  # whatever the learner, or the code of another package, raises
        text = " ".join(str(error).split()) or type(error).__name__
        return text if len(text) <= 300 else f"{text[:297]}..."


def entry_of(one: Contestant, trials: list[Trial] | str, test_part: float) -> Entry:
    """The figures of a contestant; ``test_part`` is the number of test rows by that of training rows, with folds."""
    if isinstance(trials, str):
        return Entry(one.name, peer=one.is_peer, error=trials)
    first = trials[0]
    regression = first.right is None
    main = [rmse(trial) if regression else accuracy(trial) for trial in trials]
    interval = corrected_interval(main, test_part) if len(trials) > 1 else None
    losses = [trial.log_losses for trial in trials]
    there = None if losses[0] is None else np.concatenate([one for one in losses if one is not None])
    return Entry(
        name=one.name,
        learner=first.learner,
        peer=one.is_peer,
        accuracy=None if regression else float(np.mean(main)),
        log_loss=None if there is None or np.isnan(there).all() else float(np.nanmean(there)),
        rmse=float(np.mean(main)) if regression else None,
        mae=_mae(trials) if regression else None,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        mistakes=first.mistakes,
        seconds=float(np.mean([trial.seconds for trial in trials])),
        memory_bytes=_largest([trial.memory_bytes for trial in trials]),
        model_bytes=_largest([trial.model_bytes for trial in trials]),
        curve=tuple(_rounded(first.curve)),
    )


def accuracy(trial: Trial) -> float:
    """The share of test rows that were predicted right."""
    assert trial.right is not None
    return float(trial.right.mean())


def rmse(trial: Trial) -> float:
    """The root of the mean squared error."""
    assert trial.errors is not None
    return math.sqrt(float(np.mean(trial.errors**2)))


def _mae(trials: list[Trial]) -> float:
    return float(np.mean(np.abs(np.concatenate([trial.errors for trial in trials if trial.errors is not None]))))


def _largest(sizes: list[int | None]) -> int | None:
    return max((size for size in sizes if size is not None), default=None)


def _rounded(curve: Curve) -> Curve:
    return [
        {key: round(value, 6) if isinstance(value, float) else value for key, value in one.items()} for one in curve
    ]


def result(
    kept: KeptRows, options: TrainOptions, task: str, contestants: Sequence[Contestant],
    trials: dict[str, list[Trial] | str], splits: list[Split], stopped: bool,
) -> ComparisonTable:  # fmt: skip
    """The table of what is finished, the best first."""
    test_part = 1 / (len(splits) - 1) if len(splits) > 1 else 0.0
    entries = [entry_of(one, trials[one.name], test_part) for one in contestants if one.name in trials]
    entries.sort(key=_rank)
    done = {name: found for name, found in trials.items() if not isinstance(found, str)}
    tested = [len(trial.gold) for trial in next(iter(done.values()), [])]
    first = splits[0].train
    return ComparisonTable(
        data=("memory",) if isinstance(kept.reader, RowsAtHand) else tuple(as_list(options.sources)),
        task=task,
        rows=kept.rows if first is None or len(splits) > 1 else int(np.count_nonzero(first)),
        test_rows=sum(tested),
        tested_on=_tested_on(sum(tested), len(splits), isinstance(splits[0].test, np.ndarray)),
        seed=options.seed,
        learners=tuple(entries),
        pairs=tuple(pairs_of([one.name for one in entries if one.error is None], done, test_part, options.seed)),
        notes=tuple(kept.reader.notes),
        bad_rows=kept.reader.bad.count,
        stopped=stopped,
    )


def _tested_on(rows: int, splits: int, held: bool) -> str:
    if splits > 1:
        return f"{rows:,} to test on in {splits} folds"
    return f"{rows:,} {'held out' if held else 'others'} to test on"


def _rank(entry: Entry) -> tuple[bool, float, float]:
    """What entries are sorted by: first those that did not fail, then by accuracy or RMSE, then by log-loss."""
    main = -entry.accuracy if entry.accuracy is not None else math.inf if entry.rmse is None else entry.rmse
    return entry.error is not None, main, math.inf if entry.log_loss is None else entry.log_loss


def pairs_of(names: list[str], trials: dict[str, list[Trial]], test_part: float, seed: int) -> list[Pair]:
    """By each measure, the first of the names that has it against each of the others."""
    made: list[Pair] = []
    for measure in ("accuracy", "log_loss", "squared_error"):
        there = [name for name in names if _paired(trials[name][0], trials[name][0], measure) is not None]
        found: dict[str, Difference] = {}
        for name in there[1:]:
            one = difference(trials[there[0]], trials[name], measure, test_part, seed)
            if one is not None:
                found[name] = one
        adjusted = holm([one.p for one in found.values()])
        made += [
            Pair(there[0], name, measure, one.test, one.difference, one.low, one.high, one.p, p, p < 1 - LEVEL)
            for (name, one), p in zip(found.items(), adjusted)
        ]
    return made


def difference(first: list[Trial], second: list[Trial], measure: str, test_part: float, seed: int) -> Difference | None:
    """How much better the first of two is; None if one of them was not measured so."""
    parts = [_paired(one, other, measure) for one, other in zip(first, second)]
    known = [part for part in parts if part is not None and len(part[0])]
    if not known or len(known) < len(parts):
        return None
    if len(known) > 1:
        sign = 1 if measure == "accuracy" else -1
        found = corrected_interval([sign * float(np.mean(a) - np.mean(b)) for a, b in known], test_part)
        return Difference("corrected-t", found.mean, found.low, found.high, found.p)
    return mcnemar(*known[0]) if measure == "accuracy" else paired_bootstrap(*known[0], seed=seed)


def _paired(first: Trial, second: Trial, measure: str) -> tuple[np.ndarray, np.ndarray] | None:
    """What two learners made of the same rows."""
    if measure == "accuracy":
        return None if first.right is None or second.right is None else (first.right, second.right)
    if measure == "squared_error":
        return None if first.errors is None or second.errors is None else (first.errors**2, second.errors**2)
    if first.log_losses is None or second.log_losses is None:
        return None
    known = ~(np.isnan(first.log_losses) | np.isnan(second.log_losses))
    return first.log_losses[known], second.log_losses[known]
