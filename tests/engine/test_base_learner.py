"""What all learners share."""

import numpy as np
import pytest

from onlearn.engine.feature_names import FeatureNames
from onlearn.engine.registry import make_learner
from onlearn.mlp.learner import MLPClassifierLearner

X, Y = np.array([[0.0], [1.0], [2.0]]), np.array(["no", "yes", "no"])


def test_targets_are_class_numbers_however_rows_come():
    met = []

    class Listening(MLPClassifierLearner):
        def _learn_once(self, X, targets, weight):
            met.append(np.array(targets).tolist())
            super()._learn_once(X, targets, weight)

    learner = Listening(hidden_layer_sizes=2, random_state=0).partial_fit(X, Y, classes=["no", "yes"])
    learner._learn_rows(X, Y, None, np.arange(3), first=True)
    assert met == [[0, 1, 0], [0, 1, 0]]


def test_iterating_over_names_ends():
    names = FeatureNames(["a", "b"], limit=2)
    names.add(["c"])  # which is hashed
    assert list(names) == ["a", "b"] and "c" not in names


def test_naive_bayes_takes_kinds_of_names_from_mappings():
    learner = make_learner("NaiveBayes", kinds={"size": "gaussian"}, kind="bernoulli", grow=True)
    learner.learn_one({"size": 1.0, "red": True}, "apple").learn_one({"size": 9.0}, "melon")
    assert learner.kinds_ == ["gaussian", "bernoulli"] and learner.predict_one({"size": 8.0}) == "melon"


@pytest.mark.parametrize(("name", "grows"), [("NaiveBayes", True), ("MLPClassifier", False)])
def test_only_learners_that_can_grow_are_told_to(name, grows):
    with pytest.raises(ValueError, match="the first label is 'a'") as caught:
        make_learner(name).learn_one([1.0], "a")
    assert ("grow=True" in str(caught.value)) == grows
