"""Who speaks in a recording, as the vocoder of natural speech reads it off."""

from __future__ import annotations

import numpy as np
import torch

from paretone.audio.mel import MelFrontEnd
from paretone.audio.resampling import resample
from paretone.models.minis.natural.layout import FORMANT_MEAN, FORMANT_SCALE, SAMPLE_RATE
from paretone.models.minis.natural.mel_reader import MelReader
from paretone.models.minis.natural.said import NaturalVoice
from paretone.paths import resource


class VoiceReader:
    """The bundled mel reader, for recordings. Raises :class:`CheckpointError` if it is damaged."""

    def __init__(self) -> None:
        self._reader = MelReader.load(resource("models", "natural-vocoder"))
        self._mel = MelFrontEnd()

    @torch.inference_mode()
    def formant_scale(self, samples: np.ndarray, rate: int) -> float:
        """Median formant scale over the frames of mono ``samples`` (n,); 1 is the teacher's own voice, less a longer
        vocal tract. Within 0.002 of the truth on clean speech of the teacher."""
        heard = torch.from_numpy(resample(samples, rate, SAMPLE_RATE))
        frames = self._reader(self._mel(heard[None]).mT)[0]
        return NaturalVoice.of(frames).formant * FORMANT_SCALE + FORMANT_MEAN
