"""Peers: estimators of other packages that are compared with ours, on the features that ours learn from.

A peer is anything with ``fit`` and ``predict`` as scikit-learn has them: an object, or on the command line the name of
its module and class, with constants as parameters: ``sklearn.linear_model:SGDClassifier(loss=log_loss)``. That text is
read, never evaluated; words stand for themselves.
"""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
import threading
from collections.abc import Callable
from importlib import import_module
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from onlearn.engine.spec import did_you_mean
from onlearn.errors import PlanError
from onlearn.models.evaluation import TINY

T = TypeVar("T")
FORM = "write module:Class(parameter=value), such as sklearn.linear_model:SGDClassifier(loss=log_loss)"
FIRST = 64  # rows before the first test of a peer that learns from all rows at once
DENSE_BYTES = 1 << 30  # up to which sparse rows are made dense for peers that take no others
BLOCKS = 16  # parts of the rows so far that a peer with partial_fit learns at a time


def parse_peer(text: str) -> tuple[str, Any]:
    """The name and the estimator that a text spells.

    >>> parse_peer("sklearn.linear_model:SGDClassifier(loss=log_loss, alpha=1e-5)")
    ('SGDClassifier(loss=log_loss, alpha=1e-5)', SGDClassifier(alpha=1e-05, loss='log_loss'))
    """
    module, colon, call = text.strip().partition(":")
    if not colon or not all(part.isidentifier() for part in module.split(".")):
        raise PlanError(f"cannot read {text!r}: {FORM}", "peer")
    name, parameters = _parse_call(text, call)
    try:
        home = import_module(module)
    except ImportError as error:
        missing = getattr(error, "name", None) or module
        what = f"there is no module {missing!r}" if isinstance(error, ModuleNotFoundError) else f"{module}: {error}"
        raise PlanError(f"{what}: install the package of {name}, or leave it out", "peer") from None
    made = getattr(home, name, None)
    if not inspect.isclass(made) or not (hasattr(made, "fit") and hasattr(made, "predict")):
        there = [one for one in dir(home) if hasattr(getattr(home, one, None), "fit")]
        what = f"{module} has no estimator {name!r}" if made is None else f"{module}:{name} has no fit and predict"
        raise PlanError(f"{what}{did_you_mean(name, there)}", "peer")
    known = [one for one in inspect.signature(made).parameters.values() if one.kind is not one.VAR_KEYWORD]
    free = len(known) < len(inspect.signature(made).parameters)
    for parameter in parameters:
        if not free and parameter not in (names := [one.name for one in known]):
            raise PlanError(f"{name} has no parameter {parameter!r}{did_you_mean(parameter, names)}", "peer")
    try:
        return call.strip(), made(**parameters)
    except (TypeError, ValueError) as error:
        raise PlanError(f"{text}: {error}", "peer") from None


def _parse_call(text: str, call: str) -> tuple[str, dict[str, Any]]:
    try:
        tree: Any = ast.parse(call.strip(), mode="eval").body
        tree = tree if isinstance(tree, ast.Call) else ast.Call(tree, [], [])
        name, given = str(tree.func.id), {str(one.arg): _constant(one.value) for one in tree.keywords}
    except (SyntaxError, ValueError, AttributeError, RecursionError, MemoryError):
        raise PlanError(f"cannot read {text!r}: {FORM}", "peer") from None
    if tree.args:
        raise PlanError(f"cannot read {text!r}: say the names of parameters, as in alpha=0.1", "peer")
    return name, given


def _constant(node: ast.expr) -> Any:
    """A constant, a list, tuple or dict of such, or a word, which stands for itself."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.List):
        return [_constant(one) for one in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple(_constant(one) for one in node.elts)
    if isinstance(node, ast.Dict):
        keys = [one for one in node.keys if one is not None]
        return {_constant(key): _constant(value) for key, value in zip(keys, node.values, strict=True)}
    return ast.literal_eval(node)


def is_peer(learner: Any) -> bool:
    """Whether an object is an estimator that is not one of ours."""
    return hasattr(learner, "fit") and hasattr(learner, "predict") and not hasattr(learner, "_as_learner")


def refuse_other_task(estimator: Any, classes: int) -> None:
    """Refuse a regressor for classes, and a classifier for numbers, as far as estimators say what they are."""
    from sklearn.base import is_classifier, is_regressor

    if not hasattr(estimator, "get_params"):
        return
    if classes and is_regressor(estimator):
        raise ValueError("it predicts numbers, and the labels are classes")
    if not classes and is_classifier(estimator):
        raise ValueError("it predicts classes, and the labels are numbers")


class Matrices(NamedTuple):
    """The rows of a split as features, in random order, and class numbers or scaled numbers to predict."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    X_test: Any
    classes: int  # 0 in regression
    seconds: float  # that the features took
    memory_bytes: int | None  # likewise
    feature_bytes: int  # of what the features have learned: the vocabulary and the like


class PeerAnswers(NamedTuple):
    """What a peer predicted for the test rows: class numbers, or scaled numbers; and probabilities by class number."""

    predicted: np.ndarray
    proba: np.ndarray | None


def fresh_copy(estimator: Any, seed: int) -> Any:
    """A copy that has learned nothing, with a seed if it takes one and has none."""
    if not hasattr(estimator, "get_params"):
        return copy.deepcopy(estimator)
    from sklearn.base import clone

    made = clone(estimator)
    seeds = [name for name, value in made.get_params().items() if name.endswith("random_state") and value is None]
    return made.set_params(**dict.fromkeys(seeds, seed))


