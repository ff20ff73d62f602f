"""Search spaces: spellings, JSON, samples."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlearn.errors import PlanError
from onlearn.tune.portfolio import Kind, configurations
from onlearn.tune.space import Log, Space, Uniform, Whole, different

NAMES = st.text("abcdefgh_", min_size=1, max_size=6)
LISTED = st.lists(
    st.one_of(st.integers(-5, 5), st.floats(-2, 2), st.sampled_from(["idf", "1-2"])), min_size=1, max_size=4
)
RANGES = st.tuples(st.sampled_from(["uniform", "log", "whole"]), st.integers(1, 9), st.integers(10, 99)).map(
    lambda one: {one[0]: [one[1], one[2]]}
)


def test_spellings_of_lists_and_ranges():
    space = Space.parse(["rate=log(0.01,1)", "weighting=idf, log-tfidf", "passes=1,3", "l2=uniform(0,0.5)",
                         "bits=whole(18,24)", "norm=true,false"])  # fmt: skip
    assert space.values == {
        "rate": Log(0.01, 1.0),
        "weighting": ("idf", "log-tfidf"),
        "passes": (1, 3),
        "l2": Uniform(0.0, 0.5),
        "bits": Whole(18, 24),
        "norm": ("true", "false"),
    }
    assert space.with_truths(set()).values["norm"] == (True, False)
    assert space.with_truths({"norm"}) == space
    assert Space.of({"multiclass": [True, "softmax"]}).with_truths({"multiclass"}).values["multiclass"][0] == "true"


def test_commas_inside_brackets_and_quotes_do_not_separate():
    space = Space.parse(["learner=LogisticRegression(rate=0.5, l2=1e-4),AROW", "interact='a,b',pairs"])
    assert space.values["learner"] == ("LogisticRegression(rate=0.5, l2=1e-4)", "AROW")
    assert space.values["interact"] == ("a,b", "pairs")


def test_a_json_file_says_the_same(tmp_path):
    spelled = Space.parse(["rate=log(0.01,1)", "weighting=idf,tfidf"])
    path = tmp_path / "space.json"
    path.write_text(json.dumps(spelled.to_json()))
    assert Space.parse([str(path)]) == spelled


@given(st.dictionaries(NAMES, st.one_of(LISTED, RANGES), min_size=1, max_size=4), st.integers(1, 30), st.integers(0, 9))
def test_samples_are_different_inside_the_space_and_decided_by_the_seed(values, count, seed):
    space = Space.of(values)
    drawn = space.sample(count, seed)
    assert drawn == space.sample(count, seed) == different(drawn)
    assert len(drawn) <= count
    assert Space.of(space.to_json()).sample(count, seed) == drawn
    for one in drawn:
        for name, value in one.items():
            of_name = space.values[name]
            assert value in of_name if isinstance(of_name, tuple) else of_name.low <= value <= of_name.high


def test_a_sample_covers_a_range_evenly():
    drawn = sorted(one["rate"] for one in Space.of({"rate": Log(1e-4, 1.0)}).sample(4, seed=3))
    assert all(10.0 ** (n - 4) <= value <= 10.0 ** (n - 3) for n, value in enumerate(drawn))


def test_few_combinations_are_all_taken_in_order():
    drawn = Space.parse(["a=1,2", "b=x,default"]).sample(4)
    assert drawn == [{"a": 1, "b": "x"}, {"a": 1}, {"a": 2, "b": "x"}, {"a": 2}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rate=log(0,1)", "begin above 0"),
        ("rate=log(2,1)", "must rise"),
        ("rate=log(1)", "is not a range"),
        ("rate=", "lists no values"),
        ("rate=1,,2", "one that is empty"),
        ("bits=whole(1.5,3)", "not whole"),
        ("nosuch.json", "no file that can be read"),
        ("rate", "nor an option with values"),
    ],
)
def test_wrong_spellings_are_refused_in_one_sentence(text, said):
    with pytest.raises(PlanError, match=said) as error:
        Space.parse([text])
    assert error.value.parameter == "space"


def test_a_mistyped_name_is_refused_with_what_was_meant():
    with pytest.raises(PlanError, match="there is no option 'wieghting'; did you mean 'weighting'"):
        Space.parse(["wieghting=idf"]).check(["weighting", "rate"])


def test_json_that_is_no_space(tmp_path):
    path = tmp_path / "a.json"
    for content, said in [("[1]", "no JSON object"), ("{", "not JSON"), ('{"a": {"log": [1]}}', "the range of a"),
                          ('{"a": []}', "no values")]:  # fmt: skip
        path.write_text(content)
        with pytest.raises(PlanError, match=said):
            Space.parse([str(path)])


def test_default_spaces_are_different_configurations_without_the_default():
    text, regression = Kind(text=True, table=True), Kind("regress", table=True, numbers=2, columns=2)
    table = Kind(table=True, numbers=3, columns=5, unsure=("a",))
    kinds = [Kind(), Kind("regress"), text, Kind(text=True, one_word=True, table=True), table, regression]
    for kind in kinds:
        made = configurations(kind)
        assert made
        assert {} not in made
        assert different(made) == made
    assert not any("interact" in one for one in configurations(Kind(table=True, columns=100)))
    assert not any("scale" in one for one in configurations(Kind(table=True, columns=5)))
