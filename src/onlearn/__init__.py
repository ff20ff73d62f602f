"""Mistake-driven learning at hardware speed: every classic online learner from one small engine.

Everything below is imported on first use, so that ``import onlearn`` costs next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it, which takes longer to import than all that is here

__version__ = "0.1.0"

_HOMES = {
    "onlearn.estimators.kernel": ["KernelClassifier", "KernelPerceptron", "KernelRegressor"],
    "onlearn.estimators.hasher": ["FeatureHasher"],
    "onlearn.estimators.kernel_pca": ["KernelPCA"],
    "onlearn.estimators.neighbors": ["KNNClassifier", "KNNRegressor"],
    "onlearn.estimators.nystroem": ["Nystroem"],
    "onlearn.estimators.projection": ["RandomProjection"],
    "onlearn.estimators.kitchen_sinks": ["RandomKitchenSinks"],
    "onlearn.estimators.bayes": ["NaiveBayes"],
    "onlearn.estimators.mixture": ["Mixture"],
    "onlearn.estimators.multilabel": ["MultilabelClassifier"],
    "onlearn.estimators.mlp": ["MLPClassifier", "MLPRegressor"],
    "onlearn.estimators.svc": ["SVC", "SVR"],
    "onlearn.estimators.crf": ["CRF"],
    "onlearn.estimators.hmm": ["HMM"],
    "onlearn.estimators.structured": ["StructuredPerceptron"],
    "onlearn.estimators.linear": [
        "OnlineClassifier",
        "OnlineRegressor",
        "Perceptron",
        "AveragedPerceptron",
        "VotedPerceptron",
        "MarginPerceptron",
        "AggressivePerceptron",
        "PassiveAggressive",
        "Winnow",
        "BalancedWinnow",
        "NormalizedWinnow",
        "Adaline",
        "LinearSVM",
        "LogisticRegression",
        "AdaGrad",
        "AROW",
        "FTRL",
        "ScInOL",
    ],
    "onlearn.features": ["Features", "feature"],
    "onlearn.models.comparison": ["compare"],
    "onlearn.models.model": ["Model"],
    "onlearn.models.tagger": ["Tagger"],
    "onlearn.models.training": ["train"],
    "onlearn.streaming": ["StreamRecord", "stream"],
    "onlearn.engine.user_rules": ["rule"],
    "onlearn.model_file": ["load"],
}
_MODULES = [
    "calibrate",
    "cluster",
    "data",
    "drift",
    "features",
    "geometry",
    "kernels",
    "report",
    "reproduce",
    "rules",
    "stabilizers",
    "theory",
    "tune",
]
_NAMES = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AROW",
    "CRF",
    "FTRL",
    "HMM",
    "SVC",
    "SVR",
    "AdaGrad",
    "Adaline",
    "AggressivePerceptron",
    "AveragedPerceptron",
    "BalancedWinnow",
    "FeatureHasher",
    "Features",
    "KNNClassifier",
    "KNNRegressor",
    "KernelClassifier",
    "KernelPCA",
    "KernelPerceptron",
    "KernelRegressor",
    "LinearSVM",
    "LogisticRegression",
    "MLPClassifier",
    "MLPRegressor",
    "MarginPerceptron",
    "Mixture",
    "Model",
    "MultilabelClassifier",
    "NaiveBayes",
    "NormalizedWinnow",
    "Nystroem",
    "OnlineClassifier",
    "OnlineRegressor",
    "PassiveAggressive",
    "Perceptron",
    "RandomKitchenSinks",
    "RandomProjection",
    "ScInOL",
    "StreamRecord",
    "StructuredPerceptron",
    "Tagger",
    "VotedPerceptron",
    "Winnow",
    "__version__",
    "calibrate",
    "cluster",
    "compare",
    "data",
    "drift",
    "feature",
    "features",
    "geometry",
    "kernels",
    "load",
    "report",
    "reproduce",
    "rule",
    "rules",
    "stabilizers",
    "stream",
    "theory",
    "train",
    "tune",
]

if TYPE_CHECKING:
    from typing import Any

    from onlearn import (
        calibrate,
        cluster,
        data,
        drift,
        features,
        geometry,
        kernels,
        report,
        reproduce,
        rules,
        stabilizers,
        theory,
        tune,
    )
    from onlearn.engine.user_rules import rule
    from onlearn.estimators.bayes import NaiveBayes
    from onlearn.estimators.crf import CRF
    from onlearn.estimators.hasher import FeatureHasher
    from onlearn.estimators.hmm import HMM
    from onlearn.estimators.kernel import KernelClassifier, KernelPerceptron, KernelRegressor
    from onlearn.estimators.kernel_pca import KernelPCA
    from onlearn.estimators.kitchen_sinks import RandomKitchenSinks
    from onlearn.estimators.linear import (
        AROW,
        FTRL,
        AdaGrad,
        Adaline,
        AggressivePerceptron,
        AveragedPerceptron,
        BalancedWinnow,
        LinearSVM,
        LogisticRegression,
        MarginPerceptron,
        NormalizedWinnow,
        OnlineClassifier,
        OnlineRegressor,
        PassiveAggressive,
        Perceptron,
        ScInOL,
        VotedPerceptron,
        Winnow,
    )
    from onlearn.estimators.mixture import Mixture
    from onlearn.estimators.mlp import MLPClassifier, MLPRegressor
    from onlearn.estimators.multilabel import MultilabelClassifier
    from onlearn.estimators.neighbors import KNNClassifier, KNNRegressor
    from onlearn.estimators.nystroem import Nystroem
    from onlearn.estimators.projection import RandomProjection
    from onlearn.estimators.structured import StructuredPerceptron
    from onlearn.estimators.svc import SVC, SVR
    from onlearn.features import Features, feature
    from onlearn.model_file import load
    from onlearn.models.comparison import compare
    from onlearn.models.model import Model
    from onlearn.models.tagger import Tagger
    from onlearn.models.training import train
    from onlearn.streaming import StreamRecord, stream


def __getattr__(name: str) -> Any:
    import importlib

    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"onlearn.{name}")
    else:
        raise AttributeError(f"module 'onlearn' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
