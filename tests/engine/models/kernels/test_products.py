"""Packed products: the same numbers, whatever the rows, and never a stale weight."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from paretone.models.f5.layers import F5Attention, F5FeedForward, RotaryEmbedding
from paretone.models.kernels import products
from paretone.models.kernels.products import FEED_FORWARD_ROWS, ROWS, PackableLinear, PackedProduct

TOLERANCE = 1e-5


@pytest.fixture(autouse=True)
def _narrow_layers_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small layers stand for wide ones."""
    monkeypatch.setattr(products, "NARROWEST", 1)


needs_packing = pytest.mark.skipif(not products.available(), reason="this build of torch cannot pack weights")


@needs_packing
@pytest.mark.parametrize("rows", [1, ROWS - 1, ROWS, ROWS + 1, 3 * ROWS])
def test_packed_layers_give_what_plain_ones_give(rows: int) -> None:
    torch.manual_seed(0)
    layer = PackableLinear(40, 24).requires_grad_(False)
    x = torch.randn(rows, 40)
    plain = layer(x)
    layer.pack()
    assert layer.is_packed(x)
    assert torch.allclose(layer(x), plain, atol=TOLERANCE, rtol=0)
    assert torch.allclose(layer(x.expand(2, 1, -1, -1)), plain.expand(2, 1, -1, -1), atol=TOLERANCE, rtol=0)


@needs_packing
def test_any_number_of_rows_goes_through_the_packed_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = PackableLinear(8, 8).requires_grad_(False)
    layer.pack()
    monkeypatch.setattr(products.F, "linear", lambda *_: pytest.fail("a plain product"))
    layer(torch.randn(2 * ROWS + 5, 8))


def test_packing_is_done_without_where_its_products_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PackedProduct, "__call__", lambda self, x: self.plain(x) + (len(x) != ROWS))
    assert not products.available.__wrapped__()


@pytest.mark.parametrize("rotary_heads", [None, 1])
@pytest.mark.parametrize("qk_norm", [False, True])
@pytest.mark.parametrize("length", [7, ROWS + 9])
def test_attention_by_blocks_is_the_attention(rotary_heads: int | None, qk_norm: bool, length: int) -> None:
    torch.manual_seed(0)
    attention = F5Attention(48, 3, 16, qk_norm, rotary_heads).requires_grad_(False)
    x, table = torch.randn(2, length, 48), RotaryEmbedding(16).table(length)
    before = attention(x, table)
    attention.fuse()
    assert isinstance(attention._fused, PackedProduct) == products.available()
    assert torch.allclose(attention(x, table), before, atol=TOLERANCE, rtol=0)


def test_feed_forward_by_blocks_is_the_feed_forward() -> None:
    torch.manual_seed(0)
    module = F5FeedForward(24, 2).requires_grad_(False)
    x = torch.randn(2, FEED_FORWARD_ROWS // 2 + 9, 24)
    before = module(x)
    module.fuse()
    assert torch.allclose(module(x), before, atol=TOLERANCE, rtol=0)


def test_narrow_layers_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "NARROWEST", 25)
    layer = PackableLinear(24, 64).requires_grad_(False)
    layer.pack()
    assert not layer.is_packed(torch.randn(4, 24))


def test_other_precisions_and_replaced_layers_do_not_use_what_was_packed() -> None:
    torch.manual_seed(0)
    module = F5FeedForward(24, 2).requires_grad_(False)
    module.fuse()
    x = torch.randn(2, 30, 24)
    narrow = copy.deepcopy(module).to(torch.bfloat16)
    assert narrow(x.bfloat16()).dtype == torch.bfloat16
    replaced = copy.deepcopy(module)
    replaced.ff[2] = nn.Linear(48, 24)
    assert not replaced.is_packed(x)
    assert torch.allclose(replaced(x), replaced.ff[2](F.gelu(replaced.ff[0][0](x), approximate="tanh")), atol=TOLERANCE)
    assert torch.equal(copy.deepcopy(module)(x), module(x))


@pytest.mark.parametrize("rows", [1, ROWS, ROWS + 1, 900, 5 * ROWS - 1])
def test_blocks_cover_all_rows_evenly(rows: int) -> None:
    lengths = [len(range(rows)[block]) for block in products.blocks(rows)]
    assert sum(lengths) == rows
    assert max(lengths) <= ROWS
    assert max(lengths) - min(lengths) < len(lengths)
