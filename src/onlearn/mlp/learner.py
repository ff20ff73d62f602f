"""The learners over networks: ``MLPClassifier`` and ``MLPRegressor``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from onlearn.engine import csr
from onlearn.engine.base_learner import BaseLearner, Contributions
from onlearn.engine.calibration import expit, softmax
from onlearn.engine.compositions import PARAMETERS, Composition
from onlearn.engine.passes import first_ctrl_c, progress_bar, to_the_end, warn_caller
from onlearn.engine.spec import Parameter, param, parameters
from onlearn.mlp.fitting import DIVERGED, INTERRUPTED, run_epochs
from onlearn.mlp.network import LOSSES, UNITS
from onlearn.mlp.optimizers import OPTIMIZERS
from onlearn.mlp.scoring import Design
from onlearn.mlp.stored_network import FILED, unpack_network
from onlearn.mlp.training import NOT_FINITE, Diverged, NetworkTraining
from onlearn.model_schema import Arrays, check_facts

SIZES = "a whole number of units, or several, one for each hidden layer"
MOST_UNITS = 1 << 20  # of a layer


class Settings:
    """The parameters of a network."""

    hidden_layer_sizes: Any = param((100,), "units of the hidden layers, from the first", kind="other", allowed=SIZES)
    activation: str = param("relu", "what the units of hidden layers compute", words=tuple(UNITS))
    loss: str = param(
        "auto",
        "what is minimised; 'auto': 'logistic' for two classes, 'softmax' for more; 'squared' is of logistic units",
        words=("auto", *LOSSES),
    )
    optimizer: Any = param(
        "adam",
        "how a gradient changes the weights",
        kind="other",
        allowed="'sgd', 'adagrad', 'adam', or one with values",
    )
    l2: float = param(0.0, "weight of |w|_2^2 / 2 in the objective, biases left out", kind="number", at_least=0)
    batch_size: int = param(32, "examples of a step; 1 learns on-line", kind="whole", at_least=1)
    epochs: int = param(100, "the most passes over the data that fit makes", kind="whole", at_least=1)
    tol: float = param(
        1e-4,
        "the least change of the loss, or of the score of rows held out, that is progress",
        kind="number",
        at_least=0,
    )
    patience: int = param(10, "passes without progress after which fit ends", kind="whole", at_least=1)
    early_stopping: bool = param(
        False, "whether fit holds rows out and ends with the network that is best on them", kind="truth"
    )
    validation_fraction: float = param(0.1, "the part of the rows that is held out", kind="number", above=0, below=1)
    time_limit: float | None = param(None, "the most seconds that fit takes", kind="number", above=0, words=(None,))
    standardize: bool = param(True, "whether columns, and numbers to predict, are brought to one size", kind="truth")
    dtype: str = param("float32", "precision of the weights", words=("float32", "float64"))


SHARED = ("shuffle", "class_weight", "random_state", "warm_start", "verbose")
# The shared ones last, as in the signature: the first parameter of a network is its layers.
OWN: dict[str, Parameter] = {**parameters(dataclass(Settings)), **{name: PARAMETERS[name] for name in SHARED}}
OF_CLASSES = ("loss", "class_weight")

COMPOSITIONS = {
    name: Composition(
        name,
        summary,
        task=task,
        shared=(),
        own={key: one for key, one in OWN.items() if key not in OF_CLASSES or task == "classify"},
        families={"optimizer": OPTIMIZERS},
    )
    for name, task, summary in (
        ("MLPClassifier", "classify", "A multi-layer perceptron for classes, learned by back-propagation."),
        ("MLPRegressor", "regress", "A multi-layer perceptron for numbers, learned by back-propagation."),
    )
}


def layer_sizes(given: Any) -> tuple[int, ...]:
    """The sizes of hidden layers as they may be written: 100, (100, 50), "100,50".

    >>> layer_sizes("(64, 32)"), layer_sizes(8), layer_sizes([])
    ((64, 32), (8,), ())
    """
    sizes = given
    if isinstance(sizes, str):
        try:
            sizes = ast.literal_eval(sizes)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            sizes = None
    sizes = (sizes,) if isinstance(sizes, Integral) else sizes
    if isinstance(sizes, np.ndarray):
        sizes = sizes.tolist()
    whole = isinstance(sizes, (tuple, list)) and all(isinstance(n, Integral) and not isinstance(n, bool) for n in sizes)
    if not whole or not all(1 <= n <= MOST_UNITS for n in sizes):
        raise ValueError(f"hidden_layer_sizes must be {SIZES}, each from 1 to {MOST_UNITS}, not {given!r}")
    return tuple(int(n) for n in sizes)


class NetworkLearner(BaseLearner):
    """A multi-layer perceptron. It has a fixed number of inputs, so runs over files read all rows first."""

    training: NetworkTraining | None
    waits = True
    usual_passes: int | None = 20
    FIXED: tuple[str, ...] = ("activation", "optimizer", "l2", "batch_size", "standardize", "dtype")
    task_name: str

    @property
    def composition(self) -> Composition:
        return COMPOSITIONS[self.task_name]

    def configure(self, values: dict[str, Any]) -> None:
        """Take the values of all parameters; sizes that a file holds as text become numbers again."""
        if isinstance(values.get("hidden_layer_sizes"), str):
            values = {**values, "hidden_layer_sizes": layer_sizes(values["hidden_layer_sizes"])}
        super().configure(values)

    def check(self) -> None:
        super().check()
        layer_sizes(self.settings.hidden_layer_sizes)
        self.choices["optimizer"].check_l2(self.settings.l2)

    def _depends_on(self) -> dict[str, Any]:
        fixed = super()._depends_on()
        fixed["hidden_layer_sizes"] = layer_sizes(self.settings.hidden_layer_sizes)
        fixed["optimizer"] = repr(self.choices["optimizer"])
        return fixed | {"loss": getattr(self.settings, "loss", "regression")}

    def _design(self, outputs: int) -> Design:
        settings = self.settings
        loss = getattr(settings, "loss", "regression")
        return Design(
            layer_sizes(settings.hidden_layer_sizes),
            settings.activation,
            ("logistic" if outputs == 1 else "softmax") if loss == "auto" else loss,
            self.choices["optimizer"],
            float(settings.l2),
            int(settings.batch_size),
            settings.dtype,
            bool(settings.standardize),
        )

    # ------------------------------------------------------------------ learning

    def _begin(self, X: Any, y: np.ndarray, names: Any, sees_all: bool) -> Any:
        self._sparse = csr.is_sparse(X)
        return super()._begin(X, y, names, sees_all)

    def _new_training(self) -> NetworkTraining:
        classes = len(self.task.classes) if self.task.classifies else 1
        outputs = 1 if classes == 2 and self.settings.loss != "softmax" else classes
        sparse = self._sparse if self.training is None else self.training.sparse
        return NetworkTraining(self._design(outputs), self.features, outputs, self.seed, sparse)

    def _learn_all(self, X: Any, targets: np.ndarray, weight: np.ndarray) -> None:
        training, settings = self._trained(), self.settings
        with (
            self._said(),
            first_ctrl_c() as pressed,
            progress_bar(settings.verbose, settings.epochs, len(targets)) as bar,
        ):
            training.finish_batch()
            asked = self.interrupted
            stop = pressed if asked is None else lambda: pressed() or asked()
            training.stopped = run_epochs(training, X, targets, weight, settings, self.seed, stop, bar)
        if training.stopped == DIVERGED:
            last = training.passes
            warn_caller(
                f"learning diverged in pass {last + 1}: {REMEDY}; the network of pass {last} is kept", self.warning
            )
        elif training.stopped == INTERRUPTED:
            warn_caller("learning was interrupted; what was learned is kept", self.warning)

    def _learn_once(self, X: Any, targets: np.ndarray, weight: np.ndarray) -> None:
        if self.settings.early_stopping:
            raise ValueError(
                "early_stopping needs fit, which has all rows: partial_fit and runs over files cannot use it"
            )
        training = self._trained()
        if not weight.all():
            there = np.flatnonzero(weight)
            X, targets, weight = csr.rows_at(X, there), targets[there], weight[there]
        if not len(targets):
            return
        one = len(targets) == 1  # a copy of all weights would take longer than its step
        kept = training.saved(weights=not one)
        with self._said(), to_the_end(len(targets)):
            try:
                rows, y = training.followed(training.as_kind(X), targets)
                training.learn(rows, y, weight, np.arange(len(y)))
            except Diverged as error:
                if one and str(error) != NOT_FINITE:
                    warn_caller(f"{self.name} diverges, {error}, and was left as it is: {REMEDY}", self.warning)
                    return
                training.restore(kept)
                raise

    @contextmanager
    def _said(self) -> Iterator[None]:
        """Numbers beyond all measure are noticed, so that NumPy need not warn; and said in a sentence."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
            try:
                yield
            except Diverged as error:
                raise ValueError(f"{self.name} diverged, {error}: {REMEDY}") from None

    # ------------------------------------------------------------------ what was learned

    @property
    def loss_curve_(self) -> list[float]:
        """The mean loss of each pass, of examples before they were learned from."""
        return [entry["loss"] for entry in self._trained().by_pass]

    @property
    def validation_scores_(self) -> list[float]:
        """Accuracy or R^2 of the rows held out, after each pass of fit with ``early_stopping``."""
        return list(self._trained().validation)

    @property
    def stopped_(self) -> str | None:
        """Why fit ended: "epochs", "tol", "validation", "time_limit", "interrupted" or "diverged"."""
        return self._trained().stopped

    @property
    def coefs_(self) -> list[np.ndarray]:
        """The weights of each layer, a row for each unit before and a column for each of its own."""
        training = self._trained()
        return [one.copy() for one in training.layout.views(training.hand_out())[0]]

    @property
    def intercepts_(self) -> list[np.ndarray]:
        """The bias of each unit, by layer."""
        training = self._trained()
        return [one.copy() for one in training.layout.views(training.hand_out())[1]]

    @property
    def coef_(self) -> np.ndarray:
        raise AttributeError("a network is not linear, so features have no weights of their own; coefs_ has its layers")

    def described(self) -> dict[str, Any]:
        training = self._trained()
        design = training.design
        return {
            "layers": list(training.layout.sizes),
            "activation": design.unit,
            "loss": "squared" if design.loss == "regression" else design.loss,
            "optimizer": repr(design.optimizer),
            "all_weights": training.layout.size,
            "steps": training.steps,
            "batch_size": design.batch,
        }

    def contributions(self, X: Any) -> Contributions:
        """Gradient times input: what the score would lose, to first order, were a value its mean (or 0)."""
        training = self._trained()
        X = self._rows(X, first=False)
        row = csr.dense_rows(X, np.arange(1)).astype(np.float64)
        scores = training.scores(X)[0]
        favours, against = 1, 0
        wanted = np.zeros((1, training.outputs))
        if training.outputs == 1:
            wanted[0, 0] = 1.0
            score = float(scores[0])
        else:
            order = np.argsort(-scores, kind="stable")
            favours, against = int(order[0]), int(order[1])
            wanted[0, favours], wanted[0, against] = 1.0, -1.0
            score = float(scores[favours] - scores[against])
        gradient, shift = training.scorer().gradient_of(row, wanted)
        columns = np.arange(row.shape[1]) if not csr.is_sparse(X) else np.unique(X.indices)
        values, weights = row[0, columns], gradient[columns]
        amounts = weights * (values - shift[columns])
        note = "an approximation: the network is not linear, so each amount is gradient times input"
        return Contributions(
            columns, values, weights, amounts, score - float(amounts.sum()), favours, against, note=note
        )

    # ------------------------------------------------------------------ predicting

    def _scores(self, X: Any, training: Any = None) -> np.ndarray:
        return np.asarray((training or self._trained().scorer()).scores(X))

    def _probabilities(self, X: Any, task: Any, training: Any) -> np.ndarray:
        scores = self._scores(X, training)
        if scores.shape[1] == 1:
            second = expit(np.clip(scores[:, 0], -700, 700))
            return np.column_stack([1.0 - second, second])
        if training.design.loss == "softmax":
            return np.asarray(softmax(scores))
        each = expit(np.clip(scores, -700, 700)) + 1e-300
        return np.asarray(each / each.sum(axis=1, keepdims=True))

    # ------------------------------------------------------------------ the model file

    def _unpack_training(self, facts: dict[str, Any], arrays: Arrays, features: int) -> NetworkTraining:
        check_facts(facts, FILED, "training")
        self.check()
        return unpack_network(self._design(facts["outputs"]), features, self.seed, facts, arrays)


REMEDY = "lower the rate of the optimizer, or leave standardize on"


class MLPClassifierLearner(NetworkLearner):
    """A network for classes.

    >>> X, y = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]), np.array(["no", "yes", "yes", "no"])
    >>> MLPClassifierLearner(hidden_layer_sizes=8, optimizer="adam(0.05)", random_state=0).fit(X, y).predict(X).tolist()
    ['no', 'yes', 'yes', 'no']
    """

    task_name = "MLPClassifier"


class MLPRegressorLearner(NetworkLearner):
    """A network for numbers."""

    task_name = "MLPRegressor"
