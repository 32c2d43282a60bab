"""The bidirectional transformer of masked models: Qwen3's layers, each token seeing every other, without a cache.

Parameters have the official names from ``embed_tokens`` to ``norm.weight``. Positions are an argument: OmniVoice counts
from 0 throughout, another model may begin again at its canvas.

Source: ``modeling_qwen3.py`` of transformers 5.18 (norms of queries and keys head by head, before they are rotated);
k2-fsa/OmniVoice (``omnivoice/models/omnivoice.py``) for how it is run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.models.networks.causal import (
    CausalConfig,
    GroupedAttention,
    Probe,
    RootMeanSquareNorm,
    TransformerLayer,
    rotate,
    rotations,
)
from paretone.models.networks.modules import Modules


@dataclass(frozen=True)
class Qwen3Config(CausalConfig):
    """Sizes of a Qwen3 transformer."""

    KINDS: ClassVar[tuple[str, ...]] = ("qwen3",)


class BidirectionalAttention(GroupedAttention):
    """Grouped-query self-attention with normalised and rotated queries and keys, (batch, tokens, hidden)."""

    def __init__(self, config: Qwen3Config) -> None:
        super().__init__(config, biased_output=config.biased)
        self.q_norm = RootMeanSquareNorm(config.head_width, config.epsilon)
        self.k_norm = RootMeanSquareNorm(config.head_width, config.epsilon)

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        """``mask`` is true where a key is seen, broadcast over (batch, heads, queries, keys); ``None``: everywhere."""
        query, key, value = (
            projection(x).unflatten(-1, (-1, self.config.head_width))
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        query = rotate(self.q_norm(query).transpose(1, 2), rotary)
        key = rotate(self.k_norm(key).transpose(1, 2), rotary)
        grouped = self.config.heads != self.config.key_value_heads
        mixed = F.scaled_dot_product_attention(query, key, value.transpose(1, 2), mask, enable_gqa=grouped)
        return self.o_proj(mixed.transpose(1, 2).flatten(-2))


class BidirectionalLayer(TransformerLayer):
    """A layer whose tokens see all others."""

    self_attn: BidirectionalAttention

    def __init__(self, config: Qwen3Config) -> None:
        super().__init__(config, BidirectionalAttention(config))


class BidirectionalTransformer(nn.Module):
    """The table of text tokens, all layers and the final norm. For training and as the reference; what decodes is made
    of its weights (:mod:`paretone.models.kernels.fused_masked`)."""

    def __init__(self, config: Qwen3Config, vocabulary: int) -> None:
        """``vocabulary``: rows of the table of text tokens."""
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(vocabulary, config.hidden)
        self.layers = Modules(BidirectionalLayer(config) for _ in range(config.layers))
        self.norm = RootMeanSquareNorm(config.hidden, config.epsilon)

    def forward(
        self,
        embedded: Tensor,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        probe: Probe | None = None,
    ) -> Tensor:
        """Embeddings (batch, tokens, hidden) to hidden states of that shape, after the final norm.

        ``positions`` is (tokens,) or (batch, tokens); ``None``: 0 and on. ``mask`` is true where a token is seen:
        (batch, keys), or (batch, 1, queries, keys) where that differs from token to token; ``None``: everywhere.
        ``probe`` is shown every layer's output.
        """
        if positions is None:
            positions = torch.arange(embedded.shape[1], device=embedded.device)
        rotary = rotations(self.config, positions, embedded)
        if mask is not None and mask.dim() == 2:
            mask = mask[:, None, None]
        hidden = embedded
        for index, layer in enumerate(self.layers):
            hidden = hidden + layer.self_attn(layer.input_layernorm(hidden), rotary, mask)
            hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
            if probe is not None:
                probe(index, "output", hidden)
        return self.norm(hidden)


def operations(config: Qwen3Config, tokens: int) -> float:
    """Operations of a pass over a row of ``tokens`` tokens (1 multiply-add = 2 operations), embeddings and heads left
    out. Counted: the seven products of each layer and both attention products."""
    return 2 * config.layers * tokens * (config.weights_of_layer + 2 * tokens * config.width)
