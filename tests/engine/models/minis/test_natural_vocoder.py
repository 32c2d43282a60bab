from __future__ import annotations

import pytest
import torch

from paretone.audio.mel import MelFrontEnd
from paretone.models.minis.natural_decoder import LEVEL, LEVEL_MEAN, LEVEL_SCALE, PITCH, VOICE, VOICING, NaturalDecoder
from paretone.models.minis.natural_vocoder import LatentVocoder, MelReader, MelReaderConfig, StreamedVocoder

SMALL = MelReaderConfig(width=16, inner_width=24, layers=2)


@pytest.fixture(scope="module")
def vocoder() -> LatentVocoder:
    torch.manual_seed(1)
    return LatentVocoder(MelReader(SMALL).eval(), NaturalDecoder.load())


@pytest.mark.parametrize("size", [1, 9, 1000])
@pytest.mark.parametrize("frames", [1, 2, 6, 70])
def test_pieces_give_what_the_whole_gives(vocoder: LatentVocoder, size: int, frames: int):
    mel = torch.randn(1, 100, frames, generator=torch.Generator().manual_seed(frames))
    whole = vocoder.decode(mel)
    assert whole.shape == (1, (frames - 1) * 256)
    streamed = StreamedVocoder(vocoder)
    pieces = [streamed.push(piece) for piece in mel.split(size, dim=2)]
    joined = torch.cat([*pieces, streamed.finish()])
    torch.testing.assert_close(
        joined, whole[0], atol=1e-4 * max(1.0, float(whole.abs().amax()) if frames > 1 else 1), rtol=0
    )


def test_items_of_a_batch_do_not_see_each_other(vocoder: LatentVocoder):
    mel = torch.randn(2, 100, 40)
    both = vocoder.decode(mel)
    torch.testing.assert_close(both[1:], vocoder.decode(mel[1:]), atol=1e-4, rtol=1e-3)


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
