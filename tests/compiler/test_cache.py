"""Start-up: what is imported when, and the compile cache that makes a second process start at once."""

from __future__ import annotations

import contextlib
import errno
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
from onlearn.compiler import cache as files
from onlearn.compiler import compiled, functions
from onlearn.compiler.backends import is_tried

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


def test_without_object_code_a_full_disk_is_no_obstacle_either(tmp_path):
    """Numba itself ends with an error then."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    assert run(limit + FIT, ONLEARN_BACKEND="numba", NUMBA_CACHE_DIR=tmp_path)["made"]
    assert not list(tmp_path.rglob("*.nbc"))


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
    outcome = run(FIT, **nowhere(copied, tmp_path))
    assert outcome["folder"] is None
    assert outcome["made"]
    assert outcome["weights"] == run(FIT)["weights"]


SMALL = """
from onlearn.compiler import compiled

@compiled
def double(x):
    return x + x

@compiled
def square(x):
    return x * x
"""
CALL = """
import json, os, sys
from onlearn.cli.terminal import one_line_warnings
from onlearn.compiler import cache_folder, object_code
if UNWRITABLE:
    os.access = lambda path, mode: False  # also what root may write to
sys.path.insert(0, os.getcwd())
import small
with one_line_warnings() if COMMAND else open(os.devnull):
    assert (small.double(3.0), small.square(3.0)) == (6.0, 9.0)
print(json.dumps({"made": object_code.made, "folder": cache_folder()}))
"""


def nowhere(copied, tmp_path):
    """An environment in which no folder can be made, not even by root."""
    (copied / "__pycache__").write_text("")
    (tmp_path / "file").write_text("")
    return dict(package=copied, NUMBA_CACHE_DIR=None, XDG_CACHE_HOME=tmp_path / "file" / "user")


def called(tmp_path, package=PACKAGE, command=True, unwritable=False, **environment):
    """What a program compiled that calls two small functions, and what it said on stderr."""
    (tmp_path / "small.py").write_text(SMALL)
    whole = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    whole = {name: str(value) for name, value in whole.items() if value is not None}
    program = f"COMMAND, UNWRITABLE = {command}, {unwritable}\n{CALL}"
    done = subprocess.run(
        [sys.executable, "-c", program], env=whole, cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.mark.parametrize("backend", ["object_code", "numba"])
@pytest.mark.parametrize("command", [True, False])
def test_where_nothing_is_kept_one_line_says_so(command, backend, copied, tmp_path):
    if backend == "object_code" and not is_tried():
        pytest.skip("not tried on this platform")
    found, said = called(tmp_path, command=command, ONLEARN_BACKEND=backend, **nowhere(copied, tmp_path))
    assert found["folder"] is None
    assert said == ("onlearn: warning: " if command else "") + (
        "compiled code is not kept, so every process waits for the compiler: "
        f"{copied / '__pycache__'} and {tmp_path / 'file' / 'user' / 'onlearn'} cannot be written to; "
        "set NUMBA_CACHE_DIR to a folder that only you can write to\n"
    )


def test_workers_on_this_machine_do_not_say_it_again():
    program = """
from onlearn.cluster.local_worker import dask_setup
from onlearn.compiler.cache import warn_not_kept
warn_not_kept("here")
dask_setup(None)
warn_not_kept("in a worker")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "here" in done.stderr and "in a worker" not in done.stderr


@pytest.mark.parametrize(("end", "left"), [(".nbc", 100), (".nbi", 0)])
def test_without_object_code_a_damaged_file_is_compiled_anew_too(end, left, tmp_path):
    where = {"ONLEARN_BACKEND": "numba", "NUMBA_CACHE_DIR": tmp_path / "cache"}
    first, _ = called(tmp_path, **where)
    for file in tmp_path.rglob(f"*{end}"):
        os.truncate(file, left)
    assert called(tmp_path, **where)[0]["made"] == first["made"] == ["double", "square"]
    assert called(tmp_path, **where)[0]["made"] == []


def test_without_a_home(copied, tmp_path):
    environment = {**nowhere(copied, tmp_path), "XDG_CACHE_HOME": None, "HOME": tmp_path / "file"}
    assert f"and {tmp_path / 'file' / '.cache' / 'onlearn'} cannot be written to" in called(tmp_path, **environment)[1]


def test_nothing_is_said_where_code_is_kept_or_there_already(copied, tmp_path):
    """Also where it is in a folder that can only be read, as in an image, whose maker ran ``onlearn warm``."""
    environment = {**nowhere(copied, tmp_path), "NUMBA_CACHE_DIR": tmp_path / "cache"}
    found, said = called(tmp_path, **environment)
    assert found["made"] == ["double", "square"] and said == ""
    found, said = called(tmp_path, unwritable=True, **environment)
    assert found == {"made": [], "folder": None} and said == ""


def test_a_full_disk_is_named(monkeypatch, caplog):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "write", full)
    files._warn_once.cache_clear()
    namespace = {}
    exec("def same(x):\n    return x", namespace)  # which no process has compiled before
    monkeypatch.setattr(functions, "identity", lambda *_: functions.Identity(f"same {os.urandom(8)}", True))
    assert compiled(namespace["same"])(1.5) == 1.5
    assert f"{files.cache_folder()}: No space left on device; set NUMBA_CACHE_DIR" in caplog.text


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
