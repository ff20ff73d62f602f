"""The order of rows: which are held out, and whether labels come sorted."""

from __future__ import annotations

import numpy as np


def held_out(start: int, count: int, part: float, seed: int) -> np.ndarray:
    """Which of the rows from ``start`` on are kept for testing: chosen by their number, so that any pass finds them."""
    numbers = np.arange(start, start + count, dtype=np.uint64)
    numbers += np.uint64(seed * 0x517CC1B727220A95 % 2**64)
    for factor in (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93):
        numbers = (numbers ^ (numbers >> np.uint64(31))) * np.uint64(factor)
    return (numbers >> np.uint64(32)).astype(np.float64) < part * 2.0**32


def looks_sorted(codes: np.ndarray | None) -> bool:
    """Whether labels change much more seldom than they would by chance."""
    if codes is None or len(codes) < 2:
        return False
    share = np.bincount(codes + 1) / len(codes)
    by_chance = (len(codes) - 1) * (1 - float(share @ share))
    return int(np.count_nonzero(np.diff(codes))) < 0.5 * by_chance - 3 or len(np.unique(codes)) == 1
