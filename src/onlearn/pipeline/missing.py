"""Rows from Python as readers give those of files: words for a missing value are one, dicts within are columns."""

from __future__ import annotations

from typing import Any

from onlearn.data.nested import flat
from onlearn.data.tables import MISSING
from onlearn.dictionaries import decoded
from onlearn.features import Category
from onlearn.features.tables import as_source, column, is_plain_texts, is_text


def as_in_files(rows: Any, features: Any, columns: list[str]) -> Any:
    """Rows that are a flat table, with ``?``, ``NA`` and the like missing in the columns that are looked at.

    A list of texts is taken as it is. So is a column of categories whose missing values have no feature: a category
    that was never seen has none either. Dicts that have some of the ``columns`` may lack others, as JSON lines may.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    table = as_source(rows)
    if not hasattr(table, "column_names") or is_plain_texts(table):
        return table
    table = flat(table)
    if isinstance(rows, (list, tuple)) and not {*columns}.isdisjoint(table.column_names):
        for name in columns:
            if name not in table.column_names:
                table = table.append_column(name, pa.nulls(table.num_rows))
    for one in features.extractors_:
        name = str(getattr(one, "column", ""))
        if name not in table.column_names or (isinstance(one, Category) and one.missing == "absent"):
            continue
        values = column(table, name)
        if is_text(values.type):
            values = decoded(values).cast(pa.large_string())
            absent = pc.is_in(values, value_set=pa.array(MISSING, pa.large_string()))
            place = table.column_names.index(name)
            table = table.set_column(place, name, pc.if_else(absent, pa.scalar(None, pa.large_string()), values))
    return table
