"""Support vector machines with a soft margin: the dual problem and its solvers, each a file.

``SOLVERS[name](problem, limits, start, gradient)`` returns a ``Solution``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onlearn.svm import ascent, qp, smo
from onlearn.svm.problem import Solution

SOLVERS: dict[str, Callable[..., Solution]] = {"smo": smo.solve, "ascent": ascent.solve, "qp": qp.solve}

__all__: list[Any] = ["SOLVERS"]
