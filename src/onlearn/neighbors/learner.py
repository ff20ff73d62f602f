"""k nearest neighbours: a learner that keeps its examples, and lets those nearest to a row vote.

What is learned is a function of the rows kept: ``partial_fit`` in any number of calls leaves what one ``fit`` does. The
spread of columns, the search index and k="auto" are worked out when they are first needed, from the rows there are
then.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from onlearn import kernels
from onlearn.dual.examples import check_examples, pick
from onlearn.engine.base_learner import BaseLearner, Contributions
from onlearn.engine.compositions import Composition
from onlearn.engine.feature_names import FeatureNames
from onlearn.engine.passes import warn_caller
from onlearn.engine.spec import did_you_mean
from onlearn.kernels.formula import copied
from onlearn.kernels.products import in_precision, number_rows, refuse_strings
from onlearn.model_schema import (
    COUNT,
    FINITE,
    NAMES,
    NESTED,
    PLAIN,
    TRUTH,
    AnyOf,
    Arrays,
    ListOf,
    OrMissing,
    Record,
    TupleOf,
    check_array,
    check_facts,
)
from onlearn.neighbors.categories import as_numbers, has_categories
from onlearn.neighbors.columns import Columns
from onlearn.neighbors.distances import Induced, make_index
from onlearn.neighbors.memory import Neighbourhood, Objects, Table
from onlearn.neighbors.search import nearest
from onlearn.neighbors.settings import KNN_CLASSIFIER, KNN_REGRESSOR
from onlearn.neighbors.votes import KPath, mean_of_neighbours, path_of_k, tally, vote

NUMBER, ONE_HOT, OTHER = 0, 1, 2  # kinds of features that come from tables
KINDS = {"number": NUMBER, "scaled": NUMBER, "category": ONE_HOT, "matrix": NUMBER, "named": NUMBER}
COMPARED = ("mixed", "hamming")  # metrics that compare categories
MANY = 1_000_000  # rows from which on engine="auto" asks FAISS


# What files say of it, besides what they say of every learner.
COLUMNS = OrMissing(
    AnyOf(ListOf(PLAIN, "columns"), Record(pairs=ListOf(TupleOf(PLAIN, FINITE), "columns and weights")))
)
NEIGHBORS = Record(
    categories=ListOf(COUNT, "columns"),
    kernel=OrMissing(NESTED),
    kernel_as_text=OrMissing(TRUTH),
    column_weights=COLUMNS,
    categorical=COLUMNS,
    columns=OrMissing(NAMES),
)


class NeighborLearner(BaseLearner):
    """What the classifier and the regression share."""

    whole = True
    is_progressive = False
    usual_passes: int | None = 1
    usual_features: ClassVar[dict[str, dict[str, Any]]] = {"number": {"scale": "none"}}  # scaled here, by all rows
    FIXED: tuple[str, ...] = ("metric", "kernel", "categorical", "window")

    training: Neighbourhood

    def _prepare(self, params: dict[str, Any]) -> None:
        super()._prepare(params)
        self.kernel: Any = None  # once learning has begun
        self.categories: np.ndarray = np.zeros(0, bool)  # columns that are compared by equality
        self.kinds: np.ndarray | None = None  # of features that come from a table
        self.columns: list[str] | None = None  # of a table, that features are made of, if they have weights

    # ------------------------------------------------------------------ parameters

    def check(self) -> None:
        super().check()
        settings = self.settings
        if settings.kernel is not None:
            kernel = kernels.get(settings.kernel)
            if kernel.data == "matrix":
                raise ValueError(f"kernel: {kernel} does not know k(x, x) of new rows, which distances need")
            if settings.metric != "mixed":
                raise ValueError("a kernel has a distance of its own: give metric= or kernel=, not both")
        check_given(settings)
        asked = settings.categorical is not None or settings.column_weights is not None
        if asked and settings.kernel is not None:
            raise ValueError("categorical= and column_weights= have no use with a kernel")
        if settings.categorical is not None and settings.metric not in COMPARED:
            raise ValueError(f"categories need metric='mixed' or 'hamming': {settings.metric!r} takes numbers")
        if settings.engine == "faiss":
            from onlearn.neighbors.faiss_index import check_installed, refuse_metric

            refuse_metric(settings)
            check_installed()

    def takes_objects(self) -> bool:
        return self.settings.kernel is not None and kernels.get(self.settings.kernel).data not in ("vectors", "matrix")

    @property
    def wants_sources(self) -> bool:  # type: ignore[override]
        return self.settings.kernel is None

    @property
    def wants_columns(self) -> bool:  # type: ignore[override]
        given = as_given(self.settings.column_weights)
        return isinstance(given, Mapping) and all(isinstance(column, str) for column in given)

    def take_columns(self, columns: list[str]) -> None:
        self.columns = columns

    def columns_told(self) -> int:
        return 0 if self.kinds is None else len(self.kinds)

    def take_sources(self, codes: np.ndarray, sources: list[tuple[str, str]]) -> None:
        """Features of a table are numbers, values of a category, or other things; others are taken as numbers."""
        if not len(codes) or (self.kinds is None and all(source in ("matrix", "named") for source, _ in sources)):
            return
        kinds = np.array([KINDS.get(source, OTHER) for source, _ in sources], np.uint8)[codes]
        self.kinds = kinds if self.kinds is None else np.concatenate([self.kinds, kinds])

    # ------------------------------------------------------------------ rows

    def _rows(self, X: Any, first: bool, finite: bool = True, names: Any = None, width: int | None = None) -> Any:
        if first:
            self.kernel = None if self.settings.kernel is None else copied(self.settings.kernel)
        kernel = self.kernel
        if kernel is not None:
            if kernel.data != "vectors":
                raw = check_examples(X, kernel)
                if isinstance(raw, list):
                    kernel.points(raw)  # refuses what it cannot read
                    return Objects(raw)
                X = raw
            refuse_strings(X, kernel)
        words: list[int] = []
        if kernel is None and has_categories(X):
            if self.settings.metric not in COMPARED:
                raise ValueError(
                    f"X has columns that are not numbers, which metric={self.settings.metric!r} cannot compare: use "
                    "metric='mixed', or encode them"
                )
            X, words = as_numbers(X)
        X = number_rows(super()._rows(X, first, True, names, width), self.name)
        if first:
            self._choose_categories(X.shape[1], words, names)
        elif len(new := [j for j in words if not self.categories[j]]):
            raise ValueError(f"{self.column_name(new[0])} held numbers when learning began, but holds words now")
        return X if first else in_precision(X, self.dtype)

    def _choose_categories(self, width: int, words: list[int], names: Any) -> None:
        chosen = np.zeros(width, bool)
        chosen[words] = True
        given = as_given(self.settings.categorical)
        if given is not None:
            names = self.feature_names if names is None else names
            names = names.names if isinstance(names, FeatureNames) else names
            chosen[[column_number(one, width, names, "categorical") for one in given]] = True
        self.categories = chosen

    def _columns(self, width: int) -> Columns:
        """What is known of the columns now."""
        categories = np.zeros(width, bool)
        categories[: len(self.categories)] = self.categories
        numbers, weights = ~categories, np.ones(width)
        given = as_given(self.settings.column_weights)
        if self.columns is not None and self.wants_columns:
            for column, weight in given.items():
                features = [n for n, one in enumerate(self.columns) if one == column]
                if not features:
                    column_number(column, width, dict.fromkeys(self.columns), "column_weights")  # says what there is
                weights[features] = weight
        elif isinstance(given, Mapping):
            for column, weight in given.items():
                weights[column_number(column, width, self.names, "column_weights")] = weight
        elif given is not None:
            listed = np.asarray(given, np.float64)
            if listed.ndim != 1 or len(listed) != width:
                raise ValueError(f"column_weights has {listed.size} numbers, but there are {width} columns")
            weights = listed.copy()
        if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
            raise ValueError("column_weights must be numbers of at least 0, not all of them 0")
        if self.kinds is not None:
            kinds = np.full(width, OTHER, np.uint8)
            kinds[: len(self.kinds)] = self.kinds[:width]
            numbers &= kinds == NUMBER
            if self.settings.metric in COMPARED:  # two categories differ in two features: both count half
                weights[kinds == ONE_HOT] /= 2
        return Columns(categories, numbers, weights)

    # ------------------------------------------------------------------ learning

    def _new_training(self) -> Neighbourhood:
        outputs = max(2, len(self.task.classes)) if self.task.classifies else 1
        training = Neighbourhood(self.features, outputs)
        training.classifies, training.window = self.task.classifies, self.settings.window
        return training

    def _learn_once(self, X: Any, targets: np.ndarray, weight: np.ndarray) -> None:
        if not isinstance(X, Objects):
            X = in_precision(X, self.dtype)
            self._columns(X.shape[1])  # refuses weights that cannot be
        dtype = np.int64 if self.task.classifies else np.float64
        self.training.add(X, np.array(targets, dtype), np.array(weight, np.float64))

    def _learn_all(self, X: Any, targets: np.ndarray, weight: np.ndarray) -> None:
        self._learn_once(X, targets, weight)
        table = self._table()
        table.index.prepare()  # which says what is wrong with the rows
        self._path(table)
        self._end_pass()
        k = self.settings.k
        if k != "auto" and len(table) < k:
            warn_caller(f"k={k}, but only {len(table)} rows are kept: all of them vote", UserWarning)

    def learn_more(self, X: Any, y: np.ndarray, sample_weight: Any, *, same_rows: bool) -> None:
        if not same_rows:
            self._partial_fit(X, y, sample_weight=sample_weight)

    def _finish_run(self) -> None:
        self._path(self._table())

    def _table(self, table: Table | None = None) -> Table:
        """The rows kept, which know how to make their index by the present parameters."""
        table = self._trained().snapshot() if table is None else table
        settings = self.settings
        key = (settings.metric, settings.scale, repr(settings.column_weights), settings.engine)
        if table.made_by != key:
            table.made_by, table.path = key, table.path if table.made_by is None else None
            table.make_index = self._index
            table.__dict__.pop("index", None)
        return table

    def _index(self, table: Table) -> Any:
        if self.kernel is not None:
            return Induced(table.rows, self.kernel)
        settings = self.settings
        index = make_index(settings.metric, table.rows, self._columns(table.rows.shape[1]), settings.scale)
        if settings.engine == "faiss" or (settings.engine == "auto" and len(table) >= MANY):
            from onlearn.neighbors.faiss_index import FaissIndex, serves

            if serves(index) or settings.engine == "faiss":
                return FaissIndex(index)
        return index

    # ------------------------------------------------------------------ k

    def _path(self, table: Table) -> KPath | None:
        """The errors for each k, if k is to be chosen by them."""
        settings = self.settings
        key = (settings.weights, settings.k_max)
        if settings.k == "auto" and len(table) and (table.path is None or table.path_by not in (None, key)):
            table.path_by = key
            classes = self._trained().outputs if self.task.classifies else 0
            arrays = table.targets, table.weights
            by_distance = settings.weights == "distance"
            table.path = path_of_k(table.index, table.rows, pick, *arrays, by_distance, classes, settings.k_max)
        return table.path if settings.k == "auto" else None

    def _k(self, table: Table) -> int:
        path = self._path(table)
        return min(len(table), self.settings.k if path is None else path.best)

    @property
    def k_(self) -> int:
        """How many neighbours vote."""
        with self.lock:
            return self._k(self._table())

    @property
    def k_path_(self) -> list[tuple[int, float]]:
        """k and its error when each row is left out in turn: the share of mistakes, or the mean squared error."""
        with self.lock:
            path = self._path(self._table())
        if path is None:
            raise AttributeError("k was given: only k='auto' tries others")
        return [(k + 1, float(error)) for k, error in enumerate(path.errors)]

    @property
    def engine_(self) -> str:
        """How neighbours are searched, and whether some may be missed."""
        with self.lock:
            index = self._table().index
        return str(getattr(index, "description", "exact"))

    # ------------------------------------------------------------------ neighbours and votes

    def kneighbors(self, X: Any = None, k: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Distances and numbers of the k nearest rows of each row of X, the nearest first; at one distance, by number.

        Rows learned from are numbered as they came, from 0. Without X these are searched the neighbours of, themselves
        left out.
        """
        with self.lock:
            table = self._table()
            k = self._k(table) if k is None else k
            most = len(table) - (X is None)
            if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or not 1 <= k <= most:
                raise ValueError(f"Expected n_neighbors <= n_samples_fit: k must be from 1 to {most}, not {k!r}")
            if X is None:
                distances, places = nearest(table.index, table.rows, int(k), np.arange(len(table)))
            else:
                distances, places = self._nearest(self._rows(X, first=False), table, int(k))
        return distances, table.numbers[places]

    def _nearest(self, X: Any, table: Table, k: int) -> tuple[np.ndarray, np.ndarray]:
        return nearest(table.index, X.items if isinstance(X, Objects) else X, k)

    def _scores(self, X: Any, training: Any = None) -> np.ndarray:
        table = self._table(training if isinstance(training, Table) else None)
        outputs = self._trained().outputs
        out = np.zeros((X.shape[0], outputs))
        if not len(table):
            return out
        k = self._k(table)
        found = self._nearest(X, table, k)
        by_distance = self.settings.weights == "distance"
        if self.task.classifies:
            tally(*found, k, table.targets, table.weights, by_distance, out)
        else:
            mean_of_neighbours(*found, k, table.targets, table.weights, by_distance, out[:, 0])
        return out

    def _probabilities(self, X: Any, task: Any, training: Any) -> np.ndarray:
        shares = self._scores(X, training)[:, : len(task.classes)]
        return shares if shares.any() else np.full(shares.shape, 1 / len(task.classes))

    # ------------------------------------------------------------------ what commands tell

    @property
    def n_features_in_(self) -> int:
        if self.takes_objects():
            raise AttributeError("strings and trees have no columns")
        return super().n_features_in_

    @property
    def coef_(self) -> np.ndarray:
        raise AttributeError("neighbours have no weights of features: see explain for the votes of a prediction")

    def kept_examples(self) -> Any:
        return self._trained().snapshot().rows

    def described(self) -> dict[str, Any]:
        table = self._table()
        settings, path = self.settings, self._path(table)
        told: dict[str, Any] = {"k": self._k(table), "rows_kept": len(table)}
        told["distance"] = settings.metric if self.kernel is None else f"of the kernel {self.kernel}"
        if path is not None:
            told["least_error"] = float(path.errors.min())
            told["error_by_k"] = [[k + 1, round(float(error), 4)] for k, error in enumerate(path.errors)]
        return told

    def contributions(self, X: Any) -> Contributions:
        """The neighbours of a row and their votes: shares of all votes, or of the mean."""
        with self.lock:
            table = self._table()
            k = self._k(table)
            distances, places = self._nearest(self._rows(X, first=False), table, k)
            distances, places = distances[0], places[0]
            by_distance = self.settings.weights == "distance"
            votes = np.array([vote(one, distances[0], by_distance) for one in distances]) * table.weights[places]
            shares = votes / votes.sum()
            note = f"{k} neighbours, the nearest at the distance {distances[0]:.4g}"
            targets = table.targets[places]
            if not self.task.classifies:
                return Contributions(
                    places, distances, shares, shares * targets, 0.0,
                    of="examples", value_name="distance", note=note, are_shares=True,
                )  # fmt: skip
            totals = np.bincount(targets, shares, len(self.task.classes))
            best, second = np.argsort(-totals, kind="stable")[:2]
            favours, against = (1, 0) if len(totals) == 2 else (int(best), int(second))
            signs = (targets == favours) * 1.0 - (targets == against)
            return Contributions(
                places, distances, shares, shares * signs, 0.0, favours, against, "examples", "distance", note
            )

    # ------------------------------------------------------------------ the model file

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        self._path(self._table())
        facts, arrays = super()._pack()
        settings = self.settings
        mine: dict[str, Any] = {"categories": np.flatnonzero(self.categories).tolist(), "kernel": None}
        mine["column_weights"] = as_plain(settings.column_weights)
        mine["categorical"] = as_plain(settings.categorical)
        mine["columns"] = self.columns
        if self.kinds is not None:
            arrays["kinds"] = self.kinds
        if self.kernel is not None:
            mine["kernel"], more = kernels.pack(self.kernel)
            mine["kernel_as_text"] = isinstance(settings.kernel, str)
            arrays.update(more)
        return {**facts, "neighbors": mine}, arrays

    FILED: ClassVar[Record] = Record({**BaseLearner.FILED.facts, "neighbors": NEIGHBORS})

    def _unpack(self, facts: dict[str, Any], arrays: Arrays) -> None:
        check_facts(facts, self.FILED)
        mine = facts["neighbors"]
        if mine.get("kernel") is not None:
            self.kernel = kernels.unpack(mine["kernel"], arrays)
            if not mine.get("kernel_as_text") or kernels.get(self.settings.kernel) != self.kernel:
                self.set_params(kernel=copied(self.kernel))
        else:
            self.set_params(kernel=None)
        self.set_params(
            column_weights=from_plain(mine.get("column_weights")), categorical=from_plain(mine.get("categorical"))
        )
        super()._unpack(facts, arrays)
        chosen = mine["categories"]
        if max(chosen, default=0) >= max(1, self.features):
            raise ValueError("the header does not say which columns hold categories")
        self.categories = np.zeros(self.features, bool)
        self.categories[chosen] = True
        self.columns = mine.get("columns")
        if self.columns is not None and len(self.columns) > self.features:
            raise ValueError("the header does not say which columns the features are made of")
        self.kinds = arrays.get("kinds")
        if self.kinds is not None:
            check_array("kinds", self.kinds, "uint8", (self.kinds.size,), 0, OTHER)
        self.check()
        if not self.takes_objects():
            self._columns(self.features)

    def _unpack_training(self, facts: dict[str, Any], arrays: Arrays, features: int) -> Neighbourhood:
        check_facts(facts, Neighbourhood.FILED, "training")
        self.check()
        training = Neighbourhood(facts["features"], facts["outputs"])
        training.take_counts(facts, arrays)
        if training.features != features or training.classifies != self.task.classifies:
            raise ValueError("the learner does not have the shape that the header says")
        training.window = self.settings.window
        training.take_rows(facts, arrays, self.takes_objects(), self.dtype)
        table = training.snapshot()
        if table.path is not None and len(table.path.errors) != max(1, min(self.settings.k_max, len(table) - 1)):
            raise ValueError("the errors for each k do not go with the examples kept")
        return training


