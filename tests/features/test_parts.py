"""Roles, interactions and pruning."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import onlearn
from onlearn.features import (
    Category,
    Counts,
    Features,
    Interaction,
    Number,
    Text,
    assemble,
    extractors_for,
    guess_roles,
    prune,
    prune_weights,
)
from onlearn.features.assemble import rows_of_names, side_by_side

# ---------------------------------------------------------------------- roles


def test_roles_of_a_table_like_the_census():
    rng = np.random.default_rng(0)
    n = 200
    table = pd.DataFrame(
        {
            "age": rng.integers(17, 90, n),
            "workclass": rng.choice(["Private", "State-gov", "Self-emp"], n),
            "fnlwgt": rng.integers(10_000, 900_000, n),
            "education": rng.choice([f"{k}th" for k in range(1, 13)], n),
            "married": rng.integers(0, 2, n),
            "gain": np.where(rng.random(n) < 0.9, 0.0, 5000.5),
            "remote": rng.random(n) < 0.5,
            "row": np.arange(n),
            "customer_id": rng.permutation(10**6)[:n],
            "code": [f"u{k:05x}" for k in rng.permutation(10**5)[:n]],
            "empty": [None] * n,
            "when": pd.Timestamp("2020-01-01"),
            "priced": [f"{k / 7:.2f}" for k in range(n)],
        }
    )
    found = {name: guess.role for name, guess in guess_roles(table).items()}
    assert found == {
        "age": "numeric", "workclass": "categorical", "fnlwgt": "numeric", "education": "categorical",
        "married": "numeric", "gain": "numeric", "remote": "numeric", "row": "ignore", "customer_id": "ignore",
        "code": "ignore", "empty": "ignore", "when": "ignore", "priced": "numeric",
    }  # fmt: skip
    assert all(guess.reason for guess in guess_roles(table).values())


def test_roles_of_messages():
    words = ["win", "cash", "now", "call", "me", "at", "home", "tonight", "free", "offer", "see", "you", "there"]
    rng = np.random.default_rng(1)
    table = {
        "label": rng.choice(["ham", "spam"], 100).tolist(),
        "text": [" ".join(rng.choice(words, rng.integers(2, 15))) for _ in range(100)],
        "dna": ["".join(rng.choice(list("acgt"), 60)) for _ in range(100)],
        "title": [" ".join(rng.choice(words, 2)) for _ in range(100)],
    }
    found = {name: guess.role for name, guess in guess_roles(table).items()}
    assert found == {"label": "categorical", "text": "text", "dna": "text", "title": "text"}
    assert guess_roles({"c": ["red", "blue"]})["c"].role == "categorical"


def test_texts_of_one_word():
    rng = np.random.default_rng(0)
    genes = ["".join(rng.choice(list("acgt"), 60)) for _ in range(200)]
    table = {
        "gene": genes,
        "name": [f"g{n // 2 if n < 4 else n}" for n in range(200)],  # hardly two are the same
        "digest": [f"{n:040x}" for n in rng.integers(0, 1 << 60, 200)],
        "url": [f"http://a.example/{n}/{'long/' * 10}" for n in range(200)],
        "kind": ["x" if n % 2 else "y" for n in range(200)],
    }
    roles = guess_roles(table)
    assert {name: (role.role, role.one_word) for name, role in roles.items()} == {
        "gene": ("text", True), "name": ("ignore", True), "digest": ("ignore", False), "url": ("text", False),
        "kind": ("categorical", False),
    }  # fmt: skip
    assert "99 % of the values differ" in roles["name"].reason
    gene, url, _ = extractors_for(roles)
    assert (gene.ngrams, gene.chars) == (None, (2, 5)) and (url.ngrams, url.chars) == ((1, 2), None)
    assert extractors_for(roles, text={"ngrams": (1, 1)})[0].chars is None


def test_roles_of_adult(data):
    table = pd.read_csv(data("adult/adult.data"), header=None, skipinitialspace=True, na_values="?", nrows=5000)
    table.columns = [f"c{k}" for k in range(15)]
    found = {name: guess.role for name, guess in guess_roles(table).items()}
    numeric = {"c0", "c2", "c4", "c10", "c11", "c12"}
    assert found == {name: "numeric" if name in numeric else "categorical" for name in table.columns}


def test_auto_fills_in_what_is_not_named():
    table = {"t": ["so it is then", "what is this thing"], "n": [1, 2], "c": ["x", "y"]}
    features = Features([Number("n", scale="none"), "auto"]).fit(table)
    assert features.extractors_ == [Number("n", scale="none"), Text("t"), Category("c")]
    assert set(features.roles_) == {"t", "c"}
    alone = extractors_for({"t": "text", "x": "ignore"}, text={"ngrams": (1, 1)})
    assert alone == [Text("t", ngrams=(1, 1), prefix="")]
    with pytest.raises(ValueError, match="the role of column 'a' must be"):
        extractors_for({"a": "numerical"})


# ---------------------------------------------------------------------- interactions


def brute(rows, columns, degree):
    """Products by name; rows: dicts from column to a dict from feature to value."""
    found = []
    for row in rows:
        sums = {}
        sets = [columns] if columns else list(itertools.combinations(row, degree))
        for chosen in sets:
            for combination in itertools.product(*(row.get(column, {}).items() for column in chosen)):
                names = [name for name, _ in combination]
                if len(set(names)) == len(names):
                    key = frozenset(names)
                    sums[key] = float(np.prod([value for _, value in combination]))
        found.append(sums)
    return found


INTERACTIONS = [
    Interaction("a", "b"), Interaction("b", "t"), Interaction("t", "t"), Interaction("a", "b", "t"),
    Interaction(), Interaction(degree=3), Interaction("t", "t", "a"), Interaction("t", "t", "t"),
]  # fmt: skip


@pytest.mark.parametrize("interaction", INTERACTIONS, ids=repr)
def test_interactions_are_those_of_loops(interaction):
    table = {"a": [2.0, 3.0, None], "b": ["x", "y", "x"], "t": ["p q p", "q r s p", ""]}
    extractors = [Number("a", scale="none"), Category("b"), Text("t", ngrams=(1, 1), weighting="counts", norm=False)]
    features = Features([*extractors, interaction])
    X = features.fit_transform(table).toarray()
    rows = []
    for i in range(3):
        counts = {f"t:{word}": float(table["t"][i].split().count(word)) for word in table["t"][i].split()}
        number = {} if table["a"][i] is None else {"a": table["a"][i]}
        rows.append({"a": number, "b": {f"b={table['b'][i]}": 1.0}, "t": counts})
    names = features.get_feature_names_out()
    for i, expected in enumerate(brute(rows, interaction.columns, interaction.degree)):
        found = {frozenset(name.split("*")): X[i, k] for k, name in enumerate(names) if "*" in name and X[i, k]}
        assert found == expected
    assert len(set(names)) == len(names)


def test_interactions_of_namespaces():
    rows = side_by_side([rows_of_names([["x", "y"], ["x"]], "a^"), rows_of_names([[("u", 3.0)], []], "b^")])
    features = Features([Interaction("a", "b")])
    X = features.fit_transform(rows).toarray()
    assert list(features.get_feature_names_out()) == ["a^x", "a^y", "b^u", "a^x*b^u", "a^y*b^u"]
    assert X.tolist() == [[1, 1, 3, 3, 3], [1, 0, 0, 0, 0]]
    with pytest.raises(ValueError, match="is for tables"):
        Features([Number("a")]).fit(rows)


def test_wrong_interactions_are_named():
    with pytest.raises(ValueError, match="of degree 2 or 3, not 4"):
        Interaction("a", "b", "c", "d")
    with pytest.raises(ValueError, match="cannot have degree 3"):
        Interaction("a", "b", degree=3)
    with pytest.raises(TypeError, match="names of columns"):
        Interaction("a", 3)


# ---------------------------------------------------------------------- pruning

TEXTS = ["a b c", "a b", "a d", "e e", "a f"]
LABELS = np.array(["x", "x", "y", "y", "y"])


def plain():
    return Features([Text("text", ngrams=(1, 1), weighting="tfidf", norm=False, prefix="")], dtype="float64")


def test_pruning_by_count():
    features = plain()
    X = features.fit_transform(TEXTS)
    kept = prune(features, X, min_count=2)
    assert list(features.get_feature_names_out()) == ["a", "b"]
    np.testing.assert_array_equal(features.transform(TEXTS).toarray(), X[:, kept].toarray())
    features.partial_fit(["c c z"])
    assert list(features.get_feature_names_out()) == ["a", "b"]
    hashing = plain().set_params(bits=4).fit(TEXTS)
    hashing.keep(np.array([0]), state="hash")
    assert hashing.n_features_out_ == 17 and hashing.transform(["a q r"]).nnz >= 2


def test_pruning_by_count_in_a_class():
    features = plain()
    X = features.fit_transform(TEXTS)
    kept = prune(features, X, LABELS, min_count=2, per_class=True)
    assert list(features.get_feature_names_out()) == ["a", "b"]
    features = plain()
    X = features.fit_transform([*TEXTS, "d c"])
    kept = prune(features, X, [*LABELS, "x"], min_count=2, per_class=True)
    assert list(features.get_feature_names_out()) == ["a", "b", "c"]  # d is in one row of each class
    assert len(kept) == 3
    with pytest.raises(ValueError, match="give their labels"):
        prune(features, X, per_class=True)


def test_counting_in_batches_is_counting_at_once():
    X = sp.csr_matrix(np.array([[1, 0, 2], [0, 0, 3], [1, 1, 0], [1, 0, 0]]))
    y = ["p", "q", "q", "p"]
    counts = Counts()
    counts.add(X[:1, :1], y[:1])
    counts.add(X[1:], y[1:])
    np.testing.assert_array_equal(counts.often(3), [0])
    np.testing.assert_array_equal(counts.often(2, per_class=True), [0])
    assert len(Counts().often(1)) == 0
    with pytest.raises(ValueError, match="4 rows but 2 labels"):
        counts.add(X, y[:2])


def test_pruning_by_weight():
    features = Features([Text("text", ngrams=(1, 1), prefix="")])
    X = features.fit_transform(TEXTS)
    model = onlearn.LogisticRegression(random_state=0).fit(X, LABELS)
    weights = model.coef_
    kept = prune_weights(features, weights, np.sort(np.abs(weights[0]))[-3])
    assert len(kept) == 2 == len(features.vocabulary_)
    np.testing.assert_allclose(
        Features._restore(*features._pack()).transform(TEXTS).toarray() > 0, (X[:, kept] > 0).toarray()
    )
    with pytest.raises(ValueError, match="weights for 6 features"):
        prune_weights(features, weights, 0.1)
    with pytest.raises(ValueError, match="no vocabulary"):
        prune(Features().fit(X), X)


def test_places_that_are_counted_up_to_the_end_begin_anew(monkeypatch):
    """Sums of a row are found by where they were put, counted over all rows a thread has summed."""
    monkeypatch.setattr(assemble, "MOST", 40)
    monkeypatch.setattr(assemble, "FREE", [])
    rows = rows_of_names([["a", "b", "a"], ["b", "c"], ["a"]])
    expected = Features().fit(rows).transform(rows)
    features = Features()
    for _ in range(30):
        assert (features.learn_transform(rows, ordered=False) != expected).nnz == 0
    assert assemble.FREE[0].before < 40
