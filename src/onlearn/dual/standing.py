"""How the examples of a data set stand with a hypothesis in the dual: their scores, kept up to date by block.

The sum of an example, over the support examples, of weight times kernel value changes only with the weights. So it is
kept, and a block of examples that is about to be learned from gets only what changed since it was last looked at: in
the first pass that is every support example so far, later on few. So kernel values are needed again only with the
support examples that were learned from in several passes; those are kept, as far as the memory given goes. The others
are computed again when their weight changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.dual.cache import Cache, add_by_group, add_products
from onlearn.dual.supports import Supports

MANY = 100  # support examples that changed in a pass


class Examples:
    """A data set as it was given, and as the kernel wants to see it."""

    def __init__(self, raw: Any, points: Any, width: int) -> None:
        self.raw, self.points = raw, points
        self.shape, self.dtype = (len(points), width), np.dtype(points.dtype)


class Standing:
    """The sums of all examples of a data set, and what is needed to keep them up to date."""

    def __init__(self, data: Examples, supports: Supports, weights: np.ndarray, cache_bytes: int) -> None:
        rows, outputs = data.shape[0], weights.shape[1]
        self.data, self.supports, self.outputs = data, supports, outputs
        with np.errstate(over="ignore"):
            self.lengths = supports.kernel.diagonal(data.points)
        # no kernel value is larger than the largest of these: better now than in the middle of a pass
        large = ~(np.abs(self.lengths) < np.finfo(data.dtype).max / 2)
        if large.any():
            raise OverflowError(
                f"{supports.kernel} of row {int(np.argmax(large))} with itself is too large for {data.dtype}: "
                f"{supports.kernel.remedy()}"
            )
        self.sums = np.zeros((rows, outputs))
        self.place = np.full(rows, -1, dtype=np.int64)  # of each example among the support examples
        self.log = Log(weights)
        self.at = np.zeros(rows, dtype=np.int64)  # of each example the place in the log up to which its sums go
        self.visited: list[np.ndarray] = []  # the blocks of this pass
        self.cache = Cache(rows, cache_bytes // max(1, rows * data.dtype.itemsize), data.dtype)
        self.passes = 0  # that have begun
        self.begun, self.settled = 0, 0  # how long the log was when this pass began, and how many supports there were
        self.scratch = np.empty(0, dtype=data.dtype)

    def recognise(self) -> None:
        """Look which rows are support examples already."""
        self.place = self.supports.places(self.data)

    def begin_pass(self) -> None:
        """Make ready for another pass; keep the columns of support examples that were learned from in two passes."""
        self.passes += 1
        if not self.visited:
            return
        self.cache.ready()
        changed = np.unique(self.log.at[self.begun : self.log.count] // self.outputs)
        self.cache.admit(changed[changed < self.settled])
        if len(changed) > MANY:  # to do it now computes less, to do it block by block as they come reads the rows once
            for rows in self.visited:
                self.update(rows, self.data.points.take(rows))
            self.cache.ready()
        self.at -= self.log.forget(int(self.at.min()))
        self.visited = []
        self.begun, self.settled = self.log.count, len(self.supports)

    def pending(self) -> int:
        """With how many support examples, at most, kernel values of an example are wanting."""
        return min(len(self.supports), self.log.count - int(self.at.min()) + len(self.cache.coming))

    def update(self, rows: np.ndarray, points: Any) -> np.ndarray:
        """Bring the sums of some rows up to date.

        Returns their values with the support examples that matter for that (in a first pass: all), until the next call.
        """
        places, group = np.unique(self.at[rows], return_inverse=True)
        support, change = self.log.since(places, len(self.supports), self.outputs)
        kept = self.cache.holds(support)
        if kept.any():
            self.cache.add(self.sums, rows, group, support[kept], change[:, kept])
            support, change = support[~kept], change[:, ~kept]
        coming = np.array([*self.cache.coming], dtype=np.int64)
        columns = np.union1d(support, coming)
        if len(columns) > len(support):
            among = np.zeros((len(places), len(columns), self.outputs))
            among[:, np.searchsorted(columns, support)] = change
            change = among
        values = self._values(points, columns)
        if len(coming):
            self.cache.put(rows, values.T[np.searchsorted(columns, coming)])
        if len(places) == 1:
            add_products(self.sums, rows, values, change[0])
        elif len(columns):
            add_by_group(self.sums, rows, values, change, group)
        self.at[rows] = self.log.count
        return values

    def _values(self, points: Any, columns: np.ndarray) -> np.ndarray:
        """Kernel values of some rows with some support examples, given in rising order."""
        count, size = len(self.supports), len(points) * len(columns)
        if self.scratch.size < size:  # used again and again, for fresh memory is slow
            self.scratch = np.empty(size * 3 // 2, dtype=self.data.dtype)
        values = self.scratch[:size].reshape(len(points), len(columns))
        # the newest ones are there without a gap
        old = int(np.searchsorted(columns - np.arange(len(columns)), count - len(columns)))
        if old < len(columns):
            self.supports.products(points, int(columns[old]), values[:, old:], safe=True)
        if old:
            self.supports.kernel.block(points, self.supports.take(columns[:old]), values[:, :old], safe=True)
        return values

    def columns(self, rows: np.ndarray, points: Any, which: np.ndarray) -> np.ndarray:
        """Kernel values of a block's rows with some of them (``which``), a line for each of those."""
        out = np.empty((len(which), len(rows)), dtype=self.data.dtype)
        place = self.place[rows[which]]
        held = self.cache.holds(place)
        for n in np.flatnonzero(held):
            out[n] = self.cache.column(rows, int(place[n]))
        if not held.all():
            out[~held] = self.supports.kernel.block(points.take(which[~held]), points, safe=True)
        return out

    def leave(self, rows: np.ndarray, sums: np.ndarray, fresh: np.ndarray, changes: Any) -> None:
        """Take down what a block came to: its sums, its new support examples, what changed."""
        self.sums[rows] = sums
        self.place[rows[fresh]] = len(self.supports) - len(fresh) + np.arange(len(fresh))
        self.log.add(*changes)
        self.at[rows] = self.log.count
        self.visited.append(rows)

    # ------------------------------------------------------------------ saving

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All but the data and what follows from them, as plain facts and arrays; sums as they were rounded."""
        facts = {"passes": self.passes, "begun": self.begun, "settled": self.settled}
        arrays = {
            "sums": self.sums,
            "place": self.place,
            "at": self.at,
            "log.at": self.log.at[: self.log.count],
            "log.change": self.log.change[: self.log.count],
            "visited": np.concatenate([np.empty(0, dtype=np.int64), *self.visited]),
            "visited.ends": np.cumsum([len(rows) for rows in self.visited], dtype=np.int64),
        }
        for kind, columns in (("column", self.cache.columns), ("coming", self.cache.coming)):
            arrays.update({f"{kind}.{k}": column for k, column in columns.items()})
        return facts, arrays

    def restore(self, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Take in what ``pack`` put out; the support examples are those of then already."""
        rows, outputs, count = len(self.place), self.outputs, len(arrays["log.at"])
        visited, ends = arrays["visited"], arrays["visited.ends"]
        if (
            arrays["sums"].shape != (rows, outputs)
            or arrays["place"].shape != (rows,)
            or arrays["at"].shape != (rows,)
            or arrays["log.change"].shape != (count,)
            or not _within(arrays["place"], -1, len(self.supports))
            or not _within(arrays["at"], 0, count + 1)
            or not _within(arrays["log.at"], 0, len(self.supports) * outputs)
            or not _within(visited, 0, rows)
            or not _within(ends, 0, len(visited) + 1)
        ):
            raise ValueError("what is stored of the rows' sums does not go with the rows")
        self.sums, self.place, self.at = arrays["sums"], arrays["place"], arrays["at"]
        self.log.at, self.log.change, self.log.count = arrays["log.at"], arrays["log.change"], count
        self.visited = np.split(visited, ends[:-1]) if len(ends) else []
        for kind, columns in (("column", self.cache.columns), ("coming", self.cache.coming)):
            found = {int(key.split(".")[1]): a for key, a in arrays.items() if key.startswith(f"{kind}.")}
            if any(
                k >= len(self.supports) or a.shape != (rows,) or a.dtype != self.data.dtype for k, a in found.items()
            ):
                raise ValueError("the stored kernel values do not go with the rows")
            columns.update(sorted(found.items()))
        self.passes, self.begun, self.settled = (int(facts[name]) for name in ("passes", "begun", "settled"))

    def restate(self, factor: float) -> None:
        """The stored weights were multiplied by a factor."""
        self.sums *= factor
        self.log.change[: self.log.count] *= factor


