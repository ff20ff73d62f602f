"""Searches over rows of files: parameters of a learner that cannot race, by Optuna and cross-validation.

The rows are read once and become features as in a training run of that learner; the search (see
``tune.optuna_search``) works on the matrix, or on texts if a kernel compares those. The result has the form of a race,
and ends with the ``onlearn train`` command of the best parameters.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from onlearn import data
from onlearn.data.batch import as_public
from onlearn.engine.registry import spell_learner
from onlearn.errors import PlanError
from onlearn.models.comparison import compare_contestants
from onlearn.models.comparison_table import ComparisonTable
from onlearn.models.configuration import command, configured, refuse_sentences
from onlearn.models.contestants import OurLearner
from onlearn.models.kernel_run import as_one_matrix
from onlearn.models.train_options import TrainOptions
from onlearn.models.training import plan_of, run_of
from onlearn.tune.candidates import named_estimator
from onlearn.tune.optuna_search import Search, import_optuna, search
from onlearn.tune.space import Log, Options, Space, Whole

TRIALS = 30
FOLDS = 5


def usual_space(name: str, features: int) -> dict[str, Any]:
    """What is searched if nothing is said; ``features`` are the columns of the rows."""
    wide = math.sqrt(max(1, features))  # about the distance of two rows, if columns have deviation 1
    kernels = ["gaussian", "linear", *(f"gaussian({one * wide:.3g})" for one in (0.3, 1.0, 3.0))]
    spaces: dict[str, dict[str, Any]] = {
        "SVC": {"C": Log(0.01, 1000.0), "kernel": kernels},
        "SVR": {"C": Log(0.01, 1000.0), "epsilon": Log(0.001, 0.5), "kernel": kernels},
        "KernelClassifier": {"rule": ["perceptron", "pa1", "hinge"], "epochs": [3, 5, 10], "kernel": kernels},
        "KNNClassifier": {"k": Whole(1, 40), "weights": ["uniform", "distance"]},
        "KNNRegressor": {"k": Whole(1, 40), "weights": ["uniform", "distance"]},
        "MLPClassifier": {"hidden_layer_sizes": [(30,), (100,), (100, 30)], "l2": Log(1e-6, 0.1)},
        "MLPRegressor": {"hidden_layer_sizes": [(30,), (100,), (100, 30)], "l2": Log(1e-6, 0.1)},
    }
    if name not in spaces:
        raise PlanError(f"say which parameters of {name} to search, such as C=log(0.1,10)", "space")
    return spaces[name]


class FileRows:
    """All rows of the files that are learned from, as a learner sees them."""

    def __init__(self, options: TrainOptions, bad: data.BadRows) -> None:
        run = run_of(plan_of(options), None, bad)
        run.passes.wait = True  # labels and features are final when all rows are read
        run.reading.reader = run.reading.open()
        refuse_sentences(run.reading.reader.keep(1)[0])
        batches = list(run.reading.examples())
        model, numbers = run.model, run.reading.sort_labels()
        y = np.concatenate([y for _, y, _ in batches])
        self.y: np.ndarray = y if model.labels is None else numbers[y]
        self.task: str = run.plan.task
        self.learner: Any = run.reading.learner
        self.texts: bool = model.compares_texts
        if self.texts:
            self.X: Any = [text for some, _, _ in batches for text in some]
            return
        kept = run.reading.drop_rare_features() if run.plan.min_count > 1 else None
        self.X = as_public(as_one_matrix(batches, model.features.n_features_out_, kept, None))

    @property
    def features(self) -> int:
        """The number of columns."""
        return 0 if self.texts else int(self.X.shape[1])


def search_files(
    options: TrainOptions, trials: int | None, folds: int | None, bad: data.BadRows
) -> tuple[dict[str, Any], TrainOptions]:
    """Search the parameters of the learner that is given; the table, ready for JSON, and the options of the best."""
    import_optuna()
    asked = replace(options, space=None, configurations=None, time_limit=None)
    rows = FileRows(asked, bad)
    name = rows.learner.name
    given = options.space
    space = Space.parse(given).with_truths({"multiclass"}) if given else Space.of(usual_space(name, rows.features))
    estimator = named_estimator(str(options.learner), rows.task)
    try:
        found = search(
            estimator, space, rows.X, rows.y, trials=TRIALS if trials is None else trials,
            folds=FOLDS if folds is None else folds, time_limit=options.time_limit, random_state=options.seed,
        )  # fmt: skip
    except ValueError as error:
        raise PlanError(str(error), "space" if "parameter" in str(error) else None) from None
    spelled = _spelling(options, rows.task, found.best_params_)
    best = replace(asked, learner=spelled)
    return as_race(found, name, command(asked, {"learner": spelled}), len(rows.y)), best


def _spelling(options: TrainOptions, task: str, params: dict[str, Any]) -> str:
    """The learner with these parameters, as ``--learner`` takes it."""
    made = named_estimator(str(options.learner), task).set_params(**params)
    return spell_learner(made._as_learner())


def as_race(found: Search, name: str, spelled: str, rows: int) -> dict[str, Any]:
    """The table of a search in the form of the table of a race."""
    order = sorted(
        found.trials, key=lambda one: (one["state"] != "complete", one["score"] is None, -(one["score"] or 0))
    )
    ranks = {one["number"]: rank for rank, one in enumerate(order, 1)}
    reasons = {"complete": None, "pruned": "half", "stopped": "stopped"}
    table = [
        {
            "number": one["number"],
            "options": {"learner": name, **one["params"]},
            "spelling": f"{name}({', '.join(f'{key}={value!r}' for key, value in one['params'].items())})",
            "score": one["score"],
            "state": one["state"],
            "rungs": [] if one["score"] is None else [
                {"examples": one["folds"] * rows, "loss": 1 - one["score"], "mistakes": None}
            ],
            "dropped_at": None if one["state"] == "complete" else one["folds"] * rows,
            "why": reasons.get(one["state"], one["why"]),
            "rank": ranks[one["number"]],
        }
        for one in found.trials
    ]  # fmt: skip
    return {
        "configurations": table,
        "winner": order[0]["number"],
        "options": table[order[0]["number"]]["options"],
        "command": spelled,
        "score": found.best_score_,
        "low": found.low,
        "high": found.high,
        "folds": found.folds,
        "rows": rows,
        "examples": rows * sum(one["folds"] for one in found.trials),
        "seconds": round(found.seconds, 3),
        "ended_early": found.stopped,
    }


def cross_validate_configurations(
    options: TrainOptions, configurations: dict[str, Options], folds: int
) -> ComparisonTable:
    """K-fold cross-validation of configurations by name, each as ``train`` learns by it; the files are read again."""

    def maker(one: Options) -> Callable[[data.BadRows], Any]:
        plan = plan_of(configured(options, one))
        plan.holdout = 0.0
        return lambda bad: run_of(copy.deepcopy(plan), None, bad)

    contestants = [OurLearner(name, maker(one)) for name, one in configurations.items()]
    usual = configured(replace(options, holdout=None, test=None, output=None), {})
    return compare_contestants(usual, contestants, folds=folds)
