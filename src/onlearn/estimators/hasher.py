"""Feature hashing: any number of named or numbered features in a fixed number of columns (Weinberger et al. 2009).

phi_c(x) = the sum of s(f) x_f over the features f with h(f) = c, where h is a hash and s(f) = +-1 another one. With the
signs, <phi(x), phi(z)> has the mean <x, z> over hash functions: collisions add noise, but no bias.

A feature with 64-bit hash h goes to column (h' >> 32) n >> 32, with the sign of the lowest bit of h', where h' is h
mixed with a seed. Values of one row that fall in one column are added.

scikit-learn's FeatureHasher does the same to dicts, pairs and strings with MurmurHash3, on one core. This one hashes
all names of a batch as one text in a compiled pass, sorts and adds up the rows on all cores, and also takes
``NamedRows`` and matrices that are too wide. The benchmark ``hashing`` compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import chain
from numbers import Number, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from onlearn.compiler import allocating, compiled
from onlearn.data.batch import START, NamedRows, finish, hash_bytes, hash_name, mix
from onlearn.estimators.transformer import WIDTH, NumericTransformer, check_whole_number
from onlearn.model_schema import PRECISION, TRUTH, Arrays, OrMissing, Record, check_facts, whole
from onlearn.threads import over_rows

HALF, ONE, ZERO, LOWER = np.uint64(32), np.uint64(1), np.uint64(0), np.uint64(0xFFFFFFFF)
COST = 16  # multiplications that one feature is worth, about
SHORT = 48  # rows up to this length are sorted by insertion
MOST_COLUMNS = 2**31 - 1
SEED = hash_name("")  # of names without a prefix, as readers and extractors hash them
CHUNK = 64  # rows whose Python objects are visited several times while they are in the processor's cache
LARGEST = int(np.finfo(np.float64).max)
NUMBERS = {int, float, bool, np.float64, np.float32, np.int64, np.int32, np.bool_}

# The compiled part: from hashes of features to signed columns


@compiled
def hash_split(text: Any, seed: Any, out: Any) -> int:
    """Hash each part of a text between zero bytes, as many as fit in ``out``; returns the number of parts."""
    k, start = 0, 0
    for p in range(len(text) + 1):
        if p == len(text) or text[p] == 0:
            if k < len(out):
                out[k] = hash_bytes(text, start, p, seed)
            k += 1
            start = p + 1
    return k


@allocating
def place(indptr: Any, hashes: Any, values: Any, seed: Any, columns: Any, signed: Any, indices: Any, data: Any,
          counts: Any, start: Any, stop: Any) -> None:  # fmt: skip
    """Write sorted columns and values of rows start to stop, each column once, and their number to ``counts``."""
    n: Any = np.uint64(columns)
    p: Any
    k: Any
    for i in range(np.uint64(start), np.uint64(stop)):
        first, past = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
        for p in range(first, past):
            h = finish(mix(seed, np.uint64(hashes[p])))
            indices[p] = ((h >> HALF) * n) >> HALF
            data[p] = -values[p] if signed and h & ONE else values[p]
        length = past - first
        if length <= np.uint64(SHORT):
            for p in range(first + ONE, past):
                column, value, q = indices[p], data[p], p
                while q > first and indices[q - ONE] > column:
                    indices[q], data[q] = indices[q - ONE], data[q - ONE]
                    q -= ONE
                indices[q], data[q] = column, value
        else:
            keys, before = np.empty(length, np.uint64), data[first:past].copy()
            for k in range(length):  # column and position in one number: sorting these is faster than argsort
                keys[k] = (np.uint64(indices[first + k]) << HALF) | k
            keys.sort()
            for k in range(length):
                indices[first + k], data[first + k] = keys[k] >> HALF, before[keys[k] & LOWER]
        kept = first
        for p in range(first, past):
            if p > first and indices[p] == indices[kept]:
                data[kept] += data[p]
            else:
                kept += ONE if p > first else ZERO
                indices[kept], data[kept] = indices[p], data[p]
        counts[i] = kept + ONE - first if past > first else ZERO


@compiled
def compact(indptr: Any, counts: Any, new_indptr: Any, indices: Any, data: Any, new_indices: Any,
             new_data: Any) -> None:  # fmt: skip
    """Copy the entries of each row to their place in smaller arrays."""
    for i in range(np.uint64(len(counts))):
        at = np.uint64(new_indptr[i])
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i]) + np.uint64(counts[i])):
            new_indices[at], new_data[at] = indices[p], data[p]
            at += ONE


def hashed_matrix(indptr: np.ndarray, hashes: np.ndarray, values: np.ndarray, seed: int, columns: int,
           signed: bool) -> sp.csr_matrix:  # fmt: skip
    """The matrix of rows whose features are given by their hashes."""
    rows = len(indptr) - 1
    indices, data = np.empty(len(hashes), np.int32), np.empty(len(hashes), values.dtype)
    counts = np.zeros(rows, np.int64)
    with np.errstate(over="ignore"):  # where it runs interpreted
        start_at = np.uint64(mix(START, np.uint64(seed)))
        over_rows(
            lambda *part: place(indptr, hashes, values, start_at, columns, signed, indices, data, counts, *part),
            rows,
            COST * len(hashes),
        )
    left = np.zeros(rows + 1, np.int64)
    np.cumsum(counts, out=left[1:])
    if left[-1] < len(hashes):
        new_indices, new_data = np.empty(left[-1], np.int32), np.empty(left[-1], values.dtype)
        compact(indptr, counts, left, indices, data, new_indices, new_data)
        indices, data = new_indices, new_data
    narrow = left.astype(np.int32) if left[-1] <= np.iinfo(np.int32).max else left
    X = sp.csr_matrix((data, indices, narrow), shape=(rows, columns), copy=False)
    X.has_sorted_indices = X.has_canonical_format = True
    return X


class FeatureHasher(NumericTransformer):
    """Transform rows of named features, or of too many numbered ones, to a CSR matrix of ``n_features`` columns.

    A row is a dict from name to number (a string as value makes the feature "name=value", of value 1), a list of names
    (of value 1 each), or a list of (name, value) pairs; or X is ``NamedRows``, or a matrix, whose columns are hashed.
    There is nothing to learn, so ``fit`` is optional, and only notes the width of a matrix.

    ``signed``: half of the features count negatively, which keeps inner products unbiased. ``seed`` chooses the hash
    function. ``dtype``: "float32", "float64", or None, which keeps the type of a matrix and makes named rows float32.

    >>> hasher = FeatureHasher(8)
    >>> X = hasher.transform([{"wine": 2, "colour": "red"}, {"colour": "red"}])
    >>> X.shape, X.nnz
    ((2, 8), 3)
    """

    def __init__(self, n_features: int = 2**20, *, signed: bool = True, seed: int = 0, dtype: Any = None) -> None:
        self.n_features = n_features
        self.signed = signed
        self.seed = seed
        self.dtype = dtype

    def fit(self, X: Any = None, y: Any = None) -> FeatureHasher:
        """Check the settings, and note the width of a matrix."""
        self._check_settings()
        X = X if X is None else _as_rows(X)
        if X is not None and _kind(X) == "matrix":
            self._matrix(X, reset=True)
        return self

    def partial_fit(self, X: Any = None, y: Any = None) -> FeatureHasher:
        """Check the settings; all batches of a matrix must have one width."""
        X = X if X is None else _as_rows(X)
        if X is not None and hasattr(self, "n_features_in_") and _kind(X) == "matrix":
            self._matrix(X, reset=False)
            return self
        return self.fit(X)

    def transform(self, X: Any) -> sp.csr_matrix:
        """The hashed matrix of the rows."""
        self._check_settings()
        X = _as_rows(X)
        kind = _kind(X)
        if kind == "matrix":
            X = self._matrix(X, reset=not hasattr(self, "n_features_in_"))
            X = X if sp.issparse(X) else sp.csr_matrix(X)
            indptr, hashes, values, dtype = X.indptr, X.indices, X.data, self.dtype or X.dtype
        else:
            indptr, hashes, values = (X.indptr, X.hashes, X.values) if kind == "named" else _read(X, READERS[kind])
            dtype = self.dtype or np.float32
        with np.errstate(over="ignore"):  # an error below
            numbers = np.ascontiguousarray(values, dtype)
        made = hashed_matrix(
            np.ascontiguousarray(indptr, np.int64), hashes, numbers, int(self.seed), int(self.n_features),
            bool(self.signed),
        )  # fmt: skip
        _refuse_infinite(made)
        return made

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> sp.csr_matrix:
        """The hashed matrix of the rows."""
        X = _as_rows(X)
        return self.fit(X).transform(X)

    def _matrix(self, X: Any, reset: bool) -> Any:
        """X as a checked matrix."""
        try:
            return self._check_rows(X, reset=reset)
        except ValueError as wrong:
            if not str(wrong).startswith("could not convert string"):
                raise
            raise ValueError(
                "X holds words, but of a table or matrix only numbers are hashed: pass its rows as dicts, such as "
                "X.to_dict('records') of pandas makes, or as lists of names"
            ) from None

    def _check_settings(self) -> None:
        if check_whole_number(self.n_features, "n_features") > MOST_COLUMNS:
            raise ValueError(f"n_features must be at most {MOST_COLUMNS}, not {self.n_features!r}")
        check_whole_number(self.seed, "seed", 0)
        try:
            good = self.dtype is None or np.dtype(self.dtype) in (np.float32, np.float64)
        except TypeError:  # not a type
            good = False
        if not good:
            raise ValueError(f"dtype must be 'float32', 'float64' or None, not {self.dtype!r}")

    @property
    def _n_features_out(self) -> int:
        return int(self.n_features)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.sparse = tags.input_tags.dict = tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"] if self.dtype is None else []
        return tags

    # ------------------------------------------------------------------ the model file

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        dtype = None if self.dtype is None else np.dtype(self.dtype).name  # np.float32 is not JSON
        params = {"n_features": int(self.n_features), "signed": bool(self.signed), "seed": int(self.seed)}
        return {"width": self._pack_columns(), "params": {**params, "dtype": dtype}}, {}

    _FILED: ClassVar[Record] = Record(
        width=WIDTH,
        params=Record(
            n_features=whole(1), signed=TRUTH, seed=whole(-(1 << 63), (1 << 64) - 1), dtype=OrMissing(PRECISION)
        ),
    )

    def _unpack(self, facts: dict[str, Any], arrays: Arrays) -> None:
        check_facts(facts, self._FILED)
        self._unpack_columns(facts["width"])
        self._check_settings()


# What kind of rows X has


def _as_rows(X: Any) -> Any:
    """An iterator, or one column of a table, as a list of its rows; anything else unchanged."""
    if isinstance(X, (NamedRows, np.ndarray, str, bytes, Mapping)) or sp.issparse(X):
        return X
    if hasattr(X, "to_pylist") and not hasattr(X, "column_names"):  # PyArrow's array, not its table
        return X.to_pylist()
    if len(getattr(X, "shape", ())) == 1 and hasattr(X, "to_list"):  # a Series of pandas or polars
        return X.to_list()
    if hasattr(X, "__len__") or hasattr(X, "__array__"):
        return X
    if not hasattr(X, "__iter__"):
        raise TypeError(f"X must be a list of rows or a matrix, not {X!r}")
    return list(X)


def _kind(X: Any) -> str:
    """The kind of X: "matrix", "named" rows, "dicts", "pairs" or "names"."""
    if isinstance(X, NamedRows):
        return "named"
    if sp.issparse(X):  # SciPy's DOK matrix is a dict, too
        return "matrix"
    if isinstance(X, (str, bytes, Mapping)):
        raise TypeError("X must be a list of rows, not one text or one dict: put it in a list")
    if not isinstance(X, (list, tuple)) and not (isinstance(X, np.ndarray) and X.dtype.kind in "OUS" and X.ndim == 1):
        return "matrix"
    if not len(X):
        raise ValueError("X is empty: there are no rows to hash")
    for n, row in enumerate(X):
        if isinstance(row, Mapping):
            return "dicts"
        if isinstance(row, (str, bytes)):
            raise TypeError(f"row {n} is one text, not a list of names: split it first, or use onlearn.Features")
        if not hasattr(row, "__iter__"):
            raise TypeError(f"row {n} is {row!r}: a row is a dict, a list of names or of pairs, or a row of numbers")
        if hasattr(row, "shape"):
            return "matrix"
        for item in row:
            return "names" if isinstance(item, (str, bytes)) else "matrix" if _is_number(item) else "pairs"
    return "names"


def _is_number(value: Any) -> bool:
    return isinstance(value, Number) or value is None


Read = tuple[list[Any], list[Any] | None]  # names, and values unless they are all 1


def _read(rows: Any, reader: Callable[[Any, int], Read]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The starts of the rows, and the hashes and values of their features."""
    try:
        rows = [row if hasattr(row, "__len__") else list(row) for row in rows]
    except TypeError:
        n = next((n for n, row in enumerate(rows) if not hasattr(row, "__iter__")), None)
        if n is None:
            raise
        raise TypeError(f"row {n} is {rows[n]!r}, but others are dicts or lists: leave it out, or empty") from None
    indptr = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, rows), np.int64, len(rows)), out=indptr[1:])
    hashes, numbers = np.empty(indptr[-1], np.uint64), np.ones(indptr[-1])
    for start in range(0, len(rows), CHUNK):
        stop = min(start + CHUNK, len(rows))
        names, values = reader(rows[start:stop], start)
        part = slice(int(indptr[start]), int(indptr[stop]))
        try:
            _hash(names, hashes[part])
            if values is not None:
                numbers[part] = _numbers(values, names)
        except _FeatureError as error:
            row = int(np.searchsorted(indptr, part.start + error.k, side="right")) - 1
            raise error.kind(f"row {row}: {error.why}") from None
    return indptr, hashes, numbers


