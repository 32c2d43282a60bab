"""SIM-o: how alike two voices are by WavLM-large with an ECAPA-TDNN head, fine-tuned for speaker verification.

The network is that of UniSpeech's ``downstreams/speaker_verification``: 25 hidden states of WavLM weighed together,
four convolutional blocks (Desplanques et al., "ECAPA-TDNN", 2020) and attentive statistics; the checkpoint is
``wavlm_large_finetune.pth``. WavLM itself is the one of transformers. SIM-o compares the take with the recording of the
voice as it is ("o" for original), not with its copy by the vocoder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
from torch import Tensor, nn
from torch.nn import functional

from paretone.audio.resampling import resample
from paretone.errors import AudioError, CheckpointError
from paretone.measure.evaluation.fairseq_names import renamed_weights
from paretone.measure.evaluation.judges import Verdict
from paretone.models.base import Voice
from paretone.models.files.checkpoints import load_strictly, read_checkpoint
from paretone.models.networks.shapes import Modules
from paretone.reading import require_regular

RATE = 16_000
FILE = "wavlm_large_finetune.pth"
_BACKBONE = "feature_extract.model."
_TRAINING_ONLY = "loss_calculator."
"""Weights that only training needs."""
LARGE = {
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
    "feat_extract_norm": "layer",
    "do_stable_layer_norm": True,
}
"""Configuration of WavLM-large, as differences from transformers' defaults (WavLM-base)."""


def load(texts: Sequence[str], folder: Path, device: str) -> SimilarityJudge:
    """The judge from the file in ``folder``."""
    return SimilarityJudge(read_network(folder / FILE, LARGE).to(device), device)


class _Convolution(nn.Module):
    """Convolution, ReLU and normalisation, in this order."""

    def __init__(self, inputs: int, outputs: int, size: int = 1, padding: int = 0) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, size, padding=padding)
        self.bn = nn.BatchNorm1d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.bn(functional.relu(self.conv(x)))


class _Scales(nn.Module):
    """Channels in eight parts, each of which is convolved together with what became of the one before."""

    PARTS = 8

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        width = channels // self.PARTS
        convolutions = (nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation) for _ in range(self.PARTS - 1))
        self.convs = Modules(convolutions)
        self.bns = Modules(nn.BatchNorm1d(width) for _ in range(self.PARTS - 1))

    def forward(self, x: Tensor) -> Tensor:
        *parts, last = x.chunk(self.PARTS, 1)
        found: list[Tensor] = []
        for part, convolution, norm in zip(parts, self.convs, self.bns, strict=True):
            whole = part if not found else found[-1] + part
            found.append(norm(functional.relu(convolution(whole))))
        return torch.cat([*found, last], 1)


class _Gate(nn.Module):
    """Squeeze and excitation: channels weighed by what they are on average."""

    def __init__(self, channels: int, bottleneck: int = 128) -> None:
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(channels, bottleneck), nn.Linear(bottleneck, channels)

    def forward(self, x: Tensor) -> Tensor:
        weights = torch.sigmoid(self.linear2(functional.relu(self.linear1(x.mean(2)))))
        return x * weights[:, :, None]


