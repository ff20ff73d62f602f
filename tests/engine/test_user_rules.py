"""Rules that users write: what is wrong with one is said in a sentence, and nothing is learned from it."""

import math
import subprocess
import sys

import numpy as np
import pytest
from numba import cloudpickle
from sklearn.base import clone

import onlearn
from onlearn import KernelClassifier, OnlineClassifier, OnlineRegressor

X = np.random.default_rng(0).normal(size=(60, 4))
Y = (X[:, 0] > 0).astype(int)


def plain_python(score):
    return score


def raising(score, y, C=3.0):
    if score > C:
        raise ValueError("too far")
    return y


def lacking(score, y):
    if score < 2:
        return y


def dividing(score, y, sqnorm):
    return y / (score - score)


def counting(score, y):
    return y // int(score - score) + 1 // int(score - score)


def logarithm(score, y):
    return y * math.log(score - score)


def calling(score, y):
    return plain_python(score)


def not_real(score, y):
    return y + 1j


def without_attribute(score, y):
    return y.sign


def gentle(score, y):
    return 0.1 * (y - score)


FAILING = {
    "raises": (raising, None, r"'raising' raised ValueError \(too far\) for the example in row \d+; nothing was"),
    "divides by zero": (dividing, None, "'dividing' returned -?inf for the example in row 0; nothing was"),
    "divides whole numbers": (counting, None, r"'counting' raised ZeroDivisionError \(.*\) for the example in row 0;"),
    "differs when compiled": (logarithm, None, "'logarithm' returned infinity or NaN when compiled for the example"),
    "returns None": (lacking, None, "'lacking' must return a number in every case, but it can return None"),
    "calls Python": (calling, None, "'calling' cannot be compiled: it calls plain_python, which is plain Python"),
    "returns complex": (not_real, None, "'not_real' must return a number in every case, but it returns complex"),
    "does not compile": (without_attribute, None, "'without_attribute' cannot be compiled: Unknown attribute 'sign'"),
    "loss raises": (gentle, lambda s, y: 1 // int(s - s), "loss of the rule 'gentle' raised ZeroDivisionError .* at"),
    "loss of infinity": (gentle, lambda s, y: 1 / (s - s), "loss of the rule 'gentle' returned inf at score"),
    "loss of NaN": (gentle, lambda s, y: np.nan, "loss of the rule 'gentle' returned NaN at score"),
    "loss of None": (gentle, lambda s, y: None, "loss of the rule 'gentle' must return a number in every case"),
}


@pytest.mark.parametrize("case", FAILING)
def test_a_rule_that_fails_is_named_and_nothing_is_learned(case, capfd):
    function, loss, sentence = FAILING[case]
    model = OnlineClassifier(onlearn.rule(function, loss=loss), shuffle=False)
    with pytest.raises(ValueError, match=sentence) as caught:
        model.fit(X, Y)
    assert "\n" not in str(caught.value) and not hasattr(model, "classes_")
    assert "Exception ignored" not in capfd.readouterr().err


def test_kernel_learners_say_the_same():
    with pytest.raises(ValueError, match=r"'raising' raised ValueError \(too far\) for the example in row"):
        KernelClassifier("linear", onlearn.rule(raising), shuffle=False).fit(X, Y)


def named(name, **settings):
    return type(gentle)(gentle.__code__, {}, name, **settings)


def with_parameter(parameter):
    made = {}
    exec(f"def own(score, y, {parameter}):\n    return y", made)
    return made["own"]


REFUSED = {
    "lambda": (lambda: onlearn.rule(lambda score, y: y), "write it with def"),
    "built-in name": (lambda: onlearn.rule(named("perceptron")), "perceptron is one of onlearn's own"),
    "text": (lambda: onlearn.rule(with_parameter("C='x'")), "numbers for parameters, not C='x'"),
    "no number": (lambda: onlearn.rule(with_parameter("C=None")), "numbers for parameters, not C=None"),
    "a huge number": (lambda: onlearn.rule(with_parameter("C=10**400")), "finite numbers for parameters, not C=1000"),
    "truth": (lambda: onlearn.rule(with_parameter("C=True")), "numbers for parameters, not C=True"),
    "any number of them": (lambda: onlearn.rule(with_parameter("*C")), r"\*, / and \*\* are not for it"),
    "by name only": (lambda: onlearn.rule(with_parameter("*, C=1")), r"\*, / and \*\* are not for it"),
    "no function": (lambda: onlearn.rule(3), "made of a function, not of 3"),
    "loss": (lambda: onlearn.rule(gentle, loss=lambda score: 0.0), r"loss of .* must take \(score, y\), it takes \(sc"),
    **{
        name: (lambda name=name: onlearn.rule(with_parameter(f"{name}=1")), f"cannot have a parameter named {name}")
        for name in ("name", "step", "loss", "values", "written", "check", "get_params", "multiclass", "_own", "a__b")
    },
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_a_rule_is_refused_where_it_is_defined(case):
    make, sentence = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match=sentence):
        make()


def test_own_rules_serve_regression():
    target = X @ [1.0, -2.0, 0.0, 0.5]
    mine = OnlineRegressor(onlearn.rule(named("my_lms")), "additive", random_state=0).fit(X, target)
    lms = OnlineRegressor("lms", "additive(0.1)", random_state=0).fit(X, target)
    np.testing.assert_allclose(mine.coef_, lms.coef_, rtol=1e-9)
    one = OnlineRegressor("my_lms", epochs=1, shuffle=False).fit(X[:1], target[:1])
    assert one.history_["passes"][0]["loss"] == abs(target[0])  # without a loss of its own: the error, from 0


def test_a_rule_defined_again_leaves_learners_made_with_the_one_before():
    def define(size):
        @onlearn.rule
        def again(score, y, part=size):
            return part * y if score * y <= 0 else 0.0

        return again

    before = define(1.0)
    by_object, by_name = (OnlineClassifier(rule, random_state=0).fit(X, Y) for rule in (before(), "again"))
    weights = by_object.coef_.copy()
    now = define(0.25)
    for model in (by_object, by_name):
        assert np.array_equal(model.coef_, weights) and model.predict_proba(X).shape == (60, 2)
    assert np.array_equal(clone(by_object).fit(X, Y).coef_, weights)
    assert OnlineClassifier(before, random_state=0).fit(X, Y).partial_fit(X, Y).n_seen_ == 360
    by_object.partial_fit(X, Y)
    with pytest.raises(ValueError, match="rule again was defined anew since learning began"):
        by_name.partial_fit(X, Y)
    new = OnlineClassifier(now, random_state=0).fit(X, Y).coef_
    assert np.array_equal(by_name.fit(X, Y).coef_, new) and not np.array_equal(new, weights)


def test_a_rule_may_catch_its_divisions_by_zero():
    @onlearn.rule
    def catching(score, y):
        try:
            return y / score
        except Exception:
            return 0.5 * y

    model = OnlineClassifier(catching, "additive", stabilizer="last", fit_intercept=False, epochs=1, shuffle=False)
    assert model.fit([[1.0], [0.0]], [1, 0]).coef_ == 0.5  # both scores are 0


SCRIPT = """
import sys
from numba import cloudpickle
import onlearn
@onlearn.rule
def from_a_script(score, y, C=0.5):
    return C * y if score * y <= 0 else 0.0
made = [onlearn.OnlineClassifier(rule, random_state=0) for rule in (from_a_script(0.5), from_a_script, "from_a_script")]
made.append(onlearn.OnlineClassifier(from_a_script, random_state=0).fit([[0.0], [1.0]], [0, 1]))
sys.stdout.buffer.write(b"".join(len(part).to_bytes(8, "little") + part for part in map(cloudpickle.dumps, made)))
"""


def test_learners_take_a_rule_of_a_script_along_to_another_process():
    sent = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True).stdout
    models = []
    while sent:
        size = int.from_bytes(sent[:8], "little")
        onlearn.rules.RULES.members.pop("from_a_script", None)  # each as if it came alone
        models.append(cloudpickle.loads(sent[8 : 8 + size]))
        fitted = clone(models[-1]).set_params(rule__C=0.25).fit(X, Y)
        assert repr(fitted.rule) == "from_a_script(C=0.25)" and fitted.score(X, Y) > 0.9
        sent = sent[8 + size :]
    assert len(models) == 4 and models[-1].partial_fit([[0.0]], [0]).n_seen_ == 11
