"""``onlearn data``: descriptions that are true, and sets fetched from a server that stands in for OpenML."""

from __future__ import annotations

import hashlib
import json
import threading
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import sklearn.datasets
from pyarrow import parquet
from sklearn.datasets import _openml

from onlearn import data

# ---------------------------------------------------------------- describe


def report(run, *arguments):
    return json.loads(run("data", "describe", *arguments, "--json"))


def test_a_table(kit, run):
    found = report(run, kit.table_csv)
    assert found["rows"] == 300 and found["kind"] == "a table" and found["density"] == 1
    assert sum(found["labels"].values()) == 300 and found["labels"].keys() == {"rose", "lily", "iris, blue"}
    columns = found["columns"]
    assert (columns["size"]["role"], columns["place"]["role"]) == ("numeric", "categorical")
    assert columns["place"]["distinct"] == 2 and columns["place"]["type"] == "string"
    X, _ = data.load(kit.table_csv)
    size = X.column("size").to_numpy()
    assert (columns["size"]["smallest"], columns["size"]["largest"]) == (size.min(), size.max())
    assert columns["size"]["mean"] == pytest.approx(size.mean())
    assert found["problems"] == []


def test_what_looks_wrong(run, tmp_path):
    file = tmp_path / "odd.csv"
    rows = [f"{n % 7},{'?' if n % 4 == 0 else 'x' + str(n % 3)},same,{'yes' if n % 2 else 'no'}" for n in range(60)]
    file.write_text("\n".join(["a,b,c,label", *rows, "3,b,same,No.", "1,x", "1,x1,same,"]) + "\n")
    found = report(run, file)
    assert (found["rows"], found["bad_rows"], found["unlabelled"]) == (62, 1, 1)
    said = "\n".join(found["problems"])
    for problem in (
        "1 of 63 rows could not be read:",
        "line 63: there are 2 cells and not 4",
        "b: 15 values are missing (24.2 %)",
        "c: always 'same'",
        "b: 1 cells are the name of the column",
        "1 rows have no label",
        "labels that hardly differ: 'no', 'No.'",
        "seen only once: 'No.'",
    ):
        assert problem in said
    assert found["columns"]["b"]["missing"] == 15
    out = run("data", "describe", file)
    assert "problems:" in out and "\x1b" not in out and "say --target" in out


