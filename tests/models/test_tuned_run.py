"""Training with ``learner="auto"``: the race over files, its winner, and the model that comes of it."""

from __future__ import annotations

import json
import os
import shlex
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import onlearn
from onlearn import data
from onlearn.cli import run as run_command
from onlearn.data import DataError
from onlearn.errors import PlanError
from onlearn.models import file_race, tuned_run
from onlearn.models.configuration import command, configured, resolved, spelling
from onlearn.models.train_options import TrainOptions
from onlearn.models.training import prepare
from onlearn.tune.race import Race

DATA = os.environ.get("ONLEARN_DATA")


def write_table(path: Path, rows: int = 1500, seed: int = 0) -> Path:
    """A table whose label is whether two numbers have the same sign, which only their product tells."""
    rng = np.random.default_rng(seed)
    codes, first, second = rng.integers(0, 12, rows), rng.normal(size=rows), rng.normal(size=rows)
    noise = rng.random(rows) < 0.05
    labels = np.where((first * second > 0) ^ noise, "yes", "no")
    lines = [f"{c},{x:.3f},{z:.3f},{label}" for c, x, z, label in zip(codes, first, second, labels, strict=True)]
    path.write_text("\n".join(["code,size,weight,label", *lines]) + "\n")
    return path


def write_texts(path: Path, rows: int = 400, seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    words = [f"word{n}" for n in range(60)]
    lines = []
    for n in range(rows):
        label = n % 2
        of_label = words[:20] if label else words[20:40]
        text = [*rng.choice(of_label, 3), *rng.choice(words[40:], 5)]
        lines.append(json.dumps({"label": "ab"[label], "text": " ".join(rng.permutation(text))}))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("tuned") / "codes.csv")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return write_texts(tmp_path_factory.mktemp("tuned") / "texts.jsonl")


def tuned(path, **options):
    return onlearn.train(path, learner="auto", **options)


def test_the_best_features_win(table):
    model = tuned(table)
    tuning = model.report_["tuning"]
    assert tuning["options"]["interact"] == "pairs"
    assert "--interact pairs" in tuning["command"]
    assert tuning["configurations"][tuning["winner"]]["rank"] == 1
    assert tuning["configurations"][0]["options"] == {}
    rows = [{"code": 1, "size": 2.0, "weight": sign * 2.0} for sign in (1, -1)]
    assert model.predict(rows).tolist() == ["yes", "no"]


def test_whole_numbers_are_raced_as_categories(table, tmp_path):
    tuning = tuned(table).report_["tuning"]
    assert ["code"] in [one["options"].get("categorical") for one in tuning["configurations"]]
    path = tmp_path / "ids.csv"
    path.write_text("id,size,label\n" + "".join(f"{n % 60 * 977},{n % 7},{'ab'[n % 2]}\n" for n in range(600)))
    run = prepare(TrainOptions(sources=[path], learner="auto", numeric="size"))
    assert not any("size" in one["options"].get("categorical", ()) for one in run.decide()["configurations"])


@pytest.mark.parametrize("kind", ["table", "texts", "large"])
def test_the_model_is_that_of_the_command_bit_for_bit(kind, table, texts, tmp_path, monkeypatch):
    if kind == "large":  # so that there are preliminaries, and more rows than are kept for the race
        monkeypatch.setattr(file_race, "SMALL", 1)
        monkeypatch.setattr(file_race, "MEDIUM", 1)
        monkeypatch.setattr(tuned_run, "BYTES", 20_000)
        monkeypatch.setattr(tuned_run, "ROWS", 200)
        monkeypatch.setattr("onlearn.data.read", partial(data.read, block_size=1 << 12))
    path = texts if kind == "texts" else table
    auto, plain = tmp_path / "auto.onl", tmp_path / "plain.onl"
    space = {"weighting": ["log-tfidf"], "learner": ["AROW(r=3.0)"]} if kind == "texts" else None
    model = tuned(path, output=auto, space=space, seed=3)
    if kind == "large":
        sample = model.report_["tuning"]["sample"]
        assert sample["rows"] == 200 < sample["kept"] < 1500
        assert not sample["complete"]
    words = shlex.split(model.report_["tuning"]["command"])
    assert words[:3] == ["onlearn", "train", str(path)]
    words[words.index("-o") + 1] = str(plain)
    assert run_command([*words[1:], "--quiet"]) == 0
    assert auto.read_bytes() == plain.read_bytes()


