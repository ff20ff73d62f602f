"""Draws the picture of ``docs/naive_bayes.md``: where Gaussian naive Bayes decides for which class.

    python tools/draw_bayes.py [file.svg]

The regions are asked of ``NaiveBayes`` point by point; the ellipses are two deviations around the means of the classes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from onlearn import NaiveBayes

PICTURE = Path(__file__).parents[1] / "docs" / "naive_bayes.svg"
WIDTH, HEIGHT, CELL = 480, 320, 4  # pixels
SCALE = 40.0  # pixels for one unit
FILLS, COLOURS = ("#f6d5c5", "#cfe0f3"), ("#c2410c", "#1d4ed8")
MEANS, DEVIATIONS = np.array([[4.2, 4.2], [7.4, 3.6]]), np.array([[0.7, 0.5], [1.6, 1.3]])


def sample(rows: int = 90) -> tuple[np.ndarray, np.ndarray]:
    """Points of two classes, one of them narrow and one wide."""
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1], rows // 2)
    return rng.normal(MEANS[y], DEVIATIONS[y]), y


def regions(model: NaiveBayes) -> list[str]:
    """The class of each cell, as one rectangle for each stretch of a row of cells."""
    xs, ys = np.arange(0, WIDTH, CELL), np.arange(0, HEIGHT, CELL)
    drawn = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{FILLS[1]}"/>']
    for top in ys:
        points = np.column_stack([(xs + CELL / 2) / SCALE, np.full(len(xs), (HEIGHT - top - CELL / 2) / SCALE)])
        mine = np.concatenate([[0], model.predict(points) == 0, [0]]).astype(int)
        for start, stop in zip(np.flatnonzero(np.diff(mine) == 1), np.flatnonzero(np.diff(mine) == -1), strict=True):
            size = f'width="{(stop - start) * CELL}" height="{CELL}"'
            drawn.append(f'<rect x="{start * CELL}" y="{top}" {size} fill="{FILLS[0]}"/>')
    return drawn


def picture() -> str:
    """The whole picture as SVG."""
    X, y = sample()
    model = NaiveBayes("gaussian").fit(X, y)
    drawn = regions(model)
    for (a, b), c in zip(X, y, strict=True):
        drawn.append(f'<circle cx="{a * SCALE:.1f}" cy="{HEIGHT - b * SCALE:.1f}" r="2.5" fill="{COLOURS[c]}"/>')
    for c in (0, 1):
        (a, b), (p, q) = X[y == c].mean(axis=0), X[y == c].std(axis=0)
        place = f'cx="{a * SCALE:.1f}" cy="{HEIGHT - b * SCALE:.1f}" rx="{2 * p * SCALE:.1f}" ry="{2 * q * SCALE:.1f}"'
        drawn.append(f'<ellipse {place} fill="none" stroke="{COLOURS[c]}" stroke-width="1.5"/>')
    body = "\n".join(drawn)
    title = "<title>The decision of Gaussian naive Bayes between a narrow and a wide class</title>"
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">\n{title}\n{body}\n</svg>\n'


def main(arguments: list[str]) -> int:
    (Path(arguments[0]) if arguments else PICTURE).write_text(picture(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
