"""Records the models of a fixed set of runs, to show that a change of the source leaves them byte-identical.

The data are generated, always the same, with fixed names and times. Where ONLEARN_DATA is set, the beginnings of real
sets are learned from, too. Models are trained by the command line and from Python. Of each run the JSON object says, by
name, the SHA-256 of the model file, of its arrays alone, of the report (without seconds), and of predictions and
other output. What varies is left out before: the version of onlearn, and the times that `to_primal` measures.

    python tools/record_runs.py OUT.json               record
    python tools/record_runs.py --compare BEFORE.json  run again; exit code 1 if a run differs, fails or is missing

The package is the one that this Python imports (PYTHONPATH chooses another). Compare on the machine that recorded:
sums are rounded as its processor and the number of its threads have it.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

import onlearn
from recorded_data import write_data, write_real_data
from recorded_runs import PYTHON, REAL, THEN, TRAIN, Made

WHEN = 1_600_000_000  # the time of change of all files; the model file holds it
# Keys of JSON output. The size of a model file depends on the version; files of parsed rows are named after inodes.
VARYING = ("seconds", "version", "bytes", "path", "said")
MODEL = "MODEL"  # stands for the model file in commands


class Failed(Exception):  # noqa: N818
    """A command that ended with an error."""


class Commands:
    """Runs commands in a folder, by the package that this process imports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        home = str(Path(onlearn.__file__).resolve().parents[1])
        path = os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))
        self.environment = {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1", "COLUMNS": "100"}

    def run(self, command: list[str]) -> bytes:
        """What a command writes to standard output; ``< file`` is what it reads."""
        given = None
        if "<" in command:
            command, given = command[:-2], (self.folder / command[-1]).read_bytes()
        line = [sys.executable, "-m", "onlearn", *command]
        done = subprocess.run(
            line, cwd=self.folder, env=self.environment, input=given, capture_output=True, timeout=600
        )
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
            raise Failed(f"exit code {done.returncode}: {said[-1]}")
        return done.stdout

    def record(self, name: str, train: str) -> Iterator[tuple[str, str]]:
        """Train a model, look at it, and give the hash of all that was made."""
        model = name.replace("/", "-") + ".onl"
        for line in train.split("&&"):
            command = shlex.split(line.replace(MODEL, model))
            if "<" in command:
                at = command.index("<")
                command = [*command[:at], "-o", model, "--json", *command[at:]]
            else:
                command += ["-o", model, "--json"]
            report = self.run(["train", *command])
        yield from model_hashes(self.folder / model)
        yield "report", hash_of(steady(json.loads(report)))
        for line in THEN.get(name, ()):
            output = self.run(shlex.split(line.replace(MODEL, model)))
            yield line, hash_of(steady(json.loads(output)) if line.endswith("--json") else output)


def steady(report: Any) -> Any:
    """JSON without what varies from run to run."""
    if isinstance(report, dict):
        return {key: steady(value) for key, value in report.items() if key not in VARYING}
    return [steady(value) for value in report] if isinstance(report, list) else report


def model_hashes(path: Path) -> Iterator[tuple[str, str]]:
    """The hash of a model file without the version, and of its arrays alone.

    The file is the length of a JSON text in 8 bytes, that text, and the arrays (safetensors).
    """
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header["__metadata__"]["onlearn"] = told = json.loads(header["__metadata__"]["onlearn"])
    told.get("model", {}).get("trained", {}).pop("version", None)
    told.get("dual", {}).pop("reason", None)  # of `to_primal`: it holds seconds
    yield "model", hash_of(json.dumps(header).encode() + content[start:])
    yield "arrays", hash_of(content[start:])


def hash_of(value: Any) -> str:
    """Of bytes, an array, a sparse matrix, a table, or what JSON can write; order and types matter."""
    digest = hashlib.sha256()
    if isinstance(value, bytes):
        digest.update(value)
    elif sp.issparse(value):
        csr = value.tocsr()
        digest.update("".join(map(hash_of, (csr.indptr, csr.indices, csr.data))).encode() + repr(csr.shape).encode())
    elif isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype.str} {value.shape} ".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, pa.Table):
        digest.update(f"{value.schema}".encode() + json.dumps(value.to_pydict()).encode())
    else:
        plain = value.tolist() if isinstance(value, np.ndarray) else value
        digest.update(json.dumps(plain).encode())
    return digest.hexdigest()


