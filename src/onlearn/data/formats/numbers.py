"""Decimal numbers, correctly rounded: what ``float()`` makes of them, at the speed of a few multiplications.

A number is sign, digits, point, digits, exponent. With up to 15 or so digits and a small exponent, mantissa and
power of ten are both exact in a float, and one multiplication or division rounds once (Clinger 1990). Otherwise
the product of mantissa and a 128-bit power of five decides (Lemire, "Number parsing at a gigabyte per second",
2021), and if that is not exact enough, the caller uses ``float()`` for the token.

Functions take the address of the first byte of a text: passing an array would cost more than reading most numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.compiler import compiled
from onlearn.compiler.intrinsics import (
    BITS,
    ZEROS,
    as_float,
    byte,
    eight_at,
    joined,
    leading_digits,
    leading_zeros,
    no_digits,
    times,
)

# The outcome for a token. UNSURE: well formed, but only ``float()`` can round it.
GOOD, UNSURE, MISSING, INFINITE, MALFORMED = range(5)

ZERO, ONE, TWO, EIGHT, NINE, TEN = (np.uint64(n) for n in (0, 1, 2, 8, 9, 10))
TENS = np.uint64(10) ** np.arange(9, dtype=np.uint64)
DIGIT, POINT = np.uint64(48), np.uint64(46)
DIGITS = np.uint64(18)  # whole numbers with this many digits fit into 64 bits
BLANK = np.uint64(32)
EXACT = np.uint64(1 << 53)  # whole numbers up to this one are exact as floats
POWERS = 10.0 ** np.arange(23)  # all of them are exact
INITY = tuple(b"inity")  # what may follow inf
LOWEST, HIGHEST = -342, 308  # exponents beyond which 19 digits are 0 or infinite


def _fives() -> np.ndarray:
    """The leading 128 bits of 5^q, upper and lower half, for every q that matters; rounded as Lemire's proof wants."""
    table = []
    for q in range(LOWEST, HIGHEST + 1):
        if q >= 0:
            power = 5**q
            shift = power.bit_length() - 128
            bits = power >> shift if shift > 0 else power << -shift
        else:
            power = 5**-q
            bits = (1 << (power.bit_length() + 127)) // power + 1
            bits >>= bits.bit_length() - 128
        table.append((bits >> 64, bits & 0xFFFFFFFFFFFFFFFF))
    return np.array(table, dtype=np.uint64)


FIVES = _fives()


@compiled
def whole_number(base: Any, start: Any) -> Any:
    """Read a number without a sign: its value, its end, and whether it is below 10^18."""
    p = start
    while byte(base, p) == 48:
        p += ONE
    first, value = p, ZERO
    digit = np.uint64(byte(base, p)) - DIGIT
    while digit <= NINE:
        value = value * TEN + digit
        p += ONE
        digit = np.uint64(byte(base, p)) - DIGIT
    return value, p, p > start and p - first <= np.uint64(18)


@compiled
def round_once(mantissa: Any, exponent: Any) -> Any:
    """The float nearest to mantissa * 10^exponent, and whether it is certain."""
    if mantissa == ZERO or exponent < LOWEST:
        return 0.0, True
    if exponent > HIGHEST:
        return np.inf, True
    if mantissa <= EXACT and -22 <= exponent <= 22:
        if exponent < 0:
            return np.float64(np.int64(mantissa)) / POWERS[-exponent], True
        return np.float64(np.int64(mantissa)) * POWERS[exponent], True
    shift = leading_zeros(mantissa)
    w = mantissa << shift
    q = exponent - LOWEST
    upper, lower = times(w, FIVES[q, 0])
    if upper & np.uint64(0x1FF) == np.uint64(0x1FF):
        more, _ = times(w, FIVES[q, 1])
        lower += more
        if lower < more:
            upper += ONE
    if lower == ~ZERO and (exponent < -27 or exponent > 55):
        return 0.0, False
    top = upper >> np.uint64(63)
    digits = upper >> (top + np.uint64(9))
    # floor(log2(10^q)) without a logarithm; 63 and 1023 place the binary point
    power = ((217706 * exponent) >> 16) + 63 + np.int64(top) - np.int64(shift) + 1023
    if power <= 0 or power >= 2046:
        return 0.0, False  # subnormal or nearly infinite: rare enough for ``float()``
    halfway = lower <= ONE and -4 <= exponent <= 23 and digits & np.uint64(3) == ONE
    if halfway and digits << (top + np.uint64(9)) == upper:
        digits &= ~ONE  # exactly between two floats: to the even one
    digits = (digits + (digits & ONE)) >> ONE
    if digits >= EXACT:
        digits = EXACT >> ONE
        power += 1
        if power >= 2047:
            return np.inf, True
    return as_float((digits & ((EXACT >> ONE) - ONE)) | (np.uint64(power) << np.uint64(52))), True


