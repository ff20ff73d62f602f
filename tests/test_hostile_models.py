"""Damaged model files: each is refused in one sentence, or works. None ends or blocks a process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hostile_models
import onlearn
from onlearn.model_file import ModelFileError, load, read_file, read_header, write_arrays

QUICK, ALL = 300, 5000
SHARES = 5


def _run(folder: Path, first: int, last: int) -> None:
    """Run some cases in a process of its own, in which a crash and a hang are seen."""
    command = [sys.executable, hostile_models.__file__, str(folder), str(first), str(last)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    told = done.stdout.partition("FAILED")[1:] if "FAILED" in done.stdout else done.stdout[-300:]
    assert done.returncode == 0, f"{''.join(told)[:6000]}\n{done.stderr[-3000:]}"


def test_damaged_models_are_refused_or_work(tmp_path):
    _run(tmp_path, 0, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_damaged_models_of_every_kind_are_refused_or_work(tmp_path, share):
    size = (ALL - QUICK) // SHARES
    _run(tmp_path, QUICK + share * size, QUICK + (share + 1) * size)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "m.onl"
    hostile_models.SAMPLES["additive"].make().save(path)
    return path


def _rewritten(path, change):
    header, arrays = read_file(path)
    change(header, arrays)
    write_arrays(str(path), arrays, {"onlearn": json.dumps(header)})


def _in_time(code: str, *arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], timeout=120, check=True)


# ---------------------------------------------------------------------------------------------------- what was found


def test_an_audit_without_a_next_example_is_refused_and_does_not_loop(tmp_path):
    path = tmp_path / "m.onl"
    onlearn.KernelPerceptron(random_state=0).fit([[0.0], [1.0]], [0, 1]).save(path)
    for due in ([1, 0, 0], [1, -1, 0], [1, 1, -1], [1, 1 << 62, 0]):
        _rewritten(path, lambda header, arrays, due=due: arrays["training.audit.due"].__setitem__(slice(None), due))
        with pytest.raises(ModelFileError, match=r"audit"):
            load(path)


def test_counters_that_would_leave_their_array_are_refused(saved):
    _rewritten(saved, lambda header, arrays: arrays["training.tally"].__setitem__(5, 63.0))
    with pytest.raises(ModelFileError, match="the counters contradict each other"):
        load(saved)


@pytest.mark.parametrize("depth", [1000, 100_000])
def test_a_header_nested_deeply_is_refused(saved, depth):
    header, arrays = read_file(saved)
    told = json.dumps(header)[:-1] + ', "more": ' + "[" * depth + "]" * depth + "}"
    write_arrays(str(saved), arrays, {"onlearn": told})
    if depth > 10_000:
        with pytest.raises(ModelFileError, match="nested too deeply"):
            load(saved)
    else:
        _in_time("import sys, onlearn\ntry: onlearn.load(sys.argv[1])\nexcept ValueError: pass", saved)


@pytest.mark.parametrize("part", ["params", "estimator", "training", "classes", "learner"])
@pytest.mark.parametrize("value", [None, 0.5, "x", [1], {}])
def test_a_part_of_the_header_that_is_something_else_is_named(saved, part, value):
    _rewritten(saved, lambda header, arrays: header.update({part: value}))
    if (part, value) == ("params", {}):  # as they are by default
        assert load(saved)
        return
    with pytest.raises(ModelFileError, match=r"header (has|lacks)|does not know|labels are missing|array training"):
        load(saved)


def test_what_is_no_file_is_refused_at_once(tmp_path):
    pipe = tmp_path / "pipe.onl"
    os.mkfifo(pipe)
    code = (
        "import sys, onlearn\n"
        "from onlearn.model_file import ModelFileError, read_header\n"
        "for read in (onlearn.load, read_header):\n"
        "    try: read(sys.argv[1])\n"
        "    except ModelFileError as error: assert 'is a pipe or a device' in str(error), error\n"
        "    else: raise AssertionError\n"
    )
    for path in (pipe, "/dev/zero", "/dev/null"):
        _in_time(code, path)


def test_the_command_says_it_in_one_sentence(saved, capsys):
    from onlearn.cli import run

    _rewritten(saved, lambda header, arrays: header.update(params=0.5))
    assert run(["inspect", str(saved)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and "the header has 0.5 for params, which must be parameters by name" in lines[0]


def test_text_of_the_header_is_shown_escaped(saved):
    _rewritten(saved, lambda header, arrays: header.update(learner="\x1b[2J\u202e"))
    with pytest.raises(ModelFileError) as caught:
        load(saved)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("option", ["cache", "bad", "workers", "speed"])
def test_a_file_does_not_say_where_to_write(tmp_path, option):
    path = tmp_path / "m.onl"
    hostile_models.SAMPLES["model of a table"].make().save(path)
    _rewritten(path, lambda header, arrays: header["model"]["reading"].update({option: "/tmp"}))
    with pytest.raises(ModelFileError, match=f"no option of reading '{option}'"):
        load(path)


# ---------------------------------------------------------------------------------------------------- sizes


def _raw(path, entries, content=b"", size=None):
    text = json.dumps(entries).encode()
    path.write_bytes((len(text) if size is None else size).to_bytes(8, "little") + text + content)


HEADER = {"onlearn": json.dumps({"format": 2, "learner": "Perceptron", "params": {}})}


def _entry(first, last, shape=None, dtype="F64"):
    return {"dtype": dtype, "shape": shape or [(last - first) // 8], "data_offsets": [first, last]}


SIZES = {
    "a header of 100 GB": ({"__metadata__": HEADER}, b"", 10**11),
    "a header of all there is": ({"__metadata__": HEADER}, b"", 2**64 - 1),
    "an array of 100 GB": ({"__metadata__": HEADER, "w": _entry(0, 10**11)}, bytes(16), None),
    "a shape of 100 GB": ({"__metadata__": HEADER, "w": _entry(0, 16, [10**10])}, bytes(16), None),
    "sizes that overflow": ({"__metadata__": HEADER, "w": _entry(0, 16, [2**62, 2**3])}, bytes(16), None),
    "arrays that overlap": ({"__metadata__": HEADER, "w": _entry(0, 16), "v": _entry(8, 24)}, bytes(24), None),
    "arrays with a gap": ({"__metadata__": HEADER, "w": _entry(0, 8), "v": _entry(16, 24)}, bytes(24), None),
    "an array that ends before it begins": ({"__metadata__": HEADER, "w": _entry(16, 0, [2])}, bytes(16), None),
    "an array of no known type": ({"__metadata__": HEADER, "w": _entry(0, 16, [2], "C128")}, bytes(16), None),
    "bytes that belong to none": ({"__metadata__": HEADER, "w": _entry(0, 8)}, bytes(16), None),
}


@pytest.mark.parametrize("case", SIZES)
def test_sizes_that_lie_are_refused(case, tmp_path):
    _raw(tmp_path / "m.onl", *SIZES[case])
    for read in (load, read_header):
        with pytest.raises(ModelFileError, match="is not a whole model file"):
            read(tmp_path / "m.onl")


def test_an_array_that_is_there_twice_is_refused(saved):
    raw = saved.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    text = raw[8 : 8 + size].rstrip()
    twice = text[:-1] + b', "counts": ' + json.dumps(_entry(8, 32)).encode() + b"}"
    saved.write_bytes(len(twice).to_bytes(8, "little") + twice + raw[8 + size :])
    with pytest.raises(ModelFileError, match="is not a whole model file"):
        load(saved)


COMPACT = {
    "100 GB of one value": {"dtype": "f8", "shape": [10**10], "common": 0},
    "100 GB in many dimensions": {"dtype": "f8", "shape": [10**5, 10**5], "common": 0},
    "no whole shape": {"dtype": "f8", "shape": [2.5], "common": 0},
    "less than nothing": {"dtype": "f8", "shape": [-1, -4], "common": 0},
    "a shape of nothing and of much": {"dtype": "f8", "shape": [0, 2**62, 2**62], "common": 0},
    "no bits of a double": {"dtype": "f8", "shape": [4], "common": 2**64},
    "bits that a type does not have": {"dtype": "u1", "shape": [4], "common": 256},
    "a type of Python objects": {"dtype": "O", "shape": [4], "common": 0},
    "no shape": {"dtype": "f8"},
    "nothing": {},
    "no facts": [3],
}


@pytest.mark.parametrize("case", COMPACT)
def test_arrays_in_less_room_ask_for_no_more_than_the_file_tells(case, saved):
    header, arrays = read_file(saved)
    stored = {**arrays, "counts": np.zeros(0), "counts differs": np.zeros(1, np.uint8)}
    told = json.dumps({**header, "format": 2, "compact": {"counts": COMPACT[case]}})
    write_arrays(str(saved), stored, {"onlearn": told})
    with pytest.raises(ModelFileError, match=r"is damaged: (the header|'?counts'? contradicts itself)"):
        load(saved)


def test_a_budget_asks_for_no_more_than_the_file_tells(tmp_path):
    path = tmp_path / "m.onl"
    onlearn.KernelPerceptron(budget=3, random_state=0).fit([[0.0], [1.0]], [0, 1]).save(path)
    _rewritten(path, lambda header, arrays: header["dual"]["budget"].update(budget=10**11))
    with pytest.raises(ModelFileError, match="the budget does not have the shape"):
        load(path)


@pytest.mark.parametrize("name", ["rule", "epochs", "geometry"])
def test_a_long_value_is_not_quoted_as_a_whole(saved, name):
    _rewritten(saved, lambda header, arrays: header["params"].update({name: "9" * 100_000}))
    with pytest.raises(ModelFileError) as caught:
        load(saved)
    assert len(str(caught.value)) < 1000 + len(str(saved))


def test_a_kind_of_multiclass_that_is_no_name_is_refused(saved):
    _rewritten(saved, lambda header, arrays: header["params"].update(multiclass=["x"]))
    with pytest.raises(ValueError, match="multiclass must be"):
        load(saved).fit(hostile_models.X, hostile_models.THREE)


def test_notebooks_show_models_of_strings_too(tmp_path):
    hostile_models.SAMPLES["kernel strings"].make().save(tmp_path / "m.onl")
    assert "examples" in load(tmp_path / "m.onl")._repr_html_()


UNFINISHED = {"unfinished": 5, "ended": 0, "files": [], "sources": [], "rows": 1, "plan": {}}
ROUNDS = {"shards": 2, "rounds": 3, "mix": "rows", "asked_shards": 2, "asked_lbfgs": None, "learned": [1, 1],
          "digests": [[1], [1]], "label_counts": [1, 1]}  # fmt: skip


@pytest.mark.parametrize(
    "facts",
    [{"notes": 3}, {"sources": [1]}, {"seed": "x"}, {"seed": None}, {"unfinished": -1}, {"unfinished": 5},
     UNFINISHED | {"plan": {"passes": "x"}}, {"cluster": {"shards": 2, "rounds": 3, "mix": "median"}},
     UNFINISHED | {"cluster": ROUNDS | {"learned": ["x", 1]}}, UNFINISHED | {"cluster": ROUNDS | {"digests": [[]]}}],
    ids=str,
)  # fmt: skip
def test_how_a_model_was_trained_is_checked(tmp_path, facts):
    path = tmp_path / "m.onl"
    hostile_models.SAMPLES["model of a table"].make().save(path)
    _rewritten(path, lambda header, arrays: header["model"]["trained"].update(facts))
    with pytest.raises(ModelFileError, match=r"the header (has|lacks) .*model\.trained"):
        load(path)


def test_an_unfinished_run_takes_over_no_more_than_runs_write():
    from onlearn.models.plan import Plan
    from onlearn.models.run import take_plan

    plan = Plan(["a.csv"])
    take_plan(plan, {"passes": 3, "sources": ["/etc/passwd"], "cache": "/tmp"})
    assert (plan.passes, plan.sources, plan.cache) == (3, ["a.csv"], True)
