"""Machine code for the two loops in which a pass of few rows spends its time, for the processor that runs it.

Compiled loops in Python's syntax leave sums in memory; here they stay in vector registers, and float16 weights are
widened in one, so that they are read as 16 bits. Every row is summed in the same order whichever rows are computed with
it. Written for LLVM, through numba, which compiles each function once and keeps it on disk.
"""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.core.ccallback import CFunc
from numba.extending import intrinsic

from paretone.sampling.compiled_tokens import compiled, kept

Array = np.ndarray[Any, Any]

_FEATURES = binding.get_host_cpu_features()
if platform.machine().lower() in ("x86_64", "amd64") and not _FEATURES.get("f16c"):
    raise ImportError("this processor cannot widen float16 numbers")
WIDE = bool(_FEATURES.get("avx512f"))
LANES = 16 if WIDE else 8
"""Numbers of a vector register."""
VECTORS = 4
BLOCK = LANES * VECTORS
"""Outputs of a product that are summed together, each in a place of a register."""
ROWS = 6 if WIDE else 2
"""Most rows that are multiplied with a block at once: their sums fit into the registers."""
SCORED = 4
"""Most rows that are scored against keys at once."""

_ADDRESS, _FLOAT = ir.IntType(64), ir.FloatType()
_VECTOR, _HALVES = ir.VectorType(_FLOAT, LANES), ir.VectorType(ir.HalfType(), LANES)
_NOTHING = ir.Constant(_VECTOR, ir.Undefined)
_KIND = types.void(*[types.int64] * 7)
AHEAD = 16384
"""Bytes between what is read and what is fetched for later."""


