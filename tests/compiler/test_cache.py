"""Start-up: what is imported when, and the compile cache that makes a second process start at once."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import pytest

import onlearn

PACKAGE = Path(onlearn.__file__).parent

FIT = """
import json, sys
import numpy as np
import onlearn
from onlearn import compiler
from onlearn.compiler import object_code
X = np.random.default_rng(0).normal(size=(20, 3))
model = onlearn.Perceptron(random_state=0).fit(X, (X[:, 0] > 0).astype(int))
print(json.dumps({"made": object_code.made, "compiler": "numba" in sys.modules,
                  "folder": compiler.cache_folder(), "weights": model.coef_.tolist()}))
"""
FOLDER = "from onlearn import compiler; import json; print(json.dumps(compiler.cache_folder()))"


def run(program, package=PACKAGE, **environment):
    """What a program, in a process of its own, prints as JSON. A value of None unsets a variable."""
    whole = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    whole = {name: str(value) for name, value in whole.items() if value is not None}
    done = subprocess.run(
        [sys.executable, "-c", program], env=whole, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def copied(tmp_path):
    """A copy of the package, without what was compiled."""
    return Path(shutil.copytree(PACKAGE, tmp_path / "lib" / "onlearn", ignore=shutil.ignore_patterns("__pycache__")))


def test_a_full_disk_is_no_obstacle(tmp_path):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    assert run(limit + FIT, NUMBA_CACHE_DIR=tmp_path)["made"]
    assert not list(tmp_path.rglob("*.code")) and not list(tmp_path.rglob("*.tmp*"))


def test_second_process_compiles_nothing(tmp_path):
    """The first process's first fit compiles, the second's finds it done."""
    first = run(FIT, NUMBA_CACHE_DIR=tmp_path)
    assert Path(first["folder"]).parent == tmp_path
    assert any(name.startswith("learn_output_") for name in first["made"])
    second = run(FIT, NUMBA_CACHE_DIR=tmp_path)
    assert second["made"] == []
    assert not second["compiler"]  # not even imported
    assert second["weights"] == first["weights"]


def test_a_damaged_file_is_compiled_anew(tmp_path):
    first = run(FIT, NUMBA_CACHE_DIR=tmp_path)
    (damaged,) = tmp_path.rglob("learn_output_*.code")
    damaged.write_bytes(damaged.read_bytes()[:-100])
    second = run(FIT, NUMBA_CACHE_DIR=tmp_path)
    assert [name.partition("_Dense")[0] for name in second["made"]] == ["learn_output"]
    assert second["weights"] == first["weights"]
    assert run(FIT, NUMBA_CACHE_DIR=tmp_path)["made"] == []


def test_import_brings_in_neither_numba_nor_scikit_learn():
    """``import onlearn`` costs next to nothing, and neither does asking what there is."""
    program = "import sys, json, onlearn; dir(onlearn); print(json.dumps(sorted(sys.modules)))"
    heavy = {"numba", "llvmlite", "sklearn", "scipy", "numpy", "pyarrow", "plotly"}
    assert heavy.isdisjoint(run(program))


@pytest.mark.slow
def test_a_changed_source_is_compiled_anew(copied):
    """Editing a geometry, which the loop's own file only calls, does not leave the old loop in force."""
    environment = dict(package=copied, NUMBA_CACHE_DIR=None)
    before = run(FIT, **environment)
    assert Path(before["folder"]).parent == copied / "__pycache__"
    source = copied / "engine" / "geometry" / "additive.py"
    twice = source.read_text().replace("    g.w[j] += change\n", "    g.w[j] += 2.0 * change\n")
    assert twice != source.read_text()
    source.write_text(twice)
    after = run(FIT, **environment)
    assert any(name.startswith("learn_output_") for name in after["made"])
    assert after["weights"] == [[2.0 * w for w in before["weights"][0]]]


