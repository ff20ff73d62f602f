"""``onlearn predict``: what is written, where, in which order; and nothing by halves."""

from __future__ import annotations

import csv
import io
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onlearn
from onlearn import cli, data
from onlearn.models import open_model
from sample_models import trained

SOURCES = str(Path(onlearn.__file__).parents[1])
# No bytecode is written, for a process that may write 100 bytes only would leave half of it.
ENVIRONMENT = {**os.environ, "PYTHONPATH": SOURCES, "PYTHONDONTWRITEBYTECODE": "1"}


def process(*arguments, **options):
    command = [sys.executable, "-m", "onlearn.cli", *map(str, arguments)]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300, **options)


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_labels_in_order(kit, run):
    rows = table(run("predict", kit.text_onl, kit.text_jsonl))
    assert [row["prediction"] for row in rows] == ["spam", "ham"] * 20
    assert [row["id"] for row in rows] == [str(n + 1) for n in range(40)]
    assert rows[0].keys() == {"id", "prediction"}


def test_probabilities_and_scores_are_the_models_own(kit, run):
    model = open_model(kit.table_onl)
    X, _ = data.load(kit.table_csv, id="key")
    rows = table(run("predict", kit.table_onl, kit.table_csv, "--proba", "--scores"))
    assert list(rows[0]) == [
        "id",
        "prediction",
        *(f"{what}:{label}" for what in ("score", "proba") for label in model.labels),
    ]
    for what, expected in (("score", model.scores(X)), ("proba", model.predict_proba(X))):
        found = np.array([[float(row[f"{what}:{label}"]) for label in model.labels] for row in rows])
        np.testing.assert_array_equal(found.astype(expected.dtype), expected)
    assert [row["prediction"] for row in rows] == list(model.predict(X))
    assert {row["prediction"] for row in rows} >= {"iris, blue", "rose"}


def test_ids_are_kept(kit, run, tmp_path):
    assert [row["id"] for row in table(run("predict", kit.table_onl, kit.table_csv))] == [str(n) for n in range(300)]
    assert [row["id"] for row in table(run("predict", kit.named_onl, kit.named_vw))] == [f"tag{n}" for n in range(100)]
    file = tmp_path / "new.jsonl"
    file.write_text('{"who": "me", "text": "lunch"}\n{"text": "pills", "who": "you"}\n')
    assert [row["id"] for row in table(run("predict", kit.text_onl, file, "--id", "who"))] == ["me", "you"]


def test_rows_with_and_without_a_tag(kit, run, tmp_path):
    file = tmp_path / "new.vw"
    file.write_text("'first |a sun\n|a rain\n")
    assert [row["id"] for row in table(run("predict", kit.named_onl, file))] == ["first", "2"]
    file.write_text("|a sun\n")  # though these have none, others of the file might
    assert json.loads(run("predict", kit.named_onl, file, "--format-out", "jsonl"))["id"] == "1"


@pytest.mark.parametrize("name", ["place", "size"])
def test_an_id_that_is_a_feature_as_well(name, kit, run):
    usual = table(run("predict", kit.table_onl, kit.table_csv))
    found = table(run("predict", kit.table_onl, kit.table_csv, "--id", name))
    assert [row["prediction"] for row in found] == [row["prediction"] for row in usual]
    with open(kit.table_csv) as file:
        assert [row["id"] for row in found] == [row[name] for row in csv.DictReader(file)]


def test_json_lines(kit, run, tmp_path):
    out = tmp_path / "out.jsonl"
    assert run("predict", kit.table_onl, kit.table_csv, "--proba", "--scores", "-o", out) == ""
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    comma = table(run("predict", kit.table_onl, kit.table_csv, "--proba", "--scores"))
    assert [row["prediction"] for row in rows] == [row["prediction"] for row in comma]
    assert rows[7]["id"] == "7" and rows[7]["proba"]["iris, blue"] == float(comma[7]["proba:iris, blue"])
    binary = json.loads(
        run("predict", kit.text_onl, kit.text_jsonl, "--scores", "--format-out", "jsonl").splitlines()[0]
    )
    assert binary["id"] == 1 and binary["prediction"] == "spam" and binary["score"] > 0


