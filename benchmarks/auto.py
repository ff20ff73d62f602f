"""``train --learner auto`` against tuned peers: from a file to a model, nothing known about the data.

onlearn: ``onlearn train FILE -o MODEL --learner auto`` as a command, start-up and saving included. SGDClassifier: loss,
alpha and averaging by HalvingGridSearchCV on both cores. LinearSVC (LIBLINEAR): C by cross-validation in three folds,
on both cores. These two learn from tf-idf of words and pairs of words, from scaled numbers and from one-hot categories;
reading and vectorising count, as they do for us. Vowpal Wabbit: one pass with its defaults (--loss_function logistic,
or --oaa), on the same tokens or columns. Each contender takes one turn, ours the best of ``--repeat``. Below each time
is the accuracy on the test rows. Needs ONLEARN_DATA.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_svmlight_file
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 (the next import needs it)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from timing import OURS, Row

import onlearn
from onlearn.models import evaluate

GRID = {
    "loss": ["hinge", "log_loss", "modified_huber"],
    "alpha": np.logspace(-7, -2, 6),
    "average": [False, True],
}
STRENGTHS = {"C": np.logspace(-3, 2, 6)}


class Task(NamedTuple):
    """A data set: files for us; rows (texts, lists of cells, or a matrix) and labels for the peers."""

    name: str
    train: Path
    test: Path
    rows: Callable[[Path], tuple[Any, np.ndarray]]
    numbers: tuple[int, ...] = ()  # the places of numeric columns of a table
    target: str | None = None


def texts(path: Path) -> tuple[list[str], np.ndarray]:
    with open(path, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row["text"] for row in rows], np.array([row["label"] for row in rows])


def cells(path: Path) -> tuple[list[list[str]], np.ndarray]:
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    return [row[:-1] for row in rows], np.array([row[-1] for row in rows])


def matrix(path: Path) -> tuple[Any, np.ndarray]:
    X, y = load_svmlight_file(str(path), n_features=123)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # as LIBLINEAR needs them
    return X, np.where(y > 0, "1", "-1")


def tasks(home: Path, folder: Path, quick: bool) -> Iterator[Task]:
    """The data sets, written as files into a folder."""
    most = 1000 if quick else None
    for name in ("imdb", "20news"):
        paths = [folder / f"{name}.{part}.jsonl" for part in ("train", "test")]
        for path, part in zip(paths, ("train", "test")):
            with gzip.open(home / name / f"{part}.jsonl.gz", "rt", encoding="utf-8") as lines:
                path.write_text("".join(list(lines)[:most]), encoding="utf-8")
        yield Task(name, *paths, texts)
    yield Task("a9a", home / "a9a" / "a9a.svm", home / "a9a" / "a9a.t.svm", matrix)
    train, test = (adult(home / "adult" / f"adult.{part}") for part in ("data", "test"))
    yield table("adult", folder, train[:most], test, (0, 2, 4, 10, 11, 12))
    with gzip.open(home / "covtype" / "covtype.csv.gz", "rt") as file:
        rows = list(csv.reader(file))[1:]
    cut = [[*row[:-1], str(int(row[-1] == "2"))] for row in rows]
    yield table("covtype", folder, *halves(cut, most), tuple(range(54)))
    with open(home / "spambase" / "spambase.data", newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    split = (home / "spambase" / "traintest.txt").read_text().split()
    parts = [[row for row, part in zip(rows, split) if part == which] for which in "01"]
    yield table("spambase", folder, *parts, tuple(range(57)))
    with open(home / "mushroom" / "agaricus-lepiota.data", newline="") as file:
        rows = [[*row[1:], row[0]] for row in csv.reader(file) if row]
    yield table("mushroom", folder, *halves(rows, most), ())


def adult(path: Path) -> list[list[str]]:
    with open(path, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if len(row) == 15]
    return [[*row[:-1], row[-1].rstrip(".")] for row in rows]


def halves(rows: list[list[str]], most: int | None) -> tuple[list[list[str]], list[list[str]]]:
    """Four fifths of the rows to learn from, and the others."""
    order = np.random.default_rng(0).permutation(len(rows))
    cut = len(rows) * 4 // 5
    return [rows[k] for k in order[:cut][:most]], [rows[k] for k in order[cut:]]


def table(name: str, folder: Path, train: Any, test: Any, numbers: tuple[int, ...]) -> Task:
    paths = [folder / f"{name}.{part}.csv" for part in ("train", "test")]
    for path, rows in zip(paths, (train, test)):
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([[*(f"c{k}" for k in range(len(rows[0]) - 1)), "label"], *rows])
    return Task(name, *paths, cells, numbers, "label")


# ---------------------------------------------------------------------- contenders; each returns its test


def ours(task: Task, folder: Path, *said: str) -> Callable[[], float]:
    model = folder / "m.onl"
    target = [] if task.target is None else ["--target", task.target]
    line = ["train", str(task.train), "-o", str(model), "-q", *target, *said]
    subprocess.run([sys.executable, "-m", "onlearn.cli", *line], check=True)

    def accuracy() -> float:
        learned = onlearn.load(model)
        with learned.read(str(task.test), labels="required") as reader:
            return float(evaluate(learned, reader).report()["accuracy"])

    return accuracy


def vectorizer(task: Task) -> Any:
    if task.rows is texts:
        return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    if task.rows is matrix:
        return None
    words = [k for k in range(len(task.rows(task.train)[0][0])) if k not in task.numbers]
    parts = [(StandardScaler(), list(task.numbers))] * bool(task.numbers)
    return make_column_transformer(*parts, *([(OneHotEncoder(handle_unknown="ignore"), words)] * bool(words)))


def typed(task: Task, rows: Any) -> Any:
    """Rows as the vectorizer takes them: numeric cells as numbers."""
    if task.rows is not cells:
        return rows
    if len(task.numbers) == len(rows[0]):
        return np.array(rows, dtype=np.float64)
    made = [[float(v) if k in task.numbers else v for k, v in enumerate(row)] for row in rows]
    return np.array(made, dtype=object)


def tuned(task: Task, search: Any) -> Callable[[], float]:
    rows, y = task.rows(task.train)
    vectors = vectorizer(task)
    rows = typed(task, rows)
    search.fit(rows if vectors is None else vectors.fit_transform(rows), y)

    def accuracy() -> float:
        rows, y = task.rows(task.test)
        rows = typed(task, rows)
        return float(np.mean(search.predict(rows if vectors is None else vectors.transform(rows)) == y))

    return accuracy


def halving() -> Any:
    return HalvingGridSearchCV(SGDClassifier(random_state=0), GRID, cv=5, n_jobs=2, random_state=0, min_resources=500)


def liblinear() -> Any:
    return GridSearchCV(LinearSVC(random_state=0), STRENGTHS, cv=3, n_jobs=2)


def vw_line(task: Task, x: Any) -> str:
    if task.rows is texts:
        return " ".join(re.findall(r"\w+", x.lower()))
    if task.rows is matrix:
        return " ".join(f"{k}:{v:g}" for k, v in zip(x.indices, x.data))
    safe = [re.sub(r"[\s|:]", "_", v) for v in x]
    return " ".join(f"c{k}:{v}" if k in task.numbers else f"c{k}={v}" for k, v in enumerate(safe))


def vowpal_wabbit(task: Task, folder: Path) -> Callable[[], float]:
    from vowpalwabbit import Workspace

    rows, y = task.rows(task.train)
    labels = sorted(set(y))
    several = len(labels) > 2
    numbers = {label: k + 1 if several else 2 * k - 1 for k, label in enumerate(labels)}
    with open(folder / "rows.vw", "w", encoding="utf-8") as file:
        file.writelines(f"{numbers[label]} | {vw_line(task, x)}\n" for x, label in zip(rows, y))
    kind = f"--oaa {len(labels)}" if several else "--loss_function logistic --binary"
    Workspace(f"-d {folder}/rows.vw -f {folder}/m.vw --quiet {kind}").finish()

    def accuracy() -> float:
        model = Workspace(f"-i {folder}/m.vw -t --quiet")
        rows, y = task.rows(task.test)
        made = [model.predict(f"| {vw_line(task, x)}") for x in rows]
        model.finish()
        return float(np.mean([numbers[label] == one for label, one in zip(y, made)]))

    return accuracy


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    home = Path(os.environ.get("ONLEARN_DATA", ""))
    if not os.environ.get("ONLEARN_DATA") or not home.is_dir():
        print("auto: set ONLEARN_DATA to the folder that holds the data sets")
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for task in tasks(home, folder, quick):
            contenders: dict[str, Any] = {
                OURS: lambda t=task: ours(t, folder, "--learner", "auto"),
                "SGD, halving search": lambda t=task: tuned(t, halving()),
                "LIBLINEAR, C by folds": lambda t=task: tuned(t, liblinear()),
                "Vowpal Wabbit": (lambda t=task: vowpal_wabbit(t, folder)) if find_spec("vowpalwabbit") else None,
            }
            taken: dict[str, list[float]] = {name: [] for name in contenders}
            accuracy: dict[str, list[float]] = {}
            for name, run in contenders.items():
                for _ in range(0 if run is None else repeat if name == OURS else 1):
                    began = perf_counter()
                    test = run()
                    taken[name].append(perf_counter() - began)
                    accuracy.setdefault(name, []).append(test())
            yield Row(task.name, taken, accuracy)
