"""The model file: whole, sound, and enough to go on learning."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

import onlearn
from onlearn.model_file import ModelFileError, read_file, read_header

RNG = np.random.default_rng(1)
X = RNG.normal(size=(80, 4))
BINARY = np.where(X @ [1, 2, -1, 0] > 0, "spam", "ham")
THREE = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])

LEARNERS = {
    "additive": onlearn.OnlineClassifier(random_state=3),
    "l1 and l2": onlearn.OnlineClassifier(geometry="additive(0.1, l1=0.01, l2=0.01)", random_state=3),
    "adagrad": onlearn.OnlineClassifier(rule="logistic", geometry="adagrad(l1=0.01)", random_state=3),
    "normalised": onlearn.NormalizedWinnow(random_state=3),
    "balanced": onlearn.BalancedWinnow(class_weight="balanced", random_state=3),
    "arow": onlearn.AROW(random_state=3),
    "ftrl": onlearn.FTRL(l1=0.1, random_state=3),
    "scinol": onlearn.ScInOL(random_state=3),
    "voted": onlearn.VotedPerceptron(random_state=3),
    "survivor": onlearn.OnlineClassifier(stabilizer="survivor", random_state=3),
    "grown": onlearn.OnlineClassifier(grow=True, random_state=3),
}


@pytest.mark.parametrize("y", [BINARY, THREE], ids=["binary", "three classes"])
@pytest.mark.parametrize("name", LEARNERS)
def test_train_save_load_train_is_train_train_bit_for_bit(name, y, tmp_path):
    a = onlearn.load(_saved(LEARNERS[name].partial_fit(X[:40], y[:40], classes=np.unique(y)), tmp_path / "a.onl"))
    b = _clone(LEARNERS[name]).partial_fit(X[:40], y[:40], classes=np.unique(y))
    for model in (a, b):
        model.partial_fit(X[40:], y[40:])
    np.testing.assert_array_equal(a.decision_function(X), b.decision_function(X))
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    assert _saved(a, tmp_path / "a.onl").read_bytes() == _saved(b, tmp_path / "b.onl").read_bytes()
    _reset(LEARNERS[name])


def _clone(model):
    from sklearn.base import clone

    return clone(model)


def _reset(model):
    for name in [n for n in vars(model) if n.endswith("_") or n.startswith("_")]:
        delattr(model, name)


def _saved(model, path):
    model.save(path)
    return path


def test_further_passes_after_loading_are_the_passes_that_would_have_come(tmp_path):
    whole = onlearn.OnlineClassifier(epochs=5, random_state=7).fit(X, BINARY)
    part = onlearn.OnlineClassifier(epochs=2, random_state=7, warm_start=True).fit(X, BINARY)
    part = onlearn.load(_saved(part, tmp_path / "m.onl")).set_params(epochs=3).fit(X, BINARY)
    np.testing.assert_array_equal(part.coef_, whole.coef_)
    assert part.n_mistakes_ == whole.n_mistakes_
    assert part.history_ == whole.history_


def test_a_regressor_and_its_parameters_come_back(tmp_path):
    model = onlearn.OnlineRegressor(geometry="additive(0.01, l2=0.1)", random_state=0).fit(X, X[:, 0])
    back = onlearn.load(_saved(model, tmp_path / "m.onl"))
    assert back.get_params() == model.get_params()
    np.testing.assert_array_equal(back.predict(X), model.predict(X))


def test_names_labels_and_class_weights_come_back(tmp_path):
    import pandas as pd

    model = onlearn.OnlineClassifier(rule=onlearn.rules.PA1(0.5), class_weight={"ham": 1.0, "spam": 3.0})
    model.fit(pd.DataFrame(X, columns=list("abcd")), BINARY)
    back = onlearn.load(_saved(model, tmp_path / "m.onl"))
    assert list(back.feature_names_in_) == list("abcd")
    assert list(back.classes_) == ["ham", "spam"] and back.class_weight == {"ham": 1.0, "spam": 3.0}
    assert back.get_params()["rule__aggressiveness"] == 0.5


def test_labels_of_extended_precision_are_saved_if_doubles_hold_them(tmp_path):
    labels = np.array([0, 2**40], dtype=np.longdouble)[(BINARY == "spam").astype(int)]
    back = onlearn.load(_saved(onlearn.Perceptron().fit(X, labels), tmp_path / "m.onl"))
    assert back.classes_.tolist() == [0, 2**40]
    finer = np.where(labels > 0, np.longdouble(2**60) + 1, labels)
    model = onlearn.Perceptron().fit(X, finer)
    if np.finfo(np.longdouble).nmant > 60:
        with pytest.raises(ModelFileError, match="more digits than a model file can hold"):
            model.save(tmp_path / "other.onl")
        assert not (tmp_path / "other.onl").exists()


@pytest.fixture
def saved(tmp_path):
    return _saved(onlearn.VotedPerceptron(random_state=0).fit(X, BINARY), tmp_path / "m.onl")


def test_truncated_files_are_refused_at_every_length(saved):
    whole = saved.read_bytes()
    for length in [0, 1, 7, 8, 9, 100, len(whole) // 2, len(whole) - 1]:
        saved.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match="not a whole model file"):
            onlearn.load(saved)


def _rewritten(path, change):
    header, arrays = read_file(path)
    change(header, arrays)
    save_file(arrays, path, metadata={"onlearn": json.dumps(header)})


DAMAGE = {
    "newer format": (lambda h, a: h.update(format=99), "upgrade onlearn"),
    "no format": (lambda h, a: h.pop("format"), "no format version"),
    "unknown learner": (lambda h, a: h.update(learner="Oracle"), "does not know"),
    "a module for a learner": (lambda h, a: h.update(learner="theory"), "does not know"),
    "unknown parameter": (lambda h, a: h["params"].update(speed=3), "has no parameter 'speed'"),
    "unknown rule": (lambda h, a: h["training"].update(rule="mine"), "unknown rule 'mine'"),
    "missing part": (lambda h, a: a.pop("training.g.w"), "the array training.g.w is missing"),
    "wrong shape": (lambda h, a: a.update({"training.g.w": a["training.g.w"][:-1]}), "shape"),
    "wrong type": (lambda h, a: a.update({"training.g.w": a["training.g.w"].astype("f4")}), "shape or type"),
    "NaN": (lambda h, a: a["training.g.w"].__setitem__(0, np.nan), "not finite"),
    "no finite constant": (lambda h, a: h["training"].update(bias=-np.inf), "constant feature of the intercept"),
    "a change of no weight": (lambda h, a: a["training.st.at"].__setitem__(0, 10**6), "contradicts itself"),
    "strange label": (lambda h, a: a["training.audit.gold"].__setitem__(5, 1e6), "gold holds what it cannot hold"),
    "fewer features": (lambda h, a: h["estimator"].update(n_features_in=3), "3 features do not go with 4"),
    "too few names": (lambda h, a: h["estimator"].update(feature_names_in=["a"]), "1 names do not go with 4"),
    "no names": (lambda h, a: h["estimator"].update(feature_names_in="abcd"), "must be a list of names or None"),
    "no precision": (lambda h, a: h["estimator"].update(dtype="int8"), "'int8' for estimator.dtype"),
    "truth for a count": (
        lambda h, a: h["training"].update(outputs=True),
        "True for training.outputs, which must be a whole",
    ),
    "no pass": (lambda h, a: h["training"].update(by_pass=[3]), "3 for training.by_pass.0"),
    "single counters": (
        lambda h, a: a.update(counts=a["counts"].astype("f4")),
        "counts does not have the shape",
    ),
    "a class twice": (lambda h, a: h["classes"].update(values=["ham", "ham"]), "a label twice"),
    "classes of two kinds": (
        lambda h, a: h["classes"].update(values=["ham", 1], dtype="object"),
        "words or of num",
    ),
    "more classes": (lambda h, a: h["classes"]["values"].append("eggs"), "do not go with"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_files_get_one_clear_sentence(case, saved):
    change, sentence = DAMAGE[case]
    _rewritten(saved, change)
    with pytest.raises(ModelFileError, match=sentence):
        onlearn.load(saved)


HELD_OUT = {
    "too many codes": (lambda h, a: a.update({"held_out.codes": np.zeros(99, dtype=int)}), "held_out.scores does not"),
    "unknown code": (lambda h, a: a["held_out.codes"].__setitem__(0, 3), "held_out.codes holds what"),
    "no whole codes": (lambda h, a: a.update({"held_out.codes": a["held_out.codes"] * 1.0}), "held_out.codes does not"),
    "strange fraction": (lambda h, a: h.update(held_out="x"), "must be a number between 0 and 1"),
    "no scores": (lambda h, a: a.pop("held_out.scores"), "the array held_out.scores is missing"),
}


@pytest.mark.parametrize("case", HELD_OUT)
def test_damaged_rows_for_calibration_get_one_clear_sentence(case, tmp_path):
    model = onlearn.OnlineClassifier(calibration="holdout", epochs=1, random_state=0).fit(X, THREE)
    path = _saved(model, tmp_path / "m.onl")
    assert np.array_equal(onlearn.load(path).predict_proba(X), model.predict_proba(X))
    change, sentence = HELD_OUT[case]
    _rewritten(path, change)
    with pytest.raises(ModelFileError, match=sentence):
        onlearn.load(path)


def test_other_files_are_refused(tmp_path):
    save_file({"w": np.zeros(3)}, tmp_path / "other.safetensors")
    with pytest.raises(ModelFileError, match="not one that onlearn wrote"):
        onlearn.load(tmp_path / "other.safetensors")
    with pytest.raises(FileNotFoundError, match="there is no model file"):
        onlearn.load(tmp_path / "absent.onl")
    with pytest.raises(IsADirectoryError):
        onlearn.load(tmp_path)


def test_a_file_that_cannot_be_written_leaves_the_old_one(saved, tmp_path, monkeypatch):
    before = saved.read_bytes()

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        onlearn.Perceptron().fit(X, BINARY).save(saved)
    assert saved.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.onl"]
    with pytest.raises(FileNotFoundError, match="no directory"):
        onlearn.Perceptron().fit(X, BINARY).save(tmp_path / "nowhere" / "m.onl")
    with pytest.raises(IsADirectoryError):
        onlearn.Perceptron().fit(X, BINARY).save(tmp_path)


def test_killed_while_saving_leaves_the_old_model_or_the_new_one(saved):
    script = (
        "import sys, os, threading, time, onlearn\n"
        "a = onlearn.load(sys.argv[1])\n"
        "threading.Timer(float(sys.argv[2]), lambda: os.kill(os.getpid(), 9)).start()\n"
        "while True: a.save(sys.argv[1])\n"
    )
    for delay in ("0.01", "0.05"):
        subprocess.run([sys.executable, "-c", script, str(saved), delay], check=False)
        onlearn.load(saved)


def test_a_users_own_rule_must_be_known_when_loading(tmp_path):
    @onlearn.rule
    def fleeting(s, y):
        return y if s * y <= 0 else 0.0

    path = _saved(onlearn.OnlineClassifier(rule=fleeting).fit(X, BINARY), tmp_path / "m.onl")
    onlearn.load(path)
    del onlearn.rules.RULES.members["fleeting"]
    with pytest.raises(ModelFileError, match=r"unknown rule 'fleeting', which is none of onlearn's: .* before loading"):
        onlearn.load(path)


def test_a_class_of_the_users_own_is_not_saved(tmp_path):
    class Mine(onlearn.OnlineClassifier):
        pass

    with pytest.raises(ModelFileError, match="not one of onlearn's learners"):
        Mine().fit(X, BINARY).save(tmp_path / "m.onl")


def test_the_header_is_read_without_the_arrays(tmp_path, monkeypatch):
    import safetensors

    path = tmp_path / "m.onl"
    onlearn.Perceptron(random_state=0).fit([[0.0], [1.0]], [0, 1]).save(path)
    whole, _ = read_file(path)
    opened = safetensors.safe_open

    class HeaderOnly:
        def __init__(self, *arguments, **options):
            self.file = opened(*arguments, **options)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def metadata(self):
            return self.file.metadata()

    monkeypatch.setattr(safetensors, "safe_open", HeaderOnly)
    assert read_header(path) == whole
    monkeypatch.undo()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelFileError, match="not a whole model file"):
        read_header(path)


def test_what_is_wrong_with_a_file_is_told_whole(tmp_path):
    path = tmp_path / "m.onl"
    path.write_bytes((1 << 40).to_bytes(8, "little") + b"{}")
    with pytest.raises(ModelFileError, match=r"is not a whole model file: [^.…]*header too large[^.…]*$"):
        read_header(path)
