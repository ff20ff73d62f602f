"""Raw sentences: one a line, words separated by blanks. They have one column, ``form``, and no labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from onlearn.data.bad_rows import Bad
from onlearn.data.batch import Sentences
from onlearn.data.formats.scanning import Lines
from onlearn.data.registry import Parsed, reader
from onlearn.data.sources import Block


@reader("sentences", extensions=[])
class RawSentences(Lines):
    """Sentences without labels; empty lines are skipped."""

    unused_options: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("target", "weight", "id", "types"), "the rows are raw sentences, which have words only"
    )

    def parse(self, block: Block) -> Parsed:
        words: list[str] = []
        offsets, lines, bad = [0], [], []
        content = block.text[: block.stop].tobytes().split(b"\n")[:-1]
        for line, raw in enumerate(content):
            try:
                found = [word.decode() for word in raw.split()]  # of bytes: a no-break space is part of a word
            except UnicodeDecodeError:
                bad.append(Bad(line, 0, "the line is not UTF-8", raw))
                continue
            if found:
                words += found
                offsets.append(len(words))
                lines.append(line)
        form = np.empty(len(words), dtype=object)
        form[:] = words
        rows = Sentences({"form": form}, np.array(offsets, dtype=np.int64))
        return Parsed(rows, np.array(lines, dtype=np.int64), len(content), bad=bad)
