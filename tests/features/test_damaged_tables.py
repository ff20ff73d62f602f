"""Damaged tables of PyArrow in memory, with wrong offsets or indices: an error, no crash."""

import subprocess
import sys

import pytest

WRONG = {
    "offsets": "pa.Array.from_buffers(pa.string(), 4, [None, numbers([0, -5, 2, 3, 4]), pa.py_buffer(b'abcdefgh')])",
    "indices": "pa.DictionaryArray.from_arrays("
    "pa.Array.from_buffers(pa.int32(), 4, [None, numbers([0, 1 << 28, -7, 1])]), pa.array(['a', 'b']), safe=False)",
}
PROGRAM = """
import sys
import numpy as np, pyarrow as pa
import onlearn
numbers = lambda values: pa.py_buffer(np.array(values, np.int32))
model = onlearn.Model().partial_fit(pa.table({"t": ["a", "b"] * 5}), ["p", "q"] * 5)
column = eval(sys.argv[1])
for rows in (pa.table({"t": column}), pa.record_batch([column], ["t"]), column):
    for use in (model.predict, lambda rows: model.partial_fit(rows, ["p"] * 4)):
        try:
            use(rows)
        except ValueError as error:
            assert "of the table is damaged" in str(error), error
        else:
            raise AssertionError
"""


@pytest.mark.parametrize("name", WRONG)
def test_wrong_offsets_are_an_error(name):
    done = subprocess.run([sys.executable, "-c", PROGRAM, WRONG[name]], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
