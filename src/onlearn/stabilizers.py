"""The stabilizers, under their public name: ``onlearn.stabilizers.Averaged()``."""

from onlearn.engine.stabilizers import STABILIZERS, Averaged, Last, Survivor, Voted

__all__ = ["STABILIZERS", "Averaged", "Last", "Survivor", "Voted"]
