"""Support examples: rows are matched by content, however they are stored; sparse rows keep their type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import onlearn
from onlearn import KernelClassifier, kernels
from onlearn.dual.examples import concatenate, match_rows, pick
from onlearn.dual.supports import SupportSlots, make_slots
from onlearn.engine.csr import CSR

DENSE = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 3.0, 0.0], [1.0, 0.0, 2.0]])
SPARSE = sp.csr_matrix(DENSE)
EVERY = [0, 1, 2, 3]


def copy(row: Any) -> Any:
    return (*(part for part in row),) if isinstance(row, tuple) else row + 0.0


def long_indices() -> Any:
    made = SPARSE.copy()
    made.indices, made.indptr = made.indices.astype(np.int64), made.indptr.astype(np.int64)
    return made


def ours(X: Any) -> CSR:
    return CSR(X.data, X.indices, X.indptr, X.shape)


UNSORTED = sp.csr_matrix((np.array([2.0, 1, 3, 2, 1]), [2, 0, 1, 2, 0], [0, 2, 2, 3, 5]), shape=(4, 3))
REPEATED = sp.csr_matrix(
    (np.array([1.0, 1, 1, 1, 2, 0, 1, 2]), [0, 2, 2, 1, 1, 2, 0, 2], [0, 3, 3, 6, 8]), shape=(4, 3)
)


@pytest.mark.parametrize(
    "rows",
    [
        SPARSE,
        long_indices(),
        UNSORTED,
        REPEATED,
        ours(SPARSE),
        ours(UNSORTED),
        ours(REPEATED),
        np.where(DENSE == 0, -0.0, DENSE),
        DENSE.astype(np.float32),
        DENSE.astype(int),
    ],
)
def test_numbers_match_however_they_are_stored(rows: Any) -> None:
    for examples in (DENSE, SPARSE, ours(SPARSE)):
        assert match_rows(rows, examples).tolist() == EVERY
        assert match_rows(examples, rows).tolist() == EVERY


@pytest.mark.parametrize(
    "rows",
    [
        DENSE * (1 + 1j),
        DENSE.astype(object),
        DENSE.astype(str),
        [(1.0, "a"), (2.0, "b"), (0.0, "c"), (1.0, "a")],
        [np.array([1.0, 2]), np.array([1.0]), np.array([2.0]), np.array([1.0, 2])],
        [1.5, -0.0, 2.5, 1.5],
    ],
)
def test_other_rows_match_by_content(rows: Any) -> None:
    same = rows.copy() if isinstance(rows, np.ndarray) else [copy(row) for row in rows]
    assert match_rows(same, rows).tolist() == EVERY
    assert match_rows(same[1:3], rows).tolist() == [1, 2]
    assert match_rows(same[:1], rows[1:3]).tolist() == [-1]


def test_objects_without_a_hash_match_by_identity() -> None:
    rows: Any = [{"a": 1}, {"a": 1}, {"b": 1}]
    assert match_rows(rows[::-1], rows).tolist() == [2, 1, 0]
    assert match_rows([{"a": 1}], rows).tolist() == [-1]
    table = np.array([[["x"], 1], [["y"], 2]] + [[None, 3]], dtype=object)
    assert match_rows(table[::-1], table).tolist() == [2, 1, 0]


def test_trees_match_in_every_form() -> None:
    tree = ("S", ("NP", "we"), ("VP", "sleep"))
    forms: Any = [["S", ["NP", "we"], ["VP", "sleep"]], "(S (NP we) (VP sleep))", "( S (NP we)\n (VP sleep) )"]
    for form in forms:
        assert match_rows([form], [("S", "x"), tree], "trees").tolist() == [1]


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array, lambda X: ours(sp.csr_matrix(X))])
def test_sparse_rows_keep_their_type(form: Any) -> None:
    X = form(DENSE)
    one = pick(X, np.array([2, 0]))
    for parts in ([one, X], [X, DENSE[:1], one], [DENSE[:1], X]):
        whole = concatenate(parts)
        dense = np.concatenate([part if isinstance(part, np.ndarray) else part.toarray() for part in parts])
        assert type(whole) is type(X) and whole.indices.dtype == whole.indptr.dtype == np.int32
        np.testing.assert_array_equal(whole.toarray(), dense)
    slots = make_slots(X, 3)
    slots.put(0, X, 3)
    slots.put(1, DENSE, 2)  # rows may come dense, too
    slots.copy(1, 0)
    slots.put(1, X, 0)
    assert type(slots.examples(2)) is type(X)
    np.testing.assert_array_equal(slots.examples(2).toarray(), DENSE[[2, 0]])
    with pytest.raises(TypeError, match="only dense rows can be blended"):
        slots.blend(0, 1, 0.5)


def test_dense_slots_take_sparse_rows_and_blend() -> None:
    slots = make_slots(DENSE.astype(np.float32), 3)
    for slot, rows in enumerate((DENSE, SPARSE, ours(REPEATED))):
        slots.put(slot, rows, slot)
    np.testing.assert_array_equal(slots.examples(3), DENSE[:3])
    assert slots.examples(3).dtype == np.float64
    slots.blend(0, 2, 0.25)
    np.testing.assert_array_equal(slots.take(np.array([0])), [[0.25, 2.25, 0.5]])


def test_slots_without_examples_have_none() -> None:
    assert SupportSlots(kernels.get("gaussian"), 3).examples() is None


@pytest.mark.parametrize("kind", [object, str, complex])
@pytest.mark.parametrize("budget", [None, 12])
def test_warm_starts_with_rows_that_are_not_plain_numbers(kind: Any, budget: int | None) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(60), rng.integers(0, 9, size=60)]).astype(kind)
    y = rng.integers(0, 2, size=60)
    kernel = kernels.Callable(lambda a, b: float(sum(p == q for p, q in zip(a, b, strict=True))))
    common: dict[str, Any] = dict(kernel=kernel, budget=budget, budget_policy="remove(oldest)", random_state=0)
    whole = KernelClassifier(epochs=3, **common).fit(X, y)
    parts = KernelClassifier(epochs=1, warm_start=True, **common).fit(X, y).fit(X.copy(), y).fit(X.copy(), y)
    assert parts.n_support_ == whole.n_support_
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), atol=1e-12)


def test_trees_of_tuples_match_after_loading(tmp_path: Path) -> None:
    trees = [("S", ("A" if n % 2 else "B", f"w{n % 7}"), ("C", f"v{n}")) for n in range(20)]
    y = [n % 3 == 0 for n in range(20)]
    model = KernelClassifier("trees", epochs=2, warm_start=True, random_state=0).fit(trees, y)
    model.save(tmp_path / "m.onl")
    loaded = onlearn.load(tmp_path / "m.onl").fit(trees, y)
    assert loaded.n_support_ == model.fit(trees, y).n_support_ <= 20
