"""The kind of training run that suits a learner."""

from __future__ import annotations

from onlearn import data
from onlearn.pipeline.learning import Run
from onlearn.pipeline.model import Model
from onlearn.pipeline.plan import Plan, PlanError


def run_of(plan: Plan, model: Model | None = None, bad: data.BadRows | None = None) -> Run:
    """The kind of run that suits the learner of a plan, or of a model to go on with."""
    learner = plan.learner if model is None else model.learner
    if getattr(learner, "representation_", "dual") == "primal":
        raise PlanError("the model has weights of its kernel's features, which only Python can go on with")
    if not hasattr(learner, "kernel"):
        return Run(plan, model, bad)
    from onlearn.pipeline.kernelruns import KernelRun  # not before it is needed: it takes a while to import

    return KernelRun(plan, model, bad)
