"""The model file: a ``.onl`` file is a safetensors file, arrays plus a JSON header. Loading it runs no code.

A learner is stored by its public name, its parameters (choices by their spelling) and whatever its
``_pack`` returns: plain facts and arrays. ``_unpack`` takes them back. Files are written beside the old one and
renamed over it, so a crash leaves the old model or the new one, whole. Large arrays are stored in less room where that
loses nothing (see ``compact``).
"""

from __future__ import annotations

import importlib
import json
import math
import mmap
import os
import reprlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from operator import index
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onlearn.threads import over_rows

# ----------------------------------------------------------------------------------------------------
# What a model file says of a learner, held against what a learner can be: no damaged file may load, and then lie.


class Kind(NamedTuple):
    """What a fact of the header may be."""

    fits: Callable[[Any], bool]
    wanted: str


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    return is_whole(value) or isinstance(value, float)


def _is_entry(value: Any) -> bool:
    return isinstance(value, dict) and {"seen", "loss"} <= value.keys() and all(map(is_number, value.values()))


def either(value: Any, kind: Kind) -> Kind:
    """That kind, or a single value."""
    return Kind(lambda given: given is value or kind.fits(given), f"{kind.wanted} or {value!r}")


def a_list(fits: Callable[[Any], bool], of: str) -> Kind:
    return Kind(lambda value: isinstance(value, list) and all(map(fits, value)), f"a list of {of}")


COUNT = Kind(lambda value: is_whole(value) and value >= 0, "a whole number of at least 0")
NUMBER = Kind(is_number, "a number")
TRUTH = Kind(lambda value: isinstance(value, bool), "true or false")
NAMES = a_list(lambda value: isinstance(value, str), "names")
PRECISION = Kind(lambda value: value in ("float64", "float32"), "'float64' or 'float32'")
SHARE = Kind(lambda value: is_number(value) and 0 < value < 1, "a number between 0 and 1")

TRAINING = {
    **dict.fromkeys(("features", "outputs", "capacity", "passes"), COUNT),
    **dict.fromkeys(("classifies", "even"), TRUTH),
    "bias": NUMBER,
    "by_pass": a_list(_is_entry, "passes, each with what was seen and lost"),
    "since": a_list(is_number, "numbers"),
}
ESTIMATOR = {
    "n_features_in": COUNT,
    "feature_names_in": either(None, NAMES),
    "seed": COUNT,
    "dtype": PRECISION,
}


def check_facts(facts: Mapping[str, Any], kinds: Mapping[str, Kind]) -> None:
    """Refuse a header in which something is of another kind than it can be."""
    for name, kind in kinds.items():
        if not kind.fits(facts[name]):
            raise ValueError(f"the header has {reprlib.repr(facts[name])} for {name}, which must be {kind.wanted}")


def check_array(name: str, array: np.ndarray, kinds: str, shape: tuple[int, ...], low: float = -np.inf,
                high: float = np.inf, whole: bool = False) -> None:  # fmt: skip
    """Refuse an array of other kinds of numbers, of another shape, or with values outside of a range."""
    if array.dtype.name not in kinds.split() or array.shape != shape:
        raise ValueError(f"{name} does not have the shape or type that this learner has")
    if (array < low).any() or (array > high).any() or (whole and (array != np.floor(array)).any()):
        raise ValueError(
            f"{name} holds what it cannot hold: values must be {'whole and ' * whole}from {low:g} to {high:g}"
        )


def check_labels_differ(labels: np.ndarray) -> None:
    """Refuse classes that are not a plain list of different labels, all words or all numbers."""
    known = labels.dtype.kind in "iufbU" or all(isinstance(label, (str, int, float)) for label in labels.ravel())
    if labels.ndim != 1 or not known or len({isinstance(label, str) for label in labels.tolist()}) > 1:
        raise ValueError("the classes are not a list of words or of numbers")
    if len(set(labels.tolist())) < len(labels):
        raise ValueError("the classes hold a label twice")


