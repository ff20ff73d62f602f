"""The tool that shows that models stay byte-identical."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import onlearn
import record_runs


def hashes(path: Path) -> dict[str, str]:
    return dict(record_runs.model_hashes(path))


def test_a_model_file_is_known_by_header_and_arrays(tmp_path):
    learner = onlearn.Perceptron(random_state=0, epochs=2).fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    learner.save(tmp_path / "a.onl")
    learner.save(tmp_path / "b.onl")
    onlearn.Perceptron(random_state=0, epochs=2, tol=0.0).fit([[0.0, 1.0], [1.0, 0.0]], [0, 1]).save(tmp_path / "c.onl")
    a, b, c = (hashes(tmp_path / f"{name}.onl") for name in "abc")
    assert a == b
    assert a["model"] != c["model"]
    assert a["arrays"] == c["arrays"]


def test_the_version_in_a_model_file_does_not_count(tmp_path):
    def write(version: str, rows: int) -> Path:
        told = {"model": {"trained": {"version": version, "rows": rows}}}
        header = json.dumps({"__metadata__": {"onlearn": json.dumps(told)}}).encode()
        path = tmp_path / "m.onl"
        path.write_bytes(len(header).to_bytes(8, "little") + header)
        return path

    assert hashes(write("0.1.0", 5)) == hashes(write("12.0.0", 5))
    assert hashes(write("0.1.0", 5)) != hashes(write("0.1.0", 6))


@pytest.mark.parametrize(
    "other",
    [np.zeros((2, 3), np.float32), np.zeros((3, 2)), np.full((2, 3), -0.0), sp.csr_matrix((2, 3)), [[0.0] * 3] * 2],
)
def test_type_shape_and_every_bit_count(other):
    zeros = np.zeros((2, 3))
    assert record_runs.hash_of(zeros) == record_runs.hash_of(zeros.copy(order="F"))
    assert record_runs.hash_of(zeros) != record_runs.hash_of(other)


def test_seconds_are_left_out_of_reports_at_any_depth():
    report = {"rows": 3, "seconds": 0.5, "passes": [{"seconds": 0.1, "loss": 2.0}]}
    assert record_runs.steady(report) == {"rows": 3, "passes": [{"loss": 2.0}]}


def test_differences_name_what_changed_is_missing_or_is_new():
    before = {"a: model": "1", "b: model": "2", "c: model": "3"}
    after = {"a: model": "1", "b: model": "x", "d: failed": "why"}
    assert record_runs.differences(before, before) == []
    assert record_runs.differences(before, after) == [
        "differs: b: model",
        "is missing: c: model",
        "is new: d: failed",
    ]
