"""The files that recorded runs learn from: generated, always the same, and the beginnings of real sets."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CUT = 3000  # rows of a real set


def write_data(folder: Path) -> None:
    """All generated files, and an empty folder for parsed rows."""
    (folder / "kept").mkdir()
    rng = np.random.default_rng(16)
    table = make_table(rng, 1500)
    write_table(folder / "table.csv", table)
    write_table(folder / "table.tsv", table, "\t")
    write_table(folder / "more.csv", make_table(rng, 600))
    write_table(folder / "large.csv", large := make_table(rng, 150_000))
    write_table(folder / "four.csv", make_table(rng, 1200, "four"))
    write_table(folder / "numbers.csv", make_table(rng, 1500, "number"))
    extra = {"id": [f"r{n}" for n in range(1500)], "weight": [f"{w:.2f}" for w in rng.random(1500) + 0.1]}
    write_table(folder / "weighted.csv", {**extra, **table})
    lines = (folder / "table.csv").read_text().splitlines()
    (folder / "dirty.csv").write_text("\n".join(f"{line},,x" if n % 37 == 5 else line for n, line in enumerate(lines)))
    plain = (f"{'yes' if b > a else 'no'};{a:.3f};{b:.3f};{c}" for a, b, c in rng.random((800, 3)).round(3))
    (folder / "plain.data").write_text("\n".join(plain) + "\n")

    typed = pa.table({name: typed_column(name, cells) for name, cells in table.items()})
    pq.write_table(typed, folder / "table.parquet", row_group_size=500)
    with pa.ipc.new_file(folder / "table.arrow", typed.schema) as writer:
        writer.write_table(typed, max_chunksize=400)
    pq.write_table(pa.table({k: typed_column(k, v) for k, v in large.items()}), folder / "large.parquet")
    rows = typed.to_pylist()
    nested = ({"place": {"city": row.pop("city"), "zip": row.pop("zip")}, **row} for row in rows)
    (folder / "table.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in nested))

    for name, count, length in (("docs", 900, 30), ("more", 300, 30), ("large", 22_000, 75)):
        docs = list(make_documents(rng, count, length))
        lines = [json.dumps({"label": label, "text": text}, ensure_ascii=False) for label, text in docs]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        vw = "".join(vw_line(n, *doc) for n, doc in enumerate(docs))
        (folder / f"{name}.vw").write_text(vw, encoding="utf-8")
        if name == "docs":
            fasttext = "".join(f"__label__{label} {text}\n" for label, text in docs)
            (folder / "docs.txt").write_text(fasttext, encoding="utf-8")

    for name, count, classes, width in (
        *(("rows", 1500, 2, 80), ("day1", 700, 2, 60), ("day2", 700, 2, 90)),
        *(("four", 1500, 4, 80), ("far", 500, 2, 1 << 26), ("large", 50_000, 3, 5000)),
    ):
        (folder / f"{name}.svm").write_text("".join(make_sparse(rng, count, classes, width)))
    (folder / "sorted.svm").write_text("".join(sorted(make_sparse(rng, 800, 2, 50))))

    for name, count in (("rings", 600), ("more_rings", 300)):
        X, y = make_rings(rng, count)
        cells = {f"x{k}": [f"{v:.5f}" for v in column] for k, column in enumerate(X.T)}
        write_table(folder / f"{name}.csv", {**cells, "label": ["out" if one else "in" for one in y]})
    bits = rng.random((500, 16)) < 0.4
    concept = (bits[:, 0] & bits[:, 3]) | (bits[:, 5] & ~bits[:, 7] & bits[:, 9])
    cells = {f"b{k}": [str(int(b)) for b in column] for k, column in enumerate(bits.T)}
    write_table(folder / "bits.csv", {**cells, "label": [str(c) for c in concept]})
    strings, labels = make_strings(rng, 250)
    write_table(folder / "strings.csv", {"sequence": strings, "label": labels})
    trees = [{"tree": make_tree(rng, label), "label": label} for label in rng.choice(["a", "b"], 200).tolist()]
    (folder / "trees.jsonl").write_text("".join(json.dumps(tree) + "\n" for tree in trees))

    for name in ("table.csv.gz", "large.csv.gz", "docs.vw.gz", "docs.jsonl.zst", "rows.svm.zst"):
        pack(folder / name, (folder / name.rpartition(".")[0]).read_bytes())
    pack(folder / "docs.ft.gz", (folder / "docs.txt").read_bytes())


def write_real_data(folder: Path, source: Path) -> None:
    """The first rows of real sets."""
    for name, path in {
        "adult.csv": "adult/adult.data",
        "adult_test.csv": "adult/adult.test",
        "a9a.svm": "a9a/a9a.svm",
        "20news.jsonl": "20news/train.jsonl.gz",
        "imdb.jsonl": "imdb/train.jsonl.gz",
        "sms_spam.tsv": "sms_spam/SMSSpamCollection.tsv",
        "mushroom.csv": "mushroom/agaricus-lepiota.data",
        "mushroom.svm": "mushroom/agaricus.txt.train",
        "spambase.csv": "spambase/spambase.data",
    }.items():
        with (gzip.open if path.endswith(".gz") else open)(source / path, "rb") as file:
            lines = file.readlines()
        if name == "adult_test.csv":
            lines = lines[1:]  # the first is a comment
        (folder / name).write_bytes(b"".join(lines[:CUT]))


def make_table(rng: np.random.Generator, rows: int, target: str = "two") -> dict[str, list[str]]:
    """Columns of cells: numbers, categories, a text, with missing values; what is to be predicted last."""
    age, income = rng.integers(18, 90, rows), rng.lognormal(3, 1, rows)
    colour = rng.choice(["red", "green", "blue", "yellow, pale", 'so-called "grey"'], rows)
    city = rng.choice(["Bern", "Zürich", "Genève", "Basel", "?", ""], rows)
    flag, postcode = rng.random(rows) < 0.3, rng.integers(1, 40, rows)
    words = rng.choice(["good", "bad", "nothing", "to", "see", "late", "very"], (rows, 3))
    score = (age - 50) / 20 + (colour == "red") - flag + (words == "good").sum(1) + rng.normal(0, 0.6, rows)
    if target == "number":
        labels = [f"{value:.4f}" for value in 100 + 10 * score]
    else:
        names = ["no", "yes"] if target == "two" else ["north", "east", "south", "west"]
        edges = np.quantile(score, np.arange(1, len(names)) / len(names))
        labels = [names[k] for k in np.searchsorted(edges, score)]
    return {
        "age": [str(a) if a % 17 else "" for a in age],
        "income": [f"{value:.2f}" for value in income],
        "colour": colour.tolist(),
        "zip": [f"{code:05d}" for code in postcode],
        "city": city.tolist(),
        "flag": ["true" if one else "false" for one in flag],
        "note": [" ".join(some) for some in words],
        "label": labels,
    }


def typed_column(name: str, cells: list[str]) -> pa.Array:
    """A column as Parquet and Arrow files have it."""
    convert: dict[str, Callable[[str], Any]] = {"age": int, "income": float, "flag": lambda cell: cell == "true"}
    return pa.array([convert.get(name, str)(cell) if cell else None for cell in cells])


def write_table(path: Path, columns: dict[str, list[str]], delimiter: str = ",") -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values()))


def make_documents(rng: np.random.Generator, count: int, length: int) -> Iterator[tuple[str, str]]:
    """Labels and texts; some words belong to a label."""
    syllables = ["ka", "ro", "mi", "té", "lu", "ßen", "ne", "DO", "東", "sa"]
    words = np.array([a + b + c for a in syllables for b in syllables for c in ("", "na", "n't", "x, ", "7.")])
    labels = ["sports", "politics", "science"]
    for label in rng.integers(0, len(labels), count):
        common = (len(words) * rng.random(length) ** 3).astype(int)
        own = rng.random(length) < 0.15
        chosen = np.where(own, (common * len(labels) + label) % len(words), common)
        yield labels[label], " ".join(words[chosen])


def vw_line(n: int, label: str, text: str) -> str:
    words = text.replace(":", "").replace("|", "").split()
    number = ["sports", "politics", "science"].index(label) + 1
    importance = f" {1 + n % 3 / 2}" if n % 5 == 0 else ""
    return (
        f"{number}{importance} 'row{n}|title {' '.join(words[:3])} |body:0.5 size:{len(text) / 100} {' '.join(words)}\n"
    )


def make_sparse(rng: np.random.Generator, count: int, classes: int, width: int) -> Iterator[str]:
    """Lines of svmlight; a label has features of its own."""
    for label in rng.integers(0, classes, count):
        columns = (width * rng.random(12) ** 2).astype(int) // classes * classes
        columns += np.where(rng.random(12) < 0.35, label, rng.integers(0, classes, 12))
        columns = np.unique(columns) + 1
        pairs = (f"{k}:{v:.3g}" for k, v in zip(columns, rng.random(len(columns)) + 0.01))
        yield f"{label} {' '.join(pairs)}\n"


def make_rings(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(count, 4)).round(5)
    return X, np.hypot(X[:, 0], X[:, 1]) + rng.normal(0, 0.1, count) > 1.2


def make_strings(rng: np.random.Generator, count: int) -> tuple[list[str], list[str]]:
    """Strings of four letters, some longer than a machine word, and whether a motif is in them."""
    strings, labels = [], []
    for n in range(count):
        letters = "".join(rng.choice(list("ACGT"), 40 + 60 * (n % 2)))
        where, has = int(rng.integers(0, 30)), bool(rng.random() < 0.5)
        strings.append(letters[:where] + "TATAAT" * has + letters[where:])
        labels.append("with" if has else "without")
    return strings, labels


def make_tree(rng: np.random.Generator, label: str) -> str:
    """A parse tree; those of `a` have longer subjects."""

    def phrase(adjectives: int) -> str:
        some = "".join(f" (A {rng.choice(['old', 'red', 'big'])})" for _ in range(adjectives))
        return f"(NP (D {rng.choice(['the', 'a'])}){some} (N {rng.choice(['dog', 'cat', 'man'])}))"

    subject, other = phrase(int(rng.integers(1, 3) if label == "a" else rng.integers(0, 2))), phrase(1)
    return f"(S {subject} (VP (V {rng.choice(['sees', 'bites'])}) {other}))"


def pack(path: Path, content: bytes) -> None:
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(content, mtime=0))
    else:
        with pa.CompressedOutputStream(str(path), "zstd") as file:
            file.write(content)
