"""A vocabulary is a dict from names to numbers, with a limit beyond which names share buckets."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlearn.data.batch import hash_name
from onlearn.features import Vocabulary
from onlearn.features.assemble import rows_of_names
from onlearn.features.feature_map import FeatureMap

ROWS = st.lists(st.lists(st.sampled_from([f"w{k}" for k in range(40)]), max_size=12), max_size=12)


class Reference:
    """The same with a dict."""

    def __init__(self, max_names, bits):
        self.known, self.max_names, self.bits = {}, max_names, bits

    def number(self, rows, grow):
        found = []
        for row in rows:
            sums: dict[int, float] = {}
            for name in row:
                number = self.known.get(name)
                if number is None and grow and len(self.known) < self.max_names:
                    number = self.known[name] = len(self.known)
                if number is None and self.full:
                    number = self.max_names + int(hash_name(name, hash_name("p:"))) % 2**self.bits
                if number is not None:
                    sums[number] = sums.get(number, 0.0) + 1.0
            found.append(sums)
        return found

    full = False


@given(st.lists(ROWS, min_size=1, max_size=4), st.sampled_from([1 << 22, 40, 7, 1]), ROWS)
def test_numbers_are_those_of_a_dict(batches, max_names, unseen):
    vocabulary, reference = Vocabulary(max_names, bits=3), Reference(max_names, 3)
    distinct: set[str] = set()
    for rows in batches:
        for row in rows:
            distinct.update(row)
        reference.full = len(distinct) > max_names
        X = vocabulary.number(rows_of_names(rows, "p:"), grow=True)
        same(X, reference.number(rows, True))
    assert vocabulary.names() == [f"p:{name}" for name in reference.known]
    assert vocabulary.width == len(reference.known) + (8 if reference.full else 0)
    before = vocabulary.pack()
    same(vocabulary.number(rows_of_names(unseen, "p:"), grow=False), reference.number(unseen, False))
    for key, array in vocabulary.pack()[1].items():
        np.testing.assert_array_equal(array, before[1][key])


def same(X, expected):
    assert X.has_canonical_format and X.shape[0] == len(expected)
    X.check_format()
    for i, sums in enumerate(expected):
        row = dict(zip(X.indices[X.indptr[i] : X.indptr[i + 1]].tolist(), X.data[X.indptr[i] : X.indptr[i + 1]]))
        assert row == sums
        assert list(row) == sorted(row)


def test_a_table_that_outgrows_itself_many_times():
    rng = np.random.default_rng(0)
    rows = [[f"name {k}" for k in rng.integers(60_000, size=1000)] for _ in range(150)]
    known: dict[str, int] = {}
    expected = [known.setdefault(name, len(known)) for row in rows for name in row]
    vocabulary = Vocabulary()
    found = np.concatenate([vocabulary.learn(rows_of_names(rows[k : k + 7])) for k in range(0, 150, 7)])
    np.testing.assert_array_equal(found, expected)
    assert vocabulary.names() == list(known)
    assert vocabulary.name_of(12_345) == list(known)[12_345]
    assert len(vocabulary) == len(known)


def test_room_made_ahead_changes_no_number():
    rng = np.random.default_rng(0)
    batches = [[[f"w{n}" for n in (rng.pareto(0.5, 400) * 9).astype(int)]] for _ in range(20)]
    plain, told = Vocabulary(), Vocabulary()
    for n, batch in enumerate(batches):
        rows = rows_of_names(batch)
        np.testing.assert_array_equal(plain.learn(rows), told.learn(rows))
        told.expect((n + 1) / len(batches))
        if n == 1:
            assert len(told._slots) > len(plain._slots)
    assert plain.names() == told.names()


def test_names_that_come_no_more_get_no_room():
    vocabulary, rows = Vocabulary(), rows_of_names([[f"w{n}" for n in range(500)]])
    for share in (0.001, 0.002, 0.003):
        vocabulary.learn(rows)
        vocabulary.expect(share)
    assert len(vocabulary._slots) == len(Vocabulary()._slots)


def test_packed_and_unpacked_it_goes_on_as_if_nothing_had_been():
    rows = [rows_of_names([[f"w{k * k % 997}" for k in range(n, n + 300)]], "p:") for n in range(0, 3000, 300)]
    for max_names in (1 << 22, 100):
        whole, part = Vocabulary(max_names, 6), Vocabulary(max_names, 6)
        for k, batch in enumerate(rows):
            if k == 4:
                part = Vocabulary.unpack(*part.pack())
            np.testing.assert_array_equal(whole.learn(batch), part.learn(batch))
        assert whole.names() == part.names() and whole.collisions() == part.collisions()
        for key, array in whole.pack()[1].items():
            np.testing.assert_array_equal(array, part.pack()[1][key])


def test_what_contradicts_itself_is_refused():
    vocabulary = Vocabulary()
    vocabulary.learn(rows_of_names([["a", "b", "c"]]))
    facts, arrays = vocabulary.pack()
    changes = [
        ("hashes", arrays["hashes"][:-1]),
        ("hashes", arrays["hashes"].astype(np.int64)),
        ("hashes", arrays["hashes"][[0, 0, 2]]),
        ("ends", arrays["ends"][::-1].copy()),
        ("prefix", arrays["prefix"] + np.uint32(9)),
        ("pool", arrays["pool"][:-1]),
    ]
    for key, array in changes:
        with pytest.raises(ValueError, match="contradicts itself"):
            Vocabulary.unpack(facts, {**arrays, key: array})
    with pytest.raises(ValueError, match=r"'dream' for vocabulary\.state"):
        Vocabulary.unpack({**facts, "state": "dream"}, arrays)


def test_hashes_that_share_bits_are_found_as_fast_as_others():
    """As someone may choose them: in place by their low bits, each would meet all others, which takes minutes."""
    script = (
        "import numpy as np\n"
        "from onlearn.data.batch import NamedRows\n"
        "from onlearn.features.vocabulary import Vocabulary\n"
        "count = 400_000\n"
        "for shift in (0, 31, 40):\n"
        "    hashes = np.arange(1, count + 1, dtype=np.uint64) << np.uint64(shift)\n"
        "    nothing, one = np.zeros(count, np.int64), np.ones(count, np.int64)\n"
        "    room = np.array([0, count]), hashes, np.zeros(0), nothing, one, np.zeros(count, np.uint16)\n"
        "    vocabulary = Vocabulary()\n"
        "    ids = vocabulary.learn(NamedRows(*room, np.zeros(8, np.uint8), ('',)))\n"
        "    again = Vocabulary.unpack(*vocabulary.pack())\n"
        "    for one in (vocabulary, again):\n"
        "        assert (one.lookup(hashes) == np.arange(count)).all() and (ids == np.arange(count)).all()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_collisions_are_estimated():
    vocabulary = Vocabulary(max_names=10, bits=12)
    vocabulary.learn(rows_of_names([[f"w{k}" for k in range(3010)]] * 2))
    report = vocabulary.collisions()
    buckets = {int(hash_name(f"w{k}", hash_name(""))) % 4096 for k in range(10, 3010)}
    assert report["buckets"] == len(buckets)
    assert report["features"] == pytest.approx(3000, rel=0.05)
    assert report["collisions"] == pytest.approx(3000 - len(buckets), rel=0.15)
    assert vocabulary.name_of(11) == "bucket 1"
    assert Vocabulary().collisions()["features"] == 0
    full = Vocabulary(max_names=0, bits=1)
    full.learn(rows_of_names([["a", "b", "c", "d", "e"]]))
    assert len(full) == 0 and full.width == 2 and full.collisions()["collisions"] > 0


def test_long_names_are_cut_for_reading_but_told_apart():
    vocabulary = Vocabulary()
    long = "é" * 400_000
    ids = vocabulary.learn(rows_of_names([[long + "a", long + "b", long + "a"]]))
    assert list(ids) == [0, 1, 0]
    assert vocabulary.name_of(0) == "é" * 128


def test_keeping_some_numbers_them_anew():
    vocabulary = Vocabulary(max_names=5, bits=2)
    names = list("abcde")
    vocabulary.learn(rows_of_names([names], "p:"))
    assert vocabulary.width == 5
    vocabulary.learn(rows_of_names([["x"]], "p:"))
    assert vocabulary.width == 9
    np.testing.assert_array_equal(vocabulary.keep(np.array([3, 1])), [1, 3, 5, 6, 7, 8])
    assert vocabulary.names() == ["p:b", "p:d"]
    assert list(vocabulary.lookup(rows_of_names([["d", "b"]], "p:").hashes)) == [1, 0]
    assert vocabulary.lookup(rows_of_names([["a"]], "p:").hashes)[0] >= 2
    growing = Vocabulary()
    growing.learn(rows_of_names([names]))
    growing.keep(np.array([4]), state="drop")
    assert list(growing.learn(rows_of_names([["a", "e"]]))) == [-1, 0]
    with pytest.raises(ValueError, match="there are features from 0 to 0"):
        growing.keep(np.array([7]))
    with pytest.raises(IndexError, match="no feature 1"):
        growing.name_of(1)


def test_wrong_sizes_are_named():
    with pytest.raises(ValueError, match="max_names must be"):
        Vocabulary(max_names=-1)
    with pytest.raises(ValueError, match="bits must be"):
        Vocabulary(bits=31)


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6), min_size=1, max_size=8), st.integers(0, 7))
def test_rows_looked_up_ahead_are_numbered_as_others_are(names, ahead):
    """Whatever was learned between looking up and learning."""
    batches = [rows_of_names([row]) for row in names]
    plain, early = FeatureMap(), FeatureMap()
    expected = [plain.learn_transform(rows, ordered=False) for rows in batches]
    looked_up: list = []
    for k, rows in enumerate(batches):
        looked_up += [early.look_up(rows) for rows in batches[len(looked_up) : k + ahead + 1]]
        made = early.learn_transform(looked_up[k], ordered=False)
        assert made.shape == expected[k].shape and (made.to_scipy() != expected[k].to_scipy()).nnz == 0
    assert early.vocabulary_.names() == plain.vocabulary_.names()
