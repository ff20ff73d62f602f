"""Structure of one's own: the order in which somebody would choose hotels. python examples/ranking.py"""

import numpy as np

from onlearn.sequence import Decoder, StructuredLearner


def discordant(order, other):
    """How many pairs the two orders put the other way round: Kendall's distance."""
    place = np.argsort(other)[order]
    return int(np.triu(place[:, None] > place).sum())


class Ranking(Decoder):
    """x has a row of features for each item; an output has the items from first to last.

    An order scores w.(a - b) for each pair in which a comes before b, so that the best one is sorted by w.a.
    """

    def __init__(self, size):
        self.size = size

    def best(self, x, w):
        return np.argsort(-(x @ w), kind="stable")

    def rival(self, x, gold, w):  # the more pairs are the wrong way round, the farther the right order should win
        order = self.best(x, w)
        return order, discordant(order, gold)

    def features(self, x, output):
        n = len(output)  # the first item comes before n - 1 others, the second before n - 2 and after one, ...
        return (n - 1 - 2 * np.arange(n)) @ x[output]


rng = np.random.default_rng(0)
NAMES = ("price", "rating", "distance to the sea", "breakfast", "number of rooms")
taste = np.array([-1.0, 1.5, -0.7, 0.5, 0.0])  # of the one who chooses, which nobody knows
X = [rng.normal(size=(rng.integers(4, 9), len(NAMES))) for _ in range(200)]
Y = [np.argsort(-(x @ taste + rng.normal(scale=0.3, size=len(x)))) for x in X]

decoder = Ranking(len(NAMES))
learner = StructuredLearner(decoder, "pa1(0.01)", epochs=5, random_state=0).fit(X[:100], Y[:100])


def accuracy(found):
    """The share of the pairs of items that are the right way round."""
    pairs = sum(len(y) * (len(y) - 1) // 2 for y in Y[100:])
    return 1 - sum(discordant(order, gold) for order, gold in zip(found, Y[100:])) / pairs


before = [decoder.best(x, np.zeros(decoder.size)) for x in X[100:]]
print(f"pairs of hotels in the right order: {accuracy(before):.0%} before learning", end=", ")
print(f"{accuracy(learner.predict(X[100:])):.0%} after it")
for name, weight in zip(NAMES, learner.weights_ / np.abs(learner.weights_).max()):
    print(f"{weight:+.2f} {name}")
