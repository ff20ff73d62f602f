"""The engine against the reference: every rule x geometry x stabilizer x output x layout, and its invariances.

A loop is compiled for each geometry x stabilizer x output x layout, so that is what a test case is; the
rules, which need no compiling, are gone through inside. Two cases for each geometry and kind of learner, which cover
all pairs of the other choices, are tested always; the rest is slow.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import cases
import reference as ref
from cases import GEOMETRIES, LAYOUTS, REGRESSION_RULES, RULES, Case, example_geometry
from onlearn import OnlineClassifier, OnlineRegressor

EPOCHS = 2


def classifier(rule, geometry, stabilizer="last", output="binary", **others):
    """A learner that visits the examples in the order given."""
    multiclass = "auto" if output == "binary" else output
    return OnlineClassifier(rule, geometry, stabilizer, multiclass, **{"shuffle": False, "epochs": EPOCHS, **others})


def learned(model):
    return np.column_stack([model.intercept_, model.coef_])


def expected(trail, w):
    coef, intercept = trail.split(w)
    return np.column_stack([intercept, coef])


def assert_close(actual, wanted, where, rtol=1e-9):
    scale = max(1.0, np.abs(wanted).max())
    np.testing.assert_allclose(actual, wanted, rtol=rtol, atol=rtol * scale, err_msg=where)


# ---------------------------------------------------------------- conformance


@cache
def oracle(rule, geometry, group, output, single):
    """What the reference does with a combination."""
    data = cases.data("binary" if output == "binary" else "multiclass", group == "winnow")
    X = data.X.astype(np.float32).astype(np.float64) if single else data.X
    y = data.signs if output == "binary" else data.y
    outputs = 1 if output == "binary" else cases.CLASSES
    return ref.learn(RULES[rule], GEOMETRIES[group][geometry](), output, X, y, outputs=outputs, epochs=EPOCHS)


def check_against_reference(case):
    data = cases.data("binary" if case.output == "binary" else "multiclass", case.group == "winnow")
    single = "32" in case.layout
    X = LAYOUTS[case.layout](data.X)
    rtol = 1e-5 if single else 1e-9
    for geometry in GEOMETRIES[case.group]:
        for rule in ["logistic"] if case.output == "softmax" else RULES:
            where = f"{rule} {geometry} {case}"
            model = classifier(rule, geometry, case.stabilizer, case.output).fit(X, data.y)
            trail = oracle(rule, geometry, case.group, case.output, single)
            assert (model.n_mistakes_, model.n_updates_) == (trail.mistakes, trail.updates), where
            assert model.n_seen_ == EPOCHS * cases.ROWS
            if case.output != "one-vs-all":
                loss = [entry["loss"] for entry in model.history_["passes"]]
                assert_close(loss, np.mean(np.reshape(trail.losses, (EPOCHS, -1)), axis=1), where)
            if case.stabilizer == "voted":
                votes = ref.voted(trail, X.toarray() if sp.issparse(X) else X)
                assert_close(model.decision_function(X), np.squeeze(votes), where)
            else:
                handed = expected(trail, ref.STABILIZERS[case.stabilizer](trail))
                assert_close(learned(model), handed, where, rtol)


@pytest.mark.parametrize("case", cases.BINARY_COVERING, ids=str)
def test_two_classes(case):
    """All rules, with every geometry and stabilizer, dense or sparse, do what the reference does."""
    check_against_reference(case)


@pytest.mark.parametrize("case", cases.MANY_COVERING, ids=str)
def test_more_classes(case):
    """So do they with one-vs-all, true multiclass and softmax."""
    check_against_reference(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", cases.BINARY_OTHER + cases.MANY_OTHER, ids=str)
def test_all_other_combinations(case):
    check_against_reference(case)


@pytest.mark.parametrize(
    "case",
    [
        Case("plain", "averaged", "binary", "dense32"),
        Case("balanced", "averaged", "true", "csr32"),
        Case("arow", "last", "binary", "csr64"),
        Case("winnow", "averaged", "one-vs-all", "csr64"),
        Case("winnow", "averaged", "binary", "fortran"),
        Case("plain", "voted", "binary", "fortran"),
    ],
    ids=str,
)
def test_other_layouts(case):
    """Single precision, 64-bit indices and columns that lie one after another change nothing."""
    check_against_reference(case)


def test_the_cases_cover_all_pairs_of_choices():
    """Some default case has any two choices that one names, apart from a geometry with a stabilizer or an output."""

    def pairs(chosen, *names):
        seen = set()
        for case in chosen:
            seen.update(combinations([(name, getattr(case, name)) for name in names], 2))
        return seen

    for covering, every in ((cases.BINARY_COVERING, cases.BINARY), (cases.MANY_COVERING, cases.MANY)):
        for names in (("stabilizer", "output", "layout"), ("group", "layout")):
            assert pairs(covering, *names) == pairs(every, *names)


@pytest.mark.parametrize("group", GEOMETRIES)
def test_regression(group):
    """Least squares and epsilon-insensitive regression, with every geometry, last and averaged."""
    data = cases.data("regression", group == "winnow")
    for geometry, reference in GEOMETRIES[group].items():
        for rule, step in REGRESSION_RULES.items():
            trail = ref.learn(step, reference(), "binary", data.X, data.y, epochs=EPOCHS)
            for stabilizer in ("last", "averaged"):
                model = OnlineRegressor(rule, geometry, stabilizer, epochs=EPOCHS, shuffle=False)
                model.fit(data.X, data.y)
                handed = expected(trail, ref.STABILIZERS[stabilizer](trail))[0]
                actual = np.append(model.intercept_, model.coef_)
                assert_close(actual, handed, f"{rule} {geometry} {stabilizer}")
                assert model.n_updates_ == trail.updates


@pytest.mark.parametrize("group", GEOMETRIES)
def test_sample_weight_multiplies_the_step_or_its_cost(group):
    data = cases.data("binary", group == "winnow")
    weight = np.random.default_rng(3).choice([0.25, 1.0, 1.7], cases.ROWS)
    for geometry, reference in GEOMETRIES[group].items():
        for rule, step in RULES.items():
            trail = ref.learn(step, reference(), "binary", data.X, data.signs, weight=weight, epochs=EPOCHS)
            model = classifier(rule, geometry, "averaged").fit(data.X, data.y, sample_weight=weight)
            assert_close(learned(model), expected(trail, ref.averaged(trail)), f"{rule} {geometry}")


@pytest.mark.parametrize("bias", [0.0, 2.5])
@pytest.mark.parametrize("group", GEOMETRIES)
def test_size_of_the_constant_feature(group, bias):
    """The intercept is the weight of a constant feature, of any size or absent."""
    data = cases.data("binary", group == "winnow")
    size = dict(fit_intercept=False) if bias == 0.0 else dict(intercept_scaling=bias)
    geometry, reference = example_geometry(group)
    for rule, step in RULES.items():
        trail = ref.learn(step, reference(), "binary", data.X, data.signs, epochs=EPOCHS, bias=bias)
        model = classifier(rule, geometry, "averaged", **size).fit(data.X, data.y)
        assert_close(learned(model), expected(trail, ref.averaged(trail)), f"{rule} {geometry}")
        assert model.n_mistakes_ == trail.mistakes


@pytest.mark.parametrize(
    "group", ["plain", "decayed", "truncated", "adagrad", "penalised", "sparse adagrad", "arow", "fading"]
)
def test_random_start(group):
    """Where weights may have either sign they may start at random, and that start counts in all that follows."""
    data = cases.data("binary", False)
    for geometry, reference in GEOMETRIES[group].items():
        for stabilizer in (s for s in cases.STABILIZERS if cases.possible(group, s)):
            model = classifier("pa1(0.2)", geometry, stabilizer, init="random", random_state=3)
            unlearned = classifier("pa1(0.2)", geometry, "last", init="random", random_state=3)
            unlearned.partial_fit(data.X, data.y, classes=[0, 1], sample_weight=np.zeros(cases.ROWS))
            start = learned(unlearned).T
            assert (start != 0).all()
            trail = ref.learn(RULES["pa1(0.2)"], reference(), "binary", data.X, data.signs, epochs=EPOCHS, start=start)
            model.fit(data.X, data.y)
            if stabilizer == "voted":
                assert_close(model.decision_function(data.X), ref.voted(trail, data.X)[:, 0], geometry)
            else:
                assert_close(learned(model), expected(trail, ref.STABILIZERS[stabilizer](trail)), geometry)


@pytest.mark.parametrize("group", sorted(cases.DRIFTING))
def test_nothing_to_vote_for_under_a_penalty(group):
    """Under l1 or l2 every example makes a new hypothesis: voting is refused, with the reason."""
    data = cases.data("binary", False)
    for geometry in GEOMETRIES[group]:
        with pytest.raises(ValueError, match="every example makes a new hypothesis"):
            classifier("perceptron", geometry, "voted").fit(data.X, data.y)


@pytest.mark.parametrize(
    ("geometry", "reference"),
    [
        ("additive(0.1, l1=0.003)", ref.Additive(0.1, l1=0.003)),
        ("additive(0.1, l1=0.003, l2=0.01)", ref.Additive(0.1, l1=0.003, l2=0.01)),
        ("additive(1.0, schedule='1/(lambda t)', l2=0.01)", ref.Additive(1.0, "1/(lambda t)", l2=0.01)),
        ("adagrad(0.3, l1=0.01, l2=0.01)", ref.AdaGrad(0.3, l1=0.01, l2=0.01)),
        ("exponentiated(2.0)", ref.Exponentiated(2.0)),
    ],
)
@pytest.mark.parametrize("stabilizer", ["averaged", "survivor"])
def test_long_streams(geometry, reference, stabilizer):
    """What is renewed once in many examples (scales, the history of l1) is renewed without a trace."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(5000, 4)) * (rng.random((5000, 4)) < 0.3)
    X[rng.random(5000) < 0.5, 3] = 0.0
    y = (X @ [1.0, -2.0, 0.3, 0.0] + 0.5 * rng.normal(size=5000) > 0).astype(int)
    trail = ref.learn(ref.Logistic(), reference, "binary", X, 2 * y - 1.0)
    model = classifier("logistic", geometry, stabilizer, epochs=1).fit(X, y)
    assert_close(learned(model), expected(trail, ref.STABILIZERS[stabilizer](trail)), geometry, rtol=1e-8)
    assert model.n_mistakes_ == trail.mistakes


