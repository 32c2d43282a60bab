"""F5-TTS's diffusion transformer: noised mel, prompt mel, text and time to the velocity of each branch.

Source: the official ``f5_tts/model/backbones/dit.py`` (1.1.20).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from paretone.models.f5.config import BackboneConfig
from paretone.models.f5.layers import F5Attention, F5FeedForward, InputEmbedding, RotaryEmbedding, TextEmbedding
from paretone.models.networks.diffusion import Conditioning, DiffusionTransformer, LayerParts, Run
from paretone.models.networks.layers import AdaptiveNorm, TimeEmbedding, modulation
from paretone.models.networks.shapes import Modules
from paretone.sampling.guidance import ALL, NOTHING
from paretone.sampling.operations import OperationCounts


@dataclass(frozen=True)
class DiTConditioning(Conditioning):
    """State shared by the evaluations of one sampling run: the conditional rows first, then the unconditional."""

    constant: tuple[Tensor, Tensor]
    """Parts of the input projection and of its first convolution that are independent of the state."""


def chosen_branches(guided: bool, branches: Sequence[int] | None) -> tuple[int, ...]:
    """Branches of a run: those given, else the one with all conditions and, if ``guided``, the one without."""
    if branches is not None:
        return tuple(branches)
    return (ALL, NOTHING) if guided else (ALL,)


def given(embed: TextEmbedding, prompt: Tensor, ids: Tensor, branches: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Prompts and embedded texts of all ``branches``; each text is embedded once."""
    drops = [branch == NOTHING for branch in branches]
    texts = {drop: embed(ids, prompt.shape[1], drop) for drop in dict.fromkeys(drops)}
    prompts = [prompt if branch == ALL else torch.zeros_like(prompt) for branch in branches]
    return torch.cat(prompts), torch.cat([texts[drop] for drop in drops])


class DiTBlock(nn.Module):
    """Parameters of one layer; :meth:`DiffusionTransformer.layer` uses them."""

    def __init__(self, config: BackboneConfig) -> None:
        super().__init__()
        self.attn_norm = AdaptiveNorm(config.dim, 6)
        self.attn = F5Attention(config)
        self.ff = F5FeedForward(config)


class NamedLikeF5(DiffusionTransformer[Run]):
    """A diffusion transformer whose parameters have the names of F5's."""

    time_embed: TimeEmbedding
    transformer_blocks: Modules[DiTBlock]
    norm_out: AdaptiveNorm

    @property
    def layers(self) -> int:
        return len(self.transformer_blocks)

    @property
    def time_embedding(self) -> TimeEmbedding:
        return self.time_embed

    @property
    def final_norm(self) -> AdaptiveNorm:
        return self.norm_out

    def block(self, index: int) -> LayerParts:
        parts = self.transformer_blocks[index]
        return LayerParts(parts.attn_norm, parts.attn, parts.ff)


class DiT(NamedLikeF5[DiTConditioning]):
    """The backbone of F5-TTS. ``state_dict`` has the official keys, without their ``transformer.`` prefix."""

    def __init__(self, config: BackboneConfig) -> None:
        super().__init__()
        self.config = config
        self.time_embed = TimeEmbedding(config.dim)
        self.text_embed = TextEmbedding(config)
        self.input_embed = InputEmbedding(config)
        self.rotary_embed = RotaryEmbedding(config.dim_head)
        self.transformer_blocks = Modules(DiTBlock(config) for _ in range(config.depth))
        self.long_skip_connection = (
            nn.Linear(2 * config.dim, config.dim, bias=False) if config.long_skip_connection else None
        )
        self.norm_out = AdaptiveNorm(config.dim, 2)
        self.proj_out = nn.Linear(config.dim, config.mel_dim)

    @property
    def keeps_entered(self) -> bool:
        return self.long_skip_connection is not None

    def begin(
        self, prompt: Tensor, ids: Tensor, times: np.ndarray, guided: bool, branches: Sequence[int] | None = None
    ) -> DiTConditioning:
        """Prepare a sampling run.

        ``prompt`` is (batch, frames, bands), zero after each prompt; ``ids`` (batch, tokens) with −1 padding; ``times``
        those of all evaluations, in order. ``branches`` from :data:`paretone.sampling.guidance.BRANCHES` replace the
        default of :func:`chosen_branches`.
        """
        chosen, prompt = chosen_branches(guided, branches), prompt.to(self.proj_out.weight.dtype)
        constant = self.input_embed.constant(*given(self.text_embed, prompt, ids, chosen), None)
        rotary = self.rotary_embed.table(prompt.shape[1])
        return DiTConditioning(len(chosen), *self.tabulate(times), rotary, None, constant)

    def enter(self, x: Tensor, evaluation: int, run: DiTConditioning) -> Tensor:
        return self.input_embed(x.to(self.proj_out.weight.dtype), run.constant, run.mask)

    def leave(self, hidden: Tensor, entered: Tensor, evaluation: int, run: DiTConditioning) -> Tensor:
        if self.long_skip_connection is not None:
            hidden = self.long_skip_connection(torch.cat([hidden, entered], dim=-1))
        scale, shift = run.final_modulations[evaluation]
        return self.proj_out(modulation(shift, scale)(hidden)).float()

    def fuse(self) -> None:
        super().fuse()
        self.input_embed.conv_pos_embed.fuse()

    def operations(self, frames: int, guided: bool, branches: int | None = None) -> OperationCounts:
        """Operations of one evaluation at this length, for one item, with ``branches`` or those of ``guided``."""
        config = self.config
        inner = config.heads * config.dim_head
        products = 2 * frames
        branches = branches or (2 if guided else 1)
        return OperationCounts(
            attention=products * 4 * config.dim * inner + 4 * frames * frames * inner,
            feed_forward=products * 2 * config.ff_mult * config.dim**2,
            fixed=self.input_embed.operations(frames, branches) + products * config.mel_dim * config.dim,
            layers=config.depth,
            branches=branches,
        )
