"""Arrays that travel come back bit for bit."""

from __future__ import annotations

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from onlearn.cluster.message import changed, changes, pack, pack_array, unpack_array

KINDS = st.sampled_from(["f8", "f4", "i8", "i4", "u1", "u8", "?"])
ANY = KINDS.flatmap(
    lambda kind: arrays.arrays(np.dtype(kind), arrays.array_shapes(max_dims=2, max_side=40, min_side=0))
)


@given(ANY)
def test_packed_arrays_come_back(array: np.ndarray) -> None:
    found = unpack_array(pickle.loads(pickle.dumps(pack_array(array))))
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert found.tobytes() == np.ascontiguousarray(array).tobytes()


@given(st.lists(st.integers(0, 2**62), max_size=50))
def test_places_come_back(places: list[int]) -> None:
    array = np.array(sorted(places), dtype=np.int64)
    assert unpack_array(pack_array(array)).tolist() == array.tolist()


def test_places_and_equal_numbers_take_few_bytes() -> None:
    assert pack({}, {"at": np.arange(100_000)}).nbytes < 1000
    assert pack({}, {"w": np.zeros(100_000)}).nbytes < 1000


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(*[arrays.arrays(np.float64, n)] * 2)))
def test_changes_make_the_new_arrays_of_the_old(pair: tuple[np.ndarray, np.ndarray]) -> None:
    before, after = ({"w": one, "t": one[:1].copy()} for one in pair)
    made = changed(before, changes(before, after))
    assert all(made[name].tobytes() == after[name].tobytes() for name in after)


def test_arrays_of_another_size_and_new_ones_are_sent_whole() -> None:
    made = changes({"w": np.zeros(3)}, {"w": np.zeros(4), "u": np.ones(1)})
    assert {name: array.tolist() for name, array in made.items()} == {"w": [0.0] * 4, "u": [1.0]}
    assert changes({"w": np.zeros(3)}, {"w": np.zeros(3)}) == {}


def test_zeros_of_either_sign_differ() -> None:
    made = changed({"w": np.zeros(4)}, changes({"w": np.zeros(4)}, {"w": np.array([0.0, -0.0, 0.0, 0.0])}))
    assert np.signbit(made["w"]).tolist() == [False, True, False, False]
