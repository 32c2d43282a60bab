"""XCodec2's speech while its codes are written.

The decoder sees the whole clip, so no output is final before the last code. Streaming is an approximation: a window of
new codes is decoded with codes before it (at the beginning those of the reference recording) and with as many after it
as the convolutions reach, and fades in over the end of the window before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from paretone.models.families.passages import Decoded
from paretone.models.families.token_decoder import StreamingDifference, TokenDecoder, streaming_difference
from paretone.models.llasa.config import FIRST_CODES
from paretone.models.llasa.xcodec2 import REACH, XCodec2Decoder

FADE_CODES = 2
"""Codes over which a window fades in, 40 ms; less than what lies after a window."""


@dataclass(frozen=True)
class Window:
    """Sizes of decoding windows, in codes."""

    fresh: int = 50
    context: int = 100
    first: int = FIRST_CODES
    """The first window is no larger than this, so that it is heard sooner."""
    ahead: int = REACH
    """Codes that must have come after a window."""


class WindowedDecoder(TokenDecoder):
    """The codes of one passage to audio, window by window. What comes out does not depend on how the codes come in."""

    exact = False

    def __init__(self, codec: XCodec2Decoder, reference: Sequence[int] = (), window: Window = Window()) -> None:
        """``reference`` are the codes of the recording that the passage continues; they are not heard."""
        self._codec = codec
        self._window = window
        self._reference = tuple(reference)
        self._codes = list(reference)
        self._heard = len(self._codes)
        """Up to which code the audio is final."""
        self._ending = np.zeros(0, np.float32)
        """Audio of the last window beyond its final codes."""
        self._pieces: list[np.ndarray] = []
        """The audio of each window."""

    def push(self, tokens: Sequence[int]) -> np.ndarray:
        self._codes.extend(tokens)
        pieces = [np.zeros(0, np.float32)]
        while len(self._codes) - self._heard >= self._fresh + self._window.ahead:
            pieces.append(self._next(self._heard + self._fresh))
        return np.concatenate(pieces)

    @property
    def _fresh(self) -> int:
        """New codes of the next window."""
        return self._window.fresh if self._pieces else min(self._window.first, self._window.fresh)

    def finish(self) -> np.ndarray:
        return self._next(len(self._codes)) if len(self._codes) > self._heard else np.zeros(0, np.float32)

    def whole(self, tokens: Sequence[int]) -> Decoded:
        audio = self._decode([*self._reference, *tokens]) if len(tokens) else np.zeros(0, np.float32)
        return Decoded(audio[len(self._reference) * self._codec.samples_per_code :])

    def difference(self) -> StreamingDifference | None:
        if len(self._pieces) < 2:
            return None
        whole = self.whole(self._codes[len(self._reference) :]).samples
        streamed = np.concatenate(self._pieces)
        return streaming_difference(streamed, whole[: len(streamed)])

    def _next(self, end: int) -> np.ndarray:
        """The audio from where it was final up to code ``end``."""
        hop = self._codec.samples_per_code
        start, last = max(self._heard - self._window.context, 0), min(end + self._window.ahead, len(self._codes))
        audio = self._decode(self._codes[start:last])[(self._heard - start) * hop :]
        overlap = min(FADE_CODES * hop, len(self._ending), len(audio))
        if overlap:
            rise = np.linspace(0, 1, overlap, dtype=np.float32)
            audio[:overlap] = audio[:overlap] * rise + self._ending[:overlap] * (1 - rise)
        final = (end - self._heard) * hop
        self._heard, self._ending = end, audio[final:]
        self._pieces.append(audio[:final])
        return self._pieces[-1]

    def _decode(self, codes: Sequence[int]) -> np.ndarray:
        device = self._codec.fc_post_a.weight.device
        return self._codec.decode(torch.tensor([codes], device=device))[0].cpu().numpy()
