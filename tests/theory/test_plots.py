"""Pictures of the theory: their data against plain versions and bounds; the figures, their files and their bytes."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlearn.engine.learner import Learner
from onlearn.errors import PlanError
from onlearn.theory import bounds, plots, separable
from onlearn.theory.plots import attributes, canvas, course, feature_space, page

SMALL = {
    "irrelevant-attributes": lambda: plots.irrelevant_attributes_data(sizes=(200, 400), examples=500),
    "extreme-scenarios": lambda: plots.extreme_scenarios_data(sizes=(16, 32), examples=100),
    "mistakes-by-examples": lambda: plots.mistakes_by_examples_data(n=300, examples=500),
    "perceptron-in-action": lambda: plots.perceptron_in_action_data(),
    "parabola": lambda: plots.parabola_data(),
    "squares": lambda: plots.squares_data(),
    "kernel-boundaries": lambda: plots.kernel_boundaries_data(points=40),
    "winnow-weights": lambda: plots.winnow_weights_data(n=16, examples=60),
    "potential": lambda: plots.potential_data(),
}


# ---------------------------------------------------------------- rows


@given(n=st.integers(101, 3000), examples=st.integers(1, 60), seed=st.integers(0, 2**32 - 1))
def test_rows_of_ten_of_a_hundred(n, examples, seed):
    X, y = attributes.ten_of_hundred_rows(n, examples, seed)
    dense = X.toarray()
    assert X.shape == (examples, n) and set(np.unique(dense)) <= {0.0, 1.0}  # no attribute twice: those would be 2
    on = dense[:, :100].sum(axis=1)
    assert ((on[y == 1] >= 10) & (on[y == 1] <= 14)).all() and ((on[y == 0] >= 4) & (on[y == 0] <= 8)).all()
    assert (dense[:, 100:].sum(axis=1) == max(1, round((n - 100) * 0.01))).all()


def test_rows_spread_over_all_attributes():
    X, y = attributes.ten_of_hundred_rows(1000, 5000, seed=3)
    share = X.toarray().mean(axis=0)
    assert 0.4 < y.mean() < 0.6
    assert (np.abs(share[:100] - share[:100].mean()) < 0.03).all()
    assert (share[100:] > 0).all() and (share[100:] < 0.02).all()


@pytest.mark.parametrize(("n", "examples"), [(100, 5), (200, 0)])
def test_rows_that_cannot_be(n, examples):
    with pytest.raises(ValueError, match="must be"):
        attributes.ten_of_hundred_rows(n, examples)


# ---------------------------------------------------------------- mistakes


def plain_mistakes(X, y, kind, *, alpha=None, margin=0.0, averaged=False, stops=()):
    """Mistakes in one pass until each stop; the mean is looked at every 100 examples."""
    w = np.zeros(X.shape[1] + 1) if kind == "perceptron" else np.ones(X.shape[1])
    rows = np.column_stack([X, np.ones(len(X))]) if kind == "perceptron" else X
    theta = 0.0 if kind == "perceptron" else float(X.shape[1])
    total, seen, made, found, mean = np.zeros_like(w), 0, 0, [], None
    for i, x in enumerate(rows):
        if i % 100 == 0 and i:
            mean = total / seen
        s = 2 * int(y[i]) - 1
        score = w @ x - theta
        judged = mean @ x - theta if averaged and mean is not None else score
        wrong = (judged > 0) != (s > 0) if averaged and mean is not None else s * judged <= 0
        made += wrong
        if s * score <= 0 or s * score < margin:
            w = w + s * x if kind == "perceptron" else w * alpha ** (s * x)
        total, seen = total + w, seen + 1
        if i + 1 in stops:
            found.append(made)
    return found


@pytest.mark.parametrize("name", list(attributes.LOOKS)[:6])
def test_mistakes_are_those_of_the_plain_learner(name):
    n, stops = 300, [100, 300, 400]
    rows = attributes.ten_of_hundred_rows(n, 400, seed=5)
    longest = 15.0 + 2 + 1
    learner = attributes.learners_for(n, longest)[name]
    kind = "perceptron" if "Perceptron" in name else "winnow"
    margin = (longest if kind == "perceptron" else n / 100) if "margin" in name else 0.0
    expected = plain_mistakes(
        rows.X.toarray(), rows.y, kind, alpha=attributes.ALPHA, margin=margin, averaged="averaged" in name, stops=stops
    )
    assert attributes.mistakes_until(learner, rows, stops) == expected


@pytest.mark.parametrize("seed", range(3))
def test_mistakes_stay_below_the_bounds(seed):
    data = plots.irrelevant_attributes_data(sizes=(200, 1000, 4000), examples=4000, seed=seed)
    for name, limits in data.bounds.items():
        assert (np.array(data.mistakes[name]) <= limits).all()
    both = plots.extreme_scenarios_data(sizes=(16, 64, 256), examples=300, seed=seed)
    for part in both:
        for name, limits in part.bounds.items():
            assert (np.array(part.mistakes[name]) <= limits).all()
    assert both.few_relevant.mistakes["Winnow"][-1] < both.few_relevant.mistakes["Perceptron"][-1]
    assert both.unit_rows.mistakes["Perceptron"] == [16, 64, 256]
    assert both.unit_rows.mistakes["Winnow"] == [8 * 5, 32 * 7, 128 * 9]


def test_the_perceptrons_bound_is_that_of_the_target():
    X, y = attributes.ten_of_hundred_rows(500, 3000, seed=2)
    target = np.append(np.where(np.arange(500) < 100, 1.0, 0.0), -9.0)
    rows = np.column_stack([X.toarray(), np.ones(3000)])
    data = plots.irrelevant_attributes_data(sizes=(500,), examples=3000, seed=2)
    assert data.bounds["Perceptron"][0] == pytest.approx(bounds.additive(target, rows, 2 * y - 1))


def test_mistakes_only_grow():
    data = plots.mistakes_by_examples_data(n=500, examples=2000)
    assert data.examples[0] == 1 and data.examples[-1] == 2000
    for line in data.mistakes.values():
        assert (np.diff(line) >= 0).all() and line[-1] <= 2000


# ---------------------------------------------------------------- Winnow on threshold functions


@given(
    n=st.integers(1, 10_000),
    mass=st.floats(0, 100),
    separation=st.floats(0.01, 1.0),
    share=st.sampled_from([0.5, 1.0, 3.0]),
)
def test_the_bound_on_threshold_functions_is_at_most_littlestones(n, mass, separation, share):
    theta = max(1.0, share * n)
    closed = 8 / separation**2 * n / theta + (5 / separation + 14 * np.log(theta) / separation**2) * mass
    assert bounds.winnow_threshold(n, mass, separation, threshold=theta) <= closed * (1 + 1e-9)


@given(n=st.integers(1, 5000), k=st.integers(0, 20), alpha=st.floats(1.1, 4.0))
def test_with_separation_one_it_is_the_bound_on_disjunctions(n, k, alpha):
    k = min(n, k)
    assert bounds.winnow_threshold(n, k, 1.0, alpha) == pytest.approx(bounds.winnow(n, k, alpha))


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(6, 60),
    relevant=st.integers(2, 6),
    alpha=st.sampled_from([None, 1.05, 1.1]),
)
def test_winnow_stays_below_its_bound_on_threshold_functions(seed, n, relevant, alpha):
    """At least m of some attributes against at most m - 1: u = 1/m, mass relevant/m, separation 1/m."""
    rng = np.random.default_rng(seed)
    least = int(rng.integers(1, relevant + 1))
    X = (rng.random((200, n)) < 0.5).astype(float)
    y = (X[:, :relevant].sum(axis=1) >= least).astype(int)
    if len(set(y)) < 2:
        return
    mass, separation = relevant / least, 1 / least
    alpha = 1 + separation / 2 if alpha is None else alpha
    learner = Learner("Winnow", alpha=alpha, stabilizer="last", epochs=None, max_epochs=10_000, random_state=0)
    made = learner.fit(X, y).n_mistakes_
    assert learner.separable_ is True
    assert made <= bounds.winnow_threshold(n, mass, separation, alpha)


def test_where_it_promises_nothing():
    assert bounds.winnow_threshold(100, 10, 0.1, alpha=1.2) == np.inf
    assert bounds.winnow_threshold(1, 0, 1.0) > 0


@pytest.mark.parametrize(
    "arguments", [(0, 1, 0.5), (10, -1, 0.5), (10, 1, 0), (10, 1, 1.1), (10, 1, 0.5, 1.0), (10, 1, 0.5, 2, 0.5)]
)
def test_winnow_threshold_refuses(arguments):
    with pytest.raises(ValueError, match="must be"):
        bounds.winnow_threshold(*arguments)


# ---------------------------------------------------------------- the course of learning


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(2, 30), bias=st.sampled_from([0.0, 1.0]))
def test_the_perceptrons_course_is_that_of_the_learner(seed, rows, bias):
    rng = np.random.default_rng(seed)
    X, u = rng.normal(size=(rows, 3)), rng.normal(size=3)
    y = np.where(X @ u > 0, 1, -1)
    if len(set(y)) < 2:
        return
    steps = course.perceptron_course(X, y, bias)
    learner = Learner("Perceptron", epochs=None, max_epochs=course.PASSES, shuffle=False, fit_intercept=bias > 0)
    learner.fit(X, y)
    assert learner.n_mistakes_ == len(steps.rows) == len(steps.weights) - 1
    assert learner.coef_[0] == pytest.approx(steps.weights[-1])
    assert learner.intercept_[0] == pytest.approx(steps.intercepts[-1])
    moved = np.diff(steps.weights, axis=0)
    assert moved == pytest.approx(y[steps.rows, None] * X[steps.rows])


@given(seed=st.integers(0, 2**32 - 1), alpha=st.sampled_from([1.5, 2.0]))
def test_winnows_course_is_that_of_the_learner(seed, alpha):
    rng = np.random.default_rng(seed)
    X = (rng.random((30, 8)) < 0.5).astype(float)
    y = np.where(X[:, :2].any(axis=1), 1, -1)
    if len(set(y)) < 2:
        return
    steps = course.winnow_course(X, y, alpha)
    learner = Learner("Winnow", alpha=alpha, stabilizer="last", epochs=None, shuffle=False).fit(X, y)
    assert learner.n_mistakes_ == len(steps.rows) <= bounds.winnow(8, 2, alpha)
    assert learner.coef_[0] == pytest.approx(steps.weights[-1])


@given(seed=st.integers(0, 1000))
def test_the_potential_is_between_its_lines(seed):
    data = plots.potential_data(seed=seed)
    k = np.arange(len(data.squared_length))
    assert (data.squared_length <= k * data.R2 + 1e-9).all()
    assert (data.squared_progress >= (k * data.margin) ** 2 - 1e-9).all()
    assert (data.squared_progress <= data.squared_length + 1e-9).all()
    assert k[-1] <= data.bound


def test_the_perceptron_ends_with_a_separator():
    X, y, steps = plots.perceptron_in_action_data()
    assert 4 <= len(steps.rows) <= course.PANELS
    assert (y * (X @ steps.weights[-1] + steps.intercepts[-1]) > 0).all()


def test_relevant_weights_of_winnow_never_fall():
    data = plots.winnow_weights_data()
    assert (np.diff(data.course.weights[:, data.relevant], axis=0) >= 0).all()
    assert len(data.promotions) == len(data.course.rows) <= data.bound


# ---------------------------------------------------------------- feature spaces


@pytest.mark.parametrize("draw", [plots.parabola_data, plots.squares_data])
@pytest.mark.parametrize("seed", range(5))
def test_features_make_separable(draw, seed):
    data = draw(seed=seed)
    assert data.separable_before is False
    assert separable(data.Z, data.y)
    assert (data.y * (data.Z @ data.weights + data.intercept) > 0).all()


def test_curved_kernels_err_less():
    data = plots.kernel_boundaries_data()
    linear, *curved = (one.errors for one in data.boundaries)
    assert max(curved) < linear
    assert [len(one.supports) > 0 for one in data.boundaries] == [True] * 3
    assert {one.name for one in data.boundaries} == set(feature_space.KERNELS.values())


# ---------------------------------------------------------------- figures


@pytest.fixture(scope="module")
def figures():
    pytest.importorskip("matplotlib")
    return {name: picture.draw(SMALL[name]()) for name, picture in plots.PICTURES.items()}


def test_every_picture_is_there():
    assert set(SMALL) == set(plots.PICTURES)
    for name, picture in plots.PICTURES.items():
        assert getattr(plots, name.replace("-", "_")) is picture.draw
        assert callable(getattr(plots, f"{name.replace('-', '_')}_data"))
        assert picture.caption.endswith(".") and picture.theorem.endswith(".")


@pytest.mark.parametrize("name", plots.PICTURES)
def test_axes_say_what_they_show(figures, name):
    figure = figures[name]
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert shown and figure.get_suptitle()
    assert any(axes.get_xlabel() for axes in shown)
    assert any(axes.get_ylabel() for axes in shown)


@pytest.mark.parametrize("name", plots.PICTURES)
def test_lines_differ_without_colour(figures, name):
    for axes in figures[name].axes:
        looks = [
            (
                line.get_marker(),
                str(line.get_linestyle()),
                str(line._dash_pattern),
                line.get_markerfacecolor() == "white",
            )
            for line in axes.get_lines()
            if not line.get_label().startswith("_")
        ]
        assert len(set(looks)) == len(looks)


@pytest.mark.parametrize("name", plots.PICTURES)
def test_files_of_every_format(figures, name):
    picture = plots.PICTURES[name]
    svg = page.render(figures[name], "svg", picture)
    root = ElementTree.fromstring(svg)
    assert root.tag.endswith("svg") and picture.title in svg.decode()
    assert page.render(figures[name], "png", picture).startswith(b"\x89PNG")
    html = page.render(figures[name], "html", picture).decode()
    tags: list[str] = []
    reader = HTMLParser()
    reader.handle_starttag = lambda tag, attributes: tags.append(tag)  # type: ignore[method-assign]
    reader.feed(html)
    assert tags.count("svg") == 1 and "figcaption" in tags and not {"script", "link", "img"} & set(tags)
    assert "src=" not in html and "@import" not in html


@pytest.mark.parametrize("name", ["potential", "extreme-scenarios", "kernel-boundaries"])
def test_one_seed_one_picture(figures, name):
    picture = plots.PICTURES[name]
    again = picture.draw(SMALL[name]())
    for format in plots.FORMATS:
        assert page.render(again, format, picture) == page.render(figures[name], format, picture)


def test_the_users_settings_do_not_matter(figures):
    import matplotlib

    picture = plots.PICTURES["potential"]
    with matplotlib.rc_context({"font.size": 25, "axes.grid": True}):
        figure = picture.draw(SMALL["potential"]())
        again = page.render(figure, "svg", picture)
    assert again == page.render(figures["potential"], "svg", picture)


def test_numbers_in_texts_are_not_rounded():
    assert page._rounded('<a d="0.12345 -3.999"/><text>0.12345</text>') == '<a d="0.12 -4"/><text>0.12345</text>'


def test_many_mistakes_are_cut_short(figures):
    data = plots.perceptron_in_action_data(seed=0)
    many = data._replace(course=course.Course(*(np.tile(part, (6,) + (1,) * (part.ndim - 1)) for part in data.course)))
    figure = plots.perceptron_in_action(many)
    assert len([axes for axes in figure.axes if axes.get_visible()]) == course.PANELS


def test_save(tmp_path):
    pytest.importorskip("matplotlib")
    plots.save("potential", tmp_path / "a.svg")
    plots.save("potential", tmp_path / "b.SVG", seed=1)
    assert (tmp_path / "a.svg").read_bytes() != (tmp_path / "b.SVG").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.svg", "b.SVG"]
    for name, file, why in (("nothing", "a.svg", "no picture"), ("potential", "a.pdf", "extensions")):
        with pytest.raises(PlanError, match=why):
            plots.save(name, tmp_path / file)


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    with pytest.raises(ImportError, match=r"pip install 'onlearn\[plot\]'"), canvas.style():
        pass


def test_what_pictures_import():
    """Data need no Matplotlib; drawing needs no pyplot, which has global state."""
    code = (
        "import sys; from onlearn.theory import plots; data = plots.potential_data(); "
        "assert 'matplotlib' not in sys.modules; assert 'sklearn' not in sys.modules; "
        "plots.potential(data); assert 'matplotlib.pyplot' not in sys.modules"
    )
    pytest.importorskip("matplotlib")
    subprocess.run([sys.executable, "-c", code], check=True)
