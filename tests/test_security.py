"""What SECURITY.md promises, where no other test checks it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

# What Python does in a second round, when all modules are imported, and compiled code is loaded.
WATCHED = """
import ast, sys, typing, onlearn
from onlearn.data import BadRows, load
from fuzz.seeds import CONLL, CSV, FASTTEXT, JSONL, SVMLIGHT, VW, GZIP

seen = []
FORBIDDEN = ("exec", "compile", "pickle.", "marshal.", "socket.", "subprocess.", "os.system", "os.exec", "os.spawn",
             "os.posix_spawn", "os.fork", "shutil.", "ctypes.dlopen", "import")

def watch(event, arguments):
    if event.startswith(FORBIDDEN):
        caller = sys._getframe(1).f_code.co_filename
        if caller not in (typing.__file__, ast.__file__):  # types of our own are looked up; formulas are parsed
            seen.append((event, repr(arguments)[:200]))
    elif event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        seen.append((event, repr(arguments)[:200]))

def everything(folder):
    for name in ("a.onl", "kernel.onl", "text.onl"):
        model = onlearn.load(f"{folder}/{name}")
        assert model is not None
    onlearn.load(f"{folder}/a.onl").predict([[1.0, 0.0]])
    for name in ("a.svm", "a.vw", "a.ft", "a.conll", "a.csv", "a.jsonl", "a.svm.gz"):
        load(f"{folder}/{name}", bad=BadRows(limit=1.0), workers=0, labels="optional")

folder = sys.argv[1]
X, y = [[0.0, 1.0], [1.0, 0.0]] * 5, ["p", "q"] * 5
onlearn.AveragedPerceptron().fit(X, y).save(f"{folder}/a.onl")
onlearn.KernelPerceptron(kernel="gaussian(1)").fit(X, y).save(f"{folder}/kernel.onl")
for name, content in {"a.svm": SVMLIGHT[0], "a.vw": VW[0], "a.ft": FASTTEXT[0], "a.conll": CONLL[0],
                      "a.jsonl": JSONL[0], "a.csv": b"n,t,label\\n" + CSV[0] * 5, "a.svm.gz": GZIP[0]}.items():
    with open(f"{folder}/{name}", "wb") as file:
        file.write(content)
onlearn.train(f"{folder}/a.csv", f"{folder}/text.onl", max_bad=1.0)
everything(folder)
sys.addaudithook(watch)
everything(folder)
assert not seen, seen
import json  # the hook does see what happens
exec("1")
assert seen
"""


def test_reading_and_loading_run_no_code_and_open_no_connection(tmp_path):
    path = [str(ROOT / "tests"), *filter(None, sys.path)]
    script = f"import sys; sys.path[:0] = {path!r}\n{WATCHED}"
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_tests_that_the_promises_name_are_there():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/[\w/.]+)`", text))
    assert len(named) > 8
    assert all((ROOT / name).exists() for name in named), named
