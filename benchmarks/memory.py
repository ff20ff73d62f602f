"""Memory: what fit (two passes), or the prediction of one row, adds at its peak to what was there before.

Each in a process of its own, compiled ahead on a few rows. "Rows" is X itself, "weights" one float64 a
weight, "per row" one float64 a row: fit keeps a few arrays of these two lengths (order, labels, sums).
For prediction, "rows" is the model file, and "weights" what its weights take in memory.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from timing import OURS, Row

LAYOUTS = (
    "sparse float64",
    "sparse float64, not sorted",  # as scikit-learn's text vectorizers make them
    "sparse float32",
    "dense float64",
    "dense float32",
    "dense float32, by column",
)
LEARNERS = (OURS, "scikit-learn")


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    if not Path("/proc/self/clear_refs").exists():
        print("memory: needs Linux, whose /proc can forget a process's peak")
        return
    rows = 20_000 if quick else 200_000
    # every larger array in pages of its own, so that it is seen to come and to go
    env = dict(os.environ, MALLOC_MMAP_THRESHOLD_="65536")
    for layout in LAYOUTS:
        for classes in (2, 20):
            taken: dict[str, list[float]] = {}
            for learner in LEARNERS:
                command = [sys.executable, __file__, layout, str(classes), learner, str(rows)]
                done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
                size, weights, added = json.loads(done.stdout)
                taken |= {"rows": [size], "weights": [weights], "per row": [8 * rows], learner: [added]}
            yield Row(f"{layout}, {classes} classes", taken, {}, unit="bytes")
    for classes in (2, 20):
        command = [sys.executable, __file__, "predict", str(classes), OURS, str(rows // 20)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        size, weights, added = json.loads(done.stdout.splitlines()[-1])
        taken = {"rows": [size], "weights": [weights], OURS: [added]}
        yield Row(f"predict one text, {classes} classes", taken, {}, unit="bytes")


def child(layout: str, classes: int, learner: str, rows: int) -> tuple[int, int, int]:
    """The size of the rows, of the weights, and what fit added."""
    import data
    import numpy as np
    import scipy.sparse as sp
    from sklearn.linear_model import SGDClassifier

    import onlearn

    X: Any
    if layout.startswith("sparse"):
        X = data.sparse_rows(rows, 50_000, 60, "zipf")
        if layout.endswith("32"):
            X.data = X.data.astype(np.float32)
        if layout.endswith("sorted"):
            X = sp.csr_matrix((X.data[::-1].copy(), X.indices[::-1].copy(), X.nnz - X.indptr[::-1]), X.shape)
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    else:
        X = data.dense_rows(rows, 400, np.float64 if "64" in layout else np.float32)
        X = np.asfortranarray(X) if layout.endswith("column") else X
        size = X.nbytes
    y = data.labels(X, classes)

    def model() -> Any:
        if learner == OURS:
            return onlearn.OnlineClassifier(epochs=2, random_state=0)
        return SGDClassifier(average=True, max_iter=2, tol=None, random_state=0)

    model().fit(X[:2000], y[:2000])  # compiles
    gc.collect()
    fresh = model()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is now what is there now
    before = resident("VmRSS")
    fresh.fit(X, y)
    outputs = 1 if classes == 2 else classes
    return size, 8 * (X.shape[1] + 1) * outputs, resident("VmHWM") - before


def predict(classes: int, rows: int) -> tuple[int, int, int]:
    """The size of a model file, of its weights in memory, and what the prediction of one row added."""
    import tempfile

    import numpy as np

    import onlearn
    from onlearn import cli

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def texts(path: str, rows: int, words: int) -> str:
            rng = np.random.default_rng(0)
            lines = (" ".join(f"word{k}" for k in rng.integers(0, words, 40)) for _ in range(rows))
            made = [json.dumps({"label": f"l{n % classes}", "text": line}) for n, line in enumerate(lines)]
            (folder / path).write_text("\n".join(made) + "\n")
            return str(folder / path)

        one = texts("one.jsonl", 1, 1000)
        line = [sys.executable, "-m", "onlearn", "train", "--quiet", "--passes", "1"]
        for model, source in (("small", texts("s.jsonl", 100, 100)), ("large", texts("l.jsonl", rows, 200_000))):
            subprocess.run([*line, source, "-o", str(folder / model)], check=True)

        def run(model: str) -> None:
            cli.run(["predict", str(folder / model), one, "-o", str(folder / "out.csv")])

        run("small")  # what any prediction needs
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")
        before = resident("VmRSS")
        run("large")
        added = resident("VmHWM") - before
        weights = onlearn.load(folder / "large").weights()[0]
        return (folder / "large").stat().st_size, weights.nbytes, added


def resident(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition(f"{field}:")[2].split()[0])


if __name__ == "__main__":
    layout, classes, learner, rows = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    print(json.dumps(predict(classes, rows) if layout == "predict" else child(layout, classes, learner, rows)))