def test_keys_that_no_row_of_json_lines_has_are_missing(kit, run, refused, tmp_path):
    rows = [{"size": 0.2}, {"size": 1.1}]
    whole, part, other = (tmp_path / name for name in ("whole.jsonl", "part.jsonl", "other.jsonl"))
    whole.write_text("".join(json.dumps({**row, "place": None}) + "\n" for row in rows))
    part.write_text("".join(json.dumps({**row, "label": "rose"}) + "\n" for row in rows))
    other.write_text('{"sise": 0.2}\n')
    assert run("predict", kit.table_onl, part, "--scores") == run("predict", kit.table_onl, whole, "--scores")
    assert json.loads(run("evaluate", kit.table_onl, part, "--json", err=None))["n"] == 2
    model = open_model(kit.table_onl)
    np.testing.assert_array_equal(model.scores(rows), model.scores([{**row, "place": None} for row in rows]))
    assert "there is no column 'size'" in refused("predict", kit.table_onl, other)
    (tmp_path / "part.csv").write_text("size\n0.2\n1.1\n")
    assert "there is no column 'place'" in refused("predict", kit.table_onl, tmp_path / "part.csv")


def test_sentences_are_refused(kit, refused, tmp_path):
    (tmp_path / "a.conll").write_text("Confidence NN B-NP\nin IN B-PP\n")
    for command in ("predict", "evaluate"):
        for model in (kit.text_onl, kit.table_onl, kit.numbers_onl):
            assert "a.conll holds sentences" in refused(command, model, tmp_path / "a.conll")


def test_strange_ids_and_labels_come_through(run, tmp_path):
    labels = ['a "quoted", one', "new\tlabel", "plain"]
    rows = [{"id": f'x,"{n}"\n', "label": labels[n % 3], "text": f"w{n % 3} and some words"} for n in range(30)]
    file = tmp_path / "odd.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    trained(file, id="id").save(tmp_path / "odd.onl")
    for found in (
        table(run("predict", tmp_path / "odd.onl", file)),
        [json.loads(line) for line in run("predict", tmp_path / "odd.onl", file, "--format-out", "jsonl").splitlines()],
    ):
        assert [row["id"] for row in found] == [row["id"] for row in rows]
        assert [row["prediction"] for row in found] == [row["label"] for row in rows]


def test_regression(kit, run):
    rows = table(run("predict", kit.numbers_onl, kit.numbers_csv))
    X, _ = data.load(kit.numbers_csv, task="regress")
    np.testing.assert_allclose(
        [float(row["prediction"]) for row in rows], open_model(kit.numbers_onl).predict(X), rtol=1e-6
    )


def test_labels_need_not_be_there(kit, run, tmp_path):
    file = tmp_path / "new.csv"
    file.write_text("place,size,key\nhigh,0.1,k1\nlow,1.2,k2\n")
    assert [row["id"] for row in table(run("predict", kit.table_onl, file))] == ["k1", "k2"]
    bare = tmp_path / "new.jsonl"
    bare.write_text('{"text": "cheap pills for you"}\n')
    assert table(run("predict", kit.text_onl, bare))[0]["prediction"] == "spam"


def test_several_files_are_told_apart(kit, run, tmp_path):
    for name in ("a.svm", "b.svm"):
        (tmp_path / name).write_text("+1 1:1\n-1 2:1\n")
    rows = table(run("predict", kit.sparse_onl, tmp_path / "*.svm"))
    assert [(Path(row["file"]).name, row["id"]) for row in rows] == [
        ("a.svm", "1"),
        ("a.svm", "2"),
        ("b.svm", "1"),
        ("b.svm", "2"),
    ]
    lines = run("predict", kit.sparse_onl, tmp_path / "*.svm", "--format-out", "jsonl").splitlines()
    assert Path(json.loads(lines[3])["file"]).name == "b.svm"


