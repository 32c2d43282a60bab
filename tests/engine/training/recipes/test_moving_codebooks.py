from __future__ import annotations

import random

import torch

from paretone.training.recipes.natural_tokens import CodebookOptions, MovingCodebooks

CODES, NUMBERS = 8, 6


def test_an_entry_moves_to_the_mean_of_what_is_near_and_an_idle_one_to_where_something_is():
    codebooks = (100.0 * torch.arange(CODES)[:, None]).expand(3, -1, NUMBERS).clone()
    moving = MovingCodebooks(codebooks, CodebookOptions(), random.Random(0), torch.Generator().manual_seed(0))
    before = codebooks[0].clone()
    moving.uses.fill_(4.0)
    moving.uses[0, 5] = 0.0
    near = before[2] + 1.0 + 0.1 * torch.randn(40, NUMBERS)
    entries = moving.learnt(0, near)
    assert torch.equal(entries, before[2].expand_as(entries))
    assert any(torch.equal(codebooks[0, 5], one) for one in near)
    others = [place for place in range(CODES) if place not in (2, 5)]
    assert torch.equal(codebooks[0, others], before[others])
    # 4 tokens so far and 0.01 of 40 now.
    torch.testing.assert_close(codebooks[0, 2], (3.96 * before[2] + 0.4 * near.mean(0)) / 4.36)
    assert torch.equal(codebooks[1:, 3], torch.full((2, NUMBERS), 300.0))
