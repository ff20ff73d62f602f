"""How commands end when Ctrl-C comes, when streams are closed, and when a file holds something else than a learner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onlearn
from onlearn.cli import run
from onlearn.models import Model, evaluation

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(onlearn.__file__).parents[1])}
TRANSFORMERS = {
    "RandomKitchenSinks": onlearn.RandomKitchenSinks(n_components=8),
    "Nystroem": onlearn.Nystroem(n_components=8),
    "FeatureHasher": onlearn.FeatureHasher(n_features=64),
    "RandomProjection": onlearn.RandomProjection(n_components=4),
}
# Ctrl-C comes when a certain module is imported: a moment that is the same in every run.
INTERRUPTED = """
import signal, sys
class Press:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            {made}
sys.meta_path.insert(0, Press())
for name in ("gc", "threading", "contextlib", "typing"):
    sys.modules.pop(name, None)
sys.argv = ["onlearn", "data", "list"]
from onlearn.cli import main
sys.exit(main())
"""
DIRECTLY = "signal.raise_signal(signal.SIGINT)"


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "a.svm"
    path.write_text("yes 1:1\nno 2:1\n" * 50)
    return str(path)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    for name, made in TRANSFORMERS.items():
        made.fit(np.eye(30)).save(folder / f"{name}.onl")
    return folder


def pressing(monkeypatch, owner, name, times=1):
    """Ctrl-C comes when a function is called, which then does what it does."""
    real = getattr(owner, name)

    def pressed(*given, **named):
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        return real(*given, **named)

    monkeypatch.setattr(owner, name, pressed)


# ---------------------------------------------------------------- Ctrl-C


def test_ctrl_c_while_the_model_is_saved_waits_for_it(tmp_path, rows, monkeypatch, capsys):
    pressing(monkeypatch, Model, "save")
    monkeypatch.setattr(evaluation, "evaluate", lambda *_: pytest.fail("evaluated after Ctrl-C"))
    out = tmp_path / "m.onl"
    assert run(["train", rows, "-o", str(out), "--test", rows]) == 130
    captured = capsys.readouterr()
    assert captured.err == f"onlearn: stopped by Ctrl-C; the finished model is in {out}\n"
    assert "first pass" in captured.out
    assert onlearn.load(out).trained.get("unfinished") is None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_does_not_wait(tmp_path, rows, monkeypatch, capsys):
    pressing(monkeypatch, Model, "save", times=2)
    out = tmp_path / "m.onl"
    assert run(["train", rows, "-o", str(out)]) == 130
    assert f"before the model was written to {out}\n" in capsys.readouterr().err
    assert not out.exists()


def test_ctrl_c_while_the_model_is_tested(tmp_path, rows, monkeypatch, capsys):
    pressing(monkeypatch, evaluation, "evaluate")
    out = tmp_path / "m.onl"
    assert run(["train", rows, "-o", str(out), "--test", rows]) == 130
    captured = capsys.readouterr()
    assert captured.err == f"onlearn: stopped by Ctrl-C; the finished model is in {out}\n"
    assert "first pass" in captured.out
    assert onlearn.load(out).labels == ["no", "yes"]


@pytest.mark.parametrize("module", ["gc", "typing", "typer", "onlearn.cli.data"])
def test_ctrl_c_before_anything_has_begun(module):
    code = INTERRUPTED.format(module=module, made=DIRECTLY)
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "onlearn: stopped\n")


def test_ctrl_c_in_code_made_of_a_string(tmp_path):
    """``python -m`` remembers it, and would end by the signal however it was answered."""
    code = INTERRUPTED.format(module="onlearn.cli.data", made=f"exec({DIRECTLY!r})")
    (tmp_path / "pressed.py").write_text(code)
    line = [sys.executable, "-m", "pressed"]
    done = subprocess.run(line, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "onlearn: stopped\n")


# ---------------------------------------------------------------- closed streams


def closed(streams, *arguments):
    line = ["sh", "-c", f'exec "$@" {streams}', "sh", sys.executable, "-m", "onlearn", *map(str, arguments)]
    return subprocess.run(line, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)


def test_closed_standard_input(kit):
    done = closed("<&-", "predict", kit.text_onl, "-", "--format", "jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "onlearn: standard input is closed, so nothing can be read from it\n"


@pytest.mark.parametrize("arguments", [["evaluate", "--json"], ["evaluate"], ["predict"]])
def test_closed_standard_output(kit, arguments):
    done = closed(">&-", arguments[0], kit.text_onl, kit.text_jsonl, *arguments[1:])
    assert (done.returncode, done.stderr) == (2, "onlearn: standard output is closed\n")


def test_who_needs_no_standard_streams_does_without(kit, tmp_path):
    out = tmp_path / "p.csv"
    assert closed("<&- >&- 2>&-", "predict", kit.text_onl, kit.text_jsonl, "-o", out).returncode == 0
    assert len(out.read_text().splitlines()) > 10


# ---------------------------------------------------------------- files that hold no learner


@pytest.mark.parametrize("name", TRANSFORMERS)
@pytest.mark.parametrize(
    "command",
    [
        "inspect {model}",
        "evaluate {model} {rows}",
        "predict {model} {rows} --scores --proba",
        "explain {model} {rows}",
        "train {rows} -o {out} --resume {model}",
    ],
)
def test_transformers_are_no_learners(saved, rows, tmp_path, refused, name, command):
    model = saved / f"{name}.onl"
    words = command.format(model=model, rows=rows, out=tmp_path / "m.onl").split()
    assert f"{model} holds a transformer ({name}), not a learner: " in refused(*words)


# ---------------------------------------------------------------- ways to run a command


def test_python_runs_the_package():
    line = [sys.executable, "-m", "onlearn", "--version"]
    done = subprocess.run(line, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"onlearn {onlearn.__version__}\n", "")


def test_a_command_in_a_program_leaves_imports_alone(capsys):
    before = list(sys.meta_path)
    assert run(["--version"]) == 0
    assert sys.meta_path == before