# ---------------------------------------------------------------- properties, on generated data

GENERIC = np.random.default_rng(11).uniform(0.1, 0.3, (24, cases.FEATURES))  # so that no two sums are equal


@st.composite
def streams(draw, positive=False, classes=2, least=1, ties=True):
    """Rows with zeros among small numbers, and labels. Without ties no row is all zeros."""
    rows = draw(st.integers(least, len(GENERIC)))
    width = draw(st.integers(1, cases.FEATURES))
    whole = draw(arrays(np.int8, (rows, width), elements=st.integers(0 if positive else -3, 3)))
    if not ties:
        whole[whole[:, 0] == 0, 0] = 1
    y = draw(arrays(np.int64, rows, elements=st.integers(0, classes - 1)))
    return whole * GENERIC[:rows, :width], y


def every_geometry():
    """Each geometry of each group, with the group, as parameters of a test."""
    return [
        pytest.param(group, geometry, reference, id=geometry)
        for group, members in GEOMETRIES.items()
        for geometry, reference in members.items()
    ]


def any_rule():
    return st.sampled_from(sorted(RULES))


@settings(max_examples=25)
@pytest.mark.parametrize(("group", "geometry", "reference"), every_geometry())
@given(stream=st.data(), rule=any_rule())
def test_averaged_is_the_mean_of_all_hypotheses(group, geometry, reference, stream, rule):
    """The lazily kept average is the brute-force sum over every hypothesis, divided by their number."""
    X, y = stream.draw(streams(positive=group == "winnow", ties=False))
    model = classifier(rule, geometry, "averaged").partial_fit(X, y, classes=[0, 1])
    trail = ref.learn(RULES[rule], reference(), "binary", X, 2.0 * y - 1)
    mean, sparse = sum(trail.hypotheses[1:]) / len(y), trail.sparse & (np.abs(trail.hypotheses[-1]) < 1e-9)
    zeros = sparse & (np.vstack([[[1.0]], model.coef_.T]) == 0)  # only l1 makes them, of what is zero in the end
    assert_close(learned(model), expected(trail, np.where(zeros, 0.0, mean)), geometry)


