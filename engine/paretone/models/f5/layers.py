"""Layers specific to F5's DiT and E2's UNetT. Parameter names are the official ones.

Source: SWivid/F5-TTS 1.1.20, ``f5_tts/model/modules.py`` and ``backbones/dit.py``, and the formulas in their papers.
"""

from __future__ import annotations

import math
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.models.f5.config import BackboneConfig
from paretone.models.kernels.products import PackableLinear
from paretone.models.networks.layers import NORM_EPSILON, FeedForward, SelfAttention, rotary_frequencies, rotary_table
from paretone.models.networks.shapes import Modules

GELU_SLOPE = math.sqrt(8 / math.pi)
GELU_PIECE = 131072
"""Values per piece: half a megabyte, and the same for the result."""


class GlobalResponseNorm(nn.Module):
    """Scales each channel by its strength over the sequence, relative to the other channels (ConvNeXt V2)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(1, 1, width))
        self.beta = nn.Parameter(torch.zeros(1, 1, width))

    def forward(self, x: Tensor, copies: int = 1) -> Tensor:
        """``x`` is (batch, sequence, width); its last row represents ``copies`` equal ones."""
        counted = x if copies == 1 else torch.cat([x[:, :-1], x[:, -1:] * math.sqrt(copies)], dim=1)
        strength = torch.linalg.vector_norm(counted, dim=1, keepdim=True)
        relative = strength / (strength.mean(dim=-1, keepdim=True) + 1e-6)
        return self.gamma * (x * relative) + self.beta + x


class ConvNeXtV2Block(nn.Module):
    """Residual block of the text encoder, (batch, sequence, width) to the same shape."""

    reach = 3
    """Receptive field to either side, in rows."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.dwconv = nn.Conv1d(width, width, kernel_size=2 * self.reach + 1, padding=self.reach, groups=width)
        self.norm = nn.LayerNorm(width, eps=NORM_EPSILON)
        self.pwconv1 = nn.Linear(width, inner)
        self.grn = GlobalResponseNorm(inner)
        self.pwconv2 = nn.Linear(inner, width)

    def forward(self, x: Tensor, copies: int = 1) -> Tensor:
        """The last row represents ``copies`` equal ones."""
        mixed = self.norm(self.dwconv(x.transpose(1, 2)).transpose(1, 2))
        return x + self.pwconv2(self.grn(F.gelu(self.pwconv1(mixed)), copies))


class TextEmbedding(nn.Module):
    """Token ids to one vector per mel frame.

    ``ids`` are (batch, tokens), vocabulary positions with −1 for padding; the result is (batch, frames, width). Row 0
    of the table is filler. ``drop`` hides the text, but with mask padding its length remains visible (official v1).
    ``mask`` is (batch, frames), true within each item's duration: later frames start as zeros, but affect the norms.
    """

    def __init__(self, config: BackboneConfig, longest: int = 8192) -> None:
        super().__init__()
        width = config.text_dim
        self.text_embed = nn.Embedding(config.text_num_embeds + 1, width)
        self.text_blocks = nn.Sequential(*(ConvNeXtV2Block(width, 2 * width) for _ in range(config.conv_layers)))
        self.mask_padding, self.average_upsampling = config.text_mask_padding, config.text_embedding_average_upsampling
        self.longest = longest

    def forward(self, ids: Tensor, frames: int, drop: bool = False, mask: Tensor | None = None) -> Tensor:
        rows = frames
        if self.mask_padding and len(self.text_blocks):
            # After the tokens and the rows that depend on them, all rows are equal padding: one represents all.
            rows = min(frames, ids.shape[1] + ConvNeXtV2Block.reach + 1)
        ids = F.pad((ids + 1)[:, :rows], (0, max(0, rows - ids.shape[1])))
        padding = (ids == 0)[..., None]
        embedded = self.text_embed(torch.zeros_like(ids) if drop else ids)
        if len(self.text_blocks):
            # Fixed position table of the text encoder, (length, width): all cosines, then all sines.
            width = embedded.shape[-1]
            frequencies = 10000.0 ** -(torch.arange(0, width, 2, device=ids.device).float() / width)
            angles = torch.outer(torch.arange(min(rows, self.longest), device=ids.device).float(), frequencies)
            positions = torch.cat([angles.cos(), angles.sin()], dim=-1)
            if rows > self.longest:  # The official table ends here; its last row serves all later frames.
                positions = torch.cat([positions, positions[-1:].expand(rows - self.longest, -1)])
            embedded = embedded + positions.to(embedded.dtype)
            if mask is not None:
                embedded = embedded.masked_fill(~mask[:, :rows, None], 0)
            if self.mask_padding:
                embedded = embedded.masked_fill(padding, 0)
            for block in self.text_blocks:
                embedded = block(embedded, 1 + frames - rows)
                if self.mask_padding:
                    embedded = embedded.masked_fill(padding, 0)
        embedded, ids = F.pad(embedded, (0, 0, 0, frames - rows)), F.pad(ids, (0, frames - rows))
        if self.average_upsampling:
            lengths = [frames] * len(ids) if mask is None else mask.sum(dim=1).tolist()
            embedded = torch.stack(list(map(_upsample, embedded, ids != 0, lengths)))
        return embedded


