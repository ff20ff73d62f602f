"""Learning theory: mistake bounds, separability, certificates; concepts, teachers and learners of conjunctions.

What drives learners, and the pictures, are imported on first use: they live above the engine, which uses the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlearn.theory import bounds, data_bounds
from onlearn.theory.adversary import hadamard_sequence
from onlearn.theory.certificate import Bound, Certificate, Mixing, certify
from onlearn.theory.concept_class import conjunctions, functions
from onlearn.theory.concepts import DNF, AtLeast, Concept, Conjunction, Disjunction, Predicate, Xor
from onlearn.theory.elimination import Elimination
from onlearn.theory.halving import Consistent, Halving, Majority
from onlearn.theory.learner import ConceptLearner, ContradictionError
from onlearn.theory.linear_threshold import LinearThreshold
from onlearn.theory.max_margin import maximum_margin
from onlearn.theory.minimal_conjunction import minimal_consistent
from onlearn.theory.separable import Separability, separable, simplex_margin
from onlearn.theory.teachers import HelpfulTeacher, QueryLearner, QueryTeacher, RandomTeacher, Transcript

if TYPE_CHECKING:
    from onlearn.theory import plots
    from onlearn.theory.comparison import Comparison, MOfN, Rows, compare_learners
    from onlearn.theory.pac import Guarantee, PACLearner, to_pac
    from onlearn.theory.recommendation import Recommendation, recommend

_HOMES = {
    "comparison": ["Comparison", "MOfN", "Rows", "compare_learners"],
    "pac": ["Guarantee", "PACLearner", "to_pac"],
    "recommendation": ["Recommendation", "recommend"],
}
_LAZY = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "DNF",
    "AtLeast",
    "Bound",
    "Certificate",
    "Comparison",
    "Concept",
    "ConceptLearner",
    "Conjunction",
    "Consistent",
    "ContradictionError",
    "Disjunction",
    "Elimination",
    "Guarantee",
    "Halving",
    "HelpfulTeacher",
    "LinearThreshold",
    "MOfN",
    "Majority",
    "Mixing",
    "PACLearner",
    "Predicate",
    "QueryLearner",
    "QueryTeacher",
    "RandomTeacher",
    "Recommendation",
    "Rows",
    "Separability",
    "Transcript",
    "Xor",
    "bounds",
    "certify",
    "compare_learners",
    "conjunctions",
    "data_bounds",
    "functions",
    "hadamard_sequence",
    "maximum_margin",
    "minimal_consistent",
    "plots",
    "recommend",
    "separable",
    "simplex_margin",
    "to_pac",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "plots":
        return import_module("onlearn.theory.plots")
    if name not in _LAZY:
        raise AttributeError(f"module 'onlearn.theory' has no attribute {name!r}")
    value = getattr(import_module(f"onlearn.theory.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
