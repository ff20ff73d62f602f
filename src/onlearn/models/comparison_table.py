"""The result of a comparison of learners: their figures, and which differences are more than noise."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Entry:
    """One learner: how good it was on the test rows, what it cost, and how it got there; None where not measured.

    With folds, figures are means over them, and ``low`` and ``high`` the interval of the accuracy or RMSE.
    """

    name: str
    learner: str | None = None  # spelled in full
    peer: bool = False
    accuracy: float | None = None
    log_loss: float | None = None
    rmse: float | None = None
    mae: float | None = None
    low: float | None = None
    high: float | None = None
    mistakes: int | None = None
    seconds: float | None = None
    memory_bytes: int | None = None
    model_bytes: int | None = None
    curve: tuple[dict[str, Any], ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class Pair:
    """The best learner, ``a``, against another, ``b``: a positive difference is in favour of the best.

    By log-loss, the best is the one of the highest accuracy that has probabilities. ``adjusted`` is the p-value by
    Holm's method, and ``shown`` whether it is below 5 %: more than noise explains.
    """

    a: str
    b: str
    measure: str  # accuracy, log_loss or squared_error
    test: str  # mcnemar, bootstrap or corrected-t
    difference: float
    low: float
    high: float
    p: float
    adjusted: float
    shown: bool

    def verdict(self) -> str:
        """A few words, such as ``worse by 0.0123 (p 0.002)``."""
        chance = f"p {self.adjusted:.2g}" if self.adjusted >= 0.001 else "p < 0.001"
        if not self.shown:
            return f"no difference shown ({chance})"
        return f"{'worse' if self.difference > 0 else 'better'} by {abs(self.difference):.4g} ({chance})"


@dataclass(frozen=True)
class ComparisonTable:
    """The result of ``compare``, the best learner first; it prints as a table."""

    data: tuple[str, ...]
    task: str
    rows: int
    test_rows: int
    tested_on: str
    seed: int
    learners: tuple[Entry, ...]
    pairs: tuple[Pair, ...]
    notes: tuple[str, ...] = ()
    bad_rows: int = 0
    stopped: bool = False

    @property
    def best(self) -> Entry | None:
        """The learner with the highest accuracy, or the smallest squared error; None if all failed."""
        return next((one for one in self.learners if one.error is None), None)

    def pair(self, name: str, measure: str | None = None) -> Pair | None:
        """The best against the learner of a name, by accuracy or the squared error unless a measure is named."""
        measures = ("accuracy", "squared_error") if measure is None else (measure,)
        return next((one for one in self.pairs if one.b == name and one.measure in measures), None)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON."""
        made = {one.name: getattr(self, one.name) for one in fields(self)}
        made["data"] = list(self.data)
        made["notes"] = list(self.notes)
        made["learners"] = [{**vars(one), "curve": list(one.curve)} for one in self.learners]
        made["pairs"] = [dict(vars(one)) for one in self.pairs]
        made["best"] = None if self.best is None else self.best.name
        return made

    def table(self) -> list[list[str]]:
        """The figures of the learners that did not fail as cells, a header first."""
        regression = self.task == "regress"
        figures = ["RMSE", "MAE"] if regression else ["accuracy", "log-loss", "mistakes"]
        lines = [["learner", *figures, "seconds", "memory", "model"]]
        for one in (one for one in self.learners if one.error is None):
            known = [one.rmse, one.mae] if regression else [one.accuracy, one.log_loss]
            form = "{:.5g}" if regression else "{:.4f}"
            shown = ["-" if value is None else form.format(value) for value in known]
            if one.low is not None and one.high is not None:
                shown[0] += f" [{form.format(one.low)}, {form.format(one.high)}]"
            counted = [] if regression else ["-" if one.mistakes is None else f"{one.mistakes:,}"]
            seconds = "-" if one.seconds is None else f"{one.seconds:.2f}"
            sizes = as_size(one.memory_bytes), as_size(one.model_bytes)
            lines.append([one.name, *shown, *counted, seconds, *sizes])
        return lines

    def verdicts(self) -> list[list[str]]:
        """Each other learner against the best as cells, a header first; only that if there is nothing to compare."""
        best = {one.measure: one.a for one in self.pairs}  # the first that has the measure, of those in order
        lines = [["compared", *(f"{measure.replace('_', ' ')}, with {name}" for measure, name in best.items())]]
        for one in self.learners:
            pairs = [self.pair(one.name, measure) for measure in best]
            if any(pair is not None for pair in pairs):
                lines.append([one.name, *("-" if pair is None else pair.verdict() for pair in pairs)])
        return lines

    def failures(self) -> list[list[str]]:
        """The learners that failed, and why, a header first."""
        return [["failed", "why"], *([one.name, one.error] for one in self.learners if one.error is not None)]

    def __str__(self) -> str:
        parts = [table for table in (self.table(), self.verdicts(), self.failures()) if len(table) > 1]
        head = f"{self.rows:,} rows to learn from, {self.tested_on}"
        return "\n\n".join([head, *("\n".join(in_columns(table)) for table in parts)])

    __repr__ = __str__


def in_columns(table: list[list[str]]) -> list[str]:
    """The lines of a table, its first column to the left."""
    widths = [max(len(line[n]) for line in table) for n in range(len(table[0]))]
    numbers = [table[-1][n][:1].isdigit() or table[-1][n] == "-" for n in range(len(widths))]
    return [
        "  ".join(
            cell.rjust(width) if number and n else cell.ljust(width)
            for n, (cell, width, number) in enumerate(zip(line, widths, numbers))
        ).rstrip()
        for line in table
    ]


def as_size(count: int | None) -> str:
    """A number of bytes in short.

    >>> as_size(1_234_567), as_size(999), as_size(None)
    ('1.2 MB', '999 B', '-')
    """
    if count is None:
        return "-"
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
