"""A process that checks damaged files, so that one that ends it or never ends is found, too.

    PYTHONPATH=tests python -m fuzz.worker FORMAT FIRST [STOP]

checks the damaged files of some numbers, or that of one, and prints what it finds. Each line of its output is a number,
before the file of that number is read, or a finding as JSON.
"""

from __future__ import annotations

import base64
import contextlib
import faulthandler
import json
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

from fuzz.targets import TARGETS

HANGS = 60  # seconds after which a file that should take milliseconds hangs, on a busy machine, too
MEMORY = 8 << 30  # bytes of address space, so that a file that asks for more is found
SHOWN = 3000  # bytes of a file


def main(name: str, first: int, stop: int) -> None:
    """Check the damaged files from ``first`` up to ``stop``."""
    faulthandler.enable()
    with contextlib.suppress(ImportError):  # not on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.filterwarnings("error", category=RuntimeWarning, module="onlearn")
    target = TARGETS[name]
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, stop):
            print(number, flush=True)
            faulthandler.dump_traceback_later(HANGS, exit=True)
            case = target.case(name, number, Path(folder))
            try:
                target.check(case)
            except Exception as error:  # whatever it is, it is a finding
                why = str(error) if type(error) is AssertionError else "".join(traceback.format_exception(error)[-4:])
                print(json.dumps({"number": number, "why": why}), flush=True)
            faulthandler.cancel_dump_traceback_later()


def shown(name: str, number: int) -> str:
    """The damaged file of a number, for messages."""
    content = TARGETS[name].case(name, number, Path()).content
    return f"{len(content)} bytes, base64 {base64.b64encode(content[:SHOWN]).decode()}"


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else int(sys.argv[2]) + 1)
