"""fastText's labelled text: ``__label__a some words``. The rows are a table with one column, "text".

A row may have several labels, ``__label__a __label__b some words``, if that is the task.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import ClassVar

import numpy as np

from onlearn.data.arrow import codes, from_strings
from onlearn.data.bad_rows import Bad, PieceBad
from onlearn.data.blocks import Block
from onlearn.data.formats.scanning import (
    Lines,
    drop_rows,
    first_not_text,
    line_starts,
    not_text_at,
    what_is_wrong_with,
)
from onlearn.data.label_sets import UNIT
from onlearn.data.registry import Parsed, reader
from onlearn.data.table_roles import as_numbers

BLANKS = b" \t\r"
MARK = b"__label__"
LABEL = re.compile(rb"(?<!\S)" + MARK)  # MARK at the beginning of a word


@reader("fasttext", extensions=[".txt", ".ft", ".fasttext"])
class FastText(Lines):
    """fastText's format, one row a line."""

    unused_options: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("target", "weight", "id", "group", "types"), "the rows have no columns but a text, behind its label"
    )

    def parse(self, block: Block) -> Parsed:
        import pyarrow as pa

        starts = line_starts(block)
        content = block.text[: block.stop].tobytes()
        lines, labels, texts, bad = [], [], [], PieceBad()
        is_text, named = not first_not_text(content), cache(name_of)  # the labels of most rows are known
        for line, raw in enumerate(content.split(b"\n")[:-1]):
            words = raw.strip(BLANKS)
            if not words:
                continue
            found: list[bytes] = []  # the labels of the row
            text = words
            while text.startswith(MARK) and (not found or self.options.multilabel):
                cut = text.split(None, 1)
                found.append(cut[0][len(MARK) :])
                text = cut[1] if len(cut) > 1 else b""
            reason, column = "", 0
            other = LABEL.search(text) if MARK in text else None
            if b"" in found:
                reason = "the label is empty"
            elif other is not None:
                at_front = found and not self.options.multilabel
                reason = "there is more than one label" if at_front else "__label__ must stand at the front"
                column = len(raw.rstrip(BLANKS)) - len(text) + other.start() + 1
            elif not found and self.options.labelled:
                reason = "there is no __label__"
            if not is_text and (place := first_not_text(raw)):
                reason, column = not_text_at(raw, place), place
            name, wrong_label = named(tuple(found))
            if reason := reason or wrong_label:
                bad.append(Bad(line, column, reason, raw))
                continue
            lines.append(line)
            labels.append(name)
            texts.append(text.decode())
        rows = pa.table({"text": from_strings(texts)})
        parsed = Parsed(rows, np.array(lines, dtype=np.int64), len(starts), bad=bad.all())
        column = from_strings(labels)
        if self.options.regress:
            parsed.numbers, wrong = as_numbers(column)
            if wrong.any():
                drop_rows(parsed, block, dict.fromkeys(np.flatnonzero(wrong).tolist(), "the label is not a number"))
        else:
            encoded = column.dictionary_encode()
            parsed.names = encoded.dictionary.to_pylist()
            parsed.codes = codes(encoded)
        return parsed


def name_of(labels: tuple[bytes, ...]) -> tuple[str | None, str]:
    """The name of the labels of a row, None if there is none; and what is wrong with them, if anything is."""
    for label in labels:
        if reason := what_is_wrong_with(label):
            return None, reason
    return (UNIT.join(map(bytes.decode, labels)) if labels else None), ""
