"""What solving did: the report of a support vector machine, for each of its problems and in all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from onlearn.model_schema import COUNT, NUMBER, Kind, ListOf, Record, check_facts, either, one_of, whole
from onlearn.svm.multiclass import REST, Machine
from onlearn.svm.problem import Solution

REASONS = ("tol", "precision", "iterations", "time", "interrupt")  # why a solver stops, from good to bad
IN_WORDS = {
    "tol": "it converged",
    "precision": "rounding allows no further progress, for tol is too small",
    "iterations": "max_iter was reached",
    "time": "the time was up",
    "interrupt": "it was interrupted",
}
MEGABYTE = 1 << 20


class ProblemReport(NamedTuple):
    """What solving one problem did. ``positive`` and ``negative`` are the numbers of its classes; -1: all others."""

    positive: int
    negative: int
    examples: int
    iterations: int
    objective: float  # of the dual problem
    gap: float | None  # of the primal objective above the dual one; not known of chunks
    violation: float  # the largest of the KKT conditions
    free: int  # support vectors with 0 < alpha < C
    bounded: int  # with alpha = C
    norm: float  # |w|
    seconds: float
    stopped: str

    @property
    def margin(self) -> float:
        """2 / |w|: how far apart the two sides are."""
        return 2.0 / self.norm if self.norm > 0 else float("inf")

    @classmethod
    def of(cls, machine: Machine, solution: Solution, upper: np.ndarray, seconds: float) -> ProblemReport:
        """The report of a solution of a problem with these bounds."""
        alpha = solution.alpha
        square = float(alpha @ (solution.gradient - machine.linear))  # a'Qa
        return cls(
            machine.positive,
            machine.negative,
            machine.size,
            int(solution.iterations),
            float(solution.objective),
            float(solution.gap),
            float(solution.violation),
            int(np.count_nonzero((alpha > 0) & (alpha < upper))),
            int(np.count_nonzero((alpha > 0) & (alpha >= upper))),
            float(np.sqrt(max(0.0, square))),
            seconds,
            solution.stopped,
        )


PROBLEM = Record(
    {
        **dict.fromkeys(("examples", "iterations", "free", "bounded"), COUNT),
        **dict.fromkeys(("objective", "violation", "norm", "seconds"), NUMBER),
        **dict.fromkeys(("positive", "negative"), whole(REST)),
        "gap": either(None, NUMBER),
        "stopped": one_of(*REASONS),
    }
)
SHARED: dict[str, Kind] = {"seconds": NUMBER, "memory": COUNT, "values": COUNT, "sweeps": COUNT}
REPORT = Record({"problems": ListOf(PROBLEM, "problems"), **SHARED})


class Report(NamedTuple):
    """What learning did: the reports of the problems, and what they share."""

    problems: tuple[ProblemReport, ...]
    seconds: float
    memory: int  # bytes of kernel values that were kept
    values: int  # kernel values that were computed
    sweeps: int = 0  # over chunks of the data; 0: all at once

    @property
    def iterations(self) -> int:
        return sum(one.iterations for one in self.problems)

    @property
    def objective(self) -> float:
        return float(sum(one.objective for one in self.problems))

    @property
    def gap(self) -> float | None:
        """The duality gap, of all problems together; None if it is not known."""
        gaps = [one.gap for one in self.problems if one.gap is not None]
        return float(sum(gaps)) if len(gaps) == len(self.problems) else None

    @property
    def violation(self) -> float:
        return max(one.violation for one in self.problems)

    @property
    def free(self) -> int:
        return sum(one.free for one in self.problems)

    @property
    def bounded(self) -> int:
        return sum(one.bounded for one in self.problems)

    @property
    def margin(self) -> float:
        """2 / |w|, of several problems the smallest."""
        return min(one.margin for one in self.problems)

    @property
    def stopped(self) -> str:
        """Why: "tol", or the worst of the other reasons."""
        return max((one.stopped for one in self.problems), key=REASONS.index)

    def to_dict(self) -> dict[str, Any]:
        """All numbers by name; numbers that are infinite are None, as JSON has none."""
        made = {name: getattr(self, name) for name in (
            "iterations", "objective", "gap", "violation", "free", "bounded", "margin", "seconds", "memory", "values",
            "sweeps", "stopped",
        )}  # fmt: skip
        problems = [{**one._asdict(), "margin": one.margin} for one in self.problems]
        return {**_finite(made), "problems": [_finite(one) for one in problems]}

    def described(self) -> dict[str, Any]:
        """What commands tell: the numbers in all, under their usual names."""
        made = self.to_dict()
        names = {
            "free": "free",
            "bounded": "at_C",
            "iterations": "iterations",
            "objective": "objective",
            "gap": "duality_gap",
            "violation": "KKT_violation",
            "margin": "margin",
            "values": "kernel_values",
            "memory": "bytes_of_kernel_values",
        }
        told = {
            name: made[key] for key, name in names.items() if made[key] is not None and (made[key] or key != "values")
        }
        swept = {"sweeps": self.sweeps} if self.sweeps else {}
        return {**told, **swept, "solver": f"{self.seconds:.3g} s; {IN_WORDS[self.stopped]}"}

    def __str__(self) -> str:
        several = f" in {len(self.problems)} problems" if len(self.problems) > 1 else ""
        swept = f", {self.sweeps} sweeps over chunks" if self.sweeps else ""
        computed = f"{self.values:,} kernel values computed, " if self.values else ""
        gap = "" if self.gap is None else f", duality gap {self.gap:.3g}"
        return "\n".join([
            f"{self.iterations:,} iterations{several}{swept}, {self.seconds:.3g} s; {IN_WORDS[self.stopped]}",
            f"objective {self.objective:.6g}{gap}, largest KKT violation {self.violation:.3g}",
            f"support vectors: {self.free:,} free, {self.bounded:,} at C; margin 2/|w| = {self.margin:.4g}",
            f"{computed}{self.memory / MEGABYTE:,.0f} MB of kernel values kept",
        ])  # fmt: skip

    # ------------------------------------------------------------------ the model file

    def pack(self) -> dict[str, Any]:
        return {**self._asdict(), "problems": [one._asdict() for one in self.problems]}

    @classmethod
    def unpack(cls, facts: dict[str, Any]) -> Report:
        check_facts(facts, REPORT, "report")
        if not facts["problems"]:
            raise ValueError("the report of the solver has no problems")
        made = tuple(ProblemReport(**{name: one[name] for name in ProblemReport._fields}) for one in facts["problems"])
        return cls(made, *(facts[name] for name in SHARED))


def _finite(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: None if isinstance(one, float) and not np.isfinite(one) else one for name, one in facts.items()}


def name_of(machine: Machine, classes: Any) -> str:
    """What a problem is about, in a progress bar."""
    if classes is None:
        return "regression"
    other = "the rest" if machine.negative == REST else classes[machine.negative]
    return f"{classes[machine.positive]} against {other}"


@contextmanager
def progress_bar(verbose: int, problems: int) -> Iterator[Callable[[int, str, int, float], None] | None]:
    """A bar of the problems that are solved: call it with (problem, name, iterations, violation)."""
    if not verbose:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("solving"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("problems; {task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns) as bar:
        task = bar.add_task("", total=problems)

        def show(problem: int, name: str, iterations: int, violation: float) -> None:
            bar.update(task, completed=problem, description=f"{name}: step {iterations:,}, violation {violation:.2g}")

        yield show
