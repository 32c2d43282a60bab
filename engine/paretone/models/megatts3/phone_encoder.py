"""The phone encoder of MegaTTS 3: convolutions, then transformer layers whose attention knows how far apart phones are.

Its diffusion transformer and its duration model each have one, of other sizes. Source: ByteDance's
``tts/modules/ar_dur/commons/rel_transformer.py``; relative positions as in Shaw et al., arXiv 1803.02155.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.models.networks.shapes import Modules

MASKED_SCORE = -1e4


class ChannelNorm(nn.Module):
    """Layer norm over the channels of (rows, sequence, width), with the official names of its parameters."""

    epsilon = 1e-4

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(width))
        self.beta = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], self.gamma, self.beta, self.epsilon)


def convolve(convolution: nn.Conv1d, x: Tensor) -> Tensor:
    """A convolution along the sequence of (rows, sequence, width)."""
    if convolution.kernel_size == (1,):
        return F.linear(x, convolution.weight[..., 0], convolution.bias)
    return convolution(x.transpose(1, 2)).transpose(1, 2)


class PhonePrenet(nn.Module):
    """Three convolutions, each normed and rectified, with a residual connection; (rows, phones, width) to the same."""

    kernel, depth = 5, 3

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv_layers = Modules(
            nn.Conv1d(width, width, self.kernel, padding=self.kernel // 2) for _ in range(self.depth)
        )
        self.norm_layers = Modules(ChannelNorm(width) for _ in range(self.depth))
        self.proj = nn.Conv1d(width, width, 1)
        # As in the official code: at first the prenet changes nothing.
        for parameter in self.proj.parameters():
            nn.init.zeros_(parameter)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        """``valid`` is (rows, phones, 1), one if there is a phone and zero in the padding."""
        inner = x
        for convolution, norm in zip(self.conv_layers, self.norm_layers, strict=True):
            inner = norm(convolve(convolution, inner * valid)).relu()
        return (x + convolve(self.proj, inner)) * valid


class RelativeAttention(nn.Module):
    """Self-attention with learnt vectors for every distance up to a window, shared by the heads."""

    def __init__(self, width: int, heads: int, window: int) -> None:
        super().__init__()
        self.heads, self.window = heads, window
        self.conv_q, self.conv_k, self.conv_v, self.conv_o = (nn.Conv1d(width, width, 1) for _ in range(4))
        head_width = width // heads
        self.emb_rel_k, self.emb_rel_v = (
            nn.Parameter(torch.randn(1, 2 * window + 1, head_width) * head_width**-0.5) for _ in range(2)
        )

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        """(rows, phones, width) to the same; ``valid`` as for :class:`PhonePrenet`."""
        query, key, value = (
            convolve(projection, x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for projection in (self.conv_q, self.conv_k, self.conv_v)
        )
        query = query / math.sqrt(query.shape[-1])
        band = self._band(x)
        scores = query @ key.transpose(2, 3) + self._spread(query @ self.emb_rel_k[0].T, band)
        weights = scores.masked_fill(valid[:, None, None, :, 0] == 0, MASKED_SCORE).softmax(dim=-1)
        mixed = weights @ value + self._gathered(weights, band) @ self.emb_rel_v[0]
        return convolve(self.conv_o, mixed.transpose(1, 2).flatten(2))

    def _band(self, x: Tensor) -> Tensor:
        """(phones, distances) places of a phone's neighbours, first to last, in a row padded by the window."""
        return torch.arange(x.shape[1], device=x.device)[:, None] + torch.arange(2 * self.window + 1, device=x.device)

    def _spread(self, near: Tensor, band: Tensor) -> Tensor:
        """(rows, heads, phones, distances) to (rows, heads, phones, phones), zero beyond the window."""
        phones = near.shape[2]
        padded = near.new_zeros(*near.shape[:3], phones + 2 * self.window)
        return padded.scatter(-1, band.expand_as(near), near)[..., self.window : self.window + phones]

    def _gathered(self, weights: Tensor, band: Tensor) -> Tensor:
        """The inverse of :meth:`_spread`: the weights within the window, zero beyond the sequence's ends."""
        return F.pad(weights, (self.window, self.window)).gather(-1, band.expand(*weights.shape[:2], *band.shape))


class PhoneFeedForward(nn.Module):
    """A convolution over neighbouring phones, ReLU, and a projection back."""

    def __init__(self, width: int, hidden: int, kernel: int) -> None:
        super().__init__()
        self.conv_1 = nn.Conv1d(width, hidden, kernel, padding=kernel // 2)
        self.conv_2 = nn.Conv1d(hidden, width, 1)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        """(rows, phones, width) to the same; ``valid`` as for :class:`PhonePrenet`."""
        return convolve(self.conv_2, convolve(self.conv_1, x * valid).relu()) * valid


class RelativeTransformer(nn.Module):
    """Pre-norm layers of :class:`RelativeAttention` and :class:`PhoneFeedForward`, and a last norm."""

    def __init__(self, width: int, layers: int, heads: int, hidden: int, kernel: int, window: int) -> None:
        super().__init__()
        self.attn_layers = Modules(RelativeAttention(width, heads, window) for _ in range(layers))
        self.norm_layers_1 = Modules(ChannelNorm(width) for _ in range(layers))
        self.ffn_layers = Modules(PhoneFeedForward(width, hidden, kernel) for _ in range(layers))
        self.norm_layers_2 = Modules(ChannelNorm(width) for _ in range(layers))
        self.last_ln = ChannelNorm(width)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        """(rows, phones, width) to the same, zero in the padding; ``valid`` as for :class:`PhonePrenet`."""
        parts = self.norm_layers_1, self.attn_layers, self.norm_layers_2, self.ffn_layers
        for attention_norm, attention, forward_norm, feed_forward in zip(*parts, strict=True):
            x = x + attention(attention_norm(x), valid)
            x = x + feed_forward(forward_norm(x), valid)
        return self.last_ln(x) * valid


class PhoneEncoder(nn.Module):
    """Phone ids to vectors in context. ``state_dict`` has the official keys: ``emb``, ``pre``, ``encoder``.

    ``entries`` are the rows of the phone table, of which id 0 is padding; ``ffn`` is the inner width of the layers'
    feed-forward, ``kernel`` its number of phones, ``window`` the distance up to which attention tells positions apart.
    """

    def __init__(
        self, entries: int, width: int, layers: int, heads: int, ffn: int, kernel: int = 3, window: int = 4
    ) -> None:
        super().__init__()
        self.emb = nn.Embedding(entries, width, padding_idx=0)
        nn.init.normal_(self.emb.weight, 0.0, width**-0.5)
        self.pre = PhonePrenet(width)
        self.encoder = RelativeTransformer(width, layers, heads, ffn, kernel, window)

    def forward(self, phones: Tensor, other: Tensor) -> Tensor:
        """``phones`` are (rows, phones) ids, padded with 0 at the end; ``other`` (rows, phones, width) embeds a
        sequence of the same length, such as tones. The result is (rows, phones, width), zero in the padding."""
        valid = (phones > 0)[..., None].to(other.dtype)
        x = self.emb(phones) * math.sqrt(self.emb.embedding_dim) + other
        return self.encoder(self.pre(x, valid), valid)