def _within(numbers: np.ndarray, low: int, high: int) -> bool:
    return numbers.dtype == np.int64 and bool(((numbers >= low) & (numbers < high)).all())


class Log:
    """What changed, in its order: which weight (counted from the first support example's), and by how much."""

    def __init__(self, weights: np.ndarray) -> None:
        flat = weights.reshape(-1)
        self.at = np.flatnonzero(flat)
        self.change = flat[self.at].astype(np.float64)
        self.count = len(self.at)

    def add(self, at: np.ndarray, change: np.ndarray) -> None:
        if self.count + len(at) > len(self.at):
            more = max(len(at), len(self.at))
            self.at = np.concatenate([self.at[: self.count], np.zeros(more, dtype=np.int64)])
            self.change = np.concatenate([self.change[: self.count], np.zeros(more)])
        self.at[self.count : self.count + len(at)] = at
        self.change[self.count : self.count + len(at)] = change
        self.count += len(at)

    def since(self, places: np.ndarray, supports: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
        """Which support examples changed since the first of the places (in rising order), and the sum of the changes

        since each of them: places x support examples x outputs.
        """
        touched = np.zeros(supports, dtype=bool)
        touched[self.at[places[0] : self.count] // outputs] = True
        support = np.flatnonzero(touched)
        compact = np.cumsum(touched) - 1
        change = np.zeros((len(places), len(support) * outputs))
        ends = [*places[1:], self.count]
        for n in range(len(places) - 1, -1, -1):
            at = self.at[places[n] : ends[n]]
            cell = compact[at // outputs] * outputs + at % outputs
            change[n] = np.bincount(cell, weights=self.change[places[n] : ends[n]], minlength=change.shape[1])
            if n + 1 < len(places):
                change[n] += change[n + 1]
        return support, change.reshape(len(places), len(support), outputs)

    def forget(self, count: int) -> int:
        """Drop the first entries; returns how many."""
        self.at, self.change = self.at[count : self.count], self.change[count : self.count]
        self.count -= count
        return count
