"""Checks how much of the public surface has known types: pyright's type completeness, at least 95 %.

    python tools/check_types.py [least percentage]

Compiled code leaves generated sources in the package's ``__pycache__``, which pyright would count, so a clean copy of
the package is checked. Findings are printed when the percentage is too low.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "onlearn"
LEAST = 95.0


def completeness(package: Path) -> tuple[float, str]:
    """The type completeness of a package in percent, and all that pyright says."""
    with tempfile.TemporaryDirectory() as folder:
        copied, elsewhere = Path(folder, "clean"), Path(folder, "elsewhere")
        shutil.copytree(package, copied / package.name, ignore=shutil.ignore_patterns("__pycache__"))
        elsewhere.mkdir()  # pyright takes the package for the user's own code if it lies below the working folder
        binaries = str(Path(sys.executable).parent)
        environment = {**os.environ, "PYTHONPATH": str(copied), "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"}
        command = [sys.executable, "-m", "basedpyright", "--verifytypes", package.name, "--ignoreexternal"]
        done = subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True, check=False)
    found = re.search(r"completeness score: ([\d.]+)%", done.stdout)
    if found is None:
        raise SystemExit(f"pyright did not answer: {done.stdout[-500:]}{done.stderr[-500:]}")
    return float(found[1]), done.stdout


def main(arguments: list[str]) -> int:
    least = float(arguments[0]) if arguments else LEAST
    share, text = completeness(PACKAGE)
    if share < least:
        print("\n".join(line for line in text.splitlines() if " error: " in line))
    print(f"type completeness {share} % (at least {least} %)")
    return 1 if share < least else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
