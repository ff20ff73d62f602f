"""Training in the dual under a budget: ``DualTraining`` over rows that keep to the budget.

A policy (``policies``) decides what happens when there is one support example more than the budget allows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.dual.budget_rows import BudgetRows, find_missing_columns
from onlearn.dual.examples import Examples
from onlearn.dual.policies import POLICIES, Policy
from onlearn.dual.supports import SUPPORT, SupportSlots
from onlearn.dual.training import LARGE, VALUES, DualTraining
from onlearn.engine.loops import UPDATES
from onlearn.engine.protocol import layout
from onlearn.kernels.formula import unpack_rows
from onlearn.model_schema import FINITE, TEXT, Arrays, Record, check_facts, under, whole

SPLITMIX = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # constants of splitmix64
LARGEST = 1e150  # of kernel values with each other, whose squares are summed


class BudgetTrainingSet:
    """A data set to learn from, and which of its rows are support examples now."""

    data: Examples
    supports: SupportSlots
    slot_of: np.ndarray
    row_in: np.ndarray
    passes: int

    def __init__(self, data: Examples, supports: SupportSlots) -> None:
        self.data, self.supports = data, supports
        self.diagonal: Any = supports.kernel.diagonal(data.points)
        self.slot_of = np.full(data.shape[0], -1, dtype=np.int64)  # slot that each row was last in, or -1
        self.row_in = np.full(supports.budget + 1, -1, dtype=np.int64)  # row in each slot, or -1
        self.values_buffer = np.zeros(0, dtype=data.dtype)
        self.passes = 0  # that have begun

    def find_supports(self) -> None:
        """Find the rows that are support examples already."""
        self.slot_of = self.supports.match(self.data)
        rows = np.flatnonzero(self.slot_of >= 0)
        self.row_in[self.slot_of[rows]] = rows

    def begin_pass(self) -> None:
        """Count a pass; nothing but the support examples is kept from pass to pass."""
        self.passes += 1

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All but the data, as plain facts and arrays."""
        return {"passes": self.passes}, {"place": self.slot_of, "owner": self.row_in}

    def restore(self, facts: dict[str, Any], arrays: Arrays) -> None:
        """Restore what ``pack`` described; the support examples must be restored already."""
        slot_of, row_in = arrays["place"], arrays["owner"]
        for found, like, most in ((slot_of, self.slot_of, len(row_in)), (row_in, self.row_in, len(slot_of))):
            if found.shape != like.shape or found.dtype != like.dtype or not ((found >= -1) & (found < most)).all():
                raise ValueError("the stored slots do not fit the rows")
        self.slot_of, self.row_in, self.passes = slot_of, row_in, int(facts["passes"])

    def value_array(self, rows: int, columns: int) -> np.ndarray:
        """An array for kernel values, in memory that is reused."""
        if self.values_buffer.size < rows * columns:
            self.values_buffer = np.zeros(rows * columns, dtype=self.data.dtype)
        return self.values_buffer[: rows * columns].reshape(rows, columns)


