"""What users give to learn from, checked and made plain: tables of numbers, labels, and weights of examples."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from decimal import Decimal
from functools import wraps
from typing import Any

import numpy as np

# ----------------------------------------------------------------------------------------------------
# Tables and arrays of numbers.


def plain_table(X: Any) -> Any:
    """A PyArrow table as a NumPy array; anything else as it is (scikit-learn takes pandas and polars)."""
    refuse_lazy(X)
    refuse_times(X, "X")
    module = type(X).__module__.partition(".")[0]
    if module != "pyarrow":
        return X
    if not hasattr(X, "column_names"):
        raise TypeError(f"X must be a table or an array, not a pyarrow {type(X).__name__}")
    import pyarrow.types as kinds

    columns = []
    for field, column in zip(X.schema, X.columns, strict=True):
        kind = field.type
        if not any(holds(kind) for holds in (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal)):
            raise ValueError(f"column {field.name!r} holds {kind}, not numbers: encode it first")
        columns.append(np.asarray(column.cast("float64") if kinds.is_decimal(kind) else column))
    if not columns:
        return np.empty((X.num_rows, 0))
    dtype = np.result_type(*columns)
    single = dtype in (np.float16, np.float32)
    return np.column_stack(columns).astype(np.float32 if single else np.float64, copy=False)


def huge_numbers_told(check: Any) -> Any:
    """A function that makes rows of floats, so that it says what is wrong with a whole number no float can hold."""

    @wraps(check)
    def told(*args: Any, **kwargs: Any) -> Any:
        try:
            return check(*args, **kwargs)
        except OverflowError as error:
            if "too large to convert" not in str(error):
                raise
            raise OverflowError("X holds a whole number that is too large for float64: scale the data") from None

    return told


def refuse_lazy(X: Any) -> None:
    """Refuse what says how to make a table, but is none."""
    if type(X).__module__.startswith("polars") and type(X).__name__ == "LazyFrame":
        raise TypeError("X is a polars LazyFrame, which holds no rows yet: collect() it first")


def refuse_times(X: Any, name: str) -> None:
    """Refuse dates and times, which NumPy would take for numbers of whatever unit they have."""
    held: Any = np.atleast_1d(X.dtypes) if hasattr(X, "dtypes") else [getattr(X, "dtype", None)]
    for kind in held:
        if getattr(kind, "kind", None) in ("m", "M") or (hasattr(kind, "is_temporal") and kind.is_temporal()):
            raise ValueError(f"{name} holds dates or times ({kind}), not numbers: make numbers of them first")


def column_names(X: Any) -> list[str] | None:
    """The names of a PyArrow table's columns, which scikit-learn does not look for."""
    return list(getattr(X, "column_names", [])) if type(X).__module__.startswith("pyarrow") else None


def names_of_columns(X: Any) -> list[str] | None:
    """The names of a table's columns, of whatever kind the table is; None if it has none, or they are not strings."""
    names: list[Any] = column_names(X) or []
    if not names and hasattr(X, "columns") and len(getattr(X, "shape", ())) == 2:  # pandas, polars and the like
        names = list(X.columns)
    elif not names and hasattr(X, "__dataframe__"):  # the interchange protocol of data frames
        names = list(X.__dataframe__().column_names())
    strings = [isinstance(name, str) for name in names]
    if any(strings) and not all(strings):
        kinds = sorted({type(name).__qualname__ for name in names})
        raise TypeError(
            "Feature names are only supported if all input features have string names, but the columns have names of "
            f"the types {', '.join(kinds)}: make all of them strings, as by X.columns = X.columns.astype(str), or none"
        )
    return names if names and all(strings) else None


def number_types(X: Any) -> list[Any]:
    """What kinds of numbers X may be made into; the first if it holds others, or does not say what it holds."""
    module, held = type(X).__module__.partition(".")[0], [getattr(X, "dtype", None)]
    if module == "polars" and type(X).__name__ == "DataFrame":  # which does not
        held = [X.head(0).to_numpy().dtype]
    elif module == "pandas" and hasattr(X, "dtypes"):  # where columns of a kind of its own do not
        held = [getattr(kind, "subtype", getattr(kind, "numpy_dtype", kind)) for kind in np.atleast_1d(X.dtypes)]
    single = bool(held) and all(kind in (np.float16, np.float32) for kind in held)
    return [np.float32] if single else [np.float64, np.float32]


