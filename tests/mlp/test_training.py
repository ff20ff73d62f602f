"""Taking a network through examples: against the textbook's, dense and sparse alike, cut up anywhere, out of files."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plain_network
from onlearn.engine.csr import CSR
from onlearn.mlp.network import Layout
from onlearn.mlp.optimizers import OPTIMIZERS
from onlearn.mlp.scaling import Scaler
from onlearn.mlp.scoring import Design
from onlearn.mlp.stored_network import unpack_network
from onlearn.mlp.training import Diverged, NetworkTraining

OPTIMIZED = ["sgd(0.1)", "sgd(0.1, momentum=0.8)", "adagrad(0.1)", 'adam(0.01, schedule="1/sqrt(t)")']
designs = st.builds(
    Design,
    hidden=st.sampled_from([(), (4,), (3, 2)]),
    unit=st.sampled_from(["relu", "tanh", "logistic"]),
    loss=st.sampled_from(["regression", "logistic", "softmax", "squared"]),
    optimizer=st.sampled_from(OPTIMIZED).map(OPTIMIZERS.get),
    l2=st.sampled_from([0.0, 0.01]),
    batch=st.sampled_from([2, 5]),
    dtype=st.just("float64"),
    scaled=st.booleans(),
)
# Every unit, loss and optimizer, of which single examples have a loop of their own for each combination.
SINGLE = [("relu", "softmax", 0), ("tanh", "logistic", 1), ("logistic", "squared", 2), ("tanh", "regression", 3)]
designs |= st.builds(
    lambda kinds, design: design._replace(
        unit=kinds[0], loss=kinds[1], optimizer=OPTIMIZERS.get(OPTIMIZED[kinds[2]]), batch=1
    ),
    st.sampled_from(SINGLE),
    designs,
)


def rows_for(design, count=23, features=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, features)) * (rng.random((count, features)) < 0.4)
    y = rng.normal(size=count) if design.loss == "regression" else rng.integers(0, 3, count).astype(float)
    return X, y, rng.uniform(0.5, 2.0, count)


def new(design, features=6, sparse=False, outputs=3, seed=1):
    outputs = 1 if design.loss == "regression" else outputs
    return NetworkTraining(design, features, outputs, seed, sparse)


def learn(training, X, y, weight):
    rows, y = training.followed(training.as_kind(X), y)
    training.learn(rows, y, weight, np.arange(len(y)))
    return training


def state(training):
    return [*training.o, training.rates.last, training.rates.step, training.tally, *training.inputs.pack("x").values()]


def assert_same(one, other):
    for a, b in zip(state(one), state(other), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.hand_out(), other.hand_out())


@given(designs, st.booleans())
@settings(max_examples=40)
def test_learning_is_that_of_the_textbook(design, sparse):
    design = design._replace(scaled=False)
    X, y, weight = rows_for(design)
    training = new(design, sparse=sparse)
    W, b = training.layout.views(training.o.w.copy())
    learn(training, X, y, weight).end_pass()
    plain = plain_network.train(design.unit, design.loss, W, b, design.optimizer, design.l2, design.batch, X, y, weight)
    made = training.layout.views(training.hand_out())
    for mine, wanted in zip((*made[0], *made[1]), (*plain[0], *plain[1])):
        np.testing.assert_allclose(mine, wanted, rtol=1e-6, atol=1e-9)
    assert training.by_pass[0]["loss"] == pytest.approx(plain[2] / len(X))


@given(designs, st.booleans(), st.lists(st.integers(1, 9), max_size=5))
@settings(max_examples=40)
def test_a_stream_may_be_cut_up_anywhere(design, sparse, cuts):
    X, y, weight = rows_for(design)
    whole, parts = new(design, sparse=sparse), new(design, sparse=sparse)
    learn(whole, X, y, weight)
    start = 0
    for length in (*cuts, len(X)):
        some = slice(start, start + length)
        if start < len(X):
            learn(parts, X[some], y[some], weight[some])
            parts.hand_out()  # which changes nothing
        start += length
    assert_same(whole, parts)
    np.testing.assert_array_equal(whole.scores(X), parts.scores(X))


@given(designs, st.booleans(), st.integers(1, 22))
@settings(max_examples=40)
def test_a_network_goes_on_from_its_file_as_if_nothing_had_happened(design, sparse, cut):
    X, y, weight = rows_for(design)
    whole, first = new(design, sparse=sparse), new(design, sparse=sparse)
    learn(whole, X, y, weight)
    learn(first, X[:cut], y[:cut], weight[:cut])
    facts, arrays = first.pack()
    back = unpack_network(design, 6, 1, facts, {key: array.copy() for key, array in arrays.items()})
    assert_same(back, first)
    assert_same(learn(back, X[cut:], y[cut:], weight[cut:]), whole)
    assert_same(learn(copy.deepcopy(first), X[cut:], y[cut:], weight[cut:]), whole)


def test_dense_batches_of_sparse_rows_and_sparse_ones_learn_the_same():
    design = Design((4,), "tanh", "softmax", OPTIMIZERS.get("adam"), 0.01, 5, "float64", False)
    X, y, weight = rows_for(design, features=80)
    X[5:] *= np.random.default_rng(1).random(X[5:].shape) < 0.1  # the first batch is learned from as a dense one
    dense, sparse = (learn(new(design, 80, kind), X, y, weight) for kind in (False, True))
    np.testing.assert_allclose(dense.hand_out(), sparse.hand_out(), rtol=1e-9)
    np.testing.assert_allclose(dense.scores(CSR.of(X)), sparse.scores(X), rtol=1e-9)
    assert (sparse.rates.last < sparse.steps).any() and (dense.rates.last == dense.steps).all()


def test_rates_are_remembered_long_enough():
    design = Design((2,), "tanh", "logistic", OPTIMIZERS.get("adam"), 0.0, 1, "float64", False)
    rng = np.random.default_rng(0)
    X = np.zeros((2500, 40))
    X[np.arange(2500), np.minimum(rng.geometric(0.2, 2500) - 1, 39)] = 1.0
    y, weight = rng.integers(0, 2, 2500).astype(float), np.ones(2500)
    sparse = learn(new(design, 40, True, 1), X, y, weight)
    W, b = sparse.layout.views(new(design, 40, True, 1).o.w)
    plain = plain_network.train("tanh", "logistic", W, b, design.optimizer, 0.0, 1, X, y, weight)
    np.testing.assert_allclose(sparse.layout.views(sparse.hand_out())[0][0], plain[0][0], rtol=1e-6, atol=1e-9)


def test_a_network_takes_in_features_as_if_they_had_been_there():
    design = Design((3,), "relu", "softmax", OPTIMIZERS.get("adam"), 0.0, 4, "float64", True)
    X, y, weight = rows_for(design)
    X[:10, 4:] = 0
    grown = learn(new(design, 4, True), X[:10, :4], y[:10], weight[:10])
    grown.grow(6, 3)
    there = new(design, 6, True)
    there.o.w[...] = np.concatenate([grown_start(grown), there.o.w[there.layout.starts[1] :]])
    learn(there, X[:10], y[:10], weight[:10])
    np.testing.assert_allclose(learn(grown, X[10:], y[10:], weight[10:]).scores(X),
                               learn(there, X[10:], y[10:], weight[10:]).scores(X), rtol=1e-9)  # fmt: skip
    with pytest.raises(ValueError, match="new classes"):
        grown.grow(6, 4)


def grown_start(grown):
    """The weights of the first layer that a network which has grown would have begun with."""
    fresh = NetworkTraining(grown.design, 4, 3, 1, True)
    fresh.grow(6, 3)
    return fresh.layout.views(fresh.o.w)[0][0].ravel()


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("sparse", [False, True])
def test_an_error_that_is_not_finite_is_met_before_the_step(batch, sparse):
    design = Design((3,), "relu", "regression", OPTIMIZERS.get("sgd(1e8)"), 0.0, batch, "float32", False)
    X, y, weight = rows_for(design, count=400)
    training = new(design, sparse=sparse)
    with np.errstate(all="ignore"), pytest.raises(Diverged):
        learn(training, X, 1e6 * y, weight)
    assert all(np.isfinite(one).all() for one in training.o)


# ---------------------------------------------------------------------------------------------------- scaling


def test_columns_have_mean_zero_and_deviation_one_unless_a_value_is_far_out():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(1e9, 3.0, 500), np.full(500, 7.0), np.eye(500)[0] * 1e-9])
    scaler, out = Scaler(3, centred=True), np.empty((500, 3))
    scaler.measure(X)
    scaler.apply(X, np.arange(500), out)
    np.testing.assert_allclose([out[:, 0].mean(), out[:, 0].std()], [0, 1], atol=1e-6)
    assert not out[:, 1].any() and out[0, 2] == pytest.approx(10, rel=1e-6)
    scaler.apply(np.full((1, 3), 1e300), np.zeros(1, np.int64), out[:1])
    assert out[0].tolist() == [1e6, 0.0, 1e6]


def test_a_stream_is_scaled_by_the_rows_so_far():
    X = np.random.default_rng(0).normal(3, 2, (50, 2))
    scaler, out = Scaler(2, centred=True), np.empty((50, 2))
    scaler.follow(X, out)
    for n in (0, 1, 7, 49):
        so_far = X[: n + 1]
        size = np.maximum(so_far.std(axis=0), np.abs(so_far - so_far.mean(axis=0)).max(axis=0) / 10)
        np.testing.assert_allclose(out[n], (X[n] - so_far.mean(axis=0)) / np.where(size > 0, size, 1.0), atol=1e-9)


def test_sparse_columns_keep_their_zeros_and_are_divided_if_they_are_large_or_tiny():
    data, indices = np.array([1.0, 4.0, 400.0, 200.0, 1e-9]), np.array([0, 0, 1, 1, 2])
    scaler = Scaler(3, centred=False)
    np.testing.assert_allclose(scaler.follow_sparse(data, indices, np.float64), [1, 4, 10, 5, 1e-9])
    scaler = Scaler(3, centred=False)
    scaler.measure_sparse(data, indices)
    np.testing.assert_allclose(scaler.apply_sparse(data, indices, np.float64), [1, 4, 1, 0.5, 1])
    assert Layout((3, 1)).size == 4
