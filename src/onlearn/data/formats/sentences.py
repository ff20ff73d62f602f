"""Raw sentences: one a line, whose tokens stand between white space. They have the column ``form``, and no labels."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import ClassVar

import numpy as np

from onlearn.data.bad_rows import Bad
from onlearn.data.batch import Sentences
from onlearn.data.formats.scanning import Lines
from onlearn.data.registry import Parsed, reader
from onlearn.data.sources import Block


@reader("sentences", extensions=[])
class RawSentences(Lines):
    """Raw sentences; lines without tokens are skipped."""

    unused_options: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("target", "weight", "id", "types"), "the rows are sentences without columns"
    )

    def parse(self, block: Block) -> Parsed:
        content = block.text[: block.stop].tobytes()
        bad: list[Bad] = []
        count = content.count(b"\n")
        try:
            texts = content.decode().split("\n")
        except UnicodeDecodeError:
            texts = [_decoded(raw, line, bad) for line, raw in enumerate(content.split(b"\n"))]
        sentences = [text.split() for text in texts]
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        lines = np.flatnonzero(lengths)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths[lines])])
        words = np.empty(int(offsets[-1]), dtype=object)
        words[:] = list(chain.from_iterable(sentences))
        return Parsed(Sentences({"form": words}, offsets), lines, count, bad=bad)


def _decoded(raw: bytes, line: int, bad: list[Bad]) -> str:
    """A line as text; one that cannot be is a bad row, and has no tokens."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        bad.append(Bad(line, error.start + 1, f"byte {error.start + 1} of the line is not UTF-8", raw))
        return ""
