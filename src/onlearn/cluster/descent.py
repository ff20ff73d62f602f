"""L-BFGS over shards: each evaluation of the objective is one round, in which shards sum up losses and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.cluster.message import Message, pack
from onlearn.engine.objective import Problem, loss_and_gradient


def gradient_of(learner: Any, X: Any, rows: Any, order: np.ndarray, w: np.ndarray) -> Message:
    """The losses of some rows of a shard and their gradient; ``X`` has these rows alone."""
    problem = Problem.of(learner.training)
    numbers, weights = learner._numbered(rows.y, rows.weight, order)
    loss, gradient, total = loss_and_gradient(problem, X, learner.task.targets(numbers, problem.output), weights, w)
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
    where = {number: one for part in parts for number, one in part.facts["where"].items()}
    return message._replace(facts={**facts, "size": len(total), "where": where})


def sums_of(total: Message) -> tuple[float, np.ndarray, float]:
    """The sum of losses, its gradient, and the sum of the weights of rows."""
    arrays, facts = total.unpacked(), total.facts
    gradient = np.zeros(facts["size"])
    gradient[arrays["places"]] = arrays["gradient"]
    return facts["loss"], gradient, facts["weight"]
