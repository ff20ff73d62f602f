"""Going on with unfinished runs over shards: the same content is, whatever its time, and other content is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import onlearn
from cluster_examples import prepared, run_here, state_of, write_svmlight, write_table
from onlearn.data import DataError
from onlearn.errors import PlanError
from onlearn.models.train_options import TrainOptions
from onlearn.models.training import prepare


def stopped(sources: Path, output: Path, after: int = 2, **options: object) -> Path:
    """The checkpoint of a run that is stopped after some rounds."""
    run = prepared(sources, output=output, shards=3, rounds=5, **options)
    run.on_round = lambda one: run.interrupt() if one.number == after else None
    with pytest.raises(KeyboardInterrupt):
        run.go(checkpoint=lambda: run.model.save(output))
    return output


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_svmlight(tmp_path / "rows.svm", 1200)


def test_files_that_are_only_touched_are_gone_on_with(rows: Path, tmp_path: Path) -> None:
    path = stopped(rows, tmp_path / "m.onl")
    os.utime(rows, (1, 1))
    again = run_here(rows, resume=path)
    assert again.start.ended == 2
    assert state_of(again.model) == state_of(run_here(rows, shards=3, rounds=5).model)
    with pytest.raises(PlanError, match="resume it with cluster="):
        onlearn.train(rows, resume=path)


@pytest.mark.parametrize("how", ["other values", "fewer rows", "ten times as long"])
def test_other_content_is_refused(rows: Path, tmp_path: Path, how: str) -> None:
    path = stopped(rows, tmp_path / "m.onl")
    text = rows.read_text()
    changed = {"other values": text.replace("1:", "2:"), "fewer rows": text[: len(text) // 2]}
    rows.write_text(changed.get(how, text * 10))
    before = path.read_bytes()
    with pytest.raises(DataError, match=r"changed since the run began: train anew"):
        go_on(rows, path)
    assert path.read_bytes() == before


def go_on(rows: Path, path: Path) -> None:
    run = prepared(rows, resume=path, output=path)
    run.go(checkpoint=lambda: run.model.save(path))


def test_parquet_with_other_content_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"

    def write(low: str, high: str) -> None:
        labels = [low if n % 10 < 5 else high for n in range(1000)]
        pa.parquet.write_table(pa.table({"x": [n % 10 for n in range(1000)], "label": labels}), path)

    write("a", "b")
    model = stopped(path, tmp_path / "m.onl")
    write("b", "a")
    with pytest.raises(DataError, match=r"a\.parquet changed since the run began"):
        run_here(path, resume=model)


def test_a_run_goes_on_as_it_began(rows: Path, tmp_path: Path) -> None:
    path = stopped(rows, tmp_path / "m.onl", learner="LogisticRegression", mix="uniform")
    for options in ({"rounds": 7}, {"shards": 2}, {"mix": "mistakes"}, {"lbfgs": 3}):
        with pytest.raises(PlanError, match=rf"goes on as it began: leave {next(iter(options))}= out"):
            run_here(rows, resume=path, **options)
    assert len(run_here(rows, resume=path, rounds=5, shards=3).told) == 3


def test_a_model_of_a_cluster_goes_on_on_one_machine_and_is_resumed_there(tmp_path: Path) -> None:
    monday, tuesday = write_table(tmp_path / "monday.csv"), write_table(tmp_path / "tuesday.csv", seed=1)
    path = tmp_path / "m.onl"
    run_here(monday, shards=2, rounds=2).model.save(path)
    run = prepare(TrainOptions(sources=tuesday, resume=path, output=path, passes=5))
    with pytest.raises(KeyboardInterrupt):
        run.go(lambda now: run.interrupt())
    run.model.save(path)
    assert onlearn.load(path).trained["unfinished"] > 0
    with pytest.raises(PlanError, match="on one machine: resume it without cluster="):
        run_here(tuesday, resume=path)
    assert onlearn.train(tuesday, resume=path).trained["unfinished"] is None
