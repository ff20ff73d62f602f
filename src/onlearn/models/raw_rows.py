"""Raw rows from Python (tables, texts, dicts, matrices, batches): as a model takes them, learned from, and scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from onlearn import data
from onlearn.data.arrow import decoded, from_strings, in_one_piece, null
from onlearn.data.batch import as_parsed
from onlearn.data.table_roles import MISSING, flat
from onlearn.engine.csr import CSR, all_finite, check_positive, without_duplicates
from onlearn.engine.inputs import check_weights, distinct, in_order, positions
from onlearn.engine.number_names import label_name
from onlearn.engine.tasks import check_numbers
from onlearn.errors import PlanError
from onlearn.features import Category
from onlearn.features.feature_map import TABLE, kind_of
from onlearn.features.tables import as_source, is_plain_texts, is_text
from onlearn.models.multilabel import (
    MULTILABEL,
    add_labels,
    as_label_sets,
    first_labels,
    has_several,
    indicator_of,
    multilabel_learner,
)
from onlearn.models.plan import Plan, default_learner

if TYPE_CHECKING:
    from onlearn.models.model import Model


def as_in_files(rows: Any, extractors: Any, columns: list[str]) -> Any:
    """Rows from Python as readers give those of files: a flat table, in which ``?``, ``NA`` and the like are missing.

    Only columns of features are converted. A list of texts is taken as it is. So is a column of categories whose
    missing values have no feature: a category that was never seen has none either. Dicts that have some of the
    ``columns`` may lack others, as JSON lines may.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    table = as_source(rows)
    if kind_of(table) != TABLE or is_plain_texts(table):
        return table
    table = flat(table)
    names, made = table.column_names, [*map(in_one_piece, table.columns)]
    known = {*names}
    if isinstance(rows, (list, tuple)) and not known.isdisjoint(columns):
        lacking = [name for name in columns if name not in known]
        names, made = names + lacking, made + [pa.nulls(table.num_rows)] * len(lacking)
    places = {name: n for n, name in enumerate(names)}
    for one in extractors:
        place = places.get(str(one.column))
        if place is None or (isinstance(one, Category) and one.missing == "absent"):
            continue
        values = made[place]
        if is_text(values.type):
            values = decoded(values).cast(pa.large_string())
            absent = pc.is_in(values, value_set=from_strings(MISSING, pa.large_string()))
            made[place] = pc.if_else(absent, null(pa.large_string()), values)
    return pa.table(made, names=names) if names else table


def one_row(row: Any) -> Any:
    """A single row as rows of which there is one; what is rows already as it is."""
    if isinstance(row, (str, Mapping)):
        return [row]
    if isinstance(row, (list, tuple)) and row and all(isinstance(value, (int, float)) for value in row):
        return np.array([row], dtype=np.float64)
    return row[None] if isinstance(row, np.ndarray) and row.ndim == 1 and row.dtype.kind in "fiub" else row


def refuse_sentences(batch: data.Batch) -> None:
    """Refuse sentences, which only taggers take."""
    if isinstance(batch.parsed, data.Sentences):
        raise data.DataError(f"{batch.file} holds sentences, which only a tagger takes: train one with task=tag")


def refuse_columns(batch: data.Batch, **columns: Any) -> None:
    """Refuse names of columns, by parameter, for rows that are no table; None is no name."""
    if kind_of(batch.parsed) == TABLE:
        return
    for parameter, named in columns.items():
        if named is not None:
            raise PlanError(f"{batch.file} is no table: it has no columns", parameter)


def sound_rows(X: CSR, learner: Any) -> CSR:
    """The matrix without duplicates and infinities; negative values are refused if the learner takes none."""
    X = without_duplicates(X)
    if not all_finite(X.data):  # a number too large for the matrix: as large as it can be
        most = np.finfo(X.dtype).max
        X = replace(X, data=np.clip(X.data, -most, most))
    X = replace(X, finite=True)
    if learner.positive_only:
        check_positive(X, learner.name)
    return X


def tell_sources(model: Model) -> None:
    """Tell a learner that wants to know it what new features are made of."""
    learner = model.learner
    if learner.wants_sources:
        learner.take_sources(*model.features.sources_from(learner.columns_told()))
    if learner.wants_columns and model.features.kind_ == TABLE:
        codes, sources = model.features.sources_from(0)
        learner.take_columns([sources[code][1] or model.features.name_of(n) for n, code in enumerate(codes)])


def learn_from(model: Model, X: CSR, y: np.ndarray, weight: Any) -> None:
    """Learn from rows in their order; new features and classes are added to the learner."""
    learner, labels = model.learner, model.labels
    tell_sources(model)
    if model.task == MULTILABEL:
        y = learner.sets.indicator(y, len(labels or ()))
    if learner.training is not None:
        learner._take_in(X.shape[1], len(labels or ()))
        learner.partial_fit(X, y, sample_weight=weight)
    else:
        classes = 2 if model.task == "rank" else len(labels or ())  # of two rows, either may come first
        first = {"classes": np.arange(classes)} if classes else {}
        learner.partial_fit(X, y, sample_weight=weight, **first)


