"""Recipes of the language and the masked model over tokens of natural speech."""

import json
import random
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.front_end.phones import PHONES
from paretone.models.minis.lm_mini import LmMiniFolder
from paretone.models.minis.omni_mini import CODEC as CODEC_FOLDER
from paretone.models.minis.omni_mini import OmniMiniFolder
from paretone.models.minis.speaking import NaturalVoice
from paretone.training.natural_corpus import voice_frames
from paretone.training.spoken_tokens import VOCABULARY, SpokenTokens, frame_phones, voices_of
from tests.engine.training.learning import exported, same_weights, whole_and_resumed
from tests.engine.training.toy_natural import toy_natural_corpus
from tests.tools.recipes.natural_codecs import (
    CODEC,
    TOKENIZER,
    CodebookOptions,
    MovingCodebooks,
    NaturalCodec,
    NaturalTokenizer,
    NaturalTokenOptions,
)
from tests.tools.recipes.natural_language import (
    LAYOUT,
    SMALL_LM,
    SMALL_OMNI,
    CanvasOptions,
    Joined,
    LmOptions,
    NaturalLm,
    NaturalOmni,
    OmniOptions,
    draw,
    layer,
    layout_of,
)

CPU = torch.device("cpu")
TOKENS = NaturalTokenOptions(frames=40, batch=4, warm_up=5)
QUICK_LM = LmOptions(positions=500, other_rate=5e-3, warm_up=5, average_decay=0.9, validation_items=4)
QUICK_OMNI = OmniOptions(frames=120, other_rate=5e-3, warm_up=5, average_decay=0.9, validation_items=4)
LM = replace(SMALL_LM, hidden=64, layers=2, heads=2, key_value_heads=2, head_width=32, feed_forward=96)
OMNI = replace(SMALL_OMNI, hidden=64, layers=2, heads=2, key_value_heads=1, head_width=32, feed_forward=96)
LM_TOKENIZER = replace(TOKENIZER, width=32, inner_width=48, levels=(4, 4, 3))
OMNI_CODEC = replace(CODEC, width=32, inner_width=48, codes=16)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a speech tokenizer."""
    folder = tmp_path_factory.mktemp("tokenizer")
    NaturalTokenizer(toy_natural_corpus(), CPU, TOKENS, LM_TOKENIZER).export(folder)
    return folder


@pytest.fixture(scope="module")
def codec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a codec after some steps: codebooks begin empty."""
    folder = tmp_path_factory.mktemp("codec")
    run = NaturalCodec(toy_natural_corpus(), CPU, TOKENS, OMNI_CODEC)
    for number in range(1, 6):
        run.step(number, 0.1)
    run.export(folder)
    return folder


def lm(tokenizer: Path, work: Path, options: LmOptions = QUICK_LM) -> NaturalLm:
    return NaturalLm(toy_natural_corpus(), tokenizer, work, CPU, options, LM)


def omni(codec: Path, work: Path, options: OmniOptions = QUICK_OMNI) -> NaturalOmni:
    return NaturalOmni(toy_natural_corpus(), codec, work, CPU, options, OMNI)


