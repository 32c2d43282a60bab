"""Voice similarity: the cosine between Resemblyzer's embeddings of two recordings.

L. Wan et al., "Generalized End-to-End Loss for Speaker Verification", ICASSP 2018: three LSTM layers over 1.6 s of a
mel spectrogram, and a linear layer with normalised output. An utterance's embedding is the mean over windows that begin
0.77 s apart. The network is built here; its weights are read from the package ``resemblyzer`` (0.1.4, Apache-2.0),
whose code is not imported, as it needs librosa and webrtcvad.

The package finds speech with webrtcvad and raises quiet recordings to -30 dB before embedding. Here, pauses are found
by level, and every recording is set to -26 dB, so that level has no effect. The figure is not comparable with SIM-o,
which uses WavLM-large.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from paretone.audio.mel import slaney_filterbank
from paretone.audio.recording import read_recording
from paretone.errors import AudioError, CheckpointError
from paretone.measure.evaluation.judges import LONGEST_SECONDS, RATE, Verdict, package_file, speech_in
from paretone.models.base import Voice
from paretone.models.files.checkpoints import loaded_strictly, read_checkpoint
from paretone.reading import until_changed

NAME = "voice"
FIGURE = "voice_similarity"
PACKAGE, FILE = "resemblyzer", "pretrained.pt"
WINDOW, HOP, BANDS = 400, 160, 40
FRAMES = 160
"""Frames per window of speech: 1.6 s."""
STEP = 77
"""Frames between window starts: 1.3 windows per second."""
COVERED = 0.75
"""Minimum share of speech in the last window, unless it is the only one."""
SIZE, LAYERS = 256, 3
LEVEL = 10 ** (-26 / 20)
"""Root mean square of the speech, full scale 1."""
PAUSE_FRAME = 480
"""Samples per frame (30 ms) in pause detection."""
PAUSE_LEVEL = 0.01
"""Root mean square of a pause, as a share of the loudest frame's: 40 dB below it."""
KEPT_AROUND = 3
"""Frames of a pause kept on each side of speech."""
_TRAINING_ONLY = ("similarity_weight", "similarity_bias")


def load(texts: Sequence[str], folder: Path, device: str) -> VoiceJudge:
    """Load the judge with the package's weights. Raises :class:`PlainError`."""
    return VoiceJudge(read_network(package_file(PACKAGE, FILE)).to(device), device)


class VoiceNetwork(nn.Module):
    """Mel spectrogram to embedding. Modules are named as in the weights file."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(BANDS, SIZE, LAYERS, batch_first=True)
        self.linear = nn.Linear(SIZE, SIZE)

    def forward(self, mel: Tensor) -> Tensor:
        """(B, 160, 40) to normalised embeddings (B, 256)."""
        _, (hidden, _) = self.lstm(mel)
        raw = functional.relu(self.linear(hidden[-1]))
        return raw / raw.norm(dim=1, keepdim=True)


def read_network(path: Path) -> VoiceNetwork:
    """Network with the weights at ``path``. Raises :class:`CheckpointError` with the missing names."""
    weights = read_checkpoint(path).get("model_state")
    if not isinstance(weights, dict):
        raise CheckpointError(f"{path} holds no weights of Resemblyzer; install the package {PACKAGE} again.")
    kept = {name: value for name, value in weights.items() if name not in _TRAINING_ONLY}
    return loaded_strictly(VoiceNetwork, kept, str(path)).eval()


def spectrogram(samples: Tensor) -> Tensor:
    """(n,) at 16 kHz to (frames, 40): power in Slaney's mel bands, not its logarithm, zero-padded at both ends."""
    padded = functional.pad(samples, (WINDOW // 2, WINDOW // 2))
    window = torch.hann_window(WINDOW, device=samples.device)
    spectrum = torch.stft(padded, WINDOW, HOP, window=window, center=False, return_complex=True)
    return spectrum.abs().square().T @ slaney_filterbank(RATE, WINDOW, BANDS, str(samples.device))


def starts(samples: int) -> list[int]:
    """First frames of the windows of a recording of ``samples`` samples."""
    frames = -(-(samples + 1) // HOP)
    found = list(range(0, max(1, frames - FRAMES + STEP + 1), STEP))
    covered = (samples - found[-1] * HOP) / (FRAMES * HOP)
    return found[:-1] if covered < COVERED and len(found) > 1 else found


def without_pauses(samples: np.ndarray) -> np.ndarray:
    """``samples`` (n,) at 16 kHz with shortened pauses, at a fixed level."""
    count = len(samples) // PAUSE_FRAME
    frames = samples[: count * PAUSE_FRAME].reshape(count, PAUSE_FRAME).astype(np.float64)
    levels = np.sqrt((frames**2).mean(1))
    speech = levels > PAUSE_LEVEL * levels.max()
    near = np.convolve(speech, np.ones(2 * KEPT_AROUND + 1), "same") > 0.5
    kept = frames[near].ravel()
    return (kept * (LEVEL / np.sqrt((kept**2).mean()))).astype(np.float32)


class VoiceJudge:
    """The loaded network, with cached embeddings of the voices."""

    def __init__(self, network: VoiceNetwork, device: str = "cpu") -> None:
        self._network, self._device = network.eval(), device
        self._kept = until_changed(256)(self._embed_file)

    @torch.inference_mode()
    def embed(self, samples: np.ndarray) -> np.ndarray:
        """Normalised embedding (256,) of a recording (n,) at 16 kHz, without trimming."""
        firsts = starts(len(samples))
        end = (firsts[-1] + FRAMES) * HOP
        padded = np.pad(samples, (0, max(0, end - len(samples))))
        mel = spectrogram(torch.from_numpy(padded).to(self._device))
        mean = self._network(torch.stack([mel[first : first + FRAMES] for first in firsts])).mean(0)
        return (mean / mean.norm()).cpu().numpy()

    def voice_of(self, samples: np.ndarray, rate: int) -> np.ndarray:
        """Embedding (256,) of the speaker of mono ``samples`` (n,) at ``rate`` Hz. Raises :class:`AudioError`."""
        return self.embed(without_pauses(speech_in(samples, rate)))

    def similarity(self, first: np.ndarray, second: np.ndarray) -> float:
        return float(np.dot(first, second))

    def voice_in(self, path: str) -> np.ndarray:
        """Embedding (256,) of the speaker of the recording at ``path``; cached until the file changes. Raises
        :class:`AudioError`."""
        return self._kept(path)

    def _embed_file(self, path: str) -> np.ndarray:
        recording = read_recording(path, LONGEST_SECONDS)
        return self.voice_of(recording.samples, recording.sample_rate)

    def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int) -> Verdict:
        """Similarity of the recording to that of ``voice``. Raises :class:`AudioError`."""
        if not voice.audio:
            raise AudioError(f"{voice.title} is a voice of the model's own: there is no recording to compare with.")
        return Verdict(NAME, {FIGURE: self.similarity(self.voice_in(voice.audio), self.voice_of(samples, rate))})
