"""The parameters of support vector machines, stated once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onlearn.engine.compositions import PARAMETERS, Composition
from onlearn.engine.spec import Parameter, param, parameters
from onlearn.svm.multiclass import KINDS
from onlearn.svm.probabilities import CALIBRATIONS

SECONDS = "a number of seconds above 0, or None"


class Shared:
    """The parameters of classification and regression."""

    kernel: Any = param("gaussian", "the similarity of two examples", kind="other", allowed="a kernel or its formula")
    C: float = param(1.0, "the price of an example within the margin, or on the wrong side", kind="number", above=0)
    solver: str = param(
        "smo",
        "'smo': pairs of variables; 'ascent': one after another, without an intercept; 'qp': a QP package (qpsolvers)",
        words=("smo", "ascent", "qp"),
    )
    fit_intercept: Any = param(
        "auto",
        "whether there is an intercept, and so the constraint sum a_i y_i = 0; 'auto': unless the solver is 'ascent'",
        kind="truth",
        words=("auto",),
        allowed="True, False or 'auto'",
    )
    tol: float = param(1e-3, "the largest violation of the KKT conditions to stop at", kind="number", above=0)
    max_iter: int | None = param(
        None, "the most iterations for a problem of two classes", kind="whole", at_least=1, words=(None,)
    )
    time_limit: float | None = param(
        None, "seconds after which fit stops with what it has", kind="number", above=0, words=(None,), allowed=SECONDS
    )
    cache_mb: float = param(1024, "memory for kernel values, in MB", kind="number", above=0)
    chunk_size: int | None = param(
        None,
        "examples that are learned from at a time, beside the support vectors; None: all at once",
        kind="whole",
        at_least=2,
        words=(None,),
    )
    chunk_keep: int | None = param(
        None,
        "support vectors that are kept from chunk to chunk, those of the largest weights; None: all",
        kind="whole",
        at_least=2,
        words=(None,),
    )


class OfClasses:
    """The parameters of classification alone."""

    multiclass: str = param(
        "one-vs-one", "how three or more classes are learned: in pairs, or each against all others", words=KINDS
    )
    calibration: Any = param(
        "loo",
        "which scores probabilities are fitted to: 'loo' (of examples left out, estimated), 'cv(5)' or 'none'",
        kind="other",
        allowed="'loo', 'cv', 'cv(folds)' or 'none'",
    )


class OfNumbers:
    """The parameters of regression alone."""

    epsilon: float = param(0.1, "errors up to this are none", kind="number", at_least=0)


SHARED = parameters(dataclass(Shared))


def _ordered(owner: type, *names: str) -> dict[str, Parameter]:
    """The parameters of a class, and those that it shares with the other and with linear learners, in this order."""
    every = {**PARAMETERS, **SHARED, **parameters(owner)}
    return {name: every[name] for name in names}


SOLVING = ("tol", "max_iter", "time_limit", "cache_mb", "chunk_size", "chunk_keep")

SVC = Composition(
    "SVC",
    "The support vector machine with a soft margin, in the feature space of a kernel.",
    own=_ordered(
        dataclass(OfClasses),
        *("kernel", "C", "solver", "fit_intercept", "multiclass", *SOLVING, "class_weight", "calibration"),
        *("random_state", "verbose"),
    ),
    families={"calibration": CALIBRATIONS},
    shared=(),
)

SVR = Composition(
    "SVR",
    "Support vector regression: the flattest function of a kernel's feature space within epsilon of most examples.",
    task="regress",
    own=_ordered(
        dataclass(OfNumbers),
        *("kernel", "C", "epsilon", "solver", "fit_intercept", *SOLVING, "random_state", "verbose"),
    ),
    shared=(),
)
