"""What a run over shards makes of the content of its files: changes, and the order of names."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from cluster_examples import prepared, run_here, write_svmlight
from onlearn.cluster import tasks, training
from onlearn.cluster.shards import Shard
from onlearn.data import DataError
from onlearn.data.sources import Source
from onlearn.models.run_certificate import run_certificate
from onlearn.models.training import train as train_here


def write_parquet(path: Path, table: Any) -> None:
    pa.parquet.write_table(table, path, row_group_size=500)


def write_arrow(path: Path, table: Any) -> None:
    pa.feather.write_feather(table, path, chunksize=500, compression="uncompressed")


def write_stream(path: Path, table: Any) -> None:
    with pa.ipc.new_stream(path, table.schema) as file:
        file.write_table(table, max_chunksize=500)


COLUMNAR = {"a.parquet": write_parquet, "a.arrow": write_arrow, "a.arrows": write_stream}


def points(rows: int = 2000, flipped: bool = False) -> Any:
    x = np.random.default_rng(0).normal(size=rows)
    return pa.table({"x": x, "label": np.where((x > 0) ^ flipped, "up", "down")})


@pytest.mark.parametrize("name", COLUMNAR)
def test_columnar_files_that_change_between_rounds_are_noticed(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    COLUMNAR[name](path, points())
    run = prepared(path, learner="Perceptron", shards=3, rounds=3)
    run.on_round = lambda one: COLUMNAR[name](path, points(flipped=True)) if one.number == 1 else None
    with pytest.raises(DataError, match=rf"{name} changed since the run began"):
        run.go()
    assert run.model.trained["ended"] == 1


@pytest.mark.parametrize("name", COLUMNAR)
def test_columnar_files_that_are_written_anew_with_the_same_content_are_the_same(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    COLUMNAR[name](path, points())
    run = prepared(path, learner="Perceptron", shards=3, rounds=2)
    run.on_round = lambda one: COLUMNAR[name](path, points())
    run.go()
    assert run.model.trained["unfinished"] is None


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_columnar_files_that_lose_groups_between_rounds_are_noticed(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    COLUMNAR[name](path, points())
    run = prepared(path, learner="Perceptron", shards=2, rounds=2)
    run.on_round = lambda one: COLUMNAR[name](path, points(rows=400))
    with pytest.raises(DataError, match=rf"{name} has changed since it was cut: it has 1 group of"):
        run.go()


def test_a_file_that_a_worker_does_not_find_is_told() -> None:
    nowhere = Source("a.svm", Path("/nowhere/a.svm"), None)
    found = tasks.survey(None, Shard(0, "shard 0", (nowhere,)), None)
    assert "a.svm is not there for the worker" in str(found.error)


# ---------------------------------------------------------------------- rows that are held out


def test_rows_are_learned_from_or_held_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "PIECE", 1 << 10)  # so that every shard has several pieces
    path = tmp_path / "rows.svm"
    path.write_text("".join(f"{n % 7 > 2:d} 1:{n + 1} 2:{n % 7}\n" for n in range(2000)))
    run = run_here(path, learner="Perceptron", shards=4, holdout=0.3, rounds=2)
    assert len(run.shards[0].pieces) > 3

    def numbers(batches: Iterator[Any]) -> list[float]:
        return [value for batch in batches for value in batch.parsed.toarray()[:, 1]]

    learned, held = numbers(run.reading.learned_batches()), numbers(run.reading.held_out_batches())
    assert sorted([*learned, *held]) == list(range(1, 2001))
    assert len(learned) == run.report.examples / 2


def test_the_certificate_is_about_the_rows_that_were_learned_from(tmp_path: Path) -> None:
    path = write_svmlight(tmp_path / "rows.svm", 2000)
    run = run_here(path, learner="Perceptron", shards=4, holdout=0.3, rounds=5)
    certificate = run_certificate(run)
    assert certificate.n_examples == run.report.examples / 5
    assert certificate.holds()


# ---------------------------------------------------------------------- names in the order of the files


def texts(rows: int) -> list[str]:
    """Texts of words that come and go, with labels."""
    rng = np.random.default_rng(0)
    places = [(rng.normal(n / 4, 100, 8) % 1000).astype(int) for n in range(rows)]
    return [f"{'ab'[words[0] % 2]},{' '.join(f'w{word}' for word in words)}\n" for words in places]


def one_file(folder: Path) -> Any:
    path = folder / "a.csv"
    path.write_text("label,text\n" + "".join(texts(1200)))
    return path


def compressed_files(folder: Path) -> Any:
    """Files that are not cut, one of them twice and one of them without rows."""
    lines, paths = texts(1200), [folder / f"{n}.csv.gz" for n in range(7)]
    for n, path in enumerate(paths):
        path.write_bytes(gzip.compress(("label,text\n" + "".join(lines[160 * n : 160 * (n != 4) * (n + 1)])).encode()))
    return [*paths, paths[2]]


def mixed_files(folder: Path) -> Any:
    """A table of Parquet, and a file that is cut into parts."""
    rows = [line.strip().split(",") for line in texts(400)]
    path = folder / "a.parquet"
    pa.parquet.write_table(pa.table(dict(zip(("label", "text"), zip(*rows)))), path, row_group_size=50)
    return [path, one_file(folder)]


@pytest.mark.parametrize("files", [one_file, compressed_files, mixed_files])
@pytest.mark.parametrize("options", [{}, {"max_names": 3000, "bits": 8}, {"min_count": 9}])
def test_names_are_numbered_as_on_one_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Any, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(training, "PIECE", 1 << 11)
    named = files(tmp_path)
    options = {"text": "text", "learner": "Perceptron", **options}
    run = run_here(named, shards=3, rounds=1, **options)
    assert len(run.shards[0].pieces) > 2
    found, serial = run.model.features, train_here(named, passes=1, **options).features
    assert found.get_feature_names_out().tolist() == serial.get_feature_names_out().tolist()
    assert found.vocabulary_.state == serial.vocabulary_.state
    width = serial.vocabulary_.width
    assert found.extraction.documents[:width].tolist() == serial.extraction.documents[:width].tolist()


def test_names_of_a_model_that_learns_more_are_numbered_as_on_one_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "PIECE", 1 << 11)
    lines, (monday, tuesday) = texts(1200), (tmp_path / "monday.csv", tmp_path / "tuesday.csv")
    monday.write_text("label,text\n" + "".join(lines[:400]))
    tuesday.write_text("label,text\n" + "".join(lines[400:]))
    path = tmp_path / "m.onl"
    train_here(monday, path, text="text", max_names=6000, bits=8)
    found, serial = run_here(tuesday, resume=path, shards=3).model, train_here(tuesday, resume=path)
    assert found.features.get_feature_names_out().tolist() == serial.features.get_feature_names_out().tolist()


def test_shards_of_files_without_rows_are_no_mistake(tmp_path: Path) -> None:
    lines = texts(90)
    paths = [tmp_path / f"{n}.csv.gz" for n in range(6)]
    for n, path in enumerate(paths):  # those of the second shard have none
        path.write_bytes(gzip.compress(("label,text\n" + "".join(lines[n::6] if n % 3 != 1 else [])).encode()))
    run = run_here(paths, text="text", learner="Perceptron", shards=3, rounds=2)
    assert [len(shard.pieces) for shard in run.shards] == [2, 2, 2]
    assert run.reading.rows == 60
