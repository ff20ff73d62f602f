"""Calibration in runs over files: rows kept back, held out, or given."""

from __future__ import annotations

import json

import numpy as np
import pytest

import onlearn
from onlearn.data import DataError
from onlearn.errors import PlanError
from onlearn.models.plan import Plan
from onlearn.models.run import Run

ROWS = 7000


def table(path, rows=ROWS, seed=0, classes=3):
    """Rows of noisy classes; the truth is known to be uncertain."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 4))
    noisy = x @ [2.0, 1.0, 0.0, -1.0] + rng.normal(size=rows)
    y = np.digitize(noisy, [-1.0, 1.0] if classes == 3 else [0.0])
    lines = ["p,q,r,s,label", *(",".join(f"{v:.4f}" for v in row) + f",{'abc'[k]}" for row, k in zip(x, y))]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def same(first, second):
    a, b = (model._pack()[1] for model in (first, second))
    assert a.keys() == b.keys()
    for key in a:
        np.testing.assert_array_equal(a[key], b[key], err_msg=key)


@pytest.mark.parametrize("memory", [1000, 512 << 20])  # learned from while it is read; read before
@pytest.mark.parametrize("left", [0.2, 0.334, 0.7, 1.0])  # 1.0: among the rows kept back, at the very end
def test_an_unfinished_run_keeps_the_same_rows_back(tmp_path, memory, left):
    settings = {"passes": 3, "memory": memory, "cache": False, "learner": onlearn.PassiveAggressive()}
    source = table(tmp_path / "a.csv")
    run = Run(Plan([source], **settings))
    whole = run.go()
    kept = whole.learner.training.reserved
    assert 150 < kept < 500
    assert [entry.get("kept_back", 0) for entry in whole.learner.history_["passes"]] == [kept, kept, 0]
    assert [entry["seen"] for entry in whole.learner.history_["passes"]] == [ROWS - kept, ROWS - kept, ROWS]
    halted = Run(Plan([source], **settings))

    def checkpoint():
        halted.model.save(tmp_path / "half.onl")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        halted.go(checkpoint=checkpoint, every=int(left * run.lessons.learned) - 7)
    resumed = Run(Plan([source], **settings), onlearn.load(tmp_path / "half.onl")).go()
    same(whole, resumed)
    assert whole.learner.history_ == resumed.learner.history_


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("options", [
    {}, {"calibration": "holdout(0.2)"}, {"calibration": "holdout(0.2, method='isotonic')", "passes": 1},
    {"calibration": "online(method='isotonic')"}, {"calibrate": "b.csv"}, {"class_weight": "balanced"},
])  # fmt: skip
def test_every_calibration_improves_the_log_loss(tmp_path, options, classes):
    sources = [table(tmp_path / name, 5000 + 500 * n, n, classes) for n, name in enumerate(("a.csv", "b.csv", "c.csv"))]
    if "calibrate" in options:
        options = {"calibrate": sources[1]}
    options = {"learner": "AveragedPerceptron", **options}
    model = onlearn.train(sources[0], tmp_path / "m.onl", test=sources[2], **options)
    found = model.report_["test"]
    assert found["log_loss"] < found["uncalibrated"]["log_loss"]
    assert found["brier"] < found["uncalibrated"]["brier"]
    assert found["calibration_error"] < 0.05
    rows = [dict(zip("pqrs", row)) for row in np.random.default_rng(1).normal(size=(99, 4)).tolist()]
    again = onlearn.load(tmp_path / "m.onl")
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    best = np.array(model.labels)[model.predict_proba(rows).argmax(axis=1)]
    np.testing.assert_array_equal(best, model.predict(rows))


def test_rows_held_out_are_never_learned_from(tmp_path):
    model = onlearn.train(table(tmp_path / "a.csv"), passes=2, learner="AROW", calibration="holdout(0.25)")
    held = model.learner.held_out
    assert abs(len(held.codes) - ROWS / 4) < 100
    assert model.learner.n_seen_ == 2 * (ROWS - len(held.codes))


def test_a_model_is_calibrated_by_rows_and_by_files(tmp_path):
    model = onlearn.train(table(tmp_path / "a.csv", 1000), learner="Perceptron", passes=2)
    other = table(tmp_path / "b.csv", 1500, seed=5)
    lines = [line.split(",") for line in (tmp_path / "b.csv").read_text().split()[1:]]
    rows, y = [dict(zip("pqrs", map(float, line))) for line in lines], [line[-1] for line in lines]
    by_file = model.calibrate(other).predict_proba(rows)
    np.testing.assert_allclose(model.calibrate(rows, y).predict_proba(rows), by_file)
    with pytest.raises(ValueError, match="1500 rows but 3 labels"):
        model.calibrate(rows, y[:3])
    with pytest.raises(ValueError, match="no row with a label of the model"):
        model.calibrate(rows[:2], ["x", "y"])
    model.partial_fit(rows[:5], y[:5])
    assert model.learner.held_out is None  # those were scores by another hypothesis


def test_what_cannot_be_calibrated_is_refused_before_it_learns(tmp_path):
    source = table(tmp_path / "a.csv", 100)
    with pytest.raises(PlanError, match="calibrate= has no use with NaiveBayes"):
        onlearn.train(source, learner="NaiveBayes", calibrate=source)
    with pytest.raises(PlanError, match="calibrate= has no use in regression"):
        onlearn.train(source, task="regress", target="s", calibrate=source)
    with pytest.raises(PlanError, match="unknown calibration 'sigmoid'"):
        onlearn.train(source, calibration="sigmoid")
    with pytest.raises(PlanError, match="calibrate= has no use with task=multilabel"):
        onlearn.train(source, label_separator=";", calibrate=source)
    for name, value in (("calibrate", source), ("calibration", "own")):
        with pytest.raises(PlanError, match=f"{name}= has no use with task=rank"):
            onlearn.train(source, task="rank", target="p", group="s", **{name: value})
    for own in (
        {"calibration": "own"}, {"learner": "Perceptron(calibration='own')"},
        {"kernel": "linear", "calibration": "own"}, {"learner": onlearn.AROW(calibration="own")},
    ):  # fmt: skip
        with pytest.raises(PlanError, match="calibrate= has no use with calibration=own"):
            onlearn.train(source, calibrate=source, **own)


def test_a_model_that_goes_on_is_calibrated_only_if_it_can_be(tmp_path):
    source, several = table(tmp_path / "a.csv", 100), tmp_path / "several.txt"
    several.write_text("__label__a __label__b x y\n__label__a x\n__label__b y\n" * 9)
    for data, options, why in (
        (source, {"calibration": "own"}, "calibration='own'"), (several, {}, "are its own"),
        (source, {"task": "regress", "target": "s"}, "no probabilities"),
    ):  # fmt: skip
        before = onlearn.train(data, tmp_path / "m.onl", **options).learner.n_seen_
        with pytest.raises(DataError, match=why):
            onlearn.train(data, tmp_path / "m.onl", resume=tmp_path / "m.onl", calibrate=data)
        assert onlearn.load(tmp_path / "m.onl").learner.n_seen_ == before


def test_a_model_is_kept_though_no_row_fits_to_calibrate_by(tmp_path):
    source, other = table(tmp_path / "a.csv", 100), tmp_path / "b.csv"
    other.write_text("p,q,r,s,label\n1,2,3,4,x\n")
    model = onlearn.train(source, tmp_path / "m.onl", calibrate=other)
    (warning,) = model.report_["warnings"]
    assert "b.csv" in warning and "no row with a label of the model" in warning
    plain = onlearn.train(source).predict_proba([{"p": 1.0}])
    np.testing.assert_array_equal(onlearn.load(tmp_path / "m.onl").predict_proba([{"p": 1.0}]), plain)


def test_texts_and_one_class_that_is_rare(tmp_path):
    path = tmp_path / "a.jsonl"
    words = np.random.default_rng(0).choice(["good", "bad", "film"], (5000, 4))
    labels = ["rare" if n in (3, 4500) else "pos" if "good" in row else "neg" for n, row in enumerate(words)]
    path.write_text("".join(json.dumps({"label": k, "text": " ".join(row)}) + "\n" for k, row in zip(labels, words)))
    model = onlearn.train(path)
    assert np.isfinite(model.predict_proba(["good film", "", "unknown"])).all()


def interrupted(tmp_path, source, **settings):
    """The model of a whole run, and that of one that was stopped half way."""
    settings = {"passes": 3, "cache": False, "learner": onlearn.PassiveAggressive(), **settings}
    run = Run(Plan([source], **settings))
    whole = run.go()
    halted = Run(Plan([source], **settings))

    def checkpoint():
        halted.model.save(tmp_path / "half.onl")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        halted.go(checkpoint=checkpoint, every=run.lessons.learned // 2)
    return whole, tmp_path / "half.onl"


@pytest.mark.parametrize("threshold", ["f1", "cost(1,5)", 0.3])
def test_an_unfinished_run_still_chooses_its_threshold(tmp_path, threshold):
    source = table(tmp_path / "a.csv", 600, classes=2)
    whole, half = interrupted(tmp_path, source, threshold=threshold, positive="a")
    resumed = onlearn.train(source, resume=half)
    assert resumed.threshold == whole.threshold
    assert resumed.threshold.positive == 0
    assert onlearn.train(source, resume=half, threshold=0.7).threshold.probability == 0.7


def test_an_unfinished_run_is_still_calibrated(tmp_path):
    source, others = table(tmp_path / "a.csv", 600), [table(tmp_path / f"{n}.csv", 300, n) for n in (1, 2)]
    whole, half = interrupted(tmp_path, source, calibrate=others[:1])
    resumed = onlearn.train(source, resume=half)
    same(whole, resumed)
    assert "calibrated by 300 rows" in " ".join(resumed.report_["notes"])
    by_another = onlearn.train(source, resume=half, calibrate=others[1])
    assert (by_another.learner.held_out.scores[:5] != whole.learner.held_out.scores[:5]).all()
    (tmp_path / "1.csv").unlink()
    with pytest.raises(DataError, match=r"1\.csv"):
        onlearn.train(source, resume=half)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.99])
@pytest.mark.parametrize("rows", [4, 9, 40])
def test_few_rows_are_held_out_and_others_learned_from(tmp_path, rows, share):
    path = tmp_path / "few.csv"
    path.write_text("x,label\n" + "".join(f"{n % 2}.5,{'ab'[n % 2]}\n" for n in range(rows)))
    model = onlearn.train(path, tmp_path / "m.onl", calibration=f"holdout({share})", passes=1)
    held = len(model.learner.held_out.codes)
    assert held >= 1
    assert model.learner.n_seen_ == rows - held >= 1
    (tmp_path / "two.csv").write_text("x,label\n0.5,a\n1.5,b\n")
    model = onlearn.train(tmp_path / "two.csv", resume=tmp_path / "m.onl")
    assert model.predict_proba([{"x": 0.5}]).sum() == pytest.approx(1.0)
    (tmp_path / "one.csv").write_text("x,label\n0.5,a\n")
    with pytest.raises(DataError, match="only one row to learn from"):
        onlearn.train(tmp_path / "one.csv", resume=tmp_path / "m.onl")


def test_rows_are_held_out_only_where_they_are_of_use(tmp_path):
    source, several = table(tmp_path / "a.csv", 100), tmp_path / "several.txt"
    several.write_text("__label__a __label__b x y\n__label__a x\n__label__b y\n" * 9)
    holdout = "holdout(0.2)"
    for options in ({"calibration": holdout}, {"learner": f"AROW(calibration='{holdout}')"}):
        with pytest.raises(PlanError, match="no rows are held out with task=multilabel"):
            onlearn.train(several, **options)
    for options in ({"kernel": "linear"}, {"learner": "KernelPerceptron"}):
        with pytest.raises(PlanError, match="no rows are held out with a kernel"):
            onlearn.train(source, calibration=holdout, **options)


@pytest.mark.parametrize(("rows", "options", "where"), [
    (600, {"passes": 1}, "on 450 rows of the first pass, each before it was learned from"),
    (600, {"passes": 3}, "on 450 rows of the first pass, each before it was learned from"),
    (5000, {"passes": 3}, "rows kept back and scored by the last hypothesis, before it learned from them"),
    (600, {"calibration": "holdout(0.2)"}, "rows held out for calibration"),
    (600, {"calibrate": "b.csv"}, "on 200 rows of calibrate=, which are not learned from"),
])  # fmt: skip
def test_the_note_on_a_threshold_says_which_rows_it_was_chosen_by(tmp_path, rows, options, where):
    source = table(tmp_path / "a.csv", rows, classes=2)
    if "calibrate" in options:
        options = {"calibrate": table(tmp_path / "b.csv", 200, 1, classes=2)}
    model = onlearn.train(source, learner="Perceptron", threshold="f1", **options)
    assert any(note.endswith(where) for note in model.report_["notes"]), model.report_["notes"]
    assert 0.1 < model.threshold.probability < 0.7


@pytest.mark.parametrize(
    ("rows", "where"), [(600, "labels of rows of the first pass, each"), (5000, "of rows kept back")]
)
def test_the_note_on_a_threshold_of_several_labels(tmp_path, rows, where):
    rng = np.random.default_rng(0)
    path = tmp_path / "several.txt"
    names = ["__label__a x", "__label__b y", "__label__a __label__b x y", "z"]
    path.write_text("\n".join(names[k] for k in rng.integers(0, 4, rows)) + "\n")
    model = onlearn.train(path, threshold="f1", passes=3)
    assert any(where in note for note in model.report_["notes"]), model.report_["notes"]
