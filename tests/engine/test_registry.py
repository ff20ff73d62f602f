"""Learners by name, and their spelling."""

from __future__ import annotations

import pytest

from onlearn.engine import registry
from onlearn.engine.base_learner import BaseLearner

NAMES = registry.learner_names()


@pytest.mark.parametrize("name", NAMES)
def test_every_name_makes_a_learner_that_its_spelling_makes_again(name):
    learner = registry.make_learner(name)
    assert isinstance(learner, BaseLearner)
    assert learner.composition.parameters == registry.composition_of(name).parameters
    again = registry.parse_learner(registry.spell_learner(learner))
    assert type(again) is type(learner) and again.get_params() == learner.get_params()


@pytest.mark.parametrize("name", NAMES)
def test_names_are_found_whatever_the_case(name):
    assert registry.full_name(name.upper()) == registry.full_name(name.lower()) == name


def test_short_names_stand_for_the_learner_of_the_task():
    for short, known in registry.SHORT.items():
        assert registry.full_name(short) == known[0]
        assert registry.full_name(short, "regress") == known[-1]


def test_learners_of_sequences_have_names_of_their_own():
    assert set(registry.sequence_names()) == {"CRF", "HMM", "StructuredPerceptron"}
    assert not set(registry.sequence_names()) & set(NAMES)
    spelled = ("crf", "hmm", "structured-perceptron", "Structured_Perceptron", "structuredperceptron")
    found = [registry.full_name(registry.parse_call(text)[0]) for text in spelled]
    assert found == ["CRF", "HMM", *3 * ["StructuredPerceptron"]]


@pytest.mark.parametrize("text", ["structured-perceptron(rule='pa1')", " structured-perceptron (rule='pa1')"])
def test_a_hyphen_in_a_short_name_is_no_minus(text):
    assert registry.parse_call(text) == ("structured_perceptron", [], {"rule": "pa1"})


def test_a_learner_of_sequences_is_made_of_its_spelling_where_it_is_asked_for():
    learner = registry.parse_learner("hmm(k=0.5)", registry.sequence_names())
    assert registry.spell_learner(learner) == "HMM(k=0.5)"
    with pytest.raises(ValueError, match="there is no learner 'HMM'"):
        registry.parse_learner("hmm")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "cannot read the learner"),
        ("AROW(", "cannot read the learner"),
        ("AROW(__import__('os'))", "cannot read the learner"),
        ("os.system('x')", "cannot read the learner"),
        ("AROW-2", "cannot read the learner"),
        ("AROV", "did you mean 'AROW'"),
        ("AROW(rr=2)", "did you mean 'r'"),
        ("AROW(1, r=2)", "given twice"),
        ("(" * 5000, "cannot read the learner"),
    ],
)
def test_what_is_no_learner_is_refused(text, says):
    with pytest.raises(ValueError, match=says):
        registry.parse_learner(text)
