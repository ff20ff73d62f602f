"""Kernel classifiers of strings and trees."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

import onlearn
from onlearn import KernelClassifier, kernels


def words(rows: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Strings over four letters; the class says whether "abc" occurs."""
    rng = np.random.default_rng(seed)
    texts = ["".join(rng.choice(list("abcd"), size=20)) for _ in range(rows)]
    texts = [text[:8] + "abc" + text[11:] if n % 2 else text.replace("abc", "cba") for n, text in enumerate(texts)]
    return texts, np.array(["abc" in text for text in texts])


@pytest.mark.parametrize("kernel", ["substrings(3, 3)", "normalize(substrings(1, 4))"])
def test_strings_are_learned_saved_and_learned_again(kernel: str, tmp_path: Path) -> None:
    texts, y = words(300, 0)
    others, u = words(200, 1)
    model = KernelClassifier(kernel, random_state=0).fit(texts, y)
    assert model.score(others, u) > 0.9
    model.save(tmp_path / "m.onl")
    loaded = onlearn.load(tmp_path / "m.onl")
    np.testing.assert_array_equal(loaded.decision_function(others), model.decision_function(others))
    model.partial_fit(others, u)
    loaded.partial_fit(np.array(others, dtype=object), u)
    np.testing.assert_array_equal(loaded.decision_function(texts), model.decision_function(texts))
    assert isinstance(model.support_examples_[0], str)


def test_merged_support_strings_give_the_scores_of_the_sum() -> None:
    texts, y = words(120, 2)
    kernel = kernels.Substrings(1, 3, 0.7)
    model = KernelClassifier(kernel, random_state=0).fit(texts, y)
    others, _ = words(30, 3)
    plain = kernel(others, model.support_examples_) @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(others), plain, rtol=1e-9)


def test_trees_are_learned() -> None:
    trees = [
        f"(S (NP (D the) (N {noun})) (VP (V {verb})))" for noun in ("dog", "cat", "man") for verb in ("ran", "sat")
    ]
    trees += [
        f"(S (NP (N {noun})) (VP (V {verb}) (NP (N it))))" for noun in ("he", "she", "who") for verb in ("saw", "had")
    ]
    y = np.repeat([0, 1], 6)
    model = KernelClassifier("trees(decay=0.5)", epochs=None, random_state=0).fit(trees, y)
    assert model.score(trees, y) == 1.0
    assert model.predict(["(S (NP (D the) (N it)) (VP (V ran)))", ("S", ("NP", ("N", "he")), ("VP", ("V", "saw"), ("NP", ("N", "it"))))]).tolist() == [0, 1]  # fmt: skip # noqa: E501


def test_bad_objects_get_one_sentence() -> None:
    texts, y = words(20, 0)
    with pytest.raises((TypeError, ValueError), match="3"):
        KernelClassifier("substrings(1, 3)").fit([*texts[:3], None, *texts[4:]], y)
    with pytest.raises((TypeError, ValueError)):
        KernelClassifier("gaussian").fit(texts, y)
    with pytest.raises((TypeError, ValueError)):
        KernelClassifier("normalize(substrings(1, 3))").fit(["", *texts[1:]], y)
    with pytest.raises((TypeError, ValueError)):
        KernelClassifier("substrings(1, 3)").fit(np.zeros((20, 2)), y)
    with pytest.raises(ValueError, match="20"):
        KernelClassifier("substrings(1, 3)").fit(texts, y[:10])
    with pytest.raises(ValueError):
        KernelClassifier("substrings(1, 3)").fit([], [])


def test_promoters_by_common_substrings(data) -> None:  # type: ignore[no-untyped-def]
    rows = [line.split(",") for line in (data("promoters") / "promoters.data").read_text().splitlines() if line.strip()]
    texts, y = [row[-1].strip() for row in rows], np.array([row[0].strip() for row in rows])
    right = 0
    for fold in range(5):
        test = np.arange(len(y)) % 5 == fold
        model = KernelClassifier("normalize(substrings(3, 6))", epochs=10, random_state=0)
        model.fit([text for text, out in zip(texts, test) if not out], y[~test])
        right += int(np.sum(model.predict([text for text, out in zip(texts, test) if out]) == y[test]))
    assert right / len(y) > 0.75


def test_trees_of_nested_lists_are_saved(tmp_path: Path) -> None:
    trees = [["S", ["A", "x"], ["B", "y"]], ["S", ["C", "x"]], ["S", ["A", "z"], ["B", "y"]], ["S", ["C", "q"]]]
    model = KernelClassifier("trees", random_state=0).fit(trees, [0, 1, 0, 1])
    model.save(tmp_path / "m.onl")
    loaded = onlearn.load(tmp_path / "m.onl")
    np.testing.assert_array_equal(loaded.decision_function(trees), model.decision_function(trees))


def test_deep_trees_of_tuples_are_saved(tmp_path: Path) -> None:
    def deep(label: str) -> tuple:
        tree: tuple = (label, "x")
        for _ in range(1500):  # more than Python calls within each other
            tree = ("S", tree)
        return tree

    trees = [deep("A"), deep("B")]
    model = KernelClassifier("trees(subtree, decay=0.5)", warm_start=True, random_state=0).fit(trees, [0, 1])
    model.save(tmp_path / "m.onl")
    loaded = onlearn.load(tmp_path / "m.onl").fit(trees, [0, 1])
    np.testing.assert_array_equal(loaded.decision_function(trees), model.fit(trees, [0, 1]).decision_function(trees))


def test_neither_characters_nor_column_names_count_as_strings() -> None:
    texts, y = words(20, 0)
    model = KernelClassifier("substrings(1, 2)", random_state=0).fit(texts, y)
    with pytest.raises(TypeError, match="must be a list of strings"):
        model.predict("abc")
    with pytest.raises(TypeError, match="flat list of strings, or one column"):
        model.predict(pd.DataFrame({"text": texts, "more": texts}))
    assert model.predict(pd.DataFrame({"text": texts})).tolist() == model.predict(texts).tolist()
    assert model.predict(pa.array(texts)).tolist() == model.predict(texts).tolist()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, pd.DataFrame])
def test_functions_of_a_matrix_get_a_matrix(form) -> None:
    def squares(A):
        return A.multiply(A).tocsr() if sp.issparse(A) else A**2

    def products(A, B):
        return squares(A) @ squares(B).T if not sp.issparse(A) else (squares(A) @ squares(B).T).toarray()

    X = np.random.default_rng(0).normal(size=(80, 3))
    y = (X[:, 0] ** 2 > X[:, 1] ** 2).astype(int)
    plain = KernelClassifier("linear", random_state=0).fit(X**2, y).decision_function(X**2)
    for kernel in (kernels.compose("linear", squares), kernels.Callable(products, pairs=False)):
        model = KernelClassifier(kernel, random_state=0).fit(form(X), y)
        np.testing.assert_allclose(model.decision_function(form(X)), plain, rtol=1e-9, atol=1e-9)
        model.partial_fit(form(X), y)
