"""k nearest neighbours: votes, k by cross-validation, streams, categories, files; against plain Python."""

from __future__ import annotations

import pickle
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import onlearn
from onlearn import KNNClassifier, KNNRegressor
from onlearn.model_file import ModelFileError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4)) * [1, 10, 0.1, 5] + [0, 100, 0, -3]
CENTRES = (X - X.mean(0)) / X.std(0)
Y = np.array(["a", "b", "c"])[(CENTRES[:, 0] > 0).astype(int) + (CENTRES[:, 1] > 0.5)]
Z = np.sin(CENTRES[:, 0]) + CENTRES[:, 1]
NEW = RNG.normal(size=(30, 4)) * [1, 10, 0.1, 5] + [0, 100, 0, -3]

DUPLICATES = "a weight of 2 is a vote of 2: of two equal rows each would be a neighbour, in the place of another row"


@pytest.mark.parametrize("cls", [KNNClassifier, KNNRegressor])
def test_check_estimator_passes(cls):
    expected = {
        "check_sample_weight_equivalence_on_dense_data": DUPLICATES,
        "check_sample_weight_equivalence_on_sparse_data": DUPLICATES,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(cls(), expected_failed_checks=expected)
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(expected)


# ---------------------------------------------------------------------------------------------------- votes


def votes(distances, labels, weights, how, classes):
    """The shares of the votes, in plain Python."""
    made = np.zeros(classes)
    for d, label, weight in zip(distances, labels, weights, strict=True):
        share = 1.0
        if how == "distance":
            share = float(d == 0) if min(distances) == 0 else min(distances) / d
        made[label] += weight * share
    return made / made.sum()


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from(["uniform", "distance"]), st.booleans())
def test_votes_are_those_of_the_neighbours(seed, k, how, weighted):
    rng = np.random.default_rng(seed)
    X, y, new = rng.integers(0, 4, (25, 2)), rng.integers(0, 3, 25), rng.integers(0, 4, (9, 2))
    y[:3] = range(3)
    weight = rng.integers(1, 4, 25) if weighted else None
    model = KNNClassifier(k, how).fit(X, y, weight)
    distances, numbers = model.kneighbors(new)
    given_weight = np.ones(25) if weight is None else weight
    wanted = [votes(d, y[n], given_weight[n], how, 3) for d, n in zip(distances, numbers, strict=True)]
    np.testing.assert_allclose(model.predict_proba(new), wanted, atol=1e-12)
    np.testing.assert_array_equal(model.predict(new), np.argmax(model.predict_proba(new), axis=1))
    targets = rng.normal(size=25)
    regression = KNNRegressor(k, how).fit(X, targets, weight)
    shares = [votes(d, range(k), given_weight[n], how, k) for d, n in zip(distances, numbers, strict=True)]
    np.testing.assert_allclose(
        regression.predict(new), [s @ targets[n] for s, n in zip(shares, numbers, strict=True)], atol=1e-12
    )


@pytest.mark.parametrize("how", ["uniform", "distance"])
def test_as_scikit_learn_has_it(how):
    scaled = make_pipeline(StandardScaler(), KNeighborsClassifier(7, weights=how, algorithm="brute")).fit(X, Y)
    model = KNNClassifier(7, how).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(NEW), scaled.predict_proba(NEW), atol=1e-9)
    peer = KNeighborsRegressor(7, weights=how, metric="manhattan").fit(X, Z)
    mine = KNNRegressor(7, how, "manhattan", scale=False).fit(X, Z)
    np.testing.assert_allclose(mine.predict(NEW), peer.predict(NEW), atol=1e-9)
    peer = KNeighborsClassifier(7, weights=how, metric="cosine").fit(X, Y)
    mine = KNNClassifier(7, how, "cosine", scale=False).fit(X, Y)
    np.testing.assert_allclose(mine.predict_proba(NEW), peer.predict_proba(NEW), atol=1e-6)


def test_ties():
    X = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    model = KNNClassifier(2, scale=False).fit(X, ["b", "a", "a", "b"])
    assert model.kneighbors([[0.0]], 3)[1].tolist() == [[0, 1, 2]]  # in the order in which they came
    assert model.predict([[0.0]]).tolist() == ["a"]  # one vote each: the first class
    assert KNNClassifier(1, scale=False).fit(X, ["b", "a", "a", "b"]).predict([[0.0]]).tolist() == ["b"]


