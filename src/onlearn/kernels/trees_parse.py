"""Reading parse trees: bracketed text or nested tuples, to nodes with productions.

A node with its children's labels is a production, ``S -> NP VP``; leaves (words) have none. Two nodes are comparable
when their productions are equal, so a production is kept as a digest of 128 bits: the same in every process, and two
different ones never share it in practice (10^18 productions would have one chance in a million).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from onlearn.kernels.base import ExampleError
from onlearn.kernels.pairwise import listed, shown

TOKEN = re.compile(r"[()]|[^\s()]+")
LEAF = -1


class Nodes(NamedTuple):
    """The nodes of a tree that have children, each after all below it."""

    productions: list[bytes]
    children: list[list[int]]  # numbers of nodes; LEAF for a leaf


class Open(NamedTuple):
    """A node whose children are being read."""

    label: str
    children: list[tuple[str, int]]  # label and number
    position: int


class Reader:
    """Numbers the nodes of one tree as they are closed."""

    def __init__(self) -> None:
        self.nodes = Nodes([], [])

    def close(self, node: Open) -> tuple[str, int]:
        """What its parent must know of it."""
        if not node.children:
            return node.label, LEAF  # "(dog)" is the leaf "dog"
        words = [(node.label, 0), *node.children]
        # Lengths come first, so that no label can look like two; a node is not a leaf of the same name.
        text = "".join(f"{len(label)}{'w' if number == LEAF else 'n'}{label}" for label, number in words)
        self.nodes.productions.append(text.encode("utf-8", "surrogatepass"))
        self.nodes.children.append([number for _, number in node.children])
        return node.label, len(self.nodes.productions) - 1


def read_brackets(text: str) -> Nodes:
    """``(S (NP (D the) (N dog)) (VP (V barks)))``; the outermost brackets may be without a label, as in treebanks."""
    reader, stack, done, token = Reader(), list[Open](), False, None
    for token in TOKEN.finditer(text):
        word, position = token[0], token.start()
        if done:
            raise ValueError(f"position {position}: {word!r} after the end of the tree; give one tree a string")
        if word == "(":
            stack.append(Open("", [], position))
        elif not stack:
            what = "closes a bracket that was never opened" if word == ")" else "stands outside of all brackets"
            raise ValueError(f"position {position}: {word!r} {what}")
        elif word == ")":
            node = stack.pop()
            if not node.label and not node.children:
                raise ValueError(f"position {position}: nothing between the brackets; write (LABEL children...)")
            part = reader.close(node)
            if stack:
                stack[-1].children.append(part)
            done = not stack
        elif not stack[-1].label and not stack[-1].children:
            stack[-1] = stack[-1]._replace(label=word)
        else:
            stack[-1].children.append((word, LEAF))
    if stack:
        raise ValueError(f"position {stack[-1].position}: this bracket is never closed")
    if token is None:
        raise ValueError("it is empty; write (LABEL children...)")
    return reader.nodes


def read_tuples(tree: Sequence[Any]) -> Nodes:
    """``("S", ("NP", ("D", "the"), ("N", "dog")), ("VP", ("V", "barks")))``."""
    reader = Reader()
    stack = [(_opened(tree), iter(tree[1:]))]
    while True:
        node, rest = stack[-1]
        for child in rest:
            if isinstance(child, str):
                node.children.append((child, LEAF))
            else:
                stack.append((_opened(child), iter(child[1:])))
                break
        else:
            part = reader.close(stack.pop()[0])
            if not stack:
                return reader.nodes
            stack[-1][0].children.append(part)


def _opened(node: Any) -> Open:
    if not isinstance(node, (tuple, list)) or not node or not isinstance(node[0], str):
        raise TypeError(f"a node must be (label, child, ...) and a leaf a string, not {shown(node)}")
    return Open(node[0], [], 0)


def read_tree(tree: Any) -> Nodes:
    """A tree in either form."""
    if isinstance(tree, str):
        return read_brackets(tree)
    if isinstance(tree, (tuple, list)):
        return read_tuples(tree)
    raise TypeError(f"it is {shown(tree)}, neither bracketed text nor nested tuples")


def read_trees(X: Any, who: str) -> tuple[list[Nodes], np.ndarray]:
    """The nodes of each tree, and the digests of all productions (uint64, two a node), tree by tree."""
    trees = []
    for number, tree in enumerate(listed(X, who, "trees")):
        try:
            trees.append(read_tree(tree))
        except TypeError as error:
            raise TypeError(f"{who}: tree {number}: {error}") from None
        except ValueError as error:
            why = f"no tree for {who}: {error}"
            raise ExampleError(number, why, f"{who}: tree {number}: {error}") from None
    known: dict[bytes, bytes] = {}
    digests = []
    for tree in trees:
        for production in tree.productions:
            digest = known.get(production)
            if digest is None:
                digest = known[production] = hashlib.blake2b(production, digest_size=16).digest()
            digests.append(digest)
    return trees, np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64).reshape(-1, 2)
