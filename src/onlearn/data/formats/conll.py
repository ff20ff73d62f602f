"""CoNLL columns (a token a line, an empty line after a sentence) and CoNLL-U.

Columns stand between tabs if the first token of a file has any, else between ASCII white space: a no-break space is
part of a word. The label of a token is the last column of CoNLL, ``upos`` of CoNLL-U, or the one that ``target`` names;
that column is also among the columns. A sentence with a bad line is a bad row.

Lines that begin with ``# `` before the first token of a sentence are comments, unless they have as many columns as
tokens have: ``# # O`` is a token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onlearn.data.bad_rows import Bad, DataError, PieceBad
from onlearn.data.batch import Aside, Sentences
from onlearn.data.blocks import Block, blank_line_ends, blocks
from onlearn.data.cut_points import Nearby, line_start, places, spans
from onlearn.data.formats.scanning import first_not_text, not_text_at, what_is_wrong_with
from onlearn.data.parts import Part, Span
from onlearn.data.registry import Apply, Format, Options, Parsed, reader
from onlearn.data.sources import Stream
from onlearn.data.table_roles import find_column

UNIVERSAL = ["id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"]
BREAKS = (b"\n\n", b"\n\r\n")
NAMED_COMMENT = re.compile(rb"# *(?:[\w.:-]+ += |newdoc\b|newpar\b)")  # a comment, however many columns it has


class Beginning(NamedTuple):
    """What the first token says about a file."""

    separator: bytes | None


class Piece(NamedTuple):
    """Whole sentences of a file."""

    block: Block
    separator: bytes | None  # None: ASCII white space


def last_sentence_end(text: np.ndarray, stop: int, final: bool, gaps: Sequence[int] = ()) -> int:
    """Where the last whole sentence ends: after an empty line; 0 if there is none."""
    if final:
        return stop
    content = text[:stop].tobytes()
    empty = max(content.rfind(gap) + len(gap) if gap in content else 0 for gap in BREAKS)
    return empty or int(blank_line_ends(text[:stop]).max(initial=0))


def sentence_start(source: Nearby, place: int, stop: int) -> int | None:
    """The first place from ``place`` on, and before ``stop``, that follows an empty line; None if there is none."""
    start = line_start(source, place, stop)
    while start is not None:
        if any(source.between(max(0, start - len(gap)), start) == gap for gap in BREAKS):
            return start
        start = line_start(source, start + 1, stop)
    return None


def may_be_comment(line: bytes) -> bool:
    """Whether a line before a sentence can be a comment of CoNLL.

    >>> may_be_comment(b"# sent_id = 1"), may_be_comment(b"#hashtag NN"), may_be_comment(b"#\\tNN")
    (True, False, False)
    """
    return line.startswith(b"# ") or line.rstrip() == b"#"


@reader("conll", extensions=[".conll", ".iob", ".bio"])
class Conll(Format):
    """CoNLL columns. Without names they are called c0, c1, ..."""

    separator: ClassVar[bytes | None] = None  # None: the first token of a file decides
    names: ClassVar[list[str] | None] = None
    usual_target: ClassVar[str | None] = None  # None: the last column
    unused_options: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("weight", "id", "types"), "the rows are sentences, whose columns are those of words"
    )

    def __init__(self, options: Options, notes: list[str]) -> None:
        super().__init__(options, notes)
        self.columns: list[str] | None = self.names
        self.target: str | None = None

    def pieces(self, stream: Stream) -> Iterator[Any]:
        where, begun, separator, part = stream.source.name, False, self.separator, stream.source.part
        known = part.beginning if isinstance(part, Span) else None
        if known is not None:
            separator = known.separator
        if self.options.regress:
            raise DataError(f"{where} holds sentences: their labels are tags, and no numbers to regress on")
        waiting: list[Block] = []  # for a token that decides about columns
        for block in self._blocks(stream):
            waiting.append(block)
            if not begun:
                first = self.first_token(block)
                if first is None:
                    continue
                if known is None:
                    separator = self.separator_in(first)
                if self.columns is None:
                    self.columns = [f"c{n}" for n in range(len(first.split(separator)))]
                self.target, begun = self.target_in(self.columns, where), True
            yield from (Piece(one, separator) for one in waiting)
            waiting.clear()
        yield from (Piece(one, separator) for one in waiting)

    def _blocks(self, stream: Stream) -> Iterator[Block]:
        """A stream as blocks of whole sentences."""
        return blocks(stream, self.options.block_size, last_sentence_end, self.options.max_line, blank_line_ends)

    def parts(self, stream: Stream, count: int, apply: Apply) -> Sequence[Part]:
        size = stream.size
        first = next((found for block in self._blocks(stream) if (found := self.first_token(block)) is not None), None)
        if first is None:
            return []
        wanted = places(size, count)
        nearby = Nearby(stream.source)
        cuts = (sentence_start(nearby, place, after) for place, after in zip(wanted, [*wanted[1:], size]))
        return spans([cut for cut in cuts if cut is not None], size, Beginning(self.separator_in(first)))

    def separator_in(self, first: bytes) -> bytes | None:
        """What stands between the columns of a file with this first token; None: ASCII white space."""
        return b"\t" if self.separator is None and b"\t" in first else self.separator

    def decisions(self) -> Any:
        return None if self.columns is None else (self.columns, self.target)

    def resume(self, decisions: Any) -> None:
        self.columns, _ = decisions

    def first_token(self, block: Block) -> bytes | None:
        """The first line that is a token and cannot be a comment."""
        lines = block.text[: block.stop].tobytes().split(b"\n")
        return next(
            (one.rstrip(b"\r") for one in lines if one.strip() and self.is_token(one) and not may_be_comment(one)), None
        )

    def target_in(self, names: list[str], where: str) -> str | None:
        """The column of the labels; None if the file has words only, or lacks labels that it need not have."""
        wanted = self.options.target
        if wanted is None:
            return find_column(names, self.usual_target or -1, "target", where) if len(names) > 1 else None
        known = (*names, *map(str, range(-len(names), len(names))))
        if not self.options.labelled and isinstance(wanted, str) and wanted not in known:
            return None
        return find_column(names, wanted, "target", where)

    def is_token(self, line: bytes) -> bool:
        """Whether a line of a sentence, which is not empty, is a token."""
        return not line.startswith(b"-DOCSTART-")

    def parse(self, piece: Piece) -> Parsed:
        names, separator = self.columns or [], piece.separator
        width = len(names)
        text = piece.block.text[: piece.block.stop].tobytes()
        at = -1 if self.target is None else names.index(self.target)
        valid = not first_not_text(text) and not (at >= 0 and has_control(text))
        content = text.split(b"\n")
        if b"\r" in text:
            content = [raw.rstrip(b"\r") for raw in content]
        cells: list[bytes] = []  # of all tokens, one after another
        asides: list[Aside] = []
        offsets, lines, bad = [0], [], PieceBad()
        first_line, error = -1, None
        for line, raw in enumerate(content):  # the last one is empty, and ends the last sentence
            if not raw or raw.isspace():
                if first_line >= 0 and error is None:
                    offsets.append(len(cells) // width)
                    lines.append(first_line)
                elif error is not None:
                    del cells[offsets[-1] * width :]
                    while asides and asides[-1].sentence == len(lines):
                        asides.pop()
                    bad.append(error._replace(raw=b"\n".join(content[first_line:line])))
                first_line, error = -1, None
                continue
            if not self.is_token(raw):
                if self.options.comments:
                    asides.append(Aside(len(lines), len(cells) // width, raw.decode("utf-8", "surrogateescape")))
                continue
            found = raw.split(separator)
            if first_line < 0:
                if may_be_comment(raw) and (len(found) != width or NAMED_COMMENT.match(raw)):
                    continue
                first_line = line
            if (len(found) != width or not valid) and error is None:
                reason = what_is_wrong(raw, found, width, at)
                error = Bad(line, 0, reason, raw) if reason else None
            cells += found
        words = b"\n".join(cells).decode().split("\n") if cells else []
        columns = {name: np.array(words[n::width], dtype=object) for n, name in enumerate(names)}
        rows = Sentences(columns, np.array(offsets, dtype=np.int64), asides)
        parsed = Parsed(rows, np.array(lines, dtype=np.int64), len(content) - 1, bad=bad.all())
        if self.target is not None:
            label = words[at::width]
            parsed.names = list(dict.fromkeys(label))
            code = {name: n for n, name in enumerate(parsed.names)}
            parsed.codes = np.array([code[name] for name in label], dtype=np.int64)
        return parsed


def has_control(text: bytes) -> bool:
    """Whether a text has control characters other than tabs and line ends."""
    control = int(np.count_nonzero(np.frombuffer(text, dtype=np.uint8) < 32))
    return b"\x7f" in text or control > text.count(b"\t") + text.count(b"\n") + text.count(b"\r\n")


def what_is_wrong(line: bytes, found: list[bytes], width: int, label: int) -> str:
    """What is wrong with the line of a token with these columns; empty if nothing is. ``label``: -1 without one."""
    if place := first_not_text(line):
        return not_text_at(line, place)
    if len(found) == width:
        return what_is_wrong_with(found[label]) if label >= 0 else ""
    hint = ": comments stand before a sentence" if may_be_comment(line) else ""
    return f"there are {len(found)} columns and not {width}{hint}"


@reader("conllu", extensions=[".conllu"])
class Conllu(Conll):
    """CoNLL-U."""

    separator = b"\t"
    names = UNIVERSAL
    usual_target = "upos"

    def is_token(self, line: bytes) -> bool:
        """Whether a line is a token: no comment, no word that spans tokens (1-2), no empty node (1.1)."""
        number = line.partition(b"\t")[0]
        return not line.startswith(b"#") and b"-" not in number and b"." not in number
