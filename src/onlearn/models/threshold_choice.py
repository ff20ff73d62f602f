"""Thresholds that are chosen: of a model that was just trained, by rows that it has not learned from, and the best one
for the rows of an evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onlearn.data import DataError
from onlearn.engine.learner import Learner
from onlearn.errors import PlanError
from onlearn.models.evaluation import Evaluation, evaluation_of
from onlearn.models.model import Model
from onlearn.models.multilabel import MULTILABEL
from onlearn.models.multilabel_evaluation import MultilabelEvaluation
from onlearn.models.plan import Plan
from onlearn.models.threshold import ThresholdSearch, parse_criterion, positive_place, unlearned_rows


def check_threshold(plan: Plan, labels: list[str], learner: Any) -> None:
    """Refuse a threshold that these labels cannot have, or that this learner has no probabilities to choose by."""
    if plan.threshold is None or plan.task == MULTILABEL:
        return
    try:
        positive = positive_place(plan.positive, labels)
    except ValueError as error:
        raise PlanError(str(error), "positive") from None
    if isinstance(plan.threshold, str) and positive is None:
        raise PlanError(
            f"threshold={plan.threshold} is for two labels, and there are {len(labels)}: give a number, below which no "
            "label is predicted"
        )
    if isinstance(plan.threshold, str) and not plan.holdout and type(learner) is not Learner:
        raise PlanError(f"threshold={plan.threshold} needs held-out rows with {learner.name}: say holdout=10%")


def set_threshold(model: Model, plan: Plan, add_held_out: Callable[[Any], None]) -> str:
    """Set the threshold that a plan asks for; returns a sentence about it.

    A criterion is met on the rows that ``add_held_out`` adds to an evaluation, if the plan holds some out; else on
    those whose scores the learner keeps: see ``unlearned_rows``.
    """
    labels = model.labels or []
    check_threshold(plan, labels, model.learner)
    if plan.task == MULTILABEL:
        return _set_for_each(model, plan, add_held_out)
    positive = positive_place(plan.positive, labels)
    if not isinstance(plan.threshold, str):
        model.set_threshold(plan.threshold, plan.positive)
        if positive is None:
            return f"no label is predicted where the best has a probability below {plan.threshold}"
        return f"{labels[positive]!r} is predicted where its probability is at least {plan.threshold}"
    assert positive is not None
    model.set_threshold(None)
    found = ThresholdSearch()
    if plan.holdout:
        evaluation = Evaluation(labels)
        evaluation.search = positive, found
        add_held_out(evaluation)
        where = "held-out rows"
    else:
        made = unlearned_rows(model.learner)
        assert made is not None
        found.add(made.codes == positive, made.probabilities[:, positive])
        where = made.rows
    try:
        chosen = found.best(parse_criterion(plan.threshold))
    except ValueError as error:
        raise PlanError(str(error), "threshold") from None
    model.set_threshold(chosen, labels[positive])
    return (
        f"{labels[positive]!r} is predicted where its probability is at least {chosen:.4g}: "
        f"the best by {plan.threshold} on {found.count:,} {where}"
    )


def search_threshold(evaluation: Any, criterion: str, positive: str | None) -> Callable[[], dict[str, Any]]:
    """Let an evaluation look for the threshold that is best by a criterion; what is found when all rows are there."""
    several = isinstance(evaluation, MultilabelEvaluation)
    if several and positive is not None:
        raise PlanError("it is for models of two labels, of which a row has one", "positive")
    if not several and (not isinstance(evaluation, Evaluation) or len(evaluation.labels) != 2):
        raise PlanError("it is for models of two labels", "best_threshold")
    try:
        wanted = parse_criterion(criterion)
    except ValueError as error:
        raise PlanError(str(error), "best_threshold") from None
    try:
        place = None if several else positive_place(positive, evaluation.labels)
    except ValueError as error:
        raise PlanError(str(error), "positive") from None
    search = ThresholdSearch()
    evaluation.search = search if several else (place, search)

    def best() -> dict[str, Any]:
        try:
            found = search.best(wanted)
        except ValueError as error:
            raise DataError(str(error)) from None
        about = {
            "criterion": str(wanted),
            "probability": found,
            "positive": None if place is None else evaluation.labels[place],
        }
        return {**about, **search.figures(found)}

    return best


def _set_for_each(model: Model, plan: Plan, add_held_out: Callable[[Any], None]) -> str:
    """Set the threshold of every label, where rows may have several."""
    if not isinstance(plan.threshold, str):
        model.set_threshold(plan.threshold)
        return f"a row has the labels with a probability of at least {plan.threshold}"
    model.set_threshold(None)
    found = ThresholdSearch()
    if plan.holdout:
        evaluation = evaluation_of(model)
        evaluation.search = found
        add_held_out(evaluation)
        where = "of held-out rows"
    else:
        made = unlearned_rows(model.learner)
        assert made is not None
        found.add(made.codes == 1, made.probabilities[:, 1])
        where = f"of {made.rows}"
    try:
        chosen = found.best(parse_criterion(plan.threshold))
    except ValueError as error:
        raise PlanError(str(error), "threshold") from None
    model.set_threshold(chosen)
    return (
        f"a row has the labels with a probability of at least {chosen:.4g}: the best by {plan.threshold} "
        f"on {found.count:,} labels {where}"
    )
