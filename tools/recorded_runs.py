"""The runs that are recorded: commands, and functions that learn from Python."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from recorded_data import make_rings, make_strings, make_tree

onlearn: Any = importlib.import_module("onlearn")  # whose lazy names type checkers do not follow

# What `onlearn train` is given but for `-o MODEL`; after `&&`, another `train` of the same run.
TRAIN = {
    # ------------------------------------------------------------ formats
    "format/svmlight": "rows.svm",
    "format/svmlight-zst": "rows.svm.zst",
    "format/svmlight-four": "four.svm --passes 3",
    "format/svmlight-far": "far.svm --bits 10",
    "format/svmlight-sorted": "sorted.svm",
    "format/vw": "docs.vw",
    "format/vw-gz": "docs.vw.gz --passes 2",
    "format/csv": "table.csv",
    "format/csv-gz": "table.csv.gz",
    "format/csv-plain": "plain.data --delimiter ';' --no-header --target c0",
    "format/csv-stdin": "- --format csv --passes 2 < table.csv",
    "format/csv-bad-rows": "dirty.csv --bad-rows bad.csv --max-bad 20%",
    "format/csv-files": "table.csv more.csv --passes 2",
    "format/csv-weight-id": "weighted.csv --weight weight --id id",
    "format/tsv": "table.tsv",
    "format/jsonl": "table.jsonl",
    "format/jsonl-text": "docs.jsonl",
    "format/jsonl-zst": "docs.jsonl.zst",
    "format/parquet": "table.parquet",
    "format/arrow": "table.arrow",
    "format/fasttext": "docs.txt",
    "format/fasttext-gz": "docs.ft.gz --passes 1",
    # ------------------------------------------------------------ several blocks, several threads
    "large/csv": "large.csv",
    "large/csv-columns": "large.csv --ignore note",
    "large/csv-gz": "large.csv.gz --passes 2",
    "large/jsonl": "large.jsonl",
    "large/vw": "large.vw",
    "large/svmlight": "large.svm",
    "large/parquet": "large.parquet --passes 2",
    "large/kept-rows": "large.jsonl --cache kept --passes 1 && large.jsonl --cache kept --passes 2",
    # ------------------------------------------------------------ learners
    **{
        f"learner/{name}": f"rows.svm --learner {name} --passes 4"
        for name in (
            *("Perceptron", "AveragedPerceptron", "VotedPerceptron", "MarginPerceptron", "AggressivePerceptron"),
            *("PassiveAggressive", "Winnow", "BalancedWinnow", "NormalizedWinnow", "Adaline", "LinearSVM"),
            *("LogisticRegression", "AdaGrad", "AROW", "FTRL", "ScInOL"),
        )
    },
    "choice/margin-survivor": "rows.svm --rule 'margin(0.5, 0.2)' --stabilizer survivor",
    "choice/pa2-voted": "table.csv --rule 'pa2(0.3)' --stabilizer voted",
    "choice/squared-hinge-truncated": "rows.svm --rule squared_hinge --geometry 'additive(0.1, l1=0.01)'",
    "choice/hinge-decayed": "table.csv --rule hinge --geometry \"additive(0.1, schedule='1/sqrt(t)', l2=0.001)\"",
    "choice/lms-adagrad-penalised": "rows.svm --rule lms --geometry 'adagrad(0.3, l1=0.001, l2=0.001)'",
    "choice/logistic-ftrl-l1": "docs.jsonl --geometry 'ftrl(0.3, l1=0.5)'",
    "choice/winnow": "rows.svm --geometry 'winnow(1.1)' --stabilizer averaged",
    "choice/exponentiated": "four.svm --geometry 'exponentiated(0.2)'",
    "choice/true": "four.svm --rule perceptron --multiclass true --stabilizer last",
    "choice/one-vs-all": "four.csv --rule 'pa1(0.5)' --multiclass one-vs-all",
    "choice/softmax": "docs.jsonl --multiclass softmax",
    "choice/class-weight": "four.csv --class-weight balanced --passes 3",
    "choice/regression": "numbers.csv --task regress",
    "choice/regression-epsilon": "numbers.csv --task regress --rule 'epsilon(0.05)' --stabilizer last --passes 2",
    # ------------------------------------------------------------ features
    "feature/min-count": "docs.jsonl --min-count 3",
    "feature/min-count-per-class": "docs.vw --min-count 4 --per-class",
    "feature/prune-weights": "docs.jsonl --prune-weights 0.05",
    "feature/pairs": "table.csv --interact pairs --passes 2",
    "feature/interactions": "table.csv --interact colour,city --interact age,age --interact colour,city,flag",
    "feature/namespaces": "docs.vw --interact body,title --passes 2",
    "feature/ngrams": "docs.jsonl --ngrams 1-3 --weighting tfidf",
    "feature/characters": "docs.txt --ngrams none --chars 2-4 --weighting log --no-norm",
    "feature/hashed": "docs.jsonl --max-names 300 --bits 8",
    "feature/scale-missing": "table.csv --scale log1p --missing indicator",
    "feature/roles": "table.csv --categorical age --text note --ignore city --numeric flag --missing zero",
    # ------------------------------------------------------------ the run
    "run/holdout": "table.csv --holdout 20% --seed 5",
    "run/test": "table.csv --test more.csv --passes 1",
    "run/passes-seed": "docs.jsonl --passes 5 --seed 11",
    "run/classes": "four.csv --classes north,east,south,west,nowhere --passes 2",
    "run/checkpoint": "rows.svm --checkpoint-every 400",
    "run/resume": "day1.svm --passes 1 && day2.svm --resume MODEL --passes 1",
    "run/resume-text": "docs.jsonl --passes 2 && more.jsonl --resume MODEL",
    "run/resume-table": "table.csv --passes 2 && more.csv --resume MODEL --passes 2",
    # ------------------------------------------------------------ kernels
    "kernel/polynomial": "rings.csv --kernel 'polynomial(3)'",
    "kernel/gaussian": "rings.csv --kernel 'gaussian(0.7)' --rule 'pa1(1)' --stabilizer averaged",
    "kernel/sum": "rings.csv --kernel '0.5*gaussian(2) + normalize(poly(2))' --rule hinge",
    "kernel/text": "docs.jsonl --kernel 'polynomial(2)' --passes 2",
    "kernel/four": "four.csv --kernel 'laplacian(0.3)' --multiclass true --passes 2 --class-weight balanced",
    "kernel/monomials": "bits.csv --kernel monomials --stabilizer last",
    "kernel/conjunctions": "bits.csv --kernel 'normalize(conjunctions(3))' --rule 'margin(0.1)'",
    "kernel/subsets": "bits.csv --kernel 'normalize(subsets)' --stabilizer survivor",
    "kernel/substrings": "strings.csv --text sequence --kernel 'normalize(substrings(2, 4))'",
    "kernel/trees": "trees.jsonl --text tree --kernel 'normalize(trees(subset, 0.4))' --passes 2",
    "kernel/voted": "rings.csv --kernel 'gaussian(1)' --stabilizer voted --passes 2",
    "kernel/budget-project": "rings.csv --kernel 'gaussian(0.7)' --budget 40",
    "kernel/budget-merge": "rings.csv --kernel 'gaussian(0.7)' --budget 40 --budget-policy merge",
    "kernel/budget-oldest": "rings.csv --kernel 'poly(2)' --budget 40 --budget-policy 'remove(oldest)'",
    "kernel/budget-random": "rings.csv --kernel 'poly(2)' --budget 40 --budget-policy 'remove(random)'",
    "kernel/no-cache": "rings.csv --kernel 'gaussian(1)' --cache-mb 0 --passes 4",
    "kernel/resume": "rings.csv --kernel 'gaussian(1)' --passes 2 && more_rings.csv --resume MODEL --passes 2",
}

REAL = {
    "real/adult": "adult.csv",
    "real/adult-kernel": "adult.csv --kernel 'polynomial(2)' --passes 1",
    "real/a9a": "a9a.svm",
    "real/20news": "20news.jsonl",
    "real/imdb": "imdb.jsonl",
    "real/sms_spam": "sms_spam.tsv",
    "real/mushroom": "mushroom.csv --target c0 --no-header",
    "real/mushroom-svmlight": "mushroom.svm --learner Winnow",
    "real/spambase": "spambase.csv",
    "real/spambase-kernel": "spambase.csv --kernel 'gaussian(2)' --passes 2",
}

# Commands that look at the model of a run, or that need none.
THEN = {
    "format/svmlight": ["predict MODEL rows.svm --proba --scores", "evaluate MODEL day1.svm --json"],
    "format/svmlight-four": ["predict MODEL four.svm --scores", "explain MODEL --at four.svm:3 --json"],
    "format/vw": ["predict MODEL docs.vw --proba --format-out jsonl", "evaluate MODEL docs.vw --json"],
    "format/csv": [
        "predict MODEL more.csv --proba --scores",
        "predict MODEL table.parquet --format-out jsonl --scores",
        "evaluate MODEL more.csv --json",
        "inspect MODEL --json",
        "explain MODEL --at more.csv:7 --json",
        "data describe table.csv --json",
    ],
    "format/csv-weight-id": ["predict MODEL weighted.csv", "data describe weighted.csv --json"],
    "format/jsonl": ["predict MODEL table.jsonl --proba", "data describe table.jsonl --json"],
    "format/jsonl-text": [
        "predict MODEL docs.jsonl more.jsonl --proba",
        "evaluate MODEL more.jsonl --json",
        "inspect MODEL --json --top 20",
        "explain MODEL --json --at docs.jsonl:2",
        "data describe docs.jsonl --json",
    ],
    "format/fasttext": ["predict MODEL docs.txt --scores", "data describe docs.txt --json"],
    "large/csv": ["predict MODEL large.csv --proba", "evaluate MODEL large.csv --json"],
    "large/jsonl": ["predict MODEL large.jsonl", "evaluate MODEL large.jsonl --json"],
    "learner/VotedPerceptron": ["predict MODEL rows.svm --scores --proba"],
    "learner/AveragedPerceptron": ["predict MODEL rows.svm --scores --proba"],
    "choice/regression": ["predict MODEL numbers.csv", "evaluate MODEL numbers.csv --json"],
    "choice/one-vs-all": ["predict MODEL four.csv --scores --proba", "evaluate MODEL four.csv --json"],
    "kernel/gaussian": [
        "predict MODEL more_rings.csv --proba --scores",
        "evaluate MODEL more_rings.csv --json",
        "inspect MODEL --json",
        "explain MODEL --at more_rings.csv:4 --json",
    ],
    "kernel/substrings": ["predict MODEL strings.csv --proba", "explain MODEL --at strings.csv:4 --json"],
    "real/adult": ["evaluate MODEL adult_test.csv --json", "inspect MODEL --json"],
    "real/20news": ["evaluate MODEL 20news.jsonl --json", "predict MODEL 20news.jsonl --proba"],
    "real/imdb": ["predict MODEL imdb.jsonl --scores --proba"],
}

# Rule, geometry, stabilizer, kind of multiclass: learned from Python on dense rows, sparse rows, and single precision.
COMBINATIONS = [
    ("perceptron", "additive", "last", "true"),
    ("perceptron", "additive", "voted", "one-vs-all"),
    ("margin(0.7, 0.3)", "additive(0.5, schedule='1/sqrt(t)')", "survivor", "true"),
    ("aggressive(0.8)", "additive", "averaged", "one-vs-all"),
    ("pa1(0.2)", "additive", "averaged", "true"),
    ("hinge", "additive(0.1, schedule='1/(lambda t)', l2=0.5)", "averaged", "true"),
    ("lms", "additive(0.01, l1=0.05)", "last", "one-vs-all"),
    ("logistic", "adagrad(0.3)", "averaged", "softmax"),
    ("squared_hinge", "adagrad(0.3, l1=0.05, l2=0.2)", "last", "true"),
    ("pa2(0.5)", "arow", "averaged", "true"),
    ("logistic", "ftrl(0.3, l1=0.5)", "last", "one-vs-all"),
    ("hinge", "scinol", "averaged", "true"),
    ("perceptron", "winnow(1.05)", "averaged", "one-vs-all"),
    ("perceptron", "balanced(1.03)", "survivor", "true"),
    ("perceptron", "exponentiated(0.4)", "last", "one-vs-all"),
]

Made = Iterator[tuple[str, Any]]  # names, with estimators to be saved, or what can be hashed
PYTHON: dict[str, Callable[[Path], Made]] = {}


def python_run(make: Callable[[Path], Made]) -> Callable[[Path], Made]:
    PYTHON[f"python/{make.__name__}"] = make
    return make


def examples(rows: int = 700, width: int = 12, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Rows that are not negative, half of the values zero, which is right for every geometry."""
    rng = np.random.default_rng(rows + classes)
    X = rng.random((rows, width)) * (rng.random((rows, width)) < 0.5)
    return X, np.argmax(X @ rng.normal(size=(width, classes)) + rng.normal(0, 0.1, (rows, classes)), axis=1)


