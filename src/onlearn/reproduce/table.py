"""A table of test errors, ours beside the published ones; and the folder of a data set."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


class MissingDataError(FileNotFoundError):
    """The data of a published table are missing or damaged."""


@dataclass(frozen=True)
class Row:
    """The errors of a learner, the published errors where there are any, and our goals."""

    name: str
    ours: list[float]
    published: list[float | None]
    goal: list[float | None]
    seconds: float
    mean: list[float] | None = None  # of our errors over several seeds
    seeds: int = 1

    @property
    def reached(self) -> bool:
        return all(goal is None or ours <= goal for ours, goal in zip(self.ours, self.goal, strict=True))


@dataclass(frozen=True)
class Table:
    """Test errors: a row for each learner, a column for each setting."""

    title: str
    columns: list[str]
    rows: list[Row] = field(default_factory=list)

    @property
    def reached(self) -> bool:
        """Whether all goals are reached."""
        return all(row.reached for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON."""
        return {**asdict(self), "reached": self.reached}

    def __str__(self) -> str:
        lines = [("", *self.columns, "seconds")]
        for row in self.rows:
            lines.append((row.name, *map(_error, row.ours), f"{row.seconds:.1f}"))
            if row.mean is not None:
                lines.append((f"  mean of {row.seeds} seeds", *map(_error, row.mean), ""))
            if any(value is not None for value in row.published):
                lines.append(("  published", *map(_error, row.published), ""))
        widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
        body = []
        for name, *cells in lines:
            right = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
            body.append("  ".join([name.ljust(widths[0]), *right]).rstrip())
        return "\n".join([self.title, *body])


def _error(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}".removeprefix("0")


def folder(given: str | os.PathLike[str] | None, name: str, files: list[str]) -> Path:
    """The folder with the files of a data set: the given one, or that of its name in the folder ONLEARN_DATA."""
    base = os.environ.get("ONLEARN_DATA")
    if given is None and base is None:
        raise MissingDataError(
            f"the data set {name} is missing: say data= where {', '.join(files)} are, "
            f"or set ONLEARN_DATA to a folder that holds {name}"
        )
    place = Path(given) if given is not None else Path(base or "") / name
    missing = [file for file in files if not (place / file).exists()]
    if missing:
        raise MissingDataError(f"{place} does not hold {missing[0]}, one of the files of {name}: {', '.join(files)}")
    return place
