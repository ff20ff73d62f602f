"""Kernel principal components: against scikit-learn's, plain PCA and the definition; degenerate data; its file."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Reference
from sklearn.pipeline import make_pipeline

import onlearn
from onlearn import KernelPCA, kernels
from onlearn.model_file import ModelFileError, read_file, write_arrays

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
NEW = RNG.normal(size=(15, 4))
WORDS = ["ACGT", "ACGA", "TTTT", "TTGT", "ACTT", "GGGG", "ACGTACGT"]
TREES = ["(A (B x))", "(A (B x) (B x))", "(A (B x) (C y))", "(A (C y))", "(B x)"]


def plain(K, new):
    """The definition, step by step: all components of the fitted examples and of new ones."""
    n = len(K)
    one = np.full((n, n), 1 / n)
    centred = K - one @ K - K @ one + one @ K @ one
    ones = np.full((len(new), n), 1 / n)
    other = new - ones @ K - new @ one + ones @ K @ one
    values, vectors = np.linalg.eigh(centred)
    keep = np.flatnonzero(values > 1e-9 * values[-1])[::-1]
    return values[keep], vectors[:, keep] * np.sqrt(values[keep]), other @ vectors[:, keep] / np.sqrt(values[keep])


def same_up_to_sign(found, wanted, atol=1e-8):
    signs = np.sign(np.sum(found * wanted, axis=0))
    np.testing.assert_allclose(found * signs, wanted, atol=atol)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("gaussian(gamma=0.3)", dict(kernel="rbf", gamma=0.3)),
        ("polynomial(3, coef0=1, gamma=0.5)", dict(kernel="poly", degree=3, coef0=1, gamma=0.5)),
        ("linear", dict(kernel="linear")),
        ("normalize(linear)", dict(kernel="cosine")),
        ("laplacian(0.3)", None),
        ("0.5*gaussian(2) + polynomial(2)", None),
    ],
)
def test_as_scikit_learn_has_it(text, other):
    mine = KernelPCA(text, 4)
    fitted = mine.fit_transform(X)
    if other is None:
        k, reference = kernels.get(text), Reference(4, kernel="precomputed")
        wanted, new = reference.fit_transform(k(X)), reference.transform(k(NEW, X))
    else:
        reference = Reference(4, **other)
        wanted, new = reference.fit_transform(X), reference.transform(NEW)
    np.testing.assert_allclose(mine.eigenvalues_, reference.eigenvalues_, rtol=1e-8)
    same_up_to_sign(fitted, wanted)
    same_up_to_sign(mine.transform(X), wanted)
    same_up_to_sign(mine.transform(NEW), new)


def test_the_linear_kernel_is_plain_pca():
    mine, reference = KernelPCA("linear").fit(X + 100.0), PCA().fit(X)
    assert mine.n_components_ == 4
    np.testing.assert_allclose(mine.explained_variance_, reference.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(mine.explained_variance_ratio_, reference.explained_variance_ratio_, rtol=1e-6)
    same_up_to_sign(mine.transform(NEW + 100.0), reference.transform(NEW), atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10**6), st.integers(2, 30), st.sampled_from(["gaussian(1.5)", "polynomial(2)", "substrings(1, 3)"])
)
def test_the_definition(seed, rows, text):
    rng = np.random.default_rng(seed)
    if text.startswith("substrings"):
        data, new = (["".join(rng.choice(list("abc"), rng.integers(1, 6))) for _ in range(n)] for n in (rows, 5))
    else:
        data, new = rng.normal(size=(rows, 2)), rng.normal(size=(5, 2))
    k = kernels.get(text)
    values, _, projected = plain(k(data), k(new, data))
    model = KernelPCA(text).fit(data)
    many = min(len(values), model.n_components_)
    assert abs(len(values) - model.n_components_) <= 3 or not len(values)  # the smallest are of the size of rounding
    np.testing.assert_allclose(model.eigenvalues_[:many], values[:many], atol=1e-8 * max(1.0, values.max(initial=0)))
    # eigenvectors of equal eigenvalues may be turned; what does not turn are inner products
    found = model.transform(new)[:, :many]
    large = values[:many] > 1e-6 * values.max(initial=0.0)
    gap = np.append(values[1:many], 0.0) < (1 - 1e-6) * values[:many]
    upto = int(np.max(np.flatnonzero(gap & large), initial=-1)) + 1
    wanted = projected[:, :upto]
    np.testing.assert_allclose(found[:, :upto] @ found[:, :upto].T, wanted @ wanted.T, atol=1e-6 * k.diag(new).max())


def test_variances_are_those_of_the_components():
    model = KernelPCA("gaussian(2)", 5).fit(X)
    np.testing.assert_allclose(np.var(model.transform(X), axis=0, ddof=1), model.explained_variance_, rtol=1e-9)
    assert 0 < model.explained_variance_ratio_.sum() < 1
    assert KernelPCA("gaussian(2)").fit(X).explained_variance_ratio_.sum() == pytest.approx(1)


class TestNystroem:
    def test_with_all_as_landmarks_it_is_exact(self):
        exact = KernelPCA("gaussian(2)", 6, method="exact").fit(X)
        model = KernelPCA("gaussian(2)", 6, method="nystroem", n_landmarks=60, random_state=0).fit(X)
        assert (exact.method_, model.method_) == ("exact", "nystroem")
        np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-8)
        np.testing.assert_allclose(model.transform(NEW), exact.transform(NEW), atol=1e-6)  # signs too
        np.testing.assert_allclose(model.explained_variance_ratio_, exact.explained_variance_ratio_, rtol=1e-6)

    def test_a_finite_map_needs_few(self):
        exact = KernelPCA("polynomial(2)", 5, method="exact").fit(X)
        model = KernelPCA("polynomial(2)", 5, method="nystroem", n_landmarks=15, random_state=0).fit(X)
        np.testing.assert_allclose(model.transform(NEW), exact.transform(NEW), atol=1e-6)

    def test_near_on_many_rows(self):
        rows = RNG.normal(size=(1500, 3))
        exact = KernelPCA("gaussian(1.5)", 4, method="exact").fit(rows)
        model = KernelPCA("gaussian(1.5)", 4, method="nystroem", n_landmarks=150, random_state=0).fit(rows)
        np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-3)
        assert (model.eigenvalues_ <= exact.eigenvalues_ * (1 + 1e-9)).all()
        for k in range(4):
            both = np.corrcoef(model.transform(rows)[:, k], exact.transform(rows)[:, k])[0, 1]
            assert abs(both) > 0.99
        assert 0 < model.explained_variance_ratio_.sum() <= exact.explained_variance_ratio_.sum() * (1 + 1e-6)

    def test_auto_is_exact_for_few(self, monkeypatch):
        from onlearn.estimators import kernel_pca

        assert KernelPCA(n_components=2).fit(X).method_ == "exact"
        monkeypatch.setattr(kernel_pca, "MOST_EXACT", 50)
        monkeypatch.setattr(kernel_pca, "LANDMARKS", 20)
        model = KernelPCA(n_components=2, random_state=0).fit(X)
        assert model.method_ == "nystroem" and len(model.learned_.means) == 20
        assert len(KernelPCA(n_components=7, random_state=0).fit(X).learned_.means) == 35
        assert KernelPCA("precomputed", 2).fit(kernels.Gaussian()(X)).method_ == "exact"

    def test_strings(self):
        exact = KernelPCA("substrings(1, 3)", 3).fit(WORDS)
        model = KernelPCA("substrings(1, 3)", 3, method="nystroem", n_landmarks=7, random_state=0).fit(WORDS)
        np.testing.assert_allclose(model.transform(["ACCA"]), exact.transform(["ACCA"]), atol=1e-6)


@pytest.mark.parametrize("rows", [150, 400])
def test_few_components_of_many_are_those_of_all(rows):
    """Those of Lanczos' method, with larger matrices."""
    data = RNG.normal(size=(rows, 3))
    few, every = KernelPCA("gaussian(1)", 5).fit(data), KernelPCA("gaussian(1)", rows).fit(data)
    np.testing.assert_allclose(few.eigenvalues_, every.eigenvalues_[:5], rtol=1e-9)
    np.testing.assert_allclose(few.transform(NEW[:, :3]), every.transform(NEW[:, :3])[:, :5], atol=1e-6)


