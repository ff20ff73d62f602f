"""What compiled parsers need of the machine: eight bytes at once, wide products, the bits of a float.

Texts given to compiled parsers end with ``PADDING`` bytes more than their content, all newlines. So a loop that
stops at a newline needs no other check, and eight bytes may be taken anywhere in the content.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from onlearn.compile import INTERPRETED

PADDING = 64

if INTERPRETED:

    def eight(text: Any, start: Any) -> Any:
        return np.uint64(int.from_bytes(text[int(start) : int(start) + 8].tobytes(), "little"))

    def byte(base: Any, place: Any) -> Any:
        return np.uint8(ctypes.c_uint8.from_address(int(base) + int(place)).value)

    def times(a: Any, b: Any) -> Any:
        product = int(a) * int(b)
        return np.uint64(product >> 64), np.uint64(product & 0xFFFFFFFFFFFFFFFF)

    def leading_zeros(word: Any) -> Any:
        return np.uint64(64 - int(word).bit_length())

    def as_float(bits: Any) -> Any:
        return np.uint64(bits).view(np.float64)

else:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    @intrinsic
    def eight(context: Any, text: Any, start: Any) -> Any:
        """The eight bytes from ``start`` on."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            view = target.make_array(signature.args[0])(target, builder, arguments[0])
            pointer = builder.gep(view.data, [arguments[1]])
            word = builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()))
            word.align = 1
            return word

        return types.uint64(text, types.uint64), generate

    @intrinsic
    def byte(context: Any, base: Any, place: Any) -> Any:
        """The byte at a place of the text whose first one is at the address ``base``."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address = builder.inttoptr(builder.add(arguments[0], arguments[1]), ir.IntType(8).as_pointer())
            return builder.load(address)

        return types.uint8(types.uint64, types.uint64), generate

    @intrinsic
    def leading_zeros(context: Any, word: Any) -> Any:
        """How many bits above the highest that is set."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = ir.FunctionType(ir.IntType(64), [ir.IntType(64), ir.IntType(1)])
            call = cgutils.get_or_insert_function(builder.module, kind, "llvm.ctlz.i64")
            return builder.call(call, [arguments[0], ir.Constant(ir.IntType(1), 0)])

        return types.uint64(types.uint64), generate

    @intrinsic
    def times(context: Any, a: Any, b: Any) -> Any:
        """The upper and the lower half of a product."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            wide = ir.IntType(128)
            product = builder.mul(builder.zext(arguments[0], wide), builder.zext(arguments[1], wide))
            upper = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))
            halves = [upper, builder.trunc(product, ir.IntType(64))]
            return target.make_tuple(builder, signature.return_type, halves)

        return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), generate

    @intrinsic
    def as_float(context: Any, bits: Any) -> Any:
        """The float of these bits."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], ir.DoubleType())

        return types.float64(types.uint64), generate


BITS = np.uint64(3)  # a byte is 2^3 bits