@pytest.mark.slow
def test_fields_in_another_order_are_compiled_anew(copied):
    """Compiled code knows the fields of a state by their places."""
    environment = dict(package=copied, NUMBA_CACHE_DIR=None)
    program = FIT.replace("Perceptron", "AveragedPerceptron")
    before = run(program, **environment)
    source = copied / "engine" / "stabilizers.py"
    text = source.read_text()
    fields = re.search(r"class AveragedState\(NamedTuple\):\n((?: +\w+: .*\n)+)", text)
    made = re.search(r"return AveragedState\((.*)\)\n", text)
    lines = fields[1].splitlines(keepends=True)
    values = made[1].split(", ")
    assert len(lines) == len(values) == 3
    text = text.replace(fields[1], "".join([lines[1], lines[0], lines[2]]))
    source.write_text(text.replace(made[1], ", ".join([values[1], values[0], values[2]])))
    after = run(program, **environment)
    assert any(name.startswith("learn_output_") for name in after["made"])
    assert after["weights"] == before["weights"]


@pytest.mark.parametrize("name", ["__init__.py", "emit.py", "functions.py", "intrinsics.py", "inlining.py"])
def test_what_compiles_names_the_folder(copied, name):
    """A change of how loops are compiled starts a new cache, and undoing it returns to the old one."""
    environment = dict(package=copied, NUMBA_CACHE_DIR=None)
    before = run(FOLDER, **environment)
    source = copied / "compiler" / name
    text = source.read_text()
    source.write_text(text + "# changed\n")
    assert Path(run(FOLDER, **environment)).name != Path(before).name
    source.write_text(text)
    assert run(FOLDER, **environment) == before


def test_a_read_only_package_uses_the_users_cache(copied, tmp_path):
    """Where the package's own folder cannot be written, compiled code is kept in the user's cache."""
    (copied / "__pycache__").write_text("a file, so not even root can make a folder of it")
    environment = dict(package=copied, NUMBA_CACHE_DIR=None, XDG_CACHE_HOME=tmp_path / "user")
    folder = Path(run(FOLDER, **environment))
    assert folder.parent == tmp_path / "user" / "onlearn"
    assert folder.is_dir()


@pytest.mark.slow
def test_without_any_place_for_a_cache_learning_works(copied, tmp_path):
    """Where no folder can be written there is no cache, and that is all."""
    (copied / "__pycache__").write_text("")
    (tmp_path / "user").write_text("")
    environment = dict(package=copied, NUMBA_CACHE_DIR=None, XDG_CACHE_HOME=tmp_path / "user")
    outcome = run(FIT, **environment)
    assert outcome["folder"] is None
    assert outcome["made"]
    assert outcome["weights"] == run(FIT)["weights"]


TRAIN = """
import json, sys
from onlearn import cli
with open("small.csv", "w") as file:
    file.write("size,label\\n" + "".join(f"{n % 7},{'ab'[n % 2]}\\n" for n in range(50)))
code = cli.run(["train", "small.csv", "-o", "m.onl", *ARGUMENTS])
"""


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudo-terminals")
def test_a_command_says_on_a_terminal_that_it_compiles_and_does_not_count_the_time(tmp_path):
    def trained(*arguments):
        """What a run prints to standard output, and to a terminal as standard error."""
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        reading, writing = os.openpty()
        program = [sys.executable, "-c", f"ARGUMENTS = {arguments!r}\n{TRAIN}"]
        done = subprocess.run(
            program, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=writing, text=True, check=True
        )
        os.set_blocking(reading, False)
        with contextlib.suppress(BlockingIOError):
            return done.stdout, os.read(reading, 1 << 16).decode()
        return done.stdout, ""

    line = "onlearn: compiling for this machine, once: about 10 s"
    start = perf_counter()
    report, said = trained("--json")
    whole = perf_counter() - start
    assert said.count(line) == 1
    assert json.loads(report)["seconds"] < whole / 2
    assert line not in trained("--json")[1]
    shutil.rmtree(tmp_path / "cache")
    assert trained("--quiet")[1] == ""
