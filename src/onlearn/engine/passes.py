"""Passes over a data set, which ``fit`` of every estimator makes: order, stopping, cycles, progress, interruption."""

from __future__ import annotations

import copy
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, Protocol

import numpy as np

from onlearn.compiler import INTERPRETED, compiled, prefetch
from onlearn.engine.csr import is_sparse, rows_at
from onlearn.engine.cycles import Cycle
from onlearn.engine.rounds import carry_round
from onlearn.engine.scoring import scores_by
from onlearn.engine.training import Training

# ----------------------------------------------------------------------------------------------------
# The order in which a pass takes the examples: a permutation, keyed by the seed and the pass.
#
# It is the one that NumPy makes of these keys, in about half the time: there every swap waits for memory, here the
# places of the next swaps are found ahead, and asked for.


AHEAD = 32  # swaps
DRAWN = 1 << 14  # random words at a time
LONGEST = 1 << 32  # beyond that NumPy draws places in another way


def shuffled(count: int, seed: int, passes: int) -> np.ndarray:
    """``np.random.default_rng([seed, passes]).permutation(count)``, faster."""
    rng = np.random.default_rng([seed, passes])
    if INTERPRETED or count >= LONGEST or not isinstance(rng.bit_generator, np.random.PCG64):
        return rng.permutation(count)
    order, places, left = np.arange(count), np.empty(AHEAD, np.int64), count
    while left > 1:
        words = rng.bit_generator.random_raw(min(DRAWN, left))
        left = swap_from_the_end(order, left, halves(words), places)
    return order


def halves(words: np.ndarray) -> np.ndarray:
    """Each word as two of half its length, the low half first, whatever the machine's order of bytes."""
    return words.astype("<u8", copy=False).view("<u4").astype(np.uint32, copy=False)


@compiled
def swap_from_the_end(order: Any, left: int, words: Any, places: Any) -> int:
    """Put a random one of the first ``left`` in their last place, and so on; how many are left when words run out.

    A place is drawn as so many bits as it has at most, again and again until it is not beyond the end.
    """
    used, mask = 0, np.uint32(0xFFFFFFFF)
    while left > 1 and used < len(words):
        found = 0
        while found < min(AHEAD, left - 1) and used < len(words):
            last = np.uint32(left - 1 - found)
            while mask >> np.uint32(1) >= last:
                mask >>= np.uint32(1)
            place = words[used] & mask
            used += 1
            places[found] = place
            prefetch(order, np.uint64(place))
            found += place <= last
        for n in range(found):
            left -= 1
            order[left], order[places[n]] = order[places[n]], order[left]
    return left


# ----------------------------------------------------------------------------------------------------
# The passes.


class PassSettings(Protocol):
    """What a learner's settings say about passes."""

    epochs: int | None
    max_epochs: int
    shuffle: bool
    tol: float | None
    verbose: int


