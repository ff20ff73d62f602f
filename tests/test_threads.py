"""Work shared with helper threads."""

import os
import threading

import pytest

from onlearn import threads


def test_every_piece_is_done_once():
    for pieces in (0, 1, 2, 7, 100):
        done = []
        threads.take_turns(done.append, pieces, 2)
        assert sorted(done) == list(range(pieces))


def test_what_a_piece_raises_is_raised():
    def work(n):
        if n == 3:
            raise ValueError("three")

    with pytest.raises(ValueError, match="three"):
        threads.take_turns(work, 10, 2)
    test_every_piece_is_done_once()


def test_rows_are_covered_in_order_of_the_pieces():
    covered = threads.over_rows(lambda start, stop: list(range(start, stop)), 1001, 10**9)
    assert [row for part in covered for row in part] == list(range(1001))
    assert threads.over_rows(lambda *part: part, 0, 10**9) == []
    assert threads.over_rows(lambda *part: part, 5, 1) == [(0, 5)]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="where threads run cannot be told on this system")
@pytest.mark.skipif(threads.cores() < 2, reason="one processor")
def test_helpers_run_on_the_processors_of_the_process_but_for_the_callers():
    allowed = os.sched_getaffinity(0)
    meeting = threading.Barrier(2)  # so that each thread has a piece
    where = {}

    def work(n):
        meeting.wait(10)
        where[threading.current_thread()] = os.sched_getaffinity(0)

    for _ in range(2):  # helpers are told where to run when they are there, which they are from the second time on
        where.clear()
        threads.take_turns(work, 2, 2)
    helpers = [allowed_there for thread, allowed_there in where.items() if thread is not threading.current_thread()]
    assert len(helpers) == 1 and len(helpers[0]) == len(allowed) - 1 and helpers[0] < allowed
    assert os.sched_getaffinity(0) == allowed