FORMAT = 2


class ModelFileError(ValueError):
    """A file that is not a model, or not one that can be read."""


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write an estimator to a file."""
    header, arrays = describe(estimator)
    if wrong := _not_finite(arrays):
        raise ModelFileError(f"{wrong} holds values that are not finite numbers, so nothing was saved")
    stored, known = compact({key: np.ascontiguousarray(array) for key, array in arrays.items()})
    # what is not compact can be read by older versions too
    way: dict[str, Any] = {"format": FORMAT, "compact": known} if known else {"format": 1}
    told = {"onlearn": json.dumps({**way, **header})}
    with whole_file(path) as temporary:
        write_arrays(temporary, stored, told)


def write_arrays(path: str, arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Write a safetensors file. The package's own function would copy every array, and the model might not fit twice.

    The file is the length of a JSON text in 8 bytes, that text, and the arrays, those of large elements first.
    """
    entries: dict[str, Any] = {"__metadata__": metadata}
    start = 0
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0]))
    for key, array in ordered:
        kind = "BOOL" if array.dtype == bool else f"{array.dtype.kind.upper()}{8 * array.itemsize}"
        entries[key] = {"dtype": kind, "shape": array.shape, "data_offsets": (start, start + array.nbytes)}
        start += array.nbytes
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for _, array in ordered:
            file.write(array.astype(array.dtype.newbyteorder("<"), copy=False).reshape(-1).view(np.uint8).data)


def _not_finite(arrays: dict[str, np.ndarray]) -> str | None:
    """The name of an array that holds NaN or infinity."""
    for key, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            return key
    return None


