"""Draws the pictures of the documents as small SVG files: what learners decide, on data that fit a page.

    python tools/draw_pictures.py [folder, by default docs] [name ...]

All data are drawn with fixed seeds, and coordinates are rounded, so the files change only when the learners do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import onlearn

WIDTH, HEIGHT, GAP, TOP = 300, 220, 12, 22  # pixels: of a panel, between panels, above them for the title
COLOURS, SHADES = ("#c8553d", "#1b6ca8", "#3a7d44"), ("#fbe3d2", "#dbe7f6")
GREY = "#888888"
CELLS = 60  # along a panel, in which a decision is asked for


class Panel:
    """A frame with data coordinates."""

    def __init__(self, title: str, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.title, self.x, self.y = title, x, y
        self.parts: list[str] = []

    @classmethod
    def around(cls, title: str, X: np.ndarray, edge: float = 0.1) -> Panel:
        """A panel in which all points lie."""
        low, high = X.min(axis=0), X.max(axis=0)
        low, high = low - edge * (high - low), high + edge * (high - low)
        return cls(title, (float(low[0]), float(high[0])), (float(low[1]), float(high[1])))

    def place(self, x: Any, y: Any) -> list[tuple[float, float]]:
        """Data coordinates as coordinates of the picture."""
        across = (np.asarray(x) - self.x[0]) / (self.x[1] - self.x[0]) * WIDTH
        down = HEIGHT - (np.asarray(y) - self.y[0]) / (self.y[1] - self.y[0]) * HEIGHT
        return [(round(float(a), 1), round(float(b), 1)) for a, b in zip(across, down, strict=True)]

    def dots(self, x: Any, y: Any, colour: str, size: float = 2.5) -> None:
        # A line of no length with round ends is a dot, in fewer characters than a circle.
        path = "".join(f"M{a:g} {b:g}h0" for a, b in self.place(x, y))
        self.parts.append(f'<path d="{path}" stroke="{colour}" stroke-width="{2 * size:g}" stroke-linecap="round"/>')

    def classes(self, X: np.ndarray, y: np.ndarray, size: float = 2.5) -> None:
        """The points of each class in its colour."""
        for label, colour in zip(np.unique(y), COLOURS, strict=False):
            self.dots(X[y == label, 0], X[y == label, 1], colour, size)

    def rings(self, x: Any, y: Any, size: float = 4.0) -> None:
        for a, b in self.place(x, y):
            self.parts.append(f'<circle cx="{a:g}" cy="{b:g}" r="{size:g}" fill="none" stroke="#333"/>')

    def line(self, x: Any, y: Any, colour: str, width: float = 2.0, dashes: str = "") -> None:
        points = " ".join(f"{a:g},{b:g}" for a, b in self.place(x, y))
        style = f'fill="none" stroke="{colour}" stroke-width="{width:g}" stroke-dasharray="{dashes}"'
        self.parts.append(f'<polyline points="{points}" {style}/>')

    def grid(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The points at the corners of the cells, and their two coordinates."""
        x, y = np.linspace(*self.x, CELLS + 1), np.linspace(*self.y, CELLS + 1)
        return np.array([[a, b] for b in y for a in x]), x, y

    def regions(self, decide: Callable[[np.ndarray], np.ndarray]) -> None:
        """Shade the cells by the class, 0 or 1, of their middles; cells of a line side by side in one stroke."""
        x, y = (np.linspace(*side, CELLS, endpoint=False) for side in (self.x, self.y))
        step = (x[1] - x[0], y[1] - y[0])
        middles = np.array([[a + step[0] / 2, b + step[1] / 2] for b in y for a in x])
        decided = np.asarray(decide(middles)).astype(np.int64).reshape(CELLS, CELLS)
        wide, high, strokes = WIDTH / CELLS, HEIGHT / CELLS, []
        for row, line in enumerate(decided):
            edges = np.flatnonzero(np.diff(np.r_[0, line, 0]))
            top = HEIGHT - (row + 1) * high
            for a, b in zip(edges[::2], edges[1::2], strict=True):
                strokes.append(f"M{a * wide:.4g} {top:.4g}h{(b - a) * wide:.4g}v{high:.4g}h{(a - b) * wide:.4g}z")
        self.parts.append(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{SHADES[0]}"/>')
        self.parts.append(f'<path fill="{SHADES[1]}" d="{"".join(strokes)}"/>')

    def contour(self, score: Callable[[np.ndarray], np.ndarray], level: float = 0.0, dashes: str = "") -> None:
        """The line where a score has a value: in each cell between the points where its sides cross it."""
        points, x, y = self.grid()
        values = np.asarray(score(points)).reshape(CELLS + 1, CELLS + 1) - level
        strokes = []
        for i in range(CELLS):
            for j in range(CELLS):
                corners = [(i, j), (i, j + 1), (i + 1, j + 1), (i + 1, j)]
                ends = []
                for (a, b), (c, d) in zip(corners, corners[1:] + corners[:1], strict=True):
                    p, q = values[a, b], values[c, d]
                    if (p > 0) != (q > 0):
                        share = p / (p - q)
                        ends.append((x[b] + share * (x[d] - x[b]), y[a] + share * (y[c] - y[a])))
                for n in range(0, len(ends) - 1, 2):
                    start, stop = self.place(*zip(ends[n], ends[n + 1], strict=True))
                    strokes.append(f"M{start[0]:g} {start[1]:g}L{stop[0]:g} {stop[1]:g}")
        width = 1 if dashes else 2
        style = f'fill="none" stroke="#333" stroke-width="{width}" stroke-dasharray="{dashes}"'
        self.parts.append(f'<path {style} d="{"".join(strokes)}"/>')

    def ticks(self, x: list[float], y: list[float]) -> None:
        """Numbers inside the frame, along its left and lower sides."""
        for value, (a, _) in zip(x, self.place(x, np.full(len(x), self.y[0])), strict=True):
            self.parts.append(f'<text x="{a:g}" y="{HEIGHT - 4}" text-anchor="middle" fill="{GREY}">{value:g}</text>')
        for value, (_, b) in zip(y, self.place(np.full(len(y), self.x[0]), y), strict=True):
            self.parts.append(f'<text x="4" y="{b + 4:g}" fill="{GREY}">{value:g}</text>')


def svg(title: str, *panels: Panel) -> str:
    """The panels side by side."""
    width, height = len(panels) * (WIDTH + GAP) - GAP + 2, HEIGHT + TOP + 2
    size = f'viewBox="0 0 {width} {height}" width="{width}" font-family="sans-serif" font-size="12" role="img"'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', f"<title>{title}</title>"]
    lines.append(f'<rect width="{width}" height="{height}" fill="white"/>')
    for n, panel in enumerate(panels):
        text = panel.title.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
        lines.append(f'<g transform="translate({n * (WIDTH + GAP) + 1} {TOP})">')
        lines.append(f'<text x="{WIDTH // 2}" y="-7" text-anchor="middle">{text}</text>')
        frame = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#cccccc"/>'
        lines += [*panel.parts, frame, "</g>"]
    return "\n".join([*lines, "</svg>", ""])


def moons(count: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two half circles that reach into each other, with noise."""
    rng = np.random.default_rng(seed)
    angle, side = np.pi * rng.random(count), np.arange(count) % 2
    x = np.where(side == 1, 1 - np.cos(angle), np.cos(angle))
    y = np.where(side == 1, 0.5 - np.sin(angle), np.sin(angle))
    return np.column_stack([x, y]) + noise * rng.normal(size=(count, 2)), side


# ----------------------------------------------------------------------------------------------------
# The pictures.


def svm() -> str:
    """The boundary of an SVC on two moons, its margins and its support vectors, for a small and a large C."""
    X, y = moons(120, 0.22, seed=4)
    panels = []
    for C in (0.2, 20.0):
        machine = onlearn.SVC("gaussian(0.6)", C=C, random_state=0).fit(X, y)
        panel = Panel.around(f"C = {C:g}: {len(machine.support_)} support vectors (rings)", X)
        panel.regions(machine.predict)
        for level, dashes in ((0.0, ""), (-1.0, "4 4"), (1.0, "4 4")):
            panel.contour(machine.decision_function, level, dashes)
        panel.classes(X, y)
        panel.rings(*X[machine.support_].T)
        panels.append(panel)
    return svg("Two moons: boundary, margins and support vectors of SVC with a Gaussian kernel", *panels)


def neighbors() -> str:
    """What one neighbour and the best number of them decide, and the error for every k."""
    X, y = moons(120, 0.42, seed=4)
    auto = onlearn.KNNClassifier("auto", k_max=40).fit(X, y)
    panels = []
    for k, title in ((1, "k = 1"), (auto.k_, f'k = "auto": {auto.k_}')):
        panel = Panel.around(title, X)
        panel.regions(onlearn.KNNClassifier(k).fit(X, y).predict)
        panel.classes(X, y)
        panels.append(panel)
    ks, errors = np.array(auto.k_path_).T
    most = float(errors.max())
    curve = Panel("error against k, each row left out", (-3.0, 42.0), (-0.1 * most, 1.1 * most))
    curve.line(ks, errors, COLOURS[1])
    curve.dots([auto.k_], [errors[ks == auto.k_][0]], COLOURS[0], 4.0)
    curve.ticks([1, 10, 20, 30, 40], np.arange(0, most, 0.05).round(2).tolist())
    return svg("Nearest neighbours: the decision of one and of many, and the error for every k", *panels, curve)


def naive_bayes() -> str:
    """Where Gaussian naive Bayes decides for which class; ellipses are two deviations around the means."""
    rng = np.random.default_rng(5)
    means, deviations = np.array([[4.2, 4.2], [7.4, 3.6]]), np.array([[0.7, 0.5], [1.6, 1.3]])
    y = np.repeat([0, 1], 45)
    X = rng.normal(means[y], deviations[y])
    model = onlearn.NaiveBayes("gaussian").fit(X, y)
    panel = Panel.around("Gaussian naive Bayes", X)
    panel.regions(model.predict)
    panel.contour(model.decision_function)
    panel.classes(X, y)
    turn = np.linspace(0, 2 * np.pi, 60)
    for label in (0, 1):
        (a, b), (p, q) = X[y == label].mean(axis=0), X[y == label].std(axis=0)
        panel.line(a + 2 * p * np.cos(turn), b + 2 * q * np.sin(turn), COLOURS[label], 1.5)
    return svg("The decision of Gaussian naive Bayes between a narrow and a wide class", panel)


def mlp() -> str:
    """What networks have learned of XOR and of the disc x1^2 + x2^2 <= 1."""
    xor, odd = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])
    plane = np.random.default_rng(0).uniform(-1.8, 1.8, (2000, 2))
    inside = ((plane**2).sum(axis=1) <= 1).astype(int)
    small: Any = dict(activation="tanh", epochs=400, random_state=0, dtype="float64")
    first = onlearn.MLPClassifier(4, optimizer="adam(0.05)", **small).fit(xor, odd)
    second = onlearn.MLPClassifier(8, optimizer="adam(0.01)", **{**small, "epochs": 200}).fit(plane, inside)
    panels = []
    for title, model, X, y, side in (
        ("XOR, 2-4-1", first, xor, odd, (-0.5, 1.5)),
        ("the disc, 2-8-1", second, plane[:120], inside[:120], (-1.8, 1.8)),
    ):
        panel = Panel(title, side, side)
        panel.regions(model.predict)
        panel.contour(model.decision_function)
        panel.classes(X, y, 5.0 if len(X) == 4 else 2.5)
        panels.append(panel)
    return svg("Networks that have learned XOR and the disc", *panels)


def kernel_regression() -> str:
    """A sine with noise: least squares, last and averaged; and the tube with its support examples."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 10, 80))
    y = np.sin(x) + rng.normal(0, 0.25, 80)
    line, sides = np.linspace(0, 10, 150), ((-0.3, 10.3), (-1.9, 1.9))
    first = Panel("least squares: last (thin), averaged", *sides)
    first.dots(x, y, GREY, 2.0)
    for stabilizer, width, colour in (("last", 1.0, COLOURS[0]), ("averaged", 2.5, COLOURS[1])):
        model = onlearn.KernelRegressor("gaussian(1)", stabilizer=stabilizer, random_state=0).fit(x[:, None], y)
        first.line(line, model.predict(line[:, None]), colour, width)
    second = Panel("pa_epsilon(0.4): support examples in colour", *sides)
    tube = onlearn.KernelRegressor("gaussian(1)", "pa_epsilon(0.4)", random_state=0).fit(x[:, None], y)
    support = np.isin(x, tube.support_examples_[:, 0])
    second.dots(x[~support], y[~support], "#cccccc", 2.0)
    second.dots(x[support], y[support], COLOURS[0])
    middle = tube.predict(line[:, None])
    second.line(line, middle, COLOURS[1], 2.5)
    for edge in (-0.4, 0.4):
        second.line(line, middle + edge, COLOURS[1], 1.0, "4 3")
    return svg("Regression with a kernel: least squares, and a tube", first, second)


def kernel_pca() -> str:
    """Three rings, and their first two components."""
    rng = np.random.default_rng(0)
    angles, ring = rng.uniform(0, 2 * np.pi, 240), np.arange(240) % 3
    radius = np.array([0.3, 1.5, 3.0])[ring] + rng.normal(0, 0.1, 240)
    X = np.column_stack([radius * np.cos(angles), radius * np.sin(angles)])
    Z = onlearn.KernelPCA("gaussian(1.5)", n_components=2).fit_transform(X)
    first, second = Panel.around("three rings", X), Panel.around("first two components, gaussian(1.5)", Z)
    first.classes(X, ring, 2.0)
    second.classes(Z, ring, 2.0)
    return svg("Three rings, and their first two kernel principal components", first, second)


def theory_picture(name: str) -> Callable[[], str]:
    """A picture of ``onlearn.theory.plots``, which needs Matplotlib."""

    def draw() -> str:
        from onlearn.theory.plots import PICTURES, render

        return render(PICTURES[name].draw(), "svg", PICTURES[name]).decode()

    return draw


PICTURES: dict[str, Callable[[], str]] = {
    **{one.__name__: one for one in (svm, neighbors, naive_bayes, mlp, kernel_regression, kernel_pca)},
    **{f"theory_{name.replace('-', '_')}": theory_picture(name) for name in ("irrelevant-attributes", "potential")},
}


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0] if arguments else Path(__file__).parents[1] / "docs")
    for name in arguments[1:] or PICTURES:
        (folder / f"{name}.svg").write_text(PICTURES[name](), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
