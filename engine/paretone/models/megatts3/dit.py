"""MegaTTS 3's diffusion transformer: noised latents, prompt latents, phones and time to the velocity of each branch.

Branch 0 has the prompt's latents and the text, branch 1 the text, branch 2 neither; all know the prompt's frames and
the phones' boundaries. Source: ByteDance's ``tts/modules/llm_dit`` (Apache-2.0), from its state dict and the paper
(Jiang et al., arXiv 2502.18924).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.models.kernels.products import PackableLinear
from paretone.models.megatts3.config import LATENT_STRIDE, DiTConfig
from paretone.models.megatts3.phones import PhoneEncoder, convolve
from paretone.models.networks.diffusion import Conditioning, DiffusionTransformer, LayerParts
from paretone.models.networks.layers import (
    AdaptiveNorm,
    FeedForward,
    SelfAttention,
    TimeEmbedding,
    modulate_items,
    modulation,
    rotary_frequencies,
    rotary_table,
    sinusoids,
)
from paretone.models.networks.shapes import Modules
from paretone.sampling.operations import OperationCounts

SPEAKER_AND_TEXT, TEXT, NOTHING = BRANCHES = (0, 1, 2)
"""Inputs of the branches, in the official order."""


@dataclass(frozen=True)
class MegaConditioning(Conditioning):
    """Inputs shared by the evaluations of one sampling run."""

    constant: Tensor
    """(rows, frames, width), part of the layers' input that is independent of the state."""
    to_sample: Tensor
    """(batch, frames, 1) one for frames to sample, zero for the prompt's."""


class MegaAttention(SelfAttention):
    attends_padding = False

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.wq, self.wk, self.wv = (nn.Linear(width, width) for _ in range(3))
        self.wo = PackableLinear(width, width)

    @property
    def inputs(self) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
        return self.wq, self.wk, self.wv

    @property
    def output(self) -> nn.Linear:
        return self.wo


class MegaFeedForward(FeedForward):
    activation = staticmethod(F.silu)

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.w1 = PackableLinear(width, hidden)
        self.w2 = PackableLinear(hidden, width)

    @property
    def first(self) -> nn.Linear:
        return self.w1

    @property
    def last(self) -> nn.Linear:
        return self.w2


class DiTLayer(nn.Module):
    """Parameters of one layer; :meth:`DiffusionTransformer.layer` uses them."""

    def __init__(self, config: DiTConfig) -> None:
        super().__init__()
        self.attention_norm = AdaptiveNorm(config.dim, 6)
        self.attention = MegaAttention(config.dim, config.heads)
        self.feed_forward = MegaFeedForward(config.dim, config.ff_hidden)


class DiTLayers(nn.Module):
    """The layers, the final norm and the first of two output projections under their official names."""

    def __init__(self, config: DiTConfig) -> None:
        super().__init__()
        self.layers = Modules(DiTLayer(config) for _ in range(config.layers))
        self.norm = AdaptiveNorm(config.dim, 2)
        self.out_proj = nn.Linear(config.dim, config.dim)


