"""The geometries, under their public name: ``onlearn.geometry.Winnow(alpha=1.5)``."""

from onlearn.engine.geometry import (
    AROW,
    FTRL,
    GEOMETRIES,
    AdaGrad,
    Additive,
    BalancedWinnow,
    Exponentiated,
    FadingAdaGrad,
    ScInOL,
    Winnow,
)

__all__ = [
    "AROW",
    "FTRL",
    "GEOMETRIES",
    "AdaGrad",
    "Additive",
    "BalancedWinnow",
    "Exponentiated",
    "FadingAdaGrad",
    "ScInOL",
    "Winnow",
]