def test_neighbours_at_distance_0_outvote_all_others():
    model = KNNClassifier(3, "distance").fit([[0.0], [0.1], [0.1], [9.0]], [0, 1, 1, 1])
    assert model.predict_proba([[0.0]]).tolist() == [[1.0, 0.0]]


# -------------------------------------------------------------------------------------------- k by cross-validation


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from(["uniform", "distance"]), st.booleans())
def test_k_is_that_of_naive_cross_validation(seed, how, weighted):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (18, 2)).astype(float)
    y, z = np.r_[0, 1, 2, rng.integers(0, 3, 15)], rng.normal(size=18)
    weight = rng.integers(1, 4, 18).astype(float) if weighted else np.ones(18)
    for cls, target in ((KNNClassifier, y), (KNNRegressor, z)):
        model = cls("auto", how, k_max=9).fit(X, target, weight)
        deviations = np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 1)  # of all rows
        errors = []
        for k in range(1, 10):
            error = 0.0
            for i in range(18):
                others = [j for j in range(18) if j != i]
                d = np.sqrt((((X[others] - X[i]) / deviations) ** 2).sum(axis=1))
                near = np.argsort(np.round(d, 9), kind="stable")[:k]
                rows = np.array(others)[near]
                if cls is KNNClassifier:
                    shares = votes(d[near], y[rows], weight[rows], how, 3)
                    error += weight[i] * (np.argmax(np.round(shares, 9)) != y[i])
                else:
                    error += weight[i] * (votes(d[near], range(k), weight[rows], how, k) @ z[rows] - z[i]) ** 2
            errors.append(error / weight.sum())
        assert [k for k, _ in model.k_path_] == list(range(1, 10))
        np.testing.assert_allclose([error for _, error in model.k_path_], errors, atol=1e-9)
        assert model.k_ == int(np.argmin(np.round(errors, 12))) + 1


def test_k_auto_is_decided_anew_when_rows_come():
    model = KNNClassifier("auto").fit(X[:60], Y[:60])
    model.partial_fit(X[60:], Y[60:])
    whole = KNNClassifier("auto").fit(X, Y)
    assert model.k_path_ == whole.k_path_ and model.k_ == whole.k_
    with pytest.raises(AttributeError, match="k was given"):
        _ = KNNClassifier(3).fit(X, Y).k_path_


