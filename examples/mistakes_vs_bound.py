"""Mistakes and their bounds as irrelevant features are added: python examples/mistakes_vs_bound.py

The concept is a disjunction of 5 features. Winnow's bound grows with log n; the Perceptron's does not know n,
but grows with the number of features that are on in a row.
"""

import numpy as np

import onlearn
from onlearn.theory import bounds

LITERALS, ROWS = 5, 2000

print(f"{'n':>6}  {'Winnow':>6} {'bound':>6}  {'Perceptron':>10} {'bound':>6}")
for n in [50, 100, 200, 400, 800]:
    rng = np.random.default_rng(0)
    X = (rng.random((ROWS, n)) < 0.13).astype(float)
    y = X[:, :LITERALS].any(axis=1)

    winnow = onlearn.Winnow(epochs=None, random_state=0).fit(X, y)
    promised = next(bound for bound in winnow.certificate(X, y).bounds if bound.name == "winnow")

    perceptron = onlearn.Perceptron(epochs=None, random_state=0).fit(X, y)
    concept = np.append(-0.5, np.ones(LITERALS))  # the intercept's weight first, all others 0
    seen = np.column_stack([np.ones(ROWS), X])
    limit = bounds.additive(np.pad(concept, (0, n - LITERALS)), seen)

    made = winnow.n_mistakes_, perceptron.n_mistakes_
    assert made[0] <= promised.value
    assert made[1] <= limit
    print(f"{n:>6}  {made[0]:>6} {promised.value:>6.0f}  {made[1]:>10} {limit:>6.0f}")