def test_tokens_and_phones_lie_beside_each_other(tokenizer: Path, codec: Path, tmp_path: Path):
    clips = toy_natural_corpus().training
    for clip, one in zip(clips, lm(tokenizer, tmp_path).data.training, strict=True):
        assert len(one.phones) == len(one.codes) == len(clip.latents) // 2
        assert one.phones.max() < len(PHONES)
    for clip, one in zip(clips, omni(codec, tmp_path).clips, strict=True):
        assert one.codes.shape == (len(clip.latents) // 4, CODEC.codebooks)
        assert len(one.phones) == len(one.codes)
    for ours, clip in zip(omni(codec, tmp_path).clips, toy_natural_corpus().training, strict=True):
        by_frame = frame_phones(clip)
        assert len(ours.phones) == len(ours.codes) == len(by_frame) // 4
        first, second = np.divmod(ours.phones, len(VOCABULARY.phones))
        assert np.array_equal(first, by_frame[1::4][: len(first)])
        assert np.array_equal(second, by_frame[3::4])
    some = [clip for clip in clips if clip.voice == "v001"]
    whole = NaturalVoice.of(torch.cat([voice_frames(clip) for clip in some]))
    assert voices_of(clips)["v001"] == whole


def test_tokens_and_codes_are_made_once(tokenizer: Path, codec: Path, tmp_path: Path):
    for make, part in ((lm, tokenizer), (omni, codec)):
        work = tmp_path / make.__name__
        first = make(part, work)
        kept = {path: path.stat().st_mtime_ns for path in work.rglob("*.npz")}
        assert len(kept) == 2
        second = make(part, work)
        assert {path: path.stat().st_mtime_ns for path in kept} == kept
        if make is lm:
            for ours, theirs in zip(first.data.training, second.data.training, strict=True):
                assert np.array_equal(ours.codes, theirs.codes)


def test_a_resumed_run_ends_with_the_same_bits(tokenizer: Path, codec: Path, tmp_path: Path):
    for make, part in ((lm, tokenizer), (omni, codec)):
        made = partial(make, part, tmp_path / "tokens")
        whole, resumed = whole_and_resumed(made, tmp_path / make.__name__)
        assert same_weights(resumed.average.module, whole.average.module)


def test_the_export_is_a_folder_that_the_engine_and_transformers_load(tokenizer: Path, tmp_path: Path):
    run = exported(lm(tokenizer, tmp_path / "work"), tmp_path / "export")
    folder = LmMiniFolder(tmp_path / "export")
    layout = folder.layout()
    assert layout == layout_of(VOCABULARY, LM_TOKENIZER.codes)
    assert layout.vocabulary.phones == PHONES
    assert folder.config() == LM
    assert folder.tokenizer(CPU).config == LM_TOKENIZER
    network = folder.network(CPU)

    ids = torch.tensor([[1, 2, layout.end_of_text, layout.start_of_speech, layout.first_code + 7]])
    positions = torch.tensor([0, 1, 2, 0, 1])
    with torch.no_grad():
        trained = run.average.module
        hidden = trained.transformer(trained.embedding(ids), positions=positions)
        ours = trained.head(hidden)[0, -1]
    assert json.loads((tmp_path / "export" / "config.json").read_text())["vocab_size"] == layout.ids
    theirs = _in_transformers(tmp_path / "export", ids, positions)[layout.rows]
    torch.testing.assert_close(ours, theirs, atol=2e-2, rtol=2e-2)
    assert network.tokens.codes == LM_TOKENIZER.codes


def _in_transformers(folder: Path, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, torch_dtype=torch.float32)
    with torch.no_grad():
        mask = torch.ones_like(ids)
        return model(ids, position_ids=positions[None], attention_mask=mask).logits[0, -1]


def test_the_export_is_the_official_layout_and_scores_as_the_trained_network(codec: Path, tmp_path: Path):
    run = exported(omni(codec, tmp_path / "work"), tmp_path / "export")
    folder = OmniMiniFolder(tmp_path / "export")
    assert folder.layout() == LAYOUT
    assert folder.config() == run.model.config
    assert folder.config().transformer == OMNI
    assert folder.codec().config == OMNI_CODEC
    described = json.loads((tmp_path / "export" / "config.json").read_text())
    assert described["model_type"] == "omnivoice"
    assert described["llm_config"]["vocab_size"] == len(VOCABULARY.phones) ** 2
    assert (tmp_path / "export" / CODEC_FOLDER / "model.safetensors").is_file()

    network = folder.network()
    text = torch.randint(LAYOUT.tokens, (1, 9))
    codes = torch.randint(OMNI_CODEC.codes + 1, (1, OMNI_CODEC.codebooks, 9))
    with torch.no_grad():
        ours, theirs = run.average.module(text, codes, 5), network(text, codes, 5)
    torch.testing.assert_close(ours, theirs, atol=2e-2, rtol=2e-2)


# --- Canvases ---------------------------------------------------------------------------------------------------------
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


def test_utterances_follow_each_other_and_positions_begin_anew():
    prompt, utterance = spoken(3, 1), spoken(5, 2)
    batch = Joined.of([[prompt, utterance], [spoken(6, 3)]])
    assert torch.equal(batch.text[0], torch.from_numpy(np.concatenate([prompt.phones, utterance.phones])).long())
    assert torch.equal(batch.codes[0, :, :3], torch.from_numpy(prompt.codes.T).long())
    assert batch.prompts.tolist() == [3, 0]
    assert batch.inside.sum(1).tolist() == [8, 6]
    canvases = layer(joined(), MASK, 0)
    frames = canvases.text.shape[1]
    assert canvases.positions.tolist() == [*range(frames), *range(frames)]


def test_canvases_hide_and_show_what_they_should():
    batch = joined()
    canvases = draw(batch, MASK, replace(PLAIN, begun=0.5, ended=0.5), chance())
    allowed = batch.inside & (torch.arange(batch.text.shape[1]) >= batch.prompts[:, None])
    assert not (canvases.hidden & ~allowed[:, None]).any()
    assert canvases.hidden.flatten(1).any(1).all(), "every item has something to say"
    assert torch.equal(canvases.codes == MASK, canvases.hidden)
    assert torch.equal(canvases.spoken, batch.codes)
    assert torch.equal(canvases.codes[~canvases.hidden], batch.codes[~canvases.hidden])
    canvases = draw(batch, MASK, replace(PLAIN, text_dropped=1.0), chance())
    frames = batch.text.shape[1]
    text, canvas = canvases.seen[:, :frames], canvases.seen[:, frames:]
    assert not text.any()
    assert torch.equal(canvas, batch.inside & (torch.arange(frames) >= batch.prompts[:, None]))
    told = draw(batch, MASK, PLAIN, chance())
    assert torch.equal(told.seen, batch.inside.repeat(1, 2))
    canvases = layer(batch, MASK, 2)
    assert not canvases.hidden[:, :2].any()
    after_prompt = batch.inside & (torch.arange(batch.text.shape[1]) >= batch.prompts[:, None])
    for codebook in (2, 3):
        assert torch.equal(canvases.hidden[:, codebook], after_prompt)


# --- Moving codebooks -------------------------------------------------------------------------------------------------
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
