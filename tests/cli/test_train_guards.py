"""``onlearn train`` when asked for odd things: nothing lost, nothing ignored, nothing unreadable."""

from __future__ import annotations

import errno
import gzip
import json
import os

import numpy as np
import pytest

import onlearn
from onlearn.cli import run
from onlearn.data import DataError
from onlearn.models.plan import Plan
from onlearn.models.run import Run


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [(x, "yes" if x > 0 else "no") for x in rng.normal(size=300)]
    (tmp_path / "a.svm").write_text("".join(f"{label} 0:{x:.4f} 1:1\n" for x, label in rows))
    (tmp_path / "a.csv").write_text("x,w,label\n" + "".join(f"{x:.4f},1,{label}\n" for x, label in rows))
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps({"text": f"so {label} it is", "label": label}) + "\n" for _, label in rows)
    )
    (tmp_path / "json.csv").write_text((tmp_path / "a.jsonl").read_text())
    (tmp_path / "packed.csv").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    (tmp_path / "bad.svm").write_text("yes 0:x\nno 0:y\n")
    (tmp_path / "two.csv").write_text("x,label\n1,yes\n2,yes\n3,no\n4,no\n")
    (tmp_path / "a.txt").write_text("".join(f"__label__{label} so it is\n" for _, label in rows))
    return tmp_path


def train(*arguments):
    return run(["train", *arguments, "-o", "m.onl"])


