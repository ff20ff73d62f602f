"""Learning theory: mistake bounds, separability, certificates; and what is concluded from them by running learners.

Names that drive learners are imported on first use, for they live above the engine, and the engine uses the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlearn.theory import bounds, data_bounds
from onlearn.theory.certificate import Bound, Certificate, certify
from onlearn.theory.max_margin import maximum_margin
from onlearn.theory.separable import Separability, separable, simplex_margin

if TYPE_CHECKING:
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
    "Bound",
    "Certificate",
    "Comparison",
    "Guarantee",
    "MOfN",
    "PACLearner",
    "Recommendation",
    "Rows",
    "Separability",
    "bounds",
    "certify",
    "compare_learners",
    "data_bounds",
    "maximum_margin",
    "recommend",
    "separable",
    "simplex_margin",
    "to_pac",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _LAZY:
        raise AttributeError(f"module 'onlearn.theory' has no attribute {name!r}")
    value = getattr(import_module(f"onlearn.theory.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
