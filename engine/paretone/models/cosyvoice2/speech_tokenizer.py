"""The two models that hear a recording and are published as ONNX only: speech tokens, and the speaker's embedding.

Run by the package ``onnxruntime`` (optional extra ``cosyvoice``), always on the processor: on GPUs they are
no faster, and the embedding comes out differently. They are read when a recording is first heard, for the tokenizer
alone is half a gigabyte.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from paretone import device as devices
from paretone.errors import CheckpointError
from paretone.models.cosyvoice2.config import INSTALL
from paretone.models.cosyvoice2.features import speaker_features, whisper_mel
from paretone.models.files.checkpoints import fingerprint, require_part

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

TOKENIZER, SPEAKER = "speech_tokenizer_v2.onnx", "campplus.onnx"


class RecordingEncoder:
    """Both models of one release folder."""

    def __init__(self, folder: Path) -> None:
        """Raises :class:`CheckpointError` if a file or the package is missing; reads nothing yet."""
        require_onnxruntime()
        self._tokenizer, self._speaker = OnnxModel(folder / TOKENIZER), OnnxModel(folder / SPEAKER)

    @property
    def tokenizer_path(self) -> Path:
        """File of the speech tokenizer."""
        return self._tokenizer.path

    @property
    def speaker_path(self) -> Path:
        """File of the speaker encoder."""
        return self._speaker.path

    def fingerprints(self, check: Callable[[], None] = lambda: None) -> tuple[str, str]:
        """SHA-256 of both files; ``check`` may raise to cancel."""
        return fingerprint(self._tokenizer.path, check), fingerprint(self._speaker.path, check)

    def tokens(self, samples: Tensor) -> np.ndarray:
        """Speech tokens (n,) int64 of samples (m,) at 16 kHz, 25 to the second. Raises :class:`CheckpointError`."""
        features = whisper_mel(samples)
        found = self._tokenizer(features[None].numpy(), np.array([features.shape[1]], np.int32))
        return found.astype(np.int64).ravel()

    def speaker(self, samples: Tensor) -> np.ndarray:
        """The embedding (width,) float32 of samples (m,) at 16 kHz. Raises :class:`CheckpointError`."""
        return self._speaker(speaker_features(samples)[None].numpy()).astype(np.float32).ravel()


class OnnxModel:
    """One file, read when it is first run."""

    def __init__(self, path: Path) -> None:
        """Raises :class:`CheckpointError` if the file is missing."""
        require_part(path, "download the official release again")
        self.path = path

    def __call__(self, *given: np.ndarray) -> np.ndarray:
        """The first output. Raises :class:`CheckpointError` if the file is damaged or another model's."""
        try:
            names = (one.name for one in self._session.get_inputs())
            return self._session.run(None, dict(zip(names, given, strict=True)))[0]
        except Exception as error:  # The package's errors have only this in common.
            reason = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
            raise CheckpointError(
                f"{self.path} cannot be used ({reason}); download it from the official release again."
            ) from None

    @functools.cached_property
    def _session(self) -> InferenceSession:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = devices.thread_count()
        options.log_severity_level = 4  # Nothing on the terminal: what goes wrong is raised.
        return onnxruntime.InferenceSession(str(self.path), options, providers=["CPUExecutionProvider"])


def require_onnxruntime() -> None:
    """Raise :class:`CheckpointError` that names the extra where the package is missing."""
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        raise CheckpointError(
            f"CosyVoice 2 encodes recordings with the package onnxruntime, which is not installed; {INSTALL}"
        ) from None
