"""Raw sentences: one a line, whose tokens stand between ASCII white space.

They have the column ``form``, and no labels. A no-break space is part of a word, as in CoNLL files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import ClassVar

import numpy as np

from onlearn.data.bad_rows import Bad, PieceBad
from onlearn.data.batch import Sentences
from onlearn.data.blocks import Block
from onlearn.data.formats.scanning import Lines, first_not_text, not_text_at
from onlearn.data.registry import Parsed, reader

UNUSUAL = (b"\0", b"\x1c", b"\x1d", b"\x1e", b"\x1f")  # no text, and what is white space to str.split alone
TOKEN = re.compile(r"[^ \t\n\r\f\v]+")


def tokens_of(text: str) -> list[str]:
    """The tokens of a sentence.

    >>> tokens_of("The dog  barks .")
    ['The', 'dog', 'barks', '.']
    >>> tokens_of("10\\xa0000 dogs")
    ['10\\xa0000', 'dogs']
    """
    return TOKEN.findall(text)


@reader("sentences", extensions=[])
class RawSentences(Lines):
    """Raw sentences; lines without tokens are skipped."""

    unused_options: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("target", "weight", "id", "types"), "the rows are sentences without columns"
    )

    def parse(self, block: Block) -> Parsed:
        content = block.text[: block.stop].tobytes()
        bad = PieceBad()
        sentences, words = _split(content, bad)
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        lines = np.flatnonzero(lengths)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths[lines])])
        column = np.empty(len(words), dtype=object)
        column[:] = words
        return Parsed(Sentences({"form": column}, offsets), lines, content.count(b"\n"), bad=bad.all())


def _split(content: bytes, bad: PieceBad) -> tuple[Sequence[Sequence[object]], list[str]]:
    """The tokens of each line, and the words of all; lines that are no texts are bad rows, and have no tokens."""
    if content.isascii() and not any(blank in content for blank in UNUSUAL):  # str.split is quicker, and does the same
        texts = [text.split() for text in content.decode().split("\n")]
        return texts, list(chain.from_iterable(texts))
    lines = content.split(b"\n")
    if first_not_text(content):
        lines = [_checked(raw, line, bad) for line, raw in enumerate(lines)]
    tokens = [raw.split() for raw in lines]
    joined = b"\n".join(chain.from_iterable(tokens)).decode()
    return tokens, joined.split("\n") if joined else []


def _checked(raw: bytes, line: int, bad: PieceBad) -> bytes:
    """A line, if it is a text; another one is a bad row, and has no tokens."""
    if place := first_not_text(raw):
        bad.append(Bad(line, place, not_text_at(raw, place), raw))
        return b""
    return raw
