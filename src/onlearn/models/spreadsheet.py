"""Text in CSV that a spreadsheet shows and does not compute.

A spreadsheet takes a cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula, which may start programs or send
away other cells; some skip spaces, and what is not seen, at the beginning. So an apostrophe is put before such a cell,
as OWASP advises. Where spreadsheets cut cells at semicolons or tabs, the rest of a text begins a cell of its own, so
one is put before such characters there, too. Numbers stay what they are.
"""

from __future__ import annotations

from typing import Any

FORMULA = "[=+\\-@\uff1d\uff0b\uff0d\uff20]"  # the last four are wide ones, as Chinese and Japanese text has them
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
SKIPPED = r"[\pZ\pC]*"  # spaces of all kinds, controls, and what is not seen
BEGINNING = f"^({SKIPPED})({FORMULA}|[\t\r\n])"
INSIDE = f'([,;|\t\r\n"]{SKIPPED})({FORMULA})'


def without_formulas(cells: Any) -> Any:
    """The cells of a column, an Arrow array, none of which begins a formula; a column of numbers as it is.

    >>> import pyarrow as pa
    >>> without_formulas(pa.array(["=1+1", "-1.5", "a-b", "a;@b", None])).to_pylist()
    ["'=1+1", '-1.5', 'a-b', "a;'@b", None]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type)):
        return cells
    inside = pc.replace_substring_regex(cells, INSIDE, r"\1'\2")
    made = pc.replace_substring_regex(inside, BEGINNING, r"'\1\2")
    return pc.if_else(pc.match_substring_regex(cells, NUMBER), cells, made)
