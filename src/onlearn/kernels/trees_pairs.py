"""Fragments that two trees have in common, by way of their nodes with equal productions.

Collins & Duffy, "Convolution kernels for natural language" (2002). C(a, b), the weighted number of common fragments
rooted at the nodes a and b, is 0 when their productions differ, else

    decay * product over the children of (1 + C(child of a, child of b))    fragments: a child is cut off, or goes on
    decay * product over the children of C(child of a, child of b)          complete subtrees: each child goes on

where leaves count 1, and k is the sum of C over all pairs of nodes. Moschitti, "Making tree kernels practical for
natural language learning" (2006): only pairs with equal productions are visited, found by merging the two lists of
nodes, which are sorted by production. In natural language there are about as many of them as there are nodes.
"""

from __future__ import annotations

import numpy as np

from onlearn.compile import allocating, compiled


@compiled
def matches(x, i, z, j, lows, highs):
    """For each node of tree i the range of equal productions among tree j's sorted nodes; returns how many pairs."""
    xs, zs = x.starts[i], z.starts[j]
    nodes, others = x.starts[i + 1] - xs, z.starts[j + 1] - zs
    p, q, pairs = 0, 0, 0
    while p < nodes:
        a = xs + x.order[xs + p]
        while q < others and before(z.digests, zs + z.order[zs + q], x.digests, a):
            q += 1
        past = q
        while past < others and same(z.digests, zs + z.order[zs + past], x.digests, a):
            past += 1
        while p < nodes and same(x.digests, xs + x.order[xs + p], x.digests, a):
            lows[x.order[xs + p]], highs[x.order[xs + p]] = q, past
            pairs += past - q
            p += 1
        q = past
    return pairs


@compiled
def before(a, i, b, j):
    return a[i, 0] < b[j, 0] or (a[i, 0] == b[j, 0] and a[i, 1] < b[j, 1])


@compiled
def same(a, i, b, j):
    return a[i, 0] == b[j, 0] and a[i, 1] == b[j, 1]


@compiled
def common(x, i, z, j, cut, decay, lows, highs, first, C):
    """k of tree i of x and tree j of z, of which ``matches`` has found the pairs.

    C(a, b) goes to ``C[first[a] + rank of b - lows[a]]``: there is room for pairs that match, and no others.
    """
    xs, zs = x.starts[i], z.starts[j]
    total, count = 0.0, 0
    for a in range(x.starts[i + 1] - xs):  # what is below a node comes before it
        first[a] = count
        start, stop = x.edges[xs + a], x.edges[xs + a + 1]
        for q in range(lows[a], highs[a]):
            shift = z.edges[zs + z.order[zs + q]] - start
            value = decay
            for e in range(start, stop):
                c = x.children[e]
                if c >= 0:
                    rank = z.rank[zs + z.children[e + shift]]
                    value *= cut + (C[first[c] + rank - lows[c]] if lows[c] <= rank < highs[c] else 0.0)
            C[count] = value
            count += 1
            total += value
    return total


@allocating
def tree_block(x, z, cut, decay, both, out, first, past, left, right):
    """out[i, j] for the trees first to past of x and left to right of z.

    ``cut`` is 1 if children may be cut off, else 0. With ``both``, x and z are the same: each pair is computed once.
    """
    room, C = np.zeros((3, largest(x)), dtype=np.int64), np.empty(64)
    for i in range(first, past):
        for j in range(left, min(i + 1, right) if both else right):
            pairs = matches(x, i, z, j, room[0], room[1])
            if pairs > len(C):
                C = np.empty(2 * pairs)
            out[i, j] = common(x, i, z, j, cut, decay, room[0], room[1], room[2], C)
            if both:
                out[j, i] = out[i, j]


@allocating
def tree_diagonal(x, cut, decay, out, first, past):
    """out[i] = k(x_i, x_i)"""
    room, C = np.zeros((3, largest(x)), dtype=np.int64), np.empty(64)
    for i in range(first, past):
        pairs = matches(x, i, x, i, room[0], room[1])
        if pairs > len(C):
            C = np.empty(2 * pairs)
        out[i] = common(x, i, x, i, cut, decay, room[0], room[1], room[2], C)


@compiled
def largest(x):
    """The most nodes a tree has."""
    most = 1
    for i in range(len(x.starts) - 1):
        most = max(most, x.starts[i + 1] - x.starts[i])
    return most
