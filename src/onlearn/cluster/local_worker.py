"""What a worker process that is started here does first: it ignores Ctrl-C, which a terminal sends to it, too.

Whoever has started it decides what Ctrl-C means, and ends it; and says that compiled code is not kept, which would be
said by each worker once more. Dask imports this module in each new worker process.
"""

from __future__ import annotations

import logging
import signal
from typing import Any


def dask_setup(worker: Any) -> None:
    """Dask calls this when a worker starts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("onlearn.compiler").setLevel(logging.ERROR)
