"""Input rows of many types as PyArrow tables, and their columns as NumPy arrays.

Text files write booleans as words, other tables have a type for them. A model that is trained on one can be used with
the other: booleans become words, in the spelling that the model knows.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from onlearn.data import arrow
from onlearn.data.arrow import (
    codes,
    decoded,
    from_numpy,
    from_strings,
    from_values,
    in_one_piece,
    is_missing,
    scalar,
    string_parts,
)
from onlearn.data.batch import NamedRows
from onlearn.data.formats.record_batches import with_bytes
from onlearn.data.names import is_number, number_names
from onlearn.data.table_roles import shown
from onlearn.engine.csr import CSR
from onlearn.engine.inputs import refuse_lazy
from onlearn.engine.number_names import label_name

TEXT = "text"  # the column of a plain list of texts
PLAIN = {"onlearn": "a list of texts"}
SPELLINGS = (("False", "True"), ("false", "true"), ("FALSE", "TRUE"))
USUAL = SPELLINGS[0]
NUMBERS = {"false": 0.0, "true": 1.0}
Known = Callable[[str], bool]  # whether a word has been learned


def as_source(rows: Any) -> Any:
    """The rows as a PyArrow table, ``NamedRows`` or a ``CSR``."""
    if isinstance(rows, (CSR, NamedRows)):
        return rows
    if hasattr(rows, "tocsr"):  # a SciPy matrix
        return CSR.of(rows)
    import pyarrow as pa

    if isinstance(rows, pa.Table):
        return _sound(rows)
    if isinstance(rows, pa.RecordBatch):
        return _sound(pa.Table.from_batches([rows]))
    if isinstance(rows, (pa.Array, pa.ChunkedArray)):
        return _sound(_one_column(rows))
    refuse_lazy(rows)
    module = type(rows).__module__.partition(".")[0]
    if module == "pandas":
        if hasattr(rows, "columns"):
            return _from_pandas(rows)
        named = str("0" if rows.name is None else rows.name)
        return _one_column(_from_pandas(rows.to_frame(named)).column(0), rows.name)
    if module == "polars":
        if hasattr(rows, "columns"):
            return _from_polars(rows)
        return _one_column(_from_polars(rows.to_frame()).column(0), rows.name or None)
    if isinstance(rows, str):
        raise TypeError("X must be rows, such as a list of texts, not one text: put it in a list")
    if isinstance(rows, np.ndarray):
        if rows.ndim == 2 and rows.dtype.kind in "fiub":
            return CSR.of(rows)
        if rows.ndim != 1:
            raise TypeError(
                f"an array of {rows.ndim} dimensions and type {rows.dtype} is not a table: name its columns"
            )
        rows = rows.tolist()
    if isinstance(rows, Mapping):
        return _from_columns(rows)
    if not hasattr(rows, "__iter__"):
        raise TypeError(f"X must be a table, a list of texts, a list of dicts or a matrix, not a {type(rows).__name__}")
    return _from_list(list(rows))


def _sound(table: Any) -> Any:
    """The table, whose offsets and indices are checked: PyArrow reads files without, and wrong ones end the process.

    Text need not be UTF-8: that concerns only the rows that it stands in.
    """
    import pyarrow as pa

    try:
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        for name, column in zip(table.column_names, table.columns):
            for chunk in column.chunks:
                try:
                    chunk.view(with_bytes(chunk.type)).validate(full=True)
                except (pa.ArrowException, ValueError):
                    raise ValueError(f"the column {name!r} of the table is damaged: {error}") from None
    return table


def _texts(values: Any, name: str = TEXT) -> Any:
    """A table of one column, marked as a plain list of texts."""
    import pyarrow as pa

    return pa.table({name: values}).replace_schema_metadata(PLAIN)


def _one_column(values: Any, name: Any = None) -> Any:
    """A single column as a table, under its own name if it has one."""
    import pyarrow as pa

    if is_text(values.type) or pa.types.is_null(values.type):
        return _texts(values, TEXT if name is None else str(name))
    return pa.table({"0" if name is None else str(name): values})


def is_plain_texts(table: Any) -> bool:
    """Whether a table was a plain list of texts."""
    return (table.schema.metadata or {}).get(b"onlearn") == PLAIN["onlearn"].encode()


def renamed(table: Any, wanted: set[str]) -> Any:
    """A plain list of texts, renamed to the only column that is wanted, unless it has another name of its own."""
    if not is_plain_texts(table) or len(wanted) != 1 or table.column_names == [*wanted]:
        return table
    return table.rename_columns([*wanted]) if TEXT in (table.column_names[0], *wanted) else table


def _from_pandas(frame: Any) -> Any:
    import pyarrow as pa

    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except UnicodeEncodeError:
        for name in frame.columns:
            _refuse_halves(frame[name].tolist(), str(name))
        raise
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:  # the last: whole numbers of 2^63 and more
        values = {name: frame[name].tolist() for name in frame.columns if _holds_objects(frame[name].dtype)}
        if not all(_is_plain(value) for column in values.values() for value in column):
            raise TypeError(f"the data frame has a column of mixed types: {error}") from None
        made = {name: _array(column, str(name)) for name, column in values.items()}
        return _from_columns({name: made.get(name, frame[name]) for name in frame.columns})
    except pa.ArrowNotImplementedError as error:
        raise TypeError(f"the data frame has a column that is neither numbers nor text: {error}") from None
    return table.rename_columns([str(name) for name in frame.columns])


def _holds_objects(kind: Any) -> bool:
    """Whether a dtype of pandas is that of any values, which may be of several types, or one of categories of them."""
    return str(kind.categories.dtype if hasattr(kind, "categories") else kind) == "object"


def _from_polars(frame: Any) -> Any:
    """A data frame of Polars; Arrow would have the addresses of Python objects in it."""
    objects = {name for name, kind in frame.schema.items() if str(kind) == "Object"}
    if not objects:
        return frame.to_arrow()
    return _from_columns({name: frame[name].to_list() if name in objects else frame[name].to_arrow()
                          for name in frame.columns})  # fmt: skip


def _from_list(rows: list[Any]) -> Any:
    import pyarrow as pa

    if all(row is None or isinstance(row, str) for row in rows):
        return _texts(_array(rows, TEXT, pa.large_string()))
    if not all(isinstance(row, Mapping) for row in rows):
        n, row = next((n, row) for n, row in enumerate(rows) if not isinstance(row, (str, Mapping)))
        raise TypeError(f"X must have texts or dicts as rows, all alike, but row {n} is a {type(row).__name__}")
    columns: dict[str, list[Any]] = {str(name): [] for row in rows for name in row}
    for name, values in columns.items():
        values.extend(row.get(name) for row in rows)
    if not columns:  # keep the number of rows
        return pa.table({TEXT: pa.nulls(len(rows), pa.large_string())})
    return pa.table({name: _array(values, name) for name, values in columns.items()})


def _from_columns(columns: Mapping[Any, Any]) -> Any:
    import pyarrow as pa

    made = {}
    for name, values in columns.items():
        if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__len__"):
            kind = type(values).__name__
            raise TypeError(f"X must be rows or columns, but {name!r} is one {kind}: put the dict of a row in a list")
        plain = isinstance(values, (list, tuple)) or (isinstance(values, np.ndarray) and values.dtype.kind in "OUc")
        made[str(name)] = _array(list(values), str(name)) if plain else values
    try:
        return pa.table(made)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"the columns do not make a table: {error}") from None


def _array(values: list[Any], name: str, kind: Any = None) -> Any:
    """Values as a column of a type, by default their own; values of several types become strings, NaN and NA null."""
    import pyarrow as pa

    kinds = {*map(type, values)} - {int, type(None)}
    if kind is None and not (kinds <= {str, bool} or kinds == {float}):  # among numbers, NaN is missing in any case
        values = [None if _is_missing(value) else value for value in values]
    try:
        return from_values(values) if kind is None else from_strings(values, kind)
    except UnicodeEncodeError:
        _refuse_halves(values, name)
        raise
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):  # of 2^63 and more
        for n, value in enumerate(values):
            if isinstance(value, (complex, np.complexfloating)):
                raise TypeError(f"column {name!r}, row {n}: {value} is complex, neither a number nor text") from None
        return _array([None if _is_missing(value) else label_name(value) for value in values], name, pa.string())


def _is_plain(value: Any) -> bool:
    """Whether a value is a text, a number or a missing one."""
    return isinstance(value, (str, int, float, Decimal, np.number, np.bool_)) or _is_missing(value)


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or pandas' NA or NaT."""
    if isinstance(value, (float, np.floating)):
        return bool(value != value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _refuse_halves(values: list[Any], name: str) -> None:
    """Raise for a text with half of a surrogate pair, which UTF-8 cannot hold."""
    for n, value in enumerate(values):
        try:
            if isinstance(value, str):
                value.encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"column {name!r}, row {n}: the text has half a character (a lone surrogate): decode it rightly"
            ) from None


