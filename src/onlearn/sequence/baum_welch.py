"""Baum-Welch: hidden Markov models of sequences without labels, or with some.

Each iteration takes the expected counts of labels, transitions and emissions under the present probabilities (forward
and backward sums; a label that is given is certain), and then the probabilities that make these counts most likely. It
never lowers the likelihood of what is given. Baum, Petrie, Soules and Weiss (1970).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.sequence.base import Progress, Watch
from onlearn.sequence.chain import Chain


def baum_welch(chain: Chain, emissions: Any, data: Any, offsets: np.ndarray, codes: np.ndarray, iterations: int,
               tol: float, watch: Watch | None) -> tuple[Chain, list[float]]:  # fmt: skip
    """The expected counts of transitions at the end, and the log-likelihood before each iteration.

    ``emissions`` have the probabilities to begin with, and in the end those that were learned. ``codes`` has the label
    of each token, -1 for one without.
    """
    fixed = codes if (codes >= 0).any() else None
    sequences, likelihoods = max(1, len(offsets) - 1), []
    for turn in range(iterations):
        posterior = chain.maximum().posterior(emissions.likelihoods(data), offsets, fixed)
        likelihoods.append(float(posterior.log_z.sum()))
        chain = Chain.expected(posterior, offsets)
        emissions.expect(data, posterior.marginals)
        if watch is not None:
            watch(Progress(turn + 1, iterations, (turn + 1) * len(codes), -1, -likelihoods[-1] / sequences))
        if turn and likelihoods[-1] - likelihoods[-2] < tol * len(codes):
            break
    return chain, likelihoods