def test_long_values_are_shown_by_their_beginning(run, tmp_path):
    file = tmp_path / "a.jsonl"
    rows = [{"same": "s" * 1000, "text": "t" * 999 + str(n % 3), "y": "ab"[n % 2]} for n in range(50)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = report(run, file)
    assert found["problems"] == [f"same: always '{'s' * 200}' and so on"]
    assert found["columns"]["text"]["distinct"] == 3


def test_a_value_that_is_always_there_is_shown_as_text(run, tmp_path):
    values = {"d": Decimal("1.0"), "f": 2.0, "b": b"\xffa\n", "s": "\x1b[31m", "t": True}
    table = pa.table({name: [value] * 2 for name, value in values.items()} | {"y": ["a", "b"]})
    parquet.write_table(table, tmp_path / "a.parquet")
    said = [problem for problem in report(run, tmp_path / "a.parquet")["problems"] if "always" in problem]
    assert said == [
        "d: always 1", "f: always 2", r"b: always '\xffa\n'", r"s: always '\x1b[31m'", "t: always True"
    ]  # fmt: skip


def test_half_precision_is_described(run, tmp_path):
    table = pa.table({"a": np.array([1.5, 2.5, 3.5], np.float16), "y": ["a", "b", "a"]})
    parquet.write_table(table, tmp_path / "a.parquet")
    column = json.loads(run("data", "describe", tmp_path / "a.parquet", "--json", err=None))["columns"]["a"]
    assert (column["smallest"], column["mean"], column["largest"]) == (1.5, 2.5, 3.5)


def test_what_json_cannot_say_is_null(run, tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n" + "1.5e308,0\n1.6e308,1\n" * 5)
    with np.errstate(over="ignore"):
        said = run("data", "describe", tmp_path / "a.csv", "--json")
    assert "Infinity" not in said and json.loads(said)["columns"]["a"]["mean"] is None


def test_sparse_rows(kit, run, tmp_path):
    found = report(run, kit.sparse_svm)
    X, _ = data.load(kit.sparse_svm)
    used = np.unique(X.indices)
    assert (found["kind"], found["values"], found["features_that_occur"]) == ("a matrix", X.nnz, len(used))
    trained = json.loads(run("inspect", kit.sparse_onl, "--json"))["features"]["count"]
    assert found["features"] == trained == len(used) + 1  # indices begin with 1
    assert "9, numbered 0 to 8; 8 of them occur" in run("data", "describe", kit.sparse_svm)
    assert found["density"] == X.nnz / (200 * len(used)) and found["largest_index"] == used.max()
    assert found["labels"].keys() == {"+1", "-1"}
    file = tmp_path / "odd.svm"
    file.write_text("1 1:0 3:2\n1\n1 99000000000:1\n")
    said = report(run, file)["problems"]
    assert said == [
        "1 rows have no features",
        "1 values are written though they are zero",
        "the largest index is 99,000,000,000: features are many, or numbered by hashes",
        "there is only one label, '1'",
    ]


def test_named_rows(kit, run):
    found = report(run, kit.named_vw)
    assert (
        found["features"] == 4
        and set(found["namespaces"]) == {"a", "b"}
        and found["values_a_row"] == pytest.approx(3, abs=0.5)
    )
    assert "namespace a" in run("data", "describe", kit.named_vw)


def test_sentences(run, tmp_path):
    file = tmp_path / "some.conll"
    file.write_text("The DT B\ncat NN I\n\nIt PRP B\n")
    found = report(run, file, "--format", "conll")
    assert (found["rows"], found["tokens"], found["kind"]) == (2, 3, "sentences")
    run("data", "describe", file, "--format", "conll")


def test_numbers_as_target(kit, run):
    found = report(run, kit.numbers_csv, "--task", "regress")
    assert found["target"]["smallest"] > 80 and found["labels"] == {}
    assert "is this regression" in "\n".join(report(run, kit.numbers_csv)["problems"])


def test_several_batches_add_up(kit, run, monkeypatch):
    whole = report(run, kit.table_csv)
    original = data.read
    monkeypatch.setattr(data, "read", lambda *given, **options: original(*given, block_size=1000, **options))
    parts = report(run, kit.table_csv)
    whole["columns"]["size"].pop("mean"), parts["columns"]["size"].pop("mean")
    assert parts == whole


def test_no_labels(run, tmp_path):
    file = tmp_path / "new.csv"
    file.write_text("size,colour\n1,red\n2,blue\n3,red\n")
    assert "no row has a label (--target names the column)" in report(run, file)["problems"]
    assert report(run, file, "--target", "colour")["labels"] == {"red": 2, "blue": 1}
    assert report(run, file, "--no-header")["rows"] == 4


def test_what_describe_refuses(kit, refused, tmp_path):
    assert "does not exist" in refused("data", "describe", tmp_path / "none.csv")
    assert "--task" in refused("data", "describe", kit.table_csv, "--task", "guess")
    assert "no columns" in refused("data", "describe", kit.sparse_svm, "--target", "a")
    assert "no row has a label in a column 'b'" in refused("data", "describe", kit.text_jsonl, "--target", "b")
    assert "--nonsense" in refused("data", "describe", kit.table_csv, "--nonsense")


# ---------------------------------------------------------------- list and fetch

TABLE = """@relation toy
@attribute size numeric
@attribute colour {'light blue',red}
@attribute label {p,q}
@attribute kind {big,small}
@data
1.5,'light blue',p,big
2,red,q,small
?,?,p,small
"""
SPARSE = """@relation toy
@attribute f0 numeric
@attribute f1 numeric
@attribute f2 numeric
@attribute class {-1,1}
@data
{0 1,2 2.5,3 1}
{1 1}
"""


def features(names, target, nominal):
    return [
        {
            "index": str(k),
            "name": name,
            "data_type": "nominal" if name in nominal else "numeric",
            "is_target": "true" if name == target else "false",
            "is_ignore": "false",
            "is_row_identifier": "false",
            "number_of_missing_values": "0",
        }
        for k, name in enumerate(names)
    ]


SETS = {
    24: (TABLE, "ARFF", features(["size", "colour", "label", "kind"], "kind", {"colour", "label", "kind"}), 3),
    1430: (SPARSE, "Sparse_ARFF", features(["f0", "f1", "f2", "class"], "class", {"class"}), 2),
}


class StandIn(BaseHTTPRequestHandler):
    """Answers like OpenML about the two sets above."""

    lost = 0  # bytes at the end of a download that do not arrive

    def do_GET(self):
        number = int(next(part for part in reversed(self.path.split("/")) if part.isdigit()))
        if number not in SETS:
            return self.answer(412, b'{"error": {"code": "111", "message": "Unknown dataset"}}')
        arff, form, listed, rows = SETS[number]
        if "download" in self.path:
            return self.answer(200, arff.encode()[: len(arff) - self.lost])
        if "/features/" in self.path:
            return self.say({"data_features": {"feature": listed}})
        if "/qualities/" in self.path:
            return self.say({"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": str(rows)}]}})
        host = f"http://{self.headers['Host']}"
        about = dict(
            id=str(number), file_id=str(number), name="toy", version="1", format=form, status="active", description=""
        )
        about |= dict(url=f"{host}/data/v1/download/{number}", md5_checksum=hashlib.md5(arff.encode()).hexdigest())
        return self.say({"data_set_description": about})

    def say(self, what):
        self.answer(200, json.dumps(what).encode())

    def answer(self, code, content):
        self.send_response(code)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def openml(monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}/"
    for name in ("_OPENML_PREFIX", "_SEARCH_NAME", "_DATA_INFO", "_DATA_FEATURES", "_DATA_QUALITIES"):
        url = getattr(_openml, name, "")
        if url.startswith("http"):
            monkeypatch.setattr(_openml, name, base + url.split("/", 3)[3])
    monkeypatch.delenv("ONLEARN_DATA", raising=False)
    yield server
    server.shutdown()
    server.server_close()


