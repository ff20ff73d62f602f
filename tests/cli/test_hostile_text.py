"""Names that hold what terminals and Rich obey: no command writes it, neither to a terminal nor to a file or pipe."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import re
import subprocess
import sys
import threading
import unicodedata
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onlearn import cli

pty = pytest.importorskip("pty")  # not on Windows

EVIL = (
    "\x1b[31m\x1b]8;;http://evil\x07link\x1b]8;;\x07"  # a colour; a link
    "\x1b]0;title\x1b\\\x9b2J\x84\x85"  # the title of the window; C1: clear the screen, others
    "\u202etxt\u2066\u200f\u200b\ufeff\u2028"  # text turned round; nothing to be seen; a line separator
    "a\rb\bc\x0b\x0c\x7f\U000e0041"  # overwriting; a tag character
    "[red][link=http://evil]x[/link]:warning:"  # markup of Rich, which is shown as it is
)
FILE = EVIL.replace("/", "|")  # as part of the name of a file
RAW = os.fsdecode(b"\xff")  # the name of a file need not be UTF-8


def unseen(written: bytes, kept: str = "\n") -> list[str]:
    """The characters that a terminal obeys, or that are not seen; those that are not UTF-8, too."""
    text = written.decode("utf-8", "surrogateescape")
    bad = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    return sorted({repr(one) for one in text if one not in kept and unicodedata.category(one) in bad})


class Hostile(NamedTuple):
    """Data and models in a folder; all names in them, and those of the files, are hostile."""

    folder: Path

    def __call__(self, name: str) -> str:
        return str(self.folder / f"{FILE}{name}")


def quietly(*arguments: str) -> None:
    assert cli.run([*arguments, "-q"]) == 0


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Hostile:
    kit = Hostile(tmp_path_factory.mktemp("hostile"))
    words = ["cheap", "pills", "see", "you", f"{EVIL}w"]

    def row(n: int) -> dict[str, Any]:
        return {
            f"{EVIL}number": n % 7 + (n % 2) * 5.5,
            f"{EVIL}kind": f"{EVIL}{'uvw'[n % 3]}",
            f"{EVIL}text": " ".join(words[(n * k + n % 2) % 5] for k in range(1, 6)),
            "label": f"{EVIL}{'yes' if n % 2 else 'no'}",
        }

    def write(name: str, lines: list[str]) -> None:
        Path(kit(name)).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    rows = [row(n) for n in range(120)]
    write("a.jsonl", [json.dumps(one) for one in rows])
    write(
        "target.jsonl",
        [json.dumps({f"{EVIL}target" if k == "label" else k: v for k, v in one.items()}) for one in rows],
    )
    write("new.jsonl", [json.dumps({**row(n), "label": f"{EVIL}new"}) for n in range(4)])
    write("bad.jsonl", [json.dumps(one) for one in rows] + [f'{{"label": {EVIL}}}'])
    word = "".join(EVIL.split()).replace(":", "")  # of formats whose words end at spaces
    write("a.vw", [f"{n % 2 * 2 - 1} 'tag{word}|{word}{n % 3} {words[n % 4]} {word}{n % 2}" for n in range(60)])
    word = re.sub("[\x00-\x1f\x7f]", "", word)  # which labels of these formats must not have
    write(
        "a.txt", [f"__label__{word}{n % 2} {' '.join(words[(n + k) % 5] for k in range(n % 2, 3))}" for n in range(60)]
    )
    write("several.jsonl", [json.dumps({"x": n % 4, "label": [f"{EVIL}{n % 2}", f"{EVIL}{n % 3}"]}) for n in range(60)])
    write("tags.conll", [f"{words[n % 4]}\t{word}{n % 2}" if n % 5 else "" for n in range(100)])
    Path(kit("folder")).mkdir()
    Path(kit(f"{RAW}.jsonl")).write_bytes(Path(kit("a.jsonl")).read_bytes())
    for name, *options in (
        ("a", kit("a.jsonl")),
        ("several", kit("several.jsonl"), "--task", "multilabel"),
        ("kernel", kit("a.jsonl"), "--kernel", "linear"),
        ("tags", kit("tags.conll"), "--format", "conll"),
        ("vw", kit("a.vw")),
    ):
        quietly("train", *options, "-o", kit(f"{name}.onl"))
    return kit


COMMANDS: dict[str, list[str]] = {
    "train": ["train", "@a.jsonl", "-o", "@new.onl", "--test", "@new.jsonl", "--max-bad", "1"],
    "train a learner": ["train", "@a.jsonl", "-o", "@new.onl", "--learner", "Mixture"],
    "train a column": ["train", "@target.jsonl", "-o", "@new.onl", "--target", f"{EVIL}target"],
    "train multilabel": ["train", "@several.jsonl", "-o", "@new.onl", "--task", "multilabel", "--holdout", "20%"],
    "train bad rows": ["train", "@bad.jsonl", "-o", "@new.onl"],
    "train fasttext": ["train", "@a.txt", "-o", "@new.onl", "--holdout", "10%"],
    "train json": ["train", "@a.jsonl", "-o", "@new.onl", "--json"],
    "train a tagger": ["train", "@tags.conll", "-o", "@new.onl", "--test", "@tags.conll"],
    "train report": ["train", "@a.jsonl", "-o", "@new.onl", "--report", "@report.json"],
    "train bytes": ["train", f"@{RAW}.jsonl", "-o", f"@{RAW}.onl", "--test", f"@{RAW}.jsonl"],
    "tune": ["tune", "@a.jsonl", "--configurations", "2", "--table", "@table.json"],
    "stream": ["stream", "@a.jsonl", "-o", "@stream.onl", "--every", "50"],
    "predict": ["predict", "@a.onl", "@a.jsonl", "--proba"],
    "predict json": ["predict", "@a.onl", "@a.jsonl", "--format-out", "jsonl", "--top", "2"],
    "predict several files": ["predict", "@a.onl", "@a.jsonl", "@new.jsonl"],
    "predict bytes": ["predict", "@a.onl", "@a.jsonl", f"@{RAW}.jsonl"],
    "predict tags": ["predict", "@tags.onl", "@tags.conll"],
    "predict tags json": ["predict", "@tags.onl", "@tags.conll", "--format-out", "jsonl"],
    "predict an id": ["predict", "@a.onl", "@a.jsonl", "--id", f"{EVIL}text"],
    "evaluate": ["evaluate", "@a.onl", "@a.jsonl"],
    "evaluate unknown labels": ["evaluate", "@a.onl", "@new.jsonl"],
    "evaluate multilabel": ["evaluate", "@several.onl", "@several.jsonl"],
    "evaluate tags": ["evaluate", "@tags.onl", "@tags.conll"],
    "evaluate json": ["evaluate", "@a.onl", "@a.jsonl", "--json"],
    "compare": ["compare", "@a.jsonl", "--learner", "Perceptron", "--learner", "NaiveBayes"],
    "inspect": ["inspect", "@a.onl"],
    "inspect a kernel": ["inspect", "@kernel.onl"],
    "inspect tags": ["inspect", "@tags.onl"],
    "inspect namespaces": ["inspect", "@vw.onl"],
    "inspect json": ["inspect", "@a.onl", "--json"],
    "explain": ["explain", "@a.onl", "--at", "@a.jsonl:2"],
    "explain a kernel": ["explain", "@kernel.onl", "--at", "@a.jsonl:2"],
    "explain tags": ["explain", "@tags.onl", f"see you{EVIL}"],
    "explain json": ["explain", "@a.onl", "--at", "@a.jsonl:2", "--json"],
    "data describe": ["data", "describe", "@a.jsonl"],
    "data describe bad rows": ["data", "describe", "@bad.jsonl"],
    "data describe json": ["data", "describe", "@a.jsonl", "--json"],
    "data list": ["data", "list"],
    "bounds recommend": ["bounds", "recommend", "@a.jsonl"],
    "bounds plot": ["bounds", "plot", "parabola", "-o", "@plot.svg"],
}  # fmt: skip
REFUSED: dict[str, list[str]] = {
    "no command": [EVIL],
    "no option": ["train", f"--{EVIL}"],
    "no file": ["train", "@none", "-o", "@new.onl"],
    "no model": ["predict", "@none", "@a.jsonl"],
    "no folder": ["train", "@a.jsonl", "-o", f"@none/{EVIL}"],
    "a folder": ["predict", "@a.onl", "@a.jsonl", "-o", "@folder"],
    "not a model": ["inspect", "@a.jsonl"],
    "not a number": ["train", "@a.jsonl", "-o", "@new.onl", "--passes", EVIL],
    "no target": ["train", "@a.jsonl", "-o", "@new.onl", "--target", EVIL],
    "no label": ["inspect", "@a.onl", "--class", EVIL],
    "no positive label": ["predict", "@a.onl", "@a.jsonl", "--threshold", "0.5", "--positive", EVIL],
    "no learner": ["train", "@a.jsonl", "-o", "@new.onl", "--learner", EVIL],
    "no rule": ["train", "@a.jsonl", "-o", "@new.onl", "--rule", EVIL],
    "no kernel": ["train", "@a.jsonl", "-o", "@new.onl", "--kernel", EVIL],
    "no format": ["train", "@a.jsonl", "-o", "@new.onl", "--format", EVIL],
    "no format of the output": ["predict", "@a.onl", "@a.jsonl", "--format-out", EVIL],
    "no column": ["train", "@a.jsonl", "-o", "@new.onl", "--numeric", EVIL],
    "no place": ["explain", "@a.onl", "--at", EVIL],
    "no JSON": ["explain", "@a.onl", "{" + EVIL],
    "no UTF-8": ["explain", "@vw.onl", f"|words {RAW}"],
    "no UTF-8 text": ["explain", "@a.onl", "--text", RAW],
    "no UTF-8 sentence": ["explain", "@tags.onl", RAW],
    "no known column": ["explain", "@a.onl", json.dumps({EVIL: 1})],
    "no cluster": ["train", "@a.jsonl", "-o", "@new.onl", "--cluster", EVIL],
    "no space": ["tune", "@a.jsonl", "--space", EVIL],
    "no peer": ["compare", "@a.jsonl", "--peer", EVIL],
    "no set": ["data", "fetch", EVIL],
    "no data for demo": ["demo", "--data", EVIL],
    "no picture": ["bounds", "plot", EVIL, "-o", "@plot.svg"],
    "no weights": ["bounds", "additive", "@a.jsonl", "--u", EVIL],
    "a bad row": ["train", "@bad.jsonl", "-o", "@new.onl", "--strict"],
    "numbers": ["train", "@a.jsonl", "-o", "@new.onl", "--task", "regress"],
    "drift": ["stream", "@a.jsonl", "-o", "@new.onl", "--drift", EVIL],
    "threshold": ["train", "@a.jsonl", "-o", "@new.onl", "--threshold", EVIL],
}  # fmt: skip


class Terminal:
    """Runs commands with both streams at a pseudo-terminal; tells the exit code, and what was written there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def __call__(self, arguments: list[str]) -> tuple[int, bytes]:
        import tty

        ours, theirs = pty.openpty()
        tty.setraw(theirs)  # newlines stay what they are
        parts: list[bytes] = []

        def read() -> None:
            with suppress(OSError):  # the other end is closed
                while part := os.read(ours, 1 << 16):
                    parts.append(part)

        reading = threading.Thread(target=read)
        with open(os.dup(theirs), "w", encoding="utf-8") as out, open(theirs, "w", encoding="utf-8") as err:
            reading.start()
            with self.monkeypatch.context() as patch:
                patch.setattr(sys, "stdout", out)
                patch.setattr(sys, "stderr", err)
                code = cli.run(arguments)
        reading.join()
        os.close(ours)
        return code, b"".join(parts)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "dumb")  # so that Rich itself writes nothing that is obeyed
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    return Terminal(monkeypatch)


