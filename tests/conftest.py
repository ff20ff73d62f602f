"""Settings and fixtures for all tests."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells have it for what they run in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Derandomized: a failure is a failure for everyone. No deadline: the first example may compile a loop.
settings.register_profile("onlearn", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("onlearn")

# Compiling makes very many objects that live on: a tenth of the time went into looking for garbage among them.
gc.set_threshold(100_000, 20, 100)


@pytest.fixture(scope="session")
def data() -> Callable[[str], Path]:
    """``data("a9a")``: the path of a real data set; the test is skipped where it is absent."""

    def find(name: str) -> Path:
        folder = os.environ.get("ONLEARN_DATA")
        if not folder:
            pytest.skip("ONLEARN_DATA is not set")
        path = Path(folder) / name
        if not path.exists():
            pytest.skip(f"{name} is not in ONLEARN_DATA")
        return path

    return find