# ---------------------------------------------------------------------------------------------------- streams


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("options", [{}, {"metric": "manhattan"}, {"metric": "cosine"}, {"kernel": "gaussian(5)"}])
def test_partial_fit_is_fit(sparse, options):
    rows, new = (sp.csr_matrix(X), sp.csr_matrix(NEW)) if sparse else (X, NEW)
    whole = KNNClassifier(4, "distance", **options).fit(rows, Y)
    parts = KNNClassifier(4, "distance", **options)
    for start, stop in ((0, 1), (1, 2), (2, 40), (40, 120)):
        parts.partial_fit(rows[start:stop], Y[start:stop], classes=["a", "b", "c"])
    for a, b in zip(whole.kneighbors(new), parts.kneighbors(new), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(whole.predict_proba(new), parts.predict_proba(new))
    assert parts.n_seen_ == 120


def test_window_keeps_the_latest_rows():
    model = KNNClassifier(3, window=50)
    for n in range(120):
        model.partial_fit(X[n : n + 1], Y[n : n + 1], classes=["a", "b", "c"])
    latest = KNNClassifier(3).fit(X[70:], Y[70:])
    np.testing.assert_array_equal(model.predict_proba(NEW), latest.predict_proba(NEW))
    np.testing.assert_array_equal(model.kneighbors(NEW)[1], latest.kneighbors(NEW)[1] + 70)
    np.testing.assert_array_equal(KNNClassifier(3, window=50).fit(X, Y).predict_proba(NEW), latest.predict_proba(NEW))


def test_grow_takes_in_classes_and_features():
    model = KNNClassifier(1, grow=True, scale=False)
    model.partial_fit(np.array([[0.0], [1.0]]), ["a", "a"]).partial_fit(np.array([[0.0, 9.0]]), ["b"])
    assert model.predict([[0.0, 8.0], [0.2, 0.0]]).tolist() == ["b", "a"]
    model = KNNClassifier(1, grow=True).learn_one({"size": 1.0}, "small").learn_one({"size": 9.0, "red": True}, "big")
    assert model.predict_one({"size": 8.0}) == "big"


def test_rows_without_weight_are_no_neighbours():
    weight = np.arange(120) % 2
    model = KNNClassifier(3, scale=False).fit(X, Y, weight)
    assert (model.kneighbors(NEW)[1] % 2 == 1).all()  # numbers are those of the rows of X


def test_neighbours_of_the_rows_themselves():
    distances, numbers = KNNClassifier(3).fit(X, Y).kneighbors()
    assert not (numbers == np.arange(120)[:, None]).any() and (distances > 0).all()


# ---------------------------------------------------------------------------------------------------- rows


def test_few_rows():
    with pytest.warns(UserWarning, match="only 2 rows are kept: all of them vote"):
        model = KNNClassifier(5).fit([[0.0], [1.0]], [0, 1])
    assert model.predict_proba([[0.2]]).tolist() == [[0.5, 0.5]] and model.k_ == 2
    with pytest.raises(ValueError, match="k must be from 1 to 2, not 3"):
        model.kneighbors([[0.0]], 3)
    with pytest.warns(UserWarning, match="only 1 rows"):
        assert KNNRegressor().fit([[1.0]], [7.0]).predict([[3.0]]).tolist() == [7.0]
    assert KNNRegressor("auto").fit([[1.0]], [7.0]).k_ == 1


def test_constant_columns_and_units_do_not_matter():
    wide = np.column_stack([X, np.full(120, 3.7e9)])
    np.testing.assert_array_equal(
        KNNClassifier().fit(wide, Y).kneighbors(np.column_stack([NEW, np.full(30, 3.7e9)]))[1],
        KNNClassifier().fit(X, Y).kneighbors(NEW)[1],
    )
    units = np.array([1e-9, 1e9, 3.0, 1.0])
    np.testing.assert_array_equal(
        KNNClassifier().fit(X * units, Y).kneighbors(NEW * units)[1], KNNClassifier().fit(X, Y).kneighbors(NEW)[1]
    )
    unscaled = KNNClassifier(scale=False).fit(X, Y).kneighbors(NEW)[1]
    assert (unscaled != KNNClassifier().fit(X, Y).kneighbors(NEW)[1]).any()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_is_refused(value):
    bad = X.copy()
    bad[7, 2] = value
    with pytest.raises(ValueError, match="row 7, column 2"):
        KNNClassifier().fit(bad, Y)
    model = KNNClassifier().fit(X, Y)
    for use in (model.predict, model.kneighbors, lambda X: model.partial_fit(X, Y)):
        with pytest.raises(ValueError, match="row 7, column 2"):
            use(bad)
    with pytest.raises(ValueError, match="row 7"):
        KNNRegressor().fit(sp.csr_matrix(bad), Z)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be"),
        ({"k": "many"}, "k must be"),
        ({"metric": "euklid"}, "metric must be"),
        ({"weights": "near"}, "weights must be"),
        ({"window": 0}, "window must be"),
        ({"kernel": "linear", "metric": "cosine"}, "metric= or kernel=, not both"),
        ({"kernel": "precomputed"}, r"k\(x, x\) of new rows"),
        ({"metric": "cosine", "categorical": [0]}, "categories need metric"),
        ({"categorical": [9]}, "column 9, but there are 4 columns"),
        ({"categorical": ["colour"]}, "'colour', which there is not"),
        ({"column_weights": [1, 2]}, "2 numbers, but there are 4 columns"),
        ({"column_weights": [0, 0, 0, 0]}, "not all of them 0"),
        ({"column_weights": [1, 1, 1, -1]}, "at least 0"),
        ({"engine": "faiss", "metric": "hamming"}, "Euclidean and cosine"),
    ],
)
def test_parameters_that_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        KNNClassifier(**options).fit(X, Y)


def test_what_learning_depends_on_does_not_change():
    model = KNNClassifier().fit(X, Y).set_params(metric="cosine")
    with pytest.raises(ValueError, match="metric was 'mixed'"):
        model.partial_fit(X, Y)


def test_strings_and_trees():
    texts = ["abab", "baba", "cdcd", "dcdc"]
    model = KNNClassifier(1, kernel="normalize(substrings(1, 3))").fit(texts, ["ab", "ab", "cd", "cd"])
    assert model.predict(["ababab", "cdc"]).tolist() == ["ab", "cd"]
    model.partial_fit(["xyxy"], ["cd"])
    assert model.kneighbors(["xyx"], 1)[1].tolist() == [[4]]
    trees = [("S", ("A", "a"), ("B", "b")), ("S", ("A", "a"), ("B", "c")), ("T", ("C", "c")), ("T", ("C", "d"))]
    regression = KNNRegressor(2, kernel="normalize(trees)").fit(trees, [1.0, 2.0, 7.0, 8.0])
    assert regression.predict(["(S (A a) (B d))"]).tolist() == [1.5]


