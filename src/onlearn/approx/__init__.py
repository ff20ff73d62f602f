"""Approximations: a kernel, or very many features, by a few plain features, as scikit-learn transformers."""

from __future__ import annotations

from onlearn.approx.hasher import FeatureHasher
from onlearn.approx.nystroem import Nystroem
from onlearn.approx.projection import RandomProjection
from onlearn.approx.sinks import RandomKitchenSinks

__all__ = ["FeatureHasher", "Nystroem", "RandomKitchenSinks", "RandomProjection"]
