"""Commands with code of their user: formats, rules, extractors and peers, which may import and do anything."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import onlearn
from onlearn import cli

# A program of a user. What it does wrong, if anything, the environment says.
MINE = '''
import importlib
import os
import warnings

import numpy as np
import pyarrow as pa

import onlearn
from onlearn.data import DataError, reader
from onlearn.data.formats.scanning import Lines
from onlearn.data.registry import Parsed

for name in os.environ.get("IMPORTED", "pandas").split():
    importlib.import_module(name)
WRONG = os.environ.get("WRONG")


@reader("poem", extensions=[".poem"])
class Poem(Lines):
    def parse(self, block):
        rows = [line.partition(";") for line in block.text[: block.stop].tobytes().decode().splitlines()]
        labels = pa.array([label for label, _, _ in rows]).dictionary_encode()
        table = pa.table({"text": [text for _, _, text in rows], "label": labels})
        frame = table.to_pandas()
        if WRONG == "reader":
            raise ValueError("a line\\x1b[31m cannot be read")
        if WRONG == "table":
            return frame["nothing"]
        if WRONG == "data":
            raise DataError("this is no poem")
        if WRONG == "file":
            open("lexicon.txt")
        if WRONG == "depth":
            return self.parse(block)
        if WRONG == "warning and print":
            warnings.warn("poems are short")
            print("reading")
        names = sorted(frame["label"].unique())
        codes = np.array([names.index(one) for one in frame["label"]])
        return Parsed(table.select(["text"]), np.arange(len(rows)), len(rows), codes=codes, names=names)


@onlearn.feature
def shouting(row):
    """How many letters are capitals."""
    frame = pa.table({name: [value] for name, value in row.items()}).to_pandas()
    if WRONG == "feature":
        raise TypeError("no text")
    yield "capitals", float(sum(one.isupper() for one in frame["text"][0]))


@onlearn.rule
def ramp(score, y, limit=2.0):
    return y if -limit < score * y < 1.0 else 0.0


def main():
    from onlearn.cli import main

    main()


if __name__ == "__main__":
    main()
'''
LINES = MINE.splitlines()
DRIVER = """
import contextlib, io, json, pathlib, sys

import mine
from onlearn import cli
from onlearn.features import Text
from sample_models import trained

wrong, mine.WRONG = mine.WRONG, None
trained(pathlib.Path("a.poem"), extractors=[Text("text"), mine.shouting]).save("own.onl")  # as only Python can say
mine.WRONG = wrong
found = []
for arguments in json.loads(sys.argv[1]):
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.run(arguments)
    found.append([code, *(one.buffer.getvalue().decode() for one in (out, err))])
