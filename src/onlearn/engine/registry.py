"""All learners by name, and how they are spelled: for ``--learner``, the model file, and mixtures.

The modules of learners that are not linear are imported when one is asked for.
"""

from __future__ import annotations

import ast
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from onlearn.engine.compositions import COMPOSITIONS, Composition
from onlearn.engine.learner import Learner
from onlearn.engine.spec import did_you_mean

if TYPE_CHECKING:
    from onlearn.engine.base_learner import BaseLearner

# The class of each learner that is not linear; its parameters are those of its composition.
CLASSES = {
    "KernelClassifier": "onlearn.dual.learner:DualLearner",
    "KernelPerceptron": "onlearn.dual.learner:DualLearner",
    "KernelRegressor": "onlearn.dual.regressor:DualRegressor",
    "MLPClassifier": "onlearn.mlp.learner:MLPClassifierLearner",
    "MLPRegressor": "onlearn.mlp.learner:MLPRegressorLearner",
    "Mixture": "onlearn.engine.mixture:MixtureLearner",
    "SVC": "onlearn.svm.learner:SVCLearner",
    "SVR": "onlearn.svm.learner:SVRLearner",
    "NaiveBayes": "onlearn.bayes.learner:BayesLearner",
    "KNNClassifier": "onlearn.neighbors.learner:KNNClassifierLearner",
    "KNNRegressor": "onlearn.neighbors.learner:KNNRegressorLearner",
}

# Those that label the tokens of sequences; what takes learners of rows does not take them.
SEQUENCE_CLASSES = {
    "CRF": "onlearn.sequence.crf:CRFLearner",
    "HMM": "onlearn.sequence.hmm:HMMLearner",
    "StructuredPerceptron": "onlearn.sequence.structured:StructuredPerceptronLearner",
}

# Those that learn several labels a row, each by a learner of rows.
MULTILABEL_CLASSES = {"MultilabelClassifier": "onlearn.engine.multilabel:MultilabelLearner"}

# Short names on the command line; with two learners, the one that suits the task.
SHORT = {
    "knn": ("KNNClassifier", "KNNRegressor"),
    "mlp": ("MLPClassifier", "MLPRegressor"),
    "svm": ("SVC", "SVR"),
    "bayes": ("NaiveBayes",),
    "structured-perceptron": ("StructuredPerceptron",),
    "structured_perceptron": ("StructuredPerceptron",),
}


def learner_names() -> tuple[str, ...]:
    """The names of all learners of rows."""
    return (*COMPOSITIONS, *CLASSES)


def sequence_names() -> tuple[str, ...]:
    """The names of all learners of sequences."""
    return tuple(SEQUENCE_CLASSES)


def is_learner(name: str) -> bool:
    """Whether this is the name of a learner of any kind, as model files have it."""
    return name in (*COMPOSITIONS, *CLASSES, *SEQUENCE_CLASSES, *MULTILABEL_CLASSES)


def learner_class(name: str) -> Any:
    """The class of the learners of a name."""
    home = CLASSES.get(name) or SEQUENCE_CLASSES.get(name) or MULTILABEL_CLASSES.get(name)
    if home is None:
        return Learner
    module, _, cls = home.partition(":")
    return getattr(import_module(module), cls)


def make_learner(name: str, **params: Any) -> Any:
    """The learner of a name, with these parameters: a ``BaseLearner`` of rows, or a ``SequenceLearner``."""
    made = learner_class(name)
    return made(name, **params) if made is Learner else made(**params)


def composition_of(name: str) -> Composition:
    """Which parameters the learners of a name have."""
    return COMPOSITIONS[name] if name in COMPOSITIONS else learner_class(name)().composition


def full_name(name: str, task: str | None = None) -> str:
    """The name of a learner as it is written, whatever the case; short names stand for the learner of the task."""
    if (short := SHORT.get(name.lower())) is not None:
        return short[-1 if task == "regress" else 0]
    return {known.lower(): known for known in (*learner_names(), *sequence_names())}.get(name.lower(), name)


def parse_call(text: str) -> tuple[str, list[Any], dict[str, Any]]:
    """The name and the values of a call with constants; it is read, never evaluated.

    >>> parse_call("LogisticRegression(rate=0.5)")
    ('LogisticRegression', [], {'rate': 0.5})
    >>> parse_call("structured-perceptron(rule='pa1')")
    ('structured_perceptron', [], {'rule': 'pa1'})
    """
    try:
        before, bracket, after = text.strip().partition("(")
        if before.strip().lower() in SHORT:  # which may have a hyphen
            before = before.strip().replace("-", "_")
        tree: Any = ast.parse(before + bracket + after, mode="eval").body
        call: Any = tree if isinstance(tree, ast.Call) else ast.Call(tree, [], [])
        name = str(call.func.id)
        values = [ast.literal_eval(one) for one in call.args]
        named = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
    except (SyntaxError, ValueError, AttributeError, RecursionError, MemoryError):
        raise ValueError(
            f"cannot read the learner {text!r}: write a name with its parameters, such as LogisticRegression(rate=0.1)"
        ) from None
    return name, values, named


def parameters_of_call(text: str, known: list[str], values: list[Any], named: dict[str, Any]) -> dict[str, Any]:
    """The values of a call by the names of the parameters."""
    given = dict(zip(known, values, strict=False))
    if len(values) > len(known) or given.keys() & named.keys() or named.keys() - set(known):
        wrong = next((key for key in named if key not in known), None)
        why = (
            "a parameter is given twice"
            if wrong is None
            else f"it has no parameter {wrong!r}{did_you_mean(wrong, known)}"
        )
        raise ValueError(f"cannot read the learner {text!r}: {why}")
    return {**given, **named}


def parse_learner(text: str, names: tuple[str, ...] | None = None, use: str = "") -> Any:
    """The learner that is spelled like the call of its class, with constants; it is read, never evaluated.

    It must be one of ``names``, which are those for some ``use``; if none are given, any learner of rows.

    >>> parse_learner("LogisticRegression(rate=0.5)")
    LogisticRegression(rate=0.5)
    """
    name, values, named = parse_call(text)
    name, names = full_name(name), learner_names() if names is None else names
    if name not in names:
        raise ValueError(f"there is no learner {name!r}{use}{did_you_mean(name, list(names))}")
    given = parameters_of_call(text, list(composition_of(name).parameters), values, named)
    return make_learner(name, **given)


def spell_learner(learner: BaseLearner) -> str:
    """The text that ``parse_learner`` reads: the parameters that are not as usual, choices by their spelling."""
    usual = learner.defaults()
    changed = {name: value for name, value in learner.get_params().items() if repr(value) != repr(usual[name])}
    spelled = [f"{name}={_spelled(value)!r}" for name, value in changed.items()]
    return f"{learner.name}({', '.join(spelled)})" if spelled else learner.name


def _spelled(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    value = value() if isinstance(value, type) else value
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)