# ----------------------------------------------------------------------------------------------------
# Labels: found, encoded, and compared as they are written.


EXACT = 2.0**53  # below, no two whole numbers are the same float
WHOLE = 2.0**63  # below, a float without a fraction is a label
FEW_CLASSES = 8  # for which comparing all labels with each takes less time than looking them up
MANY = 20  # labels from which on nearly as many classes are suspicious


def unique_labels(y: np.ndarray) -> np.ndarray:
    """The sorted distinct labels; without sorting them all where they are small whole numbers, or words."""
    if y.dtype.kind in "iub" and y.size:
        low, high = int(y.min()), int(y.max())
        if high - low < 1 << 16:
            present = np.flatnonzero(np.bincount(_from(low, y)))
            return (present.astype(_widest(y)) + low).astype(y.dtype)
    if y.dtype.kind == "U":  # Python compares words by their hashes, ten times as fast
        return np.array(sorted(set(y.ravel().tolist())), dtype=y.dtype)
    return np.unique(y)


def _widest(y: np.ndarray) -> type:
    """The type that holds all whole numbers of a kind."""
    return np.uint64 if y.dtype.kind == "u" else np.int64


def _from(low: int, y: np.ndarray) -> np.ndarray:
    """How far whole numbers are above the lowest; there are some beyond the largest that are signed."""
    return (y.astype(_widest(y) if low >= 0 else np.int64) - low).astype(np.int64)


def _is_lacking(label: Any) -> bool:
    """Whether a label is what stands for none: None, NaN, or pandas' NA (which cannot be compared)."""
    return label is None or type(label).__name__ == "NAType" or (isinstance(label, float) and label != label)


def from_nullable(y: Any, what: str = "label") -> Any:
    """A pandas column of a type that allows for missing values as a plain array of the type that does not.

    Whole numbers stay whole numbers, and truth values truth values, which NumPy by itself would make floats of. A
    missing value is refused, with its row. Anything else is returned as it is.
    """
    if hasattr(y, "iloc") and getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:  # a table of one column
        column = y.iloc[:, 0]
        made = from_nullable(column, what)
        return y if made is column else made[:, None]
    kind = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if kind is None or kind.kind not in "iubf":
        return y
    _refuse_lacking(y, np.asarray(y.isna()), what)
    return y.to_numpy(dtype=kind)


def _refuse_lacking(y: Any, lacking: np.ndarray, what: str = "label", name: str = "y") -> None:
    if lacking.any():
        row = int(np.argmax(lacking))
        label = y.iloc[row] if hasattr(y, "iloc") else plain(y[row])
        where, remedy = (f" in row {row}", "remove the row") if name == "y" else ("", "leave it out")
        raise ValueError(f"{name} holds {label!r}{where}, which is not a {what}: {remedy}")


def check_labels(y: np.ndarray, name: str = "y") -> None:
    """Refuse what cannot be labels, or cannot be put in an order."""
    if y.dtype.kind == "f":
        _refuse_lacking(y, np.isnan(y), name=name)
    if y.dtype == object:
        _refuse_lacking(y, np.array([_is_lacking(label) for label in y], dtype=bool), name=name)
        if len({isinstance(label, str) for label in y}) > 1:
            raise ValueError(
                f"{name} holds both strings and other labels, which have no order: make all of them strings"
            )
    _refuse_targets(y, name)


def _refuse_targets(y: np.ndarray, name: str) -> None:
    """Refuse numbers that are no classes, and objects of other kinds than labels; in scikit-learn's words."""
    if y.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} holds complex numbers")
    if y.dtype.kind == "S" or (y.dtype == object and len(y) and isinstance(y[0], bytes)):
        raise TypeError(
            "Support for labels represented as bytes is not supported. Convert the labels to a string or integer "
            "format."
        )
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise ValueError(f"Input {name} contains infinity or a value too large for {y.dtype!r}.")
    fractions = y.dtype.kind == "f" and bool(((y != np.trunc(y)) | (np.abs(y) >= WHOLE)).any())
    objects = y.dtype == object and len(y) > 0 and not isinstance(y[0], str)
    if fractions or objects:
        raise ValueError(
            f"Unknown label type: {'continuous' if fractions else 'unknown'}. Maybe you are trying to fit a "
            "classifier, which expects discrete classes on a regression target with continuous values."
        )
    if len(y) > MANY and len(np.unique(y)) > round(0.5 * len(y)):
        warnings.warn(
            "The number of unique classes is greater than 50% of the number of samples. `y` could represent a "
            "regression problem, not a classification problem.",
            UserWarning,
            stacklevel=2,
        )


