"""The public names of every estimator: its parameters, fitted attributes, and documented methods; and of learners."""

from __future__ import annotations

import inspect

import pytest
from sklearn.base import BaseEstimator

import onlearn
from onlearn.engine import registry

ESTIMATORS = sorted(
    name
    for name in onlearn.__all__
    if inspect.isclass(getattr(onlearn, name)) and issubclass(getattr(onlearn, name), BaseEstimator)
)

SCIKIT_LEARN = {
    "fit", "get_metadata_routing", "get_params", "set_params", "set_fit_request", "set_partial_fit_request",
    "set_score_request",
}  # fmt: skip
STREAMS = {"partial_fit", "learn_one", "predict_one", "score_one", "renewed", "become"}
CLASSIFIER = {
    "decision_function",
    "predict_proba",
    "predict_log_proba",
    "predict_proba_one",
    "predict_one",
    "score_one",
}
LEARNER = {"predict", "score", "save"}
SEQUENCES = LEARNER | {"partial_fit", "predict_marginals", "predict_k_best", "predict_fixed", "log_probability"}
TRANSFORMER = {"transform", "fit_transform", "get_feature_names_out", "partial_fit", "set_output", "save"}
SMALLER = {"to_primal", "reduce"}
SVM = LEARNER | SMALLER | {"fit_reader", "path", "cross_validate", "predict_one", "score_one", "renewed", "become"}
LINEAR = LEARNER | STREAMS | CLASSIFIER | {"calibrate", "certificate"}
OWN = {
    "CRF": SEQUENCES,
    "HMM": SEQUENCES | {"log_likelihood", "sample"},
    "StructuredPerceptron": SEQUENCES,
    "FeatureHasher": TRANSFORMER,
    "Features": TRANSFORMER - {"save"} | {"learn_transform", "keep", "name_of"},
    "KernelPCA": TRANSFORMER - {"partial_fit"},
    "Nystroem": TRANSFORMER,
    "RandomKitchenSinks": TRANSFORMER,
    "RandomProjection": TRANSFORMER,
    "KNNClassifier": LEARNER | STREAMS | CLASSIFIER | {"kneighbors"},
    "KNNRegressor": LEARNER | STREAMS | {"kneighbors"},
    "KernelClassifier": LINEAR | SMALLER | {"estimate", "staged_decision_function"},
    "KernelPerceptron": LINEAR | SMALLER | {"estimate", "staged_decision_function"},
    "KernelRegressor": LEARNER | STREAMS | SMALLER | {"estimate", "staged_predict"},
    "MLPClassifier": LEARNER | STREAMS | CLASSIFIER,
    "MLPRegressor": LEARNER | STREAMS,
    "NaiveBayes": LEARNER | STREAMS | CLASSIFIER | {"to_linear"},
    "OnlineRegressor": LEARNER | STREAMS,
    "SVC": SVM | CLASSIFIER,
    "SVR": SVM,
}  # the others are linear classifiers, and mixtures of them


@pytest.mark.parametrize("name", ESTIMATORS)
def test_public_names_of_an_estimator(name):
    cls = getattr(onlearn, name)
    made = cls()
    allowed = SCIKIT_LEARN | set(made.get_params(deep=False)) | OWN.get(name, LINEAR)
    shown = {one for one in {*dir(made), *dir(cls)} if not one.startswith("_") and not one.endswith("_")}
    assert shown <= allowed, f"internal names are shown: {sorted(shown - allowed)}"
    for one in shown & OWN.get(name, LINEAR):
        assert inspect.getdoc(inspect.getattr_static(cls, one, None) or getattr(cls, one)), f"{one} has no docstring"


@pytest.mark.parametrize("name", registry.learner_names())
def test_learners_of_models_do_not_show_how_runs_drive_them(name):
    """``Model.learner`` is one of these."""
    learner = registry.make_learner(name)
    assert {"start", "take_in", "learn_rows", "end_pass", "finish_run"}.isdisjoint(dir(learner))
