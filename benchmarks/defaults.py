"""Nothing said, on data that nobody tuned for: accuracy and log-loss of the defaults beside those of peers.

The sets are those of ``unseen.py``. Ours: ``onlearn.train(FILE)``, no option. For texts: TfidfVectorizer of words with
LinearSVC, fastText (pairs of words, 25 epochs), Vowpal Wabbit (the same tokens, --ngram 2, three passes). For tables:
StandardScaler of numbers and OneHotEncoder of words with LogisticRegression, its C by cross-validation; Vowpal Wabbit
(--loss_function logistic, three passes, numbers as they stand). Times are from file to model, of one turn. Below each
time is the accuracy on the test rows; log-losses, of those that predict probabilities, are in rows of their own. Needs
ONLEARN_DATA.
"""

from __future__ import annotations

import csv
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import fast_text
import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from timing import OURS, Row
from unseen import SETS, Set

import onlearn

Judged = tuple[np.ndarray, np.ndarray | None, np.ndarray]  # predicted labels, probabilities, the names of their columns
QUICK = ("sms_spam", "trec", "voting", "small")


def texts(path: Path) -> tuple[list[str], np.ndarray]:
    with open(path, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row["text"] for row in rows], np.array([row["label"] for row in rows])


def table(path: Path) -> tuple[list[list[str]], np.ndarray]:
    with open(path, newline="", encoding="utf-8") as file:
        rows = [*csv.reader(file)][1:]
    return [row[:-1] for row in rows], np.array([row[-1] for row in rows])


def labels_of(made: Set) -> np.ndarray:
    if made.kind == "text":
        return texts(made.test)[1]
    if made.kind == "table":
        return table(made.test)[1]
    return np.array([line.split(" ", 1)[0] for line in made.test.read_text().splitlines()])


def ours(made: Set) -> Callable[[], Judged]:
    model: Any = onlearn.train(made.train)

    def judge() -> Judged:
        chances = np.vstack([model.predict_proba(batch.parsed) for batch in model.read([str(made.test)])])
        names = np.array(model.labels)
        return names[chances.argmax(axis=1)], chances, names

    return judge


def linear_svc(made: Set) -> Callable[[], Judged]:
    X, y = texts(made.train)
    model = make_pipeline(TfidfVectorizer(sublinear_tf=True), LinearSVC()).fit(X, y)
    return lambda: (model.predict(texts(made.test)[0]), None, model.classes_)


def fasttext(made: Set) -> Callable[[], Judged]:
    X, y = texts(made.train)
    with tempfile.TemporaryDirectory() as folder:
        predict = fast_text.learn(X, y.tolist(), Path(folder), epochs=25)
    return lambda: (np.asarray(predict(texts(made.test)[0])), None, np.unique(y))


def numeric(rows: list[list[str]]) -> list[bool]:
    """Which columns hold numbers only."""
    number = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|")
    return [all(number.fullmatch(value) for value in column) for column in zip(*rows)]


def logistic_regression(made: Set) -> Callable[[], Judged]:
    model = LogisticRegressionCV(Cs=[0.03, 0.3, 3.0], cv=3, max_iter=300, scoring="neg_log_loss")
    if made.kind == "svmlight":
        X, y = load_svmlight_file(str(made.train))
        model.fit(X, y.astype(int))
        test, _ = load_svmlight_file(str(made.test), n_features=X.shape[1])
        return lambda: as_judged(model.predict_proba(test), model.classes_)
    rows, y = table(made.train)
    which = np.array(numeric(rows))
    cells = np.array(rows, dtype=object)
    scaler, encoder = StandardScaler(), OneHotEncoder(handle_unknown="ignore")

    def matrix(cells: np.ndarray, learn: bool) -> Any:
        parts = []
        if which.any():
            numbers = np.where(cells[:, which] == "", "0", cells[:, which]).astype(float)
            parts.append(sp.csr_matrix(scaler.fit_transform(numbers) if learn else scaler.transform(numbers)))
        if not which.all():
            words = cells[:, ~which].astype(str)
            parts.append(encoder.fit_transform(words) if learn else encoder.transform(words))
        return sp.hstack(parts).tocsr()

    model.fit(matrix(cells, learn=True), y)
    return lambda: as_judged(
        model.predict_proba(matrix(np.array(table(made.test)[0], dtype=object), learn=False)), model.classes_
    )