def check_classes(classes: Any) -> np.ndarray:
    """The labels that are to come, as ``partial_fit`` is told them: sorted and checked as those of y are."""
    classes = from_nullable(classes)
    if isinstance(classes, (str, bytes)) or not hasattr(classes, "__len__"):
        raise ValueError(f"classes must be a list of labels, not {classes!r}")
    if not hasattr(classes, "dtype"):  # before NumPy makes strings of numbers
        given = list(classes)
        if any(hasattr(label, "__len__") and not isinstance(label, (str, bytes)) for label in given):
            raise ValueError(f"classes must be a plain list of labels, not a list of lists: {classes!r}")
        kinds = {isinstance(label, str) for label in given}
        classes = np.array(given, dtype=object if len(kinds) > 1 or any(map(_is_lacking, given)) else None)
    classes = np.asarray(classes)
    if classes.ndim != 1:
        raise ValueError(f"classes must be a plain list of labels, not an array of {classes.ndim} dimensions")
    if not classes.size:
        raise ValueError("classes is empty, but must list all labels that will come")
    if classes.dtype.kind not in "biu":  # whole numbers are labels, whatever they are
        check_labels(classes, "classes")
    return unique_labels(classes)


def in_order(names: list[str]) -> list[str]:
    """Labels as one would list them: numbers by size, words by the alphabet."""
    try:
        return sorted(names, key=lambda name: (float(name), number(name)))
    except ValueError:
        return sorted(names)


def distinct(names: Sequence[str]) -> list[str]:
    """Names without those that are the same number as one before: +1 is 1."""
    kept: list[str] = []
    met: set[float | Decimal] = set()
    for name in names:
        value = number(name)
        if value is None or value not in met:
            kept.append(name)
        if value is not None:
            met.add(value)
    return kept


def positions(names: Sequence[str], labels: Sequence[str], dots: bool = True) -> list[int]:
    """Where each name is among the labels, -1 if nowhere.

    Labels that are all numbers compare as such: +1 is 1. And one that is unknown but for a full stop behind it is taken
    for the label without: the test part of a well-known census is written like that.

    >>> positions(["no", "yes.", "maybe"], ["no", "yes"])
    [0, 1, -1]
    """
    known = {label: k for k, label in enumerate(labels)}
    found = [known.get(name, -1) for name in names]
    if -1 in found:
        values = {number(label): k for k, label in enumerate(labels)}
        if None not in values and len(values) == len(labels):
            found = [values.get(number(name), -1) if k < 0 else k for name, k in zip(names, found)]
        if dots:
            found = [known.get(name.removesuffix("."), -1) if k < 0 else k for name, k in zip(names, found)]
    return found


def number(text: str) -> float | Decimal | None:
    """The number that a label is, if it is one. Whole ones are exact: beyond 2**53, floats take several for the same.

    >>> number("+1") == number("1.0"), number("9007199254740992") == number("9007199254740993")
    (True, False)
    """
    try:
        value = float(text)
        return Decimal(text) if EXACT <= abs(value) < np.inf else value
    except ValueError:
        return None


