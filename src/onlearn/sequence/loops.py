"""The compiled passes over sequences to learn from. The example is a difference of features, and the engine takes it.

    d = features(gold) - features(rival)                 structured perceptron: the rival is the best other path
    d = features(gold) - sum_y p(y) features(y)          conditional random field: all paths, by their probability

d is one sparse row of a learner with one output. The rule sees the margin w.d between the gold path and its rival, with
y = +1, and the engine's verbs move along d, whatever geometry and stabilizer there are. The likelihood of a conditional
random field needs no rule: its gradient is d itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import prefetch
from onlearn.compiler.inlining import Loop, helper
from onlearn.engine.loops import HIGHEST_LOSS, LONGEST_STEP, LOSS, MISTAKES, SEEN, UPDATES, remember, tame
from onlearn.engine.protocol import catch_up, live, scale, settle, stride, tick, weigh
from onlearn.engine.rows import Sparse, sqnorm, step
from onlearn.sequence.sums import lower_emissions, posterior_in_logarithms, posterior_in_powers
from onlearn.sequence.weight_index import SOON, Index, number_of

FROM_GOLD = -1.0  # where a rival leaves the gold path


class Room(NamedTuple):
    """Room for one sequence, the weights of transitions, and the difference of features."""

    emissions: np.ndarray  # (longest, labels)
    came: np.ndarray  # (longest, labels): the best label before; as doubles, so that the inner loop is a vector's
    now: np.ndarray
    before: np.ndarray
    transitions: np.ndarray
    initial: np.ndarray
    final: np.ndarray
    path: np.ndarray  # int64
    delta: np.ndarray  # of each weight; zero between two examples
    touched: np.ndarray  # uint8: whether a weight is in the difference; zero between two examples
    wrong: np.ndarray  # tokens that were labelled wrongly, and all tokens


class Sums(NamedTuple):
    """Room for the forward and backward sums of one sequence."""

    offsets: np.ndarray  # 0 and the length
    which: np.ndarray  # 0
    powers: np.ndarray  # (labels, labels)
    forward: np.ndarray  # (longest, labels)
    backward: np.ndarray
    scales: np.ndarray
    two: np.ndarray  # (2 labels)
    counted: np.ndarray  # (labels, labels)
    log_z: np.ndarray
    marginals: np.ndarray  # (longest, labels)
    tops: np.ndarray  # (longest): the highest emission of each token
    counts: np.ndarray  # (labels, labels)


def make_room(weights: int, labels: int, longest: int) -> Room:
    """Room for sequences up to a length."""
    line, table, square = np.zeros(labels), np.zeros((longest, labels)), np.zeros((labels, labels))
    return Room(
        table, table.copy(), line, line.copy(), square, line.copy(), line.copy(), np.zeros(longest, np.int64),
        np.zeros(weights), np.zeros(weights, np.uint8), np.zeros(2),
    )  # fmt: skip


def make_sums(labels: int, longest: int, sequences: int = 1) -> Sums:
    """Room for the sums of sequences up to a length, so many at a time."""
    table, square = np.zeros((longest, labels)), np.zeros((labels, labels))
    return Sums(
        np.zeros(2, np.int64), np.zeros(1, np.int64), square, table, table.copy(), np.zeros(longest),
        np.zeros(2 * labels), square.copy(), np.zeros(sequences), table.copy(), np.zeros(longest), square.copy(),
    )  # fmt: skip


def make_difference(weights: int) -> Sparse:
    """An empty difference."""
    return Sparse(np.zeros(weights), np.zeros(weights, np.int32), np.zeros(2, np.int64), 0.0)


# ----------------------------------------------------------------------------------------------------
# Scores.


@helper
def weigh_transitions(index: Index, g: Any, st: Any, room: Room) -> None:
    """The present weights of transitions, beginnings and ends."""
    labels, m = len(room.initial), scale(g, 0)
    for i in range(labels):
        room.initial[i] = m * weigh(g, st, np.uint64(index.initial[i]))
        room.final[i] = m * weigh(g, st, np.uint64(index.final[i]))
        for c in range(labels):
            room.transitions[i, c] = m * weigh(g, st, np.uint64(index.transitions[i, c]))


@helper
def emit(rows: Any, t: int, at: int, index: Index, g: Any, st: Any, room: Room) -> None:
    """The score of each label at token t, into row ``at``."""
    labels, m, plain = len(room.initial), scale(g, 0), len(rows.values) == 0
    for c in range(labels):
        room.emissions[at, c] = 0.0
    end = len(rows.indices)
    for p in range(rows.indptr[t], rows.indptr[t + 1]):
        if p + SOON < end:
            prefetch(index.head, rows.indices[p + SOON])
            prefetch(index.block, rows.indices[p + SOON])
        if p + SOON // 2 < end:
            soon = index.block[rows.indices[p + SOON // 2]]
            if soon == 0:
                soon = index.head[rows.indices[p + SOON // 2]]
                prefetch(index.links, 2 * soon)
            prefetch(g.w, soon)
        x = m if plain else m * rows.values[p]
        b = index.block[rows.indices[p]]
        if b != 0:
            for c in range(index.width):
                catch_up(g, st, np.uint64(b + c))
            for c in range(index.width):
                room.emissions[at, c] += x * g.w[b + c]
        j = index.head[rows.indices[p]]
        while j != 0:
            w = weigh(g, st, np.uint64(j))
            room.emissions[at, index.links[j, 0]] += x * w
            j = index.links[j, 1]


@helper
def find_rival(gold: np.ndarray, first: int, length: int, room: Room) -> float:
    """The best path that is not the gold one, into ``room.path``; returns the margin of the gold path over it.

    A path that differs ends in label j after it has differed before, or leaves the gold path just here:

        v_t(j) = emissions[t, j] + max(max_i v_t-1(i) + transitions[i, j],
                                       gold_t-1 + transitions[y_t-1, j] if j != y_t)
    """
    labels, now, before = len(room.initial), room.now, room.before
    kept = room.initial[gold[first]] + room.emissions[0, gold[first]]
    for c in range(labels):
        now[c] = room.initial[c] + room.emissions[0, c] if c != gold[first] else -np.inf
    for t in range(1, length):
        right, left = gold[first + t], gold[first + t - 1]
        for c in range(labels):
            before[c] = now[c]
            now[c] = kept + room.transitions[left, c]
            room.came[t, c] = FROM_GOLD
        now[right] = -np.inf
        for i in range(labels):
            for c in range(labels):
                value = before[i] + room.transitions[i, c]
                better = value > now[c]
                now[c] = value if better else now[c]
                room.came[t, c] = np.float64(i) if better else room.came[t, c]
        for c in range(labels):
            now[c] += room.emissions[t, c]
        kept += room.transitions[left, right] + room.emissions[t, right]
    kept += room.final[gold[first + length - 1]]
    best, label = -np.inf, np.int64(-1)
    for c in range(labels):
        if now[c] + room.final[c] > best:
            best, label = now[c] + room.final[c], np.int64(c)
    differs = label >= 0
    for back in range(length):
        t = length - 1 - back
        room.path[t] = label if differs else gold[first + t]
        if differs and t > 0:
            label = np.int64(room.came[t, label])
            differs = label >= 0
    return kept - best


# ----------------------------------------------------------------------------------------------------
# Differences of features. While one is made, its ``indptr[1]`` counts the weights in it.


@helper
def add(j: int, x: float, room: Room, d: Sparse) -> None:
    """Add x to weight j of the difference."""
    if room.touched[j] == 0:
        room.touched[j] = 1
        d.indices[d.indptr[1]] = j
        d.indptr[1] += 1
    room.delta[j] += x


@helper
def add_token(rows: Any, t: int, label: int, sign: float, limit: int, index: Index, room: Room, d: Sparse) -> None:
    """Add the features of a label at token t; weights from ``limit`` on are not there yet."""
    for p in range(rows.indptr[t], rows.indptr[t + 1]):
        x = sign if len(rows.values) == 0 else sign * rows.values[p]
        j = number_of(index, rows.indices[p], label)
        if j < limit:
            add(j, x, room, d)


@helper
def add_path(
    rows: Any, first: int, gold: np.ndarray, length: int, limit: int, index: Index, room: Room, d: Sparse
) -> int:
    """The features of the gold path less those of ``room.path``, where they differ; returns the tokens that do."""
    wrong, path = 0, room.path
    for t in range(length):
        right = gold[first + t]
        if path[t] != right:
            wrong += 1
            add_token(rows, first + t, right, 1.0, limit, index, room, d)
            add_token(rows, first + t, path[t], -1.0, limit, index, room, d)
        if t > 0 and (path[t] != right or path[t - 1] != gold[first + t - 1]):
            add(index.transitions[gold[first + t - 1], right], 1.0, room, d)
            add(index.transitions[path[t - 1], path[t]], -1.0, room, d)
    if path[0] != gold[first]:
        add(index.initial[gold[first]], 1.0, room, d)
        add(index.initial[path[0]], -1.0, room, d)
    if path[length - 1] != gold[first + length - 1]:
        add(index.final[gold[first + length - 1]], 1.0, room, d)
        add(index.final[path[length - 1]], -1.0, room, d)
    return wrong


@helper
def gather(room: Room, d: Sparse) -> None:
    """Make a row of the engine of the difference: weight j is column j - 1, and what cancels is left out."""
    count = 0
    for n in range(d.indptr[1]):
        j = d.indices[n]
        x = room.delta[j]
        room.delta[j] = 0.0
        room.touched[j] = 0
        if x != 0.0 and j != 0:
            d.indices[count] = j - 1
            d.data[count] = x
            count += 1
    d.indptr[1] = count


@helper
def along(d: Sparse, g: Any, st: Any) -> float:
    """The score of a difference: the margin, without what a cost adds and takes off again."""
    total = 0.0
    for n in range(d.indptr[1]):
        w = weigh(g, st, np.uint64(d.indices[n] + 1))
        total += d.data[n] * w
    return total * scale(g, 0)


# ----------------------------------------------------------------------------------------------------
# The passes.


@Loop
def learn_sequences(
    rows, order, gold, limits, index, room, d, rule, loss, params, measured, cost, g, st, tally, doubling
):
    """Structured learning by a rule: the example is the gold path against its best rival.

    With a cost, a path scores that much more for each token it gets wrong when the rival is looked for, and the rule
    sees margin - cost + 1: its hinge, 1 less that, is the structured one.
    """
    labels = len(room.initial)
    for n in range(len(order)):
        k = order[n]
        first, length = rows.offsets[k], rows.offsets[k + 1] - rows.offsets[k]
        if length == 0:
            continue
        weigh_transitions(index, g, st, room)
        for t in range(length):
            emit(rows, first + t, t, index, g, st, room)
            if cost > 0.0:
                for c in range(labels):
                    room.emissions[t, c] += cost if c != gold[first + t] else 0.0
        margin = find_rival(gold, first, length, room)
        wrong, t, q, s = 0, 0.0, 1.0, tame(margin)
        d.indptr[1] = 0
        if margin < np.inf:  # with one label there is no rival
            wrong = add_path(rows, first, gold, length, limits[k], index, room, d)
            gather(room, d)
            if cost > 0.0:
                s = tame(margin + 1.0)
                margin = along(d, g, st)
            q = sqnorm(g, d, 0, 1, 0) if measured else 1.0
            t = rule(s, 1.0, q, params)
            if t != t:
                return n
        mistake = margin <= 0.0
        room.wrong[0] += wrong if mistake else 0
        room.wrong[1] += length
        tally[MISTAKES] += mistake
        tally[LOSS] += min(loss(s, 1.0, q, params), HIGHEST_LOSS)
        tally[SEEN] += 1.0
        change = t != 0.0 and d.indptr[1] > 0
        live(st, g, mistake, change)
        if change:
            tally[UPDATES] += 1.0
            t = min(max(t, -LONGEST_STEP), LONGEST_STEP)
            step(d, 0, g, st, stride(g, t, 0), q)
        settle(g, st)
        tick(st, g)
        remember(tally, doubling)
    return len(order)


@Loop
def learn_greedily(
    rows, order, gold, limits, index, room, d, rule, loss, params, measured, cost, g, st, tally, doubling
):
    """The same from left to right: the example is a token, its label against the best other, after those predicted."""
    labels = len(room.initial)
    for n in range(len(order)):
        k = order[n]
        first, length = rows.offsets[k], rows.offsets[k + 1] - rows.offsets[k]
        said = np.int64(-1)
        for at in range(length):
            right = gold[first + at]
            m = scale(g, 0)
            emit(rows, first + at, 0, index, g, st, room)
            for c in range(labels):
                j = index.initial[c] if at == 0 else index.transitions[said, c]
                w = weigh(g, st, np.uint64(j))
                room.emissions[0, c] += m * w + (cost if c != right else 0.0)
            rival = np.int64(-1)
            for c in range(labels):
                if c != right and (rival < 0 or room.emissions[0, c] > room.emissions[0, rival]):
                    rival = np.int64(c)
            t, q, s, margin = 0.0, 1.0, 1.0, 1.0
            d.indptr[1] = 0
            if rival >= 0:
                margin = tame(room.emissions[0, right] - room.emissions[0, rival] + cost)
                s = tame(margin - cost + 1.0) if cost > 0.0 else margin
                add_token(rows, first + at, right, 1.0, limits[k], index, room, d)
                add_token(rows, first + at, rival, -1.0, limits[k], index, room, d)
                add(index.initial[right] if at == 0 else index.transitions[said, right], 1.0, room, d)
                add(index.initial[rival] if at == 0 else index.transitions[said, rival], -1.0, room, d)
                gather(room, d)
                q = sqnorm(g, d, 0, 1, 0) if measured else 1.0
                t = rule(s, 1.0, q, params)
                if t != t:
                    return n
            mistake = margin <= 0.0
            room.wrong[0] += mistake
            room.wrong[1] += 1.0
            tally[MISTAKES] += mistake
            tally[LOSS] += min(loss(s, 1.0, q, params), HIGHEST_LOSS)
            tally[SEEN] += 1.0
            change = t != 0.0 and d.indptr[1] > 0
            live(st, g, mistake, change)
            if change:
                tally[UPDATES] += 1.0
                t = min(max(t, -LONGEST_STEP), LONGEST_STEP)
                step(d, 0, g, st, stride(g, t, 0), q)
            settle(g, st)
            tick(st, g)
            remember(tally, doubling)
            said = rival if mistake and rival >= 0 else right
    return len(order)


@Loop
def learn_likelihood(rows, order, gold, limits, index, room, d, sums, measured, g, st, tally, doubling):
    """A conditional random field, on-line: a step of size 1 along the gold features less the expected ones."""
    labels = len(room.initial)
    for n in range(len(order)):
        k = order[n]
        first, length = rows.offsets[k], rows.offsets[k + 1] - rows.offsets[k]
        if length == 0:
            continue
        weigh_transitions(index, g, st, room)
        shift = room.transitions[0, 0]
        for i in range(labels):
            for c in range(labels):
                shift = max(shift, room.transitions[i, c])
                sums.counts[i, c] = 0.0
        for i in range(labels):
            for c in range(labels):
                sums.powers[i, c] = np.exp(room.transitions[i, c] - shift)
        path = room.initial[gold[first]] + room.final[gold[first + length - 1]]
        for t in range(length):
            emit(rows, first + t, t, index, g, st, room)
            path += room.emissions[t, gold[first + t]]
            if t > 0:
                path += room.transitions[gold[first + t - 1], gold[first + t]]
        sums.offsets[1] = length
        lower_emissions(room.emissions, sums.offsets, 0, 1, room.initial, sums.tops, sums.marginals)
        for t in range(length):
            for c in range(labels):
                sums.marginals[t, c] = np.exp(sums.marginals[t, c])
        posterior_in_powers(sums.offsets, 0, 1, sums.powers, shift, room.final, sums.tops, sums.forward, sums.scales,
                            sums.two, sums.counted, sums.log_z, sums.marginals, sums.counts)  # fmt: skip
        if sums.log_z[0] != sums.log_z[0]:
            posterior_in_logarithms(room.emissions, sums.offsets, sums.which, room.transitions, room.initial,
                                    room.final, sums.forward, sums.backward, sums.two, sums.log_z, sums.marginals,
                                    sums.counts)  # fmt: skip
        cost = sums.log_z[0] - path
        if cost != cost:
            return n
        d.indptr[1] = 0
        wrong = 0
        for t in range(length):
            right, best = gold[first + t], 0
            for c in range(labels):
                best = c if sums.marginals[t, c] > sums.marginals[t, best] else best
            wrong += best != right
            for p in range(rows.indptr[first + t], rows.indptr[first + t + 1]):
                x = 1.0 if len(rows.values) == 0 else rows.values[p]
                b = index.block[rows.indices[p]]
                if b != 0:
                    for c in range(index.width):
                        add(b + c, x * ((1.0 if c == right else 0.0) - sums.marginals[t, c]), room, d)
                j = index.head[rows.indices[p]]
                while j != 0:
                    label = index.links[j, 0]
                    if j < limits[k]:
                        add(j, x * ((1.0 if label == right else 0.0) - sums.marginals[t, label]), room, d)
                    j = index.links[j, 1]
            if t > 0:
                add(index.transitions[gold[first + t - 1], right], 1.0, room, d)
        add(index.initial[gold[first]], 1.0, room, d)
        add(index.final[gold[first + length - 1]], 1.0, room, d)
        for i in range(labels):
            add(index.initial[i], -sums.marginals[0, i], room, d)
            add(index.final[i], -sums.marginals[length - 1, i], room, d)
            for c in range(labels):
                add(index.transitions[i, c], -sums.counts[i, c], room, d)
        gather(room, d)
        q = sqnorm(g, d, 0, 1, 0) if measured else 1.0
        room.wrong[0] += wrong
        room.wrong[1] += length
        tally[MISTAKES] += wrong > 0
        tally[LOSS] += min(cost, HIGHEST_LOSS)
        tally[SEEN] += 1.0
        change = d.indptr[1] > 0
        live(st, g, wrong > 0, change)
        if change:
            tally[UPDATES] += 1.0
            step(d, 0, g, st, stride(g, 1.0, 0), q)
        settle(g, st)
        tick(st, g)
        remember(tally, doubling)
    return len(order)
