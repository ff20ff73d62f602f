"""Draws docs/neighbors.svg: what 1 and 15 neighbours decide on two classes that overlap, and the error for every k.

python tools/draw_neighbors.py [file.svg]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

SIDE, GAP, CELLS = 220, 20, 55  # pixels of a panel, between panels, and cells along a side
SHADES, POINTS = ("#dbe7f6", "#fbe3d2"), ("#2a62a8", "#c4561b")


def main(path: Path) -> None:
    from onlearn import KNNClassifier

    rng = np.random.default_rng(4)
    y = np.arange(120) % 2
    angle = np.pi * rng.random(120) + np.pi * y
    X = np.column_stack([np.cos(angle) + y, np.sin(angle) + 0.5 * y]) + 0.42 * rng.normal(size=(120, 2))
    low, high = X.min(axis=0) - 0.15, X.max(axis=0) + 0.15
    auto = KNNClassifier("auto", k_max=40).fit(X, y)
    parts: list[str] = []
    for n, (k, title) in enumerate([(1, "k = 1"), (auto.k_, f'k = "auto": {auto.k_}')]):
        parts += panel(KNNClassifier(k).fit(X, y), X, y, low, high, n * (SIDE + GAP), title)
    parts += curve(auto.k_path_, auto.k_, 2 * (SIDE + GAP))
    width, height = 3 * SIDE + 2 * GAP, SIDE + 40
    text = "\n".join(parts)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="12">\n<rect width="{width}" height="{height}" fill="white"/>\n{text}\n</svg>\n'
    )


def panel(model: Any, X: Any, y: Any, low: Any, high: Any, left: int, title: str) -> list[str]:
    """The decision in each cell, neighbouring cells of a line in one stroke; and the rows learned from."""
    size = SIDE / CELLS
    grid = np.stack(np.meshgrid(*([(np.arange(CELLS) + 0.5) / CELLS] * 2)), axis=-1).reshape(-1, 2)
    decided = model.predict(low + grid * (high - low)).reshape(CELLS, CELLS)
    made = [f'<text x="{left + SIDE / 2}" y="16" text-anchor="middle">{title.replace(chr(34), "&quot;")}</text>']
    made.append(f'<rect x="{left}" y="24" width="{SIDE}" height="{SIDE}" fill="{SHADES[0]}"/>')
    strokes = []
    for row, line in enumerate(decided):
        edges = np.flatnonzero(np.diff(np.r_[0, line, 0]))
        top = 24 + SIDE - (row + 1) * size
        strokes += [f"M{left + a * size:g} {top:g}h{(b - a) * size:g}v{size:g}h{(a - b) * size:g}z"
                    for a, b in zip(edges[::2], edges[1::2])]  # fmt: skip
    made.append(f'<path fill="{SHADES[1]}" d="{"".join(strokes)}"/>')
    places = (X - low) / (high - low) * SIDE
    made += [f'<circle cx="{left + a:.1f}" cy="{24 + SIDE - b:.1f}" r="2.5" fill="{POINTS[c]}"/>'
             for (a, b), c in zip(places, y)]  # fmt: skip
    return made


def curve(path: list[tuple[int, float]], best: int, left: int) -> list[str]:
    """The error against k."""
    most = 1.1 * max(error for _, error in path)
    place = {k: (left + 30 + (k - 1) / (len(path) - 1) * (SIDE - 40), 24 + SIDE * (1 - e / most)) for k, e in path}
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in place.values())
    x, y = place[best]
    bottom = 24 + SIDE
    made = [f'<text x="{left + 30 + (SIDE - 40) / 2}" y="16" text-anchor="middle">error, each row left out</text>']
    made.append(f'<path fill="none" stroke="#888" d="M{left + 30} 24V{bottom}H{left + SIDE - 10}"/>')
    for k in (1, 10, 20, 30, 40):
        made.append(f'<text x="{place[k][0]:.1f}" y="{bottom + 14}" text-anchor="middle">{k}</text>')
    for tick in np.arange(0, most, 0.05):
        height = bottom - SIDE * tick / most + 4
        made.append(f'<text x="{left + 26}" y="{height:.1f}" text-anchor="end">{tick:g}</text>')
    made.append(f'<polyline fill="none" stroke="{POINTS[0]}" stroke-width="1.5" points="{points}"/>')
    return [*made, f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{POINTS[1]}"/>']


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs" / "neighbors.svg")
