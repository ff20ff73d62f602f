"""fastText's labelled text: ``__label__a some words``. The rows are a table with one column, "text".

A row may have several labels, ``__label__a __label__b some words``, if that is the task.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from onlearn.data.arrow import codes, from_strings
from onlearn.data.bad_rows import Bad
from onlearn.data.blocks import Block
from onlearn.data.formats.scanning import Lines, drop_rows, line_starts
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
        lines, labels, texts, bad = [], [], [], []
        for line, raw in enumerate(content.split(b"\n")[:-1]):
            words = raw.strip(BLANKS)
            if not words:
                continue
            label, text = None, words
            if words.startswith(MARK):
                cut = words.split(None, 1)
                label, text = cut[0][len(MARK) :], cut[1] if len(cut) > 1 else b""
                while self.options.multilabel and label and text.startswith(MARK):
                    cut = text.split(None, 1)
                    other_label = cut[0][len(MARK) :]
                    label = label + UNIT.encode() + other_label if other_label else b""
                    text = cut[1] if len(cut) > 1 else b""
            reason, column = "", 0
            other = LABEL.search(text) if MARK in text else None
            if label == b"":
                reason = "the label is empty"
            elif other is not None:
                at_front = label is not None and not self.options.multilabel
                reason = "there is more than one label" if at_front else "__label__ must stand at the front"
                column = len(raw.rstrip(BLANKS)) - len(text) + other.start() + 1
            elif label is None and self.options.labelled:
                reason = "there is no __label__"
            try:
                name, text_here = None if label is None else label.decode(), text.decode()
            except UnicodeDecodeError:
                column = first_undecodable(raw)
                reason = f"byte {column} of the line is not UTF-8"
            if reason:
                bad.append(Bad(line, column, reason, raw))
                continue
            lines.append(line)
            labels.append(name)
            texts.append(text_here)
        rows = pa.table({"text": from_strings(texts)})
        parsed = Parsed(rows, np.array(lines, dtype=np.int64), len(starts), bad=bad)
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


def first_undecodable(raw: bytes) -> int:
    """The column of the first byte that is not UTF-8."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return error.start + 1
    return 0
