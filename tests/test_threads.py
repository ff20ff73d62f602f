"""Work shared with helper threads."""

import subprocess
import sys
import threading
import time

import pytest

from onlearn import threads


def test_every_piece_is_done_once():
    for pieces in (0, 1, 2, 7, 100):
        done = []
        threads.over_pieces(done.append, pieces, 2)
        assert sorted(done) == list(range(pieces))


def test_what_a_piece_raises_is_raised():
    def work(n):
        if n == 3:
            raise ValueError("three")

    with pytest.raises(ValueError, match="three"):
        threads.over_pieces(work, 10, 2)
    test_every_piece_is_done_once()


@pytest.mark.skipif(threads.cores() < 2, reason="one processor")
def test_when_one_fails_the_others_begin_nothing_and_are_waited_for():
    begun, meeting = [], threading.Barrier(2)

    def work(n):
        begun.append(n)
        if n < 2:
            meeting.wait(10)
        if n == 0:
            raise KeyboardInterrupt
        time.sleep(0.05)

    with pytest.raises(KeyboardInterrupt):
        threads.over_pieces(work, 100, 2)
    after = len(begun)
    assert after < 5
    time.sleep(0.1)
    assert len(begun) == after


def test_work_after_the_end_of_the_main_thread_is_done_all_the_same():
    program = """
import atexit, threading
import onlearn.threads as threads
done = []
threads.over_pieces(done.append, 8, 2)
atexit.register(lambda: (threads.over_pieces(done.append, 8, 2), print(len(done))))
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == "16\n", told.stderr


def test_rows_are_covered_in_order_of_the_pieces():
    covered = threads.over_rows(lambda start, stop: list(range(start, stop)), 1001, 10**9)
    assert [row for part in covered for row in part] == list(range(1001))
    assert threads.over_rows(lambda *part: part, 0, 10**9) == []
    assert threads.over_rows(lambda *part: part, 5, 1) == [(0, 5)]
