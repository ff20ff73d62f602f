"""Rows that are held out of a run over shards: workers predict them, with the figures of one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onlearn
from cluster_examples import prepared, write_svmlight, write_table
from onlearn.cluster import training
from onlearn.cluster.options import ClusterOptions
from onlearn.models.evaluation import evaluate
from onlearn.report.evidence import Evidence


def evaluated(sources: Any, monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The figures of held-out rows by the workers, and by this process."""
    monkeypatch.setattr(training, "PIECE", 1 << 11)
    options = {"holdout": 0.3, "shards": 4, "rounds": 2, **options}
    run = prepared(sources, **options)
    read_again = run.reading._read_again

    def refused() -> Any:
        raise AssertionError("the client reads all data")

    monkeypatch.setattr(run.reading, "_read_again", refused)
    report = training.carry_out(run, ClusterOptions(sources=sources, cluster="here", **options)).report_["holdout"]
    monkeypatch.setattr(run.reading, "_read_again", read_again)
    return report, evaluate(run.model, run.reading.held_out_batches()).report()


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name in expected:
            assert_same(found[name], expected[name])
    else:
        assert found == (pytest.approx(expected) if isinstance(expected, float) else expected)


@pytest.mark.parametrize("threshold", [None, "f1"])
def test_workers_evaluate_held_out_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threshold: Any) -> None:
    path = write_svmlight(tmp_path / "rows.svm", 2000)
    found, expected = evaluated(path, monkeypatch, threshold=threshold)
    assert 500 < found["n"] < 700
    assert_same(found, expected)


def test_held_out_rows_of_tables_and_of_regression(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = write_table(tmp_path / "t.csv", 600)
    assert_same(*evaluated(table, monkeypatch))
    assert_same(*evaluated(table, monkeypatch, task="regress", target="size"))


def test_the_report_has_the_evidence_of_held_out_rows(tmp_path: Path) -> None:
    run = prepared(write_svmlight(tmp_path / "rows.svm", 600), shards=3, rounds=1, holdout=0.3)
    run.go()
    evidence = Evidence(run.model.labels)
    evaluation = evaluate(run.model, [])
    run.reading.add_held_out(evaluation, evidence)
    assert evidence.rows == evaluation.n == 600 - run.report.examples


def test_workers_evaluate_held_out_rows_on_a_cluster(cluster: Any, tmp_path: Path) -> None:
    path = write_svmlight(tmp_path / "rows.svm", 3000)
    model = onlearn.cluster.fit("AveragedPerceptron", path, cluster, holdout="20%", rounds=2, threshold="f1")
    assert np.isclose(model.report_["holdout"]["n"], 600, atol=80)
    assert model.report_["holdout"]["accuracy"] > 0.85
