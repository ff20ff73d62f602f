"""The commands, as processes where that matters: what they print, where, and how they end."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import onlearn
import onlearn.reproduce.demo
from onlearn import cli, warm
from onlearn.compiler import object_code
from onlearn.engine.learner import Learner
from onlearn.estimators.linear import NAMED

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(onlearn.__file__).parents[1])}
COMMANDS = ["train", "stream", "predict", "evaluate", "inspect", "explain", "data", "bounds", "demo", "warm"]
PARTS = [
    *([name] for name in COMMANDS if name not in ("data", "bounds")),
    *(["data", name] for name in ("describe", "list", "fetch")),
    *(["bounds", name] for name in ("perceptron", "winnow", "additive", "multiplicative", "recommend", "plot")),
]
SMALL = warm.Loop("perceptron", "additive", "last", None, "dense", "float64", "int32")


def python(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments], env=ENVIRONMENT, capture_output=True, text=True, timeout=300, **options
    )


def said(capsys):
    """The one line on stderr."""
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("onlearn: ")
    assert captured.err.count("\n") == 1
    return captured.err


# ---------------------------------------------------------------- help and start


def test_help_lists_the_commands():
    done = python("-m", "onlearn.cli", "--help")
    assert done.returncode == 0
    assert done.stderr == ""
    for name in COMMANDS:
        assert re.search(rf"^  {name} +\w", done.stdout, re.M)


def test_without_a_command_comes_the_help(capsys):
    assert cli.run([]) == 0
    bare = capsys.readouterr().out
    assert cli.run(["-h"]) == 0
    assert capsys.readouterr().out == bare


@pytest.mark.parametrize("name", ["data", "bounds", "reproduce"])
def test_so_it_does_for_commands_with_commands_of_their_own(name, capsys):
    assert cli.run([name]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(f"Usage: onlearn {name}") and captured.err == ""


@pytest.mark.parametrize("command", [[], *PARTS])
def test_examples_in_the_help_are_understood(command, capsys):
    assert cli.run([*command, "--help"]) == 0
    examples = re.findall(r"^ {4}onlearn (.*?)(?:  .*| > .*)?$", capsys.readouterr().out, re.M)
    assert examples
    for example in examples:
        assert cli.run([*example.split(), "--help"]) == 0, example


def test_help_of_a_command_imports_nothing_heavy():
    code = "import sys; from onlearn import cli; cli.run(['data', 'describe', '--help']); print(sorted(sys.modules))"
    loaded = python("-c", code).stdout.splitlines()[-1]
    assert "'typer'" in loaded
    assert not [name for name in ("numba", "sklearn", "numpy", "pyarrow") if f"'{name}'" in loaded]


def test_the_shell_completes():
    words = {"_ONLEARN_COMPLETE": "complete_bash", "COMP_WORDS": "onlearn ev", "COMP_CWORD": "1"}
    code = "from onlearn.cli import main; import sys; sys.argv = ['onlearn']; main()"
    done = subprocess.run([sys.executable, "-c", code], env={**ENVIRONMENT, **words}, capture_output=True, text=True)
    assert done.stdout.split() == ["evaluate"]
    # which shell it is can be told on a terminal only
    told = {**ENVIRONMENT, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    line = [sys.executable, "-m", "onlearn.cli", "--show-completion", "bash"]
    shown = subprocess.run(line, env=told, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    assert "_ONLEARN_COMPLETE" in shown.stdout


def test_version(capsys):
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out == f"onlearn {onlearn.__version__}\n"


def test_help_imports_nothing_heavy():
    done = python("-X", "importtime", "-m", "onlearn.cli", "--help")
    imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert "typer" in imported
    assert not imported & {"numba", "sklearn", "scipy", "numpy", "pyarrow", "rich.table"}


def test_help_starts_at_once():
    """Processor time, over that of bare Python: what else the machine does is not our affair."""

    def seconds(*arguments):
        before = os.times()
        assert python(*arguments).returncode == 0
        after = os.times()
        return after.children_user - before.children_user + after.children_system - before.children_system

    bare = min(seconds("-c", "") for _ in range(3))
    assert min(seconds("-m", "onlearn.cli", "--help") for _ in range(3)) - bare < 0.3


# ---------------------------------------------------------------- how commands end


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["nonsense"], "nonsense"),
        (["demo", "--nonsense"], "--nonsense"),
        (["demo", "--seed", "x"], "--seed"),
        (["demo", "--seed", "-1"], "--seed"),
        (["demo", "--data", "digit"], "did you mean digits?"),
        (["demo", "--learner", "Winow"], "did you mean Winnow?"),
        (["demo", "--learner", "12345"], "known are Perceptron, "),
        (["warm", "--jobs", "0"], "--jobs"),
    ],
)
def test_bad_usage_is_2(arguments, reason, capsys):
    assert cli.run(arguments) == 2
    assert reason in said(capsys)


@pytest.fixture
def failing(monkeypatch):
    """The demo fails with an error of one's choice."""

    def install(error):
        def fail(*_):
            raise error

        monkeypatch.setattr(onlearn.reproduce.demo, "loops_for", fail)

    return install


