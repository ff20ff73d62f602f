"""Precomputed kernel matrices: certificates, stored models, continued training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onlearn
from onlearn import KernelClassifier, kernels

RANDOM = np.random.default_rng(0)
X, T = RANDOM.normal(size=(60, 3)), RANDOM.normal(size=(60, 3))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)
POLYNOMIAL = kernels.Polynomial(2)
K, NEW = POLYNOMIAL(X), POLYNOMIAL(T, X)


def test_a_certificate_needs_the_training_matrix() -> None:
    model = KernelClassifier("precomputed", random_state=0).fit(K, Y)
    plain = KernelClassifier(POLYNOMIAL, random_state=0).fit(X, Y)
    np.testing.assert_allclose(model.certificate(K, Y).R, plain.certificate(X, Y).R)
    for some in (NEW, NEW[:7], K[:30]):
        with pytest.raises(ValueError, match="known of the training examples alone"):
            model.certificate(some, Y[: len(some)])


@pytest.mark.parametrize("formula", ["precomputed", "2*precomputed", "precomputed**2 + 1", "exp(0.01*precomputed)"])
def test_a_loaded_model_continues_with_the_training_matrix(formula: str, tmp_path: Path) -> None:
    model = KernelClassifier(formula, epochs=2, warm_start=True, random_state=0).fit(K, Y)
    model.save(tmp_path / "m.onl")
    loaded = onlearn.load(tmp_path / "m.onl")
    np.testing.assert_array_equal(loaded.decision_function(NEW), model.decision_function(NEW))
    assert str(loaded.certificate(K, Y)) == str(model.certificate(K, Y))
    with pytest.raises(ValueError, match="not in a model file, but in the training matrix"):
        loaded.reduce(3)
    model.fit(K.copy(), Y)
    loaded.fit(K, Y)
    np.testing.assert_array_equal(loaded.decision_function(NEW), model.decision_function(NEW))
    assert loaded.reduce(3).reduction_ == model.reduce(3).reduction_


def test_another_matrix_is_refused(tmp_path: Path) -> None:
    model = KernelClassifier("precomputed", warm_start=True, random_state=0).fit(K, Y)
    with pytest.raises(ValueError, match="its numbers differ"):
        model.fit(2 * K, Y)
    with pytest.raises(ValueError, match="not symmetric"):
        model.fit(NEW, Y)
    model.save(tmp_path / "m.onl")
    onlearn.load(tmp_path / "m.onl").save(tmp_path / "again.onl")
    loaded = onlearn.load(tmp_path / "again.onl")
    with pytest.raises(ValueError, match="its numbers differ"):
        loaded.fit(2 * K, Y)
    loaded.fit(np.asfortranarray(K), Y)
    with pytest.raises(ValueError, match="cannot be saved: it looks at whole rows"):
        KernelClassifier("warp(precomputed, norm)", random_state=0).fit(K, Y).save(tmp_path / "m.onl")
