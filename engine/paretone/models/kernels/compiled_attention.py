"""Attention as machine code, compiled by numba: see :mod:`paretone.models.kernels.attention`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import carray
from torch import Tensor

from paretone.models.kernels.machine_code import BLOCK, ROWS, at_once, call, multiplying, pointer
from paretone.sampling.compiled_tokens import ONE, compiled, shares_of


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
def _at(tensor, item, head, row):
    return tensor[0] + item * tensor[1] + head * tensor[2] + row * tensor[3]


@compiled
def _turn(key, step, turned, keys):
    """Write ``keys`` in blocks: (blocks, width, BLOCK)."""
    width = turned.shape[1]
    for number in range(keys):
        row = carray(pointer(key + number * step), width, np.float32)
        for place in range(width):
            turned[number // BLOCK, place, number % BLOCK] = row[place]


@compiled
def _mix(rows, query, query_step, turned, keys, scores, values, value_step, out, out_step, multiply):
    """Attention of ``rows`` queries, written to ``out``; ``scores`` (rows, keys in whole blocks) is memory for it."""
    width, size, product, step = turned.shape[1], 4 * BLOCK, multiply[rows - 1], scores.strides[0]
    asking, scale = np.empty((rows, width), np.float32), np.float32(turned.shape[1] ** -0.5)
    for row in range(rows):
        asked = carray(pointer(query + row * query_step), width, np.float32)
        mixed = carray(pointer(out + row * out_step), width, np.float32)
        for place in range(width):
            asking[row, place], mixed[place] = asked[place] * scale, 0
        for number in range(scores.shape[1]):
            scores[row, number] = 0
    for block in range(-(-keys // BLOCK)):
        found = scores.ctypes.data + block * size
        call(product, turned[block].ctypes.data, size, width, asking.ctypes.data, asking.strides[0], found, step)
    shares = np.empty(rows, np.float32)
    for row in range(rows):
        shares[row] = ONE / shares_of(scores[row], keys, keys)
    for column in range(0, size * width // BLOCK, size):
        call(product, values + column, value_step, keys, scores.ctypes.data, step, out + column, out_step)
    for row in range(rows):
        mixed = carray(pointer(out + row * out_step), width, np.float32)
        for place in range(width):
            mixed[place] *= shares[row]


@compiled
def _attend(tensors, shape, parts, multiply):
    """``tensors``: address, and bytes from item to item, head to head, and row to row, of queries, keys, values and
    what they mix; ``shape``: items, heads, heads of keys, and their width; ``parts`` (sequences, 2): queries and
    keys."""
    items, heads, key_heads, width = shape
    asked, known, valued, mixed = tensors
    blocks, fold = -(-parts[:, 1].max() // BLOCK), heads // key_heads
    turned, scores = np.empty((blocks, width, BLOCK), np.float32), np.empty((ROWS, blocks * BLOCK), np.float32)
    for item in range(items):
        for key_head in range(key_heads):
            first_query = first_key = 0
            for queries, keys in parts:
                _turn(_at(known, item, key_head, first_key), known[3], turned, keys)
                values = _at(valued, item, key_head, first_key)
                together = at_once(queries)
                for head in range(key_head * fold, (key_head + 1) * fold):
                    for begin in range(0, queries, together):
                        query = _at(asked, item, head, first_query + begin)
                        out = _at(mixed, item, head, first_query + begin)
                        rows = min(together, queries - begin)
                        _mix(rows, query, asked[3], turned, keys, scores, values, valued[3], out, mixed[3], multiply)
                first_query += queries
                first_key += keys


@compiled
def attend_within(queries, projected, mixed, shape, parts, multiply):
    """``mixed`` (queries, heads · width) from rows of ``queries``, and of ``projected``, which have queries, keys and
    values side by side; ``shape``: heads, heads of keys, and their width; ``parts`` as for all."""
    heads, key_heads, width = shape
    size, keys = 4 * width, projected.ctypes.data + 4 * width * heads
    values, step = keys + size * key_heads, projected.strides[0]
    asked = (queries.ctypes.data, 0, size, step)
    found = (mixed.ctypes.data, 0, size, mixed.strides[0])
    tensors = np.array([asked, (keys, 0, size, step), (values, 0, size, step), found])
    _attend(tensors, (1, heads, key_heads, width), parts, multiply)
