"""With nothing said, raw rows of well-known sets give models as good as promised."""

from __future__ import annotations

import pytest

from onlearn.models.evaluation import evaluate
from onlearn.models.plan import Plan
from onlearn.models.run import Run


@pytest.mark.parametrize(
    ("train", "test", "accuracy", "loss"),
    [
        ("imdb/train.jsonl.gz", "imdb/test.jsonl.gz", 0.907, 0.25),
        ("20news/train.jsonl.gz", "20news/test.jsonl.gz", 0.86, 0.70),
        # log-loss within 2 % of LogisticRegression on one-hot and scaled columns, which is 0.3175
        ("adult/adult.data", "adult/adult.test", 0.852, 1.02 * 0.3175),
    ],
)
def test_defaults(data, train, test, accuracy, loss):
    model = Run(Plan([str(data(train))])).go()
    found = evaluate(model, model.read(str(data(test)), labels="required")).report()
    assert found["accuracy"] >= accuracy
    assert found["log_loss"] <= loss
    assert found["unknown_labels"] == {}
