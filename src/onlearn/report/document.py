"""The document behind a report: all its numbers as plain JSON. A page of HTML is made of this and of nothing else."""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib import metadata
from typing import Any

from onlearn import __version__
from onlearn.models.resident_memory import peak_bytes

KINDS = ("train", "evaluate", "tune", "compare", "bounds", "reproduce")
SHOWN = ("numpy", "pyarrow", "numba")  # packages whose versions matter for the numbers


def make_document(
    kind: str, facts: dict[str, Any], evidence: Any = None, command: Sequence[str] = ()
) -> dict[str, Any]:
    """Everything that a report says.

    ``measured`` holds what differs from run to run: when it was written, the seconds, and the memory of the process.

    >>> made = make_document("evaluate", {"accuracy": float("nan")}, command=["evaluate", "m.onl", "my data.csv"])
    >>> made["command"], made["facts"]
    ("onlearn evaluate m.onl 'my data.csv'", {'accuracy': None})
    """
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is not a kind of report: there are {', '.join(KINDS)}")
    if evidence is not None and hasattr(evidence, "to_dict"):
        evidence = evidence.to_dict()
    return {
        "report": kind,
        "command": command_line(command),
        "versions": versions(),
        "facts": plain(facts),
        "evidence": plain(evidence or {}),
        "measured": {"written": written_at(), "seconds": facts.get("seconds"), "peak_memory_bytes": peak_bytes()},
    }


def command_line(arguments: Sequence[str]) -> str | None:
    """The command as a shell takes it."""
    import shlex

    return shlex.join(["onlearn", *arguments]) if arguments else None


def versions() -> dict[str, str]:
    """Versions of this package, Python and those packages that the numbers depend on."""
    made = {"onlearn": __version__, "Python": platform.python_version()}
    for name in SHOWN:
        try:
            made[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {**made, "platform": f"{platform.system()} {platform.machine()}"}


def written_at() -> str:
    """The time of day, to the second; that of SOURCE_DATE_EPOCH if it is set, as for reproducible builds."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = float(given) if given.isdigit() else time.time()
    return datetime.fromtimestamp(moment, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def plain(value: Any) -> Any:
    """A value as strict JSON has it: numbers that are not finite are None, keys are text."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return plain(value.tolist())
    return str(value)