@pytest.mark.parametrize("workers", [1, 3])
def test_a_race_is_decided_by_the_seed_and_not_by_threads(table, workers, monkeypatch):
    plain = tuned(table, seed=5).report_["tuning"]
    monkeypatch.setattr("onlearn.tune.field.cores", lambda: workers)
    again = tuned(table, seed=5).report_["tuning"]
    assert {**again, "seconds": 0} == {**plain, "seconds": 0}


def test_the_winner_is_not_worse_than_the_best_single_configuration(table, tmp_path):
    """Within two standard errors of the difference, on rows that nobody has seen."""
    test = write_table(tmp_path / "test.csv", 2000, seed=9)
    model = tuned(table, test=test)
    accuracies = []
    for one in model.report_["tuning"]["configurations"]:
        if one["why"] in (None, "half"):
            options = configured(TrainOptions(sources=[table]), one["options"])
            single = onlearn.train(table, test=test, **{k: getattr(options, k) for k in one["options"]})
            accuracies.append(single.report_["test"]["accuracy"])
    assert model.report_["test"]["accuracy"] >= max(accuracies) - 2 * np.sqrt(0.25 / 2000)


def test_preliminaries_drop_half_and_leave_finalists(table, monkeypatch):
    monkeypatch.setattr(file_race, "SMALL", 1)
    monkeypatch.setattr(file_race, "MEDIUM", 1)
    monkeypatch.setattr(file_race, "SAMPLE", 1000)
    tuning = tuned(table).report_["tuning"]
    dropped = [one for one in tuning["configurations"] if one["why"] == "half" and one["passes"] is None]
    finalists = [one for one in tuning["configurations"] if one["passes"] is not None]
    assert len(dropped) >= len(tuning["configurations"]) / 2
    assert 2 <= len(finalists) <= file_race.FINALISTS + 1
    assert all(one["dropped_at"] <= 1000 for one in dropped)


def test_memory_limits_the_finalists(texts, monkeypatch):
    monkeypatch.setattr(file_race, "MEMORY", 1)
    tuning = tuned(texts).report_["tuning"]
    whys = [one["why"] for one in tuning["configurations"]]
    assert sum(why is not None and why.startswith("memory") for why in whys) >= 1
    assert whys[0] is None


def test_regression_is_raced(tmp_path):
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=800), rng.normal(size=800)
    path = tmp_path / "amounts.csv"
    path.write_text("x,z,y\n" + "".join(f"{a:.3f},{b:.3f},{3 * a * b + a:.3f}\n" for a, b in zip(x, z, strict=True)))
    model = tuned(path, target="y", task="regress")
    assert model.report_["tuning"]["options"]["interact"] == "pairs"
    assert model.report_["tuning"]["configurations"][0]["rungs"][0]["mistakes"] == 0


def test_a_space_is_raced_instead_and_its_passes_are_kept(table):
    space = {"learner": ["AROW", "LogisticRegression"], "rate": {"log": [0.01, 1]}, "passes": [1, 2]}
    tuning = tuned(table, space=space, configurations=6).report_["tuning"]
    assert 3 <= len(tuning["configurations"]) <= 7
    for one in tuning["configurations"][1:]:
        assert {rung["passes"] for rung in one["rungs"]} == {one["options"]["passes"]}
        assert ("rate" in one["options"]["learner"]) == one["options"]["learner"].startswith("Logistic")


