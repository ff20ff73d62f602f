"""The parameters of a learner with a kernel: those of the linear learners, and its own, stated once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onlearn.dual.policies import POLICIES
from onlearn.engine.compositions import Composition
from onlearn.engine.spec import param, parameters


class KernelSettings:
    """The parameters that linear learners do not have, or have otherwise."""

    kernel: Any = param("gaussian", "the similarity of two examples", kind="other", allowed="a kernel or its formula")
    budget: int | None = param(
        None,
        "the most support examples there may be; None: as many as steps are made on",
        kind="whole",
        at_least=1,
        words=(None,),
    )
    budget_policy: Any = param(
        "project", "what happens when the budget is spent", kind="other", allowed="a policy or its spelling"
    )
    cache_mb: float = param(
        1024, "memory for kernel values that later passes need again, in MB", kind="number", at_least=0
    )
    representation: str = param(
        "dual",
        "'primal' learns weights of the kernel's features; 'auto' measures which is cheaper",
        words=("dual", "primal", "auto"),
    )
    time_limit: float | None = param(
        None,
        "seconds after which fit stops with what it has learned",
        kind="other",
        allowed="a number of seconds above 0, or None",
    )
    keep_stages: bool = param(
        False, "whether fit keeps the hypothesis after each pass; not with a budget", kind="truth"
    )
    intercept_scaling: float | str = param(
        1.0,
        "size of the constant feature; 'radius' is R = max sqrt(k(x, x)), so that a mistake moves b by r y R^2",
        kind="number",
        above=0,
        words=("radius",),
    )


class RegressionSettings(KernelSettings):
    """Those of a regressor."""

    init: str = param(
        "mean",
        "the constant to begin with: 'mean' is that of y, in a stream the first y",
        words=("mean", "zeros"),
    )
    damping: float | str = param(
        "mean",
        "errors are divided by k(x, x), but by no less than this; 'mean' is that of k(x, x) over the examples",
        kind="number",
        at_least=0,
        words=("mean",),
    )


KERNEL_CLASSIFIER = Composition(
    "KernelClassifier",
    "Learns a classifier in the feature space of a kernel, from examples one at a time.",
    fixed=dict(init="zeros", grow=False, max_names=1),
    own=parameters(dataclass(KernelSettings)),
    families={"budget_policy": POLICIES},
)

KERNEL_REGRESSOR = Composition(
    "KernelRegressor",
    "Learns a regression in the feature space of a kernel, from examples one at a time.",
    defaults=dict(rule="nlms", epochs=10),
    task="regress",
    fixed=dict(grow=False, max_names=1),
    own=parameters(dataclass(RegressionSettings)),
    families={"budget_policy": POLICIES},
)
