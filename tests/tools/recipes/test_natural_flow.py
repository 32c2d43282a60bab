"""Recipes of the models of natural speech that know no tokens: flow, and what is around all models: tokens, codec,
vocoder."""

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from paretone.audio.mel import MelFrontEnd
from paretone.audio.resampling import resample
from paretone.errors import CheckpointError
from paretone.front_end.phones import PHONES
from paretone.models.f5.dit import DiT
from paretone.models.files.checkpoints import load_strictly, read_weights
from paretone.models.megatts3.checkpoint import TRANSFORMER
from paretone.models.megatts3.config import LATENT_STRIDE
from paretone.models.minis.megatts3_mini import MegaMiniFolder
from paretone.models.minis.natural_decoder import LATENT, LEVEL, VOICE
from paretone.models.minis.natural_vocoder import GROUPED, MelReader, MelReaderConfig, grouped, latent_frames, ungrouped
from paretone.models.minis.speaking import WEIGHTS
from paretone.models.networks.quantised_mel import ResidualCodec, SpeechTokenizer, read_quantised_mel
from paretone.paths import resource
from paretone.training.features import Example, collate
from paretone.training.flow_matching import FlowMatchingOptions, draw_problem
from paretone.training.megatts3_flow import latent_clip
from paretone.training.natural_corpus import voice_frames
from paretone.training.spoken_tokens import frame_phones
from tests.engine.awake import awake
from tests.engine.training.learning import exported, same_weights, whole_and_resumed
from tests.engine.training.toy_natural import toy_natural_clip, toy_natural_corpus
from tests.tools.recipes.natural_codecs import (
    CODEC,
    TOKENIZER,
    NaturalCodec,
    NaturalTokenizer,
    NaturalTokenOptions,
    NaturalVocoder,
    VocoderOptions,
    band_limited,
    centres,
    mel_at,
)
from tests.tools.recipes.natural_f5 import (
    ARCHITECTURE,
    MelNormalisation,
    NaturalF5,
    NaturalF5Options,
    predicted_velocity,
)
from tests.tools.recipes.natural_megatts3 import ARCHITECTURE as MEGA_ARCHITECTURE
from tests.tools.recipes.natural_megatts3 import NaturalMega, NaturalMegaOptions

SMALL = replace(ARCHITECTURE, dim=64, depth=2, heads=2, dim_head=32, text_dim=32, conv_layers=1)
CPU = torch.device("cpu")
QUICK = NaturalF5Options(
    frames=300,
    matrix_rate=0.05,
    other_rate=5e-3,
    warm_up=5,
    average_decay=0.9,
    validation_items=4,
    shortest_prompt=10,
    longest_prompt=40,
)


def recipe(options: NaturalF5Options = QUICK) -> NaturalF5:
    return NaturalF5(toy_natural_corpus(), CPU, options, SMALL)


def test_of_pairs_an_excerpt_of_the_first_clip_is_seen_before_all_of_the_second():
    run = recipe()
    first, second, alone = toy_natural_corpus().training[:3]
    batch = run.laid_out([[first, second], [alone]])
    join = int(batch.joins[0])
    assert QUICK.shortest_prompt <= join <= QUICK.longest_prompt
    assert batch.lengths.tolist() == [join + second.frames, alone.frames]
    seen = batch.mel[0].numpy()
    np.testing.assert_array_equal(seen[join : join + second.frames], second.mel.astype(np.float32))
    starts = range(first.frames - join + 1)
    assert any(np.array_equal(seen[:join], first.mel[start : start + join]) for start in starts)
    np.testing.assert_array_equal(batch.ids[0, join : join + second.frames], run.seen([second])[0].ids)


def test_all_parameters_learn():
    run = recipe(replace(QUICK, warm_up=0))
    before = {name: value.clone() for name, value in run.model.named_parameters()}
    for number in range(1, 4):
        run.step(number, 0.1)
    assert [name for name, value in run.model.named_parameters() if torch.equal(value, before[name])] == []


def test_the_export_is_an_official_folder_laid_out_like_the_bundled_one(tmp_path: Path):
    run = recipe()
    run.step(1, 0.1)
    awake(run.average.module)
    run.export(tmp_path)
    weights = read_weights(tmp_path / "model.safetensors")
    assert int(weights.pop("step")) == 1
    assert bool(weights.pop("initted")) is True
    prefix = "ema_model.transformer."
    assert all(name.startswith(prefix) for name in weights)
    assert weights[prefix + "rotary_embed.inv_freq"].dtype == torch.float32
    assert weights[prefix + "proj_out.weight"].dtype == torch.float16
    load_strictly(DiT(SMALL), {name.removeprefix(prefix): value.float() for name, value in weights.items()}, "export")
    assert (tmp_path / "vocab.txt").read_bytes() == resource("models", "f5-mini", "vocab.txt").read_bytes()
    ours, bundled = (
        yaml.safe_load((folder / "model.yaml").read_text(encoding="utf-8"))["model"]
        for folder in (tmp_path, resource("models", "f5-mini"))
    )
    assert ours["arch"].pop("dim") == SMALL.dim
    for sizes in ("dim", "depth", "heads", "text_dim", "conv_layers"):
        ours["arch"].pop(sizes, None), bundled["arch"].pop(sizes)
    assert ours == bundled


