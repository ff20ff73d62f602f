"""The formats that can be read, and the detection of a file's format.

A format is one file in ``formats/`` with a class that is decorated by ``@reader``. The extension of a file usually
gives its format; otherwise ``sniff`` finds it in the first lines.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from onlearn.data.bad_rows import Bad, DataError
from onlearn.data.blocks import SIZE
from onlearn.data.parts import Part
from onlearn.data.sources import LONGEST, Stream, first_lines, line_end

SNIFFED_LINES = 50
READ = 1 << 20  # bytes that are read at a time for a checksum
DELIMITERS = (",", "\t", ";", "|")
SVMLIGHT_PAIR = re.compile(rb"\d+:\S+")
VW_LINE = re.compile(rb"[^|]*\|\S*(\s|$)")
VW_WORDS = 4  # label, importance, base and tag are the most that stand before the first bar

AnyClass = TypeVar("AnyClass", bound=type)
Apply = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]


@dataclass(slots=True)
class Options:
    """How to read; see ``onlearn.data.read``."""

    target: str | int | None = None
    task: str = "classify"
    weight: str | int | None = None
    id: str | int | None = None
    id_required: bool = True
    id_kept: bool = False
    labels: str = "required"
    missing: str = "absent"
    delimiter: str | None = None
    header: bool | str = "auto"
    types: dict[str, str] = field(default_factory=dict)
    expected: list[str] = field(default_factory=list)
    comments: bool = False
    block_size: int = SIZE
    max_line: int = LONGEST
    label_separator: str | None = None
    group: str | int | None = None

    @property
    def regress(self) -> bool:
        """Whether labels are numbers."""
        return self.task in ("regress", "rank")

    @property
    def multilabel(self) -> bool:
        """Whether a row may have several labels, or none."""
        return self.task == "multilabel"

    @property
    def target_required(self) -> bool:
        """Whether files must say the labels of rows."""
        return self.labels == "required"

    @property
    def labelled(self) -> bool:
        """Whether every row must have a label."""
        return self.target_required and not self.multilabel


@dataclass(slots=True)
class Parsed:
    """The rows of one piece of a file. Lines are counted from 0 in the piece."""

    rows: Any  # a ``CSR``, ``NamedRows``, a ``pyarrow.Table`` or ``Sentences``
    lines: np.ndarray
    line_count: int  # lines of the piece, including empty and bad ones
    codes: np.ndarray | None = None  # int64: positions in ``names``; -1 for a row without a label
    names: list[str] = field(default_factory=list)  # the distinct labels of this piece
    numbers: np.ndarray | None = None  # labels for regression
    weight: np.ndarray | None = None
    ids: np.ndarray | None = None
    groups: np.ndarray | None = None
    bad: list[Bad] = field(default_factory=list)
    table: Any = None  # passes data from the format's ``parse`` to its ``settle``


class Content(NamedTuple):
    """What the bytes of a shard say without being parsed."""

    lines: int  # as readers count them: also empty ones; of Parquet and Arrow, rows
    checksum: int  # CRC-32


class Format:
    """Base class of formats. A run creates one instance for all files that have the format.

    ``parse`` must be defined. ``unused_options`` names the options of ``read`` about columns that have no effect for
    this format, each with the reason.
    """

    unused_options: ClassVar[Mapping[str, str]] = MappingProxyType({})
    label_separator: ClassVar[str | None] = None  # between several labels of a row, unless ``read`` is told another

    def __init__(self, options: Options, notes: list[str]) -> None:
        self.options: Options = options
        self.notes: list[str] = notes

    def pieces(self, stream: Stream) -> Iterator[Any]:
        """Cut a stream into pieces, in order, in a thread of its own."""
        raise NotImplementedError

    def parse(self, piece: Any) -> Parsed:
        """Parse one piece; several threads call this at the same time."""
        raise NotImplementedError

    def settle(self, parsed: Parsed) -> Parsed:
        """Finish a piece with what earlier pieces decide; called in order."""
        return parsed

    def found(self) -> dict[str, Any]:
        """The decisions about columns, as options of ``read`` for other files of this kind."""
        return {}

    def decisions(self) -> Any:
        """All that the first rows have decided for later ones, to be pickled; None if they decide nothing."""
        return None

    def resume(self, decisions: Any) -> None:
        """Go on from the decisions of another reader, as if its rows had been read here."""

    def parts(self, stream: Stream, count: int, apply: Apply) -> Sequence[Part]:
        """Cut an uncompressed file into about ``count`` parts, in order; none if it cannot be cut.

        ``apply(function, items)`` is ``map``, or does the same in several processes.
        """
        return []

    def content(self, stream: Stream, checked: bool = True) -> Content:
        """Count the lines of a stream, and compute its checksum; unless it is to be ``checked``, this is 0."""
        buffer = bytearray(READ)
        array = np.frombuffer(buffer, dtype=np.uint8)
        end = line_end(stream)
        lines, checksum, last = 0, 0, end
        while size := stream.fill(array):
            lines += int(np.count_nonzero(array[:size] == end))
            checksum = zlib.crc32(memoryview(buffer)[:size], checksum) if checked else 0
            last = buffer[size - 1]
        stream.refuse_truncated()
        return Content(lines + int(last != end), checksum)


READERS: dict[str, type[Format]] = {}
EXTENSIONS: dict[str, str] = {}


def reader(name: str, extensions: Iterable[str]) -> Callable[[AnyClass], AnyClass]:
    """Register a class as the reader of a format. What it does not define comes from ``Format``."""

    def register(cls: AnyClass) -> AnyClass:
        complete = issubclass(cls, Format)
        READERS[name] = cls if complete else type(cls.__name__, (cls, Format), {"__module__": cls.__module__})
        EXTENSIONS.update(dict.fromkeys(extensions, name))
        return cls

    return register


def readers() -> dict[str, type[Format]]:
    """All readers by name, including every file in ``formats/``."""
    import_formats()
    return READERS


@cache
def import_formats() -> None:
    import onlearn.data.formats as folder

    for module in pkgutil.iter_modules(folder.__path__):
        importlib.import_module(f"{folder.__name__}.{module.name}")


def format_name(stream: Stream, notes: list[str]) -> str:
    """The name of the format of a stream, by its extension or its first lines."""
    readers()  # which fills EXTENSIONS
    name = next((EXTENSIONS[end] for end in stream.source.extensions[:1] if end in EXTENSIONS), None)
    if name is None or name == "fasttext":  # a .txt file may have any format
        name, why = sniff(stream, name)
        notes.append(f"{stream.source.name}: read as {name}: {why}")
    return name


def sniff(stream: Stream, expected: str | None) -> tuple[str, str]:
    """The name of the format of a stream, and the reason. ``expected`` is the format that the extension suggests."""
    start = stream.head(8)
    if start.startswith(b"PAR1"):
        return "parquet", "it begins with PAR1"
    if start.startswith(b"ARROW1"):
        return "arrow", "it begins with ARROW1"
    all_lines = first_lines(stream)[:SNIFFED_LINES]
    lines = [line for line in all_lines if line.strip()]
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
    if all(VW_LINE.match(line) and len(line.partition(b"|")[0].split()) <= VW_WORDS for line in lines):
        return "vw", "lines have a | before the features"
    if expected == "fasttext" and any(line.lstrip().startswith(b"__label__") for line in lines):
        return "fasttext", "lines begin with __label__"
    if is_conll(all_lines):
        return "conll", "lines have the same number of columns, and empty ones between"
    texts = [line.decode("utf-8", "replace") for line in lines]
    delimiter = guess_delimiter(texts)
    if sum(delimiter in line for line in texts) >= 0.9 * len(texts):
        return ("tsv" if delimiter == "\t" else "csv"), f"{delimiter!r} separates the columns"
    if is_conll(first_lines(stream)):
        return "conll", "lines have the same number of columns, and empty ones between"
    raise DataError(f"{stream.source.name}: the format cannot be told from its name or its first lines: say format=")


def is_json(line: bytes | str) -> bool:
    """Whether a line is a JSON object."""
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
            if not SVMLIGHT_PAIR.fullmatch(word.removeprefix(b"qid:") if word.startswith(b"qid:1") else word):
                return word.startswith(b"qid:")
    return pairs > 0


def is_conllu(lines: list[bytes]) -> bool:
    rows = [line.split(b"\t") for line in lines if not line.startswith(b"#")]
    return bool(rows) and all(len(row) == 10 and row[0][:1].isdigit() for row in rows)


def is_conll(lines: list[bytes]) -> bool:
    widths = {len(line.split()) for line in lines if line.strip() and not line.startswith(b"-DOCSTART-")}
    return len(widths) == 1 and widths.pop() > 1 and any(not line.strip() for line in lines)


def guess_delimiter(lines: list[str]) -> str:
    """The delimiter that cuts the lines into the most cells, and into the same number in each line."""
    best, best_score = ",", 0.0
    for delimiter in DELIMITERS:
        counts = Counter(without_quoted(line).count(delimiter) for line in lines)
        count, lines_with = counts.most_common(1)[0]
        score = count * (lines_with / len(lines)) ** 4
        if count and score > best_score:
            best, best_score = delimiter, score
    return best


def without_quoted(line: str) -> str:
    """A line without its quoted parts. A doubled quote ends one part and begins the next."""
    return re.sub(r'"[^"]*"', "", line)