def interruptible(work: Callable[[], T]) -> T:
    """The result of some work, done in another thread: compiled code of others may not look at Ctrl-C for minutes.

    After Ctrl-C that thread is left alone. It ends when its work does, or with the process.
    """
    found: list[T] = []
    failed: list[BaseException] = []

    def do() -> None:
        try:
            found.append(work())
        except BaseException as error:  # raised below, in the thread that waits
            failed.append(error)

    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.2)
    if failed:
        raise failed[0]
    return found[0]


def as_taken(estimator: Any, rows: Matrices) -> Matrices:
    """The rows as an estimator takes them: dense if its tags refuse sparse ones, unless they are too large for that."""
    size = rows.X.shape[0] * rows.X.shape[1] * rows.X.dtype.itemsize
    if not hasattr(rows.X, "toarray") or not hasattr(estimator, "__sklearn_tags__") or size > DENSE_BYTES:
        return rows
    if estimator.__sklearn_tags__().input_tags.sparse:
        return rows
    return rows._replace(X=rows.X.toarray(), X_test=rows.X_test.toarray())


def fit_peer(estimator: Any, rows: Matrices) -> tuple[Any, float]:
    """Fit an estimator; it, and the seconds that took."""
    weighted = rows.weight is not None and "sample_weight" in inspect.signature(estimator.fit).parameters
    began = perf_counter()
    estimator.fit(rows.X, rows.y, **({"sample_weight": rows.weight} if weighted else {}))
    return estimator, perf_counter() - began


def answers_of(estimator: Any, X: Any, classes: int) -> PeerAnswers:
    """The predictions of a fitted estimator."""
    predicted = np.asarray(estimator.predict(X)).reshape(-1)
    if not classes:
        return PeerAnswers(predicted.astype(np.float64), None)
    return PeerAnswers(predicted.astype(np.int64), _probabilities(estimator, X, classes))


def _probabilities(estimator: Any, X: Any, classes: int) -> np.ndarray | None:
    """Probabilities with a column for each class; None if the estimator has none."""
    try:
        found = np.asarray(estimator.predict_proba(X), dtype=np.float64)
        known = np.asarray(estimator.classes_).astype(np.int64)
    except (AttributeError, NotImplementedError):
        return None
    made = np.zeros((found.shape[0], classes))
    made[:, known] = found.reshape(found.shape[0], -1)[:, : len(known)]
    return made


def peer_bytes(estimator: Any) -> int | None:
    """The size of a pickled estimator; None if it cannot be pickled."""
    try:
        return len(pickle.dumps(estimator, protocol=pickle.HIGHEST_PROTOCOL))
    except Exception:  # whatever the objects of another package raise
        return None


def peer_curve(estimator: Any, rows: Matrices, seed: int) -> list[dict[str, Any]]:
    """Mistakes and mean loss on rows before they are learned from, at doubling counts, in one pass.

    With ``partial_fit`` the peer learns small blocks, each predicted first. Without it, it is fitted anew to the first
    64, 128, 256, ... rows and predicts as many more: the rows before the first fit are not counted. The loss is the
    log-loss (None without probabilities), or half the squared error in regression.
    """
    if hasattr(estimator, "partial_fit"):
        return _curve_of_blocks(fresh_copy(estimator, seed), rows.X, rows.y, rows.classes)
    return _curve_of_fits(estimator, rows.X, rows.y, rows.classes, seed)


class _Tally:
    """Mistakes and losses of predicted rows, taken down at doubling counts."""

    def __init__(self, classes: int) -> None:
        self.classes: int = classes
        self.counted: int = 0
        self.mistakes: int = 0
        self.loss: float | None = 0.0
        self.curve: list[dict[str, Any]] = []

    def add(self, estimator: Any, X: Any, y: np.ndarray) -> None:
        found = answers_of(estimator, X, self.classes)
        self.counted += len(y)
        if not self.classes:
            self.loss = (self.loss or 0.0) + float(((found.predicted - y) ** 2).sum() / 2)
            return
        self.mistakes += int(np.count_nonzero(found.predicted != y))
        if found.proba is None or self.loss is None:
            self.loss = None
        else:
            self.loss -= float(np.log(np.clip(found.proba[np.arange(len(y)), y], TINY, 1.0)).sum())

    def note(self, seen: int) -> None:
        """An entry of the curve."""
        entry = {"seen": seen, "loss": None if self.loss is None else self.loss / max(1, self.counted)}
        self.curve.append({**entry, **({"mistakes": self.mistakes} if self.classes else {})})


def _curve_of_blocks(estimator: Any, X: Any, y: np.ndarray, classes: int) -> list[dict[str, Any]]:
    tally, seen, due = _Tally(classes), 0, 1
    first = {"classes": np.arange(classes)} if classes else {}
    while seen < len(y):
        stop = min(seen + max(1, seen // BLOCKS), due, len(y))
        if seen:
            tally.add(estimator, X[seen:stop], y[seen:stop])
        estimator.partial_fit(X[seen:stop], y[seen:stop], **({} if seen else first))
        seen = stop
        if seen == due:
            due *= 2
            if tally.counted:
                tally.note(seen)
    if tally.counted and tally.curve[-1]["seen"] != seen:
        tally.note(seen)
    return tally.curve


def _curve_of_fits(estimator: Any, X: Any, y: np.ndarray, classes: int, seed: int) -> list[dict[str, Any]]:
    tally, seen = _Tally(classes), FIRST
    while seen < len(y):
        stop = min(2 * seen, len(y))
        if not classes or len(np.unique(y[:seen])) > 1:
            tally.add(fresh_copy(estimator, seed).fit(X[:seen], y[:seen]), X[seen:stop], y[seen:stop])
            tally.note(stop)
        seen = stop
    return tally.curve
