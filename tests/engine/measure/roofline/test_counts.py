"""Counts of operations and bytes, against those of torch and of the tensors."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from paretone.measure.roofline import counts
from paretone.measure.roofline.launches import counted


def test_products_and_attention_are_counted_as_torch_counts_them():
    rows, hidden, queries, keys, inner = 7, 24, 32, 16, 40
    x = torch.randn(rows, hidden)
    with FlopCounterMode(display=False) as counter:
        F.linear(x, torch.randn(queries + 2 * keys, hidden))
        F.linear(torch.randn(rows, queries), torch.randn(hidden, queries))
    assert counts.projections(rows, hidden, queries, keys).operations == counter.get_total_flops()
    with FlopCounterMode(display=False) as counter:
        F.linear(F.silu(F.linear(x, torch.randn(2 * inner, hidden)))[:, :inner], torch.randn(hidden, inner))
    assert counts.feed_forward(rows, hidden, inner, gated=True).operations == counter.get_total_flops()
    query = torch.randn(2, 4, rows, 8)
    with FlopCounterMode(display=False) as counter:
        (query @ query.transpose(-1, -2)) @ query
    assert counts.attention(2, rows, 32, 32).operations == counter.get_total_flops()


def test_bytes_are_those_of_the_tensors():
    work = counts.linear(7, 24, 32, width=4)
    tensors = torch.randn(7, 24), torch.randn(24, 32), torch.randn(7, 32)
    assert work.bytes == sum(one.numel() * one.element_size() for one in tensors)
    assert counts.linear(7, 24, 32, width=4, weight_width=1).bytes == work.bytes - 3 * 24 * 32
    # A token that sees 100 keys: its query, all keys and values, what comes of it.
    assert counts.attention(1, 1, 32, 16, width=2, seen=100).bytes == 2 * (32 + 2 * 100 * 16 + 32)


def test_operators_are_counted_without_views():
    weight, x = torch.randn(6, 5), torch.randn(3, 5)
    launched, work = counted(lambda: F.linear(x, weight).view(2, 9).transpose(0, 1).add_(1.0))
    assert launched == 2
    assert work.operations == 2 * 3 * 5 * 6
    assert work.bytes == 4 * (3 * 5 + 6 * 5 + 3 * 6) + 4 * 2 * 18


def test_the_processors_own_attention_is_counted():
    query = torch.randn(1, 2, 6, 8)
    launched, work = counted(lambda: F.scaled_dot_product_attention(query, query, query))
    assert launched == 1
    assert work.operations == counts.attention(1, 6, 16, 16).operations