def report(capsys, *arguments):
    assert train(*arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_bad_rows_do_not_go_where_rows_come_from(here, capsys):
    with open("a.svm", "a") as file:
        file.write("yes 0:x\n")
    before = (here / "a.svm").read_text()
    assert train("a.svm", "--bad-rows", "a.svm") == 2
    assert "is read from" in capsys.readouterr().err
    assert (here / "a.svm").read_text() == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["a.jsonl", "--prune-weights", "1000"], "no feature weighs more than 1000"),
        (["a.jsonl", "--min-count", "1000"], "no features"),
        (["a.svm", "--min-count", "2"], "named features"),
        (["a.svm", "--prune-weights", "0.1"], "named features"),
        (["a.svm", "--target", "x"], "--target has no use here"),
        (["a.txt", "--target", "nosuch"], "--target has no use here"),
        (["a.txt", "--weight", "w"], "--weight has no use here"),
        (["json.csv"], "json.csv looks like JSON lines, not like CSV: say --format jsonl"),
        (["packed.csv"], "packed.csv is compressed by gzip: name it packed.csv.gz"),
        (["a.svm", "--missing", "indicator"], "--missing indicator has no use here"),
        (["a.jsonl", "--per-class"], "--min-count"),
        (["a.csv", "--task", "regress", "--per-class", "--min-count", "2"], "--per-class has no use in regression"),
        (["a.csv", "--classes", "no,no,yes"], "different labels"),
        (["a.csv", "--holdout", "99.99%"], "held out"),
        (["a.csv", "--weight", "label"], "label"),
        (["a.csv", "--task", "regress", "--learner", "AROW"], "AROW predicts classes: it is not for --task regress"),
        (["a.csv", "--task", "regress", "--class-weight", "balanced"], "--class-weight has no use in regression"),
        (["a.csv", "--task", "regress", "--classes", "no,yes"], "--classes has no use in regression"),
        (["a.csv", "--task", "regress"], "not a number"),
        (["a.svm", "--learner", "Winnow"], "Negative values"),
        (["a.csv", "--test", "nope.csv"], "nope.csv"),
        (["a.jsonl", "--text", "text", "--max-names", "3", "--bits", "4", "--min-count", "2"], "raise --max-names"),
        (["a.svm", "--max-names", "5"], "--max-names needs named features"),
        (["a.svm", "--header"], "a.svm is read as svmlight, and header is about CSV: do not say --header"),
        (["a.jsonl", "--delimiter", ","], "a.jsonl is read as jsonl, and delimiter is about CSV"),
        (["a.jsonl", "--no-header"], "header is about CSV"),
        (["a.jsonl", "--interact", "text,text"], "makes nothing new"),  # few texts: it is categorical
        (["a.jsonl", "--interact", "pairs"], "2 different columns, but there is only text"),
        (["a.jsonl", "--prune-weights", "nan"], "--prune-weights"),
        (["a.csv", "--holdout", "0%"], "holds no rows out"),
        (["a.csv", "--strict", "--max-bad", "5%"], "--max-bad has no use"),
        (["a.csv", "--target", "w", "--id", "w"], "column 'w' cannot be both target and id"),
        (["two.csv", "--holdout", "50%"], "but for those held out, the first 4 rows have only one label"),
        (
            ["a.svm", "a.csv"],
            "a.csv has columns (as in CSV, JSON lines and Parquet), but the files before it have ",
        ),
        (["a.csv", "--seed", "4294967296"], "4294967296 is not in the range 0<=x<=4294967295"),
        (["a.csv", "--delimiter", ";"], "a.csv has one column only if ';' separates them, but ',' seems to"),
        (["bad.svm", "--max-bad", "100%"], "none of the rows could be read; the first: bad.svm, line 1, column 7"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_written(here, capsys, arguments, says):
    assert train(*arguments) == 2
    heard = capsys.readouterr()
    assert says in heard.err
    assert heard.err.count("\n") == 1
    assert not (here / "m.onl").exists()


def test_a_test_file_of_another_kind_is_named(here, capsys):
    assert train("a.svm", "--passes", "1", "--test", "a.csv", "-q") == 2
    heard = capsys.readouterr().err
    assert "a.csv cannot be used with this model" in heard and heard.endswith("was not tested)\n")


@pytest.mark.parametrize("option", [["--missing", "zero"], ["--seed", "5"], ["--bits", "9"], ["--rule", "pa1"]])
def test_a_resumed_model_has_decided(here, capsys, option):
    assert train("a.csv", "-q") == 0
    assert train("a.csv", "--resume", "m.onl", *option) == 2
    assert "has no use with --resume" in capsys.readouterr().err


def test_columns_that_a_resumed_model_has_not_met_are_named(here, capsys):
    assert train("a.csv", "-q") == 0
    first, *rest = (here / "a.csv").read_text().splitlines()
    (here / "b.csv").write_text("\n".join([f"{first},more", *(f"{line},1" for line in rest)]) + "\n")
    notes = report(capsys, "b.csv", "--resume", "m.onl")["notes"]
    assert "b.csv: column 'more' was not in the rows that the model first learned from: it is not used" in notes
    assert not any("first learned from" in note for note in report(capsys, "a.csv", "--resume", "m.onl")["notes"])
    assert run(["explain", "m.onl", '{"x": 1, "label": "no", "z": 1, "u": {"v": 2}}']) == 0
    assert "note: columns 'z', 'u.v' were not in the rows" in capsys.readouterr().err


def test_a_resumed_model_has_no_columns_either(here, capsys):
    assert train("a.svm", "-q", "--passes", "1") == 0
    for option in ("target", "weight", "id"):
        assert train("a.svm", "--resume", "m.onl", f"--{option}", "x") == 2
        assert f"--{option} has no use here: the rows have no columns but numbers" in capsys.readouterr().err


def test_a_model_that_cannot_be_written_is_named(here, capsys, monkeypatch):
    def full(*_):
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))

    monkeypatch.setattr("onlearn.model_file.write_arrays", full)
    assert train("a.svm", "-q", "--passes", "1") == 2
    assert capsys.readouterr().err == "onlearn: m.onl: cannot be written: File too large\n"
    assert not [path for path in here.iterdir() if "m.onl" in path.name]


def test_numbers_beyond_measure_leave_a_sound_model(here):
    (here / "big.csv").write_text("x,z,label\n" + "1e200,1e50,yes\n-1e300,-1e50,no\n" * 20)
    for options in ([], ["--scale", "none"], ["--passes", "1"]):
        assert train("big.csv", "-q", *options) == 0
        assert onlearn.load("m.onl").labels == ["no", "yes"]


