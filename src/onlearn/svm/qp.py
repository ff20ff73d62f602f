"""To be replaced."""

from __future__ import annotations

from onlearn.svm.smo import solve

__all__ = ["solve"]
