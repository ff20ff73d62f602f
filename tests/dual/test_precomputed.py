"""Kernel matrices that are brought along: what is known of their examples, stored models, going on."""

from __future__ import annotations

import numpy as np
import pytest

from onlearn import KernelClassifier, kernels

RANDOM = np.random.default_rng(0)
X, T = RANDOM.normal(size=(60, 3)), RANDOM.normal(size=(60, 3))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)
POLYNOMIAL = kernels.Polynomial(2)
K, NEW = POLYNOMIAL(X), POLYNOMIAL(T, X)


def test_a_certificate_is_for_the_matrix_learned_from() -> None:
    model = KernelClassifier("precomputed", random_state=0).fit(K, Y)
    plain = KernelClassifier(POLYNOMIAL, random_state=0).fit(X, Y)
    assert model.certificate(K, Y).R == pytest.approx(plain.certificate(X, Y).R)
    for some in (NEW, NEW[:7], K[:30]):
        with pytest.raises(ValueError, match="known of the training examples alone"):
            model.certificate(some, Y[: len(some)])
