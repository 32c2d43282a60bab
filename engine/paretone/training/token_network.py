"""A speech language model as it is trained: the whole embedding table, its layers, and the rows of the head that can be
spoken. It reads and writes a checkpoint's official names.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from paretone.models.families.training_layout import Parts, TensorNames
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from paretone.training.losses import Seen
from paretone.training.spoken_tokens import TokenBatch


class TokenNetwork(nn.Module):
    """Predicts the next code or the end, from sequences of one vocabulary."""

    def __init__(
        self,
        transformer: CausalTransformer,
        embedding: Tensor,
        head: Tensor,
        names: TensorNames,
        bias: Tensor | None = None,
    ) -> None:
        """``embedding`` is (vocabulary, D), ``head`` (codes + stops, D) and ``bias`` (codes + stops,); all are
        copied."""
        super().__init__()
        self.names = names
        self.transformer = transformer
        self.embedding = nn.Embedding.from_pretrained(embedding.clone(), freeze=False)
        self.head = nn.Linear(head.shape[1], len(head), bias=bias is not None)
        self.head.weight = nn.Parameter(head.clone())
        if bias is not None:
            self.head.bias = nn.Parameter(bias.clone())

    @classmethod
    def read(cls, config: CausalConfig, tensors: Mapping[str, Tensor], names: TensorNames) -> TokenNetwork:
        """From the tensors of a checkpoint, in float32."""
        parts = names.parts({name: value.float() for name, value in tensors.items()})
        transformer = CausalTransformer(config)
        transformer.load_state_dict(parts.transformer)
        return cls(transformer, parts.embedding, parts.head, names, parts.bias)

    def kept(self, retained: Sequence[int]) -> TokenNetwork:
        """A copy with only these layers."""
        pruned = copy.copy(self)
        pruned._modules = dict(self._modules)
        pruned.transformer = self.transformer.kept(retained)
        return copy.deepcopy(pruned)

    def forward(
        self, batch: TokenBatch, outputs: Sequence[int] = (), attention: Sequence[int] = (), skip: Sequence[int] = ()
    ) -> Seen:
        """Outputs of the model on ``batch``; ``outputs`` and ``attention`` name the layers to look at, ``skip`` those
        to leave out."""
        outputs_seen: dict[int, Tensor] = {}
        attention_seen: dict[int, Tensor] = {}

        def probe(layer: int, what: str, value: Tensor) -> None:
            if what == "output" and layer in outputs:
                outputs_seen[layer] = value
            elif what == "attention" and layer in attention:
                attention_seen[layer] = value

        embedded = self.embedding(batch.ids)
        hidden = self.transformer(
            embedded, positions=batch.positions, probe=probe, attention=bool(attention), skip=frozenset(skip)
        )
        return Seen(self.head(hidden[batch.predicting]), embedded, outputs_seen, attention_seen)

    @torch.no_grad()
    def take(self, tensors: Mapping[str, Tensor], retained: Sequence[int]) -> None:
        """Take over the layers and the head in ``tensors``, official names whose layers have the numbers that they have
        in ``retained``. Others are left out."""
        for place, layer in enumerate(retained):
            prefix = f"{self.names.layers}{layer}."
            inner = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
            if inner:
                self.transformer.layers[place].load_state_dict(inner)
        if self.names.head in tensors:
            self.head.weight.copy_(self.names.spoken(tensors[self.names.head]))

    def tensors(self, dtype: torch.dtype = torch.float16) -> dict[str, Tensor]:
        """By official names, as they are written."""
        bias = None if self.head.bias is None else self.head.bias.detach()
        embedding, head = self.embedding.weight.detach(), self.head.weight.detach()
        named = self.names.tensors(Parts(self.transformer.state_dict(), embedding, head, bias))
        return {name: value.detach().to(dtype).contiguous() for name, value in named.items()}
