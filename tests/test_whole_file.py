"""Files that appear whole, and what killed processes leave of them."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import onlearn
from onlearn import whole_file as module
from onlearn.whole_file import FileBeside, remove_leftovers, whole_file, write_whole

WRITES = """
import sys, time
from onlearn.whole_file import whole_file
with whole_file(sys.argv[1]) as temporary:
    open(temporary, "w").write("half")
    print(temporary, flush=True)
    time.sleep(600)
"""


def _writing(target):
    """A process that is writing a file, and the name of what it writes."""
    process = subprocess.Popen([sys.executable, "-c", WRITES, str(target)], stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip()


def _end(process):
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)
    process.stdout.close()


def test_what_a_killed_process_left_is_removed_by_the_next_that_saves_there(tmp_path):
    target = tmp_path / "m.onl"
    process, temporary = _writing(target)
    _end(process)
    assert os.path.exists(temporary) and not target.exists()
    onlearn.Perceptron(random_state=0).fit([[0.0], [1.0]], [0, 1]).save(target)
    assert os.listdir(tmp_path) == ["m.onl"]
    onlearn.load(target)


def test_what_a_living_process_writes_stays(tmp_path):
    target = tmp_path / "m.onl"
    process, temporary = _writing(target)
    try:
        write_whole(target, b"mine")
        assert os.path.exists(temporary) and target.read_bytes() == b"mine"
    finally:
        _end(process)
    write_whole(target, b"again")
    assert os.listdir(tmp_path) == ["m.onl"]


def test_two_files_for_one_target_at_once(tmp_path):
    target = tmp_path / "m.onl"
    first, second = FileBeside(target), FileBeside(target)
    for one, text in ((first, b"1"), (second, b"2")):
        with one.open() as file:
            file.write(text)
    remove_leftovers(target)
    first.replace()
    assert target.read_bytes() == b"1"
    second.replace()
    assert target.read_bytes() == b"2" and os.listdir(tmp_path) == ["m.onl"]


def test_a_run_that_was_killed_leaves_no_cache_of_rows(tmp_path):
    from onlearn import data

    source = tmp_path / "a.svm"
    source.write_text("1 1:1\n0 2:1\n" * 1000)
    script = (
        "import sys, time\nfrom onlearn import data\n"
        "with data.read(sys.argv[1], block_size=1500, cache=True) as reader:\n"
        "    next(reader)\n    print('reading', flush=True)\n    time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(source)], stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    _end(process)
    assert any(name.endswith(".tmp") for name in os.listdir(tmp_path))
    with data.read(source, cache=True) as reader:
        assert sum(map(len, reader)) == 2000
    assert not any(name.endswith(".tmp") for name in os.listdir(tmp_path))


def test_nothing_else_is_removed(tmp_path):
    names = [".m.onl.swp", ".m.onl.abcdefgh", ".m.onl.abc.tmp", ".other.onl.abcdefgh.tmp", "m.onl.abcdefgh.tmp"]
    for name in names:
        (tmp_path / name).write_text("of others")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / ".m.onl.linklink.tmp").symlink_to(victim)
    (tmp_path / ".m.onl.folder12.tmp").mkdir()
    os.mkfifo(tmp_path / ".m.onl.pipe1234.tmp")
    before = sorted(os.listdir(tmp_path))
    remove_leftovers(tmp_path / "m.onl")
    assert sorted(os.listdir(tmp_path)) == before and victim.read_text() == "precious"
    remove_leftovers(tmp_path / "nowhere" / "m.onl")


def test_files_of_other_users_stay(tmp_path, monkeypatch):
    left = tmp_path / ".m.onl.abcdefgh.tmp"
    left.write_text("half")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    remove_leftovers(tmp_path / "m.onl")
    assert left.exists()


def test_where_there_are_no_locks_old_files_are_leftovers(tmp_path, monkeypatch):
    def unsupported(handle, wait):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(module, "_lock", unsupported)
    young, old = tmp_path / ".m.onl.abcdefgh.tmp", tmp_path / ".m.onl.12345678.tmp"
    for path in (young, old):
        path.write_text("half")
    os.utime(old, (time.time() - module.LONG - 60,) * 2)
    write_whole(tmp_path / "m.onl", b"whole")
    assert young.exists() and not old.exists() and (tmp_path / "m.onl").read_bytes() == b"whole"


def test_a_file_that_was_taken_for_a_leftover_is_made_anew(tmp_path, monkeypatch):
    lock, taken = module._lock, []

    def late(handle, wait):
        if not taken:
            taken.extend(tmp_path.iterdir())
            taken[0].unlink()
        lock(handle, wait)

    monkeypatch.setattr(module, "_lock", late)
    write_whole(tmp_path / "m.onl", b"whole")
    assert len(taken) == 1 and (tmp_path / "m.onl").read_bytes() == b"whole" and os.listdir(tmp_path) == ["m.onl"]


def test_an_error_while_writing_leaves_the_old_file(tmp_path):
    target = tmp_path / "m.onl"
    target.write_text("old")

    def fail():
        with whole_file(target) as temporary:
            Path(temporary).write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert target.read_text() == "old" and os.listdir(tmp_path) == ["m.onl"]


def test_an_error_before_writing_names_the_target(tmp_path, monkeypatch):
    def refused(**_):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / ".a.html.abcdefgh.tmp"))

    monkeypatch.setattr(module.tempfile, "mkstemp", refused)
    with pytest.raises(PermissionError, match=r"cannot be written: Permission denied: .*a\.html'$") as caught:
        write_whole(tmp_path / "a.html", b"new")
    assert caught.value.filename == str(tmp_path / "a.html")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path):
    target = tmp_path / "m.onl"
    before = os.umask(0o022)
    try:
        write_whole(target, b"first")
        assert target.stat().st_mode & 0o777 == 0o644
        target.chmod(0o600)
        write_whole(target, b"second")
    finally:
        os.umask(before)
    assert target.stat().st_mode & 0o777 == 0o600
    assert target.read_bytes() == b"second"
