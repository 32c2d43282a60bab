"""A speech language model as it is trained: the whole embedding table, its layers, and the rows of the head that can be
spoken. It reads and writes the official names of a Hugging Face checkpoint.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from engine.models.causal import CausalConfig, CausalTransformer
from engine.techniques.spade.losses import Seen
from engine.training.spoken_tokens import TokenBatch

EMBEDDING, HEAD, BODY = "model.embed_tokens.weight", "lm_head.weight", "model."


class TokenNetwork(nn.Module):
    """Predicts the next code or the end; see :class:`engine.models.lm_mini.layout.Layout`."""

    def __init__(self, transformer: CausalTransformer, embedding: Tensor, head: Tensor, rows: Tensor) -> None:
        """``embedding`` (vocabulary, D) and ``head`` (vocabulary, D) are the official tables; ``rows`` (codes + 1,) of
        the head are kept."""
        super().__init__()
        self.transformer = transformer
        self.embedding = nn.Embedding.from_pretrained(embedding.clone(), freeze=False)
        self.head = nn.Linear(head.shape[1], len(rows), bias=False)
        self.head.weight = nn.Parameter(head[rows].clone())
        self.register_buffer("rows", rows, persistent=False)

    @classmethod
    def read(cls, config: CausalConfig, tensors: Mapping[str, Tensor], rows: Tensor) -> TokenNetwork:
        """From the tensors of a checkpoint, in float32."""
        tensors = {name: value.float() for name, value in tensors.items()}
        transformer = CausalTransformer(config)
        inner = {name.removeprefix(BODY): value for name, value in tensors.items() if name not in (EMBEDDING, HEAD)}
        transformer.load_state_dict(inner)
        return cls(transformer, tensors[EMBEDDING], tensors.get(HEAD, tensors[EMBEDDING]), rows)

    def kept(self, retained: Sequence[int]) -> TokenNetwork:
        """A copy with only these layers."""
        pruned = copy.copy(self)
        pruned._modules = dict(self._modules)
        pruned.transformer = self.transformer.kept(retained)
        return copy.deepcopy(pruned)

    def forward(
        self, batch: TokenBatch, outputs: Sequence[int] = (), attention: Sequence[int] = (), skip: Sequence[int] = ()
    ) -> Seen:
        """What the model makes of ``batch``; ``outputs`` and ``attention`` name the layers to look at, ``skip`` those
        to leave out."""
        outputs_seen: dict[int, Tensor] = {}
        attention_seen: dict[int, Tensor] = {}

        def look(layer: int, what: str, value: Tensor) -> None:
            if what == "output" and layer in outputs:
                outputs_seen[layer] = value
            elif what == "attention" and layer in attention:
                attention_seen[layer] = value

        embedded = self.embedding(batch.ids)
        hidden = self.transformer(
            embedded, positions=batch.positions, look=look, attention=bool(attention), skip=frozenset(skip)
        )
        return Seen(self.head(hidden[batch.predicting]), embedded, outputs_seen, attention_seen)

    @torch.no_grad()
    def take(self, tensors: Mapping[str, Tensor], retained: Sequence[int]) -> None:
        """Take over the layers and the head in ``tensors``, official names whose layers have the numbers that they have
        in ``retained``. Others are left out."""
        for place, layer in enumerate(retained):
            prefix = f"{BODY}layers.{layer}."
            inner = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
            if inner:
                self.transformer.layers[place].load_state_dict(inner)
        if HEAD in tensors:
            self.head.weight.copy_(tensors[HEAD][self.rows])

    def tensors(self, dtype: torch.dtype = torch.float16) -> dict[str, Tensor]:
        """By official names, as they are written. Rows of the head that cannot be spoken are zero."""
        head = torch.zeros_like(self.embedding.weight)
        head[self.rows] = self.head.weight.detach()
        named = {BODY + name: value for name, value in self.transformer.state_dict().items()}
        named |= {EMBEDDING: self.embedding.weight, HEAD: head}
        return {name: value.detach().to(dtype).contiguous() for name, value in named.items()}
