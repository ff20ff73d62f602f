"""What workers do: each task is a pure function of a shard, the round and what is shared.

What a worker keeps (``worker_memory``) saves time and changes no result. Errors that would come again are returned as
``Refused``, and not raised, so that Dask does not try the task once more.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

import numpy as np

from onlearn.cluster.connection import Refused
