"""From mel frames, 93.75 a second, to the 80 latent frames a second that the decoder of natural speech takes.

Frame k of either kind is centred on sample k · hop, so latent frame k lies at mel frame k · 300 / 256 = k · 75 / 64 and
is interpolated linearly between that frame's neighbours.
"""

from __future__ import annotations

import torch
from torch import Tensor

from paretone.models.minis.frames import HOP as MEL_HOP
from paretone.models.minis.natural.layout import HOP


def latent_frames(mel_frames: int) -> int:
    """How many latent frames it takes to reach the centre of the last of ``mel_frames``."""
    return -(-(mel_frames - 1) * MEL_HOP // HOP) + 1


def mel_frame_at(latent_frame: int) -> int:
    """The last mel frame whose centre is not after that of ``latent_frame``."""
    return latent_frame * HOP // MEL_HOP


def at_latent_frames(mel: Tensor, first: int, count: int, begin: int = 0) -> Tensor:
    """``mel`` (B, bands, frames), whose first is frame ``begin`` of the whole, at the latent frames from ``first``:
    (B, bands, count). After the last frame it stays as it is."""
    places = torch.arange(first, first + count, device=mel.device) * HOP
    left = places // MEL_HOP
    weight = (places - left * MEL_HOP).to(mel.dtype) / MEL_HOP
    last = mel.shape[2] - 1
    left = left - begin
    early, late = mel[:, :, left.clamp(max=last)], mel[:, :, (left + 1).clamp(max=last)]
    return early + (late - early) * weight


class StreamedFrames:
    """:func:`at_latent_frames` of mel frames that come in pieces."""

    def __init__(self, bands: int) -> None:
        self._known = torch.zeros(1, bands, 0)
        self._begin = self._given = 0

    def push(self, mel: Tensor) -> Tensor:
        """(1, bands, n) mel to the latent frames that are final now, (1, bands, m): those before the last mel frame."""
        known = torch.cat([self._known.to(mel), mel], dim=2)
        frames = self._begin + known.shape[2]
        ready = max(latent_frames(frames) - 1, 0)
        made = at_latent_frames(known, self._given, ready - self._given, self._begin)
        # The next latent frame lies between mel frames of which the left one is known, or on the last one.
        keep_from = max(min(mel_frame_at(ready), frames - 1), 0)
        self._known, self._begin, self._given = known[:, :, keep_from - self._begin :], keep_from, ready
        return made

    def finish(self) -> Tensor:
        """The last latent frame, (1, bands, 1); none if there was no mel."""
        return at_latent_frames(self._known, self._given, min(self._known.shape[2], 1), self._begin)
