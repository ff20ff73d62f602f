"""Vowpal Wabbit text: ``[label [importance [base]]] ['tag]|space[:scale] name[:value] ...``.

Tags become ids. The base (an initial prediction) has no use here, and a note says so. Each feature needs a name.
"""

from __future__ import annotations

import numpy as np

from onlearn.data.blocks import Block
from onlearn.data.lines import Lines, Room, bad_lines, drop_rows, fix_unsure, rows_of_infinite, take_labels, wrong_bytes
from onlearn.data.registry import Options, Parsed, reader
from onlearn.inputs import all_finite
from onlearn.named import NamedRows

UNSURE = 1000  # numbers in a block that may have to be asked about, at first
BASE_NOTE = "vw: initial predictions (the third number before the |) are not used"


@reader("vw", extensions=[".vw"])
class VowpalWabbit(Lines):
    idle = dict.fromkeys(("target", "weight", "id", "types"), "the rows have no columns but names")

    def __init__(self, options: Options, notes: list[str]) -> None:
        super().__init__(options, notes)
        self.room = Room()

    def parse(self, block: Block) -> Parsed:
        from onlearn.data.parse import vw as loop
        from onlearn.data.parse.table import grown, new_table
        from onlearn.hashing import START

        options, text = self.options, block.text
        labels, spaces = new_table(), new_table()
        for array in (spaces.hashes, spaces.starts, spaces.lengths):
            array[0] = 0  # code 0 is the default namespace, without a name
        spaces.size[0] = 1
        seeds = np.zeros(len(spaces.hashes), dtype=np.uint64)
        seeds[0] = START
        drop = options.missing != "error"
        unsure = UNSURE
        while True:
            lines, most = self.room.of(block)
            rows, features = loop.new_rows(lines), loop.new_features(most, unsure)
            counts = loop.Counts(
                *loop.parse(
                    text, block.stop, rows, features, labels, spaces, seeds, options.regress, options.labelled, drop
                )
            )
            if counts.stopped == loop.CROWDED_LABELS:
                labels = grown(labels)
            elif counts.stopped == loop.CROWDED_SPACES:
                spaces = grown(spaces)
                seeds = np.concatenate([seeds, np.zeros(len(spaces.hashes) - len(seeds), dtype=np.uint64)])
            elif counts.stopped == loop.FULL:
                self.room.more()
            elif counts.unsure > unsure:
                unsure = counts.unsure
            else:
                break
        self.room.took(block, counts.rows + counts.bad, counts.features)
        bad = bad_lines(block, rows, counts.bad, loop.REASONS)
        n, most = counts.rows, counts.features
        indptr, asked = rows.indptr[: n + 1], features.unsure[: counts.unsure]
        spoiled = fix_unsure(text, asked, features.values, rows.numbers, indptr)
        scaled = asked[:, 0] >= 0
        with np.errstate(over="ignore", invalid="ignore"):
            features.values[asked[scaled, 0]] *= features.scales[: counts.unsure][scaled]
        if not all_finite(features.values[:most]):  # products with scales, which the loop does not look at
            spoiled |= rows_of_infinite(features.values, np.arange(most), indptr)
        names = [spaces.name(text, code) for code in range(int(spaces.size[0]))]
        prefixes = ("", *(name.decode("utf-8", "replace") + "^" for name in names[1:]))
        named = NamedRows(
            indptr,
            features.hashes[:most],
            features.values[:most],
            features.starts[:most],
            features.lengths[:most],
            features.groups[:most],
            text,
            prefixes,
        )
        parsed = Parsed(named, rows.lines[:n], counts.lines, bad=bad)
        if counts.weighted:
            parsed.weight = rows.weights[:n]
        if counts.tagged:
            parsed.ids = np.empty(n, dtype=object)
            for row, (start, stop) in enumerate(rows.tags[:n].tolist()):
                if stop > start:
                    parsed.ids[row] = text[start:stop].tobytes().decode("utf-8", "replace")
        if counts.based and BASE_NOTE not in self.notes:
            self.notes.append(BASE_NOTE)
        if options.regress:
            parsed.numbers = rows.numbers[:n]
        else:
            names = [labels.name(text, code) for code in range(int(labels.size[0]))]
            take_labels(parsed, rows.codes[:n], names)
        spoiled |= wrong_bytes(block, parsed.lines)
        drop_rows(parsed, block, spoiled)
        return parsed
