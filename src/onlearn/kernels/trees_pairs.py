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

from onlearn.compile import compiled


@compiled
def matches(x, i, z, j, lows, highs):
    """For each node of tree i the range of equal productions in tree j's sorted nodes; returns how many pairs."""
    xs, xe, zs, ze = x.starts[i], x.starts[i + 1], z.starts[j], z.starts[j + 1]
    p, q, pairs = xs, zs, 0
    while p < xe:
        a = xs + x.order[p]
        while q < ze and before(z.digests, zs + z.order[q], x.digests, a):
            q += 1
        past = q
        while past < ze and same(z.digests, zs + z.order[past], x.digests, a):
            past += 1
        first = p
        while p < xe and same(x.digests, xs + x.order[p], x.digests, xs + x.order[first]):
            lows[x.order[p]], highs[x.order[p]] = q, past
            p += 1
        pairs += (p - first) * (past - q)
        q = past
    return pairs


@compiled
def before(a, i, b, j):
    return a[i, 0] < b[j, 0] or (a[i, 0] == b[j, 0] and a[i, 1] < b[j, 1])


@compiled
def same(a, i, b, j):
    return a[i, 0] == b[j, 0] and a[i, 1] == b[j, 1]


@compiled
def common(x, i, z, j, cut, decay, lows, highs, C):
    """k of tree i of x and tree j of z; ``C`` is all zero before and after."""
    if matches(x, i, z, j, lows, highs) == 0:
        return 0.0
    xs, zs = x.starts[i], z.starts[j]
    width = z.starts[j + 1] - zs
    total = 0.0
    for a in range(x.starts[i + 1] - xs):  # what is below a node comes before it
        first, past = x.edges[xs + a], x.edges[xs + a + 1]
        for q in range(lows[a], highs[a]):
            b = z.order[q]
            shift = z.edges[zs + b] - first
            value = decay
            for e in range(first, past):
                if x.children[e] >= 0:
                    value *= cut + C[x.children[e] * width + z.children[e + shift]]
            C[a * width + b] = value
            total += value
    for a in range(x.starts[i + 1] - xs):
        for q in range(lows[a], highs[a]):
            C[a * width + z.order[q]] = 0.0
    return total


@compiled
def tree_block(x, z, cut, decay, both, out, first, past, left, right):
    """out[i, j] for the trees first to past of x and left to right of z.

    ``cut`` is 1 if children may be cut off, else 0. With ``both``, x and z are the same: each pair is computed once.
    """
    most = largest(x)
    lows, highs = np.zeros(most, dtype=np.int64), np.zeros(most, dtype=np.int64)
    C = np.zeros(most * largest(z))
    for i in range(first, past):
        for j in range(left, min(i + 1, right) if both else right):
            value = common(x, i, z, j, cut, decay, lows, highs, C)
            out[i, j] = value
            if both:
                out[j, i] = value


@compiled
def tree_diagonal(x, cut, decay, out, first, past):
    most = largest(x)
    lows, highs, C = np.zeros(most, dtype=np.int64), np.zeros(most, dtype=np.int64), np.zeros(most * most)
    for i in range(first, past):
        out[i] = common(x, i, x, i, cut, decay, lows, highs, C)


@compiled
def largest(x):
    """The most nodes a tree has."""
    most = 1
    for i in range(len(x.starts) - 1):
        most = max(most, x.starts[i + 1] - x.starts[i])
    return most
