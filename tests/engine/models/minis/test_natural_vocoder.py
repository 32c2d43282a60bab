from __future__ import annotations

import pytest
import soundfile
import torch

from paretone.audio.mel import MelFrontEnd
from paretone.audio.resampling import resample
from paretone.models.catalogue import voice
from paretone.models.loading import load_vocoder
from paretone.models.minis.natural_decoder import (
    FORMANT,
    LEVEL,
    LEVEL_MEAN,
    LEVEL_SCALE,
    PITCH,
    VOICE,
    VOICING,
    NaturalDecoder,
)
from paretone.models.minis.natural_vocoder import (
    GROUP_HOP,
    GROUPED,
    GroupedCodec,
    LatentVocoder,
    MelReader,
    MelReaderConfig,
    at_latent_frames,
    latent_frames,
)
from paretone.models.minis.speaking import NaturalVoice, VoiceReader
from paretone.models.voices import shipped_voices
from paretone.paths import resource
from tests.tools.natural_voices import VOICES, NamedVoice
from tests.workload import workload


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


def test_the_last_latent_frame_is_the_first_that_reaches_the_last_mel_frame():
    for frames in range(1, 200):
        last = latent_frames(frames) - 1
        assert last * 300 >= (frames - 1) * 256 > (last - 1) * 300


def test_a_stretch_is_what_the_whole_has_there():
    mel = torch.randn(1, 3, 90)
    whole = at_latent_frames(mel, 0, latent_frames(90))
    begin = 20 * 75 // 64
    torch.testing.assert_close(at_latent_frames(mel[:, :, begin:], 20, 30, begin), whole[:, :, 20:50])


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


def test_what_is_read_is_heard_where_and_as_loud_as_it_is():
    """A reader with constant output: a steady vowel at the teacher's level, and half of it."""
    reader = MelReader(SMALL).eval()
    with torch.no_grad():
        reader.out.weight.zero_()
        reader.out.bias.zero_()
        reader.out.bias[VOICING] = 1.0
        reader.out.bias[PITCH] = 0.2
    vocoder = LatentVocoder(reader, NaturalDecoder.load())
    loud = vocoder.decode(torch.zeros(1, 100, 95))
    with torch.no_grad():
        reader.out.bias[LEVEL] = float(torch.tensor(0.5).log()) / LEVEL_SCALE
    quiet = vocoder.decode(torch.zeros(1, 100, 95))
    assert reader.out.out_features == VOICE
    assert LEVEL_MEAN > 0
    ratio = float(quiet.square().mean().sqrt() / loud.square().mean().sqrt())
    assert ratio == pytest.approx(0.5, abs=0.1)
    mel = MelFrontEnd()(loud)
    assert mel.shape == (1, 95, 100)
