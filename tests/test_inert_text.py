"""Text of others made inert, and small pieces of HTML for notebooks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onlearn
from onlearn.inert_text import facts_html, inert, number


@given(st.text(st.characters(), max_size=200), st.integers(2, 100))
def test_inert_is_short_and_can_be_seen(text, most):
    made = inert(text, most)
    assert len(made) <= most
    made.encode("utf-8")
    assert all(one.isprintable() or one in "\u200c\u200d" for one in made)
    if len(text) <= most and text.isprintable():
        assert made == text


@given(st.text(max_size=50))
def test_facts_are_escaped(text):
    made = facts_html(text, [(text, text)], [[text], [text]])
    plain = facts_html("", [("", "")], [[""], [""]])
    assert made.count("<") == plain.count("<") and made.count(">") == plain.count(">")


def test_numbers():
    assert [number(one) for one in (float("nan"), float("inf"), 1e9, 12.0, 0.00001, "x")] == [
        "\u2013", "∞", "1,000,000,000", "12", "1e-05", "x"
    ]  # fmt: skip


def rows():
    X = np.random.default_rng(0).normal(size=(60, 3))
    return X, np.where(X[:, 0] > 0, "<script>alert(1)</script>", "b")


@pytest.mark.parametrize("name", ["Perceptron", "AROW", "VotedPerceptron", "KernelPerceptron", "NaiveBayes", "SVC"])
def test_estimators_and_learners_in_notebooks(name):
    X, y = rows()
    fresh = getattr(onlearn, name)()
    assert "What was learned" not in fresh._repr_html_()
    fitted = fresh.fit(X, y)
    for made in (fitted._repr_html_(), fitted._repr_mimebundle_()["text/html"], fitted._learner._repr_html_()):
        assert "examples" in made and "<script>alert" not in made
    assert fitted._repr_mimebundle_()["text/plain"] == repr(fitted)


def test_display_as_text():
    import sklearn

    with sklearn.config_context(display="text"):
        assert not hasattr(onlearn.Perceptron(), "_repr_html_")
        assert list(onlearn.Perceptron()._repr_mimebundle_()) == ["text/plain"]


def test_certificates_models_and_taggers_in_notebooks():
    X, y = rows()
    certificate = onlearn.Perceptron().fit(X, y).certificate(X, y)
    assert "within every bound" in certificate._repr_html_()
    model = onlearn.Model()
    assert "nothing yet" in model._repr_html_()
    model.partial_fit([{"a": 1.0}, {"a": 9.0}], ["<b>", "c"])
    assert "&lt;b&gt;" in model._repr_html_() and "<b>" not in model._repr_html_()
    tagger = onlearn.StructuredPerceptron(epochs=1).fit([["the", "dog"]], [["D", "N"]])
    assert "sequences" in tagger._learner._repr_html_() and "sequences" in tagger._repr_html_()
    assert "nothing yet" in onlearn.Tagger()._repr_html_()
    advice = onlearn.theory.recommend(np.eye(8), np.arange(8) % 2)
    assert "additive bound" in advice._repr_html_()
    mixture = onlearn.Mixture().fit(X, y)
    assert "bound" in mixture.certificate()._repr_html_()
