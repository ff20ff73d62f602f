"""Learning theory: mistake bounds, separability, certificates."""

from onlearn.theory import bounds
from onlearn.theory.certificate import Bound, Certificate, certify
from onlearn.theory.separable import Separability, separable, simplex_margin

__all__ = ["Bound", "Certificate", "Separability", "bounds", "certify", "separable", "simplex_margin"]
