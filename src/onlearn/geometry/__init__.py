"""Geometries: how a step along an example changes the weights. One file each; this one lists them."""

from onlearn.geometry import family
from onlearn.geometry.adagrad import AdaGrad
from onlearn.geometry.additive import Additive
from onlearn.geometry.arow import AROW
from onlearn.geometry.balanced import BalancedWinnow
from onlearn.geometry.exponentiated import Exponentiated
from onlearn.geometry.ftrl import FTRL
from onlearn.geometry.winnow import Winnow

GEOMETRIES = family.GEOMETRIES

__all__ = ["AROW", "FTRL", "GEOMETRIES", "AdaGrad", "Additive", "BalancedWinnow", "Exponentiated", "Winnow"]