def test_labels_that_look_like_markup(here, capsys):
    (here / "b.csv").write_text("x,label\n" + "1,[/no]\n2,[bold]yes\n" * 20)
    assert train("b.csv") == 0
    assert "[/no]" in capsys.readouterr().out


def test_the_same_number_is_the_same_label(here, capsys):
    (here / "n.svm").write_text("+1 0:1\n-1 1:1\n1 0:1\n-1.0 1:1\n1.0 0:1\n" * 20)
    assert report(capsys, "n.svm")["labels"] == ["-1", "+1"]


def test_repeated_features_count_as_their_sum_however_many_passes(here):
    (here / "twice.svm").write_text("1 0:1 0:1\n-1 1:1 1:0.5\n" * 30)
    (here / "once.svm").write_text("1 0:2\n-1 1:1.5\n" * 30)
    for passes in (1, 3):
        first, second = (Run(Plan([name], passes=passes)).go().weights()[0] for name in ("twice.svm", "once.svm"))
        np.testing.assert_allclose(first, second)


def test_what_is_reported_is_of_this_run(here, capsys):
    first = report(capsys, "a.csv", "--passes", "1")
    second = report(capsys, "a.csv", "--resume", "m.onl")
    assert second["progressive"]["n"] == 300
    assert second["progressive"]["mistakes"] < first["progressive"]["mistakes"]


def test_labels_that_come_late_are_predicted_as_such(here):
    def rows(path, labels):
        place = "pqrst".index
        (here / path).write_text("".join(f"{label} {place(label)}:1\n" for label in labels * 10))
        return path

    model = Run(Plan([rows("p.svm", "pqr")], passes=1)).go()
    model.save("m.onl")
    model = Run(Plan([rows("q.svm", "ts")], passes=1), onlearn.load("m.onl")).go()
    model.save("m.onl")
    model = onlearn.load("m.onl")
    assert model.learner.classes_.tolist() == [0, 1, 2, 3, 4]
    for label in "pqrst":
        (batch,) = model.read(rows("x.svm", label))
        assert set(model.predict(batch)) == {label}


def test_ctrl_c_while_learning_waits_for_the_end_of_it(here):
    plan = Plan(["a.csv"], passes=4)
    whole = Run(Plan(["a.csv"], passes=4)).go()
    for moment in (1, 2, 4):  # in the middle of the first, second and last pass
        halted = Run(plan)
        learn = []

        def watched(*arguments, halted=halted, learn=learn, moment=moment, **options):
            learn.append(1)
            type(halted.model.learner)._learn_rows(halted.model.learner, *arguments, **options)
            if len(learn) == moment:
                halted.interrupt()

        make = halted.reading.make_learner

        def made(rows, make=make, watched=watched):
            learner = make(rows)
            learner._learn_rows = watched
            return learner

        halted.reading.make_learner = made
        with pytest.raises(KeyboardInterrupt):
            halted.go()
        del halted.model.learner._learn_rows
        assert halted.model.learner.n_seen_ == halted.model.trained["unfinished"] == 300 * moment
        halted.model.save("m.onl")
        resumed = Run(Plan(["a.csv"]), onlearn.load("m.onl")).go()
        np.testing.assert_array_equal(whole.weights()[0], resumed.weights()[0])
        assert whole.learner.history_ == resumed.learner.history_


def test_ctrl_c_before_anything_new_is_learned_leaves_a_resumed_model_alone(here, capsys, monkeypatch):
    halted = Run(Plan(["a.csv"], passes=3))

    def checkpoint():
        halted.model.save("m.onl")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        halted.go(checkpoint=checkpoint, every=400)
    before = (here / "m.onl").read_bytes()

    def stopped(self, cache):  # all rows have been read again, and none learned from
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "_begin_learning", stopped)
    assert train("a.csv", "--resume", "m.onl") == 130
    assert "no model was written" in capsys.readouterr().err
    assert (here / "m.onl").read_bytes() == before


