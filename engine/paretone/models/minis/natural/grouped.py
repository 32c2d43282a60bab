"""Latent frames two by two, as a transformer reads and makes them: 70 numbers, 40 times a second.

Of a voice frame, everything but the level is kept: speech has the level of a prompt. A codec of recordings follows from
a vocoder that reads voice frames off a mel.
"""

from __future__ import annotations

import torch
from torch import Tensor

from paretone.audio.mel import MelFrontEnd
from paretone.models.families.passages import Decoded
from paretone.models.minis.natural.layout import HOP, LEVEL, SAMPLE_RATE, VOICE
from paretone.models.minis.natural.vocoder import LatentVocoder

GROUP = 2
"""Latent frames of a group."""
GROUPED = GROUP * LEVEL
"""Numbers of a group."""
GROUP_HOP = GROUP * HOP
"""Samples of a group."""
MARGIN = 8
"""Groups before the speech that are decoded with it, because its first frames depend on them."""


def grouped(frames: Tensor) -> Tensor:
    """Voice frames (…, n, 35 or 36) to groups (…, n // 2, 70); what does not fill a group is left out."""
    groups = frames.shape[-2] // GROUP
    return frames[..., : groups * GROUP, :LEVEL].unflatten(-2, (groups, GROUP)).flatten(-2)


def ungrouped(groups: Tensor) -> Tensor:
    """Groups (…, n, 70) to voice frames (…, 2 · n, 36) at the mean level."""
    frames = groups.unflatten(-1, (GROUP, LEVEL)).flatten(-3, -2)
    return torch.cat([frames, frames.new_zeros(*frames.shape[:-1], VOICE - LEVEL)], dim=-1)


class GroupedCodec:
    """Between recordings and groups; as a decoder see :class:`paretone.models.megatts3.decoding.LatentDecoder`."""

    sample_rate = SAMPLE_RATE
    samples_per_latent = GROUP_HOP

    def __init__(self, vocoder: LatentVocoder) -> None:
        self._vocoder = vocoder
        self._mel = MelFrontEnd()

    @torch.inference_mode()
    def encode(self, mel: Tensor) -> Tensor:
        """Log mel (B, frames, bands) at the level of a prompt to groups (B, n, 70)."""
        device = self._vocoder.reader.mel_mean.device
        return grouped(self._vocoder.reader(mel.mT.float().to(device)))

    def __call__(self, latents: Tensor, prompt_frames: int) -> Decoded:
        """The speech of ``latents`` (1, n, 70) after the first ``prompt_frames`` of them."""
        first = max(prompt_frames - MARGIN, 0)
        whole = self._vocoder.decoder.decode(ungrouped(latents[0, first:].float()))
        samples = whole[(prompt_frames - first) * GROUP_HOP :].cpu()
        return Decoded(samples.numpy(), self._mel(samples)[0].numpy())
