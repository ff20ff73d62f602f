"""Lines of the Gram matrix that are computed once: what is learned with them, what they save, the model file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlearn import KernelClassifier, kernels
from onlearn.dual import gram, training
from onlearn.dual.examples import Examples
from onlearn.dual.gram import GramScores, fits
from onlearn.dual.scores import CurrentScores, is_costly
from onlearn.dual.supports import SupportSet


def noisy(rows: int, classes: int, seed: int = 0, width: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, width))
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (classes > 2) * (X[:, 2] > 0.5)
    return X, np.where(rng.random(rows) < 0.15, (y + 1) % classes, y)


def strings(rows: int, seed: int = 0) -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng(seed)
    X = ["".join(rng.choice(list("acgt"), 12)) for _ in range(rows)]
    return X, np.array(["ac" in x for x in X])


@pytest.mark.parametrize(("rows", "bytes_", "expected"), [(100, 80_000, True), (100, 79_999, False), (3, 0, False)])
def test_the_matrix_fits_or_not(rows: int, bytes_: int, expected: bool) -> None:
    assert fits(rows, 8, bytes_) == expected


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(2, 120),
    classes=st.sampled_from([2, 3]),
    passes=st.integers(2, 5),
    together=st.sampled_from([1, 3, 64]),
    large=st.sampled_from([7, 8192]),
)
def test_it_learns_what_is_learned_without_a_cache(
    seed: int, rows: int, classes: int, passes: int, together: int, large: int
) -> None:
    X, y = noisy(rows, classes, seed)
    y[0] = 1 - y[1] if y[0] == y[1] else y[0]
    common: dict[str, Any] = dict(kernel="polynomial(2)", epochs=passes, random_state=seed)
    plain = KernelClassifier(**common, cache_mb=0).fit(X, y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gram, "TOGETHER", together)
        patch.setattr(training, "LARGE", large)
        kept = KernelClassifier(**common).fit(X, y)
    assert (kept.n_mistakes_, kept.n_support_) == (plain.n_mistakes_, plain.n_support_)
    np.testing.assert_allclose(kept.decision_function(X), plain.decision_function(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(kept.predict_proba(X), plain.predict_proba(X), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("choices", [dict(stabilizer="voted"), dict(geometry="additive(l2=0.05)", rule="hinge"),
                                     dict(stabilizer="survivor", multiclass="one-vs-all")], ids=repr)  # fmt: skip
def test_other_choices(choices: dict[str, Any]) -> None:
    X, y = noisy(150, 3)
    plain = KernelClassifier("gaussian(2)", epochs=4, random_state=0, cache_mb=0, **choices).fit(X, y)
    kept = KernelClassifier("gaussian(2)", epochs=4, random_state=0, **choices).fit(X, y)
    np.testing.assert_allclose(kept.decision_function(X), plain.decision_function(X), rtol=1e-8, atol=1e-9)


def test_a_warm_start_knows_its_support_examples() -> None:
    X, y = noisy(120, 2)
    models = [
        KernelClassifier("gaussian", epochs=2, warm_start=True, random_state=0, cache_mb=mb).fit(X, y).fit(X, y)
        for mb in (0, 1024)
    ]
    assert models[0].n_support_ == models[1].n_support_
    np.testing.assert_allclose(models[0].decision_function(X), models[1].decision_function(X), atol=1e-9)


def test_no_value_of_a_costly_kernel_is_computed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = strings(300)
    pairs: list[int] = []
    block = kernels.Kernel.block

    def counted(self: Any, P: Any, Q: Any, *rest: Any, **more: Any) -> Any:
        pairs.append(len(P) * len(Q))
        return block(self, P, Q, *rest, **more)

    monkeypatch.setattr(kernels.Kernel, "block", counted)
    model = KernelClassifier("normalize(substrings(1, 4))", epochs=10, random_state=0).fit(X, y)
    assert model.n_updates_ > model.n_support_  # steps on the same examples again and again
    # k(z, x) is k(x, z); blocks of the first pass compute some values early
    assert sum(pairs) < 1.1 * len(X) ** 2


def test_lines_come_back_from_the_model_file_bit_for_bit() -> None:
    X, _ = noisy(90, 2, width=30)
    kernel = kernels.get("polynomial(3)")
    data = Examples(X, kernel.points(X), 30)
    one = GramScores(data, SupportSet(kernel), np.zeros((0, 1)))
    for batch in ([5, 2, 80], [1], list(range(10, 60))):
        one.make_lines(np.array(batch))
    facts, arrays = one.pack()
    other = GramScores(data, SupportSet(kernel), np.zeros((0, 1)))
    other.restore(facts, arrays)
    np.testing.assert_array_equal(other.lines[:54], one.lines[:54])
    np.testing.assert_array_equal(other.line_of, one.line_of)
    for name, damaged in {
        "lines": np.array([5, 5, 80, 1, *range(10, 60)]),
        "together": np.array([3, 1, 51]),
        "place": np.full(90, 3),
        "sums": np.zeros((89, 1)),
    }.items():
        with pytest.raises(ValueError, match="do not fit the rows"):
            other.restore(facts, {**arrays, name: damaged})


def test_values_that_are_quick_to_compute_are_not_cached() -> None:
    X = np.random.default_rng(0).normal(size=(300, 512))
    for kernel, width, expected in (("gaussian", 10, False), ("polynomial(3)", 512, True)):
        one = kernels.get(kernel)
        points = one.points(X[:, :width])
        assert is_costly(one, points) == expected
        scores = CurrentScores(Examples(X[:, :width], points, width), SupportSet(one), np.zeros((0, 1)), 1 << 20)
        assert (scores.cache.capacity > 0) == expected
    one = kernels.get("substrings(1, 3)")
    assert is_costly(one, one.points(["abc", "abd"]))