def test_rows_of_weight_zero_are_no_examples(here, capsys):
    (here / "w.csv").write_text("x\tw\tlabel\n" + "1\t1\tyes\n2\t1\tno\n3\t0\tno\n" * 20)
    options = ["w.csv", "--weight", "w", "--delimiter", "\\t", "--passes", "2"]
    found = report(capsys, *options)
    assert (found["rows"], found["examples"], found["progressive"]["n"]) == (60, 80, 40)
    assert report(capsys, "w.csv", "--resume", "m.onl", "--passes", "1")["examples"] == 40


def test_all_weights_zero(here):
    (here / "z.csv").write_text("x,w,label\n" + "1,0,yes\n2,0,no\n" * 20)
    with pytest.raises(DataError, match="weight 0"):
        Run(Plan(["z.csv"], reading={"weight": "w"})).go()


def test_parsed_rows_are_kept_where_asked_for(here, capsys):
    (here / "kept").mkdir()
    for wrong, says in (
        (["a.csv", "--cache", "nowhere"], "there is no directory nowhere"),
        (["a.csv", "--cache", "kept", "--no-cache"], "contradict"),
        (["-", "--cache", "kept"], "standard input"),
    ):
        assert train(*wrong) == 2
        assert says in capsys.readouterr().err
    assert report(capsys, "a.csv", "--no-cache")["cache"] is None
    plain = (here / "m.onl").read_bytes()
    assert report(capsys, "a.csv", "--cache", "kept")["cache"]["written"]
    assert (here / "m.onl").read_bytes() == plain
    assert train("a.csv", "--cache", "kept") == 0
    assert "reused kept" in capsys.readouterr().out
    assert (here / "m.onl").read_bytes() == plain


def test_interactions_of_columns_that_are_not_there(here, capsys):
    for arguments, says in (
        (["a.csv", "--interact", "x,ww"], "the column 'ww' of --interact does not exist; did you mean 'w'?"),
        (["a.csv", "--interact", "x,nowhere"], "the column 'nowhere' of --interact does not exist; there are x, w"),
        (["a.csv", "--interact", "x,w", "--ignore", "w"], "the column 'w' of --interact is not a feature; there are x"),
        (["a.csv", "--numeric", "W"], "there is no column 'W'; did you mean 'w'?"),
    ):
        assert train(*arguments) == 2
        found = capsys.readouterr().err
        assert says in found and found.count("\n") == 1
    assert not (here / "m.onl").exists()


def test_interactions_of_namespaces_that_never_occur(here, capsys):
    lines = [f"{n % 2 * 2 - 1} |words w{n % 5} |size x:{n}\n" for n in range(50)]
    (here / "a.vw").write_text("".join(lines))
    assert train("a.vw", "--interact", "words,sizes", "--interact", "words,size") == 0
    says = "onlearn: warning: the namespace 'sizes' of --interact words,sizes never occurred; did you mean 'size'?\n"
    assert capsys.readouterr().err == says
    assert train("a.vw", "--interact", "words,sizes", "--json") == 0
    captured = capsys.readouterr()
    assert captured.err == says and "never occurred" in json.loads(captured.out)["warnings"][0]
    assert train("a.vw", "--interact", "words,sizes", "--quiet") == 0
    assert capsys.readouterr().err == ""
    assert report(capsys, "a.vw", "--interact", "words,size")["warnings"] == []
    with open("a.vw", "a") as file:  # late, but it occurs
        file.write("1 |sizes x\n")
    assert report(capsys, "a.vw", "--interact", "words,sizes")["warnings"] == []


def test_a_model_that_may_not_be_read(here, capsys, monkeypatch):
    assert train("a.csv", "-q") == 0
    before, access = (here / "m.onl").read_bytes(), os.access

    def denied(path, mode):  # rights would not stop root
        return not (str(path) == "m.onl" and mode == os.R_OK) and access(path, mode)

    monkeypatch.setattr(os, "access", denied)
    for arguments in (["inspect", "m.onl"], ["predict", "m.onl", "a.csv"], ["train", "a.csv", "-o", "m.onl"]):
        assert run(arguments) == 2
        captured = capsys.readouterr()
        assert (captured.out, captured.err) == ("", "onlearn: m.onl cannot be read: permission denied\n")
    assert (here / "m.onl").read_bytes() == before


