"""Data sets as files, to learn from with nothing said: those of ONLEARN_DATA, and simulated tables.

Each set is a file to learn from and the same kind of file to test on: JSON lines of texts, CSV tables with the column
``label``, or svmlight. Where a set has no test rows of its own, every fifth row is one. The simulated sets are what
real ones of their kind are like: whole numbers that are identifiers, a click log, a small noisy table, texts of many
very unequal classes.
"""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

Rows = list[list[str]]


class Set(NamedTuple):
    """A data set: its kind is "text", "table" or "svmlight"."""

    kind: str
    train: Path
    test: Path


def split(rows: list) -> tuple[list, list]:
    """Every fifth row of a fixed permutation is for testing."""
    order = np.random.default_rng(0).permutation(len(rows))
    return [rows[k] for n, k in enumerate(order) if n % 5], [rows[k] for n, k in enumerate(order) if n % 5 == 0]


def write_texts(folder: Path, name: str, train: list[tuple[str, str]], test: list[tuple[str, str]]) -> Set:
    made = Set("text", folder / f"{name}.jsonl", folder / f"{name}.test.jsonl")
    for path, rows in ((made.train, train), (made.test, test)):
        path.write_text("".join(json.dumps({"label": y, "text": x}) + "\n" for y, x in rows), encoding="utf-8")
    return made


def write_table(folder: Path, name: str, header: list[str], train: Rows, test: Rows) -> Set:
    made = Set("table", folder / f"{name}.csv", folder / f"{name}.test.csv")
    for path, rows in ((made.train, train), (made.test, test)):
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows])
    return made


# ---------------------------------------------------------------------- real ones


def json_lines(home: Path) -> list[list[tuple[str, str]]]:
    read = []
    for part in ("train", "test"):
        with gzip.open(home / f"{part}.jsonl.gz", "rt", encoding="utf-8") as lines:
            read.append([(row["label"], row["text"]) for row in map(json.loads, lines)])
    return read


def imdb(home: Path, folder: Path) -> Set:
    return write_texts(folder, "imdb", *json_lines(home / "imdb"))


def news(home: Path, folder: Path) -> Set:
    return write_texts(folder, "20news", *json_lines(home / "20news"))


def unequal_news(home: Path, folder: Path) -> Set:
    """Newsgroups whose sizes fall as 1, 1/2, 1/3, ...: the same shares in training and test rows."""
    parts = json_lines(home / "20news")
    names = sorted({label for label, _ in parts[0]})
    rank = {name: int(place) + 1 for name, place in zip(names, np.random.default_rng(1).permutation(len(names)))}
    rng = np.random.default_rng(2)
    kept = [[row for row in part if rng.random() < 1 / rank[row[0]]] for part in parts]
    return write_texts(folder, "unequal_news", *kept)


def sms_spam(home: Path, folder: Path) -> Set:
    lines = (home / "sms_spam" / "SMSSpamCollection.tsv").read_text(encoding="utf-8").splitlines()
    return write_texts(folder, "sms_spam", *split([tuple(line.split("\t", 1)) for line in lines]))


def trec(home: Path, folder: Path, fine: bool = False) -> Set:
    parts = []
    for part in ("train", "test"):
        lines = (home / "trec" / f"{part}.txt").read_text(encoding="latin-1").splitlines()
        pairs = [line.split(" ", 1) for line in lines]
        parts.append([(label if fine else label.partition(":")[0], text) for label, text in pairs])
    return write_texts(folder, "trec_fine" if fine else "trec", *parts)


def trec_fine(home: Path, folder: Path) -> Set:
    return trec(home, folder, fine=True)


def read_csv(path: Path) -> Rows:
    with open(path, newline="", encoding="utf-8") as file:
        return [row for row in csv.reader(file, skipinitialspace=True) if row]


def with_label(folder: Path, name: str, train: Rows, test: Rows, at: int = -1) -> Set:
    """A table whose label is in column ``at``; the other columns are called c0, c1, ..."""

    def moved(row: Rows) -> list[str]:
        row = list(row)
        label = row.pop(at)
        return ["" if value == "?" else value for value in row] + [label]

    header = [f"c{n}" for n in range(len(train[0]) - 1)] + ["label"]
    return write_table(folder, name, header, [*map(moved, train)], [*map(moved, test)])


def adult(home: Path, folder: Path) -> Set:
    train, test = (
        [[*row[:-1], row[-1].rstrip(".")] for row in read_csv(home / "adult" / f"adult.{part}") if len(row) == 15]
        for part in ("data", "test")
    )
    return with_label(folder, "adult", train, test)


def a9a(home: Path, folder: Path) -> Set:
    made = Set("svmlight", folder / "a9a.svm", folder / "a9a.test.svm")
    shutil.copy(home / "a9a" / "a9a.svm", made.train)
    shutil.copy(home / "a9a" / "a9a.t.svm", made.test)
    return made


def covtype(home: Path, folder: Path) -> Set:
    """Class 2 against the rest."""
    with gzip.open(home / "covtype" / "covtype.csv.gz", "rt") as file:
        rows = [*csv.reader(file)][1:]
    train, test = split([[*row[:-1], "two" if row[-1] == "2" else "other"] for row in rows])
    return with_label(folder, "covtype", train, test)