def test_true_is_a_truth_value_of_flags_and_a_word_of_others(texts, tmp_path):
    tuning = tuned(texts, space=["norm=true,false"]).report_["tuning"]
    assert [one["spelling"] for one in tuning["configurations"]] == ["", "--norm", "--no-norm"]
    path = tmp_path / "three.csv"
    path.write_text("size,label\n" + "".join(f"{n % 3 + n % 7 / 10},{'abc'[n % 3]}\n" for n in range(200)))
    for space in (["multiclass=true,softmax"], {"multiclass": ["true", "softmax"]}, {"multiclass": [True, "softmax"]}):
        tuning = tuned(path, target="label", space=space).report_["tuning"]
        spelled = [one["spelling"] for one in tuning["configurations"]]
        assert spelled == ["", "--multiclass true", "--multiclass softmax"]
        assert {one["why"] for one in tuning["configurations"]} <= {None, "half"}


def test_configurations_that_fail_are_dropped(table):
    tuning = tuned(table, space={"learner": ["Winnow", "AROW", "AROW(r=-1)"], "scale": ["standard", "nosuch"]}).report_[
        "tuning"
    ]
    whys = {one["spelling"]: one["why"] or "" for one in tuning["configurations"]}
    assert "Negative values" in whys["--learner Winnow --scale standard"]
    assert whys["--learner AROW --scale standard"] in ("", "half")
    assert "there is no 'nosuch'" in whys["--learner AROW --scale nosuch"]
    assert "r must be" in whys["--learner 'AROW(r=-1)' --scale standard"]
    assert tuning["winner"] in (0, 1, 3)


def test_a_learner_that_is_no_linear_one_takes_part(table):
    space = ["learner=NaiveBayes,KNNClassifier,SVC,KernelClassifier(kernel='polynomial(2)'),Mixture"]
    tuning = tuned(table, space=space, categorical="code").report_["tuning"]
    assert {one["why"] for one in tuning["configurations"]} <= {None, "half"}
    assert all(one["rungs"] for one in tuning["configurations"])


def test_kernels_of_texts_take_no_part(texts):
    tuning = tuned(texts, space={"kernel": ["substrings(3)"]}).report_["tuning"]
    assert "takes no part in races" in tuning["configurations"][1]["why"]
    assert tuning["winner"] == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (dict(space={"wieghting": ["idf"]}), "there is no option 'wieghting'; did you mean 'weighting'"),
        (dict(space={"learner": ["AROV"]}), "there is no learner 'AROV'; did you mean 'AROW'"),
        (dict(space={}), "the space has no options"),
        (dict(space={"learner": ["AROW"], "alpha": [1.5]}), "alpha has no use here"),
        (dict(space={"scale": ["none"]}, scale="log1p"), "scale is given by itself"),
        (dict(rule="hinge"), "put it into space="),
        (dict(resume="m.onl"), "has no use with resume="),
    ],
)
def test_what_cannot_be_raced_is_refused_in_one_sentence(table, options, said):
    with pytest.raises(PlanError, match=said):
        tuned(table, **options)


def test_options_of_a_race_without_one_are_refused(table):
    for options in (dict(space={"rate": [0.1]}), dict(time_limit=3.0), dict(configurations=3)):
        with pytest.raises(PlanError, match="is about the race of learner=auto"):
            onlearn.train(table, learner="AROW", **options)


def test_options_that_are_given_stay_as_they_are(table):
    tuning = tuned(table, passes=2, numeric="code", interact="size,weight").report_["tuning"]
    assert not any(one["options"].keys() & {"passes", "interact", "categorical"} for one in tuning["configurations"])
    assert tuning["command"].endswith("--passes 2") or "--passes 2" in tuning["command"]
    assert "--numeric code" in tuning["command"]


@pytest.mark.parametrize(("content", "said"), [("", "is empty"), ("code,label\n", "there are no rows"),
                                               ("code,label\n1,yes\n", "only one label"),
                                               ("code,label\n" + "1,yes\n" * 50, "only one label")])  # fmt: skip
def test_nothing_to_race_over_says_what_any_run_says(tmp_path, content, said):
    path = tmp_path / "few.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=said):
        tuned(path, target="label")


