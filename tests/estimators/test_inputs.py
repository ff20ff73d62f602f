"""What may be passed in, and what is said when it may not."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from onlearn import KernelClassifier, NormalizedWinnow, OnlineClassifier, OnlineRegressor, Winnow
from onlearn.features import Features

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(60, 5)), 2) * (RNG.random((60, 5)) < 0.7)
Y = (X @ [1, -2, 0.5, 0, 1] > 0).astype(int)


NAMED = dict(zip("abcde", X.T, strict=True))


def _with(y, value):
    """y with a value in row 2."""
    y[2] = value
    return y


def weights(data, y=Y, **settings):
    model = OnlineClassifier(random_state=0, **settings).fit(data, y)
    return np.append(model.coef_, model.intercept_)


def containers():
    names = [f"f{i}" for i in range(5)]
    yield "fortran", np.asfortranarray(X)
    yield "strided", np.repeat(X, 2, axis=1)[:, ::2]
    yield "list", X.tolist()
    for kind in ("csr", "csc", "coo"):
        yield f"{kind}_matrix", getattr(sp, f"{kind}_matrix")(X)
        yield f"{kind}_array", getattr(sp, f"{kind}_array")(X)
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    yield "csr int64", wide
    fixed = X.copy()
    fixed.flags.writeable = False
    yield "read-only", fixed
    yield "pandas", pd.DataFrame(X, columns=names)
    yield "polars", pl.DataFrame(X, schema=names)
    yield "arrow", pa.table({name: X[:, i] for i, name in enumerate(names)})


@pytest.mark.parametrize(("name", "data"), list(containers()), ids=lambda v: v if isinstance(v, str) else "")
def test_every_container_gives_the_same_model(name, data):
    np.testing.assert_allclose(weights(data), weights(X), rtol=1e-12)


def sparse_frame(X):
    return pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X))


def nullable_frame(X):
    return pd.DataFrame(X).astype("Float32")


@pytest.mark.parametrize(
    "make", [np.asarray, np.float16, sp.csr_matrix, pd.DataFrame, sparse_frame, nullable_frame, pl.DataFrame]
)
def test_float32_stays_float32(make):
    data = make(X.astype(np.float32))
    model = OnlineClassifier(random_state=0).fit(data, Y)
    assert model.coef_.dtype == model.intercept_.dtype == np.float32
    assert model.decision_function(data).dtype == np.float32


def test_columns_of_both_precisions_are_doubles():
    frame = pl.DataFrame(NAMED).with_columns(pl.col("a").cast(pl.Float32))
    assert OnlineClassifier().fit(frame, Y).coef_.dtype == np.float64


def test_columns_of_decimals_are_doubles():
    table = pa.table({"a": pa.array(Y).cast(pa.decimal128(21, 2)), "b": X[:, 0]})
    for data in (table, pl.from_arrow(table)):
        assert np.array_equal(weights(data), weights(np.column_stack([Y, X[:, 0]])))


def test_whole_numbers_beyond_the_signed_ones_are_labels():
    for gap in (1, 2**62):
        y = np.uint64(2**63) + Y.astype(np.uint64) * np.uint64(gap)
        model = OnlineClassifier(random_state=0).fit(X, y)
        assert model.classes_.tolist() == [2**63, 2**63 + gap] and set(model.predict(X)) == set(y)


@pytest.mark.parametrize(
    ("dtype", "kind"), [("Int64", "int64"), ("UInt8", "uint8"), ("boolean", "bool"), ("Float64", "float64"),
                        (pd.ArrowDtype(pa.int64()), "int64"), ("string", "object")]
)  # fmt: skip
def test_labels_that_might_be_missing_keep_their_type(dtype, kind):
    y = pd.Series(Y).map({0: "a", 1: "b"}) if dtype == "string" else pd.Series(Y)
    y = y.astype(dtype)
    for labels in (y, y.array, y.to_frame()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataConversionWarning)  # of a frame that is a column
            model = OnlineClassifier(random_state=0).fit(X, labels)
        assert model.classes_.dtype == kind and len(model.classes_) == 2
        assert model.score(X, y.to_numpy(kind)) > 0.5
    known = pd.Series(model.classes_).astype(dtype)
    assert OnlineClassifier(random_state=0).partial_fit(X, y, classes=known).classes_.dtype == kind


def test_duplicate_entries_of_a_sparse_row_are_summed_and_the_matrix_is_left_alone():
    doubled = sp.csr_matrix((np.array([1.0, 1.0, 3.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    plain = sp.csr_matrix(np.array([[2.0, 0.0], [0.0, 3.0]]))
    settings = dict(y=[0, 1], rule="pa1", shuffle=False)
    np.testing.assert_array_equal(weights(doubled, **settings), weights(plain, **settings))
    assert doubled.nnz == 3


def test_arrow_column_names_are_feature_names_and_text_columns_are_named():
    table = pa.table({"a": [1.0, 0.0], "b": [0, 1]})
    model = OnlineClassifier().fit(table, [0, 1])
    assert list(model.feature_names_in_) == ["a", "b"]
    with warnings.catch_warnings():  # scikit-learn's, that names are lacking
        warnings.simplefilter("error")
        model.partial_fit(table, [0, 1]).predict(table)
    with pytest.raises(ValueError, match="column 'c' holds string"):
        OnlineClassifier().fit(pa.table({"a": [1.0, 2.0], "c": ["x", "y"]}), [0, 1])


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table, pl.DataFrame])
@pytest.mark.parametrize("grow", [True, "features"])
def test_a_learner_that_grows_knows_its_columns_by_name(make, grow):
    def table(names):
        return make({name: X[:, ord(name) - ord("a")] for name in names})

    model = OnlineClassifier(grow=grow, random_state=0).partial_fit(table("ab"), Y, classes=[0, 1])
    before = model.coef_
    for names in ("cdab", "b", "bacd"):
        for call in (model.predict, lambda rows: model.partial_fit(rows, Y)):
            with pytest.raises(ValueError, match=f"column 0 is '{names[0]}', but was 'a'"):
                call(table(names))
    np.testing.assert_array_equal(model.coef_, before)
    with warnings.catch_warnings():  # scikit-learn's, that names are lacking
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.predict(table("abc")), model.predict(table("ab")))
        model.predict(table("a"))
        assert list(model.partial_fit(table("abcd"), Y).feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="5 columns without names, but the 4 known have names"):
        model.partial_fit(X[:, :5], Y)


def test_a_frame_that_holds_no_rows_yet_is_refused():
    lazy = pl.DataFrame(NAMED).lazy()
    for call in (lambda: OnlineClassifier().fit(lazy, Y), lambda: Features().fit(lazy)):
        with pytest.raises(TypeError, match=r"LazyFrame, which holds no rows yet: collect\(\) it first"):
            call()


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, np.asfortranarray])
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_nan_and_infinity_are_found_by_row_and_column(make, value, word):
    bad = X.copy()
    bad[17, 3] = value
    with pytest.raises(ValueError, match=f"{word} in row 17, column 3"):
        OnlineClassifier().fit(make(bad), Y)
    fitted = OnlineClassifier().fit(X, Y)
    for method in (fitted.predict, lambda data: fitted.partial_fit(data, Y)):
        with pytest.raises(ValueError, match=f"{word} in row 17, column 3"):
            method(make(bad))


def test_the_column_of_a_frame_is_named():
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.loc[2, "d"] = np.nan
    with pytest.raises(ValueError, match=r"row 2, column 3 \('d'\)"):
        OnlineClassifier().fit(frame, Y)


@pytest.mark.parametrize(
    "learner",
    [OnlineRegressor("epsilon", epochs=1), OnlineClassifier(calibration="holdout", epochs=1)],
    ids=["regressor", "held out"],
)
def test_fit_does_not_warn_of_its_own_rows(learner):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        learner.fit(pd.DataFrame(X, columns=list("abcde")), Y)


def test_sums_that_overflow_are_not_mistaken_for_infinity():
    large = X.copy()
    large[0, 0] = large[1, 0] = 1.7e308
    with pytest.warns(UserWarning, match="scale the features"):
        OnlineClassifier().fit(large, Y)


REFUSED = {
    "empty": (lambda: OnlineClassifier().fit(np.empty((0, 3)), []), "0 sample"),
    "no columns": (lambda: OnlineClassifier().fit(np.empty((3, 0)), [0, 1, 0]), "0 feature"),
    "one class": (lambda: OnlineClassifier().fit(X, np.ones(60)), "only one class"),
    "lengths": (lambda: OnlineClassifier().fit(X, Y[:10]), "60 rows but y has 10"),
    "no y": (lambda: OnlineClassifier().fit(X, None), "requires y"),
    "continuous y": (lambda: OnlineClassifier().fit(X, X[:, 0]), "Unknown label type"),
    "text": (lambda: OnlineClassifier().fit([["a", "b"]] * 2, [0, 1]), "could not convert"),
    "width": (lambda: OnlineClassifier().fit(X, Y).predict(X[:, :3]), "3 features"),
    "negative for Winnow": (lambda: Winnow().fit(X, Y), r"Negative values.*row \d+, column \d+"),
    "negative for Winnow, sparse": (lambda: Winnow().fit(sp.csr_matrix(X), Y), "Negative values"),
    "negative weight": (lambda: OnlineClassifier().fit(X, Y, -np.ones(60)), "must not be negative; row 0"),
    "all weights zero": (lambda: OnlineClassifier().fit(X, Y, np.zeros(60)), "every sample_weight is zero"),
    "heavy rows": (
        lambda: OnlineClassifier().fit(X, Y, np.full(60, 1e101)),
        r"is 1e\+101 in row 0, but must be at most",
    ),
    "heavy classes": (
        lambda: OnlineClassifier(class_weight={0: 1e60, 1: 1e60}).fit(X, Y, np.full(60, 1e60)),
        r"sample_weight times the weight of the class is 1e\+120 in row 0",
    ),
    "heavy balance": (
        lambda: OnlineClassifier(class_weight="balanced").partial_fit(X, Y, [0, 1], np.full(60, 1e308)),
        "must be at most",
    ),
    "weights far apart": (
        lambda: OnlineClassifier(class_weight="balanced").fit(X, Y, np.where(Y, 1e99, 1e-300)),
        "times the weight of the class is inf in row",
    ),
    "complex weights": (lambda: OnlineClassifier().fit(X, Y, np.ones(60) * 1j), "sample_weight must hold numbers"),
    "words as weights": (
        lambda: OnlineRegressor().fit(X, Y, ["a"] * 60),
        r"sample_weight must hold numbers, not \['a'\]",
    ),
    "a word for a class": (lambda: OnlineClassifier(class_weight={0: "a"}).fit(X, Y), "class_weight of 0 must hold"),
    "NaN for a class": (lambda: OnlineClassifier(class_weight={0: np.nan}).fit(X, Y), "class weights must be numbers"),
    "no class counts": (lambda: OnlineClassifier(class_weight={0: 0, 1: 0}).fit(X, Y), "not all 0"),
    "class_weight": (lambda: OnlineClassifier(class_weight="even").partial_fit(X, Y, [0, 1]), "dict of weights"),
    "NaN in a class of no weight": (
        lambda: OnlineClassifier(class_weight={0: 0.0}).fit(np.where(Y[:, None] == 0, np.nan, X), Y),
        "X contains NaN",
    ),
    "labels of two kinds": (lambda: OnlineClassifier().fit(X, np.array([1, "b"], dtype=object)[Y]), "both strings and"),
    "no label": (lambda: OnlineClassifier().fit(X, np.array([None, "b"], dtype=object)[Y]), "y holds None in row"),
    "pandas' NA": (
        lambda: OnlineClassifier().fit(X, pd.array(["a", None] * 30, dtype="string")),
        "y holds <NA> in row 1",
    ),
    "NA in numbers": (
        lambda: OnlineClassifier().fit(X, pd.Series([1, 2, None, 1] * 15, dtype="Int64")),
        "y holds <NA> in row 2, which is not a label: remove the row",
    ),
    "NaN in labels": (lambda: OnlineClassifier().fit(X, pa.array([1, None] * 30)), "y holds nan in row 1"),
    "NA in targets": (
        lambda: OnlineRegressor().fit(X, pd.Series([1, None] * 30, dtype="Int64")),
        "y holds <NA> in row 1, which is not a number",
    ),
    "an Arrow array": (lambda: OnlineClassifier().fit(pa.array([1.0, 2.0]), [0, 1]), "not a pyarrow DoubleArray"),
    "an empty Arrow table": (lambda: OnlineClassifier().fit(pa.table({}), []), "0 sample"),
    "shuffle": (lambda: OnlineClassifier(shuffle="no").fit(X, Y), "shuffle must be True or False"),
    "tol": (lambda: OnlineClassifier(tol=np.nan).fit(X, Y), "tol must be a number"),
    "true epochs": (lambda: OnlineClassifier(epochs=True).fit(X, Y), "epochs must be a whole number"),
    "other columns": (
        lambda: OnlineClassifier().fit(pa.table(NAMED), Y).predict(pa.table(dict(reversed(NAMED.items())))),
        "column 0 is 'e', but was 'a'",
    ),
    "unknown rule": (lambda: OnlineClassifier(rule="percepton").fit(X, Y), "did you mean 'perceptron'"),
    "rule of the wrong kind": (lambda: OnlineClassifier(rule=3).fit(X, Y), "rule must be a name"),
    "epochs": (lambda: OnlineClassifier(epochs=0).fit(X, Y), "epochs must be a whole number of at least 1"),
    "init": (lambda: OnlineClassifier(init="ones").fit(X, Y), "init must be"),
    "random Winnow": (lambda: Winnow(init="random").fit(abs(X), Y), "additive geometry"),
    "softmax": (lambda: OnlineClassifier(multiclass="softmax").fit(X, Y), "logistic rule's"),
    "multiclass": (lambda: OnlineClassifier(multiclass="ovo").fit(X, Y), "multiclass must be"),
    "voted and l2": (
        lambda: OnlineClassifier(geometry="additive(l2=1)", stabilizer="voted").fit(X, Y),
        "voted",
    ),
    "regression rule": (lambda: OnlineClassifier(rule="epsilon").fit(X, Y), "is for regression"),
    "classification rule": (lambda: OnlineRegressor(rule="pa1").fit(X, Y), "is for classification"),
    "voted regression": (lambda: OnlineRegressor(stabilizer="voted").fit(X, Y), "counts mistakes"),
    "endless regression": (lambda: OnlineRegressor(epochs=None).fit(X, Y), "needs tol"),
    "NaN target": (lambda: OnlineRegressor().fit(X, _with(Y * 1.0, np.nan)), "y contains NaN in row 2"),
    "no target": (lambda: OnlineRegressor().fit(X, _with(Y.astype(object), None)), "y contains None in row 2"),
    "a huge target": (lambda: OnlineRegressor().fit(X, _with(Y.astype(object), 10**400)), "too large for float64"),
    "a word for a target": (lambda: OnlineRegressor().fit(X, _with(Y.astype(object), "a")), "y holds 'a' in row 2"),
    "dates to predict": (lambda: OnlineRegressor().fit(X, Y.astype("M8[D]")), r"y holds dates or times \(datetime64"),
    "dates": (lambda: OnlineClassifier().fit(X.astype("M8[D]"), Y), r"X holds dates or times \(datetime64"),
    "spans of time": (lambda: OnlineClassifier().fit(X.astype("m8[D]"), Y), r"X holds dates or times \(timedelta64"),
    "a column of dates": (
        lambda: OnlineClassifier().fit(pl.DataFrame({"a": X[:, 0], "b": Y.astype("M8[D]")}), Y),
        r"X holds dates or times \(Date",
    ),
    "lambda": (
        lambda: OnlineClassifier(geometry="additive(schedule='1/(lambda t)')").fit(X, Y),
        "needs l2 above 0",
    ),
    "too fast": (lambda: OnlineClassifier(geometry="ftrl(1e250)").fit(X, Y), r"above 0 and below 1e\+100, not 1e\+250"),
    "lambda near 0": (
        lambda: OnlineClassifier(geometry="additive(schedule='1/(lambda t)', l2=1e-290)").fit(X, Y),
        "l2 = 1e-290 is so small",
    ),
    "first partial_fit": (lambda: OnlineClassifier().partial_fit(X, Y), "classes must be passed"),
    "no classes": (lambda: OnlineClassifier().partial_fit(X, Y, classes=[]), "classes is empty"),
    "a class of NaN": (
        lambda: OnlineClassifier().partial_fit(X, Y, [0, 1, np.nan]),
        "classes holds nan, which is not a",
    ),
    "a class of None": (lambda: OnlineClassifier().partial_fit(X, Y, [0, 1, None]), "classes holds None, which is not"),
    "nested classes": (lambda: OnlineClassifier().partial_fit(X, Y, [[0, 1]]), "not a list of lists"),
    "a number of classes": (lambda: OnlineClassifier().partial_fit(X, Y, 2), "must be a list of labels, not 2"),
    "classes of two kinds": (lambda: OnlineClassifier().partial_fit(X, Y, [0, 1, "a"]), "classes holds both strings"),
    "new label": (
        lambda: OnlineClassifier().partial_fit(X, Y, classes=[0, 1]).partial_fit(X, Y + 1),
        r"label 2 \(row \d+\), which is not among the classes 0, 1",
    ),
    "radius of a stream": (
        lambda: OnlineClassifier(intercept_scaling="radius").partial_fit(X, Y, classes=[0, 1]),
        "give a number",
    ),
    "a constant beyond bounds": (
        lambda: OnlineClassifier(intercept_scaling=1e300).fit(X, Y),
        r"1e\+300, but must be at",
    ),
    "a radius beyond bounds": (
        lambda: OnlineClassifier(intercept_scaling="radius").fit(sp.csr_matrix(X * 1e155), Y),
        r"constant feature of the intercept would be \d.*e\+155, but must be at most",
    ),
    "eta of a stream": (
        lambda: NormalizedWinnow(eta="auto").partial_fit(X, Y, classes=[0, 1]),
        "give the number",
    ),
    "held-out stream": (
        lambda: OnlineClassifier(calibration="holdout").partial_fit(X, Y, classes=[0, 1]),
        "needs fit",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_gets_one_clear_sentence(case):
    call, sentence = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value).split("Reshape your data")[0].strip()


def test_a_failed_call_changes_nothing():
    model = OnlineClassifier(random_state=0).partial_fit(X, Y, classes=[0, 1])
    before, seen = weights_of(model), model.n_seen_
    bad = X.copy()
    bad[3, 1] = np.nan
    for data, labels in ((bad, Y), (X, Y + 5), (X[:, :2], Y), (X, Y[:3])):
        with pytest.raises(ValueError):
            model.partial_fit(data, labels)
        with pytest.raises(ValueError):
            model.fit(data if data is bad else X, labels if data is not bad and len(labels) < 60 else np.ones(60))
        np.testing.assert_array_equal(weights_of(model), before)
        assert model.n_seen_ == seen and model.n_features_in_ == 5


def weights_of(model):
    return np.append(model.coef_, model.intercept_)


def test_a_failed_first_call_leaves_an_unfitted_estimator():
    model = OnlineClassifier()
    with pytest.raises(ValueError):
        model.fit(X, np.ones(60))
    assert not [name for name in vars(model) if name.endswith("_") or name.startswith("_")]


def test_classes_may_be_a_set():
    assert OnlineClassifier().partial_fit(X, Y, classes={1, 0}).classes_.tolist() == [0, 1]


@pytest.mark.parametrize("column", [-1, 3, 10**6])
@pytest.mark.parametrize("others", [[0, 1], [1, 0]], ids=["in order", "not in order"])
def test_columns_that_a_matrix_does_not_have_are_refused(column, others):
    X = sp.csr_matrix((4, 3))
    X.data, X.indptr = np.ones(6), np.array([0, 2, 4, 4, 6], dtype=np.int32)
    X.indices = np.array([*others, *others, *(sorted([0, column]))], dtype=np.int32)
    with pytest.raises(ValueError, match=f"3 columns, but row 3 has a value in column {column}"):
        OnlineClassifier().fit(X, [0, 1, 0, 1])


@pytest.mark.parametrize("place", [0, 2, -1])
def test_rows_that_reach_beyond_a_matrix_are_refused(place):
    broken = sp.csr_matrix(X)
    broken.indptr[place] = 10**6
    for call in (OnlineClassifier().fit, OnlineClassifier().fit(X, Y).partial_fit):
        with pytest.raises(ValueError, match="not a sound CSR matrix"):
            call(broken, Y)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("labels", [2, 3])
def test_what_shows_only_while_learning_changes_nothing(bad, sparse, labels):
    """``fit`` meets NaN and infinity in the scores: the row and column are named, and the learner is as it was."""
    X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % labels
    model = OnlineClassifier(rule="pa1", epochs=2, random_state=0).fit(X, y)
    before, seen = model.coef_.copy(), model.n_seen_
    worse = X.copy()
    worse[41, 2] = bad
    with pytest.raises(ValueError, match=r"X contains (NaN|infinity) in row 41, column 2"):
        model.fit(sp.csr_matrix(worse) if sparse else worse, y)
    assert np.array_equal(model.coef_, before) and model.n_seen_ == seen


def test_something_is_left_to_learn_from():
    assert OnlineClassifier(calibration="holdout(0.999)", random_state=0).fit(X, Y).n_seen_ > 0


def test_warnings_point_at_the_caller():
    for learner in (
        OnlineClassifier(epochs=None, max_epochs=2),
        OnlineRegressor("lms", "additive(rate=1e9)", epochs=2),
    ):
        with pytest.warns(ConvergenceWarning) as caught:
            learner.fit(X, Y)
        assert {warning.filename for warning in caught} == {__file__}


def test_regression_does_not_speak_of_mistakes():
    with pytest.warns(ConvergenceWarning, match="the loss still fell by tol=-1 or more in the last of max_epochs=3"):
        model = OnlineRegressor(epochs=None, max_epochs=3, tol=-1, random_state=0).fit(X, X[:, 0])
    assert not hasattr(model, "n_mistakes_") and model.n_updates_ > 0


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_go_into_kernel_learners(table):
    model = KernelClassifier("gaussian", epochs=1, random_state=0)
    assert np.array_equal(model.fit(table(NAMED), Y).predict(table(NAMED)), model.fit(X, Y).predict(X))
