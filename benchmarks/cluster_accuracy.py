"""What is lost by shards: errors on test rows, of one learner of all rows and of learners of shards, mixed in rounds.

Learners choose themselves (the default), or are averaged perceptrons, on texts also without intercept, with the
default number of rounds; in the last columns there are 20 and 40. Shards are learned from one after another in this
process, which gives the models of a cluster. No times. Needs ONLEARN_DATA.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from in_process import test_error
from timing import Row
from unseen import SETS

NAMES = ("a9a", "imdb", "20news", "covtype")
LEARNERS = {"default": None, "AveragedPerceptron": "AveragedPerceptron"}
ON_TEXTS = {"AveragedPerceptron without intercept": "AveragedPerceptron(fit_intercept=False)"}
SHARDS = (4, 8, 16, 64)
LONGER = (20, 40)  # rounds


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    if not os.environ.get("ONLEARN_DATA"):
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES[: 1 if quick else None]:
            made = SETS[name](Path(os.environ["ONLEARN_DATA"]), Path(folder))
            for title, learner in (LEARNERS | ON_TEXTS if made.kind == "text" else LEARNERS).items():
                chosen: dict[str, Any] = {} if learner is None else {"learner": learner}
                columns = {"one machine": None, **{f"{count} shards": count for count in SHARDS}}
                errors = {
                    column: [100 * test_error(str(made.train), made.test, count, **chosen)]
                    for column, count in columns.items()
                }
                for rounds in LONGER:
                    error = test_error(str(made.train), made.test, SHARDS[-1], rounds=rounds, **chosen)
                    errors[f"{SHARDS[-1]} shards, {rounds} rounds"] = [100 * error]
                yield Row(f"{name}, {title}", errors, {}, unit="%")