def test_what_is_seen_before_anything_is_read(tmp_path, refused, run):
    rows = "\n".join(["n,when,target", *(f"{n},{n * n % 11},{'yes' if n % 2 else 'no'}" for n in range(40))]) + "\n"
    (tmp_path / "r.csv").write_text(rows)
    (tmp_path / "t.csv").write_text("other,target\n1,yes\n")
    (tmp_path / "s.conll").write_text("He PRP B-NP\nruns VBZ B-VP\n\n" * 3)
    line = ["train", tmp_path / "r.csv", "-o", tmp_path / "m.onl"]
    assert "is the target, so it is not a feature" in refused(*line, "--ignore", "target")
    assert "--missing: there is no 'bogus'" in refused(*line, "--missing", "bogus")
    assert "where the model goes" in refused(*line, "--bad-rows", tmp_path / "m.onl")
    assert "no directory" in refused(*line, "--bad-rows", tmp_path / "none" / "bad")
    assert "give --chars" in refused(*line, "--ngrams", "none")
    assert "tagged sentences" in refused("train", tmp_path / "s.conll", "-o", tmp_path / "m.onl", "--task", "classify")
    assert not (tmp_path / "m.onl").exists()
    assert "the model is in" in refused(*line, "--test", tmp_path / "t.csv", "-q")
    told = run("inspect", tmp_path / "m.onl")
    assert "n is left out: it counts the rows" in " ".join(told.split())


def test_hashed_features_are_told_of(here, capsys):
    assert train("a.jsonl", "--text", "text") == 0
    assert "hashed" not in capsys.readouterr().out
    assert train("a.jsonl", "--text", "text", "--max-names", "3", "--bits", "10") == 0
    assert "about 7 share 1,024 weights: about 0 collisions" in " ".join(capsys.readouterr().out.split())
    assert run(["inspect", "m.onl"]) == 0
    assert "about 7 share 1,024 weights: about 0 collisions" in " ".join(capsys.readouterr().out.split())
    told = report(capsys, "a.jsonl", "--text", "text", "--max-names", "3", "--bits", "1")
    assert told["names"] == 3 and told["hashed_weights"] == 2 and told["estimate_is_at_least"]
    assert told["hashed_features"] > 2 and told["estimated_collisions"] > 0
    told = report(capsys, "a.svm")
    assert told["names"] is None and told["hashed_features"] == told["estimated_collisions"] == 0


def test_weights_for_far_indices_where_there_are_none(here, capsys):
    assert report(capsys, "a.svm", "--bits", "3")["warnings"] == [
        "--bits has no use here: each index has a weight of its own"
    ]


def test_options_about_csv_are_for_those_files_that_are(here, capsys):
    (here / "b.jsonl").write_text('{"x": 0.5, "w": 1, "label": "yes"}\n{"x": -2, "w": 1, "label": "no"}\n' * 5)
    assert report(capsys, "a.csv", "b.jsonl", "--delimiter", ",")["rows"] == 310
    assert (
        train("a.csv", "--delimiter", ",", "--header", "--passes", "1", "-q") == 0
    )  # what the model knows is no order
    assert run(["predict", "m.onl", "b.jsonl"]) == 0
    assert capsys.readouterr().out.splitlines()[1:3] == ["1,yes", "2,no"]
    assert report(capsys, "b.jsonl", "--resume", "m.onl")["rows"] == 10
    assert train("b.jsonl", "--resume", "m.onl", "--delimiter", ",") == 2
    assert "about CSV" in capsys.readouterr().err


def test_all_pairs_of_one_namespace(here, capsys):
    (here / "a.vw").write_text("".join(f"{n % 2 * 2 - 1} |words w{n % 2} x:{n}\n" for n in range(50)))
    (warning,) = report(capsys, "a.vw", "--interact", "pairs")["warnings"]
    assert warning == (
        "--interact pairs has nothing to multiply: it takes 2 different namespaces, and there is only 'words'"
    )


