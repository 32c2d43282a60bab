"""Artefacts: DNSMOS P.835 and P.808, predicted scores, 1 to 5, of noise and distortion.

C. K. A. Reddy, V. Gopal and R. Cutler, "DNSMOS P.835: A Non-Intrusive Perceptual Objective Speech Quality Metric to
Evaluate Noise Suppressors", ICASSP 2022. The networks are those of the package ``speechmos`` (0.0.1.1, MIT), run by
onnxruntime; its code, which needs librosa, is not imported. Recordings shorter than 9.01 s are repeated, longer ones
judged every second, as in the package. It was made for noise suppression: it hears noise and distortion, neither
naturalness nor skipped computation.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from paretone.audio.mel import slaney_filterbank
from paretone.audio.resampling import resample
from paretone.errors import AudioError
from paretone.measure.evaluation.judges import RATE, SILENT_PEAK, Verdict, package_file
from paretone.models.base import Voice

SECONDS = 9.01
WINDOW, HOP, BANDS = 321, 160, 120
QUADRATICS = {
    "signal": (-0.08397278, 1.22083953, 0.0052439),
    "background": (-0.13166888, 1.60915514, -0.39604546),
    "overall": (-0.06766283, 1.11546468, 0.04602535),
}
"""Polynomials from the network's outputs, in their order, to scores; highest power first."""


class ArtefactJudge:
    """The package's networks. Raises :class:`PlainError` if it is not installed."""

    def __init__(self, texts: Sequence[str] = (), folder: Path = Path(), device: str = "cpu") -> None:
        import onnxruntime

        folder = package_file("speechmos", "dnsmos_models")
        self._p835, self._p808 = (
            onnxruntime.InferenceSession(folder / name, providers=["CPUExecutionProvider"])
            for name in ("sig_bak_ovr.onnx", "model_v8.onnx")
        )

    def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int) -> Verdict:
        """``signal``, ``background``, ``overall`` and ``p808`` of mono ``samples`` (n,) at ``rate`` Hz, turned down
        where they exceed full scale. Raises :class:`AudioError` for an empty, silent or invalid recording."""
        heard = resample(np.asarray(samples, np.float32), rate, RATE)
        peak = float(np.abs(heard).max(initial=0.0))
        if not np.isfinite(peak) or peak < SILENT_PEAK:
            raise AudioError("The recording is empty, silent or not of numbers, so DNSMOS cannot judge it.")
        heard = heard / max(1.0, peak)
        length = int(SECONDS * RATE)
        while len(heard) < length:
            heard = np.concatenate([heard, heard])
        starts = range(0, (int(len(heard) // RATE - SECONDS) + 1) * RATE, RATE)
        windows = [heard[start : start + length] for start in starts if start + length <= len(heard)]
        scores = np.mean([self._scores(one) for one in windows], axis=0)
        return Verdict("dnsmos", dict(zip((*QUADRATICS, "p808"), map(float, scores), strict=True)))

    def _scores(self, window: np.ndarray) -> list[float]:
        (raw,) = self._p835.run(None, {"input_1": window[None]})[0]
        (p808,) = self._p808.run(None, {"input_1": _mel(window[:-HOP])[None]})[0]
        return [*(np.polyval(one, value) for one, value in zip(QUADRATICS.values(), raw, strict=True)), p808[0]]


def _mel(samples: np.ndarray) -> np.ndarray:
    """Mel spectrogram (frames, 120) in decibels below its peak, 80 at most, as (dB + 40) / 40."""
    window = torch.hann_window(WINDOW)
    found = torch.stft(torch.from_numpy(samples), WINDOW, HOP, window=window, pad_mode="constant", return_complex=True)
    # An odd window's last bin is half a bin below half of the rate.
    filters = slaney_filterbank(RATE * (WINDOW - 1) / WINDOW, WINDOW, BANDS, highest=RATE / 2)
    powers = (found.abs().square().T @ filters).clamp(min=1e-10)
    decibels = 10 * (powers / powers.max()).log10()
    return ((decibels.clamp(min=-80.0) + 40) / 40).numpy()
