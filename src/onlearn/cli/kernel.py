"""The options of ``onlearn train`` about kernels."""

from __future__ import annotations

from typing import Any

import typer

OPTIONS = ("budget", "budget_policy", "cache_mb")
OF_FEATURES = ("numeric", "categorical", "ngrams", "chars", "weighting", "norm", "scale", "interact")


def flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def kernel_learner(asked: dict[str, Any], choices: dict[str, Any]) -> Any:
    """The kernel classifier that was asked for."""
    from onlearn import kernels
    from onlearn.dual.classifier import KernelClassifier

    for name in ("learner", "prune_weights"):
        if asked[name]:
            raise typer.BadParameter(f"{flag(name)} has no use with --kernel")
    try:
        kernel = kernels.get(asked["kernel"])
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(str(error), param_hint="--kernel") from None
    if kernel.data in ("strings", "trees"):
        for name in OF_FEATURES:
            if asked[name] not in (None, []):
                raise typer.BadParameter(f"{flag(name)} has no use with {kernel}, which compares texts as they are")
    given = {name: asked[name] for name in OPTIONS if asked[name] is not None}
    if "budget_policy" in given and "budget" not in given:
        raise typer.BadParameter("--budget-policy is about --budget, which is not given")
    made = KernelClassifier(asked["kernel"], **choices, **given)
    try:
        made._check_settings()
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None
    return made


def refuse_without_kernel(asked: dict[str, Any]) -> None:
    """What has a meaning only with a kernel."""
    for name in OPTIONS:
        if asked[name] is not None:
            raise typer.BadParameter(f"{flag(name)} is about --kernel, which is not given")


def told(learner: Any) -> dict[str, Any]:
    """The kernel and the support examples of a learner that has them."""
    if getattr(learner, "representation_", None) != "dual":
        return {}
    return {"kernel": str(learner._kernel), "support_examples": learner.n_support_}
