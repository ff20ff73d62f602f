"""Geometries: how a step along an example changes the weights. One file each; this one lists them."""

from onlearn.engine import protocol
from onlearn.engine.geometry.adagrad import AdaGrad
from onlearn.engine.geometry.additive import Additive
from onlearn.engine.geometry.arow import AROW
from onlearn.engine.geometry.exponentiated import Exponentiated
from onlearn.engine.geometry.fading_adagrad import FadingAdaGrad
from onlearn.engine.geometry.ftrl import FTRL
from onlearn.engine.geometry.scinol import ScInOL
from onlearn.engine.geometry.winnow import BalancedWinnow, Winnow

GEOMETRIES = protocol.GEOMETRIES

__all__ = [
    "AROW",
    "FTRL",
    "GEOMETRIES",
    "AdaGrad",
    "Additive",
    "BalancedWinnow",
    "Exponentiated",
    "FadingAdaGrad",
    "ScInOL",
    "Winnow",
]
