"""A draft that reads its target's hidden states, for speculative decoding.

Hidden states of a few of the target's layers, those of the token before, are mixed to one width, the draft's *state*;
joined with the embedding of the token itself, they go through one layer of the target's shape and a head of low rank.
Further tokens of a draft have the draft's own output as state in place of the target's. It sees new speech only, from
the prompt's last element on, whose own state is zero.

Source: Li et al., "EAGLE-3: Scaling up Inference Acceleration of Large Language Models via Training-Time Test",
arXiv 2503.01840.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.models.networks.causal import CausalConfig, CausalLayer, CausalTransformer, rotate, rotations


class FeatureDraft(nn.Module):
    """For training; decoding uses :class:`paretone.models.families.language_network.FeatureDrafter`. ``reads`` are the
    inner layers of the target whose outputs it reads, and the last layer's after the final norm."""

    def __init__(self, config: CausalConfig, reads: Sequence[int], rows: int, rank: int, biased: bool) -> None:
        super().__init__()
        width = config.hidden
        self.config, self.reads = replace(config, layers=1), tuple(reads)
        self.mix = nn.Linear((len(self.reads) + 1) * width, width, bias=False)
        self.join = nn.Linear(2 * width, width, bias=False)
        self.of_state, self.of_token, self.norm = (nn.RMSNorm(width, config.epsilon) for _ in range(3))
        self.layer = CausalLayer(self.config)
        self.scores = nn.Sequential(nn.Linear(width, rank, bias=False), nn.Linear(rank, rows, bias=biased))

    @classmethod
    def of_target(
        cls, target: CausalTransformer, head: Tensor, bias: Tensor | None, reads: Sequence[int], rank: int
    ) -> FeatureDraft:
        """An untrained draft: the target's last layer, and its ``head`` (rows, width) in ``rank`` singular vectors."""
        made = cls(target.config, reads, len(head), rank, bias is not None)
        made.layer.load_state_dict(target.layers[-1].state_dict())
        left, values, right = torch.linalg.svd(head.detach().float(), full_matrices=False)
        with torch.no_grad():
            nn.init.normal_(made.mix.weight, std=0.02)
            made.narrowing.weight.copy_(right[:rank])
            made.widening.weight.copy_(left[:, :rank] * values[:rank])
            if bias is not None:
                made.widening.bias.copy_(bias)
        return made

    @property
    def narrowing(self) -> nn.Linear:
        return self.scores[0]  # type: ignore[return-value]

    @property
    def widening(self) -> nn.Linear:
        return self.scores[1]  # type: ignore[return-value]

    def unroll(self, features: Tensor, embedded: Tensor, depth: int) -> list[Tensor]:
        """Outputs for the first to the ``depth``-th drafted token at every place, each (batch, tokens, width), before
        the norm. ``features`` (batch, tokens, (reads + 1) · width) are those of the token before, ``embedded`` (batch,
        tokens, width) the tokens. The k-th pass has the outputs of the one before as states, and sees what drafting
        would: the first pass up to its beginning, then one place of each later pass."""
        place = torch.arange(embedded.shape[1], device=embedded.device)
        rotary = rotations(self.config, place, embedded)
        state, outputs = self.mix(features), []
        seen: list[tuple[Tensor, Tensor]] = []
        for back in range(depth):
            masks = [place[None] <= place[:, None] - back]
            masks += [place[None] == place[:, None] - back + later for later in range(1, back + 1)]
            x = self.join(torch.cat([self.of_state(state), self.of_token(embedded)], dim=-1))
            outputs.append(self._pass(x, rotary, torch.cat(masks, dim=1), seen))
            state = F.pad(outputs[-1][:, :-1], (0, 0, 1, 0))
        return outputs

    def logits(self, outputs: Tensor) -> Tensor:
        """(…, width) to (…, rows)."""
        return self.scores(self.norm(outputs))

    def _pass(
        self, x: Tensor, rotary: tuple[Tensor, Tensor], mask: Tensor, seen: list[tuple[Tensor, Tensor]]
    ) -> Tensor:
        """The layer, whose keys and values are appended to ``seen``."""
        config, attention = self.config, self.layer.self_attn
        normed = self.layer.input_layernorm(x)
        query, key, value = (
            project(normed).unflatten(-1, (-1, config.head_width)).transpose(1, 2)
            for project in (attention.q_proj, attention.k_proj, attention.v_proj)
        )
        seen.append((rotate(key, rotary), value))
        keys, values = (torch.cat(parts, dim=2) for parts in zip(*seen, strict=True))
        grouped = config.heads != config.key_value_heads
        mixed = F.scaled_dot_product_attention(rotate(query, rotary), keys, values, mask, enable_gqa=grouped)
        x = x + attention.o_proj(mixed.transpose(1, 2).flatten(-2))
        return x + self.layer.mlp(self.layer.post_attention_layernorm(x))