class MegaDiT(DiffusionTransformer[MegaConditioning]):
    """The backbone of MegaTTS 3. ``state_dict`` has the official keys (``checkpoint['state_dict']['dit']``)."""

    def __init__(self, config: DiTConfig) -> None:
        super().__init__()
        self.config = config
        width = config.dim
        self.ctx_mask_proj = nn.Linear(1, config.ctx_mask)
        self.local_cond_project = nn.Linear(config.latent + config.ctx_mask, config.local_cond)
        self.x_prenet = nn.Linear(config.latent, width)
        self.prenet = nn.Linear(config.local_cond, width)
        self.f5_time_embed = TimeEmbedding(width)
        self.tone_embed = nn.Embedding(config.tones, width, padding_idx=0)
        sizes = config.phone_layers, config.phone_heads, config.phone_ff_hidden, config.phone_kernel
        self.ph_encoder = PhoneEncoder(config.phones, width, *sizes, config.phone_window)
        self.ling_pre_net = nn.Sequential(*(nn.Conv1d(width, width, 4, stride=2, padding=1) for _ in range(2)))
        self.encoder = DiTLayers(config)
        self.postnet = nn.Linear(width, config.latent)

    @property
    def layers(self) -> int:
        return len(self.encoder.layers)

    @property
    def time_embedding(self) -> TimeEmbedding:
        return self.f5_time_embed

    @property
    def final_norm(self) -> AdaptiveNorm:
        return self.encoder.norm

    def block(self, index: int) -> LayerParts:
        parts = self.encoder.layers[index]
        return LayerParts(parts.attention_norm, parts.attention, parts.feed_forward)

    def unknown(self, phones: Tensor, tones: Tensor) -> tuple[Tensor, Tensor]:
        """Replace phones and tones for branches without text; padding is unchanged."""
        present = phones > 0
        return phones.masked_fill(present, self.config.phones - 1), tones.masked_fill(present, self.config.tones - 1)

    def encode_phones(self, phones: Tensor, tones: Tensor) -> Tensor:
        """(rows, phones) ids, 0 in the padding, to (rows, phones, width)."""
        places = sinusoids(torch.arange(phones.shape[1], device=phones.device).float(), self.config.dim)
        other = self.tone_embed(tones) + places.to(self.tone_embed.weight.dtype)
        return self.ph_encoder(phones, other * (phones > 0)[..., None])

    def sounding(self, encoded: Tensor, mel2ph: Tensor) -> Tensor:
        """(rows, phones, width) to (rows, duration frames, width): at each frame the encoded phone whose index, from 1,
        is in ``mel2ph`` (rows, duration frames); zero for index 0."""
        places = mel2ph[..., None].expand(-1, -1, encoded.shape[-1])
        return F.pad(encoded, (0, 0, 1, 0)).gather(1, places)

    def expand_phones(self, encoded: Tensor, mel2ph: Tensor, mask: Tensor | None = None) -> Tensor:
        """Encoded phones to latent frames, (rows, frames, width). ``mel2ph`` is (rows, 4·frames) as in
        :meth:`sounding`, ``mask`` (rows, frames) true within the items."""
        first, second = (cast("nn.Conv1d", one) for one in self.ling_pre_net)  # Sequential loses their types
        halfway = convolve(first, self.sounding(encoded, mel2ph))
        if mask is not None:  # An item's last frame must not see the bias's output in the padding.
            halfway = halfway * mask.repeat_interleave(LATENT_STRIDE // 2, dim=1)[..., None]
        return convolve(second, halfway)

    def condition(self, context: Tensor, is_prompt: Tensor) -> Tensor:
        """Prompt latents (rows, frames, latent), zero if unknown, and the mask of prompt frames (rows, frames), known
        or not, to their part of the layers' input (rows, frames, width)."""
        marked = self.ctx_mask_proj(is_prompt[..., None].to(context.dtype))
        return self.prenet(self.local_cond_project(torch.cat([context, marked], dim=-1)))

    def rotations(self, latents: Tensor) -> Tensor:
        """Rotary table for the number of frames in ``latents`` (rows, frames, latent), on their device."""
        frequencies = rotary_frequencies(self.config.dim // self.config.heads)
        return rotary_table(latents.shape[1], frequencies.to(latents.device))

    def conditions(
        self, context: Tensor, is_prompt: Tensor, phones: Tensor, tones: Tensor, mel2ph: Tensor, mask: Tensor | None
    ) -> Tensor:
        """Layers' input as far as independent of state and time, (items, frames, width), for :meth:`follow`.

        ``context`` is (items, frames, latent), zero outside the prompt and where it is to be unknown; ``is_prompt``
        (items, frames) bool; ``phones`` and ``tones`` (items, phones), 0 in the padding (for unknown text see
        :meth:`unknown`); ``mel2ph`` (items, 4·frames), 0 in the padding; ``mask`` (items, frames), true within items.
        """
        text = self.expand_phones(self.encode_phones(phones, tones), mel2ph, mask)
        return self.condition(context, is_prompt) + text

    def follow(self, noised: Tensor, is_prompt: Tensor, known: Tensor, times: Tensor, mask: Tensor | None) -> Tensor:
        """Velocities (items, frames, latent) as in training, with gradients: each item has its own of ``times``
        (items,); ``known`` from :meth:`conditions`. Output in the padding is undefined."""
        state = noised.masked_fill(is_prompt[..., None], 0)
        rotary = self.rotations(noised)
        hidden, final = self.pass_layers(
            self.x_prenet(state) + known,
            times,
            lambda index, entering: self.block(index).attention(entering, rotary, mask),
        )
        scale, shift = final.unbind(1)
        return self.postnet(self.encoder.out_proj(modulate_items(hidden, shift, scale)))

    def begin(
        self,
        context: Tensor,
        is_prompt: Tensor,
        phones: Tensor,
        tones: Tensor,
        mel2ph: Tensor,
        times: np.ndarray,
        branches: Sequence[int] = BRANCHES,
    ) -> MegaConditioning:
        """Prepare a sampling run of the given branches (see :func:`paretone.sampling.guidance.needed_branches`).

        ``times`` are those of all evaluations, in order; other arguments as in :meth:`conditions`, for which all
        branches' rows are made here. Branches 0 and 1 have the same text, which is encoded once.
        """
        texts = [(phones, tones)] if any(branch != NOTHING for branch in branches) else []
        if NOTHING in branches:
            texts.append(self.unknown(phones, tones))
        encoded = self.encode_phones(*(torch.cat(part) for part in zip(*texts, strict=True)))
        repeats = len(texts)
        by_text = self.expand_phones(encoded, mel2ph.repeat(repeats, 1)).chunk(repeats)
        known = self.condition(context, is_prompt)
        unknown = self.condition(torch.zeros_like(context), is_prompt)
        constant = [
            (known if branch == SPEAKER_AND_TEXT else unknown) + by_text[-1 if branch == NOTHING else 0]
            for branch in branches
        ]
        return MegaConditioning(
            len(branches),
            *self.tabulate(times),
            self.rotations(context),
            None,
            torch.cat(constant),
            (~is_prompt[..., None]).to(context.dtype),
        )

    def enter(self, x: Tensor, evaluation: int, run: MegaConditioning) -> Tensor:
        # The branches' inputs differ only in their constant part, so the state's part is computed once.
        own = self.x_prenet(x * run.to_sample)
        return (run.constant.unflatten(0, (run.branches, -1)) + own).flatten(0, 1)

    def leave(self, hidden: Tensor, entered: Tensor, evaluation: int, run: MegaConditioning) -> Tensor:
        scale, shift = run.final_modulations[evaluation]
        return self.encoder.out_proj(modulation(shift, scale)(hidden))

    def project(self, left: Tensor) -> Tensor:
        return self.postnet(left)

    def operations(self, frames: int, branches: int = len(BRANCHES)) -> OperationCounts:
        """Operations of one evaluation at this length, for one item; the state's input is computed for one branch."""
        config = self.config
        products = 2 * frames
        return OperationCounts(
            attention=products * 4 * config.dim**2 + 4 * frames * frames * config.dim,
            feed_forward=products * 2 * config.ff_hidden * config.dim,
            fixed=products * (config.latent * config.dim * (1 / branches + 1) + config.dim**2),
            layers=config.layers,
            branches=branches,
        )