def partial_fit(model: Model, rows: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> None:
    if model.learner is not None and (model.learner.representation is not None or model.learner.whole):
        raise ValueError(f"a model of {model.learner.name} does not learn row by row: use onlearn.train with resume=")
    if model.task == "rank":
        raise ValueError("a ranking is learned from groups of rows, not row by row: use onlearn.train with resume=")
    source = as_rows(model, rows)
    if model.learner is None and model.task == "classify" and has_several(y):
        model.task = MULTILABEL
    if model.task == MULTILABEL:
        _learn_sets(model, source, y, sample_weight, classes)
        return
    labels = as_labels(y) if model.task == "classify" else []
    weight = None if sample_weight is None else check_weights(sample_weight, len(y), sees_all=False)
    gold = check_numbers(np.asarray(y)) if model.task != "classify" else np.empty(0)
    if model.learner is None:
        _begin(model, source, y, labels if classes is None else as_labels(classes))
    codes = _codes(model, labels) if model.task == "classify" else None
    if isinstance(source, CSR):
        source = model.far.narrow(source, learn=True)
    X = sound_rows(model.features.learn_transform(source, ordered=False), model.learner)
    if codes is None:
        mean, deviation = model.target
        learn_from(model, X, (gold - mean) / deviation, weight)
    else:
        learn_from(model, X, codes, weight)
    model.trained["examples"] = int(model.learner.n_seen_)


def _learn_sets(model: Model, source: Any, y: Any, sample_weight: Any, classes: Any) -> None:
    """Learn from rows with lists of labels."""
    sets = as_label_sets(y)
    weight = None if sample_weight is None else check_weights(sample_weight, len(sets), sees_all=False)
    if model.learner is None:
        model.features, model.trained["notes"] = Plan([]).features(source)
        model.labels = first_labels(sets) if classes is None else as_labels(classes)
        model.learner = multilabel_learner(default_learner("classify", model.features))
    labels = list(model.labels or [])
    if model.learner.takes_classes():
        add_labels(labels, list(dict.fromkeys(label for one in sets for label in one)))
    truth = indicator_of(sets, labels)
    if isinstance(source, CSR):
        source = model.far.narrow(source, learn=True)
    X = sound_rows(model.features.learn_transform(source, ordered=False), model.learner)
    tell_sources(model)
    model.learner.partial_fit(X, truth, sample_weight=weight)
    model.labels = labels
    model.trained["examples"] = int(model.learner.n_seen_)


def score(model: Model, rows: Any, y: Any, sample_weight: Any = None) -> float:
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if model.task == "rank":
        raise ValueError("the score of a ranking needs groups of rows: use onlearn.models.evaluate")
    predicted = model.predict(rows)
    if len(predicted) != len(y):
        raise ValueError(f"there are {len(predicted)} rows but {len(y)} entries in y")
    if model.task == MULTILABEL:
        same = [{*labels} == {*found} for labels, found in zip(as_label_sets(y), predicted)]
        return float(np.average(same, weights=weight))
    if model.labels is None:
        gold = np.asarray(y, dtype=np.float64)
        spread = np.average((gold - np.average(gold, weights=weight)) ** 2, weights=weight)
        return float(1 - np.average((gold - predicted) ** 2, weights=weight) / spread) if spread else 0.0
    places = positions(["" if one is None else one for one in predicted], model.labels)
    answers = np.where([one is None for one in predicted], -2, places)  # no label is never right
    return float(np.average(np.array(positions(as_labels(y), model.labels)) == answers, weights=weight))


def as_rows(model: Model, rows: Any) -> Any:
    """Rows as readers give them."""
    if isinstance(rows, (list, tuple)) and not rows:
        raise ValueError("there are no rows: X is empty")
    if isinstance(rows, data.Batch):
        refuse_sentences(rows)
        return rows.parsed
    rows = as_parsed(rows)
    if isinstance(rows, CSR):
        return rows
    return as_source(rows) if model.learner is None else as_in_files(rows, model.features.extractors_, model.columns)


def as_labels(y: Any) -> list[str]:
    """Labels as files have them."""
    return [label if isinstance(label, str) else label_name(label) for label in y]


def _begin(model: Model, source: Any, y: Any, labels: list[str]) -> None:
    """Choose features and learner by the first rows, as training does."""
    model.features, notes = Plan([]).features(source)
    model.trained["notes"] = notes
    if model.task == "classify":
        model.labels = in_order(distinct(list(dict.fromkeys(labels))))
        if len(model.labels) < 2:
            raise ValueError("the first rows have only one label: name all labels with classes=")
    else:
        gold = np.asarray(y, dtype=np.float64)
        model.target = float(np.mean(gold)), float(np.std(gold)) or 1.0
    learner = default_learner(model.task, model.features)
    model.learner = learner.set_params(random_state=0, grow="features" if len(model.labels or ()) == 2 else True)


def _codes(model: Model, labels: list[str]) -> np.ndarray:
    """The classes of labels; new ones are taken in, if the learner takes in new classes."""
    assert model.labels is not None
    if model.learner.takes_classes():
        found = positions(labels, model.labels, dots=False)
        new = dict.fromkeys(label for label, place in zip(labels, found) if place < 0)
        model.labels += distinct(list(new))
    found = positions(labels, model.labels, dots=False)
    unknown = [label for label, place in zip(labels, found) if place < 0]
    if unknown:
        raise ValueError(f"the model does not know the label {unknown[0]!r}; it knows {', '.join(model.labels[:10])}")
    return np.array(found, dtype=np.int64)
