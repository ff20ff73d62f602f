"""Draws docs/svm.svg: the boundary of an SVC on two moons, its margins, and its support vectors.

python tools/draw_svm.py [file.svg]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import onlearn

WIDTH, HEIGHT, CELLS = 640, 420, 96
COLOURS = ("#c8553d", "#2a6f97")
LEVELS = {-1.0: "4 4", 0.0: "", 1.0: "4 4"}  # of the scores, with the dashes of their lines


def moons(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Two half circles that reach into each other, with noise."""
    rng = np.random.default_rng(4)
    angle, side = np.pi * rng.random(count), np.arange(count) % 2
    x = np.where(side == 1, 1 - np.cos(angle), np.cos(angle))
    y = np.where(side == 1, 0.5 - np.sin(angle), np.sin(angle))
    return np.column_stack([x, y]) + 0.22 * rng.normal(size=(count, 2)), side


def crossings(values: np.ndarray, level: float) -> list[tuple[float, float, float, float]]:
    """Pieces of the line where a function on a grid has a value, cell by cell, in units of cells."""
    found = []
    for i in range(values.shape[0] - 1):
        for j in range(values.shape[1] - 1):
            corners = [(i, j), (i, j + 1), (i + 1, j + 1), (i + 1, j)]
            ends = []
            for (a, b), (c, d) in zip(corners, corners[1:] + corners[:1], strict=True):
                p, q = values[a, b] - level, values[c, d] - level
                if (p > 0) != (q > 0):
                    share = p / (p - q)
                    ends.append((b + share * (d - b), a + share * (c - a)))
            found += [(*ends[n], *ends[n + 1]) for n in range(0, len(ends) - 1, 2)]
    return found


def drawn() -> str:
    X, y = moons(160)
    machine = onlearn.SVC("gaussian(0.6)", C=2.0, random_state=0).fit(X, y)
    low, high = X.min(axis=0) - 0.25, X.max(axis=0) + 0.25
    rows = round(CELLS * HEIGHT / WIDTH)
    across, up = np.linspace(low[0], high[0], CELLS + 1), np.linspace(high[1], low[1], rows + 1)
    grid = np.array([[a, b] for b in up for a in across])
    values = machine.decision_function(grid).reshape(rows + 1, CELLS + 1)
    width, height = WIDTH / CELLS, HEIGHT / rows
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        "<title>Two moons: boundary, margins and support vectors of an SVC with a Gaussian kernel</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for level, dashes in LEVELS.items():
        path = "".join(
            f"M{a * width:.1f} {b * height:.1f}L{c * width:.1f} {d * height:.1f}"
            for a, b, c, d in crossings(values, level)
        )
        size = 2 if level == 0 else 1
        parts.append(f'<path d="{path}" fill="none" stroke="#333" stroke-width="{size}" stroke-dasharray="{dashes}"/>')
    places = (X - low) / (high - low) * [WIDTH, -HEIGHT] + [0, HEIGHT]
    held = set(machine.support_.tolist())
    for n, (a, b) in enumerate(places):
        ring = ' stroke="#333" stroke-width="1.6"' if n in held else ""
        parts.append(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="4.5" fill="{COLOURS[y[n]]}"{ring}/>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs" / "svm.svg"
    target.write_text(drawn(), encoding="utf-8")