def describe(estimator: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """An estimator as plain facts and arrays."""
    name = getattr(estimator, "stored_as", None) or type(estimator).__name__
    if not hasattr(estimator, "stored_as") and _public(name) is not type(estimator):
        raise ModelFileError(f"{name} is not one of onlearn's learners, so a model file cannot name it")
    facts, arrays = estimator._pack()
    return {"learner": name, "params": _spell_params(estimator), **facts}, arrays


def rebuild(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """What was described; a learner as such, without the estimator around it."""
    name = header["learner"]
    params = {key: _parameter(value) for key, value in header["params"].items()}
    registry = importlib.import_module("onlearn.engine.registry")  # above this module, so by name
    if registry.is_learner(name):
        made = registry.make_learner(name, **params)
    else:
        cls = _public(name)
        if cls is None:
            raise ModelFileError(f"it holds a {name!r}, which this version of onlearn does not know")
        made = cls(**params)
    made._unpack(header, arrays)
    return made


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file beside its place, then rename it."""
    with whole_file(path) as temporary:
        Path(temporary).write_bytes(content)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[str]:
    """The name of a file to write, beside its place; renamed when that went well: nobody ever sees half of it."""
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a directory, not a file to write to")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no directory {target.parent} to write {target.name} to")
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(handle)
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename in (None, temporary):
            # the temporary name is nobody's business
            raise OSError(error.errno, f"cannot be written: {error.strerror}", str(target)) from error
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator from a file; it predicts, and goes on learning, as if it had never been away."""
    made = load_learner(path)
    return estimator_of(made) if hasattr(made, "stored_as") else made


def estimator_of(learner: Any) -> Any:
    """The estimator around a learner, by the name that model files have of it."""
    return _public(learner.stored_as)._around(learner)


def load_learner(path: str | os.PathLike[str]) -> Any:
    """The same, but learners as such, without the estimators around them, which need scikit-learn."""
    header, arrays = read_file(path)
    try:
        return rebuild(header, arrays)
    except (KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"{path} is not a sound model file: {error}") from None
    except ValueError as error:
        raise ModelFileError(f"cannot load {path}: {error}") from None


def read_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a model file, checked as far as can be without knowing the learner."""
    header, stored, known = _read(path, arrays=True)
    try:
        arrays = expand(stored, known)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"{path} is not a sound model file: {error}") from None
    if wrong := _not_finite(arrays):
        raise ModelFileError(f"{path} is damaged: {wrong} holds values that are not finite numbers")
    return header, arrays


class StoredArrays(Mapping[str, np.ndarray]):
    """The arrays of a model file, mapped into memory: what is not looked at is not read, and takes no room.

    An array is expanded when it is asked for. They may be written to, which does not change the file.
    """

    header: dict[str, Any]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.header, _, self._how = _read(path, arrays=False)
        self._stored = _mapped(path)

    def __iter__(self) -> Iterator[str]:
        return (key for key in self._stored if not (key.endswith(_where("")) and key[: -len(_where(""))] in self._how))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, key: str) -> np.ndarray:
        needed = {name: self._stored[name] for name in (key, _where(key)) if name in self._stored}
        return expand(needed, {key: self._how[key]} if key in self._how else {})[key]

    def size(self, key: str) -> int:
        """How many numbers an array has."""
        return math.prod(self._how[key]["shape"]) if key in self._how else self._stored[key].size

    def rows(self, key: str, rows: np.ndarray, width: int) -> np.ndarray:
        """Some rows of a flat array that has ``width`` numbers in each, one row after another."""
        values, how = self._stored[key].reshape(-1), self._how.get(key, {})
        places = (rows[:, np.newaxis] * width + np.arange(width)).reshape(-1)
        dtype = np.dtype(how["dtype"]) if how else values.dtype
        if "common" not in how:
            return values[places].astype(dtype, copy=False)
        bits = self._stored[_where(key)]
        before = np.concatenate([np.zeros(1, np.uint32), np.cumsum(BITS_OF[bits], dtype=np.uint32)])
        if len(bits) != (self.size(key) + 7) // 8 or before[-1] != len(values):
            raise ValueError(f"{key} contradicts itself")
        here, place = bits[places >> 3].astype(np.int64), 7 - (places & 7)  # the first bit of a byte is the highest
        differs = (here >> place & 1).astype(bool)
        made = np.full(len(places), index(how["common"]), f"u{dtype.itemsize}").view(dtype)
        made[differs] = values[(before[places >> 3] + BITS_OF[here >> (place + 1)])[differs]]
        return made


def _mapped(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The arrays of a file that is known to be sound, as they are stored."""
    with open(path, "rb") as file:
        start = 8 + int.from_bytes(file.read(8), "little")
        entries = json.loads(file.read(start - 8))
        content = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), np.uint8)
    arrays = {}
    for key, entry in entries.items():
        if key != "__metadata__":
            first, last = (start + offset for offset in entry["data_offsets"])
            kind = "?" if entry["dtype"] == "BOOL" else f"<{entry['dtype'][0].lower()}{int(entry['dtype'][1:]) // 8}"
            array = content[first:last].view(np.dtype(kind).newbyteorder("=")).reshape(entry["shape"])
            arrays[key] = array if array.flags.aligned else array.copy()
    return arrays


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The header alone, which tells that a file is a model; the arrays, however large, are not looked at."""
    return _read(path, arrays=False)[0]


def _read(path: str | os.PathLike[str], arrays: bool) -> tuple[dict[str, Any], dict[str, np.ndarray], dict[str, Any]]:
    """The header, the arrays as they are stored, and what must be known to expand them."""
    from safetensors import SafetensorError, safe_open

    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a directory, not a model file")
    if not target.exists():
        raise FileNotFoundError(f"there is no model file {target}")
    if not os.access(target, os.R_OK):
        raise PermissionError(f"{target} cannot be read: permission denied")
    try:
        with safe_open(target, framework="numpy") as file:
            header = json.loads((file.metadata() or {})["onlearn"])
            found = {key: np.array(file.get_tensor(key)) for key in file.keys()} if arrays else {}  # noqa: SIM118
    except KeyError:
        raise ModelFileError(f"{target} is a safetensors file, but not one that onlearn wrote") from None
    except (SafetensorError, ValueError, OSError) as error:
        with open(target, "rb") as file:
            start = file.read(9)
        if start[8:] not in (b"{", b""):  # after its length comes the header of a safetensors file, an object
            raise ModelFileError(f"{target} is not a model file") from None
        raise ModelFileError(f"{target} is not a whole model file: {error}") from None
    if not isinstance(header, dict) or not isinstance(header.get("format"), int):
        raise ModelFileError(f"{target} has no format version in its header")
    if header["format"] > FORMAT:
        raise ModelFileError(
            f"{target} has format {header['format']}, but this version of onlearn reads up to {FORMAT}: upgrade onlearn"
        )
    return header, found, header.pop("compact", {})


def _public(name: str) -> Any:
    """An estimator's class by its public name, or None."""
    public = importlib.import_module("onlearn")  # whose table of names is the list of what may be stored
    return getattr(public, name) if name in public._NAMES and name[:1].isupper() else None


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _spell_params(estimator: Any) -> dict[str, Any]:
    """Parameters as JSON: choices by their spelling; a dict as pairs, for its keys need not be strings."""
    spelled = {}
    for key, value in estimator.get_params(deep=False).items():
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, type):
            value = value()
        if isinstance(value, dict):
            value = {"pairs": [[_plain(k), _plain(v)] for k, v in value.items()]}
        elif isinstance(value, (np.random.RandomState, np.random.Generator)):
            value = None  # the seed drawn from it is among the facts
        elif not isinstance(value, (str, int, float, bool, type(None))) and not _is_list_of_texts(value):
            value = repr(value)
        spelled[key] = value
    return spelled