def spelled(arguments: list[str], kit: Hostile) -> list[str]:
    return [kit(one[1:]) if one.startswith("@") else one for one in arguments]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_terminal_gets_nothing_to_obey(name, hostile, terminal, monkeypatch):
    monkeypatch.setenv("ONLEARN_DATA", str(hostile.folder))
    code, written = terminal(spelled(COMMANDS[name], hostile))
    assert code == 0, written.decode()
    assert unseen(written, kept="\n\t" if name.startswith("predict tags") else "\n") == []
    assert written


@pytest.mark.parametrize("name", REFUSED)
def test_nor_does_it_of_errors(name, hostile, terminal):
    code, written = terminal(spelled(REFUSED[name], hostile))
    assert code == 2, written.decode()
    assert unseen(written) == []
    assert b"onlearn: " in written


EXACT = [name for name in COMMANDS if name.startswith("predict")] + ["bounds plot"]  # data, for programs


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in EXACT])
def test_nor_does_a_file_or_a_pipe(name, hostile, capfdbinary):
    assert cli.run(spelled(COMMANDS[name], hostile)) == 0
    written = capfdbinary.readouterr()
    assert unseen(written.out + written.err) == []


@pytest.mark.parametrize("name", REFUSED)
def test_errors_are_one_line(name, hostile, capfdbinary):
    assert cli.run(spelled(REFUSED[name], hostile)) == 2
    written = capfdbinary.readouterr()
    assert unseen(written.err) == []
    assert written.err.splitlines()[-1].startswith(b"onlearn: ")


