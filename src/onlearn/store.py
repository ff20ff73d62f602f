"""The model file: a ``.onl`` file is a safetensors file, arrays plus a JSON header. Loading it runs no code.

An estimator is stored by its public name, its parameters (choices by their spelling) and whatever its
``_pack`` returns: plain facts and arrays. ``_unpack`` takes them back. Files are written beside the old one and
renamed over it, so a crash leaves the old model or the new one, whole. Large arrays are stored in less room where that
loses nothing (see ``compact``).
"""

from __future__ import annotations

import importlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from onlearn.compact import compact, expand
from onlearn.soundness import check_labels_differ

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
    name = type(estimator).__name__
    if _public(name) is not type(estimator):
        raise ModelFileError(f"{name} is not one of onlearn's learners, so a model file cannot name it")
    facts, arrays = estimator._pack()
    return {"learner": name, "params": _spell_params(estimator), **facts}, arrays


def rebuild(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """The estimator that was described."""
    cls = _public(header["learner"])
    if cls is None:
        raise ModelFileError(f"it holds a {header['learner']!r}, which this version of onlearn does not know")
    estimator = cls(**{key: _parameter(value) for key, value in header["params"].items()})
    estimator._unpack(header, arrays)
    return estimator


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
    header, arrays = read_file(path)
    try:
        return rebuild(header, arrays)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
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
        elif not isinstance(value, (str, int, float, bool, type(None))):
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