class _Code:
    """Instructions of a function that is being built."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def at(self, address: Any, offset: int, kind: Any) -> Any:
        """Pointer to the ``kind`` that is ``offset`` bytes after ``address``."""
        return self.builder.inttoptr(self.builder.add(address, _ADDRESS(offset)), kind.as_pointer())

    def read(self, address: Any, kind: Any = _VECTOR) -> list[Any]:
        """The numbers of a block."""
        size = 2 * LANES if kind is _HALVES else 4 * LANES
        found = [self.builder.load(self.at(address, size * one, kind), align=2) for one in range(VECTORS)]
        return [self.builder.fpext(one, _VECTOR) for one in found] if kind is _HALVES else found

    def write(self, value: Any, address: Any, offset: int = 0) -> None:
        self.builder.store(value, self.at(address, offset, value.type), align=4)

    def rows(self, address: Any, step: Any, count: int) -> list[Any]:
        """Addresses of ``count`` rows."""
        return [self.builder.add(address, self.builder.mul(step, _ADDRESS(row))) for row in range(count)]

    def fetch(self, address: Any, size: int) -> None:
        """Ask for ``size`` bytes that will be read later."""
        for line in range(0, size, 64):
            kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), *[ir.IntType(32)] * 3])
            fetching = cgutils.get_or_insert_function(self.builder.module, kind, "llvm.prefetch.p0")
            place = self.at(address, AHEAD + line, ir.IntType(8))
            self.builder.call(fetching, [place, *(ir.IntType(32)(one) for one in (0, 3, 1))])

    def added(self, product: Any, factor: Any, total: Any) -> Any:
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.fmuladd.v{LANES}f32")
        return self.builder.call(function, [product, factor, total])

    def chosen(self, one: Any, other: Any, places: Iterable[int]) -> Any:
        """Numbers of two vectors by their places in both together."""
        places = list(places)
        return self.builder.shuffle_vector(one, other, ir.VectorType(ir.IntType(32), len(places))(places))

    def loop(self, count: Any, carried: Sequence[Any], turn: Callable[..., Sequence[Any]]) -> list[Any]:
        """``turn`` for ``count`` ≥ 1 times: maps the number of turns before and what is carried to what is carried
        on."""
        builder, before = self.builder, self.builder.block
        body, after = builder.append_basic_block(), builder.append_basic_block()
        builder.branch(body)
        builder.position_at_end(body)
        carried = [_ADDRESS(0), *carried]
        values = [builder.phi(one.type) for one in carried]
        for value, first in zip(values, carried, strict=True):
            value.add_incoming(first, before)
        news = [builder.add(values[0], _ADDRESS(1)), *turn(*values)]
        for value, new in zip(values, news, strict=True):
            value.add_incoming(new, body)
        builder.cbranch(builder.icmp_signed("<", news[0], count), body, after)
        builder.position_at_end(after)
        return news[1:]

    def sums(self, vectors: Sequence[Any]) -> Any:
        """The sum of each of LANES vectors, in one vector; all are summed in the same order."""
        # Pairs of vectors become one, of sums of two places each: first within fours of places, then of whole fours.
        low = [(first, first + LANES, first + 1, first + LANES + 1) for first in range(0, LANES, 4)]
        found = self._halved(vectors, [place for some in low for place in some], 2)
        low = [(first, first + 1, first + LANES, first + LANES + 1) for first in range(0, LANES, 4)]
        found = self._halved(found, [place for some in low for place in some], 2)
        reach = LANES // 2
        while len(found) > 1:
            starts = range(0, 2 * LANES, 2 * reach)
            found = self._halved(found, [start + place for start in starts for place in range(reach)], reach)
            reach //= 2
        return found[0]

    def _halved(self, vectors: Sequence[Any], places: Sequence[int], apart: int) -> list[Any]:
        """Pairs of vectors, joined by what is at ``places`` and what is that far ``apart``."""
        others = [place + apart for place in places]
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        return [self.builder.fadd(self.chosen(*pair, places), self.chosen(*pair, others)) for pair in pairs]


def _machine_code(name: str, body: Callable[..., None]) -> Any:
    """A function of C, compiled once and called by its address; ``body`` is given :class:`_Code` and the arguments."""

    def call(
        context: Any, matrix: Any, step: Any, count: Any, rows: Any, row_step: Any, out: Any, out_step: Any
    ) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            body(_Code(builder), *values)
            return context.get_dummy_value()

        return _KIND, code

    # Found by another process on disk as the same: a closure over the intrinsic would differ in each.
    kernel = FunctionType(_kernel.__code__, {**globals(), "inner": intrinsic(call)}, name)
    kernel.__qualname__ = name
    made = kept(CFunc(kernel, (_KIND.args, _KIND.return_type), {}, {}), kernel)
    made.compile()
    return made


inner: Any


def _kernel(matrix, step, count, rows, row_step, out, out_step):
    inner(matrix, step, count, rows, row_step, out, out_step)  # noqa: F821


def _multiplying(count: int, half: bool) -> Any:
    """``out[r, :BLOCK] += rows[r] @ matrix`` for ``count`` rows and a matrix (inputs, BLOCK) of float16 or float32. All
    are given by addresses and by steps in bytes from row to row."""

    def body(
        code: _Code, matrix: Any, step: Any, inputs: Any, rows: Any, row_step: Any, out: Any, out_step: Any
    ) -> None:
        builder, kind = code.builder, _HALVES if half else _VECTOR
        outs, given = code.rows(out, out_step, count), code.rows(rows, row_step, count)

        def turn(number: Any, at: Any, *sums: Any) -> list[Any]:
            code.fetch(at, 2 * BLOCK if half else 4 * BLOCK)
            read, news = code.read(at, kind), []
            for row, address in enumerate(given):
                place = builder.add(address, builder.shl(number, _ADDRESS(2)))
                single = builder.insert_element(_NOTHING, builder.load(code.at(place, 0, _FLOAT)), ir.IntType(32)(0))
                spread = code.chosen(single, _NOTHING, [0] * LANES)
                before = sums[row * VECTORS : (row + 1) * VECTORS]
                news += [code.added(spread, *pair) for pair in zip(read, before, strict=True)]
            return [builder.add(at, step), *news]

        found = code.loop(inputs, [matrix, *(one for address in outs for one in code.read(address))], turn)[1:]
        for place, value in enumerate(found):
            code.write(value, outs[place // VECTORS], 4 * LANES * (place % VECTORS))

    return _machine_code(f"multiply_{count}_{'half' if half else 'float'}", body)


def _scoring(count: int) -> Any:
    """``out[r, t] += rows[r, :BLOCK] @ matrix[t, :BLOCK]`` for ``count`` rows and ``groups`` groups of LANES / count
    keys t; given as for :func:`_multiplying`."""
    together = LANES // count

    def body(
        code: _Code, matrix: Any, step: Any, groups: Any, rows: Any, row_step: Any, out: Any, out_step: Any
    ) -> None:
        builder, asked = code.builder, [code.read(one) for one in code.rows(rows, row_step, count)]
        group = ir.VectorType(_FLOAT, together)

        def turn(number: Any, at: Any, *outs: Any) -> list[Any]:
            products: list[list[Any]] = [[] for _ in asked]
            for key in code.rows(at, step, together):
                code.fetch(key, 4 * BLOCK)
                read = code.read(key)
                for query, found in zip(asked, products, strict=True):
                    total = builder.fmul(query[0], read[0])
                    for pair in zip(query[1:], read[1:], strict=True):
                        total = code.added(*pair, total)
                    found.append(total)
            sums = code.sums([one for found in products for one in found])
            for row, address in enumerate(outs):
                part = code.chosen(sums, _NOTHING, range(row * together, (row + 1) * together))
                code.write(builder.fadd(builder.load(code.at(address, 0, group), align=4), part), address)
            return [
                builder.add(at, builder.mul(step, _ADDRESS(together))),
                *(builder.add(one, _ADDRESS(4 * together)) for one in outs),
            ]

        code.loop(groups, [matrix, *code.rows(out, out_step, count)], turn)

    return _machine_code(f"score_{count}", body)


@compiled
def at_once(rows):
    """How many of ``rows`` are multiplied together: equally many each time, since what they share is read again from a
    cache."""
    return max(1, -(-rows // max(1, -(-rows // ROWS))))


@functools.cache
def multiplying(half: bool) -> Array:
    """Addresses (rows − 1) of :func:`_multiplying` for 1 to ROWS rows, with float32 or float16."""
    return np.array([_multiplying(rows, half).address for rows in range(1, ROWS + 1)], np.int64)


@functools.cache
def kernels() -> Array:
    """Addresses (kind, rows − 1) of functions for 1 to ROWS rows: of :func:`multiplying` with float32 and float16,
    and of :func:`_scoring`, where three rows are scored like four, and never more."""
    one, two, four = (_scoring(rows).address for rows in (1, 2, SCORED))
    return np.array([multiplying(False), multiplying(True), [one, two, *[four] * (ROWS - 2)]], np.int64)


@intrinsic
def call(
    context: Any, function: Any, matrix: Any, step: Any, count: Any, rows: Any, row_step: Any, out: Any, out_step: Any
) -> Any:
    """Call one of :func:`kernels`."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_ADDRESS] * 7)
        builder.call(builder.inttoptr(values[0], kind.as_pointer()), values[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 8), code


@intrinsic
def pointer(context: Any, address: Any) -> Any:
    """The address as a pointer that ``carray`` takes."""
    return types.voidptr(types.int64), lambda context, builder, signature, arguments: builder.inttoptr(
        arguments[0], ir.IntType(8).as_pointer()
    )