def record_python(make: Callable[[Path], Made], folder: Path) -> Iterator[tuple[str, str]]:
    for title, value in make(folder):
        if not hasattr(value, "save"):
            yield title, hash_of(value)
            continue
        path = folder / f"python-{make.__name__}-{title.translate(str.maketrans('/ ', '__'))}.onl"
        value.save(path)
        yield from ((f"{title} {part}", digest) for part, digest in model_hashes(path))


def record(folder: Path, chosen: Callable[[str], bool], attempts: int) -> dict[str, str]:
    """The hashes of all chosen runs; of one that fails, its message."""
    write_data(folder)
    train = TRAIN
    if real := os.environ.get("ONLEARN_DATA"):
        write_real_data(folder, Path(real))
        train = {**TRAIN, **REAL}
    for path in folder.iterdir():
        os.utime(path, (WHEN, WHEN))
    commands = Commands(folder)
    found: dict[str, str] = {}
    makers: dict[str, Callable[[], Iterable[tuple[str, str]]]] = {
        **{name: lambda name=name, given=given: commands.record(name, given) for name, given in train.items()},  # type: ignore[misc]
        **{name: lambda make=make: record_python(make, folder) for name, make in PYTHON.items()},  # type: ignore[misc]
    }
    for name in filter(chosen, makers):
        began = time.perf_counter()
        for attempt in range(attempts):
            try:
                made = dict(makers[name]())
                break
            except Exception as error:  # whatever a run fails with, the others are recorded
                made = {"failed": f"{type(error).__name__}: {error}"}
                print(f"{name}, attempt {attempt + 1}: {made['failed']}", file=sys.stderr)
        found.update({f"{name}: {part}": digest for part, digest in made.items()})
        print(f"{time.perf_counter() - began:6.1f} s  {name}", file=sys.stderr, flush=True)
    return found


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """One line for each entry that is not as before."""
    told = {True: "is missing", False: "differs"}
    changed = [f"{told[name not in after]}: {name}" for name in before if before[name] != after.get(name)]
    return changed + [f"is new: {name}" for name in after if name not in before]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("output", nargs="?", help="where to write the recording")
    parser.add_argument("--compare", metavar="BEFORE", help="a recording to compare with")
    parser.add_argument("--only", metavar="PATTERN", default="*", help="runs to make, such as 'kernel/*'")
    parser.add_argument("--keep", metavar="FOLDER", help="keep data and models here, to look at what differs")
    parser.add_argument("--attempts", type=int, default=1, help="how often to try a run that fails")
    given = parser.parse_args(arguments)
    if not (given.output or given.compare):
        parser.error("say where to write the recording, or what to --compare with")
    warnings.simplefilter("ignore")
    before = json.loads(Path(given.compare).read_text()) if given.compare else None

    def chosen(name: str) -> bool:
        return fnmatch.fnmatch(name.partition(": ")[0], given.only)

    print(f"recording {Path(onlearn.__file__).parent}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as temporary:
        after = record(Path(temporary), chosen, given.attempts)
        if given.keep:
            shutil.copytree(temporary, given.keep, dirs_exist_ok=True)
    if given.output:
        Path(given.output).write_text(json.dumps(after, indent=1) + "\n")
    wrong = [f"{name} {message}" for name, message in after.items() if name.endswith(": failed")]
    if before is not None:
        wrong += differences({name: digest for name, digest in before.items() if chosen(name)}, after)
    print("\n".join(wrong) if wrong else f"{len(after)} entries{' are the same' if before is not None else ''}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
