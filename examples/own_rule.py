"""A rule of one's own, next to the built-in ones: python examples/own_rule.py"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import onlearn


@onlearn.rule
def ramp(score, y, limit=2.0):
    """Hinge, but an example that is wrong by more than ``limit`` is taken for noise and left alone."""
    return y if -limit < score * y < 1.0 else 0.0


X, y = load_breast_cancer(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, random_state=0, stratify=y)
scaler = StandardScaler().fit(X)
X, X_test = scaler.transform(X), scaler.transform(X_test)

for rule in ["perceptron", "hinge", "ramp", "ramp(limit=0.5)", ramp(limit=5.0)]:
    model = onlearn.OnlineClassifier(rule, "additive(rate=0.1)", random_state=0).fit(X, y)
    print(f"{rule!s:<16} test accuracy {model.score(X_test, y_test):.3f}, updates {model.n_updates_}")