def spambase(home: Path, folder: Path) -> Set:
    rows = read_csv(home / "spambase" / "spambase.data")
    which = (home / "spambase" / "traintest.txt").read_text().split()
    train, test = ([row for row, w in zip(rows, which) if w == part] for part in "01")
    return with_label(folder, "spambase", train, test)


def mushroom(home: Path, folder: Path) -> Set:
    return with_label(folder, "mushroom", *split(read_csv(home / "mushroom" / "agaricus-lepiota.data")), at=0)


def letter(home: Path, folder: Path) -> Set:
    rows = read_csv(home / "letter" / "letter-recognition.data")
    return with_label(folder, "letter", rows[:16000], rows[16000:], at=0)


def voting(home: Path, folder: Path) -> Set:
    return with_label(folder, "voting", *split(read_csv(home / "voting" / "house-votes-84.data")), at=0)


# ---------------------------------------------------------------------- simulated ones


def identifiers(home: Path, folder: Path) -> Set:
    """Seven columns of whole numbers that are identifiers; each has an effect of its own. 6 % are refused."""
    rng = np.random.default_rng(3)
    rows, sizes = 32_000, (4000, 2000, 300, 250, 150, 70, 300)
    columns, score = [], np.zeros(rows)
    for size in sizes:
        names = np.sort(rng.choice(300_000, size, replace=False))
        shares = 1 / np.arange(1, size + 1) ** 1.1
        values = rng.choice(size, rows, p=rng.permutation(shares / shares.sum()))
        score += rng.normal(0, 1.1, size)[values]
        columns.append(names[values])
    refused = 1 / (1 + np.exp(score + 4.4))
    labels = np.where(rng.random(rows) < refused, "refused", "granted")
    header = ["resource", "manager", "role_1", "role_2", "department", "family", "title", "label"]
    table = [[*map(str, row), label] for *row, label in zip(*columns, labels)]
    return write_table(folder, "identifiers", header, table[:24_000], table[24_000:])


def clicks(home: Path, folder: Path) -> Set:
    """A click log: 13 skewed counts with missing values, 26 hashed categories of up to 100,000 values; 25 % clicks."""
    rng = np.random.default_rng(4)
    rows = 100_000
    score, columns = np.zeros(rows), []
    for _ in range(13):
        log = rng.normal(rng.uniform(0, 4), rng.uniform(0.8, 2), rows)
        counts = np.floor(np.exp(log))
        score += rng.normal(0, 0.25) * (np.log1p(counts) - np.log1p(counts).mean())
        missing = rng.random(rows) < rng.uniform(0, 0.4)
        score += rng.normal(0, 0.2) * missing
        columns.append([("" if gone else f"{value:.0f}") for value, gone in zip(counts, missing)])
    for _ in range(26):
        size = int(10 ** rng.uniform(0.7, 5))
        shares = 1 / np.arange(1, size + 1) ** rng.uniform(0.9, 1.4)
        values = rng.choice(size, rows, p=shares / shares.sum())
        score += rng.normal(0, 0.35, size)[values]
        hashes = rng.integers(0, 2**32, size)
        gone = rng.random(rows) < rng.choice([0, 0.1, 0.4])
        columns.append(["" if g else f"{hashes[v]:08x}" for v, g in zip(values, gone)])
    score += -1.1 - score.mean()
    labels = np.where(rng.random(rows) < 1 / (1 + np.exp(-score)), "1", "0")
    header = [*(f"i{n}" for n in range(13)), *(f"c{n}" for n in range(26)), "label"]
    table = [list(row) for row in zip(*columns, labels.tolist())]
    return write_table(folder, "clicks", header, table[:80_000], table[80_000:])


def small(home: Path, folder: Path) -> Set:
    """A small noisy table: 1,000 rows, 8 numbers, 8 categories of up to 50 values."""
    rng = np.random.default_rng(5)
    rows = 4000
    numbers = rng.normal(size=(rows, 8))
    score, columns = numbers @ rng.normal(0, 0.4, 8), [[f"{v:.3f}" for v in column] for column in numbers.T]
    for size in (2, 3, 5, 8, 12, 20, 35, 50):
        values = rng.integers(0, size, rows)
        score = score + rng.normal(0, 0.4, size)[values]
        columns.append([f"v{v}" for v in values])
    labels = np.where(rng.random(rows) < 1 / (1 + np.exp(-score)), "good", "bad")
    header = [*(f"x{n}" for n in range(8)), *(f"k{n}" for n in range(8)), "label"]
    table = [list(row) for row in zip(*columns, labels.tolist())]
    return write_table(folder, "small", header, table[:1000], table[1000:])


SETS: dict[str, Callable[[Path, Path], Set]] = {
    "imdb": imdb,
    "20news": news,
    "unequal_news": unequal_news,
    "sms_spam": sms_spam,
    "trec": trec,
    "trec_fine": trec_fine,
    "adult": adult,
    "a9a": a9a,
    "covtype": covtype,
    "spambase": spambase,
    "mushroom": mushroom,
    "letter": letter,
    "voting": voting,
    "identifiers": identifiers,
    "clicks": clicks,
    "small": small,
}
