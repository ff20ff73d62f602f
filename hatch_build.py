"""Build hook: wheels that hold machine code of the named learners, the readers and the features.

It is off unless ``ONLEARN_SHIP=1`` is set, as ``make wheel`` does: a plain ``pip install .`` builds a pure wheel. The
build needs the package's dependencies, so it runs without isolation. See ``onlearn.compiler.shipped``.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LEVELS = ("x86-64-v2", "x86-64-v3")
# The code calls a few functions of the C library, all of them in glibc 2.17; at run time each is looked up first.
TAG = "py3-none-manylinux_2_17_x86_64"
PROGRAM = "import sys; from onlearn.warm import ship; ship(*sys.argv[1:])"


class ShippedCode(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles for each level in a process of its own, and adds the files to the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable" or os.environ.get("ONLEARN_SHIP") != "1":
            return
        if (sys.platform, platform.machine()) != ("linux", "x86_64"):
            raise RuntimeError("machine code is shipped for Linux on x86-64 alone: build a pure wheel here")
        folder = Path(self.root, "build", "shipped")
        shutil.rmtree(folder, ignore_errors=True)
        started = [self._compile(folder, level) for level in LEVELS]
        statuses = [process.wait() for process in started]
        if any(statuses):
            raise RuntimeError("compiling for the wheel failed")
        build_data["pure_python"] = False
        build_data["tag"] = TAG
        build_data["force_include"][str(folder)] = "onlearn/compiler/shipped"

    def _compile(self, folder: Path, level: str) -> subprocess.Popen[bytes]:
        settings = {
            "NUMBA_CPU_NAME": level,
            "NUMBA_CPU_FEATURES": "",  # those of the level, not of this machine
            "NUMBA_DISABLE_INTEL_SVML": "1",
            "ONLEARN_BACKEND": "object_code",
            "PYTHONPATH": str(Path(self.root, "src")),
        }
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(folder), level], env={**os.environ, **settings}, cwd=self.root
        )
