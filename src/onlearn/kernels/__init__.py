"""Kernels: similarities that are inner products of features, and the algebra that makes new ones of them.

>>> from onlearn import kernels
>>> k = 0.5 * kernels.Gaussian(sigma=2.0) + kernels.Polynomial(3)
>>> k([[0.0, 1.0]], [[0.0, 1.0], [1.0, 1.0]])
array([[8.5       , 8.44124845]])
"""

from __future__ import annotations

import importlib
from typing import Any

from onlearn.kernels.algebra import (
    Exp,
    Poly,
    Power,
    Product,
    Scale,
    Sum,
    exp,
    poly,
)
from onlearn.kernels.base import ExampleError, Kernel, Points
from onlearn.kernels.boolean import Conjunctions, Monomials, Subsets
from onlearn.kernels.family import HOMES
from onlearn.kernels.formula import get, pack, pack_data, unpack, unpack_data
from onlearn.kernels.given import Bilinear, Callable, Precomputed
from onlearn.kernels.psd import check_kernel, is_psd, judge, repair
from onlearn.kernels.transforms import Compose, NormalisationError, Normalize, Warp, compose, normalize, warp
from onlearn.kernels.vectors import Gaussian, Laplacian, Linear, Polynomial, Sigmoid

__all__ = [
    "Bilinear",
    "Callable",
    "Compose",
    "Conjunctions",
    "ExampleError",
    "Exp",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Monomials",
    "NormalisationError",
    "Normalize",
    "Points",
    "Poly",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "Scale",
    "Sigmoid",
    "Subsets",
    "Sum",
    "Warp",
    "check_kernel",
    "compose",
    "exp",
    "get",
    "is_psd",
    "judge",
    "normalize",
    "pack",
    "pack_data",
    "poly",
    "repair",
    "unpack",
    "unpack_data",
    "warp",
]


def __getattr__(name: str) -> Any:
    if name.lower() in HOMES and name.istitle():  # Substrings, Trees: their files are read when they are asked for
        return getattr(importlib.import_module(HOMES[name.lower()]), name)
    raise AttributeError(f"module 'onlearn.kernels' has no attribute {name!r}")