def run_passes(training: Training, X: Any, y: np.ndarray, weight: np.ndarray, settings: PassSettings, seed: int,
               warning: type[Warning], kept: np.ndarray | None = None) -> bool | None:  # fmt: skip
    """Pass over the data as the settings say; returns what was learned about separability.

    The rows ``kept`` back for calibration are left out until the last hypothesis has scored them (see ``reserve``).

    With ``epochs`` given, so many passes are made whatever is learned: the mean of all hypotheses depends on them.

    True: a pass made no mistake. False: the weights (in the dual: the scores of all rows, which are all that decides
    what is learned) came back to what they were at an earlier pass, and the steps between add up to zero, exactly: see
    ``cycles``. None: not known; one-vs-all comes back if one class cannot be separated from the rest, though the
    classes may be separable from each other, and any learner does if steps are lost to rounding.
    """
    passes = settings.max_epochs if settings.epochs is None else settings.epochs
    warn = partial(warn_caller, category=warning)
    cycle = Cycle(training, X) if not settings.shuffle and _proves_by_cycling(training) else None
    separable: bool | None = None
    last, audited_size = np.inf, None
    left_out = np.zeros(len(y), dtype=bool)
    left_out[[] if kept is None else kept] = True
    since: list[float] = []
    with progress_bar(settings.verbose, passes, len(y)) as advance:
        for done in range(passes):
            training.begin_pass()
            if training.passes and audited_size is None:  # from here on examples have been seen before
                audited_size = training.size()
            # keyed by the pass, so that training goes on where it was left off
            order = shuffled(len(y), seed, training.passes) if settings.shuffle else np.arange(len(y))
            order = order[~left_out[order]] if left_out.any() else order
            training.learn(X, y, weight, order, audit=training.passes == 0, progress=advance)
            since = training.since
            entry = training.end_pass()
            entry.update({"kept_back": len(kept)} if kept is not None and len(kept) else {})
            if training.stopped:
                warn(f"learning stopped in pass {done + 1}: {training.stopped}; what was learned is kept")
                break
            if entry.get("mistakes") == 0 and entry["seen"]:
                separable = True
                if settings.epochs is None:
                    break
            elif cycle is not None and (earlier := cycle.closed(training, X)) is not None:
                turns, cycle = cycle.passes - earlier.passes, None
                what = "the data are not linearly separable"
                if not training.proves_inseparable(X, y, weight, turns, earlier.weights):
                    what = "the data are not linearly separable, or steps were lost to rounding"
                elif training.output == "one-vs-all":
                    what = "at least one class is not linearly separable from the rest"
                else:
                    separable = False
                if settings.epochs is None:
                    warn(
                        f"{what}: after pass {done + 1} the {training.returning} are again what they were after an "
                        "earlier one, so training stops; averaging or a margin gives a good compromise"
                    )
                    break
            if settings.tol is not None and last - entry["loss"] < settings.tol:
                break
            last = entry["loss"]
        else:
            if settings.epochs is None and not training.classifies:
                warn(f"the loss still fell by tol={settings.tol:g} or more in the last of max_epochs={passes} passes")
            elif settings.epochs is None and separable is None:
                warn(f"no pass without a mistake in max_epochs={passes} passes; the data may not be separable")
    if kept is not None and len(kept):
        separable = _learn_kept(training, X, y, weight, kept, since, separable)
    elif audited_size:
        training.rescale_audit(training.size() / audited_size)
    if training.largest_weight() > 1e50:
        warn("the weights grew beyond 1e50, so the steps are too long: lower the rate, or scale the features")
    if _never_negative(training, X):
        warn(
            f"neither the features nor the weights of {training.geometry.name!r} are ever negative, so no score is, "
            "and the first class cannot be learned: use 'balanced', or features that are negative in some rows"
        )
    return separable


def _learn_kept(
    training: Training, X: Any, y: np.ndarray, weight: np.ndarray, kept: np.ndarray, since: list[float],
    separable: bool | None,
) -> bool | None:  # fmt: skip
    """Score the rows kept back by the last hypothesis, then learn from them at the end of the last pass."""
    if training.stopped:
        return None
    training.take_reserve(scores_by(training, rows_at(X, kept)), y[kept])
    before = training.reopen_pass(since)
    training.learn(X, y, weight, kept, audit=False)
    entry = training.end_pass()
    carry_round(entry, before)
    return True if separable and entry["mistakes"] == 0 else None


def warn_caller(text: str, category: type[Warning]) -> None:
    """A warning that points at whoever called ``fit``, which may be several calls of ours above."""
    frame, level = sys._getframe(1), 2
    package = __name__.partition(".")[0]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def _never_negative(training: Training, X: Any) -> bool:
    """Whether a classifier of two classes can only give scores of one sign, whatever it learns."""
    one_score = training.classifies and training.output is None and training.theta == 0.0
    if not (one_score and training.geometry.positive_weights):
        return False
    return bool((X.data if is_sparse(X) else X).min(initial=0.0) >= 0.0)


def _proves_by_cycling(training: Training) -> bool:
    """Whether this learner would converge on separable data, and is a function of its weights alone."""
    geometry = training.geometry
    if getattr(training, "forgets", False):  # the theorem says nothing of those
        return False
    return training.rule.name == "perceptron" and geometry.name == "additive" and (
        geometry.schedule == "constant" and not geometry.drifts
    )  # fmt: skip


@contextmanager
def progress_bar(verbose: int, passes: int, rows: int) -> Iterator[Callable[[int], None] | None]:
    if not verbose:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("learning"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("examples"),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as bar:
        task = bar.add_task("", total=passes * rows)
        yield lambda examples: bar.advance(task, examples)


# ----------------------------------------------------------------------------------------------------
# Interruption: calls change a learner wholly or not at all, whether they fail or somebody presses Ctrl-C.


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
            going_on = (
                method.__name__ == "fit"
                and getattr(self.settings, "warm_start", False)
                and not hasattr(training, "interrupted")
            )
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
