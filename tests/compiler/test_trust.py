"""Compiled code is loaded only from folders and files that no other user can write to."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

import pytest

from onlearn.compiler import cache as files

pytestmark = pytest.mark.skipif(not files.POSIX, reason="there are no modes")


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A folder that the environment names; the umask forbids nothing."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(files, "PACKAGE", tmp_path / "no package")
    (tmp_path / "no package").write_text("a file, so not even root can make a folder of it")
    files._warn_once.cache_clear()
    before = os.umask(0)
    yield tmp_path / "cache"
    os.umask(before)


def chosen() -> Path | None:
    found = files.places.__wrapped__("code").writable
    return None if found is None else Path(found)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_are_the_users_alone(root):
    folder = chosen()
    assert folder.parent == root
    assert mode(folder) == mode(root) == 0o700
    files.write(folder, "a.code", b"text")
    assert mode(folder / "a.code") == 0o600
    assert files.read(folder, "a.code") == b"text"
    assert chosen() == folder


def test_code_in_the_package_may_be_read_by_whoever_may_read_the_package(root, monkeypatch):
    """In an image, its maker compiles as root, and others use it."""
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    package = root.parent / "package"
    package.mkdir()
    monkeypatch.setattr(files, "PACKAGE", package)
    folder = chosen()
    assert folder.parent == package / "__pycache__" and mode(folder) == mode(folder.parent) == 0o755
    files.write(folder, "a.code", b"text")
    assert mode(folder / "a.code") == 0o644
    assert files.read(folder, "a.code") == b"text"


def test_folders_that_can_only_be_read_are_read(root, monkeypatch):
    chosen()
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).startswith(str(root)))
    found = files.places.__wrapped__("code")
    assert [Path(one).parent for one in found.readable] == [root, root.parent / "home" / "onlearn"]
    assert found.writable == found.readable[1]
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert files.places.__wrapped__("code") == (found.readable, None)


def test_a_sticky_folder_may_hold_ones_own(root):
    root.mkdir()
    root.chmod(0o1777)
    folder = chosen()
    assert folder.parent == root and mode(folder) == 0o700


def refused(root, caplog) -> None:
    """The next candidate is used, and one line says so."""
    with caplog.at_level(logging.WARNING, "onlearn.compiler"):
        for _ in range(2):
            assert chosen().parent == root.parent / "home" / "onlearn"
    assert len(caplog.records) == 1
    assert "set NUMBA_CACHE_DIR to a folder that only you can write to" in caplog.text


def test_a_folder_that_others_can_write_to_is_refused(root, caplog):
    root.mkdir()
    root.chmod(0o777)
    refused(root, caplog)


def test_a_folder_of_a_shared_group_is_refused(root, caplog, monkeypatch):
    root.mkdir()
    root.chmod(0o770)
    monkeypatch.setattr(files, "_is_private", lambda group: False)
    refused(root, caplog)


def test_a_folder_of_the_users_own_group_is_used(root, monkeypatch):
    root.mkdir()
    root.chmod(0o770)
    monkeypatch.setattr(files, "_is_private", lambda group: True)
    assert chosen().parent == root


def test_a_planted_folder_is_refused(root, caplog):
    root.mkdir()
    root.chmod(0o1777)
    planted = chosen()
    planted.chmod(0o777)
    refused(root, caplog)


def test_a_planted_link_is_refused(root, caplog):
    root.mkdir()
    root.chmod(0o1777)
    planted = chosen()
    planted.rename(root / "elsewhere")
    planted.symlink_to(root / "elsewhere")
    refused(root, caplog)


def test_a_folder_of_another_user_is_refused(root, caplog, monkeypatch):
    inner = chosen()
    owner = inner.stat().st_uid
    found = files._check

    def check(path, facts, *rest, **options):
        if path == inner:
            monkeypatch.setattr(files, "_trusted_owners", lambda: {owner + 1})
        try:
            found(path, facts, *rest, **options)
        finally:
            monkeypatch.setattr(files, "_trusted_owners", lambda: {owner})

    monkeypatch.setattr(files, "_check", check)
    refused(root, caplog)


@pytest.mark.skipif(not files.POSIX or os.geteuid() != 0, reason="only root can give files away")
def test_what_belongs_to_another_user_is_refused(root):
    folder = chosen()
    files.write(folder, "a.code", b"planted")
    os.chown(folder / "a.code", 12345, 12345)
    with pytest.raises(files.UntrustedError, match="belongs to another user"):
        files.read(folder, "a.code")
    os.chown(folder / "a.code", 0, 0)
    assert files.read(folder, "a.code") == b"planted"
    os.chown(folder, 12345, 12345)
    with pytest.raises(files.UntrustedError, match="belongs to another user"):
        files.read(folder, "a.code")


def test_nothing_is_used_if_all_is_refused(root, caplog):
    for folder in (root, root.parent / "home"):
        folder.mkdir()
        folder.chmod(0o777)
    assert chosen() is None
    assert len(caplog.records) == 2


def test_files_that_others_can_write_to_are_not_read(root):
    folder = chosen()
    files.write(folder, "a.code", b"planted")
    for bits in (0o602, 0o666):
        (folder / "a.code").chmod(bits)
        with pytest.raises(files.UntrustedError, match="other users can write to"):
            files.read(folder, "a.code")


def test_links_and_pipes_are_not_read(root):
    folder = chosen()
    (folder / "text").write_text("text")
    (folder / "link.code").symlink_to(folder / "text")
    os.mkfifo(folder / "pipe.code", 0o600)
    for name in ("link.code", "pipe.code"):
        with pytest.raises(OSError):
            files.read(folder, name)


def test_nothing_is_written_through_a_link(root):
    folder, other = chosen(), root / "other"
    other.write_text("untouched")
    (folder / "a.code").symlink_to(other)
    files.write(folder, "a.code", b"code")
    assert other.read_text() == "untouched"
    assert not (folder / "a.code").is_symlink() and files.read(folder, "a.code") == b"code"
    assert [path.name for path in folder.iterdir()] == ["a.code"]


def test_a_damaged_file_is_told():
    content = files.with_checksum(b"code")
    assert files.without_checksum(content) == b"code"
    for damaged in (b"", content[:-1], content[1:], content + b"x"):
        assert files.without_checksum(damaged) is None
