"""CosyVoice 2's speech tokens to audio while they are decoded, exactly as in one run at the end.

A chunk of tokens is vocoded as soon as it and the look-ahead of the flow are complete; chunks are counted from the
start of the prompt, so that the first comes early. Upstream lets the last chunk attend to everything; here it sees what
it would see if more followed, so that streamed audio equals that of the whole request.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from paretone.models.cosyvoice2.hift import AudioStream, Hift, SeededNoise
from paretone.models.cosyvoice2.token_to_mel import AcousticPrompt, FewEvaluations, MelStream, TokenToMel
from paretone.models.families.passages import Decoded
from paretone.models.families.token_decoder import TokenDecoder


def sped_up(mel: Tensor, speed: float) -> Tensor:
    """``mel`` (1, bands, n) to (1, bands, n / speed), linearly between frames."""
    return (
        mel if speed == 1 or not mel.shape[-1] else F.interpolate(mel, size=int(mel.shape[-1] / speed), mode="linear")
    )


class CosyDecoder(TokenDecoder):
    """Flow and vocoder for one passage.

    All audio comes at the end if it is wanted ``at_once``, which takes less memory and time, and at another
    ``speed`` than 1, because frames then depend on the length of the whole.
    """

    def __init__(
        self,
        flow: TokenToMel,
        vocoder: Hift,
        prompt: AcousticPrompt,
        seed: int = 0,
        speed: float = 1.0,
        at_once: bool = False,
        few: FewEvaluations | None = None,
    ) -> None:
        """``few``: in place of the flow's own steps. Raises :class:`paretone.errors.AudioError` for a prompt whose
        parts do not belong together."""
        self._flow, self._vocoder, self._prompt, self._seed, self._speed = flow, vocoder, prompt, seed, speed
        self._few = few
        self._frames = MelStream(flow, prompt, at_once=at_once or speed != 1, few=few)
        self._audio = self._vocoded()
        self._mels: list[Tensor] = []

    def push(self, tokens: Sequence[int]) -> np.ndarray:
        """As :class:`TokenDecoder` says. Raises :class:`paretone.errors.TextError` after five minutes."""
        mel = self._kept(self._frames.push(tokens))
        return _samples(self._audio.push(mel)) if mel.shape[-1] else _silence()

    def finish(self) -> np.ndarray:
        """As :class:`TokenDecoder` says."""
        mel = self._kept(sped_up(self._frames.finish(), self._speed))
        if not sum(one.shape[-1] for one in self._mels):
            return _silence()
        return _samples(self._audio.push(mel, last=True))

    def whole(self, tokens: Sequence[int]) -> Decoded:
        """As :class:`TokenDecoder` says: one pass of flow and vocoder each, with the attention of streaming."""
        frames = MelStream(self._flow, self._prompt, few=self._few)
        mel = sped_up(frames.whole(tokens), self._speed)
        samples = _samples(self._vocoded().push(mel, last=True)) if mel.shape[-1] else _silence()
        return Decoded(samples, mel[0].T.cpu().numpy())

    @property
    def mel(self) -> np.ndarray | None:
        """(frames, bands) of the speech so far."""
        return torch.cat(self._mels, dim=-1)[0].T.cpu().numpy() if self._mels else None

    def _vocoded(self) -> AudioStream:
        return AudioStream(self._vocoder, SeededNoise(self._seed, self._vocoder.config))

    def _kept(self, mel: Tensor) -> Tensor:
        self._mels.append(mel)
        return mel


def _samples(audio: Tensor) -> np.ndarray:
    return audio[0].float().cpu().numpy()


def _silence() -> np.ndarray:
    return np.zeros(0, np.float32)
