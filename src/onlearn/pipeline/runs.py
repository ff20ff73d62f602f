"""The kind of training run that suits a learner."""

from __future__ import annotations

from onlearn import data
from onlearn.pipeline.learning import Run
from onlearn.pipeline.model import Model
from onlearn.pipeline.plan import Plan, PlanError


def run_of(plan: Plan, model: Model | None = None, bad: data.BadRows | None = None) -> Run:
    """The kind of run that suits the learner of a plan, or of a model to go on with."""
    if model is not None and hasattr(model.learner, "kernel"):
        raise PlanError(
            "a kernel model cannot be gone on with: new rows may have features that its support examples lack; "
            "train anew on all data"
        )
    if not hasattr(plan.learner, "kernel"):
        return Run(plan, model, bad)
    from onlearn.pipeline.kernelruns import KernelRun  # not before it is needed: it takes a while to import

    return KernelRun(plan, model, bad)
