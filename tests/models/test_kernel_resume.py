"""Kernel runs that go on: what is left off ends bit for bit as if it had not been, and other data may follow."""

from __future__ import annotations

import json

import numpy as np
import pytest

import onlearn
from onlearn import KernelClassifier, KernelRegressor
from onlearn.data import DataError
from onlearn.models.kernel_run import KernelRun
from onlearn.models.plan import Plan

LESSON = 64  # examples; the usual number of them would be more than the rows there are


def numbers(path, rows=300, seed=0, width=5, noise=0.1):
    """Points in a ball, in a half of what is around it, or in the other; some have another's label."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, width))
    y = np.where((X**2).sum(1) < width / 2, 0, np.where(X[:, 0] > 0, 1, 2))
    y = np.where(rng.random(rows) < noise, rng.integers(3, size=rows), y)
    lines = [f"{c} " + " ".join(f"{k}:{v:.5f}" for k, v in enumerate(x)) for x, c in zip(X, y, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def texts(path, rows=261, seed=0, words=400):
    """Texts of many words, one of which tells the label."""
    rng = np.random.default_rng(seed)
    with open(path, "w") as file:
        for _ in range(rows):
            kind = int(rng.integers(2))
            some = [f"w{n}" for n in rng.integers(words, size=20)] + [
                f"{'ab'[kind]}{n}" for n in rng.integers(9, size=1)
            ]
            file.write(json.dumps({"label": "ab"[kind], "text": " ".join(rng.permutation(some))}) + "\n")
    return str(path)


def run_of(source, learner=None, model=None, **plan):
    made = KernelRun(Plan([source], learner=learner, **plan), model)
    made.lessons.size = LESSON
    return made


def left_off(run, path, after):
    """The model of a run that was stopped after so many examples, from its file."""

    def checkpoint():
        run.model.save(path)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.go(checkpoint=checkpoint, every=after)
    return onlearn.load(path)


def same(first, second):
    """Whether two models hold the same, bit for bit."""
    (facts, a), (others, b) = (model._pack() for model in (first, second))
    assert a.keys() == b.keys()
    for key in a:
        np.testing.assert_array_equal(a[key], b[key], err_msg=key)
    for key in ("training", "dual"):
        assert facts["inner"][key] == others["inner"][key]


LEARNERS = {
    "cache": dict(kernel="gaussian(1.5)", rule="pa1(0.5)", cache_mb=64),
    "no cache": dict(kernel="polynomial(2)", rule="hinge", stabilizer="last", cache_mb=0, geometry="additive(l2=0.01)"),
    "voted": dict(kernel="linear + gaussian(2)", stabilizer="voted"),
    "project": dict(kernel="gaussian(1.5)", budget=25),
    "merge": dict(kernel="gaussian(1.5)", budget=25, budget_policy="merge", rule="pa1"),
}
LONG = ("voted", "merge")  # to compile


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in LONG else []) for n in LEARNERS])
def test_an_unfinished_run_goes_on_as_if_never_stopped(tmp_path, name):
    """Stopped in the first pass, at the end of one and in a later one; one is stopped twice."""
    source, passes = numbers(tmp_path / "a.svm"), 4

    def begun():
        return run_of(source, KernelClassifier(**LEARNERS[name]), passes=passes)

    whole = begun().go()
    assert whole.learner.n_seen_ == 1200
    for after in (100, 300, 700, 1000):
        model = left_off(begun(), tmp_path / "half.onl", after)
        assert after <= model.learner.n_seen_ == model.trained["unfinished"] < after + LESSON
        if after == 100:
            model = left_off(run_of(source, model=model), tmp_path / "half.onl", 500)
        same(run_of(source, model=model).go(), whole)
    assert any("standing" in key for key in onlearn.load(tmp_path / "half.onl")._pack()[1])
    assert not any("standing" in key for key in whole._pack()[1])


@pytest.mark.parametrize("kernel", ["polynomial(2)", pytest.param("substrings(1, 3)", marks=pytest.mark.slow)])
def test_texts_too(tmp_path, kernel):
    source = texts(tmp_path / "a.jsonl")

    def begun():
        return run_of(source, KernelClassifier(kernel, rule="pa1(0.5)"), passes=3)

    whole = begun().go()
    for after in (200, 600):
        same(run_of(source, model=left_off(begun(), tmp_path / "half.onl", after)).go(), whole)


def amounts(path, rows=300, seed=0):
    """Points, and a number that depends on them and grows from line to line; some lines count more."""
    rng = np.random.default_rng(seed)
    lines = ["a,b,weight,y"]
    for n, (a, b) in enumerate(rng.normal(size=(rows, 2))):
        lines.append(f"{a:.4f},{b:.4f},{rng.integers(1, 4)},{np.sin(2 * a) + b + 0.01 * n:.4f}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize(
    "choices",
    [
        dict(kernel="gaussian(1)"),
        dict(kernel="polynomial(2)", rule="pa_epsilon(0.1)", stabilizer="last"),
        dict(kernel="gaussian(1)", budget=20),
    ],
    ids=str,
)
def test_regression_too(tmp_path, choices):
    source, other = amounts(tmp_path / "a.csv"), amounts(tmp_path / "b.csv", seed=1)
    plan = dict(passes=3, task="regress", reading={"target": "y", "weight": "weight"})

    def begun():
        return run_of(source, KernelRegressor(**choices), **plan)

    whole = begun().go()
    assert whole.learner.n_seen_ == 900 and whole.labels is None
    for after in (100, 300, 700):
        same(run_of(source, model=left_off(begun(), tmp_path / "half.onl", after), task="regress").go(), whole)
    whole.save(tmp_path / "a.onl")
    both = run_of(other, model=onlearn.load(tmp_path / "a.onl"), task="regress").go()
    assert both.learner.n_seen_ == 1200
    same(run_of(other, model=whole, task="regress").go(), both)


def test_other_data_may_follow(tmp_path):
    """They may have features that the support examples lack; saved and loaded between makes no difference."""
    first, second = texts(tmp_path / "a.jsonl"), texts(tmp_path / "b.jsonl", seed=1, words=600)
    learner = KernelClassifier("gaussian(3)", rule="pa1(0.5)", class_weight="balanced")
    one = run_of(first, learner, passes=2).go()
    one.save(tmp_path / "a.onl")
    before = one.learner.n_support_
    both = run_of(second, model=onlearn.load(tmp_path / "a.onl")).go()
    assert both.learner.n_seen_ == 3 * 261
    assert both.learner.n_features_in_ == both.features.n_features_out_ > 700
    assert both.learner.support_examples_.shape == (both.learner.n_support_, both.learner.n_features_in_)
    assert both.learner.n_support_ > before
    same(run_of(second, model=one).go(), both)
    half = left_off(run_of(second, model=onlearn.load(tmp_path / "a.onl")), tmp_path / "half.onl", 100)
    same(run_of(second, model=half).go(), both)


def test_what_cannot_go_on(tmp_path):
    lines = [f"{n % 2} {n % 3 + 1}:1 {n % 2 + 4}:1" for n in range(40)]
    (tmp_path / "a.svm").write_text("\n".join(lines) + "\n")
    model = run_of(str(tmp_path / "a.svm"), KernelClassifier("monomials", stabilizer="last")).go()
    model.save(tmp_path / "m.onl")
    (tmp_path / "b.svm").write_text("\n".join(f"{line} 9:1" for line in lines) + "\n")
    with pytest.raises(
        ValueError, match=r"the rows have 4 features that the model has not met, and to monomials .*anew"
    ):
        run_of(str(tmp_path / "b.svm"), model=model).go()
    (tmp_path / "c.svm").write_text("\n".join(["2 1:1", *lines]) + "\n")
    with pytest.raises(DataError, match=r"the label '2' is not one of the labels seen before.*train anew"):
        run_of(str(tmp_path / "c.svm"), model=onlearn.load(tmp_path / "m.onl")).go()
    half = left_off(run_of(str(tmp_path / "a.svm"), KernelClassifier("linear")), tmp_path / "half.onl", 10)
    half.learner.partial_fit(np.zeros((1, half.learner.n_features_in_)), [0])
    with pytest.raises(DataError, match="does not say how its rows stood"):
        run_of(str(tmp_path / "a.svm"), model=half).go()
