"""Functions written in LLVM's language: prefetching, memory, vectors, and the words that parsers read.

LLVM does not make vector loops of plain ones: it cannot know that arrays do not overlap, that a handful of outputs is
worth a vector, or which sums should stay in registers. Each function says in its first line what it computes, and runs
as plain Python with ``NUMBA_DISABLE_JIT=1``.

``prefetch`` requests a cache line that a later example will need. Shuffled rows lie anywhere in memory; without it an
epoch mostly waits. Compiled code creates no arrays: it may use a ``scratch`` of a few numbers on the stack, or
``borrow`` memory and ``give_back``.
"""

from __future__ import annotations

import ctypes
import math
from functools import reduce
from importlib import import_module
from typing import Any

import numpy as np

from onlearn.compiler import object_code
from onlearn.compiler.functions import INTERPRETED, cgutils, compiled, intrinsic, ir, types

WIDTH = 32  # bytes of a vector; where the processor has shorter ones, LLVM takes several
LN2 = math.log(2.0)
LN2_HIGH, LN2_LOW = 0x162E42FEE / 2.0**33, 1.9082149292705877e-10  # ln 2 in two parts, the first of 33 digits
ROUND = 1.5 * 2.0**52  # added to a number, it leaves no digits behind the point
GUESS = 0x5FE6EB50C7B537A9  # less half the bits of a double: about those of its inverse root (Lomont 2003)
TURNS = 2  # sums that are added to in turn
TILE = 4  # rows scored at a time: with three vectors of outputs this is what fits in sixteen registers

# ----------------------------------------------------------------------------------------------------
# Prefetching and memory.


def ask(builder: Any, address: Any) -> None:
    """Code that asks for the cache line of an address."""
    byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
    call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    read, keep, data = (ir.Constant(word, n) for n in (0, 3, 1))
    builder.call(call, [builder.bitcast(address, byte), read, keep, data])


if INTERPRETED:

    def prefetch(array: Any, index: Any) -> None:
        """Interpreted code has no use for it."""

    def scratch(count: int) -> Any:
        return np.empty(count)

    def borrow(count: Any) -> Any:
        return np.zeros(count)

    def give_back(array: Any) -> None:
        """Python looks after its arrays itself."""