@pytest.mark.parametrize(("text", "examples", "new"), [("substrings(1, 2)", WORDS, "TTAA"), ("trees", TREES, "(A x)")])
def test_strings_and_trees(text, examples, new):
    model = KernelPCA(text, 3)
    k = kernels.get(text)
    _, wanted, projected = plain(k(examples), k([new], examples))
    same_up_to_sign(model.fit_transform(examples), wanted[:, :3])
    np.testing.assert_allclose(np.abs(model.transform([new])), np.abs(projected[:, :3]), atol=1e-8)
    with pytest.raises(AttributeError):
        model.n_features_in_  # noqa: B018


def test_a_kernel_matrix():
    k = kernels.Gaussian()
    given, usual = KernelPCA("precomputed", 4).fit(k(X)), KernelPCA(k, 4).fit(X)
    np.testing.assert_allclose(given.transform(k(NEW, X)), usual.transform(NEW), atol=1e-9)
    with pytest.raises(ValueError, match="must be square"):
        KernelPCA("precomputed").fit(k(X, NEW))
    with pytest.raises(ValueError, match="method must be 'exact'"):
        KernelPCA("precomputed", method="nystroem").fit(k(X))
    broken = k(X)
    broken[0, 1] = 5.0
    with pytest.raises(ValueError, match="not symmetric"):
        KernelPCA("precomputed").fit(broken)


