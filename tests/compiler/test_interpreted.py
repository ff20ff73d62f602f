"""The program interpreted is the program compiled: with NUMBA_DISABLE_JIT=1 the same source gives the same weights.

This file is also the script that the interpreted process runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import cases
import onlearn
from onlearn import OnlineClassifier, OnlineRegressor

ROWS = 16
CASES = cases.BINARY_COVERING[::3] + cases.MANY_COVERING


def trained() -> dict[str, dict[str, list]]:
    """The weights, or for voted learners the votes, and the probabilities of many learners."""
    others = {"regression": regression(), "custom": custom(), "mixture": mixture()}
    return {str(case): outcome(case) for case in CASES} | others


def outcome(case) -> dict[str, list]:
    data = cases.data("binary" if case.output == "binary" else "multiclass", case.group == "winnow")
    X, y = cases.LAYOUTS[case.layout](data.X[:ROWS]), data.y[:ROWS]
    geometry, _ = cases.example_geometry(case.group)
    results: dict[str, list] = {}
    for rule in ["logistic"] if case.output == "softmax" else ["margin(0.73, 0.33)", "pa1(0.2)"]:
        multiclass = "auto" if case.output == "binary" else case.output
        model = OnlineClassifier(rule, geometry, case.stabilizer, multiclass, shuffle=False, epochs=2).fit(X, y)
        results[f"{rule} scores"] = model.decision_function(X).tolist()
        results[f"{rule} probabilities"] = model.predict_proba(X).tolist()
        results[f"{rule} tally"] = [model.n_mistakes_, model.n_updates_]
        if case.stabilizer != "voted":
            results[f"{rule} weights"] = model.coef_.tolist()
    return results


def regression() -> dict[str, list]:
    data = cases.data("regression", False)
    model = OnlineRegressor("epsilon(0.1)", "adagrad(0.3, l1=0.1)", random_state=0).fit(data.X, data.y)
    return {"weights": model.coef_.tolist()}


def mixture() -> dict[str, list]:
    results: dict[str, list] = {}
    for kind, make in product(("binary", "multiclass"), (np.asarray, sp.csr_array)):
        data = cases.data(kind, False)
        for learners in (None, ["LogisticRegression", "LogisticRegression(rate=1.0)", "AROW", "Perceptron"]):
            model = onlearn.Mixture(learners, random_state=0, epochs=1).fit(make(data.X[:ROWS]), data.y[:ROWS])
            key = f"{kind}, {make.__name__}, {learners}"
            results[key] = [*model.losses_.tolist(), *model.predict_proba(data.X).ravel().tolist()]
    return results


def custom() -> dict[str, list]:
    @onlearn.rule
    def halfway(score, y, sqnorm, part=0.5):
        return part * (y - score) / sqnorm if score * y < 1 else 0.0

    data = cases.data("binary", False)
    model = OnlineClassifier(halfway(0.3), random_state=0).fit(data.X, data.y)
    return {"weights": model.coef_.tolist()}


def test_interpreted_equals_compiled():
    """Every kind of state, stabilizer, output and layout, interpreted in another process."""
    folders = [str(Path(onlearn.__file__).parents[1]), str(Path(__file__).parents[1])]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(folders)}
    done = subprocess.run(
        [sys.executable, __file__], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    interpreted, compiled = json.loads(done.stdout), trained()
    assert interpreted.keys() == compiled.keys()
    for case, results in compiled.items():
        for name, numbers in results.items():
            rtol = 1e-6 if "probabilities" in name else 1e-9  # fitted by iteration
            np.testing.assert_allclose(
                interpreted[case][name], numbers, rtol=rtol, atol=1e-3 * rtol, err_msg=f"{case} {name}"
            )


if __name__ == "__main__":
    print(json.dumps(trained()))