print(json.dumps(found))
"""


def line_of(text: str) -> int:
    return 1 + next(n for n, line in enumerate(LINES) if text in line)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "driver.py").write_text(DRIVER)
    poems = ["spam;WIN a FREE prize", "ham;see you at eight"]
    (tmp_path / "a.poem").write_text("".join(f"{poems[n % 2]} {n % 7}\n" for n in range(60)))
    return tmp_path


def python(folder, *arguments, **environment):
    paths = [str(Path(onlearn.__file__).parents[1]), str(Path(__file__).parents[1])]
    whole = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=whole, capture_output=True, text=True, timeout=300
    )


def commands(folder, *asked, **environment):
    """The exit code of each command, and what it printed on standard output and error."""
    done = python(folder, "driver.py", json.dumps([one.split() for one in asked]), **environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


TRAIN = "train a.poem -o m.onl --rule ramp(3.0) --holdout 20%"


@pytest.mark.parametrize("imported", ["pandas yaml", "river"])
def test_it_may_import_anything(imported, folder):
    for name in imported.split():
        pytest.importorskip(name)
    asked = [
        TRAIN,
        "predict m.onl a.poem",
        "evaluate m.onl a.poem --json",
        "explain m.onl --at a.poem:2 --json",
        "inspect m.onl",
        "data describe a.poem",
        "predict own.onl a.poem",
        "evaluate own.onl a.poem",
        "explain own.onl --text WIN",
        "tune a.poem --configurations 2",
        "stream a.poem -o s.onl -q",
        "compare a.poem --learner Perceptron -q",
        "bounds recommend a.poem",
    ]
    found = commands(folder, *asked, IMPORTED=imported)
    assert [(code, err) for code, _, err in found] == [(0, "")] * len(asked)
    assert "ramp" in found[0][1] and "ramp" in found[4][1]
    assert found[1][1].splitlines()[:3] == ["id,prediction", "1,spam", "2,ham"]
    assert json.loads(found[2][1])["accuracy"] == 1.0
    assert json.loads(found[3][1])["prediction"] == "ham"
    assert "capitals" in found[8][1]


ALL = [TRAIN, "predict own.onl a.poem", "evaluate own.onl a.poem", "explain own.onl --at a.poem:2"]


OTHERS = [
    "data describe a.poem",
    "tune a.poem --configurations 2",
    "stream a.poem -o s.onl",
    "compare a.poem --learner Perceptron",
    "bounds recommend a.poem",
]


@pytest.mark.parametrize(
    ("wrong", "said", "at", "asked"),
    [
        ("reader", r"ValueError: a line\x1b[31m cannot be read", "a line", [*ALL, *OTHERS]),
        ("table", "KeyError: 'nothing'", 'frame["nothing"]', ALL[:1]),
        ("file", "FileNotFoundError: [Errno 2] No such file or directory: 'lexicon.txt'", "lexicon", ALL[:2]),
        ("depth", "RecursionError: maximum recursion depth exceeded", None, ALL[:1]),
        ("feature", "TypeError: no text", "no text", [*ALL[1:], "explain own.onl --text WIN"]),
    ],
)
def test_its_errors_are_shown_with_their_place(wrong, said, at, asked, folder):
    for code, out, err in commands(folder, *asked, WRONG=wrong):
        assert (code, out) == (1, "")
        assert err.count("\n") == 1 and err.startswith(f"onlearn: {said}")
        place = re.search(r" \((.*), line (\d+)\)\n$", err)
        assert place is not None and Path(place[1]) == folder / "mine.py"
        assert at is None or int(place[2]) == line_of(at)


def test_it_may_refuse_data(folder):
    (code, _, err), *_ = commands(folder, TRAIN, WRONG="data")
    assert (code, err) == (2, "onlearn: this is no poem\n")


def test_it_may_warn_and_print(folder):
    (code, out, err), *_ = commands(folder, TRAIN, WRONG="warning and print")
    assert code == 0 and set(err.splitlines()) == {"onlearn: warning: poems are short"} and out.startswith("reading\n")


def test_a_program_that_ends_with_the_command(folder):
    done = python(folder, "mine.py", *TRAIN.split(), "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = python(folder, "-c", "import mine; mine.main()", "predict", "m.onl", "a.poem", "-o", "out.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "out.csv").read_text().startswith("id,prediction\n1,spam\n2,ham\n")
    done = python(folder, "-m", "onlearn", "predict", "m.onl", "a.poem")  # without the program
    assert done.returncode == 2 and "define it with @onlearn.rule before loading" in done.stderr
    assert done.stderr.count("\n") == 1


PEERS = """
class Peer:
    def fit(self, X, y):
        raise RuntimeError("cannot fit")

    def predict(self, X):
        return X
"""


@pytest.mark.parametrize(
    ("peer", "code", "said"),
    [
        ("wrong:X", 1, "SyntaxError: invalid syntax (wrong.py, line 2)"),
        ("raising:X", 1, "KeyError: 'at import' ({folder}/raising.py, line 3)"),
        ("missing:X", 2, "Invalid value for --peer: there is no module 'missing'"),
        ("folder:X", 2, "Invalid value for --peer: folder has no estimator 'X'"),
        ("peers:X", 2, "Invalid value for --peer: peers has no estimator 'X'; there are Peer"),
        ("peers.py:Peer", 2, "Invalid value for --peer: there is no module 'peers.py'"),
        ("peers:Peer", 0, "Peer: failed: cannot fit"),
    ],
)
def test_peers(peer, code, said, tmp_path, monkeypatch, capsys):
    (tmp_path / "wrong.py").write_text("\ndef f(:\n    pass\n")
    (tmp_path / "raising.py").write_text("import os\n\nraise KeyError('at import')\n")
    (tmp_path / "peers.py").write_text(PEERS)
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.csv").write_text("x,label\n" + "".join(f"{n % 7},{n % 2}\n" for n in range(60)))
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("wrong", "raising", "peers", "folder"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    data = str(tmp_path / "a.csv")
    assert cli.run(["compare", data, "--learner", "Perceptron", "--peer", peer]) == code
    assert f"onlearn: {said.format(folder=tmp_path)}" in capsys.readouterr().err


@pytest.mark.slow
def test_processes_of_a_cluster_on_this_machine_have_it_too(folder):
    pytest.importorskip("distributed")
    alone = python(folder, "mine.py", *TRAIN.split(), "-q")
    assert alone.returncode == 0, alone.stderr
    for command in ("train a.poem -o spread.onl --rule ramp", "predict m.onl a.poem", "evaluate m.onl a.poem"):
        done = python(folder, "mine.py", *command.split(), "--cluster", "local:2", "-q")
        assert (done.returncode, done.stderr) == (0, ""), command
        done = python(folder, "mine.py", *command.split(), "--cluster", "local:2", "-q", WRONG="reader")
        assert done.returncode == 1
        assert done.stderr.endswith(f"cannot be read ({folder / 'mine.py'}, line {line_of('a line')})\n")
