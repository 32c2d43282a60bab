"""MegaTTS 3 outside its networks, against the official code: tables, tokens, splitting, durations, cross-fade."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch import Tensor

from paretone.models.f5.text import split
from paretone.models.files.checkpoints import load_strictly
from paretone.models.files.config_file import ConfigFile
from paretone.models.megatts3.adapter import segment_fader
from paretone.models.megatts3.aligner import END, LONGEST, START, Aligner, AlignerConfig, read_alignment
from paretone.models.megatts3.duration_model import FRAMES_MULTIPLE, DurationConfig, DurationModel, rotated
from paretone.models.megatts3.front_end import ENGLISH_BYTES, split_chinese
from paretone.models.megatts3.phones import (
    PHONES,
    TONES,
    durations_of_phones,
    frames_of_phones,
    joined,
    phone_number,
    separated,
)
from paretone.models.megatts3.wavvae import WavVAE, WavVAEConfig
from paretone.models.networks.layers import load_normalised
from tests.parity.fixtures import Fixture, assert_close, fixtures, full_precision

SEGMENTS = re.compile(
    r"(?P<count>\d+) segments sin\(n\*(?P<step>[\d.]+)\*\(i\+1\)\), "
    r"lengths (?P<first>\d+)\+(?P<more>\d+)i, sr (?P<rate>\d+)"
)
"""The rule of the fixture's cross-fade, which it writes down in words only."""


def is_front_end(description: dict) -> bool:
    return "phone_vocab_size" in description


front_end = pytest.mark.parametrize("fixture", fixtures("dit", is_front_end))


@front_end
def test_parity_phones_and_tones(fixture: Fixture) -> None:
    said = fixture.description
    assert (len(PHONES), len(TONES)) == (said["phone_vocab_size"], said["tone_vocab_size"])
    assert {name: phone_number(name) for name in said["phone_id_examples"]} == said["phone_id_examples"]
    assert {str(number): name for number, name in enumerate(TONES)} == said["tone_id_to_token"]


@front_end
def test_parity_tokens_of_phones(fixture: Fixture) -> None:
    said = fixture.description["split_ph"]
    pairs = [separated(token) for token in said["in"]]
    assert [list(part) for part in zip(*pairs, strict=True)] == [said["ph"], said["tone"]]
    expected = fixture.description["map_phone_to_tokendict_back"]
    assert [START, *(joined(*pair) for pair in pairs), END] == expected


@front_end
def test_parity_tokens_of_the_aligner(fixture: Fixture) -> None:
    said = fixture.description["split_ph_timestamp"]
    alignment = read_alignment(said["in"], said["last"])
    assert (list(alignment.phones), list(alignment.tones)) == (said["ph"], said["tone"])
    assert list(alignment.durations) == said["dur"]


@front_end
def test_parity_splitting(fixture: Fixture) -> None:
    said = fixture.description
    assert split(said["texts"]["en"], ENGLISH_BYTES) == said["chunk_english_130"]
    assert split_chinese(said["texts"]["zh"]) == said["chunk_chinesev2_60"]


@front_end
def test_parity_durations_and_frames(fixture: Fixture) -> None:
    assert FRAMES_MULTIPLE == 8
    said = fixture.description
    rows, backward = said["length_regulator"], said["mel2token_to_dur"]
    # Frames were cut, as upstream cuts them to a multiple, before they were counted.
    counted = max(map(sum, backward))
    assert counted <= len(rows["mel2ph"][0])
    for durations, frames, back in zip(rows["dur"], rows["mel2ph"], backward, strict=True):
        found = frames_of_phones(durations)
        # Officially a batch, where shorter rows are filled up with 0.
        assert np.pad(found, (0, len(frames) - len(found))).tolist() == frames
        assert durations_of_phones(np.array(frames[:counted]), len(durations)).tolist() == back


@front_end
def test_parity_cross_fade(fixture: Fixture) -> None:
    said = fixture.description["combine"]
    rule = SEGMENTS.fullmatch(said["rule"])
    assert rule is not None, said["rule"]
    count, first, more, rate = (int(rule[name]) for name in ("count", "first", "more", "rate"))
    fader = segment_fader(rate)
    pushed = [
        fader.push(np.sin(np.arange(first + more * i) * float(rule["step"]) * (i + 1)).astype(np.float32))
        for i in range(count)
    ]
    joined_up = np.concatenate([*pushed, fader.finish()])
    assert len(joined_up) == said["out_len"]
    assert np.abs(joined_up[::97] - said["sample_every_97"]).max() < 1e-6


TOLERANCE = 1e-5


def is_aligner(description: dict) -> bool:
    return "n_mels" in description.get("config", {})


def config_of(sizes: dict) -> AlignerConfig:
    return AlignerConfig(
        bands=sizes["n_mels"],
        width=sizes["n_state"],
        heads=sizes["n_head"],
        layers=sizes["n_layer"],
        places=sizes["n_ctx"],
        tokens=sizes["n_text_ctx"],
        vocabulary=sizes["n_vocab"],
    )


def build_aligner(fixture: Fixture) -> Aligner:
    model = Aligner(config_of(fixture.description["config"]))
    load_strictly(model, fixture.weights, fixture.name)
    return model.eval().requires_grad_(False)


