"""The network of masked models: text and codes of several codebooks in, scores of every codebook out.

Its parameters have the names and shapes of OmniVoice's release, so that ``state_dict`` is the official one:
``llm.embed_tokens``, ``llm.layers.…``, ``llm.norm``, ``audio_embeddings`` and ``audio_heads`` with one block of rows
for every codebook, and the buffer ``codebook_layer_offsets`` that says where each begins. The last entry of a codebook
is the mask.

Source: k2-fsa/OmniVoice, ``omnivoice/models/omnivoice.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from paretone.errors import CheckpointError
from paretone.models.files.config_file import ConfigFile
from paretone.models.networks.bidirectional import BidirectionalTransformer, Qwen3Config, operations
from paretone.reading import shown


@dataclass(frozen=True)
class MaskedConfig:
    """Sizes of a masked network."""

    transformer: Qwen3Config
    text_vocabulary: int
    """Rows of the table of text tokens."""
    codebooks: int
    entries: int
    """Rows of each codebook, the mask among them."""

    @property
    def mask(self) -> int:
        """Mask id: the last."""
        return self.entries - 1

    @classmethod
    def read(cls, config: ConfigFile | Mapping) -> MaskedConfig:
        """The sizes in a ``config.json`` in OmniVoice's layout. Raises :class:`CheckpointError` that names the
        field."""
        file = ConfigFile.of(config)
        kind = file.text("model_type")
        if kind != "omnivoice":
            raise CheckpointError(f"{file.where} is of type {shown(kind)}; only omnivoice is supported.")
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
        """Rows of all codebooks together."""
        return self.codebooks * self.entries

    def operations(self, tokens: int, targets: int) -> float:
        """Operations of a pass over a row of ``tokens`` tokens, ``targets`` of which are scored (1 multiply-add = 2
        operations)."""
        return operations(self.transformer, tokens) + 2 * targets * self.transformer.hidden * self.rows


class MaskedNetwork(nn.Module):
    """See the module. For training and as the reference."""

    codebook_layer_offsets: Tensor

    def __init__(self, config: MaskedConfig) -> None:
        super().__init__()
        self.config = config
        hidden = config.transformer.hidden
        self.llm = BidirectionalTransformer(config.transformer, config.text_vocabulary)
        self.audio_embeddings = nn.Embedding(config.rows, hidden)
        self.audio_heads = nn.Linear(hidden, config.rows, bias=False)
        # A list of numbers: without weights, a product would import torch's compiler, for seconds, and a range sympy.
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
        self,
        text: Tensor,
        codes: Tensor,
        targets: int,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Scores (batch, codebooks, ``targets``, entries) of the last ``targets`` frames of ``codes``.

        ``text`` (batch, text) precedes ``codes`` (batch, codebooks, frames); it may be empty. ``positions`` and
        ``mask`` are those of :class:`paretone.models.networks.bidirectional.BidirectionalTransformer`, over text and
        frames.
        """
        embedded = torch.cat([self.text(text), self.audio(codes)], dim=1)
        hidden = self.llm(embedded, positions, mask)
        return self.scores(hidden[:, hidden.shape[1] - targets :])
