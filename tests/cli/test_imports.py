"""What commands, and the layers they are made of, do not import: scikit-learn, SciPy and pandas."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sample_models import MESSAGES

FILES = {
    "rows.csv": "label,n,c\n" + "".join(f"{'ab'[n % 2]},{n % 7}.5,{'xyz'[n % 3]}\n" for n in range(40)),
    "rows.jsonl": "".join(f'{{"label": "{label}", "text": "{text}", "n": 1}}\n' for label, text in MESSAGES * 5),
    "rows.svm": "".join(f"{n % 2} {n % 2 + 1}:1 {n % 5 + 3}:0.5 70000000:1\n" for n in range(40)),
    "rows.vw": "".join(f"{n % 2 * 2 - 1} |f {'xyz'[n % 3]}:2 w{n % 2}\n" for n in range(40)),
    "rows.txt": "".join(f"__label__{label} {text}\n" for label, text in MESSAGES * 5),
}
ROWS = {"rows.csv": '{"n": 1, "c": "x"}', "rows.jsonl": '{"text": "cheap"}', "rows.svm": "1 1:1", "rows.vw": "|f x:2"}
SHOW = 'print([name for name in ("sklearn", "scipy", "pandas") if name in sys.modules])'
LAYERS = f"""
import sys
from onlearn import data
from onlearn.features.feature_map import FeatureMap
from onlearn.features.feature_map import Strings
for path in sys.argv[1:]:
    features = FeatureMap()
    for batch in data.read(path):
        X = features.learn_transform(batch.parsed)
        assert features.transform(batch.parsed).shape == X.shape
        assert (batch.codes >= 0).all() and batch.take(batch.lines[:3] - 1).slice(1, 3).parsed is not None
{SHOW}
"""
COMMAND = f"""
import sys
from onlearn.cli import run
assert run(sys.argv[1:]) == 0
{SHOW}
"""


def imported(code: str, *arguments: str) -> str:
    """Which of them a program imports; if any, once more: it may have had to compile, and Numba imports SciPy."""
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        if (found := done.stdout.splitlines()[-1]) == "[]":
            break
    return found


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_readers_and_features(folder):
    assert imported(LAYERS, *(str(folder / name) for name in FILES)) == "[]"


@pytest.mark.parametrize("name", ROWS)
def test_commands(folder, name):
    path, model = str(folder / name), str(folder / "m.onl")
    for command in (
        ["train", path, "-o", model],
        ["stream", path, "-o", model, "--resume", model, "--drift", "adwin"],
        ["predict", model, path, "--proba"],
        ["predict", model, path, "--format-out", "jsonl", "--scores", "--top", "2", "--threshold", "0.5"],
        ["evaluate", model, path],
        ["inspect", model],
        ["explain", model, ROWS[name]],
        ["explain", model, "--at", f"{path}:2"],
        ["data", "describe", path],
    ):
        assert imported(COMMAND, *command) == "[]", command


KERNELS = {"rows.csv": "gaussian", "rows.svm": "polynomial(2)", "rows.txt": "substrings(2, 3)"}


@pytest.mark.parametrize("name", KERNELS)
def test_commands_with_a_kernel(folder, name):
    path, model = str(folder / name), str(folder / "m.onl")
    for command in (
        ["train", path, "-o", model, "--kernel", KERNELS[name]],
        ["train", path, "-o", model, "--resume", model],
        ["predict", model, path, "--proba"],
        ["evaluate", model, path],
        ["inspect", model],
        ["explain", model, "--at", f"{path}:2"],
    ):
        assert imported(COMMAND, *command) == "[]", command


TOKENS = "the DT B-NP\ndog NN I-NP\nbarks VBZ B-VP\n\n"


@pytest.mark.parametrize("learner", ["structured-perceptron", "hmm", "crf(solver='sgd')"])
def test_commands_with_a_tagger(tmp_path, learner):
    path, model, raw = str(tmp_path / "a.conll"), str(tmp_path / "m.onl"), str(tmp_path / "raw.conll")
    (tmp_path / "a.conll").write_text(TOKENS * 20)
    (tmp_path / "raw.conll").write_text("the DT\ndog NN\n\n")
    for command in (
        ["train", path, "-o", model, "--learner", learner, "--test", path],
        ["train", path, "-o", model, "--resume", model],
        ["predict", model, raw],
        ["evaluate", model, path],
        ["inspect", model],
        ["explain", model, "--at", f"{path}:2"],
    ):
        assert imported(COMMAND, *command) == "[]", command
