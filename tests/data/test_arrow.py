"""The Arrow adapter gives what PyArrow's own conversions give, without pandas."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlearn.data import arrow

NUMBERS = ["int8", "uint16", "int32", "int64", "uint64", "float16", "float32", "float64"]
LISTS = st.one_of(
    st.lists(st.none() | st.booleans()),
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)),
    st.lists(st.none() | st.floats() | st.integers(-(2**53), 2**53)),
    st.lists(st.none() | st.text()),
)


@given(LISTS, st.integers(0, 3))
def test_python_values_as_pyarrow_has_them(values, start):
    values = [value for value in values if not isinstance(value, str) or value.isprintable()]
    made, expected = arrow.from_values(values), pa.array(values)
    made.validate(full=True)
    assert made.type == expected.type and str(made.to_pylist()) == str(expected.to_pylist())
    assert str(made[start:].to_pylist()) == str(expected[start:].to_pylist())
    assert arrow.is_missing(made[start:]).tolist() == [value is None for value in values[start:]]


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("missing", [False, True])
def test_numbers_there_and_back(kind, missing):
    values = np.arange(20).astype(kind)
    absent = values % 3 == 0 if missing else None
    made = arrow.from_numpy(values, absent)
    made.validate(full=True)
    expected = pa.array(values, mask=absent)
    for start, stop in ((0, 20), (1, 20), (3, 12), (5, 5)):
        part = slice(start, stop)
        assert made[part].equals(expected[part])
        found = arrow.numbers(made[part])
        np.testing.assert_array_equal(found, expected[part].to_numpy(zero_copy_only=False))
        if not missing:
            assert found.dtype == kind


def test_slices_of_booleans_and_strings():
    truth = arrow.from_numpy(np.arange(40) % 3 == 0)
    assert arrow.booleans(truth[5:33]).tolist() == truth[5:33].to_pylist()
    words = arrow.from_strings(["a", "äö", None, "", "long"], pa.large_string())[1:]
    text, places = arrow.string_parts(words)
    found = [text[a:b].tobytes().decode() for a, b in pairwise(places)]
    assert found == ["äö", "", "", "long"]


def test_codes_of_slices_and_nulls():
    encoded = pa.array(["a", None, "b", "a", None]).dictionary_encode()
    assert arrow.codes(encoded).tolist() == [0, -1, 1, 0, -1]
    assert arrow.codes(encoded[1:4]).tolist() == [-1, 1, 0]
    assert arrow.codes(encoded[2:4]).tolist() == [1, 0]


def test_large_numbers_are_left_to_pyarrow():
    for values in ([2**63], [2**60, 0.5], [1, "a"], [[1], None]):
        try:
            expected = pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            with pytest.raises(type(error)):
                arrow.from_values(values)
        else:
            assert arrow.from_values(values).equals(expected)


def test_half_characters_are_refused():
    with pytest.raises(UnicodeEncodeError):
        arrow.from_strings(["a", "\ud800"])


def test_pandas_is_not_imported():
    code = """
import sys
from itertools import pairwise
import numpy as np
from onlearn.data import arrow
arrow.numbers(arrow.from_numpy(np.arange(3), np.array([True, False, True])))
arrow.codes(arrow.from_values(["a", None]).dictionary_encode())
arrow.from_values([1, 2.5]), arrow.from_values([True]), arrow.scalar("a"), arrow.null(arrow.from_values([1]).type)
print([name for name in ("pandas", "scipy", "sklearn") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
