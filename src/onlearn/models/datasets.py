"""Well-known public data sets: where they are, and how they get here.

The folder that ``ONLEARN_DATA`` names is looked at first; what it lacks comes from OpenML, through scikit-learn.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onlearn.data.table_roles import TARGETS
from onlearn.model_file import write_whole


class FetchError(Exception):
    """A data set that cannot be had now; the message is one sentence."""


class Known(NamedTuple):
    """A data set that has a name here."""

    name: str
    number: int | None  # at OpenML; None: scikit-learn has a way of its own
    rows: int
    labels: int  # 0: numbers
    about: str


KNOWN = {
    known.name: known
    for known in (
        Known("20news", None, 18_846, 20, "posts to newsgroups, as text"),
        Known("a9a", 1430, 48_842, 2, "census income, 123 binary features, svmlight"),
        Known("abalone", 183, 4_177, 28, "age of shells"),
        Known("adult", 1590, 48_842, 2, "census income, mixed columns"),
        Known("bank", 1461, 45_211, 2, "bank marketing, mixed columns"),
        Known("covtype", 1596, 581_012, 7, "forest cover"),
        Known("credit", 31, 1_000, 2, "German credit, mixed columns"),
        Known("electricity", 151, 45_312, 2, "price up or down, in the order of time"),
        Known("fashion", 40996, 70_000, 10, "pictures of clothes, 784 pixels"),
        Known("iris", 61, 150, 3, "Fisher's flowers"),
        Known("letter", 6, 20_000, 26, "letters, 16 measures"),
        Known("mnist", 554, 70_000, 10, "handwritten digits, 784 pixels"),
        Known("mushroom", 24, 8_124, 2, "edible or poisonous, categories"),
        Known("pendigits", 32, 10_992, 10, "handwritten digits, 16 pen positions"),
        Known("spambase", 44, 4_601, 2, "e-mail, 57 frequencies"),
        Known("splice", 46, 3_190, 3, "DNA junctions"),
        Known("voting", 56, 435, 2, "votes in Congress, categories"),
        Known("wine", 287, 6_497, 0, "quality of wine, a number"),
    )
}


def at_hand(name: str) -> list[Path]:
    """The files of a data set in the folder that ONLEARN_DATA names."""
    folder = os.environ.get("ONLEARN_DATA")
    found = Path(folder) / name if folder else None
    return sorted(path for path in found.iterdir() if path.is_file()) if found is not None and found.is_dir() else []


def known(name: str) -> Known:
    """By its name, or for any other of OpenML's by ``openml:NUMBER``."""
    if name in KNOWN:
        return KNOWN[name]
    prefix, _, number = name.partition(":")
    if prefix == "openml" and number.isdigit():
        return Known(f"openml-{number}", int(number), 0, 0, "")
    raise KeyError(name)


def download(what: Known, folder: Path) -> list[Path]:
    """Fetch a data set into files of a folder, each written whole; their paths."""
    parts = _newsgroups() if what.number is None else _openml(what, what.number)
    paths = []
    for name, content in parts:
        folder.mkdir(exist_ok=True)  # now that there is something to put there
        path = folder / name
        write_whole(path, content)
        paths.append(path)
    return paths


def _newsgroups() -> Iterator[tuple[str, bytes]]:
    from sklearn.datasets import fetch_20newsgroups

    made = []
    with tempfile.TemporaryDirectory() as home:
        for part in ("train", "test"):
            try:
                bunch = fetch_20newsgroups(data_home=home, subset=part, shuffle=False)
            except (OSError, ValueError) as error:
                raise FetchError(f"20news cannot be downloaded: {error}") from error
            rows = ({"label": bunch.target_names[k], "text": text} for text, k in zip(bunch.data, bunch.target))
            made.append((f"20news-{part}.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode()))
    yield from made


def _openml(what: Known, number: int) -> Iterator[tuple[str, bytes]]:
    import scipy.sparse as sp
    from sklearn.datasets import fetch_openml

    try:
        # Without pandas, which need not be installed; and not kept twice.
        bunch = fetch_openml(data_id=number, as_frame=False, parser="liac-arff", cache=False, n_retries=2, delay=0.5)
    except (OSError, ValueError, KeyError) as error:  # no network, OpenML says no, an answer that makes no sense
        raise FetchError(f"{what.name} (OpenML {number}) cannot be downloaded: {error}") from error
    if bunch.target is None or getattr(bunch.target, "ndim", 1) != 1:
        raise FetchError(f"{what.name} (OpenML {number}) has not one target to learn")
    if sp.issparse(bunch.data):
        yield f"{what.name}.svm", as_svmlight(bunch.data.tocsr(), bunch.target)
    else:
        yield f"{what.name}.csv", as_csv(bunch)


def as_svmlight(X: Any, y: np.ndarray) -> bytes:
    """Lines of svmlight, features counted from 1."""
    lines = []
    for row in range(X.shape[0]):
        here = slice(X.indptr[row], X.indptr[row + 1])
        pairs = sorted(zip(X.indices[here].tolist(), X.data[here].tolist()))
        lines.append(" ".join([written(y[row]), *(f"{k + 1}:{written(value)}" for k, value in pairs)]))
    return ("\n".join(lines) + "\n").encode()


def written(value: Any) -> str:
    """A label or a number, whole ones without a decimal point."""
    value = value.item() if isinstance(value, np.generic) else value
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def as_csv(bunch: Any) -> bytes:
    """A table with names on top and the target last, under a name that readers know."""
    import csv
    import io

    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    target = bunch.target_names[0] if bunch.target_names else "label"
    target = target if target.lower() in TARGETS else "label"
    names = [f"{name}_" if name.lower() in TARGETS else name for name in bunch.feature_names]
    columns = [_column(bunch.data[:, k], bunch.categories.get(name)) for k, name in enumerate(bunch.feature_names)]
    columns.append(pa.array([None if value is None else written(value) for value in bunch.target], pa.string()))
    table = pa.table(columns, names=[str(k) for k in range(len(columns))])
    head = io.StringIO()
    csv.writer(head, lineterminator="\n").writerow([*names, target])
    sink = pa.BufferOutputStream()
    arrow_csv.write_csv(table, sink, arrow_csv.WriteOptions(include_header=False))
    return head.getvalue().encode() + sink.getvalue().to_pybytes()


def _column(values: np.ndarray, categories: list[str] | None) -> Any:
    """Numbers as such; of categories, which come as their positions, the names; what is missing stays empty."""
    import pyarrow as pa

    missing = np.isnan(values)
    if categories is not None:
        places = pa.array(np.where(missing, 0, values).astype(np.int64), mask=missing)
        return pa.array(categories, pa.string()).take(places)
    whole = (values[~missing] == np.rint(values[~missing])).all() and np.abs(values[~missing]).max(initial=0) < 2**53
    return pa.array(np.where(missing, 0, values).astype(np.int64) if whole else values, mask=missing)
