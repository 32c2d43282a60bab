from __future__ import annotations

import pytest
import torch

from paretone.models.minis.natural_vocoder import StreamedFrames, at_latent_frames, latent_frames


def test_what_changes_linearly_is_met_exactly():
    ramp = torch.arange(40.0)[None, None] * 256
    made = at_latent_frames(ramp, 0, latent_frames(40))
    torch.testing.assert_close(made[0, 0, :-1], torch.arange(made.shape[2] - 1.0) * 300)
    assert made[0, 0, -1] == 39 * 256


def test_the_last_latent_frame_is_the_first_that_reaches_the_last_mel_frame():
    for frames in range(1, 200):
        last = latent_frames(frames) - 1
        assert last * 300 >= (frames - 1) * 256 > (last - 1) * 300


def test_a_stretch_is_what_the_whole_has_there():
    mel = torch.randn(1, 3, 90)
    whole = at_latent_frames(mel, 0, latent_frames(90))
    begin = 20 * 75 // 64
    torch.testing.assert_close(at_latent_frames(mel[:, :, begin:], 20, 30, begin), whole[:, :, 20:50])


@pytest.mark.parametrize("size", [1, 2, 7, 64, 1000])
@pytest.mark.parametrize("length", [1, 2, 3, 76, 90])
def test_pieces_give_what_the_whole_gives(size: int, length: int):
    mel = torch.randn(1, 3, length)
    streamed = StreamedFrames(3)
    pieces = [streamed.push(piece) for piece in mel.split(size, dim=2)]
    joined = torch.cat([*pieces, streamed.finish()], dim=2)
    torch.testing.assert_close(joined, at_latent_frames(mel, 0, latent_frames(length)), rtol=0, atol=0)


def test_no_mel_gives_no_frames():
    streamed = StreamedFrames(3)
    assert streamed.push(torch.zeros(1, 3, 0)).shape == streamed.finish().shape == (1, 3, 0)
