"""CoNLL columns (a token a line, an empty line after a sentence) and CoNLL-U.

The label of a token is the last column of CoNLL, ``upos`` of CoNLL-U, or the one that ``target`` names; that column
is also among the columns. A sentence with a bad line is a bad row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from onlearn.data.bad_rows import Bad, DataError
from onlearn.data.batch import Sentences
from onlearn.data.registry import Format, Options, Parsed, reader
from onlearn.data.sources import Block, Stream, blocks
from onlearn.data.table_roles import find_column

UNIVERSAL = ["id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"]
BREAKS = (b"\n\n", b"\n\r\n")


def last_sentence_end(text: np.ndarray, stop: int, final: bool) -> int:
    """Where the last whole sentence ends: after an empty line; 0 if there is none."""
    content = text[:stop].tobytes()
    return max(content.rfind(gap) + len(gap) if gap in content else 0 for gap in BREAKS)


@reader("conll", extensions=[".conll", ".iob", ".bio"])
class Conll(Format):
    """CoNLL columns. Without names they are called c0, c1, ..."""

    separator: ClassVar[bytes | None] = None  # None: any blanks
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
        where, has_target = stream.source.name, False
        if self.options.regress:
            raise DataError(f"{where} holds sentences: their labels are tags, and no numbers to regress on")
        for block in blocks(stream, self.options.block_size, last_sentence_end):
            if self.columns is None:
                first = next(
                    (line for line in block.text[: block.stop].tobytes().split(b"\n") if self.is_token(line)), b""
                )
                self.columns = [f"c{n}" for n in range(len(first.split(self.separator)))]
            if not has_target:
                self.target, has_target = self.target_in(self.columns, where), True
            yield block

    def target_in(self, names: list[str], where: str) -> str | None:
        """The column of the labels; None if the file has words only, or lacks labels that it need not have."""
        wanted = self.options.target
        if not names:
            return None
        if wanted is None:
            return find_column(names, self.usual_target or -1, "target", where) if len(names) > 1 else None
        known = (*names, *map(str, range(-len(names), len(names))))
        if not self.options.labelled and isinstance(wanted, str) and wanted not in known:
            return None
        return find_column(names, wanted, "target", where)

    def is_token(self, line: bytes) -> bool:
        """Whether a line is a token."""
        return bool(line.strip()) and not line.startswith(b"-DOCSTART-")

    def parse(self, block: Block) -> Parsed:
        names = self.columns or []
        tokens: list[list[str]] = []
        offsets, lines, bad = [0], [], []
        first_line, error = -1, None
        content = block.text[: block.stop].tobytes().split(b"\n")
        for line, raw in enumerate([*content[:-1], b""]):
            if raw.strip():
                if not self.is_token(raw):
                    continue
                first_line = line if first_line < 0 else first_line
                cells, reason = self.cells(raw, len(names))
                if reason and error is None:
                    error = Bad(line, 0, reason, raw)
                tokens.append(cells)
            elif first_line >= 0:
                if error is None:
                    offsets.append(len(tokens))
                    lines.append(first_line)
                else:
                    del tokens[offsets[-1] :]
                    raw = b"\n".join(content[first_line:line])
                    bad.append(error._replace(raw=raw))
                first_line, error = -1, None
        columns = {name: np.array([token[n] for token in tokens], dtype=object) for n, name in enumerate(names)}
        rows = Sentences(columns, np.array(offsets, dtype=np.int64))
        parsed = Parsed(rows, np.array(lines, dtype=np.int64), len(content) - 1, bad=bad)
        if self.target is not None:
            label = columns[self.target]
            parsed.names = list(dict.fromkeys(label.tolist()))
            code = {name: n for n, name in enumerate(parsed.names)}
            parsed.codes = np.array([code[name] for name in label.tolist()], dtype=np.int64)
        return parsed

    def cells(self, raw: bytes, width: int) -> tuple[list[str], str]:
        """The columns of a line, and what is wrong with it, if anything."""
        try:
            cells = raw.rstrip(b"\r").decode().split(None if self.separator is None else self.separator.decode())
        except UnicodeDecodeError as error:
            return [], f"byte {error.start + 1} of the line is not UTF-8"
        return cells, "" if len(cells) == width else f"there are {len(cells)} columns and not {width}"


@reader("conllu", extensions=[".conllu"])
class Conllu(Conll):
    """CoNLL-U."""

    separator = b"\t"
    names = UNIVERSAL
    usual_target = "upos"

    def is_token(self, line: bytes) -> bool:
        """Whether a line is a token: no comment, no word that spans tokens (1-2), no empty node (1.1)."""
        number = line.partition(b"\t")[0]
        return bool(line.strip()) and not line.startswith(b"#") and b"-" not in number and b"." not in number