def encode(y: np.ndarray, classes: np.ndarray, grows: bool = True) -> np.ndarray:
    """The index of each label among the classes; a label that is not among them is named.

    ``grows``: whether this is for a learner that could take in new classes, which it is then said how.
    """
    if y.dtype.kind in "iub" and classes.dtype.kind in "iub" and y.size:
        low, high = int(min(y.min(), classes.min())), int(max(y.max(), classes.max()))
        if high - low < 1 << 16:
            table = np.full(high - low + 1, -1, dtype=np.int64)
            table[_from(low, classes)] = np.arange(len(classes))
            codes = table[_from(low, y)]
            if codes.min() < 0:
                _refuse(y[int(np.argmin(codes))], int(np.argmin(codes)), classes, grows)
            return codes
    if y.dtype.kind == "U" and classes.dtype.kind == "U":
        if len(classes) <= FEW_CLASSES:
            codes = np.full(len(y), -1, dtype=np.int64)
            for k, label in enumerate(classes):
                codes[y == label] = k
        else:
            known = {label: k for k, label in enumerate(classes.tolist())}
            codes = np.array([known.get(label, -1) for label in y.tolist()], dtype=np.int64)
        if codes.size and codes.min() < 0:
            _refuse(y[int(np.argmin(codes))], int(np.argmin(codes)), classes, grows)
        return codes
    sorter = np.argsort(classes, kind="stable")
    places = np.minimum(np.searchsorted(classes, y, sorter=sorter), len(classes) - 1)
    codes = sorter[places]
    wrong = np.flatnonzero(classes[codes] != y)
    if wrong.size:
        _refuse(y[wrong[0]], int(wrong[0]), classes, grows)
    return codes.astype(np.int64)


