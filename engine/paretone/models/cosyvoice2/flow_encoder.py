"""The conformer of CosyVoice 2 that gives every speech token two mel frames, chunk by chunk.

Official names and sizes: ``cosyvoice/transformer/upsample_encoder.py`` (``UpsampleConformerEncoder``), without the
parts that the release leaves out (no convolution module, no macaron feed-forward). Relative positions as in
Transformer-XL (Dai et al., arXiv 1901.02860, appendix B). Every layer remembers its keys, its values and its projected
positions, so that a chunk costs the same whatever precedes it, but for reading what is remembered.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from paretone.models.cosyvoice2.acoustic_config import FRAMES_PER_TOKEN, EncoderConfig
from paretone.models.cosyvoice2.memory import CausalConv, Memory, chunk_mask
from paretone.models.networks.shapes import Modules

LAYER_EPSILON = 1e-12
"""Epsilon of the norms inside a layer; that of the others is PyTorch's 1e-5."""


def relative_sinusoids(distances: Tensor, width: int) -> Tensor:
    """Embedding of how far a key lies before a query, (n,) to (n, width): sines and cosines in turn."""
    falling = torch.arange(0, width, 2, device=distances.device).float() * -(math.log(10000.0) / width)
    angles = distances.float()[:, None] * falling.exp()
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