class _FeatureError(Exception):
    """An error of the k-th feature of a chunk."""

    def __init__(self, k: int, kind: type[Exception], why: str) -> None:
        self.k, self.kind, self.why = k, kind, why


def _read_dicts(rows: Any, at: int) -> Read:
    """Names and numbers of dicts; a string as value is a category."""
    for n, row in enumerate(rows):
        if not isinstance(row, (dict, Mapping)):
            raise TypeError(f"row {at + n} is a {type(row).__name__}, but others are dicts: all must be alike")
    return _with_categories(list(chain.from_iterable(rows)), list(chain.from_iterable([row.values() for row in rows])))


def _with_categories(names: list[Any], values: list[Any]) -> Read:
    """Names and numbers, where a string as value makes the feature "name=string", of value 1."""
    kinds = set(map(type, values))
    if kinds == {str} and set(map(type, names)) == {str}:
        return list(map("=".join, zip(names, values))), None
    if any(issubclass(kind, str) for kind in kinds):  # NumPy's strings, too
        texts = [isinstance(value, str) for value in values]
        names = [f"{name}={value}" if text else name for name, value, text in zip(names, values, texts)]
        values = [1.0 if text else value for value, text in zip(values, texts)]
    return names, values


def _read_pairs(rows: Any, at: int) -> Read:
    pairs = list(chain.from_iterable(rows))
    if not set(map(type, pairs)) <= {tuple, list} or not set(map(len, pairs)) <= {2}:
        for n, row in enumerate(rows):
            for pair in row:
                if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                    raise TypeError(f"row {at + n} should hold pairs of a name and a number or text, but has {pair!r}")
    return _with_categories([pair[0] for pair in pairs], [pair[1] for pair in pairs])


