"""The decoder of natural speech by itself and as a vocoder; see also ``tests/parity/test_parity_natural.py``."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile
import torch
from torch import Tensor

from paretone.audio.mel import MelFrontEnd
from paretone.audio.resampling import resample
from paretone.measure.roofline.clock import counted
from paretone.models.catalogue import voice
from paretone.models.loading import load_vocoder
from paretone.models.minis.natural_decoder import (
    BINS,
    BLOCKS,
    FORMANT,
    HIDDEN,
    HOP,
    INNER,
    LATENT,
    LEVEL,
    LEVEL_MEAN,
    LEVEL_SCALE,
    PITCH,
    PITCH_MEAN,
    PITCH_SCALE,
    SAMPLE_RATE,
    VOICE,
    VOICING,
    WINDOW,
    NaturalDecoder,
    moved_magnitudes,
    moved_phases,
)
from paretone.models.minis.natural_vocoder import (
    GROUP_HOP,
    GROUPED,
    GroupedCodec,
    LatentVocoder,
    MelReader,
    MelReaderConfig,
    StreamedNatural,
)
from paretone.models.minis.speaking import NaturalVoice, VoiceReader
from paretone.models.voices import shipped_voices
from paretone.paths import resource
from tests.tools.natural_voices import VOICES, NamedVoice
from tests.workload import crossed, workload


def voice_frames(pitch: float, formant: float, count: int = 40) -> torch.Tensor:
    frames = torch.randn(count, VOICE, generator=torch.Generator().manual_seed(0))
    frames[:, VOICING] = torch.where(torch.arange(count) % 3 > 0, 1.0, -1.0)
    frames[:, PITCH] += pitch
    frames[:, FORMANT], frames[:, LEVEL] = formant, 0.0
    return frames


def test_what_is_said_does_not_say_who_says_it():
    one, other = voice_frames(0.5, -1.0), voice_frames(-1.5, 0.5)
    said = NaturalVoice.of(one).said(one)
    torch.testing.assert_close(said, NaturalVoice.of(other).said(other))
    torch.testing.assert_close(NaturalVoice.of(other).frames(said), other)


@pytest.fixture(scope="module")
def reader() -> VoiceReader:
    return VoiceReader()


@pytest.mark.parametrize("named", VOICES, ids=lambda named: named.name)
def test_formants_of_the_named_voices_are_read(reader: VoiceReader, named: NamedVoice) -> None:
    samples, rate = soundfile.read(voice(named.name).audio, dtype="float32")
    assert reader.formant_scale(samples, rate) == pytest.approx(named.formant, abs=0.006)


@pytest.mark.parametrize("rate", [16_000, 44_100])
@pytest.mark.parametrize("name", ["clara"])
def test_the_rate_of_a_recording_makes_little_difference(reader: VoiceReader, name: str, rate: int) -> None:
    samples, own = soundfile.read(voice(name).audio, dtype="float32")
    other = reader.formant_scale(resample(samples, own, rate), rate)
    assert other == pytest.approx(reader.formant_scale(samples, own), abs=0.012), "voices are 0.02 and more apart"


@pytest.fixture(scope="module")
def codec() -> GroupedCodec:
    vocoder = load_vocoder(resource("models", "natural-vocoder"), torch.device("cpu"))
    assert isinstance(vocoder, LatentVocoder)
    return GroupedCodec(vocoder)


@pytest.mark.parametrize("voice", workload(shipped_voices(), shipped_voices()[:2]), ids=lambda one: one.id)
def test_a_shipped_voice_comes_back(codec: GroupedCodec, voice) -> None:
    samples = torch.from_numpy(soundfile.read(voice.audio, dtype="float32")[0])[:48_000]
    mel = MelFrontEnd()(samples)
    groups = codec.encode(mel)
    assert groups.shape == (1, len(samples) // GROUP_HOP, GROUPED)
    copy = codec(groups, 0)
    frames = min(len(copy.mel), mel.shape[1])
    assert (torch.from_numpy(copy.mel[:frames]) - mel[0, :frames]).abs().mean() < 0.6


def test_speech_after_a_prompt_is_decoded_as_if_with_it(codec: GroupedCodec) -> None:
    samples = torch.from_numpy(soundfile.read(shipped_voices()[0].audio, dtype="float32")[0])[:48_000]
    groups = codec.encode(MelFrontEnd()(samples))
    whole, after = codec(groups, 0), codec(groups, 40)
    assert len(after.samples) == len(whole.samples) - 40 * GROUP_HOP
    # The phase of the pulses and the noise differ, and so do the samples.
    levels = [torch.from_numpy(one.mel[-len(after.mel) + 4 :]) for one in (whole, after)]
    assert (levels[0] - levels[1]).abs().mean() < 0.35


SMALL = MelReaderConfig(width=16, inner_width=24, layers=2)


@pytest.fixture(scope="module")
def vocoder() -> LatentVocoder:
    torch.manual_seed(1)
    return LatentVocoder(MelReader(SMALL).eval(), NaturalDecoder.load())


@pytest.fixture(scope="module")
def decoder() -> NaturalDecoder:
    return NaturalDecoder.load()


def latents(frames: int, hertz: float = 200.0, columns: int = LATENT) -> torch.Tensor:
    """A steady vowel with some movement, unvoiced in its last third."""
    draw = torch.Generator().manual_seed(frames)
    made = 0.3 * torch.randn(frames, columns, generator=draw).cumsum(0).clamp(-3, 3)
    made[:, PITCH] = (np.log(hertz) - PITCH_MEAN) / PITCH_SCALE
    made[:, VOICING] = torch.where(torch.arange(frames) < 2 * frames / 3, 1.0, -1.0)
    if columns == VOICE:
        made[:, FORMANT:] = 0.1 * torch.randn(frames, 2, generator=draw)
    return made


@pytest.mark.parametrize(("size", "frames", "columns"), crossed([1, 16, 1000], [2, 5, 60], [LATENT, VOICE]))
def test_pieces_give_what_the_whole_gives(decoder: NaturalDecoder, size: int, frames: int, columns: int):
    made = latents(frames, columns=columns)
    whole, streamed = decoder.decode(made), StreamedNatural(decoder)
    pieces = [streamed.push(piece) for piece in made.split(size)]
    joined = torch.cat([*pieces, streamed.finish()])
    assert len(joined) == len(whole) == frames * HOP
    torch.testing.assert_close(joined, whole, atol=2e-5 * max(1.0, float(whole.abs().max())), rtol=0)


def test_sound_comes_fourteen_frames_after_its_latents(decoder: NaturalDecoder):
    streamed = StreamedNatural(decoder)
    assert len(streamed.push(latents(60))) == (60 - 14) * HOP


def test_pitch_scale_moves_the_harmonics_and_formant_scale_the_envelope(decoder: NaturalDecoder):
    made = latents(120)
    made[:, VOICING], made[1:, :32] = 1.0, made[:1, :32]
    lower = made.clone()
    lower[:, PITCH] = (np.log(160.0) - PITCH_MEAN) / PITCH_SCALE
    torch.testing.assert_close(decoder.decode(made, pitch_scale=0.8), decoder.decode(lower), atol=1e-4, rtol=1e-3)
    spectra = decoder.network(decoder.space.hidden(made).T[None])
    warped = spectra.warped(torch.full((120,), 0.5))
    torch.testing.assert_close(warped.harmonic[:, :300], spectra.harmonic[:, :600:2])


def test_a_sound_keeps_its_form_at_another_formant_scale():
    """A ringing that begins 100 samples late, in a filter of the pulses and in a frame: all of it comes faster."""
    seconds = torch.arange(WINDOW) / SAMPLE_RATE

    def ringing(at: Tensor) -> Tensor:
        return torch.where(at >= 0, torch.sin(2 * torch.pi * 2000 * at) * torch.exp(-at / 0.002), 0.0)

    late = 100 / SAMPLE_RATE
    for centre in (0, WINDOW // 2):
        spectrum = torch.fft.rfft(ringing(seconds - late).roll(centre))[None]
        for scale in (0.95, 1.004, 1.01, 1.05):
            scales, expected = torch.full((1,), scale), ringing(seconds * scale - late)
            magnitudes = moved_magnitudes(spectrum.abs().log(), scales).exp()
            moved = torch.polar(magnitudes, moved_phases(spectrum, scales, centre))
            heard = torch.fft.irfft(moved, WINDOW)[0].roll(-centre) * scale
            # Phases between bins, as magnitudes are, or left where they are: 0.04 to 4.
            assert float((heard - expected).square().sum() / expected.square().sum()) < 0.02


def test_voice_frames_carry_formant_scale_and_level(decoder: NaturalDecoder):
    made = latents(40, columns=VOICE)
    made[:, LEVEL] = -LEVEL_MEAN / LEVEL_SCALE
    made[:, FORMANT] = (1.0 - 0.985) / 0.04
    torch.testing.assert_close(decoder.decode(made), decoder.decode(made[:, :LATENT]), atol=1e-4, rtol=1e-3)
    louder = made.clone()
    louder[:, LEVEL] += np.log(0.5) / LEVEL_SCALE
    assert float(decoder.decode(louder).square().mean()) < float(decoder.decode(made).square().mean())


def test_its_operations_are_counted_as_those_of_other_vocoders(decoder: NaturalDecoder):
    """By the operators that run, as the roofline counts every decoder."""
    made = latents(100)
    launches, work = counted(lambda: decoder.decode(made))
    products = 2 * 100 * (BLOCKS * 2 * HIDDEN * INNER + HIDDEN * 5 * BINS)
    convolutions = 2 * 100 * BLOCKS * 7 * HIDDEN
    to_hidden = 2 * 100 * 32 * HIDDEN
    assert launches > 50
    assert work.operations == pytest.approx(products + convolutions + to_hidden, rel=0.01)
    assert work.bytes > 4 * (BLOCKS * 2 * HIDDEN * INNER + HIDDEN * 5 * BINS)


def test_a_formant_scale_that_is_no_number_gives_spectra_that_are_none(decoder: NaturalDecoder):
    frames = torch.zeros(20, VOICE)
    frames[10:, FORMANT] = torch.nan
    samples = decoder.decode(frames)
    assert samples[: 4 * HOP].isfinite().all()
    assert samples[-4 * HOP :].isnan().any()
    frames[10:, FORMANT] = -100.0
    assert decoder.decode(frames).isfinite().all()