def _upsample(rows: Tensor, valid: Tensor, frames: int) -> Tensor:
    """Stretch the valid rows evenly over ``frames``; with a remainder, the last ones take one frame more."""
    kept = rows[:frames][valid[:frames]]
    if not len(kept):
        return rows
    repeats = torch.full((len(kept),), frames // len(kept), device=rows.device)
    repeats[len(kept) - frames % len(kept) :] += 1
    return F.pad(kept.repeat_interleave(repeats, dim=0), (0, 0, 0, len(rows) - frames))


class ConvPositionEmbedding(nn.Module):
    """Two grouped convolutions along the sequence that encode positions."""

    def __init__(self, width: int) -> None:
        super().__init__()
        first, second = (nn.Conv1d(width, width, 31, padding=15, groups=16) for _ in range(2))
        self.conv1d = nn.Sequential(first, nn.Mish(), second, nn.Mish())

    @property
    def convolutions(self) -> tuple[nn.Conv1d, nn.Conv1d]:
        """Both, without the activations that officially form a sequence with them."""
        first, _, second, _ = self.conv1d
        return cast("nn.Conv1d", first), cast("nn.Conv1d", second)

    def first(self, x: Tensor, bias: bool) -> Tensor:
        """The first convolution alone, (rows, frames, width) to the same shape: it is linear, so parts of its input may
        be convolved separately and added."""
        return _along_frames(self.convolutions[0], x, bias)

    def rest(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """All after the first convolution, (rows, frames, width); ``mask`` is (rows, frames), true where valid."""
        return _mish(_masked(_along_frames(self.convolutions[1], _mish(_masked(x, mask))), mask))

    def fuse(self) -> None:
        """Store the kernels in the memory format of :func:`_along_frames`, to avoid conversion at every evaluation."""
        for convolution in self.convolutions:
            kernel = convolution.weight.detach().unsqueeze(2).contiguous(memory_format=torch.channels_last)
            convolution.weight = nn.Parameter(kernel.squeeze(2), requires_grad=False)


def _mish(x: Tensor) -> Tensor:
    """x · tanh(softplus(x)). Torch's own kernel takes 1.5 times as long on a CPU, but has a gradient."""
    return F.mish(x) if _has_gradient(x) else F.softplus(x).tanh_().mul_(x)


def _has_gradient(x: Tensor) -> bool:
    """Whether ``x`` may need a gradient: within a Jacobian-vector product, ``requires_grad`` is not set."""
    return x.requires_grad or torch.is_grad_enabled()


def _along_frames(convolution: nn.Conv1d, x: Tensor, bias: bool = True) -> Tensor:
    """A convolution over the middle axis of (rows, frames, width).

    As an image of height one, the tensor is already in the memory format of channels-last kernels, which are a third
    faster on a CPU than transposing for one-dimensional ones. They take 1.5 times as long if they do the padding.
    """
    padding = int(convolution.padding[0])
    image = F.pad(x, (0, 0, padding, padding)).transpose(1, 2).unsqueeze(2)
    kernel = convolution.weight.unsqueeze(2).contiguous(memory_format=torch.channels_last)
    result = F.conv2d(image, kernel, convolution.bias if bias else None, groups=convolution.groups)
    return result.squeeze(2).transpose(1, 2)


def _masked(x: Tensor, mask: Tensor | None) -> Tensor:
    return x if mask is None else x.masked_fill(~mask[..., None], 0)


class InputEmbedding(nn.Module):
    """Noised mel, prompt mel and text, concatenated, to the backbone's width. The parts of prompt and text do not
    depend on the step: :meth:`constant` computes them once per sampling run."""

    def __init__(self, config: BackboneConfig) -> None:
        super().__init__()
        self.mel_bands = config.mel_dim
        self.proj = nn.Linear(2 * config.mel_dim + config.text_dim, config.dim)
        self.conv_pos_embed = ConvPositionEmbedding(config.dim)

    def operations(self, frames: int, branches: int) -> float:
        """Operations of :meth:`forward` per branch; the state's part is computed for only one."""
        width = self.proj.out_features
        convolution, _ = self.conv_pos_embed.convolutions
        projection = 2 * frames * self.mel_bands * width
        convolved = 2 * frames * width * convolution.kernel_size[0] * width // convolution.groups
        return (projection + convolved) / branches + convolved

    def constant(self, prompt: Tensor, text: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Constant part of the projection and of its first convolution, each (rows, frames, width)."""
        weight = self.proj.weight[:, self.mel_bands :]
        projected = F.linear(torch.cat([prompt, text], dim=-1), weight, self.proj.bias)
        return projected, self.conv_pos_embed.first(_masked(projected, mask), bias=True)

    def forward(self, x: Tensor, constant: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        """``x`` is (batch, frames, bands); the result has the rows of ``constant``, a multiple of the batch. The
        branches' inputs differ only in their constant part, so the part of ``x`` is computed once."""
        projected, convolved = constant
        own = F.linear(x, self.proj.weight[:, : self.mel_bands])
        own_convolved = self.conv_pos_embed.first(_masked(own, None if mask is None else mask[: len(own)]), bias=False)
        branches = len(projected) // len(x)
        return self.conv_pos_embed.rest(_add(own_convolved, convolved, branches), mask) + _add(own, projected, branches)


def _add(own: Tensor, constant: Tensor, branches: int) -> Tensor:
    return (constant.unflatten(0, (branches, -1)) + own).flatten(0, 1)


class RotaryEmbedding(nn.Module):
    """Holds the official ``inv_freq`` buffer; :meth:`table` returns the rotations of a sequence."""

    inv_freq: Tensor

    def __init__(self, head_width: int) -> None:
        super().__init__()
        self.register_buffer("inv_freq", rotary_frequencies(head_width))

    def table(self, length: int) -> Tensor:
        """Unit complex numbers, (length, head_width / 2)."""
        return rotary_table(length, self.inv_freq)


class F5Attention(SelfAttention):
    def __init__(self, config: BackboneConfig) -> None:
        super().__init__()
        inner = config.heads * config.dim_head
        self.heads, self.rotary_heads = config.heads, config.pe_attn_head
        self.to_q, self.to_k, self.to_v = (PackableLinear(config.dim, inner) for _ in range(3))
        self.to_out = Modules([PackableLinear(inner, config.dim)])
        self.q_norm, self.k_norm = (
            nn.RMSNorm(config.dim_head, eps=NORM_EPSILON) if config.qk_norm else None for _ in range(2)
        )

    @property
    def inputs(self) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
        return self.to_q, self.to_k, self.to_v

    @property
    def output(self) -> nn.Linear:
        return self.to_out[0]

    def normalised(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        if self.q_norm is None or self.k_norm is None:
            return query, key
        return self.q_norm(query), self.k_norm(key)


def _gelu(x: Tensor) -> Tensor:
    """Tanh-approximated GELU, (…, width) to the same shape. ``x`` is overwritten if no gradient is needed.

    x/2 · (1 + tanh u) is x · sigmoid(2u). Torch's kernels for that, in pieces that stay in the processor's cache, take
    less than half the time of PyTorch's GELU.
    """
    plain = x.device.type == "cpu" and x.dtype == torch.float32 and not _has_gradient(x)
    if not plain or torch.compiler.is_compiling():
        return F.gelu(x, approximate="tanh")
    slope = x.new_tensor(GELU_SLOPE)
    for piece in x.view(-1).split(GELU_PIECE):
        twice = torch.addcmul(slope, piece, piece, value=0.044715 * GELU_SLOPE).mul_(piece)
        piece.mul_(twice.sigmoid_())
    return x


class F5FeedForward(FeedForward):
    activation = staticmethod(_gelu)

    def __init__(self, config: BackboneConfig) -> None:
        super().__init__()
        inner = config.dim * config.ff_mult
        first, last = PackableLinear(config.dim, inner), PackableLinear(inner, config.dim)
        # The official sequence has a dropout in between; types are known only by position.
        self.ff = nn.ModuleList([nn.ModuleList([first]), nn.Identity(), last])

    @property
    def first(self) -> nn.Linear:
        return cast("Modules[nn.Linear]", self.ff[0])[0]

    @property
    def last(self) -> nn.Linear:
        return cast("nn.Linear", self.ff[2])
