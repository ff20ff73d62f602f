"""Contenders take turns at the same work, and the best turn of each counts.

Turns are interleaved (ours, peer, ours, peer, ...), so that what else the machine does hits all alike. The
first turn of each is thrown away: it compiles, and brings the data into memory. After a turn that is long enough to
use several threads there is a pause: those of a BLAS go on spinning for a while, on cores that are the next one's.
"""

from __future__ import annotations

import gc
import platform
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

OURS = "onlearn"
SHORT, PAUSE = 1e-3, 0.1  # seconds
BUDGET = 20.0  # seconds a contender may spend on its turns; a slow one takes fewer of them
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "vowpalwabbit", "river", "liblinear-official")

clock = time.perf_counter


def processor_time() -> float:
    """Of this process and those it has waited for: the clock for a machine that has other work, too."""
    import resource

    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class Part(NamedTuple):
    """A contender too slow for all of the work: it does a part, and its time is multiplied."""

    run: Callable[[], Any]
    factor: float


class Row(NamedTuple):
    """One line of a benchmark's table: what each contender took, one number a turn."""

    work: str
    taken: dict[str, list[float]]  # empty: not installed
    accuracy: dict[str, list[float]]  # of those that were judged, one number a turn
    estimated: frozenset[str] = frozenset()
    unit: str = "s"

    def best(self, name: str) -> float:
        return min(self.taken[name])


def race(work: str, contenders: dict[str, Any], repeat: int, test: tuple[Any, Any] | None = None) -> Row:
    """Let the contenders take turns. One that returns a function of rows is judged by it on the test rows.

    A contender is a function without arguments, a ``Part``, or None when it is not installed.
    """
    ready = {name: run for name, run in contenders.items() if run is not None}
    parts = {name: run if isinstance(run, Part) else Part(run, 1.0) for name, run in ready.items()}
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    accuracy: dict[str, list[float]] = {}
    spent = dict.fromkeys(parts, 0.0)
    gc.collect()
    for turn in range(repeat + 1):
        for name, part in parts.items():
            if turn > 1 and spent[name] > BUDGET:
                continue
            gc.disable()
            start = clock()
            result = part.run()
            seconds = clock() - start
            gc.enable()
            spent[name] += seconds
            if seconds > SHORT:
                time.sleep(PAUSE)
            if turn > 0:
                taken[name].append(seconds * part.factor)
            if test is not None and callable(result):
                accuracy.setdefault(name, []).append(float(np.mean(result(test[0]) == test[1])))
    return Row(work, taken, accuracy, frozenset(name for name, part in parts.items() if part.factor != 1.0))


def table(title: str, rows: list[Row]) -> Table:
    """Work by contender; a time is followed by how many times ours it is, and by the accuracy reached."""
    shown = Table("work", title=title, title_justify="left", show_lines=any(row.accuracy for row in rows))
    names = list(dict.fromkeys(name for row in rows for name in row.taken))
    for name in names:
        shown.add_column(name, justify="right")
    for row in rows:
        shown.add_row(row.work, *(cell(row, name) if name in row.taken else "" for name in names))
    return shown


def cell(row: Row, name: str) -> str:
    if not row.taken[name]:
        return "not installed"
    text = ("~" if name in row.estimated else "") + amount(row.best(name), row.unit)
    if row.unit == "s" and name != OURS and row.taken.get(OURS):
        text += f" {row.best(name) / row.best(OURS):6.2f}x"
    if name in row.accuracy:
        reached = 100 * np.array(row.accuracy[name])
        text += f"\n{reached.mean():.2f} %" + (f" ± {reached.std():.2f}" if np.ptp(reached) else "")
    return text


def amount(value: float, unit: str) -> str:
    if unit == "s":
        return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"
    if unit == "bytes":
        return f"{value / 2**20:.1f} MB"
    return f"{value:.4g} {unit}"


def machine() -> dict[str, str]:
    """What the numbers were taken on and with."""
    found = {"python": platform.python_version(), "cpu": processor()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(models)} x {models[0]}" if models else platform.processor() or platform.machine()
