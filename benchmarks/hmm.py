"""Baum-Welch against hmmlearn: the same sequences, states and iterations, without labels.

Of words: sequences drawn at random, 25 tokens each. Of numbers: two clouds for each state. hmmlearn begins with k-means
for Gaussian emissions, so it is given its means, and that is not timed. It runs its faster implementation, "scaling",
not its usual one in logarithms, which takes five to seven times as long. Our time has the reading of the words in it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
from hmmlearn.hmm import CategoricalHMM, GaussianHMM
from timing import OURS, Row, race

from onlearn import HMM

PEER = "hmmlearn"
LENGTH = 25
logging.getLogger("hmmlearn").setLevel(logging.ERROR)


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    sequences, iterations = (100, 3) if quick else (2000, 10)
    rng = np.random.default_rng(0)
    lengths = [LENGTH] * sequences
    for states in (5, 20):
        codes = rng.zipf(1.3, sequences * LENGTH) % 2000
        codes = np.unique(codes, return_inverse=True)[1].reshape(-1, 1)
        texts = np.char.add("w", codes.astype(str)).reshape(sequences, LENGTH).tolist()
        peer: dict[str, Any] = dict(
            n_components=states, n_iter=iterations, tol=-np.inf, random_state=0, implementation="scaling"
        )
        ours: dict[str, Any] = dict(n_states=states, iterations=iterations, tol=0.0, random_state=0)
        yield race(
            f"words, {states} states, {len(codes)} tokens, {iterations} iterations",
            {
                OURS: lambda ours=ours, texts=texts: HMM(**ours).fit(texts) and None,
                PEER: lambda peer=peer, codes=codes: CategoricalHMM(**peer).fit(codes, lengths) and None,
            },
            repeat,
        )
        values = rng.normal(size=(sequences * LENGTH, 8)) + 3 * rng.integers(0, states, (sequences * LENGTH, 1))
        parts = list(values.reshape(sequences, LENGTH, 8))
        means = values[rng.choice(len(values), states, replace=False)]

        def gaussian(peer: Any = peer, means: Any = means, values: Any = values) -> None:
            model = GaussianHMM(covariance_type="diag", init_params="stc", **peer)
            model.means_ = means
            model.fit(values, lengths)

        yield race(
            f"rows of 8 numbers, {states} states, {len(values)} tokens, {iterations} iterations",
            {
                OURS: lambda ours=ours, parts=parts: HMM(emissions="gaussian", **ours).fit(parts) and None,
                PEER: gaussian,
            },
            repeat,
        )
