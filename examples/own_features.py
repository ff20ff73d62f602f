"""Features of one's own beside the built-in ones: python examples/own_features.py"""

import random

import onlearn
from onlearn.features import Category, Features, Interaction, Number, Text


@onlearn.feature
def shouting(row):
    """How much of a message is in capitals, and whether it ends with an exclamation mark."""
    letters = [c for c in row["message"] if c.isalpha()]
    yield "capitals", sum(c.isupper() for c in letters) / max(1, len(letters))
    if row["message"].endswith("!"):
        yield "exclaims"


SPAM = ["WIN a FREE prize now!", "Call NOW for cheap loans!", "FREE entry, text WIN to claim", "You have WON cash!"]
HAM = ["see you at eight then", "did you call mum?", "I won the chess game!", "the prize is being late for free dinner"]
rng = random.Random(0)
rows, labels = [], []
for _ in range(400):
    label = rng.choice(["spam", "ham"])
    words = rng.choice(SPAM if label == "spam" else HAM).split()
    message = " ".join(w for w in words if rng.random() < 0.8)
    hour = rng.gauss(3 if label == "spam" else 15, 4) % 24
    rows.append({"message": message, "hour": hour, "network": rng.choice(["north", "south"])})
    labels.append(label)

features = Features(
    [Text("message", ngrams=(1, 2)), Number("hour"), Category("network"), shouting, Interaction("network", "hour")]
)
X = features.fit_transform(rows[:300])
model = onlearn.LogisticRegression(random_state=0).fit(X, labels[:300])
print(f"{X.shape[1]} features, test accuracy {model.score(features.transform(rows[300:]), labels[300:]):.3f}")
order = model.coef_[0].argsort()
for title, chosen in (("ham", order[:5]), ("spam", order[::-1][:5])):
    print(f"{title:>5}: " + ", ".join(f"{features.name_of(int(k))} {model.coef_[0][k]:+.2f}" for k in chosen))
