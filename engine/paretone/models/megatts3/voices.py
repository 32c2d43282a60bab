"""Voices of MegaTTS 3: a recording, and the latents of it that the release's own encoder made.

The encoder was withheld from the release, so a voice is a pair of files: ``name.wav``, and ``name.npy`` next to it with
float32 of (1, T, 32), 25 of T to the second. Where a user has the encoder's weights, the recording is enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from paretone.audio.recording import Recording, read_recording
from paretone.audio.resampling import resample
from paretone.errors import AudioError
from paretone.measure.loudness import integrated_loudness
from paretone.models.megatts3 import aligner
from paretone.models.megatts3.config import LATENTS, no_latents
from paretone.models.megatts3.wavvae import WavVAE
from paretone.models.megatts3.wavvae_encoder import LATENT_CHANNELS
from paretone.reading import require_regular

SAMPLE_RATE = 24000
TAIL = 12000
"""Samples of silence that every recording is continued by."""
FRAMES_PER_LATENT = 4
SPARE = 2
"""Latents that a file may have more than the recording needs, from rounding when it was made."""
_UNREADABLE = (
    OSError,
    ValueError,
    TypeError,
    OverflowError,
    EOFError,
    SyntaxError,
    TokenError,
    BadZipFile,
)
"""Errors of numpy for files that are damaged or not arrays: their headers are Python literals, or zip archives."""


@dataclass(frozen=True)
class PromptRecording:
    """A recording as the models are given it."""

    samples: np.ndarray = field(repr=False)
    """(n,) float32 at 24 kHz, with the silence after it."""
    lufs: float
    """Integrated loudness, BS.1770, which all that is spoken is brought to."""
    seconds: float
    """Length of the recording, without that silence."""
    notes: tuple[str, ...] = ()

    @property
    def frames(self) -> int:
        """Frames of 10 ms that the aligner hears, a multiple of eight."""
        heard = -(-len(self.samples) * aligner.SAMPLE_RATE // SAMPLE_RATE)
        return heard // aligner.HOP // aligner.FRAMES_MULTIPLE * aligner.FRAMES_MULTIPLE

    @property
    def latents(self) -> int:
        """Latents of the prompt."""
        return self.frames // FRAMES_PER_LATENT

    def for_aligner(self) -> Tensor:
        """(m,) float32 at 16 kHz."""
        return torch.from_numpy(resample(self.samples, SAMPLE_RATE, aligner.SAMPLE_RATE))


def prepare_recording(recording: Recording, window: int) -> PromptRecording:
    """At 24 kHz, filled up with silence to one sample below a multiple of ``window`` (``win_size`` of the official
    configuration), then with :data:`TAIL` more."""
    samples = resample(recording.samples, recording.sample_rate, SAMPLE_RATE)
    samples = np.pad(samples, (0, (-1 - len(samples)) % window + TAIL))
    return PromptRecording(samples, integrated_loudness(samples, SAMPLE_RATE).lufs, recording.seconds, recording.notes)


@dataclass(frozen=True)
class PreparedVoice:
    """A recording and its latents, (1, ``recording.latents``, 32) float32."""

    recording: PromptRecording
    latents: Tensor = field(repr=False)


def prepare_voice(audio: Path, window: int, wavvae: WavVAE, generator: torch.Generator | None = None) -> PreparedVoice:
    """Read a recording and the latents next to it, or encode it where ``wavvae`` can, drawing with ``generator``.

    Raises :class:`AudioError`, also when there are neither latents nor an encoder.
    """
    recording = prepare_recording(read_recording(audio), window)
    path = audio.with_suffix(LATENTS)
    if path.is_file():
        return PreparedVoice(recording, read_latents(path, recording, audio))
    if wavvae.encoder is None:
        raise AudioError(no_latents(audio))
    device = wavvae.proj_to_decoder.weight.device
    encoded = wavvae.encode(torch.from_numpy(recording.samples)[None].to(device), generator)
    return PreparedVoice(recording, encoded[:, : recording.latents].cpu())


def read_latents(path: Path, recording: PromptRecording, audio: Path) -> Tensor:
    """The latents in a ``.npy`` file, (1, T, 32) or (T, 32), cut to as many as ``recording`` needs.

    Raises :class:`AudioError` for files that are no such array, hold anything but finite numbers, or belong to a
    recording of another length. Nothing is ever unpickled.
    """
    again = "download the file that was released with this recording again"
    try:
        require_regular(path)
        # Mapped rather than read: a header that promises more than the file holds is found out first.
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except _UNREADABLE as error:
        reason = str(error).strip().rstrip(".").splitlines()[0] if str(error).strip() else type(error).__name__
        raise AudioError(f"{path} is not a file of latents ({reason}); {again}.") from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise AudioError(f"{path} is an archive of arrays, not one array of latents; {again}.")
    if not np.issubdtype(array.dtype, np.floating):
        raise AudioError(f"The latents in {path} are of the type {array.dtype}, not float32; {again}.")
    shape = " × ".join(map(str, array.shape)) or "one number"
    if array.ndim not in (2, 3) or array.shape[-1] != LATENT_CHANNELS or (array.ndim == 3 and len(array) != 1):
        raise AudioError(
            f"The latents in {path} have the shape {shape}; it should be 1 × T × {LATENT_CHANNELS}, with T 25 to the "
            f"second; {again}."
        )
    latents = torch.from_numpy(np.array(array, np.float32)).reshape(1, -1, LATENT_CHANNELS)
    if not latents.isfinite().all():
        raise AudioError(f"The latents in {path} hold values that are not numbers; {again}.")
    count, needed = latents.shape[1], recording.latents
    if not needed <= count <= needed + SPARE:
        raise AudioError(
            f"{path.name} has {count} latents ({count / 25:.2f} s), but {audio.name} needs {needed} "
            f"({needed / 25:.2f} s, with the silence after it): they do not belong together; {again}."
        )
    return latents[:, :needed]
