"""``NaiveBayes``: scikit-learn's four, mixtures of kinds, chunks, growth, files and errors."""

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.utils.estimator_checks import check_estimator

import onlearn
from onlearn import NaiveBayes

THEIRS = {
    "multinomial": MultinomialNB,
    "bernoulli": BernoulliNB,
    "complement": ComplementNB,
    "gaussian": GaussianNB,
}
LINEAR = ("multinomial", "bernoulli", "complement")
FORMS = {"dense": np.asarray, "sparse": sp.csr_matrix}


def problem(seed=0, rows=120, columns=15, classes=3):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(classes), rng.integers(0, classes, rows - classes)])
    rates = rng.gamma(0.5, 1.0, (classes, columns))
    return rng.poisson(rates[y]).astype(float), np.array(["a", "b", "c", "d", "e"])[y], rng.random(rows) + 0.1


X, Y, W = problem()


def arrays(model):
    return model._pack()[1]


def assert_same_state(one, other):
    (facts, mine), (others, theirs) = one._pack(), other._pack()
    assert facts == others and mine.keys() == theirs.keys()
    for name, array in mine.items():
        assert array.tobytes() == theirs[name].tobytes(), name


# ---------------------------------------------------------------------- scikit-learn's four


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", THEIRS)
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    classes=st.integers(2, 5),
    columns=st.integers(1, 12),
    weighted=st.booleans(),
    smoothing=st.sampled_from([1e-3, 0.5, 1.0, 3.0]),
)
def test_probabilities_are_those_of_scikit_learn(kind, form, seed, classes, columns, weighted, smoothing):
    rows, y, weight = problem(seed, 60, columns, classes)
    weight = weight if weighted else None
    if kind == "gaussian":
        rows = rows + np.random.default_rng(seed).normal(size=rows.shape)
        ours, theirs = dict(var_smoothing=smoothing), dict(var_smoothing=smoothing)
        weight = None  # their smoothing looks at the rows without their weights; see the test below
    else:
        ours, theirs = dict(alpha=smoothing), dict(alpha=smoothing, force_alpha=True)
    made = NaiveBayes(kind, **ours).fit(FORMS[form](rows), y, weight)
    wanted = THEIRS[kind](**theirs).fit(rows, y, weight)
    found = made.predict_log_proba(FORMS[form](rows))
    np.testing.assert_allclose(found, wanted.predict_log_proba(rows), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(made.predict_proba(FORMS[form](rows)), np.exp(found), rtol=1e-12)


def test_weighted_gaussian_is_that_of_repeated_rows():
    times = np.random.default_rng(1).integers(1, 4, len(X))
    weighted = NaiveBayes("gaussian", var_smoothing=0.1).fit(X, Y, times)
    repeated = GaussianNB(var_smoothing=0.1).fit(np.repeat(X, times, axis=0), np.repeat(Y, times))
    np.testing.assert_allclose(weighted.predict_log_proba(X), repeated.predict_log_proba(X), rtol=1e-8, atol=1e-8)
    tiny = GaussianNB().fit(X, Y, times)
    np.testing.assert_array_equal(NaiveBayes("gaussian").fit(X, Y, times).predict(X), tiny.predict(X))


@pytest.mark.parametrize("kind", ["multinomial", "bernoulli", "gaussian"])
@pytest.mark.parametrize("prior", [dict(class_prior=[0.7, 0.2, 0.1]), dict(fit_prior=False), {}])
def test_priors_are_those_of_scikit_learn(kind, prior):
    if kind == "gaussian":
        theirs = {"priors": prior.get("class_prior", [1 / 3] * 3 if "fit_prior" in prior else None)}
    else:
        theirs = prior
    made, wanted = NaiveBayes(kind, **prior).fit(X, Y), THEIRS[kind](**theirs).fit(X, Y)
    np.testing.assert_allclose(made.predict_proba(X), wanted.predict_proba(X), rtol=1e-7, atol=1e-12)


def test_normalised_complement_and_threshold():
    np.testing.assert_allclose(
        NaiveBayes("complement", norm=True).fit(X, Y).predict_proba(X),
        ComplementNB(norm=True).fit(X, Y).predict_proba(X),
    )
    np.testing.assert_allclose(
        NaiveBayes("bernoulli", binarize=1.5).fit(X, Y).predict_proba(X),
        BernoulliNB(binarize=1.5).fit(X, Y).predict_proba(X),
    )
    bits = (X > 0) * 1.0
    np.testing.assert_allclose(
        NaiveBayes("bernoulli", binarize=None).fit(bits, Y).predict_proba(bits),
        BernoulliNB(binarize=None).fit(bits, Y).predict_proba(bits),
    )


@pytest.mark.parametrize("kind", THEIRS)
def test_partial_fit_as_scikit_learn(kind):
    ours, theirs = NaiveBayes(kind), THEIRS[kind]()
    for part in np.array_split(np.arange(len(Y)), 5):
        ours.partial_fit(X[part], Y[part], classes=["a", "b", "c"])
        theirs.partial_fit(X[part], Y[part], classes=["a", "b", "c"])
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    if kind != "gaussian":  # where theirs smooths by the variance of the last call's rows
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-9)


