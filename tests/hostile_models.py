"""Model files of every kind, damaged in every way: what loading and using them does. Run in a process of its own.

    python tests/hostile_models.py FOLDER FIRST LAST

makes the models in FOLDER (once), then damages one after another, loads it, and uses what loads. Each case prints a
line when it begins, so whoever started the process knows which one ended it; a case that takes long ends it too. A case
is a failure if an error is not a sentence that onlearn wrote, or not of the kind that it should be.
"""

from __future__ import annotations

import contextlib
import copy
import faulthandler
import io
import json
import linecache
import random
import resource
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import onlearn
from onlearn import model_file
from onlearn.compact_arrays import compact
from onlearn.model_file import ModelFileError
from onlearn.models import stored_model
from onlearn.models.stored_model import open_for_prediction

stored_model.LARGE = 0  # so that small files, too, are read in parts
LONG = 60  # seconds of a case
MEMORY = 6 << 30  # bytes of address space; a file of some kilobytes has no use for them

RNG = np.random.default_rng(5)
X = RNG.normal(size=(30, 4)).round(2)
Y = np.where(X @ [1.0, 2.0, -1.0, 0.0] > 0, "spam", "ham")
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
SETS = (X[:, :3] > 0).astype(int)
NUMBERS = X[:, 0] * 2
TEXTS = ["win cash now", "see you at lunch", "cheap pills and cash", "are you coming"] * 3
TEXT_LABELS = ["spam", "ham", "spam", "ham"] * 3
ROWS = [{"size": float(n % 5), "colour": "red" if n % 2 else "green", "word": TEXTS[n]} for n in range(12)]
TREES = ["(S (NP we) (VP sleep))", "(S (NP you) (VP (V eat) (NP fish)))", "(S (NP they) (VP sleep))"] * 4
SENTENCES = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["the", "cat", "barks"]] * 2
TAGS = [["DT", "NN", "VB"], ["DT", "NN", "VB"], ["DT", "NN", "VB"]] * 2
ATTRIBUTES = [[{"word": word, "last": word[-1]} for word in sentence] for sentence in SENTENCES]
VECTORS = [X[:3], X[3:8], X[8:10]]
VECTOR_TAGS = [["a", "b", "a"], ["b", "a", "b", "a", "b"], ["a", "b"]]


def sparse(X: np.ndarray) -> Any:
    import scipy.sparse as sp

    return sp.csr_matrix(X * (np.abs(X) > 0.5))


class Sample:
    """A model, and the data to use it with after it was loaded."""

    def __init__(self, make: Callable[[], Any], *data: Any) -> None:
        self.make, self.data = make, data


def _fitted(name: str, y: Any = Y, rows: Any = X, **params: Any) -> Sample:
    return Sample(lambda: getattr(onlearn, name)(**params).fit(rows, y), rows, y)


def _streamed(name: str, y: Any = Y, rows: Any = X, **params: Any) -> Sample:
    def make() -> Any:
        several = not isinstance(y, list) and y.ndim == 1 and "Regressor" not in name
        return getattr(onlearn, name)(**params).partial_fit(rows, y, **({"classes": np.unique(y)} if several else {}))

    return Sample(make, rows, y)


def _transformer(name: str, rows: Any = X, **params: Any) -> Sample:
    return Sample(lambda: getattr(onlearn, name)(**params).fit(rows), rows)


def _model(rows: Any, y: Any, **changes: Any) -> Sample:
    def make() -> Any:
        model = onlearn.Model().partial_fit(rows, y)
        for name, arguments in changes.items():
            getattr(model, name)(*arguments)
        return model

    return Sample(make, rows, y)


def _tagger() -> Sample:
    def make() -> Any:
        made = onlearn.Tagger()
        made.learner, made.columns = onlearn.HMM().fit(SENTENCES, TAGS)._as_learner(), ["form"]
        return made

    return Sample(make, SENTENCES, TAGS)