def joined(known: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The known labels and after them those that y brings, and y, in one type that changes none of them.

    >>> joined(np.array([0, 1]), np.array([3.0, 1.0]))
    (array([0, 1, 3]), array([3, 1]))
    """
    if known.dtype != y.dtype and y.size:
        if isinstance(plain(known[0]), str) != isinstance(plain(y[0]), str):
            raise ValueError(
                f"y holds labels like {plain(y[0])!r}, but the classes so far are like {plain(known[0])!r}: strings "
                "and other labels have no order, so make all of them strings"
            )
        if known.dtype.kind in "iubf" and y.dtype.kind in "iubf":
            known, y = _in_one_type(known, y)
    new = np.setdiff1d(unique_labels(y), known)
    return (np.concatenate([known, new]) if new.size else known), y


def _in_one_type(known: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers as one type that holds both kinds exactly; the known ones are still of their kind."""
    types = [known.dtype]
    if known.dtype.kind == y.dtype.kind:
        types.append(np.result_type(known, y))
    elif known.dtype.kind in "iu" and y.dtype.kind in "iu":  # of which NumPy would make floats
        types += [np.dtype(np.int64), np.dtype(np.uint64)]
    for dtype in types:
        if _fits(y, dtype).all() and _fits(known, dtype).all():
            return known.astype(dtype), y.astype(dtype)
    label = plain(y[np.argmin(_fits(y, known.dtype))])
    raise ValueError(
        f"y holds the label {label!r}, but the classes so far are like {plain(known[0])!r}, in a type ({known.dtype}) "
        "that does not go with it: give all labels one type from the start"
    )


def _fits(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Which values a type holds as they are."""
    with np.errstate(invalid="ignore", over="ignore"):
        made = values.astype(dtype)
        same = (made.astype(values.dtype) == values) & ((made < 0) == (values < 0))  # the largest wrap round
        if values.dtype.kind == "f" and made.dtype.kind in "iu":
            same &= np.abs(values) < 2.0**63
    return same


def plain(label: Any) -> Any:
    """A label as Python would write it, not NumPy."""
    return label.item() if hasattr(label, "item") else label


def _refuse(label: Any, row: int, classes: np.ndarray, grows: bool) -> None:
    known = ", ".join(repr(plain(c)) for c in classes[:10])
    label = plain(label)
    raise ValueError(
        f"y holds the label {label!r} (row {row}), which is not among the classes {known}"
        f"{', ...' if len(classes) > 10 else ''}"
        + ("; with grow=True partial_fit takes in new classes" if grows else "")
    )


# ----------------------------------------------------------------------------------------------------
# Weights: those that users give to examples and classes, and those that balance classes.


HEAVIEST = 1e100  # times the longest step, and the sum of very many such weights, are finite


def check_weights(sample_weight: Any, rows: int, *, sees_all: bool) -> np.ndarray:
    """One weight a row, as floats; a stretch of a stream may be all zeros, a whole data set may not."""
    if sample_weight is None:
        return np.ones(rows)
    weight = _as_numbers(sample_weight, "sample_weight")
    if weight.ndim == 0:
        weight = np.full(rows, float(weight))
    if weight.shape != (rows,):
        raise ValueError(
            f"Sample weights must be 1D, one a row: sample_weight.shape == {weight.shape}, expected ({rows},)"
        )
    if not np.isfinite(weight).all():
        raise ValueError(f"sample_weight contains NaN or infinity in row {int(np.argmin(np.isfinite(weight)))}")
    if (weight < 0).any():
        raise ValueError(f"sample_weight must not be negative; row {int(np.argmin(weight))} has {weight.min():g}")
    check_heaviest(weight, "sample_weight")
    if sees_all and not weight.any():
        raise ValueError("every sample_weight is zero, so there is nothing to learn from")
    return weight


def check_heaviest(weight: np.ndarray, what: str) -> None:
    """Refuse weights that would make steps infinite, saying where the first one is."""
    if not weight.max(initial=0.0) <= HEAVIEST:
        row = int(np.argmin(weight <= HEAVIEST))
        raise ValueError(
            f"{what} is {weight[row]:g} in row {row}, but must be at most {HEAVIEST:g}: "
            "divide all weights by the same number"
        )


def class_weights(given: Any, classes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """A weight a class: those given by label, or what balances the counts."""
    if isinstance(given, str):
        return balanced(counts)
    for label, weight in given.items():
        if _as_numbers(weight, f"class_weight of {label!r}").ndim:
            raise ValueError(f"class_weight of {label!r} must be one number, not {weight!r}")
    weights = _by_label(given, classes)
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ValueError(f"class weights must be numbers of at least 0, and not all 0: {given}")
    return weights


def _by_label(given: dict[Any, Any], classes: np.ndarray) -> np.ndarray:
    """The weight of each class; classes that are not given weigh 1, unless labels are given that are no classes."""
    weights, missing = np.ones(len(classes)), []
    for k, one in enumerate(classes):
        try:
            label: Any = int(one)
        except ValueError:  # a word
            label = str(one)
        if label in given:
            weights[k] = given[label]
        else:
            missing.append(label)
    if missing and given and len(classes) - len(missing) != len(given):
        raise ValueError(f"The classes, {missing}, are not in class_weight")
    return weights


def multiplied(weight: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Weights of examples times those of their classes."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.where(weight > 0, weight * factors, 0.0)
    check_heaviest(product, "sample_weight times the weight of the class")
    return product


def _as_numbers(given: Any, what: str) -> np.ndarray:
    """Anything that holds real numbers, as floats."""
    given = np.asarray(given)
    if given.dtype.kind in "iubf":
        return given.astype(np.float64, copy=False)
    try:
        if given.dtype.kind != "O":  # of text NumPy would make numbers where it can, of complex ones half
            raise TypeError
        return given.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must hold numbers, not {given.reshape(-1)[:1].tolist()}") from None


def running_balance(codes: np.ndarray, weight: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The "balanced" weight of each example, from the counts of its class and of all so far.

    ``counts`` holds the count of all examples, then of each class, and is brought up to date. Sums are taken
    in the order of the examples, so what one gets does not depend on how the stream is cut up.
    """

    def onward(start: float, amounts: np.ndarray) -> np.ndarray:
        return np.cumsum(np.concatenate([[start], amounts]))[1:]

    balanced = np.zeros(len(codes))
    total = onward(counts[0], weight)
    for c in np.unique(codes):
        mine = codes == c
        so_far = onward(counts[c + 1], weight[mine])
        known = so_far > 0
        with np.errstate(over="ignore"):  # weights that are too large are refused where they are used
            balanced[np.flatnonzero(mine)[known]] = total[mine][known] / ((len(counts) - 1) * so_far[known])
        counts[c + 1] = so_far[-1]
    if len(total):
        counts[0] = total[-1]
    return balanced


def balanced(counts: np.ndarray) -> np.ndarray:
    """A weight a class that makes all classes weigh the same."""
    with np.errstate(over="ignore"):
        return np.divide(counts.sum(), len(counts) * counts, out=np.ones(len(counts)), where=counts > 0)
