"""Modules that others import but a command hardly ever needs.

They would take most of the time that a command needs to start. Those in ``LATER`` are imported when something is asked
of them. Two are kept out: pandas, which is optional to scikit-learn and PyArrow, for no command makes data frames; and
YAML, which Numba wants for a file of settings, unless there is one.
"""

from __future__ import annotations

import os
import sys
import threading
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

LATER = {
    "asyncio",
    "html",
    "joblib",
    "narwhals",
    "narwhals.stable",
    "narwhals.stable.v2",
    "numpy._core._add_newdocs",  # texts for help()
    "numpy._core._add_newdocs_scalars",
    "numpy._typing",
    "numpy.f2py",
    "numpy.testing",
    "numpy.typing",
    "pyarrow.compute",
    "scipy._lib.array_api_compat.numpy",
    "scipy._lib.array_api_extra",
    "scipy._lib.array_api_extra.testing",
    "scipy.sparse.csgraph",
    "scipy.sparse.linalg",
    "scipy.special",
    "scipy.stats",
    "sklearn.externals.array_api_compat.numpy",
    "sklearn.externals.array_api_extra",
    "sklearn.utils._show_versions",
    "sklearn.utils.extmath",
    "sklearn.utils.parallel",
}
# Functions that others take from such a module long before they call them, if ever.
TAKEN = {
    ("scipy._lib.array_api_extra.testing", "lazy_xp_function"),
    ("scipy.sparse.csgraph", "laplacian"),
    ("scipy.sparse.linalg", "cg"),
    ("sklearn.utils._show_versions", "show_versions"),
    ("sklearn.utils.extmath", "_approximate_mode"),
    ("sklearn.utils.extmath", "safe_sqr"),
    ("sklearn.utils.parallel", "_get_threadpool_controller"),
}
# What can be had without running such a module.
EASY = {"pyarrow.compute": "onlearn.cli.arrow"}
# Types that others write annotations with, which nobody reads: any generic class will do.
HINTS = {("numpy._typing", "NDArray"), ("numpy.typing", "NDArray"), ("numpy.typing", "ArrayLike")}
SETTINGS = ".numba_config.yaml"


class Later(ModuleType):
    """A module that runs when it is first asked for something that importing it does not set.

    (importlib's LazyLoader would run a package as soon as one of its modules is imported.)
    """

    _loading = threading.RLock()

    def __getattr__(self, name: str) -> Any:
        if name == "__path__":  # asked for by whoever imports from it; only packages have it, from the beginning
            raise AttributeError(name)
        if (self.__name__, name) in HINTS:
            return list
        if self.__name__ in EASY and name in (easy := import_module(EASY[self.__name__])).__all__:
            return getattr(easy, name)
        if (self.__name__, name) in TAKEN:
            return lambda *given, **named: Later._run(self, name)(*given, **named)  # which by then may be as others are
        return self._run(name)

    def _run(self, name: str) -> Any:
        with Later._loading:  # another thread may just be at it
            facts = self.__dict__
            if facts.get("__postponed__"):
                del facts["__postponed__"]  # while it runs, what is asked for is there or not
                try:
                    facts["__spec__"].loader.exec_module(self)
                except BaseException:
                    facts["__postponed__"] = True
                    raise
                self.__class__ = ModuleType  # type: ignore[assignment]
            return ModuleType.__getattribute__(self, name)


class Postponing:
    """Finds modules of ``LATER`` as ones that are loaded on first use, and says that others are not there."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name == "pandas" or (name == "yaml" and not os.path.exists(SETTINGS)):
            raise ModuleNotFoundError(f"commands do without {name}", name=name)
        if name not in LATER:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


class _Loader:
    """Makes a module and leaves it at that."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Later(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self.loader
        module.__dict__["__postponed__"] = True


def postpone() -> None:
    """Have modules imported later, or not at all, unless they are imported already."""
    sys.meta_path.insert(0, Postponing())
