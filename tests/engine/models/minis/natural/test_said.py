from __future__ import annotations

import pytest
import torch

from paretone.models.minis.natural.coding import NaturalVoice
from paretone.models.minis.natural.decoder import FORMANT, LEVEL, PITCH, VOICE, VOICING


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


def test_the_pitch_of_a_voice_is_that_of_its_voiced_frames():
    frames = voice_frames(0.5, -1.0)
    voiced = frames[:, VOICING] > 0
    assert NaturalVoice.of(frames).pitch == pytest.approx(float(frames[voiced, PITCH].mean()))
    frames[:, VOICING] = -1.0
    assert NaturalVoice.of(frames) == NaturalVoice(0.0, -1.0)
