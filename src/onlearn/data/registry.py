"""The formats that can be read. A format is one file in ``formats/`` with a class under ``@reader``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

import numpy as np

from onlearn.data.bad_rows import Bad
from onlearn.data.sources import SIZE, Stream


@dataclass(slots=True)
class Options:
    """How to read; see ``onlearn.data.read``."""

    target: str | int | None = None
    task: str = "classify"
    weight: str | int | None = None
    id: str | int | None = None
    id_required: bool = True
    id_kept: bool = False
    labels: str = "required"
    missing: str = "absent"
    delimiter: str | None = None
    header: bool | str = "auto"
    types: dict[str, str] = field(default_factory=dict)
    expected: list[str] = field(default_factory=list)
    block_size: int = SIZE

    @property
    def regress(self) -> bool:
        return self.task == "regress"

    @property
    def labelled(self) -> bool:
        return self.labels == "required"


@dataclass(slots=True)
class Parsed:
    """What a format makes of a piece of a file. Lines are counted from 0 in the piece."""

    rows: Any  # a ``CSR``, ``NamedRows``, a ``pyarrow.Table`` or ``Sentences``
    lines: np.ndarray
    line_count: int  # lines of the piece, empty and bad ones included
    codes: np.ndarray | None = None  # int64 into ``names``; -1 without a label
    names: list[str] = field(default_factory=list)  # the distinct labels of this piece
    numbers: np.ndarray | None = None  # labels of regression
    weight: np.ndarray | None = None
    ids: np.ndarray | None = None
    groups: np.ndarray | None = None
    bad: list[Bad] = field(default_factory=list)
    table: Any = None  # for the format's own ``settle``


class Format(Protocol):
    """One for all files of a run that have the same format.

    A class may have ``idle``, a dict of the options about columns that have no use with it, each with the reason.
    """

    def __init__(self, options: Options, notes: list[str]) -> None: ...

    def pieces(self, stream: Stream) -> Iterator[Any]:
        """Cut a stream into pieces; runs in a thread of its own, in order."""

    def parse(self, piece: Any) -> Parsed:
        """Make rows of a piece; runs in several threads."""

    def settle(self, parsed: Parsed) -> Parsed:
        """What depends on earlier pieces; runs in order."""


READERS: dict[str, Callable[[Options, list[str]], Format]] = {}
EXTENSIONS: dict[str, str] = {}


def reader(name: str, extensions: Iterable[str]) -> Callable[[type], type]:
    """Make a class the reader of a format."""

    def register(cls: type) -> type:
        READERS[name] = cls
        EXTENSIONS.update(dict.fromkeys(extensions, name))
        return cls

    return register


def readers() -> dict[str, Callable[[Options, list[str]], Format]]:
    """All readers by name; the files in ``formats/`` are found by being there."""
    discover()
    return READERS


@cache
def discover() -> None:
    import onlearn.data.formats as folder

    for module in pkgutil.iter_modules(folder.__path__):
        importlib.import_module(f"{folder.__name__}.{module.name}")
