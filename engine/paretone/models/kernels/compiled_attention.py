"""Attention as machine code, compiled by numba: see :mod:`paretone.models.kernels.attention`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import carray
from torch import Tensor

from paretone.models.kernels.machine_code import BLOCK, ROWS, call, multiplying, pointer
from paretone.sampling.compiled_tokens import compiled, shares_of

ONE = np.float32(1)


def attention(query: Tensor, key: Tensor, value: Tensor, lengths: Sequence[int]) -> Tensor:
    """As :func:`paretone.models.kernels.attention.attend` without a mask, for float32 and heads of whole blocks."""
    items, heads, queries, width = query.shape
    query, key, value = (one if one.stride(-1) == 1 else one.contiguous() for one in (query, key, value))
    # As by torch's operator, heads can be joined without a copy.
    mixed = query.new_empty(items, queries, heads, width).transpose(1, 2)
    tensors = [(one.data_ptr(), *(4 * step for step in one.stride()[:3])) for one in (query, key, value, mixed)]
    parts = np.array([(one, one) for one in lengths] or [(queries, key.shape[2])])
    _attend(np.array(tensors), (items, heads, key.shape[1], width), parts, multiplying(False))
    return mixed


@compiled
def _attend(tensors, shape, parts, multiply):
    """``tensors``: address, and bytes from item to item, head to head, and row to row, of queries, keys, values and
    what they mix; ``shape``: items, heads, heads of keys, and their width; ``parts`` (sequences, 2): queries and
    keys."""
    items, heads, key_heads, width = shape
    size, scale, fold = 4 * BLOCK, np.float32(width**-0.5), heads // key_heads
    query_step, _, value_step, out_step = tensors[:, 3]
    blocks = -(-parts[:, 1].max() // BLOCK)
    turned, scores = np.empty((blocks, width, BLOCK), np.float32), np.empty((ROWS, blocks * BLOCK), np.float32)
    asking, shares = np.empty((ROWS, width), np.float32), np.empty(ROWS, np.float32)
    for item in range(items):
        for key_head in range(key_heads):
            query, key, value, out = tensors[:, 0] + item * tensors[:, 1] + key_head * tensors[:, 2]
            query += (fold - 1) * key_head * tensors[0, 2]
            out += (fold - 1) * key_head * tensors[3, 2]
            for queries, keys in parts:
                for number in range(keys):
                    row = carray(pointer(key + number * tensors[1, 3]), width, np.float32)
                    for place in range(width):
                        turned[number // BLOCK, place, number % BLOCK] = row[place]
                for head in range(fold):
                    together = -(-queries // -(-queries // ROWS))
                    for begin in range(0, queries, together):
                        rows = min(together, queries - begin)
                        first = query + head * tensors[0, 2] + begin * query_step
                        to = out + head * tensors[3, 2] + begin * out_step
                        for row in range(rows):
                            asked = carray(pointer(first + row * query_step), width, np.float32)
                            mixed = carray(pointer(to + row * out_step), width, np.float32)
                            for place in range(width):
                                asking[row, place], mixed[place] = asked[place] * scale, 0
                            for number in range(scores.shape[1]):
                                scores[row, number] = 0
                        for block in range(-(-keys // BLOCK)):
                            at, found = turned[block].ctypes.data, scores.ctypes.data + block * size
                            call(
                                multiply[rows - 1], at, size, width,
                                asking.ctypes.data, asking.strides[0], found, scores.strides[0],
                            )  # fmt: skip
                        for row in range(rows):
                            shares[row] = ONE / shares_of(scores[row], keys, keys)
                        for column in range(0, size * width // BLOCK, size):
                            call(
                                multiply[rows - 1], value + column, value_step, keys,
                                scores.ctypes.data, scores.strides[0], to + column, out_step,
                            )  # fmt: skip
                        for row in range(rows):
                            mixed = carray(pointer(to + row * out_step), width, np.float32)
                            for place in range(width):
                                mixed[place] *= shares[row]
                query += queries * query_step
                key += keys * tensors[1, 3]
                value += keys * value_step
                out += queries * out_step
