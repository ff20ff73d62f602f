"""``onlearn tune``: the table, the command, files of tables, and what is refused."""

from __future__ import annotations

import json
import signal

import pytest

from onlearn.cli import run
from onlearn.models import Model
from onlearn.tune.race import Race

SPACE = ["--space", "learner=AROW,LogisticRegression", "--space", "rate=0.05,0.5"]


@pytest.fixture
def tune(kit, capfd):
    """Run the command on a table; the exit code, standard output and standard error."""

    def call(*arguments, data="table.csv"):
        code = run(["tune", kit(data), *arguments])
        return code, *capfd.readouterr()

    return call


def test_the_table_and_the_command_are_printed_and_no_model_is_written(tune, kit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = tune(*SPACE, "--id", "key")
    assert (code, err) == (0, "")
    assert "(the default)" in out
    assert "--learner AROW" in out
    assert "4 configurations" in out
    assert out.splitlines()[-1].startswith(f"onlearn train {kit('table.csv')} -o MODEL --id key")
    assert list(tmp_path.iterdir()) == []


def test_json_and_the_file_of_the_table_are_the_same(tune, tmp_path):
    path = tmp_path / "race.json"
    code, out, _ = tune(*SPACE, "--json", "--table", str(path), "--id", "key")
    found = json.loads(out)
    assert code == 0
    assert found == json.loads(path.read_text())
    assert found["winner"] in range(4)
    first = found["configurations"][1]
    assert first.keys() >= {"number", "options", "spelling", "rungs", "dropped_at", "why", "rank"}
    assert first["rungs"][0].keys() >= {"examples", "loss", "mistakes"}


def test_a_table_is_resumed(tune, tmp_path):
    path = tmp_path / "race.json"
    tune("--table", str(path), "--id", "key")
    before = json.loads(path.read_text())
    decided = {one["spelling"] for one in before["configurations"] if one["why"] is not None}
    code, out, _ = tune("--resume", str(path), "--json", "--id", "key")
    after = json.loads(out)
    assert code == 0
    assert {one["spelling"] for one in after["configurations"] if one["why"] is not None} >= decided
    assert after["winner"] == before["winner"]
    assert after["examples"] < before["examples"] or not decided
    path.write_text('{"a": 1}')
    code, _, err = tune("--resume", str(path))
    assert (code, err.strip()[-48:]) == (2, "table of a race, as onlearn tune --table writes it"[-48:])


def test_with_an_output_the_winner_is_trained_and_tested(tune, kit, tmp_path):
    path = tmp_path / "m.onl"
    code, out, _ = tune(*SPACE, "-o", str(path), "--test", kit("table.csv"), "--id", "key")
    assert code == 0
    assert "(the default)" in out
    assert "test" in out
    assert isinstance(__import__("onlearn").load(path), Model)
    code, out, _ = tune(*SPACE, "-o", str(path), "--json", "--id", "key")
    assert json.loads(out)["training"]["model"] == str(path)


@pytest.mark.parametrize("data", ["text.jsonl", "sparse.svm", "named.vw"])
def test_any_kind_of_data_is_raced(tune, data):
    code, out, err = tune("--json", data=data)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert len(found["configurations"]) > 5
    assert all(one["why"] in (None, "half") for one in found["configurations"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--space", "wieghting=idf"], "did you mean 'weighting'"),
        (["--space", "rate=log(0,1)"], "begin above 0"),
        (["--space", "rate=0.1", "--space", "rate=0.2"], "rate is given twice"),
        (["--test", "x.csv"], "--test needs --output"),
        (["--table", "nosuch/a.json"], "there is no directory nosuch"),
        (["--time-limit", "-1"], "--time-limit"),
        (["--space", "learner=AROV"], "did you mean 'AROW'"),
        (["--learner", "SVC", "--configurations", "3"], "--configurations is about a race"),
        (["--task", "rank"], "onlearn tune is for classification and regression, not for rank"),
        (["--task", "tag"], "onlearn tune is for classification and regression, not for tag"),
    ],
)
def test_mistakes_are_said_in_one_sentence(tune, arguments, said):
    code, _, err = tune(*arguments)
    assert code == 2
    assert said in err
    assert len(err.strip().splitlines()) == 1


def test_ctrl_c_shows_the_best_so_far(tune, monkeypatch):
    real = Race._ranked

    def ranked(self, *arguments):
        if not self.over():
            signal.raise_signal(signal.SIGINT)
        return real(self, *arguments)

    monkeypatch.setattr(Race, "_ranked", ranked)
    code, out, err = tune(*SPACE, "--id", "key")
    assert code == 130
    assert "ended early" in out
    assert "onlearn train" in out
    assert "stopped by Ctrl-C during the race" in err


def test_training_by_a_race_prints_what_it_decided(kit, capfd, tmp_path):
    path = tmp_path / "m.onl"
    code = run(["train", kit("table.csv"), "-o", str(path), "--learner", "auto", "--id", "key"])
    out = capfd.readouterr().out
    assert code == 0
    assert "a race of " in out
    assert f"onlearn train {kit('table.csv')} -o {path} --id key" in out


def test_what_the_default_refuses_is_refused(tmp_path, refused):
    path = tmp_path / "groups.svm"
    path.write_text("1 qid:1 1:1 2:0.5\n0 qid:1 1:0.2\n1 qid:2 2:1\n0 qid:2 1:0.3\n" * 50)
    assert "--task rank" in refused("tune", str(path))


def test_taggers_are_not_tuned(tmp_path, refused):
    path = tmp_path / "dev.conllu"
    path.write_text("1\tDogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tbark\tbark\tVERB\t_\t_\t0\troot\t_\t_\n\n" * 30)
    for more in ([], ["--learner", "SVC"]):
        assert "taggers cannot be tuned" in refused("tune", str(path), *more)
    model = str(tmp_path / "m.onl")
    assert "taggers cannot be tuned" in refused("train", str(path), "-o", model, "--learner", "auto")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rule", "pa1(0.5)"], "put it into --space, as 'rule=pa1(0.5)'"),
        (["--kernel", "polynomial(2)"], "put it into --space, as 'kernel=polynomial(2)'"),
        (["--cache-mb", "3"], "put it into --space, as 'cache_mb=3.0', besides 'learner=KernelClassifier'"),
    ],
)
def test_what_the_race_decides_is_spelled_as_a_space_takes_it(kit, refused, tmp_path, arguments, said):
    start = ["train", kit("table.csv"), "-o", str(tmp_path / "m.onl"), "--learner", "auto", "--id", "key"]
    assert said in refused(*start, *arguments)
    spelled = said.split("'")[1::2]
    assert run([*start, *(word for one in spelled for word in ("--space", one))]) == 0
