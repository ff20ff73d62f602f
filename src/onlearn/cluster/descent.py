"""L-BFGS over shards: each evaluation of the objective is one round, in which shards sum up losses and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onlearn.cluster.message import Message, pack
from onlearn.engine.objective import Objective, Problem, loss_and_gradient, scale_of

TOL = 1e-5  # part by which the objective must fall over the latest iterations


def gradient_of(problem: Problem, learner: Any, X: Any, y: np.ndarray, weight: Any, w: np.ndarray) -> Message:
    """The losses of the rows of a shard and their gradient, as places and numbers."""
    numbers, weights = learner._numbered(y, weight, np.arange(len(y)))
    targets = learner.task.targets(numbers, problem.output)
    loss, gradient, total = loss_and_gradient(problem, X, targets, weights, w)
    places = np.flatnonzero(gradient)
    message = pack(None, {"places": places, "gradient": gradient[places]})
    return message._replace(facts={"loss": loss, "weight": total, "size": len(gradient), "moved": message.nbytes})


def added(parts: list[Message]) -> Message:
    """The sum of losses and gradients, in the order of the parts."""
    total = np.zeros(parts[0].facts["size"])
    for part in parts:
        arrays = part.unpacked()
        total[arrays["places"]] += arrays["gradient"]
    places = np.flatnonzero(total)
    message = pack(None, {"places": places, "gradient": total[places]})
    facts = {name: sum(part.facts[name] for part in parts) for name in ("loss", "weight", "moved")}
    facts["moved"] += message.nbytes
    return message._replace(facts={**facts, "size": len(total)})
