"""The named learners as estimators, made of the compositions in ``engine.named``, signature and docstring too."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from onlearn.engine.named import COMPOSITIONS
from onlearn.estimators.linear import OnlineClassifier

Cls = TypeVar("Cls", bound=type[OnlineClassifier])

NAMED: dict[str, Any] = {}


def named(cls: Cls) -> Cls:
    """Make a subclass of ``OnlineClassifier`` the composition of its name."""
    composition = COMPOSITIONS[cls.__name__]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    shown = [inspect.Parameter(name, kind, default=one.default) for name, one in composition.parameters.items()]
    signature = inspect.Signature([inspect.Parameter("self", kind), *shown])

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            setattr(self, name, value)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    cls.__init__, cls.__doc__, cls.composition = __init__, composition.docstring(), composition  # type: ignore[method-assign]
    NAMED[cls.__name__] = cls
    return cls


@named
class Perceptron(OnlineClassifier):
    pass


@named
class AveragedPerceptron(OnlineClassifier):
    pass


@named
class VotedPerceptron(OnlineClassifier):
    pass


@named
class MarginPerceptron(OnlineClassifier):
    pass


@named
class AggressivePerceptron(OnlineClassifier):
    pass


@named
class PassiveAggressive(OnlineClassifier):
    pass


@named
class Winnow(OnlineClassifier):
    pass


@named
class BalancedWinnow(OnlineClassifier):
    pass


@named
class NormalizedWinnow(OnlineClassifier):
    pass


@named
class Adaline(OnlineClassifier):
    pass


@named
class LinearSVM(OnlineClassifier):
    pass


@named
class LogisticRegression(OnlineClassifier):
    pass


@named
class AdaGrad(OnlineClassifier):
    pass


@named
class AROW(OnlineClassifier):
    pass


@named
class FTRL(OnlineClassifier):
    pass


@named
class ScInOL(OnlineClassifier):
    pass