# ---------------------------------------------------------------------------------------------------- tables


def mixed_distances(A, B, numbers, words, deviations, weights):
    made = np.zeros((len(A[numbers[0]]), len(B[numbers[0]])))
    for name in numbers:
        gap = np.asarray(A[name], float)[:, None] - np.asarray(B[name], float)
        made += weights.get(name, 1) * (gap / deviations[name]) ** 2
    for name in words:
        made += weights.get(name, 1) * (np.asarray(A[name], object)[:, None] != np.asarray(B[name], object))
    return np.sqrt(made)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_tables_of_numbers_categories_and_booleans(kind):
    rng = np.random.default_rng(3)
    columns = {
        "size": rng.normal(5, 3, 60),
        "colour": rng.choice(["red", "green", "blue"], 60).astype(object),
        "ripe": rng.random(60) < 0.5,
        "shop": rng.integers(1, 4, 60),
    }
    table = pytest.importorskip(kind)
    make = table.table if kind == "pyarrow" else table.DataFrame
    model = KNNClassifier(5, categorical=["shop"], column_weights={"colour": 2.0})
    train, test = ({name: values[rows] for name, values in columns.items()} for rows in (slice(40), slice(40, 60)))
    model.fit(make(train), np.arange(40) % 2)
    deviations = {"size": train["size"].std(), "ripe": 1.0}
    wanted = mixed_distances(test, train, ["size", "ripe"], ["colour", "shop"], deviations, {"colour": 2.0})
    distances, numbers = model.kneighbors(make(test))
    np.testing.assert_allclose(distances, np.sort(wanted, axis=1)[:, :5], atol=1e-9)
    np.testing.assert_allclose(np.take_along_axis(wanted, numbers, 1), distances, atol=1e-9)
    assert list(model.feature_names_in_) == list(columns)
    unknown = {**{name: values[:1] for name, values in test.items()}, "colour": np.array(["pink"], object)}
    assert model.kneighbors(make(unknown), 1)[0][0, 0] >= np.sqrt(2.0)  # differs from all


def test_what_tables_cannot_be():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", None, "y"]})
    with pytest.raises(ValueError, match=r"no value in row 1, column 1 \('b'\)"):
        KNNClassifier(1).fit(table, [0, 1, 0])
    with pytest.raises(ValueError, match=r"could not convert|not numbers"):
        KNNClassifier(1, metric="cosine").fit(table.dropna(), [0, 1])
    model = KNNClassifier(1).fit(table.dropna(), [0, 1])
    with pytest.raises(ValueError, match="held numbers when learning began"):
        model.predict(pd.DataFrame({"a": ["u"], "b": ["x"]}))
    with pytest.raises(ValueError, match="column 0 is 'b'"):
        model.predict(table[["b", "a"]].dropna())


