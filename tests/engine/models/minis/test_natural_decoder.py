"""The decoder of natural speech by itself; against the original see ``tests/parity/test_parity_natural.py``."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from paretone.measure.roofline.clock import counted
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
    SeededNoise,
    moved_magnitudes,
    moved_phases,
)
from paretone.models.minis.natural_vocoder import StreamedNatural
from tests.workload import crossed


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
    whole = decoder.decode(made, 1.1, 0.95, SeededNoise(3))
    streamed = StreamedNatural(decoder, 1.1, 0.95, SeededNoise(3))
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


def test_latents_of_latents_are_themselves(decoder: NaturalDecoder):
    made = latents(50)
    again = decoder.space.latents(decoder.space.hidden(made), decoder.space.pitch(made))
    torch.testing.assert_close(again, made, atol=1e-4, rtol=1e-4)


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
