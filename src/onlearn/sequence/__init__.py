"""Sequences: the lattice of labels and its algorithms."""

from __future__ import annotations

from onlearn.sequence.lattice import Lattice, Posterior

__all__ = ["Lattice", "Posterior"]
