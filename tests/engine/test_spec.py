"""Choices and their text form: safe to read, exact to write back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlearn.engine import geometry, rules
from onlearn.engine.calibration import CALIBRATIONS
from onlearn.engine.geometry import GEOMETRIES
from onlearn.engine.rules import RULES
from onlearn.engine.stabilizers import STABILIZERS

FAMILIES = {"rule": RULES, "geometry": GEOMETRIES, "stabilizer": STABILIZERS, "calibration": CALIBRATIONS}


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_every_default_is_spelled_by_its_name_alone(family):
    for name in family:
        assert repr(family.get(name)) == name


@given(st.floats(1e-300, 1e99), st.floats(0, 1e300))
def test_spelling_and_reading_back_gives_the_same_choice(a, b):
    for choice in (rules.PA1(a), rules.Margin(b, a), geometry.Additive(rate=a, l1=b), geometry.FTRL(a, b, l2=a)):
        family = RULES if choice.name in RULES.members else GEOMETRIES
        assert family.get(repr(choice)) == choice


def test_spellings_take_positions_names_and_words():
    assert RULES.get("margin(1.0, m_minus=0.5)") == rules.Margin(1.0, 0.5)
    assert GEOMETRIES.get(" additive( rate = 2 , schedule=constant ) ") == geometry.Additive(2.0)
    assert GEOMETRIES.get('additive(schedule="1/sqrt(t)")').schedule == "1/sqrt(t)"
    assert GEOMETRIES.get("exponentiated(eta=auto, margin=0.2)").margin == 0.2
    assert RULES.get(rules.PA1) == rules.PA1()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("pa3", "unknown rule 'pa3': did you mean 'pa2'?|did you mean 'pa1'?"),
        ("anew", "unknown rule 'anew': known are perceptron, margin"),
        ("erceptron", "did you mean 'perceptron'?"),
        ("pa1(0)", "aggressiveness must be a number above 0, not 0"),
        ("pa1(nan)", "aggressiveness must be a number above 0"),
        ("pa1('x')", "must be a number above 0, not 'x'"),
        ("pa1(True)", "must be a number above 0, not True"),
        ("pa1(1e999)", "must be a number above 0"),
        ("pa1(1, 2)", r"takes 1 parameters \(aggressiveness\)"),
        ("pa1(speed=2)", "has no parameter 'speed'"),
        ("pa1(1, aggressiveness=2)", "given twice"),
        ("perceptron(1)", "takes 0 parameters"),
        ("pa1(", "write a name"),
        ("", "write a name"),
        ("1 + 1", "does not start with a name"),
        ("pa1(open('x'))", "is not a number, a word or a quoted text"),
        ("__import__('os')", "unknown rule '__import__'"),
        ("rules.pa1", "does not start with a name"),
        ("pa1(**{})", "has no parameter None"),
    ],
)
def test_a_wrong_spelling_gets_one_clear_sentence(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        RULES.get(text)


def test_parameters_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match="needs l2 above 0"):
        geometry.Additive(schedule="1/(lambda t)")
    with pytest.raises(ValueError, match='only with eta="auto"'):
        geometry.Exponentiated(eta=0.1, margin=0.2)
    with pytest.raises(ValueError, match="schedule must be 'constant' or"):
        geometry.Additive(schedule="slow")


def test_set_params_checks_and_changes_in_place():
    choice = rules.PA1()
    assert choice.set_params(aggressiveness=0.25) is choice and choice.aggressiveness == 0.25
    with pytest.raises(ValueError, match="above 0"):
        choice.set_params(aggressiveness=-1)
