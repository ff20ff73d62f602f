"""Modules that scikit-learn imports but a command hardly ever needs, imported when they are.

scipy.stats and pandas take most of the time that a command needs to start. Here they are stood in for by an empty
module that becomes the real one when something is asked of it.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

HEAVY = ("scipy.stats", "pandas")


class Later(ModuleType):
    """Stands in for a module until one of its names is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name in ("__path__", "__file__", "__wrapped__"):  # asked by those who look over all modules
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        real = importlib.import_module(self.__name__)
        self.__dict__.update(real.__dict__)
        return getattr(real, name)


def postpone() -> None:
    """Stand in for the heavy modules, unless they are imported already."""
    for name in HEAVY:
        if name in sys.modules or (name == "pandas" and importlib.util.find_spec(name) is None):
            continue
        module = Later(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        sys.modules[name] = module