def _parameter(value: Any) -> Any:
    return dict(map(tuple, value["pairs"])) if isinstance(value, dict) else value


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def pack_labels(labels: np.ndarray) -> tuple[Any, np.ndarray | None]:
    """Class labels or names as JSON, or, if they are numbers, as an array."""
    if labels.dtype.kind in "iufb":
        return None, labels if labels.itemsize <= 8 else _as_doubles(labels)
    plain = [_plain(label) for label in labels]
    if not all(isinstance(label, (str, int, float, bool)) for label in plain):
        raise ModelFileError("class labels must be strings or numbers to be saved")
    return {"dtype": "object" if labels.dtype == object else "str", "values": plain}, None


def _as_doubles(labels: np.ndarray) -> np.ndarray:
    """Numbers of extended precision as doubles, which files can hold, if they are the same."""
    doubles = labels.astype(np.float64)
    if (doubles != labels).any():
        label = labels[np.argmax(doubles != labels)]
        raise ModelFileError(f"the class label {label} has more digits than a model file can hold: nothing was saved")
    return doubles


def unpack_labels(spelled: Any, array: np.ndarray | None) -> np.ndarray:
    if spelled is not None:
        array = np.array(spelled["values"], dtype=object if spelled["dtype"] == "object" else None)
    if array is None:
        raise ModelFileError("the class labels are missing")
    check_labels_differ(array)
    return array


# ----------------------------------------------------------------------------------------------------
# Large arrays as they are stored: those that are mostly one value, or hold small whole numbers, take less room.
#
# Of many classes and features most weights have never moved: a file need not hold each of them. Nothing is lost:
# ``expand(*compact(arrays))`` are the same arrays, bit for bit.


LARGE = 1 << 16  # bytes; less is not worth it
SAMPLE = 1001  # elements that tell which value is the most common one
SELDOM = 0.1  # of those; less is not worth a look at all the others
WORTH = 0.8  # store it differently if that takes so much of the room, or less

BITS_OF = np.array([n.bit_count() for n in range(256)], np.uint8)  # the bits that are set in a byte

KINDS = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")  # types that are worth it