class KNNClassifierLearner(NeighborLearner):
    """k nearest neighbours that vote for a class.

    >>> X, y = np.array([[0.0], [1.0], [5.0], [6.0]]), np.array(["low", "low", "high", "high"])
    >>> KNNClassifierLearner(k=1).fit(X, y).predict(np.array([[2.0]]))
    array(['low'], dtype='<U4')
    """

    @property
    def composition(self) -> Composition:
        return KNN_CLASSIFIER


class KNNRegressorLearner(NeighborLearner):
    """k nearest neighbours whose mean is predicted.

    >>> X, y = np.array([[0.0], [1.0], [5.0], [6.0]]), np.array([1.0, 2.0, 8.0, 9.0])
    >>> KNNRegressorLearner(k=2).fit(X, y).predict(np.array([[0.5]]))
    array([1.5])
    """

    @property
    def composition(self) -> Composition:
        return KNN_REGRESSOR


# ---------------------------------------------------------------------------------------------------- columns by name


def as_given(value: Any) -> Any:
    """A list or dict that a user gave; as text, it is read."""
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            value = [value]
    return value


def check_given(settings: Any) -> None:
    """Refuse what are no columns, or no weights."""
    chosen, weights = as_given(settings.categorical), as_given(settings.column_weights)
    if chosen is not None and (isinstance(chosen, Mapping) or not np.iterable(chosen)):
        raise ValueError(f"categorical must be a list of names or numbers of columns, or None, not {chosen!r}")
    if weights is None:
        return
    try:
        np.array(list(weights.values() if isinstance(weights, Mapping) else weights), np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "column_weights must be a list of one number a column, a dict of numbers by names or numbers of columns, "
            f"or None, not {weights!r}"
        ) from None


def column_number(column: Any, width: int, names: Any, parameter: str) -> int:
    """The number of a column that is named or numbered."""
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
        if not -width <= column < width:
            raise ValueError(f"{parameter} names column {column}, but there are {width} columns")
        return int(column) % width
    listed = [] if names is None else list(names)
    if column not in listed:
        hint = did_you_mean(str(column), listed) if listed else ": the columns have no names"
        raise ValueError(f"{parameter} names column {column!r}, which there is not{hint}")
    return listed.index(column)


def as_plain(value: Any) -> Any:
    """Columns by name or number, with their weights, as JSON."""
    value = as_given(value)
    if isinstance(value, Mapping):
        return {"pairs": [[plain_key(column), float(weight)] for column, weight in value.items()]}
    return None if value is None else [plain_key(one) for one in value]


def plain_key(one: Any) -> Any:
    return one.item() if isinstance(one, np.generic) else one


def from_plain(value: Any) -> Any:
    return dict(value["pairs"]) if isinstance(value, dict) else value
