"""Models and data for the tests of commands; and how to call them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import onlearn
from onlearn import cli
from onlearn.features import Text
from sample_models import MESSAGES, trained

FLOWERS = ["rose", "lily", "iris, blue"]


class Kit(NamedTuple):
    """A folder of models with the data they were trained on, of the same name."""

    folder: Path

    def __getattr__(self, name: str) -> str:
        return str(self.folder / name.replace("_", "."))

    def __call__(self, name: str) -> str:
        return str(self.folder / name)


@pytest.fixture(scope="session")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    folder = tmp_path_factory.mktemp("kit")
    rng = np.random.default_rng(0)

    text = folder / "text.jsonl"
    text.write_text("".join(json.dumps({"label": y, "text": x}) + "\n" for y, x in MESSAGES * 10))
    trained(text, extractors=[Text("text", prefix="")]).save(folder / "text.onl")

    table = folder / "table.csv"
    kinds = rng.integers(0, 3, 300)
    rows = [f'{k / 10 + rng.random():.3f},{"low" if k else "high"},{n},"{FLOWERS[k]}"' for n, k in enumerate(kinds)]
    table.write_text("\n".join(["size,place,key,label", *rows]) + "\n")
    trained(table, id="key").save(folder / "table.onl")

    sparse = folder / "sparse.svm"
    X, y = rng.integers(0, 2, (200, 8)), rng.choice([-1, 1], 200)
    X[:, 0] = y > 0
    sparse.write_text(
        "".join(f"{y[n]:+d} " + " ".join(f"{k + 1}:{v}" for k, v in enumerate(X[n]) if v) + "\n" for n in range(200))
    )
    trained(sparse).save(folder / "sparse.onl")
    onlearn.AveragedPerceptron(random_state=0).fit(np.c_[np.zeros(200), X], y).save(folder / "bare.onl")
    onlearn.VotedPerceptron(random_state=0).fit(np.c_[np.zeros(200), X], y).save(folder / "voted.onl")

    named = folder / "named.vw"
    named.write_text("".join(f"{1 if k else -1} 'tag{n}|a {'sun' if k else 'rain'} day |b x:{n % 3}\n"
                             for n, k in enumerate(rng.integers(0, 2, 100))))  # fmt: skip
    trained(named).save(folder / "named.onl")

    numbers = folder / "numbers.csv"
    x = rng.random((300, 2))
    numbers.write_text("\n".join(["a,b,y", *(f"{a:.4f},{b:.4f},{100 + 30 * a - 10 * b:.4f}" for a, b in x)]) + "\n")
    trained(numbers, task="regress").save(folder / "numbers.onl")
    return Kit(folder)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command that is to succeed; what it printed."""

    def call(*arguments: Any, err: str | None = "") -> str:
        code = cli.run([str(one) for one in arguments])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        if err is not None:
            assert captured.err == err if not err else err in captured.err
        return captured.out

    return call


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command that is to be refused: exit code 2, no results printed; the one sentence on stderr."""

    def call(*arguments: Any, code: int = 2) -> str:
        assert cli.run([str(one) for one in arguments]) == code
        captured = capsys.readouterr()
        # Of training, what was decided may have been printed before the data turned out to be wrong.
        assert captured.out == "" or (arguments[0] == "train" and "examples/s" not in captured.out)
        assert captured.err.startswith("onlearn: ")
        assert captured.err.count("\n") == 1
        return captured.err

    return call
