"""The suffix automaton knows exactly the substrings of its strings, and how often they occur."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlearn.kernels import suffix
from onlearn.kernels.string_pairs import encode

STRINGS = st.lists(st.text("abc", max_size=12), max_size=5)


def made(strings, shares=None):
    points = encode(strings, "test")
    upto = np.arange(points.longest + 1.0)
    shares = np.ones((len(strings), 1)) if shares is None else shares
    return suffix.automaton(points.text, points.starts, shares, upto)


def reached(states, string):
    """The state after all characters of a string, or None."""
    state = 0
    for character in string:
        state = int(suffix.follow(states.nodes, states.table, state, ord(character)))
        if state == suffix.EMPTY:
            return None
    return state


@given(STRINGS)
def test_paths_are_the_substrings(strings):
    states = made(strings)
    inside = {s[i:j] for s in strings for i in range(len(s)) for j in range(i + 1, len(s) + 1)}
    for u in inside:
        state = reached(states, u)
        count = sum(s.startswith(u, i) for s in strings for i in range(len(s)))
        assert state is not None and states.sums[state, 1, 0] == count
        assert (
            states.nodes[states.nodes[state, suffix.LINK], suffix.LENGTH] < len(u) <= states.nodes[state, suffix.LENGTH]
        )
    assert all(reached(states, u + c) is None for u in inside for c in "abcd" if u + c not in inside)


@given(STRINGS)
def test_states_and_transitions_are_few(strings):
    states, size = made(strings), sum(map(len, strings))
    assert len(states.nodes) <= max(1, 2 * size)
    assert np.count_nonzero(states.table[:, 0] != suffix.EMPTY) <= size + len(strings) < len(states.table)


@given(STRINGS)
def test_occurrences_are_weighted_by_string(strings):
    shares = np.random.default_rng(0).normal(size=(len(strings), 2))
    states = made(strings, shares)
    for u in {s[i:j] for s in strings for i in range(len(s)) for j in range(i + 1, len(s) + 1)}:
        expected = sum(
            (shares[n] * s.startswith(u, i) for n, s in enumerate(strings) for i in range(len(s))), np.zeros(2)
        )
        np.testing.assert_allclose(states.sums[reached(states, u), 1], expected, atol=1e-12)


def test_too_many_characters_are_refused(monkeypatch):
    monkeypatch.setattr(suffix, "MOST", 5)
    with pytest.raises(ValueError, match="6 characters are too many"):
        made(["abc", "def"])
