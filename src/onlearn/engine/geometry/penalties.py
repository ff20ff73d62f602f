"""The l1 penalty by its total: what makes weights exactly zero in learning one example at a time.

The penalty takes the rate times l1 off every |w| after every example. Were each step truncated by itself, a weight that
is zero at the optimum would hardly ever be zero: one example moves it farther than one example's penalty brings it
back. So the totals are compared, as in dual averaging (Xiao 2010) and with the cumulative penalty of Tsuruoka, Tsujii &
Ananiadou (2009). With G the sum of a weight's steps and Q that of its penalties,

    w = soft(G, Q),     soft(G, Q) = sign(G) max(0, |G| - Q)

The weight is zero while the mean gradient is smaller than l1, which is what the optimum asks for; Lee & Wright (2012)
show that the zeros are those of the optimum in the end. Of a weight that is not zero, G is w + sign(w) Q; of one that
is, G is kept as ``held``.
"""

from __future__ import annotations

import numpy as np

from onlearn.compiler.inlining import helper

ZEROS = "l1 is for weights that are exactly zero, and a mean of weights hardly ever is"  # why such are not mixed


@helper
def against_penalty(held: np.ndarray, j: int, w: float, change: float, most: float) -> float:
    """What a step changes at weight j, which is w, where the penalties so far sum to ``most``."""
    kept, side = held[j], 1.0 if w > 0.0 else -1.0
    whole = change + (kept if w == 0.0 else w + side * most)
    excess = max(0.0, abs(whole) - most)
    made = (excess if whole > 0.0 else -excess) - w
    held[j] = whole
    return change if w * (w + change) > 0.0 else made  # on its side it moves as if there were no penalty
