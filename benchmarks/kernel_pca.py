"""Eight principal components in the feature space of a Gaussian kernel, of rows of 20 columns: against scikit-learn's.

Exact: the eigenvectors of the centred kernel matrix, in both by Lanczos' method (scikit-learn's "auto"). By landmarks:
500 of them, chosen by randomly pivoted Cholesky; against scikit-learn's Nystroem with 500 uniform ones and PCA of its
features. '%' is the share of the variance of the rows in feature space that the components have; that of Nystroem and
PCA is of what its features have.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn import decomposition, kernel_approximation
from sklearn.pipeline import make_pipeline
from timing import OURS, Row, race

from onlearn import KernelPCA, kernels

COMPONENTS, LANDMARKS, SIGMA, WIDTH = 8, 500, 4.0, 20
GAMMA = 1 / (2 * SIGMA**2)


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    for rows in (300, 600) if quick else (1000, 4000):
        X = data(rows)
        share = variance(X)

        def theirs(X: np.ndarray = X) -> np.ndarray:
            return decomposition.KernelPCA(COMPONENTS, kernel="rbf", gamma=GAMMA, random_state=0).fit_transform(X)

        def ours(X: np.ndarray = X) -> np.ndarray:
            return KernelPCA(f"gaussian({SIGMA})", COMPONENTS, method="exact").fit_transform(X)

        reached = {OURS: [share(ours())], "scikit-learn": [share(theirs())]}
        yield race(f"{rows:,} rows, exact", {OURS: ours, "scikit-learn": theirs}, repeat)._replace(accuracy=reached)
    for rows in (600,) if quick else (20000, 100000):
        X = data(rows)
        share = variance(X)

        def by_landmarks(X: np.ndarray = X) -> np.ndarray:
            model = KernelPCA(
                f"gaussian({SIGMA})", COMPONENTS, method="nystroem", n_landmarks=LANDMARKS, random_state=0
            )
            return model.fit_transform(X)

        def two_steps(X: np.ndarray = X) -> np.ndarray:
            features = kernel_approximation.Nystroem(gamma=GAMMA, n_components=LANDMARKS, random_state=0)
            pca = decomposition.PCA(COMPONENTS, random_state=0)
            return make_pipeline(features, pca).fit_transform(X)

        contenders = {OURS: by_landmarks, "scikit-learn": two_steps}
        reached = {name: [share(run())] for name, run in contenders.items()}
        yield race(f"{rows:,} rows, {LANDMARKS} landmarks", contenders, repeat)._replace(accuracy=reached)


def data(rows: int) -> np.ndarray:
    """Normal rows, of which some directions matter more than others."""
    return np.random.default_rng(0).normal(size=(rows, WIDTH)) * np.linspace(2.0, 0.2, WIDTH)


def variance(X: np.ndarray):  # type: ignore[no-untyped-def]
    """A function of components that gives their share of the variance of X in feature space."""
    some = X[:: max(1, len(X) // 4000)]
    total = 1.0 - float(kernels.get(f"gaussian({SIGMA})")(some).mean())
    return lambda made: float(np.var(made, axis=0).sum()) / total
