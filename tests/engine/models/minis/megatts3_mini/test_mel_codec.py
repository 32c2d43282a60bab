from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.audio.mel import MelFrontEnd
from engine.errors import CheckpointError
from engine.models.minis.megatts3_mini.mel_codec import CONFIG_FILE, WEIGHT_FILE, MelCodec, MelCodecConfig
from engine.paths import resource
from engine.training.recipes.mel_codec import export_codec
from tests.engine.training.toy_corpus import toy_clip

SMALL = MelCodecConfig(width=32, inner_width=48, frame_layers=1, latent_layers=1)


def small_codec() -> MelCodec:
    torch.manual_seed(0)
    return MelCodec(SMALL).eval()


@pytest.mark.parametrize(("frames", "latents"), [(4, 1), (8, 2), (9, 3), (11, 3), (12, 3)])
def test_a_latent_stands_for_four_frames_and_the_last_is_filled_up(frames: int, latents: int):
    codec = small_codec()
    mel = torch.randn(2, frames, 100)
    z = codec.encode(mel)
    assert z.shape == (2, latents, 32)
    assert codec.decode(z).shape == (2, 4 * latents, 100)
    filled = torch.cat([mel, mel[:, -1:].expand(-1, 4 * latents - frames, -1)], dim=1)
    torch.testing.assert_close(codec.encode(filled), z)


@pytest.mark.parametrize("config", [SMALL, MelCodecConfig(width=32, inner_width=48)])
def test_what_follows_a_prompt_is_decoded_without_it(config: MelCodecConfig):
    torch.manual_seed(1)
    codec = MelCodec(config).eval()
    z = torch.randn(1, 40, 32)
    whole = codec.decode(z)
    for prompt in (0, 1, codec.margin, codec.margin + 1, 39):
        torch.testing.assert_close(codec.decode(z, prompt), whole[:, 4 * prompt :], atol=1e-5, rtol=1e-5)
    # The margin is what is needed and no more: the latent at its far end matters, the one before it does not.
    for distance, matters in ((codec.margin, True), (codec.margin + 1, False)):
        changed = z.clone()
        changed[:, 30 - distance] += 100
        assert torch.equal(codec.decode(changed)[:, 4 * 30 :], whole[:, 4 * 30 :]) != matters


def test_statistics_of_the_mel_cancel_out():
    codec = small_codec()
    mel = torch.randn(1, 16, 100)
    z = codec.encode(mel)
    made = codec.decode(z)
    codec.mel_mean.fill_(-4.0)
    codec.mel_scale.fill_(2.5)
    torch.testing.assert_close(codec.encode(2.5 * mel - 4.0), z, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(codec.decode(z), 2.5 * made - 4.0, atol=1e-5, rtol=1e-4)


def test_an_exported_codec_is_loaded_again_in_full_precision(tmp_path: Path):
    codec = small_codec()
    codec.encoder["normalise"].running_mean.uniform_(-0.5, 0.5)
    export_codec(tmp_path, codec)
    loaded = MelCodec.load(tmp_path)
    assert loaded.config == SMALL
    assert not loaded.training
    mel = torch.randn(1, 12, 100)
    torch.testing.assert_close(loaded.encode(mel), codec.encode(mel), atol=1e-2, rtol=1e-2)
    assert {value.dtype for value in loaded.state_dict().values() if value.is_floating_point()} == {torch.float32}


def test_a_folder_without_a_codec_is_named(tmp_path: Path):
    with pytest.raises(CheckpointError, match=CONFIG_FILE):
        MelCodec.load(tmp_path)
    (tmp_path / CONFIG_FILE).write_text("hop_size: 240\n", encoding="utf-8")
    with pytest.raises(CheckpointError, match="mel_codec"):
        MelCodec.load(tmp_path)
    export_codec(tmp_path, small_codec())
    (tmp_path / CONFIG_FILE).write_text(
        (tmp_path / CONFIG_FILE).read_text(encoding="utf-8").replace("width: 32", "width: 40"), encoding="utf-8"
    )
    with pytest.raises(CheckpointError, match=WEIGHT_FILE):
        MelCodec.load(tmp_path)


def test_the_bundled_codec_keeps_speech_and_its_latents_are_plain():
    folder = resource("models", "megatts3-mini")
    codec = MelCodec.load(folder / "wavvae")
    assert codec.config == replace(MelCodecConfig(), width=192, inner_width=384)
    import soundfile

    latents = []
    for voice in ("slt", "rms"):
        samples, _ = soundfile.read(folder / "voices" / f"{voice}.wav", dtype="float32")
        mel = MelFrontEnd()(torch.from_numpy(samples))[:, : len(samples) // 256]
        z = codec.encode(mel)
        assert float((codec.decode(z)[:, : mel.shape[1]] - mel).abs().mean()) < 0.3
        latents.append(z[0])
    every = torch.cat(latents)
    assert float(every.mean(0).abs().max()) < 0.6
    assert 0.7 < float(every.std(0).mean()) < 1.3
    # What is no speech is not kept: the figure above is no accident of an easy measure.
    toy = torch.from_numpy(toy_clip("slt", 1, 120).mel).float()[None]
    assert float((codec.decode(codec.encode(toy)) - toy).abs().mean()) > 0.3
