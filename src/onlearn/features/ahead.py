"""Compiling ahead what extraction needs, by doing all of it once to a few rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from onlearn.features.columns import Category, Number
from onlearn.features.interactions import Interaction
from onlearn.features.named import rows_of_names
from onlearn.features.text import Text
from onlearn.features.transformer import Features


def compile_ahead() -> Iterator[str]:
    """Compile, or find in the disk cache, all loops; yields the name of each step before it is taken."""
    table: dict[str, Any] = {"t": ["a b", "é a", None], "n": [1.0, 2.0, None], "c": ["x", "y", None]}
    columns = [Text("t", chars=(2, 3)), Number("n", missing="indicator"), Category("c")]
    for dtype in ("float32", "float64"):
        yield f"features of columns, {dtype}"
        features = Features(columns, dtype=dtype)
        features.fit_transform(table)
        features.transform(table)
        features.learn_transform(table, ordered=False)
        yield f"named features, {dtype}"
        Features(dtype=dtype).fit_transform(rows_of_names([["a"], ["b"]]))
    yield "interactions"
    Features([*columns, Interaction("n", "c")]).fit_transform(table)
    yield "names beyond the limit, and fewer names"
    full = Features([Text("t")], max_names=1, bits=4).fit(table)
    full.vocabulary_.collisions()
    full.keep(np.array([0]))
