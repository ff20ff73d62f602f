"""Contestants of races for tests of clusters, in a module that worker processes can import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

from onlearn.tune.losses import Losses

ROWS = 2000


class Summing:
    """Its loss depends on all rows that it has learned from, in their order: a turn too many or too few is seen."""

    def __init__(self, level: float, rows: np.ndarray) -> None:
        self.level, self.rows, self.sum = level, rows, 0.0

    def learn(self, rows: np.ndarray) -> None:
        for value in self.rows[rows[::17]]:
            self.sum = np.cos(self.sum + value)

    def judge(self, rows: np.ndarray) -> Losses:
        return Losses(self.level + 0.1 * np.sin(self.sum + self.rows[rows]), np.zeros(len(rows)))


class Failing(Summing):
    """It raises an error when it has learned so many times."""

    def __init__(self, level: float, rows: np.ndarray, turns: int) -> None:
        super().__init__(level, rows)
        self.left = turns

    def learn(self, rows: np.ndarray) -> None:
        if not self.left:
            raise FloatingPointError("the weights are too large")
        self.left -= 1
        super().learn(rows)


class Killing(Summing):
    """It kills its process when it learns, unless a file says that it has done so as often as it shall."""

    def __init__(self, level: float, rows: np.ndarray, path: Path, times: int, after: int = 0) -> None:
        super().__init__(level, rows)
        self.path, self.times, self.left = path, times, after

    def learn(self, rows: np.ndarray) -> None:
        done = self.path.stat().st_size if self.path.exists() else 0
        if not self.left and done < self.times:
            with open(self.path, "ab") as file:
                file.write(b"x")
            os.kill(os.getpid(), signal.SIGKILL)
        self.left = max(0, self.left - 1)
        super().learn(rows)


class Waiting(Summing):
    """It learns until there is a file."""

    def __init__(self, level: float, rows: np.ndarray, path: Path) -> None:
        super().__init__(level, rows)
        self.path = path

    def learn(self, rows: np.ndarray) -> None:
        while not self.path.exists():
            time.sleep(0.02)
