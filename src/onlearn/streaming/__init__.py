"""Streams: progressive validation of rows that come one after another, with delayed labels and drift."""

from __future__ import annotations

from onlearn.streaming.drift_policies import DriftWarning
from onlearn.streaming.metrics import METRICS
from onlearn.streaming.progressive import stream
from onlearn.streaming.record import StreamRecord

__all__ = ["METRICS", "DriftWarning", "StreamRecord", "stream"]