# ---------------------------------------------------------------------- chunks


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [*THEIRS, "mixed"])
@settings(max_examples=10, deadline=None)
@given(cuts=st.lists(st.integers(1, 119), max_size=5), progressive=st.booleans())
def test_cuts_change_no_bit(kind, form, cuts, progressive):
    options = dict(kinds=["gaussian", "bernoulli", "multinomial"] * 5) if kind == "mixed" else {}
    edges = [0, *sorted(cuts), len(Y)]
    rows = X * 0.1  # sums that are not whole
    whole = NaiveBayes(kind, progressive=progressive, **options)
    parts = NaiveBayes(kind, progressive=progressive, **options)
    whole.partial_fit(FORMS[form](rows), Y, classes=["a", "b", "c"], sample_weight=W)
    for a, b in pairwise(edges):
        if b > a:
            parts.partial_fit(FORMS[form](rows[a:b]), Y[a:b], classes=["a", "b", "c"], sample_weight=W[a:b])
    assert_same_state(whole, parts)
    if not progressive:
        fitted = NaiveBayes(kind, **options).fit(FORMS[form](rows), Y, W)
        for name, array in arrays(fitted).items():
            assert array.tobytes() == arrays(whole)[name].tobytes(), name


def test_one_row_at_a_time_is_the_same():
    one, many = NaiveBayes("multinomial"), NaiveBayes("multinomial").partial_fit(X, Y, classes=["a", "b", "c"])
    one.partial_fit(X[:1], Y[:1], classes=["a", "b", "c"])
    for x, y in zip(X[1:], Y[1:], strict=True):
        one.learn_one(x, y)
    assert_same_state(one, many)
    assert [one.predict_one(x) for x in X[:9]] == many.predict(X[:9]).tolist()
    proba = one.predict_proba_one(X[0])
    np.testing.assert_allclose([*proba.values()], many.predict_proba(X[:1])[0])