def test_a_learner_saved_from_python_predicts(kit, run):
    found = [row["prediction"] for row in table(run("predict", kit.bare_onl, kit.sparse_svm))]
    X, y = data.load(kit.sparse_svm)
    assert found == [str(label) for label in onlearn.load(kit.bare_onl).predict(X.astype(float))]
    assert np.mean([int(a) == int(b) for a, b in zip(found, y)]) > 0.9
    assert len(table(run("predict", kit.voted_onl, kit.sparse_svm, "--proba"))) == 200


def test_bad_rows_are_left_out_and_told(kit, run, tmp_path):
    file, kept = tmp_path / "some.svm", tmp_path / "bad.txt"
    file.write_text("+1 1:1\n+1 oops\n-1 2:1\n")
    out = run(
        "predict", kit.sparse_onl, file, "--max-bad", "50%", "--bad-rows", kept, err="1 of 3 rows could not be read"
    )
    assert [row["id"] for row in table(out)] == ["1", "3"]
    assert kept.read_text() == "+1 oops\n"
    assert run("predict", kit.sparse_onl, file, "--max-bad", "0.5", "--quiet") == out


def test_too_many_bad_rows_leave_nothing(kit, refused, tmp_path):
    file, out = tmp_path / "some.svm", tmp_path / "out.csv"
    file.write_text("+1 1:1\n+1 oops\n-1 2:1\n")
    assert "1 of 3 rows" in refused("predict", kit.sparse_onl, file, "-o", out)
    assert f"{file}, line 2" in refused("predict", kit.sparse_onl, file, "-o", out, "--strict")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["some.svm"]


def test_bad_rows_do_not_go_over_the_data(kit, refused, tmp_path):
    file = tmp_path / "some.svm"
    file.write_text("+1 1:1\n+1 oops\n-1 2:1\n")
    assert "read from" in refused("predict", kit.sparse_onl, file, "--max-bad", "50%", "--bad-rows", file)
    assert file.read_text() == "+1 1:1\n+1 oops\n-1 2:1\n"
    assert "directory" in refused("predict", kit.sparse_onl, file, "--bad-rows", tmp_path).lower()


def test_ctrl_c_leaves_nothing(kit, tmp_path, monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("onlearn.models.prediction_lines.CsvWriter.lines", stop)
    assert cli.run(["predict", kit.text_onl, kit.text_jsonl, "-o", str(tmp_path / "out.csv")]) == 130
    assert capsys.readouterr().err == "onlearn: stopped\n"
    assert not list(tmp_path.iterdir())


def test_no_permission_to_write(kit, refused, tmp_path, monkeypatch):
    def deny(dir, prefix, suffix):
        raise PermissionError(13, "Permission denied", f"{dir}/{prefix}x")

    monkeypatch.setattr("tempfile.mkstemp", deny)
    out = tmp_path / "out.csv"
    said = refused("predict", kit.text_onl, kit.text_jsonl, "-o", out)
    assert said == f"onlearn: {out}: cannot be written: Permission denied\n"


def test_the_weight_is_for_learning_only(run, tmp_path):
    file, new = tmp_path / "w.csv", tmp_path / "new.csv"
    file.write_text("a,w,label\n" + "1,1,x\n2,2,y\n3,1,y\n0,1,x\n" * 5)
    trained(file, weight="w").save(tmp_path / "w.onl")
    new.write_text("a\n0\n3\n")
    assert len(table(run("predict", tmp_path / "w.onl", new))) == 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("predict nowhere.onl text.jsonl", "nowhere.onl"),
        ("predict text.jsonl text.jsonl", "text.jsonl is not a model file"),
        ("predict text.onl nowhere.jsonl", "nowhere.jsonl does not exist"),
        ("predict text.onl nothing*.jsonl", "no file matches"),
        ("predict text.onl", "Missing argument 'DATA...'"),
        ("predict text.onl . ", "directory"),
        ("predict . text.jsonl", "directory"),
        ("predict text.onl text.jsonl -o .", "directory"),
        ("predict text.onl text.jsonl -o none/out.csv", "there is no directory none"),
        ("predict text.onl text.jsonl -o text.jsonl", "read from"),
        ("predict text.onl text.jsonl -o text.onl", "read from"),
        ("predict text.onl text.jsonl -o /dev/full", "/dev/full: cannot be written: No space left"),
        ("predict text.onl text.jsonl --nonsense", "--nonsense"),
        ("predict text.onl text.jsonl --format-out xml", "'xml' is not csv or jsonl"),
        ("predict text.onl text.jsonl --format nonsense", "there is no format 'nonsense'"),
        ("predict text.onl text.jsonl --max-bad many", "'many' is not a part of the rows"),
        ("predict text.onl sparse.svm", "cannot be used with this model: these features were learned from a table"),
        ("predict numbers.onl numbers.csv --proba", "numbers only"),
        ("predict sparse.onl sparse.svm --id name", "it has no columns"),
        ("predict table.onl text.jsonl", "no column"),
    ],
)
def test_what_is_refused(arguments, reason, kit, refused, monkeypatch):
    monkeypatch.chdir(kit.folder)
    before = {path.name: path.stat().st_mtime_ns for path in kit.folder.iterdir()}
    assert reason in refused(*arguments.split())
    assert {path.name: path.stat().st_mtime_ns for path in kit.folder.iterdir()} == before


