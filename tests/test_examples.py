"""The examples of structure run, learn, and their decoders find what a search through all outputs finds."""

from __future__ import annotations

import runpy
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name, capsys):
    """The names of an example that was run, and what it printed."""
    made = runpy.run_path(str(EXAMPLES / f"{name}.py"))
    return made, capsys.readouterr().out


@pytest.mark.parametrize(("name", "least"), [("matching", 0.85), ("ranking", 0.9)])
def test_learning_helps(name, least, capsys):
    made, printed = run(name, capsys)
    first = len(made["Y"]) - len(made["before"])
    after = made["accuracy"](made["learner"].predict(made["X"][first:]))
    assert made["accuracy"](made["before"]) < 0.6 and after >= least
    assert f"{after:.0%} after it" in printed and len(printed.splitlines()) == 1 + len(made["NAMES"])


def test_a_matching_is_the_best_of_all(capsys):
    made, _ = run("matching", capsys)
    decoder, rng = made["Matching"](3), np.random.default_rng(0)
    for n in (1, 2, 3, 4, 4, 4):
        x, w, gold = rng.normal(size=(n, n, 3)), rng.normal(size=3), rng.permutation(n)
        every = [np.array(order) for order in permutations(range(n))]
        scores = [decoder.score(x, order, w) for order in every]
        costs = [np.count_nonzero(order != gold) for order in every]
        assert decoder.score(x, decoder.best(x, w), w) == pytest.approx(max(scores))
        rival, cost = decoder.rival(x, gold, w)
        assert cost == np.count_nonzero(rival != gold)
        assert decoder.score(x, rival, w) + cost == pytest.approx(max(s + c for s, c in zip(scores, costs)))


def test_an_order_is_the_best_of_all_and_its_cost_counts_pairs(capsys):
    made, _ = run("ranking", capsys)
    decoder, rng = made["Ranking"](3), np.random.default_rng(0)
    for n in (1, 2, 3, 4, 4, 4):
        x, w, gold = rng.normal(size=(n, 3)), rng.normal(size=3), rng.permutation(n)
        every = [np.array(order) for order in permutations(range(n))]
        for order in every:
            pairs = [(order[a], order[b]) for a in range(n) for b in range(a + 1, n)]
            by_pairs = sum((x[a] - x[b] for a, b in pairs), np.zeros(3))
            np.testing.assert_allclose(decoder.features(x, order), by_pairs, atol=1e-12)
            place = np.argsort(gold)
            assert made["discordant"](order, gold) == sum(place[a] > place[b] for a, b in pairs)
        best = max(decoder.score(x, order, w) for order in every)
        rival, cost = decoder.rival(x, gold, w)
        assert decoder.score(x, rival, w) == pytest.approx(best)
        assert cost == made["discordant"](rival, gold)
