"""The parameters of k nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onlearn.engine.compositions import PARAMETERS, Composition
from onlearn.engine.spec import param, parameters
from onlearn.neighbors.distances import METRICS


class NeighborSettings:
    """What both the classifier and the regression have."""

    k: int | str = param(
        5, "how many neighbours vote; 'auto': as many as make the fewest errors, each row left out in turn",
        kind="whole", at_least=1, words=("auto",),
    )  # fmt: skip
    weights: str = param(
        "uniform", "whether all neighbours count alike, or by 1 / distance", words=("uniform", "distance")
    )
    metric: str = param(
        "mixed", "the distance of two rows; 'mixed' is Euclidean where all columns are numbers", words=METRICS
    )
    kernel: Any = param(
        None, "a kernel whose feature space distances are taken in, instead of a metric", kind="other",
        allowed="a kernel, its formula, or None",
    )  # fmt: skip
    scale: bool = param(
        True, "whether columns of numbers are brought to mean 0 and variance 1 for metrics that depend on their units",
        kind="truth",
    )  # fmt: skip
    categorical: Any = param(
        None, "the columns that hold categories, besides those of a table that are not numbers", kind="other",
        allowed="a list of names or numbers of columns, or None",
    )  # fmt: skip
    column_weights: Any = param(
        None, "how much each column counts", kind="other",
        allowed="a list of one number a column, a dict by names or numbers of columns, or None",
    )  # fmt: skip
    k_max: int = param(50, "the largest k that 'auto' tries", kind="whole", at_least=1)
    window: int | None = param(
        None, "how many of the latest rows are kept; None: all", kind="whole", at_least=1, words=(None,)
    )
    engine: str = param(
        "exact",
        "'faiss' searches with that package, which may miss neighbours in many rows; 'auto' from a million rows on",
        words=("exact", "auto", "faiss"),
    )


OWN = {**parameters(dataclass(NeighborSettings)), **{name: PARAMETERS[name] for name in ("grow", "max_names")}}

KNN_CLASSIFIER = Composition(
    "KNNClassifier", "Predicts the class that most of the k nearest rows have.", shared=(), own=OWN
)
KNN_REGRESSOR = Composition(
    "KNNRegressor", "Predicts the mean of the k nearest rows.", task="regress", shared=(), own=OWN
)
