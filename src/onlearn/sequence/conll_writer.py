"""Labelled sentences as CoNLL columns or CoNLL-U: a token a line, an empty line after each sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from onlearn.data.batch import Sentences


def lines_of(
    sentences: Sentences,
    labels: Sequence[str],
    columns: Iterable[str] | None = None,
    marginals: np.ndarray | None = None,
    separator: str = " ",
    replace: str | None = None,
) -> bytes:
    """The lines of sentences with the label of each token.

    :param labels: the label of each token, of all sentences one after another
    :param columns: the columns to write before the label; by default all
    :param marginals: the probability of the label of each token, to be written behind it with four digits
    :param separator: what stands between columns: a tab for CoNLL-U
    :param replace: the column whose cells the labels replace, instead of a column behind the others; the probability
        is then the last column

    >>> some = Sentences({"form": np.array(["a", "dog"], dtype=object)}, np.array([0, 2]))
    >>> lines_of(some, ["D", "N"], marginals=np.array([1, 0.75])).decode().splitlines()
    ['a D 1.0000', 'dog N 0.7500', '']
    """
    names = list(sentences.columns if columns is None else columns)
    tokens = int(sentences.offsets[-1])
    for what, given in (("labels", labels), ("marginals", marginals)):
        if given is not None and len(given) != tokens:
            raise ValueError(f"there are {len(given)} {what} for {tokens} tokens")
    if replace is not None and replace not in names:
        raise ValueError(f"the sentences have no column {replace!r} for the labels to replace")
    made = np.asarray(labels, dtype=object).tolist()
    cells = [made if name == replace else sentences.columns[name].tolist() for name in names]
    if replace is None:
        cells.append(made)
    if marginals is not None:
        cells.append([f"{one:.4f}" for one in np.asarray(marginals, dtype=np.float64).tolist()])
    lines = list(map(separator.join, zip(*cells)))
    offsets = sentences.offsets.tolist()
    parts = []
    for n in range(len(sentences)):
        parts += lines[offsets[n] : offsets[n + 1]]
        parts.append("")
    return ("\n".join(parts) + "\n").encode() if parts else b""
