from __future__ import annotations

import pytest

from paretone.models.minis.natural.decoder import NaturalDecoder
from paretone.models.minis.natural.layout import PITCH, VOICE, VOICING
from paretone.training.natural_corpus import voice_frames
from paretone.training.recipes.natural_excerpts import frame_error, spectral_error
from tests.engine.training.toy_natural import toy_natural_clip


def test_errors_weigh_as_what_is_heard_of_them():
    decoder = NaturalDecoder.load()
    wanted = voice_frames(toy_natural_clip(0, 3, 40))[None]
    wanted[:, :20, VOICING], wanted[:, 20:, VOICING] = 1.0, -1.0
    made = wanted.clone()
    made[:, :, PITCH] += 1.0
    assert float(frame_error(made, wanted, 4.0)) == pytest.approx((4.0 + 1) / 2 / VOICE)
    assert float(spectral_error(decoder, made, wanted)) == 0
    first, last = wanted.clone(), wanted.clone()
    first[:, :, 0] += 1.0
    last[:, :, 31] += 1.0
    assert float(spectral_error(decoder, first, wanted)) > float(spectral_error(decoder, last, wanted)) > 0
