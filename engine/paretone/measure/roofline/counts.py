"""Operations and bytes of the parts of a transformer, by formula.

One multiply-add is two operations. Bytes are the minimum traffic between memory and processor: weights once, every
input and every output once; products with a common input (queries, keys and values; gate and up) read it once.
Rotations, activations and residual additions are left out: they can be fused. Torch-free.
"""

from __future__ import annotations

from dataclasses import dataclass

SCORE_OPERATIONS = 5
"""Operations per element of a log-softmax: compare, subtract, exponential, sum, subtract."""
NORM_OPERATIONS = 4
"""Operations per element of a norm: square, sum, scale, weight."""


@dataclass(frozen=True)
class Work:
    """Operations and bytes of a piece of work."""

    operations: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(self.operations + other.operations, self.bytes + other.bytes)

    def __mul__(self, times: float) -> Work:
        return Work(self.operations * times, self.bytes * times)

    @property
    def intensity(self) -> float:
        """Operations per byte; 0 without traffic."""
        return self.operations / self.bytes if self.bytes else 0.0


def linear(rows: float, inputs: int, outputs: int, width: float = 2, weight_width: float | None = None) -> Work:
    """Product of (rows, inputs) with a weight (inputs, outputs); ``width``: bytes per activation and, by default, per
    weight; ``weight_width``: bytes per weight."""
    weights = inputs * outputs * (width if weight_width is None else weight_width)
    return Work(2.0 * rows * inputs * outputs, weights + width * rows * (inputs + outputs))


def projections(
    rows: float, hidden: int, queries: int, keys: int, width: float = 2, weight_width: float | None = None
) -> Work:
    """Projections to ``queries`` columns of queries and twice ``keys`` of keys and values, and that of the output."""
    inward = linear(rows, hidden, queries + 2 * keys, width, weight_width)
    return inward + linear(rows, queries, hidden, width, weight_width)


def feed_forward(
    rows: float, hidden: int, inner: int, gated: bool, width: float = 2, weight_width: float | None = None
) -> Work:
    """Two products, or three if gated."""
    inward = linear(rows, hidden, inner * (2 if gated else 1), width, weight_width)
    return inward + linear(rows, inner, hidden, width, weight_width)


def attention(
    items: float, tokens: float, queries: int, keys: int, width: float = 2, seen: float | None = None
) -> Work:
    """Both products of attention for ``items`` rows of ``tokens`` tokens, each over ``seen`` keys (default: all
    tokens); ``queries`` and ``keys`` are their columns. Scores cause no traffic."""
    context = tokens if seen is None else seen
    travelling = tokens * 2 * queries + context * 2 * keys
    return Work(4.0 * items * tokens * context * queries, width * items * travelling)


def norm(elements: float, width: float = 2) -> Work:
    """Norm over a number of elements, read and written once."""
    return Work(NORM_OPERATIONS * elements, 2 * width * elements)


def looked_up(rows: float, hidden: int, tables: int = 1, width: float = 2) -> Work:
    """``rows`` sums of one entry from each of ``tables`` tables."""
    return Work(float(tables) * rows * hidden, width * rows * hidden * (tables + 1))


def log_softmax(elements: float) -> Work:
    """Log-softmax over a number of scores."""
    return Work(SCORE_OPERATIONS * elements, 2 * 4 * elements)
