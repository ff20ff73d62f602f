"""One pass of the same learner by every library that has it, each set up as its manual says is fast."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import Perceptron, SGDClassifier
from timing import OURS, Part, Row, race

import onlearn


class Learner(NamedTuple):
    """What one learner is called in each library; None where it is not to be had."""

    name: str
    rule: str
    step: Callable[[float, float, float], float]  # for the hand-written loop
    sgd: dict[str, Any]
    vw: str | None = None
    river: str | None = None
    liblinear: str | None = None
    stabilizer: str = "averaged"


def perceptron(s: float, y: float, q: float) -> float:
    return y if s * y <= 0.0 else 0.0


def pa1(s: float, y: float, q: float) -> float:
    return y * min(1.0, max(0.0, 1.0 - s * y) / q)


def logistic(s: float, y: float, q: float) -> float:
    return y / (1.0 + np.exp(s * y))


def hinge(s: float, y: float, q: float) -> float:
    return y if s * y < 1.0 else 0.0


CONSTANT = dict(learning_rate="constant", eta0=1.0, average=True)
PA1 = dict(loss="hinge", learning_rate="pa1", eta0=1.0, average=True)
VW = "--sgd --loss_function"
LEARNERS = [
    Learner("perceptron", "perceptron", perceptron, dict(loss="perceptron", **CONSTANT), river="Perceptron"),
    Learner("perceptron, not averaged", "perceptron", perceptron, {}, river="Perceptron", stabilizer="last"),
    Learner("PA-I", "pa1", pa1, PA1, river="PAClassifier"),
    Learner(
        "logistic", "logistic", logistic, dict(loss="log_loss", **CONSTANT),
        vw=f"{VW} logistic", river="LogisticRegression", liblinear="-s 7",
    ),
    Learner("hinge", "hinge", hinge, dict(loss="hinge", **CONSTANT), vw=f"{VW} hinge", liblinear="-s 3"),
]  # fmt: skip


def one_pass(learner: Learner, plain: Callable[..., Any], data: Any, repeat: int, note: str = "") -> Row:
    """All of them at one pass over the rows; ``plain(step, average, X, y)`` is the loop written by hand."""
    X, y, *test = data
    stabilizer = learner.stabilizer

    def ours() -> Any:
        model = onlearn.OnlineClassifier(learner.rule, stabilizer=stabilizer, epochs=1, random_state=0)
        return model.fit(X, y).predict

    def sklearn() -> Any:
        common = dict(penalty=None, max_iter=1, tol=None, random_state=0)
        model = SGDClassifier(**learner.sgd, **common) if learner.sgd else Perceptron(**common)
        return model.fit(X, y).predict

    def by_hand() -> Any:
        w, b = plain(learner.step, stabilizer == "averaged", X, y)
        return lambda rows: (rows @ w + b > 0).astype(np.int64)

    contenders = {
        OURS: ours,
        "written by hand": by_hand,
        "scikit-learn": sklearn,
        "Vowpal Wabbit": vowpal_wabbit(learner, X, y),
        "LIBLINEAR (to the end)": liblinear(learner, X, y),
        "river": river(learner, X, y),
    }
    asked = {"Vowpal Wabbit": learner.vw, "LIBLINEAR (to the end)": learner.liblinear, "river": learner.river}
    contenders = {name: run for name, run in contenders.items() if asked.get(name, "always")}
    return race(learner.name + note, contenders, repeat, (test[0], test[1]))


def vowpal_wabbit(learner: Learner, X: Any, y: np.ndarray, rows: int = 20_000) -> Part | None:
    """Its own driver on its own binary cache, so that no text is parsed. It neither averages nor shuffles."""
    if not learner.vw or not find_spec("vowpalwabbit"):
        return None
    from vowpalwabbit import Workspace

    rows = min(rows, X.shape[0])
    folder = tempfile.TemporaryDirectory()
    text = Path(folder.name) / "rows"
    with text.open("w") as file:
        for row, label in zip(sp.csr_matrix(X[:rows]), y):
            pairs = " ".join(f"{k}:{x:.6g}" for k, x in zip(row.indices, row.data))
            file.write(f"{2 * label - 1} | {pairs}\n")
    command = f"--quiet -b 18 {learner.vw} -d {text} --cache_file {text}.cache"
    Workspace(command).finish()  # writes the cache

    def run(keep: Any = folder) -> None:
        Workspace(command).finish()

    return Part(run, X.shape[0] / rows)


def liblinear(learner: Learner, X: Any, y: np.ndarray) -> Callable[[], Any] | None:
    """Coordinate descent in the dual until its own tolerance: many passes, not one."""
    if not learner.liblinear or not find_spec("liblinear"):
        return None
    from liblinear.liblinearutil import parameter, problem, train

    rows = problem(2.0 * y - 1, sp.csr_matrix(X).astype(np.float64), 1)
    options = parameter(f"{learner.liblinear} -c 1 -q")

    def run() -> Any:
        model = train(rows, options)
        w, b = model.get_decfun()
        sign = 1 if model.get_labels()[0] == 1 else -1
        return lambda Z: (sign * (Z @ np.array(w) + b) > 0).astype(np.int64)

    return run


def river(learner: Learner, X: Any, y: np.ndarray, rows: int = 2_000) -> Part | None:
    """A row is a dict there, so a small part is enough to see."""
    if not learner.river or not find_spec("river"):
        return None
    from river import linear_model

    rows = min(rows, X.shape[0])
    dicts = [dict(zip(row.indices.tolist(), row.data.tolist())) for row in sp.csr_matrix(X[:rows])]

    def run() -> None:
        model = getattr(linear_model, learner.river)()
        for x, label in zip(dicts, y):
            model.learn_one(x, bool(label))

    return Part(run, X.shape[0] / rows)