class RelativeAttention(nn.Module):
    """Self-attention whose scores also depend on the distance of query and key."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.heads = config.heads
        head_width = config.width // config.heads
        self.pos_bias_u = nn.Parameter(torch.zeros(config.heads, head_width))
        self.pos_bias_v = nn.Parameter(torch.zeros(config.heads, head_width))
        self.linear_q = nn.Linear(config.width, config.width)
        self.linear_k = nn.Linear(config.width, config.width)
        self.linear_v = nn.Linear(config.width, config.width)
        self.linear_out = nn.Linear(config.width, config.width)
        self.linear_pos = nn.Linear(config.width, config.width, bias=False)

    def forward(self, x: Tensor, mask: Tensor | None, memory: Memory) -> Tensor:
        """(1, n, width) to the same shape; ``mask`` (n, seen + n) is true where a query may look."""
        query, key, value = (self._split(one(x)) for one in (self.linear_q, self.linear_k, self.linear_v))
        key, value = memory.extended(self, "keys", key), memory.extended(self, "values", value)
        u, v = self.pos_bias_u[:, None], self.pos_bias_v[:, None]
        scores = (query + u) @ key.mT + self._distance_scores(query + v, key.shape[2], memory)
        scores = scores / math.sqrt(query.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        mixed = scores.softmax(dim=-1) @ value
        return self.linear_out(mixed.transpose(1, 2).flatten(2))

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def _distance_scores(self, query: Tensor, keys: int, memory: Memory) -> Tensor:
        """Products of ``query`` (1, heads, n, head_width) with the embedding of every key's distance,
        (1, heads, n, keys)."""
        count = query.shape[2]
        products = query @ self._positions(count, keys, query, memory).mT
        # Every query sees the same distances one column earlier than the query before it.
        products = products.contiguous()
        row = products.shape[-1]
        return products.as_strided(
            (1, self.heads, count, keys),
            (products.stride(0), products.stride(1), row - 1, 1),
            products.storage_offset() + count - 1,
        )

    def _positions(self, count: int, keys: int, like: Tensor, memory: Memory) -> Tensor:
        """Projected embeddings of the distances from ``keys - 1`` down to ``1 - count``, (1, heads, n, head_width)."""
        later = self._projected(torch.arange(1, count, device=like.device).neg())
        first = memory.seen(self, "distances")
        new = torch.arange(first, keys, device=like.device)
        earlier = memory.extended(self, "distances", self._projected(new))
        return torch.cat([earlier.flip(2), later], dim=2)

    def _projected(self, distances: Tensor) -> Tensor:
        weight = self.linear_pos.weight
        return self._split(self.linear_pos(relative_sinusoids(distances, weight.shape[1]).to(weight.dtype))[None])


class EncoderFeedForward(nn.Module):
    """Two linear layers with a SiLU between them."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.w_1 = nn.Linear(width, inner)
        self.w_2 = nn.Linear(inner, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.w_2(F.silu(self.w_1(x)))


class EncoderLayer(nn.Module):
    """Attention and a feed-forward, each after a norm, added to the input."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.self_attn = RelativeAttention(config)
        self.feed_forward = EncoderFeedForward(config.width, config.feed_forward)
        self.norm_ff = nn.LayerNorm(config.width, eps=LAYER_EPSILON)
        self.norm_mha = nn.LayerNorm(config.width, eps=LAYER_EPSILON)

    def forward(self, x: Tensor, mask: Tensor | None, memory: Memory) -> Tensor:
        """(1, n, width) to the same shape."""
        x = x + self.self_attn(self.norm_mha(x), mask, memory)
        return x + self.feed_forward(self.norm_ff(x))


class InputLayer(nn.Module):
    """A linear layer and a norm, scaled as the input of a transformer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width))
        self.scale = math.sqrt(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(x) * self.scale


class LookAhead(nn.Module):
    """Adds to every token what the next few say."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.tokens = config.look_ahead
        self.conv1 = nn.Conv1d(config.width, config.width, config.look_ahead + 1)
        self.conv2 = CausalConv(config.width, config.width, 3)

    def forward(self, x: Tensor, ahead: Tensor | None, memory: Memory) -> Tensor:
        """(1, n, width) to the same shape; ``ahead`` (1, tokens, width) follows, or nothing at the end."""
        known = F.pad(x, (0, 0, 0, self.tokens)) if ahead is None else torch.cat([x, ahead], dim=1)
        hidden = F.leaky_relu(self.conv1(known.transpose(1, 2)))
        return x + self.conv2(hidden, memory).transpose(1, 2)


class TokenUpsampling(nn.Module):
    """Repeats every token for its two mel frames and smooths."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = CausalConv(width, width, 2 * FRAMES_PER_TOKEN + 1)

    def forward(self, x: Tensor, memory: Memory) -> Tensor:
        """(1, n, width) to (1, 2 · n, width)."""
        repeated = x.repeat_interleave(FRAMES_PER_TOKEN, dim=1)
        return self.conv(repeated.transpose(1, 2), memory).transpose(1, 2)


class UpsamplingEncoder(nn.Module):
    """Embedded speech tokens to hidden mel frames."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = InputLayer(config.width)
        self.after_norm = nn.LayerNorm(config.width)
        self.pre_lookahead_layer = LookAhead(config)
        self.encoders = Modules(EncoderLayer(config) for _ in range(config.layers))
        self.up_layer = TokenUpsampling(config.width)
        self.up_embed = InputLayer(config.width)
        self.up_encoders = Modules(EncoderLayer(config) for _ in range(config.upsampled_layers))

    def forward(self, x: Tensor, ahead: Tensor | None, first: int, chunked: bool, memory: Memory) -> Tensor:
        """Hidden frames (1, 2 · n, width) of the embedded tokens ``x`` (1, n, width), the next ones after ``first``.

        ``ahead`` (1, look_ahead, width) are the embedded tokens after those, ``None`` at the end of the request.
        Without ``chunked``, attention sees everything, which is right for whole requests only.
        """
        count, chunk = x.shape[1], self.config.chunk if chunked else None
        x = self.embed(x)
        x = self.pre_lookahead_layer(x, None if ahead is None else self.embed(ahead), memory)
        mask = chunk_mask(first, count, chunk, x.device)
        for layer in self.encoders:
            x = layer(x, mask, memory)
        x = self.up_embed(self.up_layer(x, memory))
        wider = None if chunk is None else chunk * FRAMES_PER_TOKEN
        mask = chunk_mask(first * FRAMES_PER_TOKEN, x.shape[1], wider, x.device)
        for layer in self.up_encoders:
            x = layer(x, mask, memory)
        return self.after_norm(x)
