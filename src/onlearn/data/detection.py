"""What a file is, told by its first lines where its name does not say."""

from __future__ import annotations

import json
import re

from onlearn.data.bad_rows import DataError
from onlearn.data.formats.csv_layout import guess_delimiter
from onlearn.data.sources import Stream, first_lines

LINES = 50
PAIR = re.compile(rb"\d+:\S+")
VW = re.compile(rb"[^|]*\|\S*(\s|$)")


def sniff(stream: Stream, expected: str | None) -> tuple[str, str]:
    """The name of the format, and what gave it away."""
    start = stream.head(8)
    if start.startswith(b"PAR1"):
        return "parquet", "it begins with PAR1"
    if start.startswith(b"ARROW1"):
        return "arrow", "it begins with ARROW1"
    whole = first_lines(stream)[:LINES]
    lines = [line for line in whole if line.strip()]
    if not lines:
        raise DataError(f"{stream.source.name}: there are no rows")
    if all(line.lstrip().startswith(b"__label__") for line in lines):
        return "fasttext", "lines begin with __label__"
    if is_json(lines[0]):
        return "jsonl", "lines are JSON objects"
    if is_conllu(lines):
        return "conllu", "lines are ten columns with an id first"
    if is_svmlight(lines):
        return "svmlight", "lines are label index:value ..."
    if all(VW.match(line) and plausible_prefix(line) for line in lines):
        return "vw", "lines have a | before the features"
    if expected == "fasttext" and any(line.lstrip().startswith(b"__label__") for line in lines):
        return "fasttext", "lines begin with __label__"
    if is_conll(whole):
        return "conll", "lines have the same number of columns, and empty ones between"
    readable = [line.decode("utf-8", "replace") for line in lines]
    delimiter = guess_delimiter(readable)
    if sum(delimiter in line for line in readable) >= 0.9 * len(readable):
        return ("tsv" if delimiter == "\t" else "csv"), f"{delimiter!r} separates the columns"
    raise DataError(
        f"{stream.source.name}: what format it is cannot be told from its name or its first lines: say format="
    )


def is_json(line: bytes | str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def is_svmlight(lines: list[bytes]) -> bool:
    pairs = 0
    for line in lines:
        words = line.partition(b"#")[0].split()
        pairs += len(words) > 1
        for word in words[1:]:
            if not PAIR.fullmatch(word.removeprefix(b"qid:") if word.startswith(b"qid:1") else word):
                return word.startswith(b"qid:")
    return pairs > 0


def plausible_prefix(line: bytes) -> bool:
    return len(line.partition(b"|")[0].split()) <= 4


def is_conllu(lines: list[bytes]) -> bool:
    rows = [line.split(b"\t") for line in lines if not line.startswith(b"#")]
    return bool(rows) and all(len(row) == 10 and row[0][:1].isdigit() for row in rows)


def is_conll(lines: list[bytes]) -> bool:
    widths = {len(line.split()) for line in lines if line.strip() and not line.startswith(b"-DOCSTART-")}
    return len(widths) == 1 and widths.pop() > 1 and any(not line.strip() for line in lines)
