"""Tokens as sequence learners see them: sparse rows of numbered attributes, grouped into sequences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class TokenRows(NamedTuple):
    """Sequence k has the tokens ``offsets[k]`` to ``offsets[k + 1]``; token t the attributes ``indptr[t]`` to
    ``indptr[t + 1]``. ``values`` has no entries if all attributes have the value 1."""

    offsets: np.ndarray  # int64
    indptr: np.ndarray  # int64
    indices: np.ndarray  # int32: numbers of attributes; those that are unknown are left out
    values: np.ndarray  # float64

    @property
    def tokens(self) -> int:
        """The number of tokens of all sequences."""
        return len(self.indptr) - 1

    def __repr__(self) -> str:
        return f"<TokenRows: {len(self.offsets) - 1} sequences, {self.tokens} tokens, {len(self.indices)} attributes>"
