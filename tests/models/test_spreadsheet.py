"""Cells of CSV that a spreadsheet would take for formulas."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlearn.models.spreadsheet import without_formulas


def one(cell: str) -> str:
    return without_formulas(pa.array([cell])).to_pylist()[0]


@pytest.mark.parametrize(
    ("cell", "safe"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("+cmd", "'+cmd"),
        ("-cmd", "'-cmd"),
        ("@SUM(1)", "'@SUM(1)"),
        ("\t=1", "'\t'=1"),
        ("\rx", "'\rx"),
        ("\n=1", "'\n'=1"),
        ("  =1", "'  =1"),
        ("\u00a0=1", "'\u00a0=1"),  # a space of another kind
        ("\ufeff\u200b=1", "'\ufeff\u200b=1"),  # not seen
        ("\0\x0b=1", "'\0\x0b=1"),
        ("\uff1d1", "'\uff1d1"),
        ("-", "'-"),
        ("-inf", "'-inf"),
        ("-1-1", "'-1-1"),
        ("a;=1", "a;'=1"),  # where semicolons separate cells
        ('a";"=1', 'a";"\'=1'),
        ("a\r\n; @b", "a\r\n; '@b"),
    ],
)
def test_what_begins_a_formula(cell, safe):
    assert one(cell) == safe


@pytest.mark.parametrize(
    "cell", ["", "spam", "-1.5", "+1", "-.5", "1e-5", "-1E+5", "a-b", "a=b", "me@here", "x + y", "'=1"]
)
def test_what_does_not(cell):
    assert one(cell) == cell


def test_numbers_and_no_values():
    assert without_formulas(pa.array([-1.5, None])).to_pylist() == [-1.5, None]
    assert without_formulas(pa.array([None, "=1"], pa.large_string())).to_pylist() == [None, "'=1"]


@given(st.text(st.sampled_from("=+-@\t\r\n;,|\" '1.ea\uff0b\u00a0\u200b\0"), max_size=8))
def test_whatever_separates_cells_none_begins_a_formula(cell):
    made = one(cell)
    assert cell == "'".join(made.split("'")) or made.replace("'", "") == cell.replace(
        "'", ""
    )  # only apostrophes are new
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", cell):
        return
    for part in re.split(r'[,;|\t\r\n"]', made):
        assert not re.match(r"[ \u00a0\u200b\0]*[=+\-@\uff0b]", part)
    assert not made.startswith(("\t", "\r", "\n"))