@pytest.mark.parametrize("kind", [*THEIRS, "mixed"])
def test_rows_are_scored_before_they_are_learned_from(kind):
    """By counts of all rows before, or by tables that lack at most one row in eight."""
    options = dict(kinds=["multinomial", "multinomial", "multinomial"] * 5) if kind == "mixed" else {}
    model = NaiveBayes(kind, progressive=True, fit_prior=False, **options).partial_fit(X, Y, classes=["a", "b", "c"])
    plain, mistakes, known, due = NaiveBayes(kind, fit_prior=False, **options), 0, None, 0
    for n in range(len(Y)):
        if n >= due:
            exact = kind in ("multinomial", "mixed")
            known, due = pickle.loads(pickle.dumps(plain)) if n else None, n + (1 if exact else max(1, n // 8))
        mistakes += ("a" if known is None else known.predict(X[n : n + 1])[0]) != Y[n]
        plain.partial_fit(X[n : n + 1], Y[n : n + 1], classes=["a", "b", "c"])
    assert abs(model.n_mistakes_ - mistakes) <= (0 if kind in ("multinomial", "bernoulli") else 3)
    assert [entry["seen"] for entry in model.history_["doubling"]] == [1, 2, 4, 8, 16, 32, 64]
    with pytest.raises(AttributeError, match="progressive=True"):
        plain.n_mistakes_  # noqa: B018


# ---------------------------------------------------------------------- kinds of columns


def test_mixed_is_the_product_of_its_parts():
    kinds = ["gaussian"] * 5 + ["bernoulli"] * 5 + ["multinomial"] * 5
    made = NaiveBayes("mixed", kinds=kinds).fit(X, Y)
    prior = np.log(NaiveBayes("bernoulli").fit(X, Y).class_weight_ / len(Y))
    wanted = prior + sum(
        NaiveBayes(kind).fit(X[:, 5 * n : 5 * n + 5], Y).decision_function(X[:, 5 * n : 5 * n + 5]) - prior
        for n, kind in enumerate(("gaussian", "bernoulli", "multinomial"))
    )
    for form in FORMS.values():
        np.testing.assert_allclose(made.decision_function(form(X)), wanted, rtol=1e-9)
    assert made.kinds_ == kinds


def test_kinds_by_name_number_and_default():
    frame = pd.DataFrame(X[:, :3], columns=["size", "red", "words"])
    made = NaiveBayes(kinds={"red": "bernoulli"}).fit(frame, Y)
    assert made.kinds_ == ["gaussian", "bernoulli", "gaussian"]
    assert NaiveBayes("multinomial", kinds={0: "gaussian"}).fit(X, Y).kinds_[:2] == ["gaussian", "multinomial"]
    assert (
        NaiveBayes().fit(X, Y).kinds_[0] == "gaussian"
        and NaiveBayes().fit(sp.csr_matrix(X), Y).kinds_[0] == "multinomial"
    )
    for wrong, said in (
        (dict(kind="mixed"), "needs kinds"),
        (dict(kind="mixed", kinds={0: "gaussian"}), "says nothing of column 1"),
        (dict(kinds=["gaussian"]), "lists 1 columns, but X has 15"),
        (dict(kinds={"blue": "gaussian"}), "names the column 'blue'"),
        (dict(kinds={0: "complement"}), "no likelihood"),
        (dict(kinds="gaussian"), "a list or a dict"),
    ):
        with pytest.raises(ValueError, match=said):
            NaiveBayes(**wrong).fit(X, Y)


# ---------------------------------------------------------------------- growth


@pytest.mark.parametrize("kind", THEIRS)
def test_new_classes_and_features_are_taken_in(kind):
    late = Y == "c"
    order = np.argsort(late, kind="stable")
    rows, y = X[order].copy(), Y[order]
    rows[: (~late).sum(), 10:] = 0.0
    grown = NaiveBayes(kind, grow=True)
    grown.partial_fit(rows[: (~late).sum(), :10], y[: (~late).sum()])
    grown.partial_fit(rows[(~late).sum() :], y[(~late).sum() :])
    whole = NaiveBayes(kind).fit(rows, y)
    form = np.asarray if kind != "gaussian" else sp.csr_matrix
    if kind == "gaussian":  # columns that were not there held 0
        grown = NaiveBayes(kind, grow=True).partial_fit(form(rows[: (~late).sum(), :10]), y[: (~late).sum()])
        grown.partial_fit(form(rows[(~late).sum() :]), y[(~late).sum() :])
    np.testing.assert_allclose(grown.predict_proba(form(rows)), whole.predict_proba(form(rows)), rtol=1e-7, atol=1e-12)


def test_names_of_features_are_taken_in():
    model = NaiveBayes("multinomial", grow=True)
    model.learn_one({"cheap": 2, "pills": 1}, "spam").learn_one({"lunch": 1}, "ham").learn_one({"exam": 2}, "work")
    assert model.predict_one({"cheap": 1}) == "spam" and model.predict_one({"exam": 1, "unknown": 3}) == "work"
    assert model.feature_names_in_.tolist() == ["cheap", "pills", "lunch", "exam"]


# ---------------------------------------------------------------------- linear forms


@pytest.mark.parametrize("kind", LINEAR)
@pytest.mark.parametrize("classes", [2, 3])
def test_discrete_kinds_are_linear(kind, classes):
    rows, y, _ = problem(4, 80, 9, classes)
    model = NaiveBayes(kind).fit(rows, y)
    values = (rows > 0) * 1.0 if kind == "bernoulli" else rows
    scores = values @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(np.squeeze(scores), model.decision_function(rows), rtol=1e-9, atol=1e-9)
    linear = model.to_linear()
    assert isinstance(linear, onlearn.OnlineClassifier)
    np.testing.assert_allclose(linear.predict_proba(values), model.predict_proba(rows), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(linear.predict(values), model.predict(rows))
    before = linear.coef_.copy()
    linear.partial_fit(values[:10], y[:10])
    assert not np.array_equal(linear.coef_, before) and np.array_equal(model.to_linear().coef_, before)


def test_gaussian_and_mixed_are_not_linear():
    for model in (NaiveBayes("gaussian"), NaiveBayes(kinds={0: "bernoulli"})):
        model.fit(X, Y)
        with pytest.raises(AttributeError, match="not linear"):
            model.coef_  # noqa: B018
        with pytest.raises(ValueError, match="not linear"):
            model.to_linear()


@pytest.mark.parametrize("kind", [*THEIRS, "mixed"])
def test_contributions_sum_to_the_score(kind):
    options = dict(kinds=["gaussian", "bernoulli", "multinomial"] * 5) if kind == "mixed" else {}
    model = NaiveBayes(kind, **options).fit(X, Y)
    for row in X[:5]:
        found = model._learner.contributions(sp.csr_matrix(row[None]))
        scores = np.sort(model.decision_function(row[None])[0])
        assert found.amounts.sum() + found.intercept == pytest.approx(scores[-1] - scores[-2], rel=1e-7)
        assert model.classes_[found.favours] == model.predict(row[None])[0]


# ---------------------------------------------------------------------- files


@pytest.mark.parametrize("kind", [*THEIRS, "mixed"])
def test_files_hold_all_of_it(kind, tmp_path):
    options = dict(kinds=["gaussian", "bernoulli", "multinomial"] * 5) if kind == "mixed" else {}
    model = NaiveBayes(kind, progressive=True, alpha=0.3, class_prior=[0.5, 0.3, 0.2], **options)
    model.partial_fit(X[:50], Y[:50], classes=["a", "b", "c"])
    model.save(tmp_path / "model.onl")
    again = onlearn.load(tmp_path / "model.onl")
    assert isinstance(again, NaiveBayes) and again.get_params() == model.get_params()
    assert_same_state(model, again)
    for one in (model, again):
        one.partial_fit(X[50:], Y[50:])
    assert_same_state(model, again)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_lists_that_are_arrays_or_tuples(tmp_path):
    model = NaiveBayes(kinds=("gaussian",) * 15, class_prior=np.array([0.5, 0.3, 0.2])).fit(X, Y)
    model.partial_fit(X, Y).save(tmp_path / "model.onl")
    np.testing.assert_array_equal(onlearn.load(tmp_path / "model.onl").predict_proba(X), model.predict_proba(X))


# ---------------------------------------------------------------------- what cannot be


@pytest.mark.parametrize("form", FORMS)
def test_what_a_kind_cannot_count_is_refused(form):
    for kind in ("multinomial", "complement"):
        bad = X.copy()
        bad[3, 2] = -1.0
        with pytest.raises(ValueError, match="row 3, column 2 holds -1"):
            NaiveBayes(kind).fit(FORMS[form](bad), Y)
        model = NaiveBayes(kind).fit(FORMS[form](X), Y)
        before = model.predict_proba(X)
        with pytest.raises(ValueError, match="Negative values"):
            model.partial_fit(FORMS[form](bad), Y)
        with pytest.raises(ValueError, match="Negative values"):
            model.predict(FORMS[form](bad))
        np.testing.assert_array_equal(model.predict_proba(X), before)
    for value, said in ((np.nan, "NaN in row 3"), (np.inf, "infinity in row 3")):
        bad = X.copy()
        bad[3, 2] = value
        for kind in THEIRS:
            with pytest.raises(ValueError, match=said):
                NaiveBayes(kind).fit(FORMS[form](bad), Y)
    bad = X.copy()
    bad[3, 2] = 1e200
    with pytest.raises(ValueError, match=r"row 3, column 2 holds 1e\+200"):
        NaiveBayes("gaussian").fit(FORMS[form](bad), Y)
    with pytest.raises(ValueError, match="takes 0 and 1"):
        NaiveBayes("bernoulli", binarize=None).fit(FORMS[form](X + 0.5), Y)


def test_parameters_that_cannot_be_are_refused():
    for wrong, said in (
        (dict(alpha=0.0), "alpha must be a number above 0"),
        (dict(kind="poisson"), "kind must be"),
        (dict(class_prior=[0.5, 0.6, 0.1]), "sum to 1"),
        (dict(class_prior=[0.5, 0.5]), "2 numbers, but there are 3 classes"),
        (dict(var_smoothing=-1.0), "var_smoothing"),
    ):
        with pytest.raises(ValueError, match=said):
            NaiveBayes(**wrong).fit(X, Y)
    with pytest.raises(ValueError, match="absent value of sparse rows"):
        NaiveBayes("bernoulli", binarize=-1.0).fit(sp.csr_matrix(X), Y)
    model = NaiveBayes("multinomial").fit(X, Y)
    with pytest.raises(ValueError, match="kind was 'multinomial'"):
        model.set_params(kind="bernoulli").partial_fit(X, Y)
    model.set_params(kind="multinomial", alpha=5.0)  # which is no part of what is counted
    model.partial_fit(X, Y)
    np.testing.assert_allclose(
        model.predict_proba(X), NaiveBayes("multinomial", alpha=5.0).fit(np.vstack([X, X]), [*Y, *Y]).predict_proba(X)
    )


@pytest.mark.parametrize("kind", THEIRS)
def test_a_class_that_never_came_is_never_predicted(kind):
    two = Y != "c"
    model = NaiveBayes(kind).partial_fit(X[two], Y[two], classes=["a", "b", "c"])
    proba = model.predict_proba(X)
    assert np.isfinite(proba).all() and (proba[:, 2] == 0).all() and "c" not in model.predict(X)
    np.testing.assert_allclose(proba[:, :2], NaiveBayes(kind).fit(X[two], Y[two]).predict_proba(X), rtol=1e-7)


@pytest.mark.parametrize("kind", THEIRS)
def test_one_feature_constant_columns_and_scales(kind):
    y = np.array([0, 0, 1, 1])
    for rows in (np.array([[1.0], [2.0], [5.0], [6.0]]), np.ones((4, 2)), np.zeros((4, 2))):
        for scale in (1e-9, 1.0, 1e9):
            model = NaiveBayes(kind).fit(rows * scale, y)
            proba = model.predict_proba(rows * scale)
            assert np.isfinite(proba).all()
            np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    far = np.array([[1.0], [2.0], [5.0], [6.0]]) + 1e8  # means that are large beside the spread
    assert NaiveBayes("gaussian").fit(far, y).predict(far).tolist() == y.tolist()


def test_weights_of_classes():
    balanced = NaiveBayes("multinomial", class_weight="balanced").fit(X, Y)
    np.testing.assert_allclose(balanced.class_weight_, len(Y) / 3)
    twice = NaiveBayes("multinomial", class_weight={"a": 2.0}).fit(X, Y)
    wanted = MultinomialNB().fit(X, Y, np.where(Y == "a", 2.0, 1.0))
    np.testing.assert_allclose(twice.predict_proba(X), wanted.predict_proba(X))
    absent = NaiveBayes("multinomial").fit(X, Y, np.where(np.arange(len(Y)) < 60, 1.0, 0.0))
    assert_same_state(absent, NaiveBayes("multinomial").fit(X[:60], Y[:60]))


def test_copies_are_their_own():
    model = NaiveBayes("multinomial").fit(X, Y)
    other = pickle.loads(pickle.dumps(model))
    before = model.predict_proba(X)
    other.partial_fit(X[::-1], Y)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    fresh = model.renewed()
    assert fresh.n_seen_ == 0 and fresh.classes_.tolist() == ["a", "b", "c"]
    fresh.partial_fit(X, Y)
    np.testing.assert_array_equal(fresh.predict_proba(X), before)


# ---------------------------------------------------------------------- scikit-learn's contract

NEGATIVE = "the check passes negative features to a learner whose tags say that it takes none"
FEW = {
    "multinomial": {
        "check_class_weight_classifiers": NEGATIVE,
        "check_decision_proba_consistency": NEGATIVE,
    },
    "complement": {
        "check_class_weight_classifiers": NEGATIVE,
        "check_decision_proba_consistency": NEGATIVE,
    },
}


@pytest.mark.parametrize(
    "kind",
    ["auto", *(pytest.param(kind, marks=pytest.mark.slow) for kind in THEIRS)],
)
def test_check_estimator_passes(kind):
    expected = FEW.get(kind, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(NaiveBayes(kind), expected_failed_checks=expected)
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(expected)