@settings(max_examples=25)
@pytest.mark.parametrize(
    "stabilizer", ["averaged", *(pytest.param(name, marks=pytest.mark.slow) for name in ("last", "survivor"))]
)
@pytest.mark.parametrize("group", GEOMETRIES)
@given(stream=st.data(), rule=any_rule())
def test_dense_equals_sparse(group, stabilizer, stream, rule):
    X, y = stream.draw(streams(positive=group == "winnow"))
    geometry, _ = example_geometry(group)
    dense = classifier(rule, geometry, stabilizer).partial_fit(X, y, classes=[0, 1])
    sparse = classifier(rule, geometry, stabilizer).partial_fit(sp.csr_array(X), y, classes=[0, 1])
    assert_close(learned(sparse), learned(dense), f"{rule} {geometry}")
    assert (sparse.n_mistakes_, sparse.n_updates_) == (dense.n_mistakes_, dense.n_updates_)
    assert_close(sparse.predict_proba(sp.csr_array(X)), dense.predict_proba(X), f"{rule} {geometry}", rtol=1e-6)


def assert_same(one, other, X):
    """Equal to the last bit, in all that can be seen of them."""
    assert (one.n_seen_, one.n_mistakes_, one.n_updates_) == (
        other.n_seen_,
        other.n_mistakes_,
        other.n_updates_,
    )
    assert np.array_equal(one.decision_function(X), other.decision_function(X))
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))
    if one.stabilizer != "voted":
        assert np.array_equal(learned(one), learned(other))
    for mine, theirs in zip(state(one), state(other), strict=True):
        assert np.array_equal(mine, theirs)


