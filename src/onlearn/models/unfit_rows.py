"""Rows that a kernel cannot take, such as a tree whose brackets do not match, or an empty text that is normalised.

They are bad rows like those that cannot be parsed: counted, reported, written to the file of bad rows, and left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.data import Bad, BadRows, Batch
from onlearn.dual.examples import count, pick
from onlearn.kernels.base import ExampleError, Kernel
from onlearn.models.model import Model


def unfit(kernel: Kernel, examples: Any) -> dict[int, str]:
    """The examples that a kernel cannot take, and the reason for each.

    >>> from onlearn import kernels
    >>> unfit(kernels.get("trees"), ["(S (NP dogs))", "(S (NP dogs)"])
    {1: 'not a tree for trees: position 0: this bracket is never closed'}
    """
    found: dict[int, str] = {}

    def search(start: int, stop: int) -> None:
        try:
            kernel.points(pick(examples, np.arange(start, stop)))
        except ExampleError as error:  # of the first one; halves are searched, for there may be many
            if stop - start == 1:
                found[start] = error.why
                return
            middle = (start + stop) // 2
            search(start, middle)
            search(middle, stop)

    if count(examples):
        search(0, count(examples))
    return found


def usable(model: Model, batch: Batch, bad: BadRows) -> Batch:
    """The rows of a batch that a model with a kernel can take; the others are added to the bad ones."""
    if model.kernel is None:
        return batch
    examples = model.numbered(batch)
    refused = unfit(model.kernel, examples)
    for row, why in refused.items():
        bad.reject(batch.file, Bad(int(batch.lines[row]), 0, why, as_bytes(examples, row)))
    return batch.take(np.setdiff1d(np.arange(len(batch)), list(refused))) if refused else batch


def as_bytes(examples: Any, row: int) -> bytes:
    """A text for the file of bad rows; rows of numbers as svmlight has them."""
    if not hasattr(examples, "shape"):
        return examples[row].replace("\n", " ").encode("utf-8", "surrogatepass")
    if isinstance(examples, np.ndarray):
        return " ".join(f"{k}:{v:g}" for k, v in enumerate(examples[row]) if v).encode()
    part = slice(int(examples.indptr[row]), int(examples.indptr[row + 1]))
    return " ".join(f"{k}:{v:g}" for k, v in zip(examples.indices[part], examples.data[part], strict=True)).encode()
