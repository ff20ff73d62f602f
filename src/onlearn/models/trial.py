"""A trial before training: which learning rate and how many passes do best on rows that are not learned from.

Too many passes over a small table overfit, too few do not converge, and no one rate of AdaGrad suits all tables. So
learners that differ in the rate learn from most of the rows, and the log-loss of the others is measured as passes go
by. Rates are climbed: the usual one first, then the next larger and smaller as long as that is better. Small tables are
cut into folds, each of which is held out in turn. The trial depends on rows and seed alone, so a run that is repeated
comes to the same choice; the model then learns from all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from onlearn.engine.csr import CSR, rows_at
from onlearn.engine.learner import Learner
from onlearn.models.plan import PASSES, Plan, takes_more_passes

RATES = (0.01, 0.03, 0.1, 0.3, 1.0)  # neighbours differ by as much as is worth a trial
LOOKS = (1, 2, 3, 4, 5, 7, 10, 14, 20)  # passes after which rows held out are scored
FEWEST_ROWS = 100  # from which the trial tells anything
FEWEST_PASSES = 2  # rows are kept for further passes anyway, and the first one finds scales and names
SAMPLE = 30_000  # rows of a trial, at most
WORK = 15_000_000  # values times classes of these rows, at most, unless that is fewer than
ENOUGH = 5_000  # rows
FOLDS = ((2_000, 5), (8_000, 2))  # up to so many rows, so many folds; from there on one tenth is held out
PATIENCE = 2  # looks without an improvement after which more passes are not tried
PLATEAU = 1.001  # a loss this many times the least is as good
BETTER = 0.997  # the loss of another rate is to be less than this part of the best so far
SURE = 1e-6  # the least probability, so that one row is not all


class Choice(NamedTuple):
    """A rate, a number of passes, and the mean log-loss of the rows held out."""

    rate: float
    passes: int
    loss: float


def choose(
    make: Callable[[float], Any],
    rows: tuple[CSR, np.ndarray, np.ndarray | None],
    rate: float,
    most: int,
    seed: int,
    rates: tuple[float, ...] = RATES,
) -> Choice | None:
    """The best rate and number of passes (up to ``most``); ``make`` makes a learner of a rate, ready to learn.

    The climb begins at ``rate``; without other ``rates`` only the passes are chosen. None if the rows are too few.
    """
    X, y, weight = rows
    if len(y) < FEWEST_ROWS:
        return None
    work = max(1, X.nnz // len(y)) * max(1, int(y.max()))  # of a row
    size = min(SAMPLE, max(ENOUGH, WORK // work))
    order = np.random.default_rng([seed, len(y)]).permutation(len(y))[:size]
    parts = folds(order)
    tried: dict[float, Choice] = {}

    def attempt(at: float) -> Choice:
        if at not in tried:
            learners = [(make(at), kept, held) for kept, held in parts]
            passes, loss = best_passes(learners, X, y, weight, most, seed)
            tried[at] = Choice(at, passes, loss)
        return tried[at]

    best = attempt(rate)
    for ladder in (sorted(r for r in rates if r > rate), sorted((r for r in rates if r < rate), reverse=True)):
        for step in ladder:
            if attempt(step).loss >= BETTER * best.loss:
                break
            best = tried[step]
        if best.rate != rate:
            break
    return best


def folds(order: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs of rows to learn from and rows to hold out."""
    count = next((count for size, count in FOLDS if len(order) <= size), 1)
    cuts = np.array_split(order, count if count > 1 else 10)
    return [(np.concatenate([cut for n, cut in enumerate(cuts) if n != k]), cuts[k]) for k in range(count)]


def best_passes(
    learners: list[tuple[Any, np.ndarray, np.ndarray]], X: CSR, y: np.ndarray, weight: Any, most: int, seed: int
) -> tuple[int, float]:
    """The number of passes after which the rows held out have the least loss, and that loss."""
    losses: dict[int, float] = {}
    held_rows = [rows_at(X, held) for _, _, held in learners]
    total = sum(np.ones(len(held)).sum() if weight is None else weight[held].sum() for _, _, held in learners)
    for turn in range(most):
        for learner, kept, _ in learners:
            order = kept[np.random.default_rng([seed, turn]).permutation(len(kept))]
            learner._learn_rows(X, y, weight, order, first=turn == 0)
            learner._end_pass()
        if turn + 1 not in LOOKS and turn + 1 != most:
            continue
        losses[turn + 1] = sum(
            log_loss(learner.predict_proba(rows), y[held], None if weight is None else weight[held])
            for (learner, _, held), rows in zip(learners, held_rows)
        ) / max(total, 1e-300)
        if min([*losses.values()][-PATIENCE:]) > min(losses.values()):
            break
    able = {count: loss for count, loss in losses.items() if count >= min(FEWEST_PASSES, most)}
    least = min(able.values())
    passes = min(count for count, loss in able.items() if loss <= PLATEAU * least)
    return passes, able[passes]


def log_loss(chances: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> float:
    """The sum of the log-losses of rows."""
    losses = -np.log(np.maximum(chances[np.arange(len(y)), y], SURE))
    return float(losses.sum() if weight is None else losses @ weight)


def is_free(plan: Plan) -> bool:
    """Whether the rate of the learner is the default, which a trial may change."""
    return plan.learner is None and "geometry" not in plan.choices


def tried(
    plan: Plan, learner: Any, features: Any, rows: Callable[[], tuple[Any, Any, Any]], counts: np.ndarray, most: int
) -> tuple[Any, int] | None:
    """The learner with the rate, and the number of passes up to ``most``, that a trial on the rows finds best.

    None if the plan, the learner or few rows leave nothing to try. ``counts`` are those of the labels.
    """
    if plan.passes is not None or not takes_more_passes(learner, features) or most <= PASSES:
        return None
    usual, free = learner.choices["geometry"], is_free(plan)

    def make(rate: float) -> Any:
        changed = {"geometry": f"{usual.name}({rate!r})"} if free else {}
        made = Learner(learner.name, **{**learner.get_params(), **changed})
        made._start(features.n_features_out_, counts, features.dtype)
        return made

    found = choose(make, rows(), usual.rate, most, plan.seed, RATES if free else ())
    if found is None:
        return None
    return (learner if found.rate == usual.rate else make(found.rate)), found.passes