def test_an_old_file_is_replaced_only_by_a_whole_one(kit, run, refused, tmp_path):
    out, file = tmp_path / "out.csv", tmp_path / "cut.jsonl"
    out.write_text("old")
    file.write_text('{"text": "a fine day"}\nnonsense\n')
    refused("predict", kit.text_onl, file, "-o", out)
    assert out.read_text() == "old"
    run("predict", kit.text_onl, kit.text_jsonl, "-o", out)
    assert out.read_text().startswith("id,prediction\n")
    assert out.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_the_disk_is_full(kit, tmp_path):
    """A limit on the size of files stands in for a small disk."""
    out = tmp_path / "out.csv"

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    done = process("predict", kit.sparse_onl, kit.sparse_svm, "-o", out, preexec_fn=limited)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"onlearn: {out}: cannot be written: File too large\n"
    assert not list(tmp_path.iterdir())


def test_standard_output_is_full(kit):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "onlearn.cli", "predict", kit.text_onl, kit.text_jsonl],
            env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (2, "onlearn: No space left on device\n")


def test_as_a_process_through_pipes(kit):
    text = Path(kit.text_jsonl).read_text()
    done = process("predict", kit.text_onl, "-", input=text)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 41


@pytest.mark.parametrize("name", ["new.csv", "new.jsonl", "new.parquet"])
def test_the_id_column_of_training_need_not_be_there(name, kit, run, refused, tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    rows = [{"size": 0.1, "place": "high"}, {"size": 1.2, "place": "low"}]

    def write(path, rows):
        if path.suffix == ".csv":
            lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
            path.write_text("\n".join(lines) + "\n")
        elif path.suffix == ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        else:
            parquet.write_table(pa.Table.from_pylist(rows), path)
        return path

    without = write(tmp_path / name, rows)
    with_ids = write(tmp_path / f"with-{name}", [{**row, "key": f"k{n}"} for n, row in enumerate(rows)])
    first, second = (run("predict", kit.table_onl, path).splitlines() for path in (without, with_ids))
    assert [line.split(",")[1:] for line in first] == [line.split(",")[1:] for line in second]
    assert [line.split(",")[0].strip('"') for line in second] == ["id", "k0", "k1"]
    assert first[1].split(",")[0] in ("1", "2")  # the number of its line
    both = run("predict", kit.table_onl, with_ids, without).splitlines()
    assert len(both) == 5
    assert "no column 'key'" in refused("predict", kit.table_onl, without, "--id", "key")  # but if asked for


def test_columns_given_by_position_are_known_by_name_afterwards(run, tmp_path):
    lines = [f"k{n},{n % 7},{'yes' if n % 2 else 'no'},{n % 2}" for n in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["name,size,answer,x", *lines]) + "\n")
    run("train", tmp_path / "a.csv", "-o", tmp_path / "m.onl", "--id", "0", "--target", "2", err=None)
    (tmp_path / "b.csv").write_text("x,size\n1,3\n0,4\n")
    made = [line.split(",")[1] for line in run("predict", tmp_path / "m.onl", tmp_path / "b.csv").splitlines()]
    assert made == ["prediction", "yes", "no"]
    (tmp_path / "c.csv").write_text("answer,x,size\nyes,1,3\nno,0,4\n")
    assert json.loads(run("evaluate", tmp_path / "m.onl", tmp_path / "c.csv", "--json"))["accuracy"] == 1.0


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_whoever_reads_may_stop_reading(unbuffered, form, kit, tmp_path):
    many = tmp_path / "many.svm"
    many.write_text(Path(kit.sparse_svm).read_text() * 100)
    child = subprocess.Popen(
        [sys.executable, "-m", "onlearn.cli", "predict", kit.sparse_onl, str(many), "--format-out", form],
        env={**ENVIRONMENT, "PYTHONUNBUFFERED": unbuffered}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout.readline()
    child.stdout.close()
    heard = child.stderr.read()
    child.stderr.close()
    # Not 0, which would say that all was written; without a buffer, Python takes a part for the whole.
    assert (child.wait(60), heard) == (1, b"")


def test_standard_output_that_takes_a_part_at_a_time():
    from onlearn.cli.terminal import UnbufferedWriter

    taken = []

    class Slow:
        def write(self, view):
            taken.append(bytes(view[:3]))
            return len(taken[-1])

    assert UnbufferedWriter(Slow()).write(b"0123456789") == 10
    assert b"".join(taken) == b"0123456789"


def test_no_bad_row_and_some_bad_rows_contradict_each_other(kit, refused):
    assert "--max-bad has no use" in refused("predict", kit.table_onl, kit.table_csv, "--strict", "--max-bad", "5%")


# ---------------------------------------------------------------------- spreadsheets


@pytest.fixture(scope="module")
def formulas(tmp_path_factory):
    """A model of labels that are formulas, and its data, whose ids are formulas, too."""
    folder = tmp_path_factory.mktemp("formulas")
    labels, path = ["=cmd|' /C calc'!A0", "-1", "@x;=y"], folder / "=1.jsonl"
    rows = [{"kind": "xyz"[n % 3], "key": f"+{n}a", "label": labels[n % 3]} for n in range(60)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    trained(path, id="key").save(folder / "m.onl")
    return str(folder / "m.onl"), str(path)


def test_text_that_a_spreadsheet_would_take_for_formulas(formulas, run, tmp_path):
    model, path = formulas
    exact = run("predict", model, path, "--proba", "--scores")
    assert {row["prediction"] for row in table(exact)} == {"=cmd|' /C calc'!A0", "-1", "@x;=y"}
    rows = table(run("predict", model, path, "--proba", "--scores", "--spreadsheet-safe"))
    assert {row["prediction"] for row in rows} == {"'=cmd|' /C calc'!A0", "-1", "'@x;'=y"}
    assert [row["id"] for row in rows] == [f"'+{n}a" for n in range(60)]
    assert "proba:@x;'=y" in rows[0] and "score:=cmd|' /C calc'!A0" in rows[0]
    assert [row["score:-1"] for row in rows] == [row["score:-1"] for row in table(exact)]  # numbers stay numbers
    assert any(float(row["score:-1"]) < 0 for row in rows)
    out = tmp_path / "out.csv"
    run("predict", model, path, "-o", out, "--spreadsheet-safe", "--top", "2")
    assert {row["label1"] for row in table(out.read_text())} == {"'=cmd|' /C calc'!A0", "-1", "'@x;'=y"}


def test_only_csv_goes_into_spreadsheets(formulas, refused):
    assert "--spreadsheet-safe" in refused("predict", *formulas, "--spreadsheet-safe", "--format-out", "jsonl")
