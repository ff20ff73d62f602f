"""svmlight (libsvm): ``label [qid:n] index:value ... # comment``.

An index is the column it names, so files that count from 1 leave column 0 empty. Indices need not ascend, the row is
sorted; one that comes twice stays twice, and whoever makes the matrix canonical sums the two, as SciPy does.
"""

from __future__ import annotations

import numpy as np

from onlearn.data.blocks import Block
from onlearn.data.lines import Lines, Room, bad_lines, drop_rows, fix_unsure, take_labels
from onlearn.data.registry import Options, Parsed, reader

SHORT = 64  # features up to which insertion sorts fastest
UNSURE = 1000  # numbers in a block that may have to be asked about, at first


@reader("svmlight", extensions=[".svm", ".svmlight", ".libsvm"])
class Svmlight(Lines):
    idle = dict.fromkeys(("target", "weight", "id", "types"), "the rows have no columns but numbers")

    def __init__(self, options: Options, notes: list[str]) -> None:
        super().__init__(options, notes)
        self.room = Room()

    def parse(self, block: Block) -> Parsed:
        from scipy.sparse import csr_matrix

        from onlearn.data.parse import svmlight as loop
        from onlearn.data.parse.table import grown, new_table

        options, text = self.options, block.text
        index: type = np.int32
        table, unsure = new_table(), UNSURE
        drop = options.missing != "error"
        while True:
            lines, most = self.room.of(block)
            rows = loop.new_rows(lines, unsure)
            indices: np.ndarray = np.empty(most, dtype=index)
            values = np.empty(most)
            counts = loop.Counts(
                *loop.parse(text, block.stop, indices, values, rows, table, options.regress, options.labelled, drop)
            )
            if counts.stopped == loop.WIDE:
                index = np.int64
            elif counts.stopped == loop.CROWDED:
                table = grown(table)
            elif counts.stopped == loop.FULL:
                self.room.more()
            elif counts.unsure > unsure:
                unsure = counts.unsure
            else:
                break
        self.room.took(block, counts.rows + counts.bad, counts.features)
        bad = bad_lines(block, rows, counts.bad, loop.REASONS)
        n, features = counts.rows, counts.features
        spoiled = fix_unsure(text, rows.unsure[: counts.unsure], values, rows.numbers, rows.indptr[: n + 1])
        if counts.unsorted:
            sort_rows(rows.unsorted[: counts.unsorted], rows.indptr[: n + 1], indices, values)
        indices, values = indices[:features], values[:features]
        width = int(indices.max()) + 1 if features else 0
        X = csr_matrix((n, width), dtype=np.float64)
        # Not by the constructor, which looks at all indices again.
        X.data, X.indices, X.indptr = values, indices, rows.indptr[: n + 1].astype(index)
        X.has_sorted_indices = True
        if not counts.unsorted:  # else SciPy will look, should anyone ask
            X.has_canonical_format = not counts.duplicates
        parsed = Parsed(X, rows.lines[:n], counts.lines, bad=bad)
        if counts.qids:
            parsed.groups = rows.qids[:n]
        if options.regress:
            parsed.numbers = rows.numbers[:n]
        else:
            names = [table.name(text, code) for code in range(int(table.size[0]))]
            spoiled |= take_labels(parsed, rows.codes[:n], names)
        drop_rows(parsed, block, spoiled)
        return parsed


def sort_rows(rows: np.ndarray, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray) -> None:
    """Sort the features of some rows by index."""
    from onlearn.data.parse import svmlight as loop

    lengths = indptr[rows + 1] - indptr[rows]
    loop.sort_rows(rows[lengths <= SHORT], indptr, indices, values)
    for row in rows[lengths > SHORT].tolist():
        at = slice(int(indptr[row]), int(indptr[row + 1]))
        order = np.argsort(indices[at], kind="stable")
        indices[at], values[at] = indices[at][order], values[at][order]
