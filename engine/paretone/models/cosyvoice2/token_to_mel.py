"""Speech tokens to mel frames: CosyVoice 2's conditional flow, at once or exactly in parts.

Official names and sizes: ``cosyvoice/flow/flow.py`` (``CausalMaskedDiffWithXvec``) and ``flow_matching.py``
(``CausalConditionalCFM``). A frame's initial noise depends only on its position, and attention sees a frame's own chunk
and earlier ones, so computed frames never change. Upstream recomputes them for every chunk; here every layer keeps its
state for each solver step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from paretone.models.cosyvoice2.config import FRAMES_PER_TOKEN, TOKEN_RATE, FlowConfig, FlowSizes
from paretone.models.cosyvoice2.flow_networks import Estimator, FlowEstimator, UpsamplingEncoder
from paretone.models.networks.incremental import Memory

NOISE_SEED = 0
LONGEST_SECONDS = 300
"""Maximum length of prompt and speech together in seconds, for which upstream draws noise."""


@dataclass(frozen=True)
class AcousticPrompt:
    """The flow's inputs for a voice: ``tokens`` (1, P), ``mel`` (1, 2 · P, bands) and ``speaker`` (1, width)."""

    tokens: Tensor
    mel: Tensor
    speaker: Tensor

    @property
    def frames(self) -> int:
        return self.mel.shape[1]

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def to(self, device: torch.device) -> AcousticPrompt:
        return AcousticPrompt(self.tokens.to(device), self.mel.to(device), self.speaker.to(device))


class TokenFlow(nn.Module):
    """What the flows of CosyVoice 2 and 3 share: tables of tokens and speakers, and the initial noise.

    :class:`paretone.models.cosyvoice2.mel_flow.MelStream` runs a flow."""

    noise: Tensor

    def __init__(self, config: FlowSizes, width: int) -> None:
        """``width`` is that of an embedded token."""
        super().__init__()
        self.config = config
        self.input_embedding = nn.Embedding(config.tokens, width)
        self.spk_embed_affine_layer = nn.Linear(config.speaker_width, config.bands)
        self.decoder = nn.ModuleDict({"estimator": self.new_estimator()})
        frames = LONGEST_SECONDS * TOKEN_RATE * FRAMES_PER_TOKEN
        generator = torch.Generator().manual_seed(NOISE_SEED)
        noise = torch.randn(1, config.bands, frames, generator=generator, device="cpu")
        self.register_buffer("noise", noise, persistent=False)

    def new_estimator(self) -> FlowEstimator:
        """A network of the velocity like the flow's own, not initialised."""
        raise NotImplementedError

    @property
    def estimator(self) -> FlowEstimator:
        return cast("FlowEstimator", self.decoder["estimator"])

    def encode(self, tokens: Sequence[int], ahead: Sequence[int], first: int, memory: Memory) -> Tensor:
        """The estimator's input (1, bands, 2 · n) for ``tokens``, which follow the ``first`` ones. ``ahead`` are the
        next tokens, none at the end."""
        raise NotImplementedError

    def encoded(self, tokens: Sequence[int]) -> Tensor:
        """:meth:`encode` for a complete request."""
        return self.encode(tokens, (), 0, Memory(closing=True))

    def embed(self, tokens: Sequence[int]) -> Tensor:
        """(n,) to (1, n, width)."""
        ids = torch.tensor([tokens], dtype=torch.long, device=self.input_embedding.weight.device)
        return self.input_embedding(ids.clamp(min=0))

    def speaker(self, vector: Tensor) -> Tensor:
        """(1, speaker_width), of any norm, to (1, bands)."""
        return self.spk_embed_affine_layer(F.normalize(vector, dim=1))


class TokenToMel(TokenFlow):
    """The weights of CosyVoice 2's flow."""

    config: FlowConfig

    def __init__(self, config: FlowConfig = FlowConfig()) -> None:
        super().__init__(config, config.encoder.width)
        self.encoder = UpsamplingEncoder(config.encoder, config.look_ahead, config.chunk)
        self.encoder_proj = nn.Linear(config.encoder.width, config.bands)

    def new_estimator(self) -> Estimator:
        config = self.config
        return Estimator(config.estimator, config.bands, config.chunk * FRAMES_PER_TOKEN)

    def encode(self, tokens: Sequence[int], ahead: Sequence[int], first: int, memory: Memory) -> Tensor:
        following = self.embed(ahead) if ahead else None
        return self.encoder_proj(self.encoder(self.embed(tokens), following, first, memory)).mT


# Trained weights of an estimator.
#
# A file has the keys of the estimator in ``flow.pt``; weights for intervals have those of one more perceptron,
# ``decoder.estimator.time_mlp.interval_mlp.{0,2}.{weight,bias}``, in CosyVoice 3 ``….time_embed.…``. The metadata are
# those of :mod:`paretone.models.files.trained_weights`, with the SHA-256 of ``flow.pt`` as ``base``. The encoder and
# everything else stay those of ``flow.pt``.
PREFIX = "decoder.estimator."


def official(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """``weights`` of an estimator under their keys in ``flow.pt``."""
    return {PREFIX + name: value for name, value in weights.items()}


def own_names(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """``weights`` with keys of ``flow.pt`` under the estimator's own."""
    return {name.removeprefix(PREFIX): value for name, value in weights.items()}
