"""What becomes of single values: missing ones, categories, booleans, numbers beyond measure."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from onlearn.features import Category, Features, Interaction, Number, Text
from onlearn.features.assemble import rows_of_names


def dense(X):
    return X.toarray().tolist()


def test_what_is_nan_or_na_is_missing_whatever_the_rows_are_given_as():
    values = ["a", float("nan"), None, pd.NA, np.float32("nan")]
    tables = [{"c": values}, [{"c": value} for value in values], {"c": np.array(values, dtype=object)}]
    for rows in [*tables, pd.DataFrame({"c": values})]:
        assert list(Features([Category("c")]).fit(rows).get_feature_names_out()) == ["c=a"]
        assert list(Features([Text("c")]).fit(rows).get_feature_names_out()) == ["c:a"]


def test_dictionaries_whatever_numbers_their_indices_are():
    for kind in (pa.int8(), pa.uint8(), pa.uint32(), pa.uint64()):
        values = pa.DictionaryArray.from_arrays(pa.array([1, None, 0], kind), pa.array(["a", "b"]))
        features = Features([Category("c")])
        assert dense(features.fit_transform(pa.table({"c": values}))) == [[1, 0], [0, 0], [0, 1]]


def test_whole_numbers_are_the_same_category_whatever_they_stand_among():
    features = Features([Category("d")]).fit([{"d": 1.0}, {"d": 2.0}])
    assert dense(features.transform([{"d": 1.0}, {"d": "x"}, {"d": 2}, {"d": np.float32(2)}])) == [
        [1, 0], [0, 0], [0, 1], [0, 1]
    ]  # fmt: skip


def test_missing_values():
    rows = {"n": [1.0, None, 3.0], "c": ["a", None, "b"]}
    plain = dict(scale="none")
    cases = {
        "absent": [[1, 1, 0], [0, 0, 0], [3, 0, 1]],
        "zero": [[1, 1, 0], [0, 0, 0], [3, 0, 1]],
        "indicator": [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [3, 0, 0, 0, 1]],
    }
    for missing, expected in cases.items():
        features = Features([Number("n", **plain, missing=missing), Category("c", missing=missing)])
        assert dense(features.fit_transform(rows)) == expected
    assert list(features.get_feature_names_out()) == ["n", "c=a", "n=missing", "c=missing", "c=b"]
    zeroed = Features([Number("n", missing="zero")]).fit(rows)._map.extraction.scales[0]
    np.testing.assert_allclose(zeroed[:2], [3, 4 / 3])
    for extractor in (Number("n", missing="error"), Category("c", missing="error"), Text("c", missing="error")):
        with pytest.raises(ValueError, match=r"column '[nc]', row 1: the value is missing"):
            Features([extractor]).fit(rows)
    text = Features([Text("c", missing="indicator")]).fit(rows)
    assert list(text.get_feature_names_out()) == ["c:a", "c=missing", "c:b"]


def test_categories_of_any_plain_type():
    rows = {"i": [3, 4], "f": [1.0, 2.5], "b": [True, False], "s": ["é ", ""]}
    names = Features([Category(name) for name in rows]).fit(rows).get_feature_names_out()
    assert sorted(names) == sorted(["i=3", "f=1", "b=True", "s=é ", "i=4", "f=2.5", "b=False", "s="])


@pytest.mark.parametrize("words", [["True", "False"], ["true", "false"], ["TRUE", "FALSE"]])
def test_booleans_are_the_words_they_stand_for(words):
    features = Features([Category("b"), Category("other")]).fit({"b": words, "other": ["x", "true"]})
    expected = dense(features.transform({"b": words, "other": ["True", None]}))
    assert expected == [[1, 0, 0, 1], [0, 0, 1, 0]]
    for rows in ([True, False], *(["True", "False"], ["true", "false"], ["TRUE", "FALSE"])):
        assert dense(features.transform({"b": rows, "other": ["true", None]})) == expected
    features.partial_fit({"b": [True, False, None], "other": ["x"] * 3})
    assert len(features.get_feature_names_out()) == 4
    features.partial_fit({"b": ["tRUE"], "other": ["True"]})  # words are learned as they are
    assert {"b=tRUE", "other=True", "other=true"} <= set(features.get_feature_names_out())


def test_true_and_false_are_numbers_where_numbers_are_wanted():
    features = Features([Number("b", scale="none")]).fit({"b": [True, False]})
    assert dense(features.transform({"b": ["True", "false", None, " 3 "]})) == [[1], [0], [0], [3]]
    with pytest.raises(ValueError, match=r"column 'b', row 2: 'yes' is not a number"):
        features.transform({"b": ["True", None, "yes", "no"]})


@pytest.mark.parametrize("scale", ["standard", "max-abs", "log1p", "none"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_beyond_measure_are_as_large_as_can_be(scale, dtype):
    parts = [Number(name, scale=scale) for name in "abc"]
    features = Features([*parts, Interaction("a", "b"), Interaction("a", "b", "c")], dtype=dtype)
    table = {"a": [1e300, -1e300, 1.0, 1.7e308], "b": [1.7e308, 2.0, 3.0, 1e300], "c": [0.0, 1.0, 2.0, 0.0]}
    learned = features.learn_transform(table, ordered=False)
    assert np.isfinite(learned.data).all() and np.isfinite(features._map.extraction.scales).all()
    np.testing.assert_array_equal(learned.toarray(), features.transform(table).toarray())
    small = Features([Number("a", scale="none")], dtype=dtype).fit({"a": [1.0, 2.0]})
    most = min(1e300, float(np.finfo(dtype).max))
    np.testing.assert_array_equal(small.transform({"a": [1e300, -1e300]}).toarray(), [[most], [-most]])


def test_equal_names_that_add_up_to_too_much():
    rows = rows_of_names([[("a", 3e38), ("a", 3e38), ("b", 1e300), ("b", -1e300)]])
    most = np.finfo(np.float32).max
    assert Features().learn_transform(rows, ordered=False).toarray()[0, 0] == most
    assert Features().fit_transform(rows).toarray()[0, 0] == most


def test_whole_numbers_beyond_64_bits():
    values = [2**63, 2**64 + 1, None, 3]
    given = [[{"a": v} for v in values], {"a": values}, pd.DataFrame({"a": pd.Series(values, dtype=object)})]
    for rows in given:
        numbers = Features([Number("a", scale="none")], dtype="float64")
        assert dense(numbers.fit_transform(rows)) == [[2.0**63], [2.0**64], [0.0], [3.0]]
        words = Features([Category("a")]).fit(rows)
        assert list(words.get_feature_names_out()) == [f"a={v}" for v in values if v is not None]
        assert Features().fit(rows).roles_["a"].role == "numeric"


def test_categories_of_texts_and_numbers():
    values = [2.0, 1e5, "x", None]
    plain = pd.DataFrame({"c": pd.Series(values, dtype=object), "d": pd.Categorical(["b", "a", None, "b"]), "n": 0.5})
    coded = plain.assign(c=pd.Categorical(values))
    features = Features([Category("c"), Category("d")]).fit(plain)
    assert {*features.get_feature_names_out()} == {"c=2", "c=100000", "c=x", "d=b", "d=a"}
    assert dense(features.transform(coded)) == dense(features.transform(plain))
    assert Features().fit(coded).roles_["c"].role == Features().fit(plain).roles_["c"].role
