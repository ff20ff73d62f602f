"""What is fuzzed, and what must hold of each damaged file. To add a format is to add a line to ``TARGETS``.

A check raises AssertionError if a promise is broken. Any other exception that leaves it is a finding as well: a damaged
file leads to bad rows or to a ``DataError``, and to nothing else.
"""

from __future__ import annotations

import bz2
import contextlib
import math
import random
import re
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import onlearn
from fuzz import seeds as made
from fuzz.mutations import ANY, TEXT, Change, mutated
from onlearn.data import BadRows, DataError, bad_rows, read
from onlearn.data.batch import NamedRows, Sentences
from onlearn.engine.csr import CSR
from onlearn.errors import PlanError

SIZES = (1, 7, 64, 300)  # bytes of tiny blocks
EACH = 25  # one of so many damaged files is trained on


class Case(NamedTuple):
    """One damaged file."""

    rng: random.Random
    path: Path  # where to write it
    seeds: Sequence[bytes]
    content: bytes
    again: Callable[[bytes], bytes]  # damages something else in the same way
    train: bool  # whether to train on it


class Target(NamedTuple):
    """Something that reads files that others may have made."""

    seeds: Sequence[bytes]
    check: Callable[[Case], None]
    changes: Sequence[Change] = TEXT
    tokens: Sequence[bytes] = ()

    def case(self, name: str, number: int, folder: Path) -> Case:
        """The damaged file of a number."""
        rng = random.Random(f"{name} {number}")

        def again(text: bytes) -> bytes:
            return mutated(rng, text, self.seeds, self.tokens, self.changes)

        content = again(rng.choice(self.seeds))
        return Case(rng, folder / f"case.{name}", self.seeds, content, again, number % EACH == 0)


class Outcome(NamedTuple):
    """What a reader makes of a file: its rows and bad rows, or the error that refuses it."""

    rows: list[tuple[Any, ...]]  # each begins with its line
    bad: list[tuple[Any, ...]]
    error: str = ""

    def between(self, start: int, stop: int, shift: int = 0) -> tuple[list, list]:
        """The rows and bad rows that begin on some lines."""
        return tuple(  # type: ignore[return-value]
            [(one[0] + shift, *one[1:]) for one in some if start <= one[0] < stop] for some in (self.rows, self.bad)
        )


def outcome(path: Path, columns: Sequence[str] | None = None, **options: Any) -> Outcome:
    """Read a file. Of tables, only some ``columns`` are compared; a file with others has none of them."""
    bad, rows = BadRows(limit=1.0, shown=10**6), []
    one_by_one = mock.patch.object(bad_rows, "TOLD", 10**6)  # in large blocks as in small ones
    try:
        with one_by_one, read(path, bad=bad, workers=0, **options) as reader:
            for batch in reader:
                rows += rows_in(batch, columns)
    except DataError as error:
        check_message(error)
        return Outcome([], [], str(error))
    assert all(math.isfinite(value) for row in rows for value in numbers_in(row)), "a number is not finite"
    return Outcome(rows, [(one.line, one.column, one.reason, one.raw) for _, one in bad.examples])


def check_message(error: Exception) -> None:
    """An error says something; commands print it as one line."""
    assert str(error).strip(), "an error without a message"


def rows_in(batch: Any, columns: Sequence[str] | None) -> list[tuple[Any, ...]]:
    """The rows of a batch: line, label, weight, id, group, content."""
    parsed, count = batch.parsed, len(batch)
    lines = batch.lines.tolist()
    assert len(lines) == count and all(first < second for first, second in pairwise(lines))
    labels: list[Any] = [None] * count if batch.y is None else batch.y.tolist()
    contents: list[Any]
    if isinstance(parsed, CSR):
        data, indices = parsed.data.tolist(), parsed.indices.tolist()
        assert not indices or (min(indices) >= 0 and max(indices) < parsed.shape[1])
        contents = [list(zip(indices[a:b], data[a:b])) for a, b in spans(parsed.indptr)]
    elif isinstance(parsed, NamedRows):
        values = parsed.values.tolist()
        contents = [[(parsed.name(k), values[k]) for k in range(a, b)] for a, b in spans(parsed.indptr)]
    elif isinstance(parsed, Sentences):
        words = {name: column.tolist() for name, column in parsed.columns.items()}
        contents = [{name: column[a:b] for name, column in words.items()} for a, b in spans(parsed.offsets)]
        labels = [labels[a:b] for a, b in spans(parsed.offsets)] if batch.y is not None else [None] * count
    else:
        contents = [row if columns is None else {name: row.get(name) for name in columns} for row in parsed.to_pylist()]
    labels = [None if label != label else label for label in labels]  # of regression: NaN is no label
    usual = ((batch.weight, 1.0), (batch.ids, None), (batch.groups, -1))  # where no row of the batch has another
    extra = [[value] * count if given is None else given.tolist() for given, value in usual]
    return list(zip(lines, labels, *extra, contents, strict=True))