def state(model):
    """The arrays learning goes on from; of a ledger, which has spare room, what may be of another length is left."""
    return [a for a in (*model._training.g, model._training.tally) if isinstance(a, np.ndarray)]


@pytest.mark.parametrize("stabilizer", ["last", "averaged"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_all_lengths(stabilizer, dtype):
    """Long rows may be walked in another way than short ones."""
    rng = np.random.default_rng(0)
    X = np.zeros((120, 300), dtype)
    for n, row in enumerate(X):
        row[rng.permutation(300)[: 2 * n]] = rng.normal(size=2 * n)
    y = rng.integers(0, 2, len(X))
    turned = sp.csr_matrix(X)
    for a, b in pairwise(turned.indptr):
        turned.indices[a:b], turned.data[a:b] = turned.indices[a:b][::-1].copy(), turned.data[a:b][::-1].copy()
    dense, sparse, other = (
        classifier("logistic", "adagrad(0.1)", stabilizer).partial_fit(rows, y, classes=[0, 1])
        for rows in (X, sp.csr_matrix(X), turned)
    )
    assert_close(learned(sparse), learned(dense), "sparse")
    assert_close(learned(other), learned(dense), "turned")


@settings(max_examples=8)
@pytest.mark.parametrize("case", cases.BINARY_COVERING + cases.MANY_COVERING, ids=str)
@given(stream=st.data(), rule=any_rule(), class_weight=st.sampled_from([None, "balanced", {0: 0.5}]))
def test_chunks_equal_the_whole(case, stream, rule, class_weight):
    """However a stream is cut up, and looked at in between, partial_fit ends in the same state, bit for bit."""
    classes = range(2 if case.output == "binary" else cases.CLASSES)
    X, y = stream.draw(streams(positive=case.group == "winnow", classes=len(classes), least=2))
    weight = stream.draw(arrays(np.float64, len(y), elements=st.sampled_from([1.0, 0.0, 0.3, 2.0])))
    cuts = stream.draw(st.sets(st.integers(1, len(y) - 1), max_size=5))
    X = LAYOUTS[case.layout](X)
    geometry, _ = example_geometry(case.group)
    rule = "logistic" if case.output == "softmax" else rule
    whole, parts = (
        classifier(rule, geometry, case.stabilizer, case.output, class_weight=class_weight) for _ in range(2)
    )
    whole.partial_fit(X, y, classes=classes, sample_weight=weight)
    for start, stop in pairwise([0, *sorted(cuts), len(y)]):
        rows = slice(start, stop)
        parts.partial_fit(X[rows], y[rows], classes=classes, sample_weight=weight[rows])
        parts.decision_function(X)
    assert_same(parts, whole, X)
    assert parts.history_ == whole.history_


@settings(max_examples=15)
@pytest.mark.parametrize("group", GEOMETRIES)
@given(stream=st.data(), rule=any_rule(), class_weight=st.sampled_from([None, "balanced"]))
def test_weight_zero_equals_absence(group, stream, rule, class_weight):
    """An example with sample_weight=0 leaves no trace, whatever its label."""
    X, y = stream.draw(streams(positive=group == "winnow"))
    weight = stream.draw(arrays(np.float64, len(y), elements=st.sampled_from([0.0, 1.0, 0.7])))
    assume((weight > 0).any())
    geometry, _ = example_geometry(group)
    kept = weight > 0
    left_out = classifier(rule, geometry, "averaged", class_weight=class_weight)
    left_out.partial_fit(X[kept], y[kept], classes=[0, 1], sample_weight=weight[kept])
    ignored = classifier(rule, geometry, "averaged", class_weight=class_weight)
    ignored.partial_fit(X, np.where(kept, y, 1 - y), classes=[0, 1], sample_weight=weight)
    assert_same(ignored, left_out, X)


# ---------------------------------------------------------------- growing


@settings(max_examples=6)
@pytest.mark.parametrize("case", [c for c in cases.MANY_COVERING if c.group != "exponentiated"], ids=str)
@given(stream=st.data(), rule=any_rule())
def test_a_feature_may_come_late(case, stream, rule):
    """With grow=True a feature that first appears in a later call counts as having been there, at zero."""
    X, y = stream.draw(streams(case.group == "winnow", classes=3, least=2, ties=False))
    cut = stream.draw(st.integers(1, len(y) - 1))
    narrow = stream.draw(st.integers(1, X.shape[1]))
    X[:cut, narrow:] = 0.0
    as_rows = LAYOUTS[case.layout]
    rule = "logistic" if case.output == "softmax" else rule
    geometry, _ = example_geometry(case.group)
    there, late = (classifier(rule, geometry, case.stabilizer, case.output, grow=True) for _ in range(2))
    there.partial_fit(as_rows(X), y, classes=[0, 1, 2])
    late.partial_fit(as_rows(X[:cut, :narrow]), y[:cut], classes=[0, 1, 2])
    late.partial_fit(as_rows(X[cut:]), y[cut:])
    assert late.n_features_in_ == X.shape[1]
    assert (late.n_mistakes_, late.n_updates_) == (there.n_mistakes_, there.n_updates_)
    assert_close(late.decision_function(as_rows(X)), there.decision_function(as_rows(X)), f"{rule} {geometry}")
    if case.stabilizer != "voted":
        assert_close(learned(late), learned(there), f"{rule} {geometry}")


def learn_with_a_late_class(rule, geometry, output, X, y, cut):
    """Two classes up to the cut, three from there on: the third is new, and was so all along."""
    trail = ref.learn(rule, geometry, output, X[:cut], y[:cut], outputs=2)
    fresh = geometry.add_output()
    trail.hypotheses = [np.hstack([w, fresh]) for w in trail.hypotheses]
    for x, label in zip(ref.with_constant(X[cut:], 1.0), y[cut:]):
        ref.learn_example(rule, geometry, ref.OUTPUTS[output], x, label, 1.0, trail)
    return trail


@settings(max_examples=6)
@pytest.mark.parametrize("case", cases.MANY_COVERING, ids=str)
@given(stream=st.data(), rule=any_rule())
def test_a_class_may_come_late(case, stream, rule):
    """With grow=True a class that first appears in a later call starts as all did."""
    X, y = stream.draw(streams(case.group == "winnow", least=4, ties=False))
    cut = stream.draw(st.integers(2, len(y) - 1))
    y[:2], y[cut] = [0, 1], 2
    as_rows = LAYOUTS[case.layout]
    rule = "logistic" if case.output == "softmax" else rule
    for geometry, reference in GEOMETRIES[case.group].items():
        model = classifier(rule, geometry, case.stabilizer, case.output, grow=True)
        model.partial_fit(as_rows(X[:cut]), y[:cut]).partial_fit(as_rows(X[cut:]), y[cut:])
        trail = learn_with_a_late_class(RULES[rule], reference(), case.output, X, y, cut)
        assert list(model.classes_) == [0, 1, 2]
        assert (model.n_mistakes_, model.n_updates_) == (trail.mistakes, trail.updates)
        if case.stabilizer == "voted":
            assert_close(model.decision_function(as_rows(X)), ref.voted(trail, X), f"{rule} {geometry}")
        else:
            handed = expected(trail, ref.STABILIZERS[case.stabilizer](trail))
            assert_close(learned(model), handed, f"{rule} {geometry}")


def test_exponentiated_weights_sum_to_one_after_growth():
    """Room made ahead for more features is nobody's weight."""
    data = cases.data("multiclass", False)
    model = classifier("perceptron", "exponentiated(0.4)", output="true", grow=True, fit_intercept=False)
    model.partial_fit(data.X[:, :5], data.y, classes=[0, 1, 2])
    assert_close(model.coef_.sum(axis=1), np.ones(3), "before")
    model.partial_fit(data.X, data.y)
    assert_close(model.coef_.sum(axis=1), np.ones(3), "after")


# ---------------------------------------------------------------- whatever the input


@pytest.mark.parametrize("stabilizer", ["last", "averaged"])
@pytest.mark.parametrize("group", GEOMETRIES)
@pytest.mark.filterwarnings("ignore:the weights grew beyond", "ignore::RuntimeWarning")
def test_huge_values_leave_the_weights_finite(group, stabilizer):
    """Features up to 1e300, and rules whose steps explode, put neither NaN nor infinity into the weights."""
    data = cases.data("binary", group == "winnow")
    X = data.X.copy()
    X[3, 2], X[8, 0], X[15] = 1e300, 1e200, 1e300
    for geometry in GEOMETRIES[group]:
        for rule in RULES:
            model = classifier(rule, geometry, stabilizer, epochs=3).fit(X, data.y)
            assert np.isfinite(learned(model)).all(), f"{rule} {geometry}"


def test_exponentiated_weight_comes_back_from_nothing():
    """Thirty examples for one feature, sixty for the other: whatever underflowed on the way, the other wins."""
    X = np.array([[0.9, 0.0]] * 30 + [[0.0, 0.9]] * 60)
    model = classifier("hinge", "exponentiated(30)", fit_intercept=False)
    model.partial_fit(X, np.ones(len(X), dtype=int), classes=[0, 1])
    assert_close(model.coef_[0] / model.coef_[0].sum(), [0.0, 1.0], "")


def test_ftrl_without_smoothing():
    """beta = 0 is allowed: a feature that was zero so far has weight zero, and learns when it comes."""
    data = cases.data("binary", False)
    trail = ref.learn(ref.Perceptron(), ref.FTRL(0.3, 0.0), "binary", data.X, data.signs, epochs=EPOCHS)
    model = classifier("perceptron", "ftrl(0.3, beta=0.0)").fit(data.X, data.y)
    assert_close(learned(model), expected(trail, ref.last(trail)), "")