def test_a_table_is_fetched(openml, run, tmp_path):
    out = run("data", "fetch", "mushroom", "-o", tmp_path, err="onlearn: downloading mushroom from OpenML\n")
    path = tmp_path / "mushroom.csv"
    assert out == f"{path}\n"
    assert path.read_text().splitlines() == [
        "size,colour,label_,label",
        '1.5,"light blue","p","big"',
        '2,"red","q","small"',
        ',,"p","small"',
    ]
    X, y = data.load(path)
    assert list(y) == ["big", "small", "small"] and X.column("colour").to_pylist() == ["light blue", "red", None]
    again = run("data", "fetch", "mushroom", "-o", tmp_path, err=f"onlearn: mushroom is in {tmp_path}\n")
    assert again == out
    assert [one.name for one in tmp_path.iterdir()] == ["mushroom.csv"]


def test_a_sparse_one_is_fetched(openml, run, tmp_path):
    found = json.loads(run("data", "fetch", "a9a", "-o", tmp_path, "--json", "--quiet"))
    assert found == {"name": "a9a", "source": "OpenML", "files": [str(tmp_path / "a9a.svm")]}
    assert (tmp_path / "a9a.svm").read_text() == "1 1:1 3:2.5\n-1 2:1\n"


def test_any_other_by_its_number(openml, run, tmp_path):
    assert run("data", "fetch", "openml:24", "-o", tmp_path / "new", "-q") == f"{tmp_path / 'new' / 'openml-24.csv'}\n"


def test_news_come_from_scikit_learn(run, tmp_path, monkeypatch):
    def fetch(data_home, subset, shuffle):
        return sklearn.utils.Bunch(data=[f"{subset} text"], target=np.array([1]), target_names=["a", "b"])

    monkeypatch.setattr(sklearn.datasets, "fetch_20newsgroups", fetch)
    monkeypatch.delenv("ONLEARN_DATA", raising=False)
    run("data", "fetch", "20news", "-o", tmp_path, "-q")
    assert json.loads((tmp_path / "20news-test.jsonl").read_text()) == {"label": "b", "text": "test text"}


def test_what_is_at_hand_is_not_fetched(run, tmp_path, monkeypatch):
    (tmp_path / "adult").mkdir()
    (tmp_path / "adult" / "adult.data").write_text("1,a\n")
    monkeypatch.setenv("ONLEARN_DATA", str(tmp_path))
    assert run("data", "fetch", "adult", err="which ONLEARN_DATA names") == f"{tmp_path / 'adult' / 'adult.data'}\n"
    listed = {one["name"]: one for one in json.loads(run("data", "list", "--json"))}
    assert listed["adult"]["path"] == str(tmp_path / "adult") and listed["mnist"]["path"] is None
    assert "adult" in run("data", "list")


def test_a_failed_download_is_1(openml, refused, tmp_path):
    said = refused("data", "fetch", "openml:99999", "-o", tmp_path, "-q", code=1)
    assert "openml-99999 (OpenML 99999) cannot be downloaded" in said
    openml.shutdown()
    openml.server_close()
    assert not list(tmp_path.iterdir())


def test_damaged_on_the_way(openml, refused, tmp_path, monkeypatch):
    monkeypatch.setattr(StandIn, "lost", 5)
    assert "md5" in refused("data", "fetch", "mushroom", "-o", tmp_path, "-q", code=1)
    assert not list(tmp_path.iterdir())


def test_what_fetch_refuses(refused, tmp_path):
    assert "did you mean adult?" in refused("data", "fetch", "adlt")
    assert "see onlearn data list" in refused("data", "fetch", "xyz")
    assert "none does not exist" in refused("data", "fetch", "adult", "-o", tmp_path / "none" / "deeper")
    file = tmp_path / "file"
    file.write_text("")
    assert "is a file" in refused("data", "fetch", "adult", "-o", file)
    assert Path("adult.csv").exists() is False
