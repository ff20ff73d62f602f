"""Draws the pictures of docs/kernel_regression.md and docs/kernel_pca.md as small SVG files.

    python tools/draw_kernels.py [folder, by default docs]

All data are drawn with fixed seeds, and coordinates are rounded, so the files change only when the learners do.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import onlearn

WIDTH, HEIGHT, EDGE = 300, 200, 14
COLOURS = ("#1b6ca8", "#c8553d", "#3a7d44")
GREY = "#888888"


class Panel:
    """A frame with data coordinates in an SVG picture."""

    def __init__(self, title: str, left: int, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.left, self.x, self.y = left, x, y
        middle = left + WIDTH / 2
        self.parts = [
            f'<rect x="{left + 1}" y="21" width="{WIDTH - 2}" height="{HEIGHT - 2}" fill="white" stroke="#cccccc"/>',
            f'<text x="{middle:.0f}" y="14" text-anchor="middle">{title}</text>',
        ]

    def place(self, x: Any, y: Any) -> list[tuple[float, float]]:
        """Data coordinates as coordinates of the picture."""
        across = self.left + EDGE + (np.asarray(x) - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - 2 * EDGE)
        down = 20 + HEIGHT - EDGE - (np.asarray(y) - self.y[0]) / (self.y[1] - self.y[0]) * (HEIGHT - 2 * EDGE)
        return [(round(float(a), 1), round(float(b), 1)) for a, b in zip(across, down, strict=True)]

    def dots(self, x: Any, y: Any, colour: str, size: float = 2.0) -> None:
        # A line of no length with round ends is a dot, in fewer characters than a circle.
        path = "".join(f"M{a},{b}h0" for a, b in self.place(x, y))
        style = f'stroke="{colour}" stroke-opacity="0.6" stroke-width="{2 * size}" stroke-linecap="round"'
        self.parts.append(f'<path d="{path}" {style}/>')

    def line(self, x: Any, y: Any, colour: str, width: float = 2.0, dashes: str = "") -> None:
        points = " ".join(f"{a},{b}" for a, b in self.place(x, y))
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        style = f'fill="none" stroke="{colour}" stroke-width="{width}"{dashed}'
        self.parts.append(f'<polyline points="{points}" {style}/>')


def svg(panels: list[Panel]) -> str:
    """The panels side by side."""
    width, height = panels[-1].left + WIDTH, HEIGHT + 22
    lines = [line for panel in panels for line in panel.parts]
    style = 'font-family="sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" {style}>'
    return "\n".join([head, *lines, "</svg>"]) + "\n"


def regression() -> str:
    """A sine with noise: least squares, last and averaged; and the tube with its support examples."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 10, 80))
    y = np.sin(x) + rng.normal(0, 0.25, 80)
    line = np.linspace(0, 10, 150)
    first = Panel("least squares: last (thin), averaged", 0, (0, 10), (-1.8, 1.8))
    first.dots(x, y, GREY)
    for stabilizer, width, colour in (("last", 1.0, COLOURS[1]), ("averaged", 2.5, COLOURS[0])):
        model = onlearn.KernelRegressor("gaussian(1)", stabilizer=stabilizer, random_state=0).fit(x[:, None], y)
        first.line(line, model.predict(line[:, None]), colour, width)
    second = Panel("pa_epsilon(0.4): support examples filled", WIDTH + 10, (0, 10), (-1.8, 1.8))
    tube = onlearn.KernelRegressor("gaussian(1)", "pa_epsilon(0.4)", random_state=0).fit(x[:, None], y)
    support = np.isin(x, tube.support_examples_[:, 0])
    second.dots(x[~support], y[~support], "#cccccc")
    second.dots(x[support], y[support], COLOURS[1], 2.5)
    middle = tube.predict(line[:, None])
    second.line(line, middle, COLOURS[0], 2.5)
    for edge in (-0.4, 0.4):
        second.line(line, middle + edge, COLOURS[0], 1.0, "4 3")
    return svg([first, second])


def components() -> str:
    """Three rings, and their first two components."""
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, 2 * np.pi, 240)
    ring = np.arange(240) % 3
    radius = np.array([0.3, 1.5, 3.0])[ring] + rng.normal(0, 0.1, 240)
    X = np.column_stack([radius * np.cos(angles), radius * np.sin(angles)])
    Z = onlearn.KernelPCA("gaussian(1.5)", n_components=2).fit_transform(X)
    first = Panel("three rings", 0, (-3.6, 3.6), (-3.6, 3.6))
    low, high = Z.min(axis=0) - 0.05, Z.max(axis=0) + 0.05
    second = Panel("first two components, gaussian(1.5)", WIDTH + 10, (low[0], high[0]), (low[1], high[1]))
    for one, colour in enumerate(COLOURS):
        here = ring == one
        first.dots(X[here, 0], X[here, 1], colour)
        second.dots(Z[here, 0], Z[here, 1], colour)
    return svg([first, second])


PICTURES = {"kernel_regression.svg": regression, "kernel_pca.svg": components}


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs")
    for name, draw in PICTURES.items():
        (folder / name).write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
