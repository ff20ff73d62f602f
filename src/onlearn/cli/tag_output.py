"""What ``onlearn predict`` writes of a tagger: labelled sentences as CoNLL, CoNLL-U or JSON lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from onlearn.data import Batch, Sentences
    from onlearn.data.batch import Aside
    from onlearn.models.tagger import Tagger


def conll_lines(batch: Batch, tagger: Tagger, codes: np.ndarray, marginals: np.ndarray | None) -> bytes:
    """A line for each token: its columns, the label and, with ``marginals``, the probability of that label.

    Of CoNLL-U the label takes its own column, so that what comes out is CoNLL-U, with all lines that are no tokens; a
    probability goes into ``misc``. A label that has no column in CoNLL-U is a last column, and makes it CoNLL.
    """
    import numpy as np

    from onlearn.data.formats.conll import UNIVERSAL

    sentences: Sentences = batch.parsed
    labels = np.array(tagger.labels, dtype=object)[codes]
    chances = None
    if marginals is not None:
        chances = np.char.mod("%.4f", marginals[np.arange(len(codes)), codes]).astype(object)
    columns = {name: sentences.columns[name] for name in sentences.columns}
    target = tagger.reading.get("target")
    universal = list(columns) == UNIVERSAL and target in UNIVERSAL
    if universal:
        columns[str(target)] = labels
        if chances is not None:
            misc = columns["misc"]
            before = np.where(misc == "_", "", misc + "|").astype(object)
            columns["misc"] = before + "Prob=" + chances
    else:
        columns["label"] = labels
        if chances is not None:
            columns["probability"] = chances
    rows = list(map("\t".join, zip(*(column.tolist() for column in columns.values()))))
    ends = sentences.offsets.tolist()
    rest = put_asides(rows, ends, sentences.asides) if universal else ""
    text = "".join("\n".join(rows[a:b]) + "\n\n" for a, b in pairwise(ends) if b > a)
    return (text + rest).encode("utf-8", "surrogateescape")  # asides need not be UTF-8


def put_asides(rows: list[str], ends: list[int], asides: Sequence[Aside]) -> str:
    """Put the lines that are no tokens before or behind those of tokens; returns those behind the last sentence.

    >>> from onlearn.data.batch import Aside
    >>> rows = ["1 do", "2 not"]
    >>> put_asides(rows, [0, 2], [Aside(0, 0, "# a"), Aside(0, 0, "1-2 don't"), Aside(0, 2, "2.1 x")])
    ''
    >>> rows
    ["# a\\n1-2 don't\\n1 do", '2 not\\n2.1 x']
    """
    behind: list[str] = []
    for sentence, token, line in asides:
        if sentence == len(ends) - 1:
            behind.append(f"{line}\n")
        elif token == ends[sentence + 1]:
            rows[token - 1] += f"\n{line}"
    for sentence, token, line in reversed(asides):
        if sentence < len(ends) - 1 and token < ends[sentence + 1]:
            rows[token] = f"{line}\n{rows[token]}"
    return "".join(behind)


def json_lines(batch: Batch, tagger: Tagger, codes: np.ndarray, marginals: np.ndarray | None) -> bytes:
    """An object for each sentence: its tokens, their labels and, with ``marginals``, all probabilities."""
    import numpy as np

    sentences: Sentences = batch.parsed
    words = sentences.words.tolist()
    labels = np.array(tagger.labels, dtype=object)[codes].tolist()
    names = tagger.labels
    ends = sentences.offsets.tolist()
    made = []
    for a, b in pairwise(ends):
        one: dict[str, Any] = {"tokens": words[a:b], "labels": labels[a:b]}
        if marginals is not None:
            one["proba"] = [dict(zip(names, row)) for row in marginals[a:b].tolist()]
        made.append(json.dumps(one, ensure_ascii=False))
    return "".join(f"{line}\n" for line in made).encode()
