"""Counts the modules of the package that a piece of work passes through: how far a reader of the source must travel.

A module counts when one of its functions is called, in any thread, while the work is done; what runs only because a
module is imported does not count. Compiled loops are one call each.

    python tools/trace_modules.py [fit | file]...

``fit``: ``AveragedPerceptron().fit`` on a small dense array. ``file``: ``train`` on a file of JSON lines, from the
command's arguments to the saved model.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

PACKAGE = "onlearn"


@contextlib.contextmanager
def traced() -> Iterator[set[str]]:
    """The names of the package's modules whose functions are called meanwhile."""
    met: set[str] = set()

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.partition(".")[0] == PACKAGE and not _is_import(frame):
            met.add(module)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield met
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _is_import(frame: FrameType) -> bool:
    """Whether a call is made because a module is being imported: its body, or what its body calls."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__", "").startswith(PACKAGE + "."):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def fit() -> set[str]:
    """The modules of ``AveragedPerceptron().fit``."""
    import numpy as np

    import onlearn

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = (X[:, 0] > 0).astype(int)
    onlearn.AveragedPerceptron(random_state=0).fit(X, y)  # compiled, imported
    with traced() as met:
        onlearn.AveragedPerceptron(random_state=0).fit(X, y)
    return met


def file() -> set[str]:
    """The modules of ``train`` on a file of JSON lines."""
    from onlearn import cli

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "rows.jsonl")
        rows = [{"label": "yes" if n % 2 else "no", "text": f"word{n % 7} and {n}", "size": n} for n in range(500)]
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
        arguments = ["train", str(source), "-o", str(Path(folder, "m.onl")), "--quiet"]
        for _ in range(2):
            with traced() as met, contextlib.redirect_stdout(io.StringIO()):
                if cli.run(arguments) != 0:
                    raise SystemExit("train failed")
    return met


WORK: dict[str, Callable[[], set[str]]] = {"fit": fit, "file": file}


def main(names: list[str]) -> int:
    for name in names or list(WORK):
        if name not in WORK:
            print(f"there is nothing to trace called {name!r}: {', '.join(WORK)}", file=sys.stderr)
            return 2
        modules = sorted(module.removeprefix(PACKAGE + ".") for module in WORK[name]())
        print(f"{name}: {len(modules)} modules")
        print("  " + " ".join(modules))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