def _named() -> Sample:
    def make() -> Any:
        model = onlearn.OnlineClassifier(grow=True, random_state=3)
        for row, label in zip(ROWS, TEXT_LABELS):
            model.learn_one({"size": row["size"], "colour": row["colour"]}, label)
        return model

    return Sample(make, [{"size": 1.0, "colour": "red"}], ["spam"])


SAMPLES: dict[str, Sample] = {
    "additive": _streamed("OnlineClassifier", random_state=3),
    "three classes": _streamed("OnlineClassifier", THREE, random_state=3),
    "sparse": _streamed("LogisticRegression", rows=sparse(X), random_state=3),
    "l1 and l2": _streamed("OnlineClassifier", geometry="additive(0.1, l1=0.01, l2=0.01)", random_state=3),
    "adagrad": _streamed("AdaGrad", THREE, random_state=3),
    "fading": _streamed("OnlineClassifier", geometry="fading_adagrad", random_state=3),
    "winnow": _streamed("Winnow", rows=(X > 0).astype(float), random_state=3),
    "balanced": _streamed("BalancedWinnow", class_weight={"ham": 1.0, "spam": 3.0}, random_state=3),
    "normalised": _streamed("NormalizedWinnow", random_state=3),
    "exponentiated": _streamed("OnlineClassifier", geometry="exponentiated", random_state=3),
    "arow": _streamed("AROW", random_state=3),
    "ftrl": _streamed("FTRL", l1=0.1, random_state=3),
    "scinol": _streamed("ScInOL", random_state=3),
    "voted": _streamed("VotedPerceptron", random_state=3),
    "survivor": _streamed("OnlineClassifier", stabilizer="survivor", random_state=3),
    "regression": _streamed("OnlineRegressor", NUMBERS, random_state=3),
    "held out": _fitted("OnlineClassifier", THREE, calibration="holdout", epochs=1, random_state=3),
    "named": _named(),
    "kernel": _fitted("KernelClassifier", THREE, kernel="gaussian(0.7)", epochs=2, random_state=3),
    "kernel stages": _fitted("KernelPerceptron", kernel="polynomial(2)", epochs=2, keep_stages=True, random_state=3),
    "kernel stream": _streamed("KernelPerceptron", kernel="gaussian(0.7) + 0.5*linear", random_state=3),
    "kernel sparse": _fitted("KernelPerceptron", rows=sparse(X), epochs=2, random_state=3),
    "kernel primal": _fitted("KernelPerceptron", kernel="polynomial(2)", representation="primal", random_state=3),
    "budget project": _fitted("KernelClassifier", budget=5, epochs=1, random_state=3),
    "budget merge": _fitted("KernelClassifier", budget=5, budget_policy="merge", epochs=1, random_state=3),
    "budget remove": _fitted("KernelClassifier", budget=5, budget_policy="remove", epochs=1, random_state=3),
    "kernel strings": _fitted("KernelPerceptron", np.array(TEXT_LABELS), TEXTS, kernel="substrings(2)", random_state=3),
    "kernel trees": _fitted("KernelPerceptron", np.array(TEXT_LABELS), TREES, kernel="trees", random_state=3),
    "kernel voted": _fitted("KernelPerceptron", stabilizer="voted", epochs=1, random_state=3),
    "kernel regression": _fitted("KernelRegressor", NUMBERS, epochs=2, random_state=3),
    "svc": _fitted("SVC", THREE, random_state=3),
    "svc linear": _fitted("SVC", kernel="linear", random_state=3),
    "svr": _fitted("SVR", NUMBERS),
    "knn": _fitted("KNNClassifier", k=3),
    "knn path": _fitted("KNNClassifier", k="auto"),
    "knn sparse": _fitted("KNNRegressor", NUMBERS, sparse(X), k=3, metric="euclidean"),
    "knn kernel": _fitted("KNNClassifier", np.array(TEXT_LABELS), TEXTS, k=3, kernel="substrings(2)"),
    "bayes gaussian": _streamed("NaiveBayes", kind="gaussian"),
    "bayes counts": _streamed("NaiveBayes", THREE, (X > 0).astype(float), kind="multinomial"),
    "bayes mixed": _streamed("NaiveBayes", kinds=["gaussian", "gaussian", "bernoulli", "bernoulli"]),
    "network": _fitted("MLPClassifier", THREE, hidden_layer_sizes=(5,), epochs=2, random_state=3),
    "network stream": _streamed("MLPClassifier", hidden_layer_sizes=(5,), batch_size=8, random_state=3),
    "network sparse": _streamed("MLPRegressor", NUMBERS, sparse(X), hidden_layer_sizes=(5,), random_state=3),
    "mixture": _streamed("Mixture", learners=["Perceptron", "AROW", "AdaGrad"], random_state=3),
    "multilabel": _streamed("MultilabelClassifier", SETS, random_state=3),
    "crf": Sample(lambda: onlearn.CRF(epochs=3, random_state=3).fit(SENTENCES, TAGS), SENTENCES, TAGS),
    "crf attributes": Sample(
        lambda: onlearn.CRF(solver="sgd", epochs=2, random_state=3).fit(ATTRIBUTES, TAGS), ATTRIBUTES, TAGS
    ),
    "structured": Sample(
        lambda: onlearn.StructuredPerceptron(epochs=2, random_state=3).fit(SENTENCES, TAGS), SENTENCES, TAGS
    ),
    "hmm": Sample(lambda: onlearn.HMM().fit(SENTENCES, TAGS), SENTENCES, TAGS),
    "hmm gaussian": Sample(lambda: onlearn.HMM(emissions="gaussian").fit(VECTORS, VECTOR_TAGS), VECTORS, VECTOR_TAGS),
    "tagger": _tagger(),
    "model of texts": _model(TEXTS, TEXT_LABELS, set_threshold=(0.3, "spam")),
    "model of a table": _model(ROWS, TEXT_LABELS),
    "model of a matrix": _model(X, list(Y)),
    "hasher": _transformer("FeatureHasher", n_features=64),
    "kitchen sinks": _transformer("RandomKitchenSinks", n_components=6, random_state=3),
    "tensor sketch": _transformer("RandomKitchenSinks", kernel="polynomial(2)", n_components=8, random_state=3),
    "nystroem": _transformer("Nystroem", n_components=6, random_state=3),
    "kernel pca": _transformer("KernelPCA", n_components=3, random_state=3),
    "projection": _transformer("RandomProjection", n_components=3, random_state=3),
}


