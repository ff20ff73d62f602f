"""The transformer as a whole: tables of all makes, learning in chunks, scaling, the model file, errors."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import onlearn
from onlearn.features import Category, Features, Interaction, Number, Text
from onlearn.features import extraction as walking
from onlearn.features.assemble import rows_of_names
from onlearn.model_file import save

ROWS = [
    {"age": 31, "colour": "red", "review": "A fine film, a fine evening"},
    {"age": None, "colour": "blue", "review": "not worth it"},
    {"age": 54, "colour": None, "review": None},
    {"age": 20, "colour": "red", "review": "Été à Paris"},
]
ALL = [Number("age"), Category("colour"), Text("review"), Interaction("age", "colour")]


def dense(X):
    return X.toarray().tolist()


def test_tables_of_all_makes_give_the_same():
    expected = Features(ALL).fit(ROWS)
    tables = [
        pa.Table.from_pylist(ROWS),
        pa.RecordBatch.from_pylist(ROWS),
        pd.DataFrame(ROWS),
        pd.DataFrame(ROWS, index=list("wxyz")).astype({"colour": "category"}),
        pl.DataFrame(ROWS),
        {name: [row[name] for row in ROWS] for name in ROWS[0]},
    ]
    for table in tables:
        features = Features(ALL).fit(table)
        assert list(features.get_feature_names_out()) == list(expected.get_feature_names_out())
        assert dense(features.transform(table)) == dense(expected.transform(ROWS))


def test_lists_of_texts_of_all_makes_give_the_same():
    texts = ["a b", None, "b"]
    for rows in [texts, np.array(texts, object), pd.Series(texts), pl.Series(texts), pa.array(texts), tuple(texts)]:
        features = Features()
        X = features.fit_transform(rows)
        assert list(features.get_feature_names_out()) == ["a", "a b", "b"]
        assert X.dtype == np.float32 and X.shape == (3, 3) and X[1].nnz == 0
        assert features.roles_["text"].role == "text"


def test_names_say_where_a_feature_is_from():
    names = Features(ALL).fit(ROWS).get_feature_names_out()
    assert list(names[:8]) == [
        "age", "colour=red", "review:a", "review:a fine", "review:fine", "review:fine film", "review:film",
        "review:film a",
    ]  # fmt: skip
    assert "age*colour=red" in names


def test_a_column_by_itself():
    for numbers in (pd.Series([1.5, 2.5], name="age"), pl.Series("age", [1.5, 2.5])):
        assert list(Features().fit(numbers).get_feature_names_out()) == ["age"]
    frame = pd.DataFrame({"name": ["ann lee", "bo"], "size": [1, 2]})
    names = list(Features([Text("name", ngrams=(1, 1))]).fit(frame["name"]).get_feature_names_out())
    assert names == ["name:ann", "name:lee", "name:bo"]
    for learned, asked in itertools.product([frame["name"], list(frame["name"])], repeat=2):
        assert Features().fit(learned).transform(asked).shape == (2, 4)
    features = Features().fit(frame)
    assert features.n_features_in_ == 2 and list(features.feature_names_in_) == ["name", "size"]
    again = Features._restore(*features._pack())
    assert list(again.feature_names_in_) == ["name", "size"]
    assert not hasattr(features.fit(list(frame["name"])), "n_features_in_")


def test_named_rows_and_matrices_go_through():
    rows = rows_of_names([["a", "b"], ["b", ("c", 2.0)]], "n^")
    features = Features()
    assert dense(features.fit_transform(rows)) == [[1, 1, 0], [0, 1, 2]]
    assert list(features.get_feature_names_out()) == ["n^a", "n^b", "n^c"]
    assert dense(features.transform(rows_of_names([["z", "c"]], "n^"))) == [[0, 0, 1]]
    X = sp.csr_matrix(np.arange(6.0).reshape(2, 3))
    features = Features().partial_fit(X[:, :2]).partial_fit(X)
    assert dense(features.transform(X)) == dense(X) and list(features.get_feature_names_out()) == ["0", "1", "2"]
    assert features.transform(X[:, :1]).shape == (2, 3)
    assert features.transform(sp.csr_matrix((2, 9))).shape == (2, 3)
    assert dense(Features().fit_transform(X.toarray())) == dense(X)
    with pytest.raises(ValueError, match="X has 2 columns, but 3 were learned from"):
        features.transform(X.toarray()[:, :2])


def table_of(n, seed=0):
    rng = np.random.default_rng(seed)
    words = np.array([f"w{k}" for k in range(60)] + ["É", "naïve"])
    return pa.table(
        {
            "x": rng.standard_normal(n) * 7 + 3,
            "k": pa.array([None if v == 0 else int(v) for v in rng.integers(5, size=n)]),
            "c": rng.choice(["red", "blue", "green"], n).tolist(),
            "t": [" ".join(rng.choice(words, rng.integers(0, 9))) for _ in range(n)],
        }
    )


EVERYTHING = [
    Number("x"), Number("k", scale="max-abs", missing="indicator"), Category("c"),
    Text("t", ngrams=(1, 2), chars=(3, 3), weighting="tfidf"), Interaction("c", "k"), Interaction("t", "c"),
]  # fmt: skip


@given(st.lists(st.integers(0, 120), max_size=4), st.sampled_from([1 << 22, 50]))
def test_in_chunks_is_as_in_one_go(cuts, max_names):
    table = table_of(120)
    whole = Features(EVERYTHING, max_names=max_names, bits=8).fit(table)
    part = Features(EVERYTHING, max_names=max_names, bits=8)
    edges = [0, *sorted(cuts), 120]
    for a, b in itertools.pairwise(edges):
        part.partial_fit(table.slice(a, b - a))
    same_state(whole, part)
    np.testing.assert_array_equal(whole.transform(table).toarray(), part.transform(table).toarray())


def same_state(one, other):
    (facts, arrays), (other_facts, other_arrays) = one._pack(), other._pack()
    assert facts == other_facts and arrays.keys() == other_arrays.keys()
    for key in arrays:
        np.testing.assert_array_equal(arrays[key], other_arrays[key])


def test_many_blocks_are_as_one(monkeypatch):
    table = table_of(500)
    one = Features(EVERYTHING)
    X = one.fit_transform(table)
    monkeypatch.setattr(walking, "BLOCK", 400)
    many = Features(EVERYTHING)
    Y = many.fit_transform(table)
    same_state(one, many)
    np.testing.assert_array_equal(X.toarray(), Y.toarray())
    np.testing.assert_array_equal(X.toarray(), many.transform(table).toarray())
    X.check_format()
    assert X.has_canonical_format and X.indices.dtype == np.int32


def test_learning_and_transforming_in_one_walk_sees_the_rows_themselves():
    table = table_of(200)
    features, apart = Features(EVERYTHING), Features(EVERYTHING)
    for a in range(0, 200, 50):
        batch = table.slice(a, 50)
        X = features.learn_transform(batch)
        np.testing.assert_array_equal(X.toarray(), apart.partial_fit(batch).transform(batch).toarray())


@pytest.mark.parametrize("scale", ["standard", "max-abs"])
def test_scales_are_scikit_learns(scale):
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    x = table_of(300)["x"].to_numpy()
    features = Features([Number("x", scale=scale)], dtype="float64")
    for a in range(0, 300, 70):
        features.partial_fit({"x": x[a : a + 70]})
    peer = {"standard": StandardScaler(), "max-abs": MaxAbsScaler()}[scale].fit(x[:, None])
    np.testing.assert_allclose(
        features.transform({"x": x}).toarray(), peer.transform(x[:, None]), rtol=1e-12, atol=1e-13
    )


def test_scales_by_formula_and_of_constants():
    x = np.array([-3.0, 0.0, 8.0])
    assert dense(Features([Number("x", scale="none")]).fit_transform({"x": x})) == [[-3], [0], [8]]
    logs = Features([Number("x", scale="log1p")], dtype="float64").fit_transform({"x": x})
    np.testing.assert_allclose(logs.toarray()[:, 0], np.sign(x) * np.log1p(np.abs(x)))
    assert dense(Features([Number("x")]).fit_transform({"x": [5.0, 5.0]})) == [[0], [0]]
    assert Features([Number("x")]).fit({"x": [1.0, None, 3.0]}).transform({"x": [2.0, 1.0]}).toarray().tolist() == [
        [0],
        [-1],
    ]


def packed(features):
    facts, arrays = features._pack()
    return Features._restore(json.loads(json.dumps(facts)), arrays)


@pytest.mark.parametrize("max_names", [1 << 22, 50])
def test_packed_and_unpacked_it_goes_on_identically(max_names):
    table = table_of(200)
    whole = Features(EVERYTHING, max_names=max_names, bits=8).partial_fit(table.slice(0, 90))
    back = packed(whole)
    same_state(whole, back)
    assert back.get_params() == whole.get_params()
    for features in (whole, back):
        features.partial_fit(table.slice(90))
    same_state(whole, back)
    np.testing.assert_array_equal(whole.transform(table).toarray(), back.transform(table).toarray())


def test_saved_and_loaded(tmp_path):
    for rows in (ROWS, ["a b", "c"], sp.csr_matrix(np.eye(2)), rows_of_names([["a"]])):
        features = Features().fit(rows)
        save(features, tmp_path / "f.onl")
        back = onlearn.load(tmp_path / "f.onl")
        same_state(features, back)
        assert back.extractors == "auto"
        np.testing.assert_array_equal(back.transform(rows).toarray(), features.transform(rows).toarray())


def test_damage_is_found():
    facts, arrays = Features(EVERYTHING).fit(table_of(20))._pack()
    with pytest.raises(ValueError, match="scales"):
        Features._restore(facts, {**arrays, "scales": arrays["scales"][1:]})
    with pytest.raises(ValueError, match="document counts"):
        Features._restore(facts, {**arrays, "documents": arrays["documents"].astype(float)})
    with pytest.raises(ValueError, match="vocabulary"):
        Features._restore(facts, {**arrays, "vocabulary.hashes": arrays["vocabulary.hashes"][1:]})
    with pytest.raises(ValueError, match=r"'spell' for features\.extractors\.0\.kind"):
        Features._restore({**facts, "extractors": [{"kind": "spell"}]}, arrays)


def test_functions_of_ones_own(tmp_path):
    @onlearn.feature
    def shape(row):
        yield "long" if len(row["review"] or "") > 12 else "short"
        yield "length", len(row["review"] or "")

    @onlearn.feature
    def nothing(row):
        return None

    assert clone(Features([shape])).extractors == [shape]

    features = Features([shape, nothing, Category("colour"), Interaction("shape", "colour")])
    X = features.fit_transform(ROWS)
    names = list(features.get_feature_names_out())
    assert names[:2] == ["shape:long", "shape:length"] and "shape:long*colour=red" in names
    assert X[0, names.index("shape:length")] == 27
    save(features, tmp_path / "f.onl")
    back = onlearn.load(tmp_path / "f.onl")
    np.testing.assert_array_equal(back.transform(ROWS).toarray(), X.toarray())
    from onlearn.features.extractors import FUNCTIONS

    del FUNCTIONS["shape"]
    with pytest.raises(ValueError, match="function 'shape', which a model file does not hold: define it"):
        onlearn.load(tmp_path / "f.onl")

    @onlearn.feature
    def by_name(row):
        return {"a": 2.5, "b": len(row)}

    made = Features([by_name], dtype="float64")
    assert made.fit_transform([{"x": "y"}]).toarray().tolist() == [[2.5, 1]]
    assert list(made.get_feature_names_out()) == ["by_name:a", "by_name:b"]
    with pytest.raises(TypeError, match="takes a function that has a name, not 3"):
        onlearn.feature(3)

    @onlearn.feature
    def wrong(row):
        return 7

    with pytest.raises(TypeError, match=r"wrong must yield names or \(name, value\) pairs, but row 0 gave 7"):
        Features([wrong]).fit(ROWS)

    @onlearn.feature
    def infinite(row):
        yield "x", float("nan")

    with pytest.raises(ValueError, match="infinite gave 'x' the value nan in row 0"):
        Features([infinite]).fit(ROWS)


@onlearn.feature
def first_letter(row):
    """Where pickle finds it."""
    return row["colour"][:1] if row["colour"] else None


def test_a_function_is_pickled_by_its_name():
    features = Features([first_letter]).fit(ROWS)
    assert list(features.get_feature_names_out()) == ["first_letter:r", "first_letter:b"]
    if sys.modules.get(first_letter.__module__) is not None:
        back = pickle.loads(pickle.dumps(features))
        assert back.extractors[0] is first_letter
        assert dense(back.transform(ROWS)) == dense(features.transform(ROWS))


def test_in_a_pipeline():
    texts = ["good film", "fine film", "bad film", "awful film"] * 5
    model = make_pipeline(Features(), onlearn.LogisticRegression(random_state=0)).fit(texts, ["+", "+", "-", "-"] * 5)
    assert list(model.predict(["good", "awful"])) == ["+", "-"]
    again = clone(model)
    assert again.steps[0][1].get_params() == model.steps[0][1].get_params()
    assert clone(Features(ALL)).extractors == ALL


def test_errors_say_what_to_do():
    with pytest.raises(NotFittedError, match="call fit"):
        Features().transform(ROWS)
    with pytest.raises(ValueError, match="no column 'reveiw': did you mean 'review'"):
        Features([Text("reveiw")]).fit(ROWS)
    with pytest.raises(ValueError, match="no column 'zzz': there are 'age'"):
        Features([Number("zzz")]).fit(ROWS)
    with pytest.raises(ValueError, match="column 'colour', row 0: 'red' is not a number"):
        Features([Number("colour")]).fit(ROWS)
    with pytest.raises(ValueError, match="column 'x', row 1: inf is not a finite number"):
        Features([Number("x")]).fit({"x": [1.0, np.inf]})
    with pytest.raises(TypeError, match=r"column 'x' holds list<.*>, which cannot be categories"):
        Features([Category("x")]).fit({"x": [[1], [2]]})
    with pytest.raises(ValueError, match="scale must be 'standard'"):
        Number("x", scale="robust")
    with pytest.raises(TypeError, match="not one text: put it in a list"):
        Features().fit("a text")
    with pytest.raises(TypeError, match="put the dict of a row in a list"):
        Features().fit({"age": 31.5, "colour": "red"})
    with pytest.raises(TypeError, match=r"collect\(\)"):
        Features().fit(pl.LazyFrame(ROWS))
    with pytest.raises(ValueError, match="column 'text', row 1: the text has half a character"):
        Features().fit(["a", "\ud800"])
    with pytest.raises(TypeError, match="row 0: 1j is complex"):
        Features().fit([{"x": 1j}])
    with pytest.raises(TypeError, match="neither numbers nor text"):
        Features().fit(pd.DataFrame({"x": [1j]}))
    with pytest.raises(ValueError, match="there are no rows"):
        Features().fit([])
    with pytest.raises(TypeError, match="row 1 is a int"):
        Features().fit(["a", 1])
    with pytest.raises(TypeError, match="learned from a table, but X is a matrix"):
        Features().fit(ROWS).transform(sp.csr_matrix((1, 1)))
    with pytest.raises(TypeError, match=r"decorate it by @onlearn\.feature"):
        Features([len]).fit(ROWS)
    with pytest.raises(ValueError, match="is about 'size', but there are only features of 'age'"):
        Features([Number("age"), Interaction("age", "size")]).fit(ROWS)
    with pytest.raises(ValueError, match="no column to take features from"):
        Features([Interaction()]).fit(ROWS)
    with pytest.raises(ValueError, match="dtype must be"):
        Features(dtype="int32").fit(ROWS)
    with pytest.raises(ValueError, match="a matrix is taken as it is"):
        Features(ALL).fit(sp.csr_matrix((1, 1)))


def test_a_call_that_fails_changes_nothing():
    features = Features([Number("age"), Category("colour")]).fit(ROWS)
    before = packed(features)
    with pytest.raises(ValueError, match="not a number"):
        features.partial_fit([{"age": "old", "colour": "green"}])
    same_state(features, before)
    fresh = Features([Number("age")])
    with pytest.raises(ValueError, match="no column"):
        fresh.fit([{"colour": "red"}])
    with pytest.raises(NotFittedError):
        fresh.transform(ROWS)


def test_what_learning_began_with_cannot_change(tmp_path):
    features = Features([Number("n")]).fit([{"n": 1}])
    save(features, tmp_path / "f.onl")
    for one in (features, onlearn.load(tmp_path / "f.onl")):
        for name, value in (("bits", 4), ("dtype", "float64"), ("extractors", [Number("n", scale="none")])):
            before = getattr(one, name)
            with pytest.raises(ValueError, match=f"{name} was .* when learning began"):
                one.set_params(**{name: value}).partial_fit([{"n": 2}])
            one.set_params(**{name: before})
        one.set_params(extractors=Number("n"), dtype=np.float32).learn_transform([{"n": 2}])  # the same by other words
        assert one.set_params(bits=4).fit([{"n": 2}]).n_seen_ == 1


def test_no_rows():
    features = Features([Number("x"), Text("t")]).fit({"x": pa.array([], pa.float64()), "t": pa.array([], pa.string())})
    assert features.transform({"x": [1.0], "t": ["a"]}).shape == (1, 0)
    X = features.learn_transform({"x": [1.0, 2.0], "t": ["a", "b"]})
    assert X.shape == (2, 3)
    assert features.transform({"x": pa.array([], pa.float64()), "t": pa.array([], pa.string())}).shape == (0, 3)


INTERPRETED = """
import json, sys
sys.path.insert(0, sys.argv[1])
from test_features import EVERYTHING, table_of
from onlearn.features import Features
features = Features(EVERYTHING, max_names=60, bits=6, dtype="float64")
X = features.fit_transform(table_of(12))
print(json.dumps([X.toarray().tolist(), list(features.get_feature_names_out())]))
"""


def test_interpreted_is_as_compiled():
    features = Features(EVERYTHING, max_names=60, bits=6, dtype="float64")
    X = features.fit_transform(table_of(12))
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "ignore", "-c", INTERPRETED, str(Path(__file__).parent)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    values, names = json.loads(done.stdout)
    np.testing.assert_allclose(values, X.toarray(), rtol=1e-14)
    assert names == list(features.get_feature_names_out())


def test_after_compiling_ahead_nothing_is_left_to_compile():
    from onlearn.compiler.object_code import made
    from onlearn.warm import compile_features

    assert "interactions" in list(compile_features())
    before = len(made)
    for dtype in ("float32", "float64"):
        for rows in (table_of(20), ["a b", "c"], rows_of_names([["q"]]), pd.DataFrame(ROWS)):
            extractors = EVERYTHING if isinstance(rows, pa.Table) else "auto"
            features = Features(extractors, dtype=dtype, max_names=9, bits=4)
            features.fit_transform(rows)
            features.transform(rows)
    assert made[before:] == []
