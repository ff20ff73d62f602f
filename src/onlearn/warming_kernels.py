"""Compiling ahead for kernels: the loops of the dual, and what kernels and approximations compute with.

Each is met on purpose, as in ``warming``: by learning from a few examples that no hypothesis gets right, so that
several passes make steps; and by having every kernel compare a few rows.
"""

from __future__ import annotations

from itertools import product

ROWS = 150  # several blocks
VECTORS = (
    "linear",
    "polynomial(2)",
    "gaussian",
    "laplacian",
    "poly(linear, [0, 1, 2])",
    "normalize(linear)",
    "normalize(subsets)",
)
BOOLEAN = ("monomials", "conjunctions", "subsets")
SPELLED = {
    "substrings": ["abab", "bab", "a"],
    "substrings(2, 3)": ["abab", "bab", "ab" * 50],
    "trees": ["(S (NP a) (VP b))", "(S (NP a))", "(NP a)"],
}


def dual_combinations(everything: bool) -> list[tuple[str, str, str, str | None, str, str, str]]:
    """Rule, geometry, stabilizer, output, layout, number type and type of indices of the loops of the dual.

    Those of plain steps; or with ``everything`` also of weights that shrink, and of all kinds of multiclass.
    """
    from onlearn.outputs import OUTPUTS
    from onlearn.stabilizers import STABILIZERS

    geometries = ("additive", "additive(l2=0.01)") if everything else ("additive",)
    outputs = (None, *OUTPUTS) if everything else (None, "true")
    return [
        ("logistic" if output == "softmax" else "perceptron", geometry, stabilizer, output, "dual", dtype, "")
        for dtype, output, geometry, stabilizer in product(
            ("float64", "float32"), outputs, geometries, STABILIZERS.members
        )
        if not ("l2" in geometry and stabilizer == "voted")  # every example would make a new hypothesis
    ]


def learn_in_the_dual(rule: str, geometry: str, stabilizer: str, output: str | None, dtype: str) -> None:
    """A few passes over examples of which each is there with every label."""
    import numpy as np

    from onlearn.dual.classifier import KernelClassifier

    labels = np.arange(ROWS) % (2 if output is None else 3)
    X = np.repeat(np.eye(ROWS // 6, dtype=dtype), 6, axis=0)
    model = KernelClassifier(
        "gaussian", rule, stabilizer, geometry=geometry, multiclass=output or "auto", epochs=4, random_state=0
    )
    model.fit(X, labels).predict_proba(X)
    model.partial_fit(X, labels)


def compare(dtype: str) -> None:
    """Have every kernel compare a few rows, dense and sparse, and every approximation make features of them."""
    import numpy as np
    import scipy.sparse as sp

    from onlearn import approx, kernels

    few = 2 * np.eye(8, 400, dtype=dtype)  # so few values that sparse rows are compared as such
    for X in (few, sp.csr_matrix(few)):
        kernels.get("gaussian(0.001)")(X)  # so narrow that differences must be taken one by one
        for name in VECTORS:
            kernels.get(name)(X)
            kernels.get(name).diag(X)
        approximations = (
            approx.RandomKitchenSinks("gaussian", 6, random_state=0),
            approx.RandomKitchenSinks("polynomial(2)", 6, random_state=0),
            approx.Nystroem("gaussian", 3, random_state=0),
            approx.RandomProjection(3, random_state=0),
            approx.FeatureHasher(16),
        )
        for one in approximations:
            one.fit_transform(X)
    for name in BOOLEAN:
        kernels.get(name)(few[:, :70] > 0)
    for rows in ([{"a": 1.0}, {"b": 2.0}], [["a", "a"], ["b"]]):
        approx.FeatureHasher(16, dtype=dtype).fit_transform(rows)
    for name, examples in SPELLED.items():
        kernel = kernels.get(name)
        kernel(examples)
        kernel.diag(examples)
        if hasattr(kernel, "merged"):
            points = kernel.points(examples)
            merged = kernel.merged(points, np.ones((len(examples), 1)))
            if merged is not None:
                merged.scores(points)