Arrays = dict[str, np.ndarray]


def compact(arrays: Arrays, large: int = LARGE) -> tuple[Arrays, dict[str, Any]]:
    """The arrays to store, and what must be known to expand them."""
    items = list(arrays.items())
    size = sum(array.nbytes for _, array in items)
    made = over_rows(lambda a, b: [_stored(array, large) for _, array in items[a:b]], len(items), size)
    stored: Arrays = {}
    known: dict[str, Any] = {}
    for (key, _), (values, differs, how) in zip(items, (one for some in made for one in some)):
        stored[key] = values
        if differs is not None:
            stored[_where(key)] = differs
        if how:
            known[key] = how
    return stored, known


def _stored(array: np.ndarray, large: int) -> tuple[np.ndarray, np.ndarray | None, dict[str, Any]]:
    """What is stored of an array: values, the bits that tell where they go, and what must be known to expand it."""
    if array.nbytes < large or not array.dtype.isnative or f"{array.dtype.kind}{array.itemsize}" not in KINDS:
        return array, None, {}
    how: dict[str, Any] = {"dtype": f"{array.dtype.kind}{array.itemsize}", "shape": list(array.shape)}
    flat, where = array.reshape(-1), None
    bits = flat.view(f"u{flat.itemsize}")  # zeros of either sign are kept apart
    common, share = _common(bits)
    if share >= SELDOM:
        differs = bits != common
        count = int(np.count_nonzero(differs))
        if count * flat.itemsize + flat.size / 8 <= WORTH * flat.nbytes:
            how["common"] = int(common)
            flat, where = flat[differs], np.packbits(differs)
    narrow = _narrow(flat)
    return (narrow, where, how) if where is not None or narrow.itemsize < flat.itemsize else (array, None, {})


def expand(stored: Arrays, known: dict[str, Any]) -> Arrays:
    """The arrays that were compacted; a ValueError if they cannot have been."""
    arrays = dict(stored)
    for key, how in known.items():
        if how["dtype"] not in KINDS:
            raise ValueError(f"{key} is of no type that is stored")
        dtype, shape = np.dtype(how["dtype"]), tuple(how["shape"])
        size = math.prod(shape)
        values = arrays[key].astype(dtype, copy=False)
        if "common" in how:
            bits = arrays.pop(_where(key))
            if len(bits) != (size + 7) // 8:  # so that no more memory is asked for than the file tells
                raise ValueError(f"{key} contradicts itself")
            differs = np.unpackbits(bits, count=size).view(bool)
            if np.count_nonzero(differs) != len(values):
                raise ValueError(f"{key} contradicts itself")
            common = index(how["common"])
            # Zeros need not be written: memory that nothing is put into takes no room.
            whole = np.full(size, common, f"u{dtype.itemsize}").view(dtype) if common else np.zeros(size, dtype)
            whole[differs] = values
            values = whole
        arrays[key] = values.reshape(shape)
    return arrays


def _where(key: str) -> str:
    """The name of the bits that tell where an array differs from its most common value."""
    return f"{key} differs"


def _common(bits: np.ndarray) -> tuple[Any, float]:
    """The most common value and its share, judged by some."""
    values, counts = np.unique(bits[:: max(1, len(bits) // SAMPLE)], return_counts=True)
    return values[counts.argmax()], float(counts.max() / counts.sum())


def _narrow(values: np.ndarray) -> np.ndarray:
    """Whole numbers in the fewest bytes that hold them all; other numbers as they are."""
    if values.dtype.kind == "f" or not len(values):
        return values
    least, most = values.min(), values.max()
    kinds = (np.uint8, np.uint16, np.uint32) if least >= 0 else (np.int8, np.int16, np.int32)
    for kind in kinds:
        if np.dtype(kind).itemsize < values.itemsize and np.iinfo(kind).min <= least and most <= np.iinfo(kind).max:
            return values.astype(kind)
    return values