def as_judged(chances: np.ndarray, names: np.ndarray) -> Judged:
    names = np.array([f"{name:+d}" if isinstance(name, np.integer) else str(name) for name in names])
    return names[chances.argmax(axis=1)], chances, names


def vowpal(made: Set) -> Callable[[], Judged]:
    from vowpalwabbit import pyvw

    which: list[bool] = []

    def lines(path: Path) -> tuple[list[str], np.ndarray]:
        if made.kind == "text":
            given, y = texts(path)
            return [" |t " + " ".join(re.findall(r"\w+", text.lower())) for text in given], y
        if made.kind == "svmlight":
            pairs = [line.split(" ", 1) for line in path.read_text().splitlines()]
            return [" |a " + rest for _, rest in pairs], np.array([label for label, _ in pairs])
        rows, y = table(path)
        which[:] = which or numeric(rows)

        def spelled(row: list[str]) -> str:
            cells = enumerate(zip(row, which))
            return " ".join(f"f{n}:{v}" if number else f"f{n}={hash_free(v)}" for n, (v, number) in cells if v)

        return [" |a " + spelled(row) for row in rows], y

    given, y = lines(made.train)
    names = np.unique(y)
    number = {name: n + 1 if len(names) > 2 else 2 * n - 1 for n, name in enumerate(names)}
    kind = f"--oaa {len(names)} --probabilities" if len(names) > 2 else "--link logistic"
    ngram = "--ngram 2" if made.kind == "text" else ""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "rows.vw")
        order = np.random.default_rng(0).permutation(len(y))
        source.write_text("".join(f"{number[y[n]]}{given[n]}\n" for n in order), encoding="utf-8")
        said = f"--loss_function logistic {kind} {ngram} -b 22 --passes 3 --holdout_off --quiet"
        pyvw.Workspace(f"-d {source} --cache_file {folder}/cache -f {folder}/m {said}").finish()
        learned = Path(folder, "m").read_bytes()

    def judge() -> Judged:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "m").write_bytes(learned)
            model = pyvw.Workspace(f"-i {folder}/m -t --quiet {'--probabilities' if len(names) > 2 else ''}")
            said = np.array([model.predict(line) for line in lines(made.test)[0]])
            model.finish()
        chances = said if said.ndim == 2 else np.column_stack([1 - said, said])
        return names[chances.argmax(axis=1)], chances, names

    return judge


def hash_free(value: str) -> str:
    """A value without the characters that Vowpal Wabbit's format is made of."""
    return re.sub(r"[\s:|]", "_", value)


def log_loss(chances: np.ndarray, names: np.ndarray, y: np.ndarray) -> float:
    places = {name: place for place, name in enumerate(names)}
    right = np.array([chances[n, places[label]] if label in places else 0.0 for n, label in enumerate(y)])
    return float(-np.log(np.clip(right, 1e-15, 1.0)).mean())


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    home = Path(os.environ.get("ONLEARN_DATA", ""))
    if not os.environ.get("ONLEARN_DATA") or not home.is_dir():
        print("defaults: set ONLEARN_DATA to the folder that holds the data")
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in QUICK if quick else SETS:
            made = SETS[name](home, Path(folder))
            yield from judged(name, made)


def judged(name: str, made: Set) -> Iterator[Row]:
    """What each contender took, and what it is worth on the test rows."""
    contenders: dict[str, Callable[[Set], Callable[[], Judged]] | None] = {OURS: ours}
    if made.kind == "text":
        contenders |= {"tf-idf + LinearSVC": linear_svc, "fastText": fasttext if fast_text.THERE else None}
    else:
        contenders |= {"LogisticRegression": logistic_regression}
    contenders["Vowpal Wabbit"] = vowpal if find_spec("vowpalwabbit") else None
    y = labels_of(made)
    taken: dict[str, list[float]] = {}
    right: dict[str, list[float]] = {}
    losses: dict[str, list[float]] = {}
    for contender, learn in contenders.items():
        if learn is None:
            taken[contender] = []
            continue
        began = time.perf_counter()
        judge = learn(made)
        taken[contender] = [time.perf_counter() - began]
        answers, chances, names = judge()
        right[contender] = [float((answers == y).mean())]
        if chances is not None:
            losses[contender] = [log_loss(chances, names, y)]
    yield Row(name, taken, right)
    yield Row(f"{name}, log-loss of the test rows", losses, {}, unit="nats")
