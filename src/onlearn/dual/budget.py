"""Training in the dual under a budget: the driver of `DualTraining`, over rows that hold to the budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.dual.budget_rows import BudgetRows, find_lacking
from onlearn.dual.policies import POLICIES
from onlearn.dual.scores import Examples
from onlearn.dual.supports import Slots
from onlearn.dual.training import LARGE, VALUES, DualTraining
from onlearn.engine.loops import UPDATES
from onlearn.engine.protocol import layout

HASHED = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # of splitmix64


class BudgetTraining(DualTraining):
    """The state of a learner with at most so many support examples."""

    supports: Slots
    forgets = True

    def limit(self, budget: int, policy: Any, seed: int) -> BudgetTraining:
        """Set the budget and what gives way when it is spent."""
        if self.stabilizer.every_hypothesis:
            raise ValueError(
                "a voted learner keeps all hypotheses as changes of weights and cannot have a budget: "
                "use the stabilizer 'averaged', 'survivor' or 'last'"
            )
        self.budget, self.policy = budget, policy
        self.width = 0  # slots that there is room for
        self.among = np.zeros(0)
        self.ages = np.zeros(budget + 2, dtype=np.int64)
        self.random = np.array([scrambled(seed)], dtype=np.uint64)
        self.numbers = np.zeros(0)
        return self

    def stand(self, data: Examples, cache_bytes: int) -> Any:
        """A data set, ready to be learned from in one pass or more."""
        return BudgetStanding(data, self.supports)

    def _take_supports_from(self, data: Examples, place: np.ndarray, prepare: Any) -> None:
        """The slots hold what they held; some of it may be no row at all."""

    def _block_size(self, standing: Any) -> int:
        most = max(1, VALUES // (len(self.supports) + 1))
        if len(self.supports) == self.budget and not getattr(self.policy, "adds_when_spent", True):
            return min(most, LARGE // 4)  # no columns of kernel values will be needed
        return min(most, self._size_by_steps())

    def _block(self, standing: Any, rows: np.ndarray, y: np.ndarray, weight: np.ndarray) -> None:
        """Learn from a block of rows."""
        data, count, size = standing.data, len(self.supports), len(rows)
        points = data.points.take(rows)
        self._make_room(size, points.dtype)
        width = self.width
        values = standing.room(size * width).reshape(size, width)
        if count:
            self.supports.products(points, out=values[:, :count])
        kept = data.raw if self.supports.kept is None else self.supports.kept.rows  # rows may come dense and sparse
        block = self.policy.rows(self.supports.kernel, kept)(
            data=values.reshape(-1),
            width=width,
            limit=self.budget + 1,
            own=standing.lengths[rows],
            length=standing.lengths[rows] + self.bias**2,
            columns=np.empty(0, dtype=points.dtype),
            slot=np.full(size, -1),
            row=rows,
            place=standing.place,
            owner=standing.owner,
            among=self.among,
            ages=self.ages,
            random=self.random,
            numbers=self.numbers,
            mix=np.zeros(width),
            used=np.array([count, 0, 0]),
            log=np.zeros(9 * size, dtype=np.int64),
            share=np.zeros(3 * size),
            lines=tuple(
                getattr(state, name)
                for state in (self.g, self.st)
                for name, holds in layout(type(state)).items()
                if holds == "weights"
            ),
            bias=self.bias,
        )
        before = self.tally[UPDATES]
        block = self._resolve(standing, rows, points, block, y, weight)
        entries = block.used[1]
        log = block.log[: 3 * entries].reshape(-1, 3)
        self.supports.replay(data.raw, points, rows, log, block.share[:entries], int(block.used[0]))
        self.features = len(self.supports)
        self.step_rate = 0.5 * self.step_rate + 0.5 * (self.tally[UPDATES] - before) / size

    def _make_room(self, more: int, dtype: np.dtype) -> None:
        """Room for more support examples, as far as the budget goes."""
        count, limit = len(self.supports), self.budget + 1
        if self.width < min(limit, count + more):
            width = min(limit, max(count + more, 3 * self.width // 2))
            if self.compares:
                square = np.zeros((width, width))
                square[:count, :count] = self.among.reshape(self.width, self.width)[:count, :count]
                self.among = square.reshape(-1)
            self.width = width
        self.grow(self.width, self.outputs)
        self.features = count
        if not len(self.numbers):
            self.numbers = self.policy.numbers(dtype)

    @property
    def compares(self) -> bool:
        """Whether the policy keeps something for every pair of support examples."""
        return bool(getattr(self.policy, "compares", True))

    def _fetch(self, standing: Any, rows: np.ndarray, points: Any, block: Any, start: int,
               lacking: np.ndarray) -> Any:  # fmt: skip
        """All of each column: support examples are compared with one another, wherever in the block they are."""
        old = block.columns.reshape(-1, len(rows))
        block.slot[lacking] = len(old) + np.arange(len(lacking))
        new = self.supports.kernel.block(points.take(lacking), points)
        return block._replace(columns=np.concatenate([old, new]).reshape(-1))

    def _lacking(self, block: BudgetRows, wanted: np.ndarray) -> np.ndarray:
        lacking = np.zeros(len(wanted), dtype=np.bool_)
        find_lacking(block, wanted, lacking)
        return wanted[lacking]

    def _survey(self, block: BudgetRows, start: int, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        # Nothing a policy does matters to it: one compiled loop serves all of them.
        return super()._survey(BudgetRows(*block), start, y, weight)

    # ------------------------------------------------------------------ saving

    def pack_more(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What ``pack`` and the support examples leave out, as plain facts and arrays."""
        count = len(self.supports) if self.compares else 0
        square = self.among.reshape(self.width, self.width)[:count, :count] if count else np.zeros((0, 0))
        facts = {"budget": self.budget, "policy": repr(self.policy), "step_rate": self.step_rate}
        arrays = {
            "budget.among": square[np.tril_indices(len(square))],
            "budget.ages": self.ages,
            "budget.random": self.random,
            "budget.numbers": self.numbers,
        }
        return facts, arrays

    def unpack_more(self, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> BudgetTraining:
        """Take in what ``pack_more`` put out; the support examples must be attached already."""
        budget, count = int(facts["budget"]), len(self.supports)
        if not 0 <= count <= budget or self.supports.budget != budget or self.features != count:
            raise ValueError("there are more support examples than the budget allows, or not as many as weights")
        self.limit(budget, POLICIES.get(facts["policy"]), 0)
        self.step_rate = float(facts["step_rate"])
        triangle, numbers = arrays["budget.among"], arrays["budget.numbers"]
        fresh = len(self.policy.numbers(np.dtype(np.float64)))
        if not len(numbers) and not count:  # nothing was learned yet
            fresh = 0
        if (
            triangle.shape != (count * (count + 1) // 2 if self.compares else 0,)
            or numbers.shape != (fresh,)
            or arrays["budget.ages"].shape != self.ages.shape
            or arrays["budget.random"].shape != (1,)
            or any(not np.isfinite(array).all() for array in (triangle, numbers))
        ):
            raise ValueError("the state of the budget does not have the shape that this learner has")
        self.ages, self.numbers = arrays["budget.ages"].astype(np.int64), numbers.astype(np.float64)
        self.random = arrays["budget.random"].astype(np.uint64)
        self.width = count
        if self.compares:
            square = np.zeros((count, count))
            square[np.tril_indices(count)] = triangle
            mirrored = np.tril(square, -1).T
            self.among = (square + mirrored if getattr(self.policy, "symmetric", True) else square).reshape(-1)
        return self


class BudgetStanding:
    """A data set that is learned from: which of its rows are support examples now."""

    def __init__(self, data: Examples, supports: Slots) -> None:
        self.data, self.supports = data, supports
        self.lengths = supports.kernel.diagonal(data.points)
        self.place = np.full(data.shape[0], -1, dtype=np.int64)
        self.owner = np.full(supports.budget + 1, -1, dtype=np.int64)
        self.shape, self.dtype = data.shape, data.dtype
        self.scratch = np.zeros(0, dtype=data.dtype)
        self.passes = 0  # that have begun

    def recognise(self) -> None:
        """Look which rows are support examples already."""
        self.place = self.supports.places(self.data)
        rows = np.flatnonzero(self.place >= 0)
        self.owner[self.place[rows]] = rows

    def begin_pass(self) -> None:
        """Nothing is kept from pass to pass but the support examples."""
        self.passes += 1

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All but the data, as plain facts and arrays."""
        return {"passes": self.passes}, {"place": self.place, "owner": self.owner}

    def restore(self, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Take in what ``pack`` put out; the support examples are those of then already."""
        place, owner = arrays["place"], arrays["owner"]
        for found, like, most in ((place, self.place, len(owner)), (owner, self.owner, len(place))):
            if found.shape != like.shape or found.dtype != like.dtype or not ((found >= -1) & (found < most)).all():
                raise ValueError("what is stored of the rows does not go with the rows")
        self.place, self.owner, self.passes = place, owner, int(facts["passes"])

    def room(self, size: int) -> np.ndarray:
        """Memory for kernel values, the same again and again."""
        if self.scratch.size < size:
            self.scratch = np.zeros(size, dtype=self.data.dtype)
        return self.scratch[:size]


def scrambled(seed: int) -> int:
    """A seed with all bits in use, and not zero (splitmix64: Steele, Lea & Flood 2014)."""
    mask = (1 << 64) - 1
    z = (seed + HASHED[0]) & mask
    z = ((z ^ (z >> 30)) * HASHED[1]) & mask
    z = ((z ^ (z >> 27)) * HASHED[2]) & mask
    return (z ^ (z >> 31)) or 1
