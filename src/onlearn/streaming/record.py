"""``StreamRecord``: how a stream stands after some rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, repr=False)
class StreamRecord:
    """How a stream stands.

    ``rows`` were read, ``scored`` of them were predicted before their label was seen, ``learned`` were learned from;
    ``pending`` ones wait for their label, and ``forgotten`` ones waited too long. ``mean``, ``window`` and ``faded``
    hold the means of each metric: over all scored rows, over the latest, and with weights that fade. ``drifts`` and
    ``warnings`` are the rows at which a drift was detected or, with ``on_drift="replace"``, suspected. ``seconds`` are
    those spent on the stream, not those between two records. ``notes`` say what was decided on the way.
    """

    rows: int
    scored: int
    learned: int
    pending: int
    forgotten: int
    mean: dict[str, float]
    window: dict[str, float]
    faded: dict[str, float]
    drifts: tuple[int, ...]
    warnings: tuple[int, ...]
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def rows_per_second(self) -> float:
        """Rows read in a second."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    def __repr__(self) -> str:
        return f"<{self.line()}>"

    def line(self) -> str:
        """The record in one line: each metric as its mean, and in brackets that of the window."""
        parts = [f"{self.rows:,} rows", f"{self.rows_per_second:,.0f} rows/s"]
        means = [f"{name} {value:.4f} ({self.window[name]:.4f})" for name, value in self.mean.items()]
        parts += means if self.scored else ["none scored yet"]
        parts += [f"{self.pending:,} pending"] if self.pending else []
        count = len(self.drifts)
        parts += [f"{count} drift{'s' if count > 1 else ''}, the last at row {self.drifts[-1]:,}"] if count else []
        return ", ".join(parts)
