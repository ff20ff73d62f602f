"""Shards of files: parts of about one size that ``onlearn.data.read`` reads as if each were a file.

``cut`` names the shards, which takes no more than a little reading around the places where files are cut. The rows of
all shards, one after another, are those of the files, if each reader is given the decisions about header, types and
columns that the first rows lead to: ``first_decisions`` makes them, the option ``decisions`` of ``read`` takes them.

>>> import tempfile
>>> from pathlib import Path
>>> from onlearn.data import read
>>> path = Path(tempfile.mkdtemp()) / "a.csv"
>>> _ = path.write_text("x,label\\n" + "".join(f"{n},{'ab'[n % 2]}\\n" for n in range(1000)))
>>> shards = cut(path, 3)
>>> [(shard.part.start, shard.part.stop) for shard in shards]
[(0, 1968), (1968, 3936), (3936, 5898)]
>>> decided = first_decisions(path)
>>> [sum(map(len, read(shard, decisions=decided, workers=0))) for shard in shards]
[345, 328, 327]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onlearn.byte_sizes import parse_size
from onlearn.data.bad_rows import BadRows, DataError
from onlearn.data.blocks import SIZE
from onlearn.data.file_reader import read
from onlearn.data.parts import Span
from onlearn.data.plain_text import RETURN
from onlearn.data.registry import Apply, Content, Format, Options, format_name, readers
from onlearn.data.sources import LONGEST, Source, Stream, line_end, sources

# None of the files of a format may have rows.
FIRST_BATCH = {
    "workers": 0, "table_required": False, "strict": False, "cache": False, "live": False, "decisions": {},
}  # fmt: skip


def cut(
    named: Any,
    count: int,
    *,
    format: str | None = None,
    delimiter: str | None = None,
    block_size: int = SIZE,
    max_line: int | str = LONGEST,
    notes: list[str] | None = None,
    apply: Apply = map,
) -> list[Source]:
    """Cut files into about ``count`` shards, in the order of the files and of their rows.

    Shards have about the same number of bytes. A shard belongs to one file, so there are at least as many as files. A
    row that is longer than a shard makes a longer one. Which shards there are depends on the files and on the options
    only. Compressed files, Arrow streams and formats that do not say how to cut them give one shard each; Parquet is
    cut between row groups, Arrow files between record batches, CoNLL after empty lines, CSV where no quoted cell can be
    open.

    :param named: paths, patterns, URLs, as ``onlearn.data.read`` takes them, but not standard input
    :param format, delimiter, block_size, max_line: as the readers of the shards will be given them
    :param notes: gets a sentence for each empty file, which is left out, and for each format that is guessed
    :param apply: called as ``apply(function, items)`` instead of ``map``, to search CSV files for quotes in other
        processes: where there is none for a megabyte after a place, the next 64 MB are searched for one
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, not {count}")
    if format is not None and format not in readers():
        raise DataError(f"there is no format {format!r}; there are {', '.join(sorted(readers()))}")
    notes = [] if notes is None else notes
    files = sources(named)
    if any(file.is_stdin for file in files):
        raise DataError("standard input ('-') cannot be cut into shards: write it to a file first")
    sizes = [file.size or 0 for file in files]
    total = sum(sizes)
    longest = parse_size(max_line, "max_line")
    options = Options(delimiter=delimiter, block_size=block_size, max_line=longest)
    shards: list[Source] = []
    for file, size in zip(files, sizes):
        shards += _shards_of(file, max(1, round(count * size / max(total, 1))), format, options, notes, apply)
    if not shards:
        names = ", ".join(file.name for file in files[:3])
        raise DataError(f"{names} {'is' if len(files) == 1 else 'are'} empty")
    return shards


def _shards_of(
    file: Source, count: int, given: str | None, options: Options, notes: list[str], apply: Apply
) -> list[Source]:
    """The shards of one file; none if it is empty."""
    if file.size is None:  # of a pipe, or of a server that does not say how long it is
        return [file]
    stream = Stream(file)
    try:
        if not stream.head(1):
            notes.append(f"{file.name} is empty")
            return []
        stream.refuse_compressed()
        name = given or file.format or format_name(stream, notes)
        file = file._replace(format=name)
        if file.part is not None:
            raise DataError(f"{file.name} is cut already: cut the whole file")
        if file.compression is not None:
            return [file]
        stream.refuse_utf16()
        ends_with_returns = line_end(stream) == RETURN
        form: Format = readers()[name](options, notes)
        parts = form.parts(stream, count, apply)
        if ends_with_returns and any(isinstance(part, Span) for part in parts):  # text is cut at newlines
            return [file]
        return [file._replace(part=part) for part in parts] or [file]
    finally:
        stream.close()


def first_decisions(named: Any, *, format: str | None = None, **options: Any) -> dict[str, Any]:
    """What the first rows of some files decide about header, types and columns: ``read(shard, decisions=...)``.

    Reads the first batch of the first file, and of the first file of each other format. ``options`` are those of
    ``read``. Give the files or their shards, all of them.
    """
    options = {name: value for name, value in options.items() if name != "bad"}
    by_format: dict[str, list[Source]] = {}
    for source in sources(named):
        name = format or source.format or _name_of(source)
        if name is not None and readers()[name].decisions is not Format.decisions:
            by_format.setdefault(name, []).append(source)
    decisions: dict[str, Any] = {}
    for name, files in by_format.items():
        whole = list(dict.fromkeys(file._replace(part=None) for file in files))
        with read(whole, format=name, **{**options, **FIRST_BATCH}, bad=BadRows(limit=1.0)) as reader:
            next(reader, None)
            decisions |= reader.decisions()
    return decisions


def _name_of(source: Source) -> str | None:
    """The name of the format of a file; None if it is empty."""
    stream = Stream(source)
    try:
        return format_name(stream, []) if stream.head(1) else None
    finally:
        stream.close()


def content(shard: Source, checked: bool = True) -> Content:
    """Count the lines of a shard, and compute its checksum, without parsing it; of compressed files, those of the text.

    The checksum is that which ``Reader.checksums`` has when the shard has been read. Of Parquet and Arrow, rows are
    counted, and only this function makes checksums. Unless it is to be ``checked``, the checksum is left out, as 0.
    """
    name = shard.format or _name_of(shard)
    if name is None:
        return Content(0, 0)
    stream = Stream(shard)
    try:
        return readers()[name](Options(), []).content(stream, checked)
    finally:
        stream.close()


def count_lines(shard: Source) -> int:
    """The number of lines of a shard, as readers count them. With those before it, lines of the file are known."""
    return content(shard, checked=False).lines


def numbered(shards: Sequence[Source], lines: Sequence[int]) -> list[Source]:
    """Shards whose readers number lines as in the files; ``lines`` are the numbers of lines of all shards, in order."""
    before: dict[str, int] = {}
    made = []
    for shard, count in zip(shards, lines):
        start = before.setdefault(shard.name, 0)
        before[shard.name] += count
        made.append(shard if shard.part is None else shard._replace(part=shard.part._replace(lines_before=start)))
    return made