else:

    @intrinsic
    def prefetch(context: Any, array: Any, index: Any) -> Any:
        """Ask for the cache line of ``array[index]``; never faults, never waits."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            view = target.make_array(signature.args[0])(target, builder, arguments[0])
            ask(builder, builder.gep(view.data, [arguments[1]]))
            return target.get_dummy_value()

        return types.void(array, types.uint64), generate

    @intrinsic(portable=lambda count: np.empty(count), prefer_literal=True)
    def scratch(context: Any, count: Any) -> Any:
        """Room for so many numbers, a constant, on the stack: it is there until the function ends."""
        given = count.literal_value

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = cgutils.alloca_once(builder, ir.DoubleType(), size=given)
            return _doubles(target, builder, signature.return_type, data, ir.Constant(ir.IntType(64), given))

        return types.float64[::1](count), generate

    @intrinsic(portable=lambda count: np.zeros(count))
    def borrow(context: Any, count: Any) -> Any:
        """So many zeros, until they are given back."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            word, byte = ir.IntType(64), ir.IntType(8).as_pointer()
            calloc = cgutils.get_or_insert_function(builder.module, ir.FunctionType(byte, [word, word]), "calloc")
            room = builder.call(calloc, [arguments[0], ir.Constant(word, 8)])
            with builder.if_then(cgutils.is_null(builder, room), likely=False):
                target.call_conv._return_errcode_raw(builder, ir.Constant(ir.IntType(32), object_code.NO_MEMORY))
            data = builder.bitcast(room, ir.DoubleType().as_pointer())
            return _doubles(target, builder, signature.return_type, data, arguments[0])

        return types.float64[::1](types.int64), generate

    @intrinsic(portable=lambda array: None)
    def give_back(context: Any, array: Any) -> Any:
        """Return what was borrowed."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            byte = ir.IntType(8).as_pointer()
            free = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [byte]), "free")
            data = target.make_array(signature.args[0])(target, builder, arguments[0]).data
            builder.call(free, [builder.bitcast(data, byte)])
            return target.get_dummy_value()

        return types.void(array), generate

    def _doubles(target: Any, builder: Any, kind: Any, data: Any, count: Any) -> Any:
        """An array of so many numbers at an address."""
        made, size = target.make_array(kind)(target, builder), ir.Constant(ir.IntType(64), 8)
        fill = import_module("numba.np.arrayobj").populate_array
        fill(made, data=data, shape=[count], strides=[size], itemsize=size, meminfo=None)
        return made._getvalue()


# ----------------------------------------------------------------------------------------------------
# Vectors.


if INTERPRETED:

    def add_rows(out: Any, w: Any, places: Any, factors: Any) -> None:
        """out += factors[0] * w[places[0]:] + ... + factors[3] * w[places[3]:], over the length of out."""
        for place, factor in zip(places, factors, strict=True):
            out += factor * w[int(place) : int(place) + len(out)]

    def logistic_losses(s: Any, y: Any, margin: Any, p: Any, t: Any, loss: Any) -> None:
        """margin = s y; p = 1 / (1 + e^-margin), the probability of y; t = y (1 - p); loss = -log p."""
        margin[:] = s * y
        power = np.exp(-np.abs(margin))
        p[:] = np.where(margin < 0, power, 1.0) / (1.0 + power)
        t[:] = y * np.where(margin < 0, 1.0, power) / (1.0 + power)
        loss[:] = np.log1p(power) - np.minimum(margin, 0.0)

    def adapt_rows(w: Any, squares: Any, u: Any, at: Any, places: Any, t: Any, rates: Any, factors: Any,
                   most: Any) -> None:  # fmt: skip
        """AdaGrad's step for the weights from each place, over the length of t: w += r t x / sqrt(squares).

        x is the factor of the place; products t x are at most ``most``. No two places overlap. Each change, times
        ``at``, is added to u, unless that is empty.
        """
        for place, x in zip(places, factors, strict=True):
            mine = slice(int(place), int(place) + len(t))
            gradient = np.clip(t * x, -most, most)
            squares[mine] += gradient * gradient
            root = np.sqrt(squares[mine])
            change = np.where(root > 0.0, rates * gradient / np.where(root > 0.0, root, 1.0), 0.0)
            w[mine] += change
            if len(u):
                u[mine] += change * at

    def score_tile(out: Any, x: Any, places: Any, count: Any, w: Any, at: Any, stride: Any, vectors: Any) -> None:
        """out[r, at:] = w[0, at:] + sum over k < count of x[places[r] + k] * w[k + 1, at:], over some vectors."""
        lanes = int(vectors) * WIDTH // w.itemsize
        table = w.reshape(-1, int(stride))[: int(count) + 1, int(at) : int(at) + lanes]
        for r, place in enumerate(places):
            row = x[int(place) : int(place) + int(count)]
            out[r * int(stride) + int(at) :][:lanes] = table[0] + row @ table[1:]

    def first_highest(scores: Any) -> int:
        """The place of the first of the highest scores, or -1 if one is not finite; whole vectors only."""
        return int(np.argmax(scores)) if np.isfinite(scores).all() else -1

    def sum_lines(out: Any, at: Any, factors: Any, lines: Any, start: Any, stop: Any, table: Any, base: Any,
                  vectors: Any) -> None:  # fmt: skip
        """out[at:] = sum over start <= p < stop of factors[p] * table[base:][line lines[p]], over some vectors."""
        lanes = int(vectors) * WIDTH // table.itemsize
        some = slice(int(start), int(stop))
        rows = table[int(base) : int(base) + len(table[int(base) :]) // lanes * lanes].reshape(-1, lanes)
        out[int(at) : int(at) + lanes] = factors[some] @ rows[lines[some]]

else:

    @intrinsic
    def add_rows(context: Any, out: Any, w: Any, places: Any, factors: Any) -> Any:
        """out += factors[0] * w[places[0]:] + ... + factors[3] * w[places[3]:], over the length of out."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            sums, weights = (_array(target, builder, signature, arguments, n) for n in (0, 1))
            bases, scalars = (cgutils.unpack_tuple(builder, arguments[n]) for n in (2, 3))
            number = target.get_data_type(signature.args[0].dtype)
            count = builder.extract_value(sums.shape, 0)
            done: Any = _count(0)
            for lanes in (8, 4, 1):
                kind = ir.VectorType(number, lanes) if lanes > 1 else number
                spread = [_spread(builder, value, kind) for value in scalars]
                end = builder.and_(count, _count(-lanes))
                with cgutils.for_range_slice(builder, done, end, _count(lanes)) as (p, _):
                    total = _load(builder, sums, p, kind)
                    for base, factor in zip(bases, spread, strict=True):
                        total = _fused(builder, factor, _load(builder, weights, builder.add(base, p), kind), total)
                    _store(builder, total, sums, p)
                done = end
            return target.get_dummy_value()

        number = out.dtype
        return types.void(out, w, types.UniTuple(types.uint64, 4), types.UniTuple(number, 4)), generate

    @intrinsic
    def logistic_losses(context: Any, s: Any, y: Any, margin: Any, p: Any, t: Any, loss: Any) -> Any:
        """margin = s y; p = 1 / (1 + e^-margin), the probability of y; t = y (1 - p); loss = -log p."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            scores, margins, right, steps, losses = (
                _array(target, builder, signature, arguments, n) for n in (0, 2, 3, 4, 5)
            )
            count, done = builder.extract_value(scores.shape, 0), _count(0)
            for lanes in (8, 4, 1):
                kind = ir.VectorType(ir.DoubleType(), lanes) if lanes > 1 else ir.DoubleType()
                gold, one, zero = _spread(builder, arguments[1], kind), _number(1.0, kind), _number(0.0, kind)
                end = builder.and_(count, _count(-lanes))
                with cgutils.for_range_slice(builder, done, end, _count(lanes)) as (k, _):
                    m = builder.fmul(_load(builder, scores, k, kind), gold)
                    wrong = builder.fcmp_ordered("<", m, zero)
                    power = _falling_power(builder, builder.select(wrong, builder.fneg(m), m), kind)
                    part = builder.fdiv(one, builder.fadd(one, power))
                    low = builder.fmul(power, part)
                    _store(builder, m, margins, k)
                    _store(builder, builder.select(wrong, low, part), right, k)
                    _store(builder, builder.fmul(gold, builder.select(wrong, part, low)), steps, k)
                    lost = builder.fsub(_log_of_one_and(builder, power, kind), builder.select(wrong, m, zero))
                    _store(builder, lost, losses, k)
                done = end
            return target.get_dummy_value()

        return types.void(s, types.float64, margin, p, t, loss), generate

    @intrinsic
    def adapt_rows(context: Any, w: Any, squares: Any, u: Any, at: Any, places: Any, t: Any, rates: Any, factors: Any,
                   most: Any) -> Any:  # fmt: skip
        """AdaGrad's step for the weights from each place, over the length of t: w += r t x / sqrt(squares).

        x is the factor of the place; products t x are at most ``most``. No two places overlap. Each change, times
        ``at``, is added to u, unless that is empty.
        """

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            weights, sums, past, steps, speeds = (
                _array(target, builder, signature, arguments, n) for n in (0, 1, 2, 5, 6)
            )
            bases, values = (cgutils.unpack_tuple(builder, arguments[n]) for n in (4, 7))
            count = builder.extract_value(steps.shape, 0)
            noted = builder.icmp_signed(">", builder.extract_value(past.shape, 0), _count(0))
            done: Any = _count(0)
            for lanes in (8, 4, 1):
                kind = ir.VectorType(ir.DoubleType(), lanes) if lanes > 1 else ir.DoubleType()
                high, now = _spread(builder, arguments[8], kind), _spread(builder, arguments[3], kind)
                low, zero = builder.fneg(high), _spread(builder, ir.Constant(ir.DoubleType(), 0.0), kind)
                spread = [_spread(builder, value, kind) for value in values]
                end = builder.and_(count, _count(-lanes))
                with cgutils.for_range_slice(builder, done, end, _count(lanes)) as (p, _):
                    step, speed = _load(builder, steps, p, kind), _load(builder, speeds, p, kind)
                    own, changes = [builder.add(base, p) for base in bases], []
                    before = [(_load(builder, sums, j, kind), _load(builder, weights, j, kind)) for j in own]
                    for j, x, (total, weight) in zip(own, spread, before, strict=True):
                        gradient = builder.fmul(step, x)
                        gradient = builder.select(builder.fcmp_ordered("<", gradient, low), low, gradient)
                        gradient = builder.select(builder.fcmp_ordered(">", gradient, high), high, gradient)
                        total = _fused(builder, gradient, gradient, total)
                        change = builder.fmul(builder.fmul(speed, gradient), _inverse_root(builder, total, kind))
                        change = builder.select(builder.fcmp_ordered(">", total, zero), change, zero)
                        _store(builder, total, sums, j)
                        _store(builder, builder.fadd(weight, change), weights, j)
                        changes.append(change)
                    with builder.if_then(noted):
                        for j, change in zip(own, changes, strict=True):
                            _store(builder, _fused(builder, change, now, _load(builder, past, j, kind)), past, j)
                done = end
            return target.get_dummy_value()

        number, many = types.float64, len(places)
        lines, scalars = types.UniTuple(types.uint64, many), types.UniTuple(number, many)
        return types.void(w, squares, u, number, lines, t, rates, scalars, number), generate

    @intrinsic(prefer_literal=True)
    def score_tile(context: Any, out: Any, x: Any, places: Any, count: Any, w: Any, at: Any, stride: Any,
                   vectors: Any) -> Any:  # fmt: skip
        """out[r, at:] = w[0, at:] + sum over k < count of x[places[r] + k] * w[k + 1, at:], over some vectors.

        ``w`` and ``out`` have lines of length ``stride``; ``vectors`` is a constant. The sums stay in registers.
        """
        given = vectors.literal_value

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            scores, data, weights = (_array(target, builder, signature, arguments, n) for n in (0, 1, 4))
            starts = cgutils.unpack_tuple(builder, arguments[2])
            length, first, line = arguments[3], arguments[5], arguments[6]
            kind, lanes = _vector(target, signature.args[4].dtype)
            offsets = [builder.add(first, _count(v * lanes)) for v in range(given)]
            biases = [_load(builder, weights, offset, kind) for offset in offsets]
            sums = [[cgutils.alloca_once_value(builder, bias) for bias in biases] for _ in starts]
            next_tile = builder.add(starts[0], builder.mul(length, _count(TILE)))
            with cgutils.for_range(builder, length) as loop:
                # Asked for a little at a time: all at once it would be waited for (wide rows: 170 ns a row, not 103).
                soon = builder.add(next_tile, builder.mul(loop.index, _count(TILE)))
                ask(builder, builder.gep(data.data, [soon]))
                base = builder.mul(builder.add(loop.index, _count(1)), line)
                factors = [_load(builder, weights, builder.add(base, offset), kind) for offset in offsets]
                for start, row in zip(starts, sums, strict=True):
                    value = builder.load(builder.gep(data.data, [builder.add(start, loop.index)]))
                    value = target.cast(builder, value, signature.args[1].dtype, signature.args[4].dtype)
                    spread = _spread(builder, value, kind)
                    for factor, total in zip(factors, row, strict=True):
                        builder.store(_fused(builder, spread, factor, builder.load(total)), total)
            for r, row in enumerate(sums):
                for offset, total in zip(offsets, row, strict=True):
                    place = builder.add(builder.mul(line, _count(r)), offset)
                    _store(builder, builder.load(total), scores, place)
            return target.get_dummy_value()

        four, size = types.UniTuple(types.uint64, TILE), types.uint64
        return types.void(out, x, four, size, w, size, size, vectors), generate

    @intrinsic
    def first_highest(context: Any, scores: Any) -> Any:
        """The place of the first of the highest scores, or -1 if one is not finite; whole vectors only."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            line = _array(target, builder, signature, arguments, 0)
            count = builder.extract_value(line.shape, 0)
            kind, lanes = _vector(target, signature.args[0].dtype)
            step, zero = _count(lanes), _count(0)
            nothing = ir.Constant(kind, [0.0] * lanes)
            sound = cgutils.alloca_once_value(builder, nothing)  # stays so: 0 times what is not finite is NaN
            top = cgutils.alloca_once_value(builder, _load(builder, line, zero, kind))
            with cgutils.for_range_slice(builder, zero, count, step) as (p, _):
                values, so_far = _load(builder, line, p, kind), builder.load(top)
                builder.store(builder.select(builder.fcmp_ordered(">", values, so_far), values, so_far), top)
                builder.store(_fused(builder, values, nothing, builder.load(sound)), sound)
            highest, reach = builder.load(top), lanes // 2
            while reach:  # the highest of the lanes, in all of them
                across = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [lane ^ reach for lane in range(lanes)])
                other = builder.shuffle_vector(highest, highest, across)
                highest = builder.select(builder.fcmp_ordered(">", other, highest), other, highest)
                reach //= 2
            found = cgutils.alloca_once_value(builder, _count(-1))
            bits = ir.IntType(lanes)
            finite = builder.fcmp_ordered("==", builder.load(sound), nothing)
            all_finite = builder.icmp_signed("==", builder.bitcast(finite, bits), ir.Constant(bits, -1))
            whole = _count(64)  # bits at a time, for a branch at the right vector would be guessed wrong
            with builder.if_then(all_finite), cgutils.for_range_slice(builder, zero, count, whole) as (begin, _):
                last = builder.add(begin, whole)
                last = builder.select(builder.icmp_signed("<", last, count), last, count)
                word = cgutils.alloca_once_value(builder, zero)
                builder.store(zero, word)
                with cgutils.for_range_slice(builder, begin, last, step) as (p, _):
                    same = builder.fcmp_ordered("==", _load(builder, line, p, kind), highest)
                    same = builder.shl(builder.zext(builder.bitcast(same, bits), ir.IntType(64)), builder.sub(p, begin))
                    builder.store(builder.or_(builder.load(word), same), word)
                here = builder.icmp_signed("!=", builder.load(word), zero)
                first = builder.icmp_signed("<", builder.load(found), zero)
                with builder.if_then(builder.and_(first, here)):
                    place = builder.cttz(builder.load(word), ir.Constant(ir.IntType(1), 1))
                    builder.store(builder.add(begin, place), found)
            return builder.load(found)

        return types.int64(scores), generate

    @intrinsic(prefer_literal=True)
    def sum_lines(context: Any, out: Any, at: Any, factors: Any, lines: Any, start: Any, stop: Any, table: Any,
                  base: Any, vectors: Any) -> Any:  # fmt: skip
        """out[at:] = sum over start <= p < stop of factors[p] * table[base:][line lines[p]], over some vectors.

        A line of the table has the length of the vectors, a constant. The sums stay in registers, two for each vector:
        one alone would wait for its own last product.
        """
        given = vectors.literal_value

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            result, values, places, weights = (_array(target, builder, signature, arguments, n) for n in (0, 2, 3, 6))
            first, begin, end, offset = (arguments[n] for n in (1, 4, 5, 7))
            kind, lanes = _vector(target, signature.args[6].dtype)
            zeros = ir.Constant(kind, [0.0] * lanes)
            sums = [[cgutils.alloca_once_value(builder, zeros) for _ in range(given)] for _ in range(TURNS)]
            shifts = [_count(v * lanes) for v in range(given)]

            def add(p: Any, turn: int) -> None:
                factor = _spread(builder, builder.load(builder.gep(values.data, [p])), kind)
                number = builder.load(builder.gep(places.data, [p]))
                number = builder.zext(number, ir.IntType(64)) if number.type.width < 64 else number
                line = builder.add(offset, builder.mul(number, _count(given * lanes)))
                for shift, total in zip(shifts, sums[turn], strict=True):
                    part = _load(builder, weights, builder.add(line, shift), kind)
                    builder.store(_fused(builder, factor, part, builder.load(total)), total)

            whole = builder.add(begin, builder.and_(builder.sub(end, begin), _count(-TURNS)))
            with cgutils.for_range_slice(builder, begin, whole, _count(TURNS)) as (p, _):
                for turn in range(TURNS):
                    add(builder.add(p, _count(turn)), turn)
            with cgutils.for_range_slice(builder, whole, end, _count(1)) as (p, _):
                add(p, 0)
            for shift, *parts in zip(shifts, *sums, strict=True):
                total = reduce(builder.fadd, [builder.load(part) for part in parts])
                _store(builder, total, result, builder.add(first, shift))
            return target.get_dummy_value()

        place = types.uint64
        return types.void(out, place, factors, lines, place, place, table, place, vectors), generate