# ----------------------------------------------------------------------------------------------------
# Damage.


def deep(levels: int) -> Any:
    made: Any = 0
    for _ in range(levels):
        made = [made]
    return made


HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 100, 2**31, 2**40, 2**63, 2**64, -(2**63), 10**30, 0.5, -0.5, 1e300,
    float("nan"), float("inf"), float("-inf"), "", "x", "a" * 1000, "\x1b[2J\u202e", "perceptron", "additive",
    "Perceptron", "Model",
    [], [0], [1, 2, 3], ["a"], ["a", "a"], [None], [[]], [["a", 1]], [float("nan")], {}, {"a": 1}, {"pairs": []},
    {"pairs": [1]}, {"pairs": [[[], 1]]}, {"kernel": {}}, {"array": "tally"}, deep(50),
)  # fmt: skip
NUMBERS_IN_ARRAYS = (0, 1, -1, 2, 5, 127, 255, 2**31 - 1, -(2**31), 2**62, -(2**63), 0.5, 1e-300, 1e300, -1e300, 1e19)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where the header has values, parts of lists and of other objects included."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [path]
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


def at(header: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        header = header[key]
    return header


def damage_header(header: dict[str, Any], draw: random.Random) -> str:
    paths = [path for path in places(header) if path and path != ("format",)]
    if not paths:
        return "nothing"
    path = draw.choice(paths)
    owner, key = at(header, path[:-1]), path[-1]
    way = draw.choice(("replace", "replace", "replace", "near", "delete", "swap", "repeat", "add"))
    value = owner[key]
    if way == "replace":
        owner[key] = copy.deepcopy(draw.choice(HOSTILE))
    elif way == "near" and isinstance(value, (int, float)) and not isinstance(value, bool):
        owner[key] = draw.choice((value + 1, value - 1, -value, value * 2, float(value), str(value)))
    elif way == "near" and isinstance(value, str):
        owner[key] = draw.choice((value[:-1], value + "x", value.upper(), f"{value}(3)", [value]))
    elif way == "delete":
        del owner[key]
    elif way == "swap":
        other = draw.choice(paths)
        owner[key] = copy.deepcopy(at(header, other))
    elif way == "repeat" and isinstance(owner, list):
        owner.append(copy.deepcopy(value))
    else:
        way = "add"
        (owner if isinstance(owner, dict) else header)["more"] = copy.deepcopy(draw.choice(HOSTILE))
    return f"{way} {'.'.join(map(str, path))} = {str(owner)[:80] if way == 'delete' else repr(at_or(owner, key))[:80]}"


def at_or(owner: Any, key: Any) -> Any:
    try:
        return owner[key]
    except (KeyError, IndexError):
        return None


def damage_array(arrays: dict[str, np.ndarray], draw: random.Random) -> str:
    name = draw.choice(sorted(arrays))
    array = arrays[name] = np.array(arrays[name])
    ways = ("element", "element", "element", "fill", "type", "shape", "shorter", "longer", "permute", "delete", "swap")
    way = draw.choice(ways)
    if way in ("element", "fill"):
        value = draw.choice(NUMBERS_IN_ARRAYS)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            number = np.array(value).astype(array.dtype)
        if way == "fill":
            array[...] = number
        elif array.size:
            array.reshape(-1)[draw.randrange(array.size)] = number
        way = f"{way} {value}"
    elif way == "type":
        kinds = ("float32", "float64", "int8", "int32", "int64", "uint8", "uint64", "bool", "float16")
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            arrays[name] = array.astype(draw.choice(kinds))
    elif way == "shape":
        shapes = [(-1, 1), (1, -1), (array.size, 1, 1), ()] if array.size else [(0, 3), (3, 0), (0, 0)]
        arrays[name] = array.reshape(draw.choice([shape for shape in shapes if shape or array.size == 1]))
    elif way == "shorter":
        arrays[name] = array[: draw.randrange(max(1, len(array)))] if array.ndim else array
    elif way == "longer":
        arrays[name] = np.concatenate([array, array[:1], array[:1]]) if array.ndim else array
    elif way == "permute":
        flat = array.reshape(-1)
        arrays[name] = flat[draw.sample(range(flat.size), flat.size)].reshape(array.shape)
    elif way == "delete":
        del arrays[name]
    else:
        other = draw.choice(sorted(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]
    return f"{way} {name}"


def damage_bytes(raw: bytes, draw: random.Random) -> bytes:
    made = bytearray(raw)
    for _ in range(draw.choice((1, 1, 2, 8))):
        if not made:
            break
        spot = draw.randrange(min(len(made), draw.choice((16, 4000, len(made)))))
        way = draw.randrange(4)
        if way == 0:
            made[spot] ^= 1 << draw.randrange(8)
        elif way == 1:
            made[spot] = draw.choice(b'\x00\xff0129-.eE"[]{},:\\ntf')
        elif way == 2:
            del made[spot : spot + draw.choice((1, 1, 8, 100))]
        else:
            made[spot:spot] = made[spot : spot + draw.choice((1, 8, 100))]
    return bytes(made)


def damaged(path: Path, out: Path, case: int) -> str:
    """Write the damaged file of a case; returns what was done to it."""
    draw = random.Random(case)
    if case % 5 == 4:
        out.write_bytes(damage_bytes(path.read_bytes(), draw))
        return "bytes"
    header, arrays = model_file.read_file(path)
    told = damage_header(header, draw) if case % 5 < 3 else damage_array(arrays, draw)
    if draw.random() < 0.1:
        told += "; " + (damage_array(arrays, draw) if arrays else "")
    stored = {key: np.ascontiguousarray(array).reshape(array.shape) for key, array in arrays.items()}
    if draw.random() < 0.3:
        stored, header["compact"] = compact(stored, large=1)
        header["format"] = 2
        if draw.random() < 0.5:
            known = header["compact"]
            told += "; compact: " + (damage_array(stored, draw) if draw.random() < 0.5 else damage_header(known, draw))
    model_file.write_arrays(str(out), stored, {"onlearn": json.dumps(header)})
    return told


# ----------------------------------------------------------------------------------------------------
# Use, and what may come of it.


def use(sample: Sample, path: Path, again: Path) -> None:
    """Load a model, and do with it what one does with models."""
    model = onlearn.load(path)
    rows, y = sample.data[0], sample.data[-1]
    few, one = (rows[:3], rows[:1]) if not hasattr(rows, "tocsr") else (rows[:3], rows[0])
    learning = "predict" in dir(model)
    given = (
        {"transform": (rows,), "get_feature_names_out": ()}
        if not learning
        else {"predict": (few,), "decision_function": (few,), "predict_proba": (few,), "partial_fit": (one, y[:1])}
    )
    if isinstance(rows, list) and isinstance(rows[0], dict) and hasattr(model, "n_features_in_"):
        given = {"predict_one": (rows[0],), "predict_proba_one": (rows[0],), "learn_one": (rows[0], y[0])}
    tries = [partial(_call, model, name, *data) for name, data in given.items() if name in dir(model)]
    tries += [partial(_call, model, name, *data) for name, data in given.items() if name in dir(model)]
    tries += [partial(repr, model), partial(_call, model, "_repr_html_")]
    if learning:
        tries.append(partial(inspect, path))
    if isinstance(model, onlearn.Model):
        tries.append(lambda: model.explain(rows[:1]))
        tries.append(lambda: open_for_prediction(path).predict(few))
    tries.append(partial(_call, model, "save", again))
    for attempt in tries:
        try:
            attempt()
        except Exception as error:
            if not is_ours(error):
                raise


def _call(model: Any, name: str, *data: Any) -> Any:
    return getattr(model, name)(*data)


def inspect(path: Path) -> None:
    from onlearn.cli import inspect

    with contextlib.redirect_stdout(io.StringIO()):
        inspect.inspect(str(path), top=3, label=None, json=False)


def is_ours(error: BaseException) -> bool:
    """Whether a line of onlearn raised it on purpose."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    lines = [linecache.getline(last.filename, n).strip() for n in range(last.lineno or 0, (last.lineno or 0) - 1, -1)]
    ours = "onlearn" in last.filename and any(line.startswith("raise ") for line in lines)
    return ours or type(error).__module__.startswith("sklearn")


def verdict(sample: Sample, path: Path, again: Path) -> str | None:
    """None if a case ends as it should; or what is wrong with it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            use(sample, path, again)
    except ModelFileError as error:
        cause = error.__context__
        if str(error).count("\n") or not str(error).isprintable():
            return f"not one plain line: {error!r}"
        foreign = isinstance(cause, Exception) and not is_ours(cause)
        told = isinstance(cause, (OSError, UnicodeDecodeError, json.JSONDecodeError)) or "Safetensor" in repr(cause)
        if not is_ours(error) or (foreign and not told):
            return f"not foreseen: {error}\n" + "".join(traceback.format_exception(cause or error)[-3:])
        return None
    except Exception as error:
        return "".join(traceback.format_exception(error)[-4:])
    return None


def originals(folder: Path) -> dict[str, Path]:
    made = {}
    for name, sample in SAMPLES.items():
        path = made[name] = folder / f"{name.replace(' ', '_')}.onl"
        if not path.exists():
            sample.make().save(path)
    return made


def main(folder: Path, first: int, last: int) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        paths = originals(folder)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    out, again, failed = folder / "damaged.onl", folder / "again.onl", 0
    names = list(paths)
    for case in range(first, last):
        name = names[case % len(names)]
        told = damaged(paths[name], out, case)
        print(f"{case} {name}: {told}", flush=True)
        faulthandler.dump_traceback_later(LONG, exit=True)
        wrong = verdict(SAMPLES[name], out, again)
        faulthandler.cancel_dump_traceback_later()
        if wrong is not None:
            failed += 1
            print(f"FAILED {case} {name}: {told}\n{wrong}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(min(1, main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
