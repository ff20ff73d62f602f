"""What naive Bayes keeps of the rows: sums of values by class and column, or their weight, mean and spread.

``Counts`` is the state of the discrete kinds, ``Moments`` that of the Gaussian one. Both are arrays of one line for
each class, with room for more columns than there are, and grow in both directions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from onlearn.bayes import loops
from onlearn.engine.csr import is_sparse, row_batches
from onlearn.model_schema import check_array
from onlearn.threads import WORTHWHILE, cores, over_pieces

if TYPE_CHECKING:
    from typing_extensions import Self

AHEAD = 1.5  # by how much there is more room than needed, so that growing is seldom
WHOLE = 1 << 62


class Lines:
    """Arrays of one line for each class, of which ``features`` places are in use."""

    names: tuple[str, ...]
    features: int
    room: int
    lines: dict[str, np.ndarray]

    def __init__(self, classes: int, features: int) -> None:
        self.features = self.room = features
        self.lines = {name: np.zeros((classes, features)) for name in self.names}

    def __copy__(self) -> Self:
        """Another of the same arrays: if one grows, the other does not."""
        made = self.__class__.__new__(self.__class__)
        made.__dict__.update(self.__dict__, lines=dict(self.lines))
        return made

    @property
    def classes(self) -> int:
        return len(self.lines[self.names[0]])

    def grow(self, classes: int, features: int) -> None:
        """Make room for more classes and columns; what is new has counted nothing."""
        room = max(features, int(AHEAD * self.room)) if features > self.room else self.room
        if room > self.room or classes > self.classes:
            made = {}
            for name, line in self.lines.items():
                made[name] = np.zeros((classes, room))
                made[name][: self.classes, : self.features] = line[:, : self.features]
            self.lines, self.room = made, room
        self.features = features

    def keep(self, columns: np.ndarray) -> None:
        """Forget all columns but some, which are numbered anew in the given order."""
        self.lines = {name: np.ascontiguousarray(line[:, columns]) for name, line in self.lines.items()}
        self.features = self.room = len(columns)

    def used(self, name: str) -> np.ndarray:
        """The lines without the room made ahead."""
        return self.lines[name][:, : self.features]

    def flat(self, name: str) -> np.ndarray:
        return self.lines[name].reshape(-1)

    def pack(self) -> dict[str, np.ndarray]:
        return {name: np.ascontiguousarray(self.used(name)) for name in self.names}

    def findings(self) -> dict[str, np.ndarray]:
        """Copies of what was counted; if most places counted nothing, of the others alone, which ``places`` names."""
        lines = {name: self.used(name) for name in self.names}
        met = lines[self.names[0]] != 0.0
        if 2 * np.count_nonzero(met) > met.size:
            return {name: line.copy() for name, line in lines.items()}
        size = np.int32 if met.size <= np.iinfo(np.int32).max else np.int64
        return {"places": np.flatnonzero(met).astype(size), **{name: line[met] for name, line in lines.items()}}

    def add_findings(self, found: dict[str, np.ndarray]) -> None:
        """Add what another, of as many classes and columns, has counted."""
        lines = [self.used(name) for name in self.names]
        where: Any = np.unravel_index(found["places"], lines[0].shape) if "places" in found else ...
        sums = self._sums([line[where] for line in lines], [found[name] for name in self.names])
        for line, made in zip(lines, sums):
            line[where] = made

    def _sums(self, mine: list[np.ndarray], others: list[np.ndarray]) -> Iterable[np.ndarray]:
        """What lines are when those of others are added."""
        raise NotImplementedError

    def unpack(self, arrays: dict[str, np.ndarray], low: dict[str, float]) -> None:
        """Take arrays of a file, which must be of the shape that this has."""
        for name in self.names:
            check_array(name, arrays[name], "float64", (self.classes, self.features), low.get(name, -np.inf))
            self.lines[name] = np.array(arrays[name])
        self.room = self.features


class Counts(Lines):
    """Sums of weight times value by class and column, and by class and group of columns.

    ``group`` is the group of each column; empty, if all are of one group.
    """

    names: tuple[str, ...] = ("counts",)
    group: np.ndarray
    totals: np.ndarray

    def __init__(self, classes: int, features: int, group: np.ndarray | None = None, groups: int = 1) -> None:
        super().__init__(classes, features)
        self.group = np.zeros(0, np.int32) if group is None else group
        self.totals = np.zeros((classes, groups))

    def regroup(self, group: np.ndarray, groups: int) -> None:
        """The groups of all columns, of which new ones came at the end."""
        self.group = group
        self.totals = _enlarged(self.totals, len(self.totals), groups)

    def grow(self, classes: int, features: int) -> None:
        super().grow(classes, features)
        self.totals = _enlarged(self.totals, classes, self.totals.shape[1])

    def keep(self, columns: np.ndarray) -> None:
        super().keep(columns)
        if len(self.group):
            self.group = self.group[columns]
            self.totals = np.stack([_sums(line, self.group, self.totals.shape[1]) for line in self.used("counts")])
        else:
            self.totals = self.used("counts").sum(axis=1, keepdims=True)

    def sizes(self) -> np.ndarray:
        """The number of columns in each group."""
        groups = self.totals.shape[1]
        if not len(self.group):
            return np.array([float(self.features)])
        return np.bincount(self.group[: self.features], minlength=groups).astype(np.float64)

    def add(self, X: Any, y: np.ndarray, weight: np.ndarray, order: np.ndarray) -> None:
        """Count values of rows; y and weight are in the given order."""
        counts, totals = self.flat("counts"), self.totals.reshape(-1)
        group, groups = self.group, self.totals.shape[1]

        def work(rows: Any, part: np.ndarray, y: np.ndarray, weight: np.ndarray, mine: np.ndarray) -> None:
            if len(group):
                loops.add_grouped(rows, part, y, weight, mine, group, groups, counts, self.room, totals)
            else:
                loops.add_counts(rows, part, y, weight, mine, counts, self.room, totals)

        by_class(work, X, y, weight, order, self.classes)

    def score_and_add(self, X: Any, y: np.ndarray, weight: np.ndarray, alpha: float, out: np.ndarray) -> None:
        """Add log p(row | class) of each row, by the counts before it, to ``out``; and count the row."""
        counts, totals, group = self.flat("counts"), self.totals.reshape(-1), self.group
        smoothing, groups = alpha * np.maximum(self.sizes(), 1.0), self.totals.shape[1]

        def work(rows: Any, part: np.ndarray, y: np.ndarray, weight: np.ndarray, mine: np.ndarray, n: int) -> None:
            some, held = out[n : n + len(part)].reshape(-1), np.zeros(groups)
            loops.score_and_add(
                rows, part, y, weight, mine, group, groups, alpha, smoothing, held, counts, self.room, totals, some
            )

        by_class(work, X, y, weight, np.arange(len(y)), self.classes, scores=True)

    def add_presence(self, X: Any, y: np.ndarray, weight: np.ndarray, order: np.ndarray, threshold: float) -> None:
        """Count the rows whose values are above the threshold."""
        counts = self.flat("counts")

        def work(rows: Any, part: np.ndarray, y: np.ndarray, weight: np.ndarray, mine: np.ndarray) -> None:
            loops.add_presence(rows, part, y, weight, mine, float(threshold), counts, self.room)

        by_class(work, X, y, weight, order, self.classes)

    def findings(self) -> dict[str, np.ndarray]:
        return {**super().findings(), "totals": self.totals.copy()}

    def add_findings(self, found: dict[str, np.ndarray]) -> None:
        super().add_findings(found)
        self.totals = self.totals + found["totals"]

    def _sums(self, mine: list[np.ndarray], others: list[np.ndarray]) -> Iterable[np.ndarray]:
        return [mine[0] + others[0]]

    def pack(self) -> dict[str, np.ndarray]:
        return {**super().pack(), "totals": self.totals}

    def unpack(self, arrays: dict[str, np.ndarray], low: dict[str, float]) -> None:
        super().unpack(arrays, low)
        check_array("totals", arrays["totals"], "float64", self.totals.shape, 0.0)
        self.totals = np.array(arrays["totals"])


class Moments(Lines):
    """The weight, the mean and the sum of squared differences from it, by class and column, of the values met."""

    names: tuple[str, ...] = ("heft", "mean", "spread")

    def add(self, X: Any, y: np.ndarray, weight: np.ndarray, order: np.ndarray) -> None:
        """Add values of rows; y and weight are in the given order."""
        lines = [self.flat(name) for name in self.names]

        def work(rows: Any, part: np.ndarray, y: np.ndarray, weight: np.ndarray, mine: np.ndarray) -> None:
            loops.add_moments(rows, part, y, weight, mine, *lines, self.room)

        by_class(work, X, y, weight, order, self.classes)

    def _sums(self, mine: list[np.ndarray], others: list[np.ndarray]) -> Iterable[np.ndarray]:
        return merged_moments(*mine, *others)


def merged_moments(heft: Any, mean: Any, spread: Any, more: Any, other: Any, more_spread: Any) -> tuple[Any, Any, Any]:
    """Moments of two sets of values together (Chan, Golub & LeVeque 1979)."""
    total = heft + more
    share = more / np.where(total > 0.0, total, 1.0)
    change = other - mean
    return total, mean + change * share, spread + more_spread + change * change * heft * share


def by_class(
    work: Callable[..., None],
    X: Any,
    y: np.ndarray,
    weight: np.ndarray,
    order: np.ndarray,
    classes: int,
    scores: bool = False,
) -> None:
    """Call ``work(rows, order, y, weight, mine)`` for shares of the classes, in threads: ``mine`` says which.

    With ``scores`` all classes are scored, so that shares are alike; and ``work`` is told which row is the first.
    """
    y, weight = np.ascontiguousarray(y, np.int64), np.ascontiguousarray(weight, np.float64)
    values = X.nnz if is_sparse(X) else X.shape[0] * X.shape[1]
    cost = 4 * values * len(order) // max(1, X.shape[0]) * (classes if scores else 1)
    for start, (rows, part, _) in _batches(X, order):
        stop = start + len(part)
        met = np.ones(classes) if scores else np.bincount(y[start:stop], minlength=classes)
        shares, first = _shares(met, min(cores(), max(1, cost // WORTHWHILE))), (start,) if scores else ()

        def piece(n: int) -> None:
            work(rows, part, y[start:stop], weight[start:stop], shares[n], *first)  # noqa: B023  done before the next

        over_pieces(piece, len(shares), len(shares))


def _batches(X: Any, order: np.ndarray) -> Any:
    start = 0
    for batch in row_batches(X, order, 0.0, WHOLE):
        yield start, batch
        start += len(batch[1])


def _shares(met: np.ndarray, workers: int) -> list[np.ndarray]:
    """Classes for each worker, as masks, with about as many rows for each."""
    masks = np.zeros((min(workers, int(np.count_nonzero(met)) or 1), len(met)), dtype=bool)
    load = np.zeros(len(masks))
    for c in np.argsort(-met, kind="stable"):
        least = int(np.argmin(load))
        masks[least, c] = True
        load[least] += met[c]
    return list(masks)


def _enlarged(array: np.ndarray, classes: int, groups: int) -> np.ndarray:
    if array.shape == (classes, groups):
        return array
    made = np.zeros((classes, groups))
    made[: array.shape[0], : array.shape[1]] = array
    return made


def _sums(line: np.ndarray, group: np.ndarray, groups: int) -> np.ndarray:
    return np.bincount(group, weights=line, minlength=groups)
