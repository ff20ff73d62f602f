"""All rows of files as one matrix with their labels, turned into features as in training, but not scaled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from onlearn import data
from onlearn.models.kernel_run import as_one_matrix
from onlearn.models.run import Run
from onlearn.models.run_reading import Reading
from onlearn.models.train_options import TrainOptions
from onlearn.models.training import checked_files, plan_of


class LabelledMatrix(NamedTuple):
    """Rows of numbered features, dense or a SciPy matrix, the number of each row's label, the labels, and bad rows."""

    X: Any
    y: np.ndarray
    labels: list[str]
    names: Callable[[], list[str]]  # what the columns are called, which may be very many
    bad: data.BadRows

    def signs(self, why: str) -> np.ndarray:
        """-1 and +1 for the first and the second label; ``why`` says what two labels are needed for."""
        if len(self.labels) != 2:
            listed = ", ".join(map(repr, self.labels[:5])) + (", ..." if len(self.labels) > 5 else "")
            raise data.DataError(f"{why} needs two labels, but the rows have {len(self.labels)}: {listed}")
        return np.where(self.y == 1, 1, -1)

    def within_one(self) -> Any:
        """The rows, with columns divided by their largest size: 0 and 1 stay as they are, and no zero is lost."""
        from scipy.sparse import diags_array, issparse

        sparse = issparse(self.X)
        largest = np.asarray(abs(self.X).max(axis=0).todense() if sparse else np.abs(self.X).max(axis=0)).ravel()
        factors = 1.0 / np.where(largest > 0.0, largest, 1.0)
        return (self.X @ diags_array(factors)).tocsr() if sparse else self.X * factors


class UnscaledReading(Reading):
    """Columns of numbers become features as they are."""

    def _features(self, batch: data.Batch) -> tuple[Any, list[str]]:
        return self.plan.features(batch.parsed, {"number": {"scale": "none"}}, linear=False)


class UnscaledRun(Run):
    reading_type = UnscaledReading


def read_labelled_matrix(options: TrainOptions) -> LabelledMatrix:
    """Read all rows of the sources, which must have labels; columns of numbers stay as they are.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "and.csv")
    >>> _ = path.write_text("a,b,label\\n0,0,no\\n0,1,no\\n1,0,no\\n1,1,yes\\n")
    >>> rows = read_labelled_matrix(TrainOptions(sources=[path]))
    >>> rows.X.tolist(), rows.y.tolist(), rows.labels, rows.names()
    ([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 0, 0, 1], ['no', 'yes'], ['a', 'b'])
    """
    run = UnscaledRun(plan_of(options), None, checked_files(options, None))
    run.passes.wait = True  # labels and features are final when all rows are read
    batches = list(run.reading.examples())
    numbers, features, far = run.reading.sort_labels(), run.model.features, run.model.far
    X = data.batch.as_public(as_one_matrix(batches, features.n_features_out_, None, None))
    y = numbers[np.concatenate([y for _, y, _ in batches])]

    def names() -> list[str]:
        return [far.name_of(k) or str(features.name_of(k)) for k in range(features.n_features_out_)]

    return LabelledMatrix(X, y, list(run.model.labels or ()), names, run.reading.bad)
