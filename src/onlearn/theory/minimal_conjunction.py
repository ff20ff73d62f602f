"""The shortest conjunction that agrees with examples, which is NP-hard to find: by set cover.

A literal may be in it if it holds at every positive example. Of these literals a few must deny every negative example:
set cover. Elimination takes all of them; greedy cover is within a factor of ln(negatives) + 1 of the fewest
(D. Haussler, Quantifying inductive bias, 1988); an integer program finds the fewest if there are not too many literals.
No polynomial algorithm always finds them, unless P = NP. That is one reason why conjunctions are learned as linear
threshold functions: a larger class, in which agreement with the examples is a linear program.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlearn.theory.concepts import Conjunction
from onlearn.theory.instances import as_instances, as_labels
from onlearn.theory.set_cover import fewest_cover, greedy_cover

METHODS = ("greedy", "exact")


def minimal_consistent(
    X: Any, y: ArrayLike, method: str = "greedy", monotone: bool = False, time_limit: float | None = None
) -> Conjunction:
    """A short conjunction that agrees with all examples; with method="exact" no shorter one does.

    - X: rows of 0 and 1, dense or sparse; y: labels 0/1 or -1/+1.
    - monotone: without negated literals.
    - time_limit: seconds for the exact method, after which it gives up with an `ArithmeticError`.

    `ValueError` if no conjunction agrees with the examples.

    >>> X = [[1, 1, 1, 0], [1, 1, 0, 1], [0, 1, 1, 0], [1, 0, 1, 1]]
    >>> minimal_consistent(X, [1, 1, 0, 0]), minimal_consistent(X, [1, 1, 0, 1], "exact")
    (Conjunction([1, 2], n=4), Conjunction([1], n=4))
    """
    if method not in METHODS:
        raise ValueError(f"method must be {' or '.join(METHODS)}, but it is {method!r}.")
    X = as_instances(X)
    labels = as_labels(y, X.shape[0])
    on, n = np.asarray(X[labels].sum(axis=0)), X.shape[1]
    plain = np.flatnonzero(on == labels.sum())
    denied = np.flatnonzero(on == 0) if not monotone else np.empty(0, dtype=np.int64)
    literals = np.concatenate([plain + 1, -denied - 1])
    negative = X[~labels]
    m = negative.shape[0]
    missing, present = np.nonzero(~_dense(negative[:, plain])), negative[:, denied].nonzero()
    rows = np.concatenate([missing[0], present[0]])
    columns = np.concatenate([missing[1], present[1] + len(plain)])
    taken = greedy_cover(rows, columns, (m, len(literals)), m)
    if taken is None:
        first = int(np.flatnonzero(~labels)[np.setdiff1d(np.arange(m), rows)[0]]) + 1
        raise ValueError(
            f"No conjunction agrees with the examples: example {first} is negative, but every literal that all "
            "positive examples share holds there."
        )
    if method == "exact":
        taken = fewest_cover(rows, columns, (m, len(literals)), time_limit)
    return Conjunction(literals[taken].tolist(), n=n)


def _dense(X: Any) -> Any:
    return X if isinstance(X, np.ndarray) else X.toarray() != 0
