"""Dask collections as shards, in this process: parts without rows, rows without a label, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onlearn
from cluster_examples import HereConnection
from onlearn.cluster.options import ClusterOptions
from onlearn.cluster.training import carry_out, planned_collection
from onlearn.data import DataError
from onlearn.errors import PlanError

da = pytest.importorskip("dask.array")
db = pytest.importorskip("dask.bag")
delayed = pytest.importorskip("dask.delayed").delayed


def fit(data: Any, **options: Any) -> Any:
    """A model that learned from a collection."""
    asked = ClusterOptions(sources=[], cluster="here", rounds=2, **options)
    return carry_out(planned_collection(data, asked)(HereConnection()), asked)


def rows(count: int = 300) -> list[dict[str, Any]]:
    return [{"x": n % 7, "kind": "abc"[n % 3], "label": "yes" if n % 7 > 3 else "no"} for n in range(count)]


def bag_of(*parts: list[dict[str, Any]]) -> Any:
    from dask import delayed

    return db.from_delayed([delayed(list)(part) for part in parts])


def test_parts_without_rows_are_passed_over() -> None:
    known = rows()
    unlabelled = [{**row, "label": None} for row in known[:2]]
    found = fit(bag_of([], unlabelled, known, [], known), target="label", max_bad="1%")
    assert found.report_["rows"] == 600
    assert found.report_["bad_rows"] == 2
    assert found.report_["cluster"]["shards"] == 5
    assert found.score(known, [row["label"] for row in known]) > 0.9
    for nothing in (bag_of([], []), bag_of([], unlabelled)):
        with pytest.raises(DataError, match="the collection has no rows with a label"):
            fit(nothing, target="label")


def test_empty_partitions_of_data_frames_are_passed_over() -> None:
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(rows())
    whole = dd.concat([dd.from_pandas(frame[:0], npartitions=1), dd.from_pandas(frame, npartitions=2)])
    assert fit(whole, target="label").report_["rows"] == 300


def test_strict_stops_at_a_row_without_a_label() -> None:
    some = rows()
    some[4]["label"] = None
    with pytest.raises(DataError, match="part 0, line 5: the label is missing"):
        fit(bag_of(some), target="label", strict=True)


def test_rows_without_a_label_are_written_to_a_file(tmp_path: Path) -> None:
    some, path = rows(), tmp_path / "bad.txt"
    some[4]["label"] = None
    assert fit(bag_of(some), target="label", bad_rows=path).report_["bad_rows"] == 1
    assert path.read_text() == "{'x': 4, 'kind': 'b', 'label': None}\n"
    X, y = np.eye(3)[np.arange(300) % 3], np.arange(300) % 3.0
    y[1] = np.nan
    fit((da.from_array(X, chunks=100), da.from_array(y, chunks=100)), learner="Perceptron", bad_rows=path)
    assert path.read_text() == "2:1\n"
    with pytest.raises(PlanError, match="there is no directory"):
        fit(bag_of(rows()), target="label", bad_rows=tmp_path / "none" / "bad.txt")


def test_the_output_must_be_writable(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="there is no directory"):
        fit(bag_of(rows()), target="label", output=tmp_path / "none" / "m.onl")


def test_blocks_of_unknown_sizes_are_refused() -> None:
    X = da.from_array(np.eye(6), chunks=2)
    y = da.from_array(np.arange(6), chunks=2)
    some = X[X.sum(axis=1) > 0], y[y >= 0]
    with pytest.raises(PlanError, match=r"unknown sizes: call compute_chunk_sizes\(\)"):
        fit(some, learner="Perceptron")
    assert fit(tuple(one.compute_chunk_sizes() for one in some), learner="Perceptron").report_["rows"] == 6


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_arrays_without_numbers_are_refused(value: float) -> None:
    X = np.eye(6)
    X[3, 2] = value
    with pytest.raises(DataError, match="X has a value that is missing or infinite"):
        fit((da.from_array(X, chunks=2), da.from_array(np.arange(6), chunks=2)), learner="Perceptron")


def test_a_closed_client_is_refused() -> None:
    class Closed:
        status = "closed"
        submit = scatter = gather = None

    with pytest.raises(PlanError, match="the client is closed"):
        onlearn.cluster.fit("Perceptron", bag_of(rows()), Closed(), target="label")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ((np.eye(2), np.array([0, 1])), "ndarray"),
        ((np.eye(2), da.from_array(np.array([0, 1]))), "ndarray"),
        (np.eye(2), "ndarray"),
        ([{"x": 1}], "dict"),
        (7, "int"),
        (delayed([1, 2]), "Delayed"),
    ],
)
def test_data_of_other_types_are_refused_before_a_cluster_is_begun(data: Any, kind: str) -> None:
    with pytest.raises(PlanError, match=rf"data are files, a Dask data frame.*not of type {kind}"):
        onlearn.cluster.fit("Perceptron", data, "tcp://nowhere")
