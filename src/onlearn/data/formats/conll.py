"""CoNLL columns (a token a line, an empty line after a sentence) and CoNLL-U.

The label of a token is the last column of CoNLL, ``upos`` of CoNLL-U, or what ``target`` says; it stays among the
columns, too. A sentence with a bad line is bad as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from onlearn.data.bad_rows import Bad, DataError
from onlearn.data.batch import Sentences
from onlearn.data.registry import Options, Parsed, reader
from onlearn.data.sources import Block, Stream, blocks
from onlearn.data.table_roles import find_column

UNIVERSAL = ["id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"]
BREAKS = (b"\n\n", b"\n\r\n")


def last_sentence_end(text: np.ndarray, stop: int, final: bool) -> int:
    """Where the last whole sentence ends: after an empty line; 0 if there is none."""
    content = text[:stop].tobytes()
    return max(content.rfind(gap) + len(gap) if gap in content else 0 for gap in BREAKS)


@reader("conll", extensions=[".conll", ".iob", ".bio"])
class Conll:
    separator: bytes | None = None  # any blanks
    names: list[str] | None = None  # c0, c1, ...
    usual_target: str | None = None  # the last
    idle = dict.fromkeys(("weight", "id", "types"), "the rows are sentences, whose columns are those of words")

    def __init__(self, options: Options, notes: list[str]) -> None:
        self.options, self.notes = options, notes
        self.columns: list[str] | None = self.names
        self.target: str | None = None

    def pieces(self, stream: Stream) -> Iterator[Any]:
        where, begun = stream.source.name, False
        if self.options.regress:
            raise DataError(f"{where} holds sentences: their labels are tags, and no numbers to regress on")
        for block in blocks(stream, self.options.block_size, last_sentence_end):
            if self.columns is None:
                first = next(
                    (line for line in block.text[: block.stop].tobytes().split(b"\n") if self.counts(line)), b""
                )
                self.columns = [f"c{n}" for n in range(len(first.split(self.separator)))]
            if not begun:
                self.target, begun = self.target_in(self.columns, where), True
            yield block

    def target_in(self, names: list[str], where: str) -> str | None:
        """The column of the labels; None in a file that has nothing but words, or need not have any."""
        wanted = self.options.target
        if not names:
            return None
        if wanted is None:
            return find_column(names, self.usual_target or -1, "target", where) if len(names) > 1 else None
        known = (*names, *map(str, range(-len(names), len(names))))
        if not self.options.labelled and isinstance(wanted, str) and wanted not in known:
            return None
        return find_column(names, wanted, "target", where)

    def counts(self, line: bytes) -> bool:
        """Whether a line is a token."""
        return bool(line.strip()) and not line.startswith(b"-DOCSTART-")

    def parse(self, block: Block) -> Parsed:
        names = self.columns or []
        tokens: list[list[str]] = []
        offsets, lines, bad = [0], [], []
        begun, trouble = -1, None
        content = block.text[: block.stop].tobytes().split(b"\n")
        for line, raw in enumerate([*content[:-1], b""]):
            if raw.strip():
                if not self.counts(raw):
                    continue
                begun = line if begun < 0 else begun
                cells, reason = self.cells(raw, len(names))
                if reason and trouble is None:
                    trouble = Bad(line, 0, reason, raw)
                tokens.append(cells)
            elif begun >= 0:
                if trouble is None:
                    offsets.append(len(tokens))
                    lines.append(begun)
                else:
                    del tokens[offsets[-1] :]
                    raw = b"\n".join(content[begun:line])
                    bad.append(trouble._replace(raw=raw))
                begun, trouble = -1, None
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
        """The columns of a line, and what is wrong with it."""
        try:
            cells = raw.rstrip(b"\r").decode().split(None if self.separator is None else self.separator.decode())
        except UnicodeDecodeError as error:
            return [], f"byte {error.start + 1} of the line is not UTF-8"
        return cells, "" if len(cells) == width else f"there are {len(cells)} columns and not {width}"

    def settle(self, parsed: Parsed) -> Parsed:
        return parsed


@reader("conllu", extensions=[".conllu"])
class Conllu(Conll):
    separator = b"\t"
    names = UNIVERSAL
    usual_target = "upos"

    def counts(self, line: bytes) -> bool:
        """Comments, words that span tokens (1-2) and empty nodes (1.1) are not tokens."""
        number = line.partition(b"\t")[0]
        return bool(line.strip()) and not line.startswith(b"#") and b"-" not in number and b"." not in number
