"""Extractors side by side: no feature is made twice, and an interaction makes some."""

from __future__ import annotations

import pytest

from onlearn.features import Category, Features, Interaction, Number, Text


@pytest.mark.parametrize(
    "doubled",
    [
        [Number("a"), Number("a")],
        [Number("a"), Number("a", scale="none")],
        [Category("a"), Category("a", missing="zero")],
        [Text("t"), Text("t", norm=False)],
        ["auto", "auto"],
    ],
)
def test_features_that_would_be_made_twice_are_refused(doubled):
    with pytest.raises(ValueError, match=r"^(\w+)\(.*\) and \1\(.*\) make features of the same names: leave one out"):
        Features(doubled).fit({"a": [1.0, 2.0], "t": ["so it is", "and that"]})


def test_one_column_in_two_ways_is_fine():
    ways = [Number("a"), Category("a"), Text("t"), Text("t", ngrams=None, chars=2), Text("t", prefix="other:")]
    names = Features(ways).fit({"a": [1.0, 2.0], "t": ["so", "it"]}).get_feature_names_out()
    assert {"a", "a=1", "t:so", "t:chars: s", "other:so"} <= set(names) and len(set(names)) == len(names)


def test_a_number_times_itself():
    table = {"a": [2.0, 3.0, None], "job": ["x", "y", "x"]}
    crosses = [Interaction("a", "a"), Interaction("a", "a", "a"), Interaction("a", "job", "a")]
    features = Features([Number("a", scale="none", missing="indicator"), Category("job"), *crosses])
    made = dict(zip(features.fit(table).get_feature_names_out(), features.transform(table).toarray().T.tolist()))
    assert made["a*a"] == [4, 9, 0] and made["a*a*a"] == [8, 27, 0] and made["a*a*job=x"] == [4, 0, 0]
    assert set(made) == {"a", "a=missing", "job=x", "job=y", "a*a", "a*a*a", "a*a*job=x", "a*a*job=y"}


@pytest.mark.parametrize("idle", [Interaction("job", "job"), Interaction("job", "a", "job")])
def test_a_category_times_itself_is_refused(idle):
    with pytest.raises(ValueError, match=r"makes nothing new: 'job' has one category a row"):
        Features([Number("a"), Category("job"), idle]).fit({"a": [1.0], "job": ["x"]})


def test_all_pairs_of_one_column_are_refused():
    with pytest.raises(ValueError, match="2 different columns, but there is only job"):
        Features([Category("job"), Interaction()]).fit({"job": ["x"]})


@pytest.mark.parametrize("again", [Interaction("job", "a"), Interaction("a", "job"), Interaction()])
def test_each_product_is_made_once(again):
    columns, table = [Number("a", scale="none"), Category("job")], {"a": [2.0], "job": ["x"]}
    once, twice = Features([*columns, again]), Features([*columns, Interaction("a", "job"), again])
    assert sorted(once.fit_transform(table).data) == sorted(twice.fit_transform(table).data)
    assert once.n_features_out_ == twice.n_features_out_ == 3