@compiled
def any_number(base: Any, start: Any) -> Any:
    """Read a number in any notation: its value, its end, and the outcome."""
    p = start
    negative = byte(base, p) == 45
    if negative or byte(base, p) == 43:
        p += ONE
    mantissa, counted, exponent = ZERO, 0, 0
    first = p
    sure = True
    c = np.uint64(byte(base, p))
    while c - DIGIT <= NINE or c == POINT:
        if c == POINT:
            break
        if counted < 19:
            mantissa = mantissa * TEN + (c - DIGIT)
            counted += mantissa != ZERO
        else:
            exponent += 1
            sure = sure and c == DIGIT
        p += ONE
        c = np.uint64(byte(base, p))
    seen = p - first
    if c == POINT:
        p += ONE
        point = p
        c = np.uint64(byte(base, p))
        while c - DIGIT <= NINE:
            if counted < 19:
                mantissa = mantissa * TEN + (c - DIGIT)
                counted += mantissa != ZERO
                exponent -= 1
            else:
                sure = sure and c == DIGIT
            p += ONE
            c = np.uint64(byte(base, p))
        seen += p - point
    if seen == ZERO:
        return special(base, first, negative)
    if c | BLANK == np.uint64(101):  # e or E
        p += ONE
        down = byte(base, p) == 45
        if down or byte(base, p) == 43:
            p += ONE
        digit = np.uint64(byte(base, p)) - DIGIT
        if digit > NINE:
            return 0.0, p, MALFORMED
        power = 0
        while digit <= NINE:
            power = min(power * 10 + np.int64(digit), 1 << 40)  # type: ignore[assignment]
            p += ONE
            digit = np.uint64(byte(base, p)) - DIGIT
        exponent += -power if down else power
    value, certain = round_once(mantissa, exponent)
    if not sure:  # some digits are not in the mantissa: the number is between it and the next one
        above, also = round_once(mantissa + ONE, exponent)
        certain = certain and also and value == above
    if not certain:
        return 0.0, p, UNSURE
    if value == np.inf:
        return value, p, INFINITE
    return -value if negative else value, p, GOOD


@compiled
def special(base: Any, start: Any, negative: Any) -> Any:
    """Read NaN or infinity; everything else is malformed."""
    a, b, c = byte(base, start) | 32, byte(base, start + ONE) | 32, byte(base, start + np.uint64(2)) | 32
    if a == 110 and b == 97 and c == 110:
        return np.nan, start + np.uint64(3), MISSING
    if a == 105 and b == 110 and c == 102:
        end = start + np.uint64(3)
        for n in range(len(INITY)):
            if byte(base, end + np.uint64(n)) | 32 != INITY[n]:
                return np.inf, end, INFINITE
        return np.inf, end + np.uint64(len(INITY)), INFINITE
    return 0.0, start, MALFORMED


@compiled
def decimal(base: Any, start: Any) -> Any:
    """Read a sign, digits, a point and digits: the digits as one number, how many there are, how many of them are
    after the point, and the end. The function is small enough to be inlined into the loop that calls it."""
    p = first = start + np.uint64(byte(base, start) == 45)
    mantissa = after = ZERO
    digit = np.uint64(byte(base, p)) - DIGIT
    while digit <= NINE:
        mantissa = mantissa * TEN + digit
        p += ONE
        digit = np.uint64(byte(base, p)) - DIGIT
    if byte(base, p) == 46:
        p += ONE
        first += ONE
        after = p
        count = EIGHT
        while count == EIGHT:
            count, part = leading_digits(eight_at(base, p))
            mantissa = mantissa * TENS[count] + part
            p += count
        after = p - after
    return mantissa, p - first, after, p


@compiled
def fraction(base: Any, start: Any, stop: Any) -> Any:
    """The number between two places, and whether it has the usual form: an optional sign, a digit, a point, and one to
    eight digits. The function has no loop, so the processor need not predict the length of the number.
    """
    negative = byte(base, start) == 45
    first = start + np.uint64(negative)
    whole, count = np.uint64(byte(base, first)) - DIGIT, stop - first - TWO
    if count - ONE < EIGHT and whole <= NINE and byte(base, first + ONE) == 46:
        digits = (eight_at(base, first + TWO) ^ ZEROS) << ((EIGHT - count) << BITS)
        value = np.float64(np.int64(whole * TENS[count] + joined(digits))) / POWERS[count]
        return -value if negative else value, no_digits(digits) == ZERO
    return 0.0, False


@compiled
def number(base: Any, start: Any) -> Any:
    """The same as ``any_number``, faster for the usual notations."""
    mantissa, digits, after, p = decimal(base, start)
    if digits - ONE >= DIGITS or byte(base, p) | 32 == 101:
        return any_number(base, start)
    outcome = GOOD
    if mantissa <= EXACT:
        value = np.float64(np.int64(mantissa)) / POWERS[after]
    else:
        value, sure = round_once(mantissa, -np.int64(after))
        if not sure:
            outcome = UNSURE
    return -value if byte(base, start) == 45 else value, p, outcome


@compiled
def ask(unsure: Any, count: Any, position: Any, start: Any, stop: Any) -> Any:
    """Record a number for ``float()``; returns the new count. If the array is full, the number is only counted."""
    if count < len(unsure):
        unsure[count, 0], unsure[count, 1], unsure[count, 2] = position, start, stop
    return count + 1
