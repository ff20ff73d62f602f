"""The certificate of a training run over files: the rows are read once more, for their radius and margin.

A theorem is about the rows that were learned from. Features that change while rows are read (numbers scaled by the rows
so far, words weighted by their frequency) made other rows then than they make now, so that there is no certificate.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np

from onlearn.engine.csr import stacked
from onlearn.engine.inputs import positions
from onlearn.features import Category, Number, Text
from onlearn.models.model import Model
from onlearn.models.run import Run

LARGEST = 1 << 23  # numbers in the rows: of more, none is looked for
GEOMETRIES = ("additive", "winnow", "balanced", "exponentiated")


def run_certificate(run: Run) -> Any:
    """The ``Certificate`` of a finished run; None if no theorem is about it, or its rows cannot be had again.

    >>> import pathlib, tempfile
    >>> from onlearn.models.train_options import TrainOptions
    >>> from onlearn.models.training import prepare
    >>> path = pathlib.Path(tempfile.mkdtemp(), "or.svm")
    >>> _ = path.write_text("1 1:1\\n1 2:1\\n0 3:1\\n" * 10)
    >>> run = prepare(TrainOptions(sources=path, learner="Perceptron", passes=5))
    >>> _ = run.go()
    >>> certificate = run_certificate(run)
    >>> certificate.mistakes, certificate.holds(), certificate.n_examples
    (4, True, 30)
    """
    if not _is_in_theory(run):
        return None
    found = _rows(run)
    if found is None:
        return None
    try:
        return run.model.learner.certificate(*found)
    except (AttributeError, ValueError):  # a voted learner is many hypotheses
        return None


def _is_in_theory(run: Run) -> bool:
    """Whether the learner is one of a theorem, began with this run, and saw the rows as they are now."""
    model, plan = run.model, run.plan
    learner = model.learner
    if len(model.labels or ()) != 2 or not (learner.is_linear and learner.is_progressive) or not run.start.fresh:
        return False
    choices = getattr(learner, "choices", {})
    rule, geometry = (getattr(choices.get(name), "name", None) for name in ("rule", "geometry"))
    again = "-" not in plan.sources and not plan.prune_weights and model.trained.get("unfinished") is None
    return rule == "perceptron" and geometry in GEOMETRIES and again and keeps_rows(model)


def keeps_rows(model: Model) -> bool:
    """Whether a row has the same features now as when it was first learned from."""
    if model.compares_texts:
        return False
    return all(_is_fixed(one) for one in getattr(model.features, "extractors_", None) or ())


def _is_fixed(extractor: Any) -> bool:
    if isinstance(extractor, Number):
        return extractor.scale not in ("standard", "max-abs")
    if isinstance(extractor, Text):
        return "idf" not in extractor.weighting
    return isinstance(extractor, Category)


def _rows(run: Run) -> tuple[Any, np.ndarray] | None:
    """The rows that were learned from, as features, and their classes; None if they are too many."""
    model = run.model
    width, parts, classes, size = model.features.n_features_out_, [], [], 0
    with closing(run.reading.learned_batches()) as batches:
        for batch in batches:
            if batch.codes is None:
                continue
            X = model.numbered(batch).of_width(width)
            size += X.nnz
            if size > LARGEST:
                return None
            parts.append(X)
            classes.append(np.array(positions(batch.label_names or [], model.labels or []))[batch.codes])
    return (stacked(parts), np.concatenate(classes)) if parts else None
