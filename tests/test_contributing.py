"""What CONTRIBUTING.md says one adds works as it stands there."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import onlearn
from onlearn import cli, data, kernels
from onlearn.engine import mixing
from onlearn.engine.protocol import GEOMETRIES, STABILIZERS
from onlearn.engine.rules import RULES

DOCUMENT = Path(__file__).parents[1] / "CONTRIBUTING.md"
BLOCK = re.compile(r"^## ([^\n]*)$(?:(?!^## ).)*?^```python\n(.*?)^```$", re.M | re.S)
X = np.random.default_rng(0).normal(size=(200, 4))
Y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")


@pytest.fixture(scope="module")
def blocks():
    if not DOCUMENT.exists():
        pytest.skip("installed without the documents")
    return dict(BLOCK.findall(DOCUMENT.read_text(encoding="utf-8")))


@pytest.fixture
def added(blocks, tmp_path, monkeypatch):
    """The module that a section shows, imported from a file."""

    def add(title, name, before=""):
        path = tmp_path / f"{name.rpartition('.')[2]}.py"
        path.write_text(before + blocks[title], encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return add


def test_a_rule(added):
    imports = "from onlearn.engine.rules import RULES\nfrom onlearn.engine.spec import choice, param\n\n\n"
    try:
        added("Add a rule in ten minutes", "added_rule", imports)
        model = onlearn.OnlineClassifier("huber(2.0)", "additive(0.1)", random_state=0).fit(X, Y)
        assert model.score(X, Y) > 0.9
        assert onlearn.OnlineClassifier("huber").set_params(rule__slope=3.0).get_params()["rule__slope"] == 3.0
    finally:
        RULES.members.pop("huber", None)


def test_a_geometry(added, tmp_path):
    try:
        added("Add a geometry", "added_geometry")
        model = onlearn.OnlineClassifier("perceptron", "signed(0.5)", random_state=0).fit(X, Y)
        assert model.score(X, Y) > 0.8
        model.save(tmp_path / "m.onl")
        np.testing.assert_array_equal(onlearn.load(tmp_path / "m.onl").coef_, model.coef_)
        assert mixing.why_not({"geometry": GEOMETRIES.get("signed"), "stabilizer": STABILIZERS.get("averaged")}) is None
    finally:
        GEOMETRIES.members.pop("signed", None)


def test_a_kernel(added):
    from onlearn.kernels import family

    try:
        added("Add a kernel in ten minutes", "added_kernel")
        values = kernels.get("0.5*cauchy(2) + linear")(X[:5], X[:7])
        apart = ((X[:5, None] - X[None, :7]) ** 2).sum(axis=2)
        np.testing.assert_allclose(values, 0.5 / (1 + apart / 4) + X[:5] @ X[:7].T)
    finally:
        family.MEMBERS.pop("cauchy", None)


def test_a_reader(added, tmp_path):
    from onlearn.data import registry

    path = tmp_path / "rows.tabbed"
    path.write_text("spam\tcheap pills\nno tab here\nham\tsee you at lunch\n")
    try:
        added("Add a reader", "added_reader")
        bad = data.BadRows(limit=1.0)
        [batch] = data.read(path, bad=bad)
        assert batch.y.tolist() == ["spam", "ham"] and batch.lines.tolist() == [1, 3]
        assert [(one.line, one.reason) for _, one in bad.examples] == [(2, "there is no tab")]
    finally:
        registry.readers().pop("tabbed", None)
        registry.EXTENSIONS.pop(".tabbed", None)


def test_a_command(added, tmp_path, monkeypatch, capsys):
    (tmp_path / "a.csv").write_text("x,label\n1,a\n2,b\n3,a\n")
    added("Add a command", "onlearn.cli.count")
    monkeypatch.setattr(cli, "COMMANDS", (*cli.COMMANDS, "count"))
    assert cli.run(["count", str(tmp_path / "a.csv")]) == 0
    assert capsys.readouterr().out == "3\n"
    assert cli.run(["count", str(tmp_path / "none.csv")]) == 2
    assert "none.csv" in capsys.readouterr().err
