"""Kernels: similarities that are inner products of features, and the algebra that makes new ones of them."""

from onlearn.kernels.base import Kernel, Points
from onlearn.kernels.plain import Gaussian, Laplacian, Linear, Polynomial, Sigmoid

__all__ = ["Gaussian", "Kernel", "Laplacian", "Linear", "Points", "Polynomial", "Sigmoid"]