def _count(number: int) -> Any:
    return ir.Constant(ir.IntType(64), number)


def _array(target: Any, builder: Any, signature: Any, arguments: Any, n: int) -> Any:
    return target.make_array(signature.args[n])(target, builder, arguments[n])


def _vector(target: Any, number: Any) -> tuple[Any, int]:
    """The vector of numbers of this type, and how many it holds."""
    kind = target.get_data_type(number)
    lanes = WIDTH // target.get_abi_sizeof(kind)
    return ir.VectorType(kind, lanes), lanes


def _size(kind: Any) -> int:
    """Bytes of one number."""
    number = kind.element if isinstance(kind, ir.VectorType) else kind
    return 8 if isinstance(number, ir.DoubleType) else 4


def _pointer(builder: Any, array: Any, place: Any, kind: Any) -> Any:
    return builder.bitcast(builder.gep(array.data, [place]), kind.as_pointer())


def _load(builder: Any, array: Any, place: Any, kind: Any) -> Any:
    return builder.load(_pointer(builder, array, place, kind), align=_size(kind))


def _store(builder: Any, value: Any, array: Any, place: Any) -> None:
    builder.store(value, _pointer(builder, array, place, value.type), align=_size(value.type))


def _fused(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, in one instruction where there is one."""
    return builder.fadd(c, builder.fmul(a, b, flags=["contract"]), flags=["contract"])


def _number(value: Any, kind: Any) -> Any:
    """A constant, in all lanes of a vector."""
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def _polynomial(builder: Any, x: Any, coefficients: list[float], kind: Any) -> Any:
    """c[0] + c[1] x + c[2] x^2 ..., in pairs, so that fewer sums wait for one another."""
    terms = [_number(one, kind) for one in coefficients]
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        paired = [_fused(builder, high, x, low) for low, high in pairs]
        terms = paired + terms[len(terms) & ~1 :]
        x = builder.fmul(x, x)
    return terms[0]


def _as_written(builder: Any, value: Any) -> Any:
    """The value, rounded as it is: sums in loops may be reordered, but not beyond this."""
    kind = value.type
    name = f"v{kind.count}f64" if isinstance(kind, ir.VectorType) else "f64"
    fence = ir.FunctionType(kind, [kind])
    return builder.call(cgutils.get_or_insert_function(builder.module, fence, f"llvm.arithmetic.fence.{name}"), [value])


def _falling_power(builder: Any, a: Any, kind: Any) -> Any:
    """e^-a of a that is not negative, to a few units in the last place; 0 beyond 700.

    With n the whole number nearest to a / ln 2 it is 2^-n e^r, where r = n ln 2 - a is small. The sum with ROUND puts n
    into the low bits of a double, from where a shift makes it an exponent.
    """
    lanes = kind.count if isinstance(kind, ir.VectorType) else 1
    word = ir.VectorType(ir.IntType(64), lanes) if lanes > 1 else ir.IntType(64)
    far = builder.fcmp_ordered(">", a, _number(700.0, kind))
    a = builder.select(far, _number(700.0, kind), a)
    shifted = _as_written(builder, builder.fadd(builder.fmul(a, _number(1 / LN2, kind)), _number(ROUND, kind)))
    n = builder.fsub(shifted, _number(ROUND, kind))
    r = builder.fsub(builder.fmul(n, _number(LN2_HIGH, kind)), a)  # exact, for few digits of the constant are set
    r = builder.fadd(_as_written(builder, r), builder.fmul(n, _number(LN2_LOW, kind)))
    exponent = builder.shl(builder.bitcast(shifted, word), _number(52, word))
    scale = builder.bitcast(builder.sub(_number(1023 << 52, word), exponent), kind)
    power = builder.fmul(_polynomial(builder, r, [1 / math.factorial(k) for k in range(14)], kind), scale)
    return builder.select(far, _number(0.0, kind), power)


def _log_of_one_and(builder: Any, p: Any, kind: Any) -> Any:
    """log(1 + p) of p from 0 to 1: twice the area tangent of s, where (1 + s) / (1 - s) is 1 + p or half of that."""
    large = builder.fcmp_ordered(">", p, _number(math.sqrt(2) - 1, kind))
    above = builder.select(large, builder.fsub(p, _number(1.0, kind)), p)
    below = builder.fadd(p, builder.select(large, _number(3.0, kind), _number(2.0, kind)))
    s = builder.fdiv(above, below)
    series = _polynomial(builder, builder.fmul(s, s), [2 / (2 * k + 1) for k in range(12)], kind)
    return _fused(builder, s, series, builder.select(large, _number(LN2, kind), _number(0.0, kind)))


def _inverse_root(builder: Any, value: Any, kind: Any) -> Any:
    """1 / sqrt(value) to a few units in the last place, in half the time of a root and a quotient.

    The bits of a number are about its logarithm, so that their difference with a constant is a first guess, right to 4
    in 100; each step of Newton's, y (3 - x y^2) / 2, doubles the digits.
    """
    lanes = kind.count if isinstance(kind, ir.VectorType) else 1
    word = ir.VectorType(ir.IntType(64), lanes) if lanes > 1 else ir.IntType(64)
    half, three_halves = _number(-0.5, kind), _number(1.5, kind)
    bits = builder.sub(_number(GUESS, word), builder.lshr(builder.bitcast(value, word), _number(1, word)))
    y, x = builder.bitcast(bits, kind), builder.fmul(value, half)
    for _ in range(4):
        y = builder.fmul(y, _fused(builder, builder.fmul(x, y), y, three_halves))
    return y


def _spread(builder: Any, value: Any, kind: Any) -> Any:
    """A vector with one value in all its lanes."""
    if not isinstance(kind, ir.VectorType):
        return value
    vector = ir.Constant(kind, ir.Undefined)
    for lane in range(kind.count):
        vector = builder.insert_element(vector, value, ir.Constant(ir.IntType(32), lane))
    return vector


# ----------------------------------------------------------------------------------------------------
# What compiled parsers need of the machine: eight bytes at once, wide products, the bits of a float.
#
# Texts given to compiled parsers end with ``PADDING`` bytes more than their content, all newlines. So a loop that
# stops at a newline needs no other check, and eight bytes may be taken anywhere in the content.


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
