"""Calls that change a learner wholly or not at all, whether they fail or somebody presses Ctrl-C."""

from __future__ import annotations

import copy
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

FEW = 64  # rows


class InterruptedAfterwards(KeyboardInterrupt):
    """Ctrl-C in a call that has done all it was to do."""


def all_or_nothing(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a learner that leaves it as it was if it fails; others who learn or predict wait until it is done.

    All of a learner's state is replaced when it changes, but for its ``training``, which learns in place.
    """

    @wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self.lock:
            return attempt(self, *args, **kwargs)

    def attempt(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(self.__dict__)
        training = before["training"]
        whole, seen = False, 0
        if training is not None:
            # Only what a user wrote can fail once learning has begun; and only passes that go on are interrupted in it.
            # (In the dual they stop when they are asked to, and what was learned is kept.)
            going_on = method.__name__ == "fit" and self.settings.warm_start and not hasattr(training, "interrupted")
            whole, seen = training.may_fail or going_on, training.n_seen
            before["training"] = copy.deepcopy(training) if whole else copy.copy(training)
        try:
            return method(self, *args, **kwargs)
        except InterruptedAfterwards:
            raise
        except BaseException as error:
            untouched = self.training is not training or training is None or training.n_seen == seen
            if whole or untouched or isinstance(error, Exception):
                self.__dict__.update(before)
                for added in self.__dict__.keys() - before.keys():
                    del self.__dict__[added]
            raise

    return guarded


@contextmanager
def to_the_end(rows: int) -> Iterator[None]:
    """Ctrl-C waits until so many rows are learned, and then stay so; a second one does not.

    For learning in place: a copy to go back to would take longer than learning from a few rows. Very few are learned
    in one call of compiled code, during which Python does not look at the keyboard anyway.
    """
    if rows <= FEW:
        yield
        return
    with first_ctrl_c() as pressed:
        yield
    if pressed():
        raise InterruptedAfterwards("the rows were learned")


@contextmanager
def first_ctrl_c() -> Iterator[Callable[[], bool]]:
    """While this lasts, a first Ctrl-C does no more than make ``pressed()`` true; a second one is as usual."""
    presses: list[bool] = []
    before = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or before is not signal.default_int_handler:  # somebody else looks after it
        yield lambda: False
        return

    def note(*_: Any) -> None:
        presses.append(True)
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(presses)
    finally:
        signal.signal(signal.SIGINT, before)
