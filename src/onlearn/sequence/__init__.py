"""Sequences and structure: the lattice of labels and its algorithms, and decoders of one's own."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {
    "onlearn.sequence.lattice": ["Lattice", "Posterior"],
    "onlearn.sequence.decoder": ["Decoder", "SequenceDecoder"],
    "onlearn.sequence.structured_learner": ["StructuredLearner"],
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["Decoder", "Lattice", "Posterior", "SequenceDecoder", "StructuredLearner"]

if TYPE_CHECKING:
    from onlearn.sequence.decoder import Decoder, SequenceDecoder
    from onlearn.sequence.lattice import Lattice, Posterior
    from onlearn.sequence.structured_learner import StructuredLearner


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'onlearn.sequence' has no attribute {name!r}")
    value = getattr(importlib.import_module(_NAMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
