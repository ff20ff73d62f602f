"""``PlanError``: a parameter that cannot be, or that does not go with the data; ``ClusterError``.

Messages of the first name parameters as Python spells them, ``max_names=``. Other front ends spell them their own way:
the command line says ``--max-names``.
"""

from __future__ import annotations


class PlanError(ValueError):
    """Parameters that contradict each other or the data; ``parameter`` is the one to change, where it is one.

    >>> str(PlanError("0 is less than 1", "min_count"))
    'min_count: 0 is less than 1'
    """

    message: str
    parameter: str | None

    def __init__(self, message: str, parameter: str | None = None) -> None:
        super().__init__(message if parameter is None else f"{parameter}: {message}")
        self.message, self.parameter = message, parameter


class ClusterError(RuntimeError):
    """What went wrong with a cluster, and not with the data; one sentence."""