class _Block(nn.Module):
    """One of the three middle blocks; names as in the checkpoint."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.Conv1dReluBn1 = _Convolution(channels, channels)
        self.Res2Conv1dReluBn = _Scales(channels, dilation)
        self.Conv1dReluBn2 = _Convolution(channels, channels)
        self.SE_Connect = _Gate(channels)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.SE_Connect(self.Conv1dReluBn2(self.Res2Conv1dReluBn(self.Conv1dReluBn1(x))))


class _Statistics(nn.Module):
    """Mean and standard deviation over time, weighed by attention."""

    def __init__(self, channels: int, bottleneck: int = 128) -> None:
        super().__init__()
        self.linear1, self.linear2 = nn.Conv1d(channels, bottleneck, 1), nn.Conv1d(bottleneck, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        weights = torch.softmax(self.linear2(torch.tanh(self.linear1(x))), dim=2)
        mean = (weights * x).sum(2)
        variance = (weights * x**2).sum(2) - mean**2
        return torch.cat([mean, variance.clamp(min=1e-9).sqrt()], 1)


class SpeakerNetwork(nn.Module):
    """A recording to the embedding of its speaker."""

    def __init__(self, config: Mapping[str, Any], channels: int = 512, pooled: int = 1536, size: int = 256) -> None:
        super().__init__()
        from transformers import WavLMConfig, WavLMModel

        self.wavlm = WavLMModel(WavLMConfig(**config))
        width = self.wavlm.config.hidden_size
        self.feature_weight = nn.Parameter(torch.zeros(self.wavlm.config.num_hidden_layers + 1))
        self.layer1 = _Convolution(width, channels, 5, padding=2)
        self.layer2, self.layer3, self.layer4 = (_Block(channels, dilation) for dilation in (2, 3, 4))
        self.conv = nn.Conv1d(3 * channels, pooled, 1)
        self.pooling = _Statistics(pooled)
        self.bn = nn.BatchNorm1d(2 * pooled)
        self.linear = nn.Linear(2 * pooled, size)

    def forward(self, samples: Tensor) -> Tensor:
        """(B, n) at 16 kHz to (B, size)."""
        samples = functional.layer_norm(samples, samples.shape[-1:])
        found = self.wavlm(samples, output_hidden_states=True)
        # What goes into each layer, then what comes out after the last norm, as s3prl collects them. Versions of
        # transformers differ in whether the last of their hidden states is taken before or after that norm.
        states = torch.stack([*found.hidden_states[:-1], found.last_hidden_state])
        weights = torch.softmax(self.feature_weight, 0)[:, None, None, None]
        x = functional.instance_norm((weights * states).sum(0).transpose(1, 2) + 1e-6)
        first = self.layer1(x)
        second = self.layer2(first)
        third = self.layer3(second)
        together = torch.cat([second, third, self.layer4(third)], 1)
        return self.linear(self.bn(self.pooling(functional.relu(self.conv(together)))))


def read_network(path: Path, config: Mapping[str, Any], **sizes: int) -> SpeakerNetwork:
    """The network with the weights of the checkpoint at ``path``. Raises :class:`CheckpointError` that names what is
    missing or strange."""
    weights = read_checkpoint(path)
    weights = weights.get("model", weights)
    network = SpeakerNetwork(config, **sizes).eval()
    try:
        backbone = renamed_weights(weights, _BACKBONE)
    except KeyError as error:
        raise CheckpointError(f"{path} has a weight that is not in WavLM: {error.args[0]}.") from error
    if "masked_spec_embed" not in network.wavlm.state_dict():
        backbone.pop("masked_spec_embed", None)
    head = {name: value for name, value in weights.items() if not name.startswith((_BACKBONE, _TRAINING_ONLY))}
    load_strictly(network, {**head, **{f"wavlm.{name}": value for name, value in backbone.items()}}, str(path))
    return network


class SimilarityJudge:
    """The network, and the embeddings of the voices that it has heard."""

    def __init__(self, network: SpeakerNetwork, device: str) -> None:
        self._network, self._device = network.eval(), device
        self._voices: dict[str, Tensor] = {}

    def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int) -> Verdict:
        """The cosine between the embeddings of a take and of the recording of its voice."""
        if voice.audio not in self._voices:
            try:
                require_regular(voice.audio)
                recording, at = soundfile.read(voice.audio, dtype="float32")
            except (OSError, RuntimeError) as error:
                raise AudioError(f"The recording {voice.audio} could not be read ({error}).") from error
            mono = recording if recording.ndim == 1 else recording.mean(1)
            self._voices[voice.audio] = self._embedded(mono, at)
        cosine = functional.cosine_similarity(self._embedded(samples, rate), self._voices[voice.audio])
        return Verdict("similarity", {"similarity": float(cosine)})

    @torch.inference_mode()
    def _embedded(self, samples: np.ndarray, rate: int) -> Tensor:
        return self._network(torch.from_numpy(resample(samples, rate, RATE))[None].to(self._device))
