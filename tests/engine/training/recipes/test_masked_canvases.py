from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from paretone.training.recipes.natural_omni import CanvasOptions, Joined, draw, layer
from paretone.training.spoken_tokens import SpokenTokens

CODEBOOKS, MASK = 4, 9
PLAIN = CanvasOptions(text_dropped=0.0, begun=0.0, ended=0.0)


def spoken(frames: int, seed: int) -> SpokenTokens:
    chance = np.random.default_rng(seed)
    return SpokenTokens(
        "anna", chance.integers(1, 50, frames, np.int16), chance.integers(0, MASK, (frames, CODEBOOKS), np.int16)
    )


def joined(items: int = 40) -> Joined:
    """Every other item has a prompt of 7 frames; all are 20 to 22 frames long in all."""
    return Joined.of(
        [
            [spoken(7, seed), spoken(13 + seed % 3, seed + 100)] if seed % 2 else [spoken(20 + seed % 3, seed)]
            for seed in range(items)
        ]
    )


def chance(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_utterances_follow_each_other():
    prompt, utterance = spoken(3, 1), spoken(5, 2)
    batch = Joined.of([[prompt, utterance], [spoken(6, 3)]])
    assert torch.equal(batch.text[0], torch.from_numpy(np.concatenate([prompt.phones, utterance.phones])).long())
    assert torch.equal(batch.codes[0, :, :3], torch.from_numpy(prompt.codes.T).long())
    assert batch.prompts.tolist() == [3, 0]
    assert batch.inside.sum(1).tolist() == [8, 6]


def test_prompts_and_padding_are_never_hidden_and_what_is_hidden_is_masked():
    batch = joined()
    canvases = draw(batch, MASK, replace(PLAIN, begun=0.5, ended=0.5), chance())
    allowed = batch.inside & (torch.arange(batch.text.shape[1]) >= batch.prompts[:, None])
    assert not (canvases.hidden & ~allowed[:, None]).any()
    assert canvases.hidden.flatten(1).any(1).all(), "every item has something to say"
    assert torch.equal(canvases.codes == MASK, canvases.hidden)
    assert torch.equal(canvases.spoken, batch.codes)
    assert torch.equal(canvases.codes[~canvases.hidden], batch.codes[~canvases.hidden])


def test_higher_codebooks_are_hidden_more_often_and_any_share_of_the_canvas_is():
    canvases = draw(joined(400), MASK, PLAIN, chance())
    by_codebook = canvases.hidden.float().mean((0, 2))
    assert (by_codebook.diff() > 0.02).all()
    batch = joined(400)
    cells = CODEBOOKS * (batch.inside.sum(1) - batch.prompts)
    share = canvases.hidden.sum((1, 2)) / cells
    assert share.min() < 0.15
    # u is from 0.03 to 1.1. Above 0.9, fewer than one of these small canvases' cells would be left.
    assert float((share == 1.0).float().mean()) == pytest.approx(0.19, abs=0.06)
    assert float(share.mean()) == pytest.approx(0.69, abs=0.04)


def test_without_text_only_the_canvas_is_seen():
    batch = joined()
    canvases = draw(batch, MASK, replace(PLAIN, text_dropped=1.0), chance())
    frames = batch.text.shape[1]
    text, canvas = canvases.seen[:, :frames], canvases.seen[:, frames:]
    assert not text.any()
    assert torch.equal(canvas, batch.inside & (torch.arange(frames) >= batch.prompts[:, None]))
    told = draw(batch, MASK, PLAIN, chance())
    assert torch.equal(told.seen, batch.inside.repeat(1, 2))


def test_after_a_block_nothing_is_known_and_before_one_everything():
    batch = joined(200)
    ended = draw(batch, MASK, replace(PLAIN, ended=1.0), chance())
    everything = ended.hidden.all(1) | ~batch.inside
    after = everything.flip(1).cumprod(1).flip(1).bool()
    known_somewhere = (~everything).any(1)
    assert known_somewhere.float().mean() > 0.3
    assert (after & batch.inside).any(1).float().mean() > 0.8

    begun = draw(batch, MASK, replace(PLAIN, begun=1.0), chance())
    before = (~begun.hidden.any(1)).cumprod(1).sum(1)
    assert (before > batch.prompts).float().mean() > 0.7


def test_a_layer_is_hidden_with_all_above_it_and_nothing_below():
    batch = joined()
    canvases = layer(batch, MASK, 2)
    assert not canvases.hidden[:, :2].any()
    after_prompt = batch.inside & (torch.arange(batch.text.shape[1]) >= batch.prompts[:, None])
    for codebook in (2, 3):
        assert torch.equal(canvases.hidden[:, codebook], after_prompt)


def test_positions_begin_anew_at_the_canvas():
    canvases = layer(joined(), MASK, 0)
    frames = canvases.text.shape[1]
    assert canvases.positions.tolist() == [*range(frames), *range(frames)]
