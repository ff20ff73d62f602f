"""The model file: a ``.onl`` file is a safetensors file, arrays plus a JSON header. Loading it runs no code.

A learner is stored by its public name, its parameters (choices by their spelling) and whatever its
``_pack`` returns: plain facts and arrays. ``_unpack`` takes them back. Files are written beside the old one and
renamed over it (``whole_file``), so a crash leaves the old model or the new one, whole. Large arrays are stored in less
room where that loses nothing (``compact_arrays``). What a file may say is stated beside each ``_pack``, as a schema
(``model_schema``): whatever a file holds, it loads as a sound model, or is refused in one sentence.
"""

from __future__ import annotations

import importlib
import json
import math
import mmap
import os
import reprlib
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from onlearn.compact_arrays import BITS_OF, COMPACT, bits_name, compact, expand
from onlearn.inert_text import inert
from onlearn.model_schema import (
    PLAIN,
    TEXT,
    AnyOf,
    Arrays,
    Kind,
    ListOf,
    MappingOf,
    Record,
    TupleOf,
    as_arrays,
    check_facts,
    check_labels_differ,
    one_of,
)
from onlearn.whole_file import whole_file

FORMAT = 2
TOLD = 600  # characters of an error about what a file says
SHOWN = 200  # characters of an error of the library that reads model files

# The values of a learner's parameters; a dict is stored as pairs, for its keys need not be texts.
VALUE: Kind = AnyOf(PLAIN, ListOf(TEXT, "texts"), Record(pairs=ListOf(TupleOf(PLAIN, PLAIN), "pairs")))
DESCRIBED = Record(learner=TEXT, params=MappingOf(VALUE, "parameters by name"))  # what ``describe`` gives, at least
LABELS = Record(dtype=one_of("object", "str"), values=ListOf(PLAIN, "labels"))


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