def test_data_stay_what_they_are(hostile, capfdbinary, tmp_path):
    """To a file and to a pipe predictions are exact; so are the names of files."""
    out = tmp_path / "out.csv"
    assert cli.run(["predict", hostile("a.onl"), hostile("a.jsonl"), "-o", str(out)]) == 0
    assert cli.run(["predict", hostile("a.onl"), hostile("a.jsonl")]) == 0
    written = capfdbinary.readouterr().out
    assert written == out.read_bytes()
    with open(out, encoding="utf-8", newline="") as file:
        assert {row["prediction"] for row in csv.DictReader(file)} == {f"{EVIL}yes", f"{EVIL}no"}
    picture = os.fsencode(hostile(f"{RAW}.svg"))
    assert cli.run(["bounds", "plot", "parabola", "-o", os.fsdecode(picture)]) == 0
    assert capfdbinary.readouterr().out == picture + b"\n"


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_predictions_are_utf_8_though_names_of_files_are_not(form, hostile, capfdbinary):
    """Bytes that no text can hold are escapes in the column of files, so that other programs read the rest."""
    names = [hostile("a.jsonl"), hostile(f"{RAW}.jsonl")]
    assert cli.run(["predict", hostile("a.onl"), *names, "--format-out", form]) == 0
    text = io.StringIO(capfdbinary.readouterr().out.decode(), newline="\n")
    found = [row["file"] for row in (csv.DictReader(text) if form == "csv" else map(json.loads, text))]
    assert found == [names[0]] * 120 + [names[1].replace(RAW, "\\xff")] * 120


