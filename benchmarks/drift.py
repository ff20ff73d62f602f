"""Drift detectors: how soon a planted rise of the error rate is detected, how many alarms are false, what it costs.

100 streams each of zeros and ones, with seeds 0 to 99. Delays: rows from the change, after 3,000 rows of the first
rate, to the first alarm after it. False alarms: in streams of 10,000 rows of one rate, all 100 together. river: with
the same parameters (ADWIN reports falls of the mean as well there).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from timing import OURS, Row, race

from onlearn.drift import ADWIN, PageHinkley

try:
    from river import drift as peer
except ImportError:
    peer = None

CHANGE, AFTER, ROWS = 3000, 3000, 10_000
RATES = ((0.2, 0.4), (0.1, 0.5), (0.05, 0.15))


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    streams = range(5 if quick else 100)
    for name, ours, theirs in (
        ("ADWIN", ADWIN, peer and (lambda: peer.ADWIN(delta=0.002))),
        ("Page-Hinkley", PageHinkley,
         peer and (lambda: peer.PageHinkley(min_instances=30, delta=0.02, threshold=50.0, alpha=1.0, mode="up"))),
    ):  # fmt: skip
        makers = {OURS: (ours, _ours), **({"river": (theirs, _river)} if theirs else {})}
        numbers = errors(0, [(0.2, ROWS)])
        yield race(f"{name}: {ROWS:,} updates", {who: _updates(*how, numbers) for who, how in makers.items()}, repeat)
        for before, after in RATES:
            delays = {who: [_delay(*how, before, after, seed) for seed in streams] for who, how in makers.items()}
            for what, of in (("median", median), ("longest", max)):
                taken = {who: [float(of(found))] for who, found in delays.items()}
                yield Row(f"{name}: {before} -> {after}, {what} delay", taken, {}, unit="rows")
        for rate in (0.1, 0.2, 0.5):
            alarms = {
                who: [float(sum(len(_alarms(*how, errors(seed, [(rate, ROWS)]))) for seed in streams))]
                for who, how in makers.items()
            }
            yield Row(f"{name}: {rate} throughout, false alarms", alarms, {}, unit="alarms")


def errors(seed: int, rates: list[tuple[float, int]]) -> list[int]:
    """Zeros and ones, so many rows of each rate."""
    draw = random.Random(seed)
    return [int(draw.random() < rate) for rate, rows in rates for _ in range(rows)]


def _ours(detector: Any, value: int) -> bool:
    return bool(detector.update(value))


def _river(detector: Any, value: int) -> bool:
    detector.update(value)
    return bool(detector.drift_detected)


def _alarms(make: Callable[[], Any], update: Callable[[Any, int], bool], numbers: list[int]) -> list[int]:
    detector = make()
    return [row for row, number in enumerate(numbers, 1) if update(detector, number)]


def _updates(make: Callable[[], Any], update: Callable[[Any, int], bool], numbers: list[int]) -> Callable[[], None]:
    def run() -> None:
        detector = make()
        for number in numbers:
            update(detector, number)

    return run


def _delay(make: Any, update: Any, before: float, after: float, seed: int) -> int:
    """Rows from the change to the first alarm after it; all there are, if there is none."""
    found = _alarms(make, update, errors(seed, [(before, CHANGE), (after, AFTER)]))
    return next((row - CHANGE for row in found if row > CHANGE), AFTER)
