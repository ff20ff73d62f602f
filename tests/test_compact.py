"""Arrays stored in less room come back bit for bit."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import onlearn
from onlearn import model_file
from onlearn.compact_arrays import compact, expand

KINDS = st.sampled_from(["<f8", "<f4", "<i8", "<i4", "<u8", "<u4", "<u2", "<u1"])


@st.composite
def mostly_one_value(draw):
    made = draw(arrays.arrays(draw(KINDS), arrays.array_shapes(max_dims=2, max_side=60)))
    where = draw(arrays.arrays(bool, made.shape))
    made[where] = made.flat[0]
    return made


@given(mostly_one_value())
def test_what_is_expanded_is_what_was_compacted(array):
    stored, known = compact({"a": array}, large=0)
    back = expand(stored, known)
    assert list(back) == ["a"]
    assert back["a"].dtype == array.dtype and back["a"].shape == array.shape
    assert back["a"].tobytes() == array.tobytes()


def test_room_is_saved_where_most_is_alike_or_small():
    sparse, counts = np.ones((1000, 20)), np.arange(10_000)
    sparse[::10, 3] = 0.25
    stored, _ = compact({"sparse": sparse, "counts": counts})
    assert sum(a.nbytes for k, a in stored.items() if k.startswith("sparse")) < sparse.nbytes / 20
    assert stored["counts"].nbytes == counts.nbytes / 4


def test_negative_zero_is_not_zero():
    array = np.zeros(100)
    array[3] = -0.0
    assert np.signbit(expand(*compact({"a": array}, large=0))["a"])[3]


@pytest.fixture
def sparse_model(tmp_path):
    rng = np.random.default_rng(0)
    X = (rng.random((60, 3000)) < 0.01).astype(float)
    model = onlearn.AROW(random_state=0).fit(X, rng.integers(0, 10, 60))
    model.save(tmp_path / "m.onl")
    return model, X, tmp_path / "m.onl"


def test_a_model_of_many_classes_takes_less_room_and_is_the_same(sparse_model, tmp_path):
    model, X, path = sparse_model
    assert path.stat().st_size < 0.5 * sum(array.nbytes for array in model_file.describe(model)[1].values())
    back = onlearn.load(path)
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    back.save(tmp_path / "again.onl")
    assert (tmp_path / "again.onl").read_bytes() == path.read_bytes()


def _flip(known, arrays):
    arrays["training.g.w differs"][0] ^= 255


DAMAGE = {
    "bits that contradict the values": (_flip, "contradicts itself"),
    "a shape that would not fit in memory": (lambda k, a: k.update(shape=[10**15]), "contradicts itself"),
    "a value that is no number": (lambda k, a: k.update(common=np.float64("nan").view(np.uint64).item()), "not finite"),
    "a value of too many bits": (lambda k, a: k.update(common=2**70), "must be a whole number"),
    "a value that is no bits": (lambda k, a: k.update(common=1.5), "must be a whole number"),
    "an unknown type": (lambda k, a: k.update(dtype="O"), "'O' for compact.training.g.w.dtype"),
    "no type": (lambda k, a: k.pop("dtype"), "lacks compact.training.g.w.dtype"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_what_cannot_have_been_compacted_is_refused(sparse_model, name):
    _, _, path = sparse_model
    header, arrays, known = model_file._read(path, arrays=True)
    damage, says = DAMAGE[name]
    damage(known["training.g.w"], arrays)
    model_file.write_arrays(path, arrays, {"onlearn": json.dumps({**header, "compact": known})})
    with pytest.raises(model_file.ModelFileError, match=says):
        onlearn.load(path)


def test_weights_that_are_all_nan_are_not_saved(sparse_model, tmp_path):
    model, _, _ = sparse_model
    model._training.g.w[:] = np.nan
    with pytest.raises(model_file.ModelFileError, match="nothing was saved"):
        model.save(tmp_path / "nan.onl")
    assert not (tmp_path / "nan.onl").exists()
