"""From scores to probabilities, under its public name: ``onlearn.calibrate.Holdout(0.1)``."""

from onlearn.engine.calibration import (
    CALIBRATIONS,
    LINKS,
    METHODS,
    Auto,
    Curve,
    Holdout,
    Online,
    Own,
    binary,
    curve_of,
    fit,
    fit_sigmoid,
    fit_temperature,
    several,
    sigmoid,
)

__all__ = [
    "CALIBRATIONS",
    "LINKS",
    "METHODS",
    "Auto",
    "Curve",
    "Holdout",
    "Online",
    "Own",
    "binary",
    "curve_of",
    "fit",
    "fit_sigmoid",
    "fit_temperature",
    "several",
    "sigmoid",
]
