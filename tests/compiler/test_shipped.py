"""Machine code that comes with the package: for which processors it is used, and when it is not."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import onlearn
from onlearn.compiler import INTERPRETED, Compiled, backends, functions, shipped

ROOT = Path(onlearn.__file__).parents[2]
pytestmark = pytest.mark.skipif(INTERPRETED or not backends.is_tried(), reason="there is no object code")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of shipped code, for both levels, on a processor that has both."""
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "shipped")
    monkeypatch.setattr(shipped, "destination", shipped.Destination())
    monkeypatch.setattr(functions, "_addresses", {})
    monkeypatch.setattr(backends, "_state", backends._State())
    for name in (*os.environ, "ONLEARN_BACKEND"):
        if name.startswith(shipped.SETTINGS) or name == "ONLEARN_BACKEND":
            monkeypatch.delenv(name, raising=False)
    for level in shipped.LEVELS:
        (tmp_path / "shipped" / level).mkdir(parents=True)
    return tmp_path / "shipped"


def processor(monkeypatch, *features: str) -> None:
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda: dict.fromkeys(features, True))


def test_the_best_level_that_the_processor_has(folder, monkeypatch):
    for features, found in [
        ((*shipped.V2, *shipped.V3), ("x86-64-v3", "x86-64-v2")),
        ((*shipped.V2, *shipped.V3[1:]), ("x86-64-v2",)),
        (shipped.V2[1:], ()),
    ]:
        processor(monkeypatch, *features)
        assert shipped.levels.__wrapped__() == found


def test_whoever_tells_numba_how_to_compile_gets_that(folder, monkeypatch):
    processor(monkeypatch, *shipped.V2)
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    assert shipped.levels.__wrapped__() == ()


def test_nothing_is_asked_where_nothing_is_shipped(folder, monkeypatch):
    for level in shipped.LEVELS:
        (folder / level).rmdir()
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    assert shipped.levels.__wrapped__() == ()


def module_of(file: Path):
    spec = importlib.util.spec_from_file_location("shipped_sample", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_shipped_code_is_used_without_a_compiler_until_its_source_changes(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "levels", lambda: ("x86-64-v2",))
    source = tmp_path / "sample.py"
    source.write_text("def double(x):\n    return 2.0 * x[0]\n")
    x = np.array([3.0])
    shipped.ship_to(folder, "x86-64-v2")
    assert Compiled(module_of(source).double, {})(x) == 6.0
    (file,) = (folder / "x86-64-v2").iterdir()
    assert file.name.startswith("double-onlearn_")

    monkeypatch.setattr(shipped, "destination", shipped.Destination())
    monkeypatch.setattr(functions, "_addresses", {})
    monkeypatch.setenv("ONLEARN_BACKEND", "object_code")
    monkeypatch.setitem(sys.modules, "onlearn.compiler.emit", None)
    assert Compiled(module_of(source).double, {})(x) == 6.0

    for content in (b"", file.read_bytes()[:-50]):  # a damaged file is none
        monkeypatch.setattr(functions, "_addresses", {})
        whole = file.read_bytes()
        file.write_bytes(content)
        with pytest.raises(ImportError):
            Compiled(module_of(source).double, {})(x)
        file.write_bytes(whole)

    source.write_text("def double(x):\n    return 4.0 * x[0]\n")
    with pytest.raises(ImportError):
        Compiled(module_of(source).double, {})(x)


def test_shipped_texts_are_used_until_the_package_changes(folder, monkeypatch):
    monkeypatch.setattr(shipped, "levels", lambda: ("x86-64-v2",))
    shipped.ship_to(folder, "x86-64-v2")
    shipped.write_text("loop_Some", "def loop(): pass\n")
    assert shipped.text("loop_Some") == "def loop(): pass\n"
    assert shipped.text("loop_Other") is None
    monkeypatch.setattr(shipped, "package_digest", lambda: "another")
    assert shipped.text("loop_Some") is None


def test_an_unknown_level_is_named(folder):
    with pytest.raises(ValueError, match="level must be one of x86-64-v3, x86-64-v2, not 'x86-64-v9'"):
        shipped.ship_to(folder, "x86-64-v9")


FIRST_RUN = """
import json, sys, time
begin = time.perf_counter()
from onlearn import cli
code = cli.run(["train", *sys.argv[1:], "--quiet"])
seconds = time.perf_counter() - begin
from onlearn.compiler import compile_seconds, object_code
print(json.dumps({"code": code, "numba": "numba" in sys.modules, "made": object_code.made, "seconds": seconds,
                  "compiling": compile_seconds()}))
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="hatchling is not installed: make wheel")
@pytest.mark.skipif(not (ROOT / "hatch_build.py").exists(), reason="the sources are not here")
def test_the_first_run_of_a_wheel_neither_compiles_nor_imports_numba(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "ONLEARN_"))}
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, env={**environment, "ONLEARN_SHIP": "1"}, check=True, timeout=3000)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-manylinux_2_17_x86_64.whl")
    ZipFile(wheel).extractall(tmp_path / "installed")
    (tmp_path / "small.csv").write_text(
        "size,colour,label\n" + "".join(f"{n % 7},{'red' if n % 3 else 'blue'},{'ab'[n % 2]}\n" for n in range(50))
    )
    (tmp_path / "small.svm").write_text("".join(f"{n % 2} {n % 5 + 1}:1 {n % 3 + 7}:0.5\n" for n in range(50)))
    texts = (f'{{"text": "word{n % 9} é", "label": "{n % 3}"}}\n' for n in range(50))
    (tmp_path / "small.jsonl").write_text("".join(texts), encoding="utf-8")
    for name in ("small.csv", "small.svm", "small.jsonl"):
        whole = {**environment, "PYTHONPATH": str(tmp_path / "installed"), "XDG_CACHE_HOME": str(tmp_path / "empty")}
        done = subprocess.run(
            [sys.executable, "-c", FIRST_RUN, str(tmp_path / name), "-o", str(tmp_path / f"{name}.onl")],
            env=whole,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        found = json.loads(done.stdout)
        assert (found["code"], found["made"], found["numba"], found["compiling"]) == (0, [], False, 0.0), name