def test_sparse_and_single_precision():
    rows = X * (RNG.random(X.shape) < 0.5)
    dense = KernelPCA("gaussian(2)", 3).fit(rows)
    sparse = KernelPCA("gaussian(2)", 3).fit(sp.csr_matrix(rows))
    np.testing.assert_allclose(sparse.transform(sp.csr_matrix(rows)), dense.transform(rows), atol=1e-9)
    single = KernelPCA("gaussian(2)", 3).fit(rows.astype(np.float32))
    assert (
        single.fit_transform(rows.astype(np.float32)).dtype
        == single.transform(rows.astype(np.float32)).dtype
        == np.float32
    )
    np.testing.assert_allclose(single.transform(rows.astype(np.float32)), dense.transform(rows), atol=1e-4)


class TestDegenerate:
    def test_no_more_components_than_directions(self):
        model = KernelPCA("linear", 10).fit(X)
        assert model.n_components_ == 4 == model.transform(NEW).shape[1] == len(model.get_feature_names_out())
        flat = KernelPCA("gaussian").fit(np.repeat(X[:3], 5, axis=0))
        assert flat.n_components_ == 2

    @pytest.mark.parametrize("method", ["exact", "nystroem"])
    @pytest.mark.parametrize(
        ("kernel", "rows"),
        [
            ("gaussian", np.ones((1, 2))),
            ("gaussian", np.ones((7, 2))),
            ("linear", np.zeros((5, 2))),
            ("linear", np.full((5, 2), 1e8)),
            (kernels.Callable(lambda x, z: 5.0), X),
        ],
    )
    def test_examples_that_do_not_differ(self, kernel, rows, method):
        model = KernelPCA(kernel, 3, method=method, random_state=0).fit(rows)
        assert model.n_components_ == 1 and model.eigenvalues_.tolist() == [0.0]
        assert model.explained_variance_ratio_.tolist() == [0.0]
        assert (model.transform(rows[:2]) == 0).all() and (model.fit_transform(rows) == 0).all()

    @pytest.mark.parametrize("method", ["exact", "nystroem"])
    @pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e9])
    def test_scales(self, scale, method):
        settings = dict(n_components=3, method=method, random_state=0)
        plain = KernelPCA(kernels.Gaussian(2), **settings).fit(X).transform(NEW)
        scaled = KernelPCA(scale * kernels.Gaussian(2), **settings).fit(X).transform(NEW)
        np.testing.assert_allclose(scaled / np.sqrt(scale), plain, atol=1e-6)

    def test_two_examples(self):
        found = KernelPCA("linear").fit_transform(np.array([[0.0], [4.0]]))
        np.testing.assert_allclose(np.abs(found), [[2.0], [2.0]])
        assert found[0, 0] > 0  # both are as far from 0, so the first is above

    def test_what_is_no_kernel(self):
        with pytest.raises(ValueError, match="not positive semi-definite"):
            KernelPCA("sigmoid(gamma=1, coef0=-1)").fit(X)
        # negative squared distances are none, but centred they are
        k = kernels.Callable(lambda x, z: -float((x - z) @ (x - z)) / 2)
        assert KernelPCA(k, 4).fit(X).eigenvalues_ == pytest.approx(KernelPCA("linear", 4).fit(X).eigenvalues_)

    def test_values_that_overflow(self):
        with pytest.raises(OverflowError, match="too large"):
            KernelPCA("polynomial(2)", 2).fit(X * 1e200)


