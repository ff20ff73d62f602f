"""Batches: rows for users, and as they were parsed."""

import numpy as np
import scipy.sparse as sp

from onlearn import data
from onlearn.data import Batch
from onlearn.engine.csr import CSR


def test_rows_of_a_matrix_are_scipys(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 2:1 1:3\n0 4:2\n1 1:1 1:2\n")
    batch = next(data.read(path))
    assert isinstance(batch.parsed, CSR) and sp.issparse(batch.rows) and batch.rows is batch.rows
    expected = [[0, 3, 1, 0, 0], [0, 0, 0, 0, 2], [0, 3, 0, 0, 0]]
    assert batch.rows.toarray().tolist() == batch.parsed.toarray().tolist() == expected
    assert not batch.parsed.unique and batch.slice(0, 2).rows.toarray().tolist() == expected[:2]
    assert batch.take(np.array([2, 0])).rows.toarray().tolist() == [expected[2], expected[0]]
    X, y = data.load(path)
    assert isinstance(X, sp.csr_matrix) and X.toarray().tolist() == expected and y.tolist() == ["1", "0", "1"]


def test_a_row_with_an_index_twice_is_known_wherever_it_is(tmp_path):
    for text, unique in (("1 1:1 2:1\n0 2:1\n", True), ("1 2:1 1:1\n0 2:1\n", True), ("1 2:1 1:1 2:1\n", False)):
        (tmp_path / "rows.svm").write_text(text)
        assert next(data.read(tmp_path / "rows.svm")).parsed.unique == unique


def test_batches_of_users_own_matrices():
    X = sp.csr_matrix(np.eye(3))
    batch = Batch(X)
    assert batch.rows is X and isinstance(batch.parsed, CSR) and len(batch) == 3
    assert [part.rows.toarray().tolist() for part in batch.split(2)] == [np.eye(3)[:2].tolist(), np.eye(3)[2:].tolist()]
