"""Draws docs/mlp.svg: what networks have learned of XOR and of the disc x1^2 + x2^2 <= 1.

    python tools/draw_mlp.py [file]

Needs nothing but onlearn. The shade is the probability, the line is where it is 1/2, found by marching squares.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from onlearn import MLPClassifier

SIDE, GAP, TOP = 240, 30, 24  # pixels: of a panel, between two, above them
CELLS = 24  # of shade, along a side
FINE = 60  # of the line


def panel(title: str, model: Any, X: np.ndarray, y: np.ndarray, low: float, high: float, left: int) -> list[str]:
    """One picture: shade, line and examples."""

    def at(x: float, z: float) -> tuple[float, float]:
        unit = SIDE / (high - low)
        return left + (x - low) * unit, TOP + (high - z) * unit

    drawn = [f'<text x="{left + SIDE / 2:g}" y="15" text-anchor="middle">{title}</text>']
    middle = low + (np.arange(CELLS) + 0.5) * (high - low) / CELLS
    p = model.predict_proba(np.array([[x, z] for z in middle[::-1] for x in middle]))[:, 1].reshape(CELLS, CELLS)
    size = SIDE / CELLS
    for row in range(CELLS):
        shades, column = np.round(5 * p[row]) / 10, 0
        while column < CELLS:  # cells of one shade, side by side, are one rectangle
            count = int(np.argmin(np.append(shades[column:] == shades[column], False)))
            place = f'x="{left + column * size:g}" y="{TOP + row * size:g}" width="{count * size:g}" height="{size:g}"'
            if shades[column]:
                drawn.append(f'<rect {place} fill="#4a7ab5" opacity="{shades[column]:g}"/>')
            column += count
    lines = [(*at(*start), *at(*end)) for start, end in boundary(model, low, high)]
    path = "".join(f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" for x1, y1, x2, y2 in lines)
    drawn.append(f'<path d="{path}" stroke="black" stroke-width="1.5"/>')
    for (x, z), label in zip(X, y):
        cx, cy = at(x, z)
        fill = "#1d3f72" if label else "white"
        drawn.append(
            f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="{3 if len(X) > 4 else 6}" fill="{fill}" stroke="#1d3f72"/>'
        )
    drawn.append(f'<rect x="{left}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#888"/>')
    return drawn


def boundary(model: Any, low: float, high: float) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Short lines where the score is zero: in each cell between the points where its sides change sign."""
    grid = np.linspace(low, high, FINE)
    s = model.decision_function(np.array([[x, z] for z in grid for x in grid])).reshape(FINE, FINE)
    found = []
    for i in range(FINE - 1):
        for j in range(FINE - 1):
            corners = [(j, i), (j + 1, i), (j + 1, i + 1), (j, i + 1)]
            ends = []
            for (a, b), (c, d) in zip(corners, corners[1:] + corners[:1]):
                one, other = float(s[b, a]), float(s[d, c])
                if (one > 0) != (other > 0):
                    part = one / (one - other)
                    ends.append(
                        (float(grid[a] + part * (grid[c] - grid[a])), float(grid[b] + part * (grid[d] - grid[b])))
                    )
            found += [(ends[k], ends[k + 1]) for k in range(0, len(ends) - 1, 2)]
    return found


def picture() -> str:
    xor, odd = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])
    rng = np.random.default_rng(0)
    plane = rng.uniform(-1.8, 1.8, (2000, 2))
    inside = ((plane**2).sum(axis=1) <= 1).astype(int)
    small: Any = dict(activation="tanh", optimizer="adam(0.05)", epochs=400, random_state=0, dtype="float64")
    first = MLPClassifier(4, **small).fit(xor, odd)
    second = MLPClassifier(8, **{**small, "optimizer": "adam(0.01)", "epochs": 200}).fit(plane, inside)
    drawn = [
        *panel("XOR, 2-4-1", first, xor, odd, -0.5, 1.5, 1),
        *panel("the disc, 2-8-1", second, plane[:120], inside[:120], -1.8, 1.8, SIDE + GAP),
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * SIDE + GAP + 1}" height="{SIDE + TOP + 1}" '
    return "\n".join([head + 'font-family="sans-serif" font-size="13">', *drawn, "</svg>", ""])


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "mlp.svg")
    target.write_text(picture(), encoding="utf-8")