def test_a_number_beyond_measure_is_predicted_as_it_is_learned(here, capsys):
    assert train("a.csv", "-q") == 0
    (here / "big.csv").write_text("x,w\n1e300,1\n-1e300,1\n1e39,1\n")
    assert run(["predict", "m.onl", "big.csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["2,yes", "3,no", "4,yes"]


def test_regression_that_was_not_asked_for(here, capsys):
    rng = np.random.default_rng(0)
    amounts = rng.normal(size=300)
    (here / "a.csv").write_text("x,price\n" + "".join(f"{x:.3f},{3 * x:.2f}\n" for x in amounts))
    assert train("a.csv", "--target", "price") == 2
    said = capsys.readouterr().err
    assert "different numbers" in said and "--task regress" in said and not (here / "m.onl").exists()
    assert train("a.csv", "--target", "price", "--task", "regress", "-q") == 0
    assert train("a.csv", "--target", "price", "--task", "classify", "--passes", "1", "-q") == 0


def codes(path, labels, rows):
    path.write_text(
        "x,place\n" + "".join(f"{n % len(labels) / 7:.3f},{labels[n % len(labels)]}\n" for n in range(rows))
    )
    return str(path)


@pytest.mark.parametrize("passes", ["1", "3"])
def test_hundreds_of_numbers_are_no_classes_unless_said_so(here, capsys, passes):
    whole = codes(here / "whole.csv", range(210), 630)
    assert train(whole, "--target", "place", "--passes", passes) == 2
    said = capsys.readouterr().err
    assert "210 different numbers: say --task regress if they are amounts to predict, or --task classify" in said
    assert not (here / "m.onl").exists()
    assert len(report(capsys, whole, "--target", "place", "--passes", "1", "--task", "classify")["labels"]) == 210


@pytest.mark.parametrize("passes", ["1", "3"])
def test_hundreds_of_numbers_that_come_late_are_refused_too(here, capsys, passes):
    first, late = codes(here / "first.csv", range(3), 90), codes(here / "late.csv", range(300), 600)
    assert train(first, late, "--target", "place", "--passes", passes) == 2
    assert "the labels are 300 different numbers" in capsys.readouterr().err


def test_codes_and_words_are_classes(here, capsys):
    assert len(report(capsys, codes(here / "c.csv", range(100), 1000), "--target", "place")["labels"]) == 100
    words = [f"w{n}" for n in range(300)]
    assert len(report(capsys, codes(here / "w.csv", words, 900), "--target", "place", "--passes", "1")["labels"]) == 300


def test_a_model_does_not_go_to_standard_output(here, capsys):
    assert run(["train", "a.csv", "-o", "-"]) == 2
    assert "name a file" in capsys.readouterr().err and not (here / "-").exists()


def test_a_label_with_a_comma_is_named_in_quotes(here, capsys):
    (here / "c.csv").write_text("x,label\n" + '1,"no, never"\n2,yes\n' * 20)
    assert report(capsys, "c.csv", "--classes", '"no, never",yes')["labels"] == ["no, never", "yes"]


def test_what_is_known_of_test_rows_is_told(here, capsys):
    (here / "t.csv").write_text("x,w,label\n" + "1,1,yes.\n-1,1,no\n" * 60 + "1,1,yes,1\n")
    assert train("a.csv", "--test", "t.csv", "--json") == 0
    heard = capsys.readouterr()
    found = json.loads(heard.out)["test"]
    assert found["bad_rows"] == 1 and found["labels_taken_for"] == {"yes.": "yes"}
    assert "the label 'yes.' is taken for 'yes'" in heard.err
    assert train("a.csv", "--test", "t.csv", "--quiet") == 0
    assert capsys.readouterr().err == ""


def test_what_was_decided_is_known_after_going_on(here, capsys):
    first = report(capsys, "a.csv", "--min-count", "2", "--per-class", "--passes", "1")["notes"]
    assert any("in fewer than 2 rows of every class" in note for note in first)
    assert "a.csv: the first row names the columns; say --no-header if that is wrong" in first
    for _ in range(2):
        assert train("a.csv", "--resume", "m.onl", "-q") == 0
    assert len(onlearn.load("m.onl").trained["decided"]) == len(first)
    assert run(["inspect", "m.onl"]) == 0
    assert "trained: decided" in capsys.readouterr().out
