"""Network of masked models: text and codes of several codebooks to scores of every codebook.

Its parameters have the names and shapes of OmniVoice's release, so ``state_dict`` is the official one:
``llm.embed_tokens``, ``llm.layers.…``, ``llm.norm``, ``audio_embeddings`` and ``audio_heads`` with one block of rows
per codebook, and the buffer ``codebook_layer_offsets`` with their starts. The last entry of a codebook is the mask.

Its transformer is bidirectional: Qwen3's layers with full attention, without a cache. Positions are an argument:
OmniVoice counts from 0 throughout; another model may restart at its canvas.

Sources: k2-fsa/OmniVoice, ``omnivoice/models/omnivoice.py``; ``modeling_qwen3.py`` of transformers 5.18 (queries and
keys are normalised per head before rotation).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.errors import CheckpointError
from paretone.models.files.config_file import ConfigFile
from paretone.models.networks.causal import CausalConfig, GroupedAttention, Probe, TransformerLayer, rotate, rotations
from paretone.models.networks.shapes import Modules


@dataclass(frozen=True)
class Qwen3Config(CausalConfig):
    KINDS: ClassVar[tuple[str, ...]] = ("qwen3",)


class BidirectionalAttention(GroupedAttention):
    """Grouped-query self-attention with normalised and rotated queries and keys, (batch, tokens, hidden)."""

    def __init__(self, config: Qwen3Config) -> None:
        super().__init__(config, biased_output=config.biased)
        self.q_norm = nn.RMSNorm(config.head_width, config.epsilon)
        self.k_norm = nn.RMSNorm(config.head_width, config.epsilon)

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        """``mask`` is true for visible keys, broadcast over (batch, heads, queries, keys); ``None``: all."""
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
    """Table of text tokens, all layers and the final norm. For training and as the reference; decoding uses a fused
    copy (:mod:`paretone.models.kernels.fused_masked`)."""

    def __init__(self, config: Qwen3Config, vocabulary: int) -> None:
        """``vocabulary``: rows of the table of text tokens."""
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(vocabulary, config.hidden)
        self.layers = Modules(BidirectionalLayer(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.hidden, config.epsilon)

    def forward(
        self, embedded: Tensor, positions: Tensor | None = None, mask: Tensor | None = None, probe: Probe | None = None
    ) -> Tensor:
        """Embeddings (batch, tokens, hidden) to hidden states of that shape, after the final norm. ``positions`` is
        (tokens,) or (batch, tokens); ``None``: from 0. ``mask`` is true for visible tokens: (batch, keys), or (batch,
        1, queries, keys) if that depends on the query; ``None``: all. ``probe`` gets layers' outputs."""
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


@dataclass(frozen=True)
class MaskedConfig:
    transformer: Qwen3Config
    text_vocabulary: int
    """Rows of the text token table."""
    codebooks: int
    entries: int
    """Rows of each codebook, including the mask."""

    @property
    def mask(self) -> int:
        """Mask id: the last."""
        return self.entries - 1

    @classmethod
    def read(cls, config: ConfigFile | Mapping) -> MaskedConfig:
        """Read the sizes of a ``config.json`` in OmniVoice's layout. Raises :class:`CheckpointError` with the field."""
        file = ConfigFile.of(config)
        file.require("model_type", "omnivoice")
        entries, mask = file.number("audio_vocab_size", least=2), file.number("audio_mask_id")
        if mask != entries - 1:
            raise CheckpointError(
                f"{file.where} has audio_mask_id {mask}; only the last of its {entries} codes is supported as the mask."
            )
        text = file.part("llm_config", needed=True)
        return cls(
            transformer=Qwen3Config.read(text),
            text_vocabulary=text.number("vocab_size"),
            codebooks=file.number("num_audio_codebook"),
            entries=entries,
        )

    @property
    def rows(self) -> int:
        return self.codebooks * self.entries

    def operations(self, tokens: int, targets: int) -> float:
        """Operations of a row of ``tokens`` tokens with scores for ``targets`` (1 multiply-add = 2 operations): the
        seven products of each layer, both attention products, and the heads."""
        inner = self.transformer
        layer = tokens * (inner.weights_of_layer + 2 * tokens * inner.width)
        return 2 * (inner.layers * layer + targets * inner.hidden * self.rows)


class MaskedNetwork(nn.Module):
    """For training and as the reference."""

    codebook_layer_offsets: Tensor

    def __init__(self, config: MaskedConfig) -> None:
        super().__init__()
        self.config = config
        hidden = config.transformer.hidden
        self.llm = BidirectionalTransformer(config.transformer, config.text_vocabulary)
        self.audio_embeddings = nn.Embedding(config.rows, hidden)
        self.audio_heads = nn.Linear(hidden, config.rows, bias=False)
        # A list of numbers, because without weights a product would import torch's compiler, for seconds, and a range
        # sympy.
        offsets = torch.tensor([codebook * config.entries for codebook in range(config.codebooks)])
        self.register_buffer("codebook_layer_offsets", offsets)

    def text(self, ids: Tensor) -> Tensor:
        """Text tokens (batch, text) to embeddings (batch, text, hidden)."""
        return self.llm.embed_tokens(ids)

    def audio(self, codes: Tensor) -> Tensor:
        """Codes (batch, codebooks, frames) to embeddings (batch, frames, hidden): the sum over the codebooks."""
        return self.audio_embeddings(codes + self.codebook_layer_offsets[:, None]).sum(dim=1)

    def scores(self, hidden: Tensor) -> Tensor:
        """Hidden states (batch, frames, hidden) to scores (batch, codebooks, frames, entries), not normalised."""
        return self.audio_heads(hidden).unflatten(-1, (self.config.codebooks, -1)).transpose(1, 2)

    def forward(
        self, text: Tensor, codes: Tensor, targets: int, positions: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Scores (batch, codebooks, ``targets``, entries) of the last ``targets`` frames of ``codes``. ``text`` (batch,
        text) precedes ``codes`` (batch, codebooks, frames); it may be empty. ``positions`` and ``mask`` are those of
        :class:`BidirectionalTransformer`, over text and frames."""
        hidden = self.llm(torch.cat([self.text(text), self.audio(codes)], dim=1), positions, mask)
        return self.scores(hidden[:, hidden.shape[1] - targets :])
