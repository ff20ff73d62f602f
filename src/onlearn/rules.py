"""The update rules, under their public name: ``onlearn.rules.PA1(0.5)``. Their home is ``onlearn.engine.rules``."""

from onlearn.engine.rules import (
    LMS,
    NLMS,
    PA1,
    PA2,
    RULES,
    Aggressive,
    Epsilon,
    Hinge,
    Logistic,
    Margin,
    PAEpsilon,
    Perceptron,
    SquaredHinge,
)

__all__ = [
    "LMS",
    "NLMS",
    "PA1",
    "PA2",
    "RULES",
    "Aggressive",
    "Epsilon",
    "Hinge",
    "Logistic",
    "Margin",
    "PAEpsilon",
    "Perceptron",
    "SquaredHinge",
]
