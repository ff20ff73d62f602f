"""What is refused before there is a cluster: no address is called, and no process is started."""

from __future__ import annotations

from pathlib import Path

import pytest

import onlearn
from cluster_examples import run_here, write_svmlight
from onlearn import cli

NOWHERE = "tcp://127.0.0.1:1"  # no scheduler is here
FORMS = [
    (["none.svm"], "none.svm does not exist"),
    (["-"], "Invalid value for --cluster: standard input cannot be cut into shards"),
    (["rows.svm", "--learner", "VotedPerceptron"], "--learner"),
    (["rows.svm", "--learner", "AveragedPerceptron", "--lbfgs", "3"], "--lbfgs"),
    (["rows.svm", "--task", "rank"], "rank"),
    (["rows.svm", "--shards", "0"], "--shards"),
    (["rows.svm", "--test", "none.svm"], "none.svm does not exist"),
    (["rows.svm", "--resume", "none.onl"], "none.onl"),
    (["rows.svm", "--resume", "whole.onl", "--learner", "AROW"], "learner"),
    (["rows.svm", "--resume", "half.onl", "--rounds", "7"], "leave --rounds out"),
    (["none.svm", "--learner", "auto"], "none.svm does not exist"),
    (["rows.svm", "--learner", "auto", "--time-limit", "-1"], "--time-limit"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training")
    rows = write_svmlight(folder / "rows.svm")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run_here(rows.name, rounds=2).model.save("whole.onl")
        run_here(rows.name, rounds=3, stop_after=1).model.save("half.onl")
    return folder


@pytest.mark.parametrize(("given", "why"), FORMS)
def test_the_command_refuses_before_it_connects(
    folder: Path, given: list[str], why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert cli.run(["train", *given, "-o", "m.onl", "--cluster", NOWHERE]) == 2
    said = capsys.readouterr().err
    assert why in said
    assert "scheduler" not in said


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder that takes no files, not even from root")
def test_an_output_that_cannot_be_written_is_told_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more in (["--cluster", NOWHERE], []):
        assert cli.run(["train", str(folder / "rows.svm"), "-o", "/proc/m1.onl", *more]) == 2
        assert "Invalid value for --output" in capsys.readouterr().err


def test_a_wrong_option_is_told_in_python_before_a_cluster_is_begun(folder: Path) -> None:
    rows = folder / "rows.svm"
    for learner in ("VotedPerceptron", "Nonsense"):
        with pytest.raises(onlearn.errors.PlanError):
            onlearn.cluster.fit(learner, rows, NOWHERE)
        with pytest.raises(onlearn.errors.PlanError):
            onlearn.cluster.train(rows, cluster=NOWHERE, learner=learner)
