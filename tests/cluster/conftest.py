"""A Dask cluster for tests: two worker processes, started once."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from onlearn.cluster.scheduler import SILENT


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A client of two worker processes with nannies, of one thread each; those that a test kills are started anew."""
    distributed = pytest.importorskip("distributed")
    for name in ("distributed", "tornado.application"):
        logging.getLogger(name).setLevel(SILENT)
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            memory_limit="2GiB",
            dashboard_address="127.0.0.1:0",
            silence_logs=SILENT,
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def one_worker() -> Iterator[Any]:
    """A client of one worker inside this process, of three threads."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=3,
            processes=False,
            dashboard_address="127.0.0.1:0",
            silence_logs=SILENT,
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield client
