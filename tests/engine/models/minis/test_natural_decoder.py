"""The decoder of natural speech by itself and as a vocoder; see also ``tests/parity/test_parity_natural.py``."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from torch import Tensor

from paretone.audio.mel import MelFrontEnd
from paretone.audio.resampling import resample
from paretone.errors import CheckpointError, TextError
from paretone.front_end.phones import EDGE
from paretone.front_end.pronunciations import HowToRead
from paretone.front_end.reading import NaturalReader
from paretone.measure.roofline.clock import counted
from paretone.models import load_model
from paretone.models.base import SpeechModel, Voice
from paretone.models.catalogue import entry, voice
from paretone.models.f5.config import NATURAL_PHONES
from paretone.models.minis import natural_decoder as natural
from paretone.models.minis.megatts3_mini import phones_of_frames
from paretone.models.minis.natural_decoder import FORMANT, HOP, LATENT, LEVEL, PITCH, VOICE, VOICING, NaturalDecoder
from paretone.models.minis.natural_vocoder import GROUP_HOP, GROUPED, GroupedCodec, LatentVocoder, StreamedNatural
from paretone.models.minis.speaking import NaturalVoice, VoiceReader
from paretone.models.voices import shipped_voices
from paretone.paths import resource
from paretone.setting.setting import Setting
from paretone.speaking import synthesise
from tests.engine.awake import awake
from tests.engine.small_natural import write_recording, write_vocoder
from tests.engine.small_vocos import write_vocos
from tests.engine.training.toy_natural import toy_natural_corpus
from tests.tools.natural_voices import VOICES, NamedVoice
from tests.tools.recipes import natural_f5, natural_megatts3
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
def test_the_rate_of_a_recording_makes_little_difference(reader: VoiceReader, rate: int) -> None:
    samples, own = soundfile.read(voice("clara").audio, dtype="float32")
    other = reader.formant_scale(resample(samples, own, rate), rate)
    assert other == pytest.approx(reader.formant_scale(samples, own), abs=0.012), "voices are 0.02 and more apart"


@pytest.fixture(scope="module")
def codec() -> GroupedCodec:
    return GroupedCodec(LatentVocoder.load(resource("models", "natural-vocoder")))


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


@pytest.fixture(scope="module")
def decoder() -> NaturalDecoder:
    return NaturalDecoder.load()


def latents(frames: int, hertz: float = 200.0, columns: int = LATENT) -> torch.Tensor:
    """A steady vowel with some movement, unvoiced in its last third."""
    draw = torch.Generator().manual_seed(frames)
    made = 0.3 * torch.randn(frames, columns, generator=draw).cumsum(0).clamp(-3, 3)
    made[:, PITCH] = (np.log(hertz) - natural.PITCH_MEAN) / natural.PITCH_SCALE
    made[:, VOICING] = torch.where(torch.arange(frames) < 2 * frames / 3, 1.0, -1.0)
    if columns == VOICE:
        made[:, FORMANT:] = 0.1 * torch.randn(frames, 2, generator=draw)
    return made


@pytest.mark.parametrize(("size", "frames"), crossed([1, 16, 1000], [2, 5, 60]))
def test_pieces_give_what_the_whole_gives(decoder: NaturalDecoder, size: int, frames: int):
    made = latents(frames, columns=VOICE)
    whole, streamed = decoder.decode(made), StreamedNatural(decoder)
    pieces = [streamed.push(piece) for piece in made.split(size)]
    joined = torch.cat([*pieces, streamed.push(made[:0], last=True)])
    assert len(joined) == len(whole) == frames * HOP
    torch.testing.assert_close(joined, whole, atol=2e-5 * max(1.0, float(whole.abs().max())), rtol=0)


def test_sound_comes_fourteen_frames_after_its_latents(decoder: NaturalDecoder):
    assert len(StreamedNatural(decoder).push(latents(60, columns=VOICE))) == (60 - 14) * HOP


def test_pitch_scale_moves_the_harmonics_and_formant_scale_the_envelope(decoder: NaturalDecoder):
    made = latents(120)
    made[:, VOICING], made[1:, :32] = 1.0, made[:1, :32]
    lower = made.clone()
    lower[:, PITCH] = (np.log(160.0) - natural.PITCH_MEAN) / natural.PITCH_SCALE
    torch.testing.assert_close(decoder.decode(made, pitch_scale=0.8), decoder.decode(lower), atol=1e-4, rtol=1e-3)
    spectra = decoder.network(decoder.space.hidden(made).T[None])
    warped = spectra.warped(torch.full((120,), 0.5)).harmonic
    torch.testing.assert_close(warped[:, :300], spectra.harmonic[:, :600:2])


def test_a_sound_keeps_its_form_at_another_formant_scale():
    """A ringing that begins 100 samples late, in a filter of the pulses and in a frame: all of it comes faster."""
    seconds = torch.arange(natural.WINDOW) / natural.SAMPLE_RATE

    def ringing(at: Tensor) -> Tensor:
        return torch.where(at >= 0, torch.sin(2 * torch.pi * 2000 * at) * torch.exp(-at / 0.002), 0.0)

    late = 100 / natural.SAMPLE_RATE
    for centre in (0, natural.WINDOW // 2):
        spectrum = torch.fft.rfft(ringing(seconds - late).roll(centre))[None]
        for scale in (0.95, 1.004, 1.01, 1.05):
            scales, expected = torch.full((1,), scale), ringing(seconds * scale - late)
            magnitudes = natural.moved_magnitudes(spectrum.abs().log(), scales).exp()
            moved = magnitudes * natural.moved_phases(spectrum, scales, centre)
            heard = torch.fft.irfft(moved, natural.WINDOW)[0].roll(-centre) * scale
            # Phases between bins, as magnitudes are, or left where they are: 0.04 to 4.
            assert float((heard - expected).square().sum() / expected.square().sum()) < 0.02


def test_voice_frames_carry_formant_scale_and_level(decoder: NaturalDecoder):
    made = latents(40, columns=VOICE)
    made[:, LEVEL] = -natural.LEVEL_MEAN / natural.LEVEL_SCALE
    made[:, FORMANT] = (1.0 - 0.985) / 0.04
    torch.testing.assert_close(decoder.decode(made), decoder.decode(made[:, :LATENT]), atol=1e-4, rtol=1e-3)
    louder = made.clone()
    louder[:, LEVEL] += np.log(0.5) / natural.LEVEL_SCALE
    assert float(decoder.decode(louder).square().mean()) < float(decoder.decode(made).square().mean())


def test_its_operations_are_counted_as_those_of_other_vocoders(decoder: NaturalDecoder):
    """By the operators that run, as the roofline counts every decoder."""
    made = latents(100)
    launches, work = counted(lambda: decoder.decode(made))
    products = 2 * 100 * (natural.BLOCKS * 2 * natural.HIDDEN * natural.INNER + natural.HIDDEN * 5 * natural.BINS)
    convolutions = 2 * 100 * natural.BLOCKS * 7 * natural.HIDDEN
    to_hidden = 2 * 100 * 32 * natural.HIDDEN
    assert launches > 50
    assert work.operations == pytest.approx(products + convolutions + to_hidden, rel=0.01)
    assert work.bytes > 4 * (natural.BLOCKS * 2 * natural.HIDDEN * natural.INNER + natural.HIDDEN * 5 * natural.BINS)


def test_a_formant_scale_that_is_no_number_gives_spectra_that_are_none(decoder: NaturalDecoder):
    frames = torch.zeros(20, VOICE)
    frames[10:, FORMANT] = torch.nan
    samples = decoder.decode(frames)
    assert samples[: 4 * HOP].isfinite().all()
    assert samples[-4 * HOP :].isnan().any()
    frames[10:, FORMANT] = -100.0
    assert decoder.decode(frames).isfinite().all()


# --- Flow models ------------------------------------------------------------------------------------------------------
F5, MEGA = "f5-mini", "megatts3-mini"
SMALL_F5 = replace(natural_f5.ARCHITECTURE, dim=64, depth=1, heads=1, dim_head=64, text_dim=32, conv_layers=1)
ONE = {"dim": 64, "layers": 1, "heads": 1, "ff_hidden": 96, "local_cond": 32}
SMALL_MEGA = replace(natural_megatts3.ARCHITECTURE, **ONE, phone_layers=1, phone_heads=2, phone_ff_hidden=64)
ROUNDED = {F5: 512, MEGA: 2 * GROUP_HOP}
"""Samples by which a take may differ from its phones."""


def test_frames_get_the_phone_at_their_middle_counted_from_one():
    places = phones_of_frames([("s", 0.0, 0.2), ("ˈi", 0.2, 0.5), (EDGE, 0.5, 0.55)], 8, rate=100, hop=10)
    assert places.tolist() == [1, 1, 2, 2, 2, 3, 3, 3]  # The sixth frame's middle is the silence's end.
    assert places.dtype == np.int64


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root, corpus, cpu = tmp_path_factory.mktemp("natural"), toy_natural_corpus(), torch.device("cpu")
    f5 = natural_f5.NaturalF5(corpus, cpu, natural_f5.NaturalF5Options(), SMALL_F5)
    mega = natural_megatts3.NaturalMega(corpus, cpu, natural_megatts3.NaturalMegaOptions(), SMALL_MEGA)
    for name, run in ((F5, f5), (MEGA, mega)):
        awake(run.average.module)
        run.export(root / name)
    write_vocoder(root / entry(MEGA).vocoder)
    return root


@pytest.fixture(scope="module", params=[F5, MEGA])
def model(request: pytest.FixtureRequest, root: Path) -> SpeechModel:
    return load_model(request.param, folder=str(root / request.param), device="cpu")


@pytest.fixture
def toy(tmp_path: Path) -> Voice:
    return replace(write_recording(tmp_path / "voice.wav"), phones=(("^", 0.0, 0.4), ("h", 0.4, 1.0)))


def spoken(model: SpeechModel, text: str, voice: Voice, seed: int = 0) -> np.ndarray:
    setting = Setting(model.info.id, entry(model.info.id).options_with(steps=1), seed=seed)
    return synthesise(model, text, voice, setting).samples


def test_text_is_read_as_the_phones_of_natural_speech_and_lasts_as_long(model: SpeechModel, toy: Voice):
    assert model.info.text_front_end == NATURAL_PHONES
    text = "Is it 5:30 already?"
    samples = spoken(model, text, toy)
    (piece,), _ = NaturalReader().pieces(text, HowToRead(seed=0))
    assert len(samples) == pytest.approx(piece.seconds * 24_000, abs=ROUNDED[model.info.id])
    assert np.isfinite(samples).all()


def test_the_pace_is_drawn_from_the_seed(model: SpeechModel, toy: Voice):
    takes = [spoken(model, "Good morning.", toy, seed) for seed in (3, 3, 5)]
    assert np.array_equal(takes[0], takes[1])
    assert len({len(one) for one in takes}) > 1


def test_phones_of_a_recording_without_any_or_of_another_alphabet_are_found_in_it(model: SpeechModel, toy: Voice):
    found = spoken(model, "Good morning.", replace(toy, phones=()))
    assert np.isfinite(found).all() and len(found) > 10_000
    other, own = (spoken(model, "Hello.", replace(toy, phones=phones)) for phones in ((("hh", 0.0, 1.0),), ()))
    assert np.array_equal(other, own)


def test_a_phone_that_the_model_does_not_have_is_named(root: Path, tmp_path: Path, toy: Voice):
    fewer = tmp_path / "model"
    shutil.copytree(root / MEGA, fewer)
    (tmp_path / entry(MEGA).vocoder).symlink_to(root / entry(MEGA).vocoder)
    vocabulary = fewer / "vocab.txt"
    vocabulary.write_text(vocabulary.read_text("utf-8").replace("\nh\n", "\n"), "utf-8")
    model = load_model(MEGA, folder=str(fewer), device="cpu")
    with pytest.raises(TextError, match="'h'"):
        spoken(model, "Hello.", replace(toy, phones=(("^", 0.0, 1.0),)))


def test_with_the_vocoder_of_other_speech_it_says_which_is_needed(root: Path, tmp_path: Path):
    place = tmp_path / "model"
    place.symlink_to(root / MEGA)
    write_vocos(tmp_path / entry(MEGA).vocoder)
    with pytest.raises(CheckpointError, match="natural speech"):
        load_model(MEGA, folder=str(place), device="cpu")
