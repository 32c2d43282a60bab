"""Sampling of single tokens on a processor as machine code, compiled by numba, in the time of one torch operator.

Also what other compiled functions share: an exponential that fits vector registers, and the largest of some numbers.
Numba looks for changes in the file of a function only: after one here, change those that call it as well
(``models/kernels``: ``one_call.py``, ``compiled_attention.py``, and ``masked_call.py``, which calls those two as well).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numba import config, njit
from numba.core.caching import FunctionCache

if config.DISABLE_JIT:
    raise ImportError("NUMBA_DISABLE_JIT is set")


class Kept(FunctionCache):
    """Machine code on disk. What cannot be read, on a damaged disk, or written, on a full one, is compiled again."""

    def load_overload(self, *given: Any) -> Any:
        with suppress(Exception):  # Numba unpickles.
            return super().load_overload(*given)

    def save_overload(self, *given: Any) -> None:
        with suppress(Exception):
            super().save_overload(*given)


def kept(made: Any, function: Callable[..., Any]) -> Any:
    """``made`` by numba of ``function``, with its code kept on disk if a folder can be written."""
    with suppress(RuntimeError):
        made._cache = Kept(function)
    return made


REGROUPED = {"reassoc", "contract", "nsz"}
"""Sums may be regrouped, for vector registers, but a number that is none stays one."""


def compiled(function: Callable[..., Any], fastmath: Any = REGROUPED) -> Any:
    return kept(njit(nogil=True, error_model="numpy", fastmath=fastmath)(function), function)


LEAST, MOST = np.float32(-87), np.float32(88)
TOGETHER = 64
"""Scores that are looked at together."""
TO_BINARY, HIGH, LOW = np.float32(1.44269504), np.float32(0.693359375), np.float32(-2.12194440e-4)
ONE, HALF, FOURTH, FIFTH, SIXTH, SEVENTH = map(
    np.float32, (1, 0.5, 0.16666667, 0.041666667, 0.0083333333, 0.0013888889)
)


@compiled
def exponential(x):
    """eˣ to some units in the last place; 0 below e⁻⁸⁷, and e⁸⁸ above."""
    x = MOST if x > MOST else x
    whole = np.floor(x * TO_BINARY + HALF)
    rest = x - whole * HIGH - whole * LOW
    power = ONE + rest * (ONE + rest * (HALF + rest * (FOURTH + rest * (FIFTH + rest * (SIXTH + rest * SEVENTH)))))
    scale = np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)
    return np.float32(0) if x < LEAST else power * scale


SIGN, REST, LEAST_WHOLE = np.int32(31), np.int32(0x7FFFFFFF), np.int32(-(2**31))


@compiled
def largest(line, count):
    """The largest of the first ``count`` numbers."""
    # As whole numbers in the same order, since LLVM does not put the largest of floats into vector registers.
    bits, most = line.view(np.int32), LEAST_WHOLE
    for place in range(count):
        one = np.int32(bits[place] ^ np.int32(np.int32(bits[place] >> SIGN) & REST))
        most = np.int32(max(most, one))
    return np.int32(most ^ np.int32(np.int32(most >> SIGN) & REST)).view(np.float32)


@compiled
def shares_of(line, seen, length):
    """Scores to numbers in the ratio of their softmax, 0 after those ``seen``; returns the sum."""
    most, total = largest(line, seen), np.float32(0)
    for place in range(seen):
        line[place] = exponential(line[place] - most)
        total += line[place]
    for place in range(seen, length):
        line[place] = 0
    return total


@compiled
def truncate(scores, temperature, top_k, top_p, shares):
    """As :func:`paretone.sampling.tokens.truncated`, of one row, into ``shares``."""
    rows = len(shares)
    kept = top_k if 0 < top_k < rows else rows
    if kept == rows:
        order = np.argsort(-scores[:rows], kind="mergesort")
    else:
        order, count, least = np.empty(kept, np.int64), 0, np.float32(-np.inf)
        for begin in range(0, rows, TOGETHER):
            end = min(begin + TOGETHER, rows)
            # Of most, none is among the likeliest. A number that is none comes first, as in torch.
            some = 0
            for one in range(begin, end):
                some += 0 if scores[one] <= least else 1
            if not some and count == kept:
                continue
            for one in range(begin, end):
                if count == kept and scores[one] <= least:
                    continue
                count = min(count + 1, kept)
                place = count - 1
                while place > 0 and not scores[one] <= scores[order[place - 1]]:
                    order[place] = order[place - 1]
                    place -= 1
                order[place] = one
                least = scores[order[kept - 1]] if count == kept else least
    for one in range(rows):
        shares[one] = 0
    whole = np.float32(0)
    for one in order:
        shares[one] = exponential((scores[one] - scores[order[0]]) / np.float32(temperature))
        whole += shares[one]
    if top_p < 1:
        before, total = np.float32(0), np.float32(0)
        for one in order:
            share = shares[one] / whole
            shares[one] = share if before < top_p else 0
            before += share
            total += shares[one]
        whole = total
    for one in order:
        shares[one] /= whole


@compiled
def truncate_rows(scores, temperature, top_k, top_p, shares):
    for row in range(len(scores)):
        truncate(scores[row], temperature, top_k, top_p, shares[row])


@compiled
def draw_from(shares, uniform):
    """As :func:`paretone.sampling.tokens.draw`."""
    total = 0.0
    for one in range(len(shares)):
        if shares[one] != 0:
            total += shares[one]
    wanted, before = np.float32(total) * np.float32(uniform), 0.0
    for one in range(len(shares)):
        if shares[one] != 0:
            before += shares[one]
            if np.float32(before) > wanted:
                return one
    return len(shares) - 1
