"""One row at a time: the path of a single example into the compiled loops and back.

A call for many rows checks tables, makes arrays and passes dozens of them to compiled code, which for one row takes
far longer than learning from it. Here the arrays are made once. The numbers of a row are put into them, and calls that
are bound to them (``Loop.bind``) run the same loops, so that the state is the same to the last bit. Whatever is out of
the ordinary (a new class, a value that is not finite, weights of classes, a rule of the user's) takes the path of many
rows, which says what is wrong or does what is due.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np

from onlearn.engine.calibration import CALIBRATIONS, fit_curve
from onlearn.engine.compositions import refuse_changes
from onlearn.engine.csr import CSR, LAST, as_rows, is_sparse
from onlearn.engine.feature_names import FeatureNames, named_values, refuse_unknown
from onlearn.engine.inputs import HEAVIEST, plain
from onlearn.engine.protocol import catch_up
from onlearn.engine.scoring import score_row
from onlearn.engine.training import Training

DOUBLE = np.dtype(np.float64)
FLOATS = (DOUBLE, np.dtype(np.float32))
NUMBERS = frozenset((float, int, np.float64, np.int64))  # of targets and weights
DOUBLES = frozenset((float, int, bool, np.float64, np.int64))  # of which NumPy makes an array in double precision
ROOM = 64  # values of a sparse row to begin with


class PreparedRow:
    """Arrays that hold one row, dense or sparse, its target and its weight; and the loops bound to them."""

    training: Any
    g: Any
    st: Any
    room: int
    sparse: bool
    shape: tuple[int, ...]
    weight: np.ndarray
    scores: np.ndarray
    ends: np.ndarray  # these two of a sparse row
    memory: memoryview

    def __init__(self, training: Any, dtype: Any, room: int, sparse: bool) -> None:
        self.training, self.g, self.st = training, training.g, training.st
        self.room, self.sparse, self.shape = room, sparse, (training.features,)
        self.values: Any = np.zeros(room, dtype)
        self.target: Any = np.zeros(1, np.float64 if training.output is None else np.int64)
        self.weight, self.scores = np.ones(1), np.zeros(training.outputs)
        if sparse:
            self.columns: Any = np.zeros(room, np.int32)
            self.ends = np.zeros(2, np.int32)
            self.rows: Any = as_rows(CSR(self.values, self.columns, self.ends, (1, room)), training.bias)
            self.keys: tuple[str, ...] | None = None  # of the mapping that it holds, if it holds one
            self.put_values: Any = None  # takes the values of another mapping with the same keys
            self.memory = memoryview(self.values.data).cast("B")
        else:
            self.rows = as_rows(self.values.reshape(1, -1), training.bias)

    def serves(self) -> bool:
        """Whether the training still learns in the arrays that the loops are bound to."""
        training = self.training
        same = training.g is self.g and training.st is self.st
        return same and (self.sparse or training.features == self.room)

    @cached_property
    def learn(self) -> Callable[[], int]:
        """Learns from the row; returns 0 if the loop stopped before it."""
        bound: Callable[[], int] = self.training.bind(self.rows, np.zeros(1, np.int64), self.target, self.weight)
        return bound

    @cached_property
    def score(self) -> Callable[[], int]:
        """Puts the scores of the row into ``scores``; returns the output predicted, or -1 if a score is not finite."""
        return score_row.bind(self.rows, self.g, self.st, self.training.theta, self.scores)

    @property
    def count(self) -> int:
        """The values of the row."""
        return int(self.ends[1]) if self.sparse else self.room

    def is_finite(self) -> bool:
        """Whether the row holds neither NaN nor infinity."""
        return bool(np.isfinite(self.values[: self.count]).all())

    def put(self, columns: Any, values: Any) -> None:
        """Take in a sparse row for which there is room."""
        count = len(values)
        self.values[:count], self.columns[:count], self.ends[1] = values, columns, count
        self.keys = None

    def put_mapping(self, keys: tuple[str, ...] | None, columns: list[Any], values: Any) -> None:
        """The same for numbers of Python, which are written straight into memory; raises struct.error at others."""
        self.keys, count = None, len(columns)
        struct.pack_into(f"{count}i", self.columns, 0, *columns)
        self.put_values = partial(struct.Struct(f"{count}d").pack_into, self.memory, 0)
        self.put_values(*values)
        self.keys, self.ends[1] = keys, count


class RowPath:
    """Learns from, scores and predicts single rows for a learner, one thread at a time."""

    lock: Any
    scores_quickly: bool
    learns_quickly: bool
    is_lazy: bool
    positive: bool

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        self.lock = learner.lock
        self.training: Any = None  # for which the following holds
        self.settings: Any = None
        self.agreed: Any = None  # the settings that were found right to learn with
        self.scores_quickly = self.learns_quickly = self.is_lazy = self.positive = False
        self.dense: dict[np.dtype, PreparedRow] = {}
        self.sparse: dict[np.dtype, PreparedRow] = {}
        self.mapping: PreparedRow | None = None  # the one of them that holds a mapping
        self.scored: PreparedRow | None = None  # the one that was scored last
        self.classes: np.ndarray | None = None  # of which the following are made
        self.labels: list[Any] = []
        self.codes: dict[Any, int] = {}

    def _look_at_learner(self) -> None:
        """Find out what can be done quickly with the training and the parameters of the learner."""
        learner, training = self.learner, self.learner.training
        self._forget_rows()
        self.training, self.settings = training, learner.settings
        linear = type(training) is Training and learner.representation is None
        self.scores_quickly = linear and not training.stabilizer.every_hypothesis
        self.learns_quickly = (
            self.scores_quickly and not training.may_fail and learner._class_weight is None and not learner._holds_out()
        )
        # Where weights are brought up to date when they are looked at, a look would change what is learned later.
        self.is_lazy = linear and not catch_up.is_usual(type(training.g), type(training.st))
        self.positive = linear and training.geometry.positive_only

    def _forget_rows(self) -> None:
        """Let go of rows that are prepared for arrays of another state, and of these."""
        self.dense, self.sparse, self.mapping, self.scored = {}, {}, None, None

    def _labels(self, task: Any) -> list[Any]:
        """The classes as Python has them."""
        if task.classes is not self.classes:
            self.classes, self.labels = task.classes, task.classes.tolist()
            self.codes = {label: code for code, label in enumerate(self.labels)}
        return self.labels

    # ------------------------------------------------------------------ learning

    def learn(self, row: Any, y: Any, weight: Any) -> None:
        """Learn from one example, as ``partial_fit`` does."""
        learner = self.learner
        with self.lock:
            if learner.settings is not self.agreed or learner.training is not self.training:
                learner.check()
                if learner.training is not None:
                    refuse_changes(learner.began_with, learner._depends_on())
                self.agreed = learner.settings
            if learner.settings is not self.settings or learner.training is not self.training:
                self._look_at_learner()
            target = self._target(y) if self.learns_quickly else None
            usual = target is not None and type(weight) in NUMBERS and 0.0 < weight <= HEAVIEST
            prepared = self._prepared(row, learning=True) if usual else None
            if prepared is not None and not (self.is_lazy and not prepared.is_finite()):
                training = self.training
                before = learner.separable, learner.held_out, training.even
                # First, so that Ctrl-C cannot come between learning and this.
                learner.separable = learner.held_out = training._handed = None
                training.even = training.even and weight == 1.0
                prepared.target[0], prepared.weight[0] = target, weight
                if prepared.learn() == 1:
                    return
                learner.separable, learner.held_out, training.even = before
            self._learn_as_one_of_many(row, y, weight)

    def _target(self, y: Any) -> float | int | None:
        """What the loop learns; None if it is a new class, or nothing that can be learned."""
        task = self.learner.task
        if not task.classifies:
            return float(y) if type(y) in NUMBERS and -LAST <= y <= LAST else None
        self._labels(task)
        try:
            code = self.codes.get(y)
        except TypeError:  # a list, say
            return None
        return code if code is None or self.training.output is not None else 2.0 * code - 1.0

    def _learn_as_one_of_many(self, row: Any, y: Any, weight: Any) -> None:
        """The path of many rows, which checks everything."""
        learner, names = self.learner, self.learner.feature_names
        known = None if names is None else (len(names), names.hashed)
        try:
            X, named = self.matrix(row, learning=True)
            weights = None if type(weight) in (float, int) and weight == 1.0 else [weight]
            first = learner._classes_of_first(y) if learner.training is None else {}
            learner._partial_fit(X, [y], sample_weight=weights, names=named, **first)
        except BaseException:
            if known is not None:
                names.remove(*known)
            raise

    # ------------------------------------------------------------------ answers

    def _best(self, row: Any) -> int:
        """The output predicted by what the learner would hand out now; -1 if the row is out of the ordinary."""
        learner = self.learner
        if learner.settings is not self.settings or learner.training is not self.training:
            self._look_at_learner()
        prepared = self.scored = self._prepared(row, False) if self.scores_quickly else None
        if prepared is None:
            learner._trained()
            return -1
        return self._score_of_copy(prepared) if self.is_lazy else prepared.score()

    def _score_of_copy(self, prepared: PreparedRow) -> int:
        """The same by lazy weights, of which those that the row needs are copied first."""
        count = prepared.count
        columns = prepared.columns[:count] if prepared.sparse else np.arange(count)
        rows = as_rows(prepared.values[:count].copy().reshape(1, -1), self.training.bias)
        return int(score_row(rows, *self.training.copied_weights(columns), self.training.theta, prepared.scores))

    def _scores(self, row: Any) -> np.ndarray:
        """The scores of a row by output."""
        if self._best(row) >= 0 and self.scored is not None:
            return self.scored.scores
        X, _ = self.matrix(row, learning=False)
        X = self.learner._rows(X, first=False, finite=False)
        return np.asarray(self.learner._scores(X)[0], dtype=np.float64)

    def predict(self, row: Any) -> Any:
        """The class of a row, on a tie the first; in regression the number."""
        with self.lock:
            task = self.learner.task
            if not task.classifies:
                return float(self._scores(row)[0])
            best, labels = self._best(row), self._labels(task)
            if 0 <= best < len(labels):  # else there is room for a class that did not come yet
                return labels[best]
            return plain(task.chosen(task.shaped(self._scores(row)[None]))[0])

    def score(self, row: Any) -> Any:
        """One number for two classes and in regression, else a dict of one number a class."""
        with self.lock:
            scores, task = self._scores(row), self.learner.task
            if len(scores) == 1:
                return float(scores[0])
            shaped = task.shaped(scores[None])[0]
            return dict(zip(self._labels(task), shaped.tolist())) if np.ndim(shaped) else float(shaped)

    def probabilities(self, row: Any, calibration: Any) -> dict[Any, float]:
        """The probability of each class."""
        learner = self.learner
        with self.lock:
            score, task = self.score(row), learner.task
            given = calibration is None or calibration is learner.settings.calibration
            choice = learner.choices["calibration"] if given else CALIBRATIONS.get(calibration)
            curve = fit_curve(choice, learner.training, task.columns, learner.held_out)
            labels = self._labels(task)
            if isinstance(score, float):
                second = curve.probability(score)
                return {labels[0]: 1.0 - second, labels[1]: second}
            found = curve.probabilities(np.array([[*score.values()]]))[0]
            return dict(zip(labels, found.tolist()))

    # ------------------------------------------------------------------ rows

    def _prepared(self, row: Any, learning: bool) -> PreparedRow | None:
        """The row as the bound loops take it; None if it is out of the ordinary."""
        kind = type(row)
        if kind is dict:
            prepared = self.mapping
            if prepared is None or tuple(row) != prepared.keys or not prepared.serves():
                prepared = self._mapping(row, learning)
            else:  # names as before, and so are their columns
                try:
                    prepared.put_values(*row.values())
                except (struct.error, OverflowError, TypeError):
                    prepared = self._named_row(row, learning)
        elif kind is np.ndarray:
            prepared = self._dense(row[0] if row.ndim == 2 and len(row) == 1 else row)
        elif isinstance(row, CSR) or hasattr(row, "tocsr"):
            prepared = self._sparse(row if isinstance(row, CSR) else CSR.of(row))
        elif isinstance(row, (list, tuple)):
            prepared = self._dense(_as_array(row)) if DOUBLES.issuperset(map(type, row)) else None
        elif hasattr(row, "items"):  # another mapping, or a row of a data frame
            return self._prepared(dict(row.items()), learning)
        else:
            return None
        if self.positive and prepared is not None and prepared.values[: prepared.count].min(initial=0) < 0:
            return None
        return prepared

    def _dense(self, row: np.ndarray) -> PreparedRow | None:
        prepared = self.dense.get(row.dtype)
        if prepared is None or not prepared.serves():
            if row.dtype not in FLOATS:
                return None
            if prepared is not None:
                self._forget_rows()
            prepared = self.dense[row.dtype] = PreparedRow(self.training, row.dtype, self.training.features, False)
        if row.shape != prepared.shape:
            return None
        prepared.values[:] = row
        return prepared

    def _room_for(self, count: int, dtype: Any) -> PreparedRow:
        """The arrays for sparse rows, which are made longer where that is needed."""
        prepared = self.sparse.get(dtype)
        if prepared is None or prepared.room < count or not prepared.serves():
            if prepared is not None and not prepared.serves():
                self._forget_rows()
            prepared = self.sparse[dtype] = PreparedRow(self.training, dtype, max(ROOM, 2 * count), True)
        return prepared

    def _sparse(self, row: CSR) -> PreparedRow | None:
        if row.shape[0] != 1 or row.dtype not in FLOATS or row.shape[1] != self.learner.features:
            return None
        held = slice(int(row.indptr[0]), int(row.indptr[1]))
        columns, values = row.indices[held], row.data[held]
        if not row.unique and not _are_columns(columns, row.shape[1]):
            return None
        prepared = self._room_for(len(values), row.dtype)
        prepared.put(columns, values)
        return prepared

    def _mapping(self, row: dict[str, Any], learning: bool) -> PreparedRow | None:
        """A mapping with other names than the one before."""
        names: FeatureNames | None = self.learner.feature_names
        if names is None:
            return None
        keys = tuple(row)
        columns = list(map(names.columns.get, keys))
        if None in columns or names.width > self.training.features:
            return self._named_row(row, learning)
        prepared = self.mapping = self._room_for(len(columns), DOUBLE)
        try:
            prepared.put_mapping(keys, columns, row.values())
        except (struct.error, OverflowError, TypeError):  # there are strings, or what cannot be learned
            return self._named_row(row, learning)
        return prepared

    def _named_row(self, row: Mapping[str, Any], learning: bool) -> PreparedRow | None:
        """A mapping that has strings, or names that are new."""
        names: FeatureNames = self.learner.feature_names
        values = named_values(row)
        columns = self._columns(names, values)
        if -1 in columns or names.width > self.training.features:
            if not learning:
                values = {name: value for (name, value), k in zip(values.items(), columns) if k >= 0}
            elif self.positive and min(values.values()) < 0:  # refused below, before anything is taken in
                return None
            else:
                self._take_in(names, values)
            columns = self._columns(names, values)
        if names.hashed and len(set(columns)) < len(columns):  # some share a column
            return None
        prepared = self._room_for(len(columns), DOUBLE)
        prepared.put_mapping(None, columns, values.values())
        return prepared

    def _columns(self, names: FeatureNames, values: Mapping[str, float]) -> list[int]:
        """The columns of names; -1 for those that are new to a learner that takes in new ones."""
        columns = [names.column(name) for name in values]
        if -1 in columns and not self.learner._grows():
            refuse_unknown(next(name for name, k in zip(values, columns) if k < 0), names)
        return columns

    def _take_in(self, names: FeatureNames, values: Mapping[str, float]) -> None:
        """Make room for new names, wholly or not at all."""
        learner, training = self.learner, self.training
        known, features, grown = (len(names), names.hashed), learner.features, training.features
        try:
            width = names.add(values)
            training.grow(width, training.outputs)
            learner.features = width
        except BaseException:  # Ctrl-C, or no memory
            names.remove(*known)
            learner.features, training.features, training._handed = features, grown, None
            raise

    def matrix(self, row: Any, learning: bool) -> tuple[Any, FeatureNames | None]:
        """A matrix of the one row, and the names of its columns if they have names."""
        learner = self.learner
        if learner.takes_objects():
            return [row], None
        if hasattr(row, "items"):  # a mapping, or a row of a data frame
            return self._matrix_of_names(named_values(dict(row.items())), learning)
        if isinstance(row, str):
            raise TypeError("a learner takes numbers; texts are for onlearn.Model and for string kernels")
        sparse = is_sparse(row) or hasattr(row, "tocsr")
        X: Any = (row if isinstance(row, CSR) else CSR.of(row)) if sparse else np.asarray(row)
        if X.dtype.kind not in "fiub":
            raise TypeError(f"a row must hold numbers, not {row!r}")
        if not is_sparse(X) and X.ndim == 1:
            X = X[None]
        if len(X.shape) != 2 or X.shape[0] != 1:
            raise ValueError(f"one row is learned from or predicted at a time, not an array of shape {X.shape}")
        return X, None

    def _matrix_of_names(self, values: dict[str, float], learning: bool) -> tuple[CSR, FeatureNames]:
        learner, names = self.learner, self.learner.feature_names
        if names is None:
            if learner.training is not None:
                raise TypeError(f"this {learner.name} knows its features by number: give a row of numbers, not names")
            names = FeatureNames((), learner.limit_of_names())
            names.add(values)
        elif learning and learner._grows():
            names.add(values)
        columns = self._columns(names, values)
        known = [(k, value) for k, value in zip(columns, values.values()) if k >= 0]
        data, indices = np.array([value for _, value in known]), np.array([k for k, _ in known], np.int32)
        width = max(1, names.width if learning else learner.features)
        return CSR(data, indices, np.array([0, len(known)], np.int32), (1, width)), names


def is_one_row(X: Any) -> bool:
    """Whether X is an array of one row of floats."""
    return type(X) is np.ndarray and X.ndim == 2 and len(X) == 1 and X.dtype in FLOATS


def _as_array(row: Any) -> np.ndarray:
    """Python's numbers in double precision; as objects, if one is too large."""
    try:
        return np.array(row, dtype=np.float64)
    except OverflowError:
        return np.array(row, dtype=object)


def _are_columns(columns: np.ndarray, width: int) -> bool:
    """Whether columns exist, and each is there once."""
    ordered = np.sort(columns)
    inside = not len(ordered) or (ordered[0] >= 0 and ordered[-1] < width)
    return bool(inside and (ordered[1:] != ordered[:-1]).all())