def _read_names(rows: Any, at: int) -> Read:
    for n, row in enumerate(rows):
        if isinstance(row, (str, bytes, Mapping)):
            raise TypeError(f"row {at + n} is a {type(row).__name__}, but others are lists of names: all must be alike")
    return list(chain.from_iterable(rows)), None


def _numbers(values: list[Any], names: list[Any]) -> np.ndarray:
    """Values as finite numbers."""
    if not set(map(type, values)) <= NUMBERS:
        for k, value in enumerate(values):
            if not isinstance(value, (Real, np.bool_)):
                raise _FeatureError(k, TypeError, f"the value of {names[k]!r} must be a number, not {value!r}")
    try:
        made = np.array(values, np.float64)
    except OverflowError:  # a whole number larger than all floats
        k = next(
            k
            for k, value in enumerate(values)
            if isinstance(value, (int, Fraction)) and not -LARGEST <= value <= LARGEST
        )
        raise _FeatureError(k, OverflowError, f"the value of {names[k]!r} is too large for a float: scale it") from None
    good = np.isfinite(made)
    if not good.all():
        k = int(np.argmin(good))
        what = "NaN" if np.isnan(made[k]) else "infinity"
        raise _FeatureError(k, ValueError, f"the value of {names[k]!r} is {what}: leave the feature out")
    return made