def rebuild(header: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    """What was described; a learner as such, without the estimator around it."""
    check_facts(header, DESCRIBED)
    name = header["learner"]
    params = {key: _parameter(value) for key, value in header["params"].items()}
    registry = importlib.import_module("onlearn.engine.registry")  # above this module, so by name
    if registry.is_learner(name):
        made = registry.make_learner(name)
    else:
        cls = _public(name)
        if cls is None:
            raise ModelFileError(f"it holds a {reprlib.repr(name)}, which this version of onlearn does not know")
        made = cls()
    if unknown := params.keys() - made.get_params(deep=False).keys():
        first = reprlib.repr(min(unknown))
        raise ModelFileError(f"{name} has no parameter {first}: the file may come from a newer version of onlearn")
    if params:
        made.set_params(**params)
    made._unpack(header, as_arrays(arrays))
    return made


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
    with errors_of(path):
        return rebuild(header, arrays)


@contextmanager
def errors_of(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say of an error of what a file holds that it is about this file."""
    try:
        yield
    except ValueError as error:  # ModelFileError, too; what it quotes from the file may be long
        raise ModelFileError(f"cannot load {path}: {inert(error, TOLD)}") from None
    except Exception as error:  # no schema foresaw it
        raise ModelFileError(f"{path} is damaged ({type(error).__name__}: {inert(error, TOLD)})") from error


def read_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays of a model file, checked as far as can be without knowing the learner."""
    header, stored, known = _read(path, arrays=True)
    try:
        arrays = Arrays(expand(stored, known))
    except ValueError as error:
        raise ModelFileError(f"{path} is damaged: {error}") from None
    if wrong := _not_finite(arrays):
        raise ModelFileError(f"{path} is damaged: {reprlib.repr(wrong)} holds values that are not finite numbers")
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
        return (
            key for key in self._stored if not (key.endswith(bits_name("")) and key[: -len(bits_name(""))] in self._how)
        )

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, key: str) -> np.ndarray:
        needed = {name: self._stored[name] for name in (key, bits_name(key)) if name in self._stored}
        return _finite(key, expand(needed, {key: self._how[key]} if key in self._how else {})[key])

    def size(self, key: str) -> int:
        """How many numbers an array has."""
        return math.prod(self._how[key]["shape"]) if key in self._how else self._stored[key].size

    def rows(self, key: str, rows: np.ndarray, width: int) -> np.ndarray:
        """Some rows of a flat array that has ``width`` numbers in each, one row after another."""
        values, how = self._stored[key].reshape(-1), self._how.get(key, {})
        places = (rows[:, np.newaxis] * width + np.arange(width)).reshape(-1)
        dtype = np.dtype(how["dtype"]) if how else values.dtype
        if how.get("common") is None:
            if len(values) != self.size(key):
                raise ValueError(f"{key} contradicts itself")
            return _finite(key, values[places].astype(dtype, copy=False))
        bits = self._stored.get(bits_name(key))
        if bits is None or bits.dtype != np.uint8 or bits.shape != ((self.size(key) + 7) // 8,):
            raise ValueError(f"{key} contradicts itself")
        before = np.concatenate([np.zeros(1, np.uint32), np.cumsum(BITS_OF[bits], dtype=np.uint32)])
        if before[-1] != len(values):
            raise ValueError(f"{key} contradicts itself")
        here, place = bits[places >> 3].astype(np.int64), 7 - (places & 7)  # the first bit of a byte is the highest
        differs = (here >> place & 1).astype(bool)
        made = np.full(len(places), index(how["common"]), f"u{dtype.itemsize}").view(dtype)
        made[differs] = values[(before[places >> 3] + BITS_OF[here >> (place + 1)])[differs]]
        return _finite(key, made)


def _finite(key: str, array: np.ndarray) -> np.ndarray:
    """The array, which must hold finite numbers."""
    if _not_finite({key: array}):
        raise ValueError(f"{reprlib.repr(key)} holds values that are not finite numbers")
    return array


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


def _read(path: str | os.PathLike[str], arrays: bool) -> tuple[dict[str, Any], Arrays, dict[str, Any]]:
    """The header, the arrays as they are stored, and what must be known to expand them."""
    from safetensors import SafetensorError, safe_open

    target = Path(path)
    _refuse_other_files(target)
    try:
        with safe_open(target, framework="numpy") as file:
            told = (file.metadata() or {}).get("onlearn")
            if told is None:
                raise ModelFileError(f"{target} is a safetensors file, but not one that onlearn wrote")
            header = json.loads(told)
            found = {key: np.array(file.get_tensor(key)) for key in file.keys()} if arrays else {}  # noqa: SIM118
    except ModelFileError:
        raise
    except RecursionError:
        raise ModelFileError(f"{target} is damaged: its header is nested too deeply") from None
    except (SafetensorError, ValueError, OSError, TypeError) as error:
        with open(target, "rb") as file:
            start = file.read(9)
        if start[8:] not in (b"{", b""):  # after its length comes the header of a safetensors file, an object
            raise ModelFileError(f"{target} is not a model file") from None
        raise ModelFileError(f"{target} is not a whole model file: {inert(error, SHOWN)}") from None
    if not isinstance(header, dict) or type(header.get("format")) is not int:
        raise ModelFileError(f"{target} has no format version in its header")
    if header["format"] > FORMAT:
        raise ModelFileError(
            f"{target} has format {header['format']}, but this version of onlearn reads up to {FORMAT}: upgrade onlearn"
        )
    known = header.pop("compact", {})
    try:
        check_facts(header, DESCRIBED)
        check_facts(known, COMPACT, "compact")
    except ValueError as error:
        raise ModelFileError(f"{target} is damaged: {error}") from None
    return header, Arrays(found), known


def _refuse_other_files(target: Path) -> None:
    """Refuse what is no file that can be read, or none at all: a pipe would block, and a device may have no end."""
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a directory, not a model file")
    if not target.exists():
        raise FileNotFoundError(f"there is no model file {target}")
    if not stat.S_ISREG(target.stat().st_mode):
        raise ModelFileError(f"{target} is a pipe or a device, not a model file: copy the model to a file first")
    if not os.access(target, os.R_OK):
        raise PermissionError(f"{target} cannot be read: permission denied")


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
        check_facts(spelled, LABELS, "classes")
        array = np.array(spelled["values"], dtype=object if spelled["dtype"] == "object" else None)
    if array is None:
        raise ModelFileError("the class labels are missing")
    check_labels_differ(array)
    return array
