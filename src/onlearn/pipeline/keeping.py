"""Whether a run keeps the parsed rows of its files for the next one."""

from __future__ import annotations

from typing import Any

from onlearn.data import Reader
from onlearn.pipeline.plan import Plan


def keep_or_not(reader: Reader, plan: Plan, passes: int) -> None:
    """Rows of one pass, and of small files, are not kept unless a folder for them was named; but used if they were."""
    if reader.kept is not None and plan.cache is True and (passes < 2 or (reader.bytes_total or 0) < plan.small):
        reader.kept.writable = False


def told(reader: Reader | None) -> dict[str, Any] | None:
    """What became of the rows: whether they were reused or written, where, and a sentence; None if nothing did."""
    kept = None if reader is None else reader.kept
    if kept is None or kept.said is None or kept.path is None:
        return None
    return {"path": str(kept.path), "reused": kept.used, "written": kept.written, "said": kept.said}
