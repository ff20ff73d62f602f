"""Structure of one's own: which word of a sentence is which word of its translation. python examples/matching.py"""

import numpy as np
from scipy.optimize import linear_sum_assignment

from onlearn.sequence import Decoder, StructuredLearner


class Matching(Decoder):
    """x[i, j] has the features of the pair of word i and word j; an output has the j of each i."""

    def __init__(self, size):
        self.size = size

    def best(self, x, w):
        return linear_sum_assignment(x @ w, maximize=True)[1]

    def rival(self, x, gold, w):  # the best by score plus 1 for each word that is matched wrongly
        wrong = np.ones(x.shape[:2])
        wrong[np.arange(len(gold)), gold] = 0
        match = linear_sum_assignment(x @ w + wrong, maximize=True)[1]
        return match, wrong[np.arange(len(gold)), match].sum()

    def features(self, x, output):
        return x[np.arange(len(output)), output].sum(axis=0)


PAIRS = """
the house is old|das Haus ist alt|0 1 2 3
yesterday my brother came home|gestern kam mein Bruder heim|0 2 3 1 4
I have seen the ship|ich habe das Schiff gesehen|0 1 4 2 3
the father can give bread|der Vater kann Brot geben|0 1 2 4 3
today we drink cold water|heute trinken wir kaltes Wasser|0 2 1 3 4
my friend has sung well|mein Freund hat gut gesungen|0 1 2 4 3
in summer the garden blooms|im Sommer blüht der Garten|0 1 3 4 2
she will find the book|sie wird das Buch finden|0 1 4 2 3
the young cat drank milk|die junge Katze trank Milch|0 1 2 3 4
we have bought ten apples|wir haben zehn Äpfel gekauft|0 1 4 2 3
now the winter begins|nun beginnt der Winter|0 2 3 1
his sister tries to learn English|seine Schwester versucht Englisch zu lernen|0 1 2 4 5 3
there the wild river flows|dort fließt der wilde Fluss|0 2 3 4 1
he must wash the glass|er muss das Glas waschen|0 1 4 2 3
my son has broken the arm|mein Sohn hat den Arm gebrochen|0 1 2 5 3 4
tomorrow the doctor comes here|morgen kommt der Doktor her|0 2 3 1 4
"""
NAMES = ("equal beginnings", "shared pairs of letters", "difference in length", "distance in the sentence")


def features(english, german):
    """For each pair of words how alike they are, in four ways."""

    def alike(i, j):
        a, b = english[i].lower(), german[j].lower()
        begin = next((n for n, (c, d) in enumerate(zip(a, b)) if c != d), min(len(a), len(b)))
        pairs, other = ({word[k : k + 2] for k in range(len(word) - 1)} for word in (a, b))
        shared = len(pairs & other) / max(1, min(len(pairs), len(other)))
        return begin, shared, abs(len(a) - len(b)), abs(i - j)

    return np.array([[alike(i, j) for j in range(len(german))] for i in range(len(english))], dtype=float)


rows = [line.split("|") for line in PAIRS.strip().splitlines()]
X = [features(english.split(), german.split()) for english, german, _ in rows]
Y = [np.array(match.split(), dtype=int) for _, _, match in rows]
decoder = Matching(len(NAMES))
learner = StructuredLearner(decoder, "pa1(0.1)", epochs=10, random_state=0).fit(X[:11], Y[:11])


def accuracy(found):
    return np.mean(np.concatenate(found) == np.concatenate(Y[11:]))


before = [decoder.best(x, np.zeros(decoder.size)) for x in X[11:]]
print(f"words of new sentences matched rightly: {accuracy(before):.0%} before learning", end=", ")
print(f"{accuracy(learner.predict(X[11:])):.0%} after it")
for name, weight in zip(NAMES, learner.weights_):
    print(f"{weight:+.2f} {name}")
