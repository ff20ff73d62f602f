"""Inputs and targets brought to one size: a network learns badly from columns of very different sizes.

Column j of dense rows becomes (x - mean_j) / size_j. The size is the standard deviation, but at least a tenth of the
largest distance from the mean, so that no value is beyond 10 and a column that is nearly always the same is not blown
up; a constant column becomes 0. Columns of sparse rows keep their zeros: those whose largest |x| is above 10 or below
0.01 are divided by it; on a stream, those where it is above 10 by a tenth of it.

``fit`` measures all rows first, and the measures stay. On a stream they are of the rows that came so far, and each
row is scaled by them as it comes, itself included; so it does not matter how the stream is cut up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.compiler.inlining import Loop
from onlearn.model_schema import check_array

FARTHEST = 10.0  # of a scaled value
FAR = 1e6  # a value to predict from that is farther out than that counts as that
TINY = 0.01
FIELDS = ("count", "mean", "squares", "low", "high")


class Scaler:
    """The measures of columns; ``centred`` for dense rows, ``settled`` when rows to come do not change them."""

    centred: bool
    settled: bool
    count: np.ndarray
    mean: np.ndarray
    squares: np.ndarray  # sums of squared distances from the mean
    low: np.ndarray
    high: np.ndarray

    def __init__(self, width: int, centred: bool) -> None:
        self.centred, self.settled = centred, False
        self.count, self.mean, self.squares = np.zeros(1), np.zeros(width), np.zeros(width)
        self.low, self.high = np.zeros(width), np.zeros(width)
        self._made: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def none(cls, width: int) -> Scaler:
        """The scaler that leaves everything as it is."""
        made = cls(width, centred=False)
        made.settled = True
        return made

    def copied(self) -> Scaler:
        """The same measures, which may become others."""
        made = Scaler.__new__(Scaler)
        for key, one in vars(self).items():
            setattr(made, key, one.copy() if isinstance(one, np.ndarray) else one)
        return made

    def fixed(self) -> Scaler:
        """A scaler that stays as this one is now."""
        if self.settled:
            return self
        made = Scaler(len(self.mean), self.centred)
        made.settled, made._made, made.high, made.low = True, self.factors, self.high.copy(), self.low
        return made

    def grow(self, width: int) -> None:
        """Take in new columns of zeros."""
        more = width - len(self.mean)
        for name in FIELDS[1:]:
            setattr(self, name, np.pad(getattr(self, name), (0, more)))
        self._made = None

    def measure(self, X: np.ndarray) -> None:
        """Measure dense rows in C order, once and for all."""
        measure_rows(X.reshape(-1), X.shape[1], self.count, self.mean, self.squares, self.low, self.high)
        self.settled, self._made = True, None

    def measure_sparse(self, data: np.ndarray, indices: np.ndarray) -> None:
        """Measure sparse rows, once and for all."""
        np.maximum.at(self.high, indices, np.abs(data))
        self.low = np.where((self.high < TINY) | (self.high > FARTHEST), self.high, 0.0)  # what they are divided by
        self.settled, self._made = True, None

    @property
    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """What is taken off each column, and what it is then multiplied by."""
        if self._made is None or not self.settled:
            if self.centred:
                made = np.empty_like(self.mean)
                find_factors(self.count, self.mean, self.squares, self.low, self.high, made)
                self._made = self.mean.copy(), made
            else:
                size = np.where(self.high > FARTHEST, self.high / FARTHEST, 1.0)
                size = np.where(self.low > 0, self.low, size)
                self._made = np.zeros_like(self.mean), 1.0 / np.maximum(size, 1e-300)
        return self._made

    def apply(self, X: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
        """Write some dense rows, scaled, to ``out``."""
        scale_rows(X.reshape(-1), X.shape[1], rows, *self.factors, out.reshape(-1))

    def follow(self, X: np.ndarray, out: np.ndarray) -> None:
        """Write dense rows to ``out``, each scaled by the measures that include it and all before."""
        if self.settled:
            return self.apply(X, np.arange(len(X)), out)
        measures = self.count, self.mean, self.squares, self.low, self.high
        follow_rows(X.reshape(-1), X.shape[1], *measures, out.reshape(-1))

    def apply_sparse(self, data: np.ndarray, indices: np.ndarray, dtype: Any) -> np.ndarray:
        """The values of sparse rows, scaled."""
        if not (self.high > FARTHEST).any() and not self.low.any():
            return data.astype(dtype, copy=False)
        return np.asarray(np.clip(data * self.factors[1][indices], -FAR, FAR), dtype)

    def follow_sparse(self, data: np.ndarray, indices: np.ndarray, dtype: Any) -> np.ndarray:
        """The same, each value by the measures that include it and all before."""
        if self.settled or np.abs(data).max(initial=0.0) <= FARTHEST >= self.high.max(initial=0.0):
            if not self.settled:
                np.maximum.at(self.high, indices, np.abs(data))
            return self.apply_sparse(data, indices, dtype)
        out = np.empty(len(data), dtype)
        follow_values(data, indices, self.high, out)
        return out

    def pack(self, prefix: str) -> dict[str, np.ndarray]:
        """The measures, for the model file."""
        return {f"{prefix}.{name}": getattr(self, name) for name in FIELDS}

    @classmethod
    def unpack(cls, prefix: str, width: int, centred: bool, settled: bool, arrays: dict[str, np.ndarray]) -> Scaler:
        """The scaler of a model file, checked."""
        made = cls(width, centred)
        made.settled = settled
        for name in FIELDS:
            array = arrays[f"{prefix}.{name}"]
            check_array(f"{prefix}.{name}", array, "float64", getattr(made, name).shape)
            setattr(made, name, array)
        if made.count[0] < 0 or (made.squares < 0).any() or (made.low > made.high).any():
            raise ValueError(f"the measures of the {prefix} contradict each other")
        return made


@Loop
def measure_rows(flat, width, count, mean, squares, low, high):
    """Welford's recurrence for mean and sum of squared distances from it, and the least and largest value."""
    wide = np.uint64(width)
    for i in range(len(flat) // width):
        if count[0] == 0.0:
            for j in range(wide):
                low[j] = high[j] = np.float64(flat[np.uint64(i) * wide + j])
        count[0] += 1.0
        part = 1.0 / count[0]
        for j in range(wide):
            x = np.float64(flat[np.uint64(i) * wide + j])
            off = x - mean[j]
            mean[j] += off * part
            squares[j] += off * (x - mean[j])
            low[j] = min(low[j], x)
            high[j] = max(high[j], x)


@Loop
def find_factors(count, mean, squares, low, high, out):
    """1 / size of each column."""
    for j in range(len(out)):
        reach = max(high[j] - mean[j], mean[j] - low[j]) / FARTHEST
        size = max(np.sqrt(squares[j] / max(count[0], 1.0)), reach)
        size = size if size <= 1e300 else reach
        out[j] = 1.0 / size if size > 1e-300 else 0.0


@Loop
def scale_rows(flat, width, rows, shift, factor, out):
    """out = (x - shift) factor."""
    wide = np.uint64(width)
    for n in range(np.uint64(len(rows))):
        start = np.uint64(rows[n]) * wide
        for j in range(wide):
            x = (np.float64(flat[start + j]) - shift[j]) * factor[j]
            out[n * wide + j] = min(max(x, -FAR), FAR)


@Loop
def follow_rows(flat, width, count, mean, squares, low, high, out):
    """Measure each row, then scale it."""
    wide = np.uint64(width)
    for i in range(np.uint64(len(flat) // width)):
        if count[0] == 0.0:
            for j in range(wide):
                low[j] = high[j] = np.float64(flat[i * wide + j])
        count[0] += 1.0
        part = 1.0 / count[0]
        for j in range(wide):
            x = np.float64(flat[i * wide + j])
            off = x - mean[j]
            mean[j] += off * part
            squares[j] += off * (x - mean[j])
            low[j] = min(low[j], x)
            high[j] = max(high[j], x)
            reach = max(high[j] - mean[j], mean[j] - low[j]) / FARTHEST
            size = max(np.sqrt(squares[j] * part), reach)
            size = size if size <= 1e300 else reach
            out[i * wide + j] = (x - mean[j]) / size if size > 1e-300 else 0.0


@Loop
def follow_values(data, indices, high, out):
    """The same for the values of sparse rows."""
    for p in range(len(data)):
        x = np.float64(data[p])
        j = np.uint64(indices[p])
        high[j] = max(high[j], abs(x))
        out[p] = x * FARTHEST / high[j] if high[j] > FARTHEST else x