def test_failure_is_1(failing, capsys):
    failing(OSError("the disk\nis full"))
    assert cli.run(["demo"]) == 1
    assert said(capsys).startswith(
        f"onlearn: OSError: the disk is full ({__file__}, line "
    )  # ours is no code of onlearn


def test_traceback_for_those_who_want_it(failing, monkeypatch):
    failing(OSError("the disk is full"))
    monkeypatch.setenv("ONLEARN_TRACEBACK", "1")
    with pytest.raises(OSError, match="full"):
        cli.run(["demo"])


def test_interrupt_is_130(failing, capsys):
    failing(KeyboardInterrupt())
    assert cli.run(["demo"]) == 130
    assert said(capsys) == "onlearn: stopped\n"


def test_nobody_reads_the_output():
    process = subprocess.Popen(
        [sys.executable, "-m", "onlearn.cli", "--help"],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == 1


# ---------------------------------------------------------------- demo


def test_demo_as_json():
    few = ["--data", "cancer", "--learner", "Perceptron", "--learner", "PassiveAggressive"]
    done = python("-m", "onlearn.cli", "demo", "--json", "--seed", "3", *few)
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert (report["onlearn"], report["seed"]) == (onlearn.__version__, 3)
    perceptron, other = report["results"]
    assert (perceptron["learner"], other["learner"]) == ("Perceptron", "PassiveAggressive")
    assert perceptron["data"] == other["data"] == "cancer"
    assert min(perceptron["accuracy"], other["accuracy"]) > 0.9
    assert 0 < perceptron["mistakes"] <= perceptron["bound"]
    assert (other["bound"], other["theorem"]) == (None, None)
    assert min(perceptron["examples_per_second"], other["examples_per_second"]) > 0


def test_demo_as_tables(capsys):
    assert cli.run(["demo", "--data", "cancer", "--learner", "Perceptron"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"Perceptron +0\.9\d\d +\d+ +\d+ +perceptron noisy +[\d,]+", out)
    assert "\x1b" not in out  # not a terminal
    assert max(map(len, out.splitlines())) <= 80


# ---------------------------------------------------------------- warm


def test_warm_compiles_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(warm, "named_loops", lambda: [SMALL, SMALL._replace(stabilizer="averaged")])
    monkeypatch.setattr(warm, "mixture_loops", lambda: [])
    monkeypatch.setattr(warm, "bayes_loops", lambda: [])
    monkeypatch.setattr(warm, "neighbor_loops", lambda: [])
    monkeypatch.setattr(warm, "network_loops", lambda: [])
    monkeypatch.setattr(warm, "kernel_loops", lambda everything: [])
    assert cli.run(["warm"]) == 0
    assert capsys.readouterr().out.startswith("2 loops compiled, 0 were ready, ")
    assert cli.run(["warm", "--jobs", "1"]) == 0
    assert capsys.readouterr().out.startswith("0 loops compiled, 2 were ready, ")


def test_warm_where_nothing_can_be_kept(monkeypatch, capsys):
    monkeypatch.setattr(warm, "can_keep", lambda: False)
    assert cli.run(["warm"]) == 1
    assert "NUMBA_DISABLE_JIT" in said(capsys)


def test_a_loop_that_cannot_be_compiled_is_named():
    with pytest.raises(RuntimeError, match=r"cannot compile nonsense, additive, .*unknown rule 'nonsense'"):
        list(warm.warm([SMALL._replace(rule="nonsense")]))


def test_named_loops_are_all_that_a_learner_needs():
    for loop in warm.named_loops(["AveragedPerceptron"]):
        if (loop.layout, loop.dtype) == ("sparse", "float32"):
            warm.compile_loop(loop)
    before = len(object_code.made)
    X = warm.sample(SMALL._replace(layout="sparse", dtype="float32"))
    for y in ([0, 1, 1], [0, 1, 2]):
        onlearn.AveragedPerceptron().partial_fit(X, y, classes=sorted(set(y))).predict_proba(X)
    assert object_code.made[before:] == []


def test_mixture_loops_are_all_that_the_usual_mixture_needs():
    for loop in warm.mixture_loops():
        if loop.dtype == "float64":
            warm.compile_loop(loop)
            assert not warm.compile_loop(loop)


@pytest.mark.slow
def test_naive_bayes_is_compiled_ahead():
    for loop in warm.bayes_loops():
        warm.compile_loop(loop)
        assert not warm.compile_loop(loop)


@pytest.mark.slow
def test_networks_are_compiled_ahead():
    for loop in [loop for loop in warm.network_loops() if loop.dtype == "float64" and loop.output != "softmax"]:
        warm.compile_loop(loop)
    before = len(object_code.made)
    rows = sp.csr_matrix(np.eye(64, 40))
    for X, y in ((rows, np.arange(64) % 2), (rows.toarray(), np.arange(64) / 2)):
        model = onlearn.MLPClassifier(epochs=2) if X is rows else onlearn.MLPRegressor(epochs=2)
        model.fit(X, y).predict(X)
    assert object_code.made[before:] == []


@pytest.mark.slow
def test_neighbor_loops_are_all_that_neighbours_need():
    for loop in warm.neighbor_loops():
        if loop.dtype == "float64":
            warm.compile_loop(loop)
    before = len(object_code.made)
    X = np.random.default_rng(0).normal(size=(3000, 4))
    for metric in ("mixed", "manhattan", "cosine", "hamming"):
        for options in ({"k": "auto"}, {"weights": "distance"}):
            onlearn.KNNClassifier(metric=metric, **options).fit(X, np.arange(3000) % 3).predict_proba(X[:9])
    onlearn.KNNClassifier(metric="hamming").fit(X > 0, np.arange(3000) % 3).predict(X[:9] > 0)
    assert object_code.made[before:] == []


def test_kernel_loops_are_all_that_a_kernel_classifier_needs():
    usual = ("additive", "averaged", None, "dual", "float64")
    (loop,) = [loop for loop in warm.kernel_loops() if loop[1:6] == usual]
    warm.compile_loop(loop)
    before = len(object_code.made)
    X = [[n % 7 - 3.0, n % 5 - 2.0] for n in range(200)]
    onlearn.KernelClassifier("gaussian", epochs=3).fit(X, [a * b > 0 for a, b in X]).predict_proba(X)
    assert object_code.made[before:] == []
    assert set(warm.kernel_loops()) < set(warm.kernel_loops(everything=True))


def test_all_loops_have_the_named_ones_among_them():
    def kinds(loops):
        """What a loop is compiled for, by the names of the choices alone."""
        return {(*(text.partition("(")[0] for text in loop[1:3]), *loop[3:]) for loop in loops}

    named, everything = warm.named_loops(), warm.all_loops()
    assert kinds(named) <= kinds(everything)
    assert {loop.rule.partition("(")[0] for loop in named} == {Learner(name).choices["rule"].name for name in NAMED}
    assert not [loop for loop in everything if "additive(l" in loop.geometry and loop.stabilizer == "voted"]
