"""A budget of 500 support examples: one pass over covtype by ``partial_fit``, for each policy.

Class 2 against the rest, standardised columns, Gaussian kernel, rule pa1, stabilizer last; chunks of 4,096 rows. The
times are those of the tenths of the stream (alike: the rate is constant), the bytes what the process grew by at its
peak beyond the rows themselves. ``python benchmarks/budget.py [ROWS]`` prints the rate of every tenth.
"""

from __future__ import annotations

import gc
import gzip
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from timing import OURS, Row

POLICIES = ("remove(random)", "remove(oldest)", "project", "merge")
BUDGET, CHUNK, PARTS = 500, 4096, 10
TEST = 20_000


def covtype(rows: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Standardised columns and whether the class is 2, in random order; None where ONLEARN_DATA does not hold it."""
    file = Path(os.environ.get("ONLEARN_DATA", "")) / "covtype" / "covtype.csv.gz"
    if not os.environ.get("ONLEARN_DATA") or not file.exists():
        return None
    with gzip.open(file, "rt") as lines:
        next(lines)
        table = np.loadtxt(lines, delimiter=",", dtype=np.float32)
    table = table[np.random.default_rng(0).permutation(len(table))[:rows]]
    X, y = table[:, :-1].astype(np.float64), (table[:, -1] == 2).astype(int)
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0), y


def stream(X: np.ndarray, y: np.ndarray, policy: str) -> tuple[Any, list[float], int]:
    """The model after one pass, the seconds of each tenth, the bytes it added at its peak."""
    from memory import resident

    import onlearn

    def model() -> Any:
        return onlearn.KernelClassifier(
            "gaussian(sigma=3)", "pa1", "last", budget=BUDGET, budget_policy=policy, random_state=0
        )

    model().partial_fit(X[:2000], y[:2000], classes=[0, 1])  # compiles
    gc.collect()
    forget = Path("/proc/self/clear_refs")
    if forget.exists():
        forget.write_text("5")  # the peak is now what is there now
    before = resident("VmRSS") if forget.exists() else 0
    learner, taken = model(), []
    for part in np.array_split(np.arange(len(y)), PARTS):
        start = time.perf_counter()
        for first in range(part[0], part[-1] + 1, CHUNK):
            rows = slice(first, min(first + CHUNK, part[-1] + 1))
            learner.partial_fit(X[rows], y[rows], classes=[0, 1])
        taken.append(time.perf_counter() - start)
    return learner, taken, resident("VmHWM") - before if forget.exists() else 0


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    found = covtype(TEST + 20_000 if quick else 600_000)
    if found is None:
        print("budget: needs covtype in ONLEARN_DATA")
        return
    X, y = found
    for policy in POLICIES:
        model, taken, added = stream(X[TEST:], y[TEST:], policy)
        accuracy = {OURS: [model.score(X[:TEST], y[:TEST])]}
        parts = {OURS: [float(np.mean(taken))], "first": taken[:1], "quickest": [min(taken)], "slowest": [max(taken)]}
        yield Row(f"{policy}, a tenth of {len(y) - TEST:,} rows", parts, accuracy)
        yield Row(f"{policy}, memory", {OURS: [added], "rows": [X.nbytes]}, {}, unit="bytes")


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 600_000
    X, y = covtype(rows) or sys.exit("needs covtype in ONLEARN_DATA")
    test = min(TEST, len(y) // 2)
    for policy in sys.argv[2:] or POLICIES:
        model, taken, added = stream(X[test:], y[test:], policy)
        each = (len(y) - test) / PARTS
        print(
            f"{policy}: {sum(taken):.1f} s, rows/s by tenth {' '.join(f'{each / t:,.0f}' for t in taken)}, "
            f"added {added / 2**20:.1f} MB, accuracy {model.score(X[:test], y[:test]):.4f}, "
            f"steps {model.n_updates_:,}, support examples {model.n_support_}"
        )


if __name__ == "__main__":
    main()
