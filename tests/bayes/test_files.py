"""The model file of naive Bayes: what is damaged is refused with a sentence."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from onlearn import model_file
from onlearn.bayes.learner import BayesLearner

KINDS = ["gaussian", "bernoulli", "multinomial", "multinomial"]


def learner(kind="mixed", kinds=KINDS):
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (40, 4)).astype(float)
    made = BayesLearner(kind=kind, kinds=kinds, progressive=True)
    return made.partial_fit(X, rng.integers(0, 3, 40), classes=[0, 1, 2])


def parts():
    header, arrays = model_file.describe(learner())
    return copy.deepcopy(header), dict(arrays)


def array_names():
    return sorted(name for name in parts()[1] if name.startswith("training."))


def facts(header):
    """The dict of facts about the training, wherever the header holds it."""
    for value in header.values():
        if isinstance(value, dict):
            if "groups" in value and "then" in value:
                return value
            found = facts(value)
            if found is not None:
                return found
    return None


def test_what_is_whole_is_read():
    header, arrays = parts()
    again = model_file.rebuild(header, arrays)
    assert again.n_seen_ == 40


@pytest.mark.parametrize("name", array_names())
def test_damaged_arrays_are_refused(name):
    for damage in (
        lambda array: array[:-1],
        lambda array: array.astype(np.float32),
        lambda array: array.reshape(-1, 1)[:, :0],
    ):
        header, arrays = parts()
        arrays[name] = damage(arrays[name])
        with pytest.raises((ValueError, KeyError)):
            model_file.rebuild(header, arrays)
    header, arrays = parts()
    del arrays[name]
    with pytest.raises((ValueError, KeyError)):
        model_file.rebuild(header, arrays)


@pytest.mark.parametrize("name", ["training.weight", "training.multinomial.counts", "training.gaussian.spread"])
def test_what_cannot_be_negative_is_refused(name):
    header, arrays = parts()
    arrays[name] = arrays[name] - 1e6
    with pytest.raises(ValueError, match="holds what it cannot hold"):
        model_file.rebuild(header, arrays)


@pytest.mark.parametrize("name", ["groups", "then", "next", "features", "outputs"])
@pytest.mark.parametrize("value", [None, -1, "x", [], [1], 1e9, {}, [["poisson", ""]], [["gaussian", ""]] * 2, 10**6])
def test_damaged_facts_are_refused(name, value):
    header, arrays = parts()
    if name in ("then", "next") and value in (None, 10**6):
        return  # which may be
    facts(header)[name] = value
    with pytest.raises((ValueError, KeyError)):
        model_file.rebuild(header, arrays)


def test_groups_that_do_not_exist_are_refused():
    header, arrays = parts()
    arrays["training.groups"] = arrays["training.groups"] + 5
    with pytest.raises(ValueError, match="groups"):
        model_file.rebuild(header, arrays)


def test_sizes_beyond_what_is_stored_are_refused_before_memory_is_asked_for():
    made = BayesLearner().fit(np.eye(3), [0, 1, 0])
    for name in ("features", "outputs"):
        facts, arrays = made.training.pack()
        with pytest.raises(ValueError, match="nothing stored is as large"):
            made._unpack_training({**facts, name: 10**18}, arrays, 3)


@pytest.mark.parametrize(("name", "value"), [("alpha", None), ("alpha", 0), ("var_smoothing", "x"), ("norm", [])])
def test_parameters_that_cannot_be_are_refused(name, value):
    header, arrays = parts()
    header["params"][name] = value
    with pytest.raises(ValueError, match=f"{name} must be"):
        model_file.rebuild(header, arrays)