def test_the_figures_of_rows_with_weights_are_weighted_means(tmp_path):
    plain = write_table(tmp_path / "plain.csv", 300)
    heavy, first = tmp_path / "heavy.csv", plain.read_text().splitlines()
    heavy.write_text("\n".join([f"w,{first[0]}", *(f"1000,{line}" for line in first[1:])]) + "\n")
    tuning = tuned(heavy, weight="w", space={"learner": ["Perceptron"]}).report_["tuning"]
    rungs = [rung for one in tuning["configurations"] for rung in one["rungs"]]
    assert all(0 <= rung["mistakes"] <= rung["rows"] and rung["loss"] < 3 for rung in rungs)


def test_few_rows_are_learned_by_the_default(tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("size,label\n" + "1,no\n5,yes\n" * 4)
    model = tuned(path, target="label")
    assert model.report_["tuning"]["why_not"] == "8 rows are too few"
    assert model.report_["tuning"]["command"] == f"onlearn train {path} -o MODEL --target label"


def test_rows_that_are_held_out_do_not_count_among_those_to_race_over(tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("size,label\n" + "1,no\n5,yes\n" * 40)
    model = tuned(path, target="label", holdout="90%")
    assert model.report_["tuning"]["why_not"].endswith("rows are too few")


def test_no_time_is_the_default(table):
    tuning = tuned(table, time_limit=0).report_["tuning"]
    assert tuning["winner"] == 0
    assert tuning["ended_early"]
    assert tuning["options"] == {}


def test_held_out_rows_take_no_part(table, monkeypatch):
    seen = []
    real = tuned_run.race_over

    def race(reader, batches, runs, **options):
        seen.append(sum(len(batch) for batch in batches))
        return real(reader, batches, runs, **options)

    monkeypatch.setattr(tuned_run, "race_over", race)
    model = tuned(table, holdout="20%")
    assert seen[0] + model.report_["holdout"]["n"] == 1500
    assert "--holdout 20%" in model.report_["tuning"]["command"]


def test_rows_are_drawn_from_the_whole_of_a_sorted_file(tmp_path, monkeypatch):
    """In the first half of the file one column tells the label, in the second half another one."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=2000), rng.normal(size=2000)
    labels = np.where(np.arange(2000) < 1000, first, second) > 0
    path = tmp_path / "sorted.csv"
    rows = zip(first, second, labels, strict=True)
    path.write_text("a,b,label\n" + "".join(f"{a:.3f},{b:.3f},{'yn'[int(label)]}\n" for a, b, label in rows))
    seen = []
    real = tuned_run.race_over

    def race(reader, batches, runs, **options):
        seen.append(np.concatenate([batch.lines for batch in batches]))
        assert len(options["first"]) == 2000  # features are decided by the rows that decide in the run
        assert options["times"] == 5
        return real(reader, batches, runs, **options)

    monkeypatch.setattr(tuned_run, "race_over", race)
    monkeypatch.setattr(tuned_run, "ROWS", 400)
    for seed in (1, 1, 2):
        tuning = tuned(path, space={"learner": ["AROW"]}, seed=seed).report_["tuning"]
        assert tuning["sample"]["said"] == "400 rows, drawn at random from all 2,000"
    assert (seen[0] == seen[1]).all()
    assert (seen[0] != seen[2]).any()
    assert 150 < (seen[0] > 1000).sum() < 250


def test_what_is_trained_is_what_was_raced(table, monkeypatch):
    """A run that is told neither rate nor passes would choose both by a trial, which finalists do not have."""
    monkeypatch.setattr(file_race, "judged_passes", lambda run, usual: [usual])
    model = tuned(table, space={"interact": ["pairs"]})
    tuning = model.report_["tuning"]
    assert tuning["options"] == {"interact": "pairs", "passes": tuning["configurations"][1]["passes"]}
    assert model.learner.choices["geometry"].rate == 0.1
    assert model.report_["passes"] == tuning["options"]["passes"]


def test_the_rate_of_the_default_is_kept_with_other_passes(tmp_path, monkeypatch):
    path = tmp_path / "line.csv"
    numbers = np.random.default_rng(0).normal(size=400)
    path.write_text("size,label\n" + "".join(f"{x:.4f},{'ab'[int(x > 0)]}\n" for x in numbers))
    usual = onlearn.train(path)
    rate = usual.learner.choices["geometry"].rate
    assert (rate, usual.report_["passes"]) > (0.1, 1)
    monkeypatch.setattr(file_race, "judged_passes", lambda run, usual: [1])
    model = tuned(path, space={"learner": ["NaiveBayes"]})
    assert model.report_["tuning"]["options"] == {"geometry": f"adagrad({rate})", "passes": 1}
    assert model.learner.choices["geometry"].rate == rate
    assert model.learner.choices["rule"].name == usual.learner.choices["rule"].name


def test_numbers_are_scaled_as_in_the_run(tmp_path, monkeypatch):
    """By all rows, whatever their order: the first ones are much smaller than the last."""
    path = tmp_path / "rising.csv"
    path.write_text("size,label\n" + "".join(f"{n * n},{'ab'[n % 2]}\n" for n in range(600)))
    monkeypatch.setattr("onlearn.data.read", partial(data.read, block_size=1 << 10))
    found = []
    real = file_race.Matrix.__init__

    def note(self, *arguments):
        real(self, *arguments)
        found.append(self.rows.X)

    monkeypatch.setattr(file_race.Matrix, "__init__", note)
    tuned(path, target="label", space={"learner": ["AROW"]})
    values = found[-1].data[np.isin(found[-1].indices, [0])]
    assert len(found[-1].indptr) == 601
    assert abs(values.mean()) < 1e-3
    assert values.std() == pytest.approx(1, abs=1e-2)


def press_at(monkeypatch, turn):
    """Ctrl-C comes after some rung of the race."""
    real = Race._ranked
    rungs = []

    def ranked(self, *arguments):
        made = real(self, *arguments)
        rungs.append(1)
        if len(rungs) == turn:
            signal.raise_signal(signal.SIGINT)
        return made

    monkeypatch.setattr(Race, "_ranked", ranked)


def test_ctrl_c_in_the_race_saves_the_best_so_far_and_the_run_can_go_on(table, tmp_path, monkeypatch, capfd):
    press_at(monkeypatch, 2)
    path = tmp_path / "m.onl"
    assert run_command(["train", str(table), "-o", str(path), "--learner", "auto"]) == 130
    said = capfd.readouterr().err
    assert "Ctrl-C ended the race; a model of the best configuration so far" in said
    monkeypatch.undo()
    stopped = onlearn.load(path)
    assert stopped.trained["unfinished"] == stopped.trained["examples"] == 1500
    onlearn.train(table, resume=path, output=path)
    again = onlearn.load(path)
    assert again.trained["unfinished"] is None
    assert again.trained["examples"] > 1500


def test_commands_spell_all_that_is_given():
    options = TrainOptions(sources=["a b.csv"], learner="auto", target="y", header=False, categorical=["c", "d e"],
                           space=["rate=0.1,0.2"], seed=4, min_count=2)  # fmt: skip
    one = resolved([{"learner": "AROW", "r": 2.0, "norm": False}])[0]
    made = command(options, one)
    assert made == (
        "onlearn train 'a b.csv' -o MODEL --target y --no-header --categorical c --categorical 'd e' --min-count 2 "
        "--seed 4 --learner 'AROW(r=2.0)' --no-norm"
    )
    assert spelling({}) == ""
    assert prepare(configured(TrainOptions(sources=[__file__], learner="auto"), {})).plan.learner is None


@pytest.mark.skipif(DATA is None, reason="ONLEARN_DATA says where the real data are")
def test_real_data_are_learned_at_least_as_well_as_by_default(tmp_path):
    lines = (Path(DATA) / "spambase/spambase.data").read_text().splitlines()
    kinds = (Path(DATA) / "spambase/traintest.txt").read_text().split()
    for name, kind in (("train", "0"), ("test", "1")):
        rows = [line for line, one in zip(lines, kinds, strict=True) if one == kind]
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
    options = dict(test=tmp_path / "test.csv", header=False, target=57)
    usual = onlearn.train(tmp_path / "train.csv", **options).report_["test"]
    found = tuned(tmp_path / "train.csv", **options).report_["test"]
    assert found["accuracy"] >= max(0.93, usual["accuracy"])
    assert found["log_loss"] <= 1.01 * usual["log_loss"]
