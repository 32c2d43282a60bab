"""Official streaming of CosyVoice 2, with which ours is compared.

``CosyVoice2Model.tts`` and ``token2wav`` of ``cosyvoice/cli/model.py``: every chunk runs the flow over all tokens so
far and vocodes the new frames after the last eight of before; the two results for those are faded into each other.
(The halves of a Hamming window add up to 1.08: the fade is 0.7 dB too loud.) Chunks double in length. Upstream never
resets that length, so that a second request waits for a long first chunk: here every request has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from paretone.models.cosyvoice2.config import FRAMES_PER_TOKEN
from paretone.models.cosyvoice2.hift import Hift, Noise, Progress
from paretone.models.cosyvoice2.token_to_mel import AcousticPrompt, MelStream, TokenToMel

OVERLAP_FRAMES = 8
HOP_GROWTH = 2
LONGEST_HOP = 100
"""Tokens of a chunk."""


class UpstreamStream:
    """One request. Audio comes in official chunks, (1, n) each."""

    def __init__(self, flow: TokenToMel, vocoder: Hift, prompt: AcousticPrompt, noise: Callable[[], Noise]) -> None:
        """``noise`` is asked for a new source of noise for every chunk."""
        self._flow, self._vocoder, self._prompt, self._noise = flow, vocoder, prompt, noise
        self._hop = flow.config.encoder.chunk
        self._tokens: list[int] = []
        self._offset = 0
        self._overlap: tuple[Tensor, Tensor, Tensor] | None = None
        """Mel frames, source and audio at the end of the last chunk."""

    def push(self, tokens: Sequence[int]) -> list[Tensor]:
        """Take more speech tokens; the chunks that are complete by now."""
        self._tokens += tokens
        chunks = []
        while (end := self._offset + self._next_hop) + self._flow.config.encoder.look_ahead <= len(self._tokens):
            stream = MelStream(self._flow, self._prompt)
            mel = stream.unfinished(self._tokens[: end + self._flow.config.encoder.look_ahead])
            chunks.append(self._vocoded(mel))
            self._offset, self._hop = end, min(HOP_GROWTH * self._hop, LONGEST_HOP)
        return chunks

    def finish(self) -> Tensor:
        """The last chunk; attention sees everything."""
        return self._vocoded(MelStream(self._flow, self._prompt, chunked=False).whole(self._tokens), last=True)

    @property
    def _next_hop(self) -> int:
        """Tokens of the next chunk; the first one ends where a chunk of the flow ends."""
        spoken, chunk = self._prompt.tokens.shape[1], self._flow.config.encoder.chunk
        return self._hop + (-spoken % chunk if not self._offset else 0)

    @torch.inference_mode()
    def _vocoded(self, mel: Tensor, last: bool = False) -> Tensor:
        """Audio of the frames ``mel`` from the beginning on that was not given out yet."""
        mel = mel[..., FRAMES_PER_TOKEN * self._offset :]
        if self._overlap is not None:
            mel = torch.cat([self._overlap[0], mel], dim=-1)
        source = self._vocoder.source(mel, self._noise(), Progress(last=True))
        if self._overlap is not None:
            source[..., : self._overlap[1].shape[-1]] = self._overlap[1]
        speech = self._vocoder.decode(mel, source, Progress(last=True))
        samples = OVERLAP_FRAMES * self._vocoder.config.samples_per_frame
        if self._overlap is not None:
            window = torch.from_numpy(np.hamming(2 * samples)).to(speech)
            faded = speech[..., :samples] * window[:samples] + self._overlap[2] * window[samples:]
            speech = torch.cat([faded, speech[..., samples:]], dim=-1)
        if last:
            return speech
        self._overlap = mel[..., -OVERLAP_FRAMES:], source[..., -samples:], speech[..., -samples:]
        return speech[..., :-samples]
