"""The same learners on Dask: data that one machine cannot read in reasonable time.

``fit`` and ``train`` learn, ``predict`` and ``evaluate`` use a model. Each name is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

_HOMES = {
    "ClusterError": "onlearn.errors",
    "connect": "onlearn.cluster.scheduler",
    "evaluate": "onlearn.cluster.prediction",
    "fit": "onlearn.cluster.training",
    "predict": "onlearn.cluster.prediction",
    "train": "onlearn.cluster.training",
}

__all__ = ["ClusterError", "connect", "evaluate", "fit", "predict", "train"]

if TYPE_CHECKING:
    from onlearn.cluster.prediction import evaluate, predict
    from onlearn.cluster.scheduler import connect
    from onlearn.cluster.training import fit, train
    from onlearn.errors import ClusterError


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module 'onlearn.cluster' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
