"""The phone encoder against its formulas written as loops, and in padded batches."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from paretone.models.megatts3.phones import PhoneEncoder, RelativeAttention

TOLERANCE = 1e-5


def encoder() -> PhoneEncoder:
    torch.manual_seed(2)
    model = PhoneEncoder(entries=30, width=32, layers=2, heads=2, ffn=48, kernel=3, window=4)
    torch.nn.init.normal_(model.pre.proj.weight, std=0.1)
    return model.eval().requires_grad_(False)


def plain_attention(attention: RelativeAttention, x: Tensor) -> Tensor:
    """(phones, width) to the same, one pair of phones after the other."""
    query, key, value = (
        (x @ projection.weight[..., 0].T + projection.bias).chunk(attention.heads, dim=-1)
        for projection in (attention.conv_q, attention.conv_k, attention.conv_v)
    )
    outputs = []
    for head in range(attention.heads):
        rows = []
        for place, asking in enumerate(query[head]):
            scores, values = [], []
            for other, answering in enumerate(key[head]):
                distance = other - place
                near = abs(distance) <= attention.window
                place_key, place_value = (
                    table[0, distance + attention.window] if near else torch.zeros_like(asking)
                    for table in (attention.emb_rel_k, attention.emb_rel_v)
                )
                scores.append(asking @ (answering + place_key) / math.sqrt(len(asking)))
                values.append(value[head][other] + place_value)
            rows.append(torch.stack(scores).softmax(0) @ torch.stack(values))
        outputs.append(torch.stack(rows))
    return torch.cat(outputs, dim=-1) @ attention.conv_o.weight[..., 0].T + attention.conv_o.bias


@pytest.mark.parametrize("phones", [1, 3, 4, 17])
def test_attention_adds_a_vector_for_every_distance(phones: int) -> None:
    attention = encoder().encoder.attn_layers[0]
    x = torch.randn(phones, 32, generator=torch.Generator().manual_seed(1))
    found = attention(x[None], torch.ones(1, phones, 1))[0]
    assert (found - plain_attention(attention, x)).abs().max().item() < TOLERANCE


def test_padding_changes_no_phone() -> None:
    model = encoder()
    generator = torch.Generator().manual_seed(1)
    lengths = [9, 3, 1]
    phones = torch.randint(1, 30, (3, 9), generator=generator)
    phones *= torch.arange(9)[None] < torch.tensor(lengths)[:, None]
    other = torch.randn(3, 9, 32, generator=generator)
    together = model(phones, other)
    for row, length in enumerate(lengths):
        alone = model(phones[row : row + 1, :length], other[row : row + 1, :length])
        assert (together[row : row + 1, :length] - alone).abs().max().item() < TOLERANCE
        assert not together[row, length:].any()


def test_phones_beyond_the_window_are_told_apart_by_what_they_are_only() -> None:
    """Without anything else known, two far neighbours may change places unnoticed; two near ones may not."""
    attention = encoder().encoder.attn_layers[0]
    x = torch.randn(1, 12, 32, generator=torch.Generator().manual_seed(1))
    valid = torch.ones(1, 12, 1)
    for first, second, matters in ((8, 10, False), (2, 8, True)):
        swapped = x.clone()
        swapped[:, [first, second]] = x[:, [second, first]]
        changed = (attention(swapped, valid) - attention(x, valid))[0, 0].abs().max().item()
        assert (changed > 100 * TOLERANCE) is matters
