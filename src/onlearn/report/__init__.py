"""Reports: one page of HTML that needs nothing else, or JSON with the same numbers.

``write`` makes one of the facts that a command prints with ``--json``, and of ``Evidence`` that was collected while
rows were evaluated.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onlearn.report.evidence import Evidence
    from onlearn.report.page import check_path, write

_HOMES = {"Evidence": "evidence", "check_path": "page", "write": "page"}

__all__ = ["Evidence", "check_path", "write"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"onlearn.report.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'onlearn.report' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
