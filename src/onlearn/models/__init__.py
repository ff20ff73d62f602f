"""Models: a learner with its features and the way its files are read; training, prediction, evaluation, explanation.

The names are imported on first use: the help of commands needs nothing but the options of training.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onlearn.models.evaluation import Evaluation, RegressionEvaluation, evaluate
    from onlearn.models.model import Model
    from onlearn.models.stored_model import open_model
    from onlearn.models.train_options import TrainOptions
    from onlearn.models.training import train

__all__ = ["Evaluation", "Model", "RegressionEvaluation", "TrainOptions", "evaluate", "open_model", "train"]

_HOMES = {
    "evaluation": ("Evaluation", "RegressionEvaluation", "evaluate"),
    "model": ("Model",),
    "stored_model": ("open_model",),
    "train_options": ("TrainOptions",),
    "training": ("train",),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"onlearn.models.{home}"), name)
    raise AttributeError(f"module 'onlearn.models' has no attribute {name!r}")