class BudgetTraining(DualTraining):
    """The state of a learner with a limited number of support examples."""

    budget: int
    policy: Policy
    arrivals: np.ndarray
    policy_state: np.ndarray

    supports: SupportSlots
    forgets = True

    def set_budget(self, budget: int, policy: Policy, seed: int) -> BudgetTraining:
        """Set the budget, and the policy when it is spent."""
        if self.stabilizer.every_hypothesis:
            raise ValueError(
                "a voted learner keeps all hypotheses as changes of weights, so it cannot have a budget: "
                "use the stabilizer 'averaged', 'survivor' or 'last'"
            )
        self.budget, self.policy = budget, policy
        self.width = 0  # slots that are allocated
        self.gram = np.zeros(0)
        self.arrivals = np.zeros(budget + 2, dtype=np.int64)
        self.random = np.array([splitmix64(seed)], dtype=np.uint64)
        self.policy_state = np.zeros(0)
        return self

    def prepare(self, data: Examples, cache_bytes: int, stored: dict[str, Any] | None = None) -> BudgetTrainingSet:
        """Prepare a data set for one pass or several."""
        return BudgetTrainingSet(data, self.supports)

    def _rebuild_supports(self, data: Examples, support_of: np.ndarray, make_points: Any) -> None:
        """Leave the slots as they are; blended points are no rows of the data."""

    def _block_size(self, dataset: Any) -> int:
        most = max(1, VALUES // (len(self.supports) + 1))
        if len(self.supports) == self.budget and not self.policy.adds_when_spent:
            return min(most, LARGE // 4)  # steps need no columns of kernel values
        return min(most, self._size_by_steps())

    def _block(self, dataset: Any, rows: np.ndarray, y: np.ndarray, weight: np.ndarray) -> None:
        """Learn from a block of rows."""
        data, count, size = dataset.data, len(self.supports), len(rows)
        points = data.points.take(rows)
        self._allocate(size, points.dtype)
        width = self.width
        values = dataset.value_array(size, width)
        if count:
            self.supports.products(points, out=values[:, :count])
        stored = data.raw if self.supports.slots is None else self.supports.slots.rows  # of the first type that came
        block = self.policy.rows(self.supports.kernel, stored)(
            data=values.reshape(-1),
            width=width,
            capacity=self.budget + 1,
            diagonal=dataset.diagonal[rows],
            sqnorms=dataset.diagonal[rows] + self.bias**2,
            columns=np.empty(0, dtype=points.dtype),
            column_of=np.full(size, -1),
            row=rows,
            slot_of=dataset.slot_of,
            row_in=dataset.row_in,
            gram=self.gram,
            arrivals=self.arrivals,
            random=self.random,
            policy_state=self.policy_state,
            coefficients=np.zeros(width),
            counts=np.array([count, 0, 0]),
            log=np.zeros(9 * size, dtype=np.int64),
            shares=np.zeros(3 * size),
            weight_arrays=tuple(
                getattr(state, name)
                for state in (self.g, self.st)
                for name, holds in layout(type(state)).items()
                if holds == "weights"
            ),
            bias=self.bias,
        )
        before = self.tally[UPDATES]
        block = self._learn_block(dataset, rows, points, block, y, weight)
        entries = block.counts[1]
        log = block.log[: 3 * entries].reshape(-1, 3)
        self.supports.apply_log(data.raw, points, rows, log, block.shares[:entries], int(block.counts[0]))
        self.features = len(self.supports)
        self.step_rate = 0.5 * self.step_rate + 0.5 * (self.tally[UPDATES] - before) / size

    def _allocate(self, more: int, dtype: np.dtype) -> None:
        """Allocate slots for more support examples, as far as the budget goes."""
        count, capacity = len(self.supports), self.budget + 1
        if self.width < min(capacity, count + more):
            width = min(capacity, max(count + more, 3 * self.width // 2))
            if self.policy.keeps_gram:
                square = np.zeros((width, width))
                square[:count, :count] = self.gram.reshape(self.width, self.width)[:count, :count]
                self.gram = square.reshape(-1)
            self.width = width
        self.grow(self.width, self.outputs)
        self.features: int = count
        if not len(self.policy_state):
            self.policy_state = self.policy.initial_state(dtype)

    def _add_columns(self, scores: Any, rows: np.ndarray, points: Any, block: Any, start: int,
                     missing: np.ndarray) -> Any:  # fmt: skip
        """The block with the missing columns, over all its rows: policies compare support examples with each other."""
        old = block.columns.reshape(-1, len(rows))
        block.column_of[missing] = len(old) + np.arange(len(missing))
        new = self.supports.kernel.block(points.take(missing), points)
        return block._replace(columns=np.concatenate([old, new]).reshape(-1))

    def _missing_columns(self, block: BudgetRows, wanted: np.ndarray) -> np.ndarray:
        missing = np.zeros(len(wanted), dtype=np.bool_)
        find_missing_columns(block, wanted, missing)
        return wanted[missing]

    def _survey(self, block: BudgetRows, order: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        # A survey makes no step, so it does not depend on the policy: one compiled loop serves all of them.
        return super()._survey(BudgetRows(*block), order, y, weight)

    # ------------------------------------------------------------------ the model file

    def pack_supports(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        facts, arrays = super().pack_supports()
        facts["budget"], more = self.pack_budget()
        return facts, {**arrays, **more}

    def unpack_supports(self, kernel: Any, facts: dict[str, Any], arrays: Arrays) -> None:
        check_facts(facts, BUDGETED, "dual")
        stored, budget = facts["support"], facts["budget"]["budget"]
        if arrays["budget.ages"].shape != (budget + 2,):  # before memory for as many is asked for
            raise ValueError("the state of the budget does not have the shape that this learner has")
        some = None if stored["kind"] == "none" else unpack_rows(stored, under("support.", arrays))
        self.attach(SupportSlots(kernel, budget, some))
        self.unpack_budget(facts["budget"], arrays)

    def pack_budget(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The state of the budget as plain facts and arrays, in addition to ``pack`` and the support examples."""
        count = len(self.supports) if self.policy.keeps_gram else 0
        square = self.gram.reshape(self.width, self.width)[:count, :count] if count else np.zeros((0, 0))
        facts = {"budget": self.budget, "policy": repr(self.policy), "step_rate": self.step_rate}
        arrays = {
            "budget.among": square[np.tril_indices(len(square))],
            "budget.ages": self.arrivals,
            "budget.random": self.random,
            "budget.numbers": self.policy_state,
        }
        return facts, arrays

    def unpack_budget(self, facts: dict[str, Any], arrays: Arrays) -> BudgetTraining:
        """Restore what ``pack_budget`` described; the support examples must be attached already."""
        check_facts(facts, BUDGET, "budget")
        budget, count = facts["budget"], len(self.supports)
        if not 0 <= count <= budget or self.supports.budget != budget or self.features != count:
            raise ValueError("there are more support examples than the budget allows, or not as many as weights")
        self.set_budget(budget, POLICIES.get(facts["policy"]), 0)
        self.step_rate = float(facts["step_rate"])
        triangle, state = arrays["budget.among"], arrays["budget.numbers"]
        if triangle.ndim != 1 or state.ndim != 1:
            raise ValueError("the state of the budget does not have the shape that this learner has")
        diagonal = np.cumsum(np.arange(1, count + 1)) - 1 if len(triangle) else np.zeros(0, np.int64)
        started = bool(len(state) or count)  # else nothing has been learned yet
        size = len(self.policy.initial_state(np.dtype(np.float64))) if started else 0
        if (
            triangle.shape != (count * (count + 1) // 2 if self.policy.keeps_gram else 0,)
            or state.shape != (size,)
            or arrays["budget.ages"].shape != self.arrivals.shape
            or arrays["budget.ages"].dtype != np.int64
            or arrays["budget.random"].shape != (1,)
            or arrays["budget.random"].dtype != np.uint64
            or any(array.dtype != np.float64 for array in (triangle, state))
            or (np.abs(triangle) > LARGEST).any()
            or (not self.policy.symmetric and (triangle[diagonal] <= 0.0).any())
        ):
            raise ValueError("the state of the budget does not have the shape that this learner has")
        self.arrivals, self.policy_state = arrays["budget.ages"], state
        self.random = arrays["budget.random"]
        self.width = count
        if self.policy.keeps_gram:
            square = np.zeros((count, count))
            square[np.tril_indices(count)] = triangle
            mirrored = np.tril(square, -1).T
            self.gram = (square + mirrored if self.policy.symmetric else square).reshape(-1)
        return self


BUDGET = Record(budget=whole(1), policy=TEXT, step_rate=FINITE)
BUDGETED = Record({**BudgetTraining.SUPPORTS.facts, "support": SUPPORT, "budget": BUDGET})


def splitmix64(seed: int) -> int:
    """A 64-bit state that is not zero, from a seed (splitmix64: Steele, Lea & Flood 2014)."""
    mask = (1 << 64) - 1
    z = (seed + SPLITMIX[0]) & mask
    z = ((z ^ (z >> 30)) * SPLITMIX[1]) & mask
    z = ((z ^ (z >> 27)) * SPLITMIX[2]) & mask
    return (z ^ (z >> 31)) or 1
