"""``--report``: pages and numbers of real commands; a path that cannot be written is refused before the work begins."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

TOKENS = "the DT B-NP\ndog NN I-NP\nbarks VBZ B-VP\n\na DT B-NP\ncat NN I-NP\n\n"


def test_train_and_evaluate(run, kit, tmp_path):
    page, numbers = tmp_path / "r.html", tmp_path / "r.json"
    command = ["train", kit.table_csv, "-o", tmp_path / "m.onl", "--test", kit.table_csv, "--id", "key"]
    printed = json.loads(run(*command, "--json", "--report", numbers, err=None))
    document = json.loads(numbers.read_text())
    same = {"seconds", "cache"}
    assert {k: v for k, v in document["facts"].items() if k not in same} == {
        k: v for k, v in printed.items() if k not in same
    }
    told = document["evidence"]
    assert told["rows"] == 300 and told["seed"] == 0 and told["data"] == [kit.table_csv]
    assert told["progress"]["doubling"] and told["weights"]["shown"] and told["model_bytes"] > 0
    assert document["command"].startswith("onlearn train") and "--report" in document["command"]
    run(*command, "--report", page, err=None)
    text = page.read_text(encoding="utf-8")
    for section in ("summary", "decisions", "learning", "quality", "classes", "weights", "run"):
        assert f'<section id="{section}"' in text
    out = run("evaluate", tmp_path / "m.onl", kit.table_csv, "--report", numbers, "--json", err=None)
    assert json.loads(numbers.read_text())["facts"]["accuracy"] == json.loads(out)["accuracy"]


@pytest.mark.parametrize("name", ["text", "sparse", "named", "numbers", "bare", "voted"])
def test_evaluate_every_kind_of_model(run, kit, tmp_path, name):
    data = kit({"bare": "sparse.svm", "voted": "sparse.svm"}.get(name, {"text": "text.jsonl", "sparse": "sparse.svm",
                "named": "named.vw", "numbers": "numbers.csv"}.get(name, "")))  # fmt: skip
    run("evaluate", kit(f"{name}.onl"), data, "--report", tmp_path / "r.html", err=None)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert 'data-chart="numbers"' in text if name == "numbers" else 'data-chart="roc"' in text
    assert ('<section id="weights"' in text) == (name != "voted") or "There are no weights to show" in text


def test_holdout_bad_rows_and_one_row_of_each_class(run, tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("a,label\n" + "".join(f"{n * 7 % 11},{'xy'[n % 2]}\n" for n in range(60)) + "1,2,3,4\n")
    command = ["train", path, "-o", tmp_path / "m.onl", "--holdout", "30%", "--max-bad", "10%"]
    run(*command, "--report", tmp_path / "r.json", err=None)
    told = json.loads((tmp_path / "r.json").read_text())
    assert told["evidence"]["rows"] == told["facts"]["holdout"]["n"]
    assert told["evidence"]["bad"][0]["count"] == 1 and told["evidence"]["bad"][0]["shown"][0]["line"] == 62
    run(*command, "--report", tmp_path / "r.html", err=None)
    assert 'id="bad-rows"' in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_mistake_bound(run, kit, tmp_path):
    command = ["train", kit.sparse_svm, "-o", tmp_path / "m.onl", "--learner", "Perceptron", "--report"]
    run(*command, tmp_path / "r.json", "--passes", "4", err=None)
    told = json.loads((tmp_path / "r.json").read_text())["evidence"]
    assert told["certificate"]["holds"] and told["certificate"]["n_examples"] == 200
    ended = told["progress"]["doubling"][-1]
    assert ended["seen"] == 800 and ended["mistakes"] == told["certificate"]["mistakes"]
    run(*command, tmp_path / "r.html", "--holdout", "20%", err=None)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Mistake bounds" in text and "Theory allows at most" in text
    # features that change while they are learned are not those of a theorem
    run("train", kit.table_csv, *command[2:], tmp_path / "r.json", "--id", "key", err=None)
    assert "certificate" not in json.loads((tmp_path / "r.json").read_text())["evidence"]


def test_taggers(run, tmp_path):
    path, model = tmp_path / "a.conll", tmp_path / "m.onl"
    path.write_text(TOKENS * 10)
    learner = ["--learner", "structured-perceptron", "--passes", "2"]
    run("train", path, "-o", model, *learner, "--test", path, "--report", tmp_path / "r.html", err=None)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Spans of each label" in text and 'data-chart="passes"' in text
    run("evaluate", model, path, "--report", tmp_path / "e.json", err=None)
    assert json.loads((tmp_path / "e.json").read_text())["facts"]["spans"]["by_type"]["NP"]["f1"] == 1.0


def test_no_test_rows(run, kit, tmp_path):
    command = ["train", kit.table_csv, "-o", tmp_path / "m.onl", "--id", "key", "--report"]
    run(*command, tmp_path / "r.json", err=None)
    told = json.loads((tmp_path / "r.json").read_text())["evidence"]
    assert told["rows"] == 0 and told["scored_before"] > 0 and len(told["curves"]["of"]) == 4
    run(*command, tmp_path / "r.html", err=None)
    assert "How good it was while it learned" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_tune_and_compare(run, kit, tmp_path):
    page, numbers = tmp_path / "r.html", tmp_path / "r.json"
    space = ["--space", "learner=AROW,Perceptron"]
    printed = json.loads(run("tune", kit.sparse_svm, *space, "--json", "--report", numbers, err=None))
    found = json.loads(numbers.read_text())["facts"]
    assert [one["spelling"] for one in found["configurations"]] == [
        one["spelling"] for one in printed["configurations"]
    ]
    run("tune", kit.sparse_svm, *space, "--report", page, err=None)
    assert 'data-chart="race"' in page.read_text(encoding="utf-8") or "no race" in page.read_text(encoding="utf-8")
    command = ["compare", kit.sparse_svm, "--learner", "AROW", "--learner", "Perceptron"]
    run(*command, "--report", page, err=None)
    text = page.read_text(encoding="utf-8")
    assert "Learners, the best first" in text and "whether they are noise" in text
    run(*command, "--report", numbers, err=None)
    assert json.loads(numbers.read_text())["facts"]["best"] in ("AROW", "Perceptron")


def test_several_labels(run, tmp_path):
    path = tmp_path / "d.csv"
    rows = [("a;b", "apple boat"), ("b", "boat sea"), ("", "of and"), ("c", "car road"), ("a;c", "tree car")]
    path.write_text("text,tags\n" + "".join(f"{text},{labels}\n" for labels, text in rows * 12))
    command = ["train", path, "-o", tmp_path / "m.onl", "--target", "tags", "--label-separator", ";", "--text", "text"]
    run(*command, "--test", path, "--report", tmp_path / "r.html", err=None)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "exactly the right labels" in text and 'data-chart="roc"' in text


def test_bounds(run, kit, tmp_path):
    run("bounds", "winnow", "--n", "1024", "--k", "3", "--report", tmp_path / "b.html")
    assert "At most 101" in (tmp_path / "b.html").read_text(encoding="utf-8")
    run("bounds", "recommend", kit.sparse_svm, "--report", tmp_path / "b.json")
    assert json.loads((tmp_path / "b.json").read_text())["facts"]["advice"] in ("additive", "multiplicative")
    path = tmp_path / "and.csv"
    path.write_text("a,b,label\n0,0,no\n0,1,no\n1,0,no\n1,1,yes\n")
    run("bounds", "additive", path, "--u", "1,1", "--intercept", "-1.5", "--report", tmp_path / "c.html")
    assert "Mistake bounds" in (tmp_path / "c.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("where", ["none/r.html", "r.pdf", "folder.html"])
def test_refused_before_anything_is_learned(refused, kit, tmp_path, where):
    (tmp_path / "folder.html").mkdir()
    told = refused("train", kit.table_csv, "-o", tmp_path / "m.onl", "--report", tmp_path / where)
    assert "--report" in told and not (tmp_path / "m.onl").exists()
    assert "--report" in refused("evaluate", kit.table_onl, kit.table_csv, "--report", tmp_path / where)
    assert "--report" in refused("tune", kit.table_csv, "--report", tmp_path / where)
    assert "--report" in refused("compare", kit.table_csv, "--report", tmp_path / where)
    assert "--report" in refused("bounds", "halving", "--size", "8", "--report", tmp_path / where)
    assert "--report" in refused("reproduce", "spam", "--report", tmp_path / where)


def test_data_and_models_are_not_written_over(refused, tmp_path):
    path = tmp_path / "d.json"
    path.write_text('{"a": 1, "label": "x"}\n{"a": 2, "label": "y"}\n')
    assert "read from" in refused("train", path, "-o", tmp_path / "m.onl", "--report", path, "--format", "jsonl")
    pattern = tmp_path / "d.jso*"
    assert "read from" in refused("train", pattern, "-o", tmp_path / "m.onl", "--report", path, "--format", "jsonl")
    assert "something else" in refused("train", path, "-o", tmp_path / "m.json", "--report", tmp_path / "m.json")
    assert path.read_text().startswith('{"a"')


def test_templates_are_imported_only_for_a_page(kit, tmp_path):
    code = "import sys; from onlearn.cli import run; assert run(sys.argv[1:]) == 0; print('jinja2' in sys.modules)"
    command = [sys.executable, "-c", code, "evaluate", kit.table_onl, kit.table_csv]
    for more, imported in (([], "False"), (["--report", str(tmp_path / "r.json")], "False"),
                           (["--report", str(tmp_path / "r.html")], "True")):  # fmt: skip
        done = subprocess.run([*command, *more], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == imported


def test_regression_in_several_passes(tmp_path, run):
    path = tmp_path / "numbers.csv"
    path.write_text("x,target\n" + "".join(f"{k / 10},{k % 7 + k / 5}\n" for k in range(200)))
    run("train", path, "--target", "target", "--task", "regress", "-o", tmp_path / "m.onl", "--passes", "3",
        "--report", tmp_path / "r.json")  # fmt: skip
    found = json.loads((tmp_path / "r.json").read_text())
    assert "mistakes" not in json.dumps(found["evidence"]["progress"] if "evidence" in found else found["progress"])