def test_a_run_starts_from_an_exported_model_and_aligns_as_at_the_end(tmp_path: Path):
    of_layout = replace(SMALL, heads=1, dim_head=64)
    first = exported(NaturalF5(toy_natural_corpus(), CPU, QUICK, of_layout), tmp_path)
    second = NaturalF5(toy_natural_corpus(), CPU, QUICK, of_layout, initial=tmp_path)
    assert second.describe()["initial_weights"] != first.describe()["initial_weights"] == "random"
    assert second.options.alignment.exact_until == 0.0
    for name, value in first.average.module.state_dict().items():
        torch.testing.assert_close(second.model.state_dict()[name], value, atol=2e-2, rtol=2e-2)
    before = second.model.proj_out.weight.clone()
    second.step(1, 0.1)
    assert not torch.equal(second.model.proj_out.weight, before)
    with pytest.raises(CheckpointError, match="is not of the model that voice-f5 makes"):
        NaturalF5(toy_natural_corpus(), CPU, QUICK, replace(of_layout, ff_mult=3), initial=tmp_path)


MEGA_SMALL = replace(
    MEGA_ARCHITECTURE,
    dim=64,
    layers=2,
    heads=1,
    ff_hidden=96,
    local_cond=32,
    phone_layers=1,
    phone_heads=2,
    phone_ff_hidden=64,
)
MEGA_QUICK = NaturalMegaOptions(
    frames=200, matrix_rate=0.05, other_rate=5e-3, warm_up=5, average_decay=0.9, validation_items=4
)


def mega(options: NaturalMegaOptions = MEGA_QUICK) -> NaturalMega:
    return NaturalMega(toy_natural_corpus(), CPU, options, MEGA_SMALL)


def test_groups_hold_everything_but_the_level_and_frames_name_their_phone():
    clip = toy_natural_clip(3, 1, 61)
    frames = voice_frames(clip)
    groups = grouped(voice_frames(clip))
    assert groups.shape == (30, GROUPED)
    torch.testing.assert_close(ungrouped(groups)[:, :LEVEL], frames[:60, :LEVEL])
    assert not ungrouped(groups)[:, LEVEL].any()
    clip = toy_natural_clip(0, 2)
    seen = latent_clip(clip)
    assert len(seen.phones_of_frames) == LATENT_STRIDE * seen.frames
    middles = (np.arange(len(seen.phones_of_frames)) + 0.5) / 160
    for middle, place in zip(middles, seen.phones_of_frames, strict=True):
        name, start, end = clip.phones[place - 1]
        assert start <= middle < end
        assert PHONES[seen.phones[place - 1] - 1] == name


def test_the_export_is_read_as_the_transformer_of_a_bundled_folder(tmp_path: Path):
    run = mega()
    run.step(1, 0.1)
    awake(run.average.module)
    run.export(tmp_path)
    assert (tmp_path / TRANSFORMER / WEIGHTS).is_file()
    assert MegaMiniFolder.is_at(tmp_path)
    backbone = MegaMiniFolder(tmp_path).backbone()
    assert backbone.config == MEGA_SMALL
    assert (tmp_path / "vocab.txt").read_text(encoding="utf-8").split() == list(PHONES)


# --- Tokens, codec and vocoder ----------------------------------------------------------------------------------------
SMALL_TOKENIZER = replace(TOKENIZER, width=48, inner_width=64, encoder_frame_layers=1, decoder_frame_layers=1)
SMALL_CODEC = replace(CODEC, width=48, inner_width=64, encoder_frame_layers=1, decoder_frame_layers=1, codes=16)
QUICK_CODEC = NaturalTokenOptions(frames=40, batch=4, warm_up=5, other_rate=5e-3, average_decay=0.9, validation_items=4)


def tokenizer(options: NaturalTokenOptions = QUICK_CODEC) -> NaturalTokenizer:
    return NaturalTokenizer(toy_natural_corpus(), CPU, options, SMALL_TOKENIZER)


def codec(options: NaturalTokenOptions = QUICK_CODEC) -> NaturalCodec:
    return NaturalCodec(toy_natural_corpus(), CPU, options, SMALL_CODEC)