def _hash(names: list[Any], out: np.ndarray) -> None:
    """Write the hashes of names to ``out``, all in one pass unless a name holds a zero byte or is bytes."""
    if not names:
        return
    try:
        text = np.frombuffer("\0".join(names).encode("utf-8", "surrogatepass"), np.uint8)
    except TypeError:
        text = None
    with np.errstate(over="ignore"):  # where it runs interpreted
        if text is not None and hash_split(text, SEED, out) == len(names):
            return
    for k, name in enumerate(names):
        if not isinstance(name, (str, bytes)):
            raise _FeatureError(k, TypeError, f"a name must be a text, not {name!r}")
        out[k] = hash_name(name.encode("utf-8", "surrogatepass") if isinstance(name, str) else name, SEED)


def _refuse_infinite(X: sp.csr_matrix) -> None:
    """Refuse values that are too large for the type, or became so as sums in one column."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.data.sum()):  # a single infinity shows in the sum
            return
    bad = np.flatnonzero(~np.isfinite(X.data))
    if bad.size:
        row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
        wider = ", or set dtype='float64'" if X.dtype == np.float32 else ""
        raise OverflowError(f"row {row}: its values are too large for {X.dtype}: scale them{wider}")


READERS: dict[str, Callable[[Any, int], Read]] = {"dicts": _read_dicts, "pairs": _read_pairs, "names": _read_names}
