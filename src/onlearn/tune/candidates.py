"""The estimators that a search space means.

A space for estimators is one of

- None: a default space for rows of numbers, by the task;
- a list of estimators, ours or others;
- a mapping from parameters of one estimator to their values: a list, or a range such as ``Log(0.01, 1)``. With
  "learner" among them, a list of names of ours, each configuration is a learner of that name, with those of the other
  parameters that it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from onlearn.engine import registry
from onlearn.engine.spec import did_you_mean
from onlearn.errors import PlanError
from onlearn.tune.field import reason
from onlearn.tune.portfolio import Kind, configurations
from onlearn.tune.space import Options, Space, different


class Candidate(NamedTuple):
    """A configuration, by the parameters in which it differs, and its estimator; a text is why there can be none."""

    options: Options
    estimator: Any

    @property
    def spelling(self) -> str:
        return self.options.get("learner", "?") if isinstance(self.estimator, str) else spelled(self.estimator)


def spelled(estimator: Any) -> str:
    """An estimator in one line."""
    return " ".join(repr(estimator).split())


def named_estimator(text: str, task: str = "classify", **more: Any) -> Any:
    """The estimator of ours that a text such as ``AROW(r=0.3)`` spells, with further parameters.

    >>> named_estimator("LogisticRegression(rate=0.5)", epochs=3)
    LogisticRegression(epochs=3, rate=0.5)
    """
    import onlearn

    name, values, named = registry.parse_call(text)
    name = registry.full_name(name, task)
    if name not in registry.learner_names():
        raise ValueError(f"there is no learner {name!r}{did_you_mean(name, registry.learner_names())}")
    known = list(registry.composition_of(name).parameters)
    return getattr(onlearn, name)(**{**registry.parameters_of_call(text, known, values, named), **more})


def default_estimator(task: str) -> Any:
    """The estimator whose parameters a space is about, if none is given."""
    return named_estimator("LogisticRegression" if task == "classify" else "OnlineRegressor")


def candidates(space: Any, estimator: Any = None, *, task: str = "classify", count: int = 16, seed: int = 0) -> Any:
    """At most ``count`` candidates of a space, the default one first: it is kept where noise would decide."""
    if space is not None and not isinstance(space, (Mapping, Space)):
        if estimator is not None:
            raise ValueError("space= is a list of estimators, so estimator= has no use")
        return listed(space)[:count]
    base = default_estimator(task) if estimator is None else estimator
    if space is None:
        if estimator is not None:
            raise ValueError("estimator= needs space=, the values of its parameters")
        return [Candidate({}, base), *_portfolio(task)][:count]
    made = space if isinstance(space, Space) else Space.of(space)
    if not made.values:
        raise ValueError("space= has no parameters")
    drawn = different(made.sample(count, seed))
    if "learner" in made.values:
        if estimator is not None:
            raise ValueError("space= names learners, so estimator= has no use")
        return [_of_learner(one, task) for one in drawn]
    known = base.get_params()
    for name in made.values:
        if name not in known:
            raise ValueError(f"{type(base).__name__} has no parameter {name!r}{did_you_mean(name, sorted(known))}")
    return [_with_params(base, one) for one in drawn]


def listed(space: Any) -> list[Candidate]:
    """Candidates that are given as estimators, or as names of ours."""
    found = [Candidate({"learner": one}, _made(one)) if isinstance(one, str) else Candidate({}, one) for one in space]
    if not found:
        raise ValueError("space= lists no estimators")
    for one in found:
        if not isinstance(one.estimator, str) and not hasattr(one.estimator, "fit"):
            raise TypeError(f"{one.estimator!r} in space= is no estimator: it has no fit")
    return found


def _made(text: str) -> Any:
    try:
        return named_estimator(text)
    except PlanError as error:
        return error.message
    except (TypeError, ValueError) as error:
        return reason(error)


def _portfolio(task: str) -> list[Candidate]:
    """The default space for rows of numbers without columns."""
    names = {"classify": "OnlineClassifier", "regress": "OnlineRegressor"}
    made = []
    for one in configurations(Kind(task)):
        rest = {name: value for name, value in one.items() if name != "learner"}
        made.append(Candidate(one, named_estimator(one.get("learner", names[task]), task, **rest)))
    return made


def _of_learner(one: Options, task: str) -> Candidate:
    """A learner by its name, with those parameters that it has."""
    try:
        name = registry.full_name(registry.parse_call(str(one["learner"]))[0], task)
        known = registry.composition_of(name).parameters if name in registry.learner_names() else {}
        own = {key: value for key, value in one.items() if key in known}
        options = {"learner": one["learner"], **own}
        return Candidate(options, named_estimator(str(one["learner"]), task, **own))
    except (TypeError, ValueError) as error:
        return Candidate(one, reason(error))


def _with_params(base: Any, one: Options) -> Candidate:
    """A copy of an estimator with other parameters."""
    from sklearn.base import clone

    try:
        return Candidate(one, clone(base).set_params(**one))
    except (TypeError, ValueError) as error:
        return Candidate(one, reason(error))