def test_hamming_counts_differing_columns():
    bits = RNG.integers(0, 2, (80, 100)).astype(bool)
    model = KNNClassifier(5, metric="hamming").fit(bits[:60], np.arange(60) % 2)
    distances, numbers = model.kneighbors(bits[60:])
    share = (bits[60:, None] != bits[:60]).mean(axis=2)
    order = np.argsort(share, axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(numbers, order)
    np.testing.assert_allclose(distances, np.take_along_axis(share, order, 1))


# ---------------------------------------------------------------------------------------------------- files


CASES = {
    "dense": (KNNClassifier(3), X, Y, NEW),
    "auto": (KNNClassifier("auto", "distance"), X, Y, NEW),
    "single": (KNNRegressor(3), X.astype(np.float32), Z, NEW.astype(np.float32)),
    "sparse": (KNNRegressor("auto", metric="cosine", window=70), sp.csr_matrix(X), Z, sp.csr_matrix(NEW)),
    "weights": (KNNClassifier(3, column_weights=[1, 2, 3, 4], categorical=[1]), np.round(X), Y, np.round(NEW)),
    "kernel": (KNNClassifier(3, kernel="gaussian(3)"), X, Y, NEW),
    "texts": (KNNClassifier(1, kernel="substrings(2)"), ["ab", "ba", "abc", "aab"], list("aabb"), ["aba", "bc"]),
}


@pytest.mark.parametrize("case", CASES)
def test_files_and_pickles(tmp_path, case):
    model, rows, target, new = CASES[case]
    model = clone(model).fit(rows, target)
    model.save(tmp_path / "m.onl")
    for other in (onlearn.load(tmp_path / "m.onl"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(new), model.predict(new))
        np.testing.assert_array_equal(other.kneighbors(new, 1), model.kneighbors(new, 1))
        if model.k == "auto":
            assert other.k_path_ == model.k_path_
        before = clone(model).fit(rows, target).partial_fit(rows, target)
        np.testing.assert_array_equal(other.partial_fit(rows, target).predict(new), before.predict(new))


def test_damaged_files(tmp_path):
    import json

    from safetensors import safe_open
    from safetensors.numpy import save_file

    path = tmp_path / "m.onl"
    KNNClassifier("auto").fit(X, Y).save(path)
    with safe_open(path, "numpy") as file:
        arrays, told = {key: file.get_tensor(key) for key in file.keys()}, file.metadata()  # noqa: SIM118
    header = json.loads(told["onlearn"])

    def damaged(arrays, header):
        save_file(arrays, path, {"onlearn": json.dumps(header)})
        with pytest.raises((ModelFileError, ValueError)):
            onlearn.load(path)

    for key, array in arrays.items():
        if key.startswith("training.") and array.size:
            damaged({**arrays, key: array[:-1]}, header)
            damaged({name: one for name, one in arrays.items() if name != key}, header)
    damaged({**arrays, "training.targets": arrays["training.targets"] + 3}, header)
    damaged({**arrays, "training.numbers": arrays["training.numbers"][::-1].copy()}, header)
    damaged({**arrays, "training.weights": -arrays["training.weights"]}, header)
    for facts in ({"categories": [99]}, {"column_weights": [1]}, {"categories": None}, {"kernel": {}}):
        damaged(arrays, {**header, "neighbors": {**header["neighbors"], **facts}})
    damaged(arrays, {**header, "training": {**header["training"], "met": 3}})
    damaged(arrays, {**header, "training": {**header["training"], "rows": {"kind": "strings"}}})


# ---------------------------------------------------------------------------------------------------- FAISS


def test_faiss_finds_the_same(monkeypatch):
    pytest.importorskip("faiss")
    for options in ({}, {"metric": "cosine"}, {"scale": False}):
        fast, exact = (KNNClassifier(4, engine=engine, **options).fit(X, Y) for engine in ("faiss", "exact"))
        for a, b in zip(fast.kneighbors(NEW), exact.kneighbors(NEW), strict=True):
            np.testing.assert_array_equal(a, b)
        assert fast.engine_ == "faiss, all rows compared" and exact.engine_ == "exact"
    monkeypatch.setattr("onlearn.neighbors.faiss_index.FLAT", 50)
    some = KNNClassifier(4, engine="faiss").fit(X, Y)
    assert some.engine_ == "faiss, approximate"
    exact = KNNClassifier(4).fit(X, Y)
    found = [len(set(a) & set(b)) for a, b in zip(some.kneighbors(NEW)[1], exact.kneighbors(NEW)[1], strict=True)]
    assert np.mean(found) > 3
    with pytest.raises(ValueError, match="dense rows"):
        KNNClassifier(engine="faiss").fit(sp.random(30, 90, 0.05, random_state=0), np.arange(30) % 2)


def test_faiss_may_be_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr("onlearn.neighbors.faiss_index.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install onlearn\[faiss\]"):
        KNNClassifier(engine="faiss").fit(X, Y)
    assert KNNClassifier(engine="auto").fit(X, Y).engine_ == "exact"


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_means_of_huge_targets_are_numbers(weights):
    huge = np.where(Z > 0, 1.7e308, -1.7e308)
    made = KNNRegressor(k=4, weights=weights).fit(X, huge).predict(NEW)
    wanted = KNNRegressor(k=4, weights=weights).fit(X, huge / 2**20).predict(NEW)
    np.testing.assert_allclose(made / 2**20, wanted, rtol=1e-12, atol=1e290)


@pytest.mark.parametrize("weights", [["a"] * 4, {0: "a"}, 3, "x", [[1], [2, 3]]])
def test_weights_that_are_no_numbers_are_refused(weights):
    with pytest.raises(ValueError, match="column_weights must be a list of one number a column"):
        KNNClassifier(column_weights=weights).fit(X, Y)


@pytest.mark.parametrize("columns", [3, {0: 1}])
def test_categories_that_are_no_columns_are_refused(columns):
    with pytest.raises(ValueError, match="categorical must be a list"):
        KNNClassifier(categorical=columns).fit(X, Y)
