"""Concepts as linear threshold functions: w.x >= theta, where there are such w and theta.

At least m of some literals is one: w = 1 for an attribute, -1 for a negated one, theta = m minus the negated ones. Of
other functions those that rise with some attributes and fall with the rest (unate functions) can be: an integer program
finds the smallest whole weights with w.x >= theta at every prime implicant and w.x <= theta - 1 at every largest
instance that is negative, or proves that there are none. S. Muroga, Threshold logic and its applications, 1971.
"""

from __future__ import annotations

from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlearn.theory.normal_form import TABULATED, Counted, Implicants, NormalForm, Parity


class LinearThreshold(NamedTuple):
    """The function that is 1 where w.x >= theta."""

    w: NDArray[np.float64]
    theta: float

    def __call__(self, X: Any) -> Any:
        """Its value for one instance or for rows."""
        s = np.asarray(X @ self.w if hasattr(X, "tocsr") else np.asarray(X, dtype=np.float64) @ self.w)
        return bool(s >= self.theta) if s.ndim == 0 else s >= self.theta


def linear_threshold(form: NormalForm, n: int, formula: str) -> LinearThreshold:
    """The linear threshold function of a normal form; `formula` is its name in errors."""
    formula = shorten(formula, 100, placeholder=" ...")
    if isinstance(form, Counted):
        literals = np.array(sorted(form.literals), dtype=np.int64)
        w = np.zeros(n)
        w[np.abs(literals) - 1] = np.sign(literals)
        return LinearThreshold(w, float(form.at_least - (literals < 0).sum()))
    if isinstance(form, Parity):
        raise ValueError(f"No linear threshold function equals {formula}: it is a parity.")
    if isinstance(form, Implicants):
        return _of_implicants(form, n, formula)
    raise ValueError(
        f"Whether {formula} is a linear threshold function can be decided for up to {TABULATED} attributes only."
    )


def _of_implicants(form: Implicants, n: int, formula: str) -> LinearThreshold:
    literals = sorted(frozenset().union(*form.terms), key=abs)
    attributes = [abs(literal) for literal in literals]
    if len(set(attributes)) < len(attributes):
        both = next(attribute for attribute in attributes if attributes.count(attribute) > 1)
        raise ValueError(
            f"No linear threshold function equals {formula}: x{both} makes it true in one place and false in another."
        )
    if len(literals) > TABULATED:
        raise ValueError(
            f"Whether {formula} is a linear threshold function can be decided for up to {TABULATED} attributes only, "
            f"but it has {len(literals)}."
        )
    signs, columns = np.sign(literals), np.array(attributes) - 1
    # In terms of "literal j holds" the function rises everywhere.
    least = np.array([[literal in term for literal in literals] for term in form.terms])
    weights = _smallest_weights(least, _largest_negatives(least))
    if weights is None:
        raise ValueError(f"No linear threshold function equals {formula}: no weights separate its two classes.")
    w = np.zeros(n)
    w[columns] = weights[:-1] * signs
    return LinearThreshold(w, float(weights[-1] - weights[:-1][signs < 0].sum()))


def _largest_negatives(least: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The negative instances from which every further literal leads to a positive one."""
    k = least.shape[1]
    instances = (np.arange(2**k)[:, None] >> np.arange(k)) & 1 == 1
    positive = np.zeros(2**k, dtype=bool)
    for term in least:
        positive |= instances[:, term].all(axis=1)
    largest = ~positive
    for j in range(k):
        largest &= instances[:, j] | positive[np.arange(2**k) | (1 << j)]
    return instances[largest]


def _smallest_weights(positive: NDArray[np.bool_], negative: NDArray[np.bool_]) -> NDArray[np.float64] | None:
    """Whole (w, theta) with w.x >= theta on the one, w.x <= theta - 1 on the other, and the smallest w; or None."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    k = positive.shape[1]
    above = np.column_stack([positive, -np.ones(len(positive))])
    below = np.column_stack([negative, -np.ones(len(negative))])
    answer = milp(
        np.append(np.ones(k), 0.0),
        constraints=[LinearConstraint(above, lb=0.0), LinearConstraint(below, ub=-1.0)],
        integrality=np.ones(k + 1),
        bounds=Bounds(1.0, np.inf),
    )
    if answer.status == 2:  # infeasible
        return None
    if answer.x is None:
        raise ArithmeticError(f"The integer program for the weights failed: {answer.message}")
    found = np.round(answer.x)
    if not ((above @ found >= 0.0).all() and (below @ found <= -1.0).all()):
        raise ArithmeticError("The integer program for the weights gave some that do not separate.")
    return np.asarray(found)