def column(table: Any, name: str) -> Any:
    """A column by its name, in one piece."""
    places = table.schema.get_all_field_indices(name)  # a look into a hash table, as ``column_names`` is not
    if not places:
        names = table.column_names
        close = difflib.get_close_matches(name, names, n=1)
        there = f"did you mean {close[0]!r}?" if close else f"there are {shown([*map(repr, names)])}"
        raise ValueError(f"there is no column {name!r}: {there}")
    if len(places) > 1:
        raise ValueError(f"there are several columns {name!r}: name them apart")
    found = in_one_piece(table.column(places[0]))
    if hasattr(found, "chunks"):  # an older PyArrow gives a chunked array
        found = found.chunk(0) if found.num_chunks else table.schema.field(name).type
    return found


def is_text(kind: Any) -> bool:
    """Whether an Arrow type holds strings."""
    import pyarrow.types as kinds

    return bool(
        kinds.is_string(kind)
        or kinds.is_large_string(kind)
        or (hasattr(kinds, "is_string_view") and kinds.is_string_view(kind))
        or (kinds.is_dictionary(kind) and is_text(kind.value_type))
    )


def strings(table: Any, name: str, what: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """A column as UTF-8 bytes, the offsets of its rows, and a mask of missing ones (None: all are there)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = column(table, name)
    missing = None
    if values.null_count:
        missing = is_missing(values)
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):  # all texts are numerals
        values = as_words(values, name)
    elif not is_text(kind) and not pa.types.is_null(kind):
        raise TypeError(f"column {name!r} holds {kind}, not {what}")
    if values.type != pa.large_string():
        values = decoded(values).cast(pa.large_string())
    if missing is not None:
        values = pc.fill_null(values, scalar("").cast(pa.large_string()))
    text, places = string_parts(values)
    return fixed(text), fixed(places), missing


def as_words(values: Any, name: str) -> Any:
    """Values of any plain type as strings; numbers by their names, NaN is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = decoded(values)
    if is_text(values.type) or pa.types.is_null(values.type):
        return values.cast(pa.large_string())
    if is_number(values.type):
        return number_names(values).cast(pa.large_string())
    if pa.types.is_boolean(values.type):
        return truth_words(values)
    try:
        return pc.cast(values, pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise TypeError(f"column {name!r} holds {values.type}, which cannot be categories") from None


def numbers(table: Any, name: str) -> np.ndarray:
    """A column as float64, NaN where it is missing."""
    import pyarrow as pa

    values = column(table, name)
    made = arrow.numbers(values if values.type == pa.float64() else _as_float64(values, name))
    bad = np.isinf(made)
    if bad.any():
        raise ValueError(f"column {name!r}, row {int(bad.argmax())}: {made[bad.argmax()]} is not a finite number")
    return made


def _as_float64(values: Any, name: str) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    values = decoded(values)
    if pa.types.is_null(values.type):
        return values.cast(pa.float64())
    if is_text(values.type):
        values = pc.utf8_trim_whitespace(values.cast(pa.large_string()))
        try:
            values = values.cast(pa.float64())
        except pa.ArrowInvalid:
            encoded = values.dictionary_encode()
            words = encoded.dictionary.to_pylist()
            known = [number(word) for word in words]
            if None in known:  # words are in order of appearance
                wrong = known.index(None)
                row = int(np.argmax(codes(encoded) == wrong))
                raise ValueError(f"column {name!r}, row {row}: {words[wrong]!r} is not a number") from None
            values = from_numpy(np.array(known, np.float64)).take(encoded.indices)
    kind = values.type
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    ):
        raise TypeError(f"column {name!r} holds {kind}, not numbers")
    if pa.types.is_boolean(kind):
        values = values.cast(pa.uint8())
    return values.cast(pa.float64(), safe=False)


def fixed(array: np.ndarray) -> np.ndarray:
    """A read-only view, so that compiled code needs only one type."""
    view = array.view()
    view.flags.writeable = False
    return view


def truth_words(values: Any) -> Any:
    """A column of booleans as words."""
    import pyarrow as pa
    import pyarrow.compute as pc

    false, true = from_strings(USUAL, pa.large_string())
    return pc.if_else(values, true, false)


def number(word: str) -> float | None:
    """The number that a word stands for, or None."""
    try:
        return float(word)
    except ValueError:
        return NUMBERS.get(word.lower())


def respelled(words: Any, booleans: bool, known: Known) -> Any:
    """Words in which true and false have the spelling that is known; None if nothing changes.

    ``booleans`` have no spelling of their own and take the best known one. Other words keep theirs if it is known, or
    if no spelling is.
    """
    import pyarrow.compute as pc

    mask = pc.is_in(words, value_set=from_strings([word for pair in SPELLINGS for word in pair], words.type))
    found = words.filter(mask).to_pylist()
    if booleans:
        pair = max(SPELLINGS, key=lambda pair: sum(map(known, pair)))
        wanted = [pair[word == USUAL[1]] for word in found]
    else:
        wanted = [word if known(word) else _as_known(word, known) for word in found]
    if wanted == found:
        return None
    return pc.replace_with_mask(words, mask, from_strings(wanted, words.type))


def _as_known(word: str, known: Known) -> str:
    same = (pair[word.lower() == "true"] for pair in SPELLINGS)
    return next(filter(known, same), word)
