"""Qwen3-TTS's speech tokenizer and speaker encoder against the official classes."""

import pytest
import torch

from paretone.models.files.checkpoints import loaded_strictly
from paretone.models.networks.incremental import Memory
from paretone.models.qwen3_tts.speaker_encoder import MEL, SpeakerConfig, SpeakerEncoder
from paretone.models.qwen3_tts.speech_tokenizer import (
    CodecDecoder,
    CodecDecoderConfig,
    CodecEncoder,
    CodecEncoderConfig,
    SpeechStream,
)
from tests.parity.fixtures import Fixture, assert_close, assert_near, cases, qwen3_fixtures

TOLERANCE = 1e-4


def decoder_of(fixture: Fixture) -> CodecDecoder:
    config = CodecDecoderConfig.read(fixture.description["config"]["decoder_config"])
    assert config.samples_per_frame == fixture.description["samples_per_frame"]
    return loaded_strictly(lambda: CodecDecoder(config), fixture.part("decoder."), fixture.name)


decoders = pytest.mark.parametrize("fixture", qwen3_fixtures("tokenizer12_decode"))


@decoders
@torch.inference_mode()
def test_parity_qwen3_decoder_step_by_step(fixture: Fixture) -> None:
    decoder, codes, memory = decoder_of(fixture), fixture["codes"].long(), Memory()
    quantised = decoder.quantised(codes)
    assert_near(quantised[0], fixture["step.quantized"], "quantised")
    x = decoder.pre_conv(quantised, memory)
    assert_near(x[0], fixture["step.pre_conv"], "pre_conv")
    x = decoder.pre_transformer(x.mT, 0, memory)
    assert_near(x[0], fixture["step.transformer"], "transformer")
    x = x.mT
    for number, (upsampling, smoothing) in enumerate(decoder.upsample):
        x = smoothing(upsampling(x, memory), memory)
        expected = fixture[f"step.upsampled.{number}"]
        assert_near(x[0, :, : expected.shape[1]], expected, f"upsampled {number}")
    for number, layer in enumerate(decoder.decoder[:-1]):
        x = layer(x) if number == len(decoder.decoder) - 2 else layer(x, memory)
        expected = fixture[f"step.decoder.{number}"]
        assert_near(x[0, :, : expected.shape[1]], expected, f"decoder {number}")


@decoders
def test_parity_qwen3_decoder_whole_and_in_parts(fixture: Fixture) -> None:
    decoder, codes = decoder_of(fixture), fixture["codes"].long()
    whole = SpeechStream(decoder).push(codes)
    assert_close(whole[0], fixture["wav"], TOLERANCE, "wav")
    for sizes in (fixture.description["stream"], [1] * codes.shape[-1]):
        stream = SpeechStream(decoder)
        parts = [stream.push(part) for part in codes.split(sizes, dim=-1)]
        # Zero look-ahead: every part brings the sound of all its frames.
        assert [one.shape[-1] for one in parts] == [size * decoder.config.samples_per_frame for size in sizes]
        assert_close(torch.cat(parts, dim=-1)[0], fixture["wav"], TOLERANCE, "wav in parts")


@decoders
def test_parity_qwen3_decoder_of_official_chunks(fixture: Fixture) -> None:
    """Upstream's chunks, with context, are reproduced; they are not the whole."""
    decoder, codes = decoder_of(fixture), fixture["codes"].long()
    chunk, context, parts = fixture.description["chunk"], fixture.description["context"], []
    for begin in range(0, codes.shape[-1], chunk):
        before = min(begin, context)
        heard = SpeechStream(decoder).push(codes[..., begin - before : begin + chunk])
        parts.append(heard[:, before * decoder.config.samples_per_frame :])
    assert_close(torch.cat(parts, dim=-1)[0], fixture["chunked.wav"], TOLERANCE, "chunked")
    assert_close(fixture["default_chunked.wav"], fixture["wav"], TOLERANCE, "fewer frames than a chunk")


encoders = pytest.mark.parametrize(
    ("fixture", "case"), cases(qwen3_fixtures("tokenizer12_encode"), lambda one: ["0", "1", "2"])
)


@encoders
def test_parity_qwen3_encoder(fixture: Fixture, case: str) -> None:
    config = CodecEncoderConfig.read(fixture.description["config"])
    encoder = loaded_strictly(lambda: CodecEncoder(config), fixture.part("encoder."), fixture.name)
    samples = fixture[f"{case}.wav"]
    with torch.inference_mode():
        embedded = encoder.embedded(samples)
        assert_near(embedded[0], fixture[f"{case}.step.encoder"], "encoder")
        transformed = encoder.transformed(embedded)
        assert_near(transformed[0].T, fixture[f"{case}.step.transformer"], "transformer")
        assert_near(encoder.downsample(transformed)[0], fixture[f"{case}.step.downsampled"], "downsampled")
    codes = encoder(samples)
    assert torch.equal(codes.T, fixture[f"{case}.codes"].long())
    assert codes.shape[-1] == -(-len(samples) // config.samples_per_frame)


@pytest.mark.parametrize("fixture", qwen3_fixtures("speaker_encoder"))
def test_parity_qwen3_speaker_encoder(fixture: Fixture) -> None:
    config = SpeakerConfig.read(fixture.description["config"])
    encoder = loaded_strictly(lambda: SpeakerEncoder(config), fixture.part("speaker_encoder."), fixture.name)
    for case in ("0", "1"):
        samples = fixture[f"{case}.wav"]
        assert_close(MEL(samples)[0].T, fixture[f"{case}.mel"], TOLERANCE, "mel")
        assert_near(encoder.of(samples), fixture[f"{case}.embedding"], "embedding")
    with torch.inference_mode():
        x, found = MEL(fixture["1.wav"]).mT, []
        for number, block in enumerate(encoder.blocks):
            x = block(x)
            found.append(x)
            assert_near(x[0], fixture[f"1.step.{number}"], f"block {number}")
        x = encoder.mfa(torch.cat(found[1:], dim=1))
        assert_near(x[0], fixture["1.step.4"], "mfa")
        assert_near(encoder.asp(x)[0], fixture["1.step.5"], "pooling")