def greedy_without_cache(model: Aligner, features: torch.Tensor, longest: int) -> list[int]:
    """As upstream: the whole sequence is evaluated again for every token."""
    found = [START]
    while len(found) <= longest and found[-1] != END:
        scores = model.decoder(torch.tensor([found]), model.decoder.begin(features, len(found)))
        found.append(int(scores[0, -1].argmax()))
    return found


@pytest.mark.parametrize("fixture", fixtures("dit", is_aligner))
def test_parity_aligner(fixture: Fixture) -> None:
    full_precision()
    model, tokens = build_aligner(fixture), fixture["tokens"]
    with torch.inference_mode():
        features = model.encoder(fixture["mel"])
        assert_close(features, fixture["audio_features"], TOLERANCE, "audio features")
        longest = tokens.shape[1] - 1
        scores = model.decoder(tokens[:, :longest], model.decoder.begin(features, longest))
        assert_close(scores, fixture["logits_last"], TOLERANCE, "scores")
        assert model.tokens(fixture["mel"], longest) == tokens[0].tolist()
        # Further than the fixture goes, against the loop that evaluates everything again.
        further = model.config.tokens
        assert model.tokens(fixture["mel"], further) == greedy_without_cache(model, features, further)


@pytest.mark.parametrize("fixture", fixtures("dit", is_aligner))
def test_parity_aligner_sizes_of_the_release(fixture: Fixture) -> None:
    assert config_of(fixture.description["released"]) == AlignerConfig()
    assert LONGEST == 768


def is_duration_model(description: dict) -> bool:
    return "dur_model_type" in description.get("hparams", {})


def build_durations(fixture: Fixture) -> DurationModel:
    entries = fixture.description["hparams"] | fixture.description["config"]
    config = DurationConfig.read(ConfigFile(entries, fixture.name), entries["ph_dict_size"])
    model = DurationModel(config)
    load_strictly(model, fixture.weights, fixture.name)
    return model.eval().requires_grad_(False)


@pytest.mark.parametrize("fixture", fixtures("dit", is_duration_model))
def test_parity_duration_model(fixture: Fixture) -> None:
    full_precision()
    model = build_durations(fixture)
    phones, tones = fixture["in.ph_ref"], fixture["in.tone_ref"]
    durations = fixture["in.ctx_dur"] - 1
    with torch.inference_mode():
        assert_close(model.read_text(phones, tones), fixture["x_ling_ref"], TOLERANCE, "text of the prompt")
    prompt = model.read_prompt(phones, tones, durations)
    for number, (keys, values) in enumerate(fixture["prompt_kv"]):
        assert_close(prompt.past[number].keys, rotated(keys, 0), TOLERANCE, f"keys of layer {number}")
        assert_close(prompt.past[number].values, values, TOLERANCE, f"values of layer {number}")
    codes = model.predict(prompt, fixture["in.ph_pred"], fixture["in.tone_pred"])
    assert codes == fixture["dur_codes"][0].tolist()


@pytest.mark.parametrize("fixture", fixtures("dit", is_duration_model))
def test_parity_duration_model_outputs_before_rounding(fixture: Fixture) -> None:
    full_precision()
    model = build_durations(fixture)
    prompt = model.read_prompt(fixture["in.ph_ref"], fixture["in.tone_ref"], fixture["in.ctx_dur"] - 1)
    with torch.inference_mode():
        text = model.read_text(fixture["in.ph_pred"], fixture["in.tone_pred"])
        past, before = prompt.past, prompt.last
        for place, code in enumerate(fixture["dur_codes"][0].tolist()):
            output, past = model(torch.tensor([[before]]), text[:, place : place + 1], past)
            assert_close(output[0, 0], fixture["raw_pred"][0, place], TOLERANCE, f"output {place}")
            before = code


def build_wavvae(fixture: Fixture) -> WavVAE:
    said = fixture.description["config"]
    config = WavVAEConfig(width=2 * said["half"], channels=said["ngf"], ratios=tuple(said["ratios"]))
    model = WavVAE(config)
    load_normalised(model, fixture.weights, fixture.name)
    return model.eval().requires_grad_(False)


def is_wavvae(description: dict) -> bool:
    return "lat_up" in description.get("config", {})


@pytest.mark.parametrize("fixture", fixtures("dit", is_wavvae))
def test_parity_wavvae_every_stage(fixture: Fixture) -> None:
    full_precision()
    model = build_wavvae(fixture)
    with torch.inference_mode():
        frames = model.latent_upsampler(model.proj_to_decoder(fixture["latent"]).transpose(1, 2))
        assert_close(frames, fixture["latent_up"], TOLERANCE, "latent_up")
        stages: dict[str, Tensor] = {}
        for number, layer in enumerate(model.decoder.model_up):
            frames = layer(frames)
            stages[f"up{number}"] = frames
    compared = [name for name in fixture.names if name in stages]
    assert compared
    for name in compared:
        assert_close(stages[name], fixture[name], TOLERANCE, name)
    assert_close(model.decode(fixture["latent"])[:, None], fixture["wav"], TOLERANCE, "wav")
