"""UTMOS22: how natural a recording sounds, from 1 to 5, as the strong learner of Saeki et al. predicts it.

T. Saeki et al., "UTMOS: UTokyo-SaruLab system for VoiceMOS Challenge 2022". The network and the checkpoint's names are
those of tarepan/SpeechMOS, which is the published strong learner without its phoneme encoder; its wav2vec 2.0 is the
one of transformers here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from paretone.audio.resampling import resample
from paretone.errors import CheckpointError
from paretone.measure.evaluation.fairseq_names import renamed_weights
from paretone.measure.evaluation.judges import Verdict
from paretone.models.base import Voice
from paretone.models.files.checkpoints import load_strictly, read_weights

RATE = 16_000
FILE = "utmos22_strong_step7459_v1.pt"
_BACKBONE = "wav2vec2."


def load(texts: Sequence[str], folder: Path, device: str) -> UtmosJudge:
    """The judge from the file in ``folder``."""
    return UtmosJudge(read_network(folder / FILE).to(device), device)


class UtmosNetwork(nn.Module):
    """A recording to its naturalness."""

    def __init__(
        self, config: Mapping[str, Any], listener: int = 128, hidden: int = 512, projected: int = 2048
    ) -> None:
        super().__init__()
        from transformers import Wav2Vec2Config, Wav2Vec2Model

        self.wav2vec2 = Wav2Vec2Model(Wav2Vec2Config(**config))
        width = self.wav2vec2.config.hidden_size
        self.domain_emb = nn.Parameter(torch.zeros(1, listener))
        self.judge_emb = nn.Parameter(torch.zeros(1, listener))
        self.blstm = nn.LSTM(width + 2 * listener, hidden, batch_first=True, bidirectional=True)
        self.projection = nn.Sequential(nn.Linear(2 * hidden, projected), nn.ReLU(), nn.Linear(projected, 1))

    def forward(self, samples: Tensor) -> Tensor:
        """(B, n) at 16 kHz to (B,)."""
        states = self.wav2vec2(samples).last_hidden_state
        listener = torch.cat([self.domain_emb, self.judge_emb], 1)[:, None].expand(*states.shape[:2], -1)
        scores = self.projection(self.blstm(torch.cat([states, listener], 2))[0])
        # It was trained on scores brought to -1 to 1.
        return scores.mean(1).squeeze(1) * 2 + 3


def read_network(path: Path, config: Mapping[str, Any] | None = None, **sizes: int) -> UtmosNetwork:
    """The network with the weights of the checkpoint at ``path``. Raises :class:`CheckpointError` that names what is
    missing or strange."""
    weights = read_weights(path)
    network = UtmosNetwork(config or {}, **sizes).eval()
    try:
        backbone = renamed_weights(weights, _BACKBONE)
    except KeyError as error:
        raise CheckpointError(f"{path} has a weight that is not in wav2vec 2.0: {error.args[0]}.") from error
    if "masked_spec_embed" not in network.wav2vec2.state_dict():
        backbone.pop("masked_spec_embed", None)
    head = {name: value for name, value in weights.items() if not name.startswith(_BACKBONE)}
    named = {f"{_BACKBONE}{name}": value for name, value in backbone.items()}
    load_strictly(network, {**head, **named}, str(path))
    return network


class UtmosJudge:
    """The network, loaded."""

    def __init__(self, network: UtmosNetwork, device: str) -> None:
        self._network, self._device = network.eval(), device

    @torch.inference_mode()
    def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int) -> Verdict:
        """Naturalness of the recording."""
        heard = torch.from_numpy(resample(samples, rate, RATE))[None].to(self._device)
        return Verdict("utmos", {"utmos": float(self._network(heard)[0])})