@pytest.mark.parametrize(("recipe", "kind"), [(tokenizer, SpeechTokenizer), (codec, ResidualCodec)])
def test_the_export_is_a_codec_that_models_load(recipe: type, kind: type, tmp_path: Path):
    run = exported(recipe(), tmp_path)
    loaded = read_quantised_mel(tmp_path, kind)
    said = torch.randn(1, 16, LATENT)
    with torch.no_grad():
        torch.testing.assert_close(loaded.latents(said), run.average.module.codec.latents(said), atol=2e-2, rtol=2e-2)
    assert loaded.encode(said).shape[1] == 16 // loaded.config.stride


SMALL_READER = MelReaderConfig(width=48, inner_width=64, layers=1)
QUICK_READER = VocoderOptions(frames=40, batch=4, warm_up=5, other_rate=5e-3, average_decay=0.9, validation_items=4)


def vocoder(options: VocoderOptions = QUICK_READER) -> NaturalVocoder:
    return NaturalVocoder(toy_natural_corpus(), CPU, options, SMALL_READER)


def test_an_excerpt_is_the_mel_at_the_frames_of_the_latents():
    clip = toy_natural_clip(0, 3, 90)
    count = latent_frames(clip.frames)
    whole = mel_at(clip, 0, count)
    for first in (0, 1, 17, count - 41):
        torch.testing.assert_close(mel_at(clip, first, 40), whole[:, first : first + 40])
    assert voice_frames(clip).shape == (90, VOICE)
    clip = toy_natural_corpus().training[3]
    found = frame_phones(clip)
    assert len(found) == len(clip.latents)
    assert len(set(found.tolist())) > 5


def test_the_mel_of_a_low_passed_sound_is_the_limited_mel():
    """By a real filter: resampling to 16 kHz and back leaves nothing above 8 kHz."""
    samples = np.random.default_rng(0).normal(0, 0.1, 24_000).astype(np.float32)
    front_end = MelFrontEnd()
    lacking = resample(resample(samples, 24_000, 16_000), 16_000, 24_000)
    whole, heard = (front_end(torch.from_numpy(one[:23_000])[None]).mT for one in (samples, lacking))
    made = band_limited(whole, *torch.tensor([[7_400.0], [600.0], [14.0]]))
    clear = (centres(100) < 7_000) | (centres(100) > 8_600)
    assert (made - heard)[:, clear, 4:-4].abs().mean() < 0.3
    assert (whole - heard)[:, clear, 4:-4].abs().mean() > 1


def test_a_run_starts_from_exported_weights(tmp_path: Path):
    first = vocoder()
    first.step(1, 0.1)
    first.export(tmp_path)
    second = NaturalVocoder(toy_natural_corpus(), CPU, QUICK_READER, initial=tmp_path)
    assert same_weights(second.model, MelReader.load(tmp_path))
    assert second.describe()["initial_weights"] != first.describe()["initial_weights"] == "random"
    before = second.model.out.weight.clone()
    second.step(1, 0.1)
    assert not torch.equal(second.model.out.weight, before)


@pytest.mark.parametrize("make", [recipe, mega, tokenizer, codec, vocoder])
def test_a_resumed_run_ends_with_the_same_bits(make: type, tmp_path: Path):
    whole, resumed = whole_and_resumed(make, tmp_path)
    assert same_weights(resumed.model, whole.model)
    assert same_weights(resumed.average.module, whole.average.module)


def test_the_export_reads_mels_as_the_averaged_weights_do(tmp_path: Path):
    run = exported(vocoder(), tmp_path)
    loaded, mel = MelReader.load(tmp_path), torch.from_numpy(toy_natural_clip(0, 1).mel).float().T[None]
    assert loaded.config == SMALL_READER
    with torch.no_grad():
        made = loaded(mel)
        torch.testing.assert_close(made, run.average.module(mel), atol=2e-2, rtol=2e-2)
    assert made.shape == (1, latent_frames(mel.shape[2]), VOICE)


SMALL_FLOW = replace(ARCHITECTURE, dim=64, depth=2, heads=2, dim_head=32, text_dim=32, conv_layers=1)


def test_normalised_mels_fold_into_the_model():
    torch.manual_seed(0)
    clips = toy_natural_corpus().training
    normalisation = MelNormalisation.of([clip.mel for clip in clips])
    model = DiT(SMALL_FLOW).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    before = copy.deepcopy(model.state_dict())
    seen = [Example(one.voice, torch.randint(9, (one.frames,)).numpy(), one.mel) for one in clips[:3]]
    batch = collate([seen[:2], seen[2:]])
    problem = draw_problem(batch, FlowMatchingOptions(), torch.Generator().manual_seed(1))
    inside = normalisation.velocity(predicted_velocity(model, batch.ids, normalisation.problem(problem)))
    outside = predicted_velocity(normalisation.folded(model), batch.ids, problem)
    torch.testing.assert_close(outside[batch.mask], inside[batch.mask], atol=1e-3, rtol=1e-3)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    again = normalisation.unfolded(normalisation.folded(model)).state_dict()
    for name, value in before.items():
        torch.testing.assert_close(again[name], value, atol=1e-5, rtol=1e-4)
