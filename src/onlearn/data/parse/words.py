"""What compiled parsers need of the machine: eight bytes at once, wide products, the bits of a float.

Texts given to compiled parsers end with ``PADDING`` bytes more than their content, all newlines. So a loop that
stops at a newline needs no other check, and eight bytes may be taken anywhere in the content.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from onlearn.compile import INTERPRETED, compiled

PADDING = 64
LINE = 32  # bytes that are looked at together, in one vector or two

if INTERPRETED:

    def eight(text: Any, start: Any) -> Any:
        return np.uint64(int.from_bytes(text[int(start) : int(start) + 8].tobytes(), "little"))

    def byte(base: Any, place: Any) -> Any:
        return np.uint8(ctypes.c_uint8.from_address(int(base) + int(place)).value)

    def eight_at(base: Any, place: Any) -> Any:
        return np.uint64(int.from_bytes(ctypes.string_at(int(base) + int(place), 8), "little"))

    def ends_among(base: Any, place: Any, limit: Any, first: Any, second: Any) -> Any:
        found = ctypes.string_at(int(base) + int(place), LINE)
        return np.uint64(sum(1 << n for n, c in enumerate(found) if c < limit or c in (first, second)))

    def trailing_zeros(word: Any) -> Any:
        return np.uint64((int(word) & -int(word)).bit_length() - 1 if int(word) else 64)

    def times(a: Any, b: Any) -> Any:
        product = int(a) * int(b)
        return np.uint64(product >> 64), np.uint64(product & 0xFFFFFFFFFFFFFFFF)

    def leading_zeros(word: Any) -> Any:
        return np.uint64(64 - int(word).bit_length())

    def as_float(bits: Any) -> Any:
        return np.uint64(bits).view(np.float64)

else:
    from onlearn.compile import cgutils, intrinsic, ir, types

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
    def eight_at(context: Any, base: Any, place: Any) -> Any:
        """The eight bytes from a place on of the text whose first one is at the address ``base``."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address = builder.inttoptr(builder.add(arguments[0], arguments[1]), ir.IntType(64).as_pointer())
            return builder.load(address, align=1)

        return types.uint64(types.uint64, types.uint64), generate

    @intrinsic
    def ends_among(context: Any, base: Any, place: Any, limit: Any, first: Any, second: Any) -> Any:
        """A bit for each of the ``LINE`` bytes from a place on: whether it is below a limit, or one of two."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            letter, number = ir.IntType(8), ir.IntType(32)
            kind = ir.VectorType(letter, LINE)
            nothing, first_lane = ir.Constant(kind, ir.Undefined), ir.Constant(ir.VectorType(number, LINE), None)

            def spread(word: Any) -> Any:
                one = builder.insert_element(nothing, builder.trunc(word, letter), ir.Constant(number, 0))
                return builder.shuffle_vector(one, nothing, first_lane)

            address = builder.inttoptr(builder.add(arguments[0], arguments[1]), kind.as_pointer())
            found = builder.load(address, align=1)
            ends = builder.icmp_unsigned("<", found, spread(arguments[2]))
            for other in arguments[3:]:
                ends = builder.or_(ends, builder.icmp_unsigned("==", found, spread(other)))
            return builder.zext(builder.bitcast(ends, ir.IntType(LINE)), ir.IntType(64))

        return types.uint64(*[types.uint64] * 5), generate

    @intrinsic
    def trailing_zeros(context: Any, word: Any) -> Any:
        """How many bits below the lowest that is set; 64 if none is."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

        return types.uint64(types.uint64), generate

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

# Words of eight bytes alike, and what turns eight digits, each one less 48, into a number.
EACH, HIGH = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
ZEROS, REST, PAST_NINE = np.uint64(0x3030303030303030), ~HIGH, np.uint64(0x7676767676767676)
PAIRS, FIRST, SECOND = np.uint64(0x000000FF000000FF), np.uint64(0x000F424000000064), np.uint64(0x0000271000000001)
TEN, SIXTEEN, HALF, WORD = np.uint64(10), np.uint64(16), np.uint64(32), np.uint64(64)


@compiled
def leading_digits(word: Any) -> Any:
    """How many of eight bytes are digits, up to the first that is not, and what number they are."""
    digits = word ^ ZEROS
    bits = trailing_zeros(no_digits(digits)) & ~np.uint64(7)  # a shift by 64 is none
    if bits == np.uint64(0):
        return bits, bits
    return bits >> BITS, joined(digits << (WORD - bits))  # zeros before them


@compiled
def joined(digits: Any) -> Any:
    """The number of eight digits, each of which is a byte from 0 to 9."""
    digits = digits * TEN + (digits >> np.uint64(8))
    return ((digits & PAIRS) * FIRST + ((digits >> SIXTEEN) & PAIRS) * SECOND) >> HALF


@compiled
def no_digits(digits: Any) -> Any:
    """The high bits of bytes that are not from 0 to 9."""
    return (((digits & REST) + PAST_NINE) | digits) & HIGH


@compiled
def below(word: Any, limit: Any) -> Any:
    """The high bits of bytes lower than a limit of at most 128; the lowest that is set is right, others may not be."""
    return (word - EACH * limit) & ~word & HIGH


@compiled
def equal(word: Any, byte: Any) -> Any:
    """The high bits of bytes that are this one, likewise."""
    return below(word ^ (EACH * byte), np.uint64(1))