def spans(offsets: np.ndarray) -> list[tuple[int, int]]:
    ends = offsets.tolist()
    return list(pairwise(ends))


def numbers_in(value: Any) -> list[float]:
    """All floats in rows."""
    if isinstance(value, float):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [one for part in value for one in numbers_in(part)] if isinstance(value, (list, tuple)) else []


def check_training(case: Case, **options: Any) -> None:
    """To train on a damaged file ends with a model or with one sentence."""
    try:
        onlearn.train(case.path, passes=1, max_bad=1.0, **options)
    except (DataError, PlanError) as error:
        check_message(error)


class TextFormat(NamedTuple):
    """The checks of a text format. Rows are the same however the text is cut into blocks; damage to one costs no other.

    Where the first rows decide about columns and types, every file has some undamaged ones at its ``start``.
    """

    format: str
    start: bytes = b""
    end: bytes = b"\n"  # between rows
    given: dict[str, Any] = {}  # noqa: RUF012
    tasks: Sequence[str] = ("classify", "regress", "multilabel")
    missing: Sequence[str] = ("absent", "absent", "error")
    columns: Sequence[str] | None = None
    quote: bytes = b""  # rows with it may go on in other lines
    costly: bytes = b""  # what is not trained on, for it takes seconds

    def __call__(self, case: Case) -> None:
        options = {"format": self.format, "labels": case.rng.choice(["required", "optional"]), **self.given}
        options |= {"task": case.rng.choice(self.tasks), "missing": case.rng.choice(self.missing)}
        self.check_blocks(case, options)
        self.check_neighbours(case, options)
        if self.start:  # as it is, all decisions left to the reader
            case.path.write_bytes(case.content)
            outcome(case.path, format=self.format, task=options["task"])
        if case.train and not (self.costly and re.search(self.costly, case.content)):
            case.path.write_bytes(self.start + case.content)
            check_training(case, format=self.format)

    def check_blocks(self, case: Case, options: dict[str, Any]) -> None:
        case.path.write_bytes(self.start + case.content)
        whole = outcome(case.path, self.columns, **options)
        size = len(self.start) or max(case.rng.choice(SIZES), len(case.content) // 500)  # not too many blocks
        blocks = outcome(case.path, self.columns, block_size=size, **options)
        assert repr(blocks) == repr(whole), f"other rows by blocks of other sizes: {difference(blocks, whole)}"

    def check_neighbours(self, case: Case, options: dict[str, Any]) -> None:
        """Read a file, and the same one with one row damaged."""
        seed = case.rng.choice(case.seeds)
        rows = [
            row + self.end for row in seed.split(self.end) if row.strip() and not (self.quote and self.quote in row)
        ]
        at = case.rng.randrange(len(rows)) + 1
        head, tail = self.start + rows[0] + b"".join(rows[:at]), b"".join(rows[at:])
        one = case.again(rows[at - 1]).rstrip(b"\r\n\x1a") + self.end
        if self.quote and self.quote in one:
            return
        if len(self.end) > 1 and re.search(rb"\r", one):  # an empty line may end with CR LF
            return
        size = len(self.start) or 1 << 20
        case.path.write_bytes(head + tail)
        expected = outcome(case.path, self.columns, block_size=size, **options)
        case.path.write_bytes(head + one + tail)
        found = outcome(case.path, self.columns, block_size=size, **options)
        if expected.error:
            return
        assert not found.error, f"one damaged row spoils all: {found.error}"
        before, added = head.count(b"\n") + 1, one.count(b"\n")
        for start, stop, shift in ((1, before, 0), (before + added, 1 << 30, -added)):
            mine, theirs = found.between(start, stop, shift), expected.between(start + shift, stop)
            assert repr(mine) == repr(theirs), f"one damaged row changes others: {mine} and not {theirs}"


def difference(found: Outcome, expected: Outcome) -> str:
    """The first difference between two outcomes."""
    if found.error or expected.error:
        return f"{found.error or 'rows'} and not {expected.error or 'rows'}"
    for mine, theirs in ((found.rows, expected.rows), (found.bad, expected.bad)):
        for one, other in zip(mine, theirs):
            if repr(one) != repr(other):
                return f"{one} and not {other}"
    return f"{len(found.rows)} rows, {len(found.bad)} bad and not {len(expected.rows)}, {len(expected.bad)} bad"


class Container(NamedTuple):
    """The checks of compressed text: its rows are those of the text that another program unpacks, or it is refused."""

    suffix: str
    other: Callable[[], Any] | None = None  # what unpacks it as well; None: nothing is at hand

    def __call__(self, case: Case) -> None:
        path = case.path.with_name(f"case.svm{self.suffix}")
        path.write_bytes(case.content)
        whole = outcome(path)
        blocks = outcome(path, block_size=case.rng.choice((500, 1000, 5000)))  # a few bytes may unpack to a megabyte
        assert repr(blocks) == repr(whole), f"other rows by blocks of other sizes: {difference(blocks, whole)}"
        if self.other is not None and case.content:
            try:
                text = unpacked(case.content, self.other)
            except (OSError, EOFError, zlib.error, ValueError):
                assert whole.error, "damaged data is read"
                return
            plain = path.with_suffix("")
            plain.write_bytes(text)
            expected = outcome(plain, format="svmlight")
            if not expected.error:
                assert repr(whole) == repr(expected), f"not what is in it: {difference(whole, expected)}"
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


def unpacked(content: bytes, new: Callable[[], Any]) -> bytes:
    """As ``gzip.decompress`` and ``bz2.decompress``, but nothing else may follow the last stream."""
    parts = []
    while content:
        stream = new()
        parts.append(stream.decompress(content))
        if not stream.eof:
            raise EOFError
        content = stream.unused_data
    return b"".join(parts)


CSV_START = b"n,t,label\n" + b"1,a,p\n2,b,q\n" * 60
JSONL_START = b'{"n": 1, "t": "a", "label": "p"}\n{"n": 2, "t": "b", "label": "q"}\n' * 4
TYPED: dict[str, Any] = {"target": "label", "types": {"n": "number", "t": "string"}}

TARGETS: dict[str, Target] = {
    "svmlight": Target(
        made.SVMLIGHT, TextFormat("svmlight", costly=rb"\d{6,}:"), tokens=[b":", b"qid:", b" 1:1", b",", b"#"]
    ),
    "vw": Target(made.VW, TextFormat("vw"), tokens=[b"|", b":", b" |f ", b"'", b"^", b" 2.5 ", b"|f:2 "]),
    "fasttext": Target(made.FASTTEXT, TextFormat("fasttext"), tokens=[b"__label__", b" __label__b", b"_"]),
    "conll": Target(made.CONLL, TextFormat("conll", end=b"\n\n", tasks=("tag",)), tokens=[b"# ", b"-DOCSTART-", b"O"]),
    "conllu": Target(
        made.CONLLU, TextFormat("conllu", end=b"\n\n", tasks=("tag",)), tokens=[b"#", b"_\t", b"1-2", b"1.1"]
    ),
    "sentences": Target(made.SENTENCES, TextFormat("sentences", tasks=("tag",))),
    "csv": Target(
        made.CSV,
        TextFormat("csv", CSV_START, given={**TYPED, "header": True, "delimiter": ","}, quote=b'"'),
        tokens=[b",", b'"', b'",', b',"', b'"\n"', b";"],
    ),
    "tsv": Target(
        [seed.replace(b",", b"\t") for seed in made.CSV],
        TextFormat("tsv", CSV_START.replace(b",", b"\t"), given={**TYPED, "header": True}, quote=b'"'),
        tokens=[b"\t", b'"', b'"\t', b'\t"', b'"\n"'],
    ),
    "jsonl": Target(
        made.JSONL,
        TextFormat("jsonl", JSONL_START, given=TYPED, columns=("n", "t"), missing=("absent",)),
        tokens=[
            b"{",
            b"}",
            b"[",
            b"]",
            b'"',
            b",",
            b":",
            b"null",
            b"true",
            b"\\u0000",
            b"\\ud800",
            b'"n":',
            b"NaN",
            b"{}",
        ],
    ),
    "gz": Target(made.GZIP, Container(".gz", partial(zlib.decompressobj, 31)), ANY),
    "bz2": Target(made.BZIP2, Container(".bz2", bz2.BZ2Decompressor), ANY),
    "zst": Target(made.ZSTD, Container(".zst"), ANY),
}