def test_one_seed_gives_one_result_and_signs_do_not_depend_on_it():
    rows = RNG.normal(size=(300, 3))
    many = [
        KernelPCA("gaussian(2)", 3, method="nystroem", n_landmarks=80, random_state=seed).fit_transform(rows)
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(many[0], many[1])
    assert (np.sum(many[0] * many[2], axis=0) > 0).all()
    for column in KernelPCA("gaussian(2)", 3).fit_transform(rows).T:
        assert column[np.argmax(np.abs(column))] > 0


def test_what_was_fitted_is_the_models_own():
    rows = X.copy()
    model = KernelPCA("gaussian(2)", 3).fit(rows)
    before = model.transform(NEW)
    rows[:] = 0
    model.set_params(n_components=1, kernel="linear")
    np.testing.assert_array_equal(model.transform(NEW), before)


def test_a_linear_learner_behind_it_learns_rings():
    angles = RNG.uniform(0, 2 * np.pi, 300)
    radius = np.repeat([1.0, 3.0], 150)
    rows = np.column_stack([radius * np.cos(angles), radius * np.sin(angles)])
    pipe = make_pipeline(KernelPCA("gaussian(1.5)", 4), onlearn.AveragedPerceptron(random_state=0))
    assert pipe.fit(rows, radius).score(rows, radius) == 1.0


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (dict(method="fast"), "method must be 'auto', 'exact', 'nystroem'"),
        (dict(n_components=0), "n_components must be a whole number of at least 1"),
        (dict(n_components=2.5), "n_components"),
        (dict(n_landmarks=0), "n_landmarks"),
        (dict(kernel="gausian"), "gaussian"),
    ],
)
def test_wrong_parameters_are_refused(settings, why):
    with pytest.raises(ValueError, match=why):
        KernelPCA(**settings).fit(X)
    with pytest.raises(TypeError, match="gaussian works on rows of numbers, not on strings"):
        KernelPCA().fit(["one", "two"])


class TestModelFile:
    @pytest.mark.parametrize(
        ("settings", "data"),
        [
            (dict(kernel="gaussian(2)", n_components=3), X),
            (dict(kernel=kernels.Gaussian(2.0), n_components=3, method="nystroem", n_landmarks=20, random_state=0), X),
            (dict(kernel="gaussian(2)"), sp.csr_matrix(X)),
            (dict(kernel="substrings(1, 3)", n_components=2), WORDS),
            (dict(kernel="trees", n_components=2), TREES),
            (dict(kernel="precomputed", n_components=2), X @ X.T),
        ],
        ids=str,
    )
    def test_it_restores_the_transformer(self, settings, data, tmp_path):
        model = KernelPCA(**settings).fit(data)
        model.save(tmp_path / "m.onl")
        loaded = onlearn.load(tmp_path / "m.onl")
        np.testing.assert_array_equal(loaded.transform(data), model.transform(data))
        assert str(loaded.get_params()) == str(model.get_params()) and loaded.method_ == model.method_
        for name in ("eigenvalues_", "explained_variance_", "explained_variance_ratio_"):
            np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))

    def test_kernels_of_whole_matrices_and_functions_are_refused(self, tmp_path):
        with pytest.raises(ValueError, match="looks at the fitted matrix"):
            KernelPCA("2*precomputed", 2).fit(X @ X.T).save(tmp_path / "m.onl")
        with pytest.raises(ValueError, match="function"):
            KernelPCA(kernels.Callable(lambda x, z: float(x @ z)), 2).fit(X).save(tmp_path / "m.onl")
        assert not (tmp_path / "m.onl").exists()

    def test_damaged_files_are_refused(self, tmp_path):
        KernelPCA("gaussian(2)", 3).fit(X).save(tmp_path / "m.onl")
        header, arrays = read_file(tmp_path / "m.onl")

        def broken(change=lambda facts: None, **other):
            facts = copy.deepcopy(header)
            change(facts)
            text = {"onlearn": json.dumps({**facts, "format": 1})}
            write_arrays(str(tmp_path / "n.onl"), {**arrays, **other}, text)
            with pytest.raises(ModelFileError):
                onlearn.load(tmp_path / "n.onl")

        for name in ("means", "directions", "eigenvalues"):
            broken(**{name: arrays[name][1:]})
            broken(**{name: arrays[name].astype(np.float32)})
        broken(eigenvalues=-arrays["eigenvalues"])
        broken(lambda facts: facts["kernel_pca"].update(method="other"))
        broken(lambda facts: facts["kernel_pca"].update(total=-1.0))
        broken(lambda facts: facts["kernel_pca"].update(n_samples="many"))
        broken(lambda facts: facts.pop("base"))
        broken(lambda facts: facts["kernel"].update(name="nothing"))


@pytest.mark.parametrize("method", ["exact", "nystroem"])
def test_examples_that_are_all_as_far_apart_have_components(method):
    X = np.diag(np.full(60, 1e9))
    model = KernelPCA("gaussian(2)", 2, method=method, random_state=0)
    Z = model.fit_transform(X)
    np.testing.assert_allclose(model.eigenvalues_, [1.0, 1.0])
    np.testing.assert_allclose(Z.T @ Z, np.eye(2), atol=1e-8)