@pytest.mark.parametrize("name", ["train", "train a tagger", "train bad rows", "tune", "explain"])
def test_with_colours_and_progress(name, hostile, terminal, monkeypatch):
    """What is obeyed is colours, and moves of the line of progress, no links, titles or others."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR")
    code, written = terminal(spelled(COMMANDS[name], hostile))
    assert code == 0, written.decode()
    own = re.compile(rb"\x1b\[(\?25[lh]|[0-9;]*m|[0-9]*[AK])")
    assert own.search(written)
    assert unseen(own.sub(b"", written), kept="\n\r") == []


def test_commands_print_by_one_module():
    """What is printed in another way would not be escaped."""
    folder = Path(cli.__file__).parent
    for path in sorted(folder.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if path.name in ("terminal.py", "console.py"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                constant = all(isinstance(one, ast.Constant) for one in node.args)
                assert called != "print" or constant, f"{path.name}, line {node.lineno}"
                assert called not in ("typer.echo", "typer.secho", "sys.stdout.write", "sys.stderr.write"), path.name
            if isinstance(node, ast.ImportFrom):
                assert node.module not in ("rich", "rich.console", "rich.text", "rich.markup") or (
                    [one.name for one in node.names] == ["box"]
                ), f"{path.name}, line {node.lineno}: use PlainConsole and plain strings"


def test_labels_that_the_encoding_of_the_output_lacks(tmp_path):
    data, environment = tmp_path / "a.jsonl", {**os.environ, "PYTHONIOENCODING": "ascii"}
    data.write_text("".join(json.dumps({"label": f"\u65e5{n % 2}", "x": n % 2}) + "\n" for n in range(20)))
    line = [
        sys.executable,
        "-m",
        "onlearn",
        "train",
        str(data),
        "-o",
        str(tmp_path / "m.onl"),
        "--classes",
        "\u65e50,\u65e51",
    ]
    done = subprocess.run(line, env=environment, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u65e50, \\u65e51" in done.stdout