@python_run
def combinations(folder: Path) -> Made:
    for rule, geometry, stabilizer, multiclass in COMBINATIONS:
        made = onlearn.OnlineClassifier(rule, geometry, stabilizer, multiclass, epochs=3, random_state=1)
        made.set_params(fit_intercept=not geometry.startswith(("winnow", "exponentiated")))
        title = f"{rule} {geometry} {stabilizer}"
        X, y = examples()
        yield f"{title} dense", made.fit(X, y)
        yield f"{title} sparse", made.fit(sp.csr_matrix(X), y)
        X, y = examples(classes=4)
        yield f"{title} {multiclass} single precision", made.fit(X.astype(np.float32), y)


@python_run
def streams(folder: Path) -> Made:
    X, y = examples(classes=4)
    learner = onlearn.OnlineClassifier("pa1(0.5)", grow=True, random_state=0)
    for start in range(0, len(y), 100):
        rows, width = slice(start, start + 100), 8 + start // 200  # wider, and of more classes, as it goes on
        learner.partial_fit(X[rows, :width], np.minimum(y[rows], 1 + start // 200))
    yield "grown", learner
    yield "probabilities", learner.predict_proba(X[:, : learner.n_features_in_])
    learner = onlearn.AROW(random_state=0).partial_fit(sp.csr_matrix(X[:400]), y[:400], classes=range(4))
    learner.save(folder / "stream.onl")
    yield "loaded", onlearn.load(folder / "stream.onl").partial_fit(sp.csr_matrix(X[400:]), y[400:])
    regressor = onlearn.OnlineRegressor("lms", "additive(0.05)", random_state=0)
    yield "regression", regressor.partial_fit(X[:400], X[:400, 0] - X[:400, 1]).partial_fit(X[400:], X[400:, 2])


@python_run
def settings(folder: Path) -> Made:
    X, y = examples()
    names = np.array(["no", "yes"])[y]
    weight = np.random.default_rng(3).random(len(y))
    yield "names, weights", onlearn.LogisticRegression(random_state=2).fit(X, names, sample_weight=weight)
    yield "class weights", onlearn.Perceptron(class_weight={0: 1.0, 1: 3.0}, random_state=0).fit(X, y)
    yield "balanced", onlearn.LinearSVM(class_weight="balanced", shuffle=False, random_state=0).fit(X, y)
    yield "until no mistake", onlearn.Perceptron(epochs=None, max_epochs=40, random_state=0).fit(X[:60], y[:60])
    yield "tolerance", onlearn.AdaGrad(epochs=50, tol=1e-3, random_state=0).fit(X, y)
    random = onlearn.OnlineClassifier(init="random", intercept_scaling="radius", random_state=5).fit(X, y)
    yield "random start, radius", random
    yield "warm", random.set_params(warm_start=True).fit(X, y)
    for calibration in ("online", "holdout(0.2)", "own"):
        learner = onlearn.AveragedPerceptron(calibration=calibration, random_state=0).fit(X, y)
        yield f"{calibration}", learner
        yield f"{calibration} probabilities", learner.predict_proba(X)
    yield "certificate", repr(onlearn.Perceptron(epochs=None, max_epochs=9, random_state=0).fit(X, y).certificate(X, y))
    yield "history", onlearn.Winnow(random_state=0).fit(X, y).history_
    yield "regression", onlearn.OnlineRegressor("epsilon(0.01)", "adagrad(0.2)", random_state=0).fit(X, X[:, 0])

    @onlearn.rule
    def recorded(score: float, y: float, sqnorm: float, limit: float = 0.5) -> float:
        return y * min(limit, 1.0 / sqnorm) if score * y <= 0.1 else 0.0

    yield "user-defined rule", onlearn.OnlineClassifier("recorded(0.3)", random_state=0).fit(X + 0.01, y).coef_


@python_run
def kernel_values(folder: Path) -> Made:
    X, _ = examples(rows=90)
    Z = X[:40] * 1.5
    for kernel in (
        *(
            "linear",
            "polynomial(3, 0.5)",
            "gaussian(0.8)",
            "laplacian(0.5)",
            "sigmoid(0.1)",
            "subsets",
            "exp(linear/9)",
        ),
        *("normalize(poly(2)) + 0.5*gaussian", "linear*gaussian", "linear**3", "poly(linear, [1, 0, 2])"),
        *("warp(gaussian, norm)", "compose(gaussian, log1p)"),
    ):
        made = onlearn.kernels.get(kernel)
        yield f"{kernel}", made(X, Z)
        yield f"{kernel} sparse, single precision", made(sp.csr_matrix(X, dtype=np.float32))
    bits = (X > 0).astype(float)
    for kernel in ("monomials", "conjunctions(2)", "conjunctions(3, exactly=False, monotone=True)"):
        yield kernel, onlearn.kernels.get(kernel)(bits)
    strings, _ = make_strings(np.random.default_rng(1), 30)
    for kernel in ("substrings(2, 5, 0.8)", "normalize(substrings)"):
        yield kernel, onlearn.kernels.get(kernel)(strings, strings[:10])
    rng = np.random.default_rng(2)
    yield "trees", onlearn.kernels.get("trees(subtree, 0.5)")([make_tree(rng, label) for label in "aabbab"])
    yield "features", onlearn.kernels.Polynomial(2).features(X)


@python_run
def kernel_learners(folder: Path) -> Made:
    X, y = make_rings(np.random.default_rng(4), 500)
    dense = onlearn.KernelClassifier("polynomial(2)", random_state=0, keep_stages=True).fit(X, y)
    yield "dense", dense
    yield "probabilities", dense.predict_proba(X)
    yield "to primal", dense.to_primal(force=True)
    yield "reduced", dense.reduce(30, X, y)
    yield "primal", onlearn.KernelClassifier("poly(2)", representation="primal", random_state=0).fit(X, y)
    yield "sparse", onlearn.KernelClassifier("gaussian(1)", "pa1(0.5)", random_state=0).fit(sp.csr_matrix(X), y)
    yield "voted", onlearn.KernelPerceptron("gaussian(1)", stabilizer="voted", random_state=0).fit(X, y)
    yield "precomputed", onlearn.KernelClassifier("precomputed", random_state=0).fit(onlearn.kernels.Gaussian()(X), y)
    V, classes = examples(300, classes=4)
    for multiclass in ("true", "one-vs-all"):
        learner = onlearn.KernelClassifier("laplacian(0.5)", "hinge", multiclass=multiclass, random_state=0)
        yield multiclass, learner.fit(V.astype(np.float32), classes)
    for policy in ("project", "merge", "remove(random)", "remove(oldest)"):
        learner = onlearn.KernelClassifier("gaussian(0.7)", "pa1", "last", 25, policy, random_state=0)
        for start in range(0, 500, 125):
            learner.partial_fit(X[start : start + 125], y[start : start + 125], classes=[False, True])
        yield f"{policy}", learner
    strings, labels = make_strings(np.random.default_rng(5), 150)
    learner = onlearn.KernelClassifier("normalize(substrings(1, 4))", random_state=0).fit(strings, labels)
    yield "strings", learner
    yield "strings, scores", learner.decision_function(strings[::-1])


@python_run
def approximations(folder: Path) -> Made:
    X, _ = make_rings(np.random.default_rng(6), 400)
    strings, _ = make_strings(np.random.default_rng(7), 60)
    named = [{"age": n % 50, "town": f"t{n % 7}"} for n in range(200)]
    for title, made, rows in (
        ("gaussian sinks", onlearn.RandomKitchenSinks("gaussian(1)", 100, random_state=0), X),
        ("orthogonal sinks", onlearn.RandomKitchenSinks("gaussian(1)", 100, orthogonal=True, random_state=0), X),
        ("laplacian sinks", onlearn.RandomKitchenSinks("laplacian(0.5)", 64, random_state=0), sp.csr_matrix(X)),
        ("polynomial sinks", onlearn.RandomKitchenSinks("polynomial(3)", 128, random_state=0), X.astype(np.float32)),
        ("nystroem", onlearn.Nystroem("gaussian(1)", 40, random_state=0), X),
        ("nystroem kmeans++", onlearn.Nystroem("poly(3)", 40, landmarks="kmeans++", random_state=0), X),
        ("nystroem rpcholesky", onlearn.Nystroem("gaussian(1)", 40, landmarks="rpcholesky", random_state=0), X),
        ("nystroem of strings", onlearn.Nystroem("normalize(substrings(2, 4))", 20, random_state=0), strings),
        ("projection", onlearn.RandomProjection(20, random_state=0), np.tile(X, 15)),
        (
            "sparse projection",
            onlearn.RandomProjection(20, density="auto", random_state=0),
            sp.csr_matrix(np.tile(X, 15)),
        ),
        ("hasher of dicts", onlearn.FeatureHasher(2**10), named),
        ("hasher of columns", onlearn.FeatureHasher(16, seed=3), sp.csr_matrix(np.tile(X, 15))),
    ):
        yield title, made.fit(rows)
        yield f"{title}: rows", made.transform(rows)


@python_run
def features(folder: Path) -> Made:
    from onlearn.features import Category, Features, Interaction, Number, Text

    table, _ = onlearn.data.load(folder / "table.csv")
    documents, _ = onlearn.data.load(folder / "docs.jsonl")
    named, _ = onlearn.data.load(folder / "docs.vw")
    text = [Text("text", ngrams=(1, 2), chars=(3, 4), weighting="tfidf", apostrophes=True)]
    columns = [
        *(Number("age", scale="max-abs", missing="indicator"), Number("income", scale="log1p")),
        *(Category("colour"), Text("note", weighting="binary"), Interaction("colour", "age")),
    ]
    for title, made, rows in (
        ("guessed", Features(), table),
        ("chosen", Features(columns, dtype="float64"), table),
        ("text", Features(text), documents),
        ("text, hashed", Features(text, max_names=500, bits=9), documents),
        ("named", Features(), named),
    ):
        yield f"{title}: rows", made.fit_transform(rows)
        yield f"{title}: names", list(made.get_feature_names_out())


@python_run
def reading(folder: Path) -> Made:
    names = (
        "rows.svm",
        "far.svm",
        "table.csv",
        "table.tsv",
        "table.jsonl",
        "table.arrow",
        "docs.jsonl.zst",
        "docs.txt",
    )
    for name in names:
        X, y = onlearn.data.load(folder / name)
        yield f"{name} rows", X
        yield f"{name} labels", y
    batches = list(onlearn.data.read(folder / "docs.vw"))
    yield "docs.vw", [[str(one) for one in batch.ids] + np.asarray(batch.weight).tolist() for batch in batches]
    yield "numbers.csv", onlearn.data.load(folder / "numbers.csv", task="regress")[1]
