"""Hashing of short stretches without a loop over their last bytes: the same hash as ``hashing.hash_bytes``.

Eight bytes are loaded at once and those past the end masked out, so the text must go on for eight bytes after it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.compile import INTERPRETED, compiled
from onlearn.hashing import finish, mix

SLACK = 8  # bytes that must follow
EIGHT, THREE, ONE, ZERO = np.uint64(8), np.uint64(3), np.uint64(1), np.uint64(0)

if INTERPRETED:

    def load_word(text: Any, index: Any) -> Any:
        """Eight bytes, the first the lowest."""
        return np.uint64(int.from_bytes(text[index : index + EIGHT].tobytes(), "little"))

else:
    import sys

    from onlearn.compile import intrinsic, ir, types

    @intrinsic
    def load_word(context: Any, text: Any, index: Any) -> Any:
        """Eight bytes, the first the lowest."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            view = target.make_array(signature.args[0])(target, builder, arguments[0])
            pointer = builder.gep(view.data, [arguments[1]])
            word = builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)
            return word if sys.byteorder == "little" else builder.bswap(word)

        return types.uint64(text, types.uint64), generate


@compiled
def hash_within(text: Any, start: Any, stop: Any, seed: Any) -> Any:
    """The hash of ``text[start:stop]``."""
    p, end = np.uint64(start), np.uint64(stop)
    h = mix(seed, end - p)
    while p + EIGHT <= end:
        h = mix(h, load_word(text, p))
        p += EIGHT
    if p < end:
        h = mix(h, load_word(text, p) & ((ONE << ((end - p) << THREE)) - ONE))
    return finish(h)
